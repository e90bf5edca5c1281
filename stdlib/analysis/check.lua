-- SPDX-License-Identifier: Apache-2.0
--[[
check.lua: what is wrong, or worth knowing, about a policy that loads. Everything is decided from the rules alone (table.lua, cells.lua);
witnesses are specs that show it (realise.lua), and where none was found the finding says so. Codes and severities: findings.lua.

  check.policy(policy, { witnesses = bool }) → { finding, … }, most severe first
]]

local boxes = require "pipeplan.analysis.boxes"
local cells = require "pipeplan.analysis.cells"
local conditions = require "pipeplan.policy.conditions"
local dates = require "pipeplan.base.dates"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local families = require "pipeplan.catalog.families"
local findings = require "pipeplan.analysis.findings"
local ineffective = require "pipeplan.analysis.ineffective"
local lists = require "pipeplan.base.lists"
local plausible = require "pipeplan.analysis.plausible"
local realise = require "pipeplan.analysis.realise"
local statements = require "pipeplan.policy.statements"
local suppress = require "pipeplan.analysis.suppress"
local tables = require "pipeplan.analysis.table"

local check = {}

local LIMIT = 20000        -- pieces into which subtracting rejects may split a rule
local MOST_CONDITIONS = 500   -- different ones, of all rules: to find out of them takes the square of their number, of 500 a few seconds
local MOST_WITNESSES, MOST_UNREACHED = 200, 20  -- that are found, and not found, before none is looked for: each is up to 400 specs planned

local OTHER_VERBS = { "set", "parameter", "change", "disable", "enable", "pin" }  -- beside those of rules

-- Parameters that the planner itself reads, wherever no rule does (stdlib/plan, stdlib/policy); tests/lua/check_spec.lua compares them
-- with the code.
check.planner_parameters = {
  "context_rank_tokens", "default_batch_tokens", "idle_gpus", "measured_least_steps", "measured_warmup_steps", "memory_headroom",
  "micro_batch_choices", "recompute_choices",
  "rollback_fallback", "rollback_warmup_steps", "rollback_window_steps", "schedules", "sharding_choices",
  "split_gain_fraction", "split_overfull_fraction", "split_tie_fraction", "tie_fraction", "tight_fraction", "wanted_tolerance",
  "zero_bubble_members",
}

-- What is being collected.
local collector = {}
collector.__index = collector

