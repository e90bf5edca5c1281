-- SPDX-License-Identifier: Apache-2.0
-- verdict.lua: keep, roll back, undecided, or a fault to find first: the plan's rollback rule, held against what was measured.
--
-- The rule is the plan's: utilisation, ideal step ÷ measured step over the window, below its threshold. Of a batch that grows it is that of
-- the steps that were measured, each at its own batch. What is added here is only when a measurement does not support an answer.

local format = require "pipeplan.base.format"

local verdict = {}

local percent = format.percent

-- Of lines that steps.lua kept (marked_kept), for there are hardly others.
verdict.marked = "most lines have a checkpoint or an evaluation before them, so their time may be in what was measured: log more often"

-- Is the run slower than the estimates' error explains, of the plan and of its fallback? The threshold is what the fallback is predicted to
-- reach; estimates are off by time_error of a step (catalog/accuracy.lua). Without a fallback the threshold has that error in it.
function verdict.beyond_estimates(plan, measured)
  return plan.fallback ~= nil and measured.utilisation < measured.threshold / (1 + plan.time_error)
end

-- A run that began as it should and became slower than the threshold while it ran: not the schedule's doing, so another schedule is no
-- cure. Where the batch grew just there, the plan may be wrong about that batch.
function verdict.is_fault(measured)
  return measured.rise ~= nil and not measured.with_batch and measured.ideal_seconds / measured.early_seconds >= measured.threshold
    and measured.ideal_seconds / measured.late_seconds < measured.threshold
end

-- What is said of a run that became slower while it ran, or nil.
function verdict.slowed(measured)
  local rise = measured.rise
  if not rise then return nil end
  return string.format("steps became slower while it ran, by %s from the first quarter to the last, most of it after iteration %s: %s",
                       percent(rise.fraction), format.integer(rise.after),
                       measured.with_batch and "the batch grew there, and at the new one the plan or the machine is slower than predicted"
                       or "a fault to find, not the schedule's doing")
end

local function batches_of(plan)
  return (plan.ramp and format.integer(plan.ramp[1].batch) .. " to " or "") .. format.integer(plan.batch)
end

-- Reasons not to decide, in the order in which they are looked for; each returns words, or nil. First those that leave nothing to be seen.
local blind = {
  function(plan, found)
    local wrong = found.wrong_batch
    if not wrong or wrong.lines * 20 < found.measured.lines then return nil end
    return string.format("the log's global batch is %s, the plan's %s: the threshold is that of the plan's number of microbatches",
                         format.integer(wrong.size), batches_of(plan))
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
local function recovered(measured)
  return measured.recovered_after ~= nil and measured.utilisation < measured.threshold
    and measured.ideal_seconds / measured.late_seconds >= measured.threshold
end

-- Then those that are of noise.
local doubts = {
  function(_, found, limits)
    local measured = found.measured
    if not recovered(measured) then return nil end
    return string.format("steps became faster while it ran, most of it after iteration %s: the last quarter takes %s a step, above the "
                         .. "threshold, and a schedule is as slow to the end. Judge the steps after it (--steps %d-%d)",
                         format.integer(measured.recovered_after), format.seconds(measured.late_seconds), measured.recovered_after + 1,
                         math.max(limits.last or 0, measured.last))
  end,
  function(plan, found, limits)
    local measured = found.measured
    local newest = plan.ramp and #measured.batches > 1 and measured.batches[#measured.batches]
    if not newest or newest.steps < limits.min_steps then return nil end
    local below = newest.utilisation < newest.threshold
    if below == (measured.utilisation < measured.threshold) then return nil end
    return string.format("the steps at the newest batch, %s, are %s their threshold (%s, %s), all together are not: judge the newest "
                         .. "(--steps %d-%d)", format.integer(newest.batch), below and "below" or "above", percent(newest.utilisation),
                         percent(newest.threshold), newest.first, math.max(limits.last or 0, newest.last))
  end,
  function(_, found)
    local measured = found.measured
    if not measured.error_fraction then return "one line in the window: nothing says how much steps differ" end
    local low, high = measured.utilisation * (1 - 2 * measured.error_fraction), measured.utilisation * (1 + 2 * measured.error_fraction)
    if measured.threshold < low or measured.threshold > high then return nil end
    return string.format("steps differ too much: utilisation is from %s to %s (two standard errors), and the threshold lies in between",
                         percent(low), percent(high))
  end,
  function(_, found)
    local measured = found.measured
    if (measured.utilisation < measured.threshold) == (measured.median_utilisation < measured.threshold) then return nil end
    return string.format("mean and median disagree, %s and %s: some steps are far slower than others, and a schedule makes all slow alike",
                         percent(measured.utilisation), percent(measured.median_utilisation))
  end,
  function(_, found)
    if found.marked_kept == 0 or found.measured.utilisation >= found.measured.threshold then return nil end
    return verdict.marked
  end,
  function(plan, found)
    local measured = found.measured
    if not measured.inside_error_band or measured.utilisation >= measured.threshold then return nil end   -- as predicted, or nearly: kept
    if verdict.beyond_estimates(plan, measured) then return nil end
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
  if #reasons == 0 and verdict.is_fault(found.measured) then return "fault", reasons end
  for _, doubt in ipairs(doubts) do reasons[#reasons + 1] = doubt(plan, found, limits) end
  if #reasons > 0 then return "undecided", reasons end
  return found.measured.utilisation < found.measured.threshold and "roll_back" or "keep", reasons
end

return verdict
