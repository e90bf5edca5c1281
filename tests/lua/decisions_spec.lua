-- SPDX-License-Identifier: Apache-2.0
-- What was decided where more than one answer would do: rows that can hold together, ties, what a refusal recommends. Expected values are as
-- decided, or arithmetic that stands beside them.

local planning = require "planning"  -- first: it loads the module
local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local files = require "policy_files"

local plan, entry, ids = planning.plan, planning.entry, planning.ids
local has, policy_of, page_of = planning.has, planning.policy_of, planning.page_of
local deepseek, llama, mixtral = planning.deepseek, planning.llama, planning.mixtral
local gib = 2 ^ 30

teardown(files.remove)

local qwen = planning.merge(llama, { model = "examples/models/qwen3-235b-a22b.json",
                                     training = { sequence_length = 4096, global_batch_size = 2048 } })

describe("the decision table", function()
  it("gives an MoE with expert parallelism under 100 GPUs 1F1B, with DualPipe's numbers beside it", function()
    local result = plan(mixtral)
    assert.is_true(result.parallelism.expert > 1)
    assert.same({ "small_run", "1f1b" }, { result.decision, result.schedule })
    local dualpipe = entry(result.alternatives, "dualpipe")
    for _, figure in ipairs { "step_seconds", "bubble_fraction", "peak_bytes" } do assert.is_number(dualpipe[figure]) end
    assert.equal("moe_with_ep", plan(mixtral, { cluster = { gpus = 128 } }).decision)
  end)

  it("counts 500 as large, and heavy all-to-all without EP as the last row's", function()
    local function first_row(alltoall_fraction)
      for _, row in ipairs(planning.policy.policy.rows) do
        local record = { gpus = 500, architecture = "dense", expert_parallel = 1, alltoall_fraction = alltoall_fraction }
        if conditions.holds(row, planning.policy.policy, record) then return row.id, row.try[1] end
      end
    end
    assert.same({ "dense_large", "dualpipev" }, { first_row(0.0999) })
    assert.same({ "otherwise", "zero_bubble" }, { first_row(0.1) })
  end)

  it("plans an MoE without EP by the dense rows, and drops DualPipe", function()
    local small = plan(mixtral, { cluster = { gpus = 256 }, parallelism = { expert = 1 } })
    assert.same({ "dense", "zero_bubble" }, { small.decision, small.schedule_family })
    assert.is_true(has(small.dropped, "dualpipe_without_ep"))
    local large = plan(mixtral, { cluster = { gpus = 512 }, parallelism = { expert = 1 }, training = { global_batch_size = 4096 } })
    assert.same({ "dense_large", "dualpipev" }, { large.decision, large.schedule })
  end)

  it("lets slow links decide before a missing kernel, which is reported too", function()
    local result = plan(deepseek, { cluster = { alltoall_kernel = false, network = { per_gpu = "200Gbps" } } })
    assert.same({ "planned", "dualpipev" }, { result.status, result.schedule })
    assert.same({ "slow_interconnect", "no_alltoall_kernel" }, ids(result.reasons))
    assert.matches("also true", result.reasons[2].message)
    assert.matches("DualPipeV wants the same kernel", result.reasons[2].message)
  end)

  it("plans Zero Bubble's fastest member that fits, in a tie the earlier one", function()
    local function member(tie)
      local result = plan(llama, { parallelism = { pipeline = 4 } }, policy_of(string.format("set { tie_fraction = %g }", tie)))
      assert.equal("zero_bubble", result.schedule_family)
      return result
    end
    local fastest = member(0)
    for _, name in ipairs { "zb_h1", "zb_v", "zb_h2", "zb_auto" } do
      local other = entry(fastest.alternatives, name)
      if other and other.fit ~= "does_not_fit" then assert.is_true(other.step_seconds > fastest.step_seconds, name) end
    end
    -- ZB-H1, the first of them, fits too: it is the plan as soon as what it loses counts as a tie
    assert.equal("zb_v", fastest.schedule)
    local first = entry(fastest.alternatives, "zb_h1")
    assert.not_equal("does_not_fit", first.fit)
    local lost = first.step_seconds / fastest.step_seconds - 1
    assert.equal("zb_v", member(0.99 * lost).schedule)
    assert.equal("zb_h1", member(1.01 * lost).schedule)
  end)
end)

