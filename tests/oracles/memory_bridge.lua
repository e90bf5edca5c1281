-- SPDX-License-Identifier: Apache-2.0
-- memory_bridge.lua: peaks of allocated memory of Megatron on H100. From Megatron-Bridge's skills nemo-mbridge-perf-memory-tuning and
-- nemo-mbridge-perf-activation-recompute @067f987, with the recipes that they name, in GB of 10^9 (training/utils/train_utils.py,
-- report_memory); from NVIDIA/Megatron-LM PR 6311, MB taken as 10^6. Not modelled, hence wider bands: pools of CUDA graphs, user buffers of
-- overlapped TP communication, routing that is not forced to balance.

local memory = require "oracles.measure_memory"
local models = require "oracles.models"
local rows = require "oracles.rows"

local list = {}

-- Llama-3-70B, fp8 current scaling without a transpose cache, bf16 gradients, sequences of 4,096, 32 GPUs, recompute of the attention core.
local function sft(case, tensor, pipeline, virtual, data, gb)
  local peak = memory.peak {
    model = models["llama3-70b"], layout = { tensor = tensor, pipeline = pipeline, chunks = virtual, data = data },
    kind = "interleaved_1f1b", virtual = virtual, microbatches = 32 // data,
    training = memory.bf16(4096, { precision = "fp8", parameter_bytes = 1, gradient_bytes = 2, loss = "in_place", activation_bytes = 1,
                                   attention_output_bytes = 3, activation_input_bytes = 2, weight_gradient_bytes = 2,
                                   recompute = { core_attention = true } }),
  }
  list[#list + 1] = rows.number("Megatron-Bridge skill", case, "peak allocated, GB", gb, peak / 1e9, 0.15)
end
sft("Llama-3-70B SFT TP4 PP4 VP5", 4, 4, 5, 2, 58.8)
sft("Llama-3-70B SFT TP4 PP4 VP10", 4, 4, 10, 2, 60.2)
sft("Llama-3-70B SFT TP4 PP8 VP5", 4, 8, 5, 1, 53.2)
sft("Llama-3-70B SFT TP8 PP4 VP5", 8, 4, 5, 1, 50.2)

-- moonshotai/Moonlight-16B-A3B config.json
local moonlight = {
  layers = 27, hidden = 2048, vocab = 163840, attention = "mla", heads = 16, kv_lora_rank = 512, qk_nope_dim = 128, qk_rope_dim = 64,
  v_dim = 128, ffn = 11264, experts = 64, experts_per_token = 6, expert_ffn = 1408, shared_ffn = 2816, first_dense = 1,
  router_correction_bias = true,
}
-- 8 GPUs, TP 2, EP 8, bf16 gradients and moments, fused loss; routing as it falls
local moonlight_rows = { { "none", 36.618, {} }, { "core attention", 36.614, { core_attention = true } },
                         { "MLA up-projection", 35.902, { mla_up_projection = true } },
                         { "MoE activation", 35.941, { activation = true } } }
for _, row in ipairs(moonlight_rows) do
  local peak = memory.peak {
    model = moonlight, layout = { tensor = 2, expert = 8, data = 4 },
    training = memory.bf16(4096, { gradient_bytes = 2, moment_bytes = 4, loss = "in_place", weight_gradient_bytes = 2,
                                   recompute = row[3] }),
  }
  list[#list + 1] = rows.number("Megatron-Bridge skill", "Moonlight-16B TP2 EP8, recompute " .. row[1], "peak allocated, GB", row[2],
                                peak / 1e9, 0.1)
end

-- 64 GPUs, TP 1 PP 4 VP 2 EP 16, sequences of 2,048, batch 256: 68,704 MB, and 60.2 GB with full recompute
for _, row in ipairs { { "nothing", 68.704, {} }, { "full", 60.2, { full = true } } } do
  local peak = memory.peak {
    model = models["dsv3-proxy-14L"], layout = { pipeline = 4, chunks = 2, expert = 16, data = 16 }, kind = "interleaved_1f1b", virtual = 2,
    microbatches = 16, layers_per_stage = { 2, 2, 2, 2, 2, 2, 2, 0 },
    training = memory.bf16(2048, { loss = "in_place", weight_gradient_bytes = 2, recompute = row[3] }),
  }
  list[#list + 1] = rows.number("Megatron-LM PR 6311", "DeepSeek-V3 of 14 layers PP4 VP2 EP16, recompute " .. row[1], "peak allocated, GB",
                                row[2], peak / 1e9, 0.1)
end

return list
