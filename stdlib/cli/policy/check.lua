-- SPDX-License-Identifier: Apache-2.0
-- check.lua: `pipeplan policy check`: what is wrong with a policy, or worth knowing in a review.

local argparse = require "pipeplan.argparse"
local check = require "pipeplan.analysis.check"
local command_line = require "pipeplan.cli.arguments"
local failure = require "pipeplan.base.failure"
local findings = require "pipeplan.analysis.findings"
local report = require "pipeplan.report.findings"

local examples = [[
Exit status: 0 nothing at least as severe as --fail-on, 1 findings, 6 the policy cannot be loaded.

Examples:
   pipeplan policy check
       the default policy
   pipeplan policy check --policy examples/sites/aws-p5.lua --fail-on error
       a site's policy; only errors fail
   pipeplan policy check --policy site.lua --format github
       annotations in a pull request; --format sarif for code scanning
   pipeplan policy check --codes
       every code, what it means and what to do]]

local most_random = 1000000   -- specs of a search

local command = {}

function command.parser()
  local parser = argparse("pipeplan policy check", "Finds what is wrong with a policy, or worth knowing in a review.")
    :add_help(false):help_max_width(100):help_description_margin(28):usage("Usage: pipeplan policy check [OPTIONS]"):epilog(examples)
  command_line.declare_policy(parser)
  parser:option("--format", "what to print"):choices({ "text", "json", "sarif", "github" }):default("text")
  parser:option("--fail-on", "least severity that makes exit status 1"):choices(findings.severities):default("warning")
  parser:flag("--all", "also notes that concern the default policy alone")
  parser:option("--search", "also plan specs at the edges of all rules and N random ones, and see whether what must hold of plans holds")
    :argname("N")
  parser:flag("--no-witnesses", "do not search for specs that show the findings")
  parser:flag("--codes", "print the codes of findings instead, with what they mean")
  parser:option("-o --output", "write to this file, whole or not at all"):argname("FILE")
  parser:flag("-h --help", "show this help")
  return parser
end

-- The findings, and the policy unless it cannot be loaded. random: how many specs of --search.
local function found(options, random)
  local policy, problem
  local good, outcome = failure.try(command_line.policy, options)
  if good then policy = outcome
  elseif failure.is(outcome) and outcome.status == failure.status.policy_unloadable and options.format ~= "text" then problem = outcome
  else error(outcome, 0) end
  if problem then return check.load_problems(problem.lines or { problem.message }), nil, problem end
  local list = check.policy(policy, { witnesses = not options.no_witnesses })
  if random then
    local search = require("pipeplan.analysis.invariants").search
    local broken = check.broken(policy, (search(command_line.load_options(options), { random = random })))
    findings.sort(table.move(broken, 1, #broken, #list + 1, list))
  end
  return list, policy
end

function command.run(arguments)
  local options, help = command_line.parse(command.parser(), arguments, "policy check")
  if not options then return help, 0 end
  if options.codes then return report.codes(), 0 end
  local list, policy, problem = found(options, command_line.integer("search", options.search, 0, most_random))
  local left_out = 0
  if policy and not options.all then list, left_out = check.about_sites(policy, list) end
  local text = report[options.format](list, policy, left_out)
  local status = problem and problem.status or findings.count(list, options.fail_on) > 0 and failure.status.refused or 0
  return text, status, options.output
end

return command
