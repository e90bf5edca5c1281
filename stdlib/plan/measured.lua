-- SPDX-License-Identifier: Apache-2.0
--[[
measured.lua: layouts that were measured: what was predicted of each, which is the fastest, what that makes of the plan, and what the
residuals say of the price.

measured.of{ request, policy, plan = what is planned without the runs, runs = { { name, file, log, layout (input/runs.lua),
  measured = { steps, median_seconds, low_seconds, high_seconds, error_fraction } }, … },
  earlier = runs of a calibration that is kept } → plan, calibration
plan: of the spec with the fastest measured layout, whose field `measured` says all of it; calibration: as its schema has it
]]

local calibration = require "pipeplan.input.calibration"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local layout = require "pipeplan.base.layout"
local pins = require "pipeplan.plan.pins"
local price = require "pipeplan.plan.price"
local residuals = require "pipeplan.plan.residuals"
local spec = require "pipeplan.input.spec"
local stated = require "pipeplan.input.stated"
local vocabulary = require "pipeplan.vocabulary"
local what_if = require "pipeplan.plan.what_if"

local measured = {}

-- ------------------------------------------------------------------------------------------------------------------------ one layout

-- The changes that plan the layout of a run, its split included.
local function changes_of(request, run, batch)
  local own, fields = run.layout, {}
  for name, field in pairs(vocabulary.parallelism) do fields[field] = own.parallelism[name] end
  for _, name in ipairs { "schedule", "sharding", "micro_batch_size", "microbatches", "gpus_used" } do fields[name] = own[name] end
  local modules = {}
  for _, module in ipairs(own.recompute) do modules[module] = true end
  local changes = pins.of(request, fields, modules, own.layers_per_stage, batch)
  if own.parallelism.pipeline > 1 then changes["parallelism.layers_per_stage"] = own.layers_per_stage end
  return changes
end

-- Its step and all else, with these factors.
local function evaluate(request, policy, factors)
  return what_if.layout(spec.with_factors(request, calibration.factors(factors)), policy)
end

local function same_layout(evaluation, own)
  for name, degree in pairs(own.parallelism) do
    if evaluation[name] ~= degree then return false end
  end
  return evaluation.schedule == own.schedule and evaluation.microbatches == own.microbatches
end

-- Fills in what is predicted of a run, with the factors that the spec has and without any.
local function predict(run, bare, policy, plan, factors)
  run.changes = changes_of(bare, run, plan.global_batch_size)
  local request = spec.laid(bare, run.changes)
  if not request then failure.usage("%s: its layout contradicts the spec", run.name) end
  local evaluation = what_if.layout(request, policy)
  if not evaluation then
    failure.usage("%s: nothing is planned of its layout in this spec: the policy, the framework or this version drops it (plan --why says)",
                  run.name)
  end
  if not same_layout(evaluation, run.layout) then
    failure.usage("%s: laid over the spec, its layout is another one: it is of another spec", run.name)
  end
  run.request, run.evaluation = request, evaluation
  run.predicted_seconds = evaluation.step_seconds
  local with_them = factors and evaluate(request, policy, factors) or evaluation
  if not with_them then failure.usage("%s: with the spec's calibration the policy drops its layout (plan --why says)", run.name) end
  run.told_seconds = with_them.step_seconds
end

