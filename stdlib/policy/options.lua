-- SPDX-License-Identifier: Apache-2.0
-- options.lua: what whoever embeds pipeplan may say when it opens a policy, in Lua (init.lua) or as JSON (embed.lua), and what each is.

local dates = require "pipeplan.base.dates"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local options = {}

local function is_list(value) return value ~= json.null and lists.is_list(value) end

local function is_paths(value)
  if type(value) == "string" then return true end
  if not is_list(value) then return false end
  for _, path in ipairs(value) do if type(path) ~= "string" then return false end end
  return true
end

local function is_set(value)
  return type(value) == "table" and value ~= json.null and lists.is_named(value)
end

local function is_date(value) return type(value) == "string" and not select(2, dates.check(value)) end
local function is_text(value) return type(value) == "string" end
local function is_boolean(value) return type(value) == "boolean" end
local function is_count(value) return math.type(value) == "integer" and value > 0 end

local expected = {
  policy = { "a path or a list of paths", is_paths },
  set = { "parameters and their values", is_set },
  date = { "a date such as 2027-06-30", is_date },
  policies = { "a directory", is_text },
  in_force = { "true or false", is_boolean },
  frontier = { "true or false", is_boolean },
  work = { "a whole number from 1 on", is_count },
  bytes = { "a whole number from 1 on", is_count },
}

local function shown(value)
  if value == json.null then return "null" end
  if is_list(value) and #value > 0 then
    local parts = {}
    for i, entry in ipairs(value) do parts[i] = shown(entry) end
    return "{ " .. table.concat(parts, ", ") .. " }"
  end
  if type(value) == "table" then return "a table" end
  return type(value) == "function" and "a function" or tostring(value)
end

-- `given` as it is, where each is one of `names` and what it is to be; else an answer, in which `whose` says who was asked.
function options.check(given, names, whose)
  if type(given) ~= "table" or given == json.null then failure.usage("%s: options are %s: expected a table", whose, shown(given)) end
  for name in pairs(given) do
    if type(name) ~= "string" then failure.usage("%s: an option is written name = value, got %s", whose, shown(given[name])) end
  end
  for _, name in ipairs(lists.sorted_keys(given)) do
    if not lists.contains(names, name) then failure.usage("%s: no option '%s'%s", whose, name, failure.suggestion(name, names)) end
    if not expected[name][2](given[name]) then
      failure.usage("%s: %s is %s: expected %s", whose, name, shown(given[name]), expected[name][1])
    end
  end
  return given
end

return options
