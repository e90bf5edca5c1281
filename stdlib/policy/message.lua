-- SPDX-License-Identifier: Apache-2.0
-- message.lua: the texts of rules. "{name}" becomes the value of that field or parameter, in the unit people read it in.

local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local message = {}

-- The value of a name as shown. A field that has no value, as the bubble of a candidate that was never simulated, is "unknown".
local function shown(name, record, policy)
  local field = vocabulary.by_name[name]
  local value, unit
  if field then
    value, unit = record[name], field.unit
  else
    local parameter = policy.parameters[name]
    if not parameter then return nil end
    value, unit = parameter.value, parameter.unit
  end
  if value == nil or value ~= value then return "unknown" end
  return units.format(value, unit)
end

local at_smallest = { microbatches = true, microbatches_per_rank = true }   -- which fields of a batch that grows are of its smallest

-- fill("P is {pipeline_parallel}", { pipeline_parallel = 72 }, policy) → "P is 72". Names were checked when the policy was loaded.
function message.fill(template, record, policy)
  local smallest
  local words = template:gsub("{([^{}]*)}", function(name)
    smallest = smallest or at_smallest[name] and record.smallest_batch_size ~= record.global_batch_size and record.smallest_batch_size
    return shown(name, record, policy)
  end)
  if not smallest then return words end
  return "at the smallest batch, " .. units.format(smallest, vocabulary.by_name.smallest_batch_size.unit) .. ": " .. words
end

-- A nearest legal value, { field, value, beyond }, as it stands behind a rule: " (legal: microbatches 16)".
function message.legal(near)
  local field = vocabulary.by_name[near.field]
  return string.format(" (legal: %s %s%s)", near.field, near.beyond and "beyond " or "",
                       units.exact(near.value, field and field.unit))
end

return message
