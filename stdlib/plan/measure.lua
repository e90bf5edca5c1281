-- SPDX-License-Identifier: Apache-2.0
-- measure.lua: the chosen candidate in full: what the plan says about layout, time, memory, replication, and what was saved. Reads
-- what choose.choose evaluated; everything here is a sum or a ratio of those figures.

local accuracy = require "pipeplan.catalog.accuracy"
local blocks = require "pipeplan.base.blocks"
local baselines_of = require("pipeplan.catalog.schedules").baselines
local engine = require "engine"
local format = require "pipeplan.base.format"
local framework = require "pipeplan.plan.framework"
local host = require "pipeplan.plan.host"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"
local recipe = require "pipeplan.input.recipe"
local vocabulary = require "pipeplan.vocabulary"

local measure = {}

local seconds_per_hour, seconds_per_day = 3600, 86400

function measure.parallelism(evaluation)
  local parallelism = {}
  for name in pairs(vocabulary.parallelism) do parallelism[name] = evaluation[name] end
  return parallelism
end

-- The same from a candidate's row of fields.
function measure.parallelism_of_fields(fields)
  local parallelism = {}
  for name, field in pairs(vocabulary.parallelism) do parallelism[name] = fields[field] end
  return parallelism
end

-- M of a candidate at the full batch: the field is at the smallest one.
function measure.microbatches(fields)
  return math.tointeger(fields.microbatches * fields.global_batch_size // fields.smallest_batch_size)
end

-- A candidate in a sentence: "DualPipeV at P 8, M 60, TP 1, EP 64, DP 256".
function measure.label(fields)
  local parallelism = measure.parallelism_of_fields(fields)
  return format.schedule(fields.schedule) .. " at " .. layout.line(parallelism, measure.microbatches(fields), ", ")
end

-- Does the schedule run a forward and a backward at once?
function measure.overlaps(schedule)
  return schedule ~= "none" and engine.schedule.traits(schedule).overlaps
end

-- Do these hide each other's all-to-all, with that kernel or without any?
function measure.hides_alltoall(schedule, kernel)
  return measure.overlaps(schedule) and (kernel and true or not engine.schedule.traits(schedule).needs_kernel)
end

-- The device that an evaluation's pairs of a forward and a backward run on; nil: they hide nothing (as pp_evaluate_pair_device).
function measure.pair_device(known, evaluation, kernel)
  local schedule = evaluation.schedule
  local hides = evaluation.overlap_alone or measure.hides_alltoall(schedule, kernel)
  if not hides and not (measure.overlaps(schedule) and (evaluation.pair_share or 0) > 0) then return nil end
  local device = lists.with(known.arguments.device, { hides_alltoall = true, pair_share = evaluation.pair_share })
  -- what streams hide is measured of schedules that hide without a kernel of their own
  if schedule ~= "none" and engine.schedule.traits(schedule).needs_kernel then device.hidden_share = 0 end
  return device
end

-- Against what facts.of knows: usable_bytes and tight_bytes.
function measure.fit(peak_bytes, known)
  if not peak_bytes then return nil end
  if peak_bytes > known.usable_bytes then return "does_not_fit" end
  return peak_bytes > known.tight_bytes and "tight" or "fits"
end

-- ------------------------------------------------------------------------------------------------------------------ the batch ramp

-- The same layout and schedule at another batch, and perhaps with other layers a stage; nil where that batch cannot be had there (a
-- schedule that is illegal below 2 P, say).
local function evaluate_at(arguments, evaluation, schedule, kernel, batch, layers)
  local again = lists.with(arguments)
  again.device_bytes, again.choices = nil, nil  -- the choice's, not the search's
  again.global_batch, again.smallest_batch = batch, batch
  again.schedules = { schedule ~= "none" and schedule or "1f1b" }  -- depth 1 needs no schedule to be planned, but some list
  again.fixed = {
    tensor = evaluation.tensor, context = evaluation.context, expert = evaluation.expert, expert_tensor = evaluation.expert_tensor,
    data = evaluation.data, pipeline = evaluation.pipeline, virtual = evaluation.virtual, schedule = schedule ~= "none" and schedule or nil,
    layers_per_stage = layers or evaluation.layers_per_stage,
  }
  local candidates = engine.search(again)
  if kernel ~= nil then candidates:set("alltoall_kernel", kernel) end
  -- depth 1 is always among them
  local same = candidates:match { { field = "schedule", op = "equal", value = schedule },
                                  { field = "pipeline_parallel", op = "equal", value = evaluation.pipeline } }
  local row = same:first()
  return row and candidates:evaluate(row, baselines_of(schedule)) or nil
end
measure.evaluate_at = evaluate_at

-- Segments of the run at constant batch: { first_token, batch, tokens, steps, evaluation }. One segment without a ramp.
local function segments(request, known, evaluation, kernel)
  local training = request.training
  local ramp = training.batch_ramp or { { 0, known.batch } }  -- { first token, sequences } each
  local list = {}
  for i, entry in ipairs(ramp) do
    local first, batch = entry[1], entry[2]
    local next_first = ramp[i + 1] and ramp[i + 1][1] or training.tokens
    local tokens = math.min(next_first, training.tokens) - first
    if tokens > 0 then
      local at = batch == known.batch and evaluation or evaluate_at(known.arguments, evaluation, evaluation.schedule, kernel, batch)
      list[#list + 1] = {
        first_token = first, batch = batch, tokens = tokens,
        steps = tokens / (batch * training.sequence_length * (1 - (training.padding or 0))),
        evaluation = at or evaluation,
      }
    end
  end
  return list
end

-- Seconds that the run takes when `seconds_of(evaluation)` is the step of each segment.
local function run_seconds(list, goodput, seconds_of)
  local total = 0
  for _, segment in ipairs(list) do
    local step = seconds_of(segment.evaluation)
    if not step then return nil end
    total = total + segment.steps * step
  end
  return total / goodput
end

-- GPU-hours that the plan saves against `baseline`: by its schedule alone, and by hiding the all-to-all.
local function saving(list, goodput, gpus, baseline, price)
  local function hours(seconds_of)
    local seconds = run_seconds(list, goodput, seconds_of)
    return seconds and seconds * gpus / seconds_per_hour
  end
  local before = hours(function(e) return e.baselines[baseline] and e.baselines[baseline].step_seconds end)
  if not before then return nil end
  local exposed = hours(function(e) return e.no_overlap.step_seconds end)
  local planned = hours(function(e) return e.step_seconds end)
  local fits = list[#list].evaluation.baselines[baseline].fits
  local errors, overlap = accuracy.comparisons, exposed - planned
  return { baseline = baseline, bubble = before - exposed, overlap = overlap, total = before - planned, baseline_fits = fits,
           error_fraction = overlap ~= 0 and math.max(errors.schedule, errors.overlap) or errors.schedule,
           cost = price and (before - planned) * price }
end

-- ------------------------------------------------------------------------------------------------------------------ parts of a plan

-- "Et*3|(tttt|)*14tmL": what Megatron's --pipeline-model-parallel-layout takes. Stages follow each other there from rank to rank, chunk by
-- chunk (megatron/core/transformer/pipeline_parallel_layer_layout.py), so only that placement has one.
local function megatron_layout(evaluation)
  if evaluation.pipeline == 1 or evaluation.copies > 1 then return nil end
  for i, ranks in ipairs(evaluation.placement) do
    if ranks[1] ~= (i - 1) % evaluation.pipeline then return nil end
  end
  local parts, n = {}, #evaluation.stages
  for i, stage in ipairs(evaluation.stages) do
    local layers = blocks.layers(stage)
    local words = { stage.embedding > 0 and "E" or "", layers > 1 and "t*" .. layers or layers == 1 and "t" or "" }
    words[3] = stage.mtp > 0 and (stage.mtp > 1 and ",m*" .. stage.mtp or ",m") or ""
    words[4] = stage.head > 0 and (stage.mtp > 0 and "L" or ",L") or ""
    parts[i] = (table.concat(words):gsub("^,", ""))
  end
  local text, i = {}, 1
  while i <= n do
    local j = i
    while j < n - 1 and parts[j + 1] == parts[i] do j = j + 1 end
    if j - i >= 2 then text[#text + 1] = "(" .. parts[i] .. "|)*" .. (j - i + 1)
    else
      j = i
      text[#text + 1] = parts[i] .. (i < n and "|" or "")
    end
    i = j + 1
  end
  return table.concat(text)
end
measure.megatron_layout = megatron_layout

local function memory(evaluation, known)
  local ranks = {}
  for i, rank in ipairs(evaluation.memory) do
    local stages = {}
    for k, stage in ipairs(rank.stages) do stages[k] = stage - 1 end
    ranks[i] = {
      rank = rank.rank, stages = stages, parameters_bytes = rank.parameters, gradients_bytes = rank.gradients,
      optimizer_bytes = rank.optimizer, activations_bytes = rank.activations, transient_bytes = rank.transient,
      overhead_bytes = rank.overhead, buffers_bytes = rank.transient + rank.overhead, host_bytes = rank.host,
      total_bytes = rank.total, tower_bytes = rank.tower ~= 0 and rank.tower or nil,
    }
  end
  local device = known.arguments.device_bytes
  return { device_bytes = device, headroom_bytes = device - known.usable_bytes, ranks = ranks,
           fit = measure.fit(evaluation.peak_bytes, known) }
end

-- F&B of a stage's forward with the backward of the slice that its rank runs it with. V and
-- bidirectional placements give a rank the slices s and n − 1 − s. In a loop each slice meets all of its rank in turn: their mean.
local function pair_of(evaluation, device, stage)
  local seconds, n = evaluation.stage_seconds, #evaluation.stage_seconds
  local function with(other) return engine.cost.pair { device = device, forward = seconds[stage], backward = seconds[other] } end
  if evaluation.overlap_alone then return with(1) end
  if engine.schedule.traits(evaluation.schedule).placement ~= "loop" then return with(n + 1 - stage) end
  local sum, count = 0, 0
  for other = (stage - 1) % evaluation.pipeline + 1, n, evaluation.pipeline do
    sum, count = sum + with(other), count + 1
  end
  return sum / count
end

-- Of each stage; none where the schedule has no such pairs.
local function pair_seconds(evaluation, device)
  local list = {}
  local any = evaluation.overlap_alone or measure.overlaps(evaluation.schedule)
  for stage = 1, any and #evaluation.stage_seconds or 0 do
    list[stage] = pair_of(evaluation, device, stage)
  end
  return list
end

local function stages(evaluation, pair)
  local list = {}
  for i, seconds in ipairs(evaluation.stage_seconds) do
    local held = evaluation.stages[i]
    list[i] = {
      stage = i - 1, rank = evaluation.placement[i][1], layers = blocks.layers(held), forward_seconds = seconds.forward,
      input_seconds = seconds.input, weight_seconds = seconds.weight, full_seconds = seconds.full,
      pair_seconds = pair[i],
      alltoall_forward_seconds = seconds.alltoall_forward, alltoall_backward_seconds = seconds.alltoall_backward,
      host_forward_seconds = seconds.host_forward, host_backward_seconds = seconds.host_backward,
    }
  end
  return list
end

-- The closed form at the mean stage times, as a share of the simulated makespan → fraction, exact, interval. Exact only where stages
-- are equal and hand-overs take no time; otherwise it says how far uneven stages and hand-overs move the bubble.
local function closed_form(evaluation, pair)
  if evaluation.schedule == "none" then return nil end
  local n = #evaluation.stage_seconds
  local mean = { forward = 0, input = 0, weight = 0, full = 0, pair = 0 }
  local equal = true
  for i, seconds in ipairs(evaluation.stage_seconds) do
    for _, key in ipairs { "forward", "input", "weight", "full" } do
      mean[key] = mean[key] + seconds[key] / n
      equal = equal and seconds[key] == evaluation.stage_seconds[1][key]
    end
    mean.pair = mean.pair + (pair[i] or seconds.forward + seconds.full) / n
  end
  local group = evaluation.group   -- fewer than P are one of PyTorch's rounds
  local form = engine.bubble {
    schedule = evaluation.schedule, ranks = evaluation.pipeline, microbatches = evaluation.microbatches, virtual = evaluation.chunks,
    group = group and group < evaluation.pipeline and "rounds" or group, limit = evaluation.limit,
    F = mean.forward, I = mean.input, W = mean.weight, B = mean.full, FB = mean.pair,
  }
  if not form then return nil end
  local makespan = evaluation.makespan_seconds
  local interval = form.low and form.high and { form.low / makespan, form.high / makespan }
  local instant = evaluation.hop_seconds + evaluation.hop_waiting_seconds == 0
  return form.seconds and form.seconds / makespan, form.exact and equal and instant, interval
end

local function bubble(evaluation, pair)
  local form, exact, interval = closed_form(evaluation, pair)
  local baseline = evaluation.baselines and evaluation.baselines["1f1b"]
  return {
    fraction = evaluation.bubble_fraction, definition = "mean_idle", max_idle_fraction = evaluation.max_idle_fraction,
    idle_per_rank_seconds = evaluation.idle_per_rank_seconds, closed_form_fraction = form, closed_form_exact = exact,
    closed_form_interval = interval or nil,
    baseline_1f1b_fraction = evaluation.schedule ~= "1f1b" and baseline and baseline.bubble_fraction or nil,
  }
end

local function replication(evaluation)
  local resident, unique = evaluation.parameters.resident, evaluation.parameters.unique
  return { copies = evaluation.copies, extra_bytes = evaluation.further_copies_bytes, resident_parameters_per_gpu = resident,
           unique_parameters_per_gpu = unique, density_fraction = unique / resident }
end

-- What each kind of communication runs beside. Of data and tensor parallelism the seconds are those that are left.
local function overlaps(evaluation, kernel, training)
  local pairs_hide = evaluation.overlap_alone or measure.hides_alltoall(evaluation.schedule, kernel)
  return {
    pipeline = "the sender's next action; the receiver waits",
    tensor = training.tensor_overlap > 0 and format.percent(training.tensor_overlap) .. " of it, not counted, beside products" or "nothing",
    context = "attention to the blocks that are there already",
    expert = evaluation.overlap_alone and "the backward, or forward, of the next microbatch; nothing in the first forward and last backward"
             or pairs_hide and "the other half of its F&B pair; nothing in warm-up and cool-down" or "nothing",
    data = training.data_overlap > 0
      and string.format("%s of the last backward and of the first forward, which is not counted", format.percent(training.data_overlap))
      or "nothing: after the last backward, before the next forward",
  }
end

local function communication(evaluation, kernel, training)
  local step = evaluation.step
  local synchronised = step.gradient_sync + step.parameter_sync
  -- What a step can wait for, one after the other: of a rank, each microbatch at each of its stages once forward and once backward; before
  -- its first and after its last, the way through all the other stages.
  local held = #evaluation.stage_seconds
  local hops = evaluation.pipeline > 1 and 2 * (evaluation.microbatches * held / evaluation.pipeline + held - 1) or 0
  local sent = {
    pipeline = { hops * (evaluation.hop_seconds + evaluation.hop_waiting_seconds), evaluation.hop_exposed_seconds },
    expert = { evaluation.alltoall_seconds, evaluation.alltoall_exposed_seconds },
    data = { synchronised, synchronised },
    -- part of F, I and W as the stages have them
    tensor = { evaluation.tensor_seconds, evaluation.tensor_seconds },
    context = { evaluation.context_seconds, evaluation.context_exposed_seconds },
  }
  local beside, out = overlaps(evaluation, kernel, training), {}
  for name, pair in pairs(sent) do out[name] = { seconds = pair[1], exposed_seconds = pair[2], runs_beside = beside[name] } end
  return out
end

local function copy_list(list)
  return table.move(list, 1, #list, 1, {})
end

-- The split into equal numbers of layers, which the planned one was chosen over; nil where they are the same, and without a pipeline.
local function even_split(request, known, evaluation, kernel)
  local even = evaluation.pipeline > 1 and engine.model.stages(request.model.shape, #evaluation.stages)
  if not even then return nil end
  local layers, same = {}, true
  for i, stage in ipairs(even) do
    layers[i] = blocks.layers(stage)
    same = same and layers[i] == evaluation.layers_per_stage[i]
  end
  if same then return nil end
  local other = evaluate_at(known.arguments, evaluation, evaluation.schedule, kernel, known.batch, layers)
  if not other then return nil end
  return { layers_per_stage = layers, step_seconds = other.step_seconds, slower_fraction = other.step_seconds / evaluation.step_seconds - 1,
           peak_bytes = other.peak_bytes, fit = measure.fit(other.peak_bytes, known) }
end

-- Each segment of a ramp, and what its small batch costs: the same tokens at the full batch, whose evaluation is given, take so much less.
local function ramp(request, list, goodput, gpus, full, full_batch)
  if not request.training.batch_ramp then return nil end
  local rows = {}
  for i, segment in ipairs(list) do
    local step = segment.evaluation.step_seconds
    local hours = segment.steps * gpus / seconds_per_hour / goodput
    rows[i] = {
      first_token = segment.first_token, global_batch_size = segment.batch, microbatches = segment.evaluation.microbatches,
      step_seconds = step, bubble_fraction = segment.evaluation.bubble_fraction, gpu_hours = hours * step,
      extra_gpu_hours = hours * (step - full.step_seconds * segment.batch / full_batch),
    }
  end
  return rows
end

-- What was measured in place of computed, and how the model does on the profile's own runs.
local function profile(request, evaluation)
  local read = request.profile
  if not read then return nil end
  local temperature = read.heat and "heating" or read.temperature:match "hot" or read.temperature:match "cold" or "as_measured"
  return { file = read.file, source = read.source, temperature = temperature, runtime = read.runtime or "ideal",
           host_wait_seconds = evaluation.host_wait_seconds,
           calibration = require("pipeplan.plan.calibrate").of(request) }
end

-- What a busier schedule loses by its cards running hotter: its gain over 1F1B at the clocks of cool cards, and as they heat up. nil where
-- nothing is known of heat, and against itself.
local function power(evaluation, request)
  local baseline = evaluation.baselines and evaluation.baselines["1f1b"]
  if not (request.profile and request.profile.heat) or not baseline or evaluation.schedule == "1f1b" then return nil end
  local cool, hot = 1 - evaluation.cool_step_seconds / baseline.cool_step_seconds, 1 - evaluation.step_seconds / baseline.step_seconds
  return { baseline = "1f1b", cool_gain_fraction = cool, gain_fraction = hot, taken_back_fraction = cool > 0 and 1 - hot / cool or nil,
           slowdown_fraction = evaluation.step_seconds / evaluation.cool_step_seconds - 1 }
end

-- Fills `plan` with everything that is not null only when planned, but advice. → segments of the run, for the rollback window.
function measure.fill(plan, request, known, result)
  local evaluation = result.evaluation
  local training, gpus = request.training, request.cluster.gpus
  local kernel = result.kernel and result.kernel.name
  local goodput = training.goodput or 1
  local list = segments(request, known, evaluation, kernel)
  local alone = lists.with(known.arguments.device, { hides_alltoall = false })
  plan.parallelism = measure.parallelism(evaluation)
  plan.layers_per_stage = copy_list(evaluation.layers_per_stage)
  plan.even_split = even_split(request, known, evaluation, kernel)
  plan.placement = {}
  for i, ranks in ipairs(evaluation.placement) do plan.placement[i] = copy_list(ranks) end
  plan.megatron_layout = megatron_layout(evaluation)
  plan.microbatch_group_size = evaluation.group
  plan.overlap_alone = evaluation.overlap_alone or nil
  plan.layout_flags = framework.layout_flags(request, plan)
  plan.framework_flags = framework.flags(request, plan)
  plan.activation_limit_chunks = evaluation.limit
  plan.microbatches = evaluation.microbatches
  plan.microbatches_per_rank = evaluation.microbatches / evaluation.pipeline
  plan.micro_batch_size, plan.recompute = training.micro_batch_size, lists.sorted_keys(training.recompute)
  plan.sharding, plan.gpus_used = known.record.sharding, known.record.gpus_used
  plan.policy_cost = result.cost
  plan.global_batch_size = known.batch
  plan.tokens_per_step = known.batch * training.sequence_length
  plan.schedule, plan.schedule_family = evaluation.schedule, evaluation.schedule_family
  plan.schedule_wanted, plan.decision = result.schedule_wanted, result.decision
  local pair = pair_seconds(evaluation, measure.pair_device(known, evaluation, kernel) or alone)
  plan.bubble = bubble(evaluation, pair)

  plan.step_seconds = evaluation.step_seconds
  plan.ideal_step_seconds = evaluation.ideal_step_seconds
  plan.predicted_utilisation_fraction = plan.ideal_step_seconds / plan.step_seconds
  local frozen = known.arguments.training.frozen   -- a weight that does not train has no product for its gradient: two of three
  local flops = engine.model.flops(request.model.shape, recipe.attended_length(request)).per_token * plan.tokens_per_step
                * (1 - (training.padding or 0)) * (1 - frozen / 3)
  plan.mfu_fraction = flops / (plan.step_seconds * gpus * request.device.flops_bf16)
  local seconds = run_seconds(list, goodput, function(e) return e.step_seconds end)
  plan.training_days = seconds / seconds_per_day
  plan.gpu_hours = seconds * gpus / seconds_per_hour
  plan.cost = request.cluster.price_per_gpu_hour and plan.gpu_hours * request.cluster.price_per_gpu_hour
  plan.training.batch_ramp = ramp(request, list, goodput, gpus, evaluation, known.batch)

  plan.gpu_hours_saved = {}
  for _, name in ipairs(baselines_of(evaluation.schedule)) do
    plan.gpu_hours_saved[#plan.gpu_hours_saved + 1] = saving(list, goodput, gpus, name, request.cluster.price_per_gpu_hour)
  end
  plan.profile, plan.power = profile(request, evaluation), power(evaluation, request)
  plan.expected_error = plan.profile and require("pipeplan.plan.calibrate").expected_error(plan.profile.calibration, evaluation.schedule)
                        or accuracy
  plan.step = {
    pipeline_seconds = evaluation.makespan_seconds, gradient_sync_seconds = evaluation.step.gradient_sync,
    parameter_sync_seconds = evaluation.step.parameter_sync, optimizer_seconds = evaluation.step.optimizer,
    mirror_seconds = evaluation.step.mirror, replicas_seconds = evaluation.step.replicas,
    sharding_seconds = evaluation.step.sharding, overhead_seconds = evaluation.step.overhead,
  }
  plan.hop_seconds = evaluation.pipeline > 1 and evaluation.hop_seconds or nil
  plan.stages = stages(evaluation, pair)
  plan.memory = memory(evaluation, known)
  plan.host = host.of(request, known.arguments.training, evaluation)
  plan.replication = replication(evaluation)
  plan.communication = communication(evaluation, kernel, known.arguments.training)
  return list
end

-- Another candidate as the plan lists it, from its row of fields; forbidden: does a rule hold for it? `step_seconds`: the plan's.
function measure.other(fields, known, why_not, forbidden, step_seconds)
  local slower = step_seconds and fields.step_seconds and fields.step_seconds / step_seconds - 1
  local fit = measure.fit(fields.peak_bytes, known)
  return {
    schedule = fields.schedule, parallelism = measure.parallelism_of_fields(fields),
    microbatches = measure.microbatches(fields),
    fit = fit, step_seconds = fields.step_seconds, allowed = not forbidden and fit ~= "does_not_fit",
    bubble_fraction = fields.bubble_fraction, peak_bytes = fields.peak_bytes, why_not = why_not,
    slower_fraction = slower, tie = slower and math.abs(slower) < accuracy.comparison_fraction,
  }
end

-- How far off a comparison with the plan may be: another schedule at its layout, another layout, no pipeline.
local function comparison_error(degrees, plan_degrees)
  if (degrees.pipeline == 1) ~= (plan_degrees.pipeline == 1) then return accuracy.comparisons.pipeline end
  return accuracy.comparisons[layout.difference(degrees, plan_degrees) == "same" and "schedule" or "layout"]
end

-- Other schedules as the plan lists them; P = 1 beside them.
function measure.alternatives(result, known, step_seconds, degrees)
  local list = {}
  local function compared(fields)
    local ratio = fields.step_seconds and step_seconds and fields.step_seconds / step_seconds - 1
    if not ratio then return nil end
    if math.abs(ratio) < 0.0005 then return "as fast" end
    return string.format("%.1f %% %s", math.abs(ratio) * 100, ratio >= 0 and "slower" or "faster")
  end
  for _, other in ipairs(result.alternatives or {}) do
    if other.fields then
      local why_not = lists.column(other.why_not, "id")
      local forbidden = #why_not > 0
      if not forbidden then why_not[1] = other.fits == false and "does_not_fit" or compared(other.fields) end
      list[#list + 1] = measure.other(other.fields, known, why_not, forbidden, step_seconds)
    end
  end
  local avoidable = result.avoidable and result.avoidable.fields
  if avoidable then
    local words = compared(avoidable)
    local sharded = avoidable.sharding ~= known.record.sharding and avoidable.sharding
    if sharded then words = (words and words .. " with " or "") .. sharded .. " sharded" end
    list[#list + 1] = measure.other(avoidable, known, { words }, false, step_seconds)
  end
  for _, other in ipairs(list) do
    other.error_fraction = other.step_seconds and step_seconds and comparison_error(other.parallelism, degrees) or nil
  end
  return list
end

-- The best without a pipeline beside the plan; nil where there is none, or the plan has none itself.
function measure.without_pipeline(request, result, step_seconds)
  local other = result.avoidable
  if not other or not other.fields.step_seconds then return nil end
  local gain = step_seconds and step_seconds / other.fields.step_seconds - 1
  local evaluation = other.candidates:evaluate(other.row)
  local parallelism = measure.parallelism_of_fields(other.fields)
  return {
    framework_flags = framework.flags_of(request, evaluation, parallelism, other.fields.sharding), parallelism = parallelism,
    sharding = other.fields.sharding, recompute = other.fields.recompute, micro_batch_size = other.fields.micro_batch_size,
    gpus_used = other.fields.gpus_used, microbatches = measure.microbatches(other.fields), step_seconds = other.fields.step_seconds,
    peak_bytes = other.fields.peak_bytes,
    exposed_step_seconds = evaluation and evaluation.overlap_alone and evaluation.no_overlap.step_seconds or nil,
    gain_fraction = gain, error_fraction = accuracy.comparisons.pipeline,
    tie = gain and math.abs(gain) < accuracy.comparison_fraction,
  }
end

-- The fastest survivor of another layout or schedule, beside the plan; nil where there is none.
function measure.runner_up(result, step_seconds, degrees)
  local fields = result.runner_up and result.runner_up.fields
  if not fields then return nil end
  local margin = fields.step_seconds / step_seconds - 1
  return {
    schedule = fields.schedule, parallelism = measure.parallelism_of_fields(fields),
    microbatches = measure.microbatches(fields), micro_batch_size = fields.micro_batch_size,
    recompute = fields.recompute, sharding = fields.sharding, gpus_used = fields.gpus_used, step_seconds = fields.step_seconds,
    peak_bytes = fields.peak_bytes, margin_fraction = margin,
    error_fraction = comparison_error(measure.parallelism_of_fields(fields), degrees),
    tie = math.abs(margin) < accuracy.comparison_fraction,
  }
end

-- What more memory buys: survivors of which none is faster with as few bytes, fastest first. cost: of the whole run, where the spec has a
-- price and one batch.
function measure.frontier(request, result, known, plan)
  local list = {}
  local price = request.cluster.price_per_gpu_hour
  for i, other in ipairs(result.frontier()) do
    local fields = other.fields
    local hours = not plan.training.batch_ramp and plan.gpu_hours and plan.gpu_hours * fields.step_seconds / plan.step_seconds
    list[i] = {
      schedule = fields.schedule, parallelism = measure.parallelism_of_fields(fields),
      microbatches = measure.microbatches(fields), micro_batch_size = fields.micro_batch_size,
      recompute = fields.recompute, sharding = fields.sharding, gpus = fields.gpus_used, step_seconds = fields.step_seconds,
      peak_bytes = fields.peak_bytes, gpu_hours = hours or nil, cost = hours and price and hours * price or nil,
      plan = other.row == result.row, fit = measure.fit(fields.peak_bytes, known),
    }
  end
  return list
end

return measure
