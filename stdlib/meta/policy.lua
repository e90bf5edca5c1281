---@meta _
-- SPDX-License-Identifier: Apache-2.0

-- What a policy file can say.
-- Made by scripts/generate-meta for LuaLS; a test compares. Edit what it is made from, not this file.

--- Schedules, and families that stand for several.
---@alias pipeplan.schedule
---| "gpipe"
---| "looped_bfs"
---| "1f1b"
---| "interleaved_1f1b"
---| "interleaved_1f1b_overlap"
---| "zb_h1"
---| "zb_h2"
---| "interleaved_zero_bubble"
---| "zb_v"
---| "zb_auto"
---| "v_half"
---| "v_min"
---| "dualpipe"
---| "dualpipev"
---| "zero_bubble"

--- Recommendations that are layouts.
---@alias pipeplan.layout
---| "data_parallel"
---| "data_and_tensor_parallel"

--- Parameters of the default policy; a layer may have others.
---@alias pipeplan.parameter
---| "small_run_gpus"
---| "large_dense_gpus"
---| "heavy_alltoall_fraction"
---| "wanted_tolerance"
---| "schedules"
---| "zero_bubble_members"
---| "max_pipeline_depth"
---| "min_microbatches_per_rank"
---| "slow_link"
---| "short_run_tokens"
---| "memory_headroom"
---| "tight_fraction"
---| "tie_fraction"
---| "small_cluster_depth"
---| "frontier_depth_low"
---| "frontier_depth_high"
---| "frontier_parameters"
---| "microbatch_ratio_low"
---| "microbatch_ratio_high"
---| "split_tie_fraction"
---| "split_gain_fraction"
---| "split_overfull_fraction"
---| "default_batch_tokens"
---| "context_rank_tokens"
---| "micro_batch_choices"
---| "recompute_choices"
---| "sharding_choices"
---| "idle_gpus"
---| "measured_warmup_steps"
---| "measured_least_steps"
---| "rollback_window_steps"
---| "rollback_warmup_steps"
---| "rollback_fallback"
---| string

--- Rules of the default policy; a layer may have others.
---@alias pipeplan.rule
---| "deepep"
---| "deepep_v1"
---| "dense"
---| "dense_large"
---| "dualpipe_odd_depth"
---| "dualpipe_tied_embeddings"
---| "dualpipe_virtual"
---| "dualpipe_without_ep"
---| "expert_parallel_for_moe"
---| "few_microbatches"
---| "fits_one_gpu"
---| "frontier_moe_depth"
---| "host_memory_short"
---| "hybrid_ep"
---| "many_microbatches"
---| "mindspeed"
---| "moe_with_ep"
---| "nccl_alltoall"
---| "never_dualpipe_slow"
---| "never_dualpipe_without_ep"
---| "never_odd_microbatches"
---| "never_over_memory"
---| "no_alltoall_kernel"
---| "odd_microbatches"
---| "otherwise"
---| "pipeline_avoidable"
---| "primus_turbo"
---| "shallow_on_small_cluster"
---| "short_run"
---| "slow_interconnect"
---| "small_run"
---| "tensor_parallel_in_scale_up"
---| "too_deep"
---| "too_few_microbatches"
---| "uccl_ep"
---| string

--- A number, or one with its unit: "14.8T", "80GiB", "400Gbps", "8%".
---@alias pipeplan.quantity number|string

--- Made by the functions below; odd, even and any are conditions themselves.
---@class pipeplan.condition

--- A condition: the field is at least this.
---@param limit pipeplan.quantity|pipeplan.parameter|pipeplan.field
---@return pipeplan.condition
function at_least(limit) end

--- A condition: the field is at most this.
---@param limit pipeplan.quantity|pipeplan.parameter|pipeplan.field
---@return pipeplan.condition
function at_most(limit) end

--- A condition: the field is from low to high, both included.
---@param low pipeplan.quantity|pipeplan.parameter|pipeplan.field
---@param high pipeplan.quantity|pipeplan.parameter|pipeplan.field
---@return pipeplan.condition
function between(low, high) end

--- A condition: the field equals this: for naming a parameter or another field.
---@param value pipeplan.quantity|pipeplan.parameter|pipeplan.field
---@return pipeplan.condition
function equal(value) end

--- A condition: the field is a multiple of this.
---@param factor pipeplan.quantity|pipeplan.parameter|pipeplan.field
---@return pipeplan.condition
function multiple_of(factor) end

--- A condition: the field is not a multiple of this.
---@param factor pipeplan.quantity|pipeplan.parameter|pipeplan.field
---@return pipeplan.condition
function not_multiple_of(factor) end

--- A condition: the field is more than this.
---@param limit pipeplan.quantity|pipeplan.parameter|pipeplan.field
---@return pipeplan.condition
function over(limit) end

--- A condition: the field is less than this.
---@param limit pipeplan.quantity|pipeplan.parameter|pipeplan.field
---@return pipeplan.condition
function under(limit) end

--- A condition: the field is none of these, or does not apply.
---@param values any[]
---@return pipeplan.condition
function none_of(values) end

--- A condition: the field is odd.
---@type pipeplan.condition
odd = nil

--- A condition: the field is even.
---@type pipeplan.condition
even = nil

--- In `change`: takes the condition on this field away.
---@type pipeplan.condition
any = nil

