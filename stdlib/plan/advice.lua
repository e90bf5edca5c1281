-- SPDX-License-Identifier: Apache-2.0
--[[
advice.lua: what else there is to do, each with what comes of it: { id, message, changes, options, outcome, saved_fraction }.

  changes          path of a spec → value: laid over the spec they give the outcome; options: the same for a command line
  outcome          { status, schedule, parallelism, microbatches, micro_batch_size, global_batch_size, gpus, step_seconds, peak_bytes, fit }
  saved_fraction   of the GPU time that the plan takes for a token; negative: it takes more. nil where there is no plan

What the search has judged already is told as it judged it: the only candidate that the changes leave is that one, and a rule drops a
candidate whatever stands beside it. What it has not is planned here, and left out where it is not planned or saves nothing.
]]

local attempt = require "pipeplan.plan.attempt"
local format = require "pipeplan.base.format"
local integers = require "pipeplan.base.integers"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"
local pins = require "pipeplan.plan.pins"
local spec = require "pipeplan.input.spec"
local spec_fields = require "pipeplan.input.fields"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"
local what_if = require "pipeplan.plan.what_if"

local advice = {}

-- As the value of a change: the spec leaves the field out.
advice.FREE = json.null

local function entry_of(id, message, changes, outcome, saved)
  return { id = id, message = message, changes = changes, options = pins.options(changes), outcome = outcome, saved_fraction = saved }
end

-- What a row's choice recomputes, by the list that the search chose from.
local function modules_of(list, row)
  for _, choice in ipairs(list) do
    local values = choice.values
    if values.recompute == row.recompute and values.micro_batch_size == row.micro_batch_size
       and values.sharding == row.sharding then
      return choice.request.training.recompute
    end
  end
end

-- -------------------------------------------------------------------------------------------------------------------------- outcomes

-- Of a candidate's row; `known`: of the request that it is a candidate of; peak_bytes: as evaluated, as a
-- limit of activations may not be reached.
local function outcome_of(row, known, peak_bytes)
  return {
    status = "planned", schedule = row.schedule, parallelism = measure.parallelism_of_fields(row),
    microbatches = measure.microbatches(row), micro_batch_size = row.micro_batch_size,
    global_batch_size = known.batch, gpus = row.gpus_used, step_seconds = row.step_seconds, peak_bytes = peak_bytes,
    fit = measure.fit(row.peak_bytes, known),
  }
end

-- Of a sequence, which is as long in all that is compared: those of idle GPUs too.
local function gpu_seconds(gpus, batch, step_seconds)
  return gpus * step_seconds / batch
end

-- The same of what choose.layout evaluated, with the row that pins it.
local function evaluated(evaluation, known)
  local row = lists.with(known.record)
  for name, field in pairs(vocabulary.parallelism) do row[field] = evaluation[name] end
  row.schedule, row.microbatches = evaluation.schedule, evaluation.smallest_microbatches
  row.step_seconds, row.peak_bytes = evaluation.step_seconds, evaluation.peak_bytes
  return outcome_of(row, known, evaluation.peak_bytes), row
end

-- Plans the request with those changes → outcome, changes, GPUs of the cluster then; nil where they are no spec, or nothing is planned for
-- it. Where a field is freed, the changes that are handed back give the whole layout instead.
function advice.try(request, policy, changes)
  local other = request.stated and spec.laid(request, changes)
  if not other then return nil end
  local good, evaluation, known, choice = attempt.try(policy, what_if.layout, other, policy)
  if not good or not evaluation then return nil end
  local outcome, row = evaluated(evaluation, known)
  local kept, freed = {}, false
  for path, value in pairs(changes) do
    if value == advice.FREE then freed = true else kept[path] = value end
  end
  if freed then
    local whole = pins.of(request, row, choice.request.training.recompute, evaluation.layers_per_stage, known.batch)
    kept = lists.with(whole, kept)
  end
  return outcome, kept, other.cluster.gpus
end

-- ------------------------------------------------------------------------------------------------------- more or fewer microbatches a rank

