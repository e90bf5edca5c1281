-- SPDX-License-Identifier: Apache-2.0
--[[
coverage.lua: how much of a policy its tests look at. Every plan that a test makes is seen (runner.lua); what counts is
  row        it decided a plan
  reason     a reject or refusal was a reason of a plan or verdict
  warning    a warning was on a plan
  choice     a preference held for the plan that was chosen; a kernel statement chose the kernel
  boundary   a numeric condition was tried on both sides of its bound, and no farther from it than one (of a whole number below 10,000) or
             a tenth; of a degree than the next power of two, which is what a spec can reach; at any distance from 0. So are the
             comparisons of a rule's function (function_comparisons.lua), of which those with a name have to hold and not to hold
  answer     a rule's function said yes to one plan, and no to another

  local seen = coverage.new()
  seen:add(plan, record, result, policy)
  seen:items() → { { kind, id, text, file, line, layer, covered }, … }, of the layers above the default where there are any
]]

local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local field_range = require "pipeplan.analysis.field_range"
local function_comparisons = require "pipeplan.analysis.function_comparisons"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local coverage = {}

local methods = {}
methods.__index = methods

function coverage.new()
  return setmetatable({ policies = {}, order = {}, seen = {}, near = {}, compared = {} }, methods)
end

-- The same rule in several policies of one test run is one rule.
local function key_of(rule)
  return rule.file .. ":" .. rule.line .. ":" .. rule.id
end

local lists = { "rows", "rejects", "refuses", "prefers", "kernels", "warns" }
local kind_of = { row = "row", reject = "reason", refuse = "reason", warn = "warning", prefer = "choice", kernel = "choice" }

