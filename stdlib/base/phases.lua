-- SPDX-License-Identifier: Apache-2.0
-- phases.lua: warm-up, steady state and cool-down of a simulated schedule.
--
-- A rank is warm once it has begun its first F&B pair; in a schedule without pairs, its first backward. It cools down once its last pair,
-- or its last forward, is over. Steady is the time in which all ranks are warm and none cools down: at few microbatches there is none.

local phases = {}

local piece = 4096   -- actions that are tables at a time

-- When the rank is warm, and when it cools down; of a rank without such actions nil.
local function of_rank(schedule, result, rank, pairs_run)
  local warm, cool, first = nil, nil, 1
  while true do
    local actions = schedule:actions(rank, first, first + piece - 1)
    if #actions == 0 then return warm, cool end
    local intervals = result.intervals_of(rank, first, first + piece - 1)
    for i, action in ipairs(actions) do
      local kind, interval = action.kind, intervals[i]
      if kind == "FB" then
        warm = warm or interval.start
        cool = interval.finish
      elseif not pairs_run then
        if kind == "F" then cool = interval.finish else warm = warm or interval.start end
      end
    end
    first = first + piece
  end
end

-- phases.of(schedule, info, result) → { warm_up_seconds, steady_seconds, cool_down_seconds, actions }; result has intervals_of.
function phases.of(schedule, info, result, pairs_run)
  local from, to = 0, result.makespan
  for rank = 0, info.ranks - 1 do
    local warm, cool = of_rank(schedule, result, rank, pairs_run)
    from, to = math.max(from, warm or 0), math.min(to, cool or result.makespan)
  end
  local steady = math.max(0, to - from)
  if steady == 0 then from = math.min(from, to) end
  return { warm_up_seconds = from, steady_seconds = steady, cool_down_seconds = result.makespan - from - steady, actions = info.actions }
end

return phases
