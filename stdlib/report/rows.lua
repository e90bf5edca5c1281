-- rows.lua: what the pictures of a simulated schedule (timeline.lua, svg.lua, trace.lua) draw: the actions of each rank with their times.

local rows = {}

-- What a rank does, in order: { kind, stage, microbatch, start, finish }; of a pair whose halves ran at once ("FB") also stage_b and
-- microbatch_b. A pair whose halves ran in turn is an F and a B. `run`: see simulation.lua; its result has intervals.
function rows.of(run, rank)
  local list, intervals = {}, run.result.intervals[rank + 1]
  for i, action in ipairs(run.schedule:actions(rank)) do
    local interval = intervals[i]
    action.start, action.finish = interval.start, interval.finish
    if interval.forward_finish then
      list[#list + 1] = { kind = "F", stage = action.stage, microbatch = action.microbatch, start = interval.start,
                          finish = interval.forward_finish }
      action.kind, action.stage, action.microbatch, action.start = "B", action.stage_b, action.microbatch_b, interval.backward_start
    end
    list[#list + 1] = action
  end
  return list
end

-- Did pairs run, both halves at once?
function rows.has_pairs(run)
  if not run.traits.overlaps then return false end
  for _, row in ipairs(run.result.intervals) do
    for _, interval in ipairs(row) do
      if interval.forward_finish then return false end   -- all in turn, then
    end
  end
  return true
end

-- Seconds of the shortest action that takes any time; infinity when none does.
function rows.shortest(result)
  local shortest = math.huge
  local function look(seconds)
    if seconds > 0 and seconds < shortest then shortest = seconds end
  end
  for _, row in ipairs(result.intervals) do
    for _, interval in ipairs(row) do
      look((interval.forward_finish or interval.finish) - interval.start)
      if interval.backward_start then look(interval.finish - interval.backward_start) end
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
