-- SPDX-License-Identifier: Apache-2.0
--[[
plausible.lua: what is written in a rule or parameter and is probably a slip of the hand, although it has a meaning: a bare number where a
unit was forgotten, bytes for bits, `=` where a limit is meant, a parameter that loosens the other way, a misspelt name in a function.

  plausible.check(policy, rules, add): add(code, at, message, …) takes each finding
]]

local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local function_comparisons = require "pipeplan.analysis.function_comparisons"
local loosening = require "pipeplan.policy.loosening"
local ordinary = require "pipeplan.analysis.ordinary"
local renamed = require "pipeplan.policy.renamed"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local plausible = {}

-- The least that a quantity of a cluster's or run's size can be: under it a unit or a prefix was forgotten.
local least_of_unit = { byte = 1 << 30, ["byte/s"] = 1e8 }   -- 1 GiB; 0.8 Gb/s
local least_of_field = { tokens = 1e6, total_parameters = 1e6, active_parameters = 1e6 }
local prefix = { byte = "GiB", ["byte/s"] = "Gbps", token = "B", ["1"] = "B" }

-- Network cards of one GPU carry 1.6 Tb/s at most (catalog/links.lua); more is bytes written for bits.
local MOST_NETWORK = 200e9

-- Beyond these a number was written in another unit than the field's: { most or least, what it says }.
local odd = {
  training_days = { most = 3650, words = "that is more than ten years; a limit in hours is gpu_hours" },
  step_seconds = { most = 3600, words = "that is more than an hour for one step: milliseconds?" },
  sequence_length = { least = 128, words = "%.6g tokens; with its prefix it is \"%.6gKi\"" },
  global_batch_size = { most = 262144, words = "a batch is counted in sequences here, not in tokens" },
}

local function of_number(value, unit, field)
  local limit = odd[field or ""]
  if limit and (value > (limit.most or math.huge) or value > 1 and value <= (limit.least or 0)) then
    return string.format(limit.words, value, value)
  end
  local least = least_of_field[field or ""] or least_of_unit[unit or ""]
  if least and value > 0 and value < least then
    local words = { byte = " bytes", ["byte/s"] = " bytes per second", token = " tokens" }
    return string.format("%.6g is %.6g%s; with its unit it is \"%.6g%s\"", value, value, words[unit] or "", value, prefix[unit] or "")
  end
  if unit == "byte/s" and value > MOST_NETWORK and (not field or field == "network_per_gpu") then
    return string.format("%.6g GB/s is %.6g Gb/s, more than network cards of a GPU carry; %.6g Gb/s is \"%.6gGbps\"", value / 1e9,
                         value * 8 / 1e9, value / 1e9, value / 1e9)
  end
  return nil
end

