-- layers.lua: what the statements of several layers make together. default ← each --policy ← --set: a later layer adds rules, changes and
-- disables those of an earlier one, and sets parameters. Every rule and parameter remembers where it comes from and what it hides.

local conditions = require "pipeplan.policy.conditions"
local dates = require "pipeplan.base.dates"
local failure = require "pipeplan.base.failure"
local kernels = require "pipeplan.catalog.kernels"
local lists = require "pipeplan.base.lists"
local loosening = require "pipeplan.policy.loosening"
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

local EXPIRES_SOON_DAYS = 30

-- Says what is wrong with something that has a file and a line.
local function complain(builder, at, format, ...)
  builder.report(at.file, at.line, string.format(format, ...))
end

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
  return names
end

-- nil, or why a rule or parameter cannot be called that.
local function clash(builder, statement)
  local id = statement.id
  if contains(vocabulary.reserved, id) then return "that word is one that statements use themselves" end
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

-- ------------------------------------------------------------------------------------------------------------------------- overrides

-- Every override may expire, and then is an error: nobody meant it to hold longer.
local function check_expiry(builder, statement, title)
  if not statement.expires then return end
  if statement.expires < builder.date then
    complain(builder, statement, "%s: expired on %s (the date is %s)", title, statement.expires, builder.date)
  elseif dates.days(statement.expires) - dates.days(builder.date) <= EXPIRES_SOON_DAYS then
    builder.warnings[#builder.warnings + 1] = {
      id = "expires_soon", severity = "warning",
      message = string.format("%s: %s expires on %s", place(statement), title, statement.expires),
    }
  end
end

-- `reason`: where the statement says why in a property of its own.
local function record_loosening(builder, statement, id, title, reason)
  reason = statement.reason or reason
  if not reason and not statement.faulty then
    complain(builder, statement, "%s: this lets more plans through, so it needs %s", title,
             statement.line > 0 and "reason = \"…\"" or "--set reason=…")
  end
  builder.loosened[#builder.loosened + 1] = {
    id = id, kind = statement.verb, layer = statement.layer, file = statement.file, line = statement.line,
    reason = reason, expires = statement.expires,
  }
end

local function by_field(list)
  local map = {}
  for _, condition in ipairs(list) do map[condition.field] = condition end
  return map
end

local function resolve_all(builder, map)
  for _, condition in pairs(map) do conditions.resolve(condition, builder.parameters) end
end

-- A kernel that overlaps ends the refusals of who has none: does a statement claim one where there was none before, or more of one?
local function claims_kernel(builder, statement, before)
  local after = { conditions = statement.conditions }
  for _, rule in ipairs(before) do
    local own = by_field(rule.conditions)
    if rule.overlapping ~= false and not rule.when then
      resolve_all(builder, own)
      if not loosening.narrows(after, { conditions = own }) then return false end
    end
  end
  return true
end

-- A kernel of a later layer. Its `why` is its reason, unless the catalogue knows better than to call it one that overlaps.
local function add_kernel_loosening(builder, statement)
  local name, layer = statement.properties.recommend or statement.id, builder.default_layer
  if statement.properties.overlapping == false or statement.layer == layer then return end
  resolve_all(builder, statement.conditions)
  if not claims_kernel(builder, statement, builder.lists.kernel) then return end
  local known = kernels.find(name)
  local title = string.format("kernel '%s'", statement.id)
  if known and not known.overlapping then
    title = string.format("%s: the catalogue says that %s overlaps nothing; without overlapping = false", title, known.name)
    record_loosening(builder, statement, statement.id, title)
  else
    record_loosening(builder, statement, statement.id, title, statement.properties.why)
  end
  check_expiry(builder, statement, title)
end

local function set_parameters(builder, statement)
  local title = "set"
  for _, id in ipairs(sorted_keys(statement.values)) do
    local parameter = builder.parameters[id]
    title = string.format("set %s", id)
    if not parameter then
      complain(builder, statement, "set: no parameter '%s'%s", id, vocabulary.by_name[id] and ": that is a field, which the spec gives" or
               failure.suggestion(id, sorted_keys(builder.parameters)))
    elseif parameter.layer == statement.layer and #parameter.hides > 0 then
      complain(builder, statement, "%s: set in this layer already (%s)", title, place(parameter))
    else
      local value, problem = statements.parameter_value(statement.values[id], parameter)
      if value == nil then
        complain(builder, statement, "%s: %s", title, problem)
      else
        if loosening.moves(parameter, parameter.value, value) then record_loosening(builder, statement, id, title) end
        table.insert(parameter.hides, 1, { value = parameter.value, layer = parameter.layer, file = parameter.file, line = parameter.line })
        parameter.value, parameter.layer, parameter.file, parameter.line = value, statement.layer, statement.file, statement.line
      end
    end
  end
  if not next(statement.values) and not statement.faulty then complain(builder, statement, "%s", "set: it sets nothing") end
  check_expiry(builder, statement, title)
end