--- Fields that conditions and messages can name.
---@alias pipeplan.field
---| "gpus" # GPUs of the training run; in gpu; 1 … 10000000
---| "gpus_per_node" # GPUs in one node; in gpu; 1 … 4096
---| "scale_up_gpus" # GPUs that one NVLink, xGMI or HCCS domain joins; in gpu; 1 … 100000
---| "fabric" # network between scale-up domains
---| "accelerator" # catalogue name of the accelerator
---| "accelerator_family" # its family: what kernels are built for
---| "device_bytes" # memory of one GPU; in byte; 0 … 1.1258999068426e+15
---| "usable_bytes" # device_bytes less memory_headroom: what a plan may fill; in byte; 0 … 1.1258999068426e+15
---| "network_per_gpu" # network between domains, one direction, per GPU; in byte/s; 0 … 1e+14
---| "architecture" # dense, or mixture of experts
---| "total_parameters" # parameters of the main model, MTP modules left out; 1 … 9.007199254741e+15
---| "active_parameters" # parameters that one token uses, embedding and head included; 1 … 9.007199254741e+15
---| "layers" # decoder layers; 1 … 1024
---| "experts" # routed experts of a layer; 0 for a dense model; 0 … 65536
---| "tied_embeddings" # output weights are the embedding
---| "tokens" # training volume; in token; 1 … 1e+18
---| "sequence_length" # tokens of one sequence; in token; 1 … 2147483647
---| "global_batch_size" # sequences of one step (the full batch, where it ramps); in sequence; 1 … 2147483647
---| "smallest_batch_size" # sequences of the smallest step of a batch ramp: what legality is judged at; in sequence; 1 … 2147483647
---| "precision" # of the matrix products
---| "optimizer" # what updates the weights
---| "optimizer_offload" # share of the optimizer's state in host memory; in fraction; 0 … 1
---| "model_name" # the model's name, as its file or the spec has it
---| "run" # name of the run, as the spec has it
---| "team" # whose run it is, as the spec has it
---| "model_family" # what the model is of: model_type of its config.json, such as deepseek_v3; absent of an inline shape
---| "framework_version" # version of what will run the plan, as the spec has it
---| "framework" # what will run the plan; absent: any
---| "fits_one_gpu" # weights, gradients, sharded optimizer state and one microbatch fit one GPU at TP = PP = EP = 1
---| "one_gpu_bytes" # what that takes; in byte; ≥ 0
---| "tensor_parallel" # TP; in rank; 1 … 10000000
---| "context_parallel" # CP; in rank; 1 … 10000000
---| "expert_parallel" # EP; in rank; 1 … 10000000
---| "expert_tensor_parallel" # expert TP; in rank; 1 … 10000000
---| "data_parallel" # DP; in rank; 1 … 10000000
---| "pipeline_parallel" # P: pipeline depth; in rank; 1 … 10000000
---| "virtual" # V as a user configures it: chunks per rank of an interleaved schedule, otherwise 1; 1 … 1024
---| "microbatches" # M per pipeline and step, at the smallest batch; for DualPipe over both directions; 1 … 2147483647
---| "microbatches_per_rank" # M / P; 0 … 2147483647
---| "schedule" # pipeline schedule; none at P = 1
---| "schedule_family" # zero_bubble for its members, otherwise the schedule itself
---| "expert_link" # slowest link that the expert-parallel group crosses, one direction, per GPU; absent at EP 1; in byte/s; 0 … 1e+14
---| "alltoall_kernel" # custom all-to-all kernel that overlaps with compute; false: none for this topology
---| "alltoall_fraction" # all-to-all seconds / ideal step, before overlap; in fraction; ≥ 0
---| "micro_batch_size" # sequences of one microbatch; in sequence; 1 … 2147483647
---| "recompute" # what is computed again instead of stored
---| "sharding" # what data parallelism shards
---| "gpus_used" # GPUs that the layout uses; the others of `gpus` stay idle; in gpu; 1 … 10000000
---| "peak_bytes" # memory of the fullest rank; in byte; ≥ 0
---| "step_seconds" # one training step at the full batch; in second; ≥ 0
---| "bubble_fraction" # mean idle share of the pipeline: 1 − Σ busy / (P × makespan); in fraction; 0 … 1
---| "training_days" # days of the whole run, at the full batch and the spec's goodput; 0 … 1e+15
---| "gpu_hours" # hours of all GPUs in that time; 0 … 1e+15
---| "cost" # of those hours, at the spec's price; absent: no price given; 0 … 1e+15
---| "pipeline_avoidable_seconds" # how much faster a step is without a pipeline (P = 1, TP inside the scale-up domain); absent when it does not fit; in second
---| "pipeline_avoidable_fraction" # the same as a share of the step; in fraction; -1000 … 1
---| "status" # outcome
---| "pipeline_avoidable_error" # how far pipeline_avoidable_fraction can be wrong, nine times of ten (docs/accuracy.md); in fraction; 0 … 1
---| "host_optimizer_bytes" # host memory of one node that an offloaded optimizer takes; in byte; ≥ 0
---| "host_memory" # host memory of one node; absent: not given; in byte; 0 … 1.1258999068426e+15
---| "least_rank_bytes" # memory of the emptiest rank; in byte; ≥ 0
---| "most_rank_idle" # idle share of the pipeline's time of the rank that waits most; in fraction; 0 … 1
---| "least_rank_idle" # idle share of it of the rank that waits least; in fraction; 0 … 1
---| "most_rank_layers" # decoder layers of the rank that holds most; 0 … 1024
---| "least_rank_layers" # decoder layers of the rank that holds fewest; 0 … 1024
---| "most_rank_stages" # stages of the rank that holds most of them, of both copies where there are two; 1 … 1024
---| "least_rank_stages" # stages of the rank that holds fewest; 1 … 1024
---| "avoidable_sharding" # what data parallelism shards in that layout
---| "avoidable_tensor_parallel" # TP of that layout; in rank; 1 … 10000000

--- network between scale-up domains
---@alias pipeplan.value.fabric
---| "infiniband"
---| "roce"
---| "efa"
---| "slingshot"
---| "ethernet"
---| "none"

--- its family: what kernels are built for
---@alias pipeplan.value.accelerator_family
---| "volta"
---| "ampere"
---| "ada"
---| "hopper"
---| "blackwell"
---| "blackwell_rtx"
---| "gb200"
---| "gb300"
---| "mi200"
---| "mi300"
---| "mi350"
---| "tpu"
---| "ascend"
---| "other"

