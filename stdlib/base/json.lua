-- SPDX-License-Identifier: Apache-2.0
-- json.lua: JSON, both ways.
--
-- Writing: the same bytes on every run: keys sorted, integers as integers, other numbers with the fewest digits that read back as the same
-- double. Reading: strictly RFC 8259, no key twice, no integer that a double cannot hold. Integers are Lua integers, null is json.null,
-- arrays are marked, so that [] is not {}. Everything that goes wrong there is a usage failure that begins "FILE:LINE:COLUMN: ".

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local reading = require "pipeplan.base.reading"
local visible = require "pipeplan.base.visible"

local json = {}

-- A null that a table can hold. Truthy, so compare with it.
json.null = setmetatable({}, { __name = "json.null", __tostring = function() return "null" end })

local array_mark = { __name = "json.array" }

-- Marks a list, so that it is written as [] when it is empty. Returns it.
function json.array(list)
  return setmetatable(list or {}, array_mark)
end

-- null for nil.
function json.or_null(value)
  if value == nil then return json.null end
  return value
end

-- The value at a path like "rollback.window_steps"; nil where a part of it is missing or null.
function json.at(object, path)
  local value = object
  for name in path:gmatch "[^.]+" do
    if type(value) ~= "table" or value == json.null then return nil end
    value = value[name]
  end
  if value == json.null then return nil end
  return value
end

-- Was this table a JSON array, or is it marked as one? A table that came from somewhere else is one when it has a first element.
function json.is_array(value)
  return type(value) == "table" and (getmetatable(value) == array_mark or value[1] ~= nil)
end

-- ------------------------------------------------------------------------------------------------------------------------------ writing

local max_depth = 64  -- no value of ours nests nearly as deep: deeper is a cycle

