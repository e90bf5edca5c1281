-- SPDX-License-Identifier: Apache-2.0
-- flagscale.lua: the top file of a FlagScale experiment with its body in it, from the settings of a plan (settings.lua).

local yaml = require "pipeplan.report.launch.yaml"

-- Where FlagScale's own files have a key; it takes each in either.
local function part_of(setting)
  local field = setting.field or ""
  local of_model = field:find "^model%." or field:find "^training%..*_size$" or field == "training.sequence_length"
  return of_model and "model" or "system"
end

return function(launch)
  local lines = {}
  local function add(indent, text) lines[#lines + 1] = ("  "):rep(indent) .. text end
  for _, line in ipairs(launch.heading) do add(0, "# " .. line) end
  add(0, "# Start: flagscale's run.py with this file as its configuration; data, tokenizer and learning rate are yours, in train.")
  add(0, "experiment:")
  add(1, "exp_name: " .. yaml.scalar(launch.name))
  add(1, "exp_dir: " .. yaml.scalar("outputs/" .. launch.name))
  add(1, "task: {type: train, backend: megatron, entrypoint: flagscale/train/train_gpt.py}")
  add(1, string.format("runner: {nnodes: %d, nproc_per_node: %d}", launch.nodes, launch.per_node))
  if launch.connections then add(1, string.format("envs: {CUDA_DEVICE_MAX_CONNECTIONS: %d}", launch.connections)) end
  add(0, "action: run")
  add(0, "train:")
  for _, part in ipairs { "system", "model" } do
    add(1, part .. ":")
    for _, setting in ipairs(launch.settings) do
      if part_of(setting) == part then add(2, setting.key .. ": " .. yaml.value(setting.value)) end
    end
  end
  return table.concat(lines, "\n") .. "\n"
end