--- dense, or mixture of experts
---@alias pipeplan.value.architecture
---| "dense"
---| "moe"

--- of the matrix products
---@alias pipeplan.value.precision
---| "bf16"
---| "fp8"
---| "fp16"
---| "fp32"

--- what updates the weights
---@alias pipeplan.value.optimizer
---| "adam"
---| "adamw"
---| "muon"
---| "sgd"

--- what will run the plan; absent: any
---@alias pipeplan.value.framework
---| "megatron"
---| "megatron-bridge"
---| "flagscale"
---| "deepseek-dualpipe"
---| "torchtitan"
---| "torch"
---| "deepspeed"
---| "nanotron"
---| "mindspeed"
---| "primus"
---| "colossalai"
---| "zero-bubble"

--- pipeline schedule; none at P = 1
---@alias pipeplan.value.schedule
---| "none"
---| "gpipe"
---| "looped_bfs"
---| "1f1b"
---| "interleaved_1f1b"
---| "interleaved_1f1b_overlap"
---| "zb_h1"
---| "zb_h2"
---| "interleaved_zero_bubble"
---| "zb_v"
---| "zb_auto"
---| "v_half"
---| "v_min"
---| "dualpipe"
---| "dualpipev"

--- zero_bubble for its members, otherwise the schedule itself
---@alias pipeplan.value.schedule_family
---| "none"
---| "gpipe"
---| "looped_bfs"
---| "1f1b"
---| "interleaved_1f1b"
---| "interleaved_1f1b_overlap"
---| "zero_bubble"
---| "v_half"
---| "v_min"
---| "dualpipe"
---| "dualpipev"

--- what is computed again instead of stored
---@alias pipeplan.value.recompute
---| "none"
---| "selective"
---| "modules"
---| "full"

--- what data parallelism shards
---@alias pipeplan.value.sharding
---| "none"
---| "optimizer"
---| "gradients"
---| "parameters"

--- outcome
---@alias pipeplan.value.status
---| "planned"
---| "refused"
---| "rejected"

--- what data parallelism shards in that layout
---@alias pipeplan.value.avoidable_sharding
---| "none"
---| "optimizer"
---| "gradients"
---| "parameters"

--- What rules ask of ranks: over, at_least, under, at_most or between of each.
---@class pipeplan.rank
---@field bytes? pipeplan.condition from least_rank_bytes to peak_bytes
---@field idle? pipeplan.condition from least_rank_idle to most_rank_idle
---@field layers? pipeplan.condition from least_rank_layers to most_rank_layers
---@field stages? pipeplan.condition from least_rank_stages to most_rank_stages

--- Fields that follow from the spec.
---@class pipeplan.conditions.request
---@field gpus? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition GPUs of the training run; in gpu; 1 … 10000000
---@field gpus_per_node? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition GPUs in one node; in gpu; 1 … 4096
---@field scale_up_gpus? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition GPUs that one NVLink, xGMI or HCCS domain joins; in gpu; 1 … 100000
---@field fabric? pipeplan.value.fabric|pipeplan.value.fabric[]|pipeplan.condition network between scale-up domains
---@field accelerator? string|string[]|pipeplan.condition catalogue name of the accelerator
---@field accelerator_family? pipeplan.value.accelerator_family|pipeplan.value.accelerator_family[]|pipeplan.condition its family: what kernels are built for
---@field device_bytes? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition memory of one GPU; in byte; 0 … 1.1258999068426e+15
---@field usable_bytes? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition device_bytes less memory_headroom: what a plan may fill; in byte; 0 … 1.1258999068426e+15
---@field network_per_gpu? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition network between domains, one direction, per GPU; in byte/s; 0 … 1e+14
---@field architecture? pipeplan.value.architecture|pipeplan.value.architecture[]|pipeplan.condition dense, or mixture of experts
---@field total_parameters? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition parameters of the main model, MTP modules left out; 1 … 9.007199254741e+15
---@field active_parameters? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition parameters that one token uses, embedding and head included; 1 … 9.007199254741e+15
---@field layers? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition decoder layers; 1 … 1024
---@field experts? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition routed experts of a layer; 0 for a dense model; 0 … 65536
---@field tied_embeddings? boolean|pipeplan.condition output weights are the embedding
---@field tokens? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition training volume; in token; 1 … 1e+18
---@field sequence_length? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition tokens of one sequence; in token; 1 … 2147483647
---@field global_batch_size? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition sequences of one step (the full batch, where it ramps); in sequence; 1 … 2147483647
---@field smallest_batch_size? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition sequences of the smallest step of a batch ramp: what legality is judged at; in sequence; 1 … 2147483647
---@field precision? pipeplan.value.precision|pipeplan.value.precision[]|pipeplan.condition of the matrix products
---@field optimizer? pipeplan.value.optimizer|pipeplan.value.optimizer[]|pipeplan.condition what updates the weights
---@field optimizer_offload? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition share of the optimizer's state in host memory; in fraction; 0 … 1
---@field model_name? string|string[]|pipeplan.condition the model's name, as its file or the spec has it
---@field run? string|string[]|pipeplan.condition name of the run, as the spec has it
---@field team? string|string[]|pipeplan.condition whose run it is, as the spec has it
---@field model_family? string|string[]|pipeplan.condition what the model is of: model_type of its config.json, such as deepseek_v3; absent of an inline shape
---@field framework_version? string|string[]|pipeplan.condition version of what will run the plan, as the spec has it
---@field framework? pipeplan.value.framework|pipeplan.value.framework[]|pipeplan.condition what will run the plan; absent: any
---@field fits_one_gpu? boolean|pipeplan.condition weights, gradients, sharded optimizer state and one microbatch fit one GPU at TP = PP = EP = 1
---@field one_gpu_bytes? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition what that takes; in byte; ≥ 0

