-- SPDX-License-Identifier: Apache-2.0
-- guard.lua: what no planned result may satisfy: the policy's invariants, which are an answer (the plan is rejected); and what must hold of
-- every plan, whatever the policy says, and is a bug where it does not.

local conditions = require "pipeplan.policy.conditions"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local message = require "pipeplan.policy.message"
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

-- The invariants of the policy that a planned result breaks, as reasons. One of the default policy, with no other layer over it, is ours to
-- hold.
function guard.broken(plan, policy, record)
  local loosened, list = {}, {}
  for _, entry in ipairs(plan.loosened) do loosened[entry.id] = true end
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
