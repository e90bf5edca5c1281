-- SPDX-License-Identifier: Apache-2.0
-- properties.lua: the tables of a plan's properties in docs/plan.md, from stdlib/schema/plan.lua: the plan's own first, then those of each
-- object in it.

local between = require "generate.between"
local lists = require "pipeplan.base.lists"
local schema = require "pipeplan.schema.plan"

-- What a schema is of: the object in it, whether null may stand for it, whether it is a list.
local function inside(node)
  local null, list = false, false
  while true do
    if node.anyOf then node, null = node.anyOf[1], true
    elseif node["$ref"] then return node["$ref"]:match "[^/]+$", nil, null, list
    elseif node.type == "array" then node, list = node.items, true
    else break end
  end
  if type(node.type) == "table" then null = true end
  return nil, node, null, list
end

local function scalar(node)
  if node.enum then
    local names = {}
    for _, name in ipairs(node.enum) do
      if type(name) == "string" then names[#names + 1] = "`" .. name .. "`" end
    end
    return #names <= 5 and table.concat(names, " ") or "name"
  end
  local kind = type(node.type) == "table" and node.type[1] or node.type
  return ({ string = "text", integer = "whole number", number = "number", boolean = "true or false", object = "object" })[kind] or "any"
end

local function rows_of(lines, path, object, pending)
  for _, name in ipairs(lists.sorted_keys(object.properties)) do
    local property = object.properties[name]
    local reference, node, null, list = inside(property)
    local value
    if reference then value = "[" .. reference .. "](#" .. reference .. ")"
    elseif node.properties then
      local key = path .. name
      value = "[" .. key .. "](#" .. key:gsub("%.", "") .. ")"
      pending[#pending + 1] = { key, node }
    else value = scalar(node) end
    local meaning = property.description or (node and node.description) or ""
    if reference and meaning == "" then meaning = schema["$defs"][reference].description end
    lines[#lines + 1] = string.format("| `%s` | %s%s%s | %s |", name, list and "list of " or "", value, null and ", or null" or "", meaning)
  end
end

local head = "\n\n| property | value | meaning |\n| --- | --- | --- |"

return function(page)
  local lines, pending = { "### The plan" .. head }, {}
  rows_of(lines, "", schema, pending)
  for _, name in ipairs(lists.sorted_keys(schema["$defs"])) do pending[#pending + 1] = { name, schema["$defs"][name] } end
  local i = 1
  while pending[i] do
    local name, node = table.unpack(pending[i])
    lines[#lines + 1] = "\n### " .. name .. head
    rows_of(lines, name .. ".", node, pending)
    i = i + 1
  end
  return between(page, "properties", table.concat(lines, "\n"))
end
