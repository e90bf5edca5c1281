-- SPDX-License-Identifier: Apache-2.0
--[[
plausible.lua: what is written in a rule or parameter and is probably a slip of the hand, although it has a meaning: a bare number where a
unit was forgotten, bytes for bits, GiB for the GB in a card's name, `=` where a limit is meant, a parameter that loosens the other way, a
misspelt name in a function; what messages say beside their rules is messages.lua.

  plausible.check(policy, rules, add): add(code, at, message, …) takes each finding
]]

local accelerators = require "pipeplan.catalog.accelerators"
local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local function_comparisons = require "pipeplan.analysis.function_comparisons"
local loosening = require "pipeplan.policy.loosening"
local messages = require "pipeplan.analysis.messages"
local ordinary = require "pipeplan.analysis.ordinary"
local renamed = require "pipeplan.policy.renamed"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local plausible = {}

local BUDGETS = 3   -- of functions that ordinary candidates are asked by: where they took more no further one is asked

-- The least that a quantity of a cluster's or run's size can be: under it a unit or a prefix was forgotten.
local least_of_unit = { byte = 1 << 30, ["byte/s"] = 1e8 }   -- 1 GiB; 0.8 Gb/s
local least_of_field = { tokens = 1e6, total_parameters = 1e6, active_parameters = 1e6 }
local prefix = { byte = "GiB", ["byte/s"] = "Gbps", token = "B", ["1"] = "B" }

-- Network cards of one GPU carry 1.6 Tb/s at most (catalog/links.lua); more is bytes written for bits.
local MOST_NETWORK = 200e9

