-- lists.lua: what Lua's table library leaves out.

local lists = {}

-- Is the value in the list?
function lists.contains(values, value)
  for _, entry in ipairs(values) do
    if entry == value then return true end
  end
  return false
end

-- The keys of a table, which are all strings or all numbers, in order: nothing that shows may depend on `pairs`.
function lists.sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

return lists
