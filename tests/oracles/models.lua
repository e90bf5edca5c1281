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
}

return models
