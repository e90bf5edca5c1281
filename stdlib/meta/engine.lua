---@meta _
-- SPDX-License-Identifier: Apache-2.0

-- The engine's arithmetic, for `when` functions. Ranks, stages and microbatches are numbered from 0.
-- Made by scripts/generate-meta for LuaLS; a test compares. Edit what it is made from, not this file.

--- One action of a rank; numbered from 0.
---@class pipeplan.engine.action
---@field kind "F"|"B"|"I"|"W"|"FB" forward, whole backward, backward for input, for weights, forward with backward
---@field stage integer slice of the model
---@field microbatch integer within its direction
---@field stage_b? integer of the backward of FB
---@field microbatch_b? integer of the backward of FB

--- Bytes of one block on one GPU.
---@class pipeplan.engine.block_bytes
---@field parameters number weights
---@field gradients number accumulated gradients
---@field optimizer number master weights and moments
---@field host number in host memory, for this GPU: offloaded master weights and moments, a copy of their gradients
---@field stored number activations of a microbatch from F to I (or B)
---@field pending number … from I to W
---@field transient number largest temporary

--- Forward FLOPs of one block per token.
---@class pipeplan.engine.block_flops
---@field linear number matrix products with dense weights
---@field expert number routed experts
---@field attention number causal core attention
---@field router number which model FLOPs do not count

--- Parameters of one block by how they are spread.
---@class pipeplan.engine.block_parameters
---@field tensor integer over TP
---@field replicated integer on every TP rank
---@field expert integer over EP × expert TP

--- Seconds of one block for one microbatch on one rank, all-to-all apart.
---@class pipeplan.engine.block_seconds
---@field forward number F
---@field input number I, recompute included
---@field weight number W
---@field full number B
---@field alltoall_forward number dispatch and combine in F
---@field alltoall_backward number … in B
---@field tensor number TP collectives, part of the first three
---@field context number the ring of keys and values
---@field context_exposed number what attention does not hide of it, part of forward and input
---@field host_forward number what the card waits for its host, part of forward
---@field host_backward number … part of input and weight
---@field launch_forward number what the launches of F take the host
---@field launch_backward number … of B
---@field lost_forward number of host_forward: what the host's waiting for rows of experts costs
---@field lost_backward number … of host_backward

--- What the seconds of one block are made of.
---@class pipeplan.engine.block_terms
---@field forward pipeplan.engine.pass_terms of F
---@field input pipeplan.engine.pass_terms of I
---@field weight pipeplan.engine.pass_terms of W

---@class pipeplan.engine.bytes_by_block
---@field embedding pipeplan.engine.block_bytes the embedding
---@field dense pipeplan.engine.block_bytes a dense decoder layer
---@field moe pipeplan.engine.block_bytes an MoE decoder layer
---@field head pipeplan.engine.block_bytes final norm, output weights and loss
---@field mtp pipeplan.engine.block_bytes a multi-token-prediction module
---@field kind_1? pipeplan.engine.block_bytes a layer of the shape's kinds[1]
---@field kind_2? pipeplan.engine.block_bytes a layer of the shape's kinds[2]
---@field kind_3? pipeplan.engine.block_bytes a layer of the shape's kinds[3]
---@field kind_4? pipeplan.engine.block_bytes a layer of the shape's kinds[4]
---@field kind_5? pipeplan.engine.block_bytes a layer of the shape's kinds[5]
---@field kind_6? pipeplan.engine.block_bytes a layer of the shape's kinds[6]
---@field kind_7? pipeplan.engine.block_bytes a layer of the shape's kinds[7]
---@field kind_8? pipeplan.engine.block_bytes a layer of the shape's kinds[8]
---@field kind_9? pipeplan.engine.block_bytes a layer of the shape's kinds[9]
---@field kind_10? pipeplan.engine.block_bytes a layer of the shape's kinds[10]
---@field kind_11? pipeplan.engine.block_bytes a layer of the shape's kinds[11]

--- Bytes of activations of one microbatch.
---@class pipeplan.engine.chunk_bytes
---@field stored number|number[] from F until B or I: of every stage, or one number a stage
---@field pending? number|number[] from I until W, with gradients of outputs, and less what I frees, such as logits (default: stored)
---@field transient? number|number[] of runtime: while a whole backward runs, beside what is held (default: 0)
---@field transient_forward? number|number[] of runtime: the same of a forward (default: 0)
---@field transient_input? number|number[] of runtime: the same of a backward for the input (default: 0)
---@field transient_weight? number|number[] of runtime: the same of a backward for the weights (default: 0)
---@field deferred? number|number[] of runtimes pipeplan and deepseek: held from I until W (default: stored)
---@field after_weight? number|number[] of the same: from W until gradients are dropped, if they keep a history (default: 0)
---@field output? number|number[] of runtime: the stage's result (default: message)
---@field kept? number|number[] of PyTorch's runtimes: of the last stage's result, until the step ends (default: output)
---@field message? number|number[] of runtime: one message (default: 0)

--- A closed form of the bubble.
---@class pipeplan.engine.closed_form
---@field seconds? number idle seconds of the rank that idles most; nil: no law is known
---@field exact boolean do its conditions hold?
---@field conditions string in words, with the source
---@field low? number it is at least this
---@field high? number it is at most this

--- What communicators take of a GPU, and which process groups have one.
---@class pipeplan.engine.communicators
---@field one? number of one rank, once a collective ran in it; ≥ 0; default 0
---@field several? number … of several ranks; ≥ 0; default 0
---@field messages? number of one that messages ran in; ≥ 0; default 0
---@field peer? number … more for each rank of the node that they were exchanged with; ≥ 0; default 0
---@field node? integer GPUs of a node; 0: all are in one; 0 … 2147483647; default 0
---@field world? boolean is there one of all ranks; default false
---@field tensor? boolean is there one of TP; default false
---@field context? boolean is there one of CP; default false
---@field data? boolean is there one of DP and CP; default false
---@field model? boolean is there one of TP and P; default false
---@field optimizer? boolean is there one of all ranks that shard the optimizer; default false
---@field pipeline? boolean is there one of P; default false
---@field pairs? boolean is there one of two neighbours, where stages are interleaved; default false
---@field embedding? boolean is there one of first and last stage, of tied embeddings; default false
---@field dispatch? boolean is there one of EP and expert TP; default false
---@field expert? boolean is there one of EP; default false
---@field expert_data? boolean is there one of ranks with the same experts; default false

--- Why a CSV is no schedule.
---@class pipeplan.engine.csv_error
---@field id string what kind of error
---@field field string what is wrong
---@field message string one sentence
---@field line? integer from 1
---@field column? integer cell of the line, from 1

--- What a CSV does not say.
---@class pipeplan.engine.csv_options
---@field directions? integer 2: the upper half of the stages is DualPipe's other direction; 1 … 2; default 1

--- What an accelerator and its kernels reach.
---@class pipeplan.engine.device
---@field flops number dense peak at the training precision, per second; 1e-09 … 1e+30
---@field flops_bf16? number dense peak in bf16, per second; default: flops; 1e-09 … 1e+30
---@field memory_bandwidth number bytes per second; 1e-09 … 1e+30
---@field gemm_efficiency number share of flops that large matrix products reach; 1e-09 … 1
---@field grouped_gemm_efficiency number the same for experts' products of large inner size; 1e-09 … 1
---@field grouped_gemm_half? number inner size at which they reach half of that; 0 … 1000000000; default 0
---@field product_depth? number inner size that each product takes as much longer as; 0 … 1000000000; default 0
---@field product_floor? number seconds: the smallest product, on top of what others take; 0 … 1000000; default 0
---@field grouped_rows? number rows of a tile, to which each expert's are padded; 0: by grouped_gemm_half alone; 0 … 1000000000; default 0
---@field grouped_floor? number seconds: the smallest grouped product; with grouped_rows only; 0 … 1000000; default 0
---@field attention_efficiency number share of flops_bf16 that fused attention reaches; 1e-09 … 1
---@field attention_backward? number share of that which its backward reaches; 0: as forward; 0 … 100; default 0
---@field attention_half? number tokens of a sequence at which it reaches half; 0 … 1000000000; default 0
---@field attention_half_backward? number … its backward; 0 … 1000000000; default 0
---@field attention_fill? number pieces of 128 queries of one head at which it reaches half; 0 … 1000000000; default 0
---@field memory_efficiency number share of memory_bandwidth that element-wise kernels reach; 1e-09 … 1
---@field overlap_overhead? number share of a pair's compute that sharing with communication kernels costs; 0 … 100; default 0
---@field hides_alltoall? boolean is there an all-to-all kernel that runs beside compute?; default false
---@field hidden_share? number of the shorter of compute and all-to-all, what pairs on two streams hide; 0: all, at overlap_overhead; 0 … 1; default 0
---@field tensor_latency? number seconds: a TP collective, beside its transfer; 0 … 1000000; default 0
---@field tensor_regather? number share of backward's further all-gather that is not hidden beside I; 0 … 1; default 0
---@field alltoall_rate? number bytes per second at which a kernel across nodes forwards inside them; default: as the link; 1e-09 … 1e+30
---@field host? pipeplan.engine.host_floor what launches take the host; default: nothing
---@field layer_latency? number seconds that a layer's F and I each take beside their work, and W half of it; 0 … 1000000; default 0
---@field routing_latency? number seconds that an MoE layer takes each way beside its work; 0 … 1000000; default 0
---@field plain_routing_latency? number seconds more where the all-to-all has no kernel of its own; 0 … 1000000; default 0
---@field alltoall_latency? number seconds that a dispatch or combine takes beside its transfers; 0 … 1000000; default 0
---@field pair_share? number F&B over F + B, as measured; 0: F&B is computed; 0 … 1000000; default 0
---@field host_link? number bytes per second to the host, one direction; needed with optimizer_offload; 1e-09 … 1e+30
---@field host_memory_bandwidth? number bytes per second of host memory that an update there reaches; needed likewise; 1e-09 … 1e+30

