-- SPDX-License-Identifier: Apache-2.0
-- The Lua API: policies to plan with, answers as errors, and the assertion for tests.

local pipeplan = require "pipeplan"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"

teardown(files.remove)

local small = { "examples/specs/7b-fits-one-gpu.json" }

describe("pipeplan.policy", function()
  it("plans with spec files and named fields", function()
    local plan = pipeplan.policy():plan { "examples/specs/llama-3.1-405b.json", tensor = 8, tokens = "2T" }
    assert.equal("planned", plan.status)
    assert.equal(8, plan.parallelism.tensor)
  end)

  it("takes several policy files, parameters and a date", function()
    local site = pipeplan.policy({ "examples/sites/aws-p5.lua", "examples/sites/ml-hall-3.lua" },
                                 { set = { tie_fraction = "2%", schedules = { "1f1b", "zb_v", "zb_h1", "interleaved_1f1b" } }, date = "2026-12-01" })
    local names = {}
    for i, layer in ipairs(site.policy.layers) do names[i] = layer.name end
    assert.same({ "default", "aws-p5", "ml-hall-3", "--set" }, names)
  end)

  it("gives the same plan each time, though each evaluation spends of its budget", function()
    local path = files.write("slow.lua", [[warn { id = "counts", gpus = over(1), message = "m",
      when = function() local n = 0 for i = 1, 100000 do n = n + i end return n > 0 end }]])
    local site = pipeplan.policy(path, { work = 3000000 })
    local first
    for _ = 1, 8 do
      local plan = site:plan { "examples/specs/llama-3.1-405b.json" }
      first = first or plan.step_seconds
      assert.equal(first, plan.step_seconds)
    end
  end)

  it("raises an answer, with the exit status of the program, for what cannot be loaded or evaluated", function()
    local good, problem = pcall(pipeplan.policy, "examples/sites/nowhere.lua")
    assert.is_false(good)
    assert.is_true(failure.is(problem))
    assert.equal(6, problem.status)
    local path = files.write("broken.lua", "warn { id = 'x', gpus = over(1), message = 'm', when = function(f) return f.gpu > 1 end }")
    good, problem = pcall(function() return pipeplan.policy(path):plan { "examples/specs/llama-3.1-405b.json" } end)
    assert.is_false(good)
    assert.equal(3, problem.status)
    assert.matches("rule 'x' %(.*broken%.lua:1%): .*broken%.lua:1: no field 'gpu', did you mean 'gpus'%?", problem.message)
  end)

  it("takes of tables what JSON can say, and cuts no list short", function()
    local site = pipeplan.policy()
    local function refusal(call)
      local good, problem = pcall(call)
      assert.is_false(good)
      assert.is_true(failure.is(problem), tostring(problem))
      assert.is_nil(problem.message:find "0x")
      return problem.message
    end
    local function of_spec(change)
      return refusal(function()
        return site:plan_spec { cluster = { gpus = 64, accelerator = "H100-SXM", [change.cluster or "nics_per_node"] = 8 },
                                model = { architecture = "dense", total = "70B", layers = 80 }, labels = change.labels,
                                training = { tokens = change.tokens or "1T", recompute = change.recompute },
                                parallelism = { layers_per_stage = change.layers } }
      end)
    end
    local keys = " is a table of other keys than all names or all of 1, 2, 3 …: expected an object or a list"
    assert.equal("spec: training.recompute" .. keys, of_spec { recompute = { "norm", [3] = "activation" } })
    assert.equal("spec: parallelism.layers_per_stage" .. keys, of_spec { layers = { 40, 40, x = 1 } })
    assert.equal("spec: cluster" .. keys, of_spec { cluster = 1 })
    assert.equal("spec: cluster" .. keys, of_spec { cluster = true })
    assert.equal("spec: labels" .. keys, of_spec { labels = { tier = "x", 5 } })
    assert.equal("spec: training.tokens is a function: expected a text, a number, true, false or a table", of_spec { tokens = print })
    local loop = {}
    loop.cluster = loop
    assert.matches("^spec: cluster%.cluster.* lies more than 16 tables deep", refusal(function() return site:plan_spec(loop) end))
    assert.equal("command line: --recompute" .. keys, refusal(function() return site:plan { small[1], recompute = { "norm", nil, "x" } } end))
    assert.equal("plan: a key is 5: expected specs as 1, 2, 3 … and options by their names",
                 refusal(function() return site:plan { small[1], gpus = 64, [5] = "x" } end))
    assert.equal("plan: a key is a boolean: expected specs as 1, 2, 3 … and options by their names",
                 refusal(function() return site:plan { small[1], [true] = 64 } end))
    assert.equal("plan: expected a table of specs and options, got a nil", refusal(function() return site:plan() end))
  end)

  it("takes facts that can be", function()
    local site = pipeplan.policy()
    for message, facts in pairs {
      ["with: gpus: a number is expected, got a table"] = { gpus = {} },
      ["with: gpus: a number is expected, got nan"] = { gpus = 0 / 0 },
      ["with: gpus: 10000001 is out of range; nearest: 10 M"] = { gpus = 10000001 },
      ["with: architecture: no architecture 'mixture', expected one of dense, moe"] = { architecture = "mixture" },
      ["with: fits_one_gpu: true or false is expected, got yes"] = { fits_one_gpu = "yes" },
      ["with: expected facts by their names, got a number"] = 5,
    } do
      local good, problem = pcall(site.with, site, facts)
      assert.is_false(good)
      assert.equal(message, failure.is(problem) and problem.message or problem)
    end
    assert.equal(25e9, site:with { network_per_gpu = "200Gbps" }.facts.network_per_gpu)
  end)

  it("names the line that calls where what it raises is shown as a text, as test runners do", function()
    local site = pipeplan.policy()
    for name, call in pairs {
      policy = function() local _ = pipeplan.policy "examples/sites/nowhere.lua" end,
      option = function() local _ = pipeplan.policy(nil, { dat = 1 }) end,
      spec = function() local _ = site:plan { "nowhere.json" } end,
      table = function() local _ = site:plan_spec { cluster = {} } end,
      fact = function() local _ = site:with { gpu = 1 } end,
      assertion = function() local _ = assert.decided({ status = "planned" }, "plannd") end,
    } do
      local good, problem = pcall(function() call() end)
      local here = debug.getinfo(call, "S").linedefined
      assert.is_false(good)
      assert.matches("^[^\n]*api_spec%.lua:" .. here .. ": ", tostring(problem), nil, nil, name)
      if type(problem) == "table" then assert.not_matches("api_spec", problem.message) end
    end
  end)

  it("raises an answer for what no file and no option can be", function()
    for _, case in ipairs { { { 5 }, "pipeplan.policy: policy is 5: expected a path or a list of paths" },
                            { { { "x.lua", 5 } }, "policy is { x.lua, 5 }: expected a path or a list" },
                            { { { file = "x.lua" } }, "policy is a table: expected" },
                            { { nil, false }, "options are false: expected a table" }, { { nil, { "x" } }, "an option is written name = value, got x" },
                            { { nil, { date = 20261201 } }, "date is 20261201: expected a date such as 2027-06-30" },
                            { { nil, { date = "2026-13-01" } }, "date is 2026-13-01: expected a date" },
                            { { nil, { frontier = 1 } }, "frontier is 1: expected true or false" },
                            { { nil, { in_force = "yes" } }, "in_force is yes: expected true or false" },
                            { { nil, { policies = {} } }, "policies is a table: expected a directory" },
                            { { nil, { work = 0 } }, "work is 0: expected a whole number" },
                            { { nil, { bytes = 1.5 } }, "bytes is 1.5: expected a whole number" },
                            { { nil, { set = { "tie_fraction" } } }, "set is { tie_fraction }: expected parameters and their values" },
                            { { nil, "2026-12-01" }, "options are 2026-12-01: expected a table" }, { { nil, { set = "x" } }, "set is x" },
                            { { nil, { sets = {} } }, "no option 'sets', did you mean 'set'?" } } do
      local good, problem = pcall(pipeplan.policy, table.unpack(case[1], 1, 2))
      assert.is_false(good)
      assert.is_true(failure.is(problem), tostring(problem))
      assert.equal(2, problem.status)
      assert.matches(case[2], problem.message, 1, true)
    end
  end)

  -- docs/embedding.md: what cannot be read, loaded or planned is an error with `status` and `message`
  it("answers arguments of any other kind in words, never with an error of Lua", function()
    local good = { cluster = { gpus = 8, accelerator = "H100-SXM" }, model = { architecture = "dense", total = "7B", layers = 32 },
                   training = { tokens = "1T" } }
    local site = pipeplan.policy(nil, { date = "2026-12-01" })
    local plan = site:plan_spec(good)
    local function told(call, ...)
      local fine, problem = pcall(call, ...)
      assert.is_true(fine or failure.is(problem) and problem.status == 2, tostring(problem))
      return not fine and problem.message
    end
    local odd = { false, true, 5, 0 / 0, 1 / 0, "", "x", "\0", {}, { 5 }, { a = 1 }, { {} }, { [2.5] = 1 }, print, coroutine.create(print), io.stdout }
    for i = 0, #odd do
      local value = odd[i]
      for _, call in ipairs { site.plan, site.plan_spec, site.plan_request, site.with } do
        told(call, site, value)
        told(call, value, {})
        told(call, { policy = value }, good)
      end
      told(site.plan, site, { value })
      told(site.plan, site, { small[1], gpus = value })
      told(site.plan_spec, site, good, value)
      told(site.plan_request, site, { cluster = value })
      told(site.plan_request, site, { any_gpus = value })
      told(site.with, site, { gpus = value })
      told(pipeplan.json, value)
      told(pipeplan.json, { status = value })
      for _, field in ipairs { "step_seconds", "memory", "policy", "reasons", "x" } do
        local changed = {}
        for name, own in pairs(plan) do changed[name] = own end
        changed[field] = value
        told(pipeplan.json, changed)
      end
    end
    assert.equal("plan_spec: base is a table: expected the directory of the files that the spec names", told(site.plan_spec, site, good, {}))
    assert.equal("plan: spec 1 is a boolean: expected a path", told(site.plan, site, { true }))
    assert.matches("^pipeplan.json: %-?nan is no JSON number: expected a plan", told(pipeplan.json, { status = "planned", step_seconds = 0 / 0 }))
    assert.matches("expected a call with a colon", told(site.plan_spec, { policy = {} }, good), 1, true)
  end)

  it("answers a method that is called with a dot, and what is no plan or request", function()
    local site = pipeplan.policy()
    for _, name in ipairs { "plan", "plan_spec", "plan_request", "with" } do
      for _, first in ipairs { {}, { "spec.json" }, 3 } do
        local good, problem = pcall(site[name], first)
        assert.same({ false, true, 2 }, { good, failure.is(problem), problem.status })
        assert.matches(name .. ": expected a call with a colon, site:" .. name .. "(…)", problem.message, 1, true)
      end
      assert.equal(2, select(2, pcall(site[name])).status)
    end
    assert.matches("plan_request: expected what pipeplan.input.spec reads", select(2, pcall(site.plan_request, site, 3)).message, 1, true)
    for _, none in ipairs { 3, {}, "plan" } do
      assert.matches("pipeplan.json: expected a plan", select(2, pcall(pipeplan.json, none)).message, 1, true)
    end
  end)
end)

