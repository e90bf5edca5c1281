-- json.lua: reading JSON. The text is checked strictly in C (engine.json.check), then decoded by lua-cjson, then put right: integers are
-- Lua integers again, null is json.null, arrays are marked, so that [] is not {}.
-- Everything that goes wrong is a usage failure that begins "FILE:LINE:COLUMN: ".

local cjson = require "cjson"
local engine = require "engine"
local failure = require "pipeplan.failure"
local writer = require "pipeplan.report.json"

local json = {}

-- What a JSON null becomes: the same value that report/json.lua writes as null. Truthy, so compare with it.
json.null = writer.null

local array_metatable = getmetatable(writer.array())

-- Was this table a JSON array? A table that came from somewhere else is one when it has a first element.
function json.is_array(value)
  return type(value) == "table" and (getmetatable(value) == array_metatable or value[1] ~= nil)
end

local decoder = cjson.new()
decoder.decode_invalid_numbers(false)
decoder.decode_max_depth(128)

-- Stands in for an empty array while lua-cjson decodes: it makes {} of [] and of {} alike.
local placeholder = "\u{10FFFF}[]"

local function mark_empty_arrays(text, positions)
  local parts, from = {}, 1
  for i, position in ipairs(positions) do
    parts[2 * i - 1] = text:sub(from, position)
    parts[2 * i] = '"' .. placeholder .. '"'
    from = position + 1
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts)
end

local function restore(value)
  local kind = type(value)
  if kind == "number" then
    return math.abs(value) <= 2 ^ 53 and math.tointeger(value) or value
  elseif value == cjson.null then
    return json.null
  elseif kind ~= "table" then
    return value
  end
  if value[1] == nil then  -- keys of an object are strings
    for key, member in pairs(value) do value[key] = restore(member) end
    return value
  end
  if #value == 1 and value[1] == placeholder then return writer.array() end
  for i = 1, #value do value[i] = restore(value[i]) end
  return writer.array(value)
end

-- The value of a JSON text; `name` is the file it came from.
function json.decode(text, name)
  local good, detail = engine.json.check(text)
  if not good then failure.usage("%s:%d:%d: %s", name, detail.line, detail.column, detail.message) end
  if #detail > 0 then text = mark_empty_arrays(text, detail) end
  return restore(decoder.decode(text))
end

local max_bytes = 16 * 2 ^ 20

-- The text of a file; "-" is standard input. A usage failure that names the file when it cannot be read.
function json.text(file)
  local handle = io.stdin
  if file ~= "-" then
    local opened, why = io.open(file, "rb")
    if not opened then failure.usage("%s: cannot be read: %s", file, why:match(": ([^:]+)$") or why) end
    handle = opened
  end
  local text, problem = handle:read(max_bytes + 1)
  if file ~= "-" then handle:close() end
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