describe("one GPU", function()
  -- Llama-2-7B has 6,738,415,616 parameters. On 64 GPUs, at 4,096 tokens: bf16 weights, fp32 gradients, Adam's 12 bytes over 64; of each of
  -- 32 layers 8h + 4ad + 4kd + 4a + 6f = 131,712 bytes a token; logits 4 s h (1 + V/h): 59.5 GB, and beside these a process (1,332 MiB) and
  -- buffers of up to 3 GiB.
  local state = 6738415616 * (2 + 4 + 12 / 64)
  local activations = 4096 * 32 * (8 * 4096 + 8 * 4096 + 4 * 32 + 6 * 11008) + 4 * 4096 * (4096 + 32000)
  local function seven(changes)
    return plan(planning.merge(llama, { cluster = { gpus = 64 }, model = "examples/models/llama-2-7b.json",
                                        training = { sequence_length = 4096, recompute = "none" } }), changes)
  end

  it("holds a model when weights, gradients, ZeRO-1 state and one microbatch do", function()
    local result = seven()
    assert.same({ "rejected", "fits_one_gpu" }, { result.status, result.reasons[1].id })
    local known = state + activations
    assert.is_true(result.one_gpu.bytes > known + 1332 / 1024 * gib and result.one_gpu.bytes < known + 4.3 * gib)
    -- ZeRO-3 shows what weights and gradients would save: 6 bytes a parameter but for a 64th, and 10 of the 202 M of a layer in flight
    assert.near((6738415616 * 6 * (1 - 1 / 64) - 10 * 202383360) / gib, (result.one_gpu.bytes - result.one_gpu.sharded_bytes) / gib, 1.5)
    assert.same({ 64, 1, 1, 1 }, { result.recommend.parallelism.data, result.recommend.parallelism.tensor,
                                   result.recommend.parallelism.pipeline, result.recommend.parallelism.expert })
    assert.is_true(result.recommend.peak_bytes > known)
    assert.matches("ZeRO%-3", page_of(result))
  end)

  it("does not where the headroom is not left, or the optimizer is sharded over too few", function()
    assert.equal("planned", seven({ cluster = { memory_per_gpu = "60GiB" } }).status)       -- 59.5 GB > 0.92 × 60 GiB
    assert.equal("rejected", seven({ cluster = { memory_per_gpu = "72GiB" } }).status)      -- + 4.3 GiB < 0.92 × 72 GiB
    assert.are_not.equal("rejected", seven({ cluster = { gpus = 2 } }).status)              -- 40.4 GB of optimizer state instead of 1.3
    assert.equal("rejected", seven({ cluster = { memory_per_gpu = "60GiB" }, training = { recompute = "full" } }).status)
    -- ZeRO-3 does not decide: sharded over 64 a 70B would take 1.1 GB a GPU of state and its activations
    assert.equal("planned", plan(llama).status)
  end)
end)

