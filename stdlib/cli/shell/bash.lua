-- SPDX-License-Identifier: Apache-2.0
-- bash.lua: completion for bash. It needs no other file: bash alone reads it.

local grammar = require "pipeplan.cli.shell.grammar"
local lists = require "pipeplan.base.lists"

local head = [==[
# bash completion of pipeplan, made from the parsers of its commands: pipeplan facts completion bash
_pipeplan() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev= command= last= options= words= files= word i
    [[ $COMP_CWORD -gt 0 ]] && prev=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case "$command/$word" in
]==]

local middle = [==[
        esac
        last=$word
    done
    case "$command:$prev" in
]==]

local tail = [==[
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
        return
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    [[ -n $files || ${#COMPREPLY[@]} -gt 0 ]] || compopt +o default 2>/dev/null
}
complete -o default -F _pipeplan pipeplan
]==]

-- Where files complete, nothing is replied, and readline's own completion of files answers.
local function reaction(option)
  if option.values then return string.format('COMPREPLY=($(compgen -W "%s" -- "$cur")); return', table.concat(option.values, " ")) end
  if option.takes == "directory" then return 'COMPREPLY=($(compgen -d -- "$cur")); return' end
  if option.takes == "file" then return "return" end
  return "compopt +o default 2>/dev/null; return"
end

return function()
  local commands, out = grammar.commands(), { head }
  local function add(...) out[#out + 1] = string.format(...) end
  for _, command in ipairs(commands) do
    if #command.words > 0 then
      local before = table.concat(command.words, " ", 1, #command.words - 1)
      add('            "%s/%s") command="%s" ;;\n', before, command.words[#command.words], table.concat(command.words, " "))
    end
  end
  add("%s", middle)
  for _, command in ipairs(commands) do
    for _, option in ipairs(grammar.options(command)) do
      if option.label then
        local patterns = {}
        for i, name in ipairs(option.names) do patterns[i] = string.format('"%s:%s"', table.concat(command.words, " "), name) end
        add("        %s) %s ;;\n", table.concat(patterns, "|"), reaction(option))
      end
    end
  end
  add("%s", '    esac\n    case "$command" in\n')
  for _, command in ipairs(commands) do
    local names = {}
    for _, option in ipairs(grammar.options(command)) do table.move(option.names, 1, #option.names, #names + 1, names) end
    add('        "%s")\n            options="%s"\n', table.concat(command.words, " "), table.concat(names, " "))
    if command.files then add("            files=yes\n") end
    if command.follow then
      add('            case "$last" in\n')
      for _, word in ipairs(lists.sorted_keys(command.follow)) do
        if word ~= "" then add('                "%s") words="%s" ;;\n', word, table.concat(command.follow[word], " ")) end
      end
      local last = command.words[#command.words] or ""
      add('                "%s") words="%s" ;;\n            esac\n', last, table.concat(command.follow[""] or {}, " "))
    end
    add("            ;;\n")
  end
  add("%s", tail)
  return table.concat(out)
end
