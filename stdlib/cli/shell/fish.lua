-- SPDX-License-Identifier: Apache-2.0
-- fish.lua: completion for fish.

local grammar = require "pipeplan.cli.shell.grammar"
local lists = require "pipeplan.base.lists"

local head = [[
# fish completion of pipeplan, made from the parsers of its commands: pipeplan facts completion fish
function __pipeplan_at --description 'are the words so far pipeplan and these?'
    set -l words (commandline -opc)
    set -e words[1]
    test (count $words) -ge (count $argv); or return 1
    for i in (seq (count $argv))
        test "$words[$i]" = "$argv[$i]"; or return 1
    end
end
function __pipeplan_last --description 'is this the last word so far?'
    set -l words (commandline -opc)
    test "$words[-1]" = "$argv[1]"
end
complete -c pipeplan -f
]]

local function quoted(text) return "'" .. text:gsub("[\\']", "\\%0") .. "'" end

return function()
  local out = { head }
  local function add(...) out[#out + 1] = string.format(...) .. "\n" end
  for _, command in ipairs(grammar.commands()) do
    local words = table.concat(command.words, " ")
    local at = words == "" and "test (count (commandline -opc)) -eq 1" or "__pipeplan_at " .. words
    for _, option in ipairs(grammar.options(command)) do
      local names = {}
      for i, name in ipairs(option.names) do names[i] = (name:find "^%-%-" and "-l " or "-s ") .. name:match "^%-+(.*)$" end
      local takes = ""
      if option.values then takes = " -x -a " .. quoted(table.concat(option.values, " "))
      elseif option.takes == "file" then takes = " -r -F"
      elseif option.takes == "directory" then takes = " -x -a '(__fish_complete_directories)'"
      elseif option.label then takes = " -x" end
      add("complete -c pipeplan -n %s %s%s -d %s", quoted(at), table.concat(names, " "), takes, quoted(option.meaning))
    end
    if command.files then add("complete -c pipeplan -n %s -F", quoted(at)) end
    for _, word in ipairs(command.follow and lists.sorted_keys(command.follow) or {}) do
      local last = word ~= "" and word or command.words[#command.words]
      add("complete -c pipeplan -n %s -a %s", quoted(last and at .. "; and __pipeplan_last " .. last or at),
          quoted(table.concat(command.follow[word], " ")))
    end
  end
  return table.concat(out)
end
