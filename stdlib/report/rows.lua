-- SPDX-License-Identifier: Apache-2.0
-- rows.lua: what the pictures of a simulated schedule (timeline.lua, svg.lua, trace.lua) draw: the actions of each rank with their times.

local rows = {}

local piece = 4096   -- actions that are tables at a time

-- Two lists of a rank's actions and their intervals, piece by piece.
local function pieces(run, rank)
  local first = 1
  return function()
    local actions = run.schedule:actions(rank, first, first + piece - 1)
    if #actions == 0 then return nil end
    local intervals = run.result.intervals_of(rank, first, first + piece - 1)
    first = first + piece
    return actions, intervals
  end
end

-- What a rank does, in order: an iterator over { kind, stage, microbatch, start, finish }; of a pair whose halves ran at once ("FB") also
-- stage_b and microbatch_b. A pair whose halves ran in turn is an F and a B. `run`: see simulation.lua; its result has intervals_of.
function rows.each(run, rank)
  return coroutine.wrap(function()
    for actions, intervals in pieces(run, rank) do
      for i, action in ipairs(actions) do
        local interval = intervals[i]
        action.start, action.finish = interval.start, interval.finish
        if interval.forward_finish then
          coroutine.yield { kind = "F", stage = action.stage, microbatch = action.microbatch, start = interval.start,
                            finish = interval.forward_finish }
          action.kind, action.stage, action.microbatch, action.start = "B", action.stage_b, action.microbatch_b, interval.backward_start
        end
        coroutine.yield(action)
      end
    end
  end)
end

-- rows.text(make) → an iterator over the text that make(write) writes, some thousand parts at a time: a picture is never held whole.
function rows.text(make)
  return coroutine.wrap(function()
    local parts, count = {}, 0
    make(function(part)
      count = count + 1
      parts[count] = part
      if count < piece then return end
      coroutine.yield(table.concat(parts))
      parts, count = {}, 0
    end)
    coroutine.yield(table.concat(parts))
  end)
end

-- Did pairs run, both halves at once?
function rows.has_pairs(run)
  if not run.traits.overlaps then return false end
  for rank = 0, run.info.ranks - 1 do
    for _, intervals in pieces(run, rank) do
      for _, interval in ipairs(intervals) do
        if interval.forward_finish then return false end   -- all in turn, then
      end
    end
  end
  return true
end

-- Seconds of the shortest action that takes any time; infinity when none does.
function rows.shortest(run)
  local shortest = math.huge
  for rank = 0, run.info.ranks - 1 do
    for action in rows.each(run, rank) do
      local seconds = action.finish - action.start
      if seconds > 0 and seconds < shortest then shortest = seconds end
    end
  end
  return shortest
end

-- later[stage] of all stages: is it one of its rank's others, or of the other direction, and not its rank's first chunk?
function rows.later_chunks(info)
  local later, seen, of_direction = {}, {}, info.stages // info.chains
  for i, rank in ipairs(info.placement) do
    if info.chains > 1 then later[i - 1] = i > of_direction else later[i - 1] = seen[rank] or false end
    seen[rank] = true
  end
  return later
end

return rows
