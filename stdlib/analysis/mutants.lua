-- SPDX-License-Identifier: Apache-2.0
--[[
mutants.lua: small wrong versions of a policy: what a slip of the hand would make of it. Tests that pass for a mutant do not look at what it
changes.

  mutants.of(policy [, everything]) → { { id, kind, file, line, text, apply, before, after }, … }
    id        stable while the rule keeps its id: "row small_run: gpus under 100 → at most 100"
    apply     function(policy): makes a freshly loaded policy the mutant; false when the policy has no such rule
    before, after  the rule as it is and as it becomes (nil: deleted), for who looks for a spec that tells them apart
  text_before, rewrite  in place of apply: the text of a file, the policy's or one that it requires, and function() → what it becomes
  other          the rule that it was swapped with;  parameter, value  the parameter's id and what it becomes

Of a policy with layers over the default those rules are changed that the layers state or change; otherwise the default's, but not its
invariants: they hold for every plan of the default policy, so no test can look at one. What holds for the same values that a field can have
is no mutant: "at most 1" for "= 1" stage.
Kinds: bound (a limit moved by one, or by a tenth; open made closed), negate, drop (a condition), delete (a rule), swap (with the next of
its list), list (of a row: without its first name, first two swapped),
function (a comparison or a number in it), parameter (moved by one or by a tenth).
]]

local conditions = require "pipeplan.policy.conditions"
local field_range = require "pipeplan.analysis.field_range"
local function_mutants = require "pipeplan.analysis.function_mutants"
local statements = require "pipeplan.policy.statements"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"
local with = require("pipeplan.base.lists").with

local mutants = {}

local TENTH = 1.1

local lists = { row = "rows", reject = "rejects", refuse = "refuses", prefer = "prefers", kernel = "kernels", warn = "warns",
                invariant = "invariants" }
local verbs = { "row", "reject", "refuse", "prefer", "kernel", "warn", "invariant" }
local ordered = { row = true, prefer = true, kernel = true, refuse = true }

-- ------------------------------------------------------------------------------------------------------------------------- applying

-- The rule of another load of the same policy; tests may name its file by another path.
local function same_rule(policy, rule)
  local found = policy.rules[rule.id]
  local same = found and found.verb == rule.verb and found.line == rule.line and found.file:match "[^/]*$" == rule.file:match "[^/]*$"
  return same and found or nil
end

local function with_conditions(rule, list)
  return function(policy)
    local target = same_rule(policy, rule)
    if not target then return false end
    target.conditions = {}
    for i, condition in ipairs(list) do target.conditions[i] = with(condition) end
    target.phase = statements.phase(target)
    return true
  end
end

local function remove(list, entry)
  for i, other in ipairs(list) do
    if other == entry then return table.remove(list, i) end
  end
end

local function without(rule)
  return function(policy)
    local target = same_rule(policy, rule)
    if not target then return false end
    policy.rules[rule.id] = nil
    remove(policy[lists[rule.verb]], target)
    return true
  end
end

local function swapped(rule, other)
  return function(policy)
    local first, second = same_rule(policy, rule), same_rule(policy, other)
    if not first or not second then return false end
    local list = policy[lists[rule.verb]]
    for i = 1, #list do
      if list[i] == first then list[i] = second elseif list[i] == second then list[i] = first end
    end
    return true
  end
end

