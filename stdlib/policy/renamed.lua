-- SPDX-License-Identifier: Apache-2.0
-- renamed.lua: fields that had other names before (vocabulary.lua). A policy that uses one means the new one, and is told so.

local lists = require "pipeplan.base.lists"
local tag = require("engine").host.tag
local vocabulary = require "pipeplan.vocabulary"

local renamed = vocabulary.renamed

local translate = {}

-- What a field is called now.
function translate.name(name)
  return renamed[name] and renamed[name].to or name
end

-- A list of names, of which none stands twice any more.
function translate.names(list)
  local out, seen = {}, {}
  for _, name in ipairs(list) do
    local new = translate.name(name)
    if not seen[new] then out[#out + 1] = new end
    seen[new] = true
  end
  return out
end

local function has_old_name(text)
  for old in pairs(renamed) do
    if text:find(old, 1, true) then return true end
  end
  return false
end

-- A statement as recorded, with the names that fields have now: before =, beside an operator, in a message's braces.
function translate.statement(raw)
  local argument = raw.argument
  if type(argument) ~= "table" then return end
  for key, value in pairs(argument) do
    if type(value) == "table" and value[tag] then
      for i, side in ipairs(value) do value[i] = translate.name(side) end
    elseif key == "message" and type(value) == "string" and has_old_name(value) then
      argument.message = value:gsub("{([^{}]*)}", function(name) return "{" .. translate.name(name) .. "}" end)
    end
  end
  for old, entry in pairs(renamed) do
    if argument[old] ~= nil and argument[entry.to] == nil then  -- both: the old one is refused as unknown
      argument[entry.to], argument[old] = argument[old], nil
    end
  end
end

-- What a rule's function may read: every field, and the old names of some.
translate.fields = lists.with({}, vocabulary.names)
for _, old in ipairs(lists.sorted_keys(renamed)) do table.insert(translate.fields, old) end

-- Gives old names the values of new ones: `known` is name → value.
function translate.known(known)
  for old, entry in pairs(renamed) do known[old] = known[entry.to] end
end

-- The warnings of a file: each line that has an old name, outside a comment.
function translate.warnings(file)
  local list, number = {}, 0
  if not has_old_name(file.text) then return list end
  for line in (file.text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    for name in line:gsub("%-%-.*", ""):gmatch "[%a_][%w_]*" do
      local entry = renamed[name]
      if entry then
        list[#list + 1] = { id = "renamed", severity = "warning", message = string.format(
          "%s:%d: %s is called %s now; the old name goes in pipeplan %s", file.path, number, name, entry.to, entry.goes) }
      end
    end
  end
  return list
end

return translate