function collector:add(code, at, message, ...)
  local finding = { code = code, file = at.file, line = at.line, layer = at.layer, id = at.id, message = string.format(message, ...),
                    related = {} }
  self.list[#self.list + 1] = finding
  return finding
end

local function relate(finding, rule, message)
  table.insert(finding.related, { file = rule.file, line = rule.line, layer = rule.layer, id = rule.id, message = message })
end

-- A spec that shows a finding.
function collector:witness(finding, wanted, list)
  local possible, why = wanted.space:possible(list)
  if why then
    finding.message = finding.message .. "; no candidate can be there: " .. why
  elseif self.witnesses and self.found < MOST_WITNESSES and self.unreached < MOST_UNREACHED then
    finding.witness = realise.any(self.policy, wanted, possible)
    finding.unreached = not finding.witness or nil
    if finding.witness then self.found = self.found + 1 else self.unreached = self.unreached + 1 end
  end
end

-- --------------------------------------------------------------------------------------------------------------------- the table

local function rules_of(rows, wanted)
  local list = {}
  for _, row in ipairs(rows) do
    if wanted(row) then list[#list + 1] = row.rule end
  end
  return list
end

local function in_words(space, list)
  local words = {}
  for i = 1, math.min(#list, 3) do words[i] = space:text(list[i]) end
  if #list > 3 then words[4] = string.format("and %d more", #list - 3) end
  return table.concat(words, "; ")
end

local function check_gaps(self, analysis)
  if not analysis.gaps then
    self:add("undecided", analysis.rows[1].rule, "the rows fall into too many pieces to find what none of them covers")
  elseif #analysis.gaps > 0 then
    local catch_all = analysis.catch_all
    local finding = catch_all
      and self:add("catch_all", catch_all.rule, "only row '%s' covers: %s", catch_all.rule.id, in_words(analysis.space, analysis.gaps))
      or self:add("gap", analysis.rows[#analysis.rows].rule, "no row covers: %s", in_words(analysis.space, analysis.gaps))
    self:witness(finding, { space = analysis.space, fails = rules_of(analysis.rows, function(row) return not row.open end) }, analysis.gaps)
  end
end

local function ids(rows)
  local list = {}
  for i, row in ipairs(rows) do list[i] = "'" .. row.rule.id .. "'" end
  return table.concat(list, ", ")
end

local function check_rows(self, analysis)
  local space = analysis.space
  for _, shadowed in ipairs(analysis.shadowed) do
    local rule = shadowed.row.rule
    local finding = self:add("shadowed", rule, "row '%s' never decides: %s take%s all of it (%s)", rule.id, ids(shadowed.by),
                             #shadowed.by == 1 and "s" or "", space:text(shadowed.row.box))
    for _, row in ipairs(shadowed.by) do relate(finding, row.rule, "takes part of it") end
    self:witness(finding, { space = space, holds = { rule } }, { shadowed.row.box })
  end
  for _, overlap in ipairs(analysis.overlaps) do
    local first, second = overlap.first.rule, overlap.second.rule
    local finding = self:add("overlap", second, "rows '%s' and '%s' both hold for %s; '%s' decides", first.id, second.id,
                             space:text(overlap.box), first.id)
    relate(finding, first, "decides")
    self:witness(finding, { space = space, holds = { first, second } }, { overlap.box })
  end
  for _, redundant in ipairs(analysis.redundant) do
    local finding = self:add("redundant", redundant.row.rule, "row '%s' could go: what it decides, '%s' would decide alike",
                             redundant.row.rule.id, redundant.by.rule.id)
    relate(finding, redundant.by.rule, "would decide")
    self:witness(finding, { space = space, holds = { redundant.row.rule, redundant.by.rule } }, redundant.row.own)
  end
  if analysis.more_overlaps then
    self:add("undecided", analysis.rows[1].rule, "not every place was looked at where rows may overlap: %d are told here",
             #analysis.overlaps)
  end
  for _, row in ipairs(analysis.undecided) do
    self:add("undecided", row.rule, "row '%s': whether earlier rows take all of it could not be decided", row.rule.id)
  end
end

-- ----------------------------------------------------------------------------------------------------------------- single rules

local function all_rules(policy)
  local list = {}
  for _, name in ipairs { "rows", "rejects", "refuses", "prefers", "kernels", "warns", "invariants" } do
    table.move(policy[name], 1, #policy[name], #list + 1, list)
  end
  return list
end

-- What a condition says of all values that its field can have: "always", "never", or nil.
local function verdict_of(space, condition)
  local dim = space.dims[space.position[condition.field]]
  local bit = dim and dim.of_condition[conditions.text(condition)]
  if not bit then return nil end
  local some, all = false, true
  for _, cell in ipairs(dim.cells) do
    if cell.signature:sub(bit, bit) == "1" then some = true else all = false end
  end
  return all and "always" or not some and "never" or nil
end

local function check_conditions(self, rules)
  local space = cells.space(rules)
  for _, rule in ipairs(rules) do
    local never
    for _, condition in ipairs(rule.conditions) do
      local verdict = verdict_of(space, condition)
      if verdict == "never" then never = condition
      elseif verdict == "always" then
        self:add("constant", rule, "%s '%s': %s always holds", rule.verb, rule.id, conditions.text(condition))
      end
    end
    if never then
      self:add("impossible", rule, "%s '%s' can never hold: %s holds for no value", rule.verb, rule.id, conditions.text(never))
    elseif #rule.conditions > 1 then
      local _, why = space:possible { space:box(rule) }
      if why then self:add("impossible", rule, "%s '%s' can never hold: no candidate can be there: %s", rule.verb, rule.id, why) end
    end
    if rule.when then
      self:add("opaque", rule, "%s '%s' has a function that does more than compare fields and is not analysed: what it %s", rule.verb,
               rule.id, rule.verb == "row" and "takes from other rows, and leaves to them, is not known"
               or "takes from other rules is not known, and only tests see a mistake in it")
    end
  end
end

-- ------------------------------------------------------------------------------------------------------- rules beside other rules

-- Of some rules' boxes as few as it takes to cover a box, nil when all of them together do not.
local function covering(space, box, list)
  local function cover(some)
    local taken = {}
    for i, one in ipairs(some) do taken[i] = one.box end
    local left = boxes.without(space.shape, { box }, taken, LIMIT)
    return left ~= nil and #left == 0
  end
  if not cover(list) then return nil end
  for i = #list, 1, -1 do
    local rest = table.move(list, 1, #list, 1, {})
    table.remove(rest, i)
    if cover(rest) then list = rest end
  end
  return list
end

-- Rules that change nothing because rejects drop all their candidates. Of two rejects that drop the same the later one is named.
local function check_effect(self, policy)
  local judged = {}
  for _, name in ipairs { "rejects", "refuses", "warns", "rows" } do table.move(policy[name], 1, #policy[name], #judged + 1, judged) end
  local space = cells.space(judged)
  local rejects, gone = {}, {}
  for i, rule in ipairs(policy.rejects) do rejects[i] = { rule = rule, box = space:box(rule) } end
  for i = #judged, 1, -1 do
    local rule = judged[i]
    local box = space:box(rule)
    if not rule.when and #rule.conditions > 0 and not boxes.is_empty(space.shape, box) then
      local by = {}
      for _, other in ipairs(rejects) do
        if other.rule ~= rule and not other.rule.when and not gone[other.rule] and boxes.intersect(space.shape, box, other.box) then
          by[#by + 1] = other
        end
      end
      by = covering(space, box, by)
      if by then
        gone[rule] = true
        local finding = self:add("never_fires", rule, "%s '%s' changes nothing: %s drop%s all its candidates", rule.verb, rule.id, ids(by),
                                 #by == 1 and "s" or "")
        for _, other in ipairs(by) do relate(finding, other.rule, "drops them") end
        self:witness(finding, { space = space, holds = { rule, by[1].rule } },
                     { boxes.intersect(space.shape, box, by[1].box) })
      end
    end
  end
  if space.shape.left < 0 then
    self:add("undecided", judged[1], "the rules fall into too many pieces to find all whose candidates rejects drop")
  end
end

local function check_refusals(self, policy)
  local tried = {}
  for _, row in ipairs(policy.rows) do
    for _, name in ipairs(row.try) do
      for _, member in ipairs(policy.members[name]) do tried[member] = true end
    end
  end
  for _, rule in ipairs(policy.refuses) do
    local names, wanted = ineffective.schedules(rule), false
    for _, name in ipairs(names or {}) do wanted = wanted or tried[name] end
    local inherited = #policy.layers > 1 and rule.layer == "default"  -- a site that tries other schedules means it
    if names and not wanted and not inherited then
      self:add("unwanted", rule, "refuse '%s' has no effect: no row tries %s", rule.id, table.concat(names, " or "))
    end
  end
  for _, row in ipairs(policy.rows) do
    for _, name in ipairs(row.stated or {}) do
      if not lists.contains(row.try, name) then
        self:add("left_out", row, "row '%s': %s is not among the parameter `schedules`", row.id, name)
      end
    end
  end
end

-- ------------------------------------------------------------------------------------------------------------- parameters, overrides

-- Names by which a rule decides, and those that it only tells.
local function named_in(rule, seen, told)
  for _, condition in ipairs(rule.conditions) do
    for _, key in ipairs { "ref", "low_ref", "high_ref" } do seen[condition[key] or ""] = true end
  end
  for _, text in ipairs { rule.message or "", rule.why or "" } do
    for name in text:gmatch("{([^{}]*)}") do told[name] = told[name] or rule end
  end
  seen[rule.within_ref or ""] = true
end

-- Where a site made nothing of a parameter of the default: at the change of the rule that still tells it.
local function where_changed(parameter, rule)
  if parameter.layer ~= "default" then return parameter end
  for _, condition in ipairs(rule.conditions) do
    local origin = rule.origin[condition.field]
    if origin then return { id = rule.id, layer = origin.layer, file = origin.file, line = origin.line } end
  end
  return parameter
end

local function check_parameters(self, policy, rules)
  local seen, told, opaque = {}, {}, false
  for _, name in ipairs(check.planner_parameters) do seen[name] = true end
  for _, entry in ipairs(policy.disabled) do named_in(entry.rule, seen, seen) end  -- it is brought back when that ends
  for _, rule in ipairs(rules) do
    named_in(rule, seen, told)
    opaque = opaque or rule.when ~= nil
  end
  for _, id in ipairs(policy.parameter_order) do
    local rule = told[id]
    if not seen[id] and rule then
      self:add("unused_parameter", where_changed(policy.parameters[id], rule), "no rule decides by parameter '%s'%s: only the message of "
               .. "%s '%s' names it, and tells another limit than the rule has", id, opaque and ", unless a function does" or "", rule.verb,
               rule.id)
    elseif not seen[id] then
      self:add("unused_parameter", policy.parameters[id], "no rule reads parameter '%s'%s", id,
               opaque and ", unless a function does" or "")
    end
  end
end

-- Names that no list closes, for a site may have what no catalogue knows: a slip in one would mean a rule about nothing.
local catalogued = { accelerator = "accelerators", alltoall_kernel = "kernels" }

-- The model_type that somebody may have meant who wrote one that none of the known classes has; nil: it is one, or like none.
local function near_family(name)
  local known = {}
  for id, family in pairs(families.all()) do
    known[#known + 1] = id
    table.move(family.types or {}, 1, #(family.types or {}), #known + 1, known)
  end
  table.sort(known)
  local near = failure.nearest(name, known)
  return near ~= name and near or nil
end

local function check_names(self, rules)
  local function look_up(rule, field, value)
    if type(value) ~= "string" or value == "given by hand" then return end
    local entry, near = require("pipeplan.catalog." .. catalogued[field]).find(value)
    if entry and entry.name == value then return end
    local hint = entry and ": it calls it '" .. entry.name .. "'" or near[1] and string.format(", did you mean '%s'?", near[1]) or ""
    self:add("unknown_name", rule, "%s '%s': the catalogue has no %s '%s'%s", rule.verb, rule.id,
             field == "accelerator" and field or "kernel", value, hint)
  end
  for _, rule in ipairs(rules) do
    if rule.verb == "kernel" then look_up(rule, "alltoall_kernel", rule.recommend or rule.id) end
    for _, condition in ipairs(rule.conditions) do
      local values = not condition.ref and (condition.values or { condition.value }) or {}
      for _, value in ipairs(values) do
        if catalogued[condition.field] then look_up(rule, condition.field, value) end
        local near = condition.field == "model_family" and near_family(value)
        if near then
          self:add("unknown_name", rule, "%s '%s': no config.json that is known has model_type '%s', did you mean '%s'?", rule.verb,
                   rule.id, value, near)
        end
      end
    end
  end
end

local LATE_DAYS = 5 * 365

local function check_overrides(self, policy)
  for _, entry in ipairs(policy.idle) do self:add("no_change", entry, "%s", entry.message) end
  for _, entry in ipairs(policy.loosened) do
    self:add("loosened", entry, "%s '%s' lets more plans through: %s%s", entry.kind, entry.id, entry.reason or "no reason",
             entry.expires and " (until " .. entry.expires .. ")" or "")
    if entry.expires and dates.days(entry.expires) - dates.days(policy.date) > LATE_DAYS then
      self:add("expires_late", entry, "%s '%s' expires on %s, in more than five years", entry.kind, entry.id, entry.expires)
    end
  end
  for _, warning in ipairs(policy.warnings) do
    local file, line, text = warning.message:match("^(.-):(%d+): (.*)$")
    if warning.id == "expires_soon" or warning.id == "expired" then
      self:add(warning.id, { file = file or "--set", line = math.tointeger(tonumber(line)) or 0 }, "%s", text or warning.message)
    end
  end
end

-- The line in which a file states something of a policy; nil: it is none, or a test.
local function states(folder, name)
  if not name:lower():match "%.lua$" then return nil end
  local text, number = engine.host.policy_text(folder, name) or "", 0
  if text:find "%f[%w_]describe%f[^%w_]" then return nil end
  for line in text:gmatch "([^\n]*)\n?" do
    number = number + 1
    local verb = line:match "^(%l+)%s*{"
    if verb and (statements.verbs[verb] or lists.contains(OTHER_VERBS, verb)) then return number end
  end
  return nil
end

-- Files that are not read although they look like policy: in the folder itself, and one folder down.
local function check_unread(self, layer)
  local function look(folder, name)
    local line = states(folder, name)
    if line then
      self:add("policy_not_read", { file = folder .. "/" .. name, line = line, layer = layer.name },
               "it states rules or parameters, and is not read: of a folder only its own *.lua are, without *_spec.lua")
    end
  end
  local folder = layer.path:gsub("(.)/+$", "%1")
  for _, name in ipairs(layer.not_read) do
    local below = name:match "^([^.].*)/$"
    local names = below and engine.host.directory(folder .. "/" .. below)
    if names then table.sort(names) end
    for _, inner in ipairs(names or {}) do look(folder .. "/" .. below, inner) end
    if not names then look(folder, name) end
  end
end

local function check_files(self, policy)
  for _, layer in ipairs(policy.layers) do
    if #layer.not_read > 0 then
      self:add("not_read", { file = layer.path, line = 0, layer = layer.name }, "not read: %s", table.concat(layer.not_read, ", "))
      check_unread(self, layer)
    end
  end
end

-- Notes about rules of one layer alone are that layer's business, not of who lays another over it.
local function concerns(finding, layer)
  if findings.severity(finding) ~= "note" or finding.layer ~= layer then return false end
  for _, other in ipairs(finding.related) do
    if other.layer ~= layer then return false end
  end
  return true
end

-- Without the notes about the default policy alone, where there is another layer: list, how many were left out.
function check.about_sites(policy, list)
  if #policy.layers == 1 then return list, 0 end
  local kept = {}
  for _, finding in ipairs(list) do
    if not concerns(finding, "default") then kept[#kept + 1] = finding end
  end
  return kept, #list - #kept
end

-- How many conditions rules have that are not alike.
local function different_conditions(rules)
  local seen, count = {}, 0
  for _, rule in ipairs(rules) do
    for _, condition in ipairs(rule.conditions) do
      local key = conditions.text(condition)
      if not seen[key] then seen[key], count = true, count + 1 end
    end
  end
  return count
end

-- What rules take of each other, and of all values that there are.
local function check_together(self, policy, rules)
  local count = different_conditions(rules)
  if count > MOST_CONDITIONS then
    local own = rules[1]
    for _, rule in ipairs(rules) do
      if rule.layer ~= "default" then own = rule end
    end
    self:add("undecided", own, "the rules have %d different conditions, more than %d: what they take of each other was not looked at",
             count, MOST_CONDITIONS)
    return
  end
  if #policy.rows > 0 then
    local analysis = tables.analyse(policy.rows)
    check_gaps(self, analysis)
    check_rows(self, analysis)
  end
  check_conditions(self, rules)
  check_effect(self, policy)
end

function check.policy(policy, options)
  local self = setmetatable({ policy = policy, list = {}, witnesses = not options or options.witnesses ~= false,
                              found = 0, unreached = 0 }, collector)
  realise.begin(policy)
  local rules = all_rules(policy)
  local function add(...) return self:add(...) end
  plausible.check(policy, rules, add)
  for _, finding in ipairs(self.list) do
    if finding.code == "function_fails" then self.witnesses = false end  -- what shows other findings would be planned by it too
  end
  check_together(self, policy, rules)
  check_refusals(self, policy)
  check_parameters(self, policy, rules)
  check_names(self, rules)
  ineffective.check(policy, rules, add)
  check_overrides(self, policy)
  check_files(self, policy)
  return suppress.apply(policy, self.list)
end

-- What a search for broken invariants found (invariants.lua), as findings about the rule that it names, where that is one of the policy's.
function check.broken(policy, list)
  local out = {}
  for i, broken in ipairs(list) do
    local at = policy.rules[broken.rule] or policy.parameters[broken.rule] or { file = policy.layers[#policy.layers].name, line = 0 }
    out[i] = { code = broken.kind, file = at.file, line = at.line, layer = at.layer, id = broken.rule, message = broken.message,
               related = {}, witness = { spec = broken.spec } }
  end
  return out
end

-- What keeps a policy from loading, as findings: one for each line of it.
function check.load_problems(lines)
  local list = {}
  for i, line in ipairs(lines) do
    local file, number, text = line:match("^(.-):(%d+): (.*)$")
    list[i] = { code = "load", file = file or "", line = math.tointeger(tonumber(number)) or 0, message = text or line, related = {} }
  end
  return list
end

return check
