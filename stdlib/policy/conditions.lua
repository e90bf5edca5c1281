-- SPDX-License-Identifier: Apache-2.0
-- conditions.lua: what stands behind a field in a rule. Reads a condition (types, units, names), shows it, evaluates it.
--
-- A condition is { field =, op =, … } with op one of
--   equal under at_most over at_least multiple_of not_multiple_of    value =, and ref = when that side is a name
--   between                                                           low =, high =, and low_ref =, high_ref =
--   one_of none_of                                                    values = { … }
--   odd even any                                                      (any only in `change`, where it takes a condition away)
-- A ref is the name of a parameter or a field. After `resolve` a parameter's value stands beside its name.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local functions = require "pipeplan.policy.functions"
local lists = require "pipeplan.base.lists"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local conditions = {}

local tag, bare = engine.host.tag, engine.host.bare

-- Position of a field in the vocabulary: the order in which a rule's conditions are shown and tried.
local position = {}
for i, field in ipairs(vocabulary.fields) do position[field.name] = i end

-- Quantities that may be compared with each other although their units have different names: all of them count things.
local counts = { gpu = "count", rank = "count", sequence = "count", step = "count", token = "count", ["1"] = "count" }
local function kind_of(unit)
  return counts[unit] or unit
end

local function is_numeric(field)
  return field.type == "integer" or field.type == "number"
end

-- The names of schedules and families that a policy may use.
local function domain_of(field)
  if field.name == "schedule" or field.name == "schedule_family" then return field.domain end
  return field.type == "string" and field.domain or nil
end

-- A value as a message shows it: without addresses, for a policy gets the same message in every run.
function conditions.shown(value)
  local kind = type(value)
  if kind == "string" or kind == "number" or kind == "boolean" or kind == "nil" then return tostring(value) end
  if bare[value] or (kind == "table" and value[tag]) then return "a condition" end
  return kind == "table" and "a table" or "a " .. kind
end
local shown = conditions.shown

local article = { integer = "an integer", number = "a number", boolean = "yes or no", string = "a name", table = "a list" }

-- Values that are words of Lua or of policies, and have no quotes.
local unquoted = { ["true"] = true, ["false"] = true, odd = true, even = true, any = true }

-- A literal for that field: value | nil, message.
local function literal(field, value)
  if field.type ~= "string" and unquoted[value] then return nil, string.format('%s is written without quotes, got "%s"', value, value) end
  if is_numeric(field) then
    if type(value) ~= "number" and type(value) ~= "string" then return nil, "a number is expected, got a " .. type(value) end
    if value ~= value then return nil, "a number is expected, got nan" end
    local number, problem = units.parse(value, field.unit or "1", { negative = not field.low or field.low < 0 })
    if not number then return nil, problem end
    if field.unit == "fraction" and field.high and number > field.high then return nil, units.over_fraction(value, number) end
    if field.type == "integer" and math.type(number) ~= "integer" then return nil, "an integer is expected, got " .. shown(value) end
    return number
  elseif field.type == "boolean" then
    if type(value) ~= "boolean" then return nil, "true or false is expected, got " .. shown(value) end
    return value
  end
  -- No kernel at all is `false`; other names are never absent that way.
  if value == false and field.name == "alltoall_kernel" then return value end
  if type(value) ~= "string" then return nil, "a name is expected, got " .. shown(value) end
  if value:find("%c") then return nil, "a name without control characters is expected" end
  local domain = domain_of(field)
  if domain then
    for _, known in ipairs(domain) do
      if known == value then return value end
    end
    local near = failure.suggestion(value, domain)
    return nil, string.format("no %s '%s'%s", field.name, value, near ~= "" and near or ", expected one of " .. table.concat(domain, ", "))
  end
  return value
end

-- A value that a field can have, from text, number, boolean or quantity: value | nil, message.
function conditions.value(field, value)
  local read, problem = literal(field, value)
  if read == nil or not is_numeric(field) then return read, problem end
  local nearest = math.max(field.low or read, math.min(field.high or read, read))
  if nearest ~= read then
    return nil, string.format("%s is out of range; nearest: %s", shown(value), units.format(nearest, field.unit))
  end
  return read
