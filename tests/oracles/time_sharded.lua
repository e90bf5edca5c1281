-- SPDX-License-Identifier: Apache-2.0
-- time_sharded.lua: tokens per second of runs without a pipeline whose gradients and parameters are sharded (sharded_rows.csv in the folder
-- $PIPEPLAN_DATA/oracles), planned by `plan` itself. Shapes: MPT as mosaicml/llm-foundry scripts/train/benchmarking builds them (tied
-- embeddings, no biases, 4 × hidden, vocabulary 50,368), Llama as published, InternLM-7B as Llama-7B with a vocabulary of 103,168.
--
-- What was fitted to them: MPT's attention, a Triton kernel of 2023 whose speed no source gives, to the rows of 32,768 tokens and
-- more, which are not tested for it (tests/data/attention); and that MPT's LayerNorm counts as not fused (its backward is three kernels),
-- chosen with the other rows in sight. Its loss is PyTorch's. fms-fsdp runs Llama's norm, rotary embedding and SwiGLU as PyTorch's
-- operations unless it compiles them (foundation-model-stack modules); InternEvo fuses all of these, and assigns its 227 tensors whole to
-- ranks, which reduce and broadcast them one by one (InternEvo internlm/solver/optimizer/hybrid_zero_optim.py, _partition_param_list,
-- broadcast_params).

local csv = require "oracles.csv"
local pipeplan = require "pipeplan"
local rows = require "oracles.rows"

local file, why = rows.data "oracles/sharded_rows.csv"
if not file then return { skipped = why } end

local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-28" })

local function mpt(layers, hidden, heads)
  return { layers = layers, hidden = hidden, heads = heads, kv_heads = heads, ffn = 4 * hidden, vocab = 50368, gated = false,
           tied_embeddings = true }
end

local function llama(layers, hidden, heads, kv_heads, ffn, vocab)
  return { layers = layers, hidden = hidden, heads = heads, kv_heads = kv_heads, ffn = ffn, vocab = vocab }
end

local models = {
  ["MPT-125m"] = mpt(12, 768, 12), ["MPT-350m"] = mpt(24, 1024, 16), ["MPT-760m"] = mpt(24, 1536, 12), ["MPT-1b"] = mpt(24, 2048, 16),
  ["MPT-3b"] = mpt(32, 2560, 20), ["MPT-7b"] = mpt(32, 4096, 32), ["MPT-13b"] = mpt(40, 5120, 40), ["MPT-30b"] = mpt(48, 7168, 56),
  ["MPT-70b"] = mpt(80, 8192, 64),
  ["InternLM-7B"] = llama(32, 4096, 32, 32, 11008, 103168),
  ["Llama-3.1-8B"] = llama(32, 4096, 32, 8, 14336, 128256), ["Llama-3-8B"] = llama(32, 4096, 32, 8, 14336, 128256),
  ["Llama-3.1-70B"] = llama(80, 8192, 64, 8, 28672, 128256), ["Llama-3-70B"] = llama(80, 8192, 64, 8, 28672, 128256),
  ["Llama-2-7B"] = llama(32, 4096, 32, 32, 11008, 32000), ["Llama-2-13B"] = llama(40, 5120, 40, 40, 13824, 32000),
  ["Llama-2-34B"] = llama(48, 8192, 64, 8, 22016, 32000), ["Llama-2-70B"] = llama(80, 8192, 64, 8, 28672, 32000),
}

-- Network as the source has it: bytes a second of one GPU.
local hardware = {
  h100_80gb = { accelerator = "H100-SXM", network = { fabric = "roce", per_gpu = "400Gbps" } },
  a100_80gb = { accelerator = "A100-SXM-80GB", network = { fabric = "roce", per_gpu = "200Gbps" } },
  a100_40gb = { accelerator = "A100-SXM-40GB", network = { fabric = "roce", per_gpu = "200Gbps" } },
  ["A100-80GB (4x100 Gb/s RoCE a node)"] = { accelerator = "A100-SXM-80GB", network = { fabric = "roce", per_gpu = "50Gbps" } },
  ["H100-96GB HBM2e 500 W (8/node, 400 Gb/s per GPU)"] = { accelerator = "H100-SXM", memory_per_gpu = "95GiB",
                                                         network = { fabric = "infiniband", per_gpu = "400Gbps" } },
  ["A100-80GB (400 Gb/s a node)"] = { accelerator = "A100-SXM-80GB", network = { fabric = "infiniband", per_gpu = "50Gbps" } },
}

