-- SPDX-License-Identifier: Apache-2.0
-- megatron_writes.lua: how Megatron's keys follow from a plan, where that is no single field of it (megatron.lua says those that are).
--
-- writes[key] = function of { plan, request, entry, shape: of the model, training: the request's, with the plan's sharding } → the value; nil
-- or false: the key is not written.

local lists = require "pipeplan.base.lists"
local volume = require "pipeplan.catalog.frameworks.volume"

-- Layers as Megatron-LM writes which of them have experts: 1, or "([0]*3+[1]*58)".
local function pattern_of(shape)
  local runs = {}
  for i = 1, shape.layers do
    local dense = i <= (shape.first_dense or 0) or i % (shape.moe_every or 1) ~= 0 or lists.contains(shape.dense_layers or {}, i)
    local letter, last = dense and "0" or "1", runs[#runs]
    if last and last.letter == letter then last.count = last.count + 1 else runs[#runs + 1] = { letter = letter, count = 1 } end
  end
  if #runs == 1 then return nil end
  local parts = {}
  for i, run in ipairs(runs) do parts[i] = run.count > 1 and string.format("[%s]*%d", run.letter, run.count) or "[" .. run.letter .. "]" end
  return "(" .. table.concat(parts, "+") .. ")"
end

-- Are a plan's layers what the framework builds when no key speaks of layers: as many on every stage, MTP layers on the last one?
local function is_even(plan)
  for _, count in ipairs(plan.layers_per_stage) do
    if count ~= plan.layers_per_stage[1] then return false end
  end
  local text = plan.megatron_layout
  return not text or not text:find "m" or text:find "|[^|m]*m[^|]*$" ~= nil
end

-- Layers of the first and the last rank of a V, whose ranks each have two stages, where ranks are not alike.
local function ends_of(plan)
  local P, list = plan.parallelism.pipeline, plan.layers_per_stage
  local function rank(r) return list[r] + list[2 * P + 1 - r] end
  local even = true
  for r = 2, P do even = even and rank(r) == rank(1) end
  if even then return nil end
  return rank(1), rank(P)
end

local function modules_of(facts)
  local names = {}
  for _, name in ipairs(facts.plan.recompute) do
    local law = facts.entry.recompute.modules[name]
    if law then names[#names + 1] = law.key end
  end
  table.sort(names)
  return table.concat(names, " ") ~= "core_attn" and names or nil   -- which is what selective recompute is when nobody says
end

local function is_full(facts) return lists.contains(facts.plan.recompute, "full") end

local function selects(facts) return #facts.plan.recompute > 0 and not is_full(facts) end

local function overlaps_experts(facts) return facts.plan.schedule == "interleaved_1f1b_overlap" or facts.plan.overlap_alone == true end

local function ramp_of(facts)
  local parts = {}
  for i, step in ipairs(facts.plan.training.batch_ramp or {}) do
    parts[i] = string.format("%.0f:%d", volume.tokens(facts.plan, step.first_token), step.global_batch_size)
  end
  return parts[1] and table.concat(parts, " ") or nil
end

local function has_experts(facts) return (facts.shape.experts or 0) > 0 end

local function is_mla(facts) return facts.shape.attention == "mla" end

-- Experts that a bias balances instead of a loss (arXiv:2412.19437, 2.1.2), with the score of a sigmoid: ERNIE's have that of a softmax, for
-- which Megatron has no such bias.
local function biased_by_load(f)
  return has_experts(f) and f.shape.router_correction_bias == true and not tostring(f.request.model.family):find "^ernie"
end

-- Two chunks a rank, of which the framework is told the layers together.
local function in_v(facts) return facts.plan.schedule == "dualpipev" end

-- The kernels that the flex dispatcher runs, as its --moe-flex-dispatcher-backend names them.
local flexible = { deepep = "deepep", deepep_v1 = "deepep", hybrid_ep = "hybridep", nccl_ep = "ncclep" }

local function dispatcher_of(facts)
  local kernel, p = facts.plan.alltoall_kernel and facts.plan.alltoall_kernel.name, facts.plan.parallelism
  return flexible[kernel] and p.tensor * (p.expert or 1) > 1 and "flex" or "alltoall"
end

-- Values of Megatron's keys that no single field of the plan or the request has: f → value, nil where the key is not written.
local writes = {
  ["--num-virtual-stages-per-pipeline-rank"] = function(f)
    local traits = f.plan.schedule:find "^interleaved" ~= nil
    return traits and is_even(f.plan) and f.plan.parallelism.virtual or nil
  end,
  ["--pipeline-model-parallel-layout"] = function(f) return not is_even(f.plan) and not in_v(f) and f.plan.megatron_layout or nil end,
  ["--decoder-first-pipeline-num-layers"] = function(f) return in_v(f) and ends_of(f.plan) or nil end,
  ["--decoder-last-pipeline-num-layers"] = function(f) return in_v(f) and select(2, ends_of(f.plan)) or nil end,
  ["--expert-model-parallel-size"] = function(f) return has_experts(f) and f.plan.parallelism.expert or nil end,
  ["--expert-tensor-parallel-size"] = function(f) return has_experts(f) and f.plan.parallelism.expert_tensor or nil end,
  ["--step-batch-size-schedule"] = ramp_of,
  ["--global-batch-size"] = function(f) return not ramp_of(f) and f.plan.global_batch_size or nil end,
  ["--max-position-embeddings"] = function(f) return math.max(f.plan.training.sequence_length, f.shape.learned_positions or 0) end,
  ["--ffn-hidden-size"] = function(f) return (f.shape.ffn or 0) > 0 and f.shape.ffn or f.shape.expert_ffn end,
  ["--group-query-attention"] = function(f) return not is_mla(f) and (f.shape.kv_heads or f.shape.heads) ~= f.shape.heads or nil end,
  ["--num-query-groups"] = function(f) return not is_mla(f) and f.shape.kv_heads or nil end,
  ["--kv-channels"] = function(f)
    local size = not is_mla(f) and f.shape.head_dim or nil
    return size and size ~= 0 and size * f.shape.heads ~= f.shape.hidden and size or nil
  end,
  ["--swiglu"] = function(f) return f.shape.gated ~= false end,
  ["--untie-embeddings-and-output-weights"] = function(f) return not f.shape.tied_embeddings end,
  ["--disable-bias-linear"] = function(f) return not f.shape.mlp_bias end,
  ["--add-qkv-bias"] = function(f) return f.shape.qkv_bias and not f.shape.mlp_bias end,
  ["--normalization"] = function(f) return not f.shape.norm_bias and "RMSNorm" or nil end,
  ["--qk-layernorm"] = function(f) return (f.shape.qk_norm or "none") ~= "none" or is_mla(f) end,   -- MLA's latents have norms
  ["--position-embedding-type"] = function(f) return (f.shape.learned_positions or 0) == 0 and "rope" or nil end,
  ["--moe-layer-freq"] = function(f) return has_experts(f) and pattern_of(f.shape) or nil end,
  ["--moe-token-dispatcher-type"] = function(f) return has_experts(f) and dispatcher_of(f) or nil end,
  ["--moe-flex-dispatcher-backend"] = function(f)
    return has_experts(f) and dispatcher_of(f) == "flex" and flexible[f.plan.alltoall_kernel.name] or nil
  end,
  ["--moe-grouped-gemm"] = has_experts,
  ["--moe-router-pre-softmax"] = function(f) return has_experts(f) and f.shape.experts_per_token == 1 end,   -- refused without it
  ["--moe-router-enable-expert-bias"] = biased_by_load,
  ["--moe-router-score-function"] = function(f) return biased_by_load(f) and "sigmoid" or nil end,
  ["--multi-latent-attention"] = is_mla,
  ["--optimizer"] = function(f) return f.request.training.optimizer ~= "adamw" and f.request.training.optimizer or nil end,
  ["--bf16"] = function(f) return f.plan.training.precision == "bf16" or f.plan.training.precision == "fp8" end,
  ["--fp16"] = function(f) return f.plan.training.precision == "fp16" end,
  ["--accumulate-allreduce-grads-in-fp32"] = function(f)   -- Megatron-FSDP has a type of its own for them
    return f.plan.training.precision == "fp16" and f.request.training.gradients == "fp32" and f.training.zero < 2
  end,
  -- scales of 128 elements, as fp8 is counted (arXiv:2412.19437, 3.3.2); on Blackwell its own block format
  ["--fp8-format"] = function(f) return f.plan.training.precision == "fp8" and "e4m3" or nil end,
  ["--fp8-recipe"] = function(f)
    return f.plan.training.precision == "fp8" and (f.request.cluster.accelerator_family == "blackwell" and "mxfp8" or "blockwise") or nil
  end,
  ["--use-distributed-optimizer"] = function(f) return f.training.zero > 0 end,
  ["--use-precision-aware-optimizer"] = function() return nil end,   -- where a key wants it
  ["--optimizer-cpu-offload"] = function() return nil end,
  ["--use-megatron-fsdp"] = function() return nil end,
  ["--ckpt-format"] = function(f) return f.training.zero >= 2 and "fsdp_dtensor" or nil end,
  ["--sequence-parallel"] = function(f) return f.plan.parallelism.tensor > 1 and f.request.training.sequence_parallel ~= false end,
  ["--recompute-granularity"] = function(f) return is_full(f) and "full" or selects(f) and "selective" or nil end,
  ["--recompute-method"] = function(f) return is_full(f) and "uniform" or nil end,
  ["--recompute-num-layers"] = function(f) return is_full(f) and 1 or nil end,
  ["--recompute-modules"] = function(f) return selects(f) and modules_of(f) or nil end,
  ["--overlap-moe-expert-parallel-comm"] = overlaps_experts,
  ["--overlap-grad-reduce"] = function(f) return (f.request.training.data_overlap or 0) > 0 and not in_v(f) end,
  ["--overlap-param-gather"] = function(f) return (f.request.training.data_overlap or 0) > 0 and f.training.zero > 0 and not in_v(f) end,
  ["--train-samples"] = function(f) return volume.samples(f.plan) end,
}

return writes
