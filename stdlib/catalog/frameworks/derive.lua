-- SPDX-License-Identifier: Apache-2.0
-- derive.lua: a framework that is another one with changes, without a copy of it. Of the change
--   spell      function: how it writes a key of the base; handed on
--   renamed    { ["--base-key"] = its key } for those that it writes otherwise
--   dropped    base keys that it does not have
--   keys, gone, rules   what it has beside the base's; without: ids of rules of the base that do not hold in it
--   schedules  laid over the base's, name by name; false: it does not run that one
--   facts      laid over the base's
-- Every other field stands in place of the base's. Not handed on are `argparse`, for such a framework adds arguments of its own, and `accepts`,
-- for its code is another. The keys of five such tables are a millisecond, and a plan asks for those of one at most: they are put together
-- when somebody does.

local lists = require "pipeplan.base.lists"

local own = { renamed = true, dropped = true, keys = true, gone = true, rules = true, without = true, schedules = true, facts = true }

-- What is the base's own.
local kept = { keys = true, argparse = true, accepts = true }

-- The keys of the base as it writes them, then its own.
local function keys_of(base, change)
  local list, renamed = {}, change.renamed or {}
  for _, key in ipairs(base.keys) do
    if not lists.contains(change.dropped or {}, key.key) then
      local copy = lists.with(key)
      local function spelled(name) return renamed[name] or change.spell and change.spell(name) or name end
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

local function derive(base, change)
  local out = {}
  for name, value in pairs(base) do out[name] = not kept[name] and value or nil end
  for name, value in pairs(change) do
    if not own[name] then out[name] = value end
  end
  out.base = base.name
  out.gone = appended(base.gone, change.gone)
  local rules = {}
  for _, rule in ipairs(base.rules) do
    if not lists.contains(change.without or {}, rule.id) then rules[#rules + 1] = rule end
  end
  out.rules = appended(rules, change.rules)
  out.facts = lists.with(base.facts or {}, change.facts)
  out.schedules = {}
  for name, how in pairs(base.schedules) do out.schedules[name] = how end
  for name, how in pairs(change.schedules or {}) do out.schedules[name] = how or nil end
  return setmetatable(out, { __index = function(entry, name)
    if name == "keys" then entry.keys = keys_of(base, change) end
    return rawget(entry, name)
  end })
end

return derive
