-- SPDX-License-Identifier: Apache-2.0
-- memory_zero_bubble.lua: memory of GPT models on A100 (Qi et al. 2401.10241, Table 4, GB): pipeline parallelism alone, sequences of 1,024
-- tokens, a layer less on the first and the last stage; 1F1B-I with one layer a chunk. Megatron-LM of that time: unfused attention and
-- dropout, which the paper does not say and which its figures do: with fused attention 27 to 59 % of them would be missing.

local memory = require "oracles.measure_memory"
local rows = require "oracles.rows"

-- layers, heads, hidden, P, microbatch, layers a chunk of 1F1B-I fit so often on a rank; GB of 1F1B, ZB-1p, ZB-2p, 1F1B-I
local sizes = {
  { "1.5B", 22, 24, 2304, 8, 6, 3, 30, 32, 59, 40 }, { "6.2B", 30, 32, 4096, 8, 3, 4, 39, 42, 70, 48 },
  { "14.6B", 46, 40, 5120, 16, 1, 3, 32, 33, 51, 39 }, { "28.3B", 62, 48, 6144, 32, 1, 2, 43, 44, 74, 58 },
}
local kinds = { "1f1b", "zb_h1", "zb_h2", "interleaved_1f1b" }
local names = { "1F1B", "ZB-1p", "ZB-2p", "1F1B-I" }

local list = {}
for _, size in ipairs(sizes) do
  local name, layers, heads, hidden, depth, micro_batch, chunks = table.unpack(size)
  for i, kind in ipairs(kinds) do
    local virtual = kind == "interleaved_1f1b" and chunks or 1
    local split, stages = {}, depth * virtual
    for s = 1, stages do split[s] = (layers + 2) // stages - ((s == 1 or s == stages) and 1 or 0) end
    local peak = memory.peak {
      model = { layers = layers, hidden = hidden, vocab = 51200, heads = heads, head_dim = hidden // heads, ffn = 4 * hidden, gated = false,
                norm_bias = true, learned_positions = 1024 },
      layout = { pipeline = depth, chunks = virtual }, kind = kind, virtual = virtual > 1 and virtual or nil, microbatches = 3 * depth,
      layers_per_stage = split,
      training = memory.bf16(1024, { micro_batch = micro_batch, fused_attention = false, dropout = true, sequence_parallel = false,
                                     shard_optimizer = false, weight_gradient_bytes = 0 }),
    }
    list[#list + 1] = rows.number("Zero Bubble", name .. ", P " .. depth .. ", " .. names[i], "memory, GB", size[7 + i], peak / 1e9, 0.1)
  end
end
return list