local attention = { H100 = "tests/data/attention/mpt_h100.json", A100 = "tests/data/attention/mpt_a100.json" }

local function unfused(row)
  if row.model:match "^MPT" then return { "norm" } end
  return row.model ~= "InternLM-7B" and row.note:match "eager" and { "norm", "rope", "activation" } or nil
end

local function spec_of(row)
  local where, model = hardware[row.accelerator], models[row.model]
  if not where or not model then return nil end
  local gpus, tensor, pipeline = tonumber(row.gpus), tonumber(row.tp), tonumber(row.pp)
  if pipeline > 1 or tonumber(row.ep) > 1 then return nil end
  local context = tonumber(row.cp)
  local data = gpus // (tensor * context)
  local micro = tonumber(row.micro_batch)
  local batch = tonumber(row.global_batch)
  if not micro or not batch or batch % (micro * data) ~= 0 then return nil end
  local sharding = row.sharding:match "^zero3" and "parameters" or row.sharding:match "^zero2" and "gradients"
                   or row.sharding:match "^hsdp" and "parameters" or row.sharding:match "^zero1" and "optimizer"
  if not sharding then return nil end
  local inside = tonumber(row.sharding:match "within (%d+)")
  local pure = row.precision:match "PURE" ~= nil
  return {
    cluster = { gpus = gpus, accelerator = where.accelerator, network = where.network, memory_per_gpu = "100TiB",
                kernels = row.model:match "^MPT" and attention[where.accelerator:match "^%w+"] or nil },
    model = model,
    training = {
      tokens = "1T", sequence_length = tonumber(row.seq), global_batch_size = batch, micro_batch_size = micro,
      precision = row.precision:match "fp8" and "fp8" or "bf16", sharding = sharding, replicas = inside and gpus // inside or nil,
      recompute = row.recompute == "full" and "full" or row.recompute:match "selective" and "selective" or "none",
      gradients = (pure or row.model == "InternLM-7B") and "bf16" or "fp32",
      unfused = unfused(row), loss = row.model ~= "InternLM-7B" and "torch" or nil,
      bucket = row.model == "InternLM-7B" and 7.3e9 / 227 / tensor or nil,
    },
    parallelism = { tensor = tensor, context = context, pipeline = 1, schedule = "none" },
  }
end

-- What no spec can say.
local function excuse(row, spec)
  if row.model:match "^MPT" and spec.training.sequence_length >= 32768 then return "its attention was fitted to these" end
  if row.source:match "fms%-fsdp" and row.recompute == "selective" then
    return "recomputes a share of its layers whole (fms_fsdp/policies/ac_handler.py): the source does not say which"
  end
  if row.accelerator:match "500 W" then return "a card of 500 W and HBM2e, whose clocks nobody gives" end
  if row.precision:match "fp8" and row.model:match "^MPT" then return "fp8 of Transformer Engine of 2023" end
  if row.model:match "MPT%-[13][25][05]m" then return "so small that its trainer's own work between steps decides" end
  if row.model == "MPT-30b" and spec.cluster.gpus == 8 and spec.training.sequence_length == 8192 then
    return "fills its card to the last gigabyte: what its allocator frees and asks for again is not priced"
  end
  if row.model == "MPT-13b" and (row.tokens_s_gpu == "3605" or row.tokens_s_gpu == "6246") then
    return "over the peak of the card: a slip of the source"
  end
  if row.recompute:match "offload" then return "offloads activations" end
  if spec.training.micro_batch_size * spec.training.sequence_length < 2048 then
    return "fewer than 2,048 tokens a microbatch: FSDP's own launches are not priced"
  end
end

local list = {}
for _, row in ipairs(csv.read(file)) do
  local spec = tonumber(row.tokens_s_gpu) and spec_of(row)
  if spec then
    local good, plan = pcall(policy.plan_spec, policy, spec, ".")
    if good and plan.step_seconds then
      local ours = plan.tokens_per_step / plan.step_seconds / spec.cluster.gpus
      local case = string.format("%s, %d × %s %s, %s × %s of %s, %s, %s", row.model, spec.cluster.gpus, row.accelerator:match "^[%w_-]+",
                                 row.precision, row.global_batch, row.micro_batch, row.seq, row.recompute, row.sharding)
      local excused = excuse(row, spec)
      local one = rows.number(row.source:match "^[^ @]+", case, "tokens/s/GPU", tonumber(row.tokens_s_gpu), ours, 0.2, excused)
      list[#list + 1] = rows.of(row.source:match "^[^ @/]+/?([^ @]*)", one)
    end
  end
end
return list
