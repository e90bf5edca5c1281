-- SPDX-License-Identifier: Apache-2.0
-- names.lua: what a user meets under several names, once: in a spec (and so as an option, by the last part), in a rule, in a plan's JSON.
-- One concept has one name. It differs by place only where the place says the rest (`parallelism.pipeline`, `pipeline_parallel`) or the
-- unit (a spec's `memory_per_gpu` is "80GiB", a rule's and a plan's `device_bytes` a number). docs/design.md shows this table.
--
-- concept    in words
-- spec       path in a spec; `model.…` of an inline shape
-- field      what a rule reads (vocabulary.lua)
-- plan       paths in a plan's JSON

local names = {}

local function concept(words, spec, field, ...)
  return { concept = words, spec = spec or nil, field = field or nil, plan = { ... } }
end

names.concepts = {
  concept("GPUs", "cluster.gpus", "gpus", "cluster.gpus"),
  concept("GPUs of a node", "cluster.gpus_per_node", "gpus_per_node", "cluster.gpus_per_node"),
  concept("accelerator", "cluster.accelerator", "accelerator", "cluster.accelerator"),
  concept("accelerator's family", nil, "accelerator_family"),
  concept("memory of a GPU", "cluster.memory_per_gpu", "device_bytes", "cluster.device_bytes", "memory.device_bytes"),
  concept("what a plan may fill of it", nil, "usable_bytes", "one_gpu.usable_bytes"),
  concept("GPU memory that tensors cannot have", "cluster.overhead", nil, "memory.ranks.overhead_bytes"),
  concept("FLOPs of a GPU", "cluster.flops"),
  concept("memory bandwidth of a GPU", "cluster.memory_bandwidth"),
  concept("files that say which GPUs there are", "cluster.inventory"),
  concept("kernels measured on a GPU", "cluster.kernels"),
  concept("what the site's runs say of the price", "cluster.calibration"),
  concept("price of a GPU", "cluster.price_per_gpu_hour", nil, "cluster.price_per_gpu_hour"),
  concept("network between scale-up domains", "cluster.network.fabric", "fabric", "cluster.fabric"),
  concept("its speed for a GPU", "cluster.network.per_gpu", "network_per_gpu", "cluster.network_bytes_per_second"),
  concept("network cards of a node", "cluster.network.nics_per_node"),
  concept("its oversubscription", "cluster.network.oversubscription"),
  concept("its measured links", "cluster.network.measured"),
  concept("GPUs of a scale-up domain", "cluster.network.scale_up_gpus", "scale_up_gpus", "cluster.scale_up_gpus"),
  concept("speed in it for a GPU", "cluster.network.scale_up_per_gpu", nil, "cluster.scale_up_bytes_per_second"),
  concept("speed of the storage", "cluster.storage"),
  concept("host memory of a node", "cluster.host_memory", "host_memory", "host.memory_bytes"),
  concept("what an offloaded optimizer takes of it", nil, "host_optimizer_bytes", "host.optimizer_bytes"),
  concept("all-to-all kernel", "cluster.alltoall_kernel", "alltoall_kernel", "alltoall_kernel.name"),
  concept("model", "model", nil, "model.name"),
  concept("dense, or mixture of experts", "model.architecture", "architecture", "model.architecture"),
  concept("parameters", "model.total", "total_parameters", "model.total_parameters"),
  concept("parameters of a token", "model.active", "active_parameters", "model.active_parameters"),
  concept("layers", "model.layers", "layers", "model.layers"),
  concept("routed experts", "model.experts", "experts"),
  concept("tied embeddings", "model.tied_embeddings", "tied_embeddings"),
  concept("training volume", "training.tokens", "tokens", "training.tokens"),
  concept("sequence length", "training.sequence_length", "sequence_length", "training.sequence_length"),
  concept("tokens of a packed document", "training.document_length"),
  concept("their quadratic mean", "training.document_length_rms"),
  concept("tokens that only fill a sequence", "training.padding", nil, "training.padding"),
  concept("microbatch size", "training.micro_batch_size", "micro_batch_size", "micro_batch_size"),
  concept("global batch size", "training.global_batch_size", "global_batch_size", "global_batch_size",
          "training.batch_ramp.global_batch_size"),
  concept("smallest batch of a ramp", nil, "smallest_batch_size"),
  concept("precision", "training.precision", "precision", "training.precision"),
  concept("optimizer", "training.optimizer", "optimizer"),
  concept("its moments", "training.moments"),
  concept("what data parallelism shards", "training.sharding", "sharding", "sharding"),
  concept("GPUs that the layout uses", nil, "gpus_used", "gpus_used"),
  concept("the same as a ZeRO stage", "training.zero"),
  concept("parameters gathered again", "training.reshard"),
  concept("parameters gathered in fp8", "training.fp8_gathers"),
  concept("groups that each shard a state", "training.replicas"),
  concept("rank of adapters", "training.lora_rank"),
  concept("tower of images", "training.tower", nil, "training.tower"),
  concept("its parameters", "model.tower", nil, "model.tower_parameters"),
  concept("what it takes of a GPU", nil, nil, "memory.ranks.tower_bytes"),
  concept("its state, offloaded", "training.optimizer_offload", "optimizer_offload"),
  concept("weights", "training.weights"),
  concept("gradients", "training.gradients"),
  concept("temporaries of weight gradients", "training.weight_gradients"),
  concept("what a rank gets of reduced gradients", "training.reduction"),
  concept("gradients as they are sent", "training.reduced_gradients"),
  concept("dropout", "training.dropout"),
  concept("activations", "training.activations"),
  concept("imbalance of experts", "training.expert_imbalance"),
  concept("recompute", "training.recompute", "recompute", "recompute", "training.recompute"),
  concept("kernels that are not fused", "training.unfused"),
  concept("how the loss is computed", "training.loss"),
  concept("launches as CUDA graphs", "training.cuda_graphs"),
  concept("parameters of a bucket", "training.bucket"),
  concept("data parallel traffic, hidden", "training.data_overlap"),
  concept("TP's traffic, hidden", "training.tensor_overlap"),
  concept("all-to-all hidden without a pipeline", "training.alltoall_overlap"),
  concept("goodput", "training.goodput"),
  concept("TP", "parallelism.tensor", "tensor_parallel", "parallelism.tensor"),
  concept("CP", "parallelism.context", "context_parallel", "parallelism.context"),
  concept("EP", "parallelism.expert", "expert_parallel", "parallelism.expert"),
  concept("expert TP", "parallelism.expert_tensor", "expert_tensor_parallel", "parallelism.expert_tensor"),
  concept("sequence parallelism", "parallelism.sequence"),
  concept("messages between stages, cut over TP", "parallelism.scatter_messages"),
  concept("DP", "parallelism.data", "data_parallel", "parallelism.data"),
  concept("P: pipeline depth", "parallelism.pipeline", "pipeline_parallel", "parallelism.pipeline"),
  concept("V: chunks of a rank", "parallelism.virtual", "virtual", "parallelism.virtual"),
  concept("M: microbatches", "parallelism.microbatches", "microbatches", "microbatches", "training.batch_ramp.microbatches"),
  concept("M / P", nil, "microbatches_per_rank", "microbatches_per_rank"),
  concept("schedule", "parallelism.schedule", "schedule", "schedule"),
  concept("its family", nil, "schedule_family", "schedule_family"),
  concept("ends that count as layers", "parallelism.account_for"),
  concept("the embedding, as one", "parallelism.account_for_embedding_in_pipeline_split"),
  concept("the loss, as one", "parallelism.account_for_loss_in_pipeline_split"),
  concept("layers of the first rank", "parallelism.num_layers_in_first_pipeline_stage"),
  concept("layers of the last rank", "parallelism.num_layers_in_last_pipeline_stage"),
  concept("Megatron's layout", "parallelism.pipeline_model_parallel_layout", nil, "megatron_layout"),
  concept("layers of the stages", "parallelism.layers_per_stage", nil, "layers_per_stage"),
  concept("framework", "framework", "framework", "framework"),
  concept("its version", "framework_version", "framework_version"),
  concept("run", "run", "run", "spec.run"),
  concept("team", "team", "team"),
  concept("labels of the run", "labels"),
  concept("model's name", nil, "model_name"),
  concept("model's family", nil, "model_family"),
  concept("profile", "profile", nil, "profile.file"),
  concept("does the model fit one GPU?", nil, "fits_one_gpu", "one_gpu.fits"),
  concept("what that takes", nil, "one_gpu_bytes", "one_gpu.bytes"),
  concept("slowest link of an expert group", nil, "expert_link"),
  concept("all-to-all, before overlap", nil, "alltoall_fraction"),
  concept("memory of the fullest rank", nil, "peak_bytes", "alternatives.peak_bytes", "recommend.peak_bytes"),
  concept("memory of the emptiest rank", nil, "least_rank_bytes"),
  concept("idle share of the rank that waits most", nil, "most_rank_idle"),
  concept("of the one that waits least", nil, "least_rank_idle"),
  concept("layers of the rank that holds most", nil, "most_rank_layers"),
  concept("of the one that holds fewest", nil, "least_rank_layers"),
  concept("stages of the rank that holds most", nil, "most_rank_stages"),
  concept("of the one that holds fewest stages", nil, "least_rank_stages"),
  concept("one step", nil, "step_seconds", "step_seconds"),
  concept("bubble", nil, "bubble_fraction", "bubble.fraction", "alternatives.bubble_fraction"),
  concept("outcome", nil, "status", "status"),
  concept("days of the run", nil, "training_days", "training_days"),
  concept("hours of all GPUs", nil, "gpu_hours", "gpu_hours"),
  concept("what they cost", nil, "cost", "cost"),
  concept("gain without a pipeline", nil, "pipeline_avoidable_seconds"),
  concept("its share of a step", nil, "pipeline_avoidable_fraction"),
  concept("that comparison's error", nil, "pipeline_avoidable_error"),
  concept("TP of that layout", nil, "avoidable_tensor_parallel"),
  concept("what is sharded there", nil, "avoidable_sharding"),
}

-- The last part of what one place says → what a spec says, what a rule says.
local spec_of, field_of = {}, {}
for _, entry in ipairs(names.concepts) do
  local in_plan = (entry.plan[1] or ""):match "^cluster%..*"  -- other parts of a plan say things such as `name`
  for _, said in pairs { spec = entry.spec, field = entry.field, plan = in_plan } do
    local last = said:match "[^.]+$"
    spec_of[last], field_of[last] = spec_of[last] or entry.spec, field_of[last] or entry.field
  end
end

-- The path in a spec of what a rule calls by that field; nil: a spec does not say it.
function names.path_of(field) return spec_of[field] end

-- What is said of a name that only another place knows, or "": "; a spec says parallelism.pipeline" of `pipeline_parallel`.
function names.in_spec(name)
  return spec_of[name] and "; a spec says " .. spec_of[name] or ""
end

-- "; the option is --pipeline" of `pipeline-parallel`.
function names.in_options(name)
  local path = spec_of[(name:gsub("-", "_"))] or ""
  local option = path:match "[^.]+$"
  if not option or path:find "^model%." or option == name then return "" end  -- an inline model has no options
  return "; the option is --" .. option
end

local elsewhere = { model_type = "model_family" }  -- what others call it: a config.json

-- "; a rule says pipeline_parallel" of `pipeline` and of `parallelism.pipeline`.
function names.in_rule(name)
  if elsewhere[name] then return "; a rule says " .. elsewhere[name] end
  local field = field_of[name:match "[^.]*$"]
  return field and "; a rule says " .. field or ""
end

return names