--- What a stage does beside its layers: embedding, head and loss.
---@class pipeplan.engine.extra_seconds
---@field F? number seconds of its forward; ≥ 0; default 0
---@field I? number seconds of its backward for input; ≥ 0; default 0
---@field W? number seconds of its backward for weights; ≥ 0; default 0
---@field B? number seconds of its whole backward; default: I + W; ≥ 0

--- What is wrong with a program.
---@class pipeplan.engine.finding
---@field id string what kind of error
---@field field string what is wrong
---@field message string one sentence
---@field rank? integer where, from 0
---@field position? integer of the action, in actions(rank)
---@field action? string itself
---@field waits? pipeplan.engine.wait[] cycle of a deadlock

--- Floating-point operations of a model.
---@class pipeplan.engine.flops
---@field per_token number of training (forward and backward), MTP included
---@field blocks pipeplan.engine.flops_by_block forward, of one block of each kind

---@class pipeplan.engine.flops_by_block
---@field embedding pipeplan.engine.block_flops the embedding
---@field dense pipeplan.engine.block_flops a dense decoder layer
---@field moe pipeplan.engine.block_flops an MoE decoder layer
---@field head pipeplan.engine.block_flops final norm, output weights and loss
---@field mtp pipeplan.engine.block_flops a multi-token-prediction module
---@field kind_1? pipeplan.engine.block_flops a layer of the shape's kinds[1]
---@field kind_2? pipeplan.engine.block_flops a layer of the shape's kinds[2]
---@field kind_3? pipeplan.engine.block_flops a layer of the shape's kinds[3]
---@field kind_4? pipeplan.engine.block_flops a layer of the shape's kinds[4]
---@field kind_5? pipeplan.engine.block_flops a layer of the shape's kinds[5]
---@field kind_6? pipeplan.engine.block_flops a layer of the shape's kinds[6]
---@field kind_7? pipeplan.engine.block_flops a layer of the shape's kinds[7]
---@field kind_8? pipeplan.engine.block_flops a layer of the shape's kinds[8]
---@field kind_9? pipeplan.engine.block_flops a layer of the shape's kinds[9]
---@field kind_10? pipeplan.engine.block_flops a layer of the shape's kinds[10]
---@field kind_11? pipeplan.engine.block_flops a layer of the shape's kinds[11]

--- A busy card runs into its power cap: actions take 1 + slope × max(0, u − onset) / (1 − onset) times as long, u being the running average of busy.
---@class pipeplan.engine.heat
---@field onset number busy share where it begins, below 1; ≥ 0
---@field slope number at full load; ≥ 0
---@field tau number seconds of the average's time constant, above 0; ≥ 0
---@field rank_slope? number[] slope of each rank's card, in place of slope

--- A message between neighbouring ranks.
---@class pipeplan.engine.hop
---@field latency? number seconds; ≥ 0; default 0
---@field bandwidth number bytes per second, above 0
---@field bytes number of the message; ≥ 0

--- What an action takes, from when its host begins to when its card ends, where the card had nothing to do, beyond the larger of what each of the two takes.
---@class pipeplan.engine.host_beyond
---@field F number|number[] seconds, of every stage or one number a stage: forward; ≥ 0
---@field I number|number[] seconds, of every stage or one number a stage: backward for input; ≥ 0
---@field W number|number[] seconds, of every stage or one number a stage: backward for weights; ≥ 0
---@field B? number|number[] seconds, as above: whole backward; default: I + W; ≥ 0

--- Seconds that the host needs to launch one layer in one direction: the layer takes no less.
---@class pipeplan.engine.host_floor
---@field forward? number seconds: a dense layer, forward; 0 … 1000000; default 0
---@field backward? number seconds: … backward; 0 … 1000000; default 0
---@field moe_forward? number seconds: an MoE layer, forward; 0 … 1000000; default 0
---@field moe_backward? number seconds: … backward; 0 … 1000000; default 0
---@field expert_forward? number seconds: more for each expert of unfused_experts, forward; 0 … 1000000; default 0
---@field expert_backward? number seconds: … backward; 0 … 1000000; default 0
---@field waiting? number share of the shorter of card and host that an MoE layer takes more without an all-to-all kernel; 0 … 1; default 0

--- What handing over an action takes its host while nothing else keeps it.
---@class pipeplan.engine.host_seconds
---@field F number|number[] seconds, of every stage or one number a stage: forward; ≥ 0
---@field I number|number[] seconds, of every stage or one number a stage: backward for input; ≥ 0
---@field W number|number[] seconds, of every stage or one number a stage: backward for weights; ≥ 0
---@field B? number|number[] seconds, as above: whole backward; default: I + W; ≥ 0
---@field beyond? pipeplan.engine.host_beyond what actions take beyond both on a card that has nothing to do; default: nothing
---@field waits? pipeplan.engine.host_waits for its card

--- Kinds of actions in which the host waits for its card, as for the row counts of experts.
---@class pipeplan.engine.host_waits
---@field F? boolean|boolean[] of every stage, or one a stage; default: no
---@field I? boolean|boolean[] of every stage, or one a stage; default: no
---@field W? boolean|boolean[] of every stage, or one a stage; default: no
---@field B? boolean|boolean[] of every stage, or one a stage; default: no

--- Why something cannot be built: an answer, not an error.
---@class pipeplan.engine.illegal
---@field id string the engine's rule, such as engine.odd_depth
---@field field string what has to change
---@field nearest? number nearest legal value of that field
---@field message string one sentence

---@class pipeplan.engine.interval
---@field start number seconds
---@field finish number seconds
---@field forward_finish? number seconds; of a pair whose halves run in turn
---@field backward_start? number seconds; of a pair whose halves run in turn

