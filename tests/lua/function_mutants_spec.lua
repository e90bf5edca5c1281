-- SPDX-License-Identifier: Apache-2.0
-- Mistakes in the text of a rule's function: its comparisons and numbers.

local planning = require "planning"  -- first: it loads the module
local files = require "policy_files"
local function_mutants = require "pipeplan.analysis.function_mutants"
local function_comparisons = require "pipeplan.analysis.function_comparisons"
local conditions = require "pipeplan.policy.conditions"
local mutants = require "pipeplan.analysis.mutants"
local program = require "program"

local source = [[
-- under 9 or over 3 in a comment
reject { id = "x", message = "over 7", when = function(f)
  local limit = 4          -- not 5
  return f.tensor_parallel > limit or f.schedule == "1f1b >= 2" and f.bubble_fraction >= 0.5
end }]]

-- A test of that policy whose one case is `body`, which has plan(TP, facts).
local function test_of(policy, body)
  return files.write("site_spec.lua", string.format([[
    local site = require("pipeplan").policy(%q)
    local function plan(tensor, facts)
      return site:with(facts or {}):plan_spec { cluster = { gpus = 64, accelerator = "H100-SXM",
        network = { fabric = "infiniband", per_gpu = "400Gbps" } }, model = { architecture = "dense", total = "70B", layers = 80 },
        training = { tokens = "1T", recompute = "full" }, parallelism = { tensor = tensor, schedule = "1f1b" } }
    end
    it("x", function() %s end)]], policy, body))
end

