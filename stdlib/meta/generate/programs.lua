-- SPDX-License-Identifier: Apache-2.0
-- programs.lua: definitions of what `require "engine"` gives programs: the primitives of policies, and engine.search.

local calls = require "generate.calls"
local lists = require "pipeplan.base.lists"
local search = require "generate.search"
local writer = require "generate.writer"

-- A class of objects, and its methods; `operators` of LuaLS.
local function add_object(out, name, meaning, operators, methods)
  out:class(calls.prefix .. name, nil, meaning)
  for _, operator in ipairs(operators) do out:add("---@operator %s", operator) end
  out:add("local %s = {}", name)
  for _, entry in ipairs(methods) do calls.add_function(out, name .. ":" .. entry[1], entry) end
end

return function()
  local out = writer.new "What `require \"engine\"` gives programs, after `require \"pipeplan\"`: the primitives, and engine.search."
  out.lines[1] = "---@meta engine"
  for _, name in ipairs(lists.sorted_keys(search.classes)) do calls.add_class(out, name, search.classes[name]) end
  calls.add_arguments(out, search.functions)
  local mask = calls.prefix .. "mask"
  local operators = { "len: integer" }
  for i, name in ipairs { "band", "bor", "sub" } do operators[i + 1] = string.format("%s(%s): %s", name, mask, mask) end
  add_object(out, "mask", "A set of a search's rows; a == b compares sets.", operators, search.masks)
  add_object(out, "candidates", "Candidates: rows numbered from 1, a column for each field.", { "len: integer" }, search.candidates)
  out:class(calls.prefix .. "programs", { "pipeplan.engine" }, "What a program has of the engine.")
  out:add("local engine = {}")
  for _, entry in ipairs(search.functions) do calls.add_function(out, "engine." .. entry[1], entry) end
  out:add("")
  out:add("return engine")
  return out:text()
end