--- Layers that differ from the others of a shape; what is not given is as there.
---@class pipeplan.engine.layer_kind
---@field layers? integer[] their numbers, from 1; of a kind that is `beside` another there may be none
---@field beside? integer number of a kind that each of these layers holds too; 1 … 11
---@field heads? integer query heads; ≥ 1
---@field attention? "gqa"|"mla"|"none"|"gated_delta"|"kimi_delta"|"mamba2"|"lightning"|"conv"|"mamba1"|"compressed" GQA covers MHA (kv_heads = heads) and MQA (1); behind none: mixers with a state in place of attention
---@field kv_heads? integer key and value heads; default: heads; ≥ 1
---@field head_dim? integer default: hidden / heads; ≥ 0
---@field q_lora_rank? integer MLA: latent of the query; 0: one full projection; ≥ 0
---@field kv_lora_rank? integer MLA: latent of keys and values; ≥ 0
---@field qk_nope_dim? integer MLA: per head, without position; ≥ 0
---@field qk_rope_dim? integer MLA: per head, with rotary position; ≥ 0
---@field v_dim? integer value, per head: MLA; GQA where it is not head_dim; ≥ 0
---@field index_heads? integer heads of an indexer of sparse attention; ≥ 0
---@field index_dim? integer width of such a head; ≥ 0
---@field index_topk? integer tokens that a query attends to; 0: all; ≥ 0
---@field window? integer tokens that a query attends to at most, itself and the last before it; 0: all; ≥ 0
---@field chunk? integer attention stays within chunks of so many tokens; 0: it does not; ≥ 0
---@field compression? integer compressed attention: tokens of an entry; 0: none; ≥ 0
---@field output_groups? integer compressed attention: groups of heads of its output; ≥ 0
---@field output_rank? integer compressed attention: columns of each group; ≥ 0
---@field output_gate? integer columns of a product that gates the output of attention; ≥ 0
---@field shared_kv? boolean values are the keys
---@field qkv_bias? boolean biases of the query, key and value projections
---@field output_bias? boolean bias of the output projection
---@field attention_sinks? integer learned scalars per layer; ≥ 0
---@field qk_norm? "none"|"head"|"full" norms of queries and keys: none, per head, over all heads
---@field key_heads? integer mixer: heads of keys and queries; Mamba-2's groups; ≥ 0
---@field key_dim? integer mixer: width of a key; Mamba-2's state; ≥ 0
---@field value_heads? integer mixer: heads of values; ≥ 0
---@field value_dim? integer mixer: width of a value; ≥ 0
---@field conv_kernel? integer mixer: taps of its convolution; ≥ 0
---@field conv_bias? boolean mixer: bias of its convolution
---@field step_rank? integer Mamba-1: rank of the product that gives its steps; ≥ 0
---@field mixer_norm? boolean Mamba-2: a norm over its output; Mamba-1: norms of steps, B and C
---@field ffn? integer width of dense feed-forward layers; ≥ 0
---@field gated? boolean SwiGLU or GeGLU: three matrices instead of two; experts follow it
---@field mlp_bias? boolean biases of dense feed-forward layers
---@field experts? integer routed experts of an MoE layer; 0: a dense model; ≥ 0
---@field experts_per_token? integer experts that a token is sent to; ≥ 0
---@field zero_experts? integer experts beside those that compute nothing; ≥ 0
---@field expert_ffn? integer width of one expert; ≥ 0
---@field expert_hidden? integer what routed experts read and write; 0: hidden; ≥ 0
---@field shared_ffn? integer width of all shared experts together; ≥ 0
---@field shared_gate? boolean a gate vector for the shared expert
---@field router_correction_bias? boolean a non-trained bias per expert, which checkpoints hold
---@field router_bias? boolean bias of the router
---@field expert_bias? boolean biases of experts
---@field norms_per_layer? integer 0: norms have no weights; ≥ 0
---@field norm_bias? boolean LayerNorm has weight and bias, RMSNorm only weight
---@field scales? integer further weights of a layer that multiply element by element; ≥ 0

--- How a model is spread. GPUs = tensor × context × data × pipeline; experts lie over expert × expert_tensor GPUs of a stage, which must divide tensor × context × data.
---@class pipeplan.engine.layout
---@field tensor? integer TP; 1 … 2147483647; default 1
---@field context? integer CP; 1 … 2147483647; default 1
---@field expert? integer EP; 1 … 2147483647; default 1
---@field expert_tensor? integer TP of experts; 1 … 2147483647; default 1
---@field data? integer DP; 1 … 2147483647; default 1
---@field pipeline? integer P; 1 … 2147483647; default 1
---@field chunks? integer V: stages per rank and pipeline direction; 1 … 2147483647; default 1

--- What a link reaches for one kind of transfer.
---@class pipeplan.engine.link
---@field bandwidth number bytes per second per GPU, one direction; 1e-09 … 1e+30
---@field latency? number seconds; 0 … 1000000; default 0

--- What an nccl-tests table says of the tier it crosses.
---@class pipeplan.engine.link_fit
---@field transfer "message"|"ring"|"alltoall" what it measures
---@field bandwidth number bytes per second per GPU, one direction
---@field latency number seconds
---@field alpha number of the line alpha + beta × bytes
---@field beta number of the line
---@field median_error number of the line over the points
---@field worst_error number of the line over the points
---@field bound_inside boolean were the links inside a domain the slower? then bandwidth is a lower bound

--- Measurements of a tier, used instead of its bandwidth, efficiency and latency.
---@class pipeplan.engine.measured
---@field message? pipeplan.engine.link one message
---@field ring? pipeplan.engine.link a step of a ring collective
---@field alltoall? pipeplan.engine.link an all-to-all in which every copy goes by itself

--- A measured message.
---@class pipeplan.engine.message
---@field bytes number its size; 1e-09 … 1e+30
---@field seconds number what it takes; 0 … 1000000

--- 1 to 4 tiers from the innermost (scale-up) outwards; reach grows.
---@class pipeplan.engine.network
---@field tiers pipeplan.engine.tier[] from the innermost outwards
---@field slower? pipeplan.engine.slower what of it takes longer than computed, as a site's runs say

--- Parameters of a model.
---@class pipeplan.engine.parameters
---@field total integer main model without MTP; tied weights once
---@field active integer per token, embedding and head both counted
---@field active_without_embedding integer per token, input embedding not counted
---@field mtp integer of the MTP modules
---@field tower integer of a tower of images, in none of the others
---@field adapters integer of adapters of rank 1 (LoRA) beside every linear weight
---@field blocks pipeplan.engine.parameters_by_block of one block of each kind

---@class pipeplan.engine.parameters_by_block
---@field embedding pipeplan.engine.block_parameters the embedding
---@field dense pipeplan.engine.block_parameters a dense decoder layer
---@field moe pipeplan.engine.block_parameters an MoE decoder layer
---@field head pipeplan.engine.block_parameters final norm, output weights and loss
---@field mtp pipeplan.engine.block_parameters a multi-token-prediction module
---@field kind_1? pipeplan.engine.block_parameters a layer of the shape's kinds[1]
---@field kind_2? pipeplan.engine.block_parameters a layer of the shape's kinds[2]
---@field kind_3? pipeplan.engine.block_parameters a layer of the shape's kinds[3]
---@field kind_4? pipeplan.engine.block_parameters a layer of the shape's kinds[4]
---@field kind_5? pipeplan.engine.block_parameters a layer of the shape's kinds[5]
---@field kind_6? pipeplan.engine.block_parameters a layer of the shape's kinds[6]
---@field kind_7? pipeplan.engine.block_parameters a layer of the shape's kinds[7]
---@field kind_8? pipeplan.engine.block_parameters a layer of the shape's kinds[8]
---@field kind_9? pipeplan.engine.block_parameters a layer of the shape's kinds[9]
---@field kind_10? pipeplan.engine.block_parameters a layer of the shape's kinds[10]
---@field kind_11? pipeplan.engine.block_parameters a layer of the shape's kinds[11]

--- What the seconds of one pass of a block are made of: their sum.
---@class pipeplan.engine.pass_terms
---@field products number with dense weights
---@field grouped number of experts
---@field attention number its core
---@field moved number element-wise kernels
---@field accumulated number gradients read and written
---@field tensor number TP collectives
---@field ring number what attention does not hide of CP's ring
---@field latency number of a layer, and of routing
---@field recompute number what I computes again
---@field host number waiting for the host

--- Most bytes of activations held at once, by rank ([rank + 1]).
---@class pipeplan.engine.peak_bytes
---@field freed_at_w number[] counted until their W
---@field freed_at_i number[] counted until their I: the optimistic bound
---@field runtime? number[] what the runtime holds beside weights, their gradients and the model's input
---@field runtime_unknown? string why runtime is not there

--- Most chunks held at once, by rank ([rank + 1]).
---@class pipeplan.engine.peaks
---@field freed_at_w integer[] counted until their W
---@field freed_at_i integer[] counted until their I: the optimistic bound

--- Bytes on one rank.
---@class pipeplan.engine.rank_bytes
---@field parameters number weights
---@field gradients number accumulated gradients
---@field optimizer number master weights and moments
---@field activations number peak over the rank's actions
---@field transient number largest temporary
---@field overhead number as given
---@field total number sum
---@field host number in host memory, for this GPU: offloaded master weights and moments, a copy of their gradients
---@field tower number of parameters, gradients and optimizer: what a tower of images takes

