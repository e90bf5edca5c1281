-- SPDX-License-Identifier: Apache-2.0
-- others.lua: files of frameworks whose launches are not judged: what they are is told, and what can be said of them without it.

local failure = require "pipeplan.base.failure"
local frameworks = require "pipeplan.catalog.frameworks"
local tree = require "pipeplan.input.launch.yaml_tree"

local others = {}

local function new(framework, file)
  return { framework = framework, file = file, settings = {}, spelled = {}, unresolved = {}, judged = false, line = 1, notes = {} }
end

local function now(gone) return gone.now and ": now " .. gone.now or "" end

-- torchtitan's TOML, which no version since February 2026 reads. Its keys are read as far as that goes: section.key = value.
local function toml(text, file)
  local launch, gone_keys = new("torchtitan", file), frameworks.find("torchtitan").gone
  local section, number = "", 0
  launch.notes[1] = { id = "gone_key", severity = "error", line = 1, key = "job.config_file", nearest = "--module and --config",
                      source = "https://github.com/pytorch/torchtitan/issues/2386",
                      message = "torchtitan reads no TOML since February 2026: a configuration is a function of its config_registry.py" }
  for line in text:gmatch "([^\n]*)\n?" do
    number = number + 1
    section = line:match "^%s*%[([%w_.]+)%]" or section
    local key = line:match "^%s*([%w_]+)%s*="
    for _, gone in ipairs(key and gone_keys or {}) do
      if gone.key == section .. "." .. key then
        launch.notes[#launch.notes + 1] = { id = "gone_key", severity = "error", line = number, key = gone.key, nearest = gone.now,
                                            source = gone.source, message = gone.key .. " is gone" .. now(gone) }
      end
    end
  end
  return { launch }
end

function others.read(text, file, kind, what)
  if kind == "toml" and text:find "%[parallelism%]" and text:find "data_parallel_shard_degree" then return toml(text, file) end
  failure.usage("%s: no launch configuration that is known; %s", file, what)
end

-- YAML of nobody's that is read.
function others.yaml(root, file)
  if tree.at(root, "pipe_parallel_size") or tree.at(root, "pipe-parallel-size") then
    failure.usage("%s: a configuration of GPT-NeoX: not read; its flags for DeepSpeed are", file)
  elseif tree.at(root, "parallelism", "pp_engine") or tree.at(root, "parallelism", "pp") then
    failure.usage("%s: a configuration of nanotron: not read", file)
  elseif tree.at(root, "extends") or tree.at(root, "bases") or tree.at(root, "patch_zero_bubble") then
    failure.usage("%s: a preset of Primus, which an experiment names: lint the experiment", file)
  end
  failure.usage("%s: no launch configuration that is known: expected MODEL_ARGS, system and model (FlagScale), experiment "
                .. "(FlagScale), modules with overrides (Primus), or model with a degree such as tensor_model_parallel_size "
                .. "(Megatron-Bridge, NeMo)", file)
end

return others
