--[[
plausible.lua: what is written in a rule or parameter and is probably a slip of the hand, although it has a meaning: a bare number where a
unit was forgotten, bytes for bits, `=` where a limit is meant, a parameter that loosens the other way, a misspelt name in a function.

  plausible.check(policy, rules, add): add(code, at, message, …) takes each finding
]]

local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local loosening = require "pipeplan.policy.loosening"
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

local function of_number(value, unit, field)
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

function plausible.check(policy, rules, add)
  for _, rule in ipairs(rules) do
    for _, condition in ipairs(rule.conditions) do check_condition(rule, condition, add) end
    if rule.when then check_function(policy, rule, add) end
  end
  for _, id in ipairs(policy.parameter_order) do
    local parameter = policy.parameters[id]
    local words = type(parameter.value) == "number" and units.range(parameter.unit) and of_number(parameter.value, parameter.unit)
    if words then add("implausible", parameter, "%s: %s", id, words) end
  end
  check_directions(policy, rules, add)
end

return plausible