--- What is not stored but computed again at the start of I (or B).
---@class pipeplan.engine.recompute
---@field full? boolean whole layers: only a layer's input is stored; default false
---@field core_attention? boolean softmax and dropout; default false
---@field norm? boolean outputs of norms; default false
---@field mla_up_projection? boolean what MLA expands from its latents; default false
---@field activation? boolean output of SwiGLU or GELU; default false
---@field moe? boolean the whole expert MLP, dispatch included; default false

--- Size of a schedule.
---@class pipeplan.engine.schedule_info
---@field kind string its name
---@field ranks integer P
---@field microbatches integer M
---@field virtual integer V
---@field stages integer of all directions
---@field chains integer directions
---@field chunks_per_rank integer stages of a rank, at most
---@field limit? integer most chunks that a rank may hold, where the schedule was planned under a limit
---@field split_backward boolean has I and W
---@field overlaps boolean has F&B pairs
---@field actions integer of all ranks
---@field placement integer[] rank of stage s at [s + 1]

---@class pipeplan.engine.seconds_by_block
---@field embedding pipeplan.engine.block_seconds the embedding
---@field dense pipeplan.engine.block_seconds a dense decoder layer
---@field moe pipeplan.engine.block_seconds an MoE decoder layer
---@field head pipeplan.engine.block_seconds final norm, output weights and loss
---@field mtp pipeplan.engine.block_seconds a multi-token-prediction module
---@field kind_1? pipeplan.engine.block_seconds a layer of the shape's kinds[1]
---@field kind_2? pipeplan.engine.block_seconds a layer of the shape's kinds[2]
---@field kind_3? pipeplan.engine.block_seconds a layer of the shape's kinds[3]
---@field kind_4? pipeplan.engine.block_seconds a layer of the shape's kinds[4]
---@field kind_5? pipeplan.engine.block_seconds a layer of the shape's kinds[5]
---@field kind_6? pipeplan.engine.block_seconds a layer of the shape's kinds[6]
---@field kind_7? pipeplan.engine.block_seconds a layer of the shape's kinds[7]
---@field kind_8? pipeplan.engine.block_seconds a layer of the shape's kinds[8]
---@field kind_9? pipeplan.engine.block_seconds a layer of the shape's kinds[9]
---@field kind_10? pipeplan.engine.block_seconds a layer of the shape's kinds[10]
---@field kind_11? pipeplan.engine.block_seconds a layer of the shape's kinds[11]

--- The shape of a transformer. Sizes in elements; what a family does not have is left out.
---@class pipeplan.engine.shape
---@field layers integer decoder layers; 1 … 1024
---@field hidden integer width of the residual stream; ≥ 1
---@field vocab integer rows of the embedding; ≥ 1
---@field heads integer query heads; ≥ 1
---@field attention? "gqa"|"mla"|"none"|"gated_delta"|"kimi_delta"|"mamba2"|"lightning"|"conv"|"mamba1"|"compressed" GQA covers MHA (kv_heads = heads) and MQA (1); behind none: mixers with a state in place of attention; default gqa
---@field kv_heads? integer key and value heads; default: heads; ≥ 1
---@field head_dim? integer default: hidden / heads; ≥ 0
---@field q_lora_rank? integer MLA: latent of the query; 0: one full projection; ≥ 0; default 0
---@field kv_lora_rank? integer MLA: latent of keys and values; ≥ 0; default 0
---@field qk_nope_dim? integer MLA: per head, without position; ≥ 0; default 0
---@field qk_rope_dim? integer MLA: per head, with rotary position; ≥ 0; default 0
---@field v_dim? integer value, per head: MLA; GQA where it is not head_dim; ≥ 0; default 0
---@field index_heads? integer heads of an indexer of sparse attention; ≥ 0; default 0
---@field index_dim? integer width of such a head; ≥ 0; default 0
---@field index_topk? integer tokens that a query attends to; 0: all; ≥ 0; default 0
---@field window? integer tokens that a query attends to at most, itself and the last before it; 0: all; ≥ 0; default 0
---@field chunk? integer attention stays within chunks of so many tokens; 0: it does not; ≥ 0; default 0
---@field compression? integer compressed attention: tokens of an entry; 0: none; ≥ 0; default 0
---@field output_groups? integer compressed attention: groups of heads of its output; ≥ 0; default 0
---@field output_rank? integer compressed attention: columns of each group; ≥ 0; default 0
---@field output_gate? integer columns of a product that gates the output of attention; ≥ 0; default 0
---@field shared_kv? boolean values are the keys; default false
---@field qkv_bias? boolean biases of the query, key and value projections; default false
---@field output_bias? boolean bias of the output projection; default false
---@field attention_sinks? integer learned scalars per layer; ≥ 0; default 0
---@field qk_norm? "none"|"head"|"full" norms of queries and keys: none, per head, over all heads; default none
---@field key_heads? integer mixer: heads of keys and queries; Mamba-2's groups; ≥ 0; default 0
---@field key_dim? integer mixer: width of a key; Mamba-2's state; ≥ 0; default 0
---@field value_heads? integer mixer: heads of values; ≥ 0; default 0
---@field value_dim? integer mixer: width of a value; ≥ 0; default 0
---@field conv_kernel? integer mixer: taps of its convolution; ≥ 0; default 0
---@field conv_bias? boolean mixer: bias of its convolution; default false
---@field step_rank? integer Mamba-1: rank of the product that gives its steps; ≥ 0; default 0
---@field mixer_norm? boolean Mamba-2: a norm over its output; Mamba-1: norms of steps, B and C; default false
---@field ffn? integer width of dense feed-forward layers; ≥ 0; default 0
---@field gated? boolean SwiGLU or GeGLU: three matrices instead of two; experts follow it; default true
---@field mlp_bias? boolean biases of dense feed-forward layers; default false
---@field experts? integer routed experts of an MoE layer; 0: a dense model; ≥ 0; default 0
---@field experts_per_token? integer experts that a token is sent to; ≥ 0; default 0
---@field zero_experts? integer experts beside those that compute nothing; ≥ 0; default 0
---@field expert_ffn? integer width of one expert; ≥ 0; default 0
---@field expert_hidden? integer what routed experts read and write; 0: hidden; ≥ 0; default 0
---@field shared_ffn? integer width of all shared experts together; ≥ 0; default 0
---@field shared_gate? boolean a gate vector for the shared expert; default false
---@field router_correction_bias? boolean a non-trained bias per expert, which checkpoints hold; default false
---@field router_bias? boolean bias of the router; default false
---@field expert_bias? boolean biases of experts; default false
---@field norms_per_layer? integer 0: norms have no weights; ≥ 0; default 2
---@field norm_bias? boolean LayerNorm has weight and bias, RMSNorm only weight; default false
---@field scales? integer further weights of a layer that multiply element by element; ≥ 0; default 0
---@field first_dense? integer so many first layers are dense; ≥ 0; default 0
---@field moe_every? integer of the others, every so many-th is MoE; ≥ 1; default 1
---@field dense_layers? integer[] numbers of layers that are dense, from 1
---@field kinds? pipeplan.engine.layer_kind[] layers with sizes of their own, at most 11 kinds
---@field streams? integer streams of that width, which layers read and write in place of one; ≥ 0; default 1
---@field embedding_norm? boolean one more norm behind the embedding; default false
---@field learned_positions? integer rows of a learned position table; ≥ 0; default 0
---@field tied_embeddings? boolean output weights are the embedding; default false
---@field head_bias? boolean bias of the output weights; default false
---@field mtp_layers? integer multi-token-prediction modules; ≥ 0; default 0
---@field tower? integer parameters of a tower of images, on the first stage; ≥ 0; default 0
---@field tower_frozen? boolean the tower does not train; default false

--- A simulated step of the pipeline; times in seconds, lists by rank ([rank + 1]).
---@class pipeplan.engine.simulation
---@field makespan number last end on any rank
---@field max_span number longest from a rank's first start to its last end
---@field max_idle number of the rank that idles most
---@field min_idle number of the rank that idles least
---@field span_bubble number most that a rank waits between its first start and its last end: the zero-bubble papers' bubble
---@field bubble_fraction number mean idle share: 1 − Σ busy / (P × makespan)
---@field max_idle_fraction number max_idle / makespan
---@field span_bubble_fraction number span_bubble / max_span
---@field busy number[]
---@field idle number[] makespan − busy
---@field span number[] own last end − own first start
---@field host_wait? number[] seconds that the card waited for its host alone, if hosts were given
---@field peak_bytes? pipeplan.engine.peak_bytes most activations held at once, if bytes were given
---@field intervals? pipeplan.engine.interval[][] of each rank's actions, if asked for
---@field intervals_of? fun(rank: integer, first?: integer, last?: integer): pipeplan.engine.interval[] the same of some of a rank's actions, as actions() counts them, if asked for

