-- SPDX-License-Identifier: Apache-2.0
--[[
overrides.lua: what the statements of a layer do to those of earlier ones: set, change, disable, enable, pin; and what holds of all that
loosens, whichever statement does it: it needs a reason, it falls away when it has expired, and it may not touch what is final.

`builder` is that of layers.lua. A title names the statement in what is said about it.
]]

local builders = require "pipeplan.policy.builder"
local conditions = require "pipeplan.policy.conditions"
local dates = require "pipeplan.base.dates"
local failure = require "pipeplan.base.failure"
local kernels = require "pipeplan.catalog.kernels"
local lists = require "pipeplan.base.lists"
local loosening = require "pipeplan.policy.loosening"
local place = require("pipeplan.base.format").place
local statements = require "pipeplan.policy.statements"
local vocabulary = require "pipeplan.vocabulary"

local overrides = {}

local complain, origin = builders.complain, builders.origin
local contains, sorted_keys = lists.contains, lists.sorted_keys

local EXPIRES_SOON_DAYS = 30

-- ------------------------------------------------------------------------------------------------------------- reasons and expiry

local function warn(builder, id, statement, format, ...)
  builder.warnings[#builder.warnings + 1] = { id = id, severity = "warning",
                                              message = place(statement) .. ": " .. string.format(format, ...) }
end

-- Is its day over? What loosens falls away then, what does not stays, as does that of which nobody knows; each is told. Says so too in its
-- last days. What only took a part of it back, and so has no reason of its own, falls away with it: nobody is kept from planning on that
-- day. `id`: of what it is about. loosens: true, false, or nil: not known.
local function lapses(builder, statement, title, loosens, id)
  local below = builder.lapsed[id]
  if loosens and below and below.layer ~= statement.layer and not statement.reason then
    warn(builder, "expired", statement, "%s: what it took back in part has expired (%s); without a reason of its own it no longer holds",
         title, place(below))
    return true
  end
  if not statement.expires then return false end
  if statement.expires < builder.date then
    warn(builder, "expired", statement, "%s expired on %s (the date is %s): it %s", title, statement.expires, builder.date,
         loosens and "no longer holds" or loosens == false and "lets no more plans through, and stays" or "stays: only what is known to "
         .. "let more plans through falls away")
    if loosens then builder.lapsed[id] = statement end
    return loosens
  elseif dates.days(statement.expires) - dates.days(builder.date) <= EXPIRES_SOON_DAYS then
    warn(builder, "expires_soon", statement, "%s expires on %s", title, statement.expires)
  end
  return false
end

-- Takes down an override that leaves all as it is.
local function idle(builder, statement, title, what)
  builder.idle[#builder.idle + 1] = { layer = statement.layer, file = statement.file, line = statement.line, id = statement.id,
                                      message = title .. ": " .. what }
end

-- Takes down what loosens. `reason`: where the statement says why in a property of its own.
local function record(builder, statement, id, title, reason)
  reason = statement.reason or reason
  if not reason and not statement.faulty then
    complain(builder, statement, "%s: this lets more plans through, so it needs %s", title,
             statement.line > 0 and "reason = \"…\"" or "--set reason=…")
  end
  builder.loosened[#builder.loosened + 1] = {
    id = id, kind = statement.verb, layer = statement.layer, file = statement.file, line = statement.line,
    reason = reason, expires = statement.expires, owner = statement.owner, link = statement.link,
  }
end

-- Is something that a statement would loosen final, by an earlier layer? Then it says so.
local function is_final(builder, statement, title, what, final)
  if not final or final.layer == statement.layer then return false end
  complain(builder, statement, "%s: %s is final (%s, %s): no later layer may loosen it", title, what, final.layer, place(final))
  return true
end

-- A rule's conditions by field, and back.
local function by_field(list)
  local map = {}
  for _, condition in ipairs(list) do map[condition.field] = condition end
  return map
end

local function resolve_all(builder, map)
  for _, condition in pairs(map) do conditions.resolve(condition, builder.parameters) end
end

-- ------------------------------------------------------------------------------------------------------------------------- kernels

-- A kernel that overlaps ends the refusals of who has none: does a statement claim one where there was none before, or more of one?
local function claims_kernel(builder, statement, name)
  for _, rule in ipairs(builder.lists.kernel) do
    local own = by_field(rule.conditions)
    if rule.overlapping ~= false and not rule.when and (rule.recommend or rule.id) == name then
      resolve_all(builder, own)
      if not loosening.narrows({ conditions = statement.conditions }, { conditions = own }) then return false end
    end
  end
  return true
