-- SPDX-License-Identifier: Apache-2.0
-- What a plan says of hosts and storage: memory that an offloaded optimizer takes there, bytes and seconds of a checkpoint.

local planning = require "planning"

local gib, tib = 2 ^ 30, 2 ^ 40
local has, entry = planning.has, planning.entry
local qwen, deepseek = "examples/models/qwen3-235b-a22b.json", "examples/models/deepseek-v3.json"

local function spec(gpus, model, training)
  return {
    cluster = { gpus = gpus, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } }, model = model,
    training = planning.merge({ tokens = "1T", sequence_length = 4096, global_batch_size = 192, recompute = "full" }, training),
  }
end

describe("an offloaded optimizer", function()
  -- THUDM/slime#280, verl-project/verl#3019, #3360: Qwen3-235B on 32 GPUs of 80 GB and DeepSeek-V3 on 96 train with Adam on the CPU and not
  -- with Adam on the GPU; more than 1.5 TB of host memory a node are asked for, weights and buffers of other processes included
  it("lets Qwen3-235B fit 32 GPUs and DeepSeek-V3 fit 96, from hosts of less than 1.5 TB", function()
    for model, gpus in pairs { [qwen] = 32, [deepseek] = 96 } do
      local resident = planning.plan(spec(gpus, model, { gradients = "bf16" }))
      assert.same({ "refused", "does_not_fit" }, { resident.status, resident.reasons[1].id })
      local offloaded = planning.plan(spec(gpus, model, { gradients = "bf16", optimizer_offload = 1 }))
      assert.equal("planned", offloaded.status)
      local total = offloaded.model.total_parameters
      assert.is_true(offloaded.host.optimizer_bytes >= total * 14 / (gpus / 8))  -- 12 and bf16 gradients, over the hosts, were it even
      assert.is_true(offloaded.host.optimizer_bytes < 1.5e12)
      for _, rank in ipairs(offloaded.memory.ranks) do assert.equal(0, rank.optimizer_bytes) end
    end
  end)

  it("is warned of where hosts are too small for it", function()
    local small = planning.merge(spec(32, qwen, { gradients = "bf16", optimizer_offload = 1 }), { cluster = { host_memory = "512GiB" } })
    assert.matches("of a node that has 512 GiB", entry(planning.plan(small).warnings, "host_memory_short").message, 1, true)
    local large = planning.merge(small, { cluster = { host_memory = "2TiB" } })
    assert.is_false(has(planning.plan(large).warnings, "host_memory_short"))
    assert.matches("a node's host memory of 2 TiB", planning.page_of(planning.plan(large)), 1, true)
  end)

  it("slows the step down", function()
    local on_gpu = planning.plan(planning.llama)
    local on_host = planning.plan(planning.llama, { training = { optimizer_offload = 1 } })
    assert.is_true(on_host.step.optimizer_seconds > 10 * on_gpu.step.optimizer_seconds)
  end)
end)

describe("a checkpoint", function()
  -- BigScience 176B model page: bf16 weights 329 GB, the whole checkpoint 2.3 TB (both binary: 176.2 B parameters of 2 bytes are 328.3 GiB)
  it("of BLOOM-176B takes 2.3 TiB, and as long as the storage needs", function()
    local bloom = { layers = 70, hidden = 14336, heads = 112, kv_heads = 112, head_dim = 128, ffn = 57344, gated = false, vocab = 250880,
                    tied_embeddings = true }
    local plan = planning.plan {
      cluster = { gpus = 384, accelerator = "A100-SXM-80GB", storage = "100GB/s", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = bloom, training = { tokens = "366B", sequence_length = 2048, global_batch_size = 2048, recompute = "full" },
      parallelism = { tensor = 4, pipeline = 12, schedule = "1f1b" },
    }
    assert.near(2.3, plan.host.checkpoint_bytes / tib, 0.07)
    assert.near(328.3, plan.host.checkpoint_bytes / gib * 2 / 14, 2)
    assert.near(plan.host.checkpoint_bytes / 100e9, plan.host.checkpoint_seconds, 1e-6)
    assert.matches("a checkpoint is 2.2[0-9] TiB, written in 24", planning.page_of(plan))
  end)

  -- Adam in fp32: 4 bytes of weights and two moments of 4 (Rajbhandari et al. 2020, section 3.1, has 12 of master weights and moments and 2
  -- of fp16 weights in mixed precision; in fp32 the weights are their own master)
  it("holds 12 bytes a parameter in fp32, and 14 in bf16", function()
    local tiny = { cluster = { gpus = 8 }, training = { global_batch_size = 64 }, parallelism = { pipeline = 1 } }
    local small = { layers = 24, hidden = 2048, heads = 16, kv_heads = 16, head_dim = 128, ffn = 8192, gated = false, vocab = 50304 }
    for precision, bytes in pairs { fp32 = 12, bf16 = 14 } do
      local plan = planning.plan(planning.llama, planning.merge(tiny, { model = small, training = { precision = precision } }))
      assert.equal(bytes * plan.model.total_parameters, plan.host.checkpoint_bytes)
    end
  end)

  it("is counted without a storage speed too, and not shown", function()
    local plan = planning.plan(planning.llama)
    assert.is_true(plan.host.checkpoint_bytes > 14 * 70e9)
    assert.is_nil(plan.host.checkpoint_seconds)
    assert.is_nil(planning.page_of(plan):find("a checkpoint is", 1, true))
  end)
end)