--- Factors of what is sent, by what it is sent for; of engine.cost and searches.
---@class pipeplan.engine.slower
---@field tensor? number times the seconds of TP's collectives; 0.001 … 1000; default 1
---@field context? number times the seconds of CP's ring; 0.001 … 1000; default 1
---@field expert? number times the seconds of all-to-all; 0.001 … 1000; default 1
---@field data? number times the seconds of gradients and parameters; 0.001 … 1000; default 1
---@field pipeline? number times the seconds of hand-overs between stages; 0.001 … 1000; default 1

--- How many blocks of each kind a stage holds.
---@class pipeplan.engine.stage
---@field embedding? integer how many: the embedding; 0 … 1024; default 0
---@field dense? integer how many: a dense decoder layer; 0 … 1024; default 0
---@field moe? integer how many: an MoE decoder layer; 0 … 1024; default 0
---@field head? integer how many: final norm, output weights and loss; 0 … 1024; default 0
---@field mtp? integer how many: a multi-token-prediction module; 0 … 1024; default 0
---@field kind_1? integer how many: a layer of the shape's kinds[1]; 0 … 1024; default 0
---@field kind_2? integer how many: a layer of the shape's kinds[2]; 0 … 1024; default 0
---@field kind_3? integer how many: a layer of the shape's kinds[3]; 0 … 1024; default 0
---@field kind_4? integer how many: a layer of the shape's kinds[4]; 0 … 1024; default 0
---@field kind_5? integer how many: a layer of the shape's kinds[5]; 0 … 1024; default 0
---@field kind_6? integer how many: a layer of the shape's kinds[6]; 0 … 1024; default 0
---@field kind_7? integer how many: a layer of the shape's kinds[7]; 0 … 1024; default 0
---@field kind_8? integer how many: a layer of the shape's kinds[8]; 0 … 1024; default 0
---@field kind_9? integer how many: a layer of the shape's kinds[9]; 0 … 1024; default 0
---@field kind_10? integer how many: a layer of the shape's kinds[10]; 0 … 1024; default 0
---@field kind_11? integer how many: a layer of the shape's kinds[11]; 0 … 1024; default 0

--- Seconds of a stage for one microbatch, executed alone.
---@class pipeplan.engine.stage_seconds
---@field forward number F; ≥ 0
---@field input? number I, recompute included; ≥ 0; default 0
---@field weight? number W; ≥ 0; default 0
---@field full? number B; default: input + weight; ≥ 0
---@field alltoall_forward? number all-to-all in forward; ≥ 0; default 0
---@field alltoall_backward? number all-to-all in full; ≥ 0; default 0
---@field tensor? number TP collectives, part of the others
---@field context? number the ring of keys and values
---@field context_exposed? number what attention does not hide of it, part of the others
---@field host_forward? number what the card waits for its host, part of forward
---@field host_backward? number … part of input and full
---@field launch_forward? number what the launches of F take the host; ≥ 0; default 0
---@field launch_backward? number … of B; ≥ 0; default 0
---@field lost_forward? number of host_forward: what the host's waiting for rows of experts costs; ≥ 0; default 0
---@field lost_backward? number … of host_backward; ≥ 0; default 0

--- Seconds that a step takes beside the pipeline.
---@class pipeplan.engine.step_seconds
---@field gradient_sync number reduction of gradients
---@field parameter_sync number gather of weights
---@field optimizer number update
---@field mirror number sum of the two copies' gradients
---@field replicas number sum of gradients between groups that each shard a state
---@field sharding number what gathers and reductions of sharded parameters and gradients add

---@class pipeplan.engine.terms_by_block
---@field embedding pipeplan.engine.block_terms the embedding
---@field dense pipeplan.engine.block_terms a dense decoder layer
---@field moe pipeplan.engine.block_terms an MoE decoder layer
---@field head pipeplan.engine.block_terms final norm, output weights and loss
---@field mtp pipeplan.engine.block_terms a multi-token-prediction module
---@field kind_1? pipeplan.engine.block_terms a layer of the shape's kinds[1]
---@field kind_2? pipeplan.engine.block_terms a layer of the shape's kinds[2]
---@field kind_3? pipeplan.engine.block_terms a layer of the shape's kinds[3]
---@field kind_4? pipeplan.engine.block_terms a layer of the shape's kinds[4]
---@field kind_5? pipeplan.engine.block_terms a layer of the shape's kinds[5]
---@field kind_6? pipeplan.engine.block_terms a layer of the shape's kinds[6]
---@field kind_7? pipeplan.engine.block_terms a layer of the shape's kinds[7]
---@field kind_8? pipeplan.engine.block_terms a layer of the shape's kinds[8]
---@field kind_9? pipeplan.engine.block_terms a layer of the shape's kinds[9]
---@field kind_10? pipeplan.engine.block_terms a layer of the shape's kinds[10]
---@field kind_11? pipeplan.engine.block_terms a layer of the shape's kinds[11]

--- One tier of a network.
---@class pipeplan.engine.tier
---@field reach integer GPUs within it; the last tier reaches all; 1 … 2147483647
---@field bandwidth number bytes per second per GPU, one direction, nominal; 1e-09 … 1e+30
---@field efficiency? number achieved share of it; 1e-09 … 10; default 1
---@field latency? number seconds; 0 … 1000000; default 0
---@field ring_latency? number of a step of a ring that leaves the scale-up domain; 0: as latency; 0 … 1000000; default 0
---@field measured? pipeplan.engine.measured what was measured of it, by kind of transfer
---@field messages? pipeplan.engine.message[] measured messages, sizes ascending; at most 16

--- What of a training recipe decides bytes and seconds.
---@class pipeplan.engine.training
---@field precision "bf16"|"fp8"|"fp16"|"fp32" of matrix products
---@field sequence_length integer tokens of a sequence; 1 … 2147483647
---@field document_length? number packed sequences: Σ length² / Σ length of the documents in one; 0: one document; 0 … 2147483647; default 0
---@field micro_batch? integer sequences of a microbatch; 1 … 2147483647; default 1
---@field parameter_bytes number bytes of a stored weight; 0 … 64
---@field gradient_bytes number bytes of an accumulated gradient; 0 … 64
---@field master_bytes number bytes of a master weight; 0: the stored one is the master; 0 … 64
---@field moment_bytes number bytes of both moments of a parameter together; 0 … 64
---@field frozen? number share of the parameters that do not train: no gradient, no state, no W; 0 … 1; default 0
---@field shard_optimizer? boolean master weights and moments over the data-parallel group; default false
---@field optimizer_offload? number share of them that lies in host memory and is updated there; 0 … 1; default 0
---@field shard_gradients? boolean gradients over it too (ZeRO-2); default false
---@field shard_parameters? boolean weights over it too (ZeRO-3); default false
---@field sharded_gradient_bytes? number where gradients are sharded, of one as it is reduced and accumulated; 0: as gradient_bytes; 0 … 64; default 0
---@field gathered_bytes? number of a sharded parameter as it is gathered; 0: 2; 0 … 64; default 0
---@field shard_master? boolean sharded parameters are the master weights themselves, cast as they are gathered; default false
---@field shard_in_place? boolean gathers and reductions work in the buffers that compute uses; default false
---@field reshard? boolean in a pipeline too, parameters are dropped after use and gathered again; default false
---@field replicas? integer HSDP: groups that each shard a whole state; 0 … 2147483647; default 0
---@field allreduce_gradients? boolean although the optimizer is sharded, each rank gets all reduced gradients; default false
---@field reduced_bytes? number bytes of a gradient as it is sent; 0: as it is accumulated; 0 … 64; default 0
---@field sequence_parallel? boolean with TP: norms and dropouts split over TP too; default false
---@field scatter_messages? boolean what stages hand over is cut over TP on the way without sequence parallelism too; default false
---@field bucket? number parameters whose gradients are reduced at once; 0: all; 0 … 1e+30; default 0
---@field bucket_per_rank? number the same for each of the ranks: the larger holds; 0 … 1e+30; default 0
---@field data_overlap? number share of a microbatch's backward and forward that hides gradient and parameter traffic; 0 … 1; default 0
---@field overlap_alone? boolean without a pipeline the all-to-all of a microbatch's forward runs beside the backward of the one before; default false
---@field tensor_overlap? number share of TP's collectives that run beside the products around them; 0 … 1; default 0
---@field fused_attention? boolean no s × s matrix is stored; default false
---@field loss? string how the cross entropy is computed: of engine.cost.losses, the first by default
---@field unfused_norm? boolean norms out of single operations: an fp32 copy of their input is kept; default false
---@field unfused_rope? boolean rotary embedding in fp32: a copy of queries and keys is kept; default false
---@field unfused_activation? boolean SwiGLU in two kernels: the gate's activation is kept too; default false
---@field unfused_experts? boolean one product an expert, one after the other; default false
---@field dropout? boolean one-byte masks are stored; default false
---@field unfused_optimizer? boolean an update of PyTorch's operations on lists of tensors; default false
---@field activation_bytes? number bytes of an element of a stored linear input; 0 … 64; default 2
---@field attention_output_bytes? number … of the attention output; default 2, with activation_bytes < 2: 1.5; 0 … 64
---@field activation_input_bytes? number … of what SwiGLU or GELU reads; default 2, or activation_bytes below; 0 … 64
---@field weight_gradient_bytes? number … of a weight gradient before it is accumulated; default 2, with activation_bytes < 2: 0; 0 … 64
---@field weight_gradients_pass? boolean such a temporary is dropped once it is added; else one is kept for each shape of weights; default false
---@field dispatch_bytes? number … of a dispatched token; default 2, fp8: 1.03125; 0 … 64
---@field combine_bytes? number … of a combined token; 0 … 64; default 2
---@field expert_imbalance? number tokens on the busiest expert rank / mean; 1 … 1000000; default 1
---@field max_domains? integer scale-up domains that one token may reach; 0: no limit; 0 … 2147483647; default 0
---@field rerun_per_weight? boolean with a split backward W computes a recomputed layer again for each of its weights (PyTorch); default false
---@field recompute? pipeplan.engine.recompute what is computed again

