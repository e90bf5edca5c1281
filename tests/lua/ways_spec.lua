-- SPDX-License-Identifier: Apache-2.0
-- What is said where nothing fits: how much is missing, of what, and what could be otherwise so that it fits, the cheapest first.

local planning = require "planning"

local plan, has = planning.plan, planning.has

local function llama(gpus, training, parallelism)
  return {
    cluster = { gpus = gpus, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = "examples/models/llama-3-70b.json",
    training = planning.merge({ tokens = "1T", sequence_length = 8192, global_batch_size = 256, micro_batch_size = 1, recompute = "none" },
                              training), parallelism = parallelism,
  }
end

local function way(result, change)
  for _, entry in ipairs(result.ways_to_fit) do
    if entry.change == change then return entry end
  end
end

describe("a run that does not fit", function()
  -- NVIDIA/Megatron-LM#1031: TP 8 PP 2 without a sharded optimizer runs out of memory; sharded it fits
  it("is told what would make it fit", function()
    local result = plan(llama(128, { zero = 0, recompute = "selective" }, { tensor = 8, pipeline = 2, schedule = "1f1b" }))
    assert.same({ "refused", "does_not_fit" }, { result.status, result.reasons[1].id })
    assert.matches("too much: weights [%d.]+, gradients [%d.]+, optimizer [%d.]+, activations [%d.]+, buffers [%d.]+ GiB", result.reasons[1].message)
    assert.equal("fits", way(result, "sharding optimizer").fit)
    assert.equal(2, way(result, "sharding optimizer").parallelism.pipeline)
    assert.is_true(way(result, "another pipeline").parallelism.pipeline > 2)
    assert.is_nil(way(result, "recompute norm, swiglu"))  -- the state alone is too much
  end)

  it("hears of the fastest way first, and each is what a plan of that spec says", function()
    local base = llama(32, { micro_batch_size = 2 }, { tensor = 8, context = 1, pipeline = 2, schedule = "1f1b" })
    local result = plan(base)
    assert.equal("refused", result.status)
    assert.is_true(#result.ways_to_fit >= 3)
    for i = 2, #result.ways_to_fit - (result.ways_to_fit[#result.ways_to_fit].change:find "lora" and 1 or 0) do
      assert.is_true(result.ways_to_fit[i - 1].step_seconds <= result.ways_to_fit[i].step_seconds)
    end
    local changes = { ["recompute full"] = { recompute = "full" }, ["gradients bf16"] = { gradients = "bf16" },
                      ["optimizer_offload 1"] = { optimizer_offload = 1 }, ["recompute norm, swiglu"] = { recompute = { "norm", "swiglu" } } }
    local seen = 0
    for _, entry in ipairs(result.ways_to_fit) do
      if changes[entry.change] then
        seen = seen + 1
        local other = plan(base, { training = changes[entry.change] })
        assert.equal("planned", other.status)
        assert.near(other.step_seconds, entry.step_seconds, 1e-9 * other.step_seconds)
      end
    end
    assert.is_true(seen >= 1)
    assert.matches("to fit " .. result.ways_to_fit[1].change .. ": step", planning.page_of(result), 1, true)
  end)

  it("with fused attention is not promised anything of recomputing its core", function() -- Megatron-Bridge recompute skill: 36.618 to 36.614 GB
    local result = plan(llama(32, { micro_batch_size = 2 }, { tensor = 8, context = 1, pipeline = 2, schedule = "1f1b" }))
    for _, entry in ipairs(result.ways_to_fit) do assert.is_nil(entry.change:find "core_attention") end
  end)

  it("that no single change saves is told what does together", function()
    local result = plan { cluster = { gpus = 32, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                          model = "examples/models/qwen3-235b-a22b.json",
                          training = { tokens = "1T", sequence_length = 16384, global_batch_size = 128, micro_batch_size = 1,
                                       recompute = "none" }, parallelism = { tensor = 4, pipeline = 8 } }
    assert.equal("refused", result.status)
    assert.is_true(#result.ways_to_fit > 0)
    assert.matches("recompute full", result.ways_to_fit[1].change)
    assert.matches(", ", result.ways_to_fit[1].change)
  end)

  it("is told so where nothing would do", function()
    local result = plan(llama(8, {}, { tensor = 8, pipeline = 1 }), { model = "examples/models/llama-3.1-405b.json" })
    assert.same({}, result.ways_to_fit)
    assert.matches("nothing that was tried", planning.page_of(result), 1, true)
    assert.is_true(has(result.reasons, "does_not_fit"))
  end)
end)

describe("a plan that fits", function()
  it("has no such list", function() assert.is_nil(plan(planning.llama).ways_to_fit) end)
end)