-- The numbers that stand in a condition itself, not those of parameters.
local function literals(condition)
  local list = {}
  for _, side in ipairs { { "value", "ref" }, { "low", "low_ref" }, { "high", "high_ref" } } do
    local value = condition[side[1]]
    if type(value) == "number" and not condition[side[2]] then list[#list + 1] = value end
  end
  for _, value in ipairs(condition.values or {}) do
    if type(value) == "number" then list[#list + 1] = value end
  end
  return list
end

local LARGE = 100000  -- counts that nobody writes to the last digit

local function check_condition(rule, condition, add)
  local field = vocabulary.by_name[condition.field]
  for _, value in ipairs(literals(condition)) do
    local words = of_number(value, field.unit, field.name)
    if words then add("implausible", rule, "%s '%s': %s: %s", rule.verb, rule.id, conditions.text(condition), words) end
    local exact = condition.op == "equal" or condition.op == "one_of"
    if exact and value ~= 0 and (field.type == "number" or value >= LARGE) then
      add("exact", rule, "%s '%s': %s holds for exactly that value, for nothing near it: write over, at_least, under, at_most or between",
          rule.verb, rule.id, conditions.text(condition))
      return
    end
  end
end

-- The direction of a parameter in which a rule that keeps plans away holds for fewer.
local narrower = { over = "up", at_least = "up", under = "down", at_most = "down" }

local function check_directions(policy, rules, add)
  for _, id in ipairs(policy.parameter_order) do
    local parameter = policy.parameters[id]
    for _, rule in ipairs(rules) do
      for _, condition in ipairs(loosening.guards[rule.verb] and rule.conditions or {}) do
        local way = condition.ref == id and narrower[condition.op]
        if way and parameter.loosens ~= way and rule.layer ~= "default" then
          add("direction", parameter, "parameter '%s': it loosens %s, as %s '%s' (%s:%d) has it; loosens = \"%s\" hides that", id, way,
              rule.verb, rule.id, rule.file, rule.line, parameter.loosens)
        end
      end
    end
  end
end

-- Names in the text of a function that are neither a field nor a parameter.
local function check_function(policy, rule, add)
  local text, lines = policy.texts[rule.lines and rule.lines.file or ""], {}
  if not text then return end
  local number = 0
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    number = number + 1
    if number >= rule.lines.first and number <= rule.lines.last then lines[#lines + 1] = (line:gsub("%-%-.*", "")) end
  end
  local body = table.concat(lines, "\n")
  local argument = body:match "when%s*=%s*function%s*%(%s*([%a_][%w_]*)"
  for name in argument and body:gmatch("%f[%w_]" .. argument .. "%s*%.%s*([%a_][%w_]*)") or function() end do
    local current = renamed.name(name)
    if not vocabulary.by_name[current] and not policy.parameters[current] then
      add("unknown_name", rule, "%s '%s': its function reads '%s.%s', and there is no such field or parameter%s", rule.verb, rule.id,
          argument, name, failure.suggestion(name, policy.names))
    end
  end
end

-- What a function compares, as if it were written as conditions; and what could be none.
local function check_comparisons(policy, rule, add)
  local list, _, problems = function_comparisons.of(rule, policy)
  for _, condition in ipairs(list) do check_condition(rule, condition, add) end
  for _, problem in ipairs(problems) do
    add("implausible", rule, "%s '%s': its function compares %s with what it never is: %s", rule.verb, rule.id, problem.field,
        problem.message)
  end
end

-- Of a function that is no condition what it says of ordinary candidates.
local function check_answers(policy, rule, add)
  local asked = ordinary.asked(rule, policy)
  if asked.message then
    add("function_fails", rule, "%s '%s': its function fails for an ordinary candidate: %s", rule.verb, rule.id, asked.message)
  elseif asked.yes > 0 and asked.no == 0 and loosening.guards[rule.verb] then
    add("function_constant", rule, "%s '%s': its function says yes to all of %d ordinary candidates", rule.verb, rule.id, asked.yes)
  end
end

-- Are two names the same but for a letter too many, one too few, or two that changed places?
local function slips(a, b)
  if #a > #b then a, b = b, a end
  local i = 1
  while i <= #a and a:byte(i) == b:byte(i) do i = i + 1 end
  if #b == #a + 1 then return #a >= 4 and b:byte(i) ~= nil and not b:sub(i, i):find "%d" and a:sub(i) == b:sub(i + 1) end
  return #a == #b and #a >= 3 and a:sub(i, i) == b:sub(i + 1, i + 1) and a:sub(i + 1, i + 1) == b:sub(i, i) and i < #a
         and a:sub(i + 2) == b:sub(i + 2) and not a:sub(i, i + 1):find "%d"
end

-- Names that no list closes: labels, teams, runs. One that another rule writes a little differently is a slip in one of the two.
local function check_open_names(rules, add)
  local seen = {}
  local function meet(rule, kind, name)
    for _, other in ipairs(seen[kind] or {}) do
      if other.name == name then return end
      if slips(other.name, name) then
        add("unknown_name", rule, "%s '%s': the %s '%s' is '%s' in '%s' (%s:%d)", rule.verb, rule.id, kind, name, other.name, other.rule.id,
            other.rule.file, other.rule.line)
      end
    end
    seen[kind] = seen[kind] or {}
    table.insert(seen[kind], { name = name, rule = rule })
  end
  for _, rule in ipairs(rules) do
    for _, condition in ipairs(rule.conditions) do
      local field = vocabulary.by_name[condition.field]
      local label = vocabulary.label(condition.field)
      if label then meet(rule, "label", condition.field:sub(#vocabulary.label_prefix + 1)) end
      local open = field.type == "string" and not field.domain and not condition.ref
      for _, value in ipairs(open and (condition.values or { condition.value }) or {}) do
        if type(value) == "string" then meet(rule, field.name, value) end
      end
    end
  end
end

function plausible.check(policy, rules, add)
  for _, rule in ipairs(rules) do
    for _, condition in ipairs(rule.conditions) do check_condition(rule, condition, add) end
    if rule.when then
      check_function(policy, rule, add)
      check_comparisons(policy, rule, add)
      check_answers(policy, rule, add)
    end
  end
  check_open_names(rules, add)
  for _, id in ipairs(policy.parameter_order) do
    local parameter = policy.parameters[id]
    local words = type(parameter.value) == "number" and units.range(parameter.unit) and of_number(parameter.value, parameter.unit)
    if words then add("implausible", parameter, "%s: %s", id, words) end
  end
  check_directions(policy, rules, add)
end

return plausible
