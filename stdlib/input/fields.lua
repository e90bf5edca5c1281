-- SPDX-License-Identifier: Apache-2.0
-- fields.lua: every field of a spec, once: validation (spec.lua), command-line options (options.lua), the JSON Schema (schema.lua) and
-- `pipeplan facts spec` are made from this table.
--
-- path      where it stands in the spec; its last component is its option: cluster.gpus is --gpus
-- type      integer   a whole number, or a string with a unit prefix ("128Ki")
--           quantity  a number in `unit`, or a string with a unit ("400Gbps")
--           string | choice (of `domain`) | path (of a file, relative to the spec) | paths (one, or a list)
--           kernel    a kernel's name, or false: none
--           flag      true or false
--           integers  a list of whole numbers, at most `most` of them
--           kernels   none, or a list of kernels that are not fused
--           recompute none, selective, full, or a list of modules
--           labels    an object of texts, by name
--           batch     a whole number, or a ramp [[first token, sequences], …]
--           model     path of a Hugging Face config.json, or an inline shape
-- low, high limits, inclusive; where there are none here, those that the vocabulary has for that name
-- word      what an integer may be instead, and word_meaning what that is

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local text_of = require "pipeplan.base.text"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local fields = {}

-- Modules that recompute may name; what each stands for is said in engine/core/training.h. "swiglu" and "gelu" are "activation".
fields.recompute_modules = { "activation", "core_attention", "gelu", "mla_up_projection", "moe", "norm", "swiglu" }

-- Kernels that may be said not to be fused: what that costs is said in engine/core/training.h and cost.c.
fields.unfused_kernels = { "activation", "attention", "experts", "norm", "optimizer", "rope" }
fields.old_loss = "loss"   -- among them until training.loss said it: torch

local schedules = vocabulary.schedules
local counted = { low = 1, high = (1 << 31) - 1 }

local function field(path, type, meaning, more)
  -- a constructor that names all makes room for all
  local entry = { path = path, name = path:match "[^.]*$", type = type, meaning = meaning, low = nil, high = nil, unit = nil }
  for key, value in pairs(more or {}) do entry[key] = value end
  local known = vocabulary.by_name[entry.like or path:match("^parallelism%.") and vocabulary.parallelism[entry.name] or entry.name]
  if known then entry.low, entry.high, entry.unit = entry.low or known.low, entry.high or known.high, entry.unit or known.unit end
  if type == "integer" then
    entry.low, entry.high, entry.unit = entry.low or counted.low, entry.high or counted.high, entry.unit or "1"
  end
  return entry
end