local escapes = { ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

-- File names may hold bytes that are no UTF-8; each such byte becomes U+FFFD, for JSON text is UTF-8.
local function valid_utf8(text)
  local parts, from = {}, 1
  while from <= #text do
    local length, bad = utf8.len(text, from)
    if length then
      parts[#parts + 1] = text:sub(from)
      break
    end
    parts[#parts + 1] = text:sub(from, bad - 1) .. "\u{FFFD}"
    from = bad + 1
  end
  return table.concat(parts)
end

-- "\u202e"; above U+FFFF the pair of surrogates.
local function escape(character)
  local code = utf8.codepoint(character)
  if code < 0x10000 then return escapes[character] or string.format("\\u%04x", code) end
  code = code - 0x10000
  return string.format("\\u%04x\\u%04x", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF))
end

-- What a terminal would obey or a reader not see is escaped too, so that JSON can be printed as it is.
local function encode_string(text)
  if not utf8.len(text) then text = valid_utf8(text) end
  return '"' .. visible.replace(text:gsub('["\\]', "\\%0"), escape) .. '"'
end

-- Shortest decimal that reads back as the same double; from 2^53 on with a point or an exponent, for readers, ours too, take no integer
-- that a double may not hold. NaN and infinity are no JSON: whoever lets one come this far has a bug.
local function encode_number(number)
  if math.type(number) == "integer" and number >= -(1 << 53) and number <= 1 << 53 then return string.format("%d", number) end
  number = number + 0.0
  if number ~= number or number == math.huge or number == -math.huge then
    error("json.encode: " .. tostring(number) .. " is no JSON number", 0)
  end
  if number == math.floor(number) and math.abs(number) <= 2 ^ 53 then return string.format("%d", number) end
  for digits = 15, 17 do
    local text = string.format("%." .. digits .. "g", number)
    if digits == 17 or tonumber(text) == number then return text:find "[.e]" and text or text .. ".0" end
  end
end

-- Sorted keys of an object; nil for a list. A table with other than string keys, or 1…n alone, is neither.
local function keys_of(value)
  local keys = {}
  local length = #value
  for key in pairs(value) do
    if type(key) == "string" then
      keys[#keys + 1] = key
    elseif math.type(key) ~= "integer" or key < 1 or key > length then
      error("json.encode: a table has the key " .. tostring(key) .. ", which is neither a string nor part of a list", 0)
    end
  end
  if length > 0 or getmetatable(value) == array_mark then
    if #keys > 0 then error("json.encode: a table is both a list and has the key " .. keys[1], 0) end
    return nil
  end
  table.sort(keys)
  return keys
end

local encode

local function encode_list(value, indent, depth)
  local parts, scalars = {}, true
  for i = 1, #value do
    parts[i] = encode(value[i], indent, depth + 1)
    scalars = scalars and (type(value[i]) ~= "table" or value[i] == json.null)
  end
  if #parts == 0 then return "[]" end
  if not indent then return "[" .. table.concat(parts, ",") .. "]" end
  if scalars then return "[" .. table.concat(parts, ", ") .. "]" end  -- a row of numbers is read as a row
  local margin = "\n" .. string.rep(" ", indent * (depth + 1))
  return "[" .. margin .. table.concat(parts, "," .. margin) .. "\n" .. string.rep(" ", indent * depth) .. "]"
end

local function encode_object(value, keys, indent, depth)
  local parts = {}
  for i, key in ipairs(keys) do
    parts[i] = encode_string(key) .. (indent and ": " or ":") .. encode(value[key], indent, depth + 1)
  end
  if #parts == 0 then return "{}" end
  if not indent then return "{" .. table.concat(parts, ",") .. "}" end
  local margin = "\n" .. string.rep(" ", indent * (depth + 1))
  return "{" .. margin .. table.concat(parts, "," .. margin) .. "\n" .. string.rep(" ", indent * depth) .. "}"
end

function encode(value, indent, depth)
  local kind = type(value)
  if kind == "number" then return encode_number(value) end
  if kind == "string" then return encode_string(value) end
  if kind == "boolean" then return tostring(value) end
  if kind == "nil" or value == json.null then return "null" end
  if kind ~= "table" then error("json.encode: a " .. kind .. " is no JSON value", 0) end
  if depth > max_depth then error("json.encode: nested deeper than " .. max_depth .. " levels", 0) end
  local keys = keys_of(value)
  if keys then return encode_object(value, keys, indent, depth) end
  return encode_list(value, indent, depth)
end

-- The JSON text of a value, without a final newline. options.indent: spaces per level; absent: all on one line.
function json.encode(value, options)
  return encode(value, options and options.indent, 0)
end

-- A copy of `value` in which what the JSON Schema `schema` declares is there: a missing property is json.null, an empty list is a list.
-- References to "#/$defs/…" are followed; a constant is filled in.
function json.shape(value, schema, root)
  root = root or schema
  local reference = schema["$ref"]
  if reference then schema = root["$defs"][reference:match("^#/%$defs/(.+)$")] end
  if schema.const then return schema.const end
  if value == nil then return json.null end
  if type(value) ~= "table" or value == json.null then return value end
  if schema.anyOf then  -- ours are all "this, or null"
    for _, choice in ipairs(schema.anyOf) do
      if choice.type ~= "null" then return json.shape(value, choice, root) end
    end
  end
  local copy = {}
  if schema.items then
    for i = 1, #value do copy[i] = json.shape(value[i], schema.items, root) end
    return json.array(copy)
  end
  for key, member in pairs(value) do copy[key] = member end
  for key, property in pairs(schema.properties or {}) do copy[key] = json.shape(value[key], property, root) end
  return copy
end

-- ------------------------------------------------------------------------------------------------------------------------------ reading

-- The value of a JSON text; `name` is the file it came from.
function json.decode(text, name)
  local good, value = engine.json.decode(text, json.null, array_mark)
  if not good then failure.usage("%s:%d:%d: %s", name, value.line, value.column, value.message) end
  return value
end

local max_bytes = 16 * 2 ^ 20

-- The text of a file; "-" is standard input. A usage failure that names the file when it cannot be read.
function json.text(file)
  local handle = reading.given(file)
  local text, problem = handle:read(max_bytes + 1)
  reading.close(handle)
  if not text and problem then failure.usage("%s: cannot be read: %s", file, problem) end
  text = text or ""
  if #text > max_bytes then failure.usage("%s: larger than %d MiB: this is no file of ours", file, max_bytes // 2 ^ 20) end
  return text
end

-- The value in a JSON file.
function json.read(file)
  local text = json.text(file)
  if not text:find("%S") then failure.usage("%s: empty file, expected JSON", file) end
  return json.decode(text, file == "-" and "standard input" or file)
end

return json