describe("schedules", function()
  it("M under 2 P, and odd M for DualPipe, are illegal whatever a site says; odd M for DualPipeV is policy", function()
    local loose = policy_of [[
      set { min_microbatches_per_rank = 1, reason = "a test" }
      disable { id = "odd_microbatches", reason = "a test" }
    ]]
    local function at(schedule, microbatches, policy)
      local depth = schedule == "dualpipe" and 16 or 8
      return plan(deepseek, { training = { global_batch_size = microbatches * 2048 / depth },
                              parallelism = { schedule = schedule, pipeline = depth } }, policy)
    end
    assert.equal("too_few_microbatches", at("dualpipe", 30).reasons[1].id)
    assert.equal("too_few_microbatches", at("dualpipev", 14).reasons[1].id)
    assert.equal("engine.too_few_microbatches", at("dualpipe", 30, loose).reasons[1].id)
    assert.equal("engine.too_few_microbatches", at("dualpipev", 14, loose).reasons[1].id)
    assert.equal("engine.odd_microbatches", at("dualpipe", 33, loose).reasons[1].id)
    local odd = at("dualpipev", 33, loose)
    assert.same({ "planned", 33 }, { odd.status, odd.microbatches })
    assert.same({ "odd_microbatches", "min_microbatches_per_rank" }, { entry(odd.loosened, "odd_microbatches").id,
                                                                      entry(odd.loosened, "min_microbatches_per_rank").id })
  end)

  it("GPipe's bubble equals 1F1B's at every M; its memory is what differs", function()
    for _, ranks in ipairs { 2, 4, 8 } do
      for _, microbatches in ipairs { 4, 8, 32 } do
        local bubbles, peaks = {}, {}
        for _, kind in ipairs { "gpipe", "1f1b" } do
          local schedule = engine.schedule { kind = kind, ranks = ranks, microbatches = microbatches }
          local simulated = schedule:simulate { F = 1, I = 1, W = 1 }
          -- M (F + B) of work on each rank, (P − 1)(F + B) of bubble
          assert.near((microbatches + ranks - 1) * 3, simulated.makespan, 1e-9)
          bubbles[kind], peaks[kind] = simulated.bubble_fraction, schedule:peaks().freed_at_w[1]
        end
        assert.equal(bubbles["1f1b"], bubbles.gpipe)
        assert.same({ microbatches, math.min(microbatches, ranks) }, { peaks.gpipe, peaks["1f1b"] })
      end
    end
    -- few enough microbatches that GPipe fits too; the same layers for both, as each has a split of its own that ties memory with time
    local function planned(schedule)
      return plan(llama, { training = { global_batch_size = 64 },
                           parallelism = { tensor = 8, pipeline = 4, schedule = schedule, layers_per_stage = { 20, 20, 20, 20 } } })
    end
    local result, gpipe = planned "1f1b", planned "gpipe"
    assert.near(result.bubble.fraction, gpipe.bubble.fraction, 1e-6)
    assert.is_true(gpipe.memory.ranks[1].total_bytes > result.memory.ranks[1].total_bytes)
  end)

  it("P over 64 is rejected with its computed bubble, though the bubble saturates", function()
    local result = plan(llama, { cluster = { gpus = 520 }, training = { global_batch_size = 512 },
                                 parallelism = { tensor = 8, pipeline = 65, schedule = "1f1b" } })
    local printed = tonumber(result.reasons[1].message:match "bubble ([%d.]+) %%")
    -- 80 layers on 65 stages: some have two, so most ranks wait for half of the steady phase beside 64 / 576
    assert.is_true(printed > 100 * 64 / 576 and printed < 60)
    local before = 0
    for _, ranks in ipairs { 8, 16, 32, 64, 128 } do  -- M / P 4: towards 1 / (1 + 4)
      local microbatches = 4 * ranks
      local seconds = engine.bubble { schedule = "1f1b", ranks = ranks, microbatches = microbatches, F = 1, I = 1, W = 1 }.seconds
      local fraction = seconds / (seconds + 3 * microbatches)
      assert.near((ranks - 1) / (microbatches + ranks - 1), fraction, 1e-12)
      assert.is_true(fraction > before and fraction < 1 / 5)
      before = fraction
    end
  end)

  it("DualPipeV holds one copy of the parameters at equal devices, and says so", function()
    local result = plan(llama, { cluster = { gpus = 512 }, training = { global_batch_size = 4096 } })
    assert.equal("dualpipev", result.schedule)
    assert.same({ 1, 0 }, { result.replication.copies, result.replication.extra_bytes })
    assert.matches("copies 1 copy of the parameters at equal devices", page_of(result))
  end)

  it("under full recompute a split backward still pays for what W needs", function()
    local result = plan(llama, { training = { recompute = "full", global_batch_size = 256 },
                                 parallelism = { tensor = 8, context = 1, pipeline = 4, schedule = "1f1b" } })
    local here, peak = result.parallelism, {}
    for _, name in ipairs { "zb_h1", "zb_h2" } do
      local other = entry(result.alternatives, name)
      assert.same(here, other.parallelism)
      peak[name] = other.peak_bytes
    end
    local one_f1b = 0
    for _, rank in ipairs(result.memory.ranks) do one_f1b = math.max(one_f1b, rank.total_bytes) end
    -- one pending W keeps the inputs of qkv, o, gate and up, down: 2 (3h + f) bytes a token and layer, at TP 8; of 20 layers 1.49 GiB
    local pending = 8192 * 20 * 2 * (3 * 8192 + 28672) / 8
    assert.is_true(peak.zb_h1 > one_f1b + pending)
    assert.is_true(peak.zb_h2 > peak.zb_h1 + pending)
  end)
end)

