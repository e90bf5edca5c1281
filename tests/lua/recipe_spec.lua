-- SPDX-License-Identifier: Apache-2.0
-- stdlib/input/recipe.lua: bytes, flags and tiers that follow from a request.

require "pipeplan"
local recipe = require "pipeplan.input.recipe"

local function request(changes)
  local value = {
    cluster = { gpus = 64, gpus_per_node = 8,
                network = { fabric = "infiniband", per_gpu = 50e9, scale_up_gpus = 8, scale_up_per_gpu = 450e9, oversubscription = 1,
                            efficiency = 0.8, latency = 1e-5, scale_up_efficiency = 0.7, scale_up_latency = 2e-6 } },
    device = { flops = 1e15, flops_bf16 = 5e14 },
    model = { architecture = "moe" }, free = {},
    training = { precision = "bf16", optimizer = "adam", moments = "fp32", gradients = "fp32", recompute = {}, sequence_length = 4096,
                 micro_batch_size = 1, optimizer_offload = 0 },
  }
  for key, change in pairs(changes or {}) do value.training[key] = change end
  return value
end

-- Bytes per parameter without sharding, and the part that a distributed optimizer shards: Megatron-LM docs, dist_optimizer table.
local function state(changes)
  local t = recipe.training(request(changes))
  return t.parameter_bytes + t.gradient_bytes + t.master_bytes + t.moment_bytes, t.master_bytes + t.moment_bytes
end

describe("the training recipe", function()
  it("of bf16 with fp32 gradients keeps 18 bytes per parameter, 12 of them sharded", function()
    assert.same({ 18, 12 }, { state {} })
  end)

  it("of fp32 keeps 16 bytes, 8 of them sharded: the weights are their own master", function()
    assert.same({ 16, 8 }, { state { precision = "fp32" } })
  end)

  it("of DeepSeek-V3 keeps fp32 master weights and gradients and bf16 moments", function()
    -- DeepSeek-V3 report, 3.3.3 "low-precision optimizer states"
    local t = recipe.training(request { precision = "fp8", moments = "bf16" })
    assert.equal(4, t.gradient_bytes)
    assert.equal(4, t.master_bytes)
    assert.equal(4, t.moment_bytes)
  end)

  it("of fp8 caches and dispatches one byte per element with an fp32 scale per 128, and combines in bf16", function()
    -- DeepSeek-V3 report, 3.3.1 and 3.3.3
    local t = recipe.training(request { precision = "fp8" })
    assert.equal(1.03125, t.activation_bytes)
    assert.equal(1.03125, t.dispatch_bytes)
    assert.equal(2, t.combine_bytes)
  end)

  it("of fp8 keeps what SwiGLU reads as DeepSeek-V3 did, or as Transformer Engine does where that is what runs it", function()
    local function kept(changes, framework)
      local r = request(changes)
      r.framework = framework
      local t = recipe.training(r)
      return { t.attention_output_bytes, t.activation_input_bytes, t.weight_gradient_bytes }
    end
    assert.same({ 1.5, 1.03125, 0 }, kept { precision = "fp8" })
    assert.same({ 3.03125, 2, 2 }, kept({ precision = "fp8" }, "megatron"))
    assert.same({ 3.03125, 2, 2 }, kept { precision = "fp8", activations = "bf16" })
    assert.same({ 1.5, 1.03125, 0 }, kept({ precision = "fp8", activations = "fp8" }, "megatron"))
    assert.same({ 2, 2, 2 }, kept {})
  end)

  it("keeps one moment for Muon and for SGD with momentum", function()
    assert.equal(4, recipe.training(request { optimizer = "muon" }).moment_bytes)
    assert.equal(2, recipe.training(request { optimizer = "sgd", moments = "bf16" }).moment_bytes)
  end)

  it("keeps a byte or two a moment where the optimizer is precision-aware", function()
    -- Transformer Engine FusedAdam, exp_avg_dtype and exp_avg_sq_dtype: fp32, fp16, bf16, uint8 (fp8)
    assert.equal(4, recipe.training(request { moments = "fp16" }).moment_bytes)
    assert.equal(2, recipe.training(request { moments = "fp8" }).moment_bytes)
  end)

  it("holds fp8 weights twice, once, or beside bf16 ones", function()
    assert.equal(2, recipe.training(request { precision = "fp8" }).parameter_bytes)
    assert.equal(1, recipe.training(request { precision = "fp8", weights = "fp8_single" }).parameter_bytes)
    assert.equal(4, recipe.training(request { precision = "fp8", weights = "bf16" }).parameter_bytes)
  end)

  it("shards the optimizer unless told not to, and offloads what it is told to", function()
    assert.is_true(recipe.training(request {}).shard_optimizer)
    assert.is_false(recipe.training(request { zero = 0 }).shard_optimizer)
    assert.equal(0.5, recipe.training(request { optimizer_offload = 0.5 }).optimizer_offload)
    assert.equal(1.2, recipe.training(request { expert_imbalance = 1.2 }).expert_imbalance)
  end)

  it("copies the recompute flags", function()
    local r = request { recompute = { norm = true } }
    local t = recipe.training(r)
    assert.same({ norm = true }, t.recompute)
    assert.are_not.equal(r.training.recompute, t.recompute)
  end)

  it("splits sequences only where there is tensor parallelism", function()
    assert.is_false(recipe.training(request(), { tensor = 1 }).sequence_parallel)
    assert.is_true(recipe.training(request(), { tensor = 8 }).sequence_parallel)
  end)
end)

