-- SPDX-License-Identifier: Apache-2.0
-- advise.lua: what the plan's reader should know beside the plan: warnings, which schedule would be faster, the all-to-all kernel, where
-- the schedule can be run, and the condition under which to roll back.

local accuracy = require "pipeplan.catalog.accuracy"
local advice = require "pipeplan.plan.advice"
local candidates = require "pipeplan.plan.candidates"
local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local facts = require "pipeplan.plan.facts"
local format = require "pipeplan.base.format"
local frameworks = require "pipeplan.catalog.frameworks"
local guard = require "pipeplan.plan.guard"
local kernels = require "pipeplan.catalog.kernels"
local laws = require "pipeplan.plan.framework"
local layout = require "pipeplan.base.layout"
local measure = require "pipeplan.plan.measure"
local message = require "pipeplan.policy.message"

local advise = {}

-- ---------------------------------------------------------------------------------------------------------------------- warnings

-- more: function(rule, near) → what to add to the words of a rule about M/P, where it could hold at another.
local function rule_warning(rule, policy, record, more)
  local words = message.fill(rule.message, record, policy)
  for _, condition in ipairs(rule.conditions) do
    if condition.field == "microbatches_per_rank" and record.microbatches_per_rank and more then
      local near = conditions.nearest(rule, policy, record)
      if near and near.field == "microbatches_per_rank" and near.value > 0 then words = words .. more(rule, near.value) end
    end
  end
  return { id = rule.id, severity = rule.severity or "warning", message = words }
end

