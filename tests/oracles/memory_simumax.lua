-- SPDX-License-Identifier: Apache-2.0
-- memory_simumax.lua: peaks of allocated memory, measured on 8 B200 with Megatron-LM (MooreThreads/SimuMax docs/b200/
-- b200_release_v1.2_summary.md @4dcaae5, "real alloc GiB"): models cut to 4 or 12 layers, M 4, 8 and 32 a pipeline, fused cross entropy,
-- one microbatch of one sequence. Their own estimator stays within 1.4 %. On an A100 host what that estimator computes is compared:
-- configs @4dcaae5, Llama-3-8B, run by us.

local memory = require "oracles.measure_memory"
local models = require "oracles.models"
local rows = require "oracles.rows"

local GIB = 2 ^ 30
local list = {}

local deepseek_v2 = {
  layers = 60, hidden = 5120, vocab = 102400, attention = "mla", heads = 128, q_lora_rank = 1536, kv_lora_rank = 512, qk_nope_dim = 128,
  qk_rope_dim = 64, v_dim = 128, ffn = 12288, experts = 160, experts_per_token = 6, expert_ffn = 1536, shared_ffn = 3072, first_dense = 1,
}

-- A model cut to so many layers, with the vocabulary that Megatron pads to a multiple of 128 × TP.
local function cut(shape, layers, tensor)
  local copy = {}
  for key, value in pairs(shape) do copy[key] = value end
  local unit = 128 * tensor
  copy.layers, copy.vocab, copy.mtp_layers = layers, (shape.vocab + unit - 1) // unit * unit, nil
  if shape.first_dense then copy.first_dense = 1 end
  return copy
end

local shapes = { ["Llama-3-70B"] = models["llama3-70b"], ["Llama-3-405B"] = models["llama3.1-405b"], ["DeepSeek-V2"] = deepseek_v2,
                 ["DeepSeek-V3"] = models["deepseek-v3"] }

-- model, layers, TP, CP, EP, PP, DP, sequence length, GiB; at M 4, 8 and 32 alike (128 Ki and 32 Ki tokens: M 4 only)
local measured = {
  { "Llama-3-70B", 12, 1, 1, 1, 2, 4, 4096, 66.55 }, { "Llama-3-70B", 12, 2, 1, 1, 1, 4, 4096, 60.68 },
  { "Llama-3-70B", 12, 4, 1, 1, 1, 2, 4096, 39.07 }, { "Llama-3-70B", 12, 8, 1, 1, 1, 1, 4096, 28.29 },
  { "Llama-3-405B", 4, 1, 1, 1, 2, 4, 4096, 87.08 }, { "Llama-3-405B", 4, 2, 1, 1, 1, 4, 4096, 81.59 },
  { "Llama-3-405B", 4, 4, 1, 1, 1, 2, 4096, 52.89 }, { "Llama-3-405B", 4, 8, 1, 1, 1, 1, 4096, 38.57 },
  { "DeepSeek-V2", 4, 1, 1, 8, 1, 8, 4096, 45.63 }, { "DeepSeek-V2", 4, 1, 1, 4, 2, 4, 4096, 44.70 },
  { "DeepSeek-V3", 4, 1, 1, 8, 1, 8, 4096, 104.30 }, { "DeepSeek-V3", 4, 1, 1, 4, 2, 4, 4096, 114.00 },
  { "Llama-3-70B", 12, 2, 4, 1, 1, 1, 32768, 68.43 }, { "Llama-3-70B", 12, 1, 8, 1, 1, 1, 32768, 104.51 },
  { "Llama-3-405B", 4, 2, 4, 1, 1, 1, 32768, 87.03 }, { "Llama-3-405B", 4, 1, 8, 1, 1, 1, 32768, 139.22 },
  { "Llama-3-70B", 12, 2, 4, 1, 1, 1, 131072, 112.67 }, { "Llama-3-70B", 12, 1, 8, 1, 1, 1, 131072, 147.99 },
  { "Llama-3-405B", 4, 2, 4, 1, 1, 1, 131072, 118.13 },
}

for _, row in ipairs(measured) do
  local name, layers, tensor, context, expert, pipeline, data, sequence, gib = table.unpack(row)
  for _, microbatches in ipairs(sequence == 4096 and { 4, 8, 32 } or { 4 }) do
    local ours = memory.peak {
      model = cut(shapes[name], layers, tensor), microbatches = microbatches,
      layout = { tensor = tensor, context = context, expert = expert, pipeline = pipeline, data = data },
      training = memory.bf16(sequence, { loss = "in_place", weight_gradient_bytes = 2 }),
    }
    local case = string.format("%s, %d layers, TP%d CP%d EP%d PP%d, %dk, M %d", name, layers, tensor, context, expert, pipeline,
                               sequence // 1024, microbatches)
    list[#list + 1] = rows.number("SimuMax, 8 B200", case, "peak allocated, GiB", gib, ours / GIB, 0.05)
  end
end

local llama_8b = { layers = 32, hidden = 4096, vocab = 128384, heads = 32, kv_heads = 8, head_dim = 128, ffn = 14336 }
local function computed(case, layout, rank, state, peak)
  local bytes = memory.ranks { model = llama_8b, layout = layout, training = memory.bf16(4096, { weight_gradient_bytes = 0 }) }[rank]
  if state then
    list[#list + 1] = rows.number("SimuMax", case, "state, GiB", state, (bytes.parameters + bytes.gradients + bytes.optimizer) / GIB, 0.001)
  end
  list[#list + 1] = rows.number("SimuMax", case, "peak, GiB", peak, bytes.total / GIB, 0.01)
end
computed("Llama-3-8B TP1 PP2 DP4, first rank", { pipeline = 2, data = 4 }, 1, 33.6588, 50.8854)
computed("Llama-3-8B TP1 PP2 DP4, last rank", { pipeline = 2, data = 4 }, 2, nil, 45.1637)
computed("Llama-3-8B TP8", { tensor = 8 }, 1, 16.8443, 19.3472)

return list
