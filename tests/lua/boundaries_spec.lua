-- SPDX-License-Identifier: Apache-2.0
-- What the planner is for: what goes in, what a plan says, what is rejected and what refused, on both sides
-- of every boundary. Expected values are what was asked for, or arithmetic that stands beside them.

local planning = require "planning"  -- first: it loads the module
local conditions = require "pipeplan.policy.conditions"
local text = require "pipeplan.report.text"

local plan, entry, ids = planning.plan, planning.entry, planning.ids
local has, assumption = planning.has, planning.assumption
local deepseek, llama, mixtral = planning.deepseek, planning.llama, planning.mixtral
local gib = 2 ^ 30

-- DeepSeek-V3 at P 16, DP 128, so M = batch / 128.
local function at_16(microbatches, schedule)
  return plan(deepseek, { training = { global_batch_size = 128 * microbatches }, parallelism = { pipeline = 16, schedule = schedule } })
end

describe("input", function()
  it("takes GPUs, interconnect, accelerator and memory of a cluster", function()
    local result = plan(llama, { cluster = { memory_per_gpu = "64GiB", gpus_per_node = 4 } })
    assert.equal(256, result.cluster.gpus)
    assert.equal(4, result.cluster.gpus_per_node)
    assert.equal("H100-SXM", result.cluster.accelerator)
    assert.equal("infiniband", result.cluster.fabric)
    assert.near(400e9 / 8, result.cluster.network_bytes_per_second, 1)
    assert.equal(64 * gib, result.cluster.device_bytes)
    assert.near(0.08 * 64 * gib, result.memory.headroom_bytes, 1)
    for _, rank in ipairs(result.memory.ranks) do assert.is_true(rank.total_bytes <= 0.92 * 64 * gib) end
  end)

  it("takes a GPU that no catalogue knows by its memory and peak, and says what it assumed", function()
    local result = plan(llama, { cluster = { accelerator = planning.none, memory_per_gpu = "96GiB", flops = "800TFLOPS" } })
    assert.equal("planned", result.status)
    assert.equal(96 * gib, result.cluster.device_bytes)
    assert.is_not_nil(assumption(result, "cluster.network.scale_up_per_gpu"))
    assert.is_not_nil(assumption(result, "cluster.memory_bandwidth"))
  end)

  it("counts a Hugging Face config: total and active parameters, MoE or dense, layers", function()
    -- DeepSeek-V3 report §4.2: 671 B total, 37 B active, 61 layers; the tensors of its checkpoint without MTP sum to 671,026,419,200
    local moe = plan(deepseek).model
    assert.same({ "moe", 61, 671026419200 }, { moe.architecture, moe.layers, moe.total_parameters })
    assert.near(37e9, moe.active_parameters_without_embedding, 0.5e9)
    -- meta-llama/Meta-Llama-3-70B: its index sums to 70,553,706,496
    local dense = plan(llama).model
    assert.same({ "dense", 80, 70553706496, 70553706496 },
                { dense.architecture, dense.layers, dense.total_parameters, dense.active_parameters })
  end)

  it("takes total, active and layers inline, and says what it derived", function()
    local base = planning.merge(deepseek, { model = planning.none })
    base.model = { architecture = "moe", total = "671B", active = "37B", layers = 61 }
    local result = plan(base)
    assert.equal("planned", result.status)
    assert.same({ "moe", 61, 671e9, 37e9 },
                { result.model.architecture, result.model.layers, result.model.total_parameters, result.model.active_parameters })
    -- 12 · 61 · h² + 2 · 128,000 · h = 37 B has its root at h = 6,937; DeepSeek-V3's is 7,168
    assert.near(6937, assumption(result, "model.hidden").value, 256)
    assert.is_not_nil(assumption(result, "model.expert_ffn"))
  end)

  it("spends the token budget: twice the tokens, the same plan for twice the GPU-hours", function()
    local once, twice = plan(llama, { training = { tokens = "1T" } }), plan(llama, { training = { tokens = "2T" } })
    assert.near(1e12 / (1024 * 8192) * once.step_seconds * 256 / 3600, once.gpu_hours, once.gpu_hours * 1e-9)
    assert.near(2 * once.gpu_hours, twice.gpu_hours, once.gpu_hours * 1e-9)
    assert.same(once.parallelism, twice.parallelism)
    assert.near(once.gpu_hours / 256 / 24, once.training_days, 1e-6)
  end)
end)

