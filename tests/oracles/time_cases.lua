-- SPDX-License-Identifier: Apache-2.0
-- time_cases.lua: what others measured of one schedule against another, or of one plan before and after a change: mostly ratios, in
-- which what kernels reach cancels. Each row names its source. Where a source does not say M, V or P, the row says which were taken.

local engine = require("pipeplan") and require "engine"
local models = require "oracles.models"
local predict = require "oracles.predict"
local rows = require "oracles.rows"

local list = {}
local function add(...) list[#list + 1] = rows.of("ratios", rows.number(...)) end
local function between(...) list[#list + 1] = rows.of("ratios", rows.range(...)) end

-- A step in which F, I and W take one unit each of a rank's layers, and a pair both together. of: "makespan", or "max_span" where a rank
-- need not wait for the others before it updates its weights.
local function step(kind, ranks, microbatches, virtual, of)
  local schedule = assert(engine.schedule { kind = kind, ranks = ranks, microbatches = microbatches, virtual = virtual })
  local info = schedule:info()
  local unit = ranks * info.chains / info.stages
  return assert(schedule:simulate { F = unit, I = unit, W = unit })[of or "makespan"]
end

-- 1F1B's step over that of another schedule: how much faster that is.
local function faster(kind, ranks, microbatches, virtual)
  return step("1f1b", ranks, microbatches) / step(kind, ranks, microbatches, virtual)
end

-- pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md: 128 against 100 tokens/s; #781: M was P by default
add("torchtitan", "Llama-3.1-405B, P 8: interleaved (M 8, V 2 taken)", "speed over 1F1B", 128 / 100,
    faster("interleaved_1f1b", 8, 8, 2), 0.03)

-- AMD-AGI/Primus docs_deprecated/tech_blogs/primus_pipeline: tokens/s of Llama-2-7B on 8 MI300X, P 8; M 32 is its simulation's default
local primus = { { "interleaved_1f1b", 10974, 0.02, 2 }, { "zb_h1", 11411, 0.02 }, { "zb_v", 11347, 0.06 }, { "v_half", 10894, 0.06 },
                 { "v_min", 8897, 0.25 } }
for _, row in ipairs(primus) do
  add("Primus", string.format("Llama-2-7B, P 8: %s (M 32 taken)", row[1]), "speed over 1F1B", row[2] / 10057,
      faster(row[1], 8, 32, row[4]), row[3])
end

-- sail-sg/zero-bubble#21: samples/s of a 6.2B model on 8 H800; P 8, M 32, and V 4 as in its paper's 6.2B model, taken. Its runtime
-- validates the optimizer's step afterwards, so that no rank waits for all others before it (2401.10241 §4).
local sail = { { "zb_h2", 67 }, { "interleaved_1f1b", 66, 4 }, { "zb_v", 64 } }
for _, row in ipairs(sail) do
  add("zero-bubble #21", string.format("6.2B, P 8: %s (M 32 taken)", row[1]), "speed over 1F1B", row[2] / 55,
      step("1f1b", 8, 32) / step(row[1], 8, 32, row[3], "max_span"), 0.06)
end

-- sail-sg/zero-bubble#24: Llama-13B, P 4, 64 microbatches: no schedule can gain more than the bubble, 3 / 64
local gain = rows.limit("zero-bubble #24", "Llama-13B, P 4, M 64: zb_v", "speed over 1F1B", 67 / 64, faster("zb_v", 4, 64))
list[#list + 1] = rows.of("ratios", gain)

-- InternLM/InternEvo#282: 2,590 to 2,886 tokens/s/GPU. Half of what equal F, I and W promise is what a split backward leaves there.
add("InternEvo #282", "7B, P 4, M 8: zb_h1", "speed over 1F1B", 2886 / 2590, faster("zb_h1", 4, 8), 0.12)

-- deepseek-ai/DualPipe#15: with F = I = W the idle share of the work is (P − 2) / 3M, against (P − 1) / VM of interleaving
local function idle(kind, ranks, microbatches, virtual) return step(kind, ranks, microbatches, virtual) / (3 * microbatches) - 1 end
add("DualPipe #15", "P 8, M 32: dualpipe", "idle / work", 6 / 96, idle("dualpipe", 8, 32), 0.001)
add("DualPipe #15", "P 8, M 32: interleaved_1f1b, V 4", "idle / work", 7 / 128, idle("interleaved_1f1b", 8, 32, 4), 0.001)

-- EleutherAI/gpt-neox#903: 33 TFLOP/s at PP 4, 170 at PP 1, both TP 2; M is not said, 1 taken
add("GPT-NeoX #903", "20B, 128 GPUs: PP 4 (M 1 taken)", "speed over PP 1", 33 / 170, 3 / step("1f1b", 4, 1), 0.30)

-- marin-community/marin#6532: no change of the bubble changed its step: launches and transfers of its runtime, which no spec states
list[#list + 1] = rows.of("ratios", {
  source = "marin #6532", case = "6.1B MoE, 8 H100: PP 8, M 16", quantity = "speed over M 8", published = 7987 / 8077,
  ours = step("1f1b", 8, 8) / 8 / (step("1f1b", 8, 16) / 16), ok = false,
  excused = "not bound by its pipeline: FSDP is seven times faster there",
})

-- -------------------------------------------------------------------------------------------- one plan, one change, by the catalogue

local function tokens(name, run) return predict.step(models[name], run).tokens_per_second end

-- What a larger batch gains in the pipeline alone.
local function filled(name, small, large)
  local function per_sequence(run) return predict.step(models[name], run).plan.step.pipeline_seconds / run.batch end
  return per_sequence(small) / per_sequence(large)
end

local function with(run, changes) return setmetatable(changes, { __index = run }) end

-- Megatron-Bridge performance summaries 25.11, 26.04, 26.06. Newer software had a part in the first two: ours must lie between what the
-- pipeline alone gives, its stages unequal as they are, and what was measured.
local llama405 = { accelerator = "H100", gpus = 1024, precision = "fp8", batch = 512, micro_batch = 1, sequence = 8192, tensor = 8,
                   pipeline = 8, context = 2, virtual = 8, expert = 1 }
local llama70 = { accelerator = "H100", gpus = 64, precision = "fp8", batch = 128, micro_batch = 1, sequence = 8192, tensor = 4,
                  pipeline = 8, context = 1, virtual = 5, expert = 1 }
local deepseek = { accelerator = "GB300", gpus = 256, precision = "fp8", batch = 4096, micro_batch = 1, sequence = 4096, tensor = 1,
                   pipeline = 2, context = 1, virtual = 8, expert = 32, kernel = "hybrid_ep" }
between("Megatron-Bridge", "Llama-3.1-405B, 1024 H100: batch 512 to 1,536", "speed",
        filled("llama3.1-405b", llama405, with(llama405, { batch = 1536 })), 326 / 292,
        tokens("llama3.1-405b", with(llama405, { batch = 1536 })) / tokens("llama3.1-405b", llama405))
between("Megatron-Bridge", "Llama-3-70B, 64 H100: batch 128 to 256", "speed",
        filled("llama3-70b", llama70, with(llama70, { batch = 256 })), 1.039,
        tokens("llama3-70b", with(llama70, { batch = 256 })) / tokens("llama3-70b", llama70))
add("Megatron-Bridge", "DeepSeek-V3, 256 GB300: batch 4,096 to 15,360", "speed", 1.013,
    tokens("deepseek-v3", with(deepseek, { batch = 15360 })) / tokens("deepseek-v3", deepseek), 0.02)

-- Megatron-Bridge skills/nemo-mbridge-perf-expert-parallel-overlap @067f987: Qwen3-30B-A3B on 16 H100, EP 16: seconds of a step, with
-- HybridEP and CUDA graphs of the router, with NCCL and none
local qwen = { accelerator = "H100", gpus = 16, precision = "bf16", batch = 1024, micro_batch = 1, sequence = 4096, tensor = 1, context = 1,
               expert = 16, pipeline = 1, virtual = 1 }
local skill = { { "nccl_alltoall", false, 41.25 }, { "nccl_alltoall", true, 31.31 }, { "hybrid_ep", false, 24.71 },
                { "hybrid_ep", true, 20.99 } }
for _, row in ipairs(skill) do
  local run = with(qwen, { kernel = row[1], overlapped = row[2], cuda_graphs = row[1] == "hybrid_ep" or nil })
  local ours = predict.step(models["qwen3-30b"], run).seconds
  local case = "Qwen3-30B-A3B, 16 H100: " .. row[1] .. (row[2] and ", overlapped" or "")
  list[#list + 1] = rows.of("overlap and recompute", rows.number("Megatron-Bridge", case, "step, s", row[3], ours, 0.30))
end

-- NVIDIA/Megatron-LM#6311: DeepSeek-V3 cut to 14 layers, one MTP layer, layout Ett|(tt|)*6mL, batch 256, sequences of 2,048: 225.1 TFLOP/s,
-- 184.2 with full recompute, 198.5 with recompute and overlap
local proxy = { accelerator = "H100", gpus = 64, precision = "bf16", batch = 256, micro_batch = 1, sequence = 2048, tensor = 1, context = 1,
                expert = 16, pipeline = 4, virtual = 2, layers_per_stage = { 2, 2, 2, 2, 2, 2, 2, 0 }, kernel = "nccl_alltoall" }
local model = { mtp_layers = 1 }
for key, value in pairs(models["dsv3-proxy-14L"]) do model[key] = model[key] or value end
local plain = predict.step(model, proxy).seconds
local recomputed = predict.step(model, with(proxy, { recompute = { full = true } })).seconds
local function change(case, published, ours)
  list[#list + 1] = rows.of("overlap and recompute", rows.number("Megatron-LM #6311", case, "speed", published, ours, 0.08))
end
change("DeepSeek-V3 of 14 layers, 64 H100: full recompute", 184.2 / 225.1, plain / recomputed)
list[#list + 1] = rows.of("overlap and recompute", {
  source = "Megatron-LM #6311", case = "DeepSeek-V3 of 14 layers, 64 H100: overlap of that", quantity = "speed",
  published = 198.5 / 184.2, ours = "", ok = false,
  excused = "the overlap beside recomputed layers, which that pull request adds, is none that Megatron-LM has: no plan does that",
})

-- marin-community/marin#7706: hidden 6144, 48 layers, top 4: a pipeline of two sends 12 KiB a token, experts over two hosts 2.25 MiB
local per_byte = { tiers = { { reach = 8, bandwidth = 1 }, { reach = 16, bandwidth = 1 } } }
local marin = { layers = 48, hidden = 6144, heads = 48, kv_heads = 8, head_dim = 128, vocab = 128256, experts = 128, experts_per_token = 4,
                expert_ffn = 1536 }
local hop = engine.cost.hop { model = marin, layout = { data = 8, pipeline = 2 }, network = per_byte,
                              training = { precision = "bf16", sequence_length = 4096, parameter_bytes = 2, gradient_bytes = 4,
                                         master_bytes = 4, moment_bytes = 8 } }
local boundary = rows.number("marin #7706", "a boundary of stages, hidden 6144", "bytes a token", 12 * 1024, hop / 4096, 0.001)
list[#list + 1] = rows.of("bytes", boundary)
return list
