-- SPDX-License-Identifier: Apache-2.0
-- zsh.lua: completion for zsh, by _arguments.

local grammar = require "pipeplan.cli.shell.grammar"
local lists = require "pipeplan.base.lists"

-- Inside single quotes, and inside the brackets of a description.
local function quoted(text) return (text:gsub("'", "'\\''")) end
local function described(text) return quoted((text:gsub("[%[%]:\\]", "\\%0"))) end

local function action(option)
  if option.values then return ":value:(" .. table.concat(option.values, " ") .. ")" end
  if option.takes == "file" then return ":file:_files" end
  if option.takes == "directory" then return ":directory:_files -/" end
  return option.label and ":value: " or ""
end

local function lines_of(option, add)
  for _, name in ipairs(option.names) do
    add("      '*%s[%s]%s'", name, described(option.meaning), quoted(action(option)))
  end
end

local function function_name(command) return "_" .. (command.page:gsub("%-", "_")) end

return function()
  local out = { "#compdef pipeplan\n# made from the parsers of the commands: pipeplan facts completion zsh\n" }
  local commands = grammar.commands()
  local function add(...) out[#out + 1] = string.format(...) .. "\n" end
  local summaries = {}
  for _, command in ipairs(commands) do summaries[table.concat(command.words, " ")] = command.summary end
  for _, command in ipairs(commands) do
    local nested = command.words[1] == nil or command.page == "pipeplan-policy"
    add("\n%s() {", function_name(command))
    if nested then
      add("  local context state state_descr line\n  typeset -A opt_args")
      add("  _arguments -C \\")
      for _, option in ipairs(grammar.options(command)) do
        lines_of(option, function(...) add("%s \\", string.format(...)) end)
      end
      add("      '1:command:->command' '*::argument:->argument'")
      add("  case $state in\n    command)\n      local -a names=(")
      for _, word in ipairs(command.follow[""]) do
        local summary = summaries[table.concat(command.words, " ") .. (#command.words > 0 and " " or "") .. word]
        add("        '%s:%s'", word, described((summary:gsub("%.$", ""))))
      end
      add("      )\n      _describe command names ;;\n    argument)\n      case $line[1] in")
      for _, word in ipairs(command.follow[""]) do
        add("        %s) %s_%s ;;", word, function_name(command), word)
      end
      add("      esac ;;\n  esac\n}")
    else
      add("  _arguments \\")
      for _, option in ipairs(grammar.options(command)) do
        lines_of(option, function(...) add("%s \\", string.format(...)) end)
      end
      local follow = command.follow
      if follow then
        local after = {}
        for _, word in ipairs(lists.sorted_keys(follow)) do
          if word ~= "" then after[#after + 1] = table.concat(follow[word], " ") end
        end
        add("      '1:name:(%s)' '*:name:%s'", table.concat(follow[""], " "),
            command.files and "_files" or "(" .. table.concat(after, " ") .. ")")
      else
        add("      %s", command.files and "'*:file:_files'" or "':: :'")
      end
      add("}")
    end
  end
  add("\nif [ \"$funcstack[1]\" = _pipeplan ]; then\n  _pipeplan \"$@\"\nelse\n  compdef _pipeplan pipeplan\nfi")
  return table.concat(out)
end