--- Fields that differ between candidate plans.
---@class pipeplan.conditions.candidate
---@field tensor_parallel? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition TP; in rank; 1 … 10000000
---@field context_parallel? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition CP; in rank; 1 … 10000000
---@field expert_parallel? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition EP; in rank; 1 … 10000000
---@field expert_tensor_parallel? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition expert TP; in rank; 1 … 10000000
---@field data_parallel? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition DP; in rank; 1 … 10000000
---@field pipeline_parallel? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition P: pipeline depth; in rank; 1 … 10000000
---@field virtual? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition V as a user configures it: chunks per rank of an interleaved schedule, otherwise 1; 1 … 1024
---@field microbatches? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition M per pipeline and step, at the smallest batch; for DualPipe over both directions; 1 … 2147483647
---@field microbatches_per_rank? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition M / P; 0 … 2147483647
---@field schedule? pipeplan.value.schedule|pipeplan.value.schedule[]|pipeplan.condition pipeline schedule; none at P = 1
---@field schedule_family? pipeplan.value.schedule_family|pipeplan.value.schedule_family[]|pipeplan.condition zero_bubble for its members, otherwise the schedule itself
---@field expert_link? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition slowest link that the expert-parallel group crosses, one direction, per GPU; absent at EP 1; in byte/s; 0 … 1e+14
---@field alltoall_kernel? string|false|string[]|pipeplan.condition custom all-to-all kernel that overlaps with compute; false: none for this topology
---@field alltoall_fraction? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition all-to-all seconds / ideal step, before overlap; in fraction; ≥ 0
---@field micro_batch_size? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition sequences of one microbatch; in sequence; 1 … 2147483647
---@field recompute? pipeplan.value.recompute|pipeplan.value.recompute[]|pipeplan.condition what is computed again instead of stored
---@field sharding? pipeplan.value.sharding|pipeplan.value.sharding[]|pipeplan.condition what data parallelism shards
---@field gpus_used? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition GPUs that the layout uses; the others of `gpus` stay idle; in gpu; 1 … 10000000

--- Fields known only after a candidate was simulated.
---@class pipeplan.conditions.simulated
---@field peak_bytes? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition memory of the fullest rank; in byte; ≥ 0
---@field step_seconds? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition one training step at the full batch; in second; ≥ 0
---@field bubble_fraction? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition mean idle share of the pipeline: 1 − Σ busy / (P × makespan); in fraction; 0 … 1
---@field training_days? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition days of the whole run, at the full batch and the spec's goodput; 0 … 1e+15
---@field gpu_hours? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition hours of all GPUs in that time; 0 … 1e+15
---@field cost? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition of those hours, at the spec's price; absent: no price given; 0 … 1e+15
---@field pipeline_avoidable_seconds? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition how much faster a step is without a pipeline (P = 1, TP inside the scale-up domain); absent when it does not fit; in second
---@field pipeline_avoidable_fraction? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition the same as a share of the step; in fraction; -1000 … 1
---@field any_rank? pipeplan.rank one comparison of what holds of some rank of the pipeline
---@field every_rank? pipeplan.rank comparisons of what holds of all ranks of the pipeline

--- Fields of the finished plan.
---@class pipeplan.conditions.plan
---@field status? pipeplan.value.status|pipeplan.value.status[]|pipeplan.condition outcome
---@field pipeline_avoidable_error? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition how far pipeline_avoidable_fraction can be wrong, nine times of ten (docs/accuracy.md); in fraction; 0 … 1
---@field host_optimizer_bytes? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition host memory of one node that an offloaded optimizer takes; in byte; ≥ 0
---@field host_memory? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition host memory of one node; absent: not given; in byte; 0 … 1.1258999068426e+15
---@field least_rank_bytes? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition memory of the emptiest rank; in byte; ≥ 0
---@field most_rank_idle? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition idle share of the pipeline's time of the rank that waits most; in fraction; 0 … 1
---@field least_rank_idle? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition idle share of it of the rank that waits least; in fraction; 0 … 1
---@field most_rank_layers? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition decoder layers of the rank that holds most; 0 … 1024
---@field least_rank_layers? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition decoder layers of the rank that holds fewest; 0 … 1024
---@field most_rank_stages? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition stages of the rank that holds most of them, of both copies where there are two; 1 … 1024
---@field least_rank_stages? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition stages of the rank that holds fewest; 1 … 1024
---@field avoidable_sharding? pipeplan.value.avoidable_sharding|pipeplan.value.avoidable_sharding[]|pipeplan.condition what data parallelism shards in that layout
---@field avoidable_tensor_parallel? pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition TP of that layout; in rank; 1 … 10000000

