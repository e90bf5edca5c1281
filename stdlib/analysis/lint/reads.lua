-- SPDX-License-Identifier: Apache-2.0
-- reads.lua: what a launch amounts to: its layout, its microbatches, the layers that are built on each stage, the bubble that follows where
-- stages take equally long; and the spec that says so (input/fields.lua), for planning it.

local engine = require "engine"
local json = require "pipeplan.base.json"
local layers = require "pipeplan.catalog.frameworks.megatron_layers"
local recipes = require "pipeplan.analysis.lint.training"
local recompute = require "pipeplan.analysis.lint.recompute"

local reads = {}

-- The value of run(), or nil where something that it needs is not known.
local function known(result, run)
  if not result.record then return nil end
  local value, good = result.trace.run(run)
  return good and value or nil
end

local function fact(result, name) return known(result, function() return result.record[name] end) end

local function key(result, name)
  return known(result, function()
    local found = result.get(name)
    return not found.unknown and found.value or nil
  end)
end

local degrees = { tensor = "tensor_parallel", context = "context_parallel", pipeline = "pipeline_parallel", virtual = "virtual",
                  expert = "expert_parallel", expert_tensor = "expert_tensor_parallel", data = "data_parallel" }

-- ranks of a V of two chunks: chunk 0 has the larger half.
local function of_v(list)
  local P, out = #list, {}
  for r = 1, P do
    out[r] = (list[r] + 1) // 2
    out[2 * P + 1 - r] = list[r] // 2
  end
  return out
end

local function built(result, schedule)
  return known(result, function()
    local record = result.record
    local list = record.built
    if not list then return nil end
    local in_v = schedule == "dualpipev" or schedule == "zb_v" or schedule == "v_half" or schedule == "v_min"
    return in_v and #list == record.pipeline_parallel and of_v(list) or list
  end)
end

local function bubble_of(schedule, parallelism, microbatches, group)
  if not schedule or schedule == "none" or not parallelism.pipeline or not microbatches then return nil end
  local two = engine.schedule.traits(schedule).placement == "v" or schedule == "dualpipev" or schedule == "zb_v" or schedule == "v_half"
              or schedule == "v_min"
  local V = two and 2 or parallelism.virtual or 1
  local good, form = pcall(engine.bubble, { schedule = schedule, ranks = parallelism.pipeline, microbatches = microbatches, virtual = V,
                                            group = group, F = 1, I = 1, W = 1 })
  if not good or not form or not form.seconds then return nil end
  local work = microbatches * V * 3.0
  return { fraction = form.seconds / (form.seconds + work), exact = form.exact, conditions = form.conditions }
end

-- { gpus, parallelism, microbatches, schedule, layers_per_stage, bubble, training, model }; nil where not known.
function reads.of(result)
  local out = { parallelism = {}, gpus = fact(result, "gpus"), microbatches = fact(result, "microbatches"), training = {}, model = {} }
  for name, field in pairs(degrees) do out.parallelism[name] = fact(result, field) end
  out.schedule = out.parallelism.pipeline == 1 and "none" or fact(result, "schedule")
  out.layers_per_stage = built(result, out.schedule)
  out.bubble = bubble_of(out.schedule, out.parallelism, out.microbatches, fact(result, "microbatch_group"))
  local training = out.training
  training.micro_batch_size, training.global_batch_size = fact(result, "micro_batch_size"), fact(result, "global_batch_size")
  training.sequence_length, training.precision = fact(result, "sequence_length"), fact(result, "precision")
  training.zero = fact(result, "zero")
  out.recompute = fact(result, "recompute_granularity")
  training.recompute = fact(result, "recompute_kind")
  local model = out.model
  for name, called in pairs { layers = "layers", hidden = "hidden", heads = "heads", experts = "experts", mtp_layers = "mtp_layers" } do
    model[name] = fact(result, called)
  end
  model.tied_embeddings = fact(result, "tied_embeddings")
  return out
end

-- ---------------------------------------------------------------------------------------------------------------------------- the spec

-- What is computed again (recompute.lua), of the chunks that are built.
function reads.recompute(result, whole)
  local schedule = fact(result, "pipeline_parallel") == 1 and "none" or fact(result, "schedule")
  return recompute.of(result, built(result, schedule), whole)
end

