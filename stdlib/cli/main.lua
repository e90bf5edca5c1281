-- main.lua: the command line. Picks the command, catches answers, decides the exit status. Results are written at
-- the end.

local failure = require "pipeplan.base.failure"
local output = require "pipeplan.cli.output"

local commands = { "plan", "lint", "simulate", "monitor", "facts", "policy" }

local usage = [[
Usage: pipeplan COMMAND ...

  plan SPEC...      plan a training run: from a model, a cluster and a token budget to one page
  lint CONFIG...    hold launch scripts and YAML against the rules of their frameworks
  simulate NAME     build, verify and simulate one pipeline schedule
  monitor PLAN LOG  hold a run's log against its plan: keep the schedule, or roll back
  facts TOPIC       its tables: accelerators, links, kernels, frameworks, schedules, fields, schemas
  policy COMMAND    init, show, check, test, diff, mutate: a policy of your own, from its first
                    rule to its review

  COMMAND --help    options of a command, and examples
  --version, --help

Examples:
   pipeplan plan examples/specs/deepseek-v3.json
   pipeplan plan examples/specs/rules/too_deep.json --explain
   pipeplan simulate dualpipe --ranks 8 --microbatches 20
   pipeplan policy check --policy examples/sites/aws-p5.lua
]]

-- Each command is a module with run(arguments) → its text (a string, or an iterator over its pieces; nil: there is none, and no file is
-- written), exit status, the file that the text is for (nil: standard output).
local function dispatch(arguments)
  local name = arguments[1]
  if not name or name == "--help" or name == "-h" then return usage, name and 0 or failure.status.usage end
  if name == "--version" then return "pipeplan " .. require("engine").version .. "\n", 0 end
  for _, command in ipairs(commands) do
    if command == name then
      return require("pipeplan.cli." .. name).run(table.pack(table.unpack(arguments, 2)))
    end
  end
  local near = failure.suggestion(name, commands)
  failure.usage("no command '%s'%s", name, near ~= "" and near or ": expected one of " .. table.concat(commands, ", "))
end

local function run(arguments)
  local text, status, file = dispatch(arguments)
  if text == usage and status ~= 0 then io.stderr:write(text)
  elseif text then output.write(text, file) end
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
