-- SPDX-License-Identifier: Apache-2.0
-- statements.lua: what each verb of a policy file may say. Reads one recorded statement into
--   { verb, id, conditions = { field → condition }, properties = { name → value }, when, reason, expires, values, layer, file, line }
-- and says what is wrong with it. What statements do to each other is decided in layers.lua.

local engine = require "engine"
local conditions = require "pipeplan.policy.conditions"
local dates = require "pipeplan.base.dates"
local failure = require "pipeplan.base.failure"
local functions = require "pipeplan.policy.functions"
local lists = require "pipeplan.base.lists"
local ranks = require "pipeplan.policy.ranks"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local statements = {}

local tag = engine.host.tag

-- Families: names that stand for several schedules, and the parameter that lists them.
statements.families = { zero_bubble = "zero_bubble_members" }

-- Recommendations that are layouts, not schedules.
statements.layouts = { "data_parallel", "data_and_tensor_parallel" }

-- Ids of what the planner itself decides or warns of; no rule of a policy can have them.
statements.built_in = {
  "accelerator_memory", "does_not_fit", "dominated", "expired", "expires_soon", "kernel_elsewhere", "no_candidates", "no_count_fits",
  "no_overlap", "no_row", "not_in_framework", "partial_node", "replication_does_not_fit", "sequence_over_maximum", "uneven_layers",
  "unused_field", "wanted_too_slow",
}

-- What the engine says of a candidate that cannot be built (engine/core/schedule_request.c, candidate.c, evaluate_time.c, stages.c).
statements.of_engine = {
  "engine.activation_limit", "engine.chunks", "engine.context_sequence", "engine.expert_columns", "engine.expert_count",
  "engine.layers_below_stages", "engine.microbatch_group", "engine.odd_depth", "engine.odd_microbatches", "engine.replicas",
  "engine.tensor_heads", "engine.too_few_microbatches", "engine.too_many_actions",
}

local MOST_COUNTED = 1 << 20   -- sequences of a microbatch that a list may name