describe("assert.decided", function()
  local plan = pipeplan.policy():plan(small)

  it("passes for the outcome, and for a rule among the reasons", function()
    assert.decided(plan, "rejected")
    assert.decided(plan, "rejected", "fits_one_gpu")
    assert.is_not.decided(plan, "planned")
    assert.is_not.decided(plan, "rejected", "too_deep")
  end)

  it("fails with what the plan is instead", function()
    local good, problem = pcall(function() assert.decided(plan, "rejected", "too_deep") end)
    assert.is_false(good)
    assert.matches("expected the plan to be rejected by too_deep; it is rejected %(fits_one_gpu%)", tostring(problem.message or problem))
  end)

  it("is an error for an outcome that cannot be, even where it is negated", function()
    assert.has_error(function() assert.is_not.decided(plan, "plannd") end,
                     "assert.decided: no outcome 'plannd', did you mean 'planned'?")
    assert.has_error(function() assert.decided(nil, "planned") end, "assert.decided: a plan is expected first")
  end)

  it("knows the ids of the engine, as its C code has them, and of the plan's framework, and no others", function()
    local ids = {}
    for _, name in ipairs { "schedule_request", "candidate", "evaluate_time", "stages" } do   -- what pp_evaluate_check asks
      for line in io.lines("engine/core/" .. name .. ".c") do
        local id = line:match 'pp_illegal%(error, "(engine%.[%w_]+)"'
        if id then ids[id] = true end
      end
    end
    assert.is_true(ids["engine.odd_depth"] and ids["engine.context_sequence"])
    for id in pairs(ids) do assert.is_not.decided(plan, "rejected", id) end
    assert.has_error(function() assert.is_not.decided(plan, "rejected", "engine.odd_dept") end,
                     "assert.decided: no rule 'engine.odd_dept', did you mean 'engine.odd_depth'?")
    -- stdlib/catalog/frameworks/deepspeed.lua, of DeepSpeed's runtime/pipe/engine.py:76
    local framework = pipeplan.policy():plan_spec(
      { cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
        model = { architecture = "dense", total = "70B", layers = 80 }, training = { tokens = "1T", sharding = "gradients" },
        parallelism = { pipeline = 8, tensor = 8 }, framework = "deepspeed" })
    assert.decided(framework, "rejected", "deepspeed.zero")
    assert.has_error(function() assert.is_not.decided(framework, "rejected", "deepspeed.zer") end,
                     "assert.decided: no rule 'deepspeed.zer', did you mean 'deepspeed.zero'?")
  end)
end)