end

-- The right side of an operator: a number, a quantity, or the name of a parameter or field. value, ref | nil, nil, message.
-- `names` maps every name to { kind = "parameter" | "field", unit =, type = }.
local function right_side(field, value, names)
  if type(value) ~= "string" or value:match("^%s*[%d.+-]") then
    local read, problem = literal(field, value)
    if read == nil then return nil, nil, problem end
    return read
  end
  local other = names.by_name[value]
  if not other then
    return nil, nil, string.format("no parameter or field '%s'%s", value, failure.suggestion(value, names.list))
  end
  local alike = field.type == other.type or is_numeric(field) and (other.type == "number" or other.type == "integer")
  if not alike or other.type == "table" then
    return nil, nil, string.format("'%s' is %s, '%s' %s", field.name, article[field.type], value, article[other.type])
  end
  if is_numeric(field) and kind_of(field.unit) ~= kind_of(other.unit) then
    return nil, nil, string.format("'%s' is in %s, '%s' in %s", field.name, field.unit, value, other.unit)
  end
  return nil, value
end

local function read_list(field, list)
  if not lists.is_list(list) or list[tag] or #list == 0 then return nil, "a list of values is expected" end
  local values = {}
  for i, value in ipairs(list) do
    local read, problem = literal(field, value)
    if read == nil then return nil, problem end
    values[i] = read
  end
  return values
end

-- Operators on a single right side that need numbers.
local ordered = { under = true, at_most = true, over = true, at_least = true, multiple_of = true, not_multiple_of = true }

-- Reads what stands behind a field: condition | nil, message.
function conditions.read(name, raw, names)
  local field = vocabulary.by_name[name]
  local condition = { field = name }
  local problem
  if bare[raw] or (type(raw) == "table" and raw[tag]) then
    condition.op = bare[raw] or raw[tag]
    local op = condition.op
    if op == "any" then return condition end
    if op == "function" then return nil, "only `when` is a function" end
    if (ordered[op] or op == "between" or op == "odd" or op == "even") and not is_numeric(field) then
      return nil, string.format("'%s' is %s and has no order; write %s = value, a list, or none_of { … }", name, article[field.type], name)
    end
    if ordered[op] or op == "equal" then
      condition.value, condition.ref, problem = right_side(field, raw[1], names)
    elseif op == "between" then
      condition.low, condition.low_ref, problem = right_side(field, raw[1], names)
      if problem then return nil, problem end
      condition.high, condition.high_ref, problem = right_side(field, raw[2], names)
    elseif op == "none_of" then
      condition.values, problem = read_list(field, raw[1])
    end
  elseif type(raw) == "table" then
    condition.op = "one_of"
    condition.values, problem = read_list(field, raw)
  else
    condition.op = "equal"
    condition.value, problem = literal(field, raw)
    if problem and is_numeric(field) and type(raw) == "string" and names.by_name[raw] then
      problem = string.format("'%s' is the name of a %s: write %s = equal '%s', or over, at_most and so on", raw,
                              names.by_name[raw].kind, name, raw)
    elseif problem and name == "schedule" and vocabulary.by_name.schedule_family.domain and
           failure.nearest(tostring(raw), vocabulary.by_name.schedule_family.domain) == raw then
      problem = string.format("'%s' is a family: write schedule_family = '%s'", raw, raw)
    end
  end
  if problem then return nil, problem end
  return condition
end

-- Conditions of a rule as an ordered list.
function conditions.sort(list)
  local last = #vocabulary.fields + 1  -- labels, which have no place there
  table.sort(list, function(a, b)
    local x, y = position[a.field] or last, position[b.field] or last
    if x ~= y then return x < y end
    return a.field < b.field
  end)
  return list
end