-- The rule that an override names, or nil after saying why there is none.
local function target_of(builder, statement)
  local rule = builder.rules[statement.id]
  if rule then return rule end
  local disabled = builder.disabled_by_id[statement.id]
  local title = string.format("%s '%s'", statement.verb, statement.id)
  if disabled then
    complain(builder, statement, "%s: it is disabled already (%s)", title, place(disabled.by))
  elseif builder.parameters[statement.id] then
    complain(builder, statement, "%s: that is a parameter; write set { %s = … }", title, statement.id)
  elseif contains(statements.built_in, statement.id) then
    complain(builder, statement, "%s: the planner decides that itself", title)
  else
    complain(builder, statement, "%s: no row or rule has that id%s", title, failure.suggestion(statement.id, sorted_keys(builder.rules)))
  end
  return nil
end

-- What a change replaces, for `policy show`.
local function hide(rule, statement, name, old)
  local origin = rule.origin[name] or rule
  table.insert(rule.hides, 1, { name = name, value = old, layer = origin.layer, file = origin.file, line = origin.line })
  rule.origin[name] = { layer = statement.layer, file = statement.file, line = statement.line }
end

local function change_rule(builder, statement)
  local rule, title = target_of(builder, statement), string.format("change '%s'", statement.id)
  if not rule then return end
  local before = { conditions = by_field(rule.conditions), when = rule.when, unless = rule.unless }
  local after = { conditions = by_field(rule.conditions), when = rule.when }
  local changed = false
  if statement.when then  -- in place of the function that there was, and of the comparisons that it was read as
    for field in pairs(rule.compared) do after.conditions[field] = nil end
    rule.compared = statement.compared
  end
  for _, name in ipairs(sorted_keys(statement.properties)) do
    changed = true
    hide(rule, statement, name, rule[name])
    rule[name] = statement.properties[name]
  end
  for _, field in ipairs(sorted_keys(statement.conditions)) do
    local condition, old = statement.conditions[field], before.conditions[field]
    changed = true
    if condition.op == "any" then
      if not old then
        complain(builder, statement, "%s: it has no condition on '%s' to take away", title, field)
      end
      condition = nil
    end
    hide(rule, statement, field, old and conditions.text(old) or "no condition")
    after.conditions[field] = condition
  end
  if statement.when then
    changed = true
    hide(rule, statement, "when", rule.when and "a function" or "no function")
    after.when = statement.when ~= "any" and statement.when or nil
    rule.lines = statement.lines
  end
  if not changed and not statement.faulty then complain(builder, statement, "%s", title .. ": it changes nothing") end
  rule.conditions = {}
  for _, field in ipairs(sorted_keys(after.conditions)) do rule.conditions[#rule.conditions + 1] = after.conditions[field] end
  rule.when, after.unless = after.when, rule.unless
  resolve_all(builder, before.conditions)
  resolve_all(builder, after.conditions)
  local looser = loosening.guards[rule.verb] and loosening.narrows(before, after)
  if rule.verb == "kernel" and rule.overlapping ~= false then
    looser = loosening.narrows(after, before) or statement.properties.overlapping or statement.properties.recommend
  end
  if looser then record_loosening(builder, statement, rule.id, title) end
  check_expiry(builder, statement, title)
end

local function disable_rule(builder, statement)
  local rule, title = target_of(builder, statement), string.format("disable '%s'", statement.id)
  if not rule then return end
  if loosening.guards[rule.verb] then record_loosening(builder, statement, rule.id, title) end
  check_expiry(builder, statement, title)
  builder.rules[rule.id] = nil
  local entry = { rule = rule, by = { layer = statement.layer, file = statement.file, line = statement.line,
                                      reason = statement.reason, expires = statement.expires } }
  builder.disabled[#builder.disabled + 1] = entry
  builder.disabled_by_id[rule.id] = entry
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
    lines = statement.lines, compared = statement.compared,
  }
  for name, value in pairs(statement.properties) do rule[name] = value end
  for _, field in ipairs(sorted_keys(statement.conditions)) do
    local condition = statement.conditions[field]
    if condition.op ~= "any" then rule.conditions[#rule.conditions + 1] = condition end
  end
  builder.rules[rule.id] = rule
  table.insert(new[rule.verb], rule)
  if rule.verb == "kernel" then add_kernel_loosening(builder, statement) end
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
        elseif statement then set_parameters(builder, statement) end
      end
    end
  end
  for verb in pairs(plural) do read[verb] = {} end
  for _, raw in ipairs(layer.statements) do
    if raw.verb ~= "parameter" and raw.verb ~= "set" and raw.verb ~= "site" then
      local statement = statements.read(raw, layer.name, builder.names, builder.report, verb_of)
      if statement then
        local act = raw.verb == "change" and change_rule or raw.verb == "disable" and disable_rule or add_rule
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
function layers.build(list, date, report)
  local builder = {
    date = date, report = report, names = field_names(), parameters = {}, parameter_order = {}, rules = {}, lists = {},
    disabled = {}, disabled_by_id = {}, loosened = {}, warnings = {}, default_layer = list[1].name,
  }
  for verb in pairs(plural) do builder.lists[verb] = {} end
  for _, layer in ipairs(list) do read_layer(builder, layer) end
  check_lists(builder)
  check_window(builder)
  check_kernels(builder)
  local policy = {
    parameters = builder.parameters, parameter_order = builder.parameter_order, rules = builder.rules, disabled = builder.disabled,
    loosened = rules_before_kernels(builder.loosened), warnings = builder.warnings, names = builder.names.list, members = members_of(builder),
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
