-- SPDX-License-Identifier: Apache-2.0
-- memory_megatron.lua: Megatron-LM's own estimator (megatron/training/theoretical_memory_usage.py @d98e8a6), run for shapes that it handles
-- right: parameters in billions, and GiB of weights, gradients and optimizer of the most loaded shard. Not held
-- against it: its activations of models with SwiGLU (18 + 4f/h leaves out 2f/h), of mixtures of experts (priced as dense), its stages of
-- uneven pipelines (layers averaged) and DeepSeek-V3's active parameters (49.06 B: all routed experts of the MTP block; by its
-- configuration 37.55 B, and 0.585 B of one MTP layer).

local engine = require("pipeplan") and require "engine"
local memory = require "oracles.measure_memory"
local models = require "oracles.models"
local rows = require "oracles.rows"

local GIB = 2 ^ 30
local list = {}

local function add(case, quantity, published, ours, band)
  list[#list + 1] = rows.number("Megatron-LM estimator", case, quantity, published, ours, band)
end

local gpt = { layers = 96, hidden = 12288, vocab = 51200, heads = 96, head_dim = 128, ffn = 49152, gated = false, norm_bias = true,
              tied_embeddings = true, qkv_bias = true, output_bias = true, mlp_bias = true }
local llama_8b = { layers = 32, hidden = 4096, vocab = 128256, heads = 32, kv_heads = 8, head_dim = 128, ffn = 14336 }
local mixtral = { layers = 32, hidden = 4096, vocab = 32000, heads = 32, kv_heads = 8, head_dim = 128, experts = 8, experts_per_token = 2,
                  expert_ffn = 14336 }

-- Totals: printed to 10 M parameters.
local function billions(shape, kind) return engine.model.parameters(shape)[kind] / 1e9 end
add("Llama-3-8B", "parameters, B", 8.03, billions(llama_8b, "total"), 0.001)
add("Llama-3-70B", "parameters, B", 70.55, billions(models["llama3-70b"], "total"), 0.001)
add("Llama-3-405B", "parameters, B", 405.85, billions(models["llama3.1-405b"], "total"), 0.001)
add("GPT-3-175B", "parameters, B", 174.58, billions(gpt, "total"), 0.001)
add("Mixtral-8x7B", "parameters, B", 46.70, billions(mixtral, "total"), 0.001)
add("Mixtral-8x7B", "active parameters, B", 12.88, billions(mixtral, "active"), 0.001)

-- One MTP module's active part: a decoder layer with its top-k experts.
local function active_with_mtp(shape)
  local without = {}
  for key, value in pairs(shape) do without[key] = value end
  without.layers = shape.layers - 1
  local totals = engine.model.parameters(shape)
  return totals.active + totals.active - engine.model.parameters(without).active
end
add("DeepSeek-V3", "active parameters with MTP, B", 38.14, active_with_mtp(models["deepseek-v3"]) / 1e9, 0.001)

-- case, shape, layout, distributed optimizer, GiB
local states = {
  { "Llama-3-8B TP1 PP2 DP4", llama_8b, { pipeline = 2, data = 4 }, true, 33.654 },
  { "Llama-3-70B TP8 PP4 DP4", models["llama3-70b"], { tensor = 8, pipeline = 4, data = 4 }, true, 19.033 },
  { "GPT-3-175B TP8 PP8 VPP3", gpt, { tensor = 8, pipeline = 8 }, false, 46.891 },
  { "Mixtral-8x7B TP1 PP4 EP8 DP16", mixtral, { pipeline = 4, expert = 8, data = 16 }, true, 18.685 },
}
for _, row in ipairs(states) do
  local first = memory.ranks { model = row[2], layout = row[3], training = memory.bf16(2048, { shard_optimizer = row[4] }) }[1]
  add(row[1], "weights, gradients, optimizer, GiB", row[5], (first.parameters + first.gradients + first.optimizer) / GIB, 0.002)
end

-- sbh/t·(18 + 4f/h) a layer, held as an interleaved schedule holds it, and the embedding's dropout mask and token numbers.
local first = memory.ranks {
  model = gpt, layout = { tensor = 8, pipeline = 8, chunks = 3 }, kind = "interleaved_1f1b", virtual = 3, microbatches = 64,
  training = memory.bf16(2048, { precision = "fp16", dropout = true, fused_attention = false, recompute = { core_attention = true } }),
}[1]
add("GPT-3-175B TP8 PP8 VPP3", "activations, GiB", 12.382, first.activations / GIB, 0.005)

return list
