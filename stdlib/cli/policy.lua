-- SPDX-License-Identifier: Apache-2.0
-- policy.lua: `pipeplan policy COMMAND`: what the commands are. Each is a file in policy/, with run(arguments) → text, status.

local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"

local command = {}

command.usage = [[
Usage: pipeplan policy COMMAND [OPTIONS]

  show    the effective policy: every row, rule and parameter with its layer, file and line,
          and what each override hides
  check   what is wrong with it, or worth knowing in a review: rows that never decide, rules
          that change nothing, gaps and overlaps, each with a spec that shows it
  test    runs busted specs of policies, and says what of the policy they do not look at
  diff    which specs two policies plan differently, newly accepted first
  eval    asks one rule about one spec: each condition, and for which candidates it holds
  init    writes a site's policy with one override, and its test
  pin     saves the default policy that a site was written for, and shows what another changes
  mutate  makes small mistakes in a policy and says which of them its tests do not notice

  COMMAND --help    options of a command, and examples

A policy is a file, or a folder whose *.lua are its files, in the order of their names; tests
(*_spec.lua), hidden files and folders in it are not read, and `show` and `check` name them. In a
policy file, require "limits" runs limits.lua of the same folder. Of a folder only regular files
are read, and links to those in it. The digest covers every file that was read.

Examples:
   pipeplan policy show --policy examples/sites/aws-p5.lua
   pipeplan policy check --policy examples/sites/aws-p5.lua
]]

command.verbs = { "check", "diff", "eval", "init", "mutate", "pin", "show", "test" }

function command.run(arguments)
  local verb = arguments[1]
  if not verb or verb == "-h" or verb == "--help" then return command.usage, verb and 0 or failure.status.usage end
  if not lists.contains(command.verbs, verb) then
    failure.usage("policy: no command '%s'%s", verb, failure.suggestion(verb, command.verbs))
  end
  return require("pipeplan.cli.policy." .. verb).run { table.unpack(arguments, 2) }
end

return command
