-- SPDX-License-Identifier: Apache-2.0
-- settings.lua: what a plan sets of the framework that runs it: the keys of its table (catalog/frameworks) that a launch must say, with
-- their values, in the table's order.
--
-- settings.of(plan, request, entry) → { { key, base, field, value }, … }: value true for a flag, "no" for one that is switched off, else a
-- string, a number, or a list of strings; or nil and what of the plan the framework has no key for.

local lists = require "pipeplan.base.lists"
local untold = require "pipeplan.report.launch.untold"
local vocabulary = require "pipeplan.vocabulary"

local settings = {}

local function field_of(key, f)
  local group, name = key.field:match "^(%w+)%.(.+)$"
  if group == "parallelism" then return f.plan.parallelism[name] end
  if group == "plan" then return f.plan[name] end
  if group == "model" then return f.shape[name] end
  if f.plan.training[name] ~= nil then return f.plan.training[name] end
  return f.plan[name] or f.training[name]
end

-- What holds when nobody says.
local function default_of(key, f)
  if not key.default_of then return key.default end
  return field_of({ field = key.default_of }, f)
end

local function value_of(key, f)
  local own = f.entry.writes[key.base or key.key]
  if own then return own(f) or nil end
  if key.value then return key.value(f.training, f.request.given or {}, f.plan) end
  if not key.field then return nil end
  local value = field_of(key, f)
  if key.type == "flag" then return value ~= nil and value == key.present or nil end
  if value == 0 and key.default == nil then return nil end
  return value
end

-- What of the plan no key says, in words; nil: nothing.
local function unsaid(f)
  for _, name in ipairs(f.plan.recompute) do
    local law = ((f.entry.recompute or {}).modules or {})[name]
    if name ~= "full" and not (law and ((f.shape.experts or 0) > 0 or not law.experts_only)) then
      return string.format("recompute of %s%s", name, law and " in a model without experts" or "")
    end
  end
  local own = f.entry.unsaid and f.entry.unsaid(f) or untold(f)
  if own then return own end
  if f.entry.schedules[f.plan.schedule] == nil and f.plan.schedule ~= "none" then return "its schedule" end
end

function settings.of(plan, request, entry)
  local f = { plan = plan, request = request, entry = entry, shape = request.model.shape,
              training = lists.with(request.training, { zero = vocabulary.zero_of[plan.sharding] }) }
  local problem = unsaid(f)
  if problem then return nil, problem end
  local list, said, by_name = {}, {}, {}
  local function say(key, value)   -- behind what it wants
    if said[key] then return end
    said[key] = true
    if key.wants then say(by_name[key.wants], true) end
    list[#list + 1] = { key = key.key, base = key.base or key.key, field = key.field, value = value }
  end
  for _, key in ipairs(entry.keys) do by_name[key.key] = key end
  for _, key in ipairs(entry.keys) do
    local value = key.written ~= "never" and value_of(key, f)
    local always = key.written == "always" or key.written == "pipeline" and plan.parallelism.pipeline > 1
    if value and (always or key.present ~= nil or value ~= default_of(key, f)) then
      say(key, value)
    end
  end
  return list
end

return settings
