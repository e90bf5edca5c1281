-- SPDX-License-Identifier: Apache-2.0
-- man.lua: a command's man page, in roff's man macros.

local engine = require "engine"
local grammar = require "pipeplan.cli.shell.grammar"

local man = {}

-- Characters that every device of roff has a name for.
local named = { ["×"] = "\\(mu", ["…"] = "...", ["–"] = "\\(en", ["−"] = "\\(mi", ["µ"] = "\\(mc", ["≥"] = "\\(>=", ["·"] = "\\(pc" }

local function escaped(text)
  text = text:gsub("\\", "\\e"):gsub("%-", "\\-")
  for character, name in pairs(named) do text = text:gsub(character, (name:gsub("%%", "%%%%"))) end
  return (("\n" .. text):gsub("\n([.'])", "\n\\&%1"):sub(2))
end

-- What stands after its examples and lists in columns is running text; lines that begin with a blank stand as they are.
local function prose(lines, text)
  local plain
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local indented = line:find "^ "
    if line == "" then
      if plain then lines[#lines + 1], plain = ".fi", nil end
      lines[#lines + 1] = ".PP"
    else
      if indented and not plain then lines[#lines + 1], plain = ".nf", true end
      if not indented and plain then lines[#lines + 1], plain = ".fi", nil end
      lines[#lines + 1] = escaped(line)
    end
  end
  if plain then lines[#lines + 1] = ".fi" end
end

local function head(lines, title) lines[#lines + 1] = ".SH " .. title end

local function option_label(option)
  local names = {}
  for i, name in ipairs(option.names) do names[i] = "\\fB" .. escaped(name) .. "\\fR" end
  return table.concat(names, ", ") .. (option.label and " \\fI" .. escaped(option.label) .. "\\fR" or "")
end

-- Text without its paragraph of usage, and its examples apart: what stands between the usage and them, the examples, what follows.
local function parts_of(epilog)
  local text = epilog:gsub("^Usage:[^\n]*\n", ""):gsub("^\n+", "")
  local before, rest = text:match "^(.-)Examples:\n(.*)$"
  if not before then return text, "", "" end
  local examples, after = rest:match "^(.-\n)\n(%S.*)$"
  return before, examples or rest, after or ""
end

local function trimmed(text) return (text:gsub("^%s*\n", ""):gsub("%s+$", "")) end

local function text_of(command)
  local lines = { ".\\\" Made from the parser of the command: pipeplan facts man",
                  string.format('.TH "%s" 1 "" "pipeplan %s" "pipeplan"', escaped(command.page:upper()), engine.version), ".nh", ".ad l" }
  local function add(...) table.move({ ... }, 1, select("#", ...), #lines + 1, lines) end
  head(lines, "NAME")
  add(escaped(command.page) .. " \\- " .. escaped((command.summary:gsub("%.$", ""):gsub("^%u", string.lower))))
  head(lines, "SYNOPSIS")
  add ".nf"
  for line in command.usage:gsub("^Usage: ", ""):gmatch "[^\n]+" do add("\\fB" .. escaped(line:match "^%s*(.*)$") .. "\\fR") end
  add ".fi"
  local before, examples, after = parts_of(command.epilog)
  head(lines, "DESCRIPTION")
  add(escaped(command.summary))
  if trimmed(before) ~= "" then add ".PP" prose(lines, trimmed(before)) end
  for _, argument in ipairs(command.arguments) do
    add(".TP", "\\fI" .. escaped(argument.name) .. "\\fR", escaped(argument.meaning))
  end
  head(lines, "OPTIONS")
  for _, group in ipairs(command.groups) do
    if #command.groups > 1 then add(".SS \"" .. escaped(group.title) .. "\"") end
    for _, option in ipairs(group.options) do
      add(".TP", option_label(option), escaped(option.meaning ~= "" and option.meaning or "see above")
          .. (option.values and not option.label:find(option.values[1], 1, true) and not option.meaning:find(option.values[1], 1, true)
              and escaped(": " .. table.concat(option.values, ", ")) or "")
          .. (option.default and escaped(" (default " .. option.default .. ")") or ""))
    end
  end
  if trimmed(examples) ~= "" then
    head(lines, "EXAMPLES")
    prose(lines, trimmed("\n" .. examples))
  end
  if trimmed(after) ~= "" then
    head(lines, "NOTES")
    prose(lines, trimmed(after))
  end
  if command.page == "pipeplan" then
    head(lines, "EXIT STATUS")
    for _, entry in ipairs { { "0", "planned, or kept; no findings" }, { "1", "refused, rejected, findings, or roll back" },
                             { "2", "the command or an input cannot be read" }, { "3", "a policy raised an error" },
                             { "4", "over budget" }, { "5", "nothing was evaluated" }, { "6", "a policy cannot be loaded" },
                             { "70", "a bug in pipeplan" } } do
      add(".TP", entry[1], entry[2])
    end
    head(lines, "FILES")
    add(".TP", "\\fI/etc/pipeplan/policies.d\\fR, \\fI$XDG_CONFIG_HOME/pipeplan\\fR",
        "policies of the machine, which hold without being named")
    head(lines, "ENVIRONMENT")
    add(".TP", "PIPEPLAN_POLICY", "more policies of the machine: paths with colons between")
    add(".TP", "NO_COLOR", "colour nothing")
  end
  head(lines, "SEE ALSO")
  local also = {}
  for _, other in ipairs(grammar.commands()) do
    if other.page ~= command.page then also[#also + 1] = "\\fB" .. escaped(other.page) .. "\\fR(1)" end
  end
  add(table.concat(also, ",\n"))
  return table.concat(lines, "\n") .. "\n"
end

-- The page of that name; nil: there is none.
function man.page(name)
  for _, command in ipairs(grammar.commands()) do
    if command.page == name then return text_of(command) end
  end
end

function man.names()
  local list = {}
  for i, command in ipairs(grammar.commands()) do list[i] = command.page end
  return list
end

return man
