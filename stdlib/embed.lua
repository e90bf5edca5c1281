-- SPDX-License-Identifier: Apache-2.0
-- embed.lua: what libpipeplan (engine/library.c) calls: JSON texts in and out, and never an error.
--
--   require "pipeplan.embed" (options) → the function that plans, answer, exit status
--   plan(spec) → answer, exit status

local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local opening = require "pipeplan.policy.options"
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

local names = { "date", "in_force", "policy", "set" }  -- of what may be said: engine/pipeplan.h

local function open(text)
  local options = opening.check(text and object(text, "options") or {}, names, "options")
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