end

-- A final rule about kernels, which a new kernel would get around.
local function final_about_kernels(builder)
  for _, id in ipairs(sorted_keys(builder.rules)) do
    local rule = builder.rules[id]
    if rule.final and by_field(rule.conditions).alltoall_kernel then return rule end
  end
  return nil
end

-- A kernel of a layer after the default one: has it lapsed? Its `why` is its reason, unless the catalogue knows better than to call it one
-- that overlaps.
function overrides.kernel_lapses(builder, statement)
  local name = statement.properties.recommend or statement.id
  if statement.properties.overlapping == false then return false end
  resolve_all(builder, statement.conditions)
  if not claims_kernel(builder, statement, name) then return false end
  local known, title = kernels.find(name), string.format("kernel '%s'", statement.id)
  local lie = known and not known.overlapping
  local final = final_about_kernels(builder)
  local about = final and string.format("%s '%s', which is about kernels,", final.verb, final.id)
  if final and is_final(builder, statement, title, about, final.final) then return false end
  if lapses(builder, statement, title, true, statement.id) then return true end
  if lie then title = string.format("%s: the catalogue says that %s overlaps nothing; without overlapping = false", title, known.name) end
  record(builder, statement, statement.id, title, not lie and statement.properties.why or nil)
  return false
end

-- ---------------------------------------------------------------------------------------------------------------------- parameters

local function names_parameter(rule, id)
  for _, condition in ipairs(rule.conditions) do
    if condition.ref == id or condition.low_ref == id or condition.high_ref == id then return true end
  end
  return rule.within == id or rule.within_ref == id
end

-- What is final about a parameter: itself, or a rule that names it.
local function final_of(builder, parameter)
  if parameter.final then return "it", parameter.final end
  for _, id in ipairs(sorted_keys(builder.rules)) do
    local rule = builder.rules[id]
    if rule.final and names_parameter(rule, parameter.id) then
      return string.format("%s '%s', which names it,", rule.verb, rule.id), rule.final
    end
  end
  return nil
end

local function set_parameter(builder, statement, parameter, value)
  local title = "set " .. parameter.id
  local looser = loosening.moves(parameter, parameter.value, value)
  if parameter.loosens == "none" then looser = nil end  -- of one without a direction nobody knows what would loosen it
  local what, final = final_of(builder, parameter)
  if final and looser ~= false and is_final(builder, statement, title, what, final) then return end
  if lapses(builder, statement, title, looser, parameter.id) then return end
  if looser then record(builder, statement, parameter.id, title) end
  if parameter.value == value and not statement.final then
    idle(builder, statement, title, "it is " .. tostring(statement.values[parameter.id]) .. " already (" .. place(parameter) .. ")")
  end
  table.insert(parameter.hides, 1, { value = parameter.value, layer = parameter.layer, file = parameter.file, line = parameter.line })
  parameter.bare = type(statement.values[parameter.id]) == "number"  -- without a unit or a percent sign
  parameter.value, parameter.layer, parameter.file, parameter.line = value, statement.layer, statement.file, statement.line
  parameter.owner, parameter.why, parameter.link = statement.owner, statement.why, statement.link
  if statement.final then parameter.final = origin(statement) end
end

function overrides.set(builder, statement)
  for _, id in ipairs(sorted_keys(statement.values)) do
    local parameter, title, field = builder.parameters[id], "set " .. id, vocabulary.by_name[id]
    if not parameter then
      local instead = field and ": that is a field, which the " .. (field.scope == "request" and "spec gives" or "planner works out")
      complain(builder, statement, "set: no parameter '%s'%s", id, instead or failure.suggestion(id, sorted_keys(builder.parameters)))
    elseif parameter.layer == statement.layer and #parameter.hides > 0 then
      complain(builder, statement, "%s: set in this layer already (%s)", title, place(parameter))
    else
      local value, problem = statements.parameter_value(statement.values[id], parameter)
      if value == nil then
        complain(builder, statement, "%s: %s", title, problem)
      else
        set_parameter(builder, statement, parameter, value)
      end
    end
  end
  if not next(statement.values) and not statement.faulty then complain(builder, statement, "%s", "set: it sets nothing") end
end

-- --------------------------------------------------------------------------------------------------------------------------- rules