-- Names of the fields and parameters that a condition reads.
function conditions.fields(condition)
  local list = { condition.field }
  for _, side in ipairs { "ref", "low_ref", "high_ref" } do list[#list + 1] = condition[side] end
  return list
end

local references = { value = "ref", low = "low_ref", high = "high_ref" }

-- Puts the values of parameters beside their names. parameters: id → { value = }.
function conditions.resolve(condition, parameters)
  for side, reference in pairs(references) do
    local name = condition[reference]
    if name then condition[side] = parameters[name] and parameters[name].value or nil end
  end
end

-- --------------------------------------------------------------------------------------------------------------------- evaluating

local function side(value, reference)
  if value == nil then return { field = reference } end
  return value
end

-- A rule's conditions as engine.conditions and engine.search read them.
function conditions.engine(rule)
  local list = {}
  for i, condition in ipairs(rule.conditions) do
    local entry = { field = condition.field, op = condition.op }
    if condition.values then
      entry.values = condition.values
    elseif condition.op == "between" then
      entry.low, entry.high = side(condition.low, condition.low_ref), side(condition.high, condition.high_ref)
    elseif condition.op ~= "odd" and condition.op ~= "even" then
      entry.value = side(condition.value, condition.ref)
    end
    list[i] = entry
  end
  return list
end

-- What its function says of a record. Of what is not known there it says nothing: then the rule does not hold.
local function call_when(rule, policy, record, late)
  return functions.ask(rule, policy, record, late or functions.late_of(record)) or false
end

-- Does the whole rule hold for that record (field → value, nil: absent)? `late`: set of fields that are not known; default: those that only
-- a plan has, where they are absent. Raises an answer when its function fails.
function conditions.holds(rule, policy, record, late)
  if not engine.conditions.match(record, conditions.engine(rule)) then return false end
  return not rule.when or call_when(rule, policy, record, late)
end

-- The first condition that does not hold: { field, op, text, actual } (actual nil: absent), or nil when all hold. A function that says no
-- is { text = "its function" }.
function conditions.first_failure(rule, policy, record)
  local compiled = conditions.engine(rule)
  for i, condition in ipairs(rule.conditions) do
    if not engine.conditions.match(record, { compiled[i] }) then
      return { field = condition.field, op = condition.op, text = conditions.text(condition), actual = record[condition.field] }
    end
  end
  if rule.when and not call_when(rule, policy, record) then return { op = "when", text = "its function `when`" } end
  return nil
end

local function number_of(value, reference, record)
  if value ~= nil then return value end
  local other = record[reference]
  return type(other) == "number" and other or nil
end

local function is_in_range(field, value)
  return value >= (field.low or -math.huge) and value <= (field.high or math.huge)
end

-- Of a choice, the whole number in its range that is nearest to `actual` and not in the list; of two the lower. What a request states is
-- not one of many, and of a real number every other one is as near.
local function nearest_other(field, actual, list)
  if field.type ~= "integer" or field.scope == "request" then return nil end
  for distance = 1, #list + 1 do
    for _, value in ipairs { actual - distance, actual + distance } do
      if is_in_range(field, value) and not lists.contains(list, value) then return value end
    end
  end
  return nil
end

-- Does a condition stop holding at a value that its field can have? Where it does only beyond it, up or down, there must be room.
local function stops(condition, record, field, value, way)
  if field.type == "integer" and not math.tointeger(value) then return false end
  if not is_in_range(field, value) then return false end
  if way then return value ~= (way == "up" and field.high or way == "down" and field.low) end
  return not engine.conditions.match(lists.with(record, { [field.name] = value }), conditions.engine { conditions = { condition } })
end

-- Values at which a numeric condition that holds may stop holding, nearest first: { value, way: it has to be passed up or down, or nil }.
local function escapes(condition, record)
  local actual, op, field = record[condition.field], condition.op, vocabulary.by_name[condition.field]
  local integer = field.type == "integer"
  local function under(low) return integer and { math.ceil(low) - 1 } or { low, "down" } end
  local function over(high) return integer and { math.floor(high) + 1 } or { high, "up" } end
  if type(actual) ~= "number" then return {} end
  if op == "equal" then return { { nearest_other(field, actual, {}) } } end
  if op == "one_of" then return { { nearest_other(field, actual, condition.values) } } end
  if op == "none_of" then
    local nearest = lists.largest(condition.values, function(value) return -math.abs(value - actual) end)
    return { { nearest } }
  end
  if op == "odd" or op == "even" then return { { actual + 1 }, { actual - 1 } } end
  if op == "between" then
    local low, high = number_of(condition.low, condition.low_ref, record), number_of(condition.high, condition.high_ref, record)
    if not low or not high then return {} end
    if actual - low < high - actual then return { under(low), over(high) } end
    return { over(high), under(low) }
  end
  local bound = number_of(condition.value, condition.ref, record)
  if not bound then return {} end
  if op == "under" then return { { integer and math.ceil(bound) or bound } } end
  if op == "over" then return { { integer and math.floor(bound) or bound } } end
  if op == "at_most" then return { over(bound) } end
  if op == "at_least" then return { under(bound) } end
  if op == "multiple_of" then return { { actual + 1 }, { actual - 1 } } end
  if op == "not_multiple_of" and bound > 0 then return { { math.ceil(actual / bound) * bound } } end
  return {}
end

-- For a rule that holds: { field, value, beyond } of the nearest value of a numeric field at which it stops holding; `beyond` when that
-- value itself still satisfies the rule (a limit of a real number). Fields of the candidate before fields of the request. nil: none.
function conditions.nearest(rule, policy, record)
  local found
  for _, condition in ipairs(rule.conditions) do
    local field = vocabulary.by_name[condition.field]
    local wanted = not found or found.scope == "request" and field.scope ~= "request"
    for _, escape in ipairs(wanted and escapes(condition, record) or {}) do
      local value, way = escape[1], escape[2]
      if value and stops(condition, record, field, value, way) then
        if field.type == "integer" then value = math.tointeger(value) end
        found = { field = condition.field, value = value, beyond = way and true or nil, scope = field.scope }
        break
      end
    end
  end
  if found then found.scope = nil end
  return found or rule.when and functions.nearest(rule, policy, record) or nil
end

-- ------------------------------------------------------------------------------------------------------------------------ showing

local function show(value, unit)
  if type(value) == "number" then return units.format(value, unit) end
  return tostring(value)
end

local function show_side(value, reference, unit)
  if not reference then return show(value, unit) end
  return value == nil and reference or string.format("%s (%s)", reference, show(value, unit))
end

-- Each operator in words.
local words = {
  equal = "=", under = "under", at_most = "at most", over = "over", at_least = "at least", multiple_of = "a multiple of",
  not_multiple_of = "not a multiple of", none_of = "none of", odd = "odd", even = "even", any = "any",
}
conditions.operators = words

-- "gpus under small_run_gpus (100)", "schedule = dualpipe or dualpipev".
function conditions.text(condition)
  local unit = vocabulary.by_name[condition.field].unit
  if condition.values then
    local parts = {}
    for i, value in ipairs(condition.values) do parts[i] = show(value, unit) end
    return string.format("%s %s %s", condition.field, condition.op == "one_of" and "=" or "none of",
                         table.concat(parts, condition.op == "one_of" and " or " or ", "))
  elseif condition.op == "between" then
    return string.format("%s between %s and %s", condition.field, show_side(condition.low, condition.low_ref, unit),
                         show_side(condition.high, condition.high_ref, unit))
  elseif condition.value ~= nil or condition.ref then
    return string.format("%s %s %s", condition.field, words[condition.op], show_side(condition.value, condition.ref, unit))
  end
  return condition.field .. " " .. words[condition.op]
end

-- The numbers of a condition; own: those alone that stand in it, none of parameters.
function conditions.numbers(condition, own)
  local list = {}
  for _, place in ipairs { { "value", "ref" }, { "low", "low_ref" }, { "high", "high_ref" } } do
    local value = condition[place[1]]
    if type(value) == "number" and not (own and condition[place[2]]) then list[#list + 1] = value end
  end
  for _, value in ipairs(condition.values or {}) do
    if type(value) == "number" then list[#list + 1] = value end
  end
  return list
end

return conditions