--- What a schedule is, independent of its size.
---@class pipeplan.engine.traits
---@field name string
---@field title string as its paper writes it
---@field family string zero_bubble, or the name itself
---@field placement "loop"|"v"|"bidirectional" of stages on ranks
---@field virtual? integer stages per rank and direction that it needs; nil: any number from 2
---@field chains integer 2 for bidirectional schedules
---@field copies integer parameter copies on the devices
---@field split_backward boolean has I and W
---@field overlaps boolean has F&B pairs

--- One rank of a deadlock's cycle.
---@class pipeplan.engine.wait
---@field rank integer that waits, from 0
---@field position? integer of the action it cannot run, in actions(rank)
---@field action? string it cannot run
---@field of integer rank it waits for
---@field what string action whose result it waits for
---@field sends boolean until it is taken, instead of made

--- Arguments. The closed form of a schedule's bubble.
---@class pipeplan.engine.bubble_arguments
---@field schedule pipeplan.schedule its name; families are not built
---@field ranks integer P; ≥ 1
---@field microbatches integer M per pipeline; for DualPipe over both directions; ≥ 1
---@field virtual? integer V; default: what the schedule needs, interleaved 2; ≥ 1
---@field group? integer interleaved: microbatches in a row; 0: P; ≥ 0; default 0
---@field limit? integer zb_auto: most chunks that a rank holds; 0: 2P; ≥ 0; default 0
---@field F number seconds of a forward; ≥ 0
---@field I number seconds of a backward for input; ≥ 0
---@field W number seconds of a backward for weights; ≥ 0
---@field B? number seconds of a whole backward; default: I + W; ≥ 0
---@field FB? number seconds of a forward overlapped with a backward; default: F + B; ≥ 0

--- Arguments. Seconds of an all-gather, or of a reduce-scatter.
---@class pipeplan.engine.comm_allgather_arguments
---@field network pipeplan.engine.network the network
---@field size integer GPUs of the group; 1 … 2147483647
---@field stride? integer distance between neighbours of the group, in GPUs; 1 … 2147483647; default 1
---@field bytes number of all ranks together; ≥ 0

--- Arguments. Seconds of an all-reduce.
---@class pipeplan.engine.comm_allreduce_arguments
---@field network pipeplan.engine.network the network
---@field size integer GPUs of the group; 1 … 2147483647
---@field stride? integer distance between neighbours of the group, in GPUs; 1 … 2147483647; default 1
---@field bytes number of all ranks together; ≥ 0

--- Arguments. Seconds of one dispatch, or of one combine.
---@class pipeplan.engine.comm_alltoall_arguments
---@field network pipeplan.engine.network the network
---@field group integer EP; 1 … 2147483647
---@field stride? integer distance between neighbours of the group, in GPUs; 1 … 2147483647; default 1
---@field tokens number that one rank sends; ≥ 0
---@field experts_per_token integer copies of a token; 1 … 65536
---@field experts? integer of the layer; 0: so many that no two choices meet in one; 0 … 2147483647; default 0
---@field bytes_per_token number of one copy; ≥ 0
---@field rate? number bytes per second at which a kernel across nodes forwards inside them; 0: as the link; ≥ 0; default 0
---@field max_domains? integer scale-up domains that a token may reach; 0: no limit; 0 … 2147483647; default 0
---@field flat? boolean every copy crosses the network by itself, instead of one per domain; default false

--- Arguments. Latency and bandwidth from a table of nccl-tests.
---@class pipeplan.engine.comm_fit_arguments
---@field test "sendrecv"|"all_gather"|"reduce_scatter"|"all_reduce"|"alltoall" which
---@field ranks integer GPUs that took part, 2 or more; 1 … 2147483647
---@field members? integer of them in one scale-up domain; default: all; ≥ 1
---@field points number[][] { bytes, seconds } each
---@field inner? pipeplan.engine.link what rings reach inside a domain

--- Arguments. Seconds of one message.
---@class pipeplan.engine.comm_p2p_arguments
---@field network pipeplan.engine.network the network
---@field stride? integer distance between neighbours of the group, in GPUs; 1 … 2147483647; default 1
---@field bytes number of it; ≥ 0

--- Arguments. Seconds of one block of each kind.
---@class pipeplan.engine.cost_blocks_arguments
---@field model pipeplan.engine.shape the model
---@field layout pipeplan.engine.layout how it is spread
---@field training pipeplan.engine.training the recipe
---@field device pipeplan.engine.device the accelerator
---@field network pipeplan.engine.network the network

--- Arguments. What the seconds of cost.blocks are made of.
---@class pipeplan.engine.cost_terms_arguments
---@field model pipeplan.engine.shape the model
---@field layout pipeplan.engine.layout how it is spread
---@field training pipeplan.engine.training the recipe
---@field device pipeplan.engine.device the accelerator
---@field network pipeplan.engine.network the network

--- Arguments. Seconds that a microbatch's activations take to the next stage.
---@class pipeplan.engine.cost_hop_arguments
---@field model pipeplan.engine.shape the model
---@field layout pipeplan.engine.layout how it is spread
---@field training pipeplan.engine.training the recipe
---@field network pipeplan.engine.network the network

--- Arguments. Seconds of a forward overlapped with a backward.
---@class pipeplan.engine.cost_pair_arguments
---@field device pipeplan.engine.device the accelerator
---@field forward pipeplan.engine.stage_seconds of the stage that runs forward
---@field backward pipeplan.engine.stage_seconds of the stage that runs backward

--- Arguments. Seconds of a stage for one microbatch.
---@class pipeplan.engine.cost_stage_arguments
---@field model pipeplan.engine.shape the model
---@field layout pipeplan.engine.layout how it is spread
---@field training pipeplan.engine.training the recipe
---@field device pipeplan.engine.device the accelerator
---@field network pipeplan.engine.network the network
---@field stage pipeplan.engine.stage what it holds

--- Arguments. Seconds of a step beside the pipeline.
---@class pipeplan.engine.cost_step_arguments
---@field layout pipeplan.engine.layout how it is spread
---@field training pipeplan.engine.training the recipe
---@field device pipeplan.engine.device the accelerator
---@field network pipeplan.engine.network the network
---@field dense_parameters number resident on the rank, outside experts; ≥ 0
---@field expert_parameters? number of experts resident on the rank; ≥ 0; default 0
---@field copies? integer 2 for DualPipe; 1 … 2; default 1

