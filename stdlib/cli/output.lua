-- output.lua: where the text of a command goes: standard output, or a file. A text is a string, or an iterator over its pieces, for what
-- would be too large to hold. What cannot be written is a usage failure that says where and why.

local failure = require "pipeplan.failure"

local output = {}

local function write(file, text)
  if type(text) == "string" then return file:write(text) end
  for piece in text do
    local good, problem = file:write(piece)
    if not good then return nil, problem end
  end
  return true
end

function output.to_stdout(text)
  local good, problem = write(io.stdout, text)
  if good then good, problem = io.stdout:flush() end
  if not good then failure.usage("cannot write to standard output: %s", problem) end
end

-- Whole or not at all: a reader of the file never sees half of it. A device is written where it is: renaming a file over /dev/null would
-- replace it.
function output.to_file(path, text)
  local device = path:find("^/dev/") ~= nil
  local temporary = device and path or path .. ".tmp"
  local file, problem = io.open(temporary, "wb")
  if file then
    local good, write_problem = write(file, text)
    local closed, close_problem = file:close()
    if good and closed then
      if device then return end
      local renamed, rename_problem = os.rename(temporary, path)
      if renamed then return end
      problem = rename_problem
    else
      problem = write_problem or close_problem
    end
    if not device then os.remove(temporary) end
  end
  failure.usage("cannot write %s: %s", path, problem:match(": ([^:]+)$") or problem)
end

return output
