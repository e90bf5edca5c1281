-- SPDX-License-Identifier: Apache-2.0
-- rules.lua: the rules of a framework's table over the facts of a launch. A rule that needs what is not known says nothing.

local engine = require "engine"
local framework = require "pipeplan.plan.framework"
local frameworks = require "pipeplan.catalog.frameworks"
local vocabulary = require "pipeplan.vocabulary"

local rules = {}

local function match(condition, record)
  local values = { [condition.field] = record[condition.field] }
  local other = type(condition.value) == "table" and condition.value.field
  if other then values[other] = record[other] end
  if values[condition.field] == nil then return false end
  local given = values[condition.field]
  if type(given) == "boolean" or type(condition.value) == "boolean" then return given == condition.value end
  if type(given) == "table" then return false end
  return engine.conditions.match(values, { condition })
end

-- Does the rule hold: true, false, or nil: not known; and what was read.
local function holds(rule, record, trace)
  local conditions = frameworks.conditions(rule)
  for _, condition in ipairs(conditions) do
    local value, known = trace.run(function() return match(condition, record) end)
    if known and not value then return false end
  end
  local value, known, seen = trace.run(function()
    for _, condition in ipairs(conditions) do match(condition, record) end
    return not rule.when or rule.when(record) or false
  end)
  if not known then return nil, seen end
  return value, seen
end

-- The key, in the framework's words, of a field that rules read.
local function key_of(entry, field)
  for _, key in ipairs(entry.keys) do
    if entry.facts and entry.facts[field] == (key.base or key.key) then return key end
    local path = key.field
    if path then
      local group, name = path:match "^(%w+)%.(.+)$"
      local called = group == "parallelism" and vocabulary.parallelism[name] or name
      if called == field then return key end
    end
  end
end

local function nearest_text(entry, near)
  if not near then return nil end
  if near.field == "gpus" then return near.value .. " GPUs" end
  local key = key_of(entry, near.field)
  return (key and key.key or near.field) .. " " .. tostring(near.value)
end

-- The setting that a message is most about: of the first field that it names, among those that were read.
local function place_of(rule, entry, seen)
  for field in ("{" .. (rule.about or "") .. "}" .. rule.message):gmatch "{([^{}]*)}" do
    local key = key_of(entry, field)
    for _, setting in ipairs(seen.settings) do
      if key and setting.key == key.key then return setting end
    end
  end
  return seen.settings[1]
end

-- A message in the framework's own spelling: rules that it takes from another name that one's keys.
local function spelled(entry, message)
  if not entry.base then return message end
  local own = {}
  for _, key in ipairs(entry.keys) do own[key.base or ""] = key.key end
  return (message:gsub("%-%-[%a][%w%-]*", function(name) return own[name] or name:sub(3):gsub("%-", "_") end))
end

-- note{ … } takes each finding; → ids of rules that could not be judged, and what is missing for them { name → true }.
function rules.apply(entry, record, trace, launch, note)
  local undecided, missing = {}, {}
  for _, rule in ipairs(entry.rules) do
    local value, seen = holds(rule, record, trace)
    if value == nil then
      if next(seen.missing) then undecided[#undecided + 1] = rule.id end
      for name in pairs(seen.missing) do missing[name] = true end
    elseif value and not (launch.resolved and rule.id == "megatron.two_batches") then
      local shown = setmetatable({}, { __index = function(_, name)
        local text, known = trace.run(function() return record[name] end)
        return known and text or name == "schedule" and "none" or nil
      end })
      local message, near = framework.told(rule, entry, shown)
      local setting = place_of(rule, entry, seen)
      note { id = rule.id, severity = rule.severity or "error", message = spelled(entry, message), setting = setting,
             nearest = nearest_text(entry, near), source = rule.source, rests = seen.rests }
    end
  end
  return undecided, missing
end

return rules