--- Arguments. Bytes of one block of each kind on one GPU.
---@class pipeplan.engine.memory_blocks_arguments
---@field model pipeplan.engine.shape the model
---@field layout pipeplan.engine.layout how it is spread
---@field training pipeplan.engine.training the recipe
---@field copies? integer 2 for DualPipe; 1 … 2; default 1

--- Arguments. Bytes on every rank ([rank + 1]).
---@class pipeplan.engine.memory_stages_arguments
---@field model pipeplan.engine.shape the model
---@field layout pipeplan.engine.layout how it is spread
---@field training pipeplan.engine.training the recipe
---@field schedule? pipeplan.engine.schedule_object nil: no pipeline
---@field overhead? number bytes of context and allocator; ≥ 0; default 0
---@field communicators? pipeplan.engine.communicators default: in overhead
---@field layers_per_stage? integer[] default: as even as possible

--- Arguments. Builds a schedule.
---@class pipeplan.engine.schedule_arguments
---@field kind pipeplan.schedule its name; families are not built
---@field ranks integer P; ≥ 1
---@field microbatches integer M per pipeline; for DualPipe over both directions; ≥ 1
---@field virtual? integer V; default: what the schedule needs, interleaved 2; ≥ 1
---@field group? integer interleaved: microbatches in a row; 0: P; ≥ 0; default 0
---@field limit? integer zb_auto: most chunks that a rank holds; 0: 2P; ≥ 0; default 0
---@field released? number zb_auto: share of a chunk's memory that its I frees; 0 … 1; default 0
---@field F? number|number[] what zb_auto, v_half and v_min are planned from (default: 1): forward, seconds ≥ 0: of every stage, or one number a stage
---@field I? number|number[] … backward for input, seconds ≥ 0: of every stage, or one number a stage
---@field W? number|number[] … backward for weights, seconds ≥ 0: of every stage, or one number a stage
---@field p2p? number … seconds of a hop between ranks; ≥ 0; default 0

--- Arguments. Could it be built?
---@class pipeplan.engine.schedule_check_arguments
---@field kind pipeplan.schedule its name; families are not built
---@field ranks integer P; ≥ 1
---@field microbatches integer M per pipeline; for DualPipe over both directions; ≥ 1
---@field virtual? integer V; default: what the schedule needs, interleaved 2; ≥ 1
---@field group? integer interleaved: microbatches in a row; 0: P; ≥ 0; default 0
---@field limit? integer zb_auto: most chunks that a rank holds; 0: 2P; ≥ 0; default 0
---@field released? number zb_auto: share of a chunk's memory that its I frees; 0 … 1; default 0
---@field F? number|number[] what zb_auto, v_half and v_min are planned from (default: 1): forward, seconds ≥ 0: of every stage, or one number a stage
---@field I? number|number[] … backward for input, seconds ≥ 0: of every stage, or one number a stage
---@field W? number|number[] … backward for weights, seconds ≥ 0: of every stage, or one number a stage
---@field p2p? number … seconds of a hop between ranks; ≥ 0; default 0

--- Arguments. What a runtime issues, as PyTorch's compute_comms CSV: a line a rank.
---@class pipeplan.engine.lowered_arguments
---@field runtime "ideal"|"torch-single"|"torch-multi"|"deepseek"|"pipeplan"|"megatron" not ideal, which posts nothing
---@field queues? "one"|"per_peer" that messages wait in, of a rank; default: the runtime's
---@field receives? "before_use"|"early" when they are posted; default: the runtime's
---@field pairs? "overlapped"|"in_turn"|"split" how a pair runs and sends; default: the runtime's, overlapped with FB

--- Arguments. When each action runs.
---@class pipeplan.engine.simulate_arguments
---@field F number|number[] forward, seconds ≥ 0: of every stage, or one number a stage
---@field I number|number[] backward for input, seconds ≥ 0: of every stage, or one number a stage
---@field W number|number[] backward for weights, seconds ≥ 0: of every stage, or one number a stage
---@field B? number|number[] whole backward (default: I + W), seconds ≥ 0: of every stage, or one number a stage
---@field FB? number|number[]|number[][] pair of a forward and a backward (default: F + B), seconds ≥ 0: of all, by the forward's stage, or by that and the backward's slot of the rank
---@field first_stage? pipeplan.engine.extra_seconds beside its layers, the first stage
---@field last_stage? pipeplan.engine.extra_seconds beside its layers, the last stage
---@field rank_speed? number|number[] 1: as the times say; of every rank, or one number a rank
---@field launch? number seconds of every action beside its work; ≥ 0; default 0
---@field p2p? number|pipeplan.engine.hop a hop between ranks, seconds if a number; ≥ 0; default 0
---@field bytes? pipeplan.engine.chunk_bytes asks for peak_bytes
---@field runtime? "ideal"|"torch-single"|"torch-multi"|"deepseek"|"pipeplan"|"megatron" whose order of messages; default ideal
---@field queues? "one"|"per_peer" that messages wait in, of a rank; default: the runtime's
---@field receives? "before_use"|"early" when they are posted; default: the runtime's
---@field pairs? "overlapped"|"in_turn"|"split" how a pair runs and sends; default: the runtime's, overlapped with FB
---@field contention? number factor on actions while a batch of messages is under way; ≥ 1; default 1
---@field heat? pipeplan.engine.heat of the devices
---@field host? pipeplan.engine.host_seconds what handing over each action takes its host; default: hosts are always ahead
---@field intervals? boolean list when each action runs; default false
---@field intervals_of? boolean the same by pieces: for programs of which a list would be too large; default false

--- Arguments. Is it complete, in order, and does no rank wait for ever?
---@class pipeplan.engine.verify_arguments
---@field buffers? integer sending waits until a stage has one of so many receive buffers free; default: it waits for nobody; ≥ 1

--- A schedule: for each rank, the ordered actions that it executes.
---@class pipeplan.engine.schedule_object
local schedule_object = {}

--- What a rank does, in order.
--- ```lua
--- built:actions(0)[1].kind  --> F: the first rank begins with a forward
--- ```
---@param rank integer from 0; ≥ 0
---@param first? integer place of the first of them; default 1; ≥ 1
---@param last? integer place of the last of them; default: the last of all; ≥ 0
---@return pipeplan.engine.action[]
function schedule_object:actions(rank, first, last) end

--- The actions as PyTorch's schedule CSV: a line a rank.
--- ```lua
--- built:csv(3)  --> 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7: one forward, one backward
--- ```
---@param rank? integer that line alone; ≥ 0
---@return string
function schedule_object:csv(rank) end

--- Its size.
--- ```lua
--- built:info().chunks_per_rank  --> 1: one stage a rank
--- ```
---@return pipeplan.engine.schedule_info
function schedule_object:info() end

--- Most chunks held at once.
--- ```lua
--- built:peaks().freed_at_w[1]  --> 4: P microbatches are held by the first rank
--- ```
---@return pipeplan.engine.peaks
function schedule_object:peaks() end

--- What a runtime issues, as PyTorch's compute_comms CSV: a line a rank.
--- ```lua
--- built:lowered { runtime = "torch-single" } ~= nil  --> true: what PyTorch would issue
--- ```
---@param arguments pipeplan.engine.lowered_arguments
---@return string|nil
---@return pipeplan.engine.illegal? why
function schedule_object:lowered(arguments) end

--- The least number of receive buffers of a stage with which it runs where p2p blocks.
--- ```lua
--- built:receive_buffers()  --> 1: of each stage
--- ```
---@return integer|nil
---@return pipeplan.engine.finding? why
function schedule_object:receive_buffers() end

--- When each action runs.
--- ```lua
--- built:simulate { F = 1, I = 1, W = 1 }.makespan  --> 33: (M + P − 1)(F + B)
--- ```
---@param arguments pipeplan.engine.simulate_arguments
---@return pipeplan.engine.simulation|nil
---@return pipeplan.engine.illegal? why
function schedule_object:simulate(arguments) end

--- Is it complete, in order, and does no rank wait for ever?
--- ```lua
--- built:verify()  --> true: complete, in order, no rank waits for ever
--- ```
---@param arguments? pipeplan.engine.verify_arguments
---@return true|nil
---@return pipeplan.engine.finding? why
function schedule_object:verify(arguments) end

--- What arithmetic decides. Each call counts against a policy's budget.
---@class pipeplan.engine
engine = {}

--- The closed form of a schedule's bubble.
--- ```lua
--- engine.bubble { schedule = "1f1b", ranks = 4, microbatches = 8, F = 1, I = 1, W = 1 }.seconds  --> 9: (P − 1)(F + B)
--- ```
---@param arguments pipeplan.engine.bubble_arguments
---@return pipeplan.engine.closed_form|nil
---@return pipeplan.engine.illegal? why
function engine.bubble(arguments) end

