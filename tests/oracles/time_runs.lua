-- SPDX-License-Identifier: Apache-2.0
-- time_runs.lua: steps measured on 4 × H200 (tests/data/gpu; measured_runs.lua): each run's own file gives the isolated times of single
-- actions and of one message, and nothing else goes in. And those of the second day, from the times of each card that were measured
-- then.
--
-- From the first day's profile of one card the second day's interleaved runs come out 5 to 12 % too fast, and before those that were
-- faster: the profile of one block was taken cold. They are a group of their own, with a wider band.

local measured_runs = require "oracles.measured_runs"
local rows = require "oracles.rows"

local BAND = measured_runs.BAND
local all = measured_runs.load()
local list = {}

-- Each pair that comes out in the wrong order is a row. cause: of those with an interleaved run.
local function wrong_order(group, steps, cause)
  local count, wrong = measured_runs.order(steps)
  for _, pair in ipairs(wrong) do
    local a, b = table.unpack(pair)
    local known = cause and (a.name == "interleaved" or b.name == "interleaved")
    local case = string.format("%s and %s, M %d", a.name, b.name, a.M)
    list[#list + 1] = rows.of(group, {
      source = "4 × H200", case = case, quantity = "order", published = string.format("%.0f, %.0f ms", a.measured, b.measured),
      ours = string.format("%.0f, %.0f ms", a.predicted, b.predicted), ok = false, excused = known and cause,
    })
  end
  if #wrong == 0 then
    local case = string.format("%d pairs %g %% or more apart", count, 100 * BAND.order)
    list[#list + 1] = rows.of(group, rows.limit("4 × H200", case, "pairs in the wrong order", 0, 0))
  end
end

local function add(group, steps, worst, median)
  for _, step in ipairs(steps) do
    local case = step.name .. ", M " .. step.M
    list[#list + 1] = rows.of(group, rows.number("4 × H200", case, "step, ms", step.measured, step.predicted, worst))
  end
  local middle, _, count = measured_runs.spread(steps)
  list[#list + 1] = rows.of(group, rows.limit("4 × H200", count .. " steps", "median |error|", median, middle))
end

local first, second, other = "isolated profile", "profile of each card", "another day's profile"
add(first, all.open, BAND.worst, BAND.median)
wrong_order(first, all.open)
add(second, all.by_card, BAND.worst, BAND.median)
wrong_order(second, all.by_card)
add(other, all.second, 0.12, 0.05)
wrong_order(other, all.second, "the first day's one block was timed cold: 15 % faster than a quarter of four")

for _, peak in ipairs(all.peaks) do
  local case = string.format("%s, M %d, rank %d", peak.name, peak.M, peak.rank)
  list[#list + 1] = rows.of("peak memory", rows.number("4 × H200", case, "peak, GiB", peak.measured, peak.predicted, BAND.memory_worst))
end
local middle, _, count = measured_runs.spread(all.peaks)
list[#list + 1] = rows.of("peak memory", rows.limit("4 × H200", count .. " ranks", "median |error|", BAND.memory_median, middle))
return list
