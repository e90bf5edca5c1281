-- renamed.lua: fields that had other names before (names.lua). A policy that uses one means the new one, and is told so.

local lists = require "pipeplan.base.lists"
local renamed = require("pipeplan.names").renamed
local tag = require("engine").host.tag
local vocabulary = require "pipeplan.vocabulary"

local translate = {}

local function new_name(name)
  return renamed[name] and renamed[name].to or name
end

translate.name = new_name

-- A list of names, of which none stands twice any more.
function translate.names(list)
  local out, seen = {}, {}
  for _, name in ipairs(list) do
    local new = new_name(name)
    if not seen[new] then out[#out + 1] = new end
    seen[new] = true
  end
  return out
end

-- A statement as recorded, with the names that fields have now: before =, beside an operator, in a message's braces.
function translate.statement(raw)
  if type(raw.argument) ~= "table" then return end
  local argument = {}
  for key, value in pairs(raw.argument) do
    if type(value) == "table" and value[tag] then
      for i, side in ipairs(value) do value[i] = new_name(side) end
    elseif key == "message" and type(value) == "string" then
      value = value:gsub("{([^{}]*)}", function(name) return "{" .. new_name(name) .. "}" end)
    end
    local new = new_name(key)
    argument[raw.argument[new] == nil and new or key] = value  -- both: the old one is refused as unknown
  end
  raw.argument = argument
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
