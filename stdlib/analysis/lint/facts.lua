-- SPDX-License-Identifier: Apache-2.0
-- facts.lua: the record that rules of frameworks read (stdlib/catalog/frameworks.lua), of a launch that a file describes. Each fact knows
-- the settings that it came from, so that a finding can say its line and what it rests on, and says when something that it needs is not
-- known.
--
-- facts.of(launch, entry, get, options) → record, trace:
--   record.NAME        the value; raises facts.unknown where it is not known
--   trace.run(f)       → value or nil, known: bool, seen: { settings = list in order, rests = { name → true }, missing = { name → true } }

local frameworks = require "pipeplan.catalog.frameworks"
local integers = require "pipeplan.base.integers"
local layers = require "pipeplan.catalog.frameworks.megatron_layers"
local lists = require "pipeplan.base.lists"
local ramps = require "pipeplan.catalog.frameworks.megatron_ramp"
local vocabulary = require "pipeplan.vocabulary"

local facts = {}

-- Raised by what is not known.
facts.unknown = setmetatable({}, { __tostring = function() return "not known" end })

-- Names that rules use → how they follow from settings, written in Megatron's keys: those of frameworks that are derived from it have these
-- as their base. f(name) is another fact, k(key) the value of a key.
local derived = {}

-- Frameworks in which facts follow otherwise: theirs.
local other_facts = { torchtitan = require "pipeplan.analysis.lint.torchtitan", deepspeed = require "pipeplan.analysis.lint.deepspeed",
                      ["megatron-bridge"] = {} }

local degrees = { tensor_parallel = "--tensor-model-parallel-size", pipeline_parallel = "--pipeline-model-parallel-size",
                  context_parallel = "--context-parallel-size", expert_parallel = "--expert-model-parallel-size" }
function derived.replicas(f) return f.key "--num-distributed-optimizer-instances" end

for name, key in pairs(degrees) do
  derived[name] = function(f)
    local value = f.key(key)
    if value == nil then return 1 end
    if value < 1 or value > vocabulary.most.gpus then f.refused() end
    return value
  end
end

local plain = { hidden = "--hidden-size", head_dim = "--kv-channels", shared_ffn = "--moe-shared-expert-intermediate-size",
                ffn = "--ffn-hidden-size" }
for name, key in pairs(plain) do
  derived[name] = function(f) return f.key(key) end
end

function derived.layers(f)
  local value = f.key "--num-layers" or f.key "--encoder-num-layers"
  if value == nil then f.fail "--num-layers" end
  if value < 1 or value > vocabulary.most.layers then f.refused() end
  return value
end

function derived.heads(f)
  local value = f.key "--num-attention-heads" or f.fail "--num-attention-heads"
  if value < 1 then f.refused() end
  return value
end

function derived.sequence_length(f)
  local value = f.key "--seq-length" or f.key "--encoder-seq-length" or f.fail "--seq-length"
  if value < 1 then f.refused() end
  return value
end

function derived.micro_batch_size(f)
  local value = f.key "--micro-batch-size"
  if not value then f.fail "--micro-batch-size" end
  if value < 1 or value > vocabulary.most.counted then f.refused() end
  return value
end

function derived.expert_tensor_parallel(f)
  local apart = f.entry.defaults.expert_tensor == 1 and f.record.expert_parallel > 1   -- megatron_bridge.lua
  local value = f.key "--expert-tensor-parallel-size" or apart and 1 or f.record.tensor_parallel
  if value < 1 or value > vocabulary.most.gpus then f.refused() end
  return value
end

function derived.gpus(f) return f.setting("gpus", f.launch.gpus) end

-- The model's, where a framework says all of it by a name.
function derived.shape() return nil end

function derived.experts(f) return f.key "--num-experts" or 0 end

function derived.mtp_layers(f) return f.key "--mtp-num-layers" or 0 end

