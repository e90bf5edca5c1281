-- arguments.lua: what every command does with its command line, and the options that several of them share.

local failure = require "pipeplan.base.failure"

local arguments = {}

-- arguments.parse(parser, list, command) → what argparse read, or nil and the text of the help. Who asks for help gets it, whatever else
-- stands there; what cannot be read is answered in one line.
function arguments.parse(parser, list, command)
  for _, argument in ipairs(list) do
    if argument == "-h" or argument == "--help" then return nil, parser:get_help() .. "\n" end
  end
  local good, parsed = parser:pparse(list)
  if not good then
    local unknown = parsed:match "^unknown option '%-%-([%w_-]+)'"
    local elsewhere = unknown and require("pipeplan.names").in_options(unknown) or ""
    if elsewhere ~= "" then parsed = parsed:gsub("\n.*", "") end
    failure.usage("%s: %s%s", command, (parsed:gsub("\nDid", ", did"):gsub("\n", " ")), elsewhere)
  end
  if parsed.output == "-" then parsed.output = nil end  -- standard output
  return parsed
end

-- What --filter says, a Lua pattern, as a function that says whether a name matches it; nil: no filter. What is no pattern shows only where
-- it is tried.
function arguments.filter(pattern)
  return pattern and function(name)
    local good, found = pcall(string.find, name, pattern)
    if not good then failure.usage("--filter: '%s' is no Lua pattern: %s", pattern, found) end
    return found ~= nil
  end
end

-- The options that say which policy holds and where Lua is read from, declared on a parser; for a group of its help.
function arguments.declare_policy(parser)
  return parser:option("--policy", "policy file or directory, laid over the default policies"):argname("FILE|DIR"):count("*"),
         parser:option("--set", "parameter of the policy, laid over everything; reason=… says why one is loosened")
           :argname("NAME=VALUE"):count("*"),
         parser:option("--date", "date at which the expiry of loosened rules is judged (default: today in UTC)"):argname("YYYY-MM-DD"),
         parser:flag("--debug", "print of a policy writes to standard error, which it otherwise does not have"),
         parser:option("--policies", "read the default policies from this directory"):argname("DIR"),
         parser:option("--stdlib", "read pipeplan's own Lua from this directory"):argname("DIR")  -- done before Lua starts
end

-- { "name=value", … } → { name = value }.
local function settings(entries)
  local set = {}
  for _, entry in ipairs(entries) do
    local name, value = entry:match("^([%w_]+)=(.*)$")
    if not name then failure.unloadable("--set: '%s' is not name=value", entry) end
    set[name] = value
  end
  return set
end

-- What those options say of a policy, as pipeplan.policy.load takes it.
function arguments.load_options(parsed)
  return { files = parsed.policy, set = settings(parsed.set), date = parsed.date, policies = parsed.policies, debug = parsed.debug }
end

-- The policy that those options name.
function arguments.policy(parsed)
  return require("pipeplan.policy.load").load(arguments.load_options(parsed))
end

return arguments
