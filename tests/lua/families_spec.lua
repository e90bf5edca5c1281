-- SPDX-License-Identifier: Apache-2.0
-- catalog/families.lua and config_keys.lua against the model classes themselves: tests/oracles/transformers_4.json and _5.json hold what the
-- classes of two releases of Hugging Face transformers count for the files that they save, and for the same files with a key left out, null,
-- changed or added (written by tests/oracles/transformers_families.py).

require "pipeplan"
local catalog = require "pipeplan.catalog.families"
local config_keys = require "pipeplan.catalog.config_keys"
local failure = require "pipeplan.base.failure"
local hf = require "pipeplan.input.hf_config"
local json = require "pipeplan.base.json"

local source = os.getenv("PIPEPLAN_SOURCE") or "."

local function load_oracle(release)
  local name = string.format("%s/tests/oracles/transformers_%d.json", source, release)
  return json.decode(io.open(name):read("a"), name)
end
local oracles = { load_oracle(4), load_oracle(5) }

-- The model of a config, or nil and the error.
local function read(config)
  local good, result = pcall(hf.read, config, "config.json")
  if good then return result end
  assert.is_true(failure.is(result), tostring(result))
  assert.equal(failure.status.usage, result.status)
  assert.is_nil(result.message:find("\n"), result.message)
  return nil, result.message
end

local function each_case(test)
  for _, oracle in ipairs(oracles) do
    for i, case in ipairs(oracle.cases) do test(case, i, oracle) end
  end
end

describe("a small model of each family has the parameters of its class in", function()
  each_case(function(case, i, oracle)
    it(string.format("%s, as it is saved: %s (case %d)", oracle.source, case.config.model_type, i), function()
      local model = assert(read(case.config))
      assert.equal(case.parameters, model.total_parameters)
      assert.same({}, model.warnings)
    end)

    it(string.format("%s, with the class's own defaults left out: %s (case %d)", oracle.source, case.config.model_type, i), function()
      assert.equal(case.parameters, assert(read(case.given)).total_parameters)
    end)
  end)
end)

