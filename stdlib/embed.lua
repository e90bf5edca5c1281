-- SPDX-License-Identifier: Apache-2.0
-- embed.lua: what libpipeplan (engine/library.c) calls: JSON texts in and out, and never an error.
--
--   require "pipeplan.embed" (options) → the function that plans, answer, exit status
--   plan(spec) → answer, exit status

local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local pipeplan = require "pipeplan"

local function error_text(status, message)
  return json.encode { error = { message = message, status = status } }, status
end

local function caught(problem)
  return failure.of(problem) or debug.traceback(tostring(problem), 2)
end

-- What run(…) returns, or the answer of what it raised.
local function answered(run, ...)
  local good, answer, status = xpcall(run, caught, ...)
  if good then return answer, status end
  local told = failure.of(answer)  -- of a want of memory no handler is asked
  return error_text(told and told.status or failure.status.bug, told and told.message or answer)
end

local function object(text, name)
  local value = json.decode(text, name)
  if type(value) ~= "table" or value == json.null or json.is_array(value) then failure.usage("%s: expected an object", name) end
  return value
end

local function is_paths(value)
  if not json.is_array(value) then return type(value) == "string" end
  for _, path in ipairs(value) do if type(path) ~= "string" then return false end end
  return true
end

-- What may be said (engine/pipeplan.h), and what each is.
local expected = {
  policy = { "a path, or a list of paths", is_paths },
  set = { "an object", function(value) return type(value) == "table" and value ~= json.null and not json.is_array(value) end },
  date = { "a date such as 2027-06-30", function(value) return type(value) == "string" end },
  in_force = { "true or false", function(value) return type(value) == "boolean" end },
}

local function open(text)
  local options = text and object(text, "options") or {}
  for _, name in ipairs(lists.sorted_keys(options)) do
    local known = expected[name]
    if not known then failure.usage("options: no option '%s'%s", name, failure.suggestion(name, lists.sorted_keys(expected))) end
    if not known[2](options[name]) then failure.usage("options: %s is %s: expected %s", name, json.encode(options[name]), known[1]) end
  end
  local files = options.policy
  options.policy = nil
  return pipeplan.policy(files, options)
end

local function plan(site, text)
  local planned = site:plan_spec(object(text, "spec"))
  return pipeplan.json(planned), planned.status == "planned" and failure.status.ok or failure.status.refused
end

return function(options)
  local site
  local answer, status = answered(function()
    site = open(options)
    return "", failure.status.ok
  end)
  if not site then return function() return answer, status end, answer, status end  -- without a policy there is one answer to all
  return function(spec) return answered(plan, site, spec) end, answer, status
end