-- The numbers of a condition on whose two sides the field can be.
local bounds_found = setmetatable({}, { __mode = "k" })
local function bounds_of(condition)
  if bounds_found[condition] then return bounds_found[condition] end
  local field, list = vocabulary.by_name[condition.field], {}
  bounds_found[condition] = list
  if field.type ~= "integer" and field.type ~= "number" or condition.values then return list end
  for _, side in ipairs { { "value", "ref" }, { "low", "low_ref" }, { "high", "high_ref" } } do
    local value = condition[side[1]]
    if type(value) == "number" and condition.op ~= "multiple_of" and condition.op ~= "not_multiple_of" and condition.op ~= "equal"
       and field_range.splits(condition, value) then
      list[#list + 1] = value
    end
  end
  return list
end

-- As far as mutants move a bound (mutants.lua).
local function is_near(condition, value, bound)
  local field = condition.field
  if vocabulary.by_name[field].unit == "rank" and bound > 0 then
    -- the next power of two on the side that does not have the bound itself
    local above = condition.op == "over" or condition.op == "at_most" or condition.op == "between" and bound == condition.high
    if above and value > bound and value <= 2 * bound then return true end
    if not above and value < bound and 2 * value >= bound then return true end
  end
  if vocabulary.by_name[field].type == "integer" and bound < 10000 then return math.abs(value - bound) <= 1 end
  return bound == 0 or math.abs(value - bound) <= 0.1 * math.abs(bound)
end

-- A rule's conditions, and behind them what its function compares.
function methods:tried(rule, policy)
  if not rule.when then return rule.conditions end
  local key = key_of(rule)
  if not self.compared[key] then
    local list = function_comparisons.of(rule, policy)
    self.compared[key] = table.move(list, 1, #list, #rule.conditions + 1, { table.unpack(rule.conditions) })
  end
  return self.compared[key]
end

local function note(sides, yes)
  sides = sides or {}
  sides[yes and "yes" or "no"] = true
  return sides
end

-- A comparison of a function with a name, or for equality: it has no side that is near.
local function is_equality(condition)
  return condition.op == "equal" or condition.op == "none_of" or condition.op == "one_of"
end

-- What a function says of a plan for which the rule's conditions hold.
function methods:try_function(rule, policy, record)
  local key = key_of(rule) .. ":when"
  if not engine.conditions.match(record, conditions.engine(rule)) then return end
  local good, yes = failure.try(conditions.holds, rule, policy, record)
  if good then self.near[key] = note(self.near[key], yes) end
end

-- A record tries each numeric condition at its field's value.
function methods:try_bounds(rule, record, policy)
  if rule.when then self:try_function(rule, policy, record) end
  for i, condition in ipairs(self:tried(rule, policy)) do
    if i > #rule.conditions and is_equality(condition) then
      local key = string.format("%s:%d:1", key_of(rule), i)
      self.near[key] = note(self.near[key], engine.conditions.match(record, conditions.engine { conditions = { condition } }))
    end
    local value = record[condition.field]
    for j, bound in ipairs(type(value) == "number" and bounds_of(condition) or {}) do
      if is_near(condition, value, bound) then
        local key = string.format("%s:%d:%d", key_of(rule), i, j)
        self.near[key] = note(self.near[key], engine.conditions.match(record, conditions.engine { conditions = { condition } }))
      end
    end
  end
end

-- Of a plan: ids of the rules that had a say in it.
local function said(plan, record, result, policy)
  local ids = {}
  for _, reason in ipairs(plan.reasons) do ids[reason.id] = true end
  for _, warning in ipairs(plan.warnings) do ids[warning.id] = true end
  if result.decision then ids[result.decision] = true end
  if result.kernel and result.kernel.id then ids[result.kernel.id] = true end
  for _, rule in ipairs(policy.prefers) do
    if plan.status == "planned" and conditions.holds(rule, policy, record) then ids[rule.id] = true end
  end
  return ids
end

function methods:add(plan, record, result, policy)
  if not self.policies[policy] then
    self.policies[policy] = true
    self.order[#self.order + 1] = policy
  end
  local ids = said(plan, record, result, policy)
  for _, name in ipairs(lists) do
    for _, rule in ipairs(policy[name]) do
      if ids[rule.id] then self.seen[key_of(rule)] = true end
      self:try_bounds(rule, record, policy)
    end
  end
end

-- Is that the default policy, whatever of its parameters is set?
local function is_default(policy)
  for _, layer in ipairs(policy.layers) do
    if layer.name ~= "default" and #layer.files > 0 then return false end
  end
  return true
end

-- Does a condition name a parameter that a layer sets?
local function is_set(condition, policy)
  for _, key in ipairs { "ref", "low_ref", "high_ref" } do
    local parameter = policy.parameters[condition[key] or ""]
    if parameter and parameter.layer ~= "default" and parameter.layer ~= "--set" then return true end
  end
  return false
end

-- What a site's tests answer for: its own rules, and the default's that it changes. Where only the default is tested: all of them.
-- Of others, the rules and limits whose parameter it sets.
local function counts(rule, default_alone)
  if default_alone or rule.layer ~= "default" then return true end
  for _, hidden in ipairs(rule.hides) do
    if hidden.layer then return true end
  end
  return false
end

local function add_item(out, known, item, key)
  if known[key] then return end
  known[key] = true
  out[#out + 1] = item
end

local function rule_item(rule, key, seen)
  return { kind = kind_of[rule.verb], id = rule.id, text = rule.verb .. " '" .. rule.id .. "'", file = rule.file, line = rule.line,
           layer = rule.layer, covered = seen[key] or false }
end

local function boundary_item(rule, condition, bound, several, sides)
  local text = string.format("%s '%s': %s", rule.verb, rule.id, conditions.text(condition))
  if several then text = text .. ", at " .. units.format(bound, vocabulary.by_name[condition.field].unit) end
  return { kind = "boundary", id = rule.id, text = text, file = rule.file, line = rule.line, layer = rule.layer,
           covered = sides.yes and sides.no or false }
end

local function answer_item(rule, sides)
  return { kind = "answer", id = rule.id, text = string.format("the function of %s '%s'", rule.verb, rule.id),
           file = rule.file, line = rule.line, layer = rule.layer, covered = sides.yes and sides.no or false }
end

-- The items of one rule: all of a rule that counts as a whole, of others those about a parameter that a layer sets.
function methods:items_of(out, known, rule, policy, whole)
  local key = key_of(rule)
  for i, condition in ipairs(self:tried(rule, policy)) do
    if whole or is_set(condition, policy) then
      add_item(out, known, rule_item(rule, key, self.seen), key)
      local bounds = { table.unpack(bounds_of(condition)) }
      if i > #rule.conditions and is_equality(condition) then bounds[1] = condition.value or condition.values[1] end
      for j, bound in ipairs(bounds) do
        local bound_key = string.format("%s:%d:%d", key, i, j)
        add_item(out, known, boundary_item(rule, condition, bound, #bounds > 1, self.near[bound_key] or {}), bound_key)
      end
    end
  end
  if whole then add_item(out, known, rule_item(rule, key, self.seen), key) end
  if whole and rule.when then add_item(out, known, answer_item(rule, self.near[key .. ":when"] or {}), key .. ":when") end
end

function methods:items()
  local out, known, default_alone = {}, {}, true
  for _, policy in ipairs(self.order) do default_alone = default_alone and is_default(policy) end
  for _, policy in ipairs(self.order) do
    for _, name in ipairs(lists) do
      for _, rule in ipairs(policy[name]) do self:items_of(out, known, rule, policy, counts(rule, default_alone)) end
    end
  end
  return out
end

coverage.kinds = { "row", "reason", "warning", "choice", "boundary", "answer" }

-- Items covered and all, of a kind or of all kinds.
function coverage.count(items, kind)
  local covered, all = 0, 0
  for _, item in ipairs(items) do
    if not kind or item.kind == kind then
      all = all + 1
      if item.covered then covered = covered + 1 end
    end
  end
  return covered, all
end

return coverage
