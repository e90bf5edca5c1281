-- SPDX-License-Identifier: Apache-2.0
-- The nearest change of a spec that has another outcome, and what --explain says of overrides. The expected values are derived by hand, from
-- the limits of the rules and the figures in the specs.

local planning = require "planning"
local planner = require "pipeplan.plan.init"
local pipeplan = require "pipeplan"
local spec = require "pipeplan.input.spec"

local policy = planning.policy.policy

local function read(file, options)
  return spec.read { files = { "examples/specs/" .. file .. ".json" }, options = options or {} }
end

local explained = {}

local function changes(file, options)
  local key = file .. (options and next(options) or "")
  if not explained[key] then
    explained[key] = planner.plan({ request = read(file, options), policy = policy, explain = true }).explanation.changes
  end
  return explained[key]
end

local function change_of(list, field)
  for _, change in ipairs(list) do
    if change.field == field then return change end
  end
end

describe("the nearest change of a spec that is not planned", function()
  for _, case in ipairs {
    -- 768 = 6,144 / 8 ranks: of its divisors the largest that is at most 64
    { "rules/too_deep", "parallelism.pipeline", "64", "pipeline 64 instead of 96", first = true },
    -- DP 2,048 / 16 = 128: M 33 becomes 34 with 128 sequences more, 32 with 128 less, which is farther as a ratio
    { "rules/odd_microbatches", "training.global_batch_size", "4352", "global_batch_size 4,352 instead of 4,224", first = true },
    -- M ≥ 2 P = 32 of DP 128
    { "rules/too_few_microbatches", "training.global_batch_size", "4096", "global_batch_size 4,096 instead of 3,072", first = true },
    { "rules/short_run", "training.tokens", "1000000000", "tokens 1 B instead of 500 M", first = true },
    { "rules/dualpipe_virtual", "parallelism.virtual", "1", "virtual 1 instead of 2" },
    { "rules/dualpipe_without_ep", "parallelism.expert", "2", "expert 2 instead of 1" },
    { "rules/fits_one_gpu", "parallelism.pipeline", "1", "pipeline 1 instead of 4" },
    { "rules/dualpipe_tied_embeddings", "parallelism.schedule", "1f1b", "schedule 1F1B instead of DualPipe" },
  } do
    it("is " .. case[4] .. " for " .. case[1], function()
      local list = changes(case[1])
      local change = case.first and list[1] or change_of(list, case[2])
      assert.same({ case[2], case[3], case[4], "planned" }, { change.field, change.value, change.words, change.status })
      assert.matches("^planned: ", change.effect)
    end)
  end

  it("is micro_batch_size 1 where 2 do not fit", function()
    local change = change_of(changes("deepseek-v3", { micro_batch_size = 2 }), "training.micro_batch_size")
    assert.equal("micro_batch_size 1 instead of 2", change.words)
  end)

  it("is the number of GPUs that is said to do, however far", function()
    local plan = planner.plan { request = read "rules/does_not_fit", policy = policy, explain = true }
    local gpus = plan.reasons[1].message:match "it fits ([%d,]+) GPUs"
    assert.equal("gpus " .. gpus .. " instead of 64", plan.explanation.changes[1].words)
  end)
end)

