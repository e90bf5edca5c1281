-- SPDX-License-Identifier: Apache-2.0
-- The default policy, rule by rule, at the values where each begins and ends.
-- Expected values are what was asked for, not those of the policy files.

require "pipeplan"
local conditions = require "pipeplan.policy.conditions"
local load = require("pipeplan.policy.load").load
local vocabulary = require "pipeplan.vocabulary"

local policy = load {}

local function holds(id, record)
  assert.is_table(policy.rules[id], id)
  return conditions.holds(policy.rules[id], policy, record)
end

local function ids(list)
  local names = {}
  for i, rule in ipairs(list) do names[i] = rule.id end
  return names
end

-- Every combination of the values on both sides of each boundary that the rows' conditions have.
local function grid()
  local records = {}
  for _, gpus in ipairs { 1, 2, 99, 100, 101, 499, 500, 501, 100000 } do
    for _, architecture in ipairs { "dense", "moe" } do
      for _, expert_parallel in ipairs { 1, 2, 64 } do
        for _, fraction in ipairs { 0, 0.0999, 0.1, 0.1001, 1 } do
          if architecture == "moe" or expert_parallel == 1 then
            records[#records + 1] = { gpus = gpus, architecture = architecture, expert_parallel = expert_parallel, alltoall_fraction = fraction }
          end
        end
      end
    end
  end
  return records
end

local function rows_for(record)
  local matching = {}
  for _, row in ipairs(policy.rows) do
    if conditions.holds(row, policy, record) then matching[#matching + 1] = row end
  end
  return matching
end

describe("the decision table", function()
  it("has its rows in the order that decides", function()
    assert.same({ "small_run", "moe_with_ep", "dense", "dense_large", "otherwise" }, ids(policy.rows))
  end)

  it("wants what was asked for", function()
    for _, case in ipairs {
      { wants = "1f1b",        gpus = 99,   architecture = "dense", expert_parallel = 1,  alltoall_fraction = 0 },
      { wants = "1f1b",        gpus = 64,   architecture = "moe",   expert_parallel = 8,  alltoall_fraction = 0.3 },
      { wants = "zero_bubble", gpus = 100,  architecture = "dense", expert_parallel = 1,  alltoall_fraction = 0 },
      { wants = "zero_bubble", gpus = 499,  architecture = "dense", expert_parallel = 1,  alltoall_fraction = 0 },
      { wants = "dualpipev",   gpus = 500,  architecture = "dense", expert_parallel = 1,  alltoall_fraction = 0 },
      { wants = "dualpipev",   gpus = 2048, architecture = "dense", expert_parallel = 1,  alltoall_fraction = 0.09 },
      { wants = "zero_bubble", gpus = 2048, architecture = "dense", expert_parallel = 1,  alltoall_fraction = 0.1 },
      { wants = "dualpipe",    gpus = 2048, architecture = "moe",   expert_parallel = 64, alltoall_fraction = 0.3 },
      { wants = "dualpipe",    gpus = 100,  architecture = "moe",   expert_parallel = 2,  alltoall_fraction = 0 },
      { wants = "zero_bubble", gpus = 100,  architecture = "moe",   expert_parallel = 1,  alltoall_fraction = 0 },
      { wants = "dualpipev",   gpus = 500,  architecture = "moe",   expert_parallel = 1,  alltoall_fraction = 0 },
    } do
      assert.equal(case.wants, rows_for(case)[1].try[1])
    end
  end)

  it("decides every combination at the boundaries, and has no row that nothing reaches", function()
    local reached = {}
    for _, record in ipairs(grid()) do
      local first = rows_for(record)[1]
      assert.is_table(first)
      reached[first.id] = true
    end
    for _, row in ipairs(policy.rows) do assert.is_true(reached[row.id], row.id) end
  end)

  it("has these overlapping rows with different outcomes, and no others", function()
    local pairs_found = {}
    for _, record in ipairs(grid()) do
      local matching = rows_for(record)
      for i, earlier in ipairs(matching) do
        for j = i + 1, #matching do
          local later = matching[j]
          if table.concat(earlier.try, " ") ~= table.concat(later.try, " ") then pairs_found[earlier.id .. " × " .. later.id] = true end
        end
      end
    end
    local list = {}
    for pair in pairs(pairs_found) do list[#list + 1] = pair end
    table.sort(list)
    local expected = { "small_run × moe_with_ep", "small_run × dense", "small_run × otherwise", "moe_with_ep × dense",
                       "moe_with_ep × dense_large", "moe_with_ep × otherwise", "dense_large × otherwise" }
    table.sort(expected)
    assert.same(expected, list)
  end)

  it("leaves to `otherwise` alone only 500 GPUs or more, without EP, with heavy all-to-all", function()
    local found = 0
    for _, record in ipairs(grid()) do
      local matching = rows_for(record)
      local alone = #matching == 1 and matching[1].id == "otherwise"
      assert.equal(record.gpus >= 500 and record.expert_parallel == 1 and record.alltoall_fraction >= 0.1, alone)
      if alone then found = found + 1 end
    end
    assert.is_true(found > 0)
  end)

  it("names the members of Zero Bubble in order", function()
    assert.same({ "zb_h1", "zb_v", "zb_h2", "zb_auto" }, policy.members.zero_bubble)
  end)
end)

describe("a hard reject", function()
  it("DualPipe without expert parallelism", function()
    assert.is_true(holds("dualpipe_without_ep", { schedule = "dualpipe", expert_parallel = 1 }))
    assert.is_false(holds("dualpipe_without_ep", { schedule = "dualpipe", expert_parallel = 2 }))
    assert.is_false(holds("dualpipe_without_ep", { schedule = "dualpipev", expert_parallel = 1 }))
  end)

  it("P over 64", function()
    assert.is_false(holds("too_deep", { pipeline_parallel = 64 }))
    assert.is_true(holds("too_deep", { pipeline_parallel = 65 }))
  end)

  it("odd M for DualPipe or DualPipeV", function()
    for _, schedule in ipairs(vocabulary.schedules) do
      local two = schedule == "dualpipe" or schedule == "dualpipev"
      assert.equal(two, holds("odd_microbatches", { schedule = schedule, microbatches = 33 }))
      assert.is_false(holds("odd_microbatches", { schedule = schedule, microbatches = 32 }))
    end
  end)

  it("any pipeline when the model fits one GPU, with data parallelism instead", function()
    assert.is_true(holds("fits_one_gpu", { fits_one_gpu = true, pipeline_parallel = 2 }))
    assert.is_false(holds("fits_one_gpu", { fits_one_gpu = true, pipeline_parallel = 1 }))
    assert.is_false(holds("fits_one_gpu", { fits_one_gpu = false, pipeline_parallel = 2 }))
    assert.equal("data_parallel", policy.rules.fits_one_gpu.recommend)
  end)

  it("M below 2 P for DualPipe and DualPipeV", function()
    assert.is_true(holds("too_few_microbatches", { schedule = "dualpipe", microbatches_per_rank = 31 / 16 }))
    assert.is_true(holds("too_few_microbatches", { schedule = "dualpipev", microbatches_per_rank = 1 }))
    assert.is_false(holds("too_few_microbatches", { schedule = "dualpipe", microbatches_per_rank = 2 }))
    assert.is_false(holds("too_few_microbatches", { schedule = "zb_v", microbatches_per_rank = 1 }))
  end)

  it("odd P, virtual stages, and tied embeddings for DualPipe", function()
    assert.is_true(holds("dualpipe_odd_depth", { schedule = "dualpipe", pipeline_parallel = 3 }))
    assert.is_false(holds("dualpipe_odd_depth", { schedule = "dualpipe", pipeline_parallel = 4 }))
    assert.is_false(holds("dualpipe_odd_depth", { schedule = "dualpipev", pipeline_parallel = 3 }))
    assert.is_true(holds("dualpipe_virtual", { schedule = "dualpipe", virtual = 2 }))
    assert.is_false(holds("dualpipe_virtual", { schedule = "dualpipe", virtual = 1 }))
    assert.is_false(holds("dualpipe_virtual", { schedule = "interleaved_1f1b", virtual = 2 }))
    local tied = { schedule = "dualpipe", tied_embeddings = true }
    assert.is_true(holds("dualpipe_tied_embeddings", tied))  -- no framework given
    tied.framework = "flagscale"
    assert.is_true(holds("dualpipe_tied_embeddings", tied))
    tied.framework = "deepseek-dualpipe"                     -- shares them on one rank
    assert.is_false(holds("dualpipe_tied_embeddings", tied))
    assert.is_false(holds("dualpipe_tied_embeddings", { schedule = "dualpipe", tied_embeddings = false }))
  end)
end)

describe("a refusal", function()
  it("DualPipe over links of 200 Gb/s or less, DualPipeV instead", function()
    assert.is_true(holds("slow_interconnect", { schedule = "dualpipe", expert_link = 25e9 }))
    assert.is_false(holds("slow_interconnect", { schedule = "dualpipe", expert_link = 25e9 + 1 }))
    assert.is_true(holds("slow_interconnect", { schedule = "dualpipe", expert_link = 12.5e9 }))
    assert.is_false(holds("slow_interconnect", { schedule = "dualpipev", expert_link = 12.5e9 }))
    assert.is_false(holds("slow_interconnect", { schedule = "dualpipe" }))  -- EP 1 crosses no link
    assert.equal("dualpipev", policy.rules.slow_interconnect.recommend)
  end)

  it("DualPipe without a custom all-to-all kernel, Zero Bubble instead", function()
    assert.is_true(holds("no_alltoall_kernel", { schedule = "dualpipe", alltoall_kernel = false }))
    assert.is_false(holds("no_alltoall_kernel", { schedule = "dualpipe", alltoall_kernel = "deepep" }))
    assert.is_false(holds("no_alltoall_kernel", { schedule = "dualpipev", alltoall_kernel = false }))
    assert.equal("zero_bubble", policy.rules.no_alltoall_kernel.recommend)
  end)

  it("any pipeline for a run below 1 B tokens, data and tensor parallelism instead", function()
    assert.is_true(holds("short_run", { tokens = 999999999, pipeline_parallel = 2 }))
    assert.is_false(holds("short_run", { tokens = 1000000000, pipeline_parallel = 2 }))
    assert.is_false(holds("short_run", { tokens = 999999999, pipeline_parallel = 1 }))
    assert.equal("data_and_tensor_parallel", policy.rules.short_run.recommend)
  end)

  it("for the link stands before the one for the kernel", function()
    assert.same({ "slow_interconnect", "no_alltoall_kernel", "short_run" }, ids(policy.refuses))
  end)
end)

describe("a warning", function()
  it("judges M / P outside 8 to 16 and never refuses it", function()
    assert.is_true(holds("few_microbatches", { microbatches_per_rank = 7.99 }))
    assert.is_false(holds("few_microbatches", { microbatches_per_rank = 8 }))
    assert.is_false(holds("many_microbatches", { microbatches_per_rank = 16 }))
    assert.is_true(holds("many_microbatches", { microbatches_per_rank = 16.01 }))
    assert.equal("note", policy.rules.many_microbatches.severity)
    assert.equal("warn", policy.rules.few_microbatches.verb)
  end)

  it("says when a pipeline could be avoided", function()
    assert.is_true(holds("pipeline_avoidable", { status = "planned", pipeline_avoidable_seconds = 0.1 }))
    assert.is_false(holds("pipeline_avoidable", { status = "refused", pipeline_avoidable_seconds = 0.1 }))
    assert.is_false(holds("pipeline_avoidable", { status = "planned", pipeline_avoidable_seconds = -0.1 }))
    assert.is_false(holds("pipeline_avoidable", { status = "planned" }))
  end)
end)

describe("a preference", function()
  it("for depth follows the usual ranges, among plans that are about as fast", function()
    local frontier = { architecture = "moe", total_parameters = 671e9 }
    for depth, expected in pairs { [15] = false, [16] = true, [32] = true, [33] = false } do
      frontier.pipeline_parallel = depth
      assert.equal(expected, holds("frontier_moe_depth", frontier))
    end
    assert.equal(0.01, policy.rules.frontier_moe_depth.within)
    assert.is_true(holds("shallow_on_small_cluster", { gpus = 64, pipeline_parallel = 4 }))
    assert.is_false(holds("shallow_on_small_cluster", { gpus = 64, pipeline_parallel = 5 }))
    assert.is_false(holds("shallow_on_small_cluster", { gpus = 100, pipeline_parallel = 4 }))
  end)

  it("of what comes close to the fastest spreads experts and keeps TP on the fastest links", function()
    assert.is_true(holds("expert_parallel_for_moe", { architecture = "moe", expert_parallel = 2 }))
    assert.is_true(holds("tensor_parallel_in_scale_up", { tensor_parallel = 8, scale_up_gpus = 8 }))
    assert.is_false(holds("tensor_parallel_in_scale_up", { tensor_parallel = 16, scale_up_gpus = 8 }))
    assert.equal(0.05, policy.rules.expert_parallel_for_moe.within)   -- never more than wanted_tolerance
    assert.equal(0.05, policy.rules.tensor_parallel_in_scale_up.within)
  end)
end)

describe("the kernel", function()
  local function recommended(record)
    for _, rule in ipairs(policy.kernels) do
      if conditions.holds(rule, policy, record) then return rule.id, rule.overlapping end
    end
  end

  it("is the one that is built for the hardware", function() -- the kernels' own documentation, see `pipeplan facts kernels`
    for _, case in ipairs {
      { wants = "deepep",        accelerator_family = "hopper",    fabric = "infiniband", expert_parallel = 64 },
      { wants = "deepep",        accelerator_family = "blackwell", fabric = "roce",       expert_parallel = 8 },
      { wants = "nccl_alltoall", accelerator_family = "blackwell", fabric = "roce",       expert_parallel = 4096 },
      { wants = "deepep_v1",     accelerator_family = "ampere",    fabric = "infiniband", expert_parallel = 160 },
      { wants = "nccl_alltoall", accelerator_family = "ampere",    fabric = "infiniband", expert_parallel = 192 },
      { wants = "hybrid_ep",     accelerator_family = "gb200",     fabric = "infiniband", expert_parallel = 64 },
      { wants = "uccl_ep",       accelerator_family = "hopper",    fabric = "efa",        expert_parallel = 32 },
      { wants = "nccl_alltoall", accelerator_family = "hopper",    fabric = "efa",        expert_parallel = 64 },
      { wants = "primus_turbo",  accelerator_family = "mi300",     fabric = "roce",       expert_parallel = 8 },
      { wants = "mindspeed",     accelerator_family = "ascend",    fabric = "roce",       expert_parallel = 16 },
      { wants = "nccl_alltoall", accelerator_family = "hopper",    fabric = "slingshot",  expert_parallel = 8 },
      { wants = "nccl_alltoall", accelerator_family = "tpu",       fabric = "ethernet",   expert_parallel = 8 },
    } do
      assert.equal(case.wants, recommended(case), case.accelerator_family .. " " .. case.fabric)
    end
  end)

  it("that works everywhere overlaps nothing, so it does not count as custom", function()
    for _, rule in ipairs(policy.kernels) do assert.equal(rule.id ~= "nccl_alltoall", rule.overlapping) end
    assert.equal("nccl_alltoall", policy.kernels[#policy.kernels].id)
  end)

  it("is one that the catalogue knows, within the sizes it knows", function()
    local kernels = require("pipeplan.catalog.kernels")
    for _, rule in ipairs(policy.kernels) do
      local entry = kernels.find(rule.recommend or rule.id)
      assert.is_table(entry, rule.id)
      assert.equal(rule.overlapping, entry.overlapping, rule.id)
      assert.is_true(entry.trains, rule.id)
    end
  end)
end)

describe("an invariant", function()
  it("guards memory, and what the default rejects and refusals keep away", function()
    assert.is_true(holds("never_over_memory", { status = "planned", peak_bytes = 81, device_bytes = 80 }))
    assert.is_false(holds("never_over_memory", { status = "planned", peak_bytes = 80, device_bytes = 80 }))
    assert.is_false(holds("never_over_memory", { status = "refused", peak_bytes = 81, device_bytes = 80 }))
    assert.is_true(holds("never_dualpipe_without_ep", { status = "planned", schedule = "dualpipe", expert_parallel = 1 }))
    assert.is_true(holds("never_dualpipe_slow", { status = "planned", schedule = "dualpipe", expert_link = 25e9 }))
    assert.is_true(holds("never_odd_microbatches", { status = "planned", schedule = "dualpipev", microbatches = 3 }))
    for _, rule in ipairs(policy.invariants) do
      if rule.id ~= "never_over_memory" then assert.is_table(policy.rules[rule.unless], rule.id) end
    end
  end)
end)

describe("parameters", function()
  it("have the values and the loosening directions that were asked for", function()
    for id, expected in pairs {
      small_run_gpus = { 100, "none" }, large_dense_gpus = { 500, "none" }, max_pipeline_depth = { 64, "up" },
      min_microbatches_per_rank = { 2, "down" }, slow_link = { 25e9, "down" }, short_run_tokens = { 1e9, "down" },
      microbatch_ratio_low = { 8, "none" }, microbatch_ratio_high = { 16, "none" }, small_cluster_depth = { 4, "none" },
      frontier_depth_low = { 16, "none" }, frontier_depth_high = { 32, "none" }, tie_fraction = { 0.01, "none" },
      wanted_tolerance = { 0.05, "none" }, rollback_window_steps = { 1000, "none" }, memory_headroom = { 0.08, "down" },
      default_batch_tokens = { 16777216, "none" },
    } do
      local parameter = policy.parameters[id]
      assert.is_table(parameter, id)
      assert.equal(expected[1], parameter.value, id)
      assert.equal(expected[2], parameter.loosens, id)
    end
  end)

  it("are each explained, and each read by a rule or the planner", function()
    for _, id in ipairs(policy.parameter_order) do assert.is_true(#policy.parameters[id].meaning > 10, id) end
  end)
end)

describe("names that tests and overrides rely on", function()
  it("are all there", function()
    for _, id in ipairs {
      "small_run", "moe_with_ep", "dense", "dense_large", "otherwise", "dualpipe_without_ep", "too_deep", "odd_microbatches", "fits_one_gpu",
      "too_few_microbatches", "dualpipe_odd_depth", "dualpipe_virtual", "dualpipe_tied_embeddings", "slow_interconnect", "no_alltoall_kernel",
      "short_run", "few_microbatches", "many_microbatches", "pipeline_avoidable",
    } do
      assert.is_table(policy.rules[id], id)
    end
  end)

  it("have messages that say something with the values filled in", function()
    local message = require "pipeplan.policy.message"
    local record = { schedule = "dualpipe", microbatches = 31, pipeline_parallel = 16, expert_link = 25e9, fabric = "infiniband", tokens = 5e8,
                     microbatches_per_rank = 1.94 }
    assert.equal("DualPipe needs M ≥ 2 P; M is 31, P 16; M/P does not depend on P",
                 message.fill(policy.rules.too_few_microbatches.message, record, policy))
    assert.equal("200 Gb/s per GPU is too slow to hide the all-to-all behind two copies",
                 message.fill(policy.rules.slow_interconnect.message, record, policy))
    assert.equal("500 M tokens are too few to be worth a pipeline", message.fill(policy.rules.short_run.message, record, policy))
  end)
end)

describe("a source of the default policy", function()
  -- The verbs that state a judgement; what a parameter means and an invariant keeps stands beside it.
  local judgements = { row = true, reject = true, refuse = true, warn = true, prefer = true, kernel = true }

  it("leads somewhere, for each row, rule, preference and kernel", function()
    local count = 0
    for id, rule in pairs(policy.rules) do
      if judgements[rule.verb or rule.kind] and not id:find "^engine%." then
        count = count + 1
        assert.matches("https://%w[%w.-]+/%S", rule.source or "", 1)
      end
    end
    assert.is_true(count >= 25, count)
  end)
end)
