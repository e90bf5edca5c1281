-- SPDX-License-Identifier: Apache-2.0
-- megatron_keys.lua: what of Megatron-LM only who reads or writes its flags asks for: its keys, what became of old ones, what no plan says, and
-- rules that no plan breaks. Names of files as in megatron.lua.

local checks = require "pipeplan.catalog.frameworks.megatron_checks"
local integers = require "pipeplan.base.integers"
local parts = require "pipeplan.catalog.frameworks.parts"
local unread = require "pipeplan.catalog.frameworks.megatron_unread"

local function at(where) return "https://github.com/NVIDIA/Megatron-LM/tree/d98e8a64, " .. where end

-- What Megatron-FSDP calls a stage of ZeRO that it is needed for. Parameters that are kept after their first use are not sharded.
local function strategy(training)
  if (training.zero or 1) < 2 then return nil end
  return training.zero == 3 and training.reshard ~= false and "optim_grads_params" or "optim_grads"
end

-- Its gradients are as the parameters' when nobody says.
local function stated_gradients(training, given)
  return strategy(training) and given["training.gradients"] and training.gradients or nil
end

-- Its Adam decouples weight decay (core/optimizer/optimizer_config.py:250), and dist_muon is Muon under an old name (arguments.py:1672).
local function optimizer(training) return training.optimizer == "adamw" and "adam" or training.optimizer end

local function one_optimizer(a, b) return a == b or a == "dist_muon" and b == "muon" end

-- What a plan knows of dropout is whether there is any: with, the rate that nobody said.
local function dropout_rate(training) return training.dropout and 0.1 or 0 end

local function both_drop(a, b) return (tonumber(a) or 0) > 0 == ((tonumber(b) or 0) > 0) end

