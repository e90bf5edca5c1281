-- SPDX-License-Identifier: Apache-2.0
-- flagscale.lua: the top file of a FlagScale experiment with its body in it, from the settings of a plan (settings.lua).

-- Where FlagScale's own files have a key; it takes each in either.
local function part_of(setting)
  local field = setting.field or ""
  local of_model = field:find "^model%." or field:find "^training%..*_size$" or field == "training.sequence_length"
  return of_model and "model" or "system"
end

-- A YAML scalar: plain where nothing could take it for something else.
local function scalar(value)
  if value == true then return "true" end
  if math.type(value) then return tostring(value) end
  if value:find "^[%a][%w_]*$" and not ("true false yes no on off null"):find(value:lower(), 1, true) then return value end
  return '"' .. value:gsub('[\\"]', "\\%0") .. '"'
end

local function value_of(value)
  if type(value) ~= "table" then return scalar(value) end
  local parts = {}
  for i, each in ipairs(value) do parts[i] = scalar(each) end
  return "[" .. table.concat(parts, ", ") .. "]"
end

return function(launch)
  local lines = {}
  local function add(indent, text) lines[#lines + 1] = ("  "):rep(indent) .. text end
  for _, line in ipairs(launch.heading) do add(0, "# " .. line) end
  add(0, "# Start: flagscale's run.py with this file as its configuration; data, tokenizer and learning rate are yours, in train.")
  add(0, "experiment:")
  add(1, "exp_name: " .. scalar(launch.name))
  add(1, "exp_dir: " .. scalar("outputs/" .. launch.name))
  add(1, "task: {type: train, backend: megatron, entrypoint: flagscale/train/train_gpt.py}")
  add(1, string.format("runner: {nnodes: %d, nproc_per_node: %d}", launch.nodes, launch.per_node))
  if launch.connections then add(1, string.format("envs: {CUDA_DEVICE_MAX_CONNECTIONS: %d}", launch.connections)) end
  add(0, "action: run")
  add(0, "train:")
  for _, part in ipairs { "system", "model" } do
    add(1, part .. ":")
    for _, setting in ipairs(launch.settings) do
      if part_of(setting) == part then add(2, setting.key .. ": " .. value_of(setting.value)) end
    end
  end
  return table.concat(lines, "\n") .. "\n"
end