function derived.virtual(f)
  local record = f.record
  local layout, given = f.key "--pipeline-model-parallel-layout", f.key "--num-virtual-stages-per-pipeline-rank"
  local a_chunk, logged = f.key "--num-layers-per-virtual-pipeline-stage", f.launch.virtual
  local P = record.pipeline_parallel
  local function counted(value)
    if not value or value < 1 or value > vocabulary.most.layers then f.refused() end
    return value
  end
  if logged then return counted(f.setting("virtual", logged)) end
  if layout then
    local stages = layers.parse(layout)
    return counted(stages and #stages % P == 0 and #stages // P)
  elseif a_chunk then
    if a_chunk < 1 then f.refused() end
    local accounted = (record.account_embedding and 1 or 0) + (record.account_loss and 1 or 0)
    local held = (record.layers + accounted) // P
    return held % a_chunk == 0 and counted(held // a_chunk) or 1
  end
  return given and counted(given) or 1
end

function derived.stages(f) return f.record.pipeline_parallel * f.record.virtual end

function derived.data_parallel(f)
  local record = f.record
  local others = integers.product(record.tensor_parallel, record.context_parallel, record.pipeline_parallel)
  if record.gpus < others or record.gpus % others ~= 0 then f.refused() end
  return record.gpus // others
end

-- { { first token, sequences }, … }; nil: none. Beside one, what a log calls the batch is what nobody said (arguments.py:702).
function derived.ramp(f)
  if not f.launch.resolved and f.key "--global-batch-size" then return nil end
  local text = f.key "--step-batch-size-schedule"
  if text == nil then return nil end
  return ramps.parse(text, f.record.sequence_length) or f.refused()
end

function derived.ramp_problem(f)
  local text = f.key "--step-batch-size-schedule"
  return text and select(2, ramps.parse(text, f.record.sequence_length)) or nil
end

function derived.global_batch_size(f)
  if f.record.ramp then return f.record.ramp[1][2] end
  local given = f.key "--global-batch-size"
  if not given then return f.record.micro_batch_size * f.record.data_parallel end
  if given < 1 or given > vocabulary.most.counted then f.refused() end
  return given
end

function derived.microbatches(f)
  local record = f.record
  local step = record.micro_batch_size * record.data_parallel
  if record.global_batch_size % step ~= 0 then f.refused() end
  return record.global_batch_size // step
end

function derived.microbatch_group(f) return f.key "--microbatch-group-size-per-virtual-pipeline-stage" end

function derived.attention_kind(f) return f.key "--multi-latent-attention" or "gqa" end

function derived.query_groups(f)
  local record = f.record
  if record.attention_kind == "mla" or not f.grouped() then return record.heads end
  local value = f.key "--num-query-groups" or f.grouped_by() and 1 or record.heads   -- argparse's default is one, where it is asked for
  if value < 1 then f.refused() end
  return value
end

-- Of Mamba layers, M in a hybrid's pattern; nil where there are none. A mixer is twice as wide as the model (ssm/mamba_mixer.py: expand).
function derived.mixer_heads(f)
  local pattern = f.key "--hybrid-layer-pattern"
  if not (pattern and pattern:find("M", 1, true)) then return nil end
  local heads, size = f.key "--mamba-num-heads", f.key "--mamba-head-dim"
  if heads then return heads >= 1 and heads or f.refused() end
  return size >= 1 and 2 * f.record.hidden % size == 0 and 2 * f.record.hidden // size or f.refused()
end

function derived.mixer_groups(f)
  if not f.record.mixer_heads then return nil end
  local groups = f.key "--mamba-num-groups"
  return groups >= 1 and groups or f.refused()
end

function derived.expert_bias(f) return f.record.experts > 0 and f.key "--disable-bias-linear" ~= false end

function derived.precision(f)
  local word = f.key "mixed_precision"
  if word then
    return word:find "fp8" and "fp8" or word:find "fp4" and "fp8" or word:find "fp16" and "fp16" or word:find "bf16" and "bf16" or "fp32"
  end
  if f.key "--fp8-format" then return "fp8" end
  return f.record.bf16 and "bf16" or f.record.fp16 and "fp16" or "fp32"
end

function derived.bf16(f) return f.key "--bf16" == "bf16" end

function derived.fp16(f) return f.key "--fp16" == "fp16" end

function derived.recompute_granularity(f)
  local granularity = f.key "--recompute-activations" and "selective" or f.key "--recompute-granularity"
  return f.record.recomputes_moe_layer and (granularity or "selective") or granularity
end

-- Under its old name: it adds moe to the modules (transformer_config.py:1835-1846).
function derived.recomputes_moe_layer(f) return f.key "--moe-layer-recompute" == true end

function derived.recompute_kind(f) return f.record.recompute_granularity or "none" end

function derived.recompute_modules(f)
  local list = f.key "--recompute-modules"
  list = type(list) == "table" and list or { "core_attn" }
  if not f.record.recomputes_moe_layer or lists.contains(list, "moe") then return list end
  list = table.move(list, 1, #list, 1, {})
  list[#list + 1] = "moe"
  return list
end

function derived.recomputes_moe(f)
  return f.record.recompute_granularity == "selective" and lists.contains(f.record.recompute_modules, "moe")
end

-- Masks behind embedding, attention and MLP; of the softmax a fused attention keeps none.
function derived.dropout(f) return (f.key "--hidden-dropout" or 0) > 0 end

-- Stages of Megatron-FSDP, which shards with a distributed optimizer whether it is asked for or not (arguments.py:1100).
local strategies = { no_shard = 0, optim = 1, optim_grads = 2, optim_grads_params = 3 }

function derived.zero(f)
  if f.key "--use-megatron-fsdp" then return strategies[f.key "--data-parallel-sharding-strategy"] or 0 end
  return f.key "--use-distributed-optimizer" or 0
end

-- Megatron-Bridge switches both of its keys on where either is (training/config.py:1945).
other_facts["megatron-bridge"].zero = function(f)
  if not f.key "--use-megatron-fsdp" and f.key "optimizer.use_distributed_optimizer" then return 1 end
  return derived.zero(f)
end

function derived.distributed_optimizer(f) return f.record.zero ~= 0 or f.key "--use-distributed-optimizer" ~= 0 end

-- In a log: a distributed optimizer of Muon and its like, which is then none by name (arguments.py:1726-1737).
function derived.layer_wise(f)
  local name = f.record.optimizer_name
  return f.launch.resolved == true and name ~= nil and name ~= "adam" and name ~= "sgd"
end

-- Moments or gradients in less than fp32: "reduced", which the optimizer has a key of its own for.
function derived.optimizer_state(f)
  local record = f.record
  local reduced = record.main_grads ~= "fp32" or record.moments ~= "fp32" or record.second_moments ~= "fp32"
  return record.precision_aware and reduced and "reduced" or "fp32"
end

-- Megatron's arguments switch it on where layers are said (training/arguments.py: validate_args), the configuration that Bridge writes does
-- not.
function derived.activation_offload(f) return f.key "--cpu-offloading" == true or (f.key "--cpu-offloading-num-layers" or 0) > 0 end
other_facts["megatron-bridge"].activation_offload = function(f) return f.key "--cpu-offloading" == true end

function derived.optimizer(f) return f.key "--optimizer" or "adam" end

function derived.tied_embeddings(f)
  local shared = f.key "model.share_embeddings_and_output_weights"
  if shared ~= nil then return shared end
  return f.key "--untie-embeddings-and-output-weights" ~= false
end

function derived.architecture(f) return f.record.experts > 0 and "moe" or "dense" end

-- What a framework's own keys choose, else 1F1B of Megatron's kinds.
function derived.schedule(f)
  local record = f.record
  local own = f.entry.chosen and f.entry.chosen(f.key)
  if own then return own end
  if record.overlap_experts then return "interleaved_1f1b_overlap" end
  if record.pipeline_parallel == 1 then return "none" end
  return record.virtual > 1 and "interleaved_1f1b" or "1f1b"
end

-- The layers that are built on each stage; nil: none are.
function derived.built(f)
  if f.record.hybrid_pattern or layers.problem(f.record) then return nil end
  return layers.built(f.record)
end

-- Why the split of layers is refused, for messages.
function derived.layers_problem(f) return layers.problem(f.record) or "layers" end

-- ------------------------------------------------------------------------------------------------------------------------- tracing

local function new_seen() return { settings = {}, has = {}, rests = {}, missing = {} } end

local function see(seen, setting)
  if setting and not seen.has[setting] then
    seen.has[setting] = true
    seen.settings[#seen.settings + 1] = setting
  end
end

local function take(seen, other)
  for _, setting in ipairs(other.settings) do see(seen, setting) end
  for name in pairs(other.rests) do seen.rests[name] = true end
  for name in pairs(other.missing) do seen.missing[name] = true end
end

function facts.of(launch, entry, get)
  local trace, memo, stack = {}, {}, { new_seen() }
  local f = { launch = launch, entry = entry }
  local by_fact = {}
  for name, key in pairs(entry.facts or {}) do by_fact[name] = get(key).key and key or nil end

  function f.fail(name)
    stack[#stack].missing[name] = true
    error(facts.unknown, 0)
  end

  -- What does not exist, for another rule refuses what it would follow from.
  function f.refused() error(facts.unknown, 0) end

  function f.key(base)
    local found = get(base)
    see(stack[#stack], found.given and found.setting or nil)
    for name in pairs(found.rests or {}) do stack[#stack].rests[name] = true end
    if found.unknown then
      for _, name in ipairs(found.unknown) do stack[#stack].missing[name] = true end
      error(facts.unknown, 0)
    end
    return found.value
  end

  function f.setting(name, setting)
    if not setting then f.fail(name) end
    see(stack[#stack], setting)
    for rest in pairs(setting.rests or {}) do stack[#stack].rests[rest] = true end
    return setting.value
  end

  -- Where a framework has no key for it, --num-query-groups says it alone.
  function f.grouped()
    local found = get "--group-query-attention"
    return not found.key or f.key "--group-query-attention"
  end

  function f.grouped_by() return get("--group-query-attention").key ~= nil end

  -- The words behind a key, as they stand there; nil where nobody says it.
  function f.words(base)
    f.key(base)
    local found, list = get(base), nil
    for i, word in ipairs(found.given and found.setting.values or {}) do
      list = list or {}
      list[i] = word.text
    end
    return list
  end

  local own = other_facts[entry.name] or {}
  local function compute(name)
    local how = own[name] or derived[name]
    if how then return how(f) end
    local said = name:match "^(.*)_said$"   -- does anybody say it?
    if said and by_fact[said] then return get(by_fact[said]).given end
    local base = by_fact[name]
    if not base then
      if facts.is_known(name) then return nil end
      error("no fact " .. tostring(name))
    end
    return f.key(base)
  end

  -- Runs f with what it reads noted; nil and false where something is not known.
  function trace.run(run)
    local seen = new_seen()
    stack[#stack + 1] = seen
    local good, value = pcall(run)
    stack[#stack] = nil
    if good then return value, true, seen end
    if value ~= facts.unknown then error(value, 0) end
    return nil, false, seen
  end

  local record = setmetatable({}, { __index = function(_, name)
    local known = memo[name]
    if not known then
      local value, good, seen = trace.run(function() return compute(name) end)
      known = { value = value, good = good, seen = seen }
      memo[name] = known
    end
    take(stack[#stack], known.seen)
    if not known.good then error(facts.unknown, 0) end
    return known.value
  end })
  f.record = record
  return record, trace
end

-- Names that rules may read and that follow from no setting here: what a launch never says.
local never = {}
for _, field in ipairs(vocabulary.fields) do never[field.name] = true end
for _, entry in ipairs(frameworks.entries) do
  for name in pairs(entry.facts or {}) do never[name] = true end   -- of a key that another framework has
end

function facts.is_known(name)
  for _, own in pairs(other_facts) do
    if own[name] then return true end
  end
  return derived[name] ~= nil or never[name] == true
end

return facts
