-- SPDX-License-Identifier: Apache-2.0
-- show.lua: the effective policy as text and as data: every row, rule and parameter, where it comes from, and what each override hides.

local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local format = require "pipeplan.base.format"
local layers = require "pipeplan.policy.layers"
local lists = require "pipeplan.base.lists"
local text_of = require "pipeplan.base.text"
local units = require "pipeplan.base.units"

local show = {}

-- Kinds of rules in the order of the report: list in the policy, title, what its order means.
local sections = {
  { "rows", "decision table", "top to bottom, the first row that holds decides" },
  { "rejects", "hard rejects", "a plan for which one holds is never made" },
  { "refuses", "refusals", "in this order" },
  { "prefers", "preferences", "in this order" },
  { "kernels", "all-to-all kernels", "the first that matches" },
  { "warns", "warnings", "" },
  { "invariants", "invariants", "what no planned result may satisfy" },
}

local function condition_text(rule)
  local parts = {}
  for i, condition in ipairs(rule.conditions) do parts[i] = conditions.text(condition) end
  if rule.when then parts[#parts + 1] = "when = a function" end
  return #parts > 0 and table.concat(parts, ", ") or "always"
end

local function within_text(rule)
  if type(rule.within) ~= "number" then return rule.within end
  return rule.within_ref and string.format("%s (%s)", rule.within_ref, format.percent(rule.within)) or format.percent(rule.within)
end

-- What follows from a rule, in a few words.
local function consequence(rule)
  if rule.verb == "row" then return "try " .. table.concat(rule.try, ", ") end
  if rule.verb == "prefer" then return "within " .. within_text(rule) end
  if rule.verb == "kernel" then return (rule.overlapping and "" or "does not overlap: ") .. rule.why end
  if rule.verb == "warn" then return rule.severity == "note" and "note" or "warning" end
  if rule.verb == "invariant" then return rule.unless and "unless " .. rule.unless .. " is loosened" or "never" end
  return rule.recommend and "recommend " .. rule.recommend or nil
end

local function origin_text(entry)
  return string.format("%s  %s", entry.layer, format.place(entry))
end

local function value_text(value)
  if value == nil then return "nothing" end
  return type(value) == "table" and table.concat(value, ", ") or tostring(value)
end

-- Names of the row's list that nothing here can plan.
local function left_out(rule)
  local kept, gone = {}, {}
  for _, name in ipairs(rule.try or {}) do kept[name] = true end
  for _, name in ipairs(rule.stated or {}) do
    if not kept[name] then gone[#gone + 1] = name end
  end
  return gone
end

-- Who answers for a statement, why it is there, where to read more, and whether it is final.
local function words(entry, with_why)
  local parts = {}
  if entry.final then parts[#parts + 1] = "final: no later layer may loosen it (" .. format.place(entry.final) .. ")" end
  if entry.owner then parts[#parts + 1] = "owner: " .. entry.owner end
  if with_why and entry.why then parts[#parts + 1] = "why: " .. entry.why end
  if entry.link then parts[#parts + 1] = entry.link end
  return table.concat(parts, "; ")
end

local function add_rule(add, rule)
  local follows = consequence(rule)
  add("  %-26s %s%s", rule.id, condition_text(rule), follows and "  → " .. follows or "")
  add("  %-26s %s%s", "", origin_text(rule), rule.source and "  " .. rule.source or "")
  local said = words(rule, rule.verb ~= "kernel" and rule.verb ~= "row" and rule.verb ~= "prefer")
  if said ~= "" then add("  %-26s %s", "", said) end
  if #left_out(rule) > 0 then add("  %-26s left out, not in schedules: %s", "", table.concat(left_out(rule), ", ")) end
  for _, hidden in ipairs(rule.hides) do
    add("  %-26s %s changed by %s, hides: %s  (%s)", "", hidden.name, origin_text(rule.origin[hidden.name]), value_text(hidden.value),
        origin_text(hidden))
  end
end

local function header(policy, add)
  add("policy  %s", table.concat(lists.column(policy.layers, "name"), " ← "))
  add("digest  %s  date %s  layers %s", policy.digest, policy.date, policy.stack)
  for _, path in ipairs(policy.left_out) do add("left out  %s", path) end
  for _, layer in ipairs(policy.layers) do
    if layer.name ~= "default" and #layer.files > 0 then
      add("layer   %s: %s%s", layer.name, table.concat(layer.files, ", "), layer.found and " (found on this machine)" or "")
    end
    if #layer.not_read > 0 then add("not read  of %s: %s", layer.path, table.concat(layer.not_read, ", ")) end
  end
  for _, entry in ipairs(policy.loosened) do
    add("loosened  %s by %s  %s: %s%s", entry.id, entry.kind, origin_text(entry), entry.reason,
        entry.expires and " (until " .. entry.expires .. ")" or "")
  end
  for _, warning in ipairs(policy.warnings) do add("%s  %s", warning.severity, warning.message) end
end

-- "; 1 to 64": what a number can be, as far as its unit does not say so.
local function range_text(parameter)
  if parameter.type ~= "number" then return "" end
  local low, high = units.range(parameter.unit)
  local least, most = layers.show_value(parameter, parameter.low), layers.show_value(parameter, parameter.high)
  if parameter.high ~= high then return string.format("; %s to %s", least, most) end
  return parameter.low ~= low and "; at least " .. least or ""
end

-- Every file that was read, with its digest, and what else a plan follows from.
function show.files(policy)
  local lines = { string.format("digest     %s", policy.digest),
                  string.format("pipeplan   %s  built from %s", engine.version, engine.build),
                  string.format("catalogue  %s", engine.catalogue), string.format("date       %s", policy.date),
                  string.format("layers     %s  what --policy-digest demands", policy.stack) }
  for _, layer in ipairs(policy.layers) do
    lines[#lines + 1] = ""
    lines[#lines + 1] = string.format("%s  %s", layer.digest, layer.name)
    for i, file in ipairs(layer.files) do lines[#lines + 1] = string.format("  %s  %s", layer.digests[i], file) end
    for _, name in ipairs(layer.not_read) do lines[#lines + 1] = string.format("  %-16s  %s", "not read", name) end
  end
  return format.page(lines)
end

-- The effective policy as text.
function show.text(policy)
  local lines = {}
  local function add(template, ...)
    lines[#lines + 1] = text_of.without_end(string.format(template, ...))
  end
  header(policy, add)
  add("")
  add("parameters")
  for _, id in ipairs(policy.parameter_order) do
    local parameter = policy.parameters[id]
    local loosens = parameter.loosens ~= "none" and "; loosens " .. parameter.loosens or ""
    add("  %-26s %s  (%s%s%s)", id, layers.show_value(parameter, parameter.value), parameter.meaning, range_text(parameter), loosens)
    add("  %-26s %s", "", origin_text(parameter))
    local said = words(parameter, true)
    if said ~= "" then add("  %-26s %s", "", said) end
    for _, hidden in ipairs(parameter.hides) do
      add("  %-26s hides: %s  (%s)", "", layers.show_value(parameter, hidden.value), origin_text(hidden))
    end
  end
  for _, section in ipairs(sections) do
    local rules = policy[section[1]]
    if #rules > 0 then
      add("")
      add("%s%s", section[2], section[3] ~= "" and ": " .. section[3] or "")
      for _, rule in ipairs(rules) do add_rule(add, rule) end
    end
  end
  if #policy.disabled > 0 then
    add("")
    add("disabled")
    for _, entry in ipairs(policy.disabled) do
      add("  %-26s %s%s", entry.rule.id, entry.rule.verb, entry.by.reason and ": " .. entry.by.reason or "")
      add("  %-26s %s%s, hides: %s  (%s)", "", origin_text(entry.by), entry.by.expires and " until " .. entry.by.expires or "",
          condition_text(entry.rule), origin_text(entry.rule))
    end
  end
  return format.page(lines)
end

-- ---------------------------------------------------------------------------------------------------------------------------- data

local function rule_data(rule)
  local data = {
    id = rule.id, verb = rule.verb, phase = rule.phase, layer = rule.layer, file = rule.file, line = rule.line, source = rule.source,
    message = rule.message, recommend = rule.recommend, severity = rule.severity, why = rule.why, unless = rule.unless,
    owner = rule.owner, link = rule.link, final = rule.final,
    within = rule.within, try = rule.try, overlapping = rule.overlapping, opaque = rule.when and true or nil, conditions = {}, hides = {},
  }
  for i, condition in ipairs(rule.conditions) do data.conditions[i] = conditions.text(condition) end
  for i, hidden in ipairs(rule.hides) do
    local by = rule.origin[hidden.name]
    data.hides[i] = { name = hidden.name, value = value_text(hidden.value), layer = hidden.layer, file = hidden.file, line = hidden.line,
                      by = { layer = by.layer, file = by.file, line = by.line } }
  end
  return data
end

-- The same as plain tables, for JSON. `list` marks a table as an array.
function show.data(policy, list)
  local data = { digest = policy.digest, date = policy.date, layers = {}, parameters = {}, loosened = {}, disabled = {} }
  data.pipeplan = { version = engine.version, build = engine.build, library = engine.library, catalogue = engine.catalogue }
  for i, layer in ipairs(policy.layers) do
    data.layers[i] = { name = layer.name, digest = layer.digest, files = list(layer.files), digests = list(layer.digests),
                       not_read = list(layer.not_read) }
  end
  for i, id in ipairs(policy.parameter_order) do
    local p = policy.parameters[id]
    local value = type(p.value) == "table" and list(p.value) or p.value
    local hides = {}
    for j, hidden in ipairs(p.hides) do
      hides[j] = { value = layers.show_value(p, hidden.value), layer = hidden.layer, file = hidden.file, line = hidden.line }
    end
    data.parameters[i] = { id = id, value = value, unit = p.unit, at_least = p.low, at_most = p.high, loosens = p.loosens,
                           meaning = p.meaning, layer = p.layer, file = p.file, line = p.line, hides = list(hides), owner = p.owner,
                           why = p.why, link = p.link, final = p.final }
  end
  for _, section in ipairs(sections) do
    local rules = {}
    for i, rule in ipairs(policy[section[1]]) do
      rules[i] = rule_data(rule)
      rules[i].conditions, rules[i].hides = list(rules[i].conditions), list(rules[i].hides)
      rules[i].try = rules[i].try and list(rules[i].try)
    end
    data[section[1]] = list(rules)
  end
  for i, entry in ipairs(policy.disabled) do
    data.disabled[i] = { id = entry.rule.id, verb = entry.rule.verb, reason = entry.by.reason, expires = entry.by.expires,
                         layer = entry.by.layer, file = entry.by.file, line = entry.by.line, hides = rule_data(entry.rule) }
    local hidden = data.disabled[i].hides
    hidden.conditions, hidden.hides, hidden.try = list(hidden.conditions), list(hidden.hides), hidden.try and list(hidden.try)
  end
  for i, entry in ipairs(policy.loosened) do data.loosened[i] = entry end
  for _, name in ipairs { "layers", "parameters", "loosened", "disabled" } do data[name] = list(data[name]) end
  return data
end

return show
