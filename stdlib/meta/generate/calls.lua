-- SPDX-License-Identifier: Apache-2.0
-- calls.lua: definitions of the engine's functions, and of the classes that they take and give, from their descriptions.

local examples = require "pipeplan.policy.examples"
local writer = require "generate.writer"

local calls = { prefix = "pipeplan.engine." }

-- "P; ≥ 1; default 2".
local function describe(entry)
  local parts = {}
  if entry[3] ~= "" then parts[#parts + 1] = entry[3] end
  parts[#parts + 1] = writer.range(entry.low, entry.high)
  if entry.default ~= nil then parts[#parts + 1] = "default " .. tostring(entry.default) end
  return table.concat(parts, "; ")
end

function calls.is_optional(entry)
  return entry.optional or entry.default ~= nil
end

function calls.add_class(out, name, class, parents)
  out:class(calls.prefix .. name, parents, class.meaning)
  for _, entry in ipairs(class.fields) do out:field(entry[1], entry[2], calls.is_optional(entry), describe(entry)) end
end

-- "comm.alltoall" → "comm_alltoall_arguments".
local function arguments_class(name)
  return (name:gsub("[.:]", "_")) .. "_arguments"
end

-- The type of the one table that the function takes.
function calls.arguments_type(entry) return calls.prefix .. arguments_class(entry[1]) end

-- The class of the one table that each function of a list takes.
function calls.add_arguments(out, list)
  for _, entry in ipairs(list) do
    if entry.arguments then
      calls.add_class(out, arguments_class(entry[1]), { meaning = "Arguments. " .. entry[2], fields = entry.arguments })
    end
  end
end

function calls.returned(entry)
  return entry.illegal and entry.result .. "|nil" or entry.result
end

-- The example (policy/examples.lua) of what `target` names.
local function example_of(target)
  local name = target:gsub("^engine%.", ""):gsub("^schedule_object:", "schedule:")
  for _, list in ipairs { examples.primitives, examples.beyond } do
    for _, example in ipairs(list) do
      if example[1] == name then return example end
    end
  end
end

local function add_returns(out, entry)
  if entry.result ~= "nil" then out:add("---@return %s", calls.returned(entry)) end
  for _, more in ipairs(entry.results or {}) do out:add("---@return %s", more) end
  if entry.illegal then out:add("---@return %s%s? why", calls.prefix, entry.illegal == true and "illegal" or entry.illegal) end
end

-- The function that `target` ("engine.comm.p2p", "schedule_object:simulate") is called by.
function calls.add_function(out, target, entry)
  local names = {}
  out:add("")
  out:comment(entry[2])
  local example = example_of(target)
  if example then
    out:comment("```lua\n" .. example[2] .. "  --> " .. example[3]:gsub("%s+$", "") .. ": " .. example[4] .. "\n```")
  end
  if entry.arguments then
    out:add("---@param arguments%s %s", entry.optional and "?" or "", calls.arguments_type(entry))
    names[1] = "arguments"
  end
  for i, argument in ipairs(entry.positional or {}) do
    out:add("---@param %s%s %s %s", argument[1], argument.optional and "?" or "", argument[2], describe(argument))
    names[i] = argument[1]
  end
  add_returns(out, entry)
  out:add("function %s(%s) end", target, table.concat(names, ", "))
end

return calls
