---@meta pipeplan
-- SPDX-License-Identifier: Apache-2.0

-- What `require "pipeplan"` returns.
-- Made by scripts/generate-meta for LuaLS; a test compares. Edit what it is made from, not this file.

--- What to plan: spec files, laid over each other in order, and fields over all of them.
---@class pipeplan.request
---@field [integer] string spec files
---@field gpus? integer|string GPUs of the training run; minimum: the fewest that hold it; in gpu
---@field gpus_per_node? integer|string GPUs in one node (default: the accelerator's usual node); in gpu
---@field accelerator? string catalogue name of the GPU (pipeplan facts accelerators)
---@field memory_per_gpu? number|string memory of one GPU, when it is not the catalogue's; in byte
---@field flops? number|string dense peak of one GPU at the training precision, when it is not the catalogue's; in flop/s
---@field memory_bandwidth? number|string memory bandwidth of one GPU, when it is not the catalogue's; in byte/s
---@field inventory? string|string[] files that say which GPUs there are: scontrol show node, sinfo (with %G), a hostfile, nvidia-smi -L; gpus, gpus_per_node and accelerator may be left out then
---@field kernels? string file of kernels measured on the card (examples/torch/profile_kernels.py)
---@field calibration? string file of what the site's runs say of the price of a step (plan --keep; docs/measuring.md)
---@field price_per_gpu_hour? number|string what an hour of one GPU costs, in any currency
---@field fabric? "infiniband"|"roce"|"efa"|"slingshot"|"ethernet"|"none" network between scale-up domains
---@field per_gpu? number|string network speed of one GPU, one direction; in byte/s
---@field nics_per_node? integer|string network cards of one node; fewer than its GPUs share their speed
---@field scale_up_gpus? integer|string GPUs that one NVLink, xGMI or HCCS domain joins (default: the accelerator's); in gpu
---@field scale_up_per_gpu? number|string its speed, one direction, per GPU (default: the accelerator's); in byte/s
---@field oversubscription? number|string what the nodes can send / what the network carries between them (default 1)
---@field measured? string|string[] files of nccl-tests output, nvidia-smi topo -m and rocm-smi --showtopo of the cluster: links as measured; as an option of plan also PLAN.json[:N]=LOG: runs of layouts (docs/measuring.md)
---@field storage? number|string what checkpoints are written at, all GPUs together; in byte/s
---@field overhead? number|string memory of a GPU that tensors cannot have: context, workspaces, communicators (default: by framework and layout, 1.3 GiB at least); in byte
---@field host_memory? number|string host memory of one node, for an offloaded optimizer; in byte
---@field alltoall_kernel? string|false all-to-all kernel in use (pipeplan facts kernels); false: none that overlaps
---@field model? string|table path of a Hugging Face config.json, or an inline shape
---@field tokens? number|string training volume; in token
---@field sequence_length? integer|string tokens of one sequence (default: 4096, or the model's maximum when that is less); in token
---@field document_length? number|string packed sequences: mean tokens of a document, within which attention stays (default: a sequence); in token
---@field document_length_rms? number|string quadratic mean of the same documents (default: they are all alike); in token
---@field padding? number|string share of a sequence that only fills it: computed, and no part of tokens (default 0); in fraction
---@field micro_batch_size? integer|string sequences of one microbatch (left out: chosen); in sequence
---@field global_batch_size? number|string|(number|string)[][] sequences of one step; or a ramp [[first token, sequences], …]; in sequence
---@field precision? "bf16"|"fp8"|"fp16"|"fp32" of the matrix products (default bf16)
---@field optimizer? "adam"|"adamw"|"muon"|"sgd" optimizer (default adam)
---@field moments? "fp32"|"bf16"|"fp16"|"fp8" what optimizer moments are kept in (default fp32)
---@field tower? "trained"|"frozen"|"none" tower of images of a multimodal model, on the first stage: trained (default), frozen, none (left out)
---@field lora_rank? integer|string only adapters of this rank beside every linear weight train; the weights themselves are frozen
---@field sharding? "none"|"optimizer"|"gradients"|"parameters" what data parallelism shards: optimizer state, gradients, parameters too (FSDP); left out: chosen
---@field zero? integer|string the same as a ZeRO stage, 0 to 3
---@field reshard? boolean|string sharded parameters are dropped after use and gathered again (default: without a pipeline)
---@field fp8_gathers? boolean|string with fp8 products, sharded parameters are gathered in fp8 (default: in bf16)
---@field replicas? integer|string HSDP: groups of GPUs that each shard a whole state (default 1)
---@field optimizer_offload? number|string share of the optimizer's state kept and updated in host memory (default 0); in fraction
---@field weights? "bf16"|"fp8"|"fp8_single" what weights are kept in, with fp8 products (default fp8: as they are and transposed)
---@field gradients? "fp32"|"bf16" what gradients are accumulated in (default fp32)
---@field weight_gradients? "kept"|"dropped" temporaries of weight gradients: kept, one for each shape, or dropped once they are added (default: of the framework, else kept)
---@field reduction? "scatter"|"all" what a rank gets of reduced gradients: its part (default with a sharded optimizer), or all
---@field reduced_gradients? "fp32"|"bf16" what gradients are sent in (default: what they are accumulated in)
---@field dropout? boolean|string dropout after attention, MLP and embedding, and in an attention that is not fused (default false)
---@field activations? "fp8"|"bf16" what SwiGLU reads and attention hands on is kept in, with fp8 products (Megatron: bf16)
---@field expert_imbalance? number|string tokens on the fullest expert rank / mean (default 1: balanced)
---@field recompute? string|string[] what is computed again instead of stored: none, selective, full, or modules; left out: chosen
---@field unfused? string|string[] kernels that are not fused: none (default), or a list
---@field loss? "vocab_parallel"|"vocab_parallel_compiled"|"in_place"|"torch"|"torch_compiled" how the cross entropy is computed (default: as the framework does, else as Megatron-LM)
---@field bucket? number|string parameters whose gradients are reduced at once (default: the framework's, else all)
---@field data_overlap? number|string share of a microbatch's backward and forward that hides gradient and parameter traffic (default: the framework's, else 0); in fraction
---@field tensor_overlap? number|string share of TP's collectives that run beside products (default 0; Transformer Engine's userbuffers: about 0.7); in fraction
---@field alltoall_overlap? boolean|string without a pipeline, the all-to-all runs beside the next microbatch's compute (default: where the framework can)
---@field cuda_graphs? boolean|string layers are launched as CUDA graphs (default false)
---@field goodput? number|string share of the time that trains: restarts and checkpoints left out (default 1); in fraction
---@field tensor? integer|string tensor parallelism (TP); in rank
---@field context? integer|string context parallelism (CP); in rank
---@field expert? integer|string expert parallelism (EP); in rank
---@field expert_tensor? integer|string TP of experts (default: 1; in Megatron TP, or the better one where TP is open); in rank
---@field sequence? boolean|string sequence parallelism: what is between TP regions is split over TP too (default: where there is any)
---@field scatter_messages? boolean|string what stages hand over is cut over TP on the way (default: with sequence parallelism)
---@field data? integer|string data parallelism (DP); in rank
---@field pipeline? integer|string pipeline depth (P); in rank
---@field virtual? integer|string chunks of one rank of an interleaved schedule (V)
---@field microbatches? integer|string microbatches of one pipeline and step (M), at the smallest batch
---@field schedule? "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" pipeline schedule
---@field account_for? "embedding"|"loss"|"both" ends that count as a layer each where Megatron divides layers evenly over stages
---@field account_for_embedding_in_pipeline_split? boolean|string the same of the embedding, as Megatron calls it
---@field account_for_loss_in_pipeline_split? boolean|string the same of the loss
---@field num_layers_in_first_pipeline_stage? integer|string decoder layers of the first rank; the others alike
---@field num_layers_in_last_pipeline_stage? integer|string decoder layers of the last rank
---@field pipeline_model_parallel_layout? string|string[][] layers of each stage as Megatron writes them: Et*3|(tt|)*29,mL, or a list of lists of embedding, decoder, mtp, loss
---@field layers_per_stage? integer[]|string decoder layers of each stage, first to last
---@field framework? "megatron"|"megatron-bridge"|"flagscale"|"deepseek-dualpipe"|"torchtitan"|"torch"|"deepspeed"|"nanotron"|"mindspeed"|"primus"|"colossalai"|"zero-bubble" what will run the plan: limits schedules and layouts to what it can
---@field framework_version? string its version, for rules that ask
---@field run? string name of the run, for rules that ask
---@field team? string whose run it is, for rules that ask
---@field labels? table<string, string>|string what else is said of the run, for rules that ask: label_tier of rules is { "tier": … } here
---@field profile? string file of measured seconds and bytes of stages (pipeplan facts schema profile)

--- A spec: what its JSON says, as a Lua table.
---@class pipeplan.spec
---@field cluster? pipeplan.spec.cluster
---@field framework? "megatron"|"megatron-bridge"|"flagscale"|"deepseek-dualpipe"|"torchtitan"|"torch"|"deepspeed"|"nanotron"|"mindspeed"|"primus"|"colossalai"|"zero-bubble" what will run the plan: limits schedules and layouts to what it can
---@field framework_version? string its version, for rules that ask
---@field labels? table<string, string>|string what else is said of the run, for rules that ask: label_tier of rules is { "tier": … } here
---@field model? string|table path of a Hugging Face config.json, or an inline shape
---@field parallelism? pipeplan.spec.parallelism
---@field profile? string file of measured seconds and bytes of stages (pipeplan facts schema profile)
---@field run? string name of the run, for rules that ask
---@field team? string whose run it is, for rules that ask
---@field training? pipeplan.spec.training

---@class pipeplan.spec.cluster
---@field accelerator? string catalogue name of the GPU (pipeplan facts accelerators)
---@field alltoall_kernel? string|false all-to-all kernel in use (pipeplan facts kernels); false: none that overlaps
---@field calibration? string file of what the site's runs say of the price of a step (plan --keep; docs/measuring.md)
---@field flops? number|string dense peak of one GPU at the training precision, when it is not the catalogue's; in flop/s
---@field gpus? integer|string GPUs of the training run; minimum: the fewest that hold it; in gpu
---@field gpus_per_node? integer|string GPUs in one node (default: the accelerator's usual node); in gpu
---@field host_memory? number|string host memory of one node, for an offloaded optimizer; in byte
---@field inventory? string|string[] files that say which GPUs there are: scontrol show node, sinfo (with %G), a hostfile, nvidia-smi -L; gpus, gpus_per_node and accelerator may be left out then
---@field kernels? string file of kernels measured on the card (examples/torch/profile_kernels.py)
---@field memory_bandwidth? number|string memory bandwidth of one GPU, when it is not the catalogue's; in byte/s
---@field memory_per_gpu? number|string memory of one GPU, when it is not the catalogue's; in byte
---@field network? pipeplan.spec.cluster.network
---@field overhead? number|string memory of a GPU that tensors cannot have: context, workspaces, communicators (default: by framework and layout, 1.3 GiB at least); in byte
---@field price_per_gpu_hour? number|string what an hour of one GPU costs, in any currency
---@field storage? number|string what checkpoints are written at, all GPUs together; in byte/s

---@class pipeplan.spec.cluster.network
---@field fabric? "infiniband"|"roce"|"efa"|"slingshot"|"ethernet"|"none" network between scale-up domains
---@field measured? string|string[] files of nccl-tests output, nvidia-smi topo -m and rocm-smi --showtopo of the cluster: links as measured; as an option of plan also PLAN.json[:N]=LOG: runs of layouts (docs/measuring.md)
---@field nics_per_node? integer|string network cards of one node; fewer than its GPUs share their speed
---@field oversubscription? number|string what the nodes can send / what the network carries between them (default 1)
---@field per_gpu? number|string network speed of one GPU, one direction; in byte/s
---@field scale_up_gpus? integer|string GPUs that one NVLink, xGMI or HCCS domain joins (default: the accelerator's); in gpu
---@field scale_up_per_gpu? number|string its speed, one direction, per GPU (default: the accelerator's); in byte/s

---@class pipeplan.spec.parallelism
---@field account_for? "embedding"|"loss"|"both" ends that count as a layer each where Megatron divides layers evenly over stages
---@field account_for_embedding_in_pipeline_split? boolean|string the same of the embedding, as Megatron calls it
---@field account_for_loss_in_pipeline_split? boolean|string the same of the loss
---@field context? integer|string context parallelism (CP); in rank
---@field data? integer|string data parallelism (DP); in rank
---@field expert? integer|string expert parallelism (EP); in rank
---@field expert_tensor? integer|string TP of experts (default: 1; in Megatron TP, or the better one where TP is open); in rank
---@field layers_per_stage? integer[]|string decoder layers of each stage, first to last
---@field microbatches? integer|string microbatches of one pipeline and step (M), at the smallest batch
---@field num_layers_in_first_pipeline_stage? integer|string decoder layers of the first rank; the others alike
---@field num_layers_in_last_pipeline_stage? integer|string decoder layers of the last rank
---@field pipeline? integer|string pipeline depth (P); in rank
---@field pipeline_model_parallel_layout? string|string[][] layers of each stage as Megatron writes them: Et*3|(tt|)*29,mL, or a list of lists of embedding, decoder, mtp, loss
---@field scatter_messages? boolean|string what stages hand over is cut over TP on the way (default: with sequence parallelism)
---@field schedule? "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" pipeline schedule
---@field sequence? boolean|string sequence parallelism: what is between TP regions is split over TP too (default: where there is any)
---@field tensor? integer|string tensor parallelism (TP); in rank
---@field virtual? integer|string chunks of one rank of an interleaved schedule (V)

---@class pipeplan.spec.training
---@field activations? "fp8"|"bf16" what SwiGLU reads and attention hands on is kept in, with fp8 products (Megatron: bf16)
---@field alltoall_overlap? boolean|string without a pipeline, the all-to-all runs beside the next microbatch's compute (default: where the framework can)
---@field bucket? number|string parameters whose gradients are reduced at once (default: the framework's, else all)
---@field cuda_graphs? boolean|string layers are launched as CUDA graphs (default false)
---@field data_overlap? number|string share of a microbatch's backward and forward that hides gradient and parameter traffic (default: the framework's, else 0); in fraction
---@field document_length? number|string packed sequences: mean tokens of a document, within which attention stays (default: a sequence); in token
---@field document_length_rms? number|string quadratic mean of the same documents (default: they are all alike); in token
---@field dropout? boolean|string dropout after attention, MLP and embedding, and in an attention that is not fused (default false)
---@field expert_imbalance? number|string tokens on the fullest expert rank / mean (default 1: balanced)
---@field fp8_gathers? boolean|string with fp8 products, sharded parameters are gathered in fp8 (default: in bf16)
---@field global_batch_size? number|string|(number|string)[][] sequences of one step; or a ramp [[first token, sequences], …]; in sequence
---@field goodput? number|string share of the time that trains: restarts and checkpoints left out (default 1); in fraction
---@field gradients? "fp32"|"bf16" what gradients are accumulated in (default fp32)
---@field lora_rank? integer|string only adapters of this rank beside every linear weight train; the weights themselves are frozen
---@field loss? "vocab_parallel"|"vocab_parallel_compiled"|"in_place"|"torch"|"torch_compiled" how the cross entropy is computed (default: as the framework does, else as Megatron-LM)
---@field micro_batch_size? integer|string sequences of one microbatch (left out: chosen); in sequence
---@field moments? "fp32"|"bf16"|"fp16"|"fp8" what optimizer moments are kept in (default fp32)
---@field optimizer? "adam"|"adamw"|"muon"|"sgd" optimizer (default adam)
---@field optimizer_offload? number|string share of the optimizer's state kept and updated in host memory (default 0); in fraction
---@field padding? number|string share of a sequence that only fills it: computed, and no part of tokens (default 0); in fraction
---@field precision? "bf16"|"fp8"|"fp16"|"fp32" of the matrix products (default bf16)
---@field recompute? string|string[] what is computed again instead of stored: none, selective, full, or modules; left out: chosen
---@field reduced_gradients? "fp32"|"bf16" what gradients are sent in (default: what they are accumulated in)
---@field reduction? "scatter"|"all" what a rank gets of reduced gradients: its part (default with a sharded optimizer), or all
---@field replicas? integer|string HSDP: groups of GPUs that each shard a whole state (default 1)
---@field reshard? boolean|string sharded parameters are dropped after use and gathered again (default: without a pipeline)
---@field sequence_length? integer|string tokens of one sequence (default: 4096, or the model's maximum when that is less); in token
---@field sharding? "none"|"optimizer"|"gradients"|"parameters" what data parallelism shards: optimizer state, gradients, parameters too (FSDP); left out: chosen
---@field tensor_overlap? number|string share of TP's collectives that run beside products (default 0; Transformer Engine's userbuffers: about 0.7); in fraction
---@field tokens? number|string training volume; in token
---@field tower? "trained"|"frozen"|"none" tower of images of a multimodal model, on the first stage: trained (default), frozen, none (left out)
---@field unfused? string|string[] kernels that are not fused: none (default), or a list
---@field weight_gradients? "kept"|"dropped" temporaries of weight gradients: kept, one for each shape, or dropped once they are added (default: of the framework, else kept)
---@field weights? "bf16"|"fp8"|"fp8_single" what weights are kept in, with fp8 products (default fp8: as they are and transposed)
---@field zero? integer|string the same as a ZeRO stage, 0 to 3

--- another schedule on the same devices, at the plan's layout where that is legal, else at its own best
---@class pipeplan.plan.alternative
---@field allowed boolean does it fit, and does no rule forbid it?
---@field bubble_fraction? number mean idle share
---@field error_fraction? number how far off the comparison of its step with the plan's may be
---@field fit? "fits"|"tight"|"does_not_fit" does it fit the memory?
---@field microbatches? integer M per pipeline and step
---@field parallelism pipeplan.plan.parallelism
---@field peak_bytes? number memory of the fullest rank
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" none: without a pipeline
---@field slower_fraction? number its step over the plan's, less one; negative: it is faster
---@field step_seconds? number one training step
---@field tie? boolean is that under 5 %, faster or slower?
---@field why_not string[] why it is not the plan

--- a layout that is worth a run
---@class pipeplan.plan.layout_to_measure
---@field changes table<string, any> path of a spec → value: laid over the spec, they plan this layout
---@field error_fraction number how far off that may be: nine of ten pairs of measured runs; 0 for the plan
---@field fit "fits"|"tight"|"does_not_fit" does it fit?
---@field gpus_used integer GPUs of the layout
---@field layers_per_stage integer[] by slice of the model, first to last
---@field micro_batch_size integer sequences of a microbatch
---@field microbatches integer M per pipeline and step
---@field options string the changes as options of the command line
---@field parallelism pipeplan.plan.parallelism
---@field peak_bytes number of the fullest rank
---@field price pipeplan.plan.price
---@field recompute string[] what is computed again in the backward
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" none: without a pipeline
---@field sharding "none"|"optimizer"|"gradients"|"parameters" what data parallelism shards
---@field slower_fraction number its step over the plan's, less one; negative: it is faster
---@field step_seconds number predicted
---@field teaches string what a run of it tells
---@field term? string the term of the price that differs most from the plan's

--- how the model is spread over the GPUs
---@class pipeplan.plan.parallelism
---@field context integer context parallel degree
---@field data integer data parallel degree
---@field expert integer expert parallel degree
---@field expert_tensor integer tensor parallel degree of experts
---@field pipeline integer P: pipeline depth
---@field tensor integer tensor parallel degree
---@field virtual integer V: chunks per rank of an interleaved schedule, otherwise 1

--- the phases of one step's pipeline, as simulated
---@class pipeplan.plan.phases
---@field actions integer what all ranks run in a step
---@field cool_down_seconds number the rest of the pipeline
---@field steady_seconds number from there until the first rank has no forward left, or no pair; 0: there is no such phase
---@field warm_up_seconds number from the start until every rank has begun a backward, or an F&B pair where the schedule has them

--- what a step is made of, by what a run can teach; the terms sum to it
---@class pipeplan.plan.price
---@field bubble_seconds number idle of the mean rank, without those
---@field compute_seconds number what no other term has: products, attention, element-wise kernels, the host
---@field context_seconds number CP's ring, what attention does not hide
---@field data_seconds number gradients and parameters on their way
---@field expert_seconds number all-to-all that nothing hides
---@field optimizer_seconds number the update
---@field pipeline_seconds number hand-overs between stages, waited for
---@field recompute_seconds number computed again
---@field tensor_seconds number collectives of TP

--- memory of one rank
---@class pipeplan.plan.rank
---@field activations_bytes number peak of what is kept between F and W
---@field buffers_bytes number these two together
---@field gradients_bytes number accumulated gradients, all copies
---@field host_bytes number in host memory, for one GPU
---@field optimizer_bytes number master weights and moments, sharded
---@field overhead_bytes number context, workspaces, communicators: assumed
---@field parameters_bytes number weights, all copies
---@field rank integer pipeline rank
---@field stages integer[] slices of the model it holds, first to last
---@field total_bytes number parameters, gradients, optimizer, activations and buffers
---@field tower_bytes? number of parameters, gradients and optimizer: what a tower of images takes
---@field transient_bytes number largest temporary of an action, and gradients before they are accumulated

--- a rule that decided
---@class pipeplan.plan.reason
---@field file? string its file
---@field id string the rule's id
---@field layer? string the policy layer that states it
---@field line? integer its line
---@field message string what it says about this plan
---@field source? string where the rule comes from

--- GPU-hours over the whole token budget
---@class pipeplan.plan.saving
---@field baseline "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" what it is compared with, at the same P, M, layout and cost model without overlap
---@field baseline_fits? boolean would the baseline fit the memory?
---@field bubble number GPU-hours that the schedule alone saves
---@field cost? number of that total, where the spec gives a price
---@field error_fraction number how far off the ratio of both steps may be: nine of ten pairs of measured runs
---@field overlap number GPU-hours that hiding the all-to-all saves
---@field total number their sum: baseline less plan

--- seconds of one stage
---@class pipeplan.plan.stage
---@field alltoall_backward_seconds number all-to-all in B, before overlap
---@field alltoall_forward_seconds number all-to-all in F, before overlap
---@field forward_seconds number F of one microbatch
---@field full_seconds number B: the whole backward in one action
---@field host_backward_seconds number of B, what the card waits for its host's launches
---@field host_forward_seconds number of F, what the card waits for its host's launches
---@field input_seconds number I: backward for the input, recompute included
---@field layers integer decoder layers
---@field pair_seconds? number F&B: a forward overlapped with a backward; null where the schedule has none
---@field rank integer pipeline rank that runs it
---@field stage integer slice of the model, first to last
---@field weight_seconds number W: backward for the weights

--- one kind of communication
---@class pipeplan.plan.traffic
---@field exposed_seconds? number the part that no compute hides; null where it is not told apart
---@field runs_beside string what hides the rest of it
---@field seconds number on the slowest rank, per step

--- What pipeplan answers: a plan, or why there is none and what to do instead
---@class pipeplan.plan
---@field activation_limit_chunks? integer zb_auto: most chunks' activations that a rank may hold at once; it was planned under this limit
---@field advice pipeplan.plan.advice[] what else there is to do, each planned before it is told
---@field alltoall_kernel? pipeplan.plan.alltoall_kernel the all-to-all kernel
---@field alternatives? pipeplan.plan.alternative[] other schedules on the same devices, layers and tokens
---@field assumptions pipeplan.plan.assumptions[] what the spec did not say
---@field available_in? string[] where the planned schedule can be run
---@field bubble? pipeplan.plan.bubble the pipeline bubble
---@field cluster pipeplan.plan.cluster the cluster
---@field communication? pipeplan.plan.communication per step, on the rank that spends most on it; tensor and context are part of F, I and W
---@field cost? number gpu_hours × price_per_gpu_hour, where the spec gives one
---@field decision? string the row of the decision table that holds; null where the spec fixes the schedule
---@field dominated_by? pipeplan.plan.dominated_by[] schedules that beat the planned one by more than tie_fraction
---@field dropped pipeplan.plan.dropped[] which rule dropped how many candidates
---@field engine_version string version of pipeplan
---@field even_split? pipeplan.plan.even_split the same plan with as many layers on each stage; null where that is the plan, and without a pipeline
---@field expected_error? pipeplan.plan.expected_error how far off the estimates may be
---@field explanation? pipeplan.plan.explanation only with --explain or --why
---@field framework? string what will run the plan, where the spec names it
---@field framework_flags? string[]
---@field frontier? pipeplan.plan.frontier[] of --format json and --explain: survivors of which none is faster with as few bytes, the fastest first, each next one at least 3 % smaller
---@field global_batch_size? integer sequences of a step, at the end of a ramp
---@field gpu_hours? number for all tokens
---@field gpu_hours_saved? pipeplan.plan.saving[] against simpler schedules
---@field gpus_needed? integer when nothing fits: the smallest count of GPUs, of those tried, that would work
---@field gpus_used? integer GPUs of the layout; the others of the cluster stay idle
---@field hop_seconds? number that a hand-over between two ranks is on its way while both may compute
---@field host? pipeplan.plan.host what nodes and storage have to hold
---@field ideal_step_seconds? number the same work without bubble, exposed communication and imbalance
---@field layers_per_stage? integer[] by slice of the model, first to last
---@field layout_flags? string[]
---@field loosened pipeplan.plan.loosened[] rules that some layer disabled, narrowed, or moved in their loosening direction
---@field measured? pipeplan.plan.measured of --measured: what runs of layouts say
---@field megatron_layout? string --pipeline-model-parallel-layout, where Megatron can run the placement
---@field memory? pipeplan.plan.memory memory
---@field mfu_fraction? number training FLOPs of the model / (step × bf16 peak of the GPUs)
---@field micro_batch_size? integer sequences of a microbatch
---@field microbatch_group_size? integer interleaved: microbatches that a chunk runs before the next one's turn; Megatron's default is P
---@field microbatches? integer M per pipeline and step; for DualPipe over both directions
---@field microbatches_per_rank? number M/P
---@field minimum? pipeplan.plan.minimum the answer to gpus: minimum; null where the spec gives a number, or no count fits
---@field model pipeplan.plan.model the model
---@field one_gpu pipeplan.plan.one_gpu would the model fit one GPU?
---@field overlap_alone? boolean without a pipeline: does the all-to-all run beside the next microbatch's compute?
---@field parallelism? pipeplan.plan.parallelism
---@field placement? integer[][] by slice of the model, first to last
---@field policy pipeplan.plan.policy the policy that decided
---@field policy_cost? pipeplan.plan.policy_cost what the policy's wishes cost
---@field power? pipeplan.plan.power what a power cap takes back of the plan's gain, where the profile says how cards heat up
---@field predicted_utilisation_fraction? number ideal step / step
---@field profile? pipeplan.plan.profile what was measured in place of what is computed
---@field reasons pipeplan.plan.reason[] rules that decided: why not planned, or why not the wanted schedule
---@field recommend? pipeplan.plan.recommend what to do instead; null when planned as wanted
---@field recompute? string[] what is computed again in the backward
---@field replication? pipeplan.plan.replication what a second copy costs
---@field rollback? pipeplan.plan.rollback when to give up on the plan
---@field runner_up? pipeplan.plan.runner_up the fastest of another layout or schedule; null where there is none
---@field schedule? "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" the planned schedule
---@field schedule_family? string zero_bubble for its members, otherwise the schedule
---@field schedule_wanted? string what that row wanted first
---@field sharding? "none"|"optimizer"|"gradients"|"parameters" what data parallelism shards
---@field shortlist? pipeplan.plan.layout_to_measure[] of --shortlist: what a comparison cannot tell from the plan and a run could, the plan first
---@field spec pipeplan.plan.spec the spec that was planned
---@field stages? pipeplan.plan.stage[] by slice of the model
---@field status "planned"|"refused"|"rejected" outcome
---@field step? pipeplan.plan.step what a step is made of
---@field step_seconds? number one training step at the full batch
---@field tokens_per_step? integer tokens of a step
---@field training pipeplan.plan.training the run
---@field training_days? number for all tokens, at the given goodput
---@field warnings pipeplan.plan.warnings[] what the plan's reader should know
---@field ways_to_fit? pipeplan.plan.ways_to_fit[] when nothing fits: what could be otherwise so that it does, the fastest step first; empty: nothing that was tried
---@field without_pipeline? pipeplan.plan.without_pipeline the best without a pipeline; null where the plan has none, or none fits

--- one suggestion
---@class pipeplan.plan.advice
---@field changes table<string, any> path of a spec → value: laid over the spec they give the outcome
---@field id string what it is about: dominated, runner_up, rollback, without_pipeline, recommend, to_fit, gpus, nearest, or a rule's id
---@field message string what else there is to do
---@field options string the changes as options of plan
---@field outcome pipeplan.plan.advice.outcome the plan of the changed spec
---@field saved_fraction? number of the GPU time of a token; negative: it takes more; null where there is no plan

--- the plan of the changed spec
---@class pipeplan.plan.advice.outcome
---@field fit "fits"|"tight"|"does_not_fit" does it fit?
---@field global_batch_size integer sequences of a step
---@field gpus integer GPUs of the layout
---@field micro_batch_size integer sequences of a microbatch
---@field microbatches integer M per pipeline and step
---@field parallelism pipeplan.plan.parallelism
---@field peak_bytes number memory of the fullest rank
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" none: without a pipeline
---@field status "planned" what the changed spec is answered with
---@field step_seconds number one training step

--- the all-to-all kernel
---@class pipeplan.plan.alltoall_kernel
---@field name? string kernel; null: none is needed
---@field needs string[] check before the run
---@field why string why

--- one assumption
---@class pipeplan.plan.assumptions
---@field field string spec field
---@field value any what was assumed
---@field why string why

--- the pipeline bubble
---@class pipeplan.plan.bubble
---@field baseline_1f1b_fraction? number 1F1B at the same P, M and layout
---@field closed_form_exact? boolean do the conditions of the closed form hold?
---@field closed_form_fraction? number idle of the most idle rank by the closed form, at mean stage times / makespan
---@field closed_form_interval? number[] what the closed form promises when it is not exact, at equal stages
---@field definition "mean_idle"|"max_idle"|"span" of fraction
---@field fraction number mean idle share: 1 − Σ busy / (P × makespan)
---@field idle_per_rank_seconds number[] per step
---@field max_idle_fraction number of the rank that idles most

--- the cluster
---@class pipeplan.plan.cluster
---@field accelerator string catalogue name
---@field device_bytes number memory of one GPU
---@field fabric? string network between scale-up domains
---@field gpus integer GPUs
---@field gpus_per_node integer GPUs of a node
---@field network_bytes_per_second? number between domains, one direction, per GPU
---@field price_per_gpu_hour? number what an hour of one GPU costs, in the spec's currency
---@field scale_up_bytes_per_second? number inside it, one direction, per GPU
---@field scale_up_gpus integer GPUs of a scale-up domain

--- per step, on the rank that spends most on it; tensor and context are part of F, I and W
---@class pipeplan.plan.communication
---@field context pipeplan.plan.traffic
---@field data pipeplan.plan.traffic
---@field expert pipeplan.plan.traffic
---@field pipeline pipeplan.plan.traffic
---@field tensor pipeplan.plan.traffic

--- one
---@class pipeplan.plan.dominated_by
---@field change? string what would make it the plan
---@field gain_fraction number of the step
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" a schedule that simulation says is faster
---@field tie boolean is that under 5 %?

--- one rule
---@class pipeplan.plan.dropped
---@field at_least? boolean true: of a plan, for rules about bytes and seconds are asked only of candidates that came up before it
---@field count integer candidates that it dropped
---@field nearest? pipeplan.plan.dropped.nearest nearest legal value
---@field rule string rule id

--- nearest legal value
---@class pipeplan.plan.dropped.nearest
---@field beyond? boolean true: only beyond that value
---@field field string vocabulary field
---@field value any nearest value at which it would not hold

--- the same plan with as many layers on each stage; null where that is the plan, and without a pipeline
---@class pipeplan.plan.even_split
---@field fit "fits"|"tight"|"does_not_fit" tight: fits, with less than another headroom free
---@field layers_per_stage integer[] by slice of the model, first to last
---@field peak_bytes number on its fullest rank
---@field slower_fraction number its step over the plan's, less one; negative: it is faster
---@field step_seconds number one step with it

--- how far off the estimates may be
---@class pipeplan.plan.expected_error
---@field comparison_fraction number of the ratio of two schedules' step times, in which errors of the cost model cancel
---@field comparisons? pipeplan.plan.expected_error.comparisons of the ratio of two steps, by what differs: nine of ten pairs of measured runs
---@field memory_fraction number of memory
---@field source string where these come from
---@field time_fraction number of step time

--- of the ratio of two steps, by what differs: nine of ten pairs of measured runs
---@class pipeplan.plan.expected_error.comparisons
---@field layout number another layout
---@field overlap number the all-to-all hidden or not
---@field pipeline number a pipeline or none
---@field schedule number another schedule at one layout

--- only with --explain or --why
---@class pipeplan.plan.explanation
---@field answers pipeplan.plan.explanation.answers[] of --why: candidate is the best with that value; fixed: the spec fixes another, candidate is the plan with this one
---@field changes pipeplan.plan.explanation.changes[] nearest changes of one stated field with another outcome, each planned; nearest first, a field once
---@field decided string[] how the plan was decided
---@field figures pipeplan.plan.explanation.figures[] where figures come from
---@field overridden pipeplan.plan.explanation.overridden[] what the layers over the default hide
---@field phases? pipeplan.plan.phases
---@field rules pipeplan.plan.explanation.rules[] every rule, in effective order, for the plan (or the candidate that was judged)
---@field sensitivity? pipeplan.plan.explanation.sensitivity[] where the choice turns: links, overlap, memory and batch at other values; null where nothing is planned
---@field spec pipeplan.plan.explanation.spec[] what the spec says, files and options laid over each other

--- one answer
---@class pipeplan.plan.explanation.answers
---@field answer string why
---@field candidate? pipeplan.plan.alternative
---@field question string field=value
---@field verdict "chosen"|"dropped"|"lost"|"none"|"fixed" what became of that choice

--- one change
---@class pipeplan.plan.explanation.changes
---@field decision? string row that would decide
---@field effect string what would be otherwise
---@field field string path in the spec
---@field gpu_hours? number for all tokens of the spec with that value; null where its batch ramps up
---@field peak_bytes? number on its fullest rank
---@field rules string[] its reasons
---@field side? "over"|"under" the limit of a real number lies there, value a hair beyond
---@field status "planned"|"refused"|"rejected" outcome with that value
---@field step_seconds? number one step of the plan with that value
---@field value string what it would be, as an option takes it
---@field words string value and the spec's own, or the limit to pass

--- one figure
---@class pipeplan.plan.explanation.figures
---@field figure string path in the plan, or several
---@field formula string in words
---@field inputs string what went into it here
---@field name string of the formula
---@field source string of the formula, or of the measurement

--- one override
---@class pipeplan.plan.explanation.overridden
---@field expires? string YYYY-MM-DD
---@field file? string file
---@field holds? boolean of a disabled rule: would it hold?
---@field id string rule, row or parameter
---@field kind "disabled"|"changed"|"set" what was done to it
---@field layer string the layer that overrides
---@field line? integer line
---@field reason? string why
---@field what string what it was; of a disabled rule, whether it would hold and why

--- one rule
---@class pipeplan.plan.explanation.rules
---@field because string its conditions with their values, or the first that does not hold
---@field file? string file
---@field holds boolean do all its conditions hold?
---@field id string rule
---@field layer string the policy layer that states it
---@field line? integer line
---@field source? string where the rule comes from
---@field verb string row, reject, …

--- one figure at another value
---@class pipeplan.plan.explanation.sensitivity
---@field changes table<string, any> path of a spec → value: laid over the spec they give that
---@field parallelism? pipeplan.plan.parallelism
---@field same? boolean is it the plan's schedule and layout?
---@field schedule? "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" what is planned then
---@field status "planned"|"not_planned" is anything planned then?
---@field step_seconds? number one training step
---@field words string what would be otherwise

--- one field
---@class pipeplan.plan.explanation.spec
---@field field string path in the spec
---@field origin string the file that says it, or the command line
---@field value any as it was written

--- one point
---@class pipeplan.plan.frontier
---@field cost? number gpu_hours × price_per_gpu_hour
---@field fit "fits"|"tight"|"does_not_fit" tight: fits, with less than another headroom free
---@field gpu_hours? number of the run; null with a ramp
---@field gpus integer GPUs of the layout
---@field micro_batch_size integer sequences of a microbatch
---@field microbatches integer M per pipeline and step
---@field parallelism pipeplan.plan.parallelism
---@field peak_bytes number memory of the fullest rank
---@field plan boolean is it the plan?
---@field recompute string what is computed again
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" none: without a pipeline
---@field sharding "none"|"optimizer"|"gradients"|"parameters" what data parallelism shards
---@field step_seconds number one training step

--- what nodes and storage have to hold
---@class pipeplan.plan.host
---@field checkpoint_bytes number weights, master weights and moments of the whole model
---@field checkpoint_seconds? number to write them, where the spec gives the storage's speed
---@field memory_bytes? number host memory of a node, where the spec gives it
---@field optimizer_bytes number host memory of a node that an offloaded optimizer takes: master weights, moments, a copy of the gradients

--- one loosened rule
---@class pipeplan.plan.loosened
---@field expires? string until when
---@field file? string in which file
---@field id string rule or parameter
---@field kind string what was done to it
---@field layer string by which layer
---@field line? integer on which line
---@field reason string why

--- of --measured: what runs of layouts say
---@class pipeplan.plan.measured
---@field before pipeplan.plan.measured.before what is planned without the runs
---@field changed boolean is another layout planned than without the runs?
---@field changes table<string, any> path of a spec → value: laid over the spec, they plan what was taken
---@field factors pipeplan.plan.measured.factors of the price, by these runs and those that were kept
---@field factors_why string why these and no others
---@field next? pipeplan.plan.measured.next what the factors let plan and nobody measured; null where that is no faster
---@field off_before_fraction number root mean square of log(measured / computed)
---@field off_fraction number the same with the factors
---@field options string the same as options of the command line
---@field runs pipeplan.plan.measured.runs[] each with its log
---@field why string why this one

--- what is planned without the runs
---@class pipeplan.plan.measured.before
---@field layers_per_stage integer[] by slice of the model, first to last
---@field microbatches integer M per pipeline and step
---@field parallelism pipeplan.plan.parallelism
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" schedule
---@field step_seconds number predicted

--- of the price, by these runs and those that were kept
---@class pipeplan.plan.measured.factors
---@field all number of everything
---@field compute? number of kernels
---@field context? number of CP's ring
---@field data? number of gradients and parameters
---@field expert? number of the all-to-all
---@field pipeline? number of hand-overs
---@field tensor? number of TP's collectives

--- what the factors let plan and nobody measured; null where that is no faster
---@class pipeplan.plan.measured.next
---@field gain_fraction number of the measured step that was taken
---@field layers_per_stage integer[] by slice of the model, first to last
---@field microbatches integer M per pipeline and step
---@field parallelism pipeplan.plan.parallelism
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" schedule
---@field step_seconds number predicted with the factors

--- one layout
---@class pipeplan.plan.measured.runs
---@field calibrated_residual_fraction number measured over what the factors found here predict, less one
---@field chosen boolean is it what is planned now?
---@field error_fraction? number standard error of the mean step
---@field high_seconds number nine of ten take less
---@field layers_per_stage integer[] by slice of the model, first to last
---@field log string its file
---@field low_seconds number nine of ten steps take more
---@field measured_seconds number median of a step
---@field micro_batch_size integer sequences of a microbatch
---@field microbatches integer M per pipeline and step
---@field name string the plan, and the number in its shortlist
---@field parallelism pipeplan.plan.parallelism
---@field planned boolean is it the plan of the spec?
---@field predicted_seconds number with the factors that the spec has
---@field recompute string[] what is computed again in the backward
---@field residual_fraction number measured over that, less one
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" none: without a pipeline
---@field sharding "none"|"optimizer"|"gradients"|"parameters" what data parallelism shards
---@field steps number that count
---@field tie boolean can the runs not tell it from the fastest? The fastest itself too

--- memory
---@class pipeplan.plan.memory
---@field device_bytes number of one GPU
---@field fit "fits"|"tight"|"does_not_fit" tight: fits, but over tight_fraction of the memory less its headroom
---@field headroom_bytes number what a plan must leave free
---@field ranks pipeplan.plan.rank[] by pipeline rank

--- the answer to gpus: minimum; null where the spec gives a number, or no count fits
---@class pipeplan.plan.minimum
---@field fewer pipeplan.plan.minimum.fewer[] what keeps it from fewer: the largest count below that was tried, and the largest that is short of memory
---@field gpus integer the fewest GPUs, of those tried, that the run fits
---@field state_bytes number weights, gradients and optimizer of one copy
---@field state_gpus integer GPUs that could hold no less than that

--- one count
---@class pipeplan.plan.minimum.fewer
---@field gpus integer GPUs
---@field id string a rule's id; state: fewer than state_gpus; contradiction: the spec fixes what this count does not allow
---@field message string why not so few
---@field missing_bytes? number that it lacks
---@field rank? integer the fullest rank

--- the model
---@class pipeplan.plan.model
---@field active_parameters integer per token, embedding and head counted
---@field active_parameters_without_embedding integer per token, input embedding not counted
---@field architecture "dense"|"moe" dense, or mixture of experts
---@field layers integer decoder layers
---@field name string the model
---@field shape? table<string, any> in the words of a spec's inline model: hidden, heads, kv_heads, ffn, vocab, experts, …
---@field total_parameters integer main model, MTP left out
---@field tower_parameters? integer of a tower of images with its projector, on the first stage; no part of the others

--- would the model fit one GPU?
---@class pipeplan.plan.one_gpu
---@field bytes? number weights, gradients, optimizer sharded over all GPUs, one microbatch: what the whole model takes on one GPU
---@field fits boolean is it at most usable_bytes?
---@field sharded_bytes? number the same with weights and gradients sharded too (ZeRO-3): shown, does not decide
---@field usable_bytes number device memory less the headroom

--- the policy that decided
---@class pipeplan.plan.policy
---@field date string YYYY-MM-DD that expiry was judged at
---@field digest string of everything loaded
---@field found? string[] policies of the machine, which nobody named
---@field layers string[] in order
---@field left_out? string[] those that --no-site left out
---@field stack? string digest of the layers alone: what --policy-digest demands

--- what the policy's wishes cost
---@class pipeplan.plan.policy_cost
---@field fraction number of the fastest survivor's step, that the plan takes longer
---@field statements pipeplan.plan.policy_cost.statements[] what makes it so, in the order in which they were applied

--- a statement that kept a slower plan
---@class pipeplan.plan.policy_cost.statements
---@field file string its policy file
---@field fraction number of that, what it costs
---@field id string the row or preference
---@field line integer its line

--- what a power cap takes back of the plan's gain, where the profile says how cards heat up
---@class pipeplan.plan.power
---@field baseline "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" what is compared with
---@field cool_gain_fraction number of the baseline's step, at the clocks of cool cards
---@field gain_fraction number the same as cards heat up
---@field slowdown_fraction number of the plan's step, by heat
---@field taken_back_fraction? number of the gain, by lower clocks; null where there is none

--- what was measured in place of what is computed
---@class pipeplan.plan.profile
---@field calibration pipeplan.plan.profile.calibration[] the profile's own steps
---@field file string path
---@field host_wait_seconds? number of a step, that the card which waits most waits for its host alone, where the profile says what hosts take
---@field runtime "ideal"|"torch-single"|"torch-multi"|"deepseek"|"pipeplan"|"megatron" that the step is simulated under
---@field source? string where and how it was measured, by its own words
---@field temperature "hot"|"cold"|"heating"|"as_measured" of the times that the plan uses; heating: cold, and hotter the longer a card works

--- one run
---@class pipeplan.plan.profile.calibration
---@field error_fraction number predicted over measured, less one
---@field measured_seconds number as the profile has it
---@field microbatches integer M
---@field predicted_seconds number simulated from its stages
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" schedule

--- what to do instead; null when planned as wanted
---@class pipeplan.plan.recommend
---@field fit? "fits"|"tight"|"does_not_fit" does it fit?
---@field framework_flags? string[]
---@field gpus_used integer GPUs of the layout
---@field micro_batch_size? integer sequences of a microbatch
---@field microbatches? integer M per pipeline and step
---@field optimizer_offload? number of the optimizer's state in host memory, where that is more than the spec says
---@field parallelism pipeplan.plan.parallelism
---@field peak_bytes? number memory of the fullest rank
---@field recompute string what it recomputes: none, selective, modules or full
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" none: without a pipeline
---@field sharding "none"|"optimizer"|"gradients"|"parameters" what data parallelism shards there
---@field step_seconds? number one training step
---@field why string why this instead

--- what a second copy costs
---@class pipeplan.plan.replication
---@field copies integer parameter copies on the devices
---@field density_fraction number unique / resident
---@field extra_bytes number on the fullest rank, beside one copy
---@field resident_parameters_per_gpu number held, on the rank that holds most
---@field unique_parameters_per_gpu number one copy spread evenly over the pipeline

--- when to give up on the plan
---@class pipeplan.plan.rollback
---@field batches? pipeplan.plan.rollback.batches[] of a batch that grows, the trigger at each: what holds for the steps at that batch; null when it is constant
---@field fallback? pipeplan.plan.rollback.fallback what to switch to; null: nothing simpler
---@field inside_error_band boolean is the gain smaller than what the estimates can tell?
---@field metric string what to measure
---@field paragraph string the trigger in words
---@field predicted_utilisation_fraction number the plan's own over these steps
---@field threshold_fraction number switch below it, over these steps
---@field threshold_seconds number the mean step at that utilisation: switch above it
---@field warmup_steps integer steps left out of it
---@field window_steps integer steps to average over

--- one batch
---@class pipeplan.plan.rollback.batches
---@field global_batch_size integer sequences of a step
---@field inside_error_band boolean is the gain at this batch smaller than what the estimates can tell?
---@field predicted_utilisation_fraction number the plan's own at this batch
---@field threshold_fraction number switch below it
---@field threshold_seconds number the mean step at that utilisation: switch above it

--- what to switch to; null: nothing simpler
---@class pipeplan.plan.rollback.fallback
---@field pipeline integer P
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" schedule

--- the fastest of another layout or schedule; null where there is none
---@class pipeplan.plan.runner_up
---@field error_fraction number that such a comparison can be wrong by
---@field gpus_used integer GPUs of the layout
---@field margin_fraction number its step over the plan's, less 1: below 0, it is faster and the policy prefers the plan
---@field micro_batch_size integer sequences of a microbatch
---@field microbatches integer M per pipeline and step
---@field parallelism pipeplan.plan.parallelism
---@field peak_bytes number of the fullest rank
---@field recompute string none, selective, modules or full
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" its schedule
---@field sharding "none"|"optimizer"|"gradients"|"parameters" what data parallelism shards
---@field step_seconds number of a step
---@field tie boolean is the margin under 5 %, faster or slower?

--- the spec that was planned
---@class pipeplan.plan.spec
---@field digest string of every field that the spec says, and of the model and the profile that it names
---@field fields pipeplan.plan.spec.fields[] what the spec says, files and options laid over each other, without what is read from its inventory: plan --verify plans it again
---@field files string[] spec files, in the order in which they were laid over each other
---@field read? pipeplan.plan.spec.read what reading launch configurations gave beside fields; null of specs alone
---@field run? string name of the run, where the spec gives one

--- one field
---@class pipeplan.plan.spec.fields
---@field field string path in the spec
---@field origin string the file that says it, or the command line
---@field value any as it was written; a file's path as planning could open it

--- what reading launch configurations gave beside fields; null of specs alone
---@class pipeplan.plan.spec.read
---@field assumptions pipeplan.plan.spec.read.assumptions[] of what no field of a spec says, or the launch leaves to be chosen
---@field warnings pipeplan.plan.spec.read.warnings[] about its keys

--- one assumption
---@class pipeplan.plan.spec.read.assumptions
---@field field string spec field
---@field value any what was assumed
---@field why string why

--- one warning
---@class pipeplan.plan.spec.read.warnings
---@field id string rule or engine id
---@field message string what
---@field severity "warning"|"note" how much it matters

--- what a step is made of
---@class pipeplan.plan.step
---@field gradient_sync_seconds number exposed gradient reduction
---@field mirror_seconds number gradient sum of the two copies
---@field optimizer_seconds number optimizer update
---@field overhead_seconds number fixed cost of a step
---@field parameter_sync_seconds number exposed parameter gather
---@field pipeline_seconds number makespan of the schedule
---@field replicas_seconds number gradient sum of the groups that each shard a state
---@field sharding_seconds number what gathers and reductions of sharded parameters and gradients add

--- the run
---@class pipeplan.plan.training
---@field batch_ramp? pipeplan.plan.training.batch_ramp[] segments of a batch that grows; null when it is constant
---@field padding? number of a sequence that fills it up, and trains none of `tokens`
---@field precision string of matrix products
---@field recompute string[] what is computed again in the backward
---@field sequence_length integer tokens of a sequence
---@field tokens number training volume
---@field tower? "trained"|"frozen" the tower of images, where the model has one

--- one segment
---@class pipeplan.plan.training.batch_ramp
---@field bubble_fraction? number mean idle share
---@field extra_gpu_hours? number of these, what its batch costs: its tokens at the full batch take so many less
---@field first_token number where it begins
---@field global_batch_size integer sequences of a step
---@field gpu_hours? number of this segment
---@field microbatches? integer M
---@field step_seconds? number one step

--- one warning
---@class pipeplan.plan.warnings
---@field id string rule or engine id
---@field message string what
---@field severity "warning"|"note" how much it matters

--- one way
---@class pipeplan.plan.ways_to_fit
---@field change string fields of the spec and their values, or what is left free
---@field fit "fits"|"tight"|"does_not_fit" does it fit?
---@field microbatches? integer M per pipeline and step
---@field parallelism pipeplan.plan.parallelism
---@field peak_bytes number memory of the fullest rank
---@field schedule "none"|"gpipe"|"looped_bfs"|"1f1b"|"interleaved_1f1b"|"interleaved_1f1b_overlap"|"zb_h1"|"zb_h2"|"interleaved_zero_bubble"|"zb_v"|"zb_auto"|"v_half"|"v_min"|"dualpipe"|"dualpipev" none: without a pipeline
---@field step_seconds number one training step

--- the best without a pipeline; null where the plan has none, or none fits
---@class pipeplan.plan.without_pipeline
---@field error_fraction number how far off the ratio of both steps may be: nine of ten pairs of measured runs
---@field exposed_step_seconds? number of a step whose all-to-all runs beside nothing; null where it runs so anyway
---@field framework_flags? string[]
---@field gain_fraction? number the plan's step over this one, less 1: above 0, it is faster
---@field gpus_used integer GPUs of the layout
---@field micro_batch_size integer sequences of a microbatch
---@field microbatches integer of one step
---@field parallelism pipeplan.plan.parallelism
---@field peak_bytes? number of the fullest GPU
---@field recompute string none, selective, modules or full
---@field sharding "none"|"optimizer"|"gradients"|"parameters" what data parallelism shards there
---@field step_seconds number of a step
---@field tie? boolean is that under 5 %, faster or slower?

--- How a policy is loaded.
---@class pipeplan.policy_options
---@field set? table<string, any> parameters, laid over everything; reason and expires as in a `set` statement
---@field date? string YYYY-MM-DD at which overrides expire (default: today in UTC)
---@field policies? string directory to read the default policies from
---@field frontier? boolean plans have their frontier, as with --format json, which takes as long again
---@field in_force? boolean over the policies of this machine, as the program plans
---@field work? integer budget of work for loading, and for each plan
---@field bytes? integer budget of memory

--- An error that is an answer: what cannot be read, loaded or planned.
---@class pipeplan.failure
---@field status integer exit status: 2 unreadable input, 3 error in a rule, 4 over budget, 5 nothing to do, 6 unloadable policy
---@field message string

--- A policy to plan with.
---@class pipeplan.policy
local policy = {}

--- Plans what spec files and fields say: site:plan { "spec.json", gpus = 64 }. Raises a pipeplan.failure.
---@param request pipeplan.request
---@return pipeplan.plan
function policy:plan(request) end

--- Plans a spec that is a Lua table. Raises a pipeplan.failure.
---@param spec pipeplan.spec
---@param base? string directory of the files that it names
---@return pipeplan.plan
function policy:plan_spec(spec, base) end

--- The same policy, with facts in place of what would follow from the request: request fields, as rules read them. For tests.
---@param facts table<string, any>
---@return pipeplan.policy
function policy:with(facts) end

---@class pipeplan
---@field version string
local pipeplan = {}

--- Policy files laid over the default policies, in order; none: the default policies alone. Raises a pipeplan.failure.
---@param files? string|string[]
---@param options? pipeplan.policy_options
---@return pipeplan.policy
function pipeplan.policy(files, options) end

--- The plan's JSON on one line, as `plan --jsonl` prints it.
---@param plan pipeplan.plan
---@return string
function pipeplan.json(plan) end

--- Registers assert.decided with luassert, where that is loaded; done by itself inside busted.
---@return boolean registered
function pipeplan.assertions() end

---@class luassert
local luassert = {}

--- The outcome of a plan, and a rule among its reasons: assert.decided(plan, "rejected", "too_deep").
---@param plan pipeplan.plan
---@param outcome "planned"|"refused"|"rejected"
---@param rule? string
function luassert.decided(plan, outcome, rule) end

return pipeplan
