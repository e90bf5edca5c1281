-- SPDX-License-Identifier: Apache-2.0
-- derive.lua: a framework that is another one with changes, without a copy of it. Of the change
--   spell      function: how it writes a key of the base; handed on
--   plan_rules what it has beside the base's; without: ids of rules of the base that do not hold in it
--   schedules  laid over the base's, name by name; false: it does not run that one
-- and, given by a function, of its second part (parts.lua)
--   renamed    { ["--base-key"] = its key } for those that it writes otherwise
--   dropped    base keys that it does not have
--   keys, gone, rules   what it has beside the base's
--   facts      laid over the base's
-- Every other field stands in place of the base's. Not handed on are `argparse`, for such a framework adds arguments of its own, and `accepts`,
-- for its code is another.

local lists = require "pipeplan.base.lists"
local parts = require "pipeplan.catalog.frameworks.parts"

-- The keys of the base as it writes them, then its own.
local function keys_of(base, spell, change)
  local list, renamed = {}, change.renamed or {}
  for _, key in ipairs(base.keys) do
    if not lists.contains(change.dropped or {}, key.key) then
      local copy = lists.with(key)
      local function spelled(name) return renamed[name] or spell and spell(name) or name end
      copy.key, copy.base = spelled(key.key), key.key
      copy.wants = key.wants and spelled(key.wants)
      list[#list + 1] = copy
    end
  end
  return table.move(change.keys or {}, 1, #(change.keys or {}), #list + 1, list)
end

local function appended(list, more)
  local out = table.move(list, 1, #list, 1, {})
  return table.move(more or {}, 1, #(more or {}), #out + 1, out)
end

-- The rules of the base that hold, and more.
local function rules_of(rules, without, more)
  local list = {}
  for _, rule in ipairs(rules) do
    if not lists.contains(without or {}, rule.id) then list[#list + 1] = rule end
  end
  return appended(list, more)
end

local function second_part(base, first, second)
  local out = {}
  for name in pairs(parts.second) do
    out[name] = second[name]
    if out[name] == nil and name ~= "accepts" then out[name] = base[name] end
  end
  out.keys = keys_of(base, first.spell, second)
  out.gone = appended(base.gone, second.gone)
  out.rules = appended(rules_of(base.rules, first.without, first.plan_rules), second.rules)
  out.facts = lists.with(base.facts or {}, second.facts)
  return out
end

local function derive(base, first, second)
  local out = {}
  for name, value in pairs(base) do
    if not parts.second[name] and name ~= "argparse" then out[name] = value end
  end
  for name, value in pairs(first) do
    if name ~= "without" then out[name] = value end
  end
  out.base = base.name
  out.plan_rules = rules_of(base.plan_rules, first.without, first.plan_rules)
  out.schedules = {}
  for name, how in pairs(base.schedules) do out.schedules[name] = how end
  for name, how in pairs(first.schedules or {}) do out.schedules[name] = how or nil end
  return parts.split(out, function() return second_part(base, first, second and second() or {}) end)
end

return derive
