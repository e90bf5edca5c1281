-- SPDX-License-Identifier: Apache-2.0
-- trend.lua: do the steps of a run become slower? A schedule's bubble is in all of them alike; what comes with time is a fault of the
-- machine (a card that throttles, a link that falls back, a neighbour's traffic), and another schedule on it is as slow.

local trend = {}

local LEAST_LINES = 5      -- of a quarter of the run: fewer say nothing
local LEAST_RISE = 0.05    -- what estimates cannot tell apart (catalog/accuracy.lua: a tie) is nothing to look for

-- entries: lines that count, each { iteration, weight, seconds, ideal, … } → their sums of seconds, of the ideal's, and of steps.
function trend.sums(entries)
  local seconds, ideal, weight = 0, 0, 0
  for _, entry in ipairs(entries) do
    seconds, ideal = seconds + entry.weight * entry.seconds, ideal + entry.weight * entry.ideal
    weight = weight + entry.weight
  end
  return seconds, ideal, weight
end

-- Relative standard error of the utilisation, from the means of at most 20 stretches of the run: neighbouring steps are not independent.
function trend.error(entries)
  local groups, n = {}, #entries
  local count = math.min(20, n)
  if count < 2 then return nil end
  for g = 1, count do
    local part = table.move(entries, (g - 1) * n // count + 1, g * n // count, 1, {})
    local seconds, ideal = trend.sums(part)
    groups[g] = seconds / ideal
  end
  local mean, square = 0, 0
  for _, value in ipairs(groups) do mean = mean + value / count end
  for _, value in ipairs(groups) do square = square + (value - mean) ^ 2 end
  return math.sqrt(square / (count - 1) / count) / mean
end

local function median_of(entries)
  local ratios = {}
  for k, entry in ipairs(entries) do ratios[k] = entry.seconds / entry.ideal end
  table.sort(ratios)
  return ratios[(#ratios + 1) // 2]
end

-- The last iteration before the steps became slower, if they did at once: where the two sides' means are furthest apart for their length.
local function change_after(entries)
  local total, n, before, best, at = 0, #entries, 0, -1, nil
  for _, entry in ipairs(entries) do total = total + entry.seconds / entry.ideal end
  for k = 1, n - 1 do
    before = before + entries[k].seconds / entries[k].ideal
    local apart = ((total - before) / (n - k) - before / k) * math.sqrt(k * (n - k))
    if apart > best then best, at = apart, entries[k].iteration end
  end
  return at
end

-- The first and the last quarter, as seconds over the ideal's: { early, late, rises, after }; nil of few lines. They rise where the last is
-- slower by more than LEAST_RISE and two standard errors of the two, in the median too, for some slow steps at the end are no trend.
function trend.of(entries)
  local quarter = #entries // 4
  if quarter < LEAST_LINES then return nil end
  local first = table.move(entries, 1, quarter, 1, {})
  local last = table.move(entries, #entries - quarter + 1, #entries, 1, {})
  local early, early_ideal = trend.sums(first)
  local late, late_ideal = trend.sums(last)
  local out = { early = early / early_ideal, late = late / late_ideal }
  local noise = 2 * math.sqrt(trend.error(first) ^ 2 + trend.error(last) ^ 2)
  local least = 1 + math.max(LEAST_RISE, noise)
  out.rises = out.late > least * out.early and median_of(last) > least * median_of(first)
  out.after = out.rises and change_after(entries) or nil
  return out
end

return trend
