-- SPDX-License-Identifier: Apache-2.0
-- mutate.lua: `pipeplan policy mutate`: makes small mistakes in a policy and says which of them its tests do not notice.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local failure = require "pipeplan.base.failure"
local input_files = require "pipeplan.input.files"
local mutate = require "pipeplan.analysis.mutate"
local report = require "pipeplan.report.mutants"

local examples = [[
Mistakes: a limit moved, a condition negated or dropped, a rule deleted, two of a list swapped, a parameter moved, a comparison or
a number in a function changed. With --policy those of that policy's own rules and invariants and of what it changes,
otherwise those of the default policy's rules. A mistake is noticed when a test fails, a spec file does outside of its tests,
or none is left that runs.

Specs are Lua programs without a sandbox, as for `policy test`.

There is no --set: what it sets is no mistake of the policy's, and no test loads it. A test that loads a policy
of another date than --date looks at that policy alone.

A file of equivalent mutants has a line for each that no test can kill: its name, a tab, and the reason.

Exit status: 0, 1 the score is below --min-score or the tests fail as they are, 5 no test was found or
no mutant is tried, 6 the policy cannot be loaded.

Examples:
   pipeplan policy mutate --policy examples/sites/ml-hall-3.lua examples/sites/ml-hall-3_spec.lua
   pipeplan policy mutate tests/policy --equivalent tests/policy/equivalent.txt --min-score 100]]

local command = {}

function command.parser()
  local parser = argparse("pipeplan policy mutate", "Makes small mistakes in a policy and runs its tests on each.")
    :add_help(false):help_max_width(100):help_description_margin(28)
    :usage("Usage: pipeplan policy mutate PATH... [OPTIONS]"):epilog(examples)
  parser:argument("path", "spec file, or directory to look for *_spec.lua in"):argname("PATH"):args("+")
  parser:option("--policy", "policy file or directory, laid over the default policies"):argname("FILE|DIR"):count("*")
  parser:option("--date", "date of --policy, and of policies that tests load without one (default: today in UTC)"):argname("YYYY-MM-DD")
  parser:option("--policies", "read the default policies from this directory, for the tests too"):argname("DIR")
  parser:option("--stdlib", "read pipeplan's own Lua from this directory"):argname("DIR")
  parser:option("--jobs", "processes"):argname("N"):default("1")
  parser:option("--filter", "only mutants whose name matches this Lua pattern"):argname("PATTERN")
  parser:option("--equivalent", "file of mutants that no test can kill, and why"):argname("FILE")
  parser:option("--min-score", "least share of mutants that must be killed, in percent (default: any)"):argname("PERCENT")
  parser:flag("--no-witnesses", "do not search for specs that would catch the survivors")
  parser:option("--format", "what to print"):choices({ "text", "json" }):default("text")
  parser:option("-o --output", "write to this file, whole or not at all"):argname("FILE")
  parser:flag("-h --help", "show this help")
  return parser
end

-- "name<tab>reason" a line; empty lines and lines that begin with # are skipped.
local function read_equivalent(path)
  if not path then return nil end
  local list = {}
  for number, line in input_files.lines(path) do
    if line:find "%S" and not line:find "^#" then
      local id, reason = line:match "^([^\t]+)\t+(%S.*)$"
      if not id then failure.usage("%s:%d: expected a mutant's name, a tab and the reason", path, number) end
      list[id] = reason
    end
  end
  return list
end

local function number_of(name, text, low, high)
  local value = tonumber((text:gsub("%%$", "")))
  if not value or value < low or value > high then
    failure.usage("--%s must be a number from %d to %d, got '%s'", name, low, high, text)
  end
  return value
end

-- A line that grows, on a terminal only.
local function progress_line()
  local _, seen = require("engine").host.terminal()
  if not seen then return nil end
  return function(done, all)
    local width = 40
    local filled = width * done // all
    io.stderr:write(string.format("\r[%s%s] %d of %d mutants%s", string.rep("#", filled), string.rep(".", width - filled), done, all,
                                  done == all and "\n" or ""))
  end
end

function command.run(arguments)
  local options, help = command_line.parse(command.parser(), arguments, "policy mutate")
  if not options then return help, 0 end
  local least = options.min_score and number_of("min-score", options.min_score, 0, 100) or 0
  local results = mutate.run {
    policy = { files = options.policy, date = options.date, policies = options.policies }, tests = options.path,
    jobs = command_line.jobs(options.jobs), filter = command_line.filter(options.filter),
    equivalent = read_equivalent(options.equivalent), witnesses = not options.no_witnesses,
    progress = progress_line(),
  }
  local text = report[options.format](results)
  return text, 100 * report.score(results) < least and failure.status.refused or 0, options.output
end

return command
