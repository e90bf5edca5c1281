-- SPDX-License-Identifier: Apache-2.0
-- deepspeed_keys.lua: keys of DeepSpeed 0.19.8's configuration that deepspeed.lua has not, for no plan and no rule asks for them; so that any
-- other key is told: at the top DeepSpeed ignores it (runtime/config.py), in a section that is a model of pydantic's it refuses it
-- (runtime/config_utils.py: extra="forbid": run).

local function set_of(text)
  local set = {}
  for name in text:gmatch "%S+" do set[name] = true end
  return set
end

return {
  -- deepspeed/runtime/config.py: _initialize_params, and what it calls; runtime/constants.py; monitor/config.py
  top = set_of [[
    activation_checkpointing aio autotuning bfloat16 bf16 checkpoint checkpoint_engine comet comms_logger communication_data_type compile
    csv_monitor data_efficiency data_types dataloader_drop_last datastates_ckpt disable_allgather disable_python_gc dump_state expert_parallel
    flops_profiler fp16 gradient_predivide_factor hybrid_engine log_level memory_breakdown optimizer pipeline prescale_gradients scheduler
    seq_parallel_communication_data_type steps_per_print tensor_parallel tensorboard timers torch_autocast use_data_before_expert_parallelism
    vocabulary_size wall_clock_breakdown wandb weight_quantization zero_allow_untested_optimizer zero_force_ds_cpu_optimizer
    zero_optimization allgather_size ]],

  -- runtime/zero/config.py, runtime/zero/offload_config.py, runtime/precision_config.py, runtime/tensor_parallel/config.py: fields and aliases
  sections = {
    zero_optimization = set_of [[
      contiguous_gradients reduce_scatter reduce_bucket_size use_multi_rank_bucket_allreduce allgather_partitions allgather_bucket_size
      load_from_fp32_weights elastic_checkpoint offload_param offload_optimizer zenflow sub_group_size cpu_offload_param
      cpu_offload_use_pin_memory cpu_offload stage3_prefetch_bucket_size prefetch_bucket_size stage3_param_persistence_threshold
      param_persistence_threshold stage3_model_persistence_threshold model_persistence_threshold stage3_max_live_parameters
      max_live_parameters stage3_max_reuse_distance max_reuse_distance stage3_gather_16bit_weights_on_model_save
      gather_16bit_weights_on_model_save stage3_module_granularity_threshold module_granularity_threshold
      stage3_use_all_reduce_for_fetch_params use_all_reduce_for_fetch_params stage3_allgather_sequential allgather_sequential
      stage3_gather_fp16_weights_on_model_save ignore_unused_parameters round_robin_gradients zero_hpz_partition_size zero_quantized_weights
      zero_quantized_nontrainable_weights zero_quantized_gradients memory_efficient_linear pipeline_loading_checkpoint override_module_apply
      parameter_alignment log_trace_cache_warnings enable_sanity_checks save_muon_momentum_buffer_in_memory leaf_module ]],
    ["zero_optimization.offload_optimizer"] = set_of [[
      nvme_path buffer_count pin_memory pipeline_read pipeline_write fast_init super_offload cpuadam_cores_perc ]],
    ["zero_optimization.offload_param"] = set_of "nvme_path buffer_count buffer_size max_in_cpu pin_memory",
    bf16 = set_of "immediate_grad_update check_grad_overflow",
    fp16 = set_of "auto_cast loss_scale initial_scale_power loss_scale_window hysteresis consecutive_hysteresis min_loss_scale",
    tensor_parallel = set_of [[
      dtype tp_overlap_comm vocab_parallel_lm_head vocab_parallel_ce_backend tp tensor_parallel injection_policy_tuple partition_config
      preset_model keep_module_on_host kernel_inject replace_with_kernel_inject ]],
  },

  -- Of the sections' keys above, by what pydantic takes: whole numbers, of which the value is the least, false: any; fractions of one;
  -- numbers; what is none of these. All others are true or false (the same files: fields of the models).
  whole = {
    ["zero_optimization.reduce_bucket_size"] = 1, ["zero_optimization.allgather_bucket_size"] = 0, ["zero_optimization.sub_group_size"] = 0,
    ["zero_optimization.stage3_prefetch_bucket_size"] = 0, ["zero_optimization.prefetch_bucket_size"] = 0,
    ["zero_optimization.stage3_param_persistence_threshold"] = 0, ["zero_optimization.param_persistence_threshold"] = 0,
    ["zero_optimization.stage3_model_persistence_threshold"] = 0, ["zero_optimization.model_persistence_threshold"] = 0,
    ["zero_optimization.stage3_max_live_parameters"] = 0, ["zero_optimization.max_live_parameters"] = 0,
    ["zero_optimization.stage3_max_reuse_distance"] = 0, ["zero_optimization.max_reuse_distance"] = 0,
    ["zero_optimization.stage3_module_granularity_threshold"] = false, ["zero_optimization.module_granularity_threshold"] = false,
    ["zero_optimization.zero_hpz_partition_size"] = 0, ["zero_optimization.offload_optimizer.buffer_count"] = 0,
    ["zero_optimization.offload_param.buffer_count"] = 0, ["zero_optimization.offload_param.buffer_size"] = 0,
    ["zero_optimization.offload_param.max_in_cpu"] = 0, ["fp16.initial_scale_power"] = false, ["fp16.loss_scale_window"] = false,
    ["fp16.hysteresis"] = false, ["fp16.min_loss_scale"] = false,
  },
  fractions = set_of "zero_optimization.offload_optimizer.cpuadam_cores_perc",
  numbers = set_of "fp16.loss_scale",
  others = set_of [[
    zero_optimization.offload_param zero_optimization.offload_optimizer zero_optimization.zenflow zero_optimization.leaf_module
    zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_param.nvme_path tensor_parallel.dtype
    tensor_parallel.vocab_parallel_ce_backend tensor_parallel.tp tensor_parallel.tensor_parallel tensor_parallel.injection_policy_tuple
    tensor_parallel.partition_config tensor_parallel.preset_model ]],
  -- which may be null
  nullable = set_of [[
    zero_optimization.cpu_offload_param zero_optimization.cpu_offload_use_pin_memory zero_optimization.cpu_offload
    tensor_parallel.vocab_parallel_lm_head ]],

  -- Whose keys are taken out one by one, whatever others there are.
  open = set_of "optimizer pipeline data_types torch_autocast expert_parallel",

  -- Whose values pydantic checks and converts; "auto" is no value there (runtime/config_utils.py:64).
  checked = set_of "zero_optimization bf16 fp16 tensor_parallel",

  -- Arguments of Hugging Face's Trainer that it fills "auto" in from (transformers/integrations/deepspeed.py: HfTrainerDeepSpeedConfig).
  filled = { train_batch_size = "its other arguments", train_micro_batch_size_per_gpu = "per_device_train_batch_size",
             gradient_accumulation_steps = "gradient_accumulation_steps", gradient_clipping = "max_grad_norm", ["bf16.enabled"] = "bf16",
             ["fp16.enabled"] = "fp16" },
}
