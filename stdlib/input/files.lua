-- files.lua: files that a field of a spec names, relative to where it was given.

local failure = require "pipeplan.failure"
local fields = require "pipeplan.input.fields"

local files = {}

-- "specs/a.json" → "specs/", "a.json" → "".
function files.directory_of(file)
  return file:match("^(.*/)[^/]*$") or ""
end

-- The path of the file that a field names; a usage failure that names the field when it cannot be opened.
-- at: { value, origin, shown, base } of the field.
function files.readable(at)
  local path = at.value:sub(1, 1) == "/" and at.value or at.base .. at.value
  local handle, problem = io.open(path, "rb")
  if not handle then
    local shown = #path > 200 and "it" or path:gsub("%c", "?")
    failure.usage("%s: %s is %s: %s cannot be read: %s", at.origin, at.shown, fields.show(at.value), shown,
                  problem:match(": ([^:]+)$") or problem)
  end
  handle:close()
  return path
end

return files
