-- SPDX-License-Identifier: Apache-2.0
-- models.lua: the table of model families in docs/models.md, from stdlib/catalog/families.lua.

local between = require "generate.between"
local catalog = require "pipeplan.catalog.families"
local lists = require "pipeplan.base.lists"
local towers = require "pipeplan.catalog.towers"

local function code(text) return "`" .. text .. "`" end

local function families()
  local lines = { "| `model_type` | classes | parameters as counted by | time of its layers |", "| --- | --- | --- | --- |" }
  for _, name in ipairs(lists.sorted_keys(catalog.all())) do
    local family, types, classes = catalog.all()[name], { code(name) }, {}
    for i, other in ipairs(family.types or {}) do types[i + 1] = code(other) end
    for i, class in ipairs(family.classes) do classes[i] = code(class) end
    local time = family.assumes and "assumed: " .. family.assumes .. " at the speed of attention" or "as of any attention"
    lines[#lines + 1] = string.format("| %s | %s | %s | %s |", table.concat(types, " "), table.concat(classes, " "),
                                      family.counted_by or "transformers", time)
  end
  return lines
end

local function with_towers()
  local names = {}
  for _, name in ipairs(lists.sorted_keys(towers)) do
    if type(towers[name]) == "function" then names[#names + 1] = code(name) end
  end
  return { "", "| tower of images of | counted by |", "| --- | --- |", "| " .. table.concat(names, " ") .. " | transformers |" }
end

local function refused()
  local lines, of_feature = { "", "| refused | `model_type` |", "| --- | --- |" }, {}
  for _, name in ipairs(lists.sorted_keys(catalog.refused)) do
    local feature = catalog.refused[name]
    of_feature[feature] = (of_feature[feature] and of_feature[feature] .. " " or "") .. code(name)
  end
  for _, feature in ipairs(lists.sorted_keys(of_feature)) do
    lines[#lines + 1] = string.format("| %s | %s |", feature, of_feature[feature])
  end
  return lines
end

return function(page)
  local lines = families()
  for _, line in ipairs(with_towers()) do lines[#lines + 1] = line end
  for _, line in ipairs(refused()) do lines[#lines + 1] = line end
  return between(page, "models", table.concat(lines, "\n"))
end
