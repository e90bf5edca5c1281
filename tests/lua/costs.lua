-- SPDX-License-Identifier: Apache-2.0
-- costs.lua: shapes and recipes for the specs of memory, comm and cost, from published configurations.

local costs = {}

function costs.llama_8b()
  return { layers = 32, hidden = 4096, vocab = 128384, heads = 32, kv_heads = 8, head_dim = 128, ffn = 14336 }
end

function costs.deepseek_v3()
  return {
    layers = 61, hidden = 7168, vocab = 129280, attention = "mla", heads = 128, q_lora_rank = 1536, kv_lora_rank = 512,
    qk_nope_dim = 128, qk_rope_dim = 64, v_dim = 128, ffn = 18432, experts = 256, experts_per_token = 8, expert_ffn = 2048,
    shared_ffn = 2048, first_dense = 3, router_correction_bias = true, mtp_layers = 1,
  }
end

function costs.bf16()
  return { precision = "bf16", sequence_length = 4096, parameter_bytes = 2, gradient_bytes = 4, master_bytes = 4, moment_bytes = 8,
           shard_optimizer = true, sequence_parallel = true, fused_attention = true }
end

function costs.network()
  return { tiers = { { reach = 8, bandwidth = 450e9, efficiency = 0.8, latency = 2e-6 },
                     { reach = 1024, bandwidth = 50e9, efficiency = 0.9, latency = 1e-5 } } }
end

function costs.h100()
  return { flops = 989e12, memory_bandwidth = 3.35e12, gemm_efficiency = 0.65, grouped_gemm_efficiency = 0.45, attention_efficiency = 0.5,
           memory_efficiency = 0.8, overlap_overhead = 0.1, hides_alltoall = true }
end

return costs
