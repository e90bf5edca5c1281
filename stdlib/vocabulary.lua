-- SPDX-License-Identifier: Apache-2.0
-- vocabulary.lua: every field that a rule may read: its scope, type, unit, domain or range, and meaning. The single source of names and of what
-- numbers can be: conditions are checked against it, specs read by it (input/fields.lua), editor definitions and JSON Schemas generated from it,
-- `pipeplan facts fields` prints it.
--
-- scope  request    follows from the spec alone
--        candidate  differs between candidate plans, known before anything is simulated
--        simulated  known only after a candidate was simulated
--        plan       known only for the finished plan (for `warn` and `invariant`)
-- type   integer | number | boolean | string; values a string field can take are its domain (nil: open)
-- unit   gpu rank byte byte/s second token sequence fraction 1; what a quantity in a policy is converted to
-- low, high  of a number, both included. Without `high` it is computed, from numbers that have one.
-- A field may be absent (nil): then it satisfies no condition but none_of.

local engine = require "engine"

-- The last argument: the domain of a string, { low, high } of a number.
local function field(scope, name, type, unit, meaning, values)
  local entry = { scope = scope, name = name, type = type, unit = unit, meaning = meaning }
  if type == "string" then entry.domain = values
  elseif values then entry.low, entry.high = values[1], values[2] end
  return entry
end

-- The most that numbers can be: far more than there is, and no more than the engine counts with.
local most = {
  gpus = 10000000,        -- a hundred times the largest clusters; the engine counts GPUs and ranks to 2^24
  host = 4096,            -- of one node
  domain = 100000,        -- of one scale-up domain
  device = 1 << 50,      -- bytes: 1 PiB
  link = 1e14,            -- 100 TB/s, fifty times NVLink 5
  layers = 1024,          -- engine/core/model.h, PP_MAX_LAYERS
  experts = 65536,        -- engine/core/model.c
  parameters = 1 << 53,  -- counted one by one in doubles
  tokens = 1e18,
  counted = (1 << 31) - 1,  -- sequences, microbatches and tokens of a sequence: 32-bit integers of the engine
  segments = 1000,        -- of a batch ramp
  run = 1e15,             -- days, hours and money of a run: beyond anything
  window = 1000000,       -- steps over which a run is watched, each of which is held
}