describe("mutants of conditions", function()
  it("are none that hold for the same of what a field can be: P is 1 or more, a share 0 to 1", function()
    local policy, list = planning.policy_of([[
      reject { id = "one", pipeline_parallel = 1, message = "m" }
      reject { id = "some", pipeline_parallel = between(1, 8), bubble_fraction = over(1), message = "m" }]]).policy, {}
    for _, mutant in ipairs(mutants.of(policy)) do
      if mutant.kind == "bound" or mutant.kind == "negate" then list[#list + 1] = mutant.id:match ": (.*)$" end
    end
    table.sort(list)
    assert.same({
      "bubble_fraction over 1 → bubble_fraction at least 1", "bubble_fraction over 1 → bubble_fraction at most 1",
      "bubble_fraction over 1 → bubble_fraction over 0.909091",
      "pipeline_parallel = 1 → pipeline_parallel = 0", "pipeline_parallel = 1 → pipeline_parallel = 2",
      "pipeline_parallel = 1 → pipeline_parallel at least 1", "pipeline_parallel = 1 → pipeline_parallel none of 1",
      "pipeline_parallel between 1 and 8 → pipeline_parallel between 1 and 7",
      "pipeline_parallel between 1 and 8 → pipeline_parallel between 1 and 9",
      "pipeline_parallel between 1 and 8 → pipeline_parallel between 2 and 8",
    }, list)
  end)
end)

describe("mutants of a function", function()
  it("turn each comparison and move each number of its text, and nothing in comments and quotes", function()
    local policy, changed = planning.policy_of(source).policy, {}
    for _, mutant in ipairs(function_mutants.of(policy.rules.x, policy)) do
      changed[#changed + 1] = mutant.text:match ": (.*)$"
      assert.equal(source, mutant.text_before)
      assert.is_not.equal(source, mutant.rewrite())
      planning.policy_of(mutant.rewrite())  -- it loads
    end
    table.sort(changed)
    assert.same({ "0.5 → 0.454545", "0.5 → 0.55", "4 → 3", "4 → 5", "== → ~=", "> → <=", "> → >=", ">= → <", ">= → >" }, changed)
  end)

  it("are found beside apostrophes and comments, of the function alone, and none that does not load", function()
    local function changes(text)
      local policy, list = planning.policy_of(text).policy, {}
      for _, mutant in ipairs(function_mutants.of(policy.rules.x, policy)) do list[#list + 1] = mutant.text:match ": (.*)$" end
      return list
    end
    assert.same({ "> → >=", "> → <=", "9 → 8", "9 → 10" }, changes [=[
      -- the hall's limit
      reject { id = "x", when = function(f) return f.tensor_parallel > 9 or false end, message = "m", layers = over(7) }
      -- that's all]=])
    -- The attribute <const> and a shift compare nothing, nor does what stands in a comment.
    assert.same({ "2 → 1", "2 → 3", "1 → 0", "1 → 2", "> → >=", "> → <=" }, changes [=[
      reject { id = "x", message = "m", when = function(f)
        --[[ formerly:
        f.tensor_parallel > 16
        ]]
        local most <const> = 2 << 1
        return f.tensor_parallel > most
      end }]=])
  end)

  it("are made in a file that is required", function()
    local folder = files.directory { ["site.lua"] = 'local h = require "h"\nreject { id = "x", message = "m", when = h.wide }',
                                     ["h.lua"] = "return { wide = function(f) return f.tensor_parallel > 4 or false end }" }
    local function mutate(body)
      return program.run(string.format("policy mutate --policy %s/site.lua %s --no-witnesses --filter 'its function'", folder,
                                       test_of(folder .. "/site.lua", body))).stdout
    end
    local weak = mutate [[assert.decided(plan(8), "rejected", "x")]]
    assert.matches("h.lua:1: survived: reject x: its function, byte 37: > → >=", weak, 1, true)
    assert.matches("4 mutants: 1 killed, 3 survived", weak, 1, true)  -- 8 is over 3, 4 and 5
    assert.matches("4 mutants: 3 killed, 1 survived",  -- TP is a power of two: over 5 is over 4
                   mutate [[assert.decided(plan(8), "rejected", "x") assert.decided(plan(4), "planned")]], 1, true)
  end)

  it("are made of what a rule's function calls, once, and not of a rule's function again", function()
    local policy, list = planning.policy_of [=[
      local function wide(f) return f.tensor_parallel > 4 end
      local named = { big = function(n) return n == 8 end }
      reject { id = "x", message = "m", when = function(f) return wide(f) or named.big(f.tensor_parallel) or f.layers > 500 end }
      reject { id = "y", message = "m", when = function(f) return f.layers > 600 end }]=].policy, {}
    for _, mutant in ipairs(mutants.of(policy)) do
      if mutant.kind == "function" then list[#list + 1] = mutant.id end
    end
    assert.same({
      "reject x: its function, byte 71: > → >=", "reject x: its function, byte 71: > → <=", "reject x: its function, byte 73: 500 → 499",
      "reject x: its function, byte 73: 500 → 501", "function wide: byte 42: > → >=", "function wide: byte 42: > → <=",
      "function wide: byte 44: 4 → 3", "function wide: byte 44: 4 → 5", "function big: byte 21: == → ~=", "function big: byte 24: 8 → 7",
      "function big: byte 24: 8 → 9",
    }, list)
  end)

  it("are killed by what fails outside of tests", function()
    local policy = files.write("site.lua", [[
      reject { id = "x", message = "m", when = function(f) for _ = 1, 3, 1 do f = f end return f.tensor_parallel * 1 > 99 end }]])
    local test = files.write("site_spec.lua", string.format([[
      local site = require("pipeplan").policy(%q)
      local plan = site:plan_spec { cluster = { gpus = 8, accelerator = "H100-SXM" }, model = { architecture = "dense", total = "8B",
        layers = 32 }, training = { tokens = "1T" } }
      it("x", function() assert.decided(plan, "planned") end)]], policy))
    local text = program.run(string.format("policy mutate --policy %s %s --no-witnesses --format json", policy, test)).stdout
    for _, mutant in ipairs(require("cjson").decode(text).mutants) do
      if mutant.id:find "1 → 0" and mutant.id:find "byte 26" then  -- a step of 0 is an error
        assert.equal("killed", mutant.outcome)
        assert.matches("site_spec.lua", mutant.by, 1, true)
        return
      end
    end
    error(text)
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
      local test = test_of(policy, body)
      return program.run(string.format("policy mutate --policy %s %s --no-witnesses --filter 'its function'", policy, test)).stdout
    end
    assert.matches("\n8 mutants: 0 killed, 8 survived", "\n" .. mutate "assert.is_table(plan(2))", 1, false)
    local text = mutate [[assert.decided(plan(4), "planned") assert.decided(plan(8), "rejected", "x")
      assert.decided(plan(4, { layers = 501 }), "rejected", "x") assert.decided(plan(4, { layers = 500 }), "planned")]]
    -- TP is a power of two here: over 5 is told from over 4 by no plan
    assert.matches("8 mutants: 7 killed, 1 survived", text, 1, true)
  end)
end)

describe("what a function compares", function()
  local function compared(body)
    local policy = planning.policy_of("reject { id = 'x', message = 'm', when = function(f)\n" .. body .. "\nend }").policy
    local list, unseen = function_comparisons.of(policy.rules.x, policy)
    for i, condition in ipairs(list) do list[i] = conditions.text(condition) end
    return list, unseen
  end

  it("is read from its text: fields, locals, parameters, names", function()
    assert.same({ "tensor_parallel over 4", "schedule = 1f1b", "bubble_fraction at least 50 %" }, (compared [[
      local limit = 4
      return f.tensor_parallel > limit or f.schedule == "1f1b" and f.bubble_fraction >= 0.5]]))
    assert.same({ "pipeline_parallel over 64", "schedule none of dualpipe" }, (compared [[
      local deep, other = f.pipeline_parallel, 3
      local p = f.pipeline_parallel
      if p > f.max_pipeline_depth then return true end
      return "dualpipe" ~= f.schedule or p == nil]]))
    assert.same({ "layers under 80", "layers at least 80" }, (compared "return (80 > f.layers and f.gpus ~= nil) or not (80 <= f.layers)"))
  end)

  it("is not guessed where it is computed, called or set twice", function()
    for _, body in ipairs { "return f.tensor_parallel * 2 > 8 or false", "return 8 < 2 * f.tensor_parallel or false",
                            "local t = f.tensor_parallel t = t + 1 return t > 8 or false",
                            "return math.max(f.tensor_parallel, 1) > 8 or false", "local t = f.tensor_parallel + 1 return t > 8 or false",
                            "return 8 > f.tensor_parallel + 1 or false", "local a = f.layers > 3 and f.gpus return a ~= nil and a > 8 or false" } do
      local list, unseen = compared(body)
      if body:find "f.layers > 3" then assert.same({ "layers over 3" }, list) else assert.same({}, list, body) end
      assert.equal(1, unseen, body)
    end
  end)

  it("counts for coverage both ways, as conditions do, and so do the function's answers", function()
    local policy = files.write("site.lua", [[
      reject { id = "x", message = "m", when = function(f) return f.tensor_parallel > 4 or f.architecture == "moe" end }]])
    local function covered(body)
      local test = test_of(policy, body)
      return program.run("policy test " .. test).stdout
    end
    local one = covered [[assert.decided(plan(4), "planned")]]
    assert.matches("coverage: 0 % (reason 0/1, boundary 0/2, answer 0/1)", one, 1, true)
    assert.matches("no test tries both sides of reject 'x': tensor_parallel over 4", one, 1, true)
    assert.matches("no test gets both answers of the function of reject 'x'", one, 1, true)
    local two = covered [[assert.decided(plan(4), "planned") assert.decided(plan(8), "rejected", "x")]]
    assert.matches("coverage: 75 % (reason 1/1, boundary 1/2, answer 1/1)", two, 1, true)
    local all = covered [[assert.decided(plan(4), "planned") assert.decided(plan(8), "rejected", "x")
      assert.decided(plan(4, { architecture = "moe" }), "rejected", "x")]]
    assert.matches("coverage: 100 %", all, 1, true)
  end)
end)
