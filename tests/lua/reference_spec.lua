-- SPDX-License-Identifier: Apache-2.0
-- Every statement and every primitive has an example (stdlib/policy/examples.lua), and each does what it says.

local planning = require "planning"  -- first: it loads the module
package.path = "stdlib/meta/?.lua;stdlib/meta/?/init.lua;" .. package.path

local evaluate = require "pipeplan.analysis.evaluate"
local examples = require "pipeplan.policy.examples"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local functions = require "pipeplan.policy.functions"
local load_policy = require("pipeplan.policy.load").load
local pipeplan = require "pipeplan"
local primitives = require "generate.primitives"
local search = require "generate.search"
local statements = require "pipeplan.policy.statements"

teardown(files.remove)

local dense = {
  cluster = { gpus = 256, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
  model = { architecture = "dense", total = "70B", layers = 80 }, training = { tokens = "1T", recompute = "full" },
}

local function ids(list)
  local set = {}
  for _, entry in ipairs(list) do set[entry.id] = true end
  return set
end

describe("the example of", function()
  for _, example in ipairs(examples.statements) do
    local verb, _, text, wanted = table.unpack(example)
    it("the statement " .. verb .. " does what it says", function()
      text = text:gsub("DIGEST", pipeplan.policy().policy.layers[1].digest)
      local policy = pipeplan.policy({ files.write("below.lua", examples.below), files.write("policy.lua", text) }, { date = "2026-11-28" })
      local out = policy:plan_spec(dense, ".")
      if wanted.layer then assert.equal(wanted.layer, policy.policy.layers[3].name) end
      if wanted.status then assert.equal(wanted.status, out.status) end
      if wanted.reason then assert.equal(wanted.reason, out.reasons[1].id) end
      if wanted.decision then assert.equal(wanted.decision, out.decision) end
      if wanted.schedule_wanted then assert.equal(wanted.schedule_wanted, out.schedule_wanted) end
      if wanted.depth then assert.equal(wanted.depth, out.parallelism.pipeline) end
      if wanted.warning then assert.is_true(ids(out.warnings)[wanted.warning]) end
      if wanted.loosened then assert.is_true(ids(out.loosened)[wanted.loosened]) end
      if wanted.enabled then assert.is_not_nil(policy.policy.rules[wanted.enabled]) end
    end)
  end

  for _, example in ipairs(examples.primitives) do
    it("the primitive " .. example[1] .. " gives what it says, in the sandbox", function()
      local path = files.write("policy.lua", examples.of_expression(example[2]) ..
                               "\nwarn { id = 'x', message = 'x', when = function() return value() end }")
      local policy = load_policy { files = { path }, date = "2026-11-28" }
      local good, value = failure.try(functions.value, policy.rules.x, policy, {})
      assert.is_true(good, tostring(value))
      assert.equal(example[3], evaluate.text(value))
    end)
  end
end)

describe("in stock Lua, with require \"engine\", the example of", function()
  local engine = require "engine"
  local environment = setmetatable({ engine = engine }, { __index = _G })
  local function value_of(text) return assert(load(text, "example", "t", environment))() end
  for _, example in ipairs(examples.primitives) do
    it("the primitive " .. example[1] .. " gives the same", function()
      assert.equal(example[3], evaluate.text(value_of(examples.of_expression(example[2]) .. "\nreturn value()")))
    end)
  end
  for _, example in ipairs(examples.beyond) do
    it(example[1] .. " gives what it says", function()
      assert.equal(example[3], evaluate.text((value_of(examples.of_program(example[2])))))
    end)
  end

  it("a search is of what no policy has", function()
    local path = files.write("policy.lua", "warn { id = 'x', message = 'x', when = function() return engine.search ~= nil end }")
    local policy = load_policy { files = { path }, date = "2026-11-28" }
    assert.is_false(functions.value(policy.rules.x, policy, {}))
  end)
end)

describe("an example", function()
  it("there is of every statement and of every primitive", function()
    local missing, seen = {}, {}
    for _, list in ipairs { examples.statements, examples.primitives, examples.beyond } do
      for _, example in ipairs(list) do seen[example[1]] = true end
    end
    local function need(name)
      if not seen[name] then missing[#missing + 1] = name end
    end
    for verb in pairs(statements.verbs) do need(verb) end
    for _, verb in ipairs { "site", "set", "change", "disable", "enable", "pin", "parameter" } do need(verb) end
    for _, entry in ipairs(primitives.functions) do need(entry[1]) end
    for _, entry in ipairs(primitives.values) do need(entry[1]) end
    for _, entry in ipairs(primitives.methods) do need("schedule:" .. entry[1]) end
    for _, entry in ipairs(search.functions) do need(entry[1]) end
    for _, entry in ipairs(search.candidates) do need("candidates:" .. entry[1]) end
    for _, entry in ipairs(search.masks) do need("mask:" .. entry[1]) end
    assert.same({}, missing)
  end)
end)

assert(planning)
