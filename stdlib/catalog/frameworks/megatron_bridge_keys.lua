-- SPDX-License-Identifier: Apache-2.0
-- megatron_bridge_keys.lua: what of Megatron-Bridge only who reads or writes its files asks for: its keys, its recipes, and rules that no plan
-- breaks. Names of files as in megatron_bridge.lua.

local writes = require "pipeplan.catalog.frameworks.megatron_bridge_writes"

return {
  renamed = {
    ["--num-virtual-stages-per-pipeline-rank"] = "model.virtual_pipeline_model_parallel_size",
    ["--decoder-first-pipeline-num-layers"] = "model.num_layers_in_first_pipeline_stage",
    ["--decoder-last-pipeline-num-layers"] = "model.num_layers_in_last_pipeline_stage",
    ["--num-experts"] = "model.num_moe_experts", ["--micro-batch-size"] = "train.micro_batch_size",
    ["--global-batch-size"] = "train.global_batch_size",
    ["--microbatch-group-size-per-virtual-pipeline-stage"] = "model.microbatch_group_size_per_vp_stage",
    ["--use-distributed-optimizer"] = "ddp.use_distributed_optimizer",
    ["--use-precision-aware-optimizer"] = "optimizer.use_precision_aware_optimizer",
    ["--main-params-dtype"] = "optimizer.main_params_dtype",
    ["--main-grads-dtype"] = "optimizer.main_grads_dtype", ["--exp-avg-dtype"] = "optimizer.exp_avg_dtype",
    ["--exp-avg-sq-dtype"] = "optimizer.exp_avg_sq_dtype", ["--optimizer-cpu-offload"] = "optimizer.optimizer_cpu_offload",
    ["--optimizer-offload-fraction"] = "optimizer.optimizer_offload_fraction",
    ["--overlap-moe-expert-parallel-comm"] = "comm_overlap.overlap_moe_expert_parallel_comm",
    ["--delay-wgrad-compute"] = "comm_overlap.delay_wgrad_compute",
    ["--overlap-param-gather-with-optimizer-step"] = "comm_overlap.overlap_param_gather_with_optimizer_step",
    ["--use-megatron-fsdp"] = "ddp.use_megatron_fsdp", ["--data-parallel-sharding-strategy"] = "ddp.data_parallel_sharding_strategy",
    ["--num-distributed-optimizer-instances"] = "ddp.num_distributed_optimizer_instances",
    ["--fp8-param-gather"] = "mixed_precision.fp8_param_gather", ["--ckpt-format"] = "checkpoint.ckpt_format",
    ["--megatron-fsdp-main-grads-dtype"] = "ddp.megatron_fsdp_main_grads_dtype",
    ["--overlap-grad-reduce"] = "ddp.overlap_grad_reduce", ["--overlap-param-gather"] = "ddp.overlap_param_gather",
    ["--ddp-bucket-size"] = "ddp.bucket_size", ["--optimizer"] = "optimizer.optimizer", ["--swiglu"] = "model.gated_linear_unit",
  },
  -- sizes that are said as something else, and precision, which is one word
  dropped = { "--num-layers-per-virtual-pipeline-stage", "--step-batch-size-schedule", "--group-query-attention", "--bf16", "--fp16",
              "--fp8-format", "--fp8-recipe", "--grad-reduce-in-bf16", "--no-overlap-p2p-communication", "--recompute-activations",
              "--untie-embeddings-and-output-weights", "--disable-bias-linear", "--train-iters", "--train-samples", "--q-lora-rank",
              "--kv-lora-rank", "--expert-tensor-parallel-size", "--cross-entropy-loss-fusion", "--squared-relu", "--no-bias-gelu-fusion",
              "--torch-fsdp2-no-reshard-after-forward", "--padded-vocab-size", "--spec", "--quick-geglu",
              "--accumulate-allreduce-grads-in-fp32", "--transformer-impl" },   -- its layers are Transformer Engine's (gpt_provider.py:120-125)
  keys = {
    { key = "train.rampup_batch_size", field = "training.global_batch_size", type = "ramp", written = "differs" },
    { key = "model.share_embeddings_and_output_weights", field = "model.tied_embeddings", type = "flag", present = true, default = true,
      written = "differs" },
    { key = "model.add_bias_linear", base = "--disable-bias-linear", field = "model.mlp_bias", type = "flag", present = true, default = true,
      written = "differs" },
    { key = "mixed_precision", field = "training.precision", type = "choice", written = "always",
      values = { "bf16_mixed", "fp16_mixed", "bf16_with_fp8_delayed_scaling_mixed", "bf16_with_fp8_current_scaling_mixed",
                 "bf16_with_fp8_subchannel_scaling_mixed", "bf16_with_mxfp8_mixed", "bf16_with_nvfp4_mixed" }, note = "mixed_precision.py:185-421" },
    { key = "model.expert_tensor_parallel_size", base = "--expert-tensor-parallel-size", field = "parallelism.expert_tensor", type = "integer",
      written = "always", silent = true, note = "absent: 1 with EP over 1, else as many as TP (defaults)" },
    { key = "optimizer.use_distributed_optimizer", type = "flag", present = true, default = false, written = "always",
      note = "either one switches both on (config.py:1945), and recipes have this one on" },
    { key = "train.train_iters", base = "--train-iters", type = "integer", written = "always" },
    { key = "train.train_samples", base = "--train-samples", type = "integer", written = "never",
      note = "not beside a warm-up in iterations, which recipes have (config.py:1560)" },
    { key = "dataset.seq_length", type = "integer", written = "always", note = "model.seq_length must be as much (config.py:1505)" },
    { key = "model._target_", type = "string", written = "differs", note = "the provider of MLA: its class has the keys of MLA" },
    { key = "model.q_lora_rank", base = "--q-lora-rank", field = "model.q_lora_rank", type = "integer", default = 512, written = "differs" },
    { key = "model.kv_lora_rank", base = "--kv-lora-rank", field = "model.kv_lora_rank", type = "integer", default = 512, written = "differs" },
    { key = "model.cross_entropy_loss_fusion", base = "--cross-entropy-loss-fusion", field = "training.loss", type = "flag",
      present = "vocab_parallel_compiled", default = "vocab_parallel_compiled", written = "differs" },
    { key = "model.activation_func", type = "string", written = "differs", note = "gelu when nobody says" },
    { key = "model.bias_activation_fusion", type = "flag", present = true, default = false, written = "differs" },
    { key = "model.bias_dropout_fusion", type = "flag", present = true, default = false, written = "differs" },
    { key = "model.overlap_p2p_comm", type = "flag", present = true, default = false, written = "differs" },
    { key = "model.batch_p2p_comm", type = "flag", present = true, default = true, written = "differs" },
    { key = "ddp.grad_reduce_in_fp32", field = "training.gradients", type = "flag", present = "fp32", default = "bf16", written = "never" },
    { key = "ddp.average_in_collective", type = "flag", present = true, default = false, written = "never" },
    { key = "comm_overlap.overlap_p2p_comm", type = "flag", present = true, written = "never" },
    { key = "comm_overlap.batch_p2p_comm", type = "flag", present = true, written = "never" },
    { key = "comm_overlap.tp_comm_overlap", type = "flag", present = true, default = false, written = "never" },
  },
  -- what the bare recipe sets beside defaults of classes (recipes/gpt/h100/vanilla_gpt.py)
  recipes = { vanilla_gpt_pretrain_config = {
    mixed_precision = "bf16_mixed", ["optimizer.use_distributed_optimizer"] = true, ["train.micro_batch_size"] = 2,
    ["train.global_batch_size"] = 32, ["train.train_iters"] = 300000, ["model.seq_length"] = 1024,
  } },
  required = { ["--num-layers"] = true, ["--hidden-size"] = true, ["--num-attention-heads"] = true }, -- the bare recipe has none
  told = { dropout = true, unfused = { activation = true } },
  writes = writes.keys, unsaid = writes.unsaid, accepts = writes.accepts,
}
