-- policy.lua: `pipeplan policy show`: the effective policy, with the layer, file and line of everything in it.

local argparse = require "argparse"
local failure = require "pipeplan.failure"
local json = require "pipeplan.report.json"
local load = require "pipeplan.policy.load"
local show = require "pipeplan.policy.show"

local command = {}

local usage = [[
Usage: pipeplan policy COMMAND [OPTIONS]

  show    the effective policy: every row, rule and parameter with its layer, file and line,
          and what each override hides (pipeplan policy show --help)

Examples:
   pipeplan policy show --policy examples/sites/aws-p5.lua
]]

local examples = [[
Examples:
   pipeplan policy show
       the default policy
   pipeplan policy show --policy examples/sites/aws-p5.lua --set tie_fraction=2%
       what is left of it under a site's policy and one parameter]]

local verbs = { "show" }

local function new_parser()
  local parser = argparse("pipeplan policy show", "Prints the effective policy, and what each override hides."):add_help(false)
    :help_max_width(100):help_description_margin(28):usage("Usage: pipeplan policy show [OPTIONS]"):epilog(examples)
  parser:option("--policy", "policy file or directory, laid over the default policies"):argname("FILE|DIR"):count("*")
  parser:option("--set", "parameter, laid over everything; reason=… says why one is loosened"):argname("NAME=VALUE"):count("*")
  parser:option("--date", "date at which overrides expire (default: today)"):argname("YYYY-MM-DD")
  parser:option("--policies", "read the default policies from this directory"):argname("DIR")
  parser:option("--format", "what to print"):choices({ "text", "json" }):default("text")
  parser:option("--stdlib"):hidden(true)  -- read by the program before Lua starts
  parser:flag("-h --help", "show this help")
  return parser
end

local function run_show(arguments)
  local parser = new_parser()
  for _, argument in ipairs(arguments) do
    if argument == "-h" or argument == "--help" then return parser:get_help() .. "\n", 0 end
  end
  local good, options = parser:pparse(arguments)
  if not good then failure.usage("policy show: %s", (options:gsub("\n", " "))) end
  local policy = load.load { files = options.policy, set = show.settings(options.set), date = options.date, policies = options.policies }
  if options.format == "json" then return json.encode(show.data(policy, json.array), { indent = 2 }) .. "\n", 0 end
  return show.text(policy), 0
end

function command.run(arguments)
  local verb = arguments[1]
  if not verb or verb == "-h" or verb == "--help" then return usage, verb and 0 or failure.status.usage end
  if verb ~= "show" then failure.usage("policy: no command '%s'%s", verb, failure.suggestion(verb, verbs)) end
  return run_show { table.unpack(arguments, 2) }
end

return command
