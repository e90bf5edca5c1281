-- SPDX-License-Identifier: Apache-2.0
-- contradictions.lua: what a spec says that cannot all be true: GPUs against the fixed layout, microbatches against the batch, experts,
-- layers. Exit 2. What is consistent but no schedule or policy allows (odd depth, M < 2P) is judged later, by rules.

local integers = require "pipeplan.base.integers"
local recipe = require "pipeplan.input.recipe"
local stages_of = require "pipeplan.input.stages"

local contradictions = {}

-- The fixed ones of `names` → their product, "tensor 8 × pipeline 16", and the list.
local function product_of(parallelism, names, said)
  local product, parts, fixed = 1, {}, {}
  for _, name in ipairs(names) do
    local degree = parallelism[name] or said and said[name]
    if degree and degree > 1 then
      product = product * degree
      parts[#parts + 1] = name .. " " .. degree .. (parallelism[name] and "" or said.why)
      fixed[#fixed + 1] = name
    end
  end
  return product, table.concat(parts, " × "), fixed
end

local function check_divisible(request, given, complain, names, said)
  local gpus = request.cluster.gpus
  local product, text, fixed = product_of(request.parallelism, names, said)
  if gpus % product == 0 then return end
  if #fixed == 1 and request.parallelism[fixed[1]] then
    complain(given["parallelism." .. fixed[1]], "%d: does not divide the %d GPUs; nearest: %d", product, gpus,
             integers.nearest_divisor(gpus, product))
  end
  complain(given["cluster.gpus"], "%d: not divisible by the fixed layout %s = %d; nearest: %d", gpus, text, product,
           integers.nearest_multiple(gpus, product))
end

-- No pipeline, and what only a pipeline has.
local function check_depth_one(request, given, complain)
  local p = request.parallelism
  if p.schedule == "none" and p.pipeline > 1 then
    complain(given["parallelism.schedule"], "none: pipeline %d needs a schedule; nearest: 1f1b", p.pipeline)
  elseif p.pipeline == 1 and (p.virtual or 1) > 1 then
    complain(given["parallelism.virtual"], "%d: pipeline 1 has nothing to interleave; nearest: 1", p.virtual)
  end
end

local function check_layout(request, given, complain)
  local p, gpus = request.parallelism, request.cluster.gpus
  check_divisible(request, given, complain, { "tensor", "context", "pipeline", "data" })
  -- expert TP that is not given is what the framework takes it for
  local experts = (request.model.shape.experts or 0) > 0 and (p.expert or 1) > 1 and recipe.expert_tensor(request) or 1
  check_divisible(request, given, complain, { "expert", "expert_tensor", "pipeline" },
                  { expert_tensor = experts, why = " (as TP, by default)" })
  if p.tensor and p.context and p.pipeline and p.data then
    local others = p.tensor * p.context * p.pipeline
    if others * p.data ~= gpus then
      complain(given["parallelism.data"], "%d: tensor %d × context %d × pipeline %d × data %d is %d GPUs, not %d; nearest: %d", p.data,
               p.tensor, p.context, p.pipeline, p.data, others * p.data, gpus, gpus // others)
    end
  end
end

local function check_experts(request, given, complain)
  local p, experts = request.parallelism, request.model.shape.experts or 0
  if experts == 0 then
    for _, name in ipairs { "expert", "expert_tensor" } do
      if (p[name] or 1) > 1 then
        complain(given["parallelism." .. name], "%d: the model is dense, it has no experts; nearest: 1", p[name])
      end
    end
  elseif (p.expert or 1) > experts then
    complain(given["parallelism.expert"], "%d: the model has %d experts; nearest: %d", p.expert, experts, experts)
  end
end

-- M × DP × microbatch size = batch, with what of it is fixed. M is at the smallest batch of a ramp.
local function check_batch(request, given, complain)
  local p, t = request.parallelism, request.training
  local batch, micro = t.smallest_batch_size, t.micro_batch_size
  if not batch then return end
  local data = p.data
  if not data and p.tensor and p.context and p.pipeline then data = request.cluster.gpus // (p.tensor * p.context * p.pipeline) end
  local step = micro * (data or 1)
  local step_text = "microbatch size " .. micro .. (data and " × data " .. data or "")
  for i, entry in ipairs(t.batch_ramp or { { 0, batch } }) do
    if entry[2] % step ~= 0 then
      complain(given["training.global_batch_size"], "%s%d: not a multiple of %s = %d; nearest: %d",
               t.batch_ramp and "a ramp whose entry " .. i .. " has " or "", entry[2], step_text, step,
               integers.nearest_multiple(entry[2], step))
    end
  end
  local m = p.microbatches
  if not m then return end
  local at = given["parallelism.microbatches"]
  if data then
    if m * step ~= batch then
      complain(at, "%d: microbatches %d × %s is %d, but the %sbatch is %d; nearest: %d", m, m, step_text, m * step,
               t.batch_ramp and "smallest " or "", batch, batch // step)
    end
    return
  end
  if request.free.micro_batch_size and batch % m == 0 then return end
  -- DP is free: is there one that the GPUs can be divided into?
  local layout = (p.tensor or 1) * (p.context or 1) * (p.pipeline or 1)
  local slots, sequences = request.cluster.gpus // layout, batch // micro
  if sequences % m == 0 and slots % (sequences // m) == 0 then return end
  local best
  for ways = 1, slots do
    if slots % ways == 0 and sequences % ways == 0 then
      local candidate = sequences // ways
      if not best or math.abs(candidate - m) < math.abs(best - m) then best = candidate end
    end
  end
  complain(at, "%d: batch %d / (%d × microbatch size %d) is no data parallelism that divides %d GPUs%s; nearest: %d", m, batch, m, micro,
           request.cluster.gpus, layout > 1 and " / (" .. select(2, product_of(p, { "tensor", "context", "pipeline" })) .. ")" or "", best)
end

local function check_ramp(request, given, complain)
  local t = request.training
  local last = t.batch_ramp and t.batch_ramp[#t.batch_ramp][1]
  if last and last >= t.tokens then
    complain(given["training.global_batch_size"], "a ramp that reaches its last batch at token %.15g: the run ends at %.15g", last,
             t.tokens)
  end
end

local function check_stages(request, given, complain)
  local p, layers = request.parallelism, request.model.layers
  local stages = p.layers_per_stage
  if not stages then return end
  local at, sum = nil, 0
  for _, way in ipairs(stages_of.ways) do
    for _, name in ipairs(way) do at = at or given["parallelism." .. name] end
  end
  for _, count in ipairs(stages) do sum = sum + count end
  local shown = "[" .. table.concat(stages, ",") .. "]"
  if #shown > 60 then shown = "a list of " .. #stages end
  if sum ~= layers then complain(at, "%s: sums to %d, but the model has %d layers", shown, sum, layers) end
  if p.pipeline and #stages % p.pipeline ~= 0 then
    complain(at, "%s: has %d stages, no multiple of pipeline %d; nearest: %d", shown, #stages, p.pipeline,
             integers.nearest_multiple(#stages, p.pipeline))
  end
  if p.pipeline and (p.virtual or 1) > 1 and #stages ~= p.pipeline * p.virtual then   -- a V of two has virtual 1
    complain(at, "%s: has %d entries, but pipeline %d × virtual %d = %d stages%s", shown, #stages, p.pipeline, p.virtual,
             p.pipeline * p.virtual, #stages % p.pipeline == 0 and "; nearest: virtual " .. #stages // p.pipeline or "")
  end
end

-- What only fp8 products have.
local function check_fp8(request, given, complain)
  local t = request.training
  for _, field in ipairs { "weights", "activations" } do
    if t[field] and t.precision ~= "fp8" then
      complain(given["training." .. field], "%s: products are %s, and so are the %s; leave it out, or give precision fp8", t[field],
               t.precision, field)
    end
  end
  if t.fp8_gathers and t.precision ~= "fp8" then
    complain(given["training.fp8_gathers"], "true: products are %s, and so is what is gathered; leave it out, or give precision fp8",
             t.precision)
  end
end

-- Of a tower of images, where there is one, all trains or nothing; with adapters nothing does.
local function check_tower(request, given, complain)
  local said, at = request.training.tower, given["training.tower"]
  if not said or said == "none" then return end
  if not request.model.tower_parameters then complain(at, "%s: %s has no tower of images; leave it out", said, request.model.name) end
  if said == "trained" and request.training.lora_rank then
    complain(at, "trained: with lora_rank only the text model's adapters train; nearest: frozen")
  end
end

-- Documents are no longer than the sequence that they are packed into. Of documents of at most that length Σ length² ≤ longest · Σ length.
local function check_documents(request, given, complain)
  local t, rms_at = request.training, given["training.document_length_rms"]
  local mean, rms, longest = t.document_length, t.document_length_rms, t.sequence_length
  if rms and not mean then
    complain(rms_at, "%.15g: a quadratic mean of documents whose mean training.document_length does not say", rms)
  end
  if mean and mean > longest then
    complain(given["training.document_length"], "%.15g: documents do not fit into sequences of %d; nearest: %d", mean, longest, longest)
  end
  if rms and rms < mean then complain(rms_at, "%.15g: no less than the mean, %.15g; nearest: %.15g", rms, mean, mean) end
  if rms and rms ^ 2 > longest * mean * (1 + 1e-9) then
    complain(rms_at, "%.15g: of a mean of %.15g and at most %d each; nearest: %d", rms, mean, longest,
             math.floor(math.sqrt(longest * mean)))
  end
end

local function check_sharding(request, given, complain)
  local named, stage = given["training.sharding"], given["training.zero"]
  if named and stage and stage.value ~= request.training.zero then
    complain(stage, "%d: sharding %s is stage %d; nearest: %d", stage.value, named.value, request.training.zero, request.training.zero)
  end
end

-- Raises the first contradiction. given: path → where a field was given; complain(at, format, …) raises.
function contradictions.check(request, given, complain)
  check_sharding(request, given, complain)
  check_depth_one(request, given, complain)
  check_layout(request, given, complain)
  check_experts(request, given, complain)
  check_batch(request, given, complain)
  check_documents(request, given, complain)
  check_ramp(request, given, complain)
  check_stages(request, given, complain)
  check_fp8(request, given, complain)
  check_tower(request, given, complain)
end

-- What a recipe says of parts that the model does not have: a recipe may be of several models, so that it is told and planned.
function contradictions.unread(request, given)
  local list, t, shape = {}, request.training, request.model.shape
  local function tell(path, what, lacks)
    if not given[path] then return end
    list[#list + 1] = { id = "unused_field", severity = "warning",
                        message = string.format("%s%s: %s: nothing reads it", path, what, lacks) }
  end
  local dense = (shape.experts or 0) == 0 and "the model is dense, it has no experts"
  if dense and (t.expert_imbalance or 1) ~= 1 then tell("training.expert_imbalance", "", dense) end
  if dense and t.unfused and t.unfused.experts then tell("training.unfused", " experts", dense) end
  if dense and t.recompute.moe then tell("training.recompute", " moe", dense) end
  if shape.attention ~= "mla" and t.recompute.mla_up_projection then
    tell("training.recompute", " mla_up_projection", "the model has no latent attention")
  end
  return list
end

return contradictions
