-- catalog/families.lua against the model classes themselves: tests/oracles/transformers_families.json, written by the script beside it.

require "pipeplan"
local hf = require "pipeplan.input.hf_config"
local json = require "pipeplan.input.json"

local source = os.getenv("PIPEPLAN_SOURCE") or "."
local oracle = json.decode(io.open(source .. "/tests/oracles/transformers_families.json"):read("a"), "transformers_families.json")

describe("a small model of each family has the parameters of its class in transformers:", function()
  for i, case in ipairs(oracle.cases) do
    it(string.format("%s (case %d)", case.config.model_type, i), function()
      assert.equal(case.parameters, hf.read(case.config, "config.json").total_parameters)
    end)
  end
end)

-- What may stand where a size or a flag should.
local junk = { "text", "two\nlines", "", ("long "):rep(50), { "two\nlines" },
               -1, 0, 0.5, 1e300, -1e300, 1 / 0, 2 ^ 40, 9007199254740993, true, false, json.null, {}, { 1, 2 }, { 1, "x" }, { a = 1 } }

describe("whatever stands at a key of a config,", function()
  it("reading it ends in a model or in one clear line", function()
    local failure = require "pipeplan.failure"
    for _, case in ipairs(oracle.cases) do
      for key, good in pairs(case.config) do
        for _, bad in ipairs(junk) do
          case.config[key] = bad
          local read, problem = pcall(hf.read, case.config, "config.json")
          local message = string.format("%s, %s = %s: %s", case.config.model_type, key, tostring(bad), tostring(problem))
          if not read then
            assert.is_true(failure.is(problem), message)
            assert.is_nil(problem.message:find("\n"), message)
          end
        end
        case.config[key] = good
      end
    end
  end)
end)

describe("families.lua", function()
  local catalog = require "pipeplan.catalog.families"

  it("names each class once", function()
    local seen = {}
    for name, family in pairs(catalog.families) do
      for _, class in ipairs(family.classes) do
        assert.is_nil(seen[class], class)
        seen[class] = name
      end
    end
  end)

  it("refuses no family that it counts", function()
    for name in pairs(catalog.refused) do assert.is_nil(catalog.families[name], name) end
  end)
end)
