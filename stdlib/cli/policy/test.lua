-- SPDX-License-Identifier: Apache-2.0
-- test.lua: `pipeplan policy test`: runs busted specs of policies, and says what of the policy they do not look at.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local coverage = require "pipeplan.analysis.coverage"
local failure = require "pipeplan.base.failure"
local load = require "pipeplan.policy.load"
local output = require "pipeplan.cli.output"
local report = require "pipeplan.report.tests"
local runner = require "pipeplan.analysis.runner"

local examples = [[
A spec is a Lua program with all of Lua's libraries, and no sandbox: running the tests of a
checkout runs its code. (The policies that it tests stay in theirs.) Modules come from pipeplan and
from the directories of the system's Lua, never from the current directory or LUA_PATH.

A spec is what plain busted runs too (busted --lua=lua5.4 PATH):
   local site = require("pipeplan").policy "examples/sites/aws-p5.lua"
   describe("aws-p5", function()
     it("rejects deep pipelines", function()
       assert.decided(site:plan { "spec.json", pipeline = 128 }, "rejected", "too_deep")
     end)
   end)

What tests print goes to standard error. A test, or another block of a spec, that takes more than
60 s of processor time is ended and fails; what waits for something else is waited for.

Exit status: 0 all passed, 1 a test failed or less than --min is covered, 5 no test was found,
or all are pending.

Examples:
   pipeplan policy test examples/sites
   pipeplan policy test --policy examples/sites/pipeline-anyway.lua examples/sites/hall-7_spec.lua
       the tests of a team's policy, under the layers below it
   pipeplan policy test examples/sites/aws-p5_spec.lua --min 50 --format junit -o tests.xml]]

local command = {}

function command.parser()
  local parser = argparse("pipeplan policy test", "Runs tests of policies: busted specs (*_spec.lua).")
    :add_help(false):help_max_width(100):help_description_margin(28):usage("Usage: pipeplan policy test PATH... [OPTIONS]"):epilog(examples)
  parser:argument("path", "spec file, or directory to look for *_spec.lua in"):argname("PATH"):args("+")
  parser:option("--policy", "a layer under those that the tests load: company, hall (again for each, in order)"):argname("FILE"):count("*")
  parser:option("--filter", "only tests whose name matches this Lua pattern"):argname("PATTERN")
  parser:option("--min", "least coverage, in percent"):argname("PERCENT")
  parser:option("--format", "what to print"):choices({ "text", "tap", "junit", "json" }):default("text")
  parser:flag("--fail-fast", "stop at the first failure")
  parser:option("-o --output", "write to this file, whole or not at all"):argname("FILE")
  parser:option("--stdlib", "read pipeplan's own Lua from this directory"):argname("DIR")
  parser:flag("-h --help", "show this help")
  return parser
end

local function least_coverage(text)
  if not text then return nil end
  local value = tonumber((text:gsub("%%$", "")))
  if not value or value < 0 or value > 100 then failure.usage("--min must be a percentage from 0 to 100, got '%s'", text) end
  return value
end

function command.run(arguments)
  local options, help = command_line.parse(command.parser(), arguments, "policy test")
  if not options then return help, 0 end
  local least, seen = least_coverage(options.min), coverage.new()
  load.under = #options.policy > 0 and options.policy or nil
  local results = runner.run { files = options.path, filter = command_line.filter(options.filter), stop = options.fail_fast,
                               on_plan = function(...) seen:add(...) end }
  if #results == 0 then failure.raise("nothing", "policy test: no test was found in %s", table.concat(options.path, ", ")) end
  local items = seen:items()
  local text = report[options.format](results, items)
  local covered, all = coverage.count(items)
  local status = report.count(results, "failed") + report.count(results, "error") > 0 and failure.status.refused or 0
  if report.count(results, "skipped") == #results then
    output.complain "policy test: every test is pending: none ran"
    status = failure.status.nothing
  end
  if least and 100 * covered < least * all then
    output.complain(string.format("policy test: %g %% is covered, less than --min %g", math.floor(1000 * covered / all) / 10, least))
    status = failure.status.refused
  end
  return text, status, options.output
end

return command
