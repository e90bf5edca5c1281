-- SPDX-License-Identifier: Apache-2.0
-- parts.lua: a framework's table in two parts. Every plan asks the first of every framework: what it runs, and rules that plans are held
-- against. Only who reads or writes the files of one asks for the second, which is most of it, and made when somebody does.

local parts = {}

-- What stands in the second part.
parts.second = { accepts = true, facts = true, gone = true, keys = true, recipes = true, required = true, rules = true, told = true, unplanned = true,
               unsaid = true, writes = true }

-- entry: the first part, of which it is made a whole; second: function(entry) → the other.
function parts.split(entry, second)
  return setmetatable(entry, { __index = function(_, name)
    if not parts.second[name] then return nil end
    setmetatable(entry, nil)
    for key, value in pairs(second(entry)) do entry[key] = value end
    return entry[name]
  end })
end

-- Of rules those that plans are held against.
function parts.of_plans(rules)
  local list = {}
  for _, rule in ipairs(rules) do
    if rule.by ~= "engine" then list[#list + 1] = rule end
  end
  return list
end

-- Two lists in one.
function parts.joined(list, more) return table.move(more, 1, #more, #list + 1, list) end

-- A list of rules in which names stand for rules of plans: with those in their places.
function parts.placed(plan_rules, list)
  local by_id = {}
  for _, rule in ipairs(plan_rules) do by_id[rule.id] = rule end
  for i, rule in ipairs(list) do
    if type(rule) == "string" then list[i] = by_id[rule] or error("no rule of plans is called " .. rule) end
  end
  return list
end

return parts
