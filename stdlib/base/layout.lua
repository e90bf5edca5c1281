-- SPDX-License-Identifier: Apache-2.0
-- layout.lua: the degrees of a layout as people write them: "P 16 · M 120 · TP 1 · EP 64 · DP 128".

local format = require "pipeplan.base.format"

local layout = {}

local names = { { "pipeline", "P" }, { "virtual", "V" }, { "microbatches", "M" }, { "tensor", "TP" }, { "context", "CP" },
                { "expert", "EP" }, { "expert_tensor", "ETP" }, { "data", "DP" } }

-- Shown whatever they are.
local always = { tensor = true, data = true }

-- "P 16 · V 2 · M 120 · TP 1 · …": what is 1 and could not be otherwise is left out, and M where there is no pipeline. ETP is said where it
-- is not TP, which is what trainers take it for when nobody says.
function layout.line(parallelism, microbatches, separator)
  local parts = {}
  for _, name in ipairs(names) do
    local degree, shown = parallelism[name[1]], always[name[1]]
    if name[1] == "microbatches" then
      degree, shown = parallelism.pipeline > 1 and microbatches, true
    elseif name[1] == "expert_tensor" then
      degree = degree ~= parallelism.tensor and degree
      shown = parallelism.expert and parallelism.expert > 1
    end
    if degree and (shown or degree > 1) then parts[#parts + 1] = name[2] .. " " .. format.integer(degree) end
  end
  return table.concat(parts, separator or " · ")
end

local compared = { pipeline = true, tensor = true, context = true, expert = true, expert_tensor = true }

-- What differs from the plan's layout: "P 8 TP 2", or "same". DP follows from the rest, V stands with the schedule. Without a plan the
-- whole layout.
function layout.difference(other, own)
  if not own then return layout.line(other, nil, " ") end
  local parts = {}
  for _, name in ipairs(names) do
    local degree = other[name[1]]
    local said = name[1] == "pipeline" and degree == 1  -- "no pipeline" stands beside it
    if compared[name[1]] and degree ~= own[name[1]] and not said then parts[#parts + 1] = name[2] .. " " .. degree end
  end
  return #parts > 0 and table.concat(parts, " ") or "same"
end

return layout
