-- SPDX-License-Identifier: Apache-2.0
-- megatron_checks.lua: what Megatron-LM refuses of its flags, beside the rules that plans are held against: no plan says such a thing, so only
-- who reads a file asks (by = "engine"). Names of files as in megatron.lua, lines of @d98e8a64; what was seen on a CPU with the PyPI package
-- 0.19.2 is in tests/data/frameworks.

local integers = require "pipeplan.base.integers"
local layers = require "pipeplan.catalog.frameworks.megatron_layers"

local function at(where) return "https://github.com/NVIDIA/Megatron-LM/tree/d98e8a64, " .. where end

-- Switches that are newer than that.
local function in_0192(where) return "https://pypi.org/project/megatron-core/0.19.2, core/" .. where .. ": __post_init__" end

local checks = {}

-- What rules here call the value of a key that is no field of the vocabulary.
checks.facts = {
  account_embedding = "--account-for-embedding-in-pipeline-split",
  account_loss = "--account-for-loss-in-pipeline-split",
  accumulates_fp32 = "--accumulate-allreduce-grads-in-fp32",
  activation_offload = "--cpu-offloading",
  attention_dropout = "--attention-dropout",
  attention_variant = "--experimental-attention-variant",
  attention_kind = "--multi-latent-attention",
  batch_given = "--global-batch-size",
  batch_schedule = "--step-batch-size-schedule",
  bf16 = "--bf16",
  bias = "--disable-bias-linear",
  bias_gelu_fusion = "--no-bias-gelu-fusion",
  capacity_factor = "--moe-expert-capacity-factor",
  checkpoint_format = "--ckpt-format",
  context_kinds = "--cp-comm-type",
  context_levels = "--hierarchical-context-parallel-sizes",
  cpu_offload = "--optimizer-cpu-offload",
  data_path = "--data-path",
  decoder_layers = "--num-layers",
  deepep = "--moe-enable-deepep",
  defer_embedding = "--defer-embedding-wgrad-compute",
  delay_wgrad = "--delay-wgrad-compute",
  dispatcher = "--moe-token-dispatcher-type",
  distributes_saved = "--distribute-saved-activations",
  distributed_optimizer = "--use-distributed-optimizer",
  eval_batch = "--eval-global-batch-size",
  eval_micro_batch = "--eval-micro-batch-size",
  early_release = "--ep-overlap-early-attn-memory-release",
  encoder_layers = "--encoder-num-layers",
  expert_width = "--moe-ffn-hidden-size",
  flex_backend = "--moe-flex-dispatcher-backend",
  first_layers = "--decoder-first-pipeline-num-layers",
  fp16 = "--fp16",
  fp4 = "--fp4-format",
  fp4_gather = "--fp4-param-gather",
  fp8 = "--fp8-format",
  fp8_gather = "--fp8-param-gather",
  fused_accumulation = "--no-gradient-accumulation-fusion",
  fused_residual_norm = "--fused-residual-rmsnorm",
  grouped_bias = "--moe-single-grouped-bias",
  grouped_gemm = "--moe-grouped-gemm",
  grouped_weight = "--moe-single-grouped-weight",
  grouped_queries = "--group-query-attention",
  hidden_dropout = "--hidden-dropout",
  hybrid_context = "--hybrid-context-parallel",
  hybrid_pattern = "--hybrid-layer-pattern",
  last_layers = "--decoder-last-pipeline-num-layers",
  layer_pattern = "--moe-layer-freq",
  layers_a_chunk = "--num-layers-per-virtual-pipeline-stage",
  layout = "--pipeline-model-parallel-layout",
  learning_rate = "--lr",
  least_rate = "--min-lr",
  linear_layers = "--linear-attention-freq",
  main_grads = "--main-grads-dtype",
  main_parameters = "--main-params-dtype",
  max_positions = "--max-position-embeddings",
  megatron_fsdp = "--use-megatron-fsdp",
  mock_data = "--mock-data",
  moments = "--exp-avg-dtype",
  second_moments = "--exp-avg-sq-dtype",
  mtp_given = "--mtp-num-layers",
  norm_kind = "--normalization",
  pads_fp8 = "--moe-router-padding-for-fp8",
  pads_quantized = "--moe-router-padding-for-quantization",
  pads_to_capacity = "--moe-pad-expert-input-to-capacity",
  overlap_experts = "--overlap-moe-expert-parallel-comm",
  overlap_gradients = "--overlap-grad-reduce",
  overlap_optimizer_step = "--overlap-param-gather-with-optimizer-step",
  overlap_parameters = "--overlap-param-gather",
  p2p_alone = "--no-overlap-p2p-communication",
  positions = "--position-embedding-type",
  no_positions = "--no-position-embedding",
  optimizer_name = "--optimizer",
  precision_aware = "--use-precision-aware-optimizer",
  query_groups_given = "--num-query-groups",
  rate_decay_iters = "--lr-decay-iters",
  rate_decay_samples = "--lr-decay-samples",
  rate_warmup_fraction = "--lr-warmup-fraction",
  rate_warmup_iters = "--lr-warmup-iters",
  rate_warmup_samples = "--lr-warmup-samples",
  rotary = "--use-rotary-position-embeddings",
  router_balance = "--moe-router-load-balancing-type",
  router_bias = "--moe-router-enable-expert-bias",
  router_groups = "--moe-router-num-groups",
  router_groups_taken = "--moe-router-group-topk",
  router_presoftmax = "--moe-router-pre-softmax",
  router_score = "--moe-router-score-function",
  router_topk = "--moe-router-topk",
  save = "--save",
  save_interval = "--save-interval",
  skip_train = "--skip-train",
  recompute_activations = "--recompute-activations",
  recompute_granularity = "--recompute-granularity",
  recompute_method = "--recompute-method",
  recompute_modules = "--recompute-modules",
  recompute_num_layers = "--recompute-num-layers",
  squared_relu = "--squared-relu",
  sequence_parallel = "--sequence-parallel",
  tensor_overlap = "--tp-comm-overlap",
  shared_overlap = "--moe-shared-expert-overlap",
  torch_fsdp = "--use-torch-fsdp2",
  train_iters = "--train-iters",
  train_samples = "--train-samples",
  warmup_flush = "--overlap-p2p-communication-warmup-flush",
  virtual_given = "--num-virtual-stages-per-pipeline-rank",
}

