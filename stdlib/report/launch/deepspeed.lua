-- SPDX-License-Identifier: Apache-2.0
-- deepspeed.lua: a shell script that starts a program with DeepSpeed, from the settings of a plan (settings.lua): the configuration, and
-- what DeepSpeed takes in Python alone, as a module that the program imports.

local json = require "pipeplan.base.json"
local shell = require "pipeplan.report.launch.shell"

local LAYER = "DecoderLayer"   -- of the class of a decoder layer, as most models of Hugging Face call it

-- zero_optimization.stage → { zero_optimization = { stage } }, in the order of the settings.
local function configuration(launch)
  local sections, order = {}, {}
  for _, setting in ipairs(launch.settings) do
    local key = setting.key
    if not key:find "^%u" and not key:find "^planned%." then
      local value = json.encode(setting.value)
      local parts = {}
      for part in key:gmatch "[^.]+" do parts[#parts + 1] = part end
      local text = string.format("%s: %s", json.encode(parts[#parts]), value)
      for i = #parts - 1, 2, -1 do text = string.format("%s: { %s }", json.encode(parts[i]), text) end
      local section = #parts > 1 and parts[1] or key
      if not sections[section] then
        sections[section] = { of = #parts > 1 }
        order[#order + 1] = section
      end
      table.insert(sections[section], text)
    end
  end
  local lines = {}
  for i, section in ipairs(order) do
    local text = table.concat(sections[section], ", ")
    if sections[section].of then text = string.format("%s: { %s }", json.encode(section), text) end
    lines[i] = "  " .. text .. (i < #order and "," or "")
  end
  return lines
end

local function python(launch)
  local said, p = launch.said, launch.plan.parallelism
  local lines = {
    "# What of the plan no key of DeepSpeed's configuration says.",
    "layers_per_stage = [" .. table.concat(said["planned.layers_per_stage"], ", ") .. "]",
    "sequence_length = " .. said["--seq-length"],
  }
  local function add(...)
    for _, line in ipairs { ... } do lines[#lines + 1] = line end
  end
  if p.pipeline == 1 then
    add "num_stages = 1  # no PipelineModule"
    return lines
  end
  local shape = string.format("num_stages=%d", p.pipeline)
  if p.tensor > 1 then
    table.insert(lines, 2, "from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology")
    shape = string.format("topology=PipeModelDataParallelTopology(num_pp=%d, num_mp=%d, num_dp=%d)", p.pipeline, p.tensor, p.data)
  end
  add("", string.format("# PipelineModule(layers=…, loss_fn=…, **planned.pipeline), of layers of the class %s: another name goes here.",
                        LAYER),
      string.format("pipeline = dict(%s, partition_method=%s)", shape, json.encode(said["PipelineModule.partition_method"])))
  if said["MoE.ep_size"] then
    add("", "# deepspeed.moe.layer.MoE(…, **planned.experts)",
        string.format("experts = dict(ep_size=%d, enable_expert_tensor_parallelism=%s)", said["MoE.ep_size"],
                      said["MoE.enable_expert_tensor_parallelism"] and "True" or "False"))
  end
  add("", "",
      "def check(module):",
      '    """Ends the run where DeepSpeed cuts the layers otherwise than the plan: it takes no list of them."""',
      "    pattern = pipeline[\"partition_method\"].split(\":\")[1].lower()",
      "    names = [getattr(layer, \"typename\", type(layer)).__name__.lower() for layer in module._layer_specs]",
      "    built = [sum(pattern in name for name in names[a:b]) for a, b in zip(module.parts, module.parts[1:])]",
      "    assert built == layers_per_stage, f\"the stages have {built} layers, planned are {layers_per_stage}\"")
  return lines
end

return function(launch)
  local lines = shell.head(launch, {
    "TRAIN is your program, which hands planned.py's values to DeepSpeed; model, data, optimizer and learning rate are its own.",
    "For DeepSpeed 0.19.8, on whose code what is written here rests.",
  })
  local function add(list, from, to)
    lines[#lines + 1] = string.format("cat >\"$folder/%s\" <<'%s'", from, to)
    table.move(list, 1, #list, #lines + 1, lines)
    lines[#lines + 1] = to
  end
  lines[#lines + 1] = "folder=$(mktemp -d)"
  local config = configuration(launch)
  table.insert(config, 1, "{")
  config[#config + 1] = "}"
  add(config, "ds_config.json", "JSON")
  add(python(launch), "planned.py", "PYTHON")
  lines[#lines + 1] = 'export PYTHONPATH="$folder${PYTHONPATH:+:$PYTHONPATH}"'
  lines[#lines + 1] = shell.torchrun(launch, '"${TRAIN:?}"')
  lines[#lines + 1] = '  --deepspeed --deepspeed_config "$folder/ds_config.json" "$@"'
  return table.concat(lines, "\n") .. "\n"
end
