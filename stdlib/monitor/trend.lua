-- SPDX-License-Identifier: Apache-2.0
-- trend.lua: do the steps of a run become slower? A schedule's bubble is in all of them alike; what comes with time is a fault of the
-- machine (a card that throttles, a link that falls back, a neighbour's traffic), and another schedule on it is as slow.

local weighted = require "pipeplan.monitor.weighted"

local trend = {}

local LEAST_LINES = 5      -- of a quarter of the run: fewer say nothing
local LEAST_RISE = 0.05    -- what estimates cannot tell apart (catalog/accuracy.lua: a tie) is nothing to look for

-- entries: lines that count, each { iteration, weight, seconds, scale, … } → their sums of seconds, of the scale's, and of steps. The scale
-- is what makes steps of several batches alike: the seconds that each is predicted to take, but for a factor that all have.
function trend.sums(entries)
  local seconds, scale, weight = 0, 0, 0
  for _, entry in ipairs(entries) do
    seconds, scale = seconds + entry.weight * entry.seconds, scale + entry.weight * entry.scale
    weight = weight + entry.weight
  end
  return seconds, scale, weight
end

-- Seconds of a step over its scale.
function trend.ratio(entry) return entry.seconds / entry.scale end

-- Relative standard error of the mean step, from the means of at most 20 stretches of the run, of as many steps each: neighbouring steps
-- are not independent.
function trend.error(entries)
  local _, _, total = trend.sums(entries)
  local count, parts, passed = math.min(20, #entries), {}, 0
  for _, entry in ipairs(entries) do
    passed = passed + entry.weight
    local at = (passed * count + total - 1) // total
    parts[at] = parts[at] or {}
    table.insert(parts[at], entry)
  end
  local groups = {}
  for g = 1, count do
    if parts[g] then
      local seconds, scale = trend.sums(parts[g])
      groups[#groups + 1] = seconds / scale
    end
  end
  count = #groups
  if count < 2 then return nil end
  local mean, square = 0, 0
  for _, value in ipairs(groups) do mean = mean + value / count end
  for _, value in ipairs(groups) do square = square + (value - mean) ^ 2 end
  return math.sqrt(square / (count - 1) / count) / mean
end

-- The last iteration before the steps became slower (sign 1) or faster (-1), if they did at once: where the two sides' means are furthest
-- apart for their length.
local function change_after(entries, sign)
  local total, steps, before, passed, best, at = 0, 0, 0, 0, -1, nil
  for _, entry in ipairs(entries) do total, steps = total + entry.weight * trend.ratio(entry), steps + entry.weight end
  for k = 1, #entries - 1 do
    local entry = entries[k]
    before, passed = before + entry.weight * trend.ratio(entry), passed + entry.weight
    local apart = sign * ((total - before) / (steps - passed) - before / passed) * math.sqrt(passed * (steps - passed))
    if apart > best then best, at = apart, entry.iteration end
  end
  return at
end

-- How many entries from one end on are a quarter of the steps, at most.
local function quarter_of(entries, from, to, by)
  local _, _, total = trend.sums(entries)
  local count, passed = 0, 0
  for k = from, to, by do
    passed = passed + entries[k].weight
    if 4 * passed > total then break end
    count = count + 1
  end
  return count
end

-- How many times slower than another a part has to be: by LEAST_RISE, and two standard errors of the two. Of a part that is nearly all one
-- line nobody knows how much it scatters: infinity.
local function least_of(one, other)
  local a, b = trend.error(one), trend.error(other)
  return a and b and 1 + math.max(LEAST_RISE, 2 * math.sqrt(a ^ 2 + b ^ 2)) or math.huge
end

local function mean_of(entries)
  local seconds, scale = trend.sums(entries)
  return seconds / scale
end

-- The first and the last quarter of the steps, as seconds over the scale's: { early, late, rises, after, recovered_after }; nil of few
-- lines. They rise where the last is slower by more than LEAST_RISE and two standard errors of the two, in the median too, for some slow
-- steps at the end are no trend. They recovered where the last is as much faster than all before it, after that iteration.
function trend.of(entries)
  local n = #entries
  local head, tail = quarter_of(entries, 1, n, 1), quarter_of(entries, n, 1, -1)
  if head < LEAST_LINES or tail < LEAST_LINES then return nil end
  local first = table.move(entries, 1, head, 1, {})
  local last = table.move(entries, n - tail + 1, n, 1, {})
  local rest = table.move(entries, 1, n - tail, 1, {})
  local out = { early = mean_of(first), late = mean_of(last) }
  local least = least_of(first, last)
  out.rises = out.late > least * out.early and weighted.median(last, trend.ratio) > least * weighted.median(first, trend.ratio)
  out.after = out.rises and change_after(entries, 1) or nil
  out.recovered_after = mean_of(rest) > least_of(rest, last) * out.late and change_after(entries, -1) or nil
  return out
end

return trend
