-- SPDX-License-Identifier: Apache-2.0
-- others.lua: the end of the page: what was compared with the plan, what rules dropped, what was assumed, and by which policy.

local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local message = require "pipeplan.policy.message"

local others = {}

local function whole_gib(bytes)
  return bytes < 999.5 * 2 ^ 30 and format.gib(bytes) or format.integer(bytes / 2 ^ 30)
end

-- What fits before what does not, the faster first: a short page leaves out the last.
local function by_relevance(alternatives)
  local list, place = table.move(alternatives, 1, #alternatives, 1, {}), {}
  for i, other in ipairs(alternatives) do place[other] = i end
  table.sort(list, function(a, b)
    local small, large = a.fit == "does_not_fit" and 1 or 0, b.fit == "does_not_fit" and 1 or 0
    if small ~= large then return small < large end
    local one, two = a.step_seconds or math.huge, b.step_seconds or math.huge
    if one ~= two then return one < two end
    return place[a] < place[b]
  end)
  return list
end

-- "why not (±6 %, another layout ±19 %)": how far off the comparisons below may be.
local function why_not(plan)
  local names, parts, seen = { "", "another layout ", "no pipeline " }, {}, {}
  for _, other in ipairs(plan.alternatives) do
    local same = layout.difference(other.parallelism, plan.parallelism) == "same"
    local kind = (other.parallelism.pipeline == 1) ~= (plan.parallelism.pipeline == 1) and 3 or same and 1 or 2
    seen[kind] = seen[kind] or other.error_fraction
  end
  for kind = 1, 3 do
    if seen[kind] then parts[#parts + 1] = string.format("%s±%.0f %%", names[kind], 100 * seen[kind]) end
  end
  return #parts > 0 and "why not (" .. table.concat(parts, ", ") .. ")" or "why not"
end

function others.alternatives(plan)
  if not plan.alternatives or #plan.alternatives == 0 then return nil end
  local rows = {}
  for _, other in ipairs(by_relevance(plan.alternatives)) do
    local where = layout.difference(other.parallelism, plan.parallelism)
    local name = format.schedule(other.schedule)
    if other.parallelism.virtual > 1 then name = name:gsub(" 1F1B$", "") .. " V " .. other.parallelism.virtual end
    rows[#rows + 1] = {
      name,
      other.step_seconds and format.seconds(other.step_seconds) or "–",
      other.bubble_fraction and format.percent(other.bubble_fraction) or "–", other.peak_bytes and whole_gib(other.peak_bytes) or "–",
      (where ~= "same" and "at " .. where .. ": " or "") .. table.concat(other.why_not, ", "),
    }
  end
  local columns = { { "schedule", true }, { "step" }, { "bubble" }, { "GiB" }, { why_not(plan), true } }
  return { label = "others", group = "others", weight = 6, keep = 3, rows = rows, columns = columns }
end

function others.dropped(plan)
  local parts = {}
  for _, entry in ipairs(plan.dropped) do
    local text = entry.rule .. " " .. format.integer(entry.count) .. (entry.at_least and "+" or "")
    if entry.nearest then text = text .. message.legal(entry.nearest) end
    parts[#parts + 1] = text
  end
  if parts[1] then parts[1] = "candidates that a rule held for: " .. parts[1] end
  return parts
end

-- "micro_batch_size 1 (least memory)"
function others.assumptions(plan)
  local parts = {}
  for i, entry in ipairs(plan.assumptions) do
    local value = format.quantity(entry.value)
    parts[i] = string.format("%s%s (%s)", entry.field:match("[^.]+$"), value ~= "" and " " .. value or "", entry.why)
  end
  return parts
end

-- Links that were measured: which test, over how many GPUs of how many nodes, in which file (input/network.lua, note_fit).
function others.links(plan)
  local parts = {}
  for _, entry in ipairs(plan.assumptions) do
    local place, what = entry.why:match "^(.-): ([%l_]+ over %d+ GPUs of %d+ nodes?[^,]*), α"
    if place then parts[#parts + 1] = string.format("%s %s: %s (%s)", entry.field, entry.value, what, place:match "[^/]*$") end
  end
  return parts
end

function others.policy(plan)
  return string.format("%s; digest %s; judged at %s; pipeplan %s", table.concat(plan.policy.layers, " + "), plan.policy.digest:sub(1, 12),
                       plan.policy.date, plan.engine_version)
end

return others
