-- SPDX-License-Identifier: Apache-2.0
-- What was decided that a plan says of replaced schedules, savings, ramps, memory, roll-back and alternatives. Expected values are as
-- decided, or arithmetic that stands beside them.

local planning = require "planning"  -- first: it loads the module
local files = require "policy_files"
local text = require "pipeplan.report.text"

local plan, entry, ids = planning.plan, planning.entry, planning.ids
local has, policy_of, page_of, assumption = planning.has, planning.policy_of, planning.page_of, planning.assumption
local deepseek, llama, mixtral = planning.deepseek, planning.llama, planning.mixtral

teardown(files.remove)

describe("the wanted schedule", function()
  it("is replaced where it is slower than the fastest of its list by more than the tolerance", function()
    local function at(tolerance)
      return plan(mixtral, {}, policy_of(string.format("set { wanted_tolerance = %.6f, tie_fraction = 0 }", tolerance)))
    end
    local result = at(0.5)
    assert.equal("1f1b", result.schedule)
    local slower = result.policy_cost.fraction   -- than the fastest of all, which its row does not list
    assert.is_true(slower > 0.01 and slower < 0.5)
    assert.equal("small_run", result.policy_cost.statements[1].id)
    assert.equal("1f1b", at(slower * 1.2).schedule)
    local replaced = at(slower * 0.8)
    assert.same({ "planned", "1f1b" }, { replaced.status, replaced.schedule_wanted })
    assert.are_not.equal("1f1b", replaced.schedule)
    assert.is_true(replaced.policy_cost.fraction <= slower * 0.8)
    assert.same({ "wanted_too_slow" }, ids(replaced.reasons))
    assert.matches("slower than", replaced.reasons[1].message)
    assert.near(5, 100 * planning.policy.policy.parameters.wanted_tolerance.value, 1e-9)
  end)

  it("is replaced where it has no legal candidate that fits, with the reason in the first lines", function()
    local few = plan(llama, { model = "examples/models/llama-3.1-405b.json", cluster = { gpus = 16384 },
                              training = { global_batch_size = 2048 }, parallelism = { tensor = 8, context = 1 } })
    assert.same({ "planned", "dualpipev", "interleaved_1f1b" }, { few.status, few.schedule_wanted, few.schedule })
    assert.equal("too_few_microbatches", few.reasons[1].id)  -- M = 2,048 / 128 at P 16: M/P is 1
    local first = {}
    for line in text.render(few):gmatch "[^\n]+" do
      if #first < 16 then first[#first + 1] = line end
    end
    assert.matches("replaced by interleaved 1F1B", table.concat(first, "\n"))
    assert.matches("too_few_microbatches", table.concat(first, "\n"))
    -- with TP free it has plans with TP over several hosts, which are too slow
    local free = plan(llama, { model = "examples/models/llama-3.1-405b.json", cluster = { gpus = 16384 },
                               training = { global_batch_size = 2048 }, parallelism = { context = 1 } })
    assert.same({ "wanted_too_slow" }, ids(free.reasons))
    local elsewhere = plan(deepseek, { framework = "megatron" })
    assert.equal("planned", elsewhere.status)
    assert.is_true(has(elsewhere.reasons, "not_in_framework"))
  end)

  it("is told by memory where that alone stands in its way, at the layout that comes nearest", function()
    -- 192 H800 hold DeepSeek-V3 three stages deep, where DualPipe would be odd; at even depths its second copy is too much
    local result = plan(deepseek, { cluster = { gpus = 192 }, training = { global_batch_size = 1536 }, parallelism = planning.none })
    assert.same({ "planned", "dualpipe" }, { result.status, result.schedule_wanted })
    assert.are_not.equal("dualpipe", result.schedule)
    assert.matches("does_not_fit$", result.reasons[1].id)
  end)
end)