--- What a `when` function is given: fields of what it judges (nil: does not apply), and parameters.
---@class pipeplan.record
---@field gpus? integer GPUs of the training run; in gpu; 1 … 10000000
---@field gpus_per_node? integer GPUs in one node; in gpu; 1 … 4096
---@field scale_up_gpus? integer GPUs that one NVLink, xGMI or HCCS domain joins; in gpu; 1 … 100000
---@field fabric? pipeplan.value.fabric network between scale-up domains
---@field accelerator? string catalogue name of the accelerator
---@field accelerator_family? pipeplan.value.accelerator_family its family: what kernels are built for
---@field device_bytes? number memory of one GPU; in byte; 0 … 1.1258999068426e+15
---@field usable_bytes? number device_bytes less memory_headroom: what a plan may fill; in byte; 0 … 1.1258999068426e+15
---@field network_per_gpu? number network between domains, one direction, per GPU; in byte/s; 0 … 1e+14
---@field architecture? pipeplan.value.architecture dense, or mixture of experts
---@field total_parameters? integer parameters of the main model, MTP modules left out; 1 … 9.007199254741e+15
---@field active_parameters? integer parameters that one token uses, embedding and head included; 1 … 9.007199254741e+15
---@field layers? integer decoder layers; 1 … 1024
---@field experts? integer routed experts of a layer; 0 for a dense model; 0 … 65536
---@field tied_embeddings? boolean output weights are the embedding
---@field tokens? number training volume; in token; 1 … 1e+18
---@field sequence_length? integer tokens of one sequence; in token; 1 … 2147483647
---@field global_batch_size? integer sequences of one step (the full batch, where it ramps); in sequence; 1 … 2147483647
---@field smallest_batch_size? integer sequences of the smallest step of a batch ramp: what legality is judged at; in sequence; 1 … 2147483647
---@field precision? pipeplan.value.precision of the matrix products
---@field optimizer? pipeplan.value.optimizer what updates the weights
---@field optimizer_offload? number share of the optimizer's state in host memory; in fraction; 0 … 1
---@field model_name? string the model's name, as its file or the spec has it
---@field run? string name of the run, as the spec has it
---@field team? string whose run it is, as the spec has it
---@field model_family? string what the model is of: model_type of its config.json, such as deepseek_v3; absent of an inline shape
---@field framework_version? string version of what will run the plan, as the spec has it
---@field framework? pipeplan.value.framework what will run the plan; absent: any
---@field fits_one_gpu? boolean weights, gradients, sharded optimizer state and one microbatch fit one GPU at TP = PP = EP = 1
---@field one_gpu_bytes? number what that takes; in byte; ≥ 0
---@field tensor_parallel? integer TP; in rank; 1 … 10000000
---@field context_parallel? integer CP; in rank; 1 … 10000000
---@field expert_parallel? integer EP; in rank; 1 … 10000000
---@field expert_tensor_parallel? integer expert TP; in rank; 1 … 10000000
---@field data_parallel? integer DP; in rank; 1 … 10000000
---@field pipeline_parallel? integer P: pipeline depth; in rank; 1 … 10000000
---@field virtual? integer V as a user configures it: chunks per rank of an interleaved schedule, otherwise 1; 1 … 1024
---@field microbatches? integer M per pipeline and step, at the smallest batch; for DualPipe over both directions; 1 … 2147483647
---@field microbatches_per_rank? number M / P; 0 … 2147483647
---@field schedule? pipeplan.value.schedule pipeline schedule; none at P = 1
---@field schedule_family? pipeplan.value.schedule_family zero_bubble for its members, otherwise the schedule itself
---@field expert_link? number slowest link that the expert-parallel group crosses, one direction, per GPU; absent at EP 1; in byte/s; 0 … 1e+14
---@field alltoall_kernel? string|false custom all-to-all kernel that overlaps with compute; false: none for this topology
---@field alltoall_fraction? number all-to-all seconds / ideal step, before overlap; in fraction; ≥ 0
---@field micro_batch_size? integer sequences of one microbatch; in sequence; 1 … 2147483647
---@field recompute? pipeplan.value.recompute what is computed again instead of stored
---@field sharding? pipeplan.value.sharding what data parallelism shards
---@field gpus_used? integer GPUs that the layout uses; the others of `gpus` stay idle; in gpu; 1 … 10000000
---@field peak_bytes? number memory of the fullest rank; in byte; ≥ 0
---@field step_seconds? number one training step at the full batch; in second; ≥ 0
---@field bubble_fraction? number mean idle share of the pipeline: 1 − Σ busy / (P × makespan); in fraction; 0 … 1
---@field training_days? number days of the whole run, at the full batch and the spec's goodput; 0 … 1e+15
---@field gpu_hours? number hours of all GPUs in that time; 0 … 1e+15
---@field cost? number of those hours, at the spec's price; absent: no price given; 0 … 1e+15
---@field pipeline_avoidable_seconds? number how much faster a step is without a pipeline (P = 1, TP inside the scale-up domain); absent when it does not fit; in second
---@field pipeline_avoidable_fraction? number the same as a share of the step; in fraction; -1000 … 1
---@field status? pipeplan.value.status outcome
---@field pipeline_avoidable_error? number how far pipeline_avoidable_fraction can be wrong, nine times of ten (docs/accuracy.md); in fraction; 0 … 1
---@field host_optimizer_bytes? number host memory of one node that an offloaded optimizer takes; in byte; ≥ 0
---@field host_memory? number host memory of one node; absent: not given; in byte; 0 … 1.1258999068426e+15
---@field least_rank_bytes? number memory of the emptiest rank; in byte; ≥ 0
---@field most_rank_idle? number idle share of the pipeline's time of the rank that waits most; in fraction; 0 … 1
---@field least_rank_idle? number idle share of it of the rank that waits least; in fraction; 0 … 1
---@field most_rank_layers? integer decoder layers of the rank that holds most; 0 … 1024
---@field least_rank_layers? integer decoder layers of the rank that holds fewest; 0 … 1024
---@field most_rank_stages? integer stages of the rank that holds most of them, of both copies where there are two; 1 … 1024
---@field least_rank_stages? integer stages of the rank that holds fewest; 1 … 1024
---@field avoidable_sharding? pipeplan.value.avoidable_sharding what data parallelism shards in that layout
---@field avoidable_tensor_parallel? integer TP of that layout; in rank; 1 … 10000000
---@field small_run_gpus number parameter: under this many GPUs a run is small
---@field large_dense_gpus number parameter: from this many GPUs on a dense run is large
---@field heavy_alltoall_fraction number parameter: all-to-all seconds / ideal step, from which the all-to-all is heavy
---@field wanted_tolerance number parameter: how much slower than the fastest plan the wanted schedule, and what is preferred, may be
---@field schedules pipeplan.schedule[] parameter: what may be planned at all; a site cuts this down to what its framework runs
---@field zero_bubble_members pipeplan.schedule[] parameter: what zero_bubble stands for: the fastest that fits, in a tie the earlier
---@field max_pipeline_depth number parameter: deeper pipelines are rejected
---@field min_microbatches_per_rank number parameter: M / P that DualPipe and DualPipeV need: their steady phase
---@field slow_link number parameter: at or below this, per GPU, DualPipe is refused
---@field short_run_tokens number parameter: below this a run is too short to plan a pipeline for
---@field memory_headroom number parameter: share of the device's memory that a plan must leave free
---@field tight_fraction number parameter: of the memory that a plan may fill: from there on it fits tightly
---@field tie_fraction number parameter: step times this close are equal
---@field small_cluster_depth number parameter: usual depth on a small cluster
---@field frontier_depth_low number parameter: usual depth of a frontier MoE, from
---@field frontier_depth_high number parameter: usual depth of a frontier MoE, to
---@field frontier_parameters number parameter: an MoE of this size is a frontier one
---@field microbatch_ratio_low number parameter: M / P: warn below
---@field microbatch_ratio_high number parameter: M / P: note above
---@field split_tie_fraction number parameter: splits whose steps are this close are equal, and the one that takes less memory is taken
---@field split_gain_fraction number parameter: of a step, that layers on early ranks must win for the memory they cost there
---@field split_overfull_fraction number parameter: over its usable memory, up to which layers are moved off a rank to make it fit
---@field default_batch_tokens number parameter: tokens of one step when the spec gives no batch
---@field context_rank_tokens number parameter: context parallelism that the spec leaves free cuts no sequence into shorter pieces
---@field micro_batch_choices integer[] parameter: sequences of a microbatch that are tried
---@field recompute_choices pipeplan.value.recompute[] parameter: sets of what is computed again that are tried; modules: norms, activations and MLA's up-projection
---@field sharding_choices pipeplan.value.sharding[] parameter: what data parallelism shards that is tried, as far as the framework does
---@field idle_gpus number parameter: of all GPUs, that may be left idle where fewer are faster
---@field measured_warmup_steps number parameter: first steps of a measured run that are left out
---@field measured_least_steps number parameter: steps behind them, of fewer no run says anything
---@field rollback_window_steps number parameter: steps over which utilisation is averaged
---@field rollback_warmup_steps number parameter: first steps left out of that window
---@field rollback_fallback pipeplan.schedule[] parameter: simpler schedules to roll back to: the first that fits

