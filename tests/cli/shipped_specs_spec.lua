-- SPDX-License-Identifier: Apache-2.0
-- The shipped specs through the program: each rule's spec is decided by its rule, each model's spec is planned as was decided.

local cjson = require "cjson"
local program = require "program"

local function plan_of(name)
  local result = program.run("plan --format json examples/specs/" .. name .. ".json")
  assert.equal("", result.stderr)
  local plan = cjson.decode(result.stdout)
  assert.equal(plan.status == "planned" and 0 or 1, result.status)
  return plan
end

local function reasons(plan)
  local ids = {}
  for _, reason in ipairs(plan.reasons) do ids[reason.id] = true end
  return ids
end

-- spec → status, the rules that decided it, what is planned or recommended (nil: not pinned)
local rules = {
  dualpipe_without_ep = { "rejected", { "dualpipe_without_ep" } },
  too_deep = { "rejected", { "too_deep" } },
  odd_microbatches = { "rejected", { "odd_microbatches" } },
  fits_one_gpu = { "rejected", { "fits_one_gpu" }, "none" },
  slow_interconnect = { "planned", { "slow_interconnect" }, "dualpipev" },
  no_alltoall_kernel = { "planned", { "no_alltoall_kernel" }, { "zb_h1", "zb_v", "zb_h2", "zb_auto" } },
  slow_interconnect_without_kernel = { "planned", { "slow_interconnect", "no_alltoall_kernel" }, "dualpipev" },
  short_run = { "refused", { "short_run" }, "none" },
  too_few_microbatches = { "rejected", { "too_few_microbatches" } },
  dualpipe_odd_depth = { "rejected", { "dualpipe_odd_depth" } },
  dualpipe_virtual = { "rejected", { "dualpipe_virtual" } },
  dualpipe_tied_embeddings = { "rejected", { "dualpipe_tied_embeddings" } },
  does_not_fit = { "refused", { "does_not_fit" } },
}

describe("the spec of rule", function()
  for name, expected in pairs(rules) do
    it(name .. " is decided by it", function()
      local plan = plan_of("rules/" .. name)
      assert.equal(expected[1], plan.status)
      local ids = reasons(plan)
      for _, id in ipairs(expected[2]) do assert.is_true(ids[id], "no reason " .. id) end
      local schedules = type(expected[3]) == "string" and { expected[3] } or expected[3]
      if not schedules then return end
      local schedule = plan.status == "planned" and plan.schedule or plan.recommend.schedule
      local found = false
      for _, allowed in ipairs(schedules) do found = found or schedule == allowed end
      assert.is_true(found, tostring(schedule))
    end)
  end
end)

describe("the plan of", function()
  it("DeepSeek-V3 is DualPipe with EP 64 and an even P in 8 … 32 that fits 80 GB", function()
    local plan = plan_of "deepseek-v3"
    assert.equal("dualpipe", plan.schedule)
    assert.equal(64, plan.parallelism.expert)
    assert.equal(0, plan.parallelism.pipeline % 2)
    assert.is_true(plan.parallelism.pipeline >= 8 and plan.parallelism.pipeline <= 32)
    for _, rank in ipairs(plan.memory.ranks) do assert.is_true(rank.total_bytes < 80 * 2 ^ 30) end
  end)

  it("DeepSeek-V3 with its ramp replaces DualPipe: M is 24 where 2P is 32", function()
    local plan = plan_of "deepseek-v3-ramp"
    assert.equal("planned", plan.status)
    assert.equal("dualpipe", plan.schedule_wanted)
    assert.are_not.equal("dualpipe", plan.schedule)
    local message
    for _, reason in ipairs(plan.reasons) do
      if reason.id == "too_few_microbatches" then message = reason.message end
    end
    assert.matches("M is 24, P 16", message)
  end)

  it("Llama-3.1-405B replaces DualPipeV by interleaved 1F1B at M/P = 1", function()
    local plan = plan_of "llama-3.1-405b"
    assert.equal("dualpipev", plan.schedule_wanted)
    assert.equal("interleaved_1f1b", plan.schedule)
    assert.equal(1, plan.microbatches_per_rank)
    assert.is_true(reasons(plan).too_few_microbatches)
  end)

  it("Mixtral on 64 A100 is 1F1B: a small run comes first", function()
    assert.equal("1f1b", plan_of("mixtral-8x7b").schedule)
  end)

  it("Qwen3-235B and Kimi-K2 is DualPipe", function()
    assert.equal("dualpipe", plan_of("qwen3-235b").schedule)
    assert.equal("dualpipe", plan_of("kimi-k2").schedule)
  end)

  it("a 7B on 64 GPUs has no pipeline", function()
    local plan = plan_of "7b-fits-one-gpu"
    assert.equal("rejected", plan.status)
    assert.is_true(reasons(plan).fits_one_gpu)
    assert.equal(1, plan.recommend.parallelism.pipeline)
  end)
end)
