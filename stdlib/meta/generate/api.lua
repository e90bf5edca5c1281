-- SPDX-License-Identifier: Apache-2.0
-- api.lua: definitions of what `require "pipeplan"` returns: policies to plan with, what a spec may say, and the plan as its schema has it.

local fields = require "pipeplan.input.fields"
local lists = require "pipeplan.base.lists"
local plan_schema = require "pipeplan.schema.plan"
local writer = require "generate.writer"

local PLAN = "pipeplan.plan"

-- ------------------------------------------------------------------------------------------------------------------------------- plan

local scalars = { string = "string", number = "number", integer = "integer", boolean = "boolean" }

local collect

-- The type that a schema describes, and whether it may be null (nil in the plan that :plan returns). Objects become classes, named after
-- where they stand.
local function type_of(schema, name, classes)
  if schema["$ref"] then return PLAN .. "." .. schema["$ref"]:match("[^/]+$"), false end
  if schema.anyOf then return (type_of(schema.anyOf[1], name, classes)), true end
  local kind, optional = schema.type, false
  if type(kind) == "table" then kind, optional = kind[1], true end
  if schema.enum then
    local values = {}
    for _, value in ipairs(schema.enum) do
      if type(value) == "string" then values[#values + 1] = string.format("%q", value) end
    end
    return table.concat(values, "|"), optional
  end
  if kind == "array" then
    local item = type_of(schema.items, name, classes)
    return (item:find("|", 1, true) and "(" .. item .. ")" or item) .. "[]", optional
  end
  if kind == "object" and not schema.properties then return "table<string, any>", optional end
  if kind == "object" then
    collect(schema, name, classes)
    return name, optional
  end
  return scalars[kind] or "any", optional
end

function collect(schema, name, classes)
  local class = { name = name, meaning = schema.description, fields = {} }
  classes[#classes + 1] = class
  for _, property in ipairs(lists.sorted_keys(schema.properties)) do
    local entry = schema.properties[property]
    if property == "$schema" then goto continue end  -- what a file says of itself
    local type, optional = type_of(entry, name .. "." .. property, classes)
    local inner = entry.anyOf and entry.anyOf[1] or entry
    class.fields[#class.fields + 1] = { property, type, optional, entry.description or inner.description }
    ::continue::
  end
end

local function add_plan(out)
  local classes = {}
  for _, name in ipairs(lists.sorted_keys(plan_schema["$defs"])) do collect(plan_schema["$defs"][name], PLAN .. "." .. name, classes) end
  collect(plan_schema, PLAN, classes)
  for _, class in ipairs(classes) do
    out:class(class.name, nil, class.meaning)
    for _, field in ipairs(class.fields) do out:field(table.unpack(field, 1, 4)) end
  end
end

-- ------------------------------------------------------------------------------------------------------------------------------- spec

local spec_types = {
  batch = "number|string|(number|string)[][]", integer = "integer|string", integers = "integer[]|string", layout = "string|string[][]",
  kernel = "string|false",
  labels = "table<string, string>|string",
  flag = "boolean|string", kernels = "string|string[]", paths = "string|string[]",
  model = "string|table", path = "string", quantity = "number|string", recompute = "string|string[]", string = "string",
}

local function spec_type(entry)
  if entry.type ~= "choice" then return assert(spec_types[entry.type], entry.path) end
  local values = {}
  for i, value in ipairs(entry.domain) do values[i] = string.format("%q", value) end
  return table.concat(values, "|")
end

local function add_field(out, entry)
  local unit = entry.unit and entry.unit ~= "1" and "; in " .. entry.unit or ""
  out:field(entry.name, spec_type(entry), true, fields.meaning(entry) .. unit)
end

local function add_spec(out)
  out:class("pipeplan.request", nil, "What to plan: spec files, laid over each other in order, and fields over all of them.")
  out:field("[integer]", "string", false, "spec files")
  for _, entry in ipairs(fields.list) do add_field(out, entry) end
  for _, group in ipairs(lists.sorted_keys(fields.groups)) do
    local top = group == ""
    out:class("pipeplan.spec" .. (top and "" or "." .. group), nil, top and "A spec: what its JSON says, as a Lua table." or nil)
    for _, key in ipairs(fields.keys(group)) do
      local entry = fields.groups[group][key]
      if type(entry) == "string" then out:field(key, "pipeplan.spec." .. entry, true) else add_field(out, entry) end
    end
  end
end

-- -------------------------------------------------------------------------------------------------------------------------------- API

local functions = [[

--- How a policy is loaded.
---@class pipeplan.policy_options
---@field set? table<string, any> parameters, laid over everything; reason and expires as in a `set` statement
---@field date? string YYYY-MM-DD at which overrides expire (default: today in UTC)
---@field policies? string directory to read the default policies from
---@field frontier? boolean plans have their frontier, as with --format json, which takes as long again
---@field in_force? boolean over the policies of this machine, as the program plans
---@field work? integer budget of work for loading, and for each plan
---@field bytes? integer budget of memory

--- An error that is an answer: what cannot be read, loaded or planned.
---@class pipeplan.failure
---@field status integer exit status: 2 unreadable input, 3 error in a rule, 4 over budget, 5 nothing to do, 6 unloadable policy
---@field message string

--- A policy to plan with.
---@class pipeplan.policy
local policy = {}

--- Plans what spec files and fields say: site:plan { "spec.json", gpus = 64 }. Raises a pipeplan.failure.
---@param request pipeplan.request
---@return pipeplan.plan
function policy:plan(request) end

--- Plans a spec that is a Lua table. Raises a pipeplan.failure.
---@param spec pipeplan.spec
---@param base? string directory of the files that it names
---@return pipeplan.plan
function policy:plan_spec(spec, base) end

--- The same policy, with facts in place of what would follow from the request: request fields, as rules read them. For tests.
---@param facts table<string, any>
---@return pipeplan.policy
function policy:with(facts) end

---@class pipeplan
---@field version string
local pipeplan = {}

--- Policy files laid over the default policies, in order; none: the default policies alone. Raises a pipeplan.failure.
---@param files? string|string[]
---@param options? pipeplan.policy_options
---@return pipeplan.policy
function pipeplan.policy(files, options) end

--- The plan's JSON on one line, as `plan --jsonl` prints it.
---@param plan pipeplan.plan
---@return string
function pipeplan.json(plan) end

--- Registers assert.decided with luassert, where that is loaded; done by itself inside busted.
---@return boolean registered
function pipeplan.assertions() end

---@class luassert
local luassert = {}

--- The outcome of a plan, and a rule among its reasons: assert.decided(plan, "rejected", "too_deep").
---@param plan pipeplan.plan
---@param outcome "planned"|"refused"|"rejected"
---@param rule? string
function luassert.decided(plan, outcome, rule) end

return pipeplan]]

return function()
  local out = writer.new "What `require \"pipeplan\"` returns."
  out.lines[1] = "---@meta pipeplan"
  add_spec(out)
  add_plan(out)
  out:add("%s", functions)
  return out:text()
end
