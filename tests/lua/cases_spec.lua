-- SPDX-License-Identifier: Apache-2.0
-- Public cases with a known right answer: what people asked, or shipped, and what it should have been told. Each names its source.

local planning = require "planning"  -- first: it loads the module
local models = require "oracles.models"

local plan, entry, ids = planning.plan, planning.entry, planning.ids
local has = planning.has
local gib = 2 ^ 30
local shipped = "examples/models/"

-- GPUs, accelerator, model, training, parallelism; changes are laid over the cluster.
local function spec(gpus, accelerator, model, training, parallelism, more)
  local base = { cluster = { gpus = gpus, accelerator = accelerator, network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                 model = model, parallelism = parallelism,
                 training = planning.merge({ tokens = "1T", sequence_length = 4096, micro_batch_size = 1, recompute = "none",
                                             sharding = "optimizer" }, training) }
  return planning.merge(base, more)
end

local function dense(layers)
  return { layers = layers, hidden = 8192, heads = 64, kv_heads = 8, head_dim = 128, ffn = 28672, vocab = 128256 }
end

local function layers_of(result)
  local sum = 0
  for _, count in ipairs(result.layers_per_stage) do sum = sum + count end
  return sum
end

describe("layers that do not divide", function()
  it("are all there: 30 on 4 ranks are never 28", function() -- NVIDIA/Megatron-LM#1304
    for _, framework in ipairs { "megatron", "deepspeed" } do
      local result = plan(spec(256, "H100-SXM", dense(30), { global_batch_size = 1024 },
                               { tensor = 8, pipeline = 4, schedule = "1f1b" }, { framework = framework }))
      assert.equal("planned", result.status)
      assert.equal(30, layers_of(result))
    end
    local fork = plan(spec(256, "H100-SXM", dense(30), { global_batch_size = 1024 },
                           { tensor = 8, pipeline = 4, schedule = "1f1b" }, { framework = "zero-bubble" }))
    assert.same({ "rejected", "uneven_layers" }, { fork.status, fork.reasons[1].id })
    assert.matches("30 layers do not divide by 4 stages", fork.reasons[1].message)
  end)

  it("are all there with virtual stages: 80 on 16 × 2, 40 on 8 × 2", function() -- NVIDIA/Megatron-LM#468, #326
    for layers, depth in pairs { [80] = 16, [40] = 8 } do
      for _, virtual in ipairs { 2, 5 } do
        local result = plan(spec(1024, "H100-SXM", dense(layers), { global_batch_size = 1024 },
                                 { tensor = 8, pipeline = depth, virtual = virtual, schedule = "interleaved_1f1b" }, { framework = "megatron" }))
        assert.same({ "planned", layers, depth * virtual }, { result.status, layers_of(result), #result.layers_per_stage })
        assert.is_string(result.megatron_layout)
      end
    end
  end)

  it("are no reason to reject what runs: Llama-3.1-405B at PP 8 VP 8 and PP 9 VP 7, Qwen3-235B at 8 × 4, 8 × 3 and 4 × 12", function()
    -- NVIDIA-NeMo/Megatron-Bridge performance summary 26.06; NeMo-Framework-Launcher llama3_1_405b.yaml
    local function llama(gpus, depth, virtual, batch)
      return spec(gpus, "H100-SXM", shipped .. "llama-3.1-405b.json",
                  { sequence_length = 8192, global_batch_size = batch, precision = "fp8", gradients = "bf16" },
                  { tensor = 8, context = 2, pipeline = depth, virtual = virtual, schedule = "interleaved_1f1b" }, { framework = "megatron" })
    end
    assert.equal("planned", plan(llama(1024, 8, 8, 1536)).status)
    assert.equal("planned", plan(llama(4608, 9, 7, 2016)).status)
    for _, shape in ipairs { { 8, 4 }, { 8, 3 }, { 4, 12 } } do
      local result = plan(spec(512, "H100-SXM", shipped .. "qwen3-235b-a22b.json", { global_batch_size = 2048, recompute = "full" },
                               { tensor = 2, context = 1, expert = 8, pipeline = shape[1], virtual = shape[2], schedule = "interleaved_1f1b" },
                               { framework = "megatron" }))
      assert.equal("planned", result.status)
    end
  end)

  -- yanring/Megatron-MoE-ModelZoo best_practice/qwen3: 24.2 s a step, with norms and activations recomputed
  it("may leave the ends without one: 94 on 32 × 3, given or not", function()
    local given = { 0 }
    for i = 2, 95 do given[i] = 1 end
    given[96] = 0
    for _, layers in ipairs { false, given } do
      for _, virtual in ipairs { 3, false } do
        if layers or virtual then
          local result = plan(spec(256, "H100-SXM", shipped .. "qwen3-235b-a22b.json",
                                   { global_batch_size = 2048, gradients = "bf16", recompute = { "norm", "swiglu" } },
                                   { tensor = 2, expert = 8, expert_tensor = 1, pipeline = 32, virtual = virtual or nil, layers_per_stage = layers or nil,
                                     schedule = "interleaved_1f1b" }, { framework = "megatron" }))
          assert.equal("planned", result.status)
          assert.same(given, result.layers_per_stage)
          assert.equal("E|(t|)*94L", result.megatron_layout)
        end
      end
    end
    local result = plan(spec(256, "H100-SXM", dense(61), { global_batch_size = 1024 }, { tensor = 4, pipeline = 64, schedule = "1f1b" }))
    assert.is_true(has(result.reasons, "engine.layers_below_stages"))
  end)
end)

describe("microbatches", function()
  local function interleaved(gpus, layers, depth, data, microbatches, framework)
    return plan(spec(gpus, "H100-SXM", dense(layers), { global_batch_size = data * microbatches, recompute = "full" },
                     { tensor = 8, pipeline = depth, data = data, virtual = 2, schedule = "interleaved_1f1b" }, { framework = framework }))
  end

  it("are as many as ranks for interleaving: M 3 at P 6 is told what batch would do", function() -- NVIDIA-NeMo/Speech#14288
    local result = interleaved(192, 48, 6, 4, 3, "megatron")
    assert.same({ "rejected", "engine.too_few_microbatches" }, { result.status, result.reasons[1].id })
    assert.matches("3 < 6", result.reasons[1].message)
    assert.same({ 6, "interleaved_1f1b" }, { result.recommend.microbatches, result.recommend.schedule })
    assert.equal("planned", interleaved(192, 48, 6, 4, 6, "megatron").status)
  end)

  -- torch/distributed/pipelining/schedules.py, ScheduleInterleaved1F1B: 11 are not two equal rounds; 3 are one round, of idle ranks
  it("go in equal rounds in PyTorch, in any group of at least P in Megatron", function()
    local megatron, torch = interleaved(64, 48, 4, 2, 11, "megatron"), interleaved(64, 48, 4, 2, 11, "torch")
    assert.same({ "planned", 6 }, { megatron.status, megatron.microbatch_group_size })
    assert.same({ "rejected", "engine.microbatch_group" }, { torch.status, torch.reasons[1].id })
    assert.matches("11 microbatches in 2 rounds", torch.reasons[1].message)
    local few = interleaved(64, 48, 4, 2, 3, "torch")
    assert.same({ "planned", 3 }, { few.status, few.microbatch_group_size })
    assert.equal("rejected", interleaved(64, 48, 4, 2, 3, "megatron").status)
  end)

  it("need not divide by P × V, nor by P where groups may be larger: P 4, M 10 are two rounds of 5", function() -- pytorch/pytorch#129597
    for _, framework in ipairs { "torch", "megatron" } do
      local result = interleaved(64, 48, 4, 2, 10, framework)
      assert.same({ "planned", 5 }, { result.status, result.microbatch_group_size })
    end
    assert.matches("--microbatch-group-size-per-virtual-pipeline-stage 5",
                   require("pipeplan.report.text").render(interleaved(64, 48, 4, 2, 10, "megatron")), 1, true)
  end)

  it("are at least P − 1 in nanotron, under the name that its users know", function() -- huggingface/nanotron#347
    local function at(batch)
      return plan(spec(64, "H100-SXM", dense(48), { global_batch_size = batch, recompute = "full" },
                       { tensor = 8, pipeline = 8, schedule = "1f1b" }, { framework = "nanotron" }))
    end
    local result = at(1)
    assert.same({ "rejected", "nanotron.1f1b_microbatches" }, { result.status, result.reasons[1].id })
    assert.matches("M ≥ P − 1 = 7", result.reasons[1].message)
    assert.matches("batch_accumulation_per_replica", result.reasons[1].message)
    assert.equal(7, result.recommend.microbatches)
    assert.equal("planned", at(7).status)
    assert.equal("rejected", at(6).status)
  end)

  it("are at least P for 1F1B in torch; GPipe may have fewer", function() -- pytorch/torchtitan#775, pytorch/pytorch#144702
    local function at(schedule, batch)
      return plan(spec(64, "H100-SXM", dense(48), { global_batch_size = batch, recompute = "full" },
                       { tensor = 8, pipeline = 8, schedule = schedule }, { framework = "torchtitan" })).status
    end
    assert.same({ "rejected", "planned", "planned" }, { at("1f1b", 7), at("1f1b", 8), at("gpipe", 1) })
  end)

  it("are as DualPipe's code asserts", function() -- deepseek-ai/DualPipe dualpipe.py, dualpipev.py
    local model = { layers = 48, hidden = 2048, heads = 16, kv_heads = 8, head_dim = 128, vocab = 32000, experts = 64, experts_per_token = 4,
                    expert_ffn = 2048 }
    local function at(schedule, depth, microbatches)
      local result = plan(spec(8 * depth, "H800-SXM-80GB", model, { global_batch_size = 8 * microbatches, recompute = "full" },
                               { tensor = 1, expert = 8, data = 8, pipeline = depth, schedule = schedule }))
      return result.status, result.reasons[1] and result.reasons[1].id
    end
    assert.same({ "rejected", "dualpipe_odd_depth" }, { at("dualpipe", 3, 8) })
    assert.equal("rejected", (at("dualpipe", 8, 15)))
    assert.same({ "rejected", "too_few_microbatches" }, { at("dualpipe", 8, 14) })
    assert.equal("planned", (at("dualpipe", 8, 20)))
    assert.equal("planned", (at("dualpipev", 3, 8)))  -- no parity rule for P; M 7 is legal there, and odd_microbatches is the policy's
    assert.equal("rejected", (at("dualpipev", 4, 7)))
  end)
end)

describe("GPU counts and batches", function()
  it("of DeepSeek-V3 at TP 2, PP 16, EP 64 are 1,024 at least", function() -- Megatron-Bridge nemo-mbridge-perf-parallelism-strategies
    local function on(gpus)
      return spec(gpus, "H800-SXM-80GB", shipped .. "deepseek-v3.json",
                  { global_batch_size = 1024, precision = "fp8", moments = "bf16", recompute = "full" },
                  { tensor = 2, pipeline = 16, expert = 64 })
    end
    local problem = planning.problem(on(256))
    assert.equal(2, problem.status)
    assert.matches("expert 64 × pipeline 16 = 1024; nearest: 1024", problem.message)
    assert.equal("planned", plan(on(1024)).status)
  end)

  it("are P × max(TP × CP, EP × ETP) at least", function() -- Megatron-Bridge, against Megatron-LM docs/user-guide/parallelism-guide.md
    local model = { layers = 24, hidden = 1024, heads = 16, kv_heads = 8, head_dim = 64, vocab = 32000, experts = 64, experts_per_token = 4,
                    expert_ffn = 512 }
    for _, row in ipairs { { 1, 2, 1, 8, 1, 8 }, { 1, 2, 4, 8, 1, 8 }, { 2, 2, 1, 8, 1, 16 }, { 1, 2, 1, 4, 2, 8 } } do
      local function on(gpus)
        return spec(gpus, "H800-SXM-80GB", model, { global_batch_size = 64 },
                    { pipeline = row[1], tensor = row[2], context = row[3], expert = row[4], expert_tensor = row[5] })
      end
      assert.equal(2, planning.problem(on(row[6] // 2)).status)
      local status = plan(on(row[6])).status  -- a small model is told not to pipeline
      assert.equal(row[1] == 1 and "planned" or "rejected", status)
    end
  end)

  it("leave whole microbatches: GBS 1 with DP 24, GBS 32 with DP 128", function() -- NVIDIA/NeMo-Framework-Launcher mixtral_8x22b, falcon_7b
    local mixtral = planning.problem(spec(384, "H100-SXM", shipped .. "mixtral-8x7b.json", { sequence_length = 65536, global_batch_size = 1 },
                                          { tensor = 8, context = 1, pipeline = 2 }))
    assert.matches("not a multiple of microbatch size 1 × data 24 = 24; nearest: 24", mixtral.message)
    local falcon = planning.problem(spec(128, "A100-SXM-80GB", shipped .. "llama-2-7b.json", { global_batch_size = 32 },
                                         { tensor = 1, context = 1, pipeline = 1 }))
    assert.matches("data 128 = 128; nearest: 128", falcon.message)
  end)

  it("are doubted where the memory is not the accelerator's", function() -- MooreThreads/SimuMax b200_bf16_ceperm.json
    local result = plan(spec(64, "B200", shipped .. "llama-3-70b.json", { global_batch_size = 256, recompute = "full" }, {},
                             { cluster = { memory_per_gpu = "80GB" } }))
    assert.matches("is it the right GPU", entry(result.warnings, "accelerator_memory").message)
  end)
end)

describe("memory", function()
  local llama = shipped .. "llama-3-70b.json"

  it("of a 70B at TP 8 PP 2 fits because the optimizer is sharded, with 9 bytes a parameter", function() -- NVIDIA/Megatron-LM#1031
    for gpus, data in pairs { [128] = 8, [768] = 48 } do
      local result = plan(spec(gpus, "H100-SXM", llama, { global_batch_size = data * 64, recompute = "selective" },
                               { tensor = 8, context = 1, pipeline = 2, schedule = "1f1b" }))
      assert.equal("planned", result.status)
      for _, rank in ipairs(result.memory.ranks) do
        local state = rank.parameters_bytes + rank.gradients_bytes + rank.optimizer_bytes
        assert.near(70.55e9 / 16 * (6 + 12 / data), state, 0.04 * state)  -- 33 GB at DP 8, 28 GB at DP 48
      end
    end
  end)

  it("of Qwen3-235B with Adam on the GPUs takes 64 of 80 GB, not 32", function() -- THUDM/slime#280
    local function on(gpus)
      return plan(spec(gpus, "H100-SXM", shipped .. "qwen3-235b-a22b.json", { global_batch_size = 128, recompute = "full" }, {}))
    end
    local result = on(32)
    assert.same({ "refused", "does_not_fit", 64 }, { result.status, result.reasons[1].id, result.gpus_needed })
    assert.equal("planned", on(64).status)
  end)

  it("of DeepSeek-V3 on MI300X at PP 1, EP 8 is 163 GB of weights alone; PP 16, EP 8 fits an MI355X", function() -- AMD-AGI/Primus
    local model = shipped .. "deepseek-v3.json"
    local result = plan(spec(256, "MI300X", model, { global_batch_size = 1024, recompute = "full" }, { pipeline = 1, expert = 8, tensor = 1 }))
    assert.same({ "refused", "does_not_fit" }, { result.status, result.reasons[1].id })
    assert.is_true(result.recommend.parallelism.pipeline > 1)
    local tuned = plan(spec(256, "MI355X", model, { global_batch_size = 1024, recompute = "full", moments = "bf16" },
                            { pipeline = 16, virtual = 2, expert = 8, tensor = 1, schedule = "interleaved_1f1b" }, { framework = "primus" }))
    assert.equal("planned", tuned.status)
  end)

  it("of the first stage grows with M only to M = P", function() -- deepspeedai/DeepSpeed#4602
    local function first(microbatches)
      local result = plan(spec(64, "H100-SXM", llama, { global_batch_size = 2 * microbatches, recompute = "selective" },
                               { tensor = 8, context = 1, data = 2, pipeline = 4, schedule = "1f1b" }))
      return result.memory.ranks[1].activations_bytes
    end
    assert.near(2, first(2) / first(1), 0.01)
    assert.near(4, first(4) / first(1), 0.01)
    assert.equal(first(4), first(8))
    assert.equal(first(4), first(16))
  end)

  it("of a 16B MoE on 8 GPUs wants a smaller microbatch, not a pipeline", function() -- pytorch/torchtitan#1789
    local model = { layers = 27, hidden = 2048, heads = 16, kv_heads = 16, head_dim = 128, vocab = 102400, ffn = 10944, first_dense = 1,
                    experts = 64, experts_per_token = 6, expert_ffn = 1408, shared_ffn = 2816 }
    local large = plan(spec(8, "H100-SXM", model, { global_batch_size = 64, micro_batch_size = 8 }, {}))
    assert.is_true(has(large.warnings, "pipeline_avoidable"))
    assert.equal("planned", plan(spec(8, "H100-SXM", model, { global_batch_size = 64 }, { pipeline = 1 })).status)
  end)

  it("of a 70B in fp32 on 16 A100 is too much at TP 8 PP 2, and M is 1", function() -- NVIDIA/Megatron-LM#1000
    local result = plan(spec(16, "A100-SXM-80GB", llama, { global_batch_size = 1, precision = "fp32" }, { tensor = 8, pipeline = 2 }))
    assert.same({ "refused", { "does_not_fit" } }, { result.status, ids(result.reasons) })
    assert.is_true(has(result.warnings, "few_microbatches"))
    for _, rank in ipairs(result.memory and result.memory.ranks or {}) do assert.is_true(rank.total_bytes > 70 * gib) end
  end)
end)

describe("what ran", function()
  -- NVIDIA-NeMo/Megatron-Bridge performance summaries 25.11 and 26.06, Megatron-LM SC21 (2104.04473 table 1), MT-NLG, BLOOM, NeMo-Framework-
  -- Launcher: GPUs, GPU, model, TP, PP, CP, VP, EP, batch, microbatch, sequence, precision. What was recomputed is not said.
  local bloom = { layers = 70, hidden = 14336, heads = 112, kv_heads = 112, head_dim = 128, ffn = 57344, gated = false, vocab = 250880,
                  tied_embeddings = true }
  local function gpt(layers, hidden, heads)
    return { layers = layers, hidden = hidden, heads = heads, kv_heads = heads, head_dim = hidden // heads, ffn = 4 * hidden, gated = false,
             vocab = 51200, tied_embeddings = true }
  end
  local rows = {
    { 1024, "H100-SXM", models["llama3.1-405b"], 8, 8, 2, 8, 1, 1536, 1, 8192, "fp8" },
    { 1024, "H100-SXM", models["deepseek-v3"], 2, 8, 1, 4, 64, 8192, 1, 4096, "fp8" },
    { 256, "B200", models["deepseek-v3"], 1, 16, 1, 1, 8, 4096, 1, 4096, "fp8" },
    { 256, "GB200", models["deepseek-v3"], 1, 4, 1, 4, 64, 4096, 1, 4096, "fp8" },
    { 256, "GB300", models["deepseek-v3"], 1, 2, 1, 8, 32, 15360, 1, 4096, "fp8" },
    { 256, "B300", models["deepseek-v3"], 1, 8, 1, 1, 8, 4096, 2, 4096, "fp8" },
    { 256, "GB200", models["deepseek-v3"], 1, 4, 1, 4, 64, 4096, 1, 4096, "bf16" },
    { 256, "H100-SXM", models["qwen3-235b"], 2, 8, 1, 4, 32, 2048, 1, 4096, "fp8" },
    { 64, "B200", models["qwen3-235b"], 1, 8, 1, 2, 8, 1024, 1, 4096, "fp8" },
    { 256, "GB300", models["kimi-k2"], 1, 4, 1, 4, 64, 4096, 2, 4096, "fp8" },
    { 64, "H100-SXM", models["llama3-70b"], 4, 8, 1, 5, 1, 128, 1, 8192, "fp8" },
    { 64, "H100-SXM", models["gpt-oss-120b"], 1, 4, 1, 1, 8, 512, 4, 4096, "bf16" },
    { 256, "GB200", models["llama3.1-405b"], 4, 16, 1, 4, 1, 1536, 1, 8192, "fp8" },
    { 128, "B200", models["llama3.1-405b"], 4, 8, 2, 8, 1, 64, 1, 8192, "fp8" },
    { 4608, "H100-SXM", models["llama3.1-405b"], 8, 9, 2, 7, 1, 2016, 1, 8192, "bf16" },
    { 512, "A100-SXM-80GB", gpt(48, 8192, 64), 8, 2, 1, 1, 1, 1536, 4, 2048, "fp16" },
    { 1920, "A100-SXM-80GB", gpt(96, 16384, 128), 8, 16, 1, 2, 1, 2160, 1, 2048, "fp16" },
    { 2520, "A100-SXM-80GB", gpt(105, 20480, 128), 8, 35, 1, 3, 1, 2520, 1, 2048, "fp16" },
    { 3072, "A100-SXM-80GB", gpt(128, 25600, 160), 8, 64, 1, 1, 1, 3072, 1, 2048, "fp16" },
    { 384, "A100-SXM-80GB", bloom, 4, 12, 1, 1, 1, 2048, 2, 2048, "bf16" },
    { 192, "H100-SXM", gpt(96, 12288, 96), 4, 6, 1, 8, 1, 48, 1, 2048, "fp8" },
  }

  it("is legal, and fits with everything recomputed", function()
    for i, row in ipairs(rows) do
      local result = plan(spec(row[1], row[2], row[3], { global_batch_size = row[9], micro_batch_size = row[10], sequence_length = row[11],
                                                         precision = row[12], recompute = "full" },
                               { tensor = row[4], pipeline = row[5], context = row[6], virtual = row[7] > 1 and row[7] or nil,
                                 expert = row[8] > 1 and row[8] or nil, schedule = row[7] > 1 and "interleaved_1f1b" or "1f1b" }))
      assert.equal("planned", result.status, "row " .. i .. ": " .. table.concat(ids(result.reasons), ", "))
    end
  end)
end)

-- Megatron-Bridge docs/performance-summary-archive.md and yanring/Megatron-MoE-ModelZoo best_practice/qwen3: experts over hosts with the
-- all-to-all hidden behind interleaved pairs were measured to be faster than experts inside a host on a deep pipeline. Kernels and recompute as they
-- ran: tests/oracles/megatron_bridge.lua, recipes.lua, time_published.lua.
describe("an overlapped all-to-all", function()
  local function seconds(accelerator, model, kernel, training, parallelism)
    local result = plan(spec(256, accelerator, shipped .. model, training, parallelism,
                             { framework = "megatron-bridge", cluster = { alltoall_kernel = kernel } }))
    assert.equal("planned", result.status)
    return result.step_seconds
  end
  local deepseek = { global_batch_size = 4096, precision = "fp8", recompute = { "mla_up_projection" }, cuda_graphs = true }
  local deep = { tensor = 1, pipeline = 16, expert = 8, schedule = "1f1b" }
  local function wide(schedule) return { tensor = 1, pipeline = 8, virtual = 2, expert = 32, schedule = schedule } end

  it("makes DeepSeek-V3 on 256 B200 faster at PP 8 VP 2 EP 32 than at PP 16 EP 8, as measured: 19.7 s and 23.3 s", function()
    local overlapped = seconds("B200", "deepseek-v3.json", "hybrid_ep", deepseek, wide "interleaved_1f1b_overlap")
    assert.is_true(overlapped < seconds("B200", "deepseek-v3.json", "nccl_alltoall", deepseek, deep))
  end)

  it("of DeepSeek-V3 on 256 B200 takes the measured 19.7 s within 10 %", function()
    local overlapped = seconds("B200", "deepseek-v3.json", "hybrid_ep", deepseek, wide "interleaved_1f1b_overlap")
    assert.is_true(math.abs(overlapped / 19.7 - 1) < 0.1, overlapped)
  end)

  -- by 11 % (Qwen3-235B, ModelZoo), 15 and 24 % (Qwen3-30B, Megatron-Bridge skills perf-moe-comm-overlap), where it was switched on alone; of
  -- another model, so within the 4 points that gains are wanted within
  it("saves of a step about what it was measured to save of others: 11 to 24 %", function()
    local kernel, with, without = "hybrid_ep", wide "interleaved_1f1b_overlap", wide "interleaved_1f1b"
    local share = seconds("B200", "deepseek-v3.json", kernel, deepseek, with) / seconds("B200", "deepseek-v3.json", kernel, deepseek, without)
    assert.is_true(share > 0.76 - 0.04 and share < 0.89 + 0.04, share)
  end)

  it("makes Qwen3-235B on 256 H100 faster at PP 8 VP 4 EP 32 than at PP 32 VP 3 EP 8, as measured: 17.6 s and 24.2 s", function()
    local recipe = { global_batch_size = 2048, recompute = { "norm", "swiglu" } }
    local overlapped = seconds("H100-SXM", "qwen3-235b-a22b.json", "deepep_v1", recipe,
                               { tensor = 2, pipeline = 8, virtual = 4, expert = 32, expert_tensor = 1,
                                 schedule = "interleaved_1f1b_overlap" })
    assert.is_true(overlapped < seconds("H100-SXM", "qwen3-235b-a22b.json", "nccl_alltoall", recipe,
                                        { tensor = 2, pipeline = 32, virtual = 3, expert = 8, expert_tensor = 1,
                                          schedule = "interleaved_1f1b" }))
    assert.is_true(math.abs(overlapped / 17.6 - 1) < 0.1)
  end)

  -- yanring/Megatron-MoE-ModelZoo best_practice/qwen3: Megatron-FSDP, microbatches of 4 sequences, everything recomputed
  it("is no better for Qwen3-235B than no pipeline with its parameters sharded: 17.6 s too, as measured within 10 %", function()
    local result = plan(spec(256, "H100-SXM", shipped .. "qwen3-235b-a22b.json",
                             { global_batch_size = 2048, micro_batch_size = 4, recompute = "full", sharding = "parameters" },
                             { tensor = 2, pipeline = 1, context = 1, expert = 8, expert_tensor = 1 },
                             { framework = "megatron", cluster = { alltoall_kernel = "deepep_v1" } }))
    assert.is_true(math.abs(result.step_seconds / 17.6 - 1) < 0.1, result.step_seconds)
  end)

  -- NVIDIA/Megatron-LM arguments.py, --overlap-moe-expert-parallel-comm
  it("needs experts that are spread out, no full recompute, and no kernel of its own", function()
    local function at(expert, training, more)
      return plan(spec(256, "H100-SXM", shipped .. "qwen3-235b-a22b.json", planning.merge({ global_batch_size = 2048, gradients = "bf16" }, training),
                       { tensor = 2, pipeline = 8, virtual = 4, expert = expert, expert_tensor = 1, schedule = "interleaved_1f1b_overlap" }, more))
    end
    for _, framework in ipairs { "megatron", false } do
      local more = { framework = framework or nil }
      local alone, recomputed = at(1, nil, more), at(32, { recompute = "full" }, more)
      assert.matches("there is none at EP 1", alone.reasons[1].message)
      assert.same({ "rejected", "megatron.overlap_experts", "megatron.overlap_recompute" }, { alone.status, alone.reasons[1].id, recomputed.reasons[1].id })
      assert.matches("recomputes neither", recomputed.reasons[1].message)
    end
    -- of which 42 % (Megatron-Bridge's A/B) is hidden in pairs, and nothing in the warm-up
    local plain = at(32, nil, { cluster = { alltoall_kernel = false } })
    local shown = plain.communication.expert.exposed_seconds / plain.communication.expert.seconds
    assert.is_true(shown > 0.58 and shown < 0.75, shown)
    assert.is_false(has(plain.warnings, "no_overlap"))
  end)
end)

describe("slow links and kernels", function()
  it("want the pipeline across hosts and the experts inside: less traffic by far", function() -- marin-community/marin#7706
    local model = { layers = 48, hidden = 6144, heads = 48, kv_heads = 8, head_dim = 128, vocab = 128256, experts = 128, experts_per_token = 4,
                    expert_ffn = 1536 }
    local function at(expert)
      local result = plan(spec(128, "H100-SXM", model, { global_batch_size = 512, recompute = "full" },
                               { expert = expert, tensor = 1, context = 1, pipeline = 4, schedule = "1f1b" },
                               { cluster = { network = { per_gpu = "100Gbps" } } }))
      return result.communication
    end
    local inside, outside = at(8), at(16)
    assert.is_true(outside.expert.seconds > 3 * inside.expert.seconds)
    assert.is_true(inside.pipeline.seconds < inside.expert.seconds)
  end)

  it("have no DeepEP on EFA, and kernels have a largest expert group", function() -- awslabs/awsome-distributed-ai#1116, #1144
    local function at(kernel, expert)
      return plan(spec(512, "B300", shipped .. "kimi-k2.json", { global_batch_size = 1024, recompute = "full" },
                       { tensor = 1, pipeline = 8, expert = expert },
                       { cluster = { network = { fabric = "efa", per_gpu = "400Gbps" }, alltoall_kernel = kernel } }))
    end
    assert.equal("uccl_ep", at(nil, 32).alltoall_kernel.name)
    assert.equal("no_alltoall_kernel", at(nil, 64).reasons[1].id)
  end)

  it("are where a schedule can be run at all", function() -- NVIDIA/Megatron-LM#5254, deepspeedai/DeepSpeed#8576, FlagScale PR 1157
    local available = plan(planning.deepseek).available_in
    assert.is_true(#available > 0)
    for _, name in ipairs(available) do assert.is_true(name == "flagscale" or name == "deepseek-dualpipe") end
    local function runs_v(recompute, model)
      local v = plan(planning.deepseek, { model = model, training = { recompute = recompute },
                                          parallelism = { pipeline = 8, schedule = "dualpipev" } })
      return table.concat(v.available_in, " ")
    end
    local no_mtp = shipped .. "kimi-k2.json"
    for _, name in ipairs { "torchtitan", "mindspeed", "flagscale" } do assert.matches(name, runs_v("full", no_mtp), 1, true) end
    assert.is_nil(runs_v("full"):find("flagscale", 1, true))  -- its DualPipeV does not take MTP layers: pretrain_gpt.py of its patches
    assert.matches("mindspeed", runs_v(), 1, true)
    assert.is_nil(runs_v():find("torchtitan", 1, true))  -- it recomputes whole layers or chosen operators, no MLA up-projection
  end)
end)

describe("a kernel that the spec states", function()
  it("is taken at its word, and doubted where it is not known to work: DeepEP over EFA", function() -- awslabs/awsome-distributed-ai #1116
    local function warned(cluster) return entry(plan(planning.deepseek, { cluster = cluster }).warnings, "kernel_elsewhere") end
    local warning = warned { alltoall_kernel = "deepep", network = { fabric = "efa" } }
    assert.matches("DeepEP V2 does not run over efa", warning.message, 1, true)
    assert.is_nil(warned { alltoall_kernel = "deepep" })
    assert.is_nil(warned { network = { fabric = "efa" } })  -- the policy's own choice needs no doubt
  end)
end)

describe("a pipeline that buys nothing", function()
  it("on 8 B200 with Qwen3-30B-A3B is told so", function() -- mlc-ai/pith-train#79
    local result = plan(spec(8, "B200", models["qwen3-30b"], { sequence_length = 8192, global_batch_size = 64, recompute = "selective" }, {}))
    assert.is_true(has(result.warnings, "pipeline_avoidable"))
  end)

  it("gains at most its bubble: Llama-13B at P 4, M 64 has 3/67", function() -- sail-sg/zero-bubble#24
    local model = { layers = 40, hidden = 5120, heads = 40, kv_heads = 40, head_dim = 128, ffn = 13824, vocab = 32000 }
    local result = plan(spec(4, "A100-SXM-80GB", model, { global_batch_size = 64, recompute = "full" }, { tensor = 1, pipeline = 4 }))
    assert.same({ "1f1b", 64 }, { result.schedule, result.microbatches })
    assert.near(3 / 67, result.bubble.closed_form_fraction, 0.002)  -- of a step that uneven stages make longer
    for _, other in ipairs(result.dominated_by) do assert.is_true(other.gain_fraction < result.bubble.fraction) end
  end)
end)
