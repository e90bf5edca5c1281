-- SPDX-License-Identifier: Apache-2.0
-- classes.lua: tables that the engine's functions (primitives.lua) are given and answer with: their fields, units, ranges. An argument or
-- field is as entries.lua says.

local entries = require "generate.entries"

local degree, flag, size, result = entries.degree, entries.flag, entries.size, entries.result
local element_bytes, HUGE_SIZE = entries.element_bytes, entries.HUGE_SIZE

local blocks = { "embedding", "dense", "moe", "head", "mtp" }
local block_meanings = { embedding = "the embedding", dense = "a dense decoder layer", moe = "an MoE decoder layer",
                         head = "final norm, output weights and loss", mtp = "a multi-token-prediction module" }

-- Layers of further kinds, which few models have.
local MOST_KINDS = 11
local function kind_of(i) return "kind_" .. i, "a layer of the shape's kinds[" .. i .. "]" end

-- A class with one field a kind of block.
local function per_block(type)
  local fields = {}
  for i, name in ipairs(blocks) do fields[i] = { name, type, block_meanings[name] } end
  for i = 1, MOST_KINDS do
    local name, meaning = kind_of(i)
    fields[#fields + 1] = { name, type, meaning, optional = true }
  end
  return fields
end

local function counts()
  local fields = {}
  for i, name in ipairs(blocks) do
    fields[i] = { name, "integer", "how many: " .. block_meanings[name], low = 0, high = 1024, default = 0 }
  end
  for i = 1, MOST_KINDS do
    local name, meaning = kind_of(i)
    fields[#fields + 1] = { name, "integer", "how many: " .. meaning, low = 0, high = 1024, default = 0 }
  end
  return fields
end

local classes = {}

-- ---------------------------------------------------------------------------------------------------------------- what they are given

local attention_fields = {
  { "attention", '"gqa"|"mla"|"none"|"gated_delta"|"kimi_delta"|"mamba2"|"lightning"|"conv"|"mamba1"|"compressed"',
    "GQA covers MHA (kv_heads = heads) and MQA (1); behind none: mixers with a state in place of attention", default = "gqa" },
  { "kv_heads", "integer", "key and value heads; default: heads", low = 1, optional = true },
  { "head_dim", "integer", "default: hidden / heads", low = 0, optional = true },
  size("q_lora_rank", "MLA: latent of the query; 0: one full projection", 0), size("kv_lora_rank", "MLA: latent of keys and values", 0),
  size("qk_nope_dim", "MLA: per head, without position", 0), size("qk_rope_dim", "MLA: per head, with rotary position", 0),
  size("v_dim", "value, per head: MLA; GQA where it is not head_dim", 0),
  size("index_heads", "heads of an indexer of sparse attention", 0), size("index_dim", "width of such a head", 0),
  size("index_topk", "tokens that a query attends to; 0: all", 0),
  size("window", "tokens that a query attends to at most, itself and the last before it; 0: all", 0),
  size("chunk", "attention stays within chunks of so many tokens; 0: it does not", 0),
  size("compression", "compressed attention: tokens of an entry; 0: none", 0),
  size("output_groups", "compressed attention: groups of heads of its output", 0),
  size("output_rank", "compressed attention: columns of each group", 0),
  size("output_gate", "columns of a product that gates the output of attention", 0), flag("shared_kv", "values are the keys"),
  flag("qkv_bias", "biases of the query, key and value projections"), flag("output_bias", "bias of the output projection"),
  size("attention_sinks", "learned scalars per layer", 0),
  { "qk_norm", '"none"|"head"|"full"', "norms of queries and keys: none, per head, over all heads", default = "none" },
  size("key_heads", "mixer: heads of keys and queries; Mamba-2's groups", 0), size("key_dim", "mixer: width of a key; Mamba-2's state", 0),
  size("value_heads", "mixer: heads of values", 0), size("value_dim", "mixer: width of a value", 0),
  size("conv_kernel", "mixer: taps of its convolution", 0), flag("conv_bias", "mixer: bias of its convolution"),
  size("step_rank", "Mamba-1: rank of the product that gives its steps", 0),
  flag("mixer_norm", "Mamba-2: a norm over its output; Mamba-1: norms of steps, B and C"),
}
local feed_forward_fields = {
  size("ffn", "width of dense feed-forward layers", 0),
  { "gated", "boolean", "SwiGLU or GeGLU: three matrices instead of two; experts follow it", default = true },
  flag("mlp_bias", "biases of dense feed-forward layers"),
  size("experts", "routed experts of an MoE layer; 0: a dense model", 0), size("experts_per_token", "experts that a token is sent to", 0),
  size("zero_experts", "experts beside those that compute nothing", 0),
  size("expert_ffn", "width of one expert", 0), size("expert_hidden", "what routed experts read and write; 0: hidden", 0),
  size("shared_ffn", "width of all shared experts together", 0), flag("shared_gate", "a gate vector for the shared expert"),
  flag("router_correction_bias", "a non-trained bias per expert, which checkpoints hold"),
  flag("router_bias", "bias of the router"), flag("expert_bias", "biases of experts"),
  size("norms_per_layer", "0: norms have no weights", 2), flag("norm_bias", "LayerNorm has weight and bias, RMSNorm only weight"),
  size("scales", "further weights of a layer that multiply element by element", 0),
}

local function joined(...)
  local fields = {}
  for _, list in ipairs{ ... } do table.move(list, 1, #list, #fields + 1, fields) end
  return fields
end

classes.shape = { meaning = "The shape of a transformer. Sizes in elements; what a family does not have is left out.", given = true, fields = joined({
  { "layers", "integer", "decoder layers", low = 1, high = 1024 },
  size("hidden", "width of the residual stream"), size("vocab", "rows of the embedding"), size("heads", "query heads"),
}, attention_fields, feed_forward_fields, {
  { "first_dense", "integer", "so many first layers are dense", low = 0, default = 0 },
  { "moe_every", "integer", "of the others, every so many-th is MoE", low = 1, default = 1 },
  { "dense_layers", "integer[]", "numbers of layers that are dense, from 1", optional = true },
  { "kinds", "pipeplan.engine.layer_kind[]", "layers with sizes of their own, at most 11 kinds", optional = true },
  size("streams", "streams of that width, which layers read and write in place of one", 1),
  flag("embedding_norm", "one more norm behind the embedding"),
  size("learned_positions", "rows of a learned position table", 0), flag("tied_embeddings", "output weights are the embedding"),
  flag("head_bias", "bias of the output weights"), size("mtp_layers", "multi-token-prediction modules", 0),
  size("tower", "parameters of a tower of images, on the first stage", 0), flag("tower_frozen", "the tower does not train"),
}) }

-- Defaults are the shape's own sizes.
local function left_out(list)
  local fields = {}
  for i, given in ipairs(list) do fields[i] = { given[1], given[2], given[3], low = given.low, high = given.high, optional = true } end
  return fields
end

classes.layer_kind = { meaning = "Layers that differ from the others of a shape; what is not given is as there.", given = true,
  fields = joined({ { "layers", "integer[]", "their numbers, from 1; of a kind that is `beside` another there may be none", optional = true },
                    { "beside", "integer", "number of a kind that each of these layers holds too", low = 1, high = 11, optional = true }, { "heads", "integer", "query heads", low = 1, optional = true } },
                  left_out(attention_fields), left_out(feed_forward_fields)) }

classes.layout = { meaning = "How a model is spread. GPUs = tensor × context × data × pipeline; experts lie over expert × expert_tensor "
  .. "GPUs of a stage, which must divide tensor × context × data.", given = true, fields = {
  degree("tensor", "TP"), degree("context", "CP"), degree("expert", "EP"), degree("expert_tensor", "TP of experts"), degree("data", "DP"),
  degree("pipeline", "P"), degree("chunks", "V: stages per rank and pipeline direction"),
} }

local function bytes(name, meaning) return { name, "number", meaning, low = 0, default = 0 } end
local function group(name, meaning) return flag(name, "is there one of " .. meaning) end

classes.communicators = { meaning = "What communicators take of a GPU, and which process groups have one.", given = true, fields = {
  bytes("one", "of one rank, once a collective ran in it"), bytes("several", "… of several ranks"),
  bytes("messages", "of one that messages ran in"), bytes("peer", "… more for each rank of the node that they were exchanged with"),
  { "node", "integer", "GPUs of a node; 0: all are in one", low = 0, high = HUGE_SIZE, default = 0 },
  group("world", "all ranks"), group("tensor", "TP"), group("context", "CP"), group("data", "DP and CP"), group("model", "TP and P"),
  group("optimizer", "all ranks that shard the optimizer"), group("pipeline", "P"), group("pairs", "two neighbours, where stages are interleaved"),
  group("embedding", "first and last stage, of tied embeddings"), group("dispatch", "EP and expert TP"), group("expert", "EP"),
  group("expert_data", "ranks with the same experts"),
} }

classes.recompute = { meaning = "What is not stored but computed again at the start of I (or B).", given = true, fields = {
  flag("full", "whole layers: only a layer's input is stored"), flag("core_attention", "softmax and dropout"), flag("norm", "outputs of norms"),
  flag("mla_up_projection", "what MLA expands from its latents"), flag("activation", "output of SwiGLU or GELU"),
  flag("moe", "the whole expert MLP, dispatch included"),
} }

classes.training = { meaning = "What of a training recipe decides bytes and seconds.", given = true, fields = {
  { "precision", '"bf16"|"fp8"|"fp16"|"fp32"', "of matrix products" },
  { "sequence_length", "integer", "tokens of a sequence", low = 1, high = HUGE_SIZE },
  { "document_length", "number", "packed sequences: Σ length² / Σ length of the documents in one; 0: one document", low = 0, high = HUGE_SIZE, default = 0 },
  { "micro_batch", "integer", "sequences of a microbatch", low = 1, high = HUGE_SIZE, default = 1 },
  element_bytes("parameter_bytes", "bytes of a stored weight"), element_bytes("gradient_bytes", "bytes of an accumulated gradient"),
  element_bytes("master_bytes", "bytes of a master weight; 0: the stored one is the master"),
  element_bytes("moment_bytes", "bytes of both moments of a parameter together"),
  { "frozen", "number", "share of the parameters that do not train: no gradient, no state, no W", low = 0, high = 1, default = 0 },
  flag("shard_optimizer", "master weights and moments over the data-parallel group"),
  { "optimizer_offload", "number", "share of them that lies in host memory and is updated there", low = 0, high = 1, default = 0 },
  flag("shard_gradients", "gradients over it too (ZeRO-2)"), flag("shard_parameters", "weights over it too (ZeRO-3)"),
  { "sharded_gradient_bytes", "number", "where gradients are sharded, of one as it is reduced and accumulated; 0: as gradient_bytes", low = 0, high = 64,
    default = 0 },
  { "gathered_bytes", "number", "of a sharded parameter as it is gathered; 0: 2", low = 0, high = 64, default = 0 },
  flag("shard_master", "sharded parameters are the master weights themselves, cast as they are gathered"),
  flag("shard_in_place", "gathers and reductions work in the buffers that compute uses"),
  flag("reshard", "in a pipeline too, parameters are dropped after use and gathered again"),
  { "replicas", "integer", "HSDP: groups that each shard a whole state", low = 0, high = HUGE_SIZE, default = 0 },
  flag("allreduce_gradients", "although the optimizer is sharded, each rank gets all reduced gradients"),
  element_bytes("reduced_bytes", "bytes of a gradient as it is sent; 0: as it is accumulated", 0),
  flag("sequence_parallel", "with TP: norms and dropouts split over TP too"),
  flag("scatter_messages", "what stages hand over is cut over TP on the way without sequence parallelism too"),
  { "bucket", "number", "parameters whose gradients are reduced at once; 0: all", low = 0, high = 1e30, default = 0 },
  { "bucket_per_rank", "number", "the same for each of the ranks: the larger holds", low = 0, high = 1e30, default = 0 },
  { "data_overlap", "number", "share of a microbatch's backward and forward that hides gradient and parameter traffic", low = 0, high = 1, default = 0 },
  flag("overlap_alone", "without a pipeline the all-to-all of a microbatch's forward runs beside the backward of the one before"),
  { "tensor_overlap", "number", "share of TP's collectives that run beside the products around them", low = 0, high = 1, default = 0 },
  flag("fused_attention", "no s × s matrix is stored"),
  { "loss", "string", "how the cross entropy is computed: of engine.cost.losses, the first by default", optional = true },
  flag("unfused_norm", "norms out of single operations: an fp32 copy of their input is kept"),
  flag("unfused_rope", "rotary embedding in fp32: a copy of queries and keys is kept"),
  flag("unfused_activation", "SwiGLU in two kernels: the gate's activation is kept too"),
  flag("unfused_experts", "one product an expert, one after the other"), flag("dropout", "one-byte masks are stored"),
  flag("unfused_optimizer", "an update of PyTorch's operations on lists of tensors"),
  element_bytes("activation_bytes", "bytes of an element of a stored linear input", 2),
  { "attention_output_bytes", "number", "… of the attention output; default 2, with activation_bytes < 2: 1.5", low = 0, high = 64, optional = true },
  { "activation_input_bytes", "number", "… of what SwiGLU or GELU reads; default 2, or activation_bytes below", low = 0, high = 64, optional = true },
  { "weight_gradient_bytes", "number", "… of a weight gradient before it is accumulated; default 2, with activation_bytes < 2: 0",
    low = 0, high = 64, optional = true },
  flag("weight_gradients_pass", "such a temporary is dropped once it is added; else one is kept for each shape of weights"),
  { "dispatch_bytes", "number", "… of a dispatched token; default 2, fp8: 1.03125", low = 0, high = 64, optional = true },
  element_bytes("combine_bytes", "… of a combined token", 2),
  { "expert_imbalance", "number", "tokens on the busiest expert rank / mean", low = 1, high = 1e6, default = 1 },
  { "max_domains", "integer", "scale-up domains that one token may reach; 0: no limit", low = 0, high = HUGE_SIZE, default = 0 },
  flag("rerun_per_weight", "with a split backward W computes a recomputed layer again for each of its weights (PyTorch)"),
  { "recompute", "pipeplan.engine.recompute", "what is computed again", optional = true },
} }

local function share(name, meaning) return { name, "number", meaning, low = 1e-9, high = 1 } end

local function seconds(name, meaning) return { name, "number", "seconds: " .. meaning, low = 0, high = 1e6, default = 0 } end
local function tokens(name, meaning) return { name, "number", meaning, low = 0, high = 1e9, default = 0 } end

classes.host_floor = { meaning = "Seconds that the host needs to launch one layer in one direction: the layer takes no less.", given = true, fields = {
  seconds("forward", "a dense layer, forward"), seconds("backward", "… backward"),
  seconds("moe_forward", "an MoE layer, forward"), seconds("moe_backward", "… backward"),
  seconds("expert_forward", "more for each expert of unfused_experts, forward"), seconds("expert_backward", "… backward"),
  { "waiting", "number", "share of the shorter of card and host that an MoE layer takes more without an all-to-all kernel", low = 0, high = 1, default = 0 },
} }

classes.device = { meaning = "What an accelerator and its kernels reach.", given = true, fields = {
  { "flops", "number", "dense peak at the training precision, per second", low = 1e-9, high = 1e30 },
  { "flops_bf16", "number", "dense peak in bf16, per second; default: flops", low = 1e-9, high = 1e30, optional = true },
  { "memory_bandwidth", "number", "bytes per second", low = 1e-9, high = 1e30 },
  share("gemm_efficiency", "share of flops that large matrix products reach"),
  share("grouped_gemm_efficiency", "the same for experts' products of large inner size"),
  { "grouped_gemm_half", "number", "inner size at which they reach half of that", low = 0, high = 1e9, default = 0 },
  { "product_depth", "number", "inner size that each product takes as much longer as", low = 0, high = 1e9, default = 0 },
  seconds("product_floor", "the smallest product, on top of what others take"),
  { "grouped_rows", "number", "rows of a tile, to which each expert's are padded; 0: by grouped_gemm_half alone", low = 0, high = 1e9, default = 0 },
  seconds("grouped_floor", "the smallest grouped product; with grouped_rows only"),
  share("attention_efficiency", "share of flops_bf16 that fused attention reaches"),
  { "attention_backward", "number", "share of that which its backward reaches; 0: as forward", low = 0, high = 100, default = 0 },
  tokens("attention_half", "tokens of a sequence at which it reaches half"), tokens("attention_half_backward", "… its backward"),
  tokens("attention_fill", "pieces of 128 queries of one head at which it reaches half"),
  share("memory_efficiency", "share of memory_bandwidth that element-wise kernels reach"),
  { "overlap_overhead", "number", "share of a pair's compute that sharing with communication kernels costs", low = 0, high = 100, default = 0 },
  flag("hides_alltoall", "is there an all-to-all kernel that runs beside compute?"),
  { "hidden_share", "number", "of the shorter of compute and all-to-all, what pairs on two streams hide; 0: all, at overlap_overhead", low = 0, high = 1,
    default = 0 },
  seconds("tensor_latency", "a TP collective, beside its transfer"),
  { "tensor_regather", "number", "share of backward's further all-gather that is not hidden beside I", low = 0, high = 1, default = 0 },
  { "alltoall_rate", "number", "bytes per second at which a kernel across nodes forwards inside them; default: as the link", low = 1e-9, high = 1e30,
    optional = true },
  { "host", "pipeplan.engine.host_floor", "what launches take the host; default: nothing", optional = true },
  { "layer_latency", "number", "seconds that a layer's F and I each take beside their work, and W half of it", low = 0, high = 1e6, default = 0 },
  { "routing_latency", "number", "seconds that an MoE layer takes each way beside its work", low = 0, high = 1e6, default = 0 },
  { "plain_routing_latency", "number", "seconds more where the all-to-all has no kernel of its own", low = 0, high = 1e6, default = 0 },
  { "alltoall_latency", "number", "seconds that a dispatch or combine takes beside its transfers", low = 0, high = 1e6, default = 0 },
  { "pair_share", "number", "F&B over F + B, as measured; 0: F&B is computed", low = 0, high = 1e6, default = 0 },
  { "host_link", "number", "bytes per second to the host, one direction; needed with optimizer_offload", low = 1e-9, high = 1e30, optional = true },
  { "host_memory_bandwidth", "number", "bytes per second of host memory that an update there reaches; needed likewise", low = 1e-9, high = 1e30,
    optional = true },
} }

classes.tier = { meaning = "One tier of a network.", given = true, fields = {
  { "reach", "integer", "GPUs within it; the last tier reaches all", low = 1, high = HUGE_SIZE },
  { "bandwidth", "number", "bytes per second per GPU, one direction, nominal", low = 1e-9, high = 1e30 },
  { "efficiency", "number", "achieved share of it", low = 1e-9, high = 10, default = 1 },
  { "latency", "number", "seconds", low = 0, high = 1e6, default = 0 },
  { "ring_latency", "number", "of a step of a ring that leaves the scale-up domain; 0: as latency", low = 0, high = 1e6, default = 0 },
  { "measured", "pipeplan.engine.measured", "what was measured of it, by kind of transfer", optional = true },
  { "messages", "pipeplan.engine.message[]", "measured messages, sizes ascending; at most 16", optional = true },
} }

classes.link = { meaning = "What a link reaches for one kind of transfer.", given = true, fields = {
  { "bandwidth", "number", "bytes per second per GPU, one direction", low = 1e-9, high = 1e30 },
  { "latency", "number", "seconds", low = 0, high = 1e6, default = 0 },
} }

classes.measured = { meaning = "Measurements of a tier, used instead of its bandwidth, efficiency and latency.", given = true, fields = {
  { "message", "pipeplan.engine.link", "one message", optional = true },
  { "ring", "pipeplan.engine.link", "a step of a ring collective", optional = true },
  { "alltoall", "pipeplan.engine.link", "an all-to-all in which every copy goes by itself", optional = true },
} }

classes.message = { meaning = "A measured message.", given = true, fields = {
  { "bytes", "number", "its size", low = 1e-9, high = 1e30 },
  { "seconds", "number", "what it takes", low = 0, high = 1e6 },
} }

classes.network = { meaning = "1 to 4 tiers from the innermost (scale-up) outwards; reach grows.", given = true, fields = {
  { "tiers", "pipeplan.engine.tier[]", "from the innermost outwards" },
  { "slower", "pipeplan.engine.slower", "what of it takes longer than computed, as a site's runs say", optional = true },
} }

local function factor(name, meaning)
  return { name, "number", "times the seconds of " .. meaning, low = 1e-3, high = 1e3, default = 1 }
end

classes.slower = { meaning = "Factors of what is sent, by what it is sent for; of engine.cost and searches.", given = true, fields = {
  factor("tensor", "TP's collectives"), factor("context", "CP's ring"), factor("expert", "all-to-all"),
  factor("data", "gradients and parameters"), factor("pipeline", "hand-overs between stages"),
} }

classes.stage = { meaning = "How many blocks of each kind a stage holds.", given = true, fields = counts() }

classes.stage_seconds = { meaning = "Seconds of a stage for one microbatch, executed alone.", given = true, fields = {
  { "forward", "number", "F", low = 0 }, { "input", "number", "I, recompute included", low = 0, default = 0 },
  { "weight", "number", "W", low = 0, default = 0 },
  { "full", "number", "B; default: input + weight", low = 0, optional = true },
  { "alltoall_forward", "number", "all-to-all in forward", low = 0, default = 0 },
  { "alltoall_backward", "number", "all-to-all in full", low = 0, default = 0 },
  { "tensor", "number", "TP collectives, part of the others", optional = true },
  { "context", "number", "the ring of keys and values", optional = true },
  { "context_exposed", "number", "what attention does not hide of it, part of the others", optional = true },
  { "host_forward", "number", "what the card waits for its host, part of forward", optional = true },
  { "host_backward", "number", "… part of input and full", optional = true },
  { "launch_forward", "number", "what the launches of F take the host", low = 0, default = 0 },
  { "launch_backward", "number", "… of B", low = 0, default = 0 },
  { "lost_forward", "number", "of host_forward: what the host's waiting for rows of experts costs", low = 0, default = 0 },
  { "lost_backward", "number", "… of host_backward", low = 0, default = 0 },
} }

-- ------------------------------------------------------------------------------------------------------------------- what they answer

classes.illegal = { meaning = "Why something cannot be built: an answer, not an error.", fields = {
  { "id", "string", "the engine's rule, such as engine.odd_depth" }, { "field", "string", "what has to change" },
  { "nearest", "number", "nearest legal value of that field", optional = true }, { "message", "string", "one sentence" },
} }

classes.block_parameters = { meaning = "Parameters of one block by how they are spread.", fields = {
  { "tensor", "integer", "over TP" }, { "replicated", "integer", "on every TP rank" }, { "expert", "integer", "over EP × expert TP" },
} }
classes.parameters_by_block = { fields = per_block "pipeplan.engine.block_parameters" }
classes.parameters = { meaning = "Parameters of a model.", fields = {
  { "total", "integer", "main model without MTP; tied weights once" }, { "active", "integer", "per token, embedding and head both counted" },
  { "active_without_embedding", "integer", "per token, input embedding not counted" }, { "mtp", "integer", "of the MTP modules" },
  { "tower", "integer", "of a tower of images, in none of the others" },
  { "adapters", "integer", "of adapters of rank 1 (LoRA) beside every linear weight" },
  { "blocks", "pipeplan.engine.parameters_by_block", "of one block of each kind" },
} }
classes.block_flops = { meaning = "Forward FLOPs of one block per token.", fields = {
  result("linear", "matrix products with dense weights"), result("expert", "routed experts"),
  result("attention", "causal core attention"), result("router", "which model FLOPs do not count"),
} }
classes.flops_by_block = { fields = per_block "pipeplan.engine.block_flops" }
classes.flops = { meaning = "Floating-point operations of a model.", fields = {
  result("per_token", "of training (forward and backward), MTP included"), { "blocks", "pipeplan.engine.flops_by_block", "forward, of one block of each kind" },
} }

local offloaded = result("host", "in host memory, for this GPU: offloaded master weights and moments, a copy of their gradients")

classes.block_bytes = { meaning = "Bytes of one block on one GPU.", fields = {
  result("parameters", "weights"), result("gradients", "accumulated gradients"), result("optimizer", "master weights and moments"), offloaded,
  result("stored", "activations of a microbatch from F to I (or B)"), result("pending", "… from I to W"),
  result("transient", "largest temporary"),
} }
classes.bytes_by_block = { fields = per_block "pipeplan.engine.block_bytes" }
classes.rank_bytes = { meaning = "Bytes on one rank.", fields = {
  result("parameters", "weights"), result("gradients", "accumulated gradients"), result("optimizer", "master weights and moments"),
  result("activations", "peak over the rank's actions"), result("transient", "largest temporary"),
  result("overhead", "as given"), result("total", "sum"), offloaded,
  result("tower", "of parameters, gradients and optimizer: what a tower of images takes"),
} }

classes.block_seconds = { meaning = "Seconds of one block for one microbatch on one rank, all-to-all apart.", fields = {
  result("forward", "F"), result("input", "I, recompute included"), result("weight", "W"), result("full", "B"),
  result("alltoall_forward", "dispatch and combine in F"), result("alltoall_backward", "… in B"),
  result("tensor", "TP collectives, part of the first three"), result("context", "the ring of keys and values"),
  result("context_exposed", "what attention does not hide of it, part of forward and input"),
  result("host_forward", "what the card waits for its host, part of forward"), result("host_backward", "… part of input and weight"),
  result("launch_forward", "what the launches of F take the host"), result("launch_backward", "… of B"),
  result("lost_forward", "of host_forward: what the host's waiting for rows of experts costs"), result("lost_backward", "… of host_backward"),
} }
classes.seconds_by_block = { fields = per_block "pipeplan.engine.block_seconds" }
classes.pass_terms = { meaning = "What the seconds of one pass of a block are made of: their sum.", fields = {
  result("products", "with dense weights"), result("grouped", "of experts"), result("attention", "its core"), result("moved", "element-wise kernels"),
  result("accumulated", "gradients read and written"), result("tensor", "TP collectives"), result("ring", "what attention does not hide of CP's ring"),
  result("latency", "of a layer, and of routing"), result("recompute", "what I computes again"), result("host", "waiting for the host"),
} }
classes.block_terms = { meaning = "What the seconds of one block are made of.", fields = {
  { "forward", "pipeplan.engine.pass_terms", "of F" }, { "input", "pipeplan.engine.pass_terms", "of I" },
  { "weight", "pipeplan.engine.pass_terms", "of W" },
} }
classes.terms_by_block = { fields = per_block "pipeplan.engine.block_terms" }
classes.step_seconds = { meaning = "Seconds that a step takes beside the pipeline.", fields = {
  result("gradient_sync", "reduction of gradients"), result("parameter_sync", "gather of weights"), result("optimizer", "update"),
  result("mirror", "sum of the two copies' gradients"), result("replicas", "sum of gradients between groups that each shard a state"),
  result("sharding", "what gathers and reductions of sharded parameters and gradients add"),
} }

classes.link_fit = { meaning = "What an nccl-tests table says of the tier it crosses.", fields = {
  { "transfer", '"message"|"ring"|"alltoall"', "what it measures" },
  result("bandwidth", "bytes per second per GPU, one direction"), result("latency", "seconds"),
  result("alpha", "of the line alpha + beta × bytes"), result("beta", "of the line"),
  result("median_error", "of the line over the points"), result("worst_error", "of the line over the points"),
  { "bound_inside", "boolean", "were the links inside a domain the slower? then bandwidth is a lower bound" },
} }

classes.closed_form = { meaning = "A closed form of the bubble.", fields = {
  { "seconds", "number", "idle seconds of the rank that idles most; nil: no law is known", optional = true }, { "exact", "boolean", "do its conditions hold?" },
  { "conditions", "string", "in words, with the source" },
  result("low", "it is at least this", true), result("high", "it is at most this", true),
} }

classes.traits = { meaning = "What a schedule is, independent of its size.", fields = {
  { "name", "string", "" }, { "title", "string", "as its paper writes it" }, { "family", "string", "zero_bubble, or the name itself" },
  { "placement", '"loop"|"v"|"bidirectional"', "of stages on ranks" },
  { "virtual", "integer", "stages per rank and direction that it needs; nil: any number from 2", optional = true },
  { "chains", "integer", "2 for bidirectional schedules" }, { "copies", "integer", "parameter copies on the devices" },
  { "split_backward", "boolean", "has I and W" }, { "overlaps", "boolean", "has F&B pairs" },
} }
classes.schedule_info = { meaning = "Size of a schedule.", fields = {
  { "kind", "string", "its name" }, { "ranks", "integer", "P" }, { "microbatches", "integer", "M" }, { "virtual", "integer", "V" },
  { "stages", "integer", "of all directions" }, { "chains", "integer", "directions" }, { "chunks_per_rank", "integer", "stages of a rank, at most" },
  { "limit", "integer", "most chunks that a rank may hold, where the schedule was planned under a limit", optional = true },
  { "split_backward", "boolean", "has I and W" }, { "overlaps", "boolean", "has F&B pairs" },
  { "actions", "integer", "of all ranks" }, { "placement", "integer[]", "rank of stage s at [s + 1]" },
} }
classes.action = { meaning = "One action of a rank; numbered from 0.", fields = {
  { "kind", '"F"|"B"|"I"|"W"|"FB"', "forward, whole backward, backward for input, for weights, forward with backward" },
  { "stage", "integer", "slice of the model" }, { "microbatch", "integer", "within its direction" },
  { "stage_b", "integer", "of the backward of FB", optional = true }, { "microbatch_b", "integer", "of the backward of FB", optional = true },
} }
classes.csv_options = { meaning = "What a CSV does not say.", given = true, fields = {
  { "directions", "integer", "2: the upper half of the stages is DualPipe's other direction", low = 1, high = 2, default = 1 },
} }
classes.csv_error = { meaning = "Why a CSV is no schedule.", fields = {
  { "id", "string", "what kind of error" }, { "field", "string", "what is wrong" }, { "message", "string", "one sentence" },
  { "line", "integer", "from 1", optional = true }, { "column", "integer", "cell of the line, from 1", optional = true },
} }
classes.wait = { meaning = "One rank of a deadlock's cycle.", fields = {
  { "rank", "integer", "that waits, from 0" }, { "position", "integer", "of the action it cannot run, in actions(rank)", optional = true },
  { "action", "string", "it cannot run", optional = true }, { "of", "integer", "rank it waits for" },
  { "what", "string", "action whose result it waits for" }, { "sends", "boolean", "until it is taken, instead of made" },
} }
classes.finding = { meaning = "What is wrong with a program.", fields = {
  { "id", "string", "what kind of error" }, { "field", "string", "what is wrong" }, { "message", "string", "one sentence" },
  { "rank", "integer", "where, from 0", optional = true }, { "position", "integer", "of the action, in actions(rank)", optional = true },
  { "action", "string", "itself", optional = true }, { "waits", "pipeplan.engine.wait[]", "cycle of a deadlock", optional = true },
} }
classes.peaks = { meaning = "Most chunks held at once, by rank ([rank + 1]).", fields = {
  { "freed_at_w", "integer[]", "counted until their W" }, { "freed_at_i", "integer[]", "counted until their I: the optimistic bound" },
} }
classes.interval = { fields = { result("start", "seconds"), result("finish", "seconds"),
  { "forward_finish", "number", "seconds; of a pair whose halves run in turn", optional = true },
  { "backward_start", "number", "seconds; of a pair whose halves run in turn", optional = true } } }
classes.simulation = { meaning = "A simulated step of the pipeline; times in seconds, lists by rank ([rank + 1]).", fields = {
  result("makespan", "last end on any rank"), result("max_span", "longest from a rank's first start to its last end"),
  result("max_idle", "of the rank that idles most"), result("min_idle", "of the rank that idles least"),
  result("span_bubble", "most that a rank waits between its first start and its last end: the zero-bubble papers' bubble"),
  result("bubble_fraction", "mean idle share: 1 − Σ busy / (P × makespan)"), result("max_idle_fraction", "max_idle / makespan"),
  result("span_bubble_fraction", "span_bubble / max_span"),
  { "busy", "number[]", "" }, { "idle", "number[]", "makespan − busy" }, { "span", "number[]", "own last end − own first start" },
  { "host_wait", "number[]", "seconds that the card waited for its host alone, if hosts were given", optional = true },
  { "peak_bytes", "pipeplan.engine.peak_bytes", "most activations held at once, if bytes were given", optional = true },
  { "intervals", "pipeplan.engine.interval[][]", "of each rank's actions, if asked for", optional = true },
  { "intervals_of", "fun(rank: integer, first?: integer, last?: integer): pipeplan.engine.interval[]",
    "the same of some of a rank's actions, as actions() counts them, if asked for", optional = true },
} }
classes.peak_bytes = { meaning = "Most bytes of activations held at once, by rank ([rank + 1]).", fields = {
  { "freed_at_w", "number[]", "counted until their W" }, { "freed_at_i", "number[]", "counted until their I: the optimistic bound" },
  { "runtime", "number[]", "what the runtime holds beside weights, their gradients and the model's input", optional = true },
  { "runtime_unknown", "string", "why runtime is not there", optional = true },
} }

local function extra(name, meaning) return { name, "number", "seconds of its " .. meaning, low = 0, default = 0 } end
classes.extra_seconds = { meaning = "What a stage does beside its layers: embedding, head and loss.", given = true, fields = {
  extra("F", "forward"), extra("I", "backward for input"), extra("W", "backward for weights"),
  { "B", "number", "seconds of its whole backward; default: I + W", low = 0, optional = true },
} }
local function handed(name, meaning) return { name, "number|number[]", "seconds, of every stage or one number a stage: " .. meaning, low = 0 } end
local function waits(name) return { name, "boolean|boolean[]", "of every stage, or one a stage; default: no", optional = true } end
classes.host_waits = { meaning = "Kinds of actions in which the host waits for its card, as for the row counts of experts.", given = true, fields = {
  waits "F", waits "I", waits "W", waits "B",
} }
classes.host_beyond = { meaning = "What an action takes, from when its host begins to when its card ends, where the card had nothing to do, "
    .. "beyond the larger of what each of the two takes.", given = true, fields = {
  handed("F", "forward"), handed("I", "backward for input"), handed("W", "backward for weights"),
  { "B", "number|number[]", "seconds, as above: whole backward; default: I + W", low = 0, optional = true },
} }
classes.host_seconds = { meaning = "What handing over an action takes its host while nothing else keeps it.", given = true, fields = {
  handed("F", "forward"), handed("I", "backward for input"), handed("W", "backward for weights"),
  { "B", "number|number[]", "seconds, as above: whole backward; default: I + W", low = 0, optional = true },
  { "beyond", "pipeplan.engine.host_beyond", "what actions take beyond both on a card that has nothing to do; default: nothing", optional = true },
  { "waits", "pipeplan.engine.host_waits", "for its card", optional = true },
} }
classes.hop = { meaning = "A message between neighbouring ranks.", given = true, fields = {
  { "latency", "number", "seconds", low = 0, default = 0 }, { "bandwidth", "number", "bytes per second, above 0" },
  { "bytes", "number", "of the message", low = 0 },
} }
classes.chunk_bytes = { meaning = "Bytes of activations of one microbatch.", given = true, fields = {
  { "stored", "number|number[]", "from F until B or I: of every stage, or one number a stage" },
  { "pending", "number|number[]", "from I until W, with gradients of outputs, and less what I frees, such as logits (default: stored)", optional = true },
  { "transient", "number|number[]", "of runtime: while a whole backward runs, beside what is held (default: 0)", optional = true },
  { "transient_forward", "number|number[]", "of runtime: the same of a forward (default: 0)", optional = true },
  { "transient_input", "number|number[]", "of runtime: the same of a backward for the input (default: 0)", optional = true },
  { "transient_weight", "number|number[]", "of runtime: the same of a backward for the weights (default: 0)", optional = true },
  { "deferred", "number|number[]", "of runtimes pipeplan and deepseek: held from I until W (default: stored)", optional = true },
  { "after_weight", "number|number[]", "of the same: from W until gradients are dropped, if they keep a history (default: 0)", optional = true },
  { "output", "number|number[]", "of runtime: the stage's result (default: message)", optional = true },
  { "kept", "number|number[]", "of PyTorch's runtimes: of the last stage's result, until the step ends (default: output)", optional = true },
  { "message", "number|number[]", "of runtime: one message (default: 0)", optional = true },
} }
classes.heat = { meaning = "A busy card runs into its power cap: actions take 1 + slope × max(0, u − onset) / (1 − onset) times as long, u "
  .. "being the running average of busy.", given = true, fields = {
  { "onset", "number", "busy share where it begins, below 1", low = 0 }, { "slope", "number", "at full load", low = 0 },
  { "tau", "number", "seconds of the average's time constant, above 0", low = 0 },
  { "rank_slope", "number[]", "slope of each rank's card, in place of slope", optional = true },
} }

return classes
