-- SPDX-License-Identifier: Apache-2.0
-- plan_file.lua: a plan read back from what `plan --format json` printed: what watching a run needs of it, checked field by field.

local documents = require "pipeplan.base.documents"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local vocabulary = require "pipeplan.vocabulary"

local most = vocabulary.most

local plan_file = {}

local function is_present(value) return value ~= nil and value ~= json.null end

local function shown(value)
  if not is_present(value) then return "nothing" end
  return type(value) == "table" and (json.is_array(value) and "a list" or "an object") or tostring(value)
end

-- A checker of one plan: its functions return a field's value, or fail with the file and the field.
local function checker(plan, file)
  local check = {}
  local function fail(path, value, expected)
    failure.usage("%s: %s is %s: expected %s; is it what `pipeplan plan --format json` printed?", file, path, shown(value), expected)
  end

  function check.number(path, low, high)
    local value = json.at(plan, path)
    if type(value) ~= "number" or value < low or value > high then
      fail(path, value, string.format("a number from %.6g to %.6g", low, high))
    end
    return value
  end

  function check.whole(path, low, high)
    local value = json.at(plan, path)
    if math.type(value) ~= "integer" or value < low or value > high then
      fail(path, value, string.format("an integer from %d to %d", low, high))
    end
    return value
  end

  function check.schedule(path)
    local value = json.at(plan, path)
    if type(value) ~= "string" then fail(path, value, "a schedule") end
    if not lists.contains(vocabulary.schedules, value) then
      failure.usage("%s: %s: there is no schedule '%s'%s", file, path, value, failure.suggestion(value, vocabulary.schedules))
    end
    return value
  end

  -- An object, or nil where the plan says null. One that is not there at all is another plan's.
  function check.optional(path)
    local parent, name = path:match "^(.*)%.([^.]+)$"
    local value = json.at(plan, parent)[name]
    if value == json.null then return nil end
    if type(value) ~= "table" or json.is_array(value) then fail(path, value, "an object, or null") end
    return value
  end

  function check.boolean(path)
    local value = plan[path:match "^[^.]+"][path:match "[^.]+$"]
    if type(value) ~= "boolean" then fail(path, value, "true or false") end
    return value
  end

  function check.object(path)
    local value = json.at(plan, path)
    if type(value) ~= "table" or json.is_array(value) then fail(path, value, "an object") end
    return value
  end

  return check
end

-- Batches of a ramp as { { first_step =, batch = }, … }: where each begins, in steps. Tokens are those that train: padding does not.
local function ramp_of(check, plan, file)
  local ramp, sequence = json.at(plan, "training.batch_ramp"), check.whole("training.sequence_length", 1, 1e9)
  if ramp == nil then return nil end
  if json.at(plan, "training.padding") ~= nil then sequence = sequence * (1 - check.number("training.padding", 0, 0.999999)) end
  if not json.is_array(ramp) or #ramp > most.segments then
    failure.usage("%s: training.batch_ramp: expected a list of at most %d segments", file, most.segments)
  end
  local list, step = {}, 1
  for i, segment in ipairs(ramp) do
    local token, batch = json.at(segment, "first_token"), json.at(segment, "global_batch_size")
    local before = list[i - 1]
    if type(token) ~= "number" or math.type(batch) ~= "integer" or batch < 1 or token < 0 or (before and token <= before.token) then
      failure.usage("%s: training.batch_ramp[%d]: expected first_token, ascending, and global_batch_size", file, i - 1)
    end
    if before then step = math.min(2 ^ 53, step + math.ceil((token - before.token) / (before.batch * sequence))) end
    list[i] = { first_step = step, batch = batch, token = token }
  end
  return #list > 0 and list or nil
end

