-- SPDX-License-Identifier: Apache-2.0
-- main.lua: the command line. Picks the command, catches answers, decides the exit status. Results are written at
-- the end.

local commands = require "pipeplan.cli.commands"
local failure = require "pipeplan.base.failure"
local output = require "pipeplan.cli.output"
local reading = require "pipeplan.base.reading"

local usage = commands.usage

local USUAL_PAUSE = 200   -- Lua's

-- Each command is a module with run(arguments) → its text (a string, or an iterator over its pieces; nil: there is none, and no file is
-- written), exit status, the file that the text is for (nil: standard output). pause: how large the heap may grow before garbage is
-- collected, in percent of what is in use.
local function dispatch(arguments)
  local name = arguments[1]
  if not name or name == "--help" or name == "-h" then return usage, name and 0 or failure.status.usage end
  if name == "--version" then return "pipeplan " .. require("engine").version .. "\n", 0 end
  for _, command in ipairs(commands.list) do
    if command == name then
      local module = require("pipeplan.cli." .. name)
      collectgarbage("incremental", module.pause or USUAL_PAUSE)
      return module.run(table.pack(table.unpack(arguments, 2)))
    end
  end
  local near = failure.suggestion(name, commands.list)
  failure.usage("no command '%s'%s", name, near ~= "" and near or ": expected one of " .. table.concat(commands.list, ", "))
end

local function run(arguments)
  reading.forget()
  local text, status, file = dispatch(arguments)
  if text == usage and status ~= 0 then io.stderr:write(text)
  elseif text then
    reading.spare("output", file)
    output.write(text, file)
  end
  return status
end

return function(arguments)
  local good, outcome = xpcall(run, function(problem)
    return failure.of(problem) or debug.traceback(tostring(problem), 2)
  end, arguments)
  if good then return outcome end
  local answer = failure.of(outcome)
  if not answer or not answer.memory then return output.tell(answer or outcome) end
  output.complain(answer.message .. " (in pipeplan " .. table.concat(arguments, " ") .. ")")
  return answer.status
end