describe("the network", function()
  it("has the scale-up domain and the fabric as tiers", function()
    local tiers = recipe.network(request()).tiers
    assert.same({ reach = 8, bandwidth = 450e9, efficiency = 0.7, latency = 2e-6 }, tiers[1])
    assert.same({ reach = 64, bandwidth = 50e9, efficiency = 0.8, latency = 1e-5 }, tiers[2])
    assert.equal(2, #tiers)
  end)

  it("has one tier when all GPUs share one domain", function()
    local r = request()
    r.cluster.gpus = 8
    assert.equal(1, #recipe.network(r).tiers)
  end)

  it("shares network cards that are fewer than the GPUs", function()
    -- nccl#780: one card for 8 GPUs
    local r = request()
    r.cluster.network.nics_per_node = 1
    assert.equal(6.25e9, recipe.network(r).tiers[2].bandwidth)
    r.cluster.network.nics_per_node = 16
    assert.equal(50e9, recipe.network(r).tiers[2].bandwidth)
  end)

  it("takes a number alone literally, and divides by the oversubscription", function()
    local r = request()
    assert.equal(50e9, recipe.network(r).tiers[2].bandwidth)
    r.cluster.network.oversubscription = 2
    assert.equal(25e9, recipe.network(r).tiers[2].bandwidth)
  end)
end)

describe("the device", function()
  it("hides the all-to-all behind compute with a custom kernel, and with one that no catalogue has", function()
    local r = request()
    r.device.alltoall_latency = 7e-5
    assert.is_true(recipe.device(r, "deepep").hides_alltoall)
    assert.is_false(recipe.device(r, "nccl_alltoall").hides_alltoall)
    assert.is_false(recipe.device(r, false).hides_alltoall)
    local ours = recipe.device(r, "our_own_kernel")
    assert.is_true(ours.hides_alltoall)
    assert.equal(7e-5, ours.alltoall_latency)
    assert.equal(7e-5, recipe.device(r, nil).alltoall_latency)  -- the policy will choose
    assert.equal(100e-6, recipe.device(r, "deepep").alltoall_latency)  -- the catalogue's
  end)
end)

it("lists what it takes for granted", function()
  local fields = {}
  for _, assumption in ipairs(recipe.assumptions(request { precision = "fp8" })) do fields[#fields + 1] = assumption.field end
  assert.same({ "cluster.overhead", "optimizer state", "fp8 weights", "training.activations", "training.loss", "expert imbalance",
                "parallelism.expert_tensor" }, fields)
end)