-- At each batch what the plan predicts, and where it is given up: { [size] = { predicted, threshold, inside_error_band } }. A ramp has them
-- in a list of its own, for rollback.threshold_fraction is a mean over the batches of its first steps; a plan of an older pipeplan has but
-- that. → them, did that list lack?
local function triggers_of(check, plan, read, file)
  local one = { predicted = read.ideal / read.step, threshold = check.number("rollback.threshold_fraction", 1e-6, 1.5),
                inside_error_band = check.boolean "rollback.inside_error_band" }
  local list, out = json.at(plan, "rollback.batches"), { [read.batch] = one }
  if not read.ramp then return out, false end
  if list == nil then
    for _, segment in ipairs(read.ramp) do out[segment.batch] = one end
    return out, true
  end
  out = {}
  for _, entry in ipairs(json.is_array(list) and list or {}) do
    local size, inside = json.at(entry, "global_batch_size"), json.at(entry, "inside_error_band")
    local trigger = { inside_error_band = inside == true }
    for name, field in pairs { predicted = "predicted_utilisation_fraction", threshold = "threshold_fraction" } do
      local value = json.at(entry, field)
      trigger[name] = type(value) == "number" and value >= 1e-6 and value <= 1.5 and value or nil
    end
    if trigger.predicted and trigger.threshold and type(inside) == "boolean" and size then out[size] = trigger end
  end
  for _, segment in ipairs { { batch = read.batch }, table.unpack(read.ramp) } do
    if not out[segment.batch] then
      failure.usage("%s: rollback.batches: expected what is predicted at the batch of %d, and its threshold; is it what "
                    .. "`pipeplan plan --format json` printed?", file, segment.batch)
    end
  end
  return out, false
end

-- Seconds in which each rank computes, of a step, as planned; nil where the plan does not say.
local function busy_of(plan)
  local idle, makespan, busy = json.at(plan, "bubble.idle_per_rank_seconds"), json.at(plan, "step.pipeline_seconds"), {}
  if type(idle) ~= "table" or type(makespan) ~= "number" or #idle == 0 then return nil end
  for i, seconds in ipairs(idle) do
    if type(seconds) ~= "number" or seconds >= makespan then return nil end
    busy[i] = makespan - seconds
  end
  return busy
end

-- What the alternatives say of the fallback: { step_seconds, same_layout, virtual }, or nil; virtual only where it is not the plan's, which
-- the spec may have fixed.
local function alternative_of(plan, fallback)
  local list = json.at(plan, "alternatives")
  for _, other in ipairs(type(list) == "table" and list or {}) do
    if json.at(other, "schedule") == fallback.schedule and json.at(other, "parallelism.pipeline") == fallback.pipeline then
      local same = true
      for name, degree in pairs(plan.parallelism) do
        same = same and (name == "virtual" or json.at(other, "parallelism." .. name) == degree)
      end
      local seconds, virtual = json.at(other, "step_seconds"), json.at(other, "parallelism.virtual")
      return { step_seconds = type(seconds) == "number" and seconds > 0 and seconds or nil, same_layout = same,
               virtual = math.type(virtual) == "integer" and virtual ~= json.at(plan, "parallelism.virtual") and virtual or nil }
    end
  end
end

-- What gives just that layout, as options of plan: what its advice "rollback" has, which the alternatives are told of; nil: no such advice.
local function options_of(plan, fallback)
  local list = json.at(plan, "advice")
  for _, entry in ipairs(type(list) == "table" and list or {}) do
    local options = json.at(entry, "id") == "rollback" and json.at(entry, "options")
    local there, depth = json.at(entry, "outcome.schedule"), json.at(entry, "outcome.parallelism.pipeline")
    local same = there == fallback.schedule and depth == fallback.pipeline
    if same and type(options) == "string" and options:find "^%-%-[%w%s,._-]+$" then return options end
  end
end

local function fallback_of(check, plan)
  if not check.optional "rollback.fallback" then return nil end
  local fallback = { schedule = check.schedule "rollback.fallback.schedule", pipeline = check.whole("rollback.fallback.pipeline", 1, 1e6) }
  fallback.alternative, fallback.options = alternative_of(plan, fallback), options_of(plan, fallback)
  return fallback
end

