-- SPDX-License-Identifier: Apache-2.0
-- files.lua: files that the command line or a field of a spec names.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local reading = require "pipeplan.base.reading"

local files = {}

-- "specs/a.json" → "specs/", "a.json" → "".
function files.directory_of(file)
  return file:match("^(.*/)[^/]*$") or ""
end

-- An iterator over the lines of a file that the user names: number, text.
function files.lines(path)
  local handle, name = reading.given(path)
  local number = 0
  return function()
    local line, problem = handle:read "l"
    if problem then failure.usage("%s: cannot be read: %s", name, problem) end
    if not line then reading.close(handle) end
    number = number + 1
    return line and number, line
  end
end

-- The path of the file that a field names; a usage failure that names the field when it cannot be read. It is not opened yet: a FIFO would
-- wait, and give what it has once only.
-- at: { value, origin, shown, base } of the field.
function files.readable(at)
  local path = at.value:sub(1, 1) == "/" and at.value or at.base .. at.value
  local good, problem = engine.host.readable(path)
  if not good then
    local shown = #path > 200 and "it" or path:gsub("%c", "?")
    failure.usage("%s: %s is %s: %s cannot be read: %s", at.origin, at.shown, fields.show(at.value), shown, problem)
  end
  return path
end

return files