---@class pipeplan.statement.row: pipeplan.conditions.request, pipeplan.conditions.candidate
---@field id string its name: letters, digits and underscores
---@field final? boolean no later layer may loosen it
---@field link? string where to read more
---@field owner? string who answers for it
---@field source? string where the rule comes from
---@field try pipeplan.schedule[] schedules or families in order: the first is wanted, the others may replace it
---@field why? string the reason, for whoever reads the plan
---@field within? "any"|pipeplan.quantity|pipeplan.parameter decides among plans that close to the fastest; "any": keeps what matches whenever something does
---@field when? fun(record: pipeplan.record): boolean a condition that fields cannot express

--- A row of the decision table: which schedules to try. The first row that holds decides; rows of a later layer stand above.
--- ```lua
--- row { id = "narrow", tensor_parallel = at_most(2), try = { "zb_h1", "1f1b" }, why = "what our trainer runs" }
--- ```
---@param statement pipeplan.statement.row
function row(statement) end

---@class pipeplan.statement.reject: pipeplan.conditions.request, pipeplan.conditions.candidate, pipeplan.conditions.simulated
---@field id string its name: letters, digits and underscores
---@field final? boolean no later layer may loosen it
---@field link? string where to read more
---@field message string what the plan says when it holds; {field} and {parameter} are filled in, with their units
---@field owner? string who answers for it
---@field recommend? pipeplan.schedule|pipeplan.layout what to do instead
---@field source? string where the rule comes from
---@field why? string the reason, for whoever reads the plan
---@field when? fun(record: pipeplan.record): boolean a condition that fields cannot express

--- A hard reject: a plan for which it holds is never made.
--- ```lua
--- reject { id = "deep", pipeline_parallel = over(2), message = "P {pipeline_parallel}: at most 2 here" }
--- ```
---@param statement pipeplan.statement.reject
function reject(statement) end

---@class pipeplan.statement.refuse: pipeplan.conditions.request, pipeplan.conditions.candidate, pipeplan.conditions.simulated
---@field id string its name: letters, digits and underscores
---@field final? boolean no later layer may loosen it
---@field link? string where to read more
---@field message string what the plan says when it holds; {field} and {parameter} are filled in, with their units
---@field owner? string who answers for it
---@field recommend? pipeplan.schedule|pipeplan.layout what to do instead; a schedule takes the refused one's place
---@field source? string where the rule comes from
---@field why? string the reason, for whoever reads the plan
---@field when? fun(record: pipeplan.record): boolean a condition that fields cannot express

--- A refusal: what to do instead of a schedule or a plan that is possible but a bad idea.
--- ```lua
--- refuse { id = "slow_links", network_per_gpu = at_most "400Gbps", recommend = "data_parallel",
---          message = "{network_per_gpu} a GPU" }
--- ```
---@param statement pipeplan.statement.refuse
function refuse(statement) end

---@class pipeplan.statement.prefer: pipeplan.conditions.request, pipeplan.conditions.candidate, pipeplan.conditions.simulated
---@field id string its name: letters, digits and underscores
---@field final? boolean no later layer may loosen it
---@field link? string where to read more
---@field owner? string who answers for it
---@field source? string where the rule comes from
---@field why? string the reason, for whoever reads the plan
---@field within "any"|pipeplan.quantity|pipeplan.parameter decides among plans that close to the fastest; "any": keeps what matches whenever something does
---@field when? fun(record: pipeplan.record): boolean a condition that fields cannot express

--- Decides among candidates that come close.
--- ```lua
--- prefer { id = "shallow", pipeline_parallel = at_most(2), within = "any" }
--- ```
---@param statement pipeplan.statement.prefer
function prefer(statement) end