describe("a warning", function()
  it("says that M / P does not move with P", function()
    for _, depth in ipairs { 4, 8, 16, 32 } do
      local result = plan(deepseek, { cluster = { memory_per_gpu = "400GiB" }, parallelism = { pipeline = depth, schedule = "1f1b" } })
      assert.equal(7.5, result.microbatches_per_rank)
      assert.matches("not with P", entry(result.warnings, "few_microbatches").message)
    end
  end)

  it("says which of batch, microbatch size, TP or GPUs would move M / P, and by how much: each really does", function()
    local base = planning.merge(llama, { training = { global_batch_size = 320, micro_batch_size = 2, recompute = "full" },
                                         parallelism = { tensor = 4, context = 1, pipeline = 8, schedule = "1f1b" } })
    local result = plan(base)
    assert.equal(20 / 8, result.microbatches_per_rank)  -- 320 · 4 / (256 · 2) = 2.5
    local message = entry(result.warnings, "few_microbatches").message
    local batch = tonumber((message:match "a batch of ([%d,]+)":gsub(",", "")))
    local gpus = tonumber((message:match "or ([%d,]+) GPUs":gsub(",", "")))
    assert.equal(1024, batch)                           -- 320 · 8 / 2.5
    assert.equal(8, plan(base, { training = { global_batch_size = batch } }).microbatches_per_rank)
    assert.equal(64, gpus)                              -- 256 · 2.5 / 8 = 80, of which a batch of 320 has no whole microbatches
    assert.is_true(plan(base, { cluster = { gpus = gpus } }).microbatches_per_rank >= 8)
    -- 4 · 8 / 2.5 = 12.8, so TP 16 would do too: across two hosts it takes longer, and so it is not told
    assert.is_true(plan(base, { parallelism = { tensor = 16 } }).step_seconds > result.step_seconds)
    assert.is_nil(message:find("TP 16", 1, true))
    assert.is_nil(message:match "microbatch size of")   -- 2 · 2.5 / 8 < 1: a smaller one would not do

    local many = plan(base, { training = { global_batch_size = 6400 } })
    assert.equal(50, many.microbatches_per_rank)
    local note = entry(many.warnings, "many_microbatches")
    assert.equal("note", note.severity)
    -- 2 · 50 / 16 = 6.25, and 800 sequences of a pipeline have no 7: a microbatch size of 8, which takes longer here, and so it is not told
    local moved = plan(base, { training = { global_batch_size = 6400, micro_batch_size = 8 } })
    assert.is_true(moved.microbatches_per_rank <= 16 and moved.microbatches_per_rank > 8)
    assert.is_true(moved.step_seconds > many.step_seconds)
    assert.matches("; nothing that brings M/P to 16 takes less GPU time a token", note.message, 1, true)
  end)
end)

describe("what the spec fixes", function()
  it("is judged, never changed", function()
    local given = { tensor = 2, expert = 32, pipeline = 8, schedule = "zb_h1" }
    local result = plan(qwen, { parallelism = given, training = { recompute = "full" } })
    assert.equal("planned", result.status)
    assert.same({ 2, 32, 8, "zb_h1" }, { result.parallelism.tensor, result.parallelism.expert, result.parallelism.pipeline, result.schedule })
  end)

  it("is named with the nearest legal value", function()
    local odd = plan(deepseek, { cluster = { gpus = 1920 }, parallelism = { pipeline = 15, schedule = "dualpipe" } })
    local nearest = entry(odd.dropped, "dualpipe_odd_depth").nearest
    assert.equal("pipeline_parallel", nearest.field)
    assert.is_true(nearest.value == 14 or nearest.value == 16)
    local deep = plan(llama, { cluster = { gpus = 520 }, parallelism = { tensor = 8, pipeline = 65 }, training = { global_batch_size = 520 } })
    assert.equal(64, entry(deep.dropped, "too_deep").nearest.value)
    local few = plan(deepseek, { training = { global_batch_size = 3072 }, parallelism = { pipeline = 16, schedule = "dualpipe" } })
    assert.equal(2, entry(few.dropped, "too_few_microbatches").nearest.value)
  end)

  it("contradicts the batch only as an error in the input", function()
    local problem = planning.problem(deepseek, { parallelism = { pipeline = 16, microbatches = 121 } })
    assert.equal(2, problem.status)
    assert.matches("microbatches is 121: .*nearest: 120", problem.message)
    assert.equal(120, plan(deepseek, { parallelism = { pipeline = 16, microbatches = 120 } }).microbatches)
  end)
end)
