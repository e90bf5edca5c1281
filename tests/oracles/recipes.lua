-- SPDX-License-Identifier: Apache-2.0
-- recipes.lua: what published runs recomputed and how they kept their state, as far as their repositories say.
--
-- A recipe: { recompute = "none" | "full" | list, gradients, moments, … as in a spec's training; schedule; fsdp: sharded fully, without a
-- pipeline; source; excused: why our verdict is no claim, for what ran is not what a spec can say }

local recipes = {}

-- Megatron-Bridge src/megatron/bridge/perf_recipes @067f987 and scripts/performance/configs of December 2025: gradients are reduced in bf16
-- throughout (_benchmark_common, set_*_common_configs: grad_reduce_in_fp32 = False). "mlp" there is the dense MLP, which no spec names.
local function bridge(recompute, more)
  local recipe = { gradients = "bf16", recompute = recompute, activations = "bf16", source = "Megatron-Bridge perf_recipes" }
  for key, value in pairs(more or {}) do recipe[key] = value end
  return recipe
end

local up = { "mla_up_projection" }

local by_model = {
  ["llama3.1-405b"] = bridge "none",
  ["llama3-70b"] = bridge "none",
  ["qwen3-235b"] = bridge "none",
  ["qwen3-30b"] = bridge "none",
  ["kimi-k2"] = bridge(up),
  ["deepseek-v3 H100"] = bridge(up),
  ["deepseek-v3 B200"] = bridge(up),
  ["deepseek-v3 B300"] = bridge(up),
  ["deepseek-v3 GB200"] = bridge(up, { moments = "bf16" }),  -- _enable_deepseek_precision_aware_optimizer
  ["deepseek-v3 GB300"] = bridge("none", { moments = "bf16" }),
  ["deepseek-v3 GB300 MBS 2"] = bridge(up, { moments = "bf16" }),
  ["deepseek-v3 GB300 bf16"] = bridge({ "activation" }, { moments = "bf16" }),
  ["gpt-oss-120b"] = bridge { "norm", "activation" },
}

function recipes.of_bridge(model, accelerator, precision, micro_batch)
  local key = model .. " " .. accelerator
  return by_model[key .. " MBS " .. micro_batch] or by_model[key .. " " .. precision] or by_model[key] or by_model[model]
end

-- By the id of data/oracles/published_configs.csv.
local zoo = "yanring/Megatron-MoE-ModelZoo best_practice/qwen3/readme.md"
local megatron = { recompute = "full", zero = 0, source = "2104.04473 §5: activation recomputation; no distributed optimizer yet" }
local bloom = { recompute = "full", source = "bigscience tr11-176B-ml: --checkpoint-activations, ZeRO-1" }
local titan = { excused = "FSDP beside a pipeline" }
local ascend = { recompute = "full", moments = "bf16", optimizer_offload = 1,
                 source = "its script: full recompute of 8 layers, optimizer swapped out" }

recipes.published = {
  O22 = bridge("none", { weights = "fp8_single" }),
  O23 = { excused = "LoRA: only adapters have gradients and optimizer state" },
  O25 = { excused = "contradicts itself: its table's GA is 2, GBS / (MBS × DP) is 8, and the repository's recipe has MBS 1",
          gradients = "bf16", recompute = { "norm", "activation" } },
  O33 = { recompute = { "norm", "activation" }, source = zoo },
  O34 = { recompute = "full", fsdp = true, source = zoo },
  O35 = { recompute = { "norm", "activation" }, source = zoo },
  O37 = { recompute = "none", source = "yanring/Megatron-MoE-ModelZoo best_practice/mixtral" },
  O38 = megatron, O39 = megatron, O41 = megatron, O42 = megatron, O43 = megatron, O45 = megatron, O46 = megatron,
  O47 = bloom, O49 = bloom, O50 = bloom,
  O51 = { recompute = "full", source = "EleutherAI/gpt-neox configs/20B.yml: checkpoint-activations" },
  O54 = { recompute = "selective", gradients = "bf16", moments = "bf16",
          source = "NVIDIA/dgxc-benchmarking @35a9aec nemotron4-340b-synth.yaml: distributed_fused_adam, dtype and grad_sync_dtype bf16" },
  O61 = titan, O62 = titan,
  O66 = ascend, O67 = ascend,
  O69 = { recompute = { "norm", "mla_up_projection", "swiglu" }, moments = "bf16", schedule = "dualpipe",
          source = "DeepSeek-V3 report §3.2, §3.3" },
  O70 = { recompute = "none", source = "NVIDIA/Megatron-LM PR 6311: no recompute" },
}

return recipes