fields.list = {
  field("cluster.gpus", "integer", "GPUs of the training run",
        { required = true, word = "minimum", word_meaning = "the fewest that hold it" }),
  field("cluster.gpus_per_node", "integer", "GPUs in one node (default: the accelerator's usual node)"),
  field("cluster.accelerator", "string", "catalogue name of the GPU (pipeplan facts accelerators)"),
  field("cluster.memory_per_gpu", "quantity", "memory of one GPU, when it is not the catalogue's",
        { low = 1 << 30, like = "device_bytes" }),
  field("cluster.flops", "quantity", "dense peak of one GPU at the training precision, when it is not the catalogue's",
        { unit = "flop/s", low = 1e12, high = 1e18 }),
  field("cluster.memory_bandwidth", "quantity", "memory bandwidth of one GPU, when it is not the catalogue's",
        { unit = "byte/s", low = 1e9, high = 1e15 }),
  field("cluster.inventory", "paths",
        "files that say which GPUs there are: scontrol show node, sinfo (with %G), a hostfile, nvidia-smi -L; gpus, gpus_per_node and "
        .. "accelerator may be left out then"),
  field("cluster.kernels", "path", "file of kernels measured on the card (examples/torch/profile_kernels.py)"),
  field("cluster.calibration", "path", "file of what the site's runs say of the price of a step (plan --keep; docs/measuring.md)"),
  field("cluster.price_per_gpu_hour", "quantity", "what an hour of one GPU costs, in any currency", { unit = "1", low = 0, high = 1e6 }),
  field("cluster.network.fabric", "choice", "network between scale-up domains", { domain = vocabulary.by_name.fabric.domain }),
  field("cluster.network.per_gpu", "quantity", "network speed of one GPU, one direction", { low = 1e6, like = "network_per_gpu" }),
  field("cluster.network.nics_per_node", "integer", "network cards of one node; fewer than its GPUs share their speed", { high = 4096 }),
  field("cluster.network.scale_up_gpus", "integer", "GPUs that one NVLink, xGMI or HCCS domain joins (default: the accelerator's)"),
  field("cluster.network.scale_up_per_gpu", "quantity", "its speed, one direction, per GPU (default: the accelerator's)",
        { low = 1e6, like = "network_per_gpu" }),
  field("cluster.network.oversubscription", "quantity", "what the nodes can send / what the network carries between them (default 1)",
        { unit = "1", low = 1, high = 1000 }),
  field("cluster.network.measured", "paths", "files of nccl-tests output, nvidia-smi topo -m and rocm-smi --showtopo of the cluster: links "
        .. "as measured; as an option of plan also PLAN.json[:N]=LOG: runs of layouts (docs/measuring.md)"),
  field("cluster.storage", "quantity", "what checkpoints are written at, all GPUs together", { unit = "byte/s", low = 1e6, high = 1e18 }),
  field("cluster.overhead", "quantity",
        "memory of a GPU that tensors cannot have: context, workspaces, communicators (default: by framework and layout, 1.3 GiB at least)",
        { like = "device_bytes" }),
  field("cluster.host_memory", "quantity", "host memory of one node, for an offloaded optimizer", { low = 1 << 30 }),
  field("cluster.alltoall_kernel", "kernel", "all-to-all kernel in use (pipeplan facts kernels); false: none that overlaps"),
  field("model", "model", "path of a Hugging Face config.json, or an inline shape", { required = true }),
  field("training.tokens", "quantity", "training volume", { required = true }),
  field("training.sequence_length", "integer", "tokens of one sequence (default: 4096, or the model's maximum when that is less)"),
  field("training.document_length", "quantity",
        "packed sequences: mean tokens of a document, within which attention stays (default: a sequence)",
        { unit = "token", low = 1, high = 1e9 }),
  field("training.document_length_rms", "quantity", "quadratic mean of the same documents (default: they are all alike)",
        { unit = "token", low = 1, high = 1e9 }),
  field("training.padding", "quantity",
        "share of a sequence that only fills it: computed, and no part of tokens (default 0)", { unit = "fraction", low = 0, high = 0.99 }),
  field("training.micro_batch_size", "integer", "sequences of one microbatch (left out: chosen)"),
  field("training.global_batch_size", "batch", "sequences of one step; or a ramp [[first token, sequences], …]"),
  field("training.precision", "choice", "of the matrix products (default bf16)", { domain = { "bf16", "fp8", "fp16", "fp32" } }),
  field("training.optimizer", "choice", "optimizer (default adam)", { domain = { "adam", "adamw", "muon", "sgd" } }),
  field("training.moments", "choice", "what optimizer moments are kept in (default fp32)", { domain = { "fp32", "bf16", "fp16", "fp8" } }),
  field("training.tower", "choice", "tower of images of a multimodal model, on the first stage: trained (default), frozen, none (left out)",
        { domain = { "trained", "frozen", "none" } }),
  field("training.lora_rank", "integer", "only adapters of this rank beside every linear weight train; the weights themselves are frozen",
        { high = 65536 }),
  field("training.sharding", "choice", "what data parallelism shards: optimizer state, gradients, parameters too (FSDP); left out: chosen",
        { domain = vocabulary.shardings }),
  field("training.zero", "integer", "the same as a ZeRO stage, 0 to 3", { low = 0, high = 3 }),
  field("training.reshard", "flag", "sharded parameters are dropped after use and gathered again (default: without a pipeline)"),
  field("training.fp8_gathers", "flag", "with fp8 products, sharded parameters are gathered in fp8 (default: in bf16)"),
  field("training.replicas", "integer", "HSDP: groups of GPUs that each shard a whole state (default 1)"),
  field("training.optimizer_offload", "quantity", "share of the optimizer's state kept and updated in host memory (default 0)",
        { unit = "fraction", low = 0, high = 1 }),
  field("training.weights", "choice", "what weights are kept in, with fp8 products (default fp8: as they are and transposed)",
        { domain = { "bf16", "fp8", "fp8_single" } }),
  field("training.gradients", "choice", "what gradients are accumulated in (default fp32)", { domain = { "fp32", "bf16" } }),
  field("training.weight_gradients", "choice",
        "temporaries of weight gradients: kept, one for each shape, or dropped once they are added (default: of the framework, else kept)",
        { domain = { "kept", "dropped" } }),
  field("training.reduction", "choice", "what a rank gets of reduced gradients: its part (default with a sharded optimizer), or all",
        { domain = { "scatter", "all" } }),
  field("training.reduced_gradients", "choice", "what gradients are sent in (default: what they are accumulated in)",
        { domain = { "fp32", "bf16" } }),
  field("training.dropout", "flag", "dropout after attention, MLP and embedding, and in an attention that is not fused (default false)"),
  field("training.activations", "choice", "what SwiGLU reads and attention hands on is kept in, with fp8 products (Megatron: bf16)",
        { domain = { "fp8", "bf16" } }),
  field("training.expert_imbalance", "quantity", "tokens on the fullest expert rank / mean (default 1: balanced)",
        { unit = "1", low = 1, high = 1000 }),
  field("training.recompute", "recompute", "what is computed again instead of stored: none, selective, full, or modules; left out: chosen"),
  field("training.unfused", "kernels", "kernels that are not fused: none (default), or a list"),
  field("training.loss", "choice", "how the cross entropy is computed (default: as the framework does, else as Megatron-LM)",
        { domain = engine.cost.losses }),
  field("training.bucket", "quantity", "parameters whose gradients are reduced at once (default: the framework's, else all)",
        { unit = "1", low = 1, high = 1e15 }),
  field("training.data_overlap", "quantity",
        "share of a microbatch's backward and forward that hides gradient and parameter traffic (default: the framework's, else 0)",
        { unit = "fraction", low = 0, high = 1 }),
  field("training.tensor_overlap", "quantity",
        "share of TP's collectives that run beside products (default 0; Transformer Engine's userbuffers: about 0.7)",
        { unit = "fraction", low = 0, high = 1 }),
  field("training.alltoall_overlap", "flag",
        "without a pipeline, the all-to-all runs beside the next microbatch's compute (default: where the framework can)"),
  field("training.cuda_graphs", "flag", "layers are launched as CUDA graphs (default false)"),
  field("training.goodput", "quantity", "share of the time that trains: restarts and checkpoints left out (default 1)",
        { unit = "fraction", low = 0.01, high = 1 }),
  field("parallelism.tensor", "integer", "tensor parallelism (TP)"),
  field("parallelism.context", "integer", "context parallelism (CP)"),
  field("parallelism.expert", "integer", "expert parallelism (EP)"),
  field("parallelism.expert_tensor", "integer", "TP of experts (default: 1; in Megatron TP, or the better one where TP is open)"),
  field("parallelism.sequence", "flag",
        "sequence parallelism: what is between TP regions is split over TP too (default: where there is any)"),
  field("parallelism.scatter_messages", "flag",
        "what stages hand over is cut over TP on the way (default: with sequence parallelism)"),
  field("parallelism.data", "integer", "data parallelism (DP)"),
  field("parallelism.pipeline", "integer", "pipeline depth (P)"),
  field("parallelism.virtual", "integer", "chunks of one rank of an interleaved schedule (V)"),
  field("parallelism.microbatches", "integer", "microbatches of one pipeline and step (M), at the smallest batch"),
  field("parallelism.schedule", "choice", "pipeline schedule", { domain = schedules }),
  field("parallelism.account_for", "choice", "ends that count as a layer each where Megatron divides layers evenly over stages",
        { domain = { "embedding", "loss", "both" } }),
  field("parallelism.account_for_embedding_in_pipeline_split", "flag", "the same of the embedding, as Megatron calls it"),
  field("parallelism.account_for_loss_in_pipeline_split", "flag", "the same of the loss"),
  field("parallelism.num_layers_in_first_pipeline_stage", "integer", "decoder layers of the first rank; the others alike",
        { low = 1, like = "layers" }),
  field("parallelism.num_layers_in_last_pipeline_stage", "integer", "decoder layers of the last rank", { low = 1, like = "layers" }),
  field("parallelism.pipeline_model_parallel_layout", "layout",
        "layers of each stage as Megatron writes them: Et*3|(tt|)*29,mL, or a list of lists of embedding, decoder, mtp, loss"),
  field("parallelism.layers_per_stage", "integers", "decoder layers of each stage, first to last",
        { low = 0, like = "layers", most = vocabulary.most.layers }),
  field("framework", "choice", "what will run the plan: limits schedules and layouts to what it can", {
    domain = vocabulary.by_name.framework.domain }),
  field("framework_version", "string", "its version, for rules that ask"),
  field("run", "string", "name of the run, for rules that ask"),
  field("team", "string", "whose run it is, for rules that ask"),
  field("labels", "labels", "what else is said of the run, for rules that ask: label_tier of rules is { \"tier\": … } here"),
  field("profile", "path", "file of measured seconds and bytes of stages (pipeplan facts schema profile)"),
}