-- Numbers of the layers that are dense, of --moe-layer-freq; nil: something else.
local function dense_layers(text, most)
  local pattern, dense = layers.moe_pattern(text, most), {}
  if not pattern or pattern.every and pattern.every < 1 or not pattern.every and #pattern ~= most then return nil end
  for i = 1, most do
    local kind = pattern[i] or (i - 1) % pattern.every == 0 and 1 or 0
    if kind == 0 then dense[#dense + 1] = i elseif kind ~= 1 then return nil end
  end
  return dense
end

local function round_up(number, step) return (number + step - 1) // step * step end

-- Vocabularies that a tokenizer's name says.
local vocabularies = { GPT2BPETokenizer = 50257, Llama2Tokenizer = 32000 }

local function vocab_of(result)
  local size = key(result, "--vocab-size")
  if size then return size end
  for _, setting in ipairs(result.launch.settings) do
    if setting.key == "--tokenizer-type" and setting.values[1] then return vocabularies[setting.values[1].text] end
  end
end

-- What Megatron has beside its matrices: LayerNorm, biases and learned positions where nobody says otherwise (arguments.py: its defaults;
-- attention.py: a bias of queries, keys and values with either key). A table that names no key for one of them does not speak of it.
local function extras_of(result, shape)
  local function said(name)
    local found = result.get(name)
    return found.key ~= nil and not found.unknown
  end
  if said "--normalization" then shape.norm_bias = key(result, "--normalization") ~= "RMSNorm" end
  if said "--disable-bias-linear" then
    local bias = result.get("--disable-bias-linear").value ~= false
    shape.mlp_bias, shape.output_bias, shape.expert_bias = bias, bias, bias and shape.experts ~= nil
    shape.qkv_bias = bias or key(result, "--add-qkv-bias") == true
  end
  if shape.attention == "mla" then shape.qkv_bias, shape.output_bias = nil, nil
  else shape.qk_norm = key(result, "--qk-layernorm") == true and "head" or "none" end
  local kind = key(result, "--position-embedding-type")
  local others = key(result, "--use-rotary-position-embeddings") or key(result, "--no-position-embedding")
  local learned = kind == "learned_absolute" and not others
  -- Megatron-Bridge has as many as a sequence has tokens
  shape.learned_positions = learned and (key(result, "--max-position-embeddings") or fact(result, "sequence_length")) or nil
end

-- The vocabulary as it is built: said as it is padded, or to a multiple of so many on each TP rank (core/tokenizers/utils/
-- build_tokenizer.py: vocab_size_with_padding).
local function padded(result, vocab)
  local said = key(result, "--padded-vocab-size")
  if said or not vocab then return said or nil end
  return round_up(vocab, (key(result, "--make-vocab-size-divisible-by") or 128) * (fact(result, "tensor_parallel") or 1))
end

reads.odd_window = "window of attention"

-- What else attention has: a gate of its output as wide as that (core/transformer/attention.py:1399), a learned offset a head of its
-- softmax, a window of so many tokens before each (--window-size LEFT,RIGHT; Transformer Engine: from i - LEFT to i + RIGHT).
-- → what of it no shape has, or nil.
local function attention_of(result, shape)
  if shape.attention ~= "mla" and key(result, "--attention-output-gate") == true then
    shape.output_gate = shape.heads * (shape.head_dim or shape.hidden // shape.heads)
  end
  if key(result, "--softmax-type") == "learnable" then shape.attention_sinks = shape.heads end
  local text = key(result, "--window-size")
  if not text or text == "None" then return nil end
  local left, right = tostring(text):match "^[%(%[]?%s*(-?%d+)%s*,%s*(-?%d+)%s*[%)%]]?$"
  left, right = tonumber(left), tonumber(right)
  if left and left >= 0 and (right == 0 or right == -1) then shape.window = left + 1
  elseif not (left == -1 and (right == -1 or right == 0)) then return reads.odd_window end
end

-- Which layers have experts; nil: all, and why that is not known.
local function places_of(pattern, most)
  local list = layers.moe_pattern(pattern, most)
  if list and not list.every and #list ~= most then
    return nil, string.format("places of experts: --moe-layer-freq has %s%d entries for %d layers", #list > most and "over " or "",
                              math.min(#list, most), most)
  end
  local dense = dense_layers(pattern, most)
  return dense, not dense and "places of experts: --moe-layer-freq is '" .. pattern .. "'" or nil
end

local function experts_of(result, shape)
  shape.expert_ffn = key(result, "--moe-ffn-hidden-size") or shape.ffn
  shape.experts_per_token = key(result, "--moe-router-topk") or 2
  local shared, pattern = key(result, "--moe-shared-expert-intermediate-size"), key(result, "--moe-layer-freq")
  shape.shared_ffn = shared ~= 0 and shared or nil
  if key(result, "--moe-router-enable-expert-bias") then shape.router_correction_bias = true end
  if shape.shared_ffn and key(result, "--moe-shared-expert-gate") == true then shape.shared_gate = true end
  if type(pattern) ~= "string" or pattern == "1" then return nil end
  local problem
  shape.dense_layers, problem = places_of(pattern, shape.layers)
  return problem
end

-- The model in a spec's words; nil: not known, and what of it, where that is one thing.
function reads.model(result)
  local own = fact(result, "shape")
  if own then return own end
  local shape = { layers = fact(result, "layers"), hidden = fact(result, "hidden"), heads = fact(result, "heads") }
  if not (shape.layers and shape.hidden and shape.heads) then return nil end
  local vocab = vocab_of(result)
  shape.vocab = padded(result, vocab)
  shape.gated = key(result, "--swiglu") == true or key(result, "--quick-geglu") == true
  shape.ffn = key(result, "--ffn-hidden-size")
              or (key(result, "--swiglu") == true and 8 * shape.hidden // 3 // 64 * 64 or 4 * shape.hidden)   -- arguments.py:1320
  shape.head_dim = key(result, "--kv-channels")
  shape.tied_embeddings = fact(result, "tied_embeddings")
  if fact(result, "attention_kind") == "mla" then
    shape.attention = "mla"
    shape.q_lora_rank, shape.kv_lora_rank = key(result, "--q-lora-rank"), key(result, "--kv-lora-rank")
    shape.qk_nope_dim, shape.qk_rope_dim, shape.v_dim = key(result, "--qk-head-dim"), key(result, "--qk-pos-emb-head-dim"),
                                                        key(result, "--v-head-dim")
    shape.head_dim = nil
  else shape.kv_heads = fact(result, "query_groups") end
  local experts, misplaced = fact(result, "experts") or 0, nil
  if experts > 0 then
    shape.experts = experts
    misplaced = experts_of(result, shape)
  end
  local mtp = fact(result, "mtp_layers") or 0
  if mtp > 0 then shape.mtp_layers = mtp end
  extras_of(result, shape)
  local odd = attention_of(result, shape)
  return shape, not shape.vocab and "vocabulary" or misplaced or odd
end

local function tokens_of(result, training)
  local samples, iterations = fact(result, "train_samples"), fact(result, "train_iters")
  if not training.sequence_length then return nil end
  if samples and samples > 0 then return samples * training.sequence_length end
  if iterations and iterations > 0 and training.global_batch_size and not fact(result, "ramp") then
    return iterations * training.global_batch_size * training.sequence_length
  end
end

-- The spec that a launch is, as a table; what it lacks of a model: nil, or what is missing; and what of the launch no spec says, a list of
-- { field, message, setting }, or, where a plan may choose or assume instead, { field, value, why }.
function reads.spec(result)
  local read, unsaid = reads.of(result), {}
  local training, parallelism = {}, {}
  for _, name in ipairs { "micro_batch_size", "global_batch_size", "sequence_length", "precision", "zero" } do
    training[name] = read.training[name]
  end
  local ramp = fact(result, "ramp")
  if ramp then
    training.global_batch_size = json.array()
    for i, step in ipairs(ramp) do training.global_batch_size[i] = json.array(step) end
  end
  training.moments = fact(result, "moments")
  training.dropout = fact(result, "dropout")
  local said, others = recipes.of(result, { precision = training.precision, zero = training.zero,
                                             pipeline = read.parallelism.pipeline })
  for name, value in pairs(said) do training[name] = value end
  for _, each in ipairs(others) do unsaid[#unsaid + 1] = each end
  local copies = fact(result, "replicas")
  if copies and copies > 1 and training.zero ~= 0 then training.replicas = copies end
  local chosen, other = reads.recompute(result)
  training.recompute, unsaid[#unsaid + 1] = chosen, other
  training.tokens = tokens_of(result, read.training)
  for _, name in ipairs { "tensor", "context", "pipeline", "expert" } do parallelism[name] = read.parallelism[name] end
  local experts = fact(result, "experts")   -- not known where a launch does not say its model
  if (experts or parallelism.expert or 1) > (experts and 0 or 1) then parallelism.expert_tensor = read.parallelism.expert_tensor
  elseif experts then parallelism.expert = nil end
  parallelism.schedule = read.schedule
  if read.schedule and read.schedule:find "^interleaved" then parallelism.virtual = read.parallelism.virtual end
  if read.schedule ~= "none" then parallelism.layers_per_stage = read.layers_per_stage end
  if read.parallelism.tensor and read.parallelism.tensor > 1 then parallelism.sequence = fact(result, "sequence_parallel") == true end
  local model, lacks = reads.model(result)
  if lacks then model = nil end
  return { cluster = { gpus = read.gpus }, model = model, training = training, parallelism = parallelism, framework = result.framework },
         lacks, unsaid
end

return reads
