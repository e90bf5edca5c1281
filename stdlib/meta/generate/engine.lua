-- SPDX-License-Identifier: Apache-2.0
-- engine.lua: definitions of the engine's primitives, from their description.

local examples = require "pipeplan.policy.examples"
local lists = require "pipeplan.base.lists"
local primitives = require "generate.primitives"
local writer = require "generate.writer"

local PREFIX = "pipeplan.engine."

-- "P; ≥ 1; default 2".
local function describe(entry)
  local parts = {}
  if entry[3] ~= "" then parts[#parts + 1] = entry[3] end
  parts[#parts + 1] = writer.range(entry.low, entry.high)
  if entry.default ~= nil then parts[#parts + 1] = "default " .. tostring(entry.default) end
  return table.concat(parts, "; ")
end

local function is_optional(entry)
  return entry.optional or entry.default ~= nil
end

local function add_class(out, name, class)
  out:class(PREFIX .. name, nil, class.meaning)
  for _, entry in ipairs(class.fields) do out:field(entry[1], entry[2], is_optional(entry), describe(entry)) end
end

-- "comm.alltoall" → "comm_alltoall".
local function arguments_class(name)
  return (name:gsub("[.:]", "_")) .. "_arguments"
end

local function returned(entry)
  return entry.illegal and entry.result .. "|nil" or entry.result
end

-- The example (policy/examples.lua) of what `target` names.
local function example_of(target)
  local name = target:gsub("^engine%.", ""):gsub("^schedule_object:", "schedule:")
  for _, example in ipairs(examples.primitives) do
    if example[1] == name then return example end
  end
end

-- The function that `target` ("engine.comm.p2p", "schedule_object:simulate") is called by.
local function add_function(out, target, entry)
  local names = {}
  out:add("")
  out:comment(entry[2])
  local example = example_of(target)
  if example then
    out:comment("```lua\n" .. example[2] .. "  --> " .. example[3]:gsub("%s+$", "") .. ": " .. example[4] .. "\n```")
  end
  if entry.arguments then
    out:add("---@param arguments%s %s", entry.optional and "?" or "", PREFIX .. arguments_class(entry[1]))
    names[1] = "arguments"
  end
  for i, argument in ipairs(entry.positional or {}) do
    out:add("---@param %s%s %s %s", argument[1], argument.optional and "?" or "", argument[2], describe(argument))
    names[i] = argument[1]
  end
  out:add("---@return %s", returned(entry))
  if entry.illegal then out:add("---@return %s%s? why", PREFIX, entry.illegal == true and "illegal" or entry.illegal) end
  out:add("function %s(%s) end", target, table.concat(names, ", "))
end

-- Modules of the engine, each with its functions; `bubble` and `schedule` can be called themselves.
local function modules()
  local list, by_name = {}, {}
  for _, entry in ipairs(primitives.functions) do
    local name, member = entry[1]:match("^(%w+)%.?([%w_]*)$")
    if not by_name[name] then
      by_name[name] = { name = name, functions = {} }
      list[#list + 1] = by_name[name]
    end
    if member == "" then by_name[name].call = entry else table.insert(by_name[name].functions, entry) end
  end
  return list
end

local function add_module(out, module)
  local name, call = module.name, module.call
  if call and #module.functions == 0 then
    add_function(out, "engine." .. name, call)
    return
  end
  out:class(PREFIX .. name, nil, call and call[2])
  for _, value in ipairs(primitives.values) do
    if value[1]:match("^" .. name .. "%.") then out:field(value[1]:match("%.(.*)$"), value[2], false, value[3]) end
  end
  if call then
    out:add("---@overload fun(arguments: %s): %s, %sillegal?", PREFIX .. arguments_class(call[1]), returned(call), PREFIX)
  end
  out:add("engine.%s = {}", name)
  for _, entry in ipairs(module.functions) do add_function(out, "engine." .. entry[1], entry) end
end

return function()
  local out = writer.new "The engine's arithmetic, for `when` functions. Ranks, stages and microbatches are numbered from 0."
  for _, name in ipairs(lists.sorted_keys(primitives.classes)) do add_class(out, name, primitives.classes[name]) end
  for _, list in ipairs { primitives.functions, primitives.methods } do
    for _, entry in ipairs(list) do
      if entry.arguments then
        add_class(out, arguments_class(entry[1]), { meaning = "Arguments. " .. entry[2], fields = entry.arguments })
      end
    end
  end
  out:class(PREFIX .. "schedule_object", nil, "A schedule: for each rank, the ordered actions that it executes.")
  out:add("local schedule_object = {}")
  for _, entry in ipairs(primitives.methods) do add_function(out, "schedule_object:" .. entry[1], entry) end
  out:class("pipeplan.engine", nil, "What arithmetic decides. Each call counts against a policy's budget.")
  out:add("engine = {}")
  for _, module in ipairs(modules()) do add_module(out, module) end
  return out:text()
end
