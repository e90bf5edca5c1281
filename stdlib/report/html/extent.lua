-- SPDX-License-Identifier: Apache-2.0
-- extent.lua: what of a program a page shows action by action, and what only as an overview. A page has room for some thousand actions;
-- of more, the warm-up, a piece of the steady state and the cool-down are exact, and between them each column shows what takes most of it.

local rows = require "pipeplan.report.rows"

local extent = {}

extent.most_actions = 6000   -- some 38 bytes each: 230 kB
local bins = 2000            -- of time, to count actions in
local most_cells = 24000     -- of the overview

-- How many actions start in each bin.
local function histogram(run)
  local counts, makespan = {}, run.result.makespan
  for bin = 1, bins do counts[bin] = 0 end
  for rank = 0, run.info.ranks - 1 do
    for action in rows.each(run, rank) do
      local bin = math.min(bins, math.floor(action.start / makespan * bins) + 1)
      counts[bin] = counts[bin] + 1
    end
  end
  return counts
end

-- The bins from `first` on, in steps of `step`, that hold at most `budget` actions and end at `last`.
local function grown(counts, first, step, last, budget)
  local sum, bin = 0, first
  while (last - bin) * step >= 0 and sum + counts[bin] <= budget do
    sum = sum + counts[bin]
    bin = bin + step
  end
  return bin - step
end

-- extent.windows(run, phases, most) → { { from, to } … } in seconds, ascending; one of the whole step where all actions are shown.
function extent.windows(run, phases, most)
  local makespan = run.result.makespan
  if run.info.actions <= most then return { { 0, makespan } } end
  local counts, third = histogram(run), most // 3
  local function bin_at(seconds) return math.max(1, math.min(bins, math.ceil(seconds / makespan * bins))) end
  local warm, cool = bin_at(1.1 * phases.warm_up_seconds), bin_at(makespan - 1.1 * phases.cool_down_seconds)
  local first = grown(counts, 1, 1, math.max(1, math.min(warm, bins // 3)), third)
  local last = grown(counts, bins, -1, math.min(bins, math.max(cool, bins - bins // 3)), third)
  local middle = (first + last) // 2
  local to = grown(counts, middle, 1, last - 1, third // 2)
  local from = grown(counts, middle - 1, -1, first + 1, third // 2)
  local windows = {}
  for _, pair in ipairs { { 0, first }, { from - 1, to }, { last - 1, bins } } do
    if pair[2] > pair[1] then windows[#windows + 1] = { pair[1] / bins * makespan, pair[2] / bins * makespan } end
  end
  return windows
end

-- The kind that takes most of each column of a rank: { kind or false, … }; false: the rank waits.
local function dominant(run, rank, columns)
  local seconds, shares = run.result.makespan / columns, {}
  for column = 1, columns do shares[column] = {} end
  for action in rows.each(run, rank) do
    local from, to = action.start / seconds, action.finish / seconds
    for column = math.floor(from) + 1, math.min(columns, math.ceil(to)) do
      local share = shares[column]
      share[action.kind] = (share[action.kind] or 0) + math.min(to, column) - math.max(from, column - 1)
    end
  end
  for column, share in ipairs(shares) do
    local most, largest, idle = false, 0, 1
    for _, amount in pairs(share) do idle = idle - amount end
    for _, kind in ipairs { "F", "B", "I", "W", "FB" } do
      if (share[kind] or 0) > largest then most, largest = kind, share[kind] end
    end
    shares[column] = idle <= largest and most
  end
  return shares
end

-- extent.overview(run, rank, ranks that are shown) → an iterator over { kind, from, to } in seconds, equal columns as one.
function extent.overview(run, rank, ranks)
  local columns = math.max(60, math.min(600, most_cells // ranks))
  local list, width = dominant(run, rank, columns), run.result.makespan / columns
  local at = 1
  return function()
    while at <= columns and not list[at] do at = at + 1 end
    if at > columns then return nil end
    local first = at
    while at <= columns and list[at] == list[first] do at = at + 1 end
    return list[first], (first - 1) * width, (at - 1) * width
  end
end

return extent