-- What the log of such a run says of itself, where it does: names of input/metrics/arguments.lua → values, of what the plan says. The
-- experts' own TP is none where nothing spreads experts, and a ramp has several batches.
local function layout_of(plan, read)
  local layout = { gpus = read.gpus, layers = json.at(plan, "model.layers"), micro_batch_size = json.at(plan, "micro_batch_size"),
                   sequence_length = json.at(plan, "training.sequence_length"),
                   global_batch_size = not read.ramp and read.batch or nil }
  for _, name in ipairs { "data", "tensor", "context", "pipeline", "expert" } do layout[name] = json.at(plan, "parallelism." .. name) end
  if math.type(layout.expert) == "integer" and layout.expert > 1 then layout.expert_tensor = json.at(plan, "parallelism.expert_tensor") end
  for name, value in pairs(layout) do
    if math.type(value) ~= "integer" then layout[name] = nil end
  end
  return layout
end

-- Only a plan can be watched; what was refused, and what has no pipeline, has no trigger.
local function check_status(plan, file)
  if type(plan) ~= "table" or json.is_array(plan) or type(plan.status) ~= "string" then
    failure.usage("%s: this is no plan: expected what `pipeplan plan --format json` prints", file)
  end
  if plan.status ~= "planned" then failure.usage("%s: status is %s: there is no plan to hold a run against", file, plan.status) end
  if json.at(plan, "rollback") == nil then
    failure.usage("%s: rollback is null: a plan without a pipeline has nothing to roll back to", file)
  end
end

-- plan_file.read(file) → what `monitor` needs, in SI units:
-- { schedule, pipeline, microbatches, gpus, ideal, step, predicted, tokens, batch, batches = { [size] = { predicted, threshold,
--   inside_error_band } }, one_trigger (for all batches of a ramp), ramp, window, warmup, fallback, time_error, comparison_error, busy,
--   layout }. M, ideal, step, predicted and tokens are those at `batch`, a ramp's last.
function plan_file.read(file)
  local plan = json.read(file)
  documents.check(plan, "plan", file)
  check_status(plan, file)
  local check = checker(plan, file)
  local out = {
    file = file,
    schedule = check.schedule "schedule", microbatches = check.whole("microbatches", 1, 1e9),
    pipeline = check.whole("parallelism.pipeline", 1, 100000),
    ideal = check.number("ideal_step_seconds", 1e-9, 1e9), step = check.number("step_seconds", 1e-9, 1e9),
    tokens = check.whole("tokens_per_step", 1, 1e15), batch = check.whole("global_batch_size", 1, 1e12),
    window = check.whole("rollback.window_steps", 1, most.window),
    time_error = check.number("expected_error.time_fraction", 0, 1e12),
    comparison_error = check.number("expected_error.comparison_fraction", 0, 10),
  }
  check.object "rollback"
  out.warmup = check.whole("rollback.warmup_steps", 0, out.window - 1)
  out.predicted = out.ideal / out.step
  check.object "parallelism"
  local degrees = {}
  for i, name in ipairs { "data", "tensor", "context", "pipeline" } do degrees[i] = check.whole("parallelism." .. name, 1, most.gpus) end
  out.gpus = degrees[1] * degrees[2] * 1.0 * degrees[3] * degrees[4]
  if out.gpus > most.gpus then
    failure.usage("%s: parallelism: degrees whose product is %.6g: expected at most %d GPUs", file, out.gpus, most.gpus)
  end
  out.gpus = math.tointeger(out.gpus)
  out.ramp = ramp_of(check, plan, file)
  out.batches, out.one_trigger = triggers_of(check, plan, out, file)
  out.layout = layout_of(plan, out)
  out.fallback, out.busy = fallback_of(check, plan), busy_of(plan)
  return out
end

-- What the plan says of steps of that batch; of a batch that it does not have, what it says of that step's number.
function plan_file.trigger_at(plan, batch, iteration)
  return plan.batches[batch] or plan.batches[plan_file.batch_at(plan, iteration)]
end

-- Sequences of step number `iteration`, as planned.
function plan_file.batch_at(plan, iteration)
  local batch = plan.batch
  for _, segment in ipairs(plan.ramp or {}) do
    if iteration >= segment.first_step then batch = segment.batch end
  end
  return batch
end

return plan_file
