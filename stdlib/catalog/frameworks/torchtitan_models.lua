-- SPDX-License-Identifier: Apache-2.0
-- torchtitan_models.lua: the models that torchtitan 0.3.0 has a configuration function of: torchtitan/models/MODULE/config_registry.py and
-- __init__.py of the PyPI package. A shape is in a spec's words; converters of the function make its linear layers fp8.
--
-- { module, config, precision: of a function whose converters are not bf16, sets: key → what the function sets it to, shape }; models.find of
-- both names gives one, or nil.

local function llama(layers, hidden, heads, ffn)
  return { layers = layers, hidden = hidden, heads = heads, kv_heads = 8, ffn = ffn, vocab = 128256 }
end

local function qwen(layers, hidden, heads, ffn, tied)
  return { layers = layers, hidden = hidden, heads = heads, kv_heads = 8, head_dim = 128, ffn = ffn, vocab = 151936, qk_norm = "head",
           tied_embeddings = tied }
end

local moe = { layers = 48, hidden = 2048, heads = 32, kv_heads = 4, head_dim = 128, vocab = 151936, qk_norm = "head", experts = 128,
              experts_per_token = 8, expert_ffn = 768 }

-- MLA's heads: 128 and 64 of rotary embedding, values of 128.
local function deepseek(layers, hidden, heads, dense, q_rank, ffn, expert_ffn, experts, active, shared, vocab)
  return { layers = layers, hidden = hidden, heads = heads, first_dense = dense, attention = "mla", q_lora_rank = q_rank, kv_lora_rank = 512,
           qk_nope_dim = 128, qk_rope_dim = 64, v_dim = 128, ffn = ffn, expert_ffn = expert_ffn, experts = experts,
           experts_per_token = active, shared_ffn = shared * expert_ffn, vocab = vocab }
end

local small = deepseek(27, 2048, 16, 1, nil, 10944, 1408, 64, 6, 2, 102400)
local large = deepseek(61, 7168, 128, 3, 1536, 18432, 2048, 256, 8, 1, 129280)

-- What a function sets otherwise than the classes: of the keys of torchtitan.lua.
local function sets(checkpointing, local_batch, sequence, steps, more)
  local out = { activation_checkpoint = checkpointing, ["training.local_batch_size"] = local_batch, ["training.seq_len"] = sequence,
                ["training.steps"] = steps }
  for key, value in pairs(more or {}) do out[key] = value end
  return out
end

local function eight_ways(more)
  local out = { ["parallelism.tensor_parallel_degree"] = 8 }
  for key, value in pairs(more or {}) do out[key] = value end
  return out
end

local function interleaved(experts)
  return { ["parallelism.pipeline_parallel_schedule"] = "Interleaved1F1B", ["parallelism.expert_parallel_degree"] = experts,
           ["training.disable_cuda_graphs"] = true, ["compile.enable"] = true, ["compile.components"] = "loss" }
end

local models = {
  { module = "llama3", config = "llama3_debugmodel",
    sets = sets("selective", 8, 2048, 10, { ["parallelism.pipeline_parallel_schedule"] = "Interleaved1F1B" }),
    shape = { layers = 6, hidden = 256, heads = 16, kv_heads = 16, ffn = 768, vocab = 2048 } },
  { module = "llama3", config = "llama3_8b", sets = sets("selective", 1, 8192, 1000), shape = llama(32, 4096, 32, 14336) },
  { module = "llama3", config = "llama3_70b", sets = sets("full", 8, 8192, 1000, eight_ways()), shape = llama(80, 8192, 64, 28672) },
  { module = "llama3", config = "llama3_405b", precision = "fp8", shape = llama(126, 16384, 128, 53248),
    sets = sets("full", 2, 8192, 3000, eight_ways { ["compile.enable"] = true, ["compile.enable_async_tensor_parallel"] = true }) },
  { module = "qwen3", config = "qwen3_0_6b", sets = sets("selective", 4, 4096, 10), shape = qwen(28, 1024, 16, 3072, true) },
  { module = "qwen3", config = "qwen3_1_7b", sets = sets("selective", 4, 4096, 100), shape = qwen(28, 2048, 16, 6144, true) },
  { module = "qwen3", config = "qwen3_14b", sets = sets("full", 4, 4096, 3000), shape = qwen(40, 5120, 40, 17408) },
  { module = "qwen3", config = "qwen3_32b", sets = sets("full", 2, 4096, 3000), shape = qwen(64, 5120, 64, 25600) },
  { module = "qwen3", config = "qwen3_30b_a3b", sets = sets("full", 2, 4096, 3000), shape = moe },
  { module = "deepseek_v3", config = "deepseek_v3_16b", sets = sets("selective", 4, 4096, 1000, interleaved(8)), shape = small },
  { module = "deepseek_v3", config = "deepseek_v3_671b", sets = sets("selective", 4, 4096, 10000, interleaved(2)), shape = large },
  { module = "deepseek_v3", config = "deepseek_v3_671b_float8", precision = "fp8", sets = sets("selective", 4, 4096, 10000, interleaved(2)),
    shape = large },
}

function models.find(module, config)
  for _, model in ipairs(models) do
    if model.module == module and model.config == config then return model end
  end
end

return models