---@class pipeplan.statement.kernel: pipeplan.conditions.request, pipeplan.conditions.candidate
---@field id string its name: letters, digits and underscores
---@field final? boolean no later layer may loosen it
---@field link? string where to read more
---@field overlapping? boolean does it run beside compute? (default true)
---@field owner? string who answers for it
---@field recommend? string its name in the catalogue (default: the id)
---@field source? string where the rule comes from
---@field why string the reason, for whoever reads the plan
---@field when? fun(record: pipeplan.record): boolean a condition that fields cannot express

--- Which all-to-all kernel to recommend. The first that matches decides; those of a later layer stand above.
--- ```lua
--- kernel { id = "own_kernel", fabric = "efa", expert_parallel = at_most(16), why = "measured here" }
--- ```
---@param statement pipeplan.statement.kernel
function kernel(statement) end

---@class pipeplan.statement.warn: pipeplan.conditions.request, pipeplan.conditions.candidate, pipeplan.conditions.simulated, pipeplan.conditions.plan
---@field id string its name: letters, digits and underscores
---@field final? boolean no later layer may loosen it
---@field link? string where to read more
---@field message string what the plan says when it holds; {field} and {parameter} are filled in, with their units
---@field owner? string who answers for it
---@field severity? "warning"|"note" how much it matters (default warning)
---@field source? string where the rule comes from
---@field why? string the reason, for whoever reads the plan
---@field when? fun(record: pipeplan.record): boolean a condition that fields cannot express

--- What the reader of the plan should know.
--- ```lua
--- warn { id = "idle", bubble_fraction = over "0.1%", message = "{bubble_fraction} of a step is idle" }
--- ```
---@param statement pipeplan.statement.warn
function warn(statement) end

---@class pipeplan.statement.invariant: pipeplan.conditions.request, pipeplan.conditions.candidate, pipeplan.conditions.simulated, pipeplan.conditions.plan
---@field id string its name: letters, digits and underscores
---@field final? boolean no later layer may loosen it
---@field link? string where to read more
---@field message? string what the plan says when it holds; {field} and {parameter} are filled in, with their units
---@field owner? string who answers for it
---@field source? string where the rule comes from
---@field unless? string rule that, visibly loosened, permits it
---@field why? string the reason, for whoever reads the plan
---@field when? fun(record: pipeplan.record): boolean a condition that fields cannot express

--- What no planned result may ever satisfy.
--- ```lua
--- invariant { id = "never_idle", bubble_fraction = over "0.1%" }
--- ```
---@param statement pipeplan.statement.invariant
function invariant(statement) end

---@class pipeplan.statement.change: pipeplan.conditions.request, pipeplan.conditions.candidate, pipeplan.conditions.simulated, pipeplan.conditions.plan
---@field id pipeplan.rule a row or rule of an earlier layer
---@field final? boolean no later layer may loosen it
---@field link? string where to read more
---@field message? string what the plan says when it holds; {field} and {parameter} are filled in, with their units
---@field overlapping? boolean does it run beside compute? (default true)
---@field owner? string who answers for it
---@field recommend? pipeplan.schedule|pipeplan.layout|string what to do instead, or the kernel's name in the catalogue
---@field severity? "warning"|"note" how much it matters (default warning)
---@field source? string where the rule comes from
---@field try? pipeplan.schedule[] schedules or families in order: the first is wanted, the others may replace it
---@field unless? string rule that, visibly loosened, permits it
---@field why? string the reason, for whoever reads the plan
---@field within? "any"|pipeplan.quantity|pipeplan.parameter decides among plans that close to the fastest; "any": keeps what matches whenever something does
---@field when? fun(record: pipeplan.record): boolean a condition that fields cannot express; any takes it away
---@field reason? string why; needed when it lets more plans through
---@field expires? string YYYY-MM-DD after which it falls away, where it lets more plans through

--- Changes a row or rule of an earlier layer: only what differs is given, `any` removes a condition.
--- ```lua
--- change { id = "wide", gpus = at_most(64), reason = "small runs only" }
--- ```
---@param statement pipeplan.statement.change
function change(statement) end

---@class pipeplan.statement.disable
---@field id pipeplan.rule a row or rule of an earlier layer
---@field reason? string why; needed for a reject or refusal
---@field expires? string YYYY-MM-DD after which it falls away, where it lets more plans through
---@field owner? string who answers for it
---@field why? string the reason, for whoever reads the plan
---@field link? string where to read more
---@field final? boolean no later layer may loosen it

--- Takes a row or rule of an earlier layer out.
--- ```lua
--- disable { id = "wide", reason = "a model with few layers", expires = "2999-12-31" }
--- ```
---@param statement pipeplan.statement.disable
function disable(statement) end

---@class pipeplan.statement.enable
---@field id pipeplan.rule a row or rule that an earlier layer disables
---@field reason? string why; needed for a kernel
---@field owner? string who answers for it
---@field why? string the reason, for whoever reads the plan
---@field link? string where to read more
---@field final? boolean no later layer may loosen it

--- Brings back what an earlier layer disables.
--- ```lua
--- enable { id = "short_run" }
--- ```
---@param statement pipeplan.statement.enable
function enable(statement) end

---@class pipeplan.statement.pin
---@field default string digest of the default policy, as `pipeplan policy show --files` prints it
---@field reason? string why
---@field owner? string who answers for it
---@field why? string the reason, for whoever reads the plan
---@field link? string where to read more

--- The default policy that a site was written for: over another it does not load.
--- ```lua
--- pin { default = "DIGEST" } set { tie_fraction = "2%" }
--- ```
---@param statement pipeplan.statement.pin
function pin(statement) end

--- Names the layer.
--- ```lua
--- site "hall-7" set { tie_fraction = "2%" }
--- ```
---@param name string
function site(name) end

--- Runs the policy file of that name beside this one, once, and gives what it returns: "limits" is limits.lua.
--- Only at the top of a file, and only a regular file of that folder, or a link to one. The policy's digest covers its text.
--- Layers that require one file share what it returns: what a rule of an earlier layer reads of it, a later one cannot change.
---@param name string
---@return any
function require(name) end