local function with_try(rule, try)
  return function(policy)
    local target = same_rule(policy, rule)
    if not target then return false end
    target.try = table.move(try, 1, #try, 1, {})
    return true
  end
end

local function with_parameter(id, was, value)
  return function(policy)
    local parameter = policy.parameters[id]
    if not parameter or parameter.value ~= was then return false end  -- a test that sets another value tests another policy
    parameter.value = value
    for _, rule in pairs(policy.rules) do
      for _, condition in ipairs(rule.conditions) do conditions.resolve(condition, policy.parameters) end
      if rule.within_ref == id then rule.within = value end
    end
    return true
  end
end

-- ------------------------------------------------------------------------------------------------------------------------ generating

local negated = {
  under = "at_least", at_least = "under", at_most = "over", over = "at_most", one_of = "none_of", none_of = "one_of", odd = "even",
  even = "odd", multiple_of = "not_multiple_of", not_multiple_of = "multiple_of",
}

-- A condition that says the opposite, or nil.
local function negation(condition)
  local field = vocabulary.by_name[condition.field]
  if condition.op == "equal" and condition.ref == nil then
    if field.type == "boolean" then return with(condition, { value = not condition.value }) end
    return { field = condition.field, op = "none_of", values = { condition.value } }
  end
  local op = negated[condition.op]
  return op and with(condition, { op = op })
end

local open = { under = "at_most", at_most = "under", over = "at_least", at_least = "over" }

-- As conditions.text, but with every digit: what names a mutant must tell it from its neighbours.
local function exact(condition)
  local plain = with(condition)
  for _, key in ipairs { "value", "low", "high" } do
    local value = plain[key]
    if type(value) == "number" then plain[key] = string.format(math.type(value) == "integer" and "%d" or "%.6g", value) end
  end
  return conditions.text(plain)
end

-- A number one step away: the next integer, or a tenth more or less.
local function steps(value, integer)
  if integer then return { value - 1, value + 1 } end
  return { value / TENTH, value * TENTH }
end

-- The condition with its limits moved, one at a time. Limits that are parameters are moved with the parameter.
local function moved(condition)
  local field, out = vocabulary.by_name[condition.field], {}
  if field.type ~= "integer" and field.type ~= "number" then return out end
  if condition.op == "one_of" and #condition.values == 2 then  -- the ends of a range, of which only the ends are said
    local low, high = math.min(table.unpack(condition.values)), math.max(table.unpack(condition.values))
    if high - low > 1 then out[1] = { field = condition.field, op = "between", low = low, high = high } end
  end
  if condition.values then return out end
  local integer = field.type == "integer"
  if condition.op == "equal" and not condition.ref then  -- a limit, where one value is meant
    for _, op in ipairs { "at_least", "at_most" } do out[#out + 1] = with(condition, { op = op }) end
  end
  if open[condition.op] and not integer then out[1] = with(condition, { op = open[condition.op] }) end
  for _, side in ipairs { { "value", "ref" }, { "low", "low_ref" }, { "high", "high_ref" } } do
    local value = condition[side[1]]
    if type(value) == "number" and not condition[side[2]] and (integer or value ~= 0) then  -- a tenth of nothing is nothing
      for _, other in ipairs(steps(value, integer)) do out[#out + 1] = with(condition, { [side[1]] = other }) end
    end
  end
  return out
end

local function replaced(rule, i, condition)
  local list = {}
  for j, other in ipairs(rule.conditions) do
    if j ~= i then list[#list + 1] = other elseif condition then list[#list + 1] = condition end
  end
  return list
end

local function add(out, rule, kind, text, apply, after)
  out[#out + 1] = { id = string.format("%s %s: %s", rule.verb, rule.id, text), kind = kind, file = rule.file, line = rule.line,
                    text = text, apply = apply, before = rule, after = after }
end

local function of_conditions(out, rule)
  for i, condition in ipairs(rule.conditions) do
    local function change(kind, text, new)
      local list = replaced(rule, i, new)
      add(out, rule, kind, text, with_conditions(rule, list), with(rule, { conditions = list }))
    end
    local was = exact(condition)
    for _, other in ipairs(moved(condition)) do
      if not field_range.same(condition, other) then change("bound", was .. " → " .. exact(other), other) end
    end
    local opposite = negation(condition)
    if opposite and not field_range.same(condition, opposite) then change("negate", was .. " → " .. exact(opposite), opposite) end
    -- An invariant is asked of planned results only: that one is planned says nothing there.
    if rule.verb ~= "invariant" or condition.field ~= "status" then change("drop", "without " .. was, nil) end
  end
end

local function of_list(out, rule)
  if rule.verb ~= "row" or #rule.try < 2 then return end
  local shorter = table.move(rule.try, 2, #rule.try, 1, {})
  add(out, rule, "list", "tries without " .. rule.try[1], with_try(rule, shorter), with(rule, { try = shorter }))
  local turned = table.move(rule.try, 1, #rule.try, 1, {})
  turned[1], turned[2] = turned[2], turned[1]
  add(out, rule, "list", string.format("tries %s before %s", turned[1], turned[2]), with_try(rule, turned), with(rule, { try = turned }))
end

-- A function is wrong in its text: the mutant is made when its file is loaded.
local function of_function(out, rule, policy)
  for _, mutant in ipairs(function_mutants.of(rule, policy)) do
    add(out, rule, "function", mutant.text, nil, rule)
    local last = out[#out]
    last.text_before, last.rewrite = mutant.text_before, mutant.rewrite
    if rule.lines.file ~= rule.file then last.file, last.line = rule.lines.file, rule.lines.first end
  end
end

-- What rules' functions call, in the files of a layer and in those that they require.
local function of_file(out, path, policy)
  for _, mutant in ipairs(policy.texts[path] and function_mutants.beside(path, policy) or {}) do
    out[#out + 1] = { id = string.format("function %s: %s", mutant.name, mutant.text), kind = "function", file = path, line = mutant.line,
                      text = mutant.text, text_before = mutant.text_before, rewrite = mutant.rewrite }
  end
end

local function of_parameter(out, parameter)
  local function move(value)
    if value < parameter.low or value > parameter.high then return end
    local text = string.format("%s → %s", units.format(parameter.value, parameter.unit), units.format(value, parameter.unit))
    out[#out + 1] = { id = string.format("parameter %s: %s", parameter.id, text), kind = "parameter", text = text, file = parameter.file,
                      line = parameter.line, apply = with_parameter(parameter.id, parameter.value, value), parameter = parameter.id,
                      value = value }
  end
  if type(parameter.value) ~= "number" then return end
  -- A count that stands for a large quantity ("16Mi" tokens) moves by a tenth: nobody miscounts it by one.
  local small = math.type(parameter.value) == "integer" and parameter.value < 10000
  for _, value in ipairs(steps(parameter.value, small)) do
    move(math.type(parameter.value) == "integer" and math.floor(value + 0.5) or value)
  end
end

-- Is a rule or parameter the business of who mutates this policy?
local function concerns(entry, alone)
  if alone or entry.layer ~= "default" then return true end
  for _, hidden in ipairs(entry.hides) do
    if hidden.layer then return true end
  end
  return false
end

-- everything: of a policy with layers too, all rules.
function mutants.of(policy, everything)
  local out, alone = {}, everything or #policy.layers == 1
  for _, verb in ipairs(verbs) do
    local list = policy[lists[verb]]
    for i, rule in ipairs(list) do
      if concerns(rule, alone and verb ~= "invariant") then
        of_conditions(out, rule)
        of_list(out, rule)
        of_function(out, rule, policy)
        add(out, rule, "delete", "deleted", without(rule), nil)
        local next_rule = ordered[verb] and list[i + 1]
        if next_rule then
          add(out, rule, "swap", "after " .. next_rule.id, swapped(rule, next_rule), rule)
          out[#out].other = next_rule
        end
      end
    end
  end
  for _, layer in ipairs(policy.layers) do
    for _, path in ipairs((alone or layer.name ~= "default") and layer.files or {}) do of_file(out, path, policy) end
  end
  for _, id in ipairs(policy.parameter_order) do
    local parameter = policy.parameters[id]
    if concerns(parameter, alone) then of_parameter(out, parameter) end
  end
  return out
end

return mutants