-- Where a layer after this one states a rule of that id: { file, line, layer } | nil.
local function stated_later(builder, id)
  for i = builder.reading + 1, #builder.stack do
    for _, raw in ipairs(builder.stack[i].statements) do
      if statements.verbs[raw.verb] and type(raw.argument) == "table" and raw.argument.id == id then
        return { file = raw.file, line = raw.line, layer = builder.stack[i].name }
      end
    end
  end
  return nil
end

-- The rule that an override names, or nil after saying why there is none.
local function target_of(builder, statement)
  local rule = builder.rules[statement.id]
  if rule then return rule end
  local disabled, lapsed = builder.disabled_by_id[statement.id], builder.lapsed[statement.id]
  local title = string.format("%s '%s'", statement.verb, statement.id)
  if disabled then
    complain(builder, statement, "%s: it is disabled already (%s)", title, place(disabled.by))
  elseif builder.parameters[statement.id] then
    complain(builder, statement, "%s: that is a parameter; write set { %s = … }", title, statement.id)
  elseif lapsed then
    complain(builder, statement, "%s: it has expired (%s)", title, place(lapsed))
  elseif contains(statements.built_in, statement.id) then
    complain(builder, statement, "%s: the planner decides that itself", title)
  else
    local later = stated_later(builder, statement.id)
    complain(builder, statement, "%s: no row or rule has that id%s", title, later and
             string.format(" yet: %s, in the later layer '%s', states it; name that layer first", place(later), later.layer) or
             failure.suggestion(statement.id, sorted_keys(builder.rules)))
  end
  return nil
end

-- What a change replaces, for `policy show`.
local function hide(rule, statement, name, old)
  local from = rule.origin[name] or rule
  table.insert(rule.hides, 1, { name = name, value = old, layer = from.layer, file = from.file, line = from.line })
  rule.origin[name] = origin(statement)
end

-- What a rule is after a change, as far as it decides: { conditions = { field → condition }, when, unless, overlapping }.
local function changed(builder, rule, statement, title)
  local after = { conditions = by_field(rule.conditions), when = rule.when, unless = statement.properties.unless or rule.unless }
  if statement.when then  -- in place of the function that there was, and of the comparisons that it was read as
    for field in pairs(rule.compared) do after.conditions[field] = nil end
    after.when = statement.when ~= "any" and statement.when or nil
  end
  for _, field in ipairs(sorted_keys(statement.conditions)) do
    local condition = statement.conditions[field]
    if condition.op == "any" and not after.conditions[field] then
      complain(builder, statement, "%s: it has no condition on '%s' to take away", title, field)
    end
    after.conditions[field] = condition.op ~= "any" and condition or nil
  end
  return after
end

-- Does a change let more plans through? Both sides are resolved.
local function loosens(rule, statement, before, after)
  if loosening.guards[rule.verb] then return loosening.narrows(before, after) end
  local properties = statement.properties
  local overlapping = properties.overlapping
  if overlapping == nil then overlapping = rule.overlapping end
  return rule.verb == "kernel" and overlapping ~= false and
         (loosening.narrows(after, before) or properties.overlapping or properties.recommend ~= nil)
end

local documentation = { message = true, source = true, why = true, owner = true, link = true, final = true, severity = true }

-- Of a rule that guards nothing, nobody knows what would loosen it: all but its words.
local function alters(statement)
  if statement.when or next(statement.conditions) then return true end
  for name in pairs(statement.properties) do
    if not documentation[name] then return true end
  end
  return false
end

-- Does a change say of each thing what stands?
local function says_nothing_new(rule, statement, before)
  if statement.when then return false end
  for name, value in pairs(statement.properties) do
    local old = rule[name]
    if name == "try" then old = rule.stated or rule.try end
    if type(value) == "table" and type(old) == "table" then old, value = table.concat(old, " "), table.concat(value, " ") end
    if old ~= value then return false end
  end
  for field, condition in pairs(statement.conditions) do
    local old = before.conditions[field]
    if not old or conditions.text(old) ~= conditions.text(condition) then return false end
  end
  return next(statement.properties) ~= nil or next(statement.conditions) ~= nil
end

