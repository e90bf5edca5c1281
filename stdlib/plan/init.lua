-- SPDX-License-Identifier: Apache-2.0
-- init.lua: a request and a policy → a plan: facts, choice, measurement, advice. The plan's fields are those of stdlib/schema/plan.lua;
-- a field that does not apply is absent here and null in JSON.

local advice = require "pipeplan.plan.advice"
local advise = require "pipeplan.plan.advise"
local choose = require "pipeplan.plan.choose"
local engine = require "engine"
local facts = require "pipeplan.plan.facts"
local format = require "pipeplan.base.format"
local framework = require "pipeplan.plan.framework"
local guard = require "pipeplan.plan.guard"
local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"
local reasons = require "pipeplan.plan.reasons"
local records = require "pipeplan.plan.record"
local stated = require "pipeplan.input.stated"

local plan = {}

-- Of a model of a known family all is known: what its shape does not say it has not.
local function shape_of(model)
  if not model.family then return model.shape end
  local none = { tied_embeddings = false, norm_bias = false, mlp_bias = false, qkv_bias = false, learned_positions = 0 }
  if model.shape.attention ~= "mla" then none.qk_norm = "none" end
  return lists.with(none, model.shape)
end

-- What every outcome says about the request and the policy.
local function base(request, policy, known)
  local found = {}
  for _, layer in ipairs(policy.layers) do
    if layer.found then found[#found + 1] = layer.found end
  end
  local model, cluster, training = request.model, request.cluster, request.training
  local layers = lists.column(policy.layers, "name")
  return {
    framework = request.framework,
    model = {
      name = model.name, architecture = model.architecture, layers = model.layers, total_parameters = model.total_parameters,
      active_parameters = model.active_parameters, active_parameters_without_embedding = model.active_parameters_without_embedding,
      tower_parameters = model.tower_parameters, shape = shape_of(model),
    },
    cluster = {
      gpus = cluster.gpus, gpus_per_node = cluster.gpus_per_node, accelerator = cluster.accelerator, device_bytes = cluster.device_bytes,
      fabric = cluster.network.fabric, network_bytes_per_second = cluster.network.per_gpu, scale_up_gpus = cluster.network.scale_up_gpus,
      scale_up_bytes_per_second = cluster.network.scale_up_per_gpu, price_per_gpu_hour = cluster.price_per_gpu_hour,
    },
    training = { tokens = training.tokens, sequence_length = training.sequence_length, padding = training.padding,
                 precision = training.precision,
                 tower = model.tower_parameters and (model.shape.tower_frozen and "frozen" or "trained"),
                 recompute = lists.sorted_keys(training.recompute) },
    one_gpu = known.one_gpu, assumptions = known.assumptions, warnings = {}, reasons = {}, dropped = {},
    loosened = policy.loosened or {},
    policy = { layers = layers, digest = policy.digest, date = policy.date, stack = policy.stack, found = found,
               left_out = policy.left_out },
    spec = { digest = stated.digest(request), files = request.source.files, run = request.run, fields = stated.carried(request),
             read = request.source.read },
    engine_version = engine.version,
  }
end

local function reason_of(reason)
  return {
    id = reason.id, message = reason.message .. (reason.also and " (also true; an earlier rule decided)" or ""), source = reason.source,
    layer = reason.layer, file = reason.file, line = reason.line,
  }
end

local function loosened_of(entry)
  return { id = entry.id, kind = entry.kind, layer = entry.layer, file = entry.file, line = entry.line, reason = entry.reason,
           expires = entry.expires }
end

local function dropped_of(entry)
  local near = entry.nearest
  return { rule = entry.rule, count = entry.count, at_least = entry.at_least or nil,
           nearest = near and { field = near.field, value = near.value, beyond = near.beyond } }
end

local function map(list, convert)
  local out = {}
  for i, entry in ipairs(list or {}) do out[i] = convert(entry) end
  return out
end

local function recommend_of(recommend, known)
  if not recommend then return nil end
  local evaluation, values = recommend.evaluation, recommend.choice.values
  local parallelism = measure.parallelism(evaluation)
  return {
    schedule = evaluation.schedule, parallelism = parallelism,
    framework_flags = framework.flags_of(recommend.choice.request, evaluation, parallelism, values.sharding),
    microbatches = evaluation.microbatches,
    micro_batch_size = values.micro_batch_size, peak_bytes = evaluation.peak_bytes, step_seconds = evaluation.step_seconds,
    why = recommend.why, recompute = values.recompute, sharding = values.sharding,
    gpus_used = values.gpus_used, optimizer_offload = recommend.optimizer_offload,
    fit = measure.fit(evaluation.peak_bytes, known),
  }
end

-- How many GPUs would do? Said with the reason, for that is the question it raises. → what is planned on them.
local function ask_for_gpus(out, reason, request, policy)
  local gpus, there = require("pipeplan.plan.enough").gpus(request, policy)
  out.gpus_needed = gpus
  local told = "none of the larger counts that were tried would do"
  if gpus then
    local degrees = there.parallelism
    told = string.format("it fits %s GPUs (%s at P %d, TP %d, EP %d)", format.integer(gpus), format.schedule(there.schedule),
                         degrees.pipeline, degrees.tensor, degrees.expert)
  elseif not request.cluster.network.per_gpu then
    told = "how many GPUs would do takes cluster.network.per_gpu to say"
  end
  reason.message = reason.message .. "; " .. told
  return there
end

-- Where memory is a reason: what the bytes are, what could be otherwise, and how many GPUs would do. no_count: no number of them does.
-- → the ways to fit, and what is planned on that many.
local function tell_of_memory(out, request, policy, result, no_count)
  local found, there
  for i, reason in ipairs(result.reasons) do
    if reason.kind == "memory" then
      local told = out.reasons[i]
      if result.judged then told.message = told.message .. reasons.bytes(result.candidates, result.judged) end
      local ways = require "pipeplan.plan.ways"
      found = ways.of(request, policy)
      out.ways_to_fit = ways.shown(found)
      if reason.id == "does_not_fit" and not no_count then there = ask_for_gpus(out, told, request, policy) end
      break
    end
  end
  if no_count then table.insert(out.reasons, 1, no_count) end
  return found, there
end

-- Of what the plan chose, in the words of a spec: { field, value, why } for the assumptions.
local function chosen(request, choice)
  local list, training = {}, choice.request.training
  local function say(field, value)
    if request.free[field] then list[#list + 1] = { field = "training." .. field, value = value, why = "chosen" } end
  end
  say("micro_batch_size", training.micro_batch_size)
  say("recompute", next(training.recompute) and table.concat(lists.sorted_keys(training.recompute), ", ") or "nothing")
  say("sharding", choice.values.sharding)
  if choice.gpus < request.cluster.gpus then
    list[#list + 1] = { field = "gpus_used", value = choice.gpus,
                        why = "the others stay idle: this ranks before every layout of all of them" }
  end
  return list
end

-- A finished plan that the policy's invariants forbid: what every outcome says, rejected for them.
local function forbidden(out, broken, request, policy, known, result)
  local rejected = base(request, policy, known)
  rejected.loosened, rejected.minimum, rejected.dropped = out.loosened, out.minimum, out.dropped
  rejected.status, rejected.reasons = "rejected", map(broken, reason_of)
  local record = records.of(rejected.status, known.record, result.fields)
  rejected.warnings = advise.warnings(request, policy, record)
  return rejected, record
end

-- A rule that fails with a spec that was tried for advice: the plan holds, what would do instead may be missing.
local function trouble_of(policy)
  local trouble = policy.trouble
  return trouble and { id = "rule_fails_elsewhere", severity = "warning",
                       message = trouble.message .. ": with a spec that was tried for advice, which may lack something for it" }
end

-- plan.plan{ request =, policy =, explain = bool?, frontier = bool?, why = { { field, value }, … }?, facts = { request field = value }?,
--            shortlist = layouts to measure? } → plan, program, request: what was planned, which gpus "minimum" does not say yet
-- facts: what a test puts in place of what follows from the request. With `explain` also the plan's program as simulated: see program.lua.
function plan.plan(arguments)
  local request, policy = arguments.request, arguments.policy
  local minimum, no_count
  policy.trouble, policy.searched = nil, nil   -- of the plan before
  if request.any_gpus then request, minimum, no_count = require("pipeplan.plan.minimum").find(request.any_gpus, policy) end
  policy.host:refill()  -- each plan has the policy's whole budget
  local known = facts.of(request, policy)
  for name, value in pairs(arguments.facts or {}) do known.record[name] = value end
  local out = base(request, policy, known)
  out.loosened = map(out.loosened, loosened_of)
  local result = choose.choose { request = request, policy = policy, record = known.record, arguments = known.arguments,
                                 explain = arguments.explain }
  local asked, all = request, known.arguments.choices
  if result.choice then
    known = facts.settled(known, result.choice)
    for _, entry in ipairs(chosen(request, result.choice)) do table.insert(out.assumptions, entry) end
    request = result.choice.request
    out.training.recompute = lists.sorted_keys(request.training.recompute)
  end
  out.status, out.minimum = result.status, minimum
  out.reasons = map(result.reasons, reason_of)
  out.dropped = map(result.dropped, dropped_of)
  out.recommend = recommend_of(result.recommend, known)

  local record
  if out.status == "planned" then
    local segments = measure.fill(out, request, known, result)
    local avoidable = result.avoidable and result.avoidable.fields
    record = records.of(out.status, known.record, result.fields,
                        { evaluation = result.evaluation, host = out.host, avoidable = avoidable })
    guard.check(out)
    local broken = guard.broken(out, policy, record)
    if #broken > 0 then
      out, record = forbidden(out, broken, request, policy, known, result)
    else
      guard.leave_out(result)
      out.alternatives = measure.alternatives(result, known, out.step_seconds, out.parallelism)
      out.without_pipeline = measure.without_pipeline(request, result, out.step_seconds)
      if arguments.explain or arguments.frontier then out.frontier = measure.frontier(request, result, known, out) end
      out.runner_up = measure.runner_up(result, out.step_seconds, out.parallelism)
      advise.fill(out, request, asked, policy, known, result, segments, record)
      for _, entry in ipairs(advice.beside(out, asked, result, known, all)) do table.insert(out.advice, entry) end
      if arguments.shortlist then
        out.shortlist = require("pipeplan.plan.shortlist").of(asked, policy, result, known, arguments.shortlist)
      end
    end
  else
    local ways, there = tell_of_memory(out, asked, policy, result, no_count)
    out.advice = advice.otherwise(asked, policy, result, ways, out.gpus_needed, there)
    record = records.of(out.status, known.record, result.fields)
    out.warnings = advise.warnings(request, policy, record)
  end
  if arguments.explain or arguments.why then
    local explain = require "pipeplan.plan.explain"
    out.explanation = explain.of(out, request, asked, policy, record, known, result, arguments.explain, arguments.why,
                                 { ["cluster.gpus"] = out.gpus_needed })
  end
  local drawn
  if arguments.explain then
    out.explanation.spec = stated.list(request)
    if out.status == "planned" then
      drawn = require("pipeplan.plan.program").of(result.evaluation, known, request, result.kernel and result.kernel.name)
      out.explanation.phases = drawn.phases
    end
  end
  out.warnings[#out.warnings + 1] = trouble_of(policy)
  if plan.observer then plan.observer(out, record, result, policy) end  -- tests of policies watch what they plan
  return out, drawn, asked
end

return plan