-- What the step would be with factors on one family.
local function respond(run, policy)
  local evaluation = run.evaluation
  local sent = { compute = 1, tensor = evaluation.tensor_seconds, context = evaluation.context_seconds,
                 expert = evaluation.alltoall_seconds,
                 data = price.of(run.request, evaluation, false).data,
                 pipeline = evaluation.hop_seconds or 0 }
  run.responses = {}
  for _, family in ipairs(calibration.families) do
    if sent[family] > 0 then
      local points = {}
      for _, factor in ipairs(residuals.factors) do
        local there = evaluate(run.request, policy, { [family] = factor })  -- nil where a rule about seconds drops it
        if there then points[#points + 1] = { factor = factor, seconds = there.step_seconds } end
      end
      run.responses[family] = #points > 1 and points or nil
    end
  end
end

-- ------------------------------------------------------------------------------------------------------------------------ which one

local function label(own)
  return format.schedule(own.schedule) .. " at " .. layout.line(own.parallelism, own.microbatches, ", ")
end
measured.label = label

local function is_of_plan(own, plan)
  if own.schedule ~= plan.schedule or own.micro_batch_size ~= plan.micro_batch_size or own.sharding ~= plan.sharding
     or own.gpus_used ~= plan.gpus_used or table.concat(own.recompute, " ") ~= table.concat(plan.recompute, " ")
     or table.concat(own.layers_per_stage, " ") ~= table.concat(plan.layers_per_stage, " ") then return false end
  for name, degree in pairs(plan.parallelism) do
    if own.parallelism[name] ~= degree then return false end
  end
  return true
end

-- Within what a comparison of these two runs can tell: twice the standard errors of both, and what the policy calls equal.
local function tie(a, b, policy)
  local x, y = a.measured.error_fraction or 0, b.measured.error_fraction or 0
  local limit = math.max(policy.parameters.tie_fraction.value, 2 * math.sqrt(x * x + y * y))
  return math.abs(math.log(a.measured.median_seconds / b.measured.median_seconds)) <= limit
end

-- The fastest; of those that tie with it the plan's own, else the one that was named first.
local function choose(list, policy)
  local fastest
  for _, run in ipairs(list) do
    if not fastest or run.measured.median_seconds < fastest.measured.median_seconds then fastest = run end
  end
  local chosen, ties = nil, 0
  for _, run in ipairs(list) do
    run.tie = tie(run, fastest, policy)
    ties = ties + (run.tie and 1 or 0)
    if run.tie and (run.planned or not chosen) then chosen = run end
  end
  return chosen, fastest, ties
end

local function why_of(chosen, fastest, ties, plan_run)
  local words
  if chosen.planned then
    words = ties > 1 and "the plan ties with the fastest that was measured, so it stays" or "the plan is the fastest that was measured"
  else
    local gain = plan_run and 1 - chosen.measured.median_seconds / plan_run.measured.median_seconds
    words = gain and string.format("measured, it takes %s less than the plan", format.percent(gain))
            or "it is the fastest that was measured; the plan itself was not"
    if ties > 1 then words = words .. string.format("; %d layouts tie, of which the first is taken", ties) end
  end
  if chosen == fastest then return words end
  return words .. string.format(" (%s, as fast within the error: %s)", format.seconds(fastest.measured.median_seconds), fastest.name)
end

-- ------------------------------------------------------------------------------------------------------------------------- the whole

local function told(run, chosen, fitted)
  local found = run.measured
  return {
    name = run.name, log = run.log, schedule = run.layout.schedule, parallelism = run.layout.parallelism,
    layers_per_stage = run.layout.layers_per_stage, microbatches = run.layout.microbatches,
    micro_batch_size = run.layout.micro_batch_size, recompute = run.layout.recompute,
    sharding = run.layout.sharding, steps = found.steps,
    measured_seconds = found.median_seconds, low_seconds = found.low_seconds, high_seconds = found.high_seconds,
    error_fraction = found.error_fraction, predicted_seconds = run.told_seconds,
    residual_fraction = found.median_seconds / run.told_seconds - 1,
    calibrated_residual_fraction = found.median_seconds / residuals.predict(run, fitted) - 1,
    planned = run.planned, chosen = run == chosen, tie = run.tie,
  }
end

-- What the search plans with the factors that were found, where that was not measured and promises to be faster.
local function next_of(planner, request, policy, fitted, runs, chosen)
  local plan = planner.plan { request = spec.with_factors(request, calibration.factors(fitted.factors)), policy = policy }
  if plan.status ~= "planned" then return nil end
  for _, run in ipairs(runs) do
    if is_of_plan(run.layout, plan) then return nil end
  end
  local gain = 1 - plan.step_seconds / chosen.measured.median_seconds
  if gain <= policy.parameters.tie_fraction.value then return nil end
  return { schedule = plan.schedule, parallelism = plan.parallelism, layers_per_stage = plan.layers_per_stage,
           microbatches = plan.microbatches, step_seconds = plan.step_seconds, gain_fraction = gain }
end

-- A layout with its recipe and its split: two runs that differ in any of it are two.
local function whole(own)
  local split = own.parallelism.pipeline > 1 and ", layers " .. table.concat(own.layers_per_stage, " ") or ""
  return string.format("%s, microbatches of %d, recompute %s, %s sharded%s", label(own), own.micro_batch_size,
                       #own.recompute > 0 and table.concat(own.recompute, " and ") or "nothing", own.sharding, split)
end

-- Is an earlier run this log, though of a spec that says something else by now, and whatever its path was? No two agree in every digit.
local function is_same_log(earlier, run)
  local found = run.measured
  return earlier.steps == math.tointeger(found.steps) and earlier.measured_seconds == found.median_seconds
         and earlier.low_seconds == found.low_seconds and earlier.high_seconds == found.high_seconds
end

-- As the file has it: these runs in place of earlier ones of the same layout that are of the same job, or the same log.
local function kept(request, runs, earlier, accelerator)
  local job, list, mine = stated.digest(request), {}, {}
  for _, run in ipairs(runs) do mine[whole(run.layout)] = run end
  for _, run in ipairs(earlier) do
    local same = mine[run.layout]
    if not same or run.job ~= job and not is_same_log(run, same) then list[#list + 1] = run end
  end
  for _, run in ipairs(runs) do
    list[#list + 1] = {
      name = run.log, job = job, model = request.model.name, gpus = request.cluster.gpus, layout = whole(run.layout),
      steps = math.tointeger(run.measured.steps), measured_seconds = run.measured.median_seconds, low_seconds = run.measured.low_seconds,
      high_seconds = run.measured.high_seconds,
      predicted_seconds = run.predicted_seconds, responses = run.responses,
    }
  end
  return { accelerator = accelerator, runs = json.array(list),
           source = string.format("%d measured run%s, pipeplan %s", #list, #list == 1 and "" or "s", engine.version) }
end

function measured.of(arguments)
  local planner = require "pipeplan.plan.init"
  local request, policy, plan, runs = arguments.request, arguments.policy, arguments.plan, arguments.runs
  local bare = request.calibration and spec.laid(request, { ["cluster.calibration"] = json.null }) or request
  local factors = request.calibration and request.calibration.raw.factors
  local plan_run
  for _, run in ipairs(runs) do
    predict(run, bare, policy, plan, factors)
    if not calibration.is_believed(run.measured.median_seconds, run.predicted_seconds) then
      failure.usage("%s: steps of %s where %s is predicted to take %s: the log of another model, or of another layout", run.log,
                    format.seconds(run.measured.median_seconds), label(run.layout), format.seconds(run.predicted_seconds))
    end
    run.planned = is_of_plan(run.layout, plan)
    if run.planned then plan_run = run end
    respond(run, policy)
  end
  local chosen, fastest, ties = choose(runs, policy)
  local file = kept(bare, runs, arguments.earlier or {}, plan.cluster.accelerator)
  local fitted = residuals.fit(file.runs)
  file.factors = fitted.factors
  local chosen_request = spec.with_factors(spec.laid(bare, chosen.changes), calibration.factors(fitted.factors))
  local after = planner.plan { request = chosen_request, policy = policy }
  local list = {}
  for i, run in ipairs(runs) do list[i] = told(run, chosen, fitted) end
  after.measured = {
    runs = list, changed = not chosen.planned, why = why_of(chosen, fastest, ties, plan_run), changes = chosen.changes,
    options = pins.options(chosen.changes),
    before = { schedule = plan.schedule, parallelism = plan.parallelism, layers_per_stage = plan.layers_per_stage,
               microbatches = plan.microbatches, step_seconds = plan.step_seconds },
    factors = fitted.factors, factors_why = fitted.why, off_before_fraction = math.exp(fitted.off_before) - 1,
    off_fraction = math.exp(fitted.off) - 1,
    next = next_of(planner, bare, policy, fitted, runs, chosen),
  }
  local words = calibration.words(fitted.factors)
  table.insert(after.assumptions, { field = "cluster.calibration", value = words, why = file.source })
  return after, file
end

return measured