local function apply_change(rule, statement, before, after)
  for _, name in ipairs(sorted_keys(statement.properties)) do
    if name ~= "final" then
      hide(rule, statement, name, rule[name])
      rule[name] = statement.properties[name]
    end
  end
  for _, field in ipairs(sorted_keys(statement.conditions)) do
    local old = before.conditions[field]
    hide(rule, statement, field, old and conditions.text(old) or "no condition")
  end
  if statement.when then
    hide(rule, statement, "when", rule.when and "a function" or "no function")
    rule.lines, rule.compared = statement.lines, statement.compared
  end
  rule.conditions = {}
  for _, field in ipairs(sorted_keys(after.conditions)) do rule.conditions[#rule.conditions + 1] = after.conditions[field] end
  rule.when = after.when
  if statement.properties.final then rule.final = origin(statement) end
end

function overrides.change(builder, statement)
  local rule, title = target_of(builder, statement), string.format("change '%s'", statement.id)
  if not rule then return end
  local before = { conditions = by_field(rule.conditions), when = rule.when, unless = rule.unless }
  local after = changed(builder, rule, statement, title)
  if not statement.when and not next(statement.conditions) and not next(statement.properties) and not statement.faulty then
    complain(builder, statement, "%s", title .. ": it changes nothing")
  end
  resolve_all(builder, before.conditions)
  resolve_all(builder, after.conditions)
  local looser = loosens(rule, statement, before, after)
  if not looser and not loosening.guards[rule.verb] and alters(statement) then looser = nil end
  if looser ~= false and is_final(builder, statement, title, "it", rule.final) then return end
  if lapses(builder, statement, title, looser, rule.id) then return end
  if looser then record(builder, statement, rule.id, title) end
  if says_nothing_new(rule, statement, before) then
    idle(builder, statement, title, "it says what stands already (" .. place(rule) .. ")")
  end
  apply_change(rule, statement, before, after)
end

function overrides.disable(builder, statement)
  local rule, title = target_of(builder, statement), string.format("disable '%s'", statement.id)
  if not rule then return end
  if is_final(builder, statement, title, "it", rule.final) or lapses(builder, statement, title, true, rule.id) then return end
  if loosening.guards[rule.verb] then record(builder, statement, rule.id, title) end
  builder.rules[rule.id] = nil
  local by = origin(statement)
  by.reason, by.expires, by.owner, by.link = statement.reason, statement.expires, statement.owner, statement.link
  local entry = { rule = rule, by = by, final = statement.final and by or nil }
  builder.disabled[#builder.disabled + 1] = entry
  builder.disabled_by_id[rule.id] = entry
end

local function remove(list, wanted)
  for i = #list, 1, -1 do
    if wanted(list[i]) then table.remove(list, i) end
  end
end

-- Brings back what an earlier layer disables, where it stood.
function overrides.enable(builder, statement)
  local entry, title = builder.disabled_by_id[statement.id], string.format("enable '%s'", statement.id)
  if not entry then
    local known, lapsed = builder.rules[statement.id], builder.lapsed[statement.id]
    if lapsed then   -- what was right before that day is so after it
      idle(builder, statement, title, "what disabled it has expired (" .. place(lapsed) .. ")")
      return
    end
    complain(builder, statement, "%s: %s", title, known and string.format("it is not disabled (%s)", place(known)) or
             "nothing has that id and is disabled" .. failure.suggestion(statement.id, sorted_keys(builder.disabled_by_id)))
    return
  end
  local rule = entry.rule
  if not loosening.guards[rule.verb] and is_final(builder, statement, title, "that it is disabled", entry.final) then return end
  if rule.verb == "kernel" and rule.overlapping ~= false then record(builder, statement, rule.id, title) end
  builder.rules[rule.id], builder.disabled_by_id[rule.id] = rule, nil
  remove(builder.disabled, function(other) return other == entry end)
  remove(builder.loosened, function(other) return other.kind == "disable" and other.id == rule.id end)
  hide(rule, statement, "enabled", string.format("disabled by %s", entry.by.layer))
  if statement.final then rule.final = origin(statement) end
end

-- ------------------------------------------------------------------------------------------------------------------------------ pins

-- The default policy that a site was written for. Another is an error, until somebody has seen what it changes.
function overrides.pin(builder, statement)
  builder.pins[#builder.pins + 1] = { default = statement.default, file = statement.file, line = statement.line }
  if not statement.default or statement.default == builder.default_digest or builder.unpinned then return end
  complain(builder, statement, "pin: the site is pinned to the default policy %s, and this is %s; see what it changes for your specs, "
           .. "and take it: pipeplan policy pin SITE --saved SAVED --corpus SPECS; or plan by the saved one with --policies SAVED",
           statement.default, builder.default_digest)
end

return overrides
