-- SPDX-License-Identifier: Apache-2.0
-- models.lua: shapes of the models in the oracle tables, from their published configurations.

local models = {}

local function llama(layers, hidden, heads, ffn)
  return { layers = layers, hidden = hidden, vocab = 128256, heads = heads, kv_heads = 8, head_dim = 128, ffn = ffn }
end

models["llama3-70b"] = llama(80, 8192, 64, 28672)
models["llama3.1-405b"] = llama(126, 16384, 128, 53248)

local function deepseek(mtp)
  return {
    layers = 61, hidden = 7168, vocab = 129280, attention = "mla", heads = 128, q_lora_rank = 1536, kv_lora_rank = 512, qk_nope_dim = 128,
    qk_rope_dim = 64, v_dim = 128, ffn = 18432, experts = 256, experts_per_token = 8, expert_ffn = 2048, shared_ffn = 2048,
    first_dense = 3, router_correction_bias = true, mtp_layers = mtp,
  }
end

models["deepseek-v3"] = deepseek(1)
models["deepseek-v3 without MTP"] = deepseek(0)

models["kimi-k2"] = {
  layers = 61, hidden = 7168, vocab = 163840, attention = "mla", heads = 64, q_lora_rank = 1536, kv_lora_rank = 512, qk_nope_dim = 128,
  qk_rope_dim = 64, v_dim = 128, ffn = 18432, experts = 384, experts_per_token = 8, expert_ffn = 2048, shared_ffn = 2048,
  first_dense = 1, router_correction_bias = true,
}

models["qwen3-235b"] = {
  layers = 94, hidden = 4096, vocab = 151936, heads = 64, kv_heads = 4, head_dim = 128, qk_norm = "head", experts = 128,
  experts_per_token = 8, expert_ffn = 1536,
}

models["qwen3-30b"] = {
  layers = 48, hidden = 2048, vocab = 151936, heads = 32, kv_heads = 4, head_dim = 128, qk_norm = "head", experts = 128,
  experts_per_token = 8, expert_ffn = 768,
}

models["gpt-oss-120b"] = {
  layers = 36, hidden = 2880, vocab = 201088, heads = 64, kv_heads = 8, head_dim = 64, qkv_bias = true, output_bias = true,
  attention_sinks = 64, experts = 128, experts_per_token = 4, expert_ffn = 2880, router_bias = true, expert_bias = true,
  kinds = { { layers = { 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35 }, window = 128 } },
}

models["mixtral-8x22b"] = { layers = 56, hidden = 6144, heads = 48, kv_heads = 8, head_dim = 128, vocab = 32768, experts = 8,
                            experts_per_token = 2, expert_ffn = 16384 }

-- Megatron-LM's GPT models (2104.04473 Table 1), NeMo's GPT-3, BLOOM, GPT-NeoX: GELU, four times the hidden size.
local function gpt(layers, hidden, heads, vocab)
  return { layers = layers, hidden = hidden, heads = heads, kv_heads = heads, head_dim = hidden // heads, ffn = 4 * hidden, gated = false,
           vocab = vocab or 51200, tied_embeddings = true }
end
models.of_megatron = gpt
models["gpt-39b"], models["gpt-76b"], models["gpt-310b"] = gpt(48, 8192, 64), gpt(60, 10240, 80), gpt(96, 16384, 128)
models["gpt-530b"], models["gpt-1t"], models["gpt3-175b"] = gpt(105, 20480, 128), gpt(128, 25600, 160), gpt(96, 12288, 96)
models["bloom-176b"], models["gpt-neox-20b"] = gpt(70, 14336, 112, 250880), gpt(44, 6144, 64, 50432)
models["gpt-neox-20b"].tied_embeddings = false

-- squared ReLU
models["nemotron4-340b"] = { layers = 96, hidden = 18432, heads = 96, kv_heads = 8, head_dim = 192, ffn = 73728, gated = false,
                             vocab = 256000 }
models["llama2-7b"] = { layers = 32, hidden = 4096, heads = 32, kv_heads = 32, head_dim = 128, ffn = 11008, vocab = 32000 }

-- DeepSeek-V3 cut to 14 layers, with its MTP (NVIDIA/Megatron-LM PR 6311: layout "Ett|(tt|)*6mL")
models["dsv3-proxy-14L"] = deepseek(1)
models["dsv3-proxy-14L"].layers = 14

return models