local schedule_names = { "zero_bubble" }
for _, name in ipairs(vocabulary.schedules) do
  if name ~= "none" then schedule_names[#schedule_names + 1] = name end
end
table.sort(schedule_names)

-- What may be planned: every schedule and family but `none`. Returns nil, or the message.
function statements.check_schedule(name)
  if type(name) ~= "string" then return "the name of a schedule is expected, got " .. conditions.shown(name) end
  for _, known in ipairs(schedule_names) do
    if known == name then return nil end
  end
  if lists.contains(statements.layouts, name) then return string.format("'%s' is a layout, which only recommend takes", name) end
  return string.format("no schedule '%s'%s", name, failure.suggestion(name, schedule_names))
end

-- ------------------------------------------------------------------------------------------------------------------------- numbers

local MOST_WITHIN = 10  -- 1000 %: what is eleven times slower is close to nothing

-- A number that a parameter cannot be: what is wrong with it. A bare number where percent is meant is the commonest slip.
local function out_of_range(number, value, parameter)
  local unit, low, high = parameter.unit, parameter.low, parameter.high
  local nearest = math.max(low, math.min(high, units.is_whole(unit) and math.floor(number) or number))
  local function show(limit) return units.format(limit, unit) end
  if unit == "fraction" and tonumber(value) then
    local percent = number > 0 and number / 100 <= high and string.format('; %.6g %% is "%.6g%%"', number, number) or ""
    return string.format("%s is %s%s; expected from %s to %s; nearest: %s", value, show(number), percent, show(low), show(high),
                         show(nearest))
  end
  local expected = units.is_whole(unit) and "a whole number" or units.expected(unit)
  if number < low then expected = expected .. ", at least " .. show(low)
  elseif number > high then expected = expected .. ", at most " .. show(high) end
  return string.format("%s: expected %s; nearest: %s", conditions.shown(value), expected, show(nearest))
end

-- nil, or what is wrong with a fraction over 1 that is written without its sign: 2 is 200 %, and 2 % is rarely far.
local function bare_fraction(number, value)
  if number <= 1 or not tonumber(value) then return nil end
  return string.format('%s is %s: %.6g %% is "%.6g%%"; where %s is meant, write "%.6g%%"', value, units.format(number, "fraction"), number,
                       number, units.format(number, "fraction"), number * 100)
end

-- ---------------------------------------------------------------------------------------------------------------------- properties

-- Each returns the value to keep, or nil and a message.
local check = {}

-- What a policy says is printed: nothing in it that a terminal would obey.
function check.text(value)
  if type(value) ~= "string" then return nil, "a text is expected" end
  if value:find("%c") then return nil, "a text of one line without control characters is expected" end
  if not value:find "%w" and not value:find "[\x80-\xff]" then return nil, "a text that says something is expected, it is empty" end
  return value
end

-- Where more can be read: an address that a browser takes.
function check.link(value)
  if type(value) ~= "string" or not value:match "^https?://[^%s%c]+$" then return nil, "an address such as \"https://…\" is expected" end
  return value
end

function check.digest(value)
  if type(value) ~= "string" or not value:match "^%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x$" then
    return nil, "a digest of 16 digits is expected, as `pipeplan policy show --files` prints it"
  end
  return value:lower()
end

function check.boolean(value)
  if type(value) ~= "boolean" then return nil, "true or false is expected" end
  return value
end

function check.schedules(value)
  if not lists.is_list(value) or value[tag] or #value == 0 then return nil, "a list of schedules is expected" end
  local seen = {}
  for _, name in ipairs(value) do
    local problem = statements.check_schedule(name)
    if problem then return nil, problem end
    if seen[name] then return nil, string.format("'%s' stands twice in the list", name) end
    seen[name] = true
  end
  return value
end

function check.severity(value)
  if value ~= "warning" and value ~= "note" then return nil, "\"warning\" or \"note\" is expected" end
  return value
end

function check.within(value, names)
  if value == "any" then return value end
  local parameter = names.by_name[value]
  if parameter then
    if parameter.kind ~= "parameter" or parameter.unit ~= "fraction" then return nil, "'" .. value .. "' is not a fraction" end
    return value
  end
  local fraction = units.parse(value, "fraction")
  if fraction and fraction > MOST_WITHIN then
    return nil, out_of_range(fraction, value, { unit = "fraction", low = 0, high = MOST_WITHIN })
  elseif not fraction then
    return nil, string.format("\"any\", a fraction or the name of one is expected, got '%s'%s", conditions.shown(value),
                              failure.suggestion(conditions.shown(value), names.list))
  end
  local problem = bare_fraction(fraction, value)
  if problem then return nil, problem end
  return fraction
end

function check.recommend(value)
  if type(value) ~= "string" then return nil, "a schedule or a layout is expected" end
  for _, layout in ipairs(statements.layouts) do
    if layout == value then return value end
  end
  if not statements.check_schedule(value) then return value end
  local known = { table.unpack(statements.layouts) }
  for _, name in ipairs(schedule_names) do known[#known + 1] = name end
  local near = failure.suggestion(value, known)
  return nil, string.format("no schedule or layout '%s'%s", value, near ~= "" and near or "; of layouts there are " ..
                            table.concat(statements.layouts, " and "))
end

check.date = dates.check

-- "{field}" in a message must name a field or a parameter.
function check.template(value, names)
  local text, problem = check.text(value)
  if not text then return nil, problem end
  local rest = value:gsub("{[^{}]*}", "")
  if rest:find "[{}]" or value:find "%${" then
    return nil, "a brace that belongs to no {name}: of a field or parameter it is {gpus}, without $ and with one brace on each side"
  end
  local printf = rest:match "%f[%%]%%[%d.]*[dsgfiu]%f[%W]"
  if printf and not rest:find("%d%s?" .. printf:gsub("%p", "%%%0")) then
    return nil, string.format("%s would be printed as it stands: a value is {name} of its field or parameter", printf)
  end
  for name in value:gmatch("{([^{}]*)}") do
    if not names.by_name[name] then
      return nil, string.format("no parameter or field '%s'%s", name, failure.suggestion(name, names.list))
    end
  end
  return value
end

function check.catalogue_name(value)
  if type(value) ~= "string" or not value:match("^[%a_][%w_]*$") then return nil, "the name of a kernel is expected" end
  return value
end

-- Per verb: its properties and how each is checked, those that must be there, and whether it may leave conditions out.
local verbs = {
  row       = { properties = { try = "schedules", within = "within", source = "text", why = "text" }, required = { "try" }, open = true },
  reject    = { properties = { message = "template", source = "text", recommend = "recommend" }, required = { "message" } },
  refuse    = { properties = { message = "template", source = "text", recommend = "recommend" }, required = { "message" } },
  warn      = { properties = { message = "template", source = "text", severity = "severity" }, required = { "message" } },
  prefer    = { properties = { within = "within", source = "text", why = "text" }, required = { "within" } },
  kernel    = { properties = { why = "text", source = "text", overlapping = "boolean", recommend = "catalogue_name" },
                required = { "why" }, open = true },
  invariant = { properties = { unless = "catalogue_name", message = "template", source = "text" }, required = {} },
}
-- Of every rule: who answers for it, why it is there, where to read more, and whether later layers may loosen it.
for _, schema in pairs(verbs) do
  local properties = schema.properties
  properties.owner, properties.why, properties.link, properties.final = "text", "text", "link", "boolean"
end
statements.verbs = verbs

-- The same of every other statement, and what each of those takes besides.
local common = { owner = "text", why = "text", link = "link", final = "boolean", reason = "text", expires = "date" }
local others = {
  disable = { owner = true, why = true, link = true, final = true, reason = true, expires = true },
  enable = { owner = true, why = true, link = true, final = true, reason = true },
  pin = { owner = true, why = true, link = true, reason = true, default = true },
}
common.default = "digest"

-- Is it a word by which every statement says something of itself?
function statements.is_common(name) return common[name] ~= nil end

-- Kinds of rules that read the finished plan, those that decide before anything is simulated, and the scopes they may read.
local readable = {
  row = { request = true, candidate = true }, kernel = { request = true, candidate = true },
  reject = { request = true, candidate = true, simulated = true }, refuse = { request = true, candidate = true, simulated = true },
  prefer = { request = true, candidate = true, simulated = true },
  warn = { request = true, candidate = true, simulated = true, plan = true },
  invariant = { request = true, candidate = true, simulated = true, plan = true },
}
statements.readable = readable

-- The last phase in which a function is asked.
local phase_of_function = {
  row = "candidate", kernel = "candidate", reject = "simulated", refuse = "simulated", prefer = "simulated",
  warn = "plan", invariant = "plan",
}

local scopes = { "request", "candidate", "simulated", "plan" }
local rank = {}
for i, scope in ipairs(scopes) do rank[scope] = i end

local function latest_scope(rule, at_least)
  local latest = rank[at_least]
  for _, condition in ipairs(rule.conditions) do
    latest = math.max(latest, rank[vocabulary.by_name[condition.field].scope])
  end
  return scopes[latest]
end

-- The phase in which a rule's conditions can be decided: the latest that one of their fields needs.
function statements.condition_phase(rule) return latest_scope(rule, "request") end

-- The phase in which the whole rule can be.
function statements.phase(rule) return latest_scope(rule, rule.when and phase_of_function[rule.verb] or "request") end

-- A refusal recommends a schedule in place of one, or a layout in place of the plan.
function statements.recommends_schedule(rule)
  return rule.verb == "refuse" and rule.recommend ~= nil and not lists.contains(statements.layouts, rule.recommend)
end

-- May a preference "within any" read that field? Of all survivors the bytes can be known, the seconds only of those that come close to the
-- fastest: to simulate the others takes many times a plan.
function statements.is_known_of_all(field)
  return field == "peak_bytes" or readable.row[vocabulary.by_name[field].scope] ~= nil
end

-- nil, or why a rule of that verb cannot read that field.
function statements.unreadable(verb, field, within)
  local scope = vocabulary.by_name[field].scope
  if within == "any" and not statements.is_known_of_all(field) then
    return string.format("'%s' is known only of the survivors that come close to the fastest, and within = \"any\" is asked of all: "
                         .. "write a fraction, such as within = \"10%%\", or a reject of the others", field)
  end
  if readable[verb][scope] then return nil end
  if scope == "plan" then return string.format("'%s' is known only of a finished plan: warn and invariant may read it", field) end
  return string.format("'%s' is known only after simulation; a %s is decided before", field, verb)
end

-- ------------------------------------------------------------------------------------------------------------------------- reading

local function sorted_keys(argument)
  local keys, named = {}, true
  for key in pairs(argument) do
    keys[#keys + 1] = key
    named = named and type(key) == "string"
  end
  if named then table.sort(keys) else table.sort(keys, function(a, b) return tostring(a) < tostring(b) end) end
  return keys
end

local function is_identifier(value)
  return type(value) == "string" and value:match("^[%a_][%w_]*$") ~= nil
end

-- { [tag] = "function", handle, file, first line, last line } → handle, { file, first, last }.
local function handle_of(value)
  if type(value) ~= "table" or value[tag] ~= "function" then return nil end
  return value[1], { file = value[2], first = value[3], last = value[4] }
end

-- Names that a rule of that verb knows, for suggestions.
local function known_keys(verb)
  local known = { "any_rank", "every_rank", "id", "when" }
  for property in pairs(verbs[verb].properties) do known[#known + 1] = property end
  for _, name in ipairs(vocabulary.names) do known[#known + 1] = name end
  table.sort(known)
  return known
end

-- A function that only compares fields says what conditions say, and becomes them: with all that they can do.
local function read_comparisons(raw, verb, statement, names, complain)
  local plain = raw.function_text and functions.plain(raw.function_text)
  local read = {}
  for _, field in ipairs(plain and sorted_keys(plain) or {}) do
    local condition, problem = conditions.read(field, plain[field], names)
    problem = problem or statements.unreadable(verb, field)
    if problem then complain("when: %s: %s", field, problem) end
    if raw.argument[field] ~= nil then plain = nil break end
    read[field] = condition
  end
  if not plain then return end
  for field, condition in pairs(read) do
    statement.conditions[field], statement.compared[field] = condition, true
  end
  statement.when = raw.verb == "change" and "any" or nil
end

-- What people write in a rule that has no such word, and what to write.
local instead = {
  reason = ": why a rule is there is its why; a reason is of what overrides one",
  expires = ": only what overrides a rule expires",
  labels = "; a rule says label_NAME of each",
  severity = ": only a warn has one",
  ["try"] = ": only a row has one",
}

-- A rule of that verb, or a change of one. `complain(format, …)` takes a message about this statement.
local function read_rule(raw, verb, statement, names, complain)
  local argument, changes = raw.argument, raw.verb == "change"
  for _, key in ipairs(sorted_keys(argument)) do
    local value = argument[key]
    if type(key) ~= "string" then
      complain("everything in it is written name = value")
    elseif key == "when" then
      statement.when, statement.lines = handle_of(value)
      if engine.host.bare[value] == "any" and changes then statement.when = "any"
      elseif not statement.when then complain("`when` is a function that returns true or false")
      else read_comparisons(raw, verb, statement, names, complain) end
    elseif (key == "reason" or key == "expires") and (changes or verb == "kernel") then
      local problem
      statement[key], problem = (key == "expires" and check.date or check.text)(value)
      if problem then complain("%s: %s", key, problem) end
    elseif verbs[verb].properties[key] then
      local problem
      if key == "within" then statement.within_bare = type(value) == "number" end  -- without a percent sign
      statement.properties[key], problem = check[verbs[verb].properties[key]](value, names)
      if problem then complain("%s: %s", key, problem) end
    elseif ranks.quantifiers[key] then
      for _, found in ipairs(ranks.read(key, value, names, complain)) do
        local problem = statements.unreadable(verb, found.field)
        if problem then complain("%s: %s", key, problem)
        elseif statement.conditions[found.field] or argument[found.field] ~= nil then
          complain("%s: %s has a condition already", key, found.field)
        else statement.conditions[found.field] = found end
      end
    elseif vocabulary.by_name[key] then
      local condition, problem = conditions.read(key, value, names)
      problem = problem or statements.unreadable(verb, key)
      if problem then complain("%s: %s", key, problem) else statement.conditions[key] = condition end
    elseif handle_of(value) then
      complain("only `when` is a function, not '%s'", key)
    elseif key ~= "id" then  -- which the caller has read
      local elsewhere = instead[key] or require("pipeplan.names").in_rule(key)
      complain("no field or property '%s'%s", key, elsewhere ~= "" and elsewhere or failure.suggestion(key, known_keys(verb)))
    end
  end
end

-- "id, reason and expires"
local function listed(names)
  return table.concat(names, ", ", 1, #names - 1) .. " and " .. names[#names]
end

-- disable, enable, pin: an id, but for a pin, and what stands in `others`.
local function read_other(raw, statement, complain)
  local takes, known = others[raw.verb], sorted_keys(others[raw.verb])
  if raw.verb ~= "pin" then table.insert(known, 1, "id") end
  for _, key in ipairs(sorted_keys(raw.argument)) do
    local problem
    if takes[key] then statement[key], problem = check[common[key]](raw.argument[key])
    elseif key ~= "id" or raw.verb == "pin" then
      complain("%s takes %s, not '%s'%s", raw.verb, listed(known), conditions.shown(key), failure.suggestion(conditions.shown(key), known))
    end
    if problem then complain("%s: %s", key, problem) end
  end
  if raw.verb == "pin" and raw.argument.default == nil then complain("it needs default = \"digest\"") end
end

-- A list of some of those words, each once.
local function words_of(known)
  return function(list)
    if not lists.is_list(list) or list[tag] or #list == 0 then return nil, "a list is expected, of " .. listed(known) end
    local out, seen = {}, {}
    for i, word in ipairs(list) do
      if not lists.contains(known, word) then
        return nil, conditions.shown(word) .. " is none of " .. listed(known) .. failure.suggestion(conditions.shown(word), known)
      end
      if seen[word] then return nil, word .. " stands twice" end
      out[i], seen[word] = word, true
    end
    return out
  end
end

-- A list of whole numbers from 1 on, each once.
local function counts(list)
  if not lists.is_list(list) or list[tag] or #list == 0 then return nil, "a list of whole numbers is expected" end
  local out, seen = {}, {}
  for i, value in ipairs(list) do
    local number = math.tointeger(tonumber(value))
    if not number or number < 1 or number > MOST_COUNTED then
      return nil, conditions.shown(value) .. " is no whole number from 1 to " .. MOST_COUNTED
    end
    if seen[number] then return nil, number .. " stands twice" end
    out[i], seen[number] = number, true
  end
  return out
end

-- Units of parameters that are lists, and what reads such a list.
local list_units = {
  schedule = check.schedules, recompute = words_of { "none", "selective", "modules", "full" },
  sharding = words_of(vocabulary.shardings), microbatch = counts,
}
statements.list_units = list_units

-- A parameter's value as text, number, boolean or list becomes what its unit says: value | nil, message. parameter: unit, type, low, high.
function statements.parameter_value(value, parameter)
  local unit, type_wanted = parameter.unit, parameter.type
  if list_units[unit] then
    if type(value) ~= "string" then return list_units[unit](value) end
    local list = {}
    for name in value:gmatch("[^%s,]+") do list[#list + 1] = name end
    return list_units[unit](list)
  end
  if type_wanted == "number" then
    if type(value) ~= "number" and type(value) ~= "string" then return nil, "a number is expected, got a " .. type(value) end
    local number, problem = units.parse(value, unit)
    if not number then return nil, problem end
    if number < parameter.low or number > parameter.high or (units.is_whole(unit) and number ~= math.floor(number)) then
      return nil, out_of_range(number, value, parameter)
    end
    local problem_of_fraction = unit == "fraction" and bare_fraction(number, value)
    if problem_of_fraction then return nil, problem_of_fraction end
    return number
  end
  if type(value) == "string" and type_wanted == "boolean" then
    if value == "true" then return true elseif value == "false" then return false end
  end
  if type(value) ~= type_wanted then return nil, string.format("a %s is expected, got %s", type_wanted, conditions.shown(value)) end
  return value
end

local directions = { up = true, down = true, none = true }

local parameter_keys = { "id", "value", "unit", "at_least", "at_most", "loosens", "meaning", "owner", "why", "link", "final" }

-- What a parameter's numbers may be, into statement.low and .high: what at_least and at_most say, else what the unit does, or as far as its
-- own value goes.
local function read_limits(argument, statement, complain)
  local unit = statement.unit
  local low, high = units.range(unit)
  local own = units.parse(argument.value, unit)
  statement.low, statement.high = math.min(low, own or low), math.max(high, own or high)
  for _, side in ipairs { { "at_least", "low" }, { "at_most", "high" } } do
    local key, limit = side[1], side[2]
    if argument[key] ~= nil then
      local number, problem = units.parse(argument[key], unit)
      if number then statement[limit] = number else complain("%s: %s", key, problem) end
    end
  end
  if statement.low > statement.high then complain("at_least is more than at_most") end
end

local function read_parameter(raw, statement, complain)
  local argument = raw.argument
  for _, key in ipairs(sorted_keys(argument)) do
    if not lists.contains(parameter_keys, key) then
      complain("parameter takes %s, not '%s'%s", listed(parameter_keys), conditions.shown(key),
               failure.suggestion(conditions.shown(key), parameter_keys))
    elseif common[key] then
      local problem
      statement[key], problem = check[common[key]](argument[key])
      if problem then complain("%s: %s", key, problem) end
    end
  end
  statement.unit, statement.loosens, statement.meaning = argument.unit, argument.loosens, argument.meaning
  if type(statement.meaning) ~= "string" then complain("a parameter needs its meaning") end
  if not directions[statement.loosens] then complain("loosens is \"up\", \"down\" or \"none\": the way that lets more plans through") end
  local value = argument.value
  if (argument.at_least ~= nil or argument.at_most ~= nil) and (type(value) == "boolean" or list_units[statement.unit]) then
    complain("at_least and at_most are for numbers")
  end
  if type(value) == "boolean" then
    statement.value, statement.type = value, "boolean"
    return
  end
  local unit_known = list_units[statement.unit] ~= nil
  for _, unit in ipairs(units.names) do unit_known = unit_known or unit == statement.unit end
  if not unit_known then
    local unit = conditions.shown(statement.unit)
    if statement.unit == nil then
      complain("it needs a unit: %s, %s", table.concat(units.names, ", "), table.concat(lists.sorted_keys(list_units), ", "))
    else complain("no unit '%s'%s", unit, failure.suggestion(unit, units.names)) end
    return
  end
  local problem
  statement.type = list_units[statement.unit] and "table" or "number"
  if statement.type == "number" then read_limits(argument, statement, complain) end
  statement.value, problem = statements.parameter_value(value, statement)
  if problem then complain("value: %s", problem) end
end

local function read_set(raw, statement, complain)
  for _, key in ipairs(sorted_keys(raw.argument)) do
    local value, problem = raw.argument[key], nil
    if common[key] and key ~= "default" then statement[key], problem = check[common[key]](value)
    elseif type(key) ~= "string" then complain("set takes name = value")
    else statement.values[key] = value end
    if problem then complain("%s: %s", key, problem) end
  end
end

-- Reads one recorded statement. names: every parameter and field (see conditions.lua). report(file, line, text) takes what is wrong.
-- verb_of(id) is the verb of the rule that a change is about; a change of what does not exist is returned unread.
function statements.read(raw, layer, names, report, verb_of)
  local statement = {
    verb = raw.verb, layer = layer, file = raw.file, line = raw.line, conditions = {}, properties = {}, values = {},
    compared = {},  -- fields of conditions that its function was read as
  }
  local title = raw.verb
  local function complain(format, ...)
    statement.faulty = true
    report(raw.file, raw.line, title .. ": " .. string.format(format, ...))
  end
  if raw.verb == "site" then
    statement.id = raw.argument
    if raw.argument == "" or raw.argument:find("%c") then complain("a site has a name of one line") end
    return statement
  end
  if raw.verb == "set" then
    read_set(raw, statement, complain)
    return statement
  end
  if raw.verb == "pin" then
    read_other(raw, statement, complain)
    return statement
  end
  if not is_identifier(raw.argument.id) then
    local given = raw.argument.id
    complain("%s: id = \"name\", of letters, digits and underscores",
             given == nil and "it needs an id" or conditions.shown(given) .. " is no id")
    return nil
  end
  statement.id = raw.argument.id
  title = string.format("%s '%s'", raw.verb, statement.id)
  if others[raw.verb] then
    read_other(raw, statement, complain)
  elseif raw.verb == "parameter" then
    read_parameter(raw, statement, complain)
  elseif raw.verb == "change" then
    local verb = verb_of(statement.id)
    if verb then read_rule(raw, verb, statement, names, complain) end
  else
    local schema = verbs[raw.verb]
    read_rule(raw, raw.verb, statement, names, complain)
    for _, property in ipairs(schema.required) do
      if raw.argument[property] == nil then complain("it needs %s", property) end
    end
    -- Nothing said must not mean everything: a rule whose fields were forgotten would hold for all plans.
    if not schema.open and not next(statement.conditions) and not statement.when and not statement.faulty then
      complain("it states no condition and would hold for every plan; if that is meant, write a field = any")
    end
  end
  return statement
end

return statements
