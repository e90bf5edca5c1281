-- SPDX-License-Identifier: Apache-2.0
-- torchtitan.lua: a shell script that starts torchtitan, from the settings of a plan (settings.lua). A schedule that torchtitan has no name
-- for stands in it, as the CSV that PyTorch's runtime reads.

local program = require "pipeplan.report.program"
local shell = require "pipeplan.report.launch.shell"

-- --parallelism.no-enable_sequence_parallel
local function flag_of(setting)
  if setting.value ~= "no" then return "--" .. setting.key end
  return "--" .. setting.key:gsub("%.([%w_]+)$", ".no-%1")
end

-- A configuration function that nobody has: whoever starts it names one.
local function own_configuration(launch)
  local shape, training = launch.request.model.shape, launch.plan.training
  local experts = ""
  if (shape.experts or 0) > 0 then experts = string.format(", %d experts, %d a token", shape.experts, shape.experts_per_token or 1) end
  local list = {
    "MODULE and CONFIG name a configuration function of yours, for torchtitan 0.3.0 has none of this model:",
    string.format("%d layers of %d, %d heads, %s products%s.", shape.layers, shape.hidden, shape.heads, training.precision, experts),
  }
  if training.precision == "fp8" then   -- trainer.py:77: model_spec is no option
    list[3] = "No option makes products fp8: the function's model_registry takes Float8LinearConverter."
  end
  return list
end

-- The lines that write the CSV to a file of the node's own.
local function add_program(lines, launch)
  lines[#lines + 1] = "schedule=$(mktemp)"
  lines[#lines + 1] = 'cat >"$schedule" <<\'CSV\''
  for line in program.csv(launch.plan, launch.request, "split") do lines[#lines + 1] = (line:gsub("%s+$", "")) end
  lines[#lines + 1] = "CSV"
end

return function(launch)
  local comments = launch.said.config == "" and own_configuration(launch) or {}
  table.insert(comments, 1, "Tokenizer, data and learning rate are the configuration function's; arguments of this script are added.")
  table.insert(comments, 2, "torchtitan 0.3.0 beside PyTorch 2.14 or newer: with 2.13 its pipeline does not run.")
  local lines = shell.head(launch, comments)
  if launch.said["parallelism.pipeline_parallel_schedule_csv"] then add_program(lines, launch) end
  lines[#lines + 1] = shell.torchrun(launch, "-m torchtitan.train")
  local checkpointing
  for _, setting in ipairs(launch.settings) do
    local text
    if setting.key == "activation_checkpoint" then checkpointing = "activation_checkpoint:" .. setting.value
    elseif setting.value == "" then text = string.format('--%s "${%s:?}"', setting.key, setting.key:upper())
    elseif setting.key == "parallelism.pipeline_parallel_schedule_csv" then text = "--" .. setting.key .. ' "$schedule"'
    elseif setting.value == true or setting.value == "no" then text = flag_of(setting)
    else text = shell.words("--" .. setting.key, setting.value) end
    if text then lines[#lines + 1] = "  " .. text .. " \\" end
  end
  lines[#lines + 1] = '  "$@" ' .. checkpointing   -- options behind it would be its own
  return table.concat(lines, "\n") .. "\n"
end