-- { config, "drop head_dim" } → { number of parameters = true, … } of either release; json.null where a class refuses the edit.
local edited, texts = {}, {}
local function identity(case, what, key)
  if not texts[case] then
    local given = {}
    for name, value in pairs(case.given) do
      given[#given + 1] = name .. "=" .. (value == json.null and "null" or type(value) == "table" and table.concat(value, " ") or tostring(value))
    end
    table.sort(given)
    texts[case] = table.concat(given, ",")
  end
  return texts[case] .. " " .. what .. " " .. key
end
each_case(function(case)
  for _, edit in ipairs(case.edits) do
    local name = identity(case, edit[1], edit[2])
    edited[name] = edited[name] or {}
    edited[name][edit[4]] = true
  end
end)

local says_what_it_is = { architectures = true, model_type = true, transformers_version = true }
local experts_per_token = { num_experts_per_tok = true, num_experts_per_token = true, top_k_experts = true, moe_topk = true, moe_k = true }

-- As in the script that wrote the oracle.
local function another(value)
  if value == json.null then return 24 end
  if type(value) == "boolean" then return not value end
  if math.type(value) then return value == 0 and 1 or value * 2 end
  if type(value) ~= "table" or not json.is_array(value) then return nil end
  local list = {}
  for i, one in ipairs(value) do
    if math.type(one) ~= "integer" then return nil end
    list[i] = i < #value and one or nil
  end
  return #list > 0 and list or { 0 }
end

local function with(config, changes, without)
  local copy = {}
  for key, value in pairs(config) do copy[key] = value end
  if without then copy[without] = nil end
  for key, value in pairs(changes) do copy[key] = value end
  return copy
end

--[[
An edited config is an error that names the key, or has what a class counts for it. Where no class counts anything else (`counts` is nil),
it is the same model. What a class refuses may be read as the model that it was.
]]
local function check(case, original, what, key, config, counts)
  local model, message = read(config)
  local told = string.format("%s, %s %s", case.config.model_type, what, key)
  if not model then
    assert.is_true(what == "change" or message:find(key, 1, true) ~= nil, told .. ": " .. tostring(message))
    return
  end
  local total = model.total_parameters
  if not (counts and (counts[total] or counts[json.null] and total == case.parameters)) then
    assert.equal(case.parameters, counts == nil and total or "another count: " .. total, told)
  end
  if total == case.parameters and not experts_per_token[key] then
    assert.equal(original.active_parameters, model.active_parameters, told)
    assert.equal(original.architecture, model.architecture, told)
  end
end

-- Is it the first case of its class in an oracle?
local function is_first(case, i, oracle)
  local before = oracle.cases[i - 1]
  return not before or before.config.model_type ~= case.config.model_type
end

describe("no edit of a config makes another model in silence:", function()
  each_case(function(case, i, oracle)
    local all = is_first(case, i, oracle)   -- what changes nothing in a class is tried once for it
    it(string.format("each key left out, null, renamed, changed and added; %s, %s (case %d)", oracle.source, case.config.model_type, i), function()
      local original = assert(read(case.config))
      local function counts(what, key) return edited[identity(case, what, key)] end
      for key, value in pairs(case.config) do
        if not says_what_it_is[key] and (all or not config_keys.reason(key)) then
          check(case, original, "drop", key, with(case.config, {}, key), counts("drop", key))
          check(case, original, "rename", key, with(case.config, { [key .. "2"] = value }, key), counts("drop", key))
          check(case, original, "null", key, with(case.config, { [key] = json.null }), value ~= json.null and counts("null", key) or nil)
          if another(value) ~= nil then
            check(case, original, "change", key, with(case.config, { [key] = another(value) }), counts("change", key))
          end
        end
      end
      for key, value in pairs(oracle.added) do
        if case.config[key] == nil then check(case, original, "add", key, with(case.config, { [key] = value }), counts("add", key)) end
      end
    end)
  end)
end)

describe("a key that smells of architecture is an error that names it:", function()
  for key, value in pairs{ num_experts2 = 8, mixture_layers = 12, num_sparse_layers = 4, expert_layers = { 1, 2 }, memory_slots = 64,
                           adapter = { rank = 8 }, use_second_mlp = true, depth_multiplier = 2.0, n_mixture = 1 } do
    it(key, function()
      for _, case in ipairs(oracles[2].cases) do
        local model, message = read(with(case.config, { [key] = value }))
        assert.is_nil(model, case.config.model_type)
        assert.matches("'" .. key .. "'", message, 1, true)
      end
    end)
  end
end)

-- What may stand where a size or a flag should.
local junk = { "text", "two\nlines", "", ("long "):rep(50), { "two\nlines" },
               -1, 0, 0.5, 1e300, -1e300, 1 / 0, 2 ^ 40, 9007199254740993, true, false, json.null, {}, { 1, 2 }, { 1, "x" }, { a = 1 } }

describe("whatever stands at a key of a config,", function()
  it("reading it ends in a model or in one clear line", function()
    each_case(function(case, i, oracle)
      for key in pairs(is_first(case, i, oracle) and oracle == oracles[2] and case.given or {}) do
        for _, bad in ipairs(junk) do read(with(case.given, { [key] = bad })) end
      end
    end)
  end)
end)

describe("families.lua", function()
  it("names each class once", function()
    local seen = {}
    for name, family in pairs(catalog.all()) do
      for _, class in ipairs(family.classes) do
        assert.is_nil(seen[class], class)
        seen[class] = name
      end
    end
  end)

  it("names what counted a family that neither release has, and says of the others what of their time is assumed", function()
    local seen, assumed = {}, {}
    for _, oracle in ipairs(oracles) do
      for _, case in ipairs(oracle.cases) do
        seen[case.config.model_type] = true
        for _, said in ipairs(assert(read(case.config)).assumptions) do
          local what = tostring(said.value):match("^(.*) at the speed of attention$")
          if what then assumed[case.config.model_type] = what end
        end
      end
    end
    for name, family in pairs(catalog.all()) do
      local counted, says = seen[name], assumed[name]
      for _, other in ipairs(family.types or {}) do counted, says = counted or seen[other], says or assumed[other] end
      assert.is_true((counted == nil) == (family.counted_by ~= nil), name)
      if counted then assert.equal(family.assumes, says, name) end
    end
  end)

  it("refuses no family that it counts", function()
    for name in pairs(catalog.refused) do assert.is_nil(catalog.all()[name], name) end
  end)
end)
