-- SPDX-License-Identifier: Apache-2.0
--[[
ineffective.lua: rules of a site that do their work on everything, or on nothing: what holds for nearly all ordinary candidates, what is
about a schedule that cannot be so, what recommends a schedule that may not be planned.

  ineffective.check(policy, rules, add): add(code, at, message, …) takes each finding
]]

local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local loosening = require "pipeplan.policy.loosening"
local ordinary = require "pipeplan.analysis.ordinary"
local statements = require "pipeplan.policy.statements"
local vocabulary = require "pipeplan.vocabulary"

local ineffective = {}

local function of_field(rule, name)
  for _, condition in ipairs(rule.conditions) do
    if condition.field == name then return condition end
  end
  return nil
end

-- The schedules that a rule's conditions name, or nil when they name none.
function ineffective.schedules(rule)
  local condition = of_field(rule, "schedule")
  if condition and condition.op == "equal" then return { condition.value } end
  return condition and condition.op == "one_of" and condition.values or nil
end

local NEARLY_ALL = 0.97

local what = {
  reject = "candidates, and leaves hardly anything to plan: which side is which?",
  refuse = "candidates, and leaves hardly anything to plan: which side is which?",
  invariant = "plans, and each of them would be rejected: an invariant says what no plan may be",
  warn = "candidates: what is said of nearly all tells nothing",
}

local function check_all(rule, add)
  if not what[rule.verb] or statements.recommends_schedule(rule) then return end
  local yes, all = ordinary.held(rule)
  if yes and all > 0 and yes >= NEARLY_ALL * all then
    add("holds_for_all", rule, "%s '%s' holds for %d of %d ordinary %s", rule.verb, rule.id, yes, all, what[rule.verb])
  end
end

-- The most V that can be configured of a schedule that is not interleaved: the chunks that it has anyway.
local function configured(schedule)
  return engine.schedule.traits(schedule).virtual
end

local function check_chunks(rule, add)
  local condition, names = of_field(rule, "virtual"), ineffective.schedules(rule)
  if not condition or not names or condition.ref and condition.value == nil or not loosening.guards[rule.verb] then return end
  local compiled = conditions.engine { conditions = { condition } }
  for _, name in ipairs(names) do
    local most = configured(name)
    if not most then return end
    for chunks = 1, most do
      if engine.conditions.match({ virtual = chunks }, compiled) then return end
    end
  end
  add("engine_drops", rule, "%s '%s': %s is not interleaved, so %s is dropped without it (engine.chunks)", rule.verb, rule.id,
      table.concat(names, " or "), conditions.text(condition))
end

local function check_recommended(policy, rule, add)
  local names = ineffective.schedules(rule)
  if rule.verb ~= "refuse" or not names or not rule.recommend or #(policy.members[rule.recommend] or { 1 }) > 0 then return end
  for _, name in ipairs(names) do
    if #policy.members[name] > 0 then
      add("recommends_nothing", rule, "refuse '%s' recommends %s, and the parameter schedules allows only %s", rule.id, rule.recommend,
          table.concat(policy.parameters.schedules.value, ", "))
      return
    end
  end
end

-- A refusal of pipelines in favour of none that says nothing of depth refuses what it recommends.
local function check_depth(rule, add)
  local without = rule.recommend == "data_parallel" or rule.recommend == "data_and_tensor_parallel"
  if rule.verb ~= "refuse" or not without or rule.when then return end
  for _, condition in ipairs(rule.conditions) do
    if vocabulary.by_name[condition.field].scope ~= "request" then return end
  end
  add("recommends_nothing", rule, "refuse '%s' recommends %s, and refuses that too: it says nothing of depth; pipeline_parallel = over(1)",
      rule.id, rule.recommend)
end

-- Is the rule one of the site's, in what it says itself or in what a site changed?
local function of_site(policy, rule)
  if #policy.layers == 1 or rule.layer ~= "default" then return #policy.layers > 1 end
  for name in pairs(rule.origin) do
    if vocabulary.by_name[name] then return true end
  end
  return false
end

function ineffective.check(policy, rules, add)
  for _, rule in ipairs(rules) do
    if of_site(policy, rule) then
      if not rule.when then check_all(rule, add) end
      check_chunks(rule, add)
      check_recommended(policy, rule, add)
      check_depth(rule, add)
    end
  end
end

return ineffective
