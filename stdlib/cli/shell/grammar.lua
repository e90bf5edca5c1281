-- SPDX-License-Identifier: Apache-2.0
-- grammar.lua: what every command takes, read from its parser: for man pages (man.lua) and completions (bash.lua, zsh.lua, fish.lua).
--
-- A command  { page, words, summary, usage, arguments, groups, epilog, follow }
--   page       name of its man page: pipeplan-policy-check
--   words      what is typed for it: { "policy", "check" }; {} for the program itself
--   follow     { [""] = words that may stand first behind it, WORD = words that may stand behind that one }; nil: none
--   files      may files stand behind it?
--   groups     { title, options }, as the help has them
-- An option  { names, meaning, label, values, takes }
--   names      long ones first; those that the help does not show are left out, but for -o
--   label      what stands behind it in the help, or nil
--   values     words that it may be, or nil; takes: "file", "directory" or "value" where they are none

local commands = require "pipeplan.cli.commands"
local fields = require "pipeplan.input.fields"

local grammar = {}

local function values_of(option)
  if option._choices then return option._choices end
  local field = option._target and fields.by_name[option._target:match "^field (.+)$"]
  if field and field.type == "flag" then return { "true", "false" } end
  return field and field.domain
end

local function option_of(option)
  local names, meaning = {}, option._description or ""
  for i = #option._public_aliases, 1, -1 do names[#names + 1] = option._public_aliases[i] end
  meaning = meaning:gsub(" %(also: (%-%l) [^)]*%)", function(short)
    names[#names + 1] = short
    return ""
  end)
  local label = option._maxargs > 0 and table.concat(option:_get_argument_list(), " ") or nil
  local argname = type(option._argname) == "string" and option._argname or ""
  local values = label and values_of(option) or nil
  local takes = label and not values and (argname:find "FILE" and "file" or argname:find "DIR" and "directory" or "value") or nil
  return { names = names, meaning = meaning, label = label, values = values, takes = takes, default = option._default }
end

local function groups_of(parser)
  local groups, grouped = {}, {}
  for _, group in ipairs(parser._groups) do
    local options = {}
    for i, option in ipairs(group) do options[i], grouped[option] = option_of(option), true end
    groups[#groups + 1] = { title = group.name, options = options }
  end
  local rest = {}
  for _, option in ipairs(parser._options) do
    if not grouped[option] and not option._hidden then rest[#rest + 1] = option_of(option) end
  end
  if #rest > 0 then table.insert(groups, 1, { title = #groups > 0 and "Other options" or "Options", options = rest }) end
  return groups
end

-- The command of those words, whose module is `module`.
local function command_of(words, module)
  local parser = module.parser()
  local arguments = {}
  for i, argument in ipairs(parser._arguments) do arguments[i] = { name = argument._name, meaning = argument._description } end
  return {
    page = "pipeplan-" .. table.concat(words, "-"), words = words, summary = parser._description, arguments = arguments,
    usage = parser:get_usage(), groups = groups_of(parser), epilog = module.usage or parser._epilog or "", follow = module.follow,
    files = #arguments > 0 and not module.no_files,
  }
end

-- All commands, the program first.
function grammar.commands()
  local policy = require "pipeplan.cli.policy"
  local help = { title = "Options", options = { { names = { "--help", "-h" }, meaning = "show the help" } } }
  local list = {
    { page = "pipeplan", words = {}, summary = "Plans pipeline parallelism for training large language models.", arguments = {},
      usage = "Usage: pipeplan COMMAND ...", epilog = commands.usage, follow = { [""] = commands.list },
      groups = { { title = "Options", options = { help.options[1], { names = { "--version" }, meaning = "print the version" } } } } },
  }
  for _, name in ipairs(commands.list) do
    if name == "policy" then
      list[#list + 1] = { page = "pipeplan-policy", words = { "policy" }, summary = "Shows, checks, tests and compares policies.",
                          arguments = {}, usage = "Usage: pipeplan policy COMMAND [OPTIONS]", groups = { help }, epilog = policy.usage,
                          follow = { [""] = policy.verbs } }
      for _, verb in ipairs(policy.verbs) do
        list[#list + 1] = command_of({ name, verb }, require("pipeplan.cli.policy." .. verb))
      end
    else
      list[#list + 1] = command_of({ name }, require("pipeplan.cli." .. name))
    end
  end
  return list
end

-- All options of a command, in one list.
function grammar.options(command)
  local list = {}
  for _, group in ipairs(command.groups) do table.move(group.options, 1, #group.options, #list + 1, list) end
  return list
end

return grammar