-- Warnings of any outcome: rules that read only what is known, what loading the policy and reading the spec remarked.
function advise.warnings(request, policy, record, more)
  local list = {}
  local function add(id, severity, text)
    list[#list + 1] = { id = id, severity = severity or "warning", message = text }
  end
  for _, rule in ipairs(policy.warns) do
    if conditions.holds(rule, policy, record) then list[#list + 1] = rule_warning(rule, policy, record, more) end
  end
  for _, entry in ipairs(policy.warnings or {}) do
    if type(entry) == "table" then add(entry.id or "policy", entry.severity, entry.message)
    else add("policy", nil, entry) end
  end
  for _, entry in ipairs(request.warnings or {}) do add(entry.id or "spec", entry.severity, entry.message) end
  local maximum = request.model.max_positions
  if maximum and request.training.sequence_length > maximum then
    add("sequence_over_maximum", nil, string.format("sequences of %s are longer than the model's maximum of %s positions",
                                                    format.integer(request.training.sequence_length), format.integer(maximum)))
  end
  return list
end

-- Without an overlapping kernel the paired schedules lose what they are for.
local function overlap_warning(plan, result)
  for _, reason in ipairs(plan.reasons) do
    if reason.id == "no_alltoall_kernel" then return nil end  -- said there
  end
  if not measure.overlaps(plan.schedule) or measure.hides_alltoall(plan.schedule, false) then return nil end
  if plan.parallelism.expert == 1 or not result.kernel or result.kernel.name then return nil end
  return {
    id = "no_overlap", severity = "warning",
    message = string.format("%s wants an all-to-all kernel that overlaps with compute: without one its pairs hide nothing",
                            format.schedule(plan.schedule)),
  }
end

-- A kernel that the spec states is taken at its word; where the catalogue knows better, that is said.
local function kernel_warning(plan, request, result)
  local entry = result.kernel and result.kernel.given and result.kernel.name and kernels.find(result.kernel.name)
  if not entry or plan.parallelism.expert == 1 then return nil end
  local works, why = kernels.works(entry, {
    accelerator_family = request.cluster.accelerator_family, fabric = request.cluster.network.fabric,
    expert_parallel = plan.parallelism.expert, scale_up_gpus = request.cluster.network.scale_up_gpus,
  })
  if works then return nil end
  return { id = "kernel_elsewhere", severity = "warning",
           message = why .. "; the spec states it, so the plan counts on it (pipeplan facts kernels)" }
end

-- ---------------------------------------------------------------------------------------------------------- dominated by, kernel

local function dominated_by(policy, result)
  local list = {}
  for i, entry in ipairs(result.dominated_by or {}) do
    local change
    local row = result.decision and policy.rules[result.decision]
    if row and row.try then
      local try = { '"' .. entry.schedule .. '"' }
      for _, name in ipairs(row.try) do
        if name ~= entry.schedule then try[#try + 1] = '"' .. name .. '"' end
        if #try == 3 then break end
      end
      change = string.format("to plan the first: change { id = \"%s\", try = { %s } }", result.decision, table.concat(try, ", "))
    elseif not result.schedule_wanted then
      change = "the spec fixes the schedule"
    end
    list[i] = { schedule = entry.schedule, gain_fraction = entry.gain_fraction, tie = entry.tie or false, change = change }
  end
  return list
end

local function kernel(plan, result)
  if plan.parallelism.expert <= 1 then return { why = "no expert parallelism, so no all-to-all", needs = {} } end
  local chosen = result.kernel or {}
  local entry = chosen.name and kernels.find(chosen.name)
  local why = chosen.why
  if not chosen.name then
    why = (chosen.given and "stated in the spec" or "no kernel statement matches this topology")
          .. (measure.hides_alltoall(plan.schedule, false) and "; the pairs hide the plain all-to-all, on a stream of its own"
              or "; the plain all-to-all overlaps with nothing")
  end
  return { name = chosen.name or nil, needs = entry and entry.needs or {}, why = why or "no kernel statement says why" }
end

-- ---------------------------------------------------------------------------------------------------------------------- rollback

-- Simpler schedules in the policy's order: those behind the plan's own, or all where the plan's is not among them. A family stands for its
-- members, none of which is simpler than another.
local function simpler(plan, policy)
  local names = {}
  for _, name in ipairs(facts.parameter(policy, "rollback_fallback")) do
    local members = candidates.members(policy, name)
    if engine.schedule.traits(members[1]).family == plan.schedule_family then names = {}
    else table.move(members, 1, #members, #names + 1, names) end
  end
  return names
end

-- Can that alternative be run: 1 at the plan's layout (a switch then needs no resharding), 2 at another, 3 only in another framework than
-- the one named. Where none is named, what a framework's rule forbids runs in none.
local function fallback_rank(other, framework)
  if not other.fields or not other.fits or not other.fields.step_seconds then return nil end
  local rank = other.at_plan_layout and 1 or 2
  for _, reason in ipairs(other.why_not) do
    if reason.kind == "framework" and framework then rank = 3
    elseif reason.kind ~= "rank" then return nil end
  end
  return rank
end

-- The first simpler schedule that fits, by that rank, then in the policy's order → name, fields, only in another framework? One that is
-- slower than a simpler one behind it is passed over.
local function fallback_schedule(plan, policy, result, framework)
  local found = {}
  for _, other in ipairs(result.alternatives or {}) do found[other.schedule] = other end
  local names = simpler(plan, policy)
  for rank = 1, 3 do
    local best
    for i = #names, 1, -1 do
      local other = found[names[i]]
      if other and fallback_rank(other, framework) == rank
         and (not best or other.fields.step_seconds <= best.fields.step_seconds) then best = other end
    end
    if best then
      result.fallback = rank < 3 and best or nil
      return best.schedule, best.fields, rank == 3
    end
  end
end

-- From 1F1B there is no simpler schedule: less depth, or none.
local function fallback_depth(plan, result)
  if not result.why then return nil end
  for depth = plan.parallelism.pipeline // 2, 1, -1 do
    if plan.parallelism.pipeline % depth == 0 then
      local answer = depth > 1 and result.why("pipeline_parallel", depth)
      if answer and answer.verdict == "lost" and answer.fields and answer.fields.step_seconds
         and answer.fields.schedule == plan.schedule and guard.allows(result.set, answer.row) then
        result.fallback = answer
        return plan.schedule, answer.fields
      end
    end
  end
  if result.avoidable then return "none", result.avoidable.fields end
end

-- Mean step and ideal step over the first `window` steps of the run: of a ramp, at its own batches.
local function window_means(segments, window, step_of)
  local left, step, ideal = window, 0, 0
  for i, segment in ipairs(segments) do
    local steps = i == #segments and left or math.min(left, segment.steps)
    local seconds = step_of(segment)
    if not seconds then return nil end
    step, ideal = step + steps * seconds, ideal + steps * segment.evaluation.ideal_step_seconds
    left = left - steps
    if left <= 0 then break end
  end
  return step / window, ideal / window
end

-- Step of the fallback in one segment: evaluated there, where it is another batch than the one the search judged.
local function fallback_step(known, result, name, fields)
  return function(segment)
    if segment.batch == known.batch then return fields.step_seconds end
    local there = measure.evaluate_at(known.arguments, measure.parallelism_of_fields(fields), name,
                                      result.kernel and result.kernel.name, segment.batch)
    return there and there.step_seconds or fields.step_seconds * segment.batch / known.batch
  end
end

local counters = "Cross-check with DCGM's tensor-active or SM-active counters, rank against rank: the plain GPU-utilisation counter cannot "
  .. "see a bubble, for a rank that waits is running a receive kernel."

local function paragraph(rollback, words)
  local threshold = string.format("Below %s (steps over %s)", format.percent(rollback.threshold_fraction),
                                  format.seconds(rollback.threshold_seconds))
  local parts = {
    string.format("Over the first %s steps, without the %s of warm-up, take aggregate GPU utilisation as ideal step (%s%s) ÷ measured "
                  .. "step; the plan predicts %s.", format.integer(rollback.window_steps), format.integer(rollback.warmup_steps),
                  format.seconds(words.ideal), words.ramp and ", at the batches of the ramp" or "",
                  format.percent(rollback.predicted_utilisation_fraction)),
  }
  if rollback.fallback then
    local where = rollback.fallback.schedule == "none" and "no pipeline (" .. words.layout .. ")"
                  or format.schedule(rollback.fallback.schedule) .. " at "
                     .. (words.elsewhere and words.layout or "P " .. rollback.fallback.pipeline)
    if words.framework then where = where .. ", which " .. words.framework .. " does not run" end
    if rollback.inside_error_band then
      parts[#parts + 1] = string.format("%s switch to %s: it is predicted to be %s %s, and a run is rolled back only when it is slower "
                                        .. "than predicted by more than what is called a tie, %s.", threshold, where,
                                        format.percent(math.abs(words.gain)), words.gain < 0 and "faster" or "slower",
                                        format.percent(words.error))
      if words.gain <= 0 then parts[#parts + 1] = "It is not the plan because " .. words.decides .. ": measure both." end
    else
      parts[#parts + 1] = threshold .. " switch to " .. where .. ": that is what the simpler plan reaches."
    end
  else
    parts[#parts + 1] = threshold .. " the estimate is wrong; nothing simpler fits, so measure F, B and the links, and plan again."
  end
  local batches = rollback.batches or {}
  local first, last = batches[1], batches[#batches]
  if first ~= last then
    parts[#parts + 1] = string.format("Each batch has its own threshold, by which its steps are judged: from %s (steps over %s) at %s to "
                                      .. "%s (%s) at %s.", format.percent(first.threshold_fraction),
                                      format.seconds(first.threshold_seconds), format.integer(first.global_batch_size),
                                      format.percent(last.threshold_fraction), format.seconds(last.threshold_seconds),
                                      format.integer(last.global_batch_size))
  end
  parts[#parts + 1] = counters
  return table.concat(parts, " ")
end

-- Why a fallback is not the plan although it is faster: what the spec fixes that it does not have, else what the policy wants.
local function decides(plan, fixed, fallback)
  if fixed.schedule and fallback.schedule ~= plan.schedule then return "the spec fixes " .. format.schedule(plan.schedule) end
  if fixed.pipeline and fallback.pipeline ~= plan.parallelism.pipeline then return "the spec fixes P " .. plan.parallelism.pipeline end
  return "the policy wants " .. format.schedule(plan.schedule_wanted or plan.schedule)
end

-- The utilisation below which to roll back: what the fallback reaches, and below a run as predicted by what a comparison can be wrong. With
-- nothing to compare with, the plan is judged against the error of its own estimate.
local function threshold(ideal, own_step, fallback_step_seconds, error)
  if not fallback_step_seconds then return ideal / (own_step * (1 + accuracy.time_fraction)) end
  return ideal / math.max(fallback_step_seconds, own_step * (1 + error))
end

-- The trigger at each batch of a ramp: a mean over some of them says nothing of a step.
local function by_batch(segments, error, step_of)
  local list, seen = {}, {}
  for _, segment in ipairs(segments) do
    local own, ideal = segment.evaluation.step_seconds, segment.evaluation.ideal_step_seconds
    if not seen[segment.batch] then
      seen[segment.batch] = true
      local step = step_of and step_of(segment)
      local fraction = threshold(ideal, own, step, error)
      list[#list + 1] = {
        global_batch_size = segment.batch, predicted_utilisation_fraction = ideal / own, threshold_fraction = fraction,
        threshold_seconds = ideal / fraction, inside_error_band = step ~= nil and step / own - 1 < error,
      }
    end
  end
  return list
end

local function rollback(plan, request, policy, known, result, segments)
  local window = facts.parameter(policy, "rollback_window_steps")
  local own_step, ideal = window_means(segments, window, function(segment) return segment.evaluation.step_seconds end)
  local name, fields, framework = fallback_schedule(plan, policy, result, request.framework)
  if not name then name, fields = fallback_depth(plan, result) end
  local out = {
    metric = "ideal step / measured step", window_steps = window, warmup_steps = facts.parameter(policy, "rollback_warmup_steps"),
    predicted_utilisation_fraction = ideal / own_step,
  }
  local words = { ideal = ideal, ramp = plan.training.batch_ramp ~= nil, error = plan.expected_error.comparison_fraction }
  local step_of = name and fallback_step(known, result, name, fields)
  local step = step_of and window_means(segments, window, step_of)
  out.threshold_fraction = threshold(ideal, own_step, step, words.error)
  out.inside_error_band = step ~= nil and step / own_step - 1 < words.error
  if name then
    words.gain = step / own_step - 1
    out.fallback = { schedule = name, pipeline = fields.pipeline_parallel }
    words.decides = decides(plan, request.parallelism, out.fallback)
    words.framework = framework and request.framework
    local degrees = measure.parallelism_of_fields(fields)
    words.layout = layout.line(degrees)
    for _, degree in ipairs { "tensor", "context", "expert", "expert_tensor" } do
      words.elsewhere = words.elsewhere or degrees[degree] ~= plan.parallelism[degree]
    end
  end
  if words.ramp then out.batches = by_batch(segments, words.error, step_of) end
  out.threshold_seconds = ideal / out.threshold_fraction
  out.paragraph = paragraph(out, words)
  return out
end

-- The first of dominated_by as a warning, for who reads only those.
local function dominated_warning(plan)
  local first = plan.dominated_by[1]
  return first and {
    id = "dominated", severity = first.tie and "note" or "warning",
    message = string.format("%s is %s faster in simulation%s", format.schedule(first.schedule), format.percent(first.gain_fraction),
                            first.tie and ": a tie" or ""),
  }
end

-- A profile whose own run took another time than its stages come to, by more than steps are off that nothing was measured for.
local function run_warning(plan)
  for _, run in ipairs(plan.profile and plan.profile.calibration or {}) do
    local off = run.measured_seconds / run.predicted_seconds - 1
    if math.abs(off) > accuracy.time_fraction then
      return { id = "profile_unlike_its_run", severity = "warning",
               message = string.format("the profile's own run of %s at M %d took %s, and its stages come to %s (%+.0f %%): something of it "
                                       .. "is not in the stages, or it was of other ones", format.schedule(run.schedule), run.microbatches,
                                       format.seconds(run.measured_seconds), format.seconds(run.predicted_seconds), off * 100) }
    end
  end
end

-- Measured times in which the model's FLOPs do not fit: of another GPU, precision or model, or in other units. They have to fit in what
-- ranks compute, without what they wait; a peak is that of the precision.
local function peak_warning(plan, request)
  local device = request.device
  local mfu = plan.mfu_fraction * device.flops_bf16 / device.flops / plan.predicted_utilisation_fraction
  if not request.profile or mfu <= 1 then return nil end
  return { id = "above_peak", severity = "warning",
           message = string.format("the profile's times, without bubble and all-to-all, make an MFU of %s of the dense peak of %s in %s: "
                                   .. "of another model or GPU, or not in ms?", format.percent(mfu), plan.cluster.accelerator,
                                   request.training.precision) }
end

-- What a rule about M/P adds: what was tried to bring it there, and what that saves. Notes it in the plan's advice.
local function tried_microbatches(plan, request, policy, record, modules)
  return function(rule, target)
    local list, tried = advice.microbatches(rule.id, target, plan, request, policy, record, modules)
    if tried == 0 then return "" end
    local words = {}
    for i, entry in ipairs(list) do
      table.insert(plan.advice, entry)
      words[i] = string.format("%s: %s less", entry.words, format.percent(entry.saved_fraction))
      entry.words = nil
    end
    if #words == 0 then return string.format("; nothing that brings M/P to %s takes less GPU time a token", format.digits(target)) end
    return string.format("; M/P %s and less GPU time a token by %s", format.digits(target), table.concat(words, ", or "))
  end
end

-- Fills `plan` with advice. asked: the request before the plan chose what the spec leaves out; segments: from measure.fill; record: of
-- record.of.
function advise.fill(plan, request, asked, policy, known, result, segments, record)
  plan.advice = {}
  plan.warnings = advise.warnings(request, policy, record,
                                  tried_microbatches(plan, asked, policy, record, request.training.recompute))
  plan.warnings[#plan.warnings + 1] = peak_warning(plan, request)
  plan.warnings[#plan.warnings + 1] = run_warning(plan)
  plan.warnings[#plan.warnings + 1] = overlap_warning(plan, result)
  plan.warnings[#plan.warnings + 1] = kernel_warning(plan, request, result)
  plan.dominated_by = dominated_by(policy, result)
  plan.warnings[#plan.warnings + 1] = dominated_warning(plan)
  plan.alltoall_kernel = kernel(plan, result)
  if plan.parallelism.expert > 1 and result.kernel and not result.kernel.given then
    table.insert(plan.assumptions, { field = "cluster.alltoall_kernel", value = result.kernel.name or false,
                                     why = plan.alltoall_kernel.why })
  end
  plan.available_in = {}
  for _, name in ipairs(frameworks.running(plan.schedule)) do
    if laws.runs(name, plan, record, request.parallelism.layers_per_stage) then table.insert(plan.available_in, name) end
  end
  for i, name in ipairs(plan.available_in) do  -- the spec's own first
    if name == request.framework then table.insert(plan.available_in, 1, table.remove(plan.available_in, i)) end
  end
  if plan.parallelism.pipeline > 1 then plan.rollback = rollback(plan, request, policy, known, result, segments) end
end

return advise
