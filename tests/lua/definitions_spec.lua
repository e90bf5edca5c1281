-- SPDX-License-Identifier: Apache-2.0
-- The definitions that editors read (stdlib/meta): made anew, complete, and without a type that nothing declares.

require "pipeplan"  -- before the path below, on which its own definitions lie
package.path = "stdlib/meta/?.lua;stdlib/meta/?/init.lua;" .. package.path

local engine = require "engine"
local statements = require "pipeplan.policy.statements"
local vocabulary = require "pipeplan.vocabulary"

local source = os.getenv "PIPEPLAN_SOURCE"

local function read(name)
  local file = assert(io.open(source .. "/stdlib/meta/" .. name .. ".lua", "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local names = { "engine", "luacheck", "pipeplan", "policy", "programs" }

describe("the definitions for editors", function()
  it("are what scripts/generate-meta makes of the vocabulary, the schemas and the default policy", function()
    local made = require "generate"(source)
    local function page(name)
      local file <close> = assert(io.open(source .. "/docs/" .. name))
      return file:read "a"
    end
    assert.is_true(page "reference.md" == require "generate.reference"(), "docs/reference.md is stale: run scripts/generate-meta")
    for name, maker in pairs { ["design.md"] = "names", ["plan.md"] = "properties", ["spec.md"] = "fields", ["models.md"] = "models" } do
      local shown = page(name)
      assert.is_true(require("generate." .. maker)(shown) == shown, "docs/" .. name .. " is stale: run scripts/generate-meta")
    end
    for _, name in ipairs(names) do
      assert.is_true(made[name] == read(name), "stdlib/meta/" .. name .. ".lua is stale: run scripts/generate-meta")
    end
  end)

  it("are Lua", function()
    for _, name in ipairs(names) do assert(load(read(name), "=" .. name, "t", {})) end
  end)

  it("declare each type that they name, once", function()
    local declared, named = {}, {}
    for _, name in ipairs(names) do
      for line in read(name):gmatch("[^\n]+") do
        local type = line:match("^%-%-%-@class ([%w_.]+)") or line:match("^%-%-%-@alias ([%w_.]+)")
        if type then
          assert.is_nil(declared[type], type)
          declared[type] = true
        end
        if line:match("^%-%-%-@") then
          for used in line:gmatch("pipeplan%.[%w_.]*[%w_]") do named[used] = line end
        end
      end
    end
    for used, line in pairs(named) do assert.is_true(declared[used] or used == "pipeplan.json", used .. " in " .. line) end
  end)

  it("have every statement and condition that a policy can use", function()
    local text = read "policy"
    for name in pairs(engine.host.allowed) do
      if not name:find(".", 1, true) and (_G[name] == nil or name == "warn") then
        assert.is_true(text:find("\nfunction " .. name .. "(", 1, true) ~= nil or text:find("\n" .. name .. " = nil\n", 1, true) ~= nil, name)
      end
    end
  end)

  it("have every field and property of a statement, and of a change", function()
    local text = read "policy"
    for verb, schema in pairs(statements.verbs) do
      local class = text:match("\n%-%-%-@class pipeplan%.statement%." .. verb .. ":?[^\n]*\n(.-)\n\n")
      local change = text:match("\n%-%-%-@class pipeplan%.statement%.change[^\n]*\n(.-)\n\n")
      for property in pairs(schema.properties) do
        assert.matches("@field " .. property .. "[? ]", class)
        assert.matches("@field " .. property .. "[? ]", change)
      end
      for _, property in ipairs(schema.required) do assert.matches("@field " .. property .. " ", class) end
    end
    for _, name in ipairs(vocabulary.names) do assert.matches("\n%-%-%-| \"" .. name .. "\" # ", text) end
  end)
end)
