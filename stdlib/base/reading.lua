-- SPDX-License-Identifier: Apache-2.0
-- reading.lua: opens what is read, the only place that does, and remembers it: what a command writes must be none of it.

local engine = require "engine"
local failure = require "pipeplan.base.failure"

local reading = {}

local STDIN = "/dev/stdin"

local opened = {}   -- path → true

-- At the start of a command: what an earlier one of this process read may be written.
function reading.forget() opened = {} end

-- A file that something else opens: a policy of a folder; nil: standard input.
function reading.note(path) opened[path or STDIN] = true end

-- reading.open(path [, regular]) → handle | nil, reason. regular: what else could be read, such as a FIFO, is not.
function reading.open(path, regular)
  reading.note(path)
  local good, problem = engine.host.readable(path, regular)
  if not good then return nil, problem end
  local handle
  handle, problem = io.open(path, "rb")
  if not handle then return nil, problem:match ": ([^:]+)$" or problem end
  return handle
end

-- reading.given(path) → handle, what to call it: a file that the user names, "-" for standard input, or a FIFO such as <(…) of a shell.
-- A usage failure that names it when it cannot be read.
function reading.given(path)
  if path == "-" then
    reading.note()
    return io.stdin, "standard input"
  end
  local handle, problem = reading.open(path)
  if not handle then failure.usage("%s: cannot be read: %s", path, problem) end
  return handle, path
end

-- What `given` opened; standard input stays.
function reading.close(handle)
  if handle ~= io.stdin then handle:close() end
end

-- Is there anything of that name?
function reading.exists(path) return engine.process.same_file(path, path) end

-- Is the file of that path, which is to be written, one of those that were opened? What is no regular file can be both.
function reading.was_opened(path)
  if not engine.host.readable(path, true) then return false end
  for other in pairs(opened) do
    if engine.process.same_file(path, other) then return true end
  end
  return false
end

-- Fails where an option names a file to write that was read.
function reading.spare(option, path)
  if path and path ~= "-" and reading.was_opened(path) then
    failure.usage("--%s is %s, which is read: expected another file", option, path)
  end
end

return reading
