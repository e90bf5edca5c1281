-- json.lua: reading JSON, strictly: RFC 8259, no key twice, no integer that a double cannot hold. Integers are Lua integers, null is
-- json.null, arrays are marked, so that [] is not {}.
-- Everything that goes wrong is a usage failure that begins "FILE:LINE:COLUMN: ".

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

-- The value of a JSON text; `name` is the file it came from.
function json.decode(text, name)
  local good, value = engine.json.decode(text, json.null, array_metatable)
  if not good then failure.usage("%s:%d:%d: %s", name, value.line, value.column, value.message) end
  return value
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