---@class pipeplan.engine.comm
engine.comm = {}

--- Seconds of an all-gather, or of a reduce-scatter.
--- ```lua
--- engine.comm.allgather { network = network, size = 8, bytes = 8e9 }  --> 0.0175: 7/8 of 8 GB at 400 GB/s
--- ```
---@param arguments pipeplan.engine.comm_allgather_arguments
---@return number
function engine.comm.allgather(arguments) end

--- Seconds of an all-reduce.
--- ```lua
--- engine.comm.allreduce { network = network, size = 8, bytes = 8e9 }  --> 0.035: 2 · 7/8 of 8 GB at 400 GB/s
--- ```
---@param arguments pipeplan.engine.comm_allreduce_arguments
---@return number
function engine.comm.allreduce(arguments) end

--- Seconds of one dispatch, or of one combine.
--- ```lua
--- engine.comm.alltoall { network = network, group = 8, tokens = 4096, experts_per_token = 1, bytes_per_token = 1000 }  --> 8.96e-06: 7/8 of 4,096 tokens of 1,000 bytes at 400 GB/s
--- ```
---@param arguments pipeplan.engine.comm_alltoall_arguments
---@return number
function engine.comm.alltoall(arguments) end

--- Latency and bandwidth from a table of nccl-tests.
--- ```lua
--- engine.comm.fit { test = "sendrecv", ranks = 2, points = { { 1, 1e-5 }, { 1e9, 1.001e-2 } } }.bandwidth  --> 99999999900: 999,999,999 bytes more take 10 ms more
--- ```
---@param arguments pipeplan.engine.comm_fit_arguments
---@return pipeplan.engine.link_fit
function engine.comm.fit(arguments) end

--- Seconds of one message.
--- ```lua
--- engine.comm.p2p { network = network, stride = 8, bytes = 1e9 }  --> 0.02: 1 GB at 50 GB/s
--- ```
---@param arguments pipeplan.engine.comm_p2p_arguments
---@return number
function engine.comm.p2p(arguments) end

---@class pipeplan.engine.cost
---@field losses string[] names of the ways to compute a cross entropy
engine.cost = {}

--- Seconds of one block of each kind.
--- ```lua
--- engine.cost.blocks { model = model, layout = layout, training = training, device = device, network = network }.dense.tensor  --> 8.38861e-05: F and B each gather twice and scatter twice over TP 2: 8 · 1/2 · 4096 · 1024 · 2 bytes at 400 GB/s
--- ```
---@param arguments pipeplan.engine.cost_blocks_arguments
---@return pipeplan.engine.seconds_by_block
function engine.cost.blocks(arguments) end

--- What the seconds of cost.blocks are made of.
--- ```lua
--- engine.cost.terms { model = model, layout = layout, training = training, device = device, network = network }.dense.forward.products  --> 0.000128849: 31,457,280 FLOPs a token (model.flops) · 4,096 tokens / TP 2 at 50 % of 1 PFLOP/s
--- ```
---@param arguments pipeplan.engine.cost_terms_arguments
---@return pipeplan.engine.terms_by_block
function engine.cost.terms(arguments) end

--- Seconds that a microbatch's activations take to the next stage.
--- ```lua
--- engine.cost.hop { model = model, layout = layout, training = training, network = network }  --> 0.000167772: 4096 · 1024 · 2 bytes to the next stage, at 50 GB/s
--- ```
---@param arguments pipeplan.engine.cost_hop_arguments
---@return number
function engine.cost.hop(arguments) end

--- Seconds of a forward overlapped with a backward.
--- ```lua
--- engine.cost.pair { device = device, forward = { forward = 1 }, backward = { forward = 1, input = 1, weight = 1 } }  --> 3: F + B, where nothing is hidden
--- ```
---@param arguments pipeplan.engine.cost_pair_arguments
---@return number
function engine.cost.pair(arguments) end

--- Seconds of a stage for one microbatch.
--- ```lua
--- engine.cost.stage { model = model, layout = layout, training = training, device = device, network = network,
---   stage = { dense = 2 } }.tensor  --> 0.000167772: twice that of a layer (cost.blocks)
--- ```
---@param arguments pipeplan.engine.cost_stage_arguments
---@return pipeplan.engine.stage_seconds
function engine.cost.stage(arguments) end

--- Seconds of a step beside the pipeline.
--- ```lua
--- engine.cost.step { layout = layout, training = training, device = device, network = network, dense_parameters = 1e6 }.gradient_sync  --> 1.5e-05: DP 4 beside TP 2 lies in a node: 2 · 3/4 of 4 MB at 400 GB/s
--- ```
---@param arguments pipeplan.engine.cost_step_arguments
---@return pipeplan.engine.step_seconds
function engine.cost.step(arguments) end

---@class pipeplan.engine.memory
engine.memory = {}

--- Bytes of one block of each kind on one GPU.
--- ```lua
--- engine.memory.blocks { model = model, layout = { tensor = 1 }, training = training }.dense.parameters  --> 31461376: 2 bytes of h² · (2 + 2 · kv/q heads) + 3 · h · ffn + 2 norms of h
--- ```
---@param arguments pipeplan.engine.memory_blocks_arguments
---@return pipeplan.engine.bytes_by_block
function engine.memory.blocks(arguments) end

--- Bytes on every rank ([rank + 1]).
--- ```lua
--- #engine.memory.stages { model = model, layout = layout, training = training, schedule = built }  --> 4: one a rank
--- ```
---@param arguments pipeplan.engine.memory_stages_arguments
---@return pipeplan.engine.rank_bytes[]|nil
---@return pipeplan.engine.illegal? why
function engine.memory.stages(arguments) end

---@class pipeplan.engine.model
---@field fields string[] keys of a shape
engine.model = {}

--- FLOPs of a model.
--- ```lua
--- engine.model.flops(model, 4096).blocks.dense.linear  --> 31457280: 2 a parameter of its products
--- ```
---@param shape pipeplan.engine.shape the model
---@param length number tokens within which attention stays: a sequence, or a document of one; ≥ 1
---@return pipeplan.engine.flops
function engine.model.flops(shape, length) end

--- Parameters of a model.
--- ```lua
--- engine.model.parameters(model).blocks.dense.tensor  --> 15728640: h² · (2 + 2 · kv/q heads) + 3 · h · ffn + 2 norms of h, without the norms
--- ```
---@param shape pipeplan.engine.shape the model
---@return pipeplan.engine.parameters
function engine.model.parameters(shape) end

--- Which blocks each stage holds.
--- ```lua
--- engine.model.stages(model, 4)[1].dense  --> 2: 8 layers on 4 stages
--- ```
---@param shape pipeplan.engine.shape the model
---@param stages integer how many; 1 … 65536
---@param layers_per_stage? integer[] default: as even as possible
---@return pipeplan.engine.stage[]|nil
---@return pipeplan.engine.illegal? why
function engine.model.stages(shape, stages, layers_per_stage) end

--- Builds a schedule.
---@class pipeplan.engine.schedule
---@field kinds string[] names of the schedules that can be built
---@overload fun(arguments: pipeplan.engine.schedule_arguments): pipeplan.engine.schedule_object|nil, pipeplan.engine.illegal?
engine.schedule = {}

--- Could it be built?
--- ```lua
--- select(2, engine.schedule.check { kind = "dualpipe", ranks = 3, microbatches = 8 }).id  --> engine.odd_depth: DualPipe takes an even P
--- ```
---@param arguments pipeplan.engine.schedule_check_arguments
---@return true|nil
---@return pipeplan.engine.illegal? why
function engine.schedule.check(arguments) end

--- Reads PyTorch's compute-only CSV.
--- ```lua
--- engine.schedule.from_csv("0F0,0B0\n"):info().microbatches  --> 1: one forward and one backward
--- ```
---@param text string a line a rank
---@param options? pipeplan.engine.csv_options 
---@return pipeplan.engine.schedule_object|nil
---@return pipeplan.engine.csv_error? why
function engine.schedule.from_csv(text, options) end

--- What a schedule is.
--- ```lua
--- engine.schedule.traits("dualpipe").copies  --> 2: of the parameters
--- ```
---@param name pipeplan.schedule its name
---@return pipeplan.engine.traits
function engine.schedule.traits(name) end
