-- SPDX-License-Identifier: Apache-2.0
-- megatron_ramp.lua: --step-batch-size-schedule of Megatron-LM, "0:16 2.4B:320": the sequences of a step from each token on.
-- Source: num_microbatches_calculator.py:402-560, StepBatchsizeNumMicroBatchesCalculator, of @d98e8a64.

local ramp = {}

local MOST_ENTRIES = 1000
local suffixes = { K = 1e3, M = 1e6, B = 1e9, T = 1e12 }

local function number(text)
  local digits, suffix = text:upper():match "^([%d.E+-]+)([KMBT]?)$"
  local value = digits and tonumber(digits)
  return value and math.tointeger(value * (suffixes[suffix] or 1) // 1)
end

-- ramp.parse(text, sequence length or nil) → { { first token, sequences }, … }, or nil and why Megatron refuses it.
function ramp.parse(text, sequence_length)
  local list = {}
  for entry in text:gmatch "[^%s,]+" do
    local first, sequences = entry:match "^([^:]*):(.*)$"
    first, sequences = first and number(first), sequences and number(sequences)
    if not first or not sequences then return nil, string.format("'%s' is no TOKENS:SEQUENCES", entry) end
    if sequences < 1 then return nil, string.format("'%s' has no sequences", entry) end
    list[#list + 1] = { first, sequences }
    if #list > MOST_ENTRIES then return nil, "it has more entries than any run" end
  end
  if #list == 0 then return nil, "it is empty" end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  local length = sequence_length or 1
  if list[1][1] // length ~= 0 then return nil, "no entry is for the first token, 0" end
  for i = 2, #list do
    if list[i][1] // length == list[i - 1][1] // length then
      return nil, string.format("two entries begin at the same sequence, that of token %d", list[i][1])
    end
  end
  return list
end

return ramp
