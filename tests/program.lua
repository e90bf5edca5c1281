-- SPDX-License-Identifier: Apache-2.0
-- program.lua: runs the program as a user does, for black-box specs: what it prints on each stream, and its exit status.

local program = {}

local function read(name)
  local handle = assert(io.open(name, "rb"))
  local text = handle:read("a")
  handle:close()
  os.remove(name)
  return text
end

-- run(arguments as one shell text [, standard input [, command before the program]]) → { status, stdout, stderr }
function program.run(arguments, input, before)
  local out, err, feed = os.tmpname(), os.tmpname(), os.tmpname()
  local handle = assert(io.open(feed, "wb"))
  handle:write(input or "")
  handle:close()
  -- the sanitizer's runtime is preloaded for the interpreter; the program has its own
  local command = string.format("cd '%s' && env -u LD_PRELOAD %s '%s' %s <%s >%s 2>%s", os.getenv "PIPEPLAN_SOURCE", before or "",
                                os.getenv "PIPEPLAN", arguments, feed, out, err)
  local _, how, status = os.execute(command)
  os.remove(feed)
  return { status = how == "exit" and status or 128 + status, stdout = read(out), stderr = read(err) }
end

return program