-- The divisor of `number` next to `wanted`: the largest at most that, or the smallest at least that; nil: none.
local function divisor(number, wanted, at_most)
  local last
  for _, candidate in ipairs(integers.divisors(number)) do
    if not at_most and candidate >= wanted - 1e-9 then return candidate end
    if candidate <= wanted + 1e-9 then last = candidate end
  end
  return at_most and last or nil
end

local most = vocabulary.most

-- M/P = batch × TP × CP / (GPUs × microbatch size): what of them brings it to `target`: { words, path, value } each.
local function movers(record, target)
  local factor, list = target / record.microbatches_per_rank, {}
  local function add(words, path, value) list[#list + 1] = { words = words, path = path, value = value } end
  local unit = record.data_parallel * record.micro_batch_size
  local batch = (factor > 1 and math.ceil or math.floor)(record.global_batch_size * factor / unit) * unit
  if record.smallest_batch_size == record.global_batch_size and batch >= unit and batch <= most.counted then
    add(string.format("a batch of %s (now %s)", format.integer(batch), format.integer(record.global_batch_size)),
        "training.global_batch_size", batch)
  end
  local micro_batch = divisor(record.microbatches * record.micro_batch_size, record.micro_batch_size / factor, factor > 1)
  if micro_batch and micro_batch ~= record.micro_batch_size then
    add(string.format("a microbatch size of %d (now %d)", micro_batch, record.micro_batch_size), "training.micro_batch_size", micro_batch)
  end
  local wider = record.tensor_parallel
  while factor > 1 and wider < record.tensor_parallel * factor and wider <= record.gpus do wider = wider * 2 end
  while factor < 1 and wider > record.tensor_parallel * factor and wider % 2 == 0 do wider = wider // 2 end
  if wider ~= record.tensor_parallel and wider <= record.gpus then
    add(string.format("TP %d (now %d)", wider, record.tensor_parallel), "parallelism.tensor", wider)
  end
  local replicas = divisor(record.microbatches * record.data_parallel, record.data_parallel / factor, factor > 1)
  if replicas and replicas ~= record.data_parallel then
    local gpus = record.gpus_used // record.data_parallel * replicas
    add(string.format("%s GPUs (now %s)", format.integer(gpus), format.integer(record.gpus)), "cluster.gpus", gpus)
  end
  return list
end

-- Is its M/P on the other side of the target than it was?
local function reaches(outcome, target, before)
  local ratio = outcome.microbatches / outcome.parallelism.pipeline
  if before < target then return ratio >= target end
  return ratio <= target
end

-- What brings the plan's layout to that M/P and takes less GPU time for a token, as advice, and how many were
-- tried. record: of the finished plan; modules: what it recomputes.
function advice.microbatches(id, target, plan, request, policy, record, modules)
  local list = {}
  local now = gpu_seconds(record.gpus, plan.global_batch_size, plan.step_seconds)
  local tried = movers(record, target)
  for _, mover in ipairs(tried) do
    local changes = pins.of(request, record, modules, plan.layers_per_stage, plan.global_batch_size)
    changes["parallelism.microbatches"], changes["parallelism.data"] = nil, nil
    changes[mover.path] = mover.value
    local outcome, _, gpus = advice.try(request, policy, changes)
    if not outcome then  -- the layout does not take it: whatever does
      changes = { [mover.path] = mover.value }
      outcome, _, gpus = advice.try(request, policy, changes)
    end
    if mover.path ~= "cluster.gpus" then gpus = record.gpus end
    local saved = outcome and 1 - gpu_seconds(gpus, outcome.global_batch_size, outcome.step_seconds) / now
    if outcome and saved > 0 and reaches(outcome, target, record.microbatches_per_rank) then
      local message = string.format("%s: %s less GPU time a token", mover.words, format.percent(saved))
      list[#list + 1] = lists.with(entry_of(id, message, changes, outcome, saved), { words = mover.words })
    end
  end
  return list, #tried
end

-- -------------------------------------------------------------------------------------------------------------- beside a finished plan

-- "3.2 % faster", of a step beside the plan's.
local function compared(step_seconds, plan_seconds)
  local ratio = step_seconds / plan_seconds - 1
  if math.abs(ratio) < 0.0005 then return "as fast" end
  return string.format("%s %s", format.percent(math.abs(ratio)), ratio > 0 and "slower" or "faster")
end

-- What the search has judged beside the plan: faster schedules, the next best, what a rollback goes to, no pipeline. list: the choices that
-- it had.
function advice.beside(plan, request, result, known, list)
  local out, seen = {}, {}
  local function add(id, other)
    local row = other.fields
    if not row or not row.step_seconds then return end
    local message = string.format("%s: %s a step, %s", measure.label(row), format.seconds(row.step_seconds),
                            compared(row.step_seconds, plan.step_seconds))
    if seen[message] then return end
    seen[message] = true
    local evaluation = other.candidates:evaluate(other.row)
    local changes = pins.of(request, row, modules_of(list, row), evaluation.layers_per_stage, known.batch)
    out[#out + 1] = entry_of(id, message, changes, outcome_of(row, known, evaluation.peak_bytes),
                             1 - row.step_seconds / plan.step_seconds)
  end
  for _, other in ipairs(result.dominated_by or {}) do add("dominated", other) end
  if result.runner_up then add("runner_up", result.runner_up) end
  if result.fallback then add("rollback", result.fallback) end
  if result.avoidable and plan.parallelism.pipeline > 1 then add("without_pipeline", result.avoidable) end
  return out
end

-- ----------------------------------------------------------------------------------------------------------- where nothing is planned

local NEAREST = 3   -- reasons whose nearest value is tried
local HAIR = 1e-9  -- how far beyond a limit that has to be passed is tried, as a share of it

-- Values of a field at which a rule stops holding, by what it names as the nearest.
local function beside_limit(near)
  if not near.beyond then return { near.value } end
  if math.type(near.value) == "integer" then return { near.value + 1, near.value - 1 } end
  return { near.value * (1 + HAIR), near.value * (1 - HAIR) }
end

-- What is done instead, as choose.choose recommends it.
local function instead(request, policy, recommend)
  local evaluation, choice = recommend.evaluation, recommend.choice
  local batch = recommend.fields.microbatches * recommend.fields.data_parallel * recommend.fields.micro_batch_size
  local changes = pins.of(request, recommend.fields, choice.request.training.recompute, evaluation.layers_per_stage, batch)
  if recommend.optimizer_offload then changes["training.optimizer_offload"] = recommend.optimizer_offload end
  local training = request.training
  if not training.batch_ramp and batch ~= training.global_batch_size then changes["training.global_batch_size"] = batch end
  local outcome = advice.try(request, policy, changes)
  return outcome and entry_of("recommend", recommend.why, changes, outcome)
end

-- What would be planned: what is recommended, each way to fit, more GPUs, the nearest value of a field that the spec states and a rule
-- minds. ways: of ways.of, and gpus: how many would do, with what is planned on them; nil where memory is no reason.
function advice.otherwise(request, policy, result, ways, gpus, on_them)
  local out = {}
  if result.recommend then out[1] = instead(request, policy, result.recommend) end
  for _, way in ipairs(ways or {}) do out[#out + 1] = entry_of("to_fit", way.words, way.changes, way.outcome) end
  if gpus then out[#out + 1] = entry_of("gpus", format.integer(gpus) .. " GPUs", { ["cluster.gpus"] = gpus }, on_them) end
  for i, reason in ipairs(result.reasons) do
    local near = i <= NEAREST and reason.nearest
    local path = near and require("pipeplan.names").path_of(near.field)
    local at = path and request.stated and request.stated[path]
    for _, value in ipairs(at and type(near.value) == "number" and beside_limit(near) or {}) do
      local outcome = advice.try(request, policy, { [path] = value })
      if outcome then
        local unit = spec_fields.by_path[path].unit
        local side = not near.beyond and "" or value > near.value and "over " or "under "
        local words = string.format("%s %s%s instead of %s", path, side, units.exact(near.value, unit), format.quantity(at.value, unit))
        out[#out + 1] = entry_of("nearest", words, { [path] = value }, outcome)
        break
      end
    end
  end
  return out
end

return advice