describe("GPU-hours saved", function()
  it("are bubble, overlap and total, by step time against 1F1B and ZB-H1 without overlap", function()
    local result = plan(deepseek)
    assert.same({ "1f1b", "zb_h1" }, { result.gpu_hours_saved[1].baseline, result.gpu_hours_saved[2].baseline })
    local steps = 14.8e12 / (15360 * 4096)
    for _, saved in ipairs(result.gpu_hours_saved) do
      assert.near(saved.total, saved.bubble + saved.overlap, 1e-3)
      local other = entry(result.alternatives, saved.baseline)
      assert.same(result.parallelism, other.parallelism)
      assert.near(steps * (other.step_seconds - result.step_seconds) * 2048 / 3600, saved.total, 1)
    end
    -- the same pairs hide the same all-to-all, whatever it is compared with: that part cannot be more than all of it
    assert.near(result.gpu_hours_saved[1].overlap, result.gpu_hours_saved[2].overlap, 1e-3)
    assert.is_true(result.gpu_hours_saved[1].overlap <= steps * result.communication.expert.seconds * 2048 / 3600)
  end)

  -- another schedule on the same devices has layers of its own, in the table and in the saving
  it("are against the step that the table of alternatives shows, where the spec gives the plan's layers too", function()
    local result = plan { cluster = { gpus = 512, accelerator = "H200-SXM", network = { per_gpu = "400Gbps" } },
                          model = "examples/models/deepseek-v3.json",
                          training = { tokens = "1T", recompute = "full", micro_batch_size = 1, sharding = "optimizer" },
                          parallelism = { pipeline = 8, tensor = 1, expert = 64, context = 1, schedule = "dualpipe",
                                          layers_per_stage = { 7, 8, 8, 8, 8, 8, 8, 6 } } }
    assert.equal(2, #result.gpu_hours_saved)
    for _, saved in ipairs(result.gpu_hours_saved) do
      local other = entry(result.alternatives, saved.baseline)
      assert.near((other.step_seconds / result.step_seconds - 1) * result.gpu_hours, saved.total, 1e-6 * saved.total)
    end
    assert.near(entry(result.alternatives, "1f1b").bubble_fraction, result.bubble.baseline_1f1b_fraction, 1e-9)
  end)

  it("have no overlap where nothing is hidden, and no second baseline but for DualPipe and DualPipeV", function()
    local dense = plan(llama, { cluster = { gpus = 512 }, training = { global_batch_size = 4096 } })
    assert.equal("dualpipev", dense.schedule)
    assert.same({ 0, 0 }, { dense.gpu_hours_saved[1].overlap, dense.gpu_hours_saved[2].overlap })
    local zero_bubble = plan(llama)
    assert.same({ "1f1b" }, { zero_bubble.gpu_hours_saved[1].baseline, zero_bubble.gpu_hours_saved[2] })
    assert.same({}, plan(mixtral).gpu_hours_saved)
  end)
end)

describe("a batch ramp", function()
  local function ramp(first)
    return plan(deepseek, { training = { global_batch_size = { { 0, first }, { "469B", 15360 } } }, parallelism = { pipeline = 16 } })
  end

  it("is judged at its smallest batch: M 24 is under 2 P, from 4,096 on DualPipe is legal", function()
    local result = ramp(3072)
    assert.same({ "planned", "dualpipe" }, { result.status, result.schedule_wanted })
    assert.are_not.equal("dualpipe", result.schedule)
    assert.equal("too_few_microbatches", result.reasons[1].id)
    assert.matches("M is 24, P 16", result.reasons[1].message)
    assert.equal("dualpipe", ramp(4096).schedule)
    assert.equal("too_few_microbatches", ramp(3840).reasons[1].id)  -- M 30, the last even one below 32
  end)

  it("has totals over its segments, the headline at the full batch, the window at its own", function()
    local result = ramp(4096)
    assert.same({ 15360, 120 }, { result.global_batch_size, result.microbatches })
    local hours = 0
    local tokens = { 469e9, 14.8e12 - 469e9 }
    for i, segment in ipairs(result.training.batch_ramp) do
      assert.equal(segment.global_batch_size, 128 * segment.microbatches)
      local mine = tokens[i] / (segment.global_batch_size * 4096) * segment.step_seconds * 2048 / 3600
      assert.near(mine, segment.gpu_hours, mine * 1e-9)
      hours = hours + mine
    end
    assert.near(hours, result.gpu_hours, hours * 1e-9)
    -- 1,000 steps of 4,096 sequences are 16.8 B tokens: all in the first segment
    local first = result.training.batch_ramp[1].step_seconds
    assert.is_true(result.rollback.threshold_fraction < result.predicted_utilisation_fraction)
    local ideal = result.ideal_step_seconds * 4096 / 15360
    assert.near(ideal / first, tonumber(result.rollback.paragraph:match "predicts ([%d.]+) %%") / 100, 0.002)
  end)

  -- Equal stages without data parallelism: 1F1B takes M + P - 1 times a stage's F + B, of which P - 1 are idle (Narayanan et al. 2021, 2.2.1).
  -- At P 8 a step of M 16 takes 23, one of M 64 takes 71: the tokens of 4 small steps take 92. So each small step costs 5.25 of its 23.
  it("shows what its small batches cost", function()
    local spec = {
      cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = { name = "even", layers = 64, hidden = 8192, heads = 64, kv_heads = 8, head_dim = 128, ffn = 28672, vocab = 1024 },
      training = { tokens = 20000 * (16 + 64) * 4096, sequence_length = 4096, micro_batch_size = 1, sharding = "optimizer", recompute = "full",
                   global_batch_size = { { 0, 16 }, { 20000 * 16 * 4096, 64 } } },
      parallelism = { tensor = 8, context = 1, pipeline = 8, data = 1, schedule = "1f1b" },
    }
    local result = plan(spec)
    local small, full = table.unpack(result.training.batch_ramp)
    assert.same({ 16, 64 }, { small.microbatches, full.microbatches })
    assert.near(7 / 23, small.bubble_fraction, 0.01)
    assert.near(7 / 71, full.bubble_fraction, 0.01)
    assert.near(5.25 / 23, small.extra_gpu_hours / small.gpu_hours, 0.01)
    assert.near(0, full.extra_gpu_hours, 1e-9)
    assert.near(20000 * small.step_seconds * 64 / 3600, small.gpu_hours, 1e-6 * small.gpu_hours)
    local page = planning.page_of(result)
    assert.matches(string.format("(M 16, bubble %.1f %%)", 100 * small.bubble_fraction), page, 1, true)
    assert.matches("the small batches cost [%d.]+ GPU%-hours %([%d.]+ %% of the run%): so many fewer do the same tokens at 64", page)
  end)

  -- M is batch / (DP × microbatch size): what a rule judged, 24 at 3,072, is not what the headline says, 120 at 15,360
  it("says of which batch a rule's M is, and of other layouts M at the full batch", function()
    local result, constant = ramp(3072), plan(deepseek, { training = { global_batch_size = 3072 }, parallelism = { pipeline = 16 } })
    assert.matches("^at the smallest batch, 3,072: DualPipe needs M ≥ 2 P; M is 24, P 16", result.reasons[1].message)
    assert.matches("^at the smallest batch, 3,072: M/P is 1.5;", entry(result.warnings, "few_microbatches").message)
    assert.matches("^DualPipe needs M ≥ 2 P; M is 24, P 16", constant.reasons[1].message)
    assert.matches("^M/P is 1.5;", entry(constant.warnings, "few_microbatches").message)
    assert.matches("M " .. 15360 // (result.runner_up.parallelism.data * result.runner_up.micro_batch_size) .. ",",
                   entry(result.advice, "runner_up").message, 1, true)
  end)

  -- Goodput is the share of the time that trains (docs/spec.md): at 0.4 all takes 2.5 times as long, each part as the whole.
  it("has parts that add up to the run, whatever of it trains", function()
    local whole
    for _, goodput in ipairs { 1, 0.9, 0.4 } do
      local result = plan(llama, { cluster = { price_per_gpu_hour = 2.5 },
                                   training = { goodput = goodput, global_batch_size = { { 0, 512 }, { "300B", 1024 } } } })
      local hours, extra = 0, 0
      for _, segment in ipairs(result.training.batch_ramp) do
        hours, extra = hours + segment.gpu_hours, extra + segment.extra_gpu_hours
      end
      local saved = result.gpu_hours_saved[1]
      whole = whole or { result.gpu_hours, extra, saved.total }
      local near = function(expected, value) assert.near(expected, value, 1e-9 * math.abs(expected)) end
      near(result.gpu_hours, hours)
      near(result.gpu_hours, result.training_days * 24 * 256)
      near(2.5 * result.gpu_hours, result.cost)
      near(saved.total, saved.bubble + saved.overlap)
      near(2.5 * saved.total, saved.cost)
      for i, value in ipairs { result.gpu_hours, extra, saved.total } do near(whole[i] / goodput, value) end
    end
  end)

  -- Two plans of one layout at 256 and at 512 sequences each say their ideal step and, by their threshold, the step of the plan that is
  -- fallen back to. A run of 400 steps at 256 and then 512 has 400 and 600 of either in its window of 1,000 steps.
  it("has the means of a window over more than one segment, each with its steps", function()
    local layout = { tensor = 8, pipeline = 4, virtual = 1, schedule = "zb_h1", layers_per_stage = { 20, 20, 20, 20 } }
    local function at(batch) return plan(llama, { training = { global_batch_size = batch }, parallelism = layout }) end
    local small, large, ramped = at(256), at(512), at{ { 0, 256 }, { 400 * 256 * 8192, 512 } }
    assert.equal(1000, ramped.rollback.window_steps)
    local function mean(of) return (400 * of(small) + 600 * of(large)) / 1000 end
    local ideal = mean(function(p) return p.ideal_step_seconds end)
    local fallback = mean(function(p) return p.ideal_step_seconds / p.rollback.threshold_fraction end)
    for _, p in ipairs{ small, large } do assert.same(p.rollback.fallback, ramped.rollback.fallback) end
    assert.near(ideal / fallback, ramped.rollback.threshold_fraction, 1e-9)
    local predicted = ideal / mean(function(p) return p.step_seconds end)
    assert.near(100 * predicted, tonumber(ramped.rollback.paragraph:match "predicts ([%d.]+) %%"), 0.051)
    assert.matches(string.format("ideal step (%.1f s, at the batches of the ramp)", ideal), ramped.rollback.paragraph, 1, true)
  end)
end)

describe("the all-to-all", function()
  it("is judged by the slowest link that the expert group crosses", function()
    local wanted = policy_of [[set { wanted_tolerance = "50%" }]]
    local function at(expert, network)
      return plan(deepseek, { cluster = { memory_per_gpu = "400GiB", network = network }, parallelism = { expert = expert } }, wanted)
    end
    -- EP 8 stays among the 8 GPUs of 160 GB/s of a host; EP 16 leaves it
    assert.equal("dualpipe", at(8, { per_gpu = "100Gbps" }).schedule)
    local crossing = at(16, { per_gpu = "100Gbps" })
    assert.same({ "slow_interconnect", "dualpipev" }, { crossing.reasons[1].id, crossing.schedule })
    -- 25 GB/s inside the host is 200 Gb/s
    assert.equal("slow_interconnect", at(8, { scale_up_per_gpu = "25GB/s" }).reasons[1].id)
    assert.equal("dualpipe", at(8, { scale_up_per_gpu = "25.2GB/s" }).schedule)
    -- taken literally: 400 Gb/s per GPU is not divided by its network cards
    assert.equal("dualpipe", at(16, { per_gpu = "400Gbps" }).schedule)
  end)

  it("has a kernel that follows from the policy where the spec names none, and says so", function()
    local result = plan(deepseek)
    assert.equal("deepep", result.alltoall_kernel.name)
    assert.equal("deepep", assumption(result, "cluster.alltoall_kernel").value)
    assert.is_nil(assumption(plan(deepseek, { cluster = { alltoall_kernel = "deepep" } }), "cluster.alltoall_kernel"))
    assert.is_nil(assumption(plan(llama), "cluster.alltoall_kernel"))
    -- UCCL-EP is measured to 32 ranks on EFA (kernels.lua): with 64 nothing custom is left
    local none = plan(deepseek, { cluster = { network = { fabric = "efa" } } })
    assert.equal("no_alltoall_kernel", none.reasons[1].id)
    assert.is_false(assumption(none, "cluster.alltoall_kernel").value)
  end)

  it("has no custom kernel in NCCL's plain one", function()
    local result = plan(deepseek, { cluster = { alltoall_kernel = "nccl_alltoall" } })
    assert.equal("no_alltoall_kernel", result.reasons[1].id)
    assert.is_true(has(result.warnings, "alltoall_kernel"))
    local kernels = policy_of [[
      disable { id = "deepep" } disable { id = "deepep_v1" } disable { id = "hybrid_ep" }
    ]]
    assert.equal("no_alltoall_kernel", plan(deepseek, {}, kernels).reasons[1].id)
  end)
end)

describe("DualPipe's memory", function()
  -- DeepSeek-V3's config.json, counted by hand (DeepSeek-V3 report §4.2)
  local hidden, vocab = 7168, 129280
  local attention = hidden * 1536 + 1536 + 1536 * 128 * (128 + 64) + hidden * (512 + 64) + 512 + 512 * 128 * (128 + 128)
                    + 128 * 128 * hidden
  local norms = 2 * hidden
  local dense = attention + norms + 3 * hidden * 18432
  local moe = attention + norms + 256 * hidden + 256 + 3 * hidden * 2048 + 256 / 64 * 3 * hidden * 2048  -- router, shared, 4 of 256 experts
  local mtp = moe + 2 * hidden * hidden + 3 * hidden

  it("has weights and gradients twice: rank 0 with embedding, head and MTP at once", function()
    local result = plan(deepseek, { parallelism = { pipeline = 16, schedule = "dualpipe",
                                                    layers_per_stage = { 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2 } } })
    local first = result.memory.ranks[1]
    assert.same({ 0, 15 }, first.stages)
    local resident = vocab * hidden + 3 * dense + 2 * moe + mtp + hidden + vocab * hidden
    assert.near(resident, first.parameters_bytes / 2, 1000)       -- bf16 weights, or fp8 and its transpose
    assert.near(resident, first.gradients_bytes / 4, 1000)        -- fp32
    -- ranks 0 and 15 hold the same two stages
    assert.same(first.total_bytes, result.memory.ranks[16].total_bytes)
    -- a middle rank: two slices of four MoE layers
    assert.near(8 * moe, result.memory.ranks[8].parameters_bytes / 2, 1000)
    assert.is_true(result.step.mirror_seconds > 0)                -- the mirror pair's gradients are summed
  end)

  it("has the optimizer sharded over the mirror pair too", function()
    local result = plan(deepseek, { parallelism = { pipeline = 16, schedule = "dualpipe" } })
    -- a middle rank, fp32 master and bf16 moments: 8 bytes; 4 experts of each layer over 2048 / 16 / 64 = 2 replicas × 2 copies; the rest
    -- over 128 × 2
    local experts = 256 / 64 * 3 * hidden * 2048
    assert.near(8 * 8 * (experts / 4 + (moe - experts) / 256), result.memory.ranks[8].optimizer_bytes, 1e6)
  end)

  it("has resident and unique parameters per GPU", function()
    local result = plan(deepseek, { parallelism = { pipeline = 16, schedule = "dualpipe" } })
    local fullest = 0
    for _, rank in ipairs(result.memory.ranks) do fullest = math.max(fullest, rank.parameters_bytes / 2) end
    assert.near(fullest, result.replication.resident_parameters_per_gpu, 1000)
    -- one copy over 16 ranks
    local whole = 2 * vocab * hidden + hidden + 3 * dense + 58 * moe + mtp
    assert.near(whole / 16, result.replication.unique_parameters_per_gpu, 1e6)
    assert.matches("the fullest GPU holds", page_of(result))
  end)
end)

describe("the rollback trigger", function()
  it("is ideal ÷ measured step, cross-checked by counters that can see a bubble", function()
    local result = plan(deepseek)
    local paragraph = result.rollback.paragraph
    assert.matches("ideal step %([%d.]+ s%) ÷ measured step", paragraph)
    assert.matches("tensor%-active or SM%-active", paragraph)
    assert.matches("plain GPU%-utilisation counter cannot see a bubble, for a rank that waits is running a receive kernel", paragraph)
    assert.near(result.ideal_step_seconds / result.step_seconds, result.predicted_utilisation_fraction, 1e-12)
  end)

  it("has the predicted utilisation of the fallback as its threshold", function()
    local result = plan(deepseek)
    local fallback = entry(result.alternatives, result.rollback.fallback.schedule)
    assert.equal(result.rollback.fallback.pipeline, fallback.parallelism.pipeline)
    assert.near(result.ideal_step_seconds / fallback.step_seconds, result.rollback.threshold_fraction, 1e-9)
    assert.is_false(result.rollback.inside_error_band)  -- 1F1B is 28 % slower
  end)

  it("says to measure both where the difference is inside the error band", function()
    local result = plan(llama)  -- Zero Bubble and interleaved 1F1B are half a percent apart
    assert.is_true(result.rollback.inside_error_band)
    assert.matches("measure both", result.rollback.paragraph)
  end)

  it("falls back from 1F1B to less depth or none", function()
    local none = plan(mixtral).rollback
    assert.is_true(none.fallback.schedule == "none" or none.fallback.pipeline < plan(mixtral).parallelism.pipeline)
    local deep = plan(llama, { parallelism = { schedule = "1f1b" }, cluster = { memory_per_gpu = "40GiB" } })
    local fallback = deep.rollback.fallback
    assert.is_true(not fallback or fallback.schedule == "none"
                   or fallback.schedule == "1f1b" and fallback.pipeline < deep.parallelism.pipeline)
  end)
end)

describe("the depth", function()
  it("follows the usual ranges only among candidates as good as the best, then is the smaller", function()
    local wide = policy_of [[set { tie_fraction = "1000%", frontier_depth_low = 8, frontier_depth_high = 8 }]]
    assert.equal(8, plan(deepseek, { parallelism = { schedule = "1f1b", tensor = 1, expert = 64 }, cluster = { memory_per_gpu = "200GiB" } },
                         wide).parallelism.pipeline)
    local any = policy_of [[set { tie_fraction = "1000%", wanted_tolerance = "1000%" } disable { id = "shallow_on_small_cluster" }]]
    local depths = plan(llama, { training = { recompute = "full" } }, any)
    assert.equal(2, depths.parallelism.pipeline)  -- the smallest that fits at all
    local narrow = policy_of [[set { tie_fraction = "0%", frontier_depth_low = 64, frontier_depth_high = 64 }]]
    local best = plan(deepseek, { parallelism = { tensor = 1, expert = 64 } }, narrow)
    assert.is_true(best.parallelism.pipeline < 64)
  end)

  it("need not be a power of two", function()
    local result = plan(llama, { cluster = { gpus = 96 }, training = { global_batch_size = 384 } })
    assert.equal(0, result.parallelism.pipeline % 3)
  end)
end)

describe("no pipeline", function()
  it("is always evaluated and shown, with a warning where it is faster", function()
    local slower = entry(plan(mixtral).alternatives, "none")
    assert.equal(1, slower.parallelism.pipeline)
    assert.is_true(slower.parallelism.tensor <= 8)
    assert.is_false(has(plan(mixtral).warnings, "pipeline_avoidable"))
    local result = plan(llama, { training = { recompute = "full" }, parallelism = { tensor = 8 } })
    local faster = entry(result.alternatives, "none")
    assert.is_true(faster.step_seconds < result.step_seconds)
    local words = entry(result.warnings, "pipeline_avoidable").message
    assert.matches("without a pipeline", words)
    -- its margin, and the error of such a comparison: docs/accuracy.md, pairs of runs with and without a pipeline
    assert.matches(string.format("(%.3g %% ± 26 %%)", 100 * (1 - faster.step_seconds / result.step_seconds)), words, 1, true)
    assert.matches("pipeline_avoidable", page_of(result))
  end)

  it("is never the answer of a free search, even where it is faster", function()
    local result = plan(llama, { training = { recompute = "full" }, parallelism = { tensor = 8 } })
    assert.is_true(result.parallelism.pipeline > 1)
    assert.equal("none", plan(llama, { training = { recompute = "full" }, parallelism = { tensor = 8, pipeline = 1 } }).schedule)
    local small = plan(llama, { model = "examples/models/qwen3-0.6b.json", cluster = { gpus = 8 } })
    assert.same({ "rejected", 1 }, { small.status, small.recommend.parallelism.pipeline })
  end)

  it("is recommended where the GPUs have no other layout", function()
    -- 13 ranks have no stage each in 12 layers; 28 B parameters need their 13 experts spread
    local spec = planning.merge(llama, { cluster = { gpus = 13 }, training = { global_batch_size = 130, sequence_length = 4096 } })
    spec.model = { layers = 12, hidden = 4096, heads = 32, kv_heads = 8, head_dim = 128, vocab = 32000, experts = 13,
                   experts_per_token = 2, expert_ffn = 14336 }
    local result = plan(spec)
    assert.same({ "rejected", "no_candidates" }, { result.status, result.reasons[1].id })
    assert.matches("no layout with a pipeline of 13 GPUs ", result.reasons[1].message)
    assert.same({ "none", 13, 13 }, { result.recommend.schedule, result.recommend.parallelism.data, result.recommend.parallelism.expert })
  end)

  it("is fixed too where the other degrees leave no rank for one", function()
    local result = plan(llama, { training = { recompute = "full" }, parallelism = { tensor = 8, data = 32 } })
    assert.same({ "planned", "none", 1 }, { result.status, result.schedule, result.parallelism.pipeline })
  end)
end)

describe("where nothing fits", function()
  it("the rank, the missing GiB and the smallest count of GPUs are told", function()
    local function at(gpus) return plan(deepseek, { cluster = { gpus = gpus }, training = { global_batch_size = 1536 },
                                                    parallelism = planning.none }) end
    local result = at(64)
    assert.equal("refused", result.status)
    assert.equal("does_not_fit", result.reasons[1].id)
    assert.matches("rank %d+ takes [%d.]+ GiB of [%d.]+ GiB usable, [%d.]+ GiB too much", result.reasons[1].message)
    assert.equal("planned", at(result.gpus_needed).status)
    for gpus = 128, result.gpus_needed - 8, 8 do assert.are_not.equal("planned", at(gpus).status) end
    -- one GPU: there is no pipeline at all, and what there is does not fit
    local alone = plan(llama, { cluster = { gpus = 1 } })
    assert.same({ "no_candidates", "does_not_fit" }, ids(alone.reasons))
    assert.equal("planned", plan(llama, { cluster = { gpus = alone.gpus_needed } }).status)
  end)
end)

describe("a faster schedule", function()
  it("is named with its gain, as a tie under 5 %, with what would change it", function()
    local result = plan(mixtral)
    assert.is_true(#result.dominated_by > 0)
    assert.equal("note", entry(result.warnings, "dominated").severity)  -- a tie
    for _, other in ipairs(result.dominated_by) do
      assert.is_true(other.gain_fraction > 0.01)  -- tie_fraction
      assert.equal(other.gain_fraction < 0.05, other.tie)
      local alternative = entry(result.alternatives, other.schedule)
      local here = alternative.fit ~= "does_not_fit" and 1 - alternative.step_seconds / result.step_seconds or 0
      assert.is_true(here <= other.gain_fraction + 1e-9)
    end
    local page = page_of(result)
    assert.matches("faster in simulation .* by [%d.]+ %%", page)
    assert.matches("tie", page)
    assert.matches('change { id = "small_run"', result.dominated_by[1].change, 1, true)
    local changed = plan(mixtral, {}, policy_of(result.dominated_by[1].change:match "change {.*}"))
    assert.equal(result.dominated_by[1].schedule, changed.schedule)
  end)

  it("is more than a tie from 5 % on", function()
    local result = plan(mixtral, { parallelism = { schedule = "gpipe" }, cluster = { memory_per_gpu = "200GiB" },
                                   training = { global_batch_size = 256 } })
    local found = false
    for _, other in ipairs(result.dominated_by) do
      if other.gain_fraction >= 0.05 then
        found = true
        assert.is_false(other.tie)
      end
    end
    assert.is_true(found)
    assert.equal("warning", entry(result.warnings, "dominated").severity)
  end)

  it("says where the wanted schedule can be run", function()
    assert.same({ "deepseek-dualpipe", "flagscale" }, (function(list)
      table.sort(list)
      return list
    end)(plan(deepseek).available_in))
    assert.matches("run in flagscale", page_of(plan(deepseek)))
  end)
end)
