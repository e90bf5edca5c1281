-- SPDX-License-Identifier: Apache-2.0
-- primus_keys.lua: what of Primus only who reads or writes its files asks for: its keys, its presets, and rules that no plan breaks. Names of
-- files as in primus.lua.

local lists = require "pipeplan.base.lists"
local megatron = require "pipeplan.catalog.frameworks.megatron"
local writes = require "pipeplan.catalog.frameworks.primus_writes"

local function at(where) return "https://github.com/AMD-AGI/Primus/tree/fd1eeabb, " .. where end

local function grouped()
  for _, rule in ipairs(megatron.rules) do
    if rule.id == "megatron.interleaved_group" then return rule end
  end
end

return {
  facts = { patch_zero_bubble = "patch_zero_bubble", patch_primus_pipeline = "patch_primus_pipeline" },
  writes = writes.keys, unsaid = writes.unsaid, accepts = writes.accepts,
  -- what Megatron's parser calls their values
  renamed = { ["--microbatch-group-size-per-virtual-pipeline-stage"] = "microbatch_group_size_per_vp_stage", ["--fp8-format"] = "fp8",
              ["--fp4-format"] = "fp4" },
  dropped = { "--step-batch-size-schedule", "--disable-bias-linear", "--no-overlap-p2p-communication", "--no-gradient-accumulation-fusion",
              "--no-bias-gelu-fusion",
              "--no-position-embedding", "--train-iters", "--train-samples" },
  keys = {
    { key = "rampup_batch_size", field = "training.global_batch_size", type = "list", written = "never" },
    { key = "add_bias_linear", base = "--disable-bias-linear", field = "model.mlp_bias", type = "flag", present = true, default = true,
      written = "differs" },
    { key = "overlap_p2p_comm", base = "--no-overlap-p2p-communication", type = "flag", present = false, default = false, written = "never" },
    { key = "add_position_embedding", base = "--no-position-embedding", type = "flag", present = false, default = false, written = "differs",
      note = "off in the presets, and then only rotary ones are taken (arguments.py:1237 of its Megatron-LM)" },
    { key = "train_iters", base = "--train-iters", type = "integer", written = "always" },
    { key = "train_samples", base = "--train-samples", type = "integer", written = "never", note = "not beside train_iters, which presets have" },
    { key = "patch_zero_bubble", type = "flag", present = true, default = false, written = "differs", note = "not beside patch_primus_pipeline" },
    { key = "enable_zero_bubble", type = "flag", present = true, default = true, written = "differs" },
    { key = "zero_bubble_v_schedule", type = "flag", present = true, default = false, written = "differs",
      note = "alone it is V-Half, for zero_bubble_v_schedule_mem_setup is half" },
    { key = "zero_bubble_v_schedule_mem_setup", field = "parallelism.schedule", type = "choice", values = { "zb", "half", "min" },
      default = "half", written = "always" },
    { key = "zero_bubble_max_pending_backward", field = "plan.activation_limit_chunks", type = "string", default = "auto", written = "differs" },
    { key = "patch_primus_pipeline", type = "flag", present = true, default = false, written = "never" },
    { key = "pp_algorithm", field = "parallelism.schedule", type = "choice", default = "1f1b-interleaved", written = "never",
      values = { "1f1b", "1f1b-interleaved", "zero-bubble", "zero-bubble-heuristic", "zbv-formatted", "v-half", "v-min" } },
    { key = "pp_max_mem", type = "number", written = "never" },
    { key = "decoder_pipeline_manual_split_list", field = "parallelism.layers_per_stage", type = "list", written = "never" },
    { key = "recompute_layer_ids", type = "list", written = "never" },
    { key = "no_persist_layer_norm", type = "flag", present = true, default = false, written = "differs", note = "with zero bubble" },
    { key = "create_attention_mask_in_dataloader", type = "flag", present = true, default = true, written = "differs",
      note = "false with zero bubble" },
    { key = "gradient_accumulation_fusion", base = "--no-gradient-accumulation-fusion", type = "flag", present = true, default = true,
      written = "differs", note = "with zero bubble" },
    { key = "bias_gelu_fusion", base = "--no-bias-gelu-fusion", type = "flag", present = true, default = true, written = "never" },
    { key = "use_turbo_deepep", type = "flag", present = true, default = false, written = "differs", note = "wants enable_primus_turbo and EP > 1" },
    { key = "enable_primus_turbo", type = "flag", present = true, default = false, written = "differs" },
    { key = "moe_router_dtype", type = "choice", values = { "fp32", "fp64" }, written = "differs",
      note = "fp32 with use_turbo_deepep (rocm_arg_validation.py)" },
    { key = "turbo_deepep_num_cu", type = "integer", written = "never", note = "at most 32 from EP 16 on" },
  },
  -- what the presets set beside Megatron's defaults: primus/configs/modules/megatron/{pre_trainer,trainer_base,zero_bubble}.yaml and
  -- primus/configs/models/megatron/language_model.yaml
  recipes = { ["pre_trainer.yaml language_model.yaml"] = {
    bf16 = "bf16", use_distributed_optimizer = 1, sequence_parallel = true, swiglu = true, add_bias_linear = false,
    untie_embeddings_and_output_weights = false, add_position_embedding = true, micro_batch_size = 2, global_batch_size = 16,
    train_iters = 1000, seq_length = 1024, num_layers = 24, hidden_size = 1024, num_attention_heads = 16, lr = 2e-5, min_lr = 0,
    lr_warmup_iters = 40, optimizer_offload_fraction = 1,
  } },
  rules = {
    lists.with(grouped(), { schedule = "interleaved_1f1b" }),
    { id = "primus.two_runtimes", by = "engine", patch_zero_bubble = true, patch_primus_pipeline = true,
      message = "{framework} takes patch_zero_bubble or patch_primus_pipeline", source = at "wgrad_adapter.py:22" },
    { id = "primus.muon", by = "engine",
      when = function(f) return tostring(f.optimizer_name):find "muon" and (f.distributed_optimizer or 0) ~= 0 end,
      message = "{framework} has no Muon beside use_distributed_optimizer, which its presets switch on",
      source = "https://github.com/NVIDIA/Megatron-LM/tree/d3528a21, arguments.py: validate_args; run" },
    { id = "primus.overlap", by = "engine",
      when = function(f) return (f.patch_zero_bubble or f.patch_primus_pipeline) and (f.overlap_gradients or f.overlap_parameters) end,
      message = "{framework}: its schedules want overlap_grad_reduce and overlap_param_gather off", source = at "zerobubble/README.md" },
  },
}
