-- SPDX-License-Identifier: Apache-2.0
-- fits_cases.lua: what people asked, or shipped, about memory, and what became of it: what ran out of memory must not fit, what ran must.
-- Recompute that a source does not tell is full where it ran and none where it did not: the choice that helps our verdict least.

local fits = require "oracles.fits"
local models = require "oracles.models"
local rows = require "oracles.rows"

local list = {}

local function add(source, case, ran, run, excused)
  local defaults = { tensor = 1, pipeline = 1, context = 1, virtual = 1, expert = 1, micro_batch = 1, sequence = 4096, precision = "bf16" }
  local ok, words = fits.verdict(setmetatable(run, { __index = defaults }))
  list[#list + 1] = rows.verdict(source, case, ran, ok == true, words, excused)
end

local function llama(gpus, pipeline, recipe)
  return { accelerator = "H100-SXM", gpus = gpus, model = models["llama3-70b"], tensor = 8, pipeline = pipeline,
           batch = gpus // 8 // pipeline * 64, recipe = recipe }
end
local megatron_1031 = "NVIDIA/Megatron-LM#1031"
add(megatron_1031, "Llama-class 70B, 128 H100, TP8 PP2, optimizer not sharded", false, llama(128, 2, { recompute = "selective", zero = 0 }))
add(megatron_1031, "… 768 H100, sharded", true, llama(768, 2, { recompute = "selective" }))
add(megatron_1031, "… 128 H100, TP8 PP8, full recompute", true, llama(128, 8, { recompute = "full", zero = 0 }))

local function qwen(offload)
  return { accelerator = "H100-SXM", gpus = 32, model = models["qwen3-235b"], tensor = 4, pipeline = 8, expert = 4, batch = 128,
           recipe = { recompute = "full", gradients = "bf16", optimizer_offload = offload } }
end
add("THUDM/slime#280", "Qwen3-235B, 32 H100, Adam on the GPU", false, qwen(0))
add("THUDM/slime#280", "… Adam on the CPU", true, qwen(1))
add("verl-project/verl#3019", "DeepSeek-V3, 96 H100, Adam on the CPU", true,
    { accelerator = "H100-SXM", gpus = 96, model = models["deepseek-v3 without MTP"], tensor = 1, pipeline = 12, expert = 8, batch = 96,
      recipe = { recompute = "full", gradients = "bf16", optimizer_offload = 1 } })

local primus = "AMD-AGI/Primus"
add(primus, "DeepSeek-V3, MI300X, PP1 EP8", false,
    { accelerator = "MI300X", gpus = 256, model = models["deepseek-v3"], expert = 8, batch = 1024 })
add(primus, "DeepSeek-V3, 256 MI355X, PP16 VP2 EP8", true,
    { accelerator = "MI355X", gpus = 256, model = models["deepseek-v3"], pipeline = 16, virtual = 2, expert = 8, batch = 1024,
      recipe = { recompute = "full", moments = "bf16" } })

-- torchtitan shards all parameters, in fp32; its default local batch is 8 sequences, without recompute of whole layers.
local deepseek_16b = { layers = 27, hidden = 2048, vocab = 102400, attention = "mla", heads = 16, kv_lora_rank = 512, qk_nope_dim = 128,
                       qk_rope_dim = 64, v_dim = 128, ffn = 10944, experts = 64, experts_per_token = 6, expert_ffn = 1408,
                       shared_ffn = 2816, first_dense = 1 }
local function titan(micro_batch)
  return { accelerator = "H100-SXM", gpus = 8, model = deepseek_16b, expert = 8, micro_batch = micro_batch, batch = 8 * micro_batch,
           recipe = { recompute = "none", fsdp = true } }
end
add("pytorch/torchtitan#1789", "DeepSeek-V3-16B, 8 H100, local batch 8", false, titan(8))
add("pytorch/torchtitan#1789", "… a smaller one", true, titan(2))

-- 20 TFLOP/s, so it ran: parameters in fp32, one microbatch
add("NVIDIA/Megatron-LM#1000", "Llama-3-70B in fp32, 16 A100, TP8 PP2, batch 1", true,
    { accelerator = "A100-SXM-80GB", gpus = 16, model = models["llama3-70b"], tensor = 8, pipeline = 2, batch = 1, precision = "fp32",
      recipe = { recompute = "full" } })

-- whose asker summed 74.8 GB of activations a GPU, nothing recomputed
add("deepseek-ai/profile-data#18", "DeepSeek-V3, DualPipe; norms, MLA up-projections, SwiGLU recomputed", true,
    { accelerator = "H800-SXM-80GB", gpus = 2048, model = models["deepseek-v3"], pipeline = 16, expert = 64, batch = 15360,
      precision = "fp8", recipe = { recompute = { "norm", "mla_up_projection", "swiglu" }, moments = "bf16", schedule = "dualpipe" } })

return list