-- The schedules there are, and their families in the same order: a row of engine/core/schedule_kinds.h each.
local schedules, families = { "none" }, { "none" }
for _, kind in ipairs(engine.schedule.kinds) do
  local family = engine.schedule.traits(kind).family
  schedules[#schedules + 1] = kind
  local known = false
  for _, name in ipairs(families) do known = known or name == family end
  if not known then families[#families + 1] = family end
end

-- What data parallelism shards, by ZeRO's stage from 0 on; and the stage of each.
local shardings, zero_of = { "none", "optimizer", "gradients", "parameters" }, {}
for i, name in ipairs(shardings) do zero_of[name] = i - 1 end

local fields = {
  -- the cluster
  field("request", "gpus",               "integer", "gpu",      "GPUs of the training run", { 1, most.gpus }),
  field("request", "gpus_per_node",      "integer", "gpu",      "GPUs in one node", { 1, most.host }),
  field("request", "scale_up_gpus",      "integer", "gpu",      "GPUs that one NVLink, xGMI or HCCS domain joins", { 1, most.domain }),
  field("request", "fabric",             "string",  nil,        "network between scale-up domains",
        { "infiniband", "roce", "efa", "slingshot", "ethernet", "none" }),
  field("request", "accelerator",        "string",  nil,        "catalogue name of the accelerator"),
  field("request", "accelerator_family", "string",  nil,        "its family: what kernels are built for",
        { "volta", "ampere", "ada", "hopper", "blackwell", "blackwell_rtx", "gb200", "gb300", "mi200", "mi300", "mi350", "tpu", "ascend", "other" }),
  field("request", "device_bytes",       "number",  "byte",     "memory of one GPU", { 0, most.device }),
  field("request", "usable_bytes",       "number",  "byte",     "device_bytes less memory_headroom: what a plan may fill", { 0, most.device }),
  field("request", "network_per_gpu",    "number",  "byte/s",   "network between domains, one direction, per GPU", { 0, most.link }),
  -- the model
  field("request", "architecture",       "string",  nil,        "dense, or mixture of experts", { "dense", "moe" }),
  field("request", "total_parameters",   "integer", "1",        "parameters of the main model, MTP modules left out", { 1, most.parameters }),
  field("request", "active_parameters",  "integer", "1",        "parameters that one token uses, embedding and head included", { 1, most.parameters }),
  field("request", "layers",             "integer", "1",        "decoder layers", { 1, most.layers }),
  field("request", "experts",            "integer", "1",        "routed experts of a layer; 0 for a dense model", { 0, most.experts }),
  field("request", "tied_embeddings",    "boolean", nil,        "output weights are the embedding"),
  -- the training run
  field("request", "tokens",             "number",  "token",    "training volume", { 1, most.tokens }),
  field("request", "sequence_length",    "integer", "token",    "tokens of one sequence", { 1, most.counted }),
  field("request", "global_batch_size",  "integer", "sequence", "sequences of one step (the full batch, where it ramps)", { 1, most.counted }),
  field("request", "smallest_batch_size", "integer", "sequence", "sequences of the smallest step of a batch ramp: what legality is judged at", { 1, most.counted }),
  field("request", "precision",          "string",  nil,        "of the matrix products", { "bf16", "fp8", "fp16", "fp32" }),
  field("request", "optimizer",          "string",  nil,        "what updates the weights", { "adam", "adamw", "muon", "sgd" }),
  field("request", "optimizer_offload",  "number",  "fraction", "share of the optimizer's state in host memory", { 0, 1 }),
  field("request", "model_name",         "string",  nil,        "the model's name, as its file or the spec has it"),
  field("request", "run",                "string",  nil,        "name of the run, as the spec has it"),
  field("request", "team",               "string",  nil,        "whose run it is, as the spec has it"),
  field("request", "model_family",       "string",  nil,        "what the model is of: model_type of its config.json, such as deepseek_v3; absent of an inline shape"),
  field("request", "framework_version",  "string",  nil,        "version of what will run the plan, as the spec has it"),
  field("request", "framework",          "string",  nil,        "what will run the plan; absent: any",
        { "megatron", "megatron-bridge", "flagscale", "deepseek-dualpipe", "torchtitan", "torch", "deepspeed", "nanotron", "mindspeed",
          "primus", "colossalai", "zero-bubble" }),
  field("request", "fits_one_gpu",       "boolean", nil,        "weights, gradients, sharded optimizer state and one microbatch fit one GPU at TP = PP = EP = 1"),
  field("request", "one_gpu_bytes",      "number",  "byte",     "what that takes", { 0 }),
  -- a candidate
  field("candidate", "tensor_parallel",       "integer", "rank", "TP", { 1, most.gpus }),
  field("candidate", "context_parallel",      "integer", "rank", "CP", { 1, most.gpus }),
  field("candidate", "expert_parallel",       "integer", "rank", "EP", { 1, most.gpus }),
  field("candidate", "expert_tensor_parallel", "integer", "rank", "expert TP", { 1, most.gpus }),
  field("candidate", "data_parallel",         "integer", "rank", "DP", { 1, most.gpus }),
  field("candidate", "pipeline_parallel",     "integer", "rank", "P: pipeline depth", { 1, most.gpus }),
  field("candidate", "virtual",               "integer", "1",    "V as a user configures it: chunks per rank of an interleaved schedule, otherwise 1", { 1, most.layers }),
  field("candidate", "microbatches",          "integer", "1",    "M per pipeline and step, at the smallest batch; for DualPipe over both directions", { 1, most.counted }),
  field("candidate", "microbatches_per_rank", "number",  "1",    "M / P", { 0, most.counted }),
  field("candidate", "schedule",              "string",  nil,    "pipeline schedule; none at P = 1", schedules),
  field("candidate", "schedule_family",       "string",  nil,    "zero_bubble for its members, otherwise the schedule itself", families),
  field("candidate", "expert_link",           "number",  "byte/s", "slowest link that the expert-parallel group crosses, one direction, per GPU; absent at EP 1", { 0, most.link }),
  field("candidate", "alltoall_kernel",       "string",  nil,    "custom all-to-all kernel that overlaps with compute; false: none for this topology"),
  field("candidate", "alltoall_fraction",     "number",  "fraction", "all-to-all seconds / ideal step, before overlap", { 0 }),
  field("candidate", "micro_batch_size",      "integer", "sequence", "sequences of one microbatch", { 1, most.counted }),
  field("candidate", "recompute",             "string",  nil,    "what is computed again instead of stored", { "none", "selective", "modules", "full" }),
  field("candidate", "sharding",              "string",  nil,    "what data parallelism shards", shardings),
  field("candidate", "gpus_used",             "integer", "gpu",  "GPUs that the layout uses; the others of `gpus` stay idle", { 1, most.gpus }),
  -- after simulation
  field("simulated", "peak_bytes",       "number",  "byte",     "memory of the fullest rank", { 0 }),
  field("simulated", "step_seconds",     "number",  "second",   "one training step at the full batch", { 0 }),
  field("simulated", "bubble_fraction",  "number",  "fraction", "mean idle share of the pipeline: 1 − Σ busy / (P × makespan)", { 0, 1 }),
  field("simulated", "training_days",    "number",  "1",        "days of the whole run, at the full batch and the spec's goodput", { 0, most.run }),
  field("simulated", "gpu_hours",        "number",  "1",        "hours of all GPUs in that time", { 0, most.run }),
  field("simulated", "cost",             "number",  "1",        "of those hours, at the spec's price; absent: no price given", { 0, most.run }),
  field("simulated", "pipeline_avoidable_seconds", "number", "second", "how much faster a step is without a pipeline (P = 1, TP inside the scale-up domain); absent when it does not fit"),
  field("simulated", "pipeline_avoidable_fraction", "number", "fraction", "the same as a share of the step", { -1000, 1 }),
  -- the finished plan
  field("plan", "status",                    "string", nil,      "outcome", { "planned", "refused", "rejected" }),
  field("plan", "pipeline_avoidable_error",    "number", "fraction", "how far pipeline_avoidable_fraction can be wrong, nine times of ten (docs/accuracy.md)", { 0, 1 }),
  field("plan", "host_optimizer_bytes",      "number", "byte",   "host memory of one node that an offloaded optimizer takes", { 0 }),
  field("plan", "host_memory",               "number", "byte",   "host memory of one node; absent: not given", { 0, most.device }),
  -- of the finished plan's ranks (policy/ranks.lua writes any_rank and every_rank with these and peak_bytes)
  field("plan", "least_rank_bytes",      "number",  "byte",     "memory of the emptiest rank", { 0 }),
  field("plan", "most_rank_idle",        "number",  "fraction", "idle share of the pipeline's time of the rank that waits most", { 0, 1 }),
  field("plan", "least_rank_idle",       "number",  "fraction", "idle share of it of the rank that waits least", { 0, 1 }),
  field("plan", "most_rank_layers",      "integer", "1",        "decoder layers of the rank that holds most", { 0, most.layers }),
  field("plan", "least_rank_layers",     "integer", "1",        "decoder layers of the rank that holds fewest", { 0, most.layers }),
  field("plan", "most_rank_stages",      "integer", "1",        "stages of the rank that holds most of them, of both copies where there are two", { 1, most.layers }),
  field("plan", "least_rank_stages",     "integer", "1",        "stages of the rank that holds fewest", { 1, most.layers }),
  field("plan", "avoidable_sharding", "string", nil, "what data parallelism shards in that layout", shardings),
  field("plan", "avoidable_tensor_parallel", "integer", "rank",  "TP of that layout", { 1, most.gpus }),
}

local by_name, names = {}, {}
for _, entry in ipairs(fields) do
  by_name[entry.name] = entry
  names[#names + 1] = entry.name
end

-- A spec labels its run as it likes: labels { tier = "research" } is the field label_tier of rules. So these fields have no list: each name
-- of that form is one, made when it is asked for.
local LABEL = "label_"
local labels = {}
local function label(name)
  if type(name) ~= "string" or not name:match "^label_%w[%w_]*$" or #name > 40 then return nil end
  labels[name] = labels[name] or field("request", name, "string", nil, "the spec's label " .. name:sub(#LABEL + 1))
  return labels[name]
end
setmetatable(by_name, { __index = function(_, name) return label(name) end })

-- Words that statements use themselves; never the name of a field, rule or parameter.
local reserved = { "id", "message", "reason", "expires", "source", "recommend", "why", "within", "severity", "unless", "when", "try", "overlapping",
                   "any_rank", "every_rank" }

-- Names of fields that were others before. A policy may still use the old one, and is told so, until pipeplan has that version.
local renamed = {
  network_link = { to = "network_per_gpu", goes = "0.2.0" },
  host_bytes = { to = "host_optimizer_bytes", goes = "0.2.0" },
}

-- What a spec and a plan call `parallelism.…`, and the field of a candidate that it is.
local parallelism = {
  data = "data_parallel", tensor = "tensor_parallel", expert = "expert_parallel", expert_tensor = "expert_tensor_parallel",
  context = "context_parallel", pipeline = "pipeline_parallel", virtual = "virtual",
}

return { fields = fields, by_name = by_name, names = names, reserved = reserved, schedules = schedules, parallelism = parallelism,
         renamed = renamed, most = most, label = label, label_prefix = LABEL, shardings = shardings, zero_of = zero_of }
