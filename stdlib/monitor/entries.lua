-- SPDX-License-Identifier: Apache-2.0
-- entries.lua: which lines of a log stand, and of how many steps each is the mean.
--
-- A line stands for the steps since the line before it, at most for as many as lines lie apart around it: the median of five distances, so
-- that lines that are missing are a gap, and another log interval is none. The first line of a process stands for as many as its second.
-- A process that begins at an earlier iteration does the steps from there on again: lines of older ones from there on do not stand.

local entries = {}

local AROUND = 2   -- lines before and behind

-- The iterations in order whose line is of the newest process that came by there.
local function standing_of(sorted, process, undone)
  local list, starts, at, newest = {}, {}, 1, 0
  for i in pairs(undone) do starts[#starts + 1] = i end
  table.sort(starts)
  for _, i in ipairs(sorted) do
    while starts[at] and starts[at] <= i do newest, at = math.max(newest, undone[starts[at]]), at + 1 end
    if process[i] >= newest then list[#list + 1] = i end
  end
  return list
end

local function is_first(list, process, k) return k == 1 or process[list[k - 1]] ~= process[list[k]] end

-- The distance of lines of a process around its line k; nil of one that stands alone.
local function usual_of(list, process, k)
  local own, distances = process[list[k]], {}
  for j = math.max(2, k - AROUND), math.min(#list, k + AROUND) do
    if process[list[j]] == own and process[list[j - 1]] == own then distances[#distances + 1] = list[j] - list[j - 1] end
  end
  table.sort(distances)
  return distances[(#distances + 1) // 2]
end

-- Of how many steps each is; interval: of one that stands alone.
local function weights_of(list, process, interval)
  local weights = {}
  for k = #list, 1, -1 do
    local i = list[k]
    if is_first(list, process, k) then
      local alone = k == #list or is_first(list, process, k + 1)
      weights[k] = math.min(i, alone and interval or weights[k + 1])
    else weights[k] = math.min(i - list[k - 1], usual_of(list, process, k)) end
  end
  return weights
end

-- sorted: iterations in order; process: of each, which one logged it, from 0; undone: iteration → the newest process that began there;
-- interval: steps of a line that stands alone → { { iteration, weight }, … } in order.
function entries.of(sorted, process, undone, interval)
  local list, out = standing_of(sorted, process, undone), {}
  local weights = weights_of(list, process, interval)
  local covered, newer = math.huge, -1   -- the steps behind `covered` are of the process `newer`
  for k = #list, 1, -1 do
    local i, own = list[k], process[list[k]]
    if own >= newer or i <= covered then
      out[#out + 1] = { iteration = i, weight = weights[k] }
      if is_first(list, process, k) then covered, newer = i - weights[k], own end
    end
  end
  for a = 1, #out // 2 do out[a], out[#out + 1 - a] = out[#out + 1 - a], out[a] end
  for k = 2, #out do out[k].weight = math.min(out[k].weight, out[k].iteration - out[k - 1].iteration) end
  return out
end

-- Iterations first…last of which no line tells, up to the last that was read, as { { first, last }, … }.
function entries.gaps(list, first, last)
  local gaps, before = {}, first - 1
  for _, entry in ipairs(list) do
    local from, to = math.max(before + 1, first), entry.iteration - entry.weight
    if entry.iteration >= first and to >= from then gaps[#gaps + 1] = { first = from, last = math.min(to, last) } end
    before = math.max(before, entry.iteration)
  end
  return gaps
end

return entries
