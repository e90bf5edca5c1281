-- SPDX-License-Identifier: Apache-2.0
-- engine.lua: definitions of the engine's primitives, from their description.

local calls = require "generate.calls"
local lists = require "pipeplan.base.lists"
local primitives = require "generate.primitives"
local writer = require "generate.writer"

local PREFIX = calls.prefix

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
    calls.add_function(out, "engine." .. name, call)
    return
  end
  out:class(PREFIX .. name, nil, call and call[2])
  for _, value in ipairs(primitives.values) do
    if value[1]:match("^" .. name .. "%.") then out:field(value[1]:match("%.(.*)$"), value[2], false, value[3]) end
  end
  if call then
    out:add("---@overload fun(arguments: %s): %s, %sillegal?", calls.arguments_type(call), calls.returned(call), PREFIX)
  end
  out:add("engine.%s = {}", name)
  for _, entry in ipairs(module.functions) do calls.add_function(out, "engine." .. entry[1], entry) end
end

return function()
  local out = writer.new "The engine's arithmetic, for `when` functions. Ranks, stages and microbatches are numbered from 0."
  for _, name in ipairs(lists.sorted_keys(primitives.classes)) do calls.add_class(out, name, primitives.classes[name]) end
  calls.add_arguments(out, primitives.functions)
  calls.add_arguments(out, primitives.methods)
  out:class(PREFIX .. "schedule_object", nil, "A schedule: for each rank, the ordered actions that it executes.")
  out:add("local schedule_object = {}")
  for _, entry in ipairs(primitives.methods) do calls.add_function(out, "schedule_object:" .. entry[1], entry) end
  out:class("pipeplan.engine", nil, "What arithmetic decides. Each call counts against a policy's budget.")
  out:add("engine = {}")
  for _, module in ipairs(modules()) do add_module(out, module) end
  return out:text()
end
