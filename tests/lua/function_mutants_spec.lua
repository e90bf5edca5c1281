-- Mistakes in the text of a rule's function: its comparisons and numbers.

local planning = require "planning"  -- first: it loads the module
local files = require "policy_files"
local function_mutants = require "pipeplan.analysis.function_mutants"
local mutants = require "pipeplan.analysis.mutants"
local program = require "program"

local source = [[
-- under 9 or over 3 in a comment
reject { id = "x", message = "over 7", when = function(f)
  local limit = 4          -- not 5
  return f.tensor_parallel > limit or f.schedule == "1f1b >= 2" and f.bubble_fraction >= 0.5
end }]]

describe("mutants of a function", function()
  it("turn each comparison and move each number of its text, and nothing in comments and quotes", function()
    local policy, changed = planning.policy_of(source).policy, {}
    for _, mutant in ipairs(function_mutants.of(policy.rules.x, policy)) do
      changed[#changed + 1] = mutant.text:match ": (.*)$"
      assert.is_nil(mutant.rewrite "another file")
      assert.is_not.equal(source, mutant.rewrite(source))
      planning.policy_of(mutant.rewrite(source))  -- it loads
    end
    table.sort(changed)
    assert.same({ "0.5 → 0.454545", "0.5 → 0.55", "4 → 3", "4 → 5", "== → ~=", "> → <=", "> → >=", ">= → <", ">= → >" }, changed)
  end)

  it("are among those of the policy, and none are made of a function that is read as conditions", function()
    local function kinds(text)
      local count = {}
      for _, mutant in ipairs(mutants.of(planning.policy_of(text).policy)) do count[mutant.kind] = (count[mutant.kind] or 0) + 1 end
      return count
    end
    assert.equal(9, kinds(source)["function"])
    local plain = kinds "reject { id = 'x', message = 'm', when = function(f) return f.tensor_parallel > 4 end }"
    assert.same({ nil, 2 }, { plain["function"], plain.bound })
  end)

  it("survive tests that do not look at the function, and are killed by those that do", function()
    local policy = files.write("site.lua", [[
      reject { id = "x", message = "m", when = function(f) return f.tensor_parallel > 4 or f.layers > 500 end }]])
    local function mutate(body)
      local test = files.write("site_spec.lua", string.format([[
        local site = require("pipeplan").policy(%q)
        local function plan(tensor, facts)
          return site:with(facts or {}):plan_spec { cluster = { gpus = 64, accelerator = "H100-SXM",
            network = { fabric = "infiniband", per_gpu = "400Gbps" } }, model = { architecture = "dense", total = "70B", layers = 80 },
            training = { tokens = "1T", recompute = "full" }, parallelism = { tensor = tensor, schedule = "1f1b" } }
        end
        it("x", function() %s end)]], policy, body))
      return program.run(string.format("policy mutate --policy %s %s --no-witnesses --filter 'its function'", policy, test)).stdout
    end
    assert.matches("\n8 mutants: 0 killed, 8 survived", "\n" .. mutate "assert.is_table(plan(2))", 1, false)
    local text = mutate [[assert.decided(plan(4), "planned") assert.decided(plan(8), "rejected", "x")
      assert.decided(plan(4, { layers = 501 }), "rejected", "x") assert.decided(plan(4, { layers = 500 }), "planned")]]
    -- TP is a power of two here: over 5 is told from over 4 by no plan
    assert.matches("8 mutants: 7 killed, 1 survived", text, 1, true)
  end)
end)
