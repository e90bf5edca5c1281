-- SPDX-License-Identifier: Apache-2.0
-- validate.lua: a value against one of our JSON Schemas: the keywords that they use. What is wrong is a usage failure of one line: where,
-- which field, its value, what was expected, the nearest legal name.

local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local articles = { number = "a number", integer = "a whole number", boolean = "true or false", string = "a text", array = "a list",
                   object = "an object" }

local function is_of(value, type_name)
  if value == json.null then return false end
  if type_name == "number" then return type(value) == "number" end
  if type_name == "integer" then return math.type(value) == "integer" end
  if type_name == "array" then return json.is_array(value) end
  if type_name == "object" then return type(value) == "table" and not json.is_array(value) end
  return type(value) == type_name
end

-- "a number > 0", with what it means.
local function expected_of(schema)
  if schema.enum then return "one of " .. table.concat(schema.enum, ", ") end
  if schema.anyOf then
    local parts = {}
    for i, one in ipairs(schema.anyOf) do parts[i] = articles[one.type] end
    return table.concat(parts, " or ")
  end
  local words = articles[schema.type]
  if schema.exclusiveMaximum then return string.format("%s from %g to less than %g", words, schema.minimum, schema.exclusiveMaximum) end
  if schema["not"] then return string.format("0, or %s from %g to %g", words, schema["not"].exclusiveMaximum, schema.maximum) end
  if schema.maximum then return string.format("%s from %g to %g", words, schema.minimum, schema.maximum) end
  return words
end

local function in_range(value, schema)
  local gap = schema["not"]
  if gap and value > gap.exclusiveMinimum and value < gap.exclusiveMaximum then return false end
  return not (schema.minimum and value < schema.minimum) and not (schema.maximum and value > schema.maximum)
    and not (schema.exclusiveMaximum and value >= schema.exclusiveMaximum)
end

-- "; nearest: 1000", of a number that is only too small or too large.
local function nearest_of(value, schema)
  if type(value) ~= "number" or not is_of(value, schema.type) then return "" end
  if schema.minimum and value < schema.minimum then return string.format("; nearest: %g", schema.minimum) end
  return schema.maximum and value > schema.maximum and string.format("; nearest: %g", schema.maximum) or ""
end

local function complain(file, path, value, schema)
  failure.usage("%s: %s is %s: expected %s%s%s", file, path == "" and "it" or path, fields.show(value), expected_of(schema),
                schema.description and ": " .. schema.description or "", nearest_of(value, schema))
end

local walk

local function walk_object(value, schema, file, path)
  local function inner(key) return path == "" and key or path .. "." .. key end
  for _, key in ipairs(lists.sorted_keys(value)) do
    local known = schema.properties[key]
    if not known then
      failure.usage("%s: %s is no field of such a file%s", file, inner(key), failure.suggestion(key, lists.sorted_keys(schema.properties)))
    end
    walk(value[key], known, file, inner(key))
  end
  for _, key in ipairs(schema.required or {}) do
    if value[key] == nil then
      failure.usage("%s: %s is missing: expected %s: %s", file, inner(key), expected_of(schema.properties[key]),
                    schema.properties[key].description)
    end
  end
end

function walk(value, schema, file, path)
  if not (schema.type or schema.enum or schema.anyOf) then return end   -- of any kind
  if schema.anyOf then
    for _, one in ipairs(schema.anyOf) do
      if is_of(value, one.type) then return walk(value, one, file, path) end
    end
    complain(file, path, value, schema)
  elseif schema.enum then
    if not lists.contains(schema.enum, value) then complain(file, path, value, schema) end
  elseif not is_of(value, schema.type) or (type(value) == "number" and not in_range(value, schema)) then
    complain(file, path, value, schema)
  elseif schema.type == "object" then
    walk_object(value, schema, file, path)
  elseif schema.type == "array" then
    if #value < (schema.minItems or 0) then complain(file, path, value, schema) end
    if schema.maxItems and #value > schema.maxItems then
      failure.usage("%s: %s has %d entries: expected at most %d", file, path, #value, schema.maxItems)
    end
    for i, item in ipairs(value) do walk(item, schema.items, file, path .. "[" .. i - 1 .. "]") end
  end
end

-- Raises what is wrong with `value`, which came from `file`.
return function(value, schema, file)
  walk(value, schema, file, "")
end
