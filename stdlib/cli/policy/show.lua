-- SPDX-License-Identifier: Apache-2.0
-- show.lua: `pipeplan policy show`: the effective policy, with the layer, file and line of everything in it.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local documents = require "pipeplan.base.documents"
local json = require "pipeplan.base.json"
local show = require "pipeplan.policy.show"

local examples = [[
Examples:
   pipeplan policy show
       the default policy
   pipeplan policy show --policy examples/sites/aws-p5.lua --set tie_fraction=2%
       what is left of it under a site's policy and one parameter
   pipeplan policy show --files --policy examples/sites/aws-p5.lua
       every file that was read, its digest, and the versions of pipeplan and of its catalogue]]

local command = {}

function command.parser()
  local parser = argparse("pipeplan policy show", "Prints the effective policy, and what each override hides."):add_help(false)
    :help_max_width(100):help_description_margin(28):usage("Usage: pipeplan policy show [OPTIONS]"):epilog(examples)
  command_line.declare_policy_in_force(parser)
  parser:flag("--files", "print the files that were read instead, with their digests")
  parser:option("--format", "what to print"):choices({ "text", "json" }):default("text")
  parser:flag("-h --help", "show this help")
  return parser
end

function command.run(arguments)
  local options, help = command_line.parse(command.parser(), arguments, "policy show")
  if not options then return help, 0 end
  local policy = command_line.policy_in_force(options)
  if options.format == "json" then return documents.encode("policy", show.data(policy, json.array), { indent = 2 }) .. "\n", 0 end
  return options.files and show.files(policy) or show.text(policy), 0
end

return command
