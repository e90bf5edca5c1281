-- SPDX-License-Identifier: Apache-2.0
-- guard.lua: what no planned result may satisfy: the policy's invariants, which are an answer (the plan is rejected); and what must hold of
-- every plan, whatever the policy says, and is a bug where it does not.

local attempt = require "pipeplan.plan.attempt"
local candidates = require "pipeplan.plan.candidates"
local conditions = require "pipeplan.policy.conditions"
local format = require "pipeplan.base.format"
local host = require "pipeplan.plan.host"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"
local message = require "pipeplan.policy.message"
local records = require "pipeplan.plan.record"
local vocabulary = require "pipeplan.vocabulary"

local guard = {}

-- "bubble_fraction over 1 %: it is 9.2 %": the rule's conditions, but those that hold of every plan.
local function told(rule, record)
  local parts = {}
  for _, condition in ipairs(rule.conditions) do
    if condition.field ~= "status" then
      local value = record[condition.field]
      parts[#parts + 1] = conditions.text(condition) ..
        (value ~= nil and ": it is " .. format.quantity(value, vocabulary.by_name[condition.field].unit) or "")
    end
  end
  if rule.when then parts[#parts + 1] = "its function says so" end
  return "no plan may have " .. table.concat(parts, ", ")
end

local function reason_of(rule, plan, policy, record)
  local words = rule.message and message.fill(rule.message, record, policy) or told(rule, record)
  return {
    id = rule.id, kind = "invariant", layer = rule.layer, file = rule.file, line = rule.line, source = rule.source or rule.link,
    message = string.format("%s (an invariant of the policy; the plan would be %s, %s)", words, format.schedule(plan.schedule),
                            layout.line(plan.parallelism, plan.microbatches)),
  }
end

-- The invariants of the policy that a planned result breaks, as reasons; of `plan` schedule, parallelism and microbatches are read. One of
-- the default policy, with no other layer over it, is ours to hold.
function guard.broken(plan, policy, record)
  local loosened, list = {}, {}
  for _, entry in ipairs(policy.loosened or {}) do loosened[entry.id] = true end
  for _, rule in ipairs(policy.invariants) do
    if not (rule["unless"] and loosened[rule["unless"]]) and conditions.holds(rule, policy, record) then
      list[#list + 1] = reason_of(rule, plan, policy, record)
      if #policy.layers == 1 and rule.layer == "default" then
        error(string.format("the invariant %s (%s:%d) of the default policy does not hold: %s", rule.id, rule.file, rule.line,
                            list[#list].message), 0)
      end
    end
  end
  return list
end

-- Does an invariant read what takes more than a candidate's row to tell?
local function reads_more(policy)
  for _, rule in ipairs(policy.invariants) do
    if rule.when then return true end
    for _, condition in ipairs(rule.conditions) do
      for _, name in ipairs(conditions.fields(condition)) do
        local field = vocabulary.by_name[name]
        if name ~= "status" and field and (field.scope == "plan" or name:find "^pipeline_avoidable") then return true end
      end
    end
  end
  return false
end

-- What guard.broken would say of the plan that a candidate's row would be. Those of the default policy alone hold of every plan.
function guard.of_row(set, row)
  local policy, context = set.policy, set.context
  if #policy.layers == 1 then return {} end
  set.c:simulate(row)
  local choice, finished = context.arguments.choices[set.c:choice(row)], nil
  if reads_more(policy) then
    candidates.find_alone(set)
    local evaluation, alone = set.c:evaluate(row), context.fixed.pipeline ~= 1 and candidates.alone(set)
    finished = { evaluation = evaluation, host = host.of(context.request, choice.training, evaluation),
                 avoidable = alone and set.c:row(alone) or nil }
  end
  local fields = set.c:row(row)
  local record = records.of("planned", lists.with(context.record, choice.values), fields, finished)
  local plan = { schedule = fields.schedule, parallelism = measure.parallelism_of_fields(fields),
                 microbatches = measure.microbatches(fields) }
  return guard.broken(plan, policy, record)
end

-- The same where nobody asked for that row; nil where one of them fails there, which the plan tells (attempt.try).
function guard.forbids(set, row)
  if #set.policy.layers == 1 then return {} end
  local good, broken = attempt.try(set.policy, guard.of_row, set, row)
  return good and broken or nil
end

-- Is it sure that no invariant forbids the plan that a row would be?
function guard.allows(set, row)
  local broken = guard.forbids(set, row)
  return broken ~= nil and #broken == 0
end

-- Of what choose.choose compares a plan with (entries with `set` and `row`) leaves what the invariants allow; an alternative that only
-- they forbid says so among its reasons.
function guard.leave_out(result)
  local function kept(entry) return guard.allows(entry.set, entry.row) and entry or nil end
  local function kept_of(list)
    local out = {}
    for _, entry in ipairs(list) do out[#out + 1] = kept(entry) end
    return out
  end
  for _, other in ipairs(result.alternatives) do
    local open = other.fields and other.fields.step_seconds
    for _, reason in ipairs(other.why_not) do open = open and (reason.kind == "framework" or reason.kind == "rank") end
    local broken = open and guard.forbids(other.set, other.row) or {}
    table.move(broken, 1, #broken, #other.why_not + 1, other.why_not)
  end
  result.dominated_by = kept_of(result.dominated_by)
  result.runner_up = result.runner_up and kept(result.runner_up)
  result.avoidable = result.avoidable and kept(result.avoidable)
  local frontier = result.frontier
  result.frontier = function() return kept_of(frontier()) end
end

-- What must hold of every plan.
function guard.check(plan)
  local p, sum = plan.parallelism, 0
  for _, layers in ipairs(plan.layers_per_stage) do sum = sum + layers end
  local problem
  if p.data * p.tensor * p.context * p.pipeline ~= plan.gpus_used then problem = "the layout does not use its GPUs"
  elseif plan.microbatches * p.data * plan.micro_batch_size ~= plan.global_batch_size then
    problem = "M × DP × microbatch size is not the batch"
  elseif sum ~= plan.model.layers then problem = "the stages hold " .. sum .. " layers"
  elseif not (plan.bubble.fraction >= 0 and plan.bubble.fraction < 1) then problem = "the bubble is " .. plan.bubble.fraction
  elseif plan.step_seconds <= 0 then problem = "the step takes " .. plan.step_seconds .. " s" end
  if problem then error("a built-in invariant does not hold for this plan: " .. problem, 0) end
end

return guard