describe("a plan says", function()
  it("P as the memory budget has it: no shallower than the weights and gradients of a stage allow", function()
    -- 70.6 B parameters × 6 bytes (bf16 weights, fp32 gradients) at TP 8 are 49.3 GiB: over 22.1 usable GiB of 24 at P 1 and P 2
    local result = plan(llama, { cluster = { memory_per_gpu = "24GiB" }, training = { recompute = "full" }, parallelism = { tensor = 8 } })
    assert.equal("planned", result.status)
    assert.is_true(result.parallelism.pipeline > 49.3 / 22.08)
    assert.is_true(has(result.dropped, "does_not_fit"))
  end)

  it("P 4 at most on a small cluster, 16 to 32 for a frontier MoE", function()
    assert.is_true(plan(mixtral).parallelism.pipeline <= 4)
    local depth = plan(deepseek).parallelism.pipeline
    assert.is_true(depth >= 16 and depth <= 32)
  end)

  it("an even M for DualPipe and DualPipeV", function()
    for _, schedule in ipairs { "dualpipe", "dualpipev" } do
      for _, batch in ipairs { 7680, 15360, 23040 } do  -- M odd at some depth of each
        local result = plan(deepseek, { training = { global_batch_size = batch }, parallelism = { schedule = schedule } })
        assert.equal("planned", result.status)
        assert.equal(0, result.microbatches % 2)
      end
    end
  end)

  it("M / P against the usual 8 to 16, from the batch", function()
    local expected = {
      [126] = "few_microbatches",              -- 7.875
      [128] = false, [256] = false,            -- 8, 16
      [258] = "many_microbatches",             -- 16.125
    }
    for microbatches, warning in pairs(expected) do
      local result = at_16(microbatches)
      assert.equal(microbatches, result.microbatches)
      assert.near(microbatches / 16, result.microbatches_per_rank, 1e-12)
      for _, id in ipairs { "few_microbatches", "many_microbatches" } do
        assert.equal(id == warning, has(result.warnings, id), microbatches .. " " .. id)
      end
    end
  end)

  it("M with the activations it keeps at this sequence length", function()
    local function at(length, batch)
      return plan(llama, { parallelism = { tensor = 8, context = 1, pipeline = 4, schedule = "1f1b" },
                           training = { sequence_length = length, global_batch_size = batch } })
    end
    local short, long = at(8192, 1024), at(16384, 512)
    -- what a rank keeps is proportional to the tokens of a microbatch (fused attention); M / P halves with the batch
    assert.near(2, long.memory.ranks[1].activations_bytes / short.memory.ranks[1].activations_bytes, 0.01)
    assert.same({ 32, 16 }, { short.microbatches_per_rank, long.microbatches_per_rank })
    assert.equal(short.tokens_per_step, long.tokens_per_step)
  end)

  it("Zero Bubble for a dense model under 500 GPUs", function()
    for _, gpus in ipairs { 128, 496 } do
      local result = plan(llama, { cluster = { gpus = gpus }, training = { global_batch_size = 4 * gpus } })
      assert.same({ "dense", "zero_bubble", "zero_bubble" }, { result.decision, result.schedule_wanted, result.schedule_family })
    end
  end)

  it("DualPipe for an MoE with expert parallelism", function()
    local result = plan(deepseek)
    assert.same({ "moe_with_ep", "dualpipe" }, { result.decision, result.schedule })
  end)

  it("DualPipeV for a dense model from 500 GPUs on", function()
    for _, gpus in ipairs { 500, 512 } do
      local result = plan(llama, { cluster = { gpus = gpus }, training = { global_batch_size = 4 * gpus } })
      assert.same({ "dense_large", "dualpipev" }, { result.decision, result.schedule })
    end
  end)

  it("1F1B for a run under 100 GPUs, not for one of 100", function()
    for gpus, decision in pairs { [96] = "small_run", [100] = "dense" } do
      local result = plan(llama, { cluster = { gpus = gpus }, training = { global_batch_size = 4 * gpus } })
      assert.equal(decision, result.decision)
    end
    assert.equal("1f1b", plan(mixtral).schedule)
  end)

  it("the row for 99, 100, 499 and 500 GPUs", function()
    local policy = planning.policy.policy
    local function first_row(record)
      for _, row in ipairs(policy.rows) do
        if conditions.holds(row, policy, record) then return row.id end
      end
    end
    local rows = {}
    for i, gpus in ipairs { 99, 100, 499, 500 } do
      rows[i] = first_row { gpus = gpus, architecture = "dense", expert_parallel = 1, alltoall_fraction = 0 }
    end
    assert.same({ "small_run", "dense", "dense", "dense_large" }, rows)
    assert.equal("moe_with_ep", first_row { gpus = 100, architecture = "moe", expert_parallel = 2, alltoall_fraction = 0.2 })
    assert.equal("small_run", first_row { gpus = 99, architecture = "moe", expert_parallel = 2, alltoall_fraction = 0.2 })
  end)

  it("the bubble as the idle share of all ranks, and 1F1B's as (P − 1)/(M + P − 1)", function()
    local result = plan(deepseek)
    local idle = 0
    for _, seconds in ipairs(result.bubble.idle_per_rank_seconds) do idle = idle + seconds end
    assert.near(idle / (16 * result.step.pipeline_seconds), result.bubble.fraction, 1e-9)
    local one_f1b = plan(llama, { parallelism = { tensor = 8, pipeline = 4, schedule = "1f1b" }, training = { global_batch_size = 256 } })
    assert.equal(32, one_f1b.microbatches)
    assert.near(3 / 35, one_f1b.bubble.closed_form_fraction, 0.003)
    -- 80 layers and a head worth 1.2 of them make 20.3 a stage: stages of 21 idle the others by another 3.4 %
    assert.is_true(one_f1b.bubble.fraction >= 3 / 35 and one_f1b.bubble.fraction <= 3 / 35 + 0.034)
  end)

  it("GPU-hours saved against 1F1B over the whole token budget", function()
    local result = plan(deepseek)
    local steps = 14.8e12 / (15360 * 4096)
    local one_f1b = entry(result.alternatives, "1f1b")
    assert.same(result.parallelism, one_f1b.parallelism)
    local saved = steps * (one_f1b.step_seconds - result.step_seconds) * 2048 / 3600
    assert.near(saved, entry(result.gpu_hours_saved, "1f1b").total, saved * 1e-9)
    assert.is_true(saved > 0)
    assert.matches("saves +%d+ k GPU%-hours against 1F1B", text.render(result))
  end)

  it("whether DualPipe's two copies fit, and how dense the parameters are", function()
    local result = plan(deepseek)
    assert.equal(2, result.replication.copies)
    assert.is_true(result.replication.extra_bytes > 0)
    assert.near(result.replication.unique_parameters_per_gpu / result.replication.resident_parameters_per_gpu,
                result.replication.density_fraction, 1e-12)
    assert.is_true(result.replication.density_fraction <= 0.5)  -- two copies: half at best
    local one = plan(deepseek, { parallelism = { pipeline = 8, schedule = "dualpipev" } })
    assert.equal(1, one.replication.copies)
    assert.equal(0, one.replication.extra_bytes)
  end)

  it("that the copies do not fit where one would", function()
    -- A copy of 8 of Mixtral's layers at EP 8 is 8 × (3 · 4096 · 14336 + 4096 · (2 · 4096 + 2 · 1024)) = 1.74 B parameters: at 6 bytes of
    -- weights and gradients 9.75 GiB that DualPipe needs once more
    local function at(memory)
      return plan(mixtral, { cluster = { gpus = 128, memory_per_gpu = memory }, training = { recompute = "full" },
                             parallelism = { schedule = "dualpipe", tensor = 1, expert = 8, pipeline = 4, layers_per_stage = { 8, 8, 8, 8 } } })
    end
    local fits = at "56GiB"
    assert.equal("planned", fits.status)
    local rank = fits.memory.ranks[2]
    assert.near(2 * 9.75, (rank.parameters_bytes + rank.gradients_bytes) / gib, 0.01)
    local refused = at "44GiB"
    assert.equal("refused", refused.status)
    assert.same({ "replication_does_not_fit" }, ids(refused.reasons))
    assert.matches("with two copies of its stages, %d+%.%d GiB with one", refused.reasons[1].message)
  end)

  it("which all-to-all kernel to use, and what it needs", function()
    local hopper = plan(deepseek).alltoall_kernel
    assert.equal("deepep", hopper.name)
    assert.is_true(#hopper.needs > 0)
    assert.is_nil(plan(llama).alltoall_kernel.name)  -- dense: no all-to-all
    -- DeepEP cannot run on EFA (awslabs/awsome-distributed-ai 1116): another kernel or none, by the size of the expert group
    local efa = plan(deepseek, { cluster = { network = { fabric = "efa" } }, parallelism = { expert = 32 } })
    assert.equal("uccl_ep", efa.alltoall_kernel.name)
  end)

  it("when to roll back, as its last paragraph: utilisation, 1000 steps, a simpler schedule by name", function()
    local result = plan(deepseek)
    local rollback = result.rollback
    assert.equal(1000, rollback.window_steps)
    assert.is_true(rollback.threshold_fraction > 0 and rollback.threshold_fraction < result.predicted_utilisation_fraction)
    assert.is_not_nil(rollback.fallback.schedule)
    local page = text.render(result)
    local paragraph = page:match "\n\nrollback (.-)%s*$"
    assert.is_nil(paragraph:find("\n\n", 1, true))
    local words = paragraph:gsub("%s+", " ")
    assert.matches("Over the first 1,000 steps", words)
    assert.matches("utilisation as", words)
    assert.matches(string.format("Below %.1f %%%% ", 100 * rollback.threshold_fraction), words)
    assert.matches("switch to 1F1B at P 16", words)
  end)
end)

describe("it is rejected", function()
  it("to run DualPipe without expert parallelism", function()
    local function at(expert)
      return plan(mixtral, { cluster = { gpus = 256 }, parallelism = { schedule = "dualpipe", expert = expert } })
    end
    local result = at(1)
    assert.equal("rejected", result.status)
    assert.same({ "dualpipe_without_ep" }, ids(result.reasons))
    assert.matches("https://arxiv.org/abs/2412.19437", result.reasons[1].source, 1, true)
    assert.are_not.equal("dualpipe", result.recommend.schedule)
    assert.equal("planned", at(2).status)
  end)

  it("to go deeper than 64", function()
    local function at(depth)
      return plan(llama, { cluster = { gpus = 8 * depth }, training = { global_batch_size = 512 },
                           parallelism = { tensor = 8, pipeline = depth, schedule = "1f1b" } })
    end
    assert.equal("planned", at(64).status)
    local result = at(65)
    assert.equal("rejected", result.status)
    assert.same({ "too_deep" }, ids(result.reasons))
    assert.matches("https://arxiv.org/abs/2104.04473", result.reasons[1].source, 1, true)
  end)

  it("to run DualPipe or DualPipeV with an odd M", function()
    for _, schedule in ipairs { "dualpipe", "dualpipev" } do
      local function at(batch) -- DP 128: M 33 or 34; for DualPipeV at P 8 DP 256
        local depth = schedule == "dualpipe" and 16 or 8
        return plan(deepseek, { training = { global_batch_size = batch * 2048 / depth },
                                parallelism = { schedule = schedule, pipeline = depth } })
      end
      assert.equal("planned", at(34).status)
      local result = at(33)
      assert.equal("rejected", result.status)
      assert.same({ "odd_microbatches" }, ids(result.reasons))
      assert.matches("https://github.com/deepseek-ai/DualPipe", result.reasons[1].source, 1, true)
    end
    assert.equal("planned", at_16(33, "1f1b").status)
  end)

  it("to pipeline a model that fits one GPU; data parallelism is recommended", function()
    local function small(parallelism, memory)
      return plan(llama, { model = "examples/models/llama-3.1-8b.json", cluster = { memory_per_gpu = memory },
                           training = { sequence_length = 4096 }, parallelism = parallelism })
    end
    for _, parallelism in ipairs { {}, { pipeline = 4 }, { tensor = 2, pipeline = 2 }, { schedule = "1f1b" } } do
      local result = small(parallelism)
      assert.equal("rejected", result.status)
      assert.same({ "fits_one_gpu" }, ids(result.reasons))
      assert.matches("https://arxiv.org/abs/2104.04473", result.reasons[1].source, 1, true)
      local recommended = result.recommend
      assert.same({ "none", 1, 1, 256 }, { recommended.schedule, recommended.parallelism.pipeline, recommended.parallelism.tensor,
                                           recommended.parallelism.data })
      assert.is_true(recommended.peak_bytes <= result.one_gpu.usable_bytes)
    end
    assert.equal("planned", small({ pipeline = 1 }).status)
    -- where no pipeline could be laid out anyhow, and data parallelism needs another batch: 99 · 41 = 4,059
    local odd = plan(llama, { model = "examples/models/llama-2-7b.json", cluster = { gpus = 99 },
                              training = { global_batch_size = 4096, recompute = "full", sequence_length = 4096 } })
    assert.same({ "rejected", "fits_one_gpu", 99, 41 },
                { odd.status, odd.reasons[1].id, odd.recommend.parallelism.data, odd.recommend.microbatches })
    -- 8.03 B parameters × 6 bytes are 44.9 GiB: over a 40 GiB GPU
    assert.equal("planned", small({ pipeline = 4 }, "40GiB").status)
  end)
end)

describe("it is refused", function()
  it("to run DualPipe over 200 Gb/s per GPU or less; DualPipeV is recommended", function()
    local function at(speed, schedule)
      return plan(deepseek, { cluster = { network = { per_gpu = speed } }, parallelism = { schedule = schedule } })
    end
    for _, speed in ipairs { "100Gbps", "200Gbps", "25GB/s" } do
      local result = at(speed)
      assert.same({ "planned", "dualpipev", "dualpipe" }, { result.status, result.schedule, result.schedule_wanted })
      assert.equal("slow_interconnect", result.reasons[1].id)
      assert.matches("https://github.com/deepseek-ai/DeepEP", result.reasons[1].source, 1, true)
    end
    assert.equal("dualpipe", at("201Gbps").schedule)
    local fixed = at("200Gbps", "dualpipe")
    assert.same({ "refused", "dualpipev" }, { fixed.status, fixed.recommend.schedule })
  end)

  it("to run DualPipe without a custom all-to-all kernel; Zero Bubble is recommended", function()
    local qwen = { model = "examples/models/qwen3-235b-a22b.json", cluster = { gpus = 256, accelerator = "H100-SXM" },
                   training = { sequence_length = 4096, global_batch_size = 2048 } }
    local function at(kernel, schedule)
      local spec = planning.merge(llama, qwen)
      spec.cluster.alltoall_kernel, spec.parallelism = kernel, { schedule = schedule }
      return plan(spec)
    end
    assert.equal("dualpipe", at("deepep").schedule)
    local result = at(false)
    assert.same({ "planned", "zero_bubble", "dualpipe" }, { result.status, result.schedule_family, result.schedule_wanted })
    assert.equal("no_alltoall_kernel", result.reasons[1].id)
    assert.matches("https://arxiv.org/abs/2412.19437", result.reasons[1].source, 1, true)
    local fixed = at(false, "dualpipe")
    assert.same({ "refused", "no_alltoall_kernel" }, { fixed.status, fixed.reasons[1].id })
    assert.is_not_nil(fixed.recommend)
  end)

  it("to plan a pipeline for less than a billion tokens; data and tensor parallelism are recommended", function()
    local function at(tokens, parallelism) return plan(llama, { training = { tokens = tokens }, parallelism = parallelism }) end
    assert.equal("planned", at("1B").status)
    for _, parallelism in ipairs { {}, { pipeline = 4 }, { schedule = "dualpipev" } } do
      local result = at(999999999, parallelism)
      assert.equal("refused", result.status)
      assert.is_true(has(result.reasons, "short_run"))
      assert.matches("https://arxiv.org/abs/2203.15556", entry(result.reasons, "short_run").source, 1, true)
      assert.same({ "none", 1 }, { result.recommend.schedule, result.recommend.parallelism.pipeline })
      assert.is_true(result.recommend.parallelism.tensor > 1)
    end
    assert.equal("planned", at(999999999, { pipeline = 1 }).status)
    -- nor where no pipeline could be laid out anyhow
    local prime = plan(llama, { cluster = { gpus = 499 }, training = { tokens = 999999999, global_batch_size = 499 } })
    assert.same({ "refused", "short_run" }, { prime.status, prime.reasons[1].id })
  end)

  it("recommends a layout without a pipeline with recompute where none fits without", function()
    -- 80 layers hold some 260 KB a token and layer of 16,384 tokens: 320 GiB, over 8 TP ranks 40, beside 52 of weights and gradients;
    -- recomputed, 80 · 16,384 · 2 · 8,192 / 8 bytes = 2.5 GiB
    local result = plan(llama, { training = { tokens = 999999999, recompute = planning.none, sequence_length = 16384, global_batch_size = 512 } })
    assert.equal("none", result.recommend.schedule)
    assert.is_true(result.recommend.fit ~= "does_not_fit")
    assert.matches("with recompute of norms and activations", result.recommend.why, 1, true)
    assert.equal("modules", result.recommend.recompute)
  end)
end)

describe("DualPipe", function()
  it("needs an even depth over 1", function()
    for _, depth in ipairs { 1, 15 } do
      local result = plan(deepseek, { cluster = { gpus = 1920 }, parallelism = { pipeline = depth, schedule = "dualpipe" } })
      assert.equal("rejected", result.status)
      assert.is_true(has(result.reasons, "dualpipe_odd_depth"))
    end
    assert.equal("planned", at_16(32, "dualpipe").status)
  end)

  it("does not go together with virtual stages", function()
    local result = plan(deepseek, { parallelism = { pipeline = 16, virtual = 2, schedule = "dualpipe" } })
    assert.same({ "rejected", "dualpipe_virtual" }, { result.status, result.reasons[1].id })
  end)

  it("needs M of 2 P at least", function()
    local result = at_16(30, "dualpipe")
    assert.same({ "rejected", "too_few_microbatches" }, { result.status, result.reasons[1].id })
    assert.equal("planned", at_16(32, "dualpipe").status)
  end)

  it("needs untied embeddings in FlagScale or where no framework is named, not in DeepSeek's package", function()
    local tied = planning.merge(deepseek, { cluster = { gpus = 256 }, parallelism = { expert = 8, pipeline = 8, schedule = "dualpipe" },
                                            training = { global_batch_size = 2048, precision = "bf16", moments = "fp32" } })
    tied.model = { name = "tied MoE", layers = 48, hidden = 2048, heads = 32, kv_heads = 4, head_dim = 128, qk_norm = "head", vocab = 151936,
                   experts = 128, experts_per_token = 8, expert_ffn = 768, tied_embeddings = true }
    for _, framework in ipairs { "flagscale", planning.none } do
      local result = plan(tied, { framework = framework })
      assert.equal("rejected", result.status)
      assert.is_true(has(result.reasons, "dualpipe_tied_embeddings"))
    end
    assert.equal("planned", plan(tied, { framework = "deepseek-dualpipe" }).status)
    tied.model.tied_embeddings = false
    assert.equal("planned", plan(tied, { framework = "flagscale" }).status)
  end)

  it("asks nothing of a plan that does not use it", function()
    -- odd P, odd M, M < 2 P
    local result = plan(deepseek, { cluster = { gpus = 1920 }, training = { global_batch_size = 25 * 128 },
                                    parallelism = { pipeline = 15, schedule = "1f1b" } })
    assert.same({ "planned", 25, 15 }, { result.status, result.microbatches, result.parallelism.pipeline })
    assert.same({}, ids(result.reasons))
  end)
end)
