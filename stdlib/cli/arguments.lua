-- SPDX-License-Identifier: Apache-2.0
-- arguments.lua: what every command does with its command line, and the options that several of them share.

local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"

local arguments = {}

-- ", did you mean '--name'?" or "".
local function nearest(parser, unknown)
  local names = {}
  for _, option in ipairs(parser._options) do
    for _, alias in ipairs(option._aliases) do names[#names + 1] = alias:match "^%-%-(.+)$" end
  end
  local near = failure.nearest(unknown, names)
  return near and string.format(", did you mean '--%s'?", near) or ""
end

local function asks_for_help(list)
  for _, argument in ipairs(list) do
    if argument == "--" then return false end
    if argument == "-h" or argument == "--help" then return true end
  end
  return false
end

-- A value that is a negative number belongs to the option before it: "--gpus -1" is "--gpus=-1", and no option of its own.
local function with_negatives(list)
  local out, skip = {}, false
  for i, argument in ipairs(list) do
    local value = list[i + 1]
    if argument == "--" then return table.move(list, i, #list, #out + 1, out) end
    if skip then skip = false
    elseif argument:find "^%-%-[%w_-]+$" and value and (value:find "^%-%.?%d" or value == "-inf" or value == "-nan") then
      out[#out + 1], skip = argument .. "=" .. value, true
    else out[#out + 1] = argument end
  end
  return out
end

-- What the list says for an option, as "--format=x" or "--format x": the first that is none of the choices.
local function wrong_value(list, option, choices)
  for i, argument in ipairs(list) do
    local value = argument == option and list[i + 1] or argument:sub(1, #option + 1) == option .. "=" and argument:sub(#option + 2)
    if value and not lists.contains(choices, value) then return value end
  end
  return ""
end

-- argparse's "argument for option '--format' must be one of 'text', 'json'", with what was said and the nearest choice.
local function choice_words(words, list)
  local option, choices = words:match "^argument for option '(%-[%w_-]+)' must be one of (.+)$"
  if not option then return words end
  local names = {}
  for name in choices:gmatch "'([^']*)'" do names[#names + 1] = name end
  local value = wrong_value(list, option, names)
  local near = failure.nearest(value, names)
  near = near and string.format(", did you mean '%s'?", near) or ""
  return string.format("%s must be one of %s, got '%s'%s", option, table.concat(names, ", "), value, near)
end

local function finished(parsed)
  if parsed.output == "-" then parsed.output = nil end  -- standard output
  return parsed
end

-- arguments.parse(parser, list, command) → what argparse read, or nil and the text of the help. Who asks for help gets it, whatever else
-- stands there; what cannot be read is answered in one line.
function arguments.parse(parser, list, command)
  if asks_for_help(list) then return nil, parser:get_help() .. "\n" end
  local good, parsed = parser:pparse(with_negatives(list))
  if not good then
    local unknown = parsed:match "^unknown option '%-%-([%w_-]+)'"
    local elsewhere = unknown and require("pipeplan.names").in_options(unknown) or ""
    if elsewhere ~= "" then parsed = parsed:gsub("\n.*", "")
    elseif unknown and not parsed:find "\n" then elsewhere = nearest(parser, unknown) end   -- the parser looks no farther than one letter
    failure.usage("%s: %s%s", command, choice_words(parsed:gsub("\nDid", ", did"):gsub("\n", " "), list), elsewhere)
  end
  return finished(parsed)
end

-- The same where making the parser is most of the work: make(list) makes one that knows of many options those that the list names, and
-- make() the one that knows all, for whoever asks for help or writes what cannot be read.
function arguments.parse_few(make, list, command)
  if not asks_for_help(list) then
    local good, parsed = make(list):pparse(with_negatives(list))
    if good then return finished(parsed) end
  end
  return arguments.parse(make(), list, command)
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

-- What an option says, a whole number from least to most; nil where nothing is said.
function arguments.integer(name, text, least, most)
  if text == nil then return nil end
  local value = text:match "^%d+$" and math.tointeger(tonumber(text))
  if value and value >= least and value <= most then return value end
  local number = tonumber(text)
  local near = number and string.format("; nearest: %d", math.max(least, math.min(most, number)) // 1) or ""
  failure.usage("--%s must be an integer from %d to %d, got '%s'%s", name, least, most, text, near)
end

-- What --jobs says: how many processes; nil is one.
function arguments.jobs(text)
  return arguments.integer("jobs", text, 1, 256) or 1
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

-- The same, with the policies of the machine, which hold for plans without being named.
function arguments.declare_policy_in_force(parser)
  local declared = { arguments.declare_policy(parser) }
  table.insert(declared, 2, parser:flag("--no-site", "leave out the policies of this machine: /etc/pipeplan/policies.d, "
                                        .. "$XDG_CONFIG_HOME/pipeplan, PIPEPLAN_POLICY"))
  table.insert(declared, 3, parser:option("--policy-digest", "plan by no other policies than those with this digest (pipeplan policy show)")
                                  :argname("DIGEST"))
  return table.unpack(declared)
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
  return { files = parsed.policy, set = settings(parsed.set), date = parsed.date, policies = parsed.policies, debug = parsed.debug,
           expression = parsed.expression }
end

-- The policy that those options name.
function arguments.policy(parsed)
  return require("pipeplan.policy.load").load(arguments.load_options(parsed))
end

-- The policy that holds: the machine's, with those options over it; none but that of the digest that they demand.
function arguments.policy_in_force(parsed)
  local options, found = arguments.load_options(parsed), require("pipeplan.policy.found").paths()
  options[parsed.no_site and "left_out" or "found"] = found
  local policy = require("pipeplan.policy.load").load(options)
  local demanded = parsed.policy_digest
  if demanded and demanded:lower() ~= policy.stack then
    failure.unloadable("--policy-digest: the policies in force are %s (%s), and %s is demanded%s; pipeplan policy show --files names each",
                       policy.stack, table.concat(require("pipeplan.base.lists").column(policy.layers, "name"), " ← "), demanded,
                       demanded:lower() == policy.digest and ", which is theirs with this date and version: policy.digest of a plan, and "
                       .. "not its policy.stack" or "")
  end
  return policy
end

return arguments
