-- SPDX-License-Identifier: Apache-2.0
-- files.lua: files that the command line or a field of a spec names.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"

local files = {}

-- "specs/a.json" → "specs/", "a.json" → "".
function files.directory_of(file)
  return file:match("^(.*/)[^/]*$") or ""
end

-- A file that the user names, open for reading; "-" is standard input. A usage failure that names it when it cannot be read. It may be a
-- FIFO, such as <(…) of a shell.
function files.open(path)
  if path == "-" then return io.stdin, "standard input" end
  local handle
  local good, problem = engine.host.readable(path)
  if good then handle, problem = io.open(path, "rb") end
  if not handle then failure.usage("%s: cannot be read: %s", path, problem:match(": ([^:]+)$") or problem) end
  return handle, path
end

-- An iterator over its lines: number, text.
function files.lines(path)
  local handle, name = files.open(path)
  local number = 0
  return function()
    local line, problem = handle:read "l"
    if problem then failure.usage("%s: cannot be read: %s", name, problem) end
    if not line and handle ~= io.stdin then handle:close() end
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
