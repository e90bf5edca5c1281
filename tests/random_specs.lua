-- SPDX-License-Identifier: Apache-2.0
-- random_specs.lua: specs of every kind, the same wherever and whenever they are made: what several properties are tried on.

local planning = require "planning"
local engine = require "engine"

local random_specs = {}

-- A linear congruential generator of its own (Knuth's MMIX constants), so that the specs are the same wherever and whenever they are made.
function random_specs.generator(seed)
  local state = seed
  local function integer(high)  -- 1 … high
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % high + 1
  end
  for _ = 1, 8 do integer(2) end  -- neighbouring seeds drift apart
  local random = { integer = integer }
  function random.pick(list) return list[integer(#list)] end
  function random.sometimes(percent) return integer(100) <= percent end
  return random
end

local files = { "deepseek-v3", "kimi-k2", "llama-2-7b", "llama-3-70b", "llama-3.1-405b", "mixtral-8x7b", "qwen3-235b-a22b",
                "llama-3-70b", "deepseek-v3", "qwen3-0.6b" }
local schedules = engine.schedule.kinds

local function random_model(r)
  if r.sometimes(55) then return "examples/models/" .. r.pick(files) .. ".json" end
  local layers, heads = r.pick { 24, 31, 48, 61, 80, 96, 126 }, r.pick { 8, 32, 64, 64 }
  if r.sometimes(25) then
    return r.sometimes(50) and { architecture = "moe", total = r.pick { "16B", "46.7B", "235B", "671B", "1T" },
                                 active = r.pick { "2.4B", "6B", "13B" }, layers = layers }
           or { architecture = "dense", total = r.pick { "8B", "34B", "70B", "180B", "405B" }, layers = layers }
  end
  local model = { name = "random", layers = layers, hidden = 128 * heads, heads = heads, kv_heads = r.pick { 1, 2, 4, 8 }, head_dim = 128,
                  vocab = r.pick { 32000, 50257, 128256, 151936 }, tied_embeddings = r.sometimes(20) }
  if r.sometimes(50) then
    model.experts, model.experts_per_token = r.pick { 8, 16, 60, 64, 128, 160, 256 }, r.pick { 1, 2, 4, 8 }
    model.expert_ffn = 64 * r.integer(40)
    if r.sometimes(30) then model.shared_ffn = model.expert_ffn end
  else
    model.ffn = 256 * (heads + r.integer(heads))
  end
  return model
end

local function random_gpus(r)
  if r.sometimes(20) then return r.integer(600) end
  return r.pick { 1, 2, 4, 8, 16, 32, 64, 96, 99, 100, 128, 192, 256, 384, 499, 500, 512, 768, 1000, 1024, 1536, 2048, 3072, 4096, 16384 }
end

local function random_batch(r, gpus, tokens)
  if r.sometimes(25) then return nil end
  if r.sometimes(15) and tokens:find "T" then return { { 0, 512 }, { "10B", 1024 }, { "50B", 3072 } } end
  if r.sometimes(5) then return r.integer(5000) end
  if r.sometimes(40) then return gpus * r.pick { 1, 2, 3, 4, 8, 15, 32 } end
  return r.pick { 64, 256, 384, 1024, 1536, 2048, 4096, 7680, 15360 }
end

local function maybe(r, percent, list) return r.sometimes(percent) and r.pick(list) or nil end

-- Degrees that do not divide the GPUs are an error of the spec: some, not most.
local function maybe_degree(r, percent, list, gpus)
  local degree = maybe(r, percent, list)
  if degree and gpus % degree ~= 0 and not r.sometimes(5) then return nil end
  return degree
end

local function random_parallelism(r, gpus, dense)
  local experts = dense and (r.sometimes(2) and { 2 } or { 1 }) or { 1, 2, 8, 16, 64 }
  return {
    tensor = maybe_degree(r, 25, { 1, 2, 4, 8 }, gpus), context = maybe_degree(r, 10, { 1, 2 }, gpus),
    pipeline = maybe_degree(r, 30, { 1, 2, 3, 4, 8, 16, 30, 64 }, gpus), expert = maybe_degree(r, 20, experts, gpus),
    expert_tensor = not dense and maybe_degree(r, 5, { 1, 2 }, gpus) or nil, virtual = maybe(r, 5, { 1, 2, 3 }),
    schedule = maybe(r, 25, schedules),
  }
end

local frameworks = { "megatron", "megatron-bridge", "flagscale", "deepseek-dualpipe", "torchtitan", "torch", "deepspeed", "nanotron",
                     "mindspeed", "primus", "colossalai", "zero-bubble" }

function random_specs.any(r)
  local gpus, model, tokens = random_gpus(r), random_model(r), r.pick { "999M", "1B", "100B", "100B", "2T", "2T", "15T", "15T", "15T" }
  local name = type(model) == "string" and model or model.experts and "moe" or model.architecture or "dense"
  return {
    cluster = {
      gpus = gpus, gpus_per_node = maybe(r, 10, { 4, 8, 16 }), memory_per_gpu = maybe(r, 15, { "24GiB", "40GiB", "96GiB", "192GiB" }),
      accelerator = r.pick { "H100-SXM", "H800-SXM-80GB", "A100-SXM-80GB", "B200", "MI300X", "GB200", "H200-SXM" },
      network = { per_gpu = r.pick { "800Gbps", "400Gbps", "201Gbps", "200Gbps", "100Gbps", "25Gbps" },
                  fabric = r.pick { "infiniband", "roce", "efa", "ethernet", "slingshot" }, oversubscription = maybe(r, 10, { 2, 4 }) },
      alltoall_kernel = maybe(r, 25, { "deepep", "nccl_alltoall", "uccl_ep", "false" }),
    },
    model = model,
    training = {
      tokens = tokens, sequence_length = maybe(r, 80, { 2048, 4096, 8192, 32768 }),
      micro_batch_size = maybe(r, 20, { 1, 1, 2, 4 }), global_batch_size = random_batch(r, gpus, tokens),
      precision = maybe(r, 40, { "bf16", "bf16", "fp8", "fp16" }), moments = maybe(r, 20, { "bf16", "fp32" }),
      gradients = maybe(r, 20, { "bf16", "fp32" }), optimizer = maybe(r, 20, { "adamw", "muon", "sgd" }),
      recompute = maybe(r, 70, { "none", "selective", "full", "selective", "full" }),
    },
    parallelism = random_parallelism(r, gpus, name == "dense" or name:find "llama" ~= nil or name:find "0.6b" ~= nil),
    framework = maybe(r, 20, frameworks),
  }
end

-- What few specs ask for, over one of those: every term that a sum of bytes or seconds may have is switched on at some time.
function random_specs.with_everything(r)
  local spec = random_specs.any(r)
  local fp8 = spec.training.precision == "fp8"
  return planning.merge(spec, {
    cluster = { overhead = maybe(r, 30, { 0, "1GiB", "8GiB" }), host_memory = maybe(r, 20, { "2TiB" }) },
    training = {
      optimizer_offload = maybe(r, 30, { 1, 0.5 }), zero = maybe(r, 20, { 0 }), expert_imbalance = maybe(r, 20, { 1.2 }),
      weights = fp8 and maybe(r, 50, { "bf16", "fp8_single" }) or nil, activations = fp8 and maybe(r, 50, { "fp8", "bf16" }) or nil,
      recompute = maybe(r, 40, { { "norm" }, { "norm", "activation" }, { "core_attention" }, { "moe" } }),
    },
  })
end

return random_specs