-- What may stand beside each other in one object: groups["cluster"] = { gpus = field, network = "cluster.network", … }.
fields.by_path, fields.by_name, fields.groups = {}, {}, { [""] = {} }
for _, entry in ipairs(fields.list) do
  fields.by_path[entry.path] = entry
  assert(not fields.by_name[entry.name], entry.name)
  fields.by_name[entry.name] = entry
  local group = entry.path:sub(1, -#entry.name - 2)
  if not fields.groups[group] then
    local outer = ""
    for component in entry.path:gmatch("([^.]+)%.") do
      local inner = outer == "" and component or outer .. "." .. component
      fields.groups[outer][component] = inner
      fields.groups[inner] = fields.groups[inner] or {}
      outer = inner
    end
  end
  fields.groups[group][entry.name] = entry
end

-- What a field means, with what a word in its place means.
function fields.meaning(entry)
  return entry.word and string.format("%s; %s: %s", entry.meaning, entry.word, entry.word_meaning) or entry.meaning
end

-- Sorted keys of a group.
function fields.keys(group)
  return lists.sorted_keys(fields.groups[group])
end

-- ----------------------------------------------------------------------------------------------------------- checking one value

-- A value as an error shows it: JSON, cut to a line.
function fields.show(value)
  local good, text = failure.try(json.encode, value)
  if not good then text = type(value) == "number" and tostring(value) or "a " .. type(value) end
  return #text > 60 and text:sub(1, 57):gsub("[\x80-\xBF]*$", "") .. "…" or text
end

local function list_of(names)
  return table.concat(names, ", ")
end

local unit_words = { gpu = " of GPUs", rank = " of ranks", token = " of tokens", sequence = " of sequences" }

local function integer_expected(entry)
  local high = entry.high < counted.high and string.format(" and at most %d", entry.high) or ""
  return string.format("a whole number%s, at least %d%s%s", unit_words[entry.unit] or "", entry.low, high,
                       entry.word and ', or "' .. entry.word .. '"' or "")
end

local function bound(number, low, high)
  return math.max(low or number, math.min(high or number, number))
end

-- Each checker: (entry, value) → value | nil, what was expected, nearest legal value or nil.
local check = {}

function check.integer(entry, value)
  if entry.word and value == entry.word then return value end
  local number, problem = units.parse(value, entry.unit, { negative = true })
  if not number then
    -- a string that is nothing at all reads better with the unit's example; everything else with the range
    local expected = type(value) == "string" and problem:match("^expected (.-), got .*$")
    if not expected then return nil, integer_expected(entry) end
    return nil, expected .. (entry.word and ', or "' .. entry.word .. '"' or "")
  end
  if math.type(number) ~= "integer" or number < entry.low or number > entry.high then
    return nil, integer_expected(entry), bound(math.floor(math.min(number, 2 ^ 53) + 0.5), entry.low, entry.high)
  end
  return number
end

function check.quantity(entry, value)
  local number, problem = units.parse(value, entry.unit, { negative = true })
  if not number then return nil, problem:match("^expected (.*)$"):gsub(", got .-$", ""), nil end
  local beyond = entry.low and number < entry.low and entry.low or entry.high and number > entry.high and entry.high
  if not beyond then return number end
  local limit = beyond >= 1e4 and units.format(beyond, entry.unit) or string.format("%g", beyond)
  return nil, string.format("%s, at %s %s", units.expected(entry.unit), beyond == entry.low and "least" or "most", limit), limit
end

function check.string(_, value)
  if type(value) ~= "string" or value == "" then return nil, "a name" end
  return value
end

function check.path(_, value)
  if type(value) ~= "string" or value == "" or value:find("\0", 1, true) then return nil, "the path of a file" end
  return value
end

function check.paths(_, value)
  if type(value) == "string" then value = text_of.parts(value) end
  if not json.is_array(value) or #value == 0 then return nil, "the path of a file, or a list of paths" end
  local copy = {}
  for i, path in ipairs(value) do
    copy[i] = check.path(nil, path)
    if not copy[i] then return nil, "paths of files" end
  end
  return copy
end

function check.choice(entry, value)
  for _, choice in ipairs(entry.domain) do
    if value == choice then return value end
  end
  return nil, "one of " .. list_of(entry.domain), type(value) == "string" and failure.nearest(value, entry.domain)
end

function check.kernel(_, value)
  if value == false or value == "false" or value == "none" then return false end
  if type(value) ~= "string" or value == "" then return nil, "the name of a kernel, or false" end
  return value
end

local flags = { ["true"] = true, on = true, yes = true, ["false"] = false, off = false, no = false }

function check.flag(_, value)
  if type(value) == "boolean" then return value end
  local word = flags[value]
  if word == nil then return nil, "true or false" end
  return word
end

function check.integers(entry, value)
  if type(value) == "string" then value = text_of.parts(value) end
  if not json.is_array(value) or #value == 0 then return nil, "a list of whole numbers such as [4, 8, 8, 4]" end
  if #value > entry.most then return nil, string.format("at most %d numbers, got %d", entry.most, #value) end
  local copy = {}
  for i, item in ipairs(value) do
    local number = type(item) ~= "table" and units.parse(item, "1")
    if math.type(number) ~= "integer" or number < entry.low or number > entry.high then
      return nil, string.format("whole numbers from %d to %d", entry.low, entry.high)
    end
    copy[i] = number
  end
  return copy
end

-- → the layout as a string, which a list of lists becomes.
function check.layout(_, value)
  local megatron = require "pipeplan.catalog.frameworks.megatron_layers"
  if json.is_array(value) then
    local text, problem, nearest = megatron.written(value)
    return text, problem, nearest
  end
  if type(value) ~= "string" or value == "" then return nil, "a layout such as Et*3|(tt|)*29,mL, or a list of stages" end
  local parsed, problem = megatron.parse(value)
  if parsed then return value end
  local at, nearest = megatron.misplaced(value)
  if not at then return nil, "a layout such as Et*3|(tt|)*29,mL: it " .. problem end
  local there = value:match("^" .. utf8.charpattern, at) or value:sub(at, at)
  return nil, string.format("E, t, m, L, |, (…)*n or x*n at position %d, not %s", at, fields.show(there)), nearest
end

local MOST_LABELS = 24

-- → { kernel = true, … }; {} is none.
function check.kernels(_, value)
  local expected = "none, or a list of " .. list_of(fields.unfused_kernels)
  if type(value) == "string" then value = text_of.parts(value) end
  if not json.is_array(value) then return nil, expected end
  if #value == 1 and value[1] == "none" then return {} end
  local set = {}
  for _, name in ipairs(value) do
    local known = failure.nearest(tostring(name), fields.unfused_kernels)
    if known ~= name and name ~= fields.old_loss then return nil, expected, known end
    set[name] = true
  end
  return set
end

-- → { module = true, … }; {} is none.
function check.recompute(_, value)
  local modules = fields.recompute_modules
  local words = { "none", "selective", "full" }
  local expected = "none, selective, full, or a list of " .. list_of(modules)
  if type(value) == "string" then value = text_of.parts(value) end
  if not json.is_array(value) then return nil, expected end
  if #value == 1 and value[1] == "none" then return {} end
  if #value == 1 and value[1] == "full" then return { full = true } end
  if #value == 1 and value[1] == "selective" then return { core_attention = true } end
  local set = {}
  for _, name in ipairs(value) do
    local known = failure.nearest(tostring(name), modules)
    if known ~= name then return nil, expected, known or failure.nearest(tostring(name), words) end
    if name == "swiglu" or name == "gelu" then name = "activation" end
    set[name] = true
  end
  return set
end

-- → { name = text }; of "name=text,…" too.
function check.labels(_, value)
  local expected = "texts by name, such as { \"tier\": \"research\" }, at most %d; names of letters, digits and _, at most 34 of them"
  expected = expected:format(MOST_LABELS)
  if type(value) == "string" then
    local object = {}
    for _, part in ipairs(text_of.parts(value)) do
      local name, text = part:match "^(.-)=(.*)$"
      if not name then return nil, expected end
      if object[name] then return nil, "each name once: " .. name .. " stands twice" end
      object[name] = text
    end
    value = object
  end
  if type(value) ~= "table" or value == json.null or json.is_array(value) and #value > 0 then return nil, expected end
  local copy, count = {}, 0
  for name, text in pairs(value) do
    count = count + 1
    if not vocabulary.label(vocabulary.label_prefix .. tostring(name)) or count > MOST_LABELS then return nil, expected end
    if type(text) ~= "string" or text == "" or #text > 200 or text:find "%c" then return nil, expected end
    copy[name] = text
  end
  return copy
end

local function ramp_text(value)
  local ramp = {}
  for _, part in ipairs(text_of.parts(value)) do
    local first, sequences = part:match("^(.-):(.*)$")
    ramp[#ramp + 1] = { first, sequences }
  end
  return ramp
end

-- → a number, or { { first token, sequences }, … }.
function check.batch(entry, value)
  local expected = "a whole number of sequences, at least 1, or a ramp [[0, 3072], [\"100B\", 6144], …]"
  if type(value) == "string" and value:find(":", 1, true) then value = ramp_text(value) end
  if type(value) ~= "table" then
    local number, problem, nearest = check.integer(entry, value)
    if not number then return nil, nearest and expected or problem, nearest end
    return number
  end
  if not json.is_array(value) or #value == 0 then return nil, expected end
  if #value > vocabulary.most.segments then return nil, string.format("a ramp of at most %d segments", vocabulary.most.segments) end
  local ramp = {}
  for i, segment in ipairs(value) do
    if not json.is_array(segment) or #segment ~= 2 then return nil, expected end
    local first = units.parse(segment[1], "token")
    local sequences = units.parse(segment[2], "sequence")
    if not first or math.type(sequences) ~= "integer" or sequences < entry.low then return nil, expected end
    if sequences > entry.high then return nil, string.format("a ramp to at most %d sequences", entry.high), entry.high end
    if i == 1 and first ~= 0 then return nil, "a ramp whose first entry starts at token 0", "0" end
    if i > 1 and (first <= ramp[i - 1][1] or sequences <= ramp[i - 1][2]) then
      return nil, string.format("a ramp in which first tokens and sequences grow (entry %d does not)", i)
    end
    ramp[i] = { first, sequences }
  end
  return ramp
end

function check.model(_, value)
  if type(value) == "string" then return check.path(nil, value) end
  if type(value) == "table" and value ~= json.null and not json.is_array(value) then return value end
  return nil, "the path of a config.json, or an object with the shape"
end

-- The checked value of a field → value | nil, message (without file and field): what came, what was expected, the nearest legal value.
function fields.check(entry, value)
  local checked, expected, nearest = check[entry.type](entry, value)
  if checked ~= nil then return checked end
  return nil, string.format("%s: expected %s%s", fields.show(value), expected, nearest and "; nearest: " .. tostring(nearest) or "")
end

return fields