---@class pipeplan.statement.parameter
---@field id string the name that rules use
---@field value pipeplan.quantity|boolean|string[]|integer[] its value
---@field unit? "1"|"byte"|"byte/s"|"flop/s"|"fraction"|"gpu"|"rank"|"second"|"sequence"|"step"|"token"|"microbatch"|"recompute"|"schedule"|"sharding" of the value; a boolean has none
---@field at_least? pipeplan.quantity the least that it can be; default 0
---@field at_most? pipeplan.quantity the most that it can be; default of a fraction 1
---@field loosens "up"|"down"|"none" the way that lets more plans through
---@field meaning string what it is, in a few words
---@field owner? string who answers for it
---@field why? string the reason, for whoever reads the plan
---@field link? string where to read more
---@field final? boolean no later layer may loosen it

--- Declares a number or list that rules name.
--- ```lua
--- parameter { id = "depth_here", value = 2, unit = "rank", loosens = "up", at_least = 1, meaning = "deepest pipeline here" }
--- reject { id = "deep", pipeline_parallel = over "depth_here", message = "at most {depth_here}" }
--- ```
---@param statement pipeplan.statement.parameter
function parameter(statement) end

---@class pipeplan.statement.set
---@field small_run_gpus? pipeplan.quantity under this many GPUs a run is small; in gpu; 0 … 10000000
---@field large_dense_gpus? pipeplan.quantity from this many GPUs on a dense run is large; in gpu; 0 … 10000000
---@field heavy_alltoall_fraction? pipeplan.quantity all-to-all seconds / ideal step, from which the all-to-all is heavy; in fraction; 0 … 10
---@field wanted_tolerance? pipeplan.quantity how much slower than the fastest plan the wanted schedule, and what is preferred, may be; in fraction; 0 … 10
---@field schedules? pipeplan.schedule[] what may be planned at all; a site cuts this down to what its framework runs
---@field zero_bubble_members? pipeplan.schedule[] what zero_bubble stands for: the fastest that fits, in a tie the earlier
---@field max_pipeline_depth? pipeplan.quantity deeper pipelines are rejected; in rank; 1 … 10000000; loosens up
---@field min_microbatches_per_rank? pipeplan.quantity M / P that DualPipe and DualPipeV need: their steady phase; 0 … 1e+18; loosens down
---@field slow_link? pipeplan.quantity at or below this, per GPU, DualPipe is refused; in byte/s; 0 … 1e+18; loosens down
---@field short_run_tokens? pipeplan.quantity below this a run is too short to plan a pipeline for; in token; 0 … 1e+18; loosens down
---@field memory_headroom? pipeplan.quantity share of the device's memory that a plan must leave free; in fraction; 0 … 1; loosens down
---@field tight_fraction? pipeplan.quantity of the memory that a plan may fill: from there on it fits tightly; in fraction; 0 … 1
---@field tie_fraction? pipeplan.quantity step times this close are equal; in fraction; 0 … 10
---@field small_cluster_depth? pipeplan.quantity usual depth on a small cluster; in rank; 1 … 10000000
---@field frontier_depth_low? pipeplan.quantity usual depth of a frontier MoE, from; in rank; 1 … 10000000
---@field frontier_depth_high? pipeplan.quantity usual depth of a frontier MoE, to; in rank; 1 … 10000000
---@field frontier_parameters? pipeplan.quantity an MoE of this size is a frontier one; 0 … 1e+18
---@field microbatch_ratio_low? pipeplan.quantity M / P: warn below; 0 … 1e+18
---@field microbatch_ratio_high? pipeplan.quantity M / P: note above; 0 … 1e+18
---@field split_tie_fraction? pipeplan.quantity splits whose steps are this close are equal, and the one that takes less memory is taken; in fraction; 0 … 1
---@field split_gain_fraction? pipeplan.quantity of a step, that layers on early ranks must win for the memory they cost there; in fraction; 0 … 1
---@field split_overfull_fraction? pipeplan.quantity over its usable memory, up to which layers are moved off a rank to make it fit; in fraction; 0 … 10
---@field default_batch_tokens? pipeplan.quantity tokens of one step when the spec gives no batch; in token; 1 … 1e+18
---@field context_rank_tokens? pipeplan.quantity context parallelism that the spec leaves free cuts no sequence into shorter pieces; in token; 1 … 1e+18
---@field micro_batch_choices? integer[] sequences of a microbatch that are tried; in microbatch
---@field recompute_choices? pipeplan.value.recompute[] sets of what is computed again that are tried; modules: norms, activations and MLA's up-projection; in recompute
---@field sharding_choices? pipeplan.value.sharding[] what data parallelism shards that is tried, as far as the framework does; in sharding
---@field idle_gpus? pipeplan.quantity of all GPUs, that may be left idle where fewer are faster; in fraction; 0 … 1
---@field measured_warmup_steps? pipeplan.quantity first steps of a measured run that are left out; in step; 0 … 999999
---@field measured_least_steps? pipeplan.quantity steps behind them, of fewer no run says anything; in step; 3 … 1000000
---@field rollback_window_steps? pipeplan.quantity steps over which utilisation is averaged; in step; 1 … 1000000
---@field rollback_warmup_steps? pipeplan.quantity first steps left out of that window; in step; 0 … 999999
---@field rollback_fallback? pipeplan.schedule[] simpler schedules to roll back to: the first that fits
---@field reason? string why; needed when a value moves in its loosening direction
---@field expires? string YYYY-MM-DD after which it falls away, where it lets more plans through
---@field owner? string who answers for it
---@field why? string the reason, for whoever reads the plan
---@field link? string where to read more
---@field final? boolean no later layer may loosen it
---@field [string] any a parameter that a layer below declares

--- Changes parameters.
--- ```lua
--- set { widest_tensor = 8, reason = "nodes of 8 since May" }
--- ```
---@param values pipeplan.statement.set
function set(values) end
