-- SPDX-License-Identifier: Apache-2.0
-- lists.lua: what Lua's table library leaves out.

local lists = {}

-- Is the value in the list?
function lists.contains(values, value)
  for _, entry in ipairs(values) do
    if entry == value then return true end
  end
  return false
end

-- Is it a table whose keys are 1, 2, 3 … and no others? `#` may stop at a hole, or pass over it.
function lists.is_list(value)
  if type(value) ~= "table" then return false end
  local count = 0
  for _ in pairs(value) do count = count + 1 end
  for i = 1, count do
    if value[i] == nil then return false end
  end
  return true
end

-- Are all keys of a table names?
function lists.is_named(map)
  for key in pairs(map) do
    if type(key) ~= "string" then return false end
  end
  return true
end

-- The keys of a table, which are all strings or all numbers, in order: nothing that shows may depend on `pairs`.
function lists.sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- A copy of a table with `changes`, where there are any, laid over it.
function lists.with(map, changes)
  local out = {}
  for key, value in pairs(map) do out[key] = value end
  for key, value in pairs(changes or {}) do out[key] = value end
  return out
end

-- What each entry of a list has under a key.
function lists.column(list, key)
  local out = {}
  for i, entry in ipairs(list) do out[i] = entry[key] end
  return out
end

-- The entry of a list for which `of(entry)` is largest, the first of equals; nil: the list is empty.
function lists.largest(list, of)
  local best, most
  for _, entry in ipairs(list) do
    local value = of(entry)
    if not best or value > most then best, most = entry, value end
  end
  return best
end

-- A copy of a value, tables and what is in them too; without metatables, and not for what contains itself.
function lists.deep_copy(value)
  if type(value) ~= "table" then return value end
  local out = {}
  for key, inner in pairs(value) do out[key] = lists.deep_copy(inner) end
  return out
end

return lists