-- Beyond these a number was written in another unit than the field's: { most or least, what it says }.
local odd = {
  training_days = { most = 366, words = "that is more than a year; a limit in hours is gpu_hours" },
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
    local words = { byte = " bytes", ["byte/s"] = " bytes per second", token = " tokens", ["1"] = " in all" }
    return string.format("%.6g is %.6g%s; with its unit it is \"%.6g%s\"", value, value, words[unit] or "", value, prefix[unit] or "")
  end
  if unit == "byte/s" and value > MOST_NETWORK and (not field or field == "network_per_gpu") then
    return string.format("%.6g GB/s is %.6g Gb/s, more than network cards of a GPU carry; %.6g Gb/s is \"%.6gGbps\"", value / 1e9,
                         value * 8 / 1e9, value / 1e9, value / 1e9)
  end
  return nil
end

-- Parameters, likewise.
local odd_parameters = {
  memory_headroom = { least = 0.01, words = "that is next to nothing: what fragments or is not counted has no room" },
  idle_gpus = { most = 0.9, words = "that leaves hardly a GPU at work" },
  micro_batch_choices = { most = 64, words = "a microbatch is counted in sequences here, not in tokens" },
}

local function of_parameter(parameter)
  local limit = odd_parameters[parameter.id]
  for _, value in ipairs(limit and (type(parameter.value) == "table" and parameter.value or { parameter.value }) or {}) do
    if value > (limit.most or math.huge) or value > 0 and value < (limit.least or 0) then
      return units.format(value, type(parameter.value) == "number" and parameter.unit or "1") .. ": " .. limit.words
    end
  end
  return type(parameter.value) == "number" and units.range(parameter.unit) and of_number(parameter.value, parameter.unit)
end

local GIB, GB = 1 << 30, 1e9
local CARD = 0.97  -- of the gigabytes in its name a card has at least this, in GiB: "80 GB" are 79.6 to 80

-- Cards that are just beside a limit of memory: those that are called after it.
local function beside(condition)
  local value = condition.value
  if condition.field ~= "device_bytes" or type(value) ~= "number" then return nil end
  local whole = value % GIB == 0 and value // GIB or value % GB == 0 and value // GB
  local below = condition.op == "under" or condition.op == "at_least"
  local missed = {}
  for _, name in ipairs(whole and accelerators.names or {}) do
    local bytes = accelerators.find(name).memory_bytes
    local called = bytes <= whole * GIB and bytes >= CARD * whole * GIB
    if called and (below and bytes < value or not below and bytes > value) then missed[#missed + 1] = name end
  end
  if #missed == 0 or condition.op == "equal" then return nil end
  return string.format("%s has %s: cards that are called after %.0f GB lie on the other side; a limit between two kinds of cards is safe",
                       missed[1], units.format(accelerators.find(missed[1]).memory_bytes, "byte"), whole)
end

local LARGE = 100000  -- counts that nobody writes to the last digit

local function check_condition(rule, condition, add)
  local field = vocabulary.by_name[condition.field]
  local cards = beside(condition)
  if cards then add("implausible", rule, "%s '%s': %s: %s", rule.verb, rule.id, conditions.text(condition), cards) end
  for _, value in ipairs(conditions.numbers(condition, true)) do
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

local lower, upper = { over = true, at_least = true }, { under = true, at_most = true }

-- Is there no number of which both comparisons hold?
local function apart(one, other)
  if one.field ~= other.field or type(one.value) ~= "number" or type(other.value) ~= "number" then return false end
  if upper[one.op] then one, other = other, one end
  if not lower[one.op] or not upper[other.op] then return false end
  return one.value > other.value or one.value == other.value and not (one.op == "at_least" and other.op == "at_most")
end

-- What a function compares, as if it were written as conditions; and what could be none.
local function check_comparisons(policy, rule, add)
  local list, _, problems, all = function_comparisons.of(rule, policy)
  for _, condition in ipairs(list) do check_condition(rule, condition, add) end
  for i, condition in ipairs(all and list or {}) do
    for j = i + 1, #list do
      if apart(condition, list[j]) then
        add("impossible", rule, "%s '%s': its function says yes only where both %s and %s, which is never", rule.verb, rule.id,
            conditions.text(condition), conditions.text(list[j]))
      end
    end
  end
  for _, problem in ipairs(problems) do
    add("implausible", rule, "%s '%s': its function compares %s with %s", rule.verb, rule.id, problem.field,
        problem.message)
  end
end

-- Of a function that is no condition what it says of ordinary candidates → budgets that it took.
local function check_answers(policy, rule, add)
  local asked = ordinary.asked(rule, policy)
  if asked.message then
    add("function_fails", rule, "%s '%s': its function fails for an ordinary candidate: %s", rule.verb, rule.id, asked.message)
  elseif asked.yes > 0 and asked.no == 0 and loosening.guards[rule.verb] then
    add("function_constant", rule, "%s '%s': its function says yes to all of %d ordinary candidates", rule.verb, rule.id, asked.yes)
  end
  return asked.spent
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
        if type(value) == "string" then
          meet(rule, field.name, value)
          local many = value:match "[,;|*?]"
          if many then
            add("implausible", rule, "%s '%s': %s '%s' is one name, '%s' and all: several are { \"a\", \"b\" }, and there are no patterns",
                rule.verb, rule.id, field.name, value, many)
          end
        end
      end
    end
  end
end

-- ------------------------------------------------------------------------------------------------------------------------ tolerances

-- What is written as a number of its own and is over a quarter was meant in percent: a tolerance of 0.5 is half as slow again.
local MOST_TOLERANCE = 0.25
local tolerances = { wanted_tolerance = true, tie_fraction = true, split_tie_fraction = true, split_gain_fraction = true }

local function check_tolerance(at, title, value, bare, add)
  if not bare or type(value) ~= "number" or value <= MOST_TOLERANCE then return end
  add("implausible", at, "%s: %.6g is %s; %.6g %% is \"%.6g%%\", and where %s is meant, write \"%s\"", title, value,
      units.format(value, "fraction"), value, value, units.format(value, "fraction"), (units.format(value, "fraction"):gsub(" ", "")))
end

function plausible.check(policy, rules, add)
  local left = BUDGETS
  for _, rule in ipairs(rules) do
    for _, condition in ipairs(rule.conditions) do check_condition(rule, condition, add) end
    messages.check(rule, add)
    check_tolerance(rule, string.format("%s '%s': within", rule.verb, rule.id), rule.within, rule.within_bare, add)
    if rule.when then
      check_function(policy, rule, add)
      check_comparisons(policy, rule, add)
      if left > 0 then left = left - check_answers(policy, rule, add) end
    end
  end
  check_open_names(rules, add)
  for _, id in ipairs(policy.parameter_order) do
    local parameter = policy.parameters[id]
    local words = of_parameter(parameter)
    if words then add("implausible", parameter, "%s: %s", id, words) end
    if tolerances[id] then check_tolerance(parameter, id, parameter.value, parameter.bare, add) end
  end
  check_directions(policy, rules, add)
end

return plausible
