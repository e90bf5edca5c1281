-- SPDX-License-Identifier: Apache-2.0
-- megatron.lua: Megatron-LM and Megatron-Core. What a table holds is said in ../frameworks.lua.
-- A = megatron/training/arguments.py, T = megatron/core/transformer/transformer_config.py, B = megatron/core/transformer/transformer_block.py,
-- L = megatron/core/transformer/pipeline_parallel_layer_layout.py, S = megatron/core/pipeline_parallel/schedules.py,
-- M = megatron/core/model_parallel_config.py, P = megatron/core/parallel_state.py, N = megatron/core/num_microbatches_calculator.py, all of
-- NVIDIA/Megatron-LM @d98e8a64; "run": seen with the PyPI package on a CPU.

local parts = require "pipeplan.catalog.frameworks.parts"

local repository = "https://github.com/NVIDIA/Megatron-LM/tree/d98e8a64, "

local function at(where) return repository .. where end

-- What --overlap-moe-expert-parallel-comm asks beside virtual stages.
local overlapped = { "interleaved_1f1b_overlap" }

return parts.split({
  name = "megatron", title = "Megatron-LM",
  versions = {
    { name = "core 0.20.0", what = "NVIDIA/Megatron-LM @d98e8a64, 22 August 2026: lines are of it" },
    { name = "core 0.19.2", what = "PyPI megatron-core, September 2026: what was run" },
  },
  schedules = {
    ["1f1b"] = { flag = "--pipeline-model-parallel-size" },
    interleaved_1f1b = { flag = "--num-virtual-stages-per-pipeline-rank" },
    interleaved_1f1b_overlap = { flag = "--num-virtual-stages-per-pipeline-rank --overlap-moe-expert-parallel-comm", alone = true, since = "PyTorch 2.6" },
  },
  names = { microbatches = "global-batch-size / (micro-batch-size × data parallel)", pipeline = "--pipeline-model-parallel-size" },

  has = { tensor = true, context = true, expert = true, expert_tensor = true, sequence_parallel = "beside TP, when asked for",
          tied_embeddings = true },
  argparse = at "arguments.py: parse_args, validate_args; megatron-core 0.19.2",
  layers = { how = "layout", key = "--pipeline-model-parallel-layout", first = "--decoder-first-pipeline-num-layers",
             last = "--decoder-last-pipeline-num-layers",
             source = at "pipeline_parallel_layer_layout.py:78-150; transformer_config.py:2229-2415" },
  -- sharded gradients are reduced and added up in the parameters' precision when nobody says
  sharding = { alone = { 0, 1, 2, 3 }, with_pipeline = { 0, 1 }, gradients = "bf16", in_place = true,
               bucket = 40e6, bucket_per_rank = 1e6,
               source = at "arguments.py: --use-torch-fsdp2 and ZeRO 2, 3 of its FSDP want P 1 with torch's; Megatron-FSDP: param_and_grad_buffer.py, _resolve_group_grad_dtype; docs/user-guide/features/megatron_fsdp.md: no copies before and after collectives; distributed_data_parallel.py:134" },
  recompute = { modules = { norm = { key = "layernorm" }, activation = { key = "moe_act", experts_only = true }, mla_up_projection = { key = "mla_up_proj" },
                            core_attention = { key = "core_attn" }, moe = { key = "moe", experts_only = true } },
                source = at "transformer_config.py:1901-1940" },
  overlap = {
    pipeline = "on with V > 1, off by --no-overlap-p2p-communication", gradients = "--overlap-grad-reduce", parameters = "--overlap-param-gather",
    expert = "--overlap-moe-expert-parallel-comm, with V > 1 or without a pipeline", tensor = "--tp-comm-overlap",
    source = at "arguments.py:1000-1066, transformer_config.py:3002-3046; combined_1f1b.py: combined_1f1b_schedule_for_no_pipelining",
  },
  weight_gradients = { how = "kept", source = "https://github.com/NVIDIA/TransformerEngine, transformer_engine/pytorch/module/base.py: get_dummy_wgrad" },
  loss = { how = "vocab_parallel", source = at "megatron/core/tensor_parallel/cross_entropy.py, language_module.py: compute_language_model_loss" },
  -- expert_tensor: "tensor", as many as TP, or a number; zero: the stage that nobody asked for
  defaults = { expert_tensor = "tensor", zero = 0, moments = "fp32", gradients = "fp32", precision = "fp32", sequence_parallel = false,
               linear_inputs = "bf16", dispatcher = "allgather", source = at "arguments.py:588, model_parallel_config.py:507; arguments.py: --use-distributed-optimizer" },
  -- init_process_group gets no device_id, so that a group has a communicator once it is used. In groups of one rank too: batches are sent to
  -- TP's ranks (`tensor`), gradients' norms are reduced over `model` or, where their optimizer is sharded, `optimizer`, with `model` for
  -- whether a step was taken
  communicators = { "world", "tensor", "context", "data", "model", "optimizer", "pipeline", "pairs", "embedding", "dispatch", "expert",
                    "expert_data", measured = true,
                    source = at "initialize.py:342-420, so since core 0.4; parallel_state.py; utils.py: get_batch_on_this_tp_rank; training.py:3198-3204; "
                             .. "used groups: tests/data/gpu/megatron_groups_4xH200.json" },
  host_floor = { forward = 1.9e-3, backward = 3.0e-3, moe_forward = 4.0e-3, moe_backward = 5.4e-3, expert_forward = 0.41e-3, expert_backward = 0.5e-3,
                 waiting = 0.2,
                 source = "measured here: tests/data/gpu/megatron_core_H200.jsonl, 4.7 ms forward and backward of a dense layer of megatron-core 0.19.2, 0.41 and 0.5 ms an expert; https://github.com/NVIDIA-NeMo/Megatron-Bridge docs/performance-summary: 9.5 ms an MoE layer of Qwen3-30B on 16 H100" },

  plan_rules = {
    { id = "megatron.mixer_context", context_parallel = { over = 1 },
      when = function(f)
        if not f.mixer_heads or f.mixer_heads % f.tensor_parallel ~= 0 or f.mixer_groups % f.tensor_parallel ~= 0 then return false end
        local groups, context = f.mixer_groups // f.tensor_parallel, f.context_parallel
        return f.mixer_heads // f.tensor_parallel % context ~= 0 or (groups < context and context % groups or groups % context) ~= 0
      end,
      message = "{framework}: CP {context_parallel} does not divide what TP {tensor_parallel} leaves of a mixer's {mixer_heads} heads in "
                .. "{mixer_groups} groups", source = at "ssm/mamba_context_parallel.py:106-129" },
    { id = "megatron.context_sequence", context_parallel = { over = 1 },
      when = function(f) return f.sequence_length % (2 * f.context_parallel) ~= 0 end,
      message = "{framework}: sequences of {sequence_length} do not divide by twice CP {context_parallel}", source = at "arguments.py:1335" },
    { id = "megatron.expert_bias", expert_tensor_parallel = { over = 1 }, expert_bias = true,
      message = "{framework}: experts with biases are not split; write --expert-tensor-parallel-size 1 (it defaults to TP)",
      nearest = function() return { field = "expert_tensor_parallel", value = 1 } end, source = at "transformer_config.py:2615" },
    { id = "megatron.overlap_experts", schedule = overlapped, expert_parallel = { at_most = 1 },
      message = "no {schedule} here: its pairs hide the all-to-all between experts: there is none at EP 1", source = at "transformer_config.py:3002-3046" },
    { id = "megatron.overlap_recompute", schedule = overlapped, recompute_kind = "full",
      message = "no {schedule} here: {framework} recomputes neither whole layers nor the expert MLP beside it", source = at "transformer_config.py:3002-3046" },
    { id = "megatron.overlap_recompute_moe", schedule = overlapped, recomputes_moe = true,
      message = "no {schedule} here: {framework} recomputes neither whole layers nor the expert MLP beside it", source = at "transformer_config.py:3002-3046" },
    { id = "megatron.overlap_mtp", schedule = overlapped, mtp_layers = { over = 1 },
      message = "no {schedule} here: {framework} runs it with at most one MTP layer", source = at "transformer_config.py:3002-3046" },
    { id = "megatron.overlap_precision", schedule = overlapped, precision = "fp32",
      message = "no {schedule} here: {framework} runs it in bf16 or fp16", source = at "transformer_config.py:3002-3046" },
    { id = "megatron.precision_aware", optimizer_state = "reduced",
      when = function(f) return f.zero == 0 or f.optimizer ~= "adam" and f.optimizer ~= "adamw" end,
      message = "{framework} keeps moments or gradients in less than fp32 only with Adam and its distributed optimizer",
      source = at "optimizer_config.py:433-470; optimizer/__init__.py:1057" },
    { id = "megatron.sharded_optimizer", zero = { at_least = 2 }, optimizer = "muon",
      message = "{framework} shards gradients of Adam and SGD only: Megatron-FSDP refuses others", source = at "arguments.py:1150" },
  },
  notes = "uneven stages by --pipeline-model-parallel-layout",
  source = "https://github.com/NVIDIA/Megatron-LM/tree/d98e8a6, arguments.py, schedules.py; DualPipe: https://github.com/NVIDIA/Megatron-LM/pull/5254 closed, https://github.com/NVIDIA/Megatron-LM/issues/1524 says why",
}, function(entry) return require "pipeplan.catalog.frameworks.megatron_keys"(entry.plan_rules) end)
