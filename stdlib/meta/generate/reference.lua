-- SPDX-License-Identifier: Apache-2.0
-- reference.lua: docs/reference.md: every statement of a policy and every primitive of the engine, with an example that a test runs, from
-- their descriptions and policy/examples.lua.

local examples = require "pipeplan.policy.examples"
local primitives = require "generate.primitives"
local search = require "generate.search"

-- name → { what it does, its entry }
local described = {}
for _, entry in ipairs(primitives.functions) do described[entry[1]] = entry end
for _, entry in ipairs(primitives.values) do described[entry[1]] = entry end
for _, entry in ipairs(primitives.methods) do described["schedule:" .. entry[1]] = entry end
for _, entry in ipairs(search.functions) do described[entry[1]] = entry end
for _, entry in ipairs(search.candidates) do described["candidates:" .. entry[1]] = entry end
for _, entry in ipairs(search.masks) do described["mask:" .. entry[1]] = entry end

-- "network, size, stride?, bytes": what it takes.
local function arguments_of(entry)
  local parts = {}
  for _, argument in ipairs(entry.arguments or entry.positional or {}) do
    local optional = argument.optional or argument.default ~= nil
    parts[#parts + 1] = "`" .. argument[1] .. (optional and "?" or "") .. "`"
  end
  return #parts > 0 and "Takes " .. table.concat(parts, ", ") .. "." or ""
end

local function code(text) return "```lua\n" .. text .. "\n```" end

local function add_call(add, example)
  local entry = described[example[1]]
  add("### " .. (example[1]:find ":" and "" or "engine.") .. example[1] .. "\n")
  local words = type(entry[3]) == "string" and not entry.result and entry[3] or entry[2]
  add(((words .. " " .. arguments_of(entry)):gsub("%s+$", "")) .. "\n")
  add(code(example[2] .. "  --> " .. example[3]:gsub("%s+$", "")))
  add("\n" .. example[4] .. "\n")
end

return function()
  local out = {
    "# Statements and primitives",
    "Written by `scripts/generate-meta` from `stdlib/policy/examples.lua`; `tests/lua/reference_spec.lua` runs each example. The same",
    "is in the editor definitions (`stdlib/meta`), and printed by `pipeplan facts statements` and `pipeplan facts primitives`. What an",
    "expression is of a spec's candidates says `pipeplan policy eval -e EXPRESSION SPEC`.\n",
    "## Statements\n",
    "Examples that override something stand over this layer:\n", code(examples.below), "",
  }
  local function add(text) out[#out + 1] = text end
  for _, example in ipairs(examples.statements) do
    add("### " .. example[1] .. "\n")
    add(example[2]:sub(1, 1):upper() .. example[2]:sub(2) .. ".\n")
    add(code(example[3]) .. "\n")
  end
  add("## Primitives\n")
  add("What the engine computes, in a rule's function (`when`) and in stock `lua5.4`. Arguments are named and checked; a call costs\n"
      .. "budget in proportion to its work. Examples have this before them:\n")
  add(code(examples.prelude) .. "\n")
  for _, example in ipairs(examples.primitives) do add_call(add, example) end
  add("## For programs alone\n")
  add("`require \"engine\"`, after `require \"pipeplan\"`, is all of the above in stock `lua5.4`, and what no policy has: a rule is asked\n"
      .. "about each candidate of a search. Types and limits of all arguments are in `stdlib/meta/programs.lua`, which LuaLS reads.\n"
      .. "Masks are sets of rows: `a & b`, `a | b`, `a - b`, `a == b`, and `#a`, how many. Examples have this before them, behind the\n"
      .. "lines above:\n")
  add(code(examples.search) .. "\n")
  for _, example in ipairs(examples.beyond) do add_call(add, example) end
  return (table.concat(out, "\n"):gsub("\n+$", "")) .. "\n"
end
