-- SPDX-License-Identifier: Apache-2.0
-- layers.lua: what the statements of several layers make together. default ← each --policy ← --set: a later layer adds rules, changes and
-- disables those of an earlier one, and sets parameters. Every rule and parameter remembers where it comes from and what it hides.

local builders = require "pipeplan.policy.builder"
local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local place = require("pipeplan.base.format").place
local statements = require "pipeplan.policy.statements"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local layers = {}

local contains, sorted_keys = lists.contains, lists.sorted_keys

-- In these the order decides, and a later layer's come before an earlier layer's.
local ordered = { row = true, refuse = true, prefer = true, kernel = true }

local plural = {
  row = "rows", reject = "rejects", refuse = "refuses", prefer = "prefers", kernel = "kernels", warn = "warns", invariant = "invariants",
}

local complain, origin = builders.complain, builders.origin

-- What acts on statements of earlier layers: the default policy has none, and starts without it.
local function overrides() return require "pipeplan.policy.overrides" end

-- ---------------------------------------------------------------------------------------------------------------------------- names

local function add_name(names, name, entry)
  names.by_name[name] = entry
  names.list[#names.list + 1] = name
end

local function field_names()
  local names = { by_name = {}, list = {} }
  for _, field in ipairs(vocabulary.fields) do
    add_name(names, field.name, { kind = "field", unit = field.unit or "1", type = field.type })
  end
  setmetatable(names.by_name, { __index = function(_, name)
    return vocabulary.label(name) and { kind = "field", unit = "1", type = "string" } or nil
  end })
  return names
end

-- nil, or why a rule or parameter cannot be called that.
local function clash(builder, statement)
  local id = statement.id
  if contains(vocabulary.reserved, id) or statement.verb == "parameter" and statements.is_common(id) then
    return "that word is one that statements use themselves"
  end
  if contains(statements.built_in, id) then return "that is the id of something the planner decides itself" end
  local name = builder.names.by_name[id]
  if name and name.kind == "parameter" then
    return string.format("a parameter has that name (%s)", place(builder.parameters[id]))
  elseif name then
    -- A rule may be called after the yes-or-no field that it judges; nothing could mean either of them.
    local own = vocabulary.by_name[id].type == "boolean" and statement.conditions[id]
    if not own then return "a field has that name" end
  end
  local rule = builder.rules[id]
  if rule then return string.format("that id stands already (%s); a later layer writes change", place(rule)) end
  local disabled = builder.disabled_by_id[id]
  if disabled then return string.format("that rule is disabled (%s)", place(disabled.by)) end
  return nil
end

-- ------------------------------------------------------------------------------------------------------------------------- one layer

local function add_parameter(builder, statement)
  local problem = clash(builder, statement)
  if problem then
    complain(builder, statement, "parameter '%s': %s", statement.id, problem)
    return
  end
  builder.parameters[statement.id] = {
    id = statement.id, value = statement.value, unit = statement.unit, type = statement.type, low = statement.low, high = statement.high,
    loosens = statement.loosens,
    meaning = statement.meaning, layer = statement.layer, file = statement.file, line = statement.line, hides = {},
    final = statement.final and origin(statement) or nil,
  }
  builder.parameter_order[#builder.parameter_order + 1] = statement.id
  add_name(builder.names, statement.id, { kind = "parameter", unit = statement.unit, type = statement.type })
end

local function add_rule(builder, statement, new)
  local problem = clash(builder, statement)
  if problem then
    complain(builder, statement, "%s '%s': %s", statement.verb, statement.id, problem)
    return
  end
  local rule = {
    id = statement.id, verb = statement.verb, when = statement.when, conditions = {},
    layer = statement.layer, file = statement.file, line = statement.line, hides = {}, origin = {},
    lines = statement.lines, compared = statement.compared, within_bare = statement.within_bare,
  }
  for name, value in pairs(statement.properties) do rule[name] = value end
  rule.final = rule.final and origin(statement) or nil
  if rule.verb == "kernel" and rule.layer ~= builder.default_layer and overrides().kernel_lapses(builder, statement) then return end
  for _, field in ipairs(sorted_keys(statement.conditions)) do
    local condition = statement.conditions[field]
    if condition.op ~= "any" then rule.conditions[#rule.conditions + 1] = condition end
  end
  builder.rules[rule.id] = rule
  table.insert(new[rule.verb], rule)
end

local function read_layer(builder, layer)
  local read = {}
  local function verb_of(id)
    return builder.rules[id] and builder.rules[id].verb
  end
  -- Parameters first: the rules of a layer may name those that stand further down or in another file.
  for _, verb in ipairs { "parameter", "set" } do
    for _, raw in ipairs(layer.statements) do
      if raw.verb == verb then
        local statement = statements.read(raw, layer.name, builder.names, builder.report, verb_of)
        if statement and verb == "parameter" then add_parameter(builder, statement)
        elseif statement then overrides().set(builder, statement) end
      end
    end
  end
  for verb in pairs(plural) do read[verb] = {} end
  for _, raw in ipairs(layer.statements) do
    if raw.verb ~= "parameter" and raw.verb ~= "set" and raw.verb ~= "site" then
      local statement = statements.read(raw, layer.name, builder.names, builder.report, verb_of)
      if statement then
        local act = plural[raw.verb] and add_rule or overrides()[raw.verb]
        act(builder, statement, read)
      end
    end
  end
  for verb, new in pairs(read) do
    local old, list = builder.lists[verb], {}
    for _, part in ipairs(ordered[verb] and { new, old } or { old, new }) do table.move(part, 1, #part, #list + 1, list) end
    builder.lists[verb] = list
  end
end

-- ----------------------------------------------------------------------------------------------------------------------- all together

-- name → the schedules that it stands for and that may be planned here, in order; empty when there is none.
local function members_of(builder)
  local allowed, members = {}, {}
  local function value(id)
    return builder.parameters[id] and builder.parameters[id].value or {}
  end
  for _, name in ipairs(value("schedules")) do allowed[name] = true end
  for _, name in ipairs(vocabulary.schedules) do members[name] = { allowed[name] and name or nil } end
  for family, parameter in pairs(statements.families) do
    members[family] = {}
    for _, name in ipairs(value(parameter)) do
      if allowed[name] then table.insert(members[family], name) end
    end
  end
  return members
end

-- Lists of schedules that must hold schedules, not families of them.
local function check_lists(builder)
  for _, id in ipairs { "schedules", "zero_bubble_members" } do
    local parameter = builder.parameters[id]
    for _, name in ipairs(parameter and parameter.value or {}) do
      if statements.families[name] then
        complain(builder, parameter, "%s: '%s' is a family; name its members", id, name)
      end
    end
  end
end

local MOST_KERNELS = 255  -- by name in the catalogue: engine/lua/search.h, PP_MAX_LATENCIES, and the one of the spec

local function check_kernels(builder)
  local seen, count = {}, 0
  for _, rule in ipairs(builder.lists.kernel) do
    local name = rule.recommend or rule.id
    count = count + (seen[name] and 0 or 1)
    seen[name] = true
    if count > MOST_KERNELS then
      complain(builder, rule, "kernel '%s': at most %d kernels can be named", rule.id, MOST_KERNELS)
      return
    end
  end
end

-- Something of the window has to be left after its warm-up.
local function check_window(builder)
  local window, warmup = builder.parameters.rollback_window_steps, builder.parameters.rollback_warmup_steps
  if window and warmup and type(warmup.value) == "number" and warmup.value >= window.value then
    local culprit = #warmup.hides > 0 and warmup or window
    complain(builder, culprit, "rollback_warmup_steps is %s: expected less than rollback_window_steps, %s",
             layers.show_value(warmup, warmup.value), layers.show_value(window, window.value))
  end
end

local function names_a_schedule(rule)
  for _, condition in ipairs(rule.conditions) do
    if condition.field == "schedule" or condition.field == "schedule_family" then return true end
  end
  return false
end

-- The schedules that a rule names, those of families included.
local function named_schedules(rule)
  local names = {}
  for _, condition in ipairs(rule.conditions) do
    if condition.field == "schedule" or condition.field == "schedule_family" then
      local list = condition.op == "one_of" and condition.values or condition.op == "equal" and { condition.value } or {}
      for _, name in ipairs(list) do names[name] = true end
    end
  end
  return names
end

local function check_rule(builder, rule)
  local function complain_of(format, ...)
    complain(builder, rule.origin.recommend or rule, "%s '%s': " .. format, rule.verb, rule.id, ...)
  end
  if (rule.verb == "refuse" or rule.verb == "reject") and rule.recommend then
    local is_layout = contains(statements.layouts, rule.recommend)
    if rule.verb == "reject" and not is_layout then
      complain_of("a reject recommends a layout: data_parallel or data_and_tensor_parallel")
    elseif rule.verb == "refuse" and names_a_schedule(rule) == is_layout and (is_layout or not rule.when) then
      complain_of(is_layout and "it refuses a schedule, so it recommends a schedule" or
               "it refuses the plan, so it recommends data_parallel or data_and_tensor_parallel")
    elseif rule.verb == "refuse" and named_schedules(rule)[rule.recommend] then
      complain_of("it recommends %s, which it refuses", rule.recommend)
    end
  end
  for _, condition in ipairs(rule.verb == "prefer" and rule.within == "any" and rule.conditions or {}) do
    for _, name in ipairs(conditions.fields(condition)) do
      local problem = vocabulary.by_name[name] and statements.unreadable("prefer", name, "any")
      if problem then complain_of("%s", problem) end
    end
  end
  if rule.unless and not builder.rules[rule.unless] and not builder.disabled_by_id[rule.unless] then
    complain_of("unless: no rule has the id '%s'%s", rule.unless, failure.suggestion(rule.unless, sorted_keys(builder.rules)))
  end
end

local function check_row(builder, row, members)
  row.stated = row.stated or row.try
  row.try = {}
  for _, name in ipairs(row.stated or {}) do
    if #members[name] > 0 then row.try[#row.try + 1] = name end
  end
  if row.stated and #row.try == 0 then
    local schedules = builder.parameters.schedules
    local culprit = schedules and #schedules.hides > 0 and schedules or row.origin.try or row
    complain(builder, culprit, "row '%s' (%s) is left without a schedule: it tries %s, and schedules allows only %s", row.id, place(row),
             table.concat(row.stated, ", "), table.concat(schedules and schedules.value or {}, ", "))
  end
end

-- What rules let through stands before what kernels claim.
local function rules_before_kernels(loosened)
  local list = {}
  for pass = 1, 2 do
    for _, entry in ipairs(loosened) do
      if (entry.kind == "kernel") == (pass == 2) then list[#list + 1] = entry end
    end
  end
  return list
end

-- Puts layers = { { name, statements } } together. report(file, line, text) takes everything that is wrong with them.
-- Returns the parts of a policy that statements decide.
function layers.build(list, date, report, unpinned)
  local builder = {
    date = date, report = report, names = field_names(), parameters = {}, parameter_order = {}, rules = {}, lists = {},
    disabled = {}, disabled_by_id = {}, lapsed = {}, loosened = {}, warnings = {}, pins = {}, idle = {},
    stack = list, default_layer = list[1].name, default_digest = list[1].digest, unpinned = unpinned,
  }
  for verb in pairs(plural) do builder.lists[verb] = {} end
  for i, layer in ipairs(list) do
    builder.reading = i
    read_layer(builder, layer)
  end
  check_lists(builder)
  check_window(builder)
  check_kernels(builder)
  local policy = {
    parameters = builder.parameters, parameter_order = builder.parameter_order, rules = builder.rules, disabled = builder.disabled,
    lapsed = builder.lapsed, loosened = rules_before_kernels(builder.loosened), warnings = builder.warnings, pins = builder.pins,
    idle = builder.idle,
    names = builder.names.list, members = members_of(builder),
  }
  for verb, name in pairs(plural) do
    policy[name] = {}
    for _, rule in ipairs(builder.lists[verb]) do
      if builder.rules[rule.id] == rule then table.insert(policy[name], rule) end
    end
  end
  for _, entry in ipairs(builder.disabled) do  -- what they would say is shown
    for _, condition in ipairs(entry.rule.conditions) do conditions.resolve(condition, builder.parameters) end
    conditions.sort(entry.rule.conditions)
  end
  for _, id in ipairs(sorted_keys(builder.rules)) do
    local rule = builder.rules[id]
    for _, condition in ipairs(rule.conditions) do conditions.resolve(condition, builder.parameters) end
    conditions.sort(rule.conditions)
    rule.phase = statements.phase(rule)
    if builder.parameters[rule.within] then
      rule.within_ref, rule.within = rule.within, builder.parameters[rule.within].value
    end
    if rule.verb == "kernel" and rule.overlapping == nil then rule.overlapping = true end
    check_rule(builder, rule)
  end
  for _, row in ipairs(policy.rows) do check_row(builder, row, policy.members) end
  return policy
end

-- A parameter's value as it is shown: "100", "25 %", "zb_h1, zb_v, zb_h2".
function layers.show_value(parameter, value)
  if type(value) == "table" then return table.concat(value, ", ") end
  if type(value) ~= "number" then return tostring(value) end
  return units.format(value, parameter.unit)
end

return layers