-- plan_rules: those that plans are held against.
return function(plan_rules) return {
  keys = parts.joined({
    { key = "--tensor-model-parallel-size", field = "parallelism.tensor", type = "integer", default = 1, needed = true, written = "differs" },
    { key = "--pipeline-model-parallel-size", field = "parallelism.pipeline", type = "integer", default = 1, needed = true, written = "differs" },
    { key = "--context-parallel-size", field = "parallelism.context", type = "integer", default = 1, needed = true, written = "differs" },
    { key = "--expert-model-parallel-size", field = "parallelism.expert", type = "integer", default = 1, needed = true, written = "differs" },
    { key = "--expert-tensor-parallel-size", field = "parallelism.expert_tensor", type = "integer", default_of = "parallelism.tensor",
      written = "differs", silent = true },
    { key = "--num-virtual-stages-per-pipeline-rank", field = "parallelism.virtual", type = "integer", written = "differs",
      note = "1 is turned off silently (arguments.py:978)" },
    { key = "--num-layers-per-virtual-pipeline-stage", field = "parallelism.virtual", type = "integer", written = "never",
      note = "V is the layers by P times that" },
    { key = "--pipeline-model-parallel-layout", field = "plan.megatron_layout", type = "layout", written = "differs",
      note = "V is stages by P; stages as many as P: none" },
    { key = "--decoder-first-pipeline-num-layers", field = "parallelism.layers_per_stage", type = "integer", written = "differs" },
    { key = "--decoder-last-pipeline-num-layers", field = "parallelism.layers_per_stage", type = "integer", written = "differs" },
    { key = "--account-for-embedding-in-pipeline-split", field = "parallelism.layers_per_stage", type = "flag", present = true,
      default = false, written = "never" },
    { key = "--account-for-loss-in-pipeline-split", field = "parallelism.layers_per_stage", type = "flag", present = true,
      default = false, written = "never" },
    { key = "--microbatch-group-size-per-virtual-pipeline-stage", field = "plan.microbatch_group_size", type = "integer",
      default_of = "parallelism.pipeline", written = "differs" },
    { key = "--micro-batch-size", field = "training.micro_batch_size", type = "integer", least = 1, written = "always" },
    { key = "--global-batch-size", field = "training.global_batch_size", type = "integer", least = 1, written = "always",
      note = "absent: one microbatch for each data-parallel rank (arguments.py:702)" },
    { key = "--step-batch-size-schedule", field = "training.global_batch_size", type = "ramp", written = "differs",
      note = "not beside --global-batch-size (arguments.py:699)" },
    { key = "--seq-length", field = "training.sequence_length", type = "integer", least = 1, written = "always" },
    { key = "--max-position-embeddings", field = "model.max_positions", type = "integer", least = 1, written = "always",
      note = "at least --seq-length (arguments.py:1354)" },
    { key = "--num-layers", field = "model.layers", type = "integer", least = 1, written = "always" },
    { key = "--hidden-size", field = "model.hidden", type = "integer", least = 1, written = "always" },
    { key = "--num-attention-heads", field = "model.heads", type = "integer", least = 1, written = "always" },
    { key = "--ffn-hidden-size", field = "model.ffn", type = "integer", positive = true, written = "always",
      note = "absent: 4 h, with --swiglu ⌊8 h / 3 / 64⌋ · 64 (arguments.py:1320)" },
    { key = "--group-query-attention", type = "flag", present = true, default = false, written = "differs",
      note = "without it --num-query-groups is ignored" },
    { key = "--num-query-groups", field = "model.kv_heads", type = "integer", default_of = "model.heads", written = "differs" },
    { key = "--kv-channels", field = "model.head_dim", type = "integer", positive = true, written = "differs", note = "absent: h by heads" },
    { key = "--swiglu", field = "model.gated", type = "flag", present = true, default = false, written = "differs" },
    { key = "--untie-embeddings-and-output-weights", field = "model.tied_embeddings", type = "flag", present = false, default = true,
      written = "differs" },
    { key = "--num-experts", field = "model.experts", type = "integer", written = "differs" },
    { key = "--moe-ffn-hidden-size", field = "model.expert_ffn", type = "integer", positive = true, default_of = "model.ffn", written = "differs" },
    { key = "--moe-router-topk", field = "model.experts_per_token", type = "integer", positive = true, default = 2, written = "differs" },
    { key = "--moe-layer-freq", field = "model.dense_layers", type = "pattern", default = 1, written = "differs",
      note = "a number, or a Python list such as ([0]*3+[1]*58)" },
    { key = "--moe-shared-expert-intermediate-size", field = "model.shared_ffn", type = "integer", positive = true, default = 0, written = "differs" },
    { key = "--moe-token-dispatcher-type", type = "choice", values = { "allgather", "alltoall", "flex" }, default = "allgather",
      written = "differs", note = "flex wants TP · EP over 1" },
    { key = "--mtp-num-layers", field = "model.mtp_layers", type = "integer", default = 0, written = "differs",
      note = "with rotary or no position embedding only (arguments.py:883)" },
    { key = "--multi-latent-attention", field = "model.attention", type = "flag", present = "mla", default = "gqa", written = "differs" },
    { key = "--q-lora-rank", field = "model.q_lora_rank", type = "integer", written = "differs" },
    { key = "--kv-lora-rank", field = "model.kv_lora_rank", type = "integer", positive = true, default = 32, written = "differs" },
    { key = "--moe-flex-dispatcher-backend", type = "choice", values = { "deepep", "hybridep", "ncclep" }, default = "deepep",
      written = "differs" },
    { key = "--normalization", type = "choice", values = { "LayerNorm", "RMSNorm" }, default = "LayerNorm", written = "differs" },
    { key = "--qk-layernorm", type = "flag", present = true, default = false, written = "differs" },
    { key = "--add-qkv-bias", field = "model.qkv_bias", type = "flag", present = true, default = false, written = "differs" },
    { key = "--disable-bias-linear", field = "model.mlp_bias", type = "flag", present = false, default = true, written = "differs" },
    { key = "--bf16", field = "training.precision", type = "flag", present = "bf16", default = "fp32", written = "differs" },
    { key = "--fp16", field = "training.precision", type = "flag", present = "fp16", default = "fp32", written = "differs" },
    { key = "--fp8-format", field = "training.precision", type = "choice", values = { "e4m3", "hybrid" }, written = "differs",
      note = "beside --bf16" },
    { key = "--fp8-recipe", type = "string", written = "differs" },
    { key = "--use-distributed-optimizer", field = "training.zero", type = "flag", present = 1, default = 0, written = "differs",
      silent = true },
    { key = "--use-megatron-fsdp", type = "flag", present = true, default = false, written = "differs", note = "wants --ckpt-format fsdp_dtensor" },
    { key = "--ckpt-format", type = "choice", values = { "torch", "torch_dist", "torch_dcp", "fsdp_dtensor" }, default = "torch_dist", written = "differs" },
    { key = "--data-parallel-sharding-strategy", field = "training.zero", type = "choice",
      values = { "no_shard", "optim", "optim_grads", "optim_grads_params" }, default = "no_shard", written = "differs", silent = true,
      value = strategy, wants = "--use-megatron-fsdp" },
    { key = "--num-distributed-optimizer-instances", field = "training.replicas", type = "integer", default = 1, written = "differs",
      silent = true, note = "groups that each shard a whole state" },
    { key = "--fp8-param-gather", field = "training.fp8_gathers", type = "flag", present = true, default = false, written = "differs", silent = true },
    { key = "--megatron-fsdp-main-grads-dtype", field = "training.gradients", type = "choice", values = { "fp32", "bf16", "auto" },
      default = "auto", written = "differs", silent = true, value = stated_gradients, wants = "--use-megatron-fsdp" },
    { key = "--use-precision-aware-optimizer", type = "flag", present = true, default = false, written = "differs",
      note = "what the dtypes of state, and offload, want" },
    { key = "--main-grads-dtype", field = "training.gradients", type = "choice", values = { "fp32", "bf16" }, default = "fp32",
      written = "differs", silent = true, wants = "--use-precision-aware-optimizer" },
    { key = "--exp-avg-dtype", field = "training.moments", type = "choice", values = { "fp32", "bf16", "fp16", "fp8" }, default = "fp32",
      written = "differs", silent = true, wants = "--use-precision-aware-optimizer" },
    { key = "--exp-avg-sq-dtype", field = "training.moments", type = "choice", values = { "fp32", "bf16", "fp16", "fp8" }, default = "fp32",
      written = "differs", silent = true, wants = "--use-precision-aware-optimizer" },
    { key = "--grad-reduce-in-bf16", type = "flag", present = true, default = false, written = "never" },
    { key = "--optimizer-cpu-offload", type = "flag", present = true, default = false, written = "differs",
      wants = "--use-precision-aware-optimizer" },
    { key = "--optimizer-offload-fraction", field = "training.optimizer_offload", type = "fraction", default = 0, written = "differs",
      silent = true, wants = "--optimizer-cpu-offload" },
    { key = "--sequence-parallel", field = "plan.sequence_parallel", type = "flag", present = true, default = false, written = "differs",
      silent = true, note = "ignored, with a warning, at TP 1 (arguments.py:1433)" },
    { key = "--hidden-dropout", field = "training.dropout", type = "number", default = 0.1, written = "differs", silent = true,
      value = dropout_rate, same = both_drop, note = "behind embedding, attention and MLP (transformer_config.py:188)" },
    { key = "--attention-dropout", field = "training.dropout", type = "number", default = 0.1, written = "differs", silent = true,
      value = dropout_rate, same = both_drop, note = "of the softmax (transformer_config.py:191)" },
    { key = "--recompute-granularity", field = "training.recompute", type = "choice", values = { "full", "selective" }, written = "differs" },
    { key = "--recompute-method", type = "choice", values = { "uniform", "block" }, written = "differs", note = "with full only" },
    { key = "--recompute-num-layers", type = "integer", written = "differs", note = "with full only" },
    { key = "--recompute-modules", field = "training.recompute", type = "list", default = "core_attn", written = "differs",
      values = checks.recompute_modules, note = "with selective only" },
    { key = "--moe-layer-recompute", field = "training.recompute", type = "flag", present = true, default = false, written = "never" },
    { key = "--recompute-activations", field = "training.recompute", type = "flag", present = "selective", written = "never" },
    { key = "--overlap-moe-expert-parallel-comm", field = "plan.overlap_alone", silent = true, type = "flag", present = true, default = false, written = "differs" },
    { key = "--cross-entropy-loss-fusion", field = "training.loss", type = "flag", present = "vocab_parallel_compiled", default = "vocab_parallel",
      written = "differs" },
    { key = "--cross-entropy-fusion-impl", type = "choice", values = { "native", "te" }, default = "native", written = "never" },
    { key = "--delay-wgrad-compute", type = "flag", present = true, default = false, written = "never" },
    { key = "--no-overlap-p2p-communication", type = "flag", present = true, default = false, written = "never" },
    { key = "--overlap-grad-reduce", type = "flag", present = true, default = false, written = "differs",
      assumed = { field = "training.data_overlap", value = 0, why = "hides a share of gradients' traffic that no flag says" } },
    { key = "--overlap-param-gather", type = "flag", present = true, default = false, written = "differs" },
    { key = "--overlap-param-gather-with-optimizer-step", type = "flag", present = true, default = false, written = "never" },
    { key = "--vocab-size", field = "model.vocab", type = "integer", positive = true, written = "differs", note = "before it is padded" },
    { key = "--train-samples", type = "integer", written = "differs" },
    { key = "--train-iters", type = "integer", written = "never" },
    { key = "--qk-head-dim", field = "model.qk_nope_dim", type = "integer", positive = true, default = 128, written = "differs" },
    { key = "--qk-pos-emb-head-dim", field = "model.qk_rope_dim", type = "integer", default = 64, written = "differs" },
    { key = "--v-head-dim", field = "model.v_dim", type = "integer", positive = true, default = 128, written = "differs" },
    { key = "--use-torch-fsdp2", type = "flag", present = true, default = false, written = "never" },
    { key = "--hybrid-context-parallel", type = "flag", present = true, default = false, written = "never" },
    { key = "--cpu-offloading-num-layers", type = "integer", default = 0, written = "never",
      unread = { field = "training", what = "activations in host memory" } },
    { key = "--overlap-p2p-communication-warmup-flush", type = "flag", present = true, default = false, written = "never" },
    { key = "--ep-overlap-early-attn-memory-release", type = "flag", present = true, default = false, written = "never" },
    { key = "--moe-router-padding-for-quantization", type = "flag", present = true, default = false, written = "never" },
    { key = "--moe-router-padding-for-fp8", type = "flag", present = true, default = false, written = "never" },
    { key = "--moe-single-grouped-weight", type = "flag", present = true, default = false, written = "never" },
    { key = "--moe-single-grouped-bias", type = "flag", present = true, default = false, written = "never" },
    { key = "--moe-pad-expert-input-to-capacity", type = "flag", present = true, default = false, written = "never" },
    { key = "--fused-residual-rmsnorm", type = "flag", present = true, default = false, written = "never" },
    { key = "--squared-relu", type = "flag", present = true, default = false, written = "never" },
    { key = "--no-bias-gelu-fusion", type = "flag", present = false, default = true, written = "never" },
    { key = "--moe-expert-capacity-factor", type = "number", written = "never",
      assumed = { field = "training.expert_imbalance", value = 1, why = "drops tokens over a capacity, or pads up to it" } },
    { key = "--experimental-attention-variant", type = "string", written = "never",
      unread = { field = "model", what = "attention of another kind" } },
    { key = "--linear-attention-freq", type = "string", written = "never" },
    { key = "--cpu-offloading", type = "flag", present = true, default = false, written = "never",
      unread = { field = "training", what = "activations in host memory" } },
    { key = "--defer-embedding-wgrad-compute", type = "flag", present = true, default = false, written = "never" },
    { key = "--moe-shared-expert-overlap", type = "flag", present = true, default = false, written = "never" },
    { key = "--moe-grouped-gemm", type = "flag", present = true, default = false, written = "differs" },
    { key = "--position-embedding-type", type = "choice", default = "learned_absolute", written = "differs",
      values = { "learned_absolute", "rope", "mrope", "yarn", "relative", "none" } },
    { key = "--optimizer", field = "training.optimizer", type = "choice", default = "adam", written = "differs", silent = true,
      value = optimizer, same = one_optimizer,
      values = { "adam", "sgd", "muon", "dist_muon", "lion", "soap", "adaptive_muon" } },
    { key = "--accumulate-allreduce-grads-in-fp32", type = "flag", present = true, default = false, written = "differs",
      note = "with fp16, whose gradients are else as its parameters (arguments.py:1186-1193)" },
    { key = "--data-path", type = "list", written = "never" },
    { key = "--moe-enable-deepep", type = "flag", present = true, default = false, written = "differs",
      note = "of core 0.15 and before; since then --moe-flex-dispatcher-backend" },
    { key = "--distribute-saved-activations", type = "flag", present = true, default = false, written = "never",
      assumed = { field = "training.recompute", value = "inputs of layers whole on each TP rank", why = "cuts them over TP" } },
    { key = "--eval-global-batch-size", type = "integer", written = "never" },
    { key = "--eval-micro-batch-size", type = "integer", written = "never" },
    { key = "--fp4-format", type = "choice", values = { "e2m1" }, written = "never",
      unread = { field = "training", what = "products in fp4" } },
    { key = "--fp4-param-gather", type = "flag", present = true, default = false, written = "never" },
    { key = "--no-gradient-accumulation-fusion", type = "flag", present = false, default = true, written = "never" },
    { key = "--lr", type = "number", written = "never" },
    { key = "--min-lr", type = "number", written = "never" },
    { key = "--lr-decay-iters", type = "integer", written = "never" },
    { key = "--lr-decay-samples", type = "integer", written = "never" },
    { key = "--lr-warmup-fraction", type = "number", written = "never" },
    { key = "--lr-warmup-iters", type = "integer", default = 0, written = "never" },
    { key = "--lr-warmup-samples", type = "integer", default = 0, written = "never" },
    { key = "--mock-data", type = "flag", present = true, default = false, written = "never" },
    { key = "--no-position-embedding", type = "flag", present = true, default = false, written = "never" },
    { key = "--use-rotary-position-embeddings", type = "flag", present = true, default = false, written = "never" },
    { key = "--moe-router-load-balancing-type", type = "list", written = "never" },
    { key = "--moe-router-enable-expert-bias", field = "model.router_correction_bias", type = "flag", present = true, default = false,
      written = "differs" },
    { key = "--moe-router-num-groups", type = "integer", written = "never" },
    { key = "--moe-router-group-topk", type = "integer", default = 0, written = "never" },
    { key = "--moe-router-pre-softmax", type = "flag", present = true, default = false, written = "differs" },
    { key = "--moe-router-score-function", type = "choice", values = { "softmax", "sigmoid", "sqrtsoftplus" }, default = "softmax",
      written = "differs", note = "sigmoid where experts have a bias (transformer_config.py:2617)" },
    { key = "--save", type = "string", written = "never" },
    { key = "--save-interval", type = "integer", written = "never" },
    { key = "--skip-train", type = "flag", present = true, default = false, written = "never" },
    { key = "--tp-comm-overlap", type = "flag", present = true, default = false, written = "never",
      assumed = { field = "training.tensor_overlap", value = 0, why = "hides a share of TP's traffic that no flag says" } },
    { key = "--encoder-num-layers", field = "model.layers", type = "integer", least = 1, written = "never", note = "of models with an encoder" },
    { key = "--encoder-seq-length", field = "training.sequence_length", type = "integer", least = 1, written = "never" },
    { key = "--hybrid-layer-pattern", type = "string", written = "never", note = "| gives stages; excludes every key of a layout",
      unread = { field = "model", what = "layers of several kinds" } },
    { key = "--hierarchical-context-parallel-sizes", type = "list", written = "never" },
    { key = "--cp-comm-type", type = "list", default = "p2p", written = "never" },
    { key = "--main-params-dtype", type = "choice", values = { "fp32", "fp16" }, default = "fp32", written = "never",
      assumed = { field = "training.optimizer", value = "master weights in fp32", why = "keeps them in 2 bytes" } },
    { key = "--mamba-num-heads", type = "integer", written = "never", note = "absent: twice the hidden size over the size of a head" },
    { key = "--mamba-head-dim", type = "integer", default = 64, written = "never" },
    { key = "--mamba-num-groups", type = "integer", default = 8, written = "never" },
    { key = "--mamba-state-dim", type = "integer", default = 128, written = "never" },
  }, unread),
  unplanned = function(shape)
    if (shape.experts or 0) == 0 then return nil end
    return "the router's groups of experts, scaling factor and balance",
           { "--moe-router-num-groups", "--moe-router-group-topk", "--moe-router-topk-scaling-factor", "--moe-router-load-balancing-type" }
  end,
  accepts = {
    by = "megatron-core 0.19.2: `validate_args`, `TransformerConfig`, layers of each stage", test = "megatron_plans_test.py",
    except = { { what = "fp8", why = "it wants Transformer Engine", when = function(plan) return plan.training.precision == "fp8" end } },
  },
  told = { dropout = true },
  facts = checks.facts, required = checks.required,
  writes = require "pipeplan.catalog.frameworks.megatron_writes", unsaid = require "pipeplan.catalog.frameworks.megatron_unsaid",
  -- how: refused with the new name, unrecognized, renamed: still taken, with a warning, or ignored: parsed, warned about on one rank, and
  -- then not passed on
  gone = {
    { key = "--batch-size", now = "--micro-batch-size", how = "refused", source = at "arguments.py:591" },
    { key = "--warmup", now = "--lr-warmup-fraction", how = "refused", source = at "arguments.py:594" },
    { key = "--model-parallel-size", now = "--tensor-model-parallel-size", how = "refused", source = at "arguments.py:597" },
    { key = "--checkpoint-activations", now = "--recompute-granularity full", how = "refused", source = at "arguments.py:601" },
    { key = "--activations-checkpoint-method", now = "--recompute-method", how = "unrecognized", source = at "arguments.py:42-118, of whose arguments it is none" },
    { key = "--DDP-impl", how = "unrecognized", source = at "arguments.py:42-118, of whose arguments it is none" },
    { key = "--standalone-embedding-stage", now = "--account-for-embedding-in-pipeline-split", how = "unrecognized", source = at "arguments.py:42-118, of whose arguments it is none" },
    { key = "--rampup-batch-size", now = "--step-batch-size-schedule", how = "ignored", source = at "num_microbatches_calculator.py:100-115" },
    { key = "--cuda-graph-scope", now = "--cuda-graph-modules", how = "renamed", source = at "arguments.py:633" },
    { key = "--moe-layer-recompute", now = "--recompute-modules moe", how = "renamed", source = at "transformer_config.py:2016" },
    { key = "--hybrid-override-pattern", now = "--hybrid-layer-pattern", how = "renamed", source = at "arguments.py:743-754" },
  },

  -- by: "engine" where a plan never has it: the enumeration of layouts, or a rule of the engine, holds it for every framework
  rules = parts.placed(plan_rules, checks.after {
    { id = "megatron.world", by = "engine",
      when = function(f) return f.gpus % integers.product(f.tensor_parallel, f.context_parallel, f.pipeline_parallel) ~= 0 end,
      message = "{framework}: {gpus} GPUs do not divide by TP {tensor_parallel} × CP {context_parallel} × P {pipeline_parallel}",
      nearest = function(f)
        return { field = "gpus", value = integers.nearest_multiple(f.gpus, integers.product(f.tensor_parallel, f.context_parallel, f.pipeline_parallel)) }
      end,
      source = at "arguments.py:432" },
    { id = "megatron.expert_world", by = "engine",
      when = function(f)  -- where the rule above does not say it
        return f.gpus % integers.product(f.expert_parallel, f.expert_tensor_parallel, f.pipeline_parallel) ~= 0
               and f.gpus % integers.product(f.tensor_parallel, f.context_parallel, f.pipeline_parallel) == 0
      end,
      message = "{framework}: {gpus} GPUs do not divide by EP {expert_parallel} × ETP {expert_tensor_parallel} × P {pipeline_parallel}",
      nearest = function(f)
        local others, experts = integers.product(f.tensor_parallel, f.context_parallel, f.pipeline_parallel),
                                integers.product(f.expert_parallel, f.expert_tensor_parallel, f.pipeline_parallel)
        local both = integers.product(others // integers.common_divisor(others, experts), experts)
        return { field = "gpus", value = integers.nearest_multiple(f.gpus, both) }
      end,
      source = at "parallel_state.py:882, when groups are made" },
    { id = "megatron.batch", by = "engine",
      when = function(f) return f.global_batch_size % (f.micro_batch_size * f.data_parallel) ~= 0 end,
      message = "{framework}: a batch of {global_batch_size} does not divide by microbatch size {micro_batch_size} × DP {data_parallel}",
      nearest = function(f)
        return { field = "global_batch_size", value = integers.nearest_multiple(f.global_batch_size, f.micro_batch_size * f.data_parallel) }
      end,
      source = at "num_microbatches_calculator.py:381" },
    { id = "megatron.heads", by = "engine", heads = { not_multiple_of = "tensor_parallel" },
      message = "{framework}: TP {tensor_parallel} does not divide {heads} heads", source = at "transformer_config.py:1446-1466" },
    { id = "megatron.mixer_heads", by = "engine", mixer_heads = { not_multiple_of = "tensor_parallel" },
      message = "{framework}: TP {tensor_parallel} does not divide the {mixer_heads} heads of Mamba layers", source = at "ssm/mamba_mixer.py:260" },
    { id = "megatron.mixer_groups", by = "engine", mixer_groups = { not_multiple_of = "tensor_parallel" },
      message = "{framework}: TP {tensor_parallel} does not divide the {mixer_groups} groups of Mamba layers", source = at "ssm/mamba_mixer.py:268" },
    { id = "megatron.mixer_heads_groups", by = "engine", mixer_heads = { not_multiple_of = "mixer_groups" },
      message = "{framework}: {mixer_groups} groups do not divide the {mixer_heads} heads of Mamba layers", source = at "ssm/mamba_mixer.py:272" },
    { id = "megatron.experts", by = "engine", expert_parallel = { over = 1 }, experts = { not_multiple_of = "expert_parallel" },
      message = "{framework}: EP {expert_parallel} does not divide {experts} experts", source = at "arguments.py:1657" },
    { id = "megatron.no_experts", by = "engine", expert_parallel = { over = 1 }, experts = 0,
      message = "{framework}: EP {expert_parallel} without experts", source = at "arguments.py:1657" },
    { id = "megatron.interleaved_depth", by = "engine", pipeline_parallel = 1, virtual = { over = 1 },
      message = "{framework}: V {virtual} without a pipeline", source = at "arguments.py:1000" },
    { id = "megatron.interleaved_group", by = "engine", virtual = { over = 1 },
      when = function(f)
        local group = f.microbatch_group or f.pipeline_parallel
        if group < f.pipeline_parallel or group > f.microbatches then return true end
        local left = f.microbatches % group
        return left > 0 and left < f.pipeline_parallel
      end,
      message = "{framework}: interleaving takes groups of N microbatches, P ≤ N ≤ M, the last one of at least P: M is {microbatches}, "
                .. "P {pipeline_parallel}", source = at "schedules.py:1161-1180" },
    { id = "megatron.query_groups", by = "engine", tensor_parallel = { not_multiple_of = "query_groups" },
      query_groups = { not_multiple_of = "tensor_parallel" },
      message = "{framework}: TP {tensor_parallel} and the {query_groups} query groups divide neither way",
      source = at "transformer_config.py:1446-1466" },
    "megatron.mixer_context", "megatron.context_sequence", "megatron.expert_bias", "megatron.overlap_experts",
    "megatron.overlap_recompute", "megatron.overlap_recompute_moe", "megatron.overlap_mtp", "megatron.overlap_precision",
  }),
} end
