-- SPDX-License-Identifier: Apache-2.0
-- engine.memory: named arguments in, bytes out; the arithmetic itself is tested in tests/unit/memory_test.c.

local engine = require("pipeplan") and require "engine"
local costs = require "lua.costs"

local GIB = 2 ^ 30

local function near(expected, actual, share)
  assert.is_true(math.abs(actual - expected) <= share * expected, string.format("expected %g, got %g", expected, actual))
end

describe("engine.memory.stages", function()
  -- SimuMax on A100, Llama-3-8B TP1 PP2 DP4: states 33.6588 GiB, peaks 50.8854 and 45.1637 GiB
  it("sums the bytes of every rank of a schedule", function()
    local ranks = engine.memory.stages {
      model = costs.llama_8b(), layout = { data = 4, pipeline = 2 }, training = costs.bf16(),
      schedule = engine.schedule { kind = "1f1b", ranks = 2, microbatches = 8 },
    }
    assert.equal(2, #ranks)
    near(33.6588, (ranks[1].parameters + ranks[1].gradients + ranks[1].optimizer) / GIB, 1e-4)
    near(50.8854 - 0.4, ranks[1].total / GIB, 0.02)
    local sum = 0
    for _, term in ipairs { "parameters", "gradients", "optimizer", "activations", "transient", "overhead" } do sum = sum + ranks[1][term] end
    near(ranks[1].total, sum, 1e-12)
  end)

  it("adds the caller's overhead to every rank", function()
    local arguments = { model = costs.llama_8b(), layout = { data = 8 }, training = costs.bf16() }
    local without = engine.memory.stages(arguments)[1]
    arguments.overhead = 3 * GIB
    near(without.total + 3 * GIB, engine.memory.stages(arguments)[1].total, 1e-12)
  end)

  it("takes layers per stage as given", function()
    local arguments = {
      model = costs.llama_8b(), layout = { pipeline = 4 }, training = costs.bf16(),
      schedule = engine.schedule { kind = "1f1b", ranks = 4, microbatches = 8 }, layers_per_stage = { 9, 9, 9, 5 },
    }
    local ranks = engine.memory.stages(arguments)
    assert.is_true(ranks[2].parameters > ranks[4].parameters * 0.9)
    arguments.layers_per_stage = { 9, 9, 9 }
    assert.has_error(function() engine.memory.stages(arguments) end, "engine.memory.stages: 'layers_per_stage' must list 4 stages")
  end)

  it("answers with the broken rule when there are more stages than layers", function()
    local none, illegal = engine.memory.stages {
      model = costs.llama_8b(), layout = {}, training = costs.bf16(), schedule = engine.schedule { kind = "1f1b", ranks = 64, microbatches = 64 },
    }
    assert.is_nil(none)
    assert.equal("engine.layers_below_stages", illegal.id)
  end)
end)

describe("engine.memory.blocks", function()
  it("keeps 139,392 bytes per token and layer of Llama-3-8B", function()
    local blocks = engine.memory.blocks { model = costs.llama_8b(), layout = {}, training = costs.bf16() }
    near(139392 * 4096, blocks.dense.stored, 1e-12)
  end)

  -- full recompute does not make what W waits for free
  it("lets W wait for recomputed inputs too", function()
    local training = costs.bf16()
    local stored = engine.memory.blocks { model = costs.llama_8b(), layout = {}, training = training }
    training.recompute = { full = true }
    local recomputed = engine.memory.blocks { model = costs.llama_8b(), layout = {}, training = training }
    assert.is_true(recomputed.dense.stored < stored.dense.stored / 10)
    near(stored.dense.pending, recomputed.dense.pending, 1e-12)
  end)

  -- with a mirror copy the optimizer state of each copy halves
  it("shards the optimizer over the mirror pair", function()
    local arguments = { model = costs.deepseek_v3(), layout = { data = 128, expert = 64 }, training = costs.bf16() }
    local one = engine.memory.blocks(arguments)
    arguments.copies = 2
    local two = engine.memory.blocks(arguments)
    near(one.moe.optimizer / 2, two.moe.optimizer, 1e-12)
    near(one.moe.parameters, two.moe.parameters, 1e-12)
  end)
end)

describe("wrong arguments", function()
  local function message(change)
    local arguments = { model = costs.llama_8b(), layout = { data = 8 }, training = costs.bf16() }
    change(arguments)
    local good, problem = pcall(engine.memory.blocks, arguments)
    assert.is_false(good)
    return tostring(problem)
  end

  it("are named", function()
    assert.matches("training: .*'precison'.*precision", message(function(a) a.training.precison = "bf16" end))
    assert.matches("training: 'precision' must be .*int8", message(function(a) a.training.precision = "int8" end))
    assert.matches("training: 'gradient_bytes'.*got nothing", message(function(a) a.training.gradient_bytes = nil end))
    assert.matches("training.recompute: .*'swiglu'", message(function(a) a.training.recompute = { swiglu = true } end))
    assert.matches("layout: 'tensor' must be .*got 0", message(function(a) a.layout.tensor = 0 end))
    assert.matches("layout: 'expert'.*must divide", message(function(a) a.layout.expert = 3 end))
    assert.matches("engine.memory.blocks: .*'shape'", message(function(a) a.shape = a.model end))
  end)
end)
