-- SPDX-License-Identifier: Apache-2.0
-- verdict.lua: keep, roll back, undecided, or a fault to find first: the plan's rollback rule, held against what was measured.
--
-- The rule is the plan's: utilisation, ideal step ÷ measured step over the window, below its threshold. What is added here is only when a
-- measurement does not support an answer.

local format = require "pipeplan.base.format"

local verdict = {}

local percent = format.percent

-- Is the run slower than the estimates' error explains, of the plan and of its fallback? The threshold is what the fallback is predicted to
-- reach; estimates are off by time_error of a step (catalog/accuracy.lua). Without a fallback the threshold has that error in it.
function verdict.beyond_estimates(plan, measured)
  return plan.fallback ~= nil and measured.utilisation < plan.threshold / (1 + plan.time_error)
end

-- A run that began as it should and became slower than the threshold while it ran: not the schedule's doing, so another schedule is no
-- cure.
function verdict.is_fault(plan, measured)
  return measured.rise ~= nil and measured.ideal_seconds / measured.early_seconds >= plan.threshold
    and measured.ideal_seconds / measured.late_seconds < plan.threshold
end

-- Reasons not to decide, in the order in which they are looked for; each returns words, or nil. First those that leave nothing to be seen.
local blind = {
  function(plan, found)
    local wrong = found.wrong_batch
    if not wrong or wrong.lines * 20 < found.measured.lines then return nil end
    return string.format("the log's global batch is %s, the plan's %s: the threshold is that of the plan's number of microbatches",
                         format.integer(wrong.size), format.integer(plan.batch))
  end,
  function(plan, found)
    if found.measured.utilisation <= 1 + plan.time_error then return nil end
    return string.format("steps are %s faster than the plan's ideal step, more than its estimates can be off (%s): is it this run's plan?",
                         percent(found.measured.utilisation - 1), percent(plan.time_error))
  end,
  function(_, found, limits)
    local steps = found.measured.steps
    if steps >= limits.min_steps then return nil end
    return string.format("too few steps: %s counted, %s are asked for (--min-steps)", format.integer(steps),
                         format.integer(limits.min_steps))
  end,
}

-- A run below the threshold whose last quarter is above it, and faster than what was before it by more than noise: what was slow is over,
-- and a schedule is as slow to the end.
local function recovered(plan, measured)
  return measured.recovered_after ~= nil and measured.utilisation < plan.threshold
    and measured.ideal_seconds / measured.late_seconds >= plan.threshold
end

-- Then those that are of noise.
local doubts = {
  function(plan, found, limits)
    local measured = found.measured
    if not recovered(plan, measured) then return nil end
    return string.format("steps became faster while it ran, most of it after iteration %s: the last quarter takes %s a step, above the "
                         .. "threshold, and a schedule is as slow to the end. Judge the steps after it (--steps %d-%d)",
                         format.integer(measured.recovered_after), format.seconds(measured.late_seconds), measured.recovered_after + 1,
                         math.max(limits.last or 0, measured.last))
  end,
  function(plan, found)
    local measured = found.measured
    if not measured.error_fraction then return "one line in the window: nothing says how much steps differ" end
    local low, high = measured.utilisation * (1 - 2 * measured.error_fraction), measured.utilisation * (1 + 2 * measured.error_fraction)
    if plan.threshold < low or plan.threshold > high then return nil end
    return string.format("steps differ too much: utilisation is from %s to %s (two standard errors), and the threshold lies in between",
                         percent(low), percent(high))
  end,
  function(plan, found)
    local measured = found.measured
    if (measured.utilisation < plan.threshold) == (measured.median_utilisation < plan.threshold) then return nil end
    return string.format("mean and median disagree, %s and %s: some steps are far slower than others, and a schedule makes all slow alike",
                         percent(measured.utilisation), percent(measured.median_utilisation))
  end,
  function(plan, found)
    if found.marked_kept == 0 or found.measured.utilisation >= plan.threshold then return nil end
    return "most lines have a checkpoint or an evaluation before them, so their time may be in what was measured: log more often"
  end,
  function(plan, found)
    if not plan.inside_error_band or found.measured.utilisation >= plan.threshold then return nil end   -- as predicted, or nearly: kept
    if verdict.beyond_estimates(plan, found.measured) then return nil end
    return string.format("plan and fallback differ by less than the estimates can tell (%s), and the run is not slower than their error "
                         .. "(%s of a step) allows: only running the fallback as well decides", percent(plan.comparison_error),
                         percent(plan.time_error))
  end,
}

-- verdict.of(plan, found, limits) → "keep", "roll_back", "fault" or "undecided", and the reasons for the last. found: of steps:finish;
-- limits: { min_steps, last }, the last: of the window.
function verdict.of(plan, found, limits)
  local reasons = {}
  for _, doubt in ipairs(blind) do reasons[#reasons + 1] = doubt(plan, found, limits) end
  if #reasons == 0 and verdict.is_fault(plan, found.measured) then return "fault", reasons end
  for _, doubt in ipairs(doubts) do reasons[#reasons + 1] = doubt(plan, found, limits) end
  if #reasons > 0 then return "undecided", reasons end
  return found.measured.utilisation < plan.threshold and "roll_back" or "keep", reasons
end

return verdict