-- Keys without which Megatron does not start: true, or the key that may stand for it.
checks.required = {
  ["--micro-batch-size"] = true,
  ["--seq-length"] = "--encoder-seq-length",
  ["--max-position-embeddings"] = true,
  ["--num-layers"] = "--encoder-num-layers",
  ["--hidden-size"] = true,
  ["--num-attention-heads"] = true,
}

-- Modules that may be computed again (transformer_config.py:1766-1781, and since).
checks.recompute_modules = { "core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts", "gdn_norm_out", "gdp_in_proj",
                             "gdp_qkv", "mhc" }

local overlap = at "transformer_config.py:3002-3046"

local function has(list, name)
  for _, entry in ipairs(list or {}) do
    if entry == name then return true end
  end
  return false
end

local function ways(f)
  return (f.layers_a_chunk and 1 or 0) + (f.virtual_given and 1 or 0) + (f.layout and 1 or 0)
end

local function ends(f) return f.first_layers ~= nil or f.last_layers ~= nil end

local function accounts(f) return f.account_embedding or f.account_loss end

local list = {
  -- layers over stages
  { id = "megatron.ways_of_chunks", when = function(f) return not f.hybrid_pattern and ways(f) > 1 end,
    message = "{framework} takes one of --num-layers-per-virtual-pipeline-stage, --num-virtual-stages-per-pipeline-rank and "
              .. "--pipeline-model-parallel-layout", source = at "arguments.py:928" },
  { id = "megatron.chunk_ends", when = function(f) return not f.hybrid_pattern and f.layers_a_chunk ~= nil and ends(f) end,
    message = "{framework}: --num-layers-per-virtual-pipeline-stage goes with no number of layers of the first or last rank; "
              .. "--num-virtual-stages-per-pipeline-rank does", source = at "arguments.py:955" },
  { id = "megatron.ends_accounts", when = function(f) return not f.hybrid_pattern and ends(f) and accounts(f) end,
    message = "{framework}: a number of layers of the first or last rank, and embedding or loss accounted for: one of them",
    source = at "transformer_config.py:2229" },
  { id = "megatron.layout_others", when = function(f) return not f.hybrid_pattern and f.layout ~= nil and (ends(f) or accounts(f)) end,
    message = "{framework}: a layout says where every layer goes: no other key of layers beside it", source = at "transformer_config.py:2245" },
  { id = "megatron.hybrid_layout",
    when = function(f)
      if f.hybrid_pattern == nil then return false end
      return ways(f) > 0 or accounts(f) or ends(f) and f.hybrid_pattern:match "^[^/]*":find("|", 1, true) ~= nil
    end,
    message = "{framework}: | in --hybrid-layer-pattern gives the stages: no other key of layers beside it; without one, those of the first "
              .. "and last rank", source = at "arguments.py:799-838" },
  { id = "megatron.layers", about = "layers",
    when = function(f)
      if f.hybrid_pattern or ways(f) > 1 or (ends(f) and accounts(f)) or f.layout and (ends(f) or accounts(f)) then return false end
      if f.layers_a_chunk and ends(f) then return false end
      return layers.problem(f) ~= nil
    end,
    message = "{framework}: {layers_problem}",
    nearest = function(f)
      local number = layers.nearest(f)
      return number and { field = "layers", value = number }
    end,
    source = at "transformer_block.py:156-201, transformer_config.py:2229-2415, arguments.py:917-997; a layout: pipeline_parallel_layer_layout.py:78-150" },
  { id = "megatron.p2p_depth", virtual = { over = 1 }, p2p_alone = true, pipeline_parallel = { at_most = 2 },
    message = "{framework}: chunks without overlapped messages between ranks want P over 2: P is {pipeline_parallel}", source = at "arguments.py:1000" },
  { id = "megatron.one_chunk", severity = "note", virtual_given = 1,
    message = "{framework} turns off one virtual stage a rank: plain 1F1B", source = at "arguments.py:978" },

  -- batches
  { id = "megatron.two_batches", when = function(f) return f.batch_given ~= nil and f.batch_schedule ~= nil end,
    message = "{framework} takes --global-batch-size or --step-batch-size-schedule: together they are a ValueError on any number of GPUs",
    source = at "arguments.py:699" },
  { id = "megatron.ramp", about = "batch_schedule", when = function(f) return f.batch_schedule ~= nil and f.ramp_problem ~= nil end,
    message = "{framework}: --step-batch-size-schedule: {ramp_problem}", source = at "num_microbatches_calculator.py:501-560" },
  { id = "megatron.ramp_batches", severity = "warning", about = "batch_schedule",
    when = function(f)
      if not f.ramp then return false end
      local step = f.micro_batch_size * f.data_parallel
      for i = 2, #f.ramp do
        if f.ramp[i][2] % step ~= 0 then return true end
      end
      return false
    end,
    message = "{framework}: a later batch of --step-batch-size-schedule does not divide by microbatch size {micro_batch_size} × DP {data_parallel}: "
              .. "the run ends where it begins, unless it is on other GPUs by then", source = at "num_microbatches_calculator.py:561-590" },

  -- overlap of experts' communication
  { id = "megatron.overlap_virtual", overlap_experts = true, pipeline_parallel = { over = 1 }, virtual = { at_most = 1 },
    message = "{framework}: --overlap-moe-expert-parallel-comm with a pipeline wants virtual stages: V is {virtual}", source = overlap },
  { id = "megatron.overlap_dispatcher", overlap_experts = true, dispatcher = "allgather",
    message = "{framework}: --overlap-moe-expert-parallel-comm wants --moe-token-dispatcher-type alltoall or flex, the default is allgather",
    source = overlap },
  { id = "megatron.overlap_shared", overlap_experts = true, shared_overlap = true,
    message = "{framework}: --overlap-moe-expert-parallel-comm goes with no --moe-shared-expert-overlap", source = overlap },
  { id = "megatron.overlap_method", overlap_experts = true,
    when = function(f) return f.recompute_granularity ~= "full" and (f.recompute_method ~= nil or f.recompute_num_layers ~= nil) end,
    message = "{framework}: --overlap-moe-expert-parallel-comm goes with no --recompute-method and no --recompute-num-layers", source = overlap },
  { id = "megatron.delay_wgrad", delay_wgrad = true, overlap_experts = false,
    message = "{framework}: --delay-wgrad-compute wants --overlap-moe-expert-parallel-comm", source = at "transformer_config.py:3074" },
  { id = "megatron.shared_dispatcher", shared_overlap = true, dispatcher = "allgather",
    when = function(f) return f.shared_ffn ~= nil and f.shared_ffn > 0 end,
    message = "{framework}: --moe-shared-expert-overlap wants --moe-token-dispatcher-type alltoall or flex, the default is allgather",
    source = at "transformer_config.py:1820" },
  { id = "megatron.flex", dispatcher = "flex",
    when = function(f) return f.experts > 0 and f.flex_backend ~= "hybridep" and f.tensor_parallel * f.expert_parallel <= 1 end,
    message = "{framework}: the flex dispatcher wants TP × EP over 1, but for --moe-flex-dispatcher-backend hybridep",
    source = at "token_dispatcher.py:1836-1855" },

  { id = "megatron.early_release", early_release = true, overlap_experts = false,
    message = "{framework}: --ep-overlap-early-attn-memory-release wants --overlap-moe-expert-parallel-comm",
    source = in_0192 "transformer/transformer_config.py" },
  { id = "megatron.warmup_flush", warmup_flush = true, when = function(f) return f.virtual <= 1 or f.p2p_alone end,
    message = "{framework}: --overlap-p2p-communication-warmup-flush wants virtual stages and messages between ranks that overlap: V is {virtual}",
    source = in_0192 "model_parallel_config.py" },

  -- experts, attention and activations
  { id = "megatron.pads_quantized", when = function(f) return (f.pads_quantized or f.pads_fp8) and f.precision ~= "fp8" and f.fp4 == nil end,
    message = "{framework}: --moe-router-padding-for-quantization wants --fp8-format or --fp4-format",
    source = in_0192 "transformer/transformer_config.py" },
  { id = "megatron.pads_dispatcher", dispatcher = "allgather",
    when = function(f) return (f.pads_quantized or f.pads_fp8) and (f.precision == "fp8" or f.fp4 ~= nil) end,
    message = "{framework}: --moe-router-padding-for-quantization wants --moe-token-dispatcher-type alltoall or flex, the default is allgather",
    source = in_0192 "transformer/transformer_config.py" },
  { id = "megatron.single_grouped", grouped_gemm = false, when = function(f) return f.grouped_weight or f.grouped_bias end,
    message = "{framework}: --moe-single-grouped-weight and --moe-single-grouped-bias want --moe-grouped-gemm",
    source = in_0192 "transformer/transformer_config.py" },
  { id = "megatron.pads_to_capacity", pads_to_capacity = true, when = function(f) return f.capacity_factor == nil end,
    message = "{framework}: --moe-pad-expert-input-to-capacity wants --moe-expert-capacity-factor",
    source = in_0192 "transformer/transformer_config.py" },
  { id = "megatron.linear_attention", attention_variant = "gated_delta_net", when = function(f) return f.linear_layers == nil end,
    message = "{framework}: --experimental-attention-variant gated_delta_net wants --linear-attention-freq",
    source = in_0192 "transformer/transformer_config.py" },
  { id = "megatron.fused_residual", fused_residual_norm = true, norm_kind = "LayerNorm",
    message = "{framework}: --fused-residual-rmsnorm wants --normalization RMSNorm, the default is LayerNorm",
    source = in_0192 "transformer/transformer_config.py" },
  { id = "megatron.squared_relu", squared_relu = true, when = function(f) return f.bias and f.bias_gelu_fusion end,
    message = "{framework}: --squared-relu with biases wants --no-bias-gelu-fusion", source = in_0192 "transformer/transformer_config.py" },

  -- recompute
  { id = "megatron.recompute_full", recompute_granularity = "full",
    when = function(f) return f.recompute_method == nil or f.recompute_num_layers == nil end,
    message = "{framework}: --recompute-granularity full wants --recompute-method and --recompute-num-layers",
    source = at "transformer_config.py:1901-1932" },
  { id = "megatron.recompute_moe_layer", recompute_granularity = "full", recomputes_moe_layer = true,
    message = "{framework}: --moe-layer-recompute goes with no --recompute-granularity full", source = at "transformer_config.py:2021" },
  { id = "megatron.recompute_selective", recompute_granularity = "selective",
    when = function(f) return f.recompute_method ~= nil or f.recompute_num_layers ~= nil end,
    message = "{framework}: --recompute-granularity selective goes with no --recompute-method and no --recompute-num-layers",
    source = at "arguments.py:1425, transformer_config.py:1901-1932" },
  { id = "megatron.recompute_module", about = "recompute_modules", recompute_granularity = "selective",
    when = function(f)
      for _, name in ipairs(f.recompute_modules) do
        if not has(checks.recompute_modules, name) then return true end
      end
      return false
    end,
    message = "{framework}: --recompute-modules takes " .. table.concat(checks.recompute_modules, ", "),
    source = at "transformer_config.py:2000: allowed_modules" },
  { id = "megatron.recompute_endless", recompute_granularity = "full", recompute_method = "uniform",
    when = function(f) return f.recompute_num_layers ~= nil and f.recompute_num_layers < 1 end,
    message = "{framework}: --recompute-method uniform goes on in steps of --recompute-num-layers: of {recompute_num_layers} it never ends",
    source = at "core/recompute.py: _checkpointed_forward" },
  { id = "megatron.recompute_moe_act", recompute_granularity = "selective", grouped_gemm = false,
    when = function(f) return has(f.recompute_modules, "moe_act") end,
    message = "{framework}: to recompute moe_act wants --moe-grouped-gemm", source = at "transformer_config.py:1940" },
  { id = "megatron.recompute_mla", recompute_granularity = "selective",
    when = function(f) return has(f.recompute_modules, "mla_up_proj") and f.attention_kind ~= "mla" end,
    message = "{framework}: to recompute mla_up_proj wants --multi-latent-attention", source = at "transformer_config.py:1940" },

  -- what goes with no pipeline
  { id = "megatron.torch_fsdp_pipeline", torch_fsdp = true, pipeline_parallel = { over = 1 },
    message = "{framework}: --use-torch-fsdp2 goes with no pipeline: P is {pipeline_parallel}", source = at "arguments.py:1034" },
  { id = "megatron.hybrid_context_pipeline", hybrid_context = true, pipeline_parallel = { over = 1 },
    message = "{framework}: --hybrid-context-parallel goes with no pipeline: P is {pipeline_parallel}", source = at "arguments.py:1444" },
  { id = "megatron.offload_pipeline", activation_offload = true, pipeline_parallel = { over = 1 },
    message = "{framework}: --cpu-offloading of activations goes with no pipeline: P is {pipeline_parallel}",
    source = at "transformer_config.py:1891" },
  { id = "megatron.torch_fsdp_experts", torch_fsdp = true, expert_parallel = { over = 1 },
    message = "{framework}: --use-torch-fsdp2 goes with no expert parallelism: EP is {expert_parallel}", source = at "arguments.py:1036" },
  { id = "megatron.defer_embedding", defer_embedding = true, pipeline_parallel = 1,
    message = "{framework}: --defer-embedding-wgrad-compute wants a pipeline", source = at "model_parallel_config.py:545" },

  -- what hides data parallelism's traffic
  { id = "megatron.gather_optimizer", overlap_parameters = true,
    when = function(f)
      return not f.distributed_optimizer and not f.megatron_fsdp and not f.torch_fsdp and not f.layer_wise and f.optimizer_name ~= "dist_muon"
    end,
    message = "{framework}: --overlap-param-gather wants --use-distributed-optimizer", source = at "arguments.py:1024-1027" },
  { id = "megatron.gather_gradients", overlap_parameters = true, overlap_gradients = false,
    message = "{framework}: --overlap-param-gather wants --overlap-grad-reduce", source = at "arguments.py:1024" },
  { id = "megatron.gather_step", overlap_optimizer_step = true,
    when = function(f) return f.virtual <= 1 or not f.distributed_optimizer and not f.layer_wise or not f.overlap_parameters end,
    message = "{framework}: --overlap-param-gather-with-optimizer-step wants virtual stages, --use-distributed-optimizer and "
              .. "--overlap-param-gather", source = at "arguments.py:1066" },

  -- precision and state
  { id = "megatron.two_precisions", when = function(f) return f.bf16 and f.fp16 end,
    message = "{framework} takes --bf16 or --fp16", source = at "arguments.py:1195" },
  { id = "megatron.fp32", severity = "note", precision = "fp32",
    message = "{framework} computes in fp32 where neither --bf16 nor --fp16 is said", source = at "arguments.py:1194-1207, where params_dtype is set" },
  { id = "megatron.offload_wants", cpu_offload = true, precision_aware = false,
    message = "{framework}: --optimizer-cpu-offload wants --use-precision-aware-optimizer", source = at "arguments.py:1884" },

  -- the model
  { id = "megatron.head_dim", when = function(f) return f.hidden ~= nil and f.head_dim == nil and f.hidden % f.heads ~= 0 end,
    message = "{framework}: {heads} heads do not divide a hidden size of {hidden}, and no --kv-channels", source = at "arguments.py:1331" },
  { id = "megatron.positions", when = function(f) return f.max_positions ~= nil and f.max_positions < f.sequence_length end,
    message = "{framework}: sequences of {sequence_length} are longer than --max-position-embeddings {max_positions}",
    nearest = function(f) return { field = "max_positions", value = f.sequence_length } end, source = at "arguments.py:1354" },
  { id = "megatron.mtp_positions", mtp_layers = { over = 0 },
    when = function(f) return f.positions ~= "rope" and f.positions ~= "none" end,
    message = "{framework}: MTP layers want --position-embedding-type rope or none: {positions}", source = at "arguments.py:883" },
  { id = "megatron.query_groups_ignored", severity = "warning", grouped_queries = false,
    when = function(f)
      return f.attention_kind ~= "mla" and f.query_groups_given ~= nil and f.query_groups_given ~= f.heads and f.query_groups_given > 1
    end,
    message = "{framework} ignores --num-query-groups {query_groups_given} without --group-query-attention: every head has keys of its own",
    source = at "argument_utils.py:330-333, transformer_config.py:1458" },
  { id = "megatron.hidden_dropout",
    when = function(f) return f.hidden_dropout ~= nil and (f.hidden_dropout < 0 or f.hidden_dropout > 1) end,
    message = "{framework}: --hidden-dropout {hidden_dropout} is no probability: the first step ends", source = at "core/fusions/fused_bias_dropout.py" },
  { id = "megatron.attention_dropout",
    when = function(f) return f.attention_dropout ~= nil and (f.attention_dropout < 0 or f.attention_dropout > 1) end,
    message = "{framework}: --attention-dropout {attention_dropout} is no probability: the model is not built", source = at "core/transformer/dot_product_attention.py" },
  { id = "megatron.query_group_size", about = "query_groups_given",
    when = function(f)   -- Bridge has no switch of groups: those that are said hold
      local groups = f.query_groups_given
      if f.grouped_queries == false or f.attention_kind == "mla" or groups == nil then return false end
      return groups < 1 or f.heads % groups ~= 0
    end,
    message = "{framework}: {heads} heads are no multiple of --num-query-groups {query_groups_given}: the first step ends at queries that have no group",
    source = at "core/transformer/attention.py: get_query_key_value_tensors" },
  { id = "megatron.sequence_alone", severity = "note", sequence_parallel = true, tensor_parallel = 1,
    message = "{framework} ignores --sequence-parallel at TP 1, with a warning", source = at "arguments.py:1433" },
  { id = "megatron.sequence_experts", tensor_parallel = { over = 1 }, experts = { over = 0 }, sequence_parallel = false,
    when = function(f) return f.train_iters_said or f.train_samples_said end,   -- only who trains is refused
    message = "{framework}: experts beside TP want --sequence-parallel: the first step ends in a ValueError",
    source = at "moe_layer.py:636" },
  { id = "megatron.sequence_cut", tensor_parallel = { over = 1 }, sequence_parallel = true,
    when = function(f) return f.sequence_length % (f.tensor_parallel * f.context_parallel) ~= 0 end,
    message = "{framework}: sequence parallelism cuts sequences of {sequence_length} among TP {tensor_parallel} × CP {context_parallel}, which does "
              .. "not divide them", source = at "tensor_parallel/mappings.py: _split_along_first_dim" },
  { id = "megatron.ffn", experts = 0, tensor_parallel = { over = 1 },
    when = function(f) return f.ffn ~= nil and f.ffn % f.tensor_parallel ~= 0 end,
    message = "{framework}: TP {tensor_parallel} does not divide a feed-forward of {ffn}", source = at "tensor_parallel/layers.py: RowParallelLinear" },
  { id = "megatron.context_levels", when = function(f)
      if not f.context_levels then return has(f.context_kinds, "a2a+p2p") end
      local product = 1
      for _, text in ipairs(f.context_levels) do product = product * (tonumber(text) or 0) end
      return product ~= f.context_parallel
    end,
    message = "{framework}: --cp-comm-type a2a+p2p wants --hierarchical-context-parallel-sizes, whose product is CP {context_parallel}",
    source = at "arguments.py: hierarchical_context_parallel_sizes" },
  { id = "megatron.two_layers", when = function(f) return f.encoder_layers ~= nil and f.decoder_layers ~= nil end,
    message = "{framework} takes --num-layers or --encoder-num-layers", source = at "arguments.py: encoder_num_layers" },
  { id = "megatron.optimizer_instances", replicas = { over = 1 },
    when = function(f) return f.data_parallel * f.context_parallel % f.replicas ~= 0 end,
    message = "{framework}: --num-distributed-optimizer-instances {replicas} does not divide DP {data_parallel} × CP {context_parallel}",
    source = at "parallel_state.py: num_distributed_optimizer_instances" },
  { id = "megatron.mla_groups", attention_kind = "mla", grouped_queries = true,
    message = "{framework}: --multi-latent-attention goes with no --group-query-attention", source = at "arguments.py:1973" },
  { id = "megatron.no_positions", no_positions = true, when = function(f) return f.positions ~= "rope" and not f.rotary end,
    message = "{framework}: --no-position-embedding wants --position-embedding-type rope", source = at "arguments.py:1633" },
  { id = "megatron.expert_width", experts = 0, expert_width = { over = 0 },
    when = function(f)   -- dense layers among others in the pattern: taken, and ignored with a warning
      local pattern = tostring(f.layer_pattern or 1)
      return not pattern:find "[%[,]%s*0" and (tonumber(pattern) or 1) <= 1
    end,
    message = "{framework}: --moe-ffn-hidden-size without --num-experts", source = at "transformer_config.py:1689-1705" },
  { id = "megatron.layer_pattern", about = "layer_pattern", experts = { over = 0 },
    when = function(f)
      local pattern = not f.hybrid_pattern and layers.moe_pattern(f.layer_pattern or 1, f.layers)
      if not pattern then return false end
      if pattern.every then return pattern.every < 1 end
      for _, kind in ipairs(pattern) do
        if kind ~= 0 and kind ~= 1 then return true end
      end
      return #pattern ~= f.layers
    end,
    message = "{framework}: --moe-layer-freq is a number from 1 on, or a list of 0 and 1 for each of {layers} layers",
    source = at "gpt_layer_specs.py: moe_layer_pattern" },
  { id = "megatron.router_most", experts = { over = 0 }, when = function(f) return f.router_topk > f.experts end,
    message = "{framework}: {router_topk} experts a token of {experts}: torch.topk ends the first step", source = at "moe_utils.py: topk_routing_with_score_function" },
  { id = "megatron.router_groups", experts = { over = 0 },
    when = function(f)
      local groups = f.router_groups
      if f.router_groups_taken == 0 then return false end
      return groups == nil or groups < 1 or f.experts % groups ~= 0 or f.router_groups_taken > groups
    end,
    message = "{framework}: --moe-router-group-topk wants --moe-router-num-groups, at least as many, that divides {experts} experts",
    source = at "transformer_config.py:2671-2688" },
  { id = "megatron.router_topk", experts = { over = 0 }, router_topk = 1, router_presoftmax = false, router_score = "softmax",
    when = function(f) return not has(f.router_balance, "sinkhorn") end,
    message = "{framework}: one expert a token wants --moe-router-pre-softmax: after the choice a softmax has no gradient",
    source = at "transformer_config.py:2661-2668" },
  { id = "megatron.router_bias", router_bias = true, router_score = "softmax",
    message = "{framework}: --moe-router-enable-expert-bias wants --moe-router-score-function sigmoid", source = at "transformer_config.py:2617" },
  { id = "megatron.deepep", deepep = true, when = function(f) return f.dispatcher ~= "flex" end,
    message = "{framework}: --moe-enable-deepep wants --moe-token-dispatcher-type flex", source = at "transformer_config.py:1743" },
  { id = "megatron.shared_recompute", recompute_granularity = "selective", shared_overlap = true,
    when = function(f) return has(f.recompute_modules, "shared_experts") end,
    message = "{framework}: to recompute shared_experts goes with no --moe-shared-expert-overlap", source = at "transformer_config.py:1991" },
  { id = "megatron.offload_recompute", activation_offload = true, when = function(f) return f.recompute_granularity ~= nil end,
    message = "{framework}: --cpu-offloading of activations goes with no recompute", source = at "transformer_config.py:1896" },
  { id = "megatron.saved_activations", distributes_saved = true,
    when = function(f)
      return f.tensor_parallel == 1 or f.recompute_granularity ~= "full" or f.recompute_method == nil or f.sequence_parallel
    end,
    message = "{framework}: --distribute-saved-activations wants TP, full recompute with a method, and no --sequence-parallel",
    source = at "arguments.py:1410-1418; transformer_config.py:1934" },
  { id = "megatron.tensor_overlap", tensor_overlap = true, when = function(f) return not f.sequence_parallel or f.tensor_parallel == 1 end,
    message = "{framework}: --tp-comm-overlap wants --sequence-parallel", source = at "arguments.py:1441" },

  -- state of the optimizer
  "megatron.precision_aware",
  { id = "megatron.precision_aware_alone", precision_aware = true,
    when = function(f)   -- where it keeps a state in less than fp32, the rule above says so
      local trains = f.train_iters_said or f.train_samples_said
      return trains and f.optimizer_state ~= "reduced" and not f.distributed_optimizer and not f.megatron_fsdp and not f.layer_wise
    end,
    message = "{framework}: --use-precision-aware-optimizer wants --use-distributed-optimizer", source = at "optimizer/__init__.py:1057" },
  { id = "megatron.state_alone", precision_aware = false, megatron_fsdp = false,
    when = function(f)
      return f.main_grads ~= "fp32" or f.main_parameters ~= "fp32" or f.moments ~= "fp32" or f.second_moments ~= "fp32"
    end,
    message = "{framework}: --main-grads-dtype, --main-params-dtype and --exp-avg-dtype want --use-precision-aware-optimizer", source = at "optimizer_config.py:467-480" },
  { id = "megatron.accumulates_fp32", accumulates_fp32 = true, bf16 = true, when = function(f) return f.main_grads ~= "fp32" end,
    message = "{framework}: --accumulate-allreduce-grads-in-fp32 goes with --main-grads-dtype fp32 only", source = at "arguments.py:1209" },
  { id = "megatron.fp8_gather", fp8_gather = true,
    when = function(f)
      local trains = f.train_iters_said or f.train_samples_said   -- inference gathers in fp8 without an optimizer
      return trains and not f.distributed_optimizer and not f.megatron_fsdp and not f.torch_fsdp and not f.layer_wise
    end,
    message = "{framework}: --fp8-param-gather wants --use-distributed-optimizer", source = at "arguments.py:1095" },
  { id = "megatron.fp8_gather_alone", fp8_gather = true, when = function(f) return f.fp8 == nil end,
    message = "{framework}: --fp8-param-gather wants --fp8-format", source = at "transformer_config.py:1566" },
  { id = "megatron.fp4", when = function(f) return f.fp4 ~= nil and f.fp8 ~= nil or f.fp4_gather and f.fp4 == nil end,
    message = "{framework}: --fp4-format goes with no --fp8-format, and --fp4-param-gather wants it", source = at "arguments.py:1100-1105" },
  { id = "megatron.fsdp_format", megatron_fsdp = true, when = function(f) return f.checkpoint_format ~= "fsdp_dtensor" end,
    message = "{framework}: --use-megatron-fsdp wants --ckpt-format fsdp_dtensor", source = at "arguments.py:1169" },
  { id = "megatron.format_fsdp", megatron_fsdp = false, checkpoint_format = "fsdp_dtensor",
    message = "{framework}: --ckpt-format fsdp_dtensor wants --use-megatron-fsdp", source = at "arguments.py:1675" },
  "megatron.sharded_optimizer",
  { id = "megatron.fsdp_optimizer", megatron_fsdp = true,
    when = function(f)   -- where it shards gradients, sharded_optimizer says so of Muon
      return f.optimizer_name ~= "adam" and f.optimizer_name ~= "sgd" and (f.optimizer ~= "muon" or (f.zero or 0) < 2)
    end,
    message = "{framework}: --use-megatron-fsdp goes with --optimizer adam or sgd", source = at "arguments.py:1150" },
  { id = "megatron.torch_fsdp", torch_fsdp = true,
    when = function(f) return f.distributed_optimizer or f.fused_accumulation or f.tied_embeddings or f.fp16 end,
    message = "{framework}: --use-torch-fsdp2 wants --no-gradient-accumulation-fusion and --untie-embeddings-and-output-weights, and goes with "
              .. "neither --use-distributed-optimizer nor --fp16", source = at "arguments.py:1031-1047" },

  -- how long, how fast, from where
  { id = "megatron.save_interval", when = function(f) return f.save ~= nil and (f.save_interval == nil or f.save_interval < 1) end,
    message = "{framework}: --save wants --save-interval", source = at "arguments.py:1362" },
  { id = "megatron.iterations", skip_train = false,
    when = function(f)
      return f.train_iters ~= nil and f.train_iters > 0
             and (f.train_samples ~= nil or f.rate_decay_samples ~= nil or f.rate_warmup_samples ~= 0)
    end,
    message = "{framework}: --train-iters goes with no --train-samples, --lr-decay-samples, --lr-warmup-samples", source = at "arguments.py:1276-1284" },
  { id = "megatron.samples", skip_train = false,
    when = function(f)
      return f.train_samples ~= nil and f.train_samples > 0 and f.train_iters == nil and (f.rate_decay_iters ~= nil or f.rate_warmup_iters ~= 0)
    end,
    message = "{framework}: --train-samples goes with no --lr-decay-iters and no --lr-warmup-iters", source = at "arguments.py:1290-1298" },
  { id = "megatron.warm_up", skip_train = false,
    when = function(f)
      if f.rate_warmup_fraction == nil then return false end
      return f.train_iters ~= nil and f.train_iters > 0 and f.rate_warmup_iters ~= 0
             or f.train_samples ~= nil and f.train_samples > 0 and f.rate_warmup_samples ~= 0
    end,
    message = "{framework} takes --lr-warmup-fraction or a number to warm up over", source = at "arguments.py:1285, 1299" },
  { id = "megatron.least_rate", when = function(f) return f.learning_rate ~= nil and f.least_rate ~= nil and f.least_rate > f.learning_rate end,
    message = "{framework}: --min-lr {least_rate} is above --lr {learning_rate}", source = at "arguments.py:1360" },
  { id = "megatron.two_data", mock_data = true, when = function(f) return f.data_path ~= nil end,
    message = "{framework} takes --mock-data or --data-path", source = at "arguments.py:1679" },
  { id = "megatron.eval_batch",
    when = function(f)
      if f.eval_batch == nil and f.eval_micro_batch == nil then return false end
      local batch, micro = f.eval_batch or f.global_batch_size, f.eval_micro_batch or f.micro_batch_size
      return micro < 1 or batch % integers.product(micro, f.data_parallel) ~= 0
    end,
    message = "{framework}: the batch of an evaluation does not divide by its microbatch size × DP {data_parallel}", source = at "arguments.py:715" },

  { id = "megatron.torch_dcp", checkpoint_format = "torch_dcp",
    when = function(f) return not f.torch_fsdp or f.tensor_parallel > 1 or f.pipeline_parallel > 1 end,
    message = "{framework}: --ckpt-format torch_dcp wants --use-torch-fsdp2, TP 1 and P 1", source = at "arguments.py:1667-1672" },
}

for _, rule in ipairs(list) do
  if type(rule) == "table" then rule.by = "engine" end   -- a name is that of one of plans
end

-- These behind others, in one list.
function checks.after(others)
  return table.move(list, 1, #list, #others + 1, others)
end

return checks
