-- SPDX-License-Identifier: Apache-2.0
-- yaml.lua: values of settings (settings.lua) as YAML has them.

local yaml = {}

-- Plain where nothing could take it for something else.
function yaml.scalar(value)
  if value == true then return "true" end
  if math.type(value) then return tostring(value) end
  if value:find "^[%a][%w_]*$" and not ("true false yes no on off null"):find(value:lower(), 1, true) then return value end
  return '"' .. value:gsub('[\\"]', "\\%0") .. '"'
end

function yaml.value(value)
  if value == "no" then return "false" end
  if type(value) ~= "table" then return yaml.scalar(value) end
  local parts = {}
  for i, each in ipairs(value) do parts[i] = yaml.scalar(each) end
  return "[" .. table.concat(parts, ", ") .. "]"
end

return yaml