describe("the nearest change of a planned spec", function()
  it("is another row's limit: the first whole host from small_run_gpus, 100, on", function()
    local change = changes("mixtral-8x7b", { micro_batch_size = 1, recompute = "none", sharding = "optimizer" })[1]
    assert.same({ "gpus 104 instead of 64", "moe_with_ep" }, { change.words, change.decision })
    assert.matches("^row moe_with_ep decides: ", change.effect)
  end)

  it("starts from the number of GPUs that was found, where the spec asks for the fewest", function()
    local plan = planner.plan { request = read("mixtral-8x7b", { gpus = "minimum" }), policy = policy, explain = true }
    local change = change_of(plan.explanation.changes, "cluster.gpus")
    assert.equal(string.format("gpus %d instead of %d", plan.cluster.gpus // 2, plan.cluster.gpus), change.words)
    assert.equal("refused", change.status)  -- with fewer than the fewest there is no plan
  end)

  it("is a limit of a real number, and on which side of it", function()
    local slow = changes("rules/slow_interconnect")[1]
    assert.same({ "per_gpu over 200 Gb/s", "over" }, { slow.words, slow.side })
    assert.matches("^slow_interconnect no longer holds: DualPipe ", slow.effect)
    local fast = change_of(changes "deepseek-v3", "cluster.network.per_gpu")
    assert.equal("per_gpu 200 Gb/s instead of 400 Gb/s", fast.words)
    assert.matches("^slow_interconnect holds: ", fast.effect)
  end)
end)

describe("every change", function()
  for _, file in ipairs { "deepseek-v3", "llama-3.1-405b", "mixtral-8x7b", "rules/odd_microbatches", "rules/slow_interconnect",
                          "rules/too_deep", "rules/short_run", "rules/dualpipe_odd_depth" } do
    it("has, as an option, the outcome that it says: " .. file, function()
      local list = changes(file)
      assert.is_true(#list > 0)
      for _, change in ipairs(list) do
        local value = change.value == "false" and false or tonumber(change.value) or change.value
        local plan = planner.plan { request = read(file, { [change.field:match "[^.]+$"] = value }), policy = policy }
        local ids = planning.ids(plan.reasons)
        table.sort(ids)
        assert.same({ change.status, change.decision, change.rules }, { plan.status, plan.status == "planned" and plan.decision or change.decision, ids },
                    change.words)
      end
    end)
  end

  -- padding is computed and no part of the tokens (docs/spec.md): with a fifth of it a run has 1.25 times the steps
  it("takes the GPU-hours of the run that it is, with padding and goodput", function()
    local beside = { padding = "20%", goodput = "50%" }
    local change = changes("mixtral-8x7b", beside)[1]
    beside[change.field:match "[^.]+$"] = change.value
    local again = planner.plan { request = read("mixtral-8x7b", beside), policy = policy }
    assert.near(again.gpu_hours, change.gpu_hours, 1e-9 * again.gpu_hours)
  end)

  it("is of a field that the spec states, each once, nearest first", function()
    local request, seen = read "deepseek-v3", {}
    for _, change in ipairs(changes "deepseek-v3") do
      assert.is_truthy(request.stated[change.field])
      assert.is_nil(seen[change.field])
      seen[change.field] = true
    end
    assert.equal("cluster.network.per_gpu", changes("deepseek-v3")[1].field)
  end)
end)

describe("what a layer hides", function()
  local site = pipeplan.policy("examples/sites/aws-p5.lua", { date = "2026-11-27", set = { tie_fraction = "2%" } }).policy

  local function hidden(file)
    local found = {}
    for _, entry in ipairs(planner.plan({ request = read(file), policy = site, explain = true }).explanation.overridden) do
      found[entry.id] = entry
    end
    return found
  end

  it("is a disabled rule, which is evaluated all the same", function()
    local entry = hidden("rules/odd_microbatches").odd_microbatches
    assert.equal("disabled", entry.kind)
    assert.is_true(entry.holds)
    assert.matches("^would hold: microbatches odd %(it is 33%)", entry.what)
    assert.equal("our DualPipeV takes odd M", entry.reason)
    assert.is_false(hidden("mixtral-8x7b").odd_microbatches.holds)
  end)

  it("is a changed row and a parameter, with what they were", function()
    local found = hidden "mixtral-8x7b"
    assert.equal("try: dualpipev, zb_h1, was dualpipe, dualpipev, zero_bubble, interleaved_1f1b_overlap, interleaved_1f1b, 1f1b (default)",
                 found.moe_with_ep.what)
    assert.equal("64, was 100 (default)", found.small_run_gpus.what)
    assert.same({ "set", "aws-p5", "examples/sites/aws-p5.lua", 5 },
                { found.small_run_gpus.kind, found.small_run_gpus.layer, found.small_run_gpus.file, found.small_run_gpus.line })
    assert.same({ "2 %, was 1 % (default)", "--set" }, { found.tie_fraction.what, found.tie_fraction.file })
  end)
end)
