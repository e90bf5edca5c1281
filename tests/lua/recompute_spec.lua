-- SPDX-License-Identifier: Apache-2.0
-- Recompute with a split backward, by framework. Counted under PyTorch 2.13 on a CPU: with full recompute a layer of seven weights runs forward
-- nine times a microbatch: once in F, once in I and once for each weight in W; with a whole backward twice.

local engine = require("pipeplan") and require "engine"
local recipe = require "pipeplan.input.recipe"
local spec = require "pipeplan.input.spec"

local function terms(framework, recompute)
  local request = spec.from_table({
    cluster = { gpus = 8, accelerator = "H100-SXM" },
    model = { layers = 8, hidden = 4096, heads = 32, kv_heads = 32, ffn = 11008, vocab = 256 },
    training = { tokens = "1B", sequence_length = 4096, recompute = recompute },
    framework = framework,
  }, ".")
  local arguments = {
    model = request.model.shape, training = recipe.training(request), device = recipe.device(request, false),
    network = recipe.network(request), layout = { pipeline = 8 },
  }
  return engine.cost.terms(arguments).dense, engine.cost.blocks(arguments).dense
end

local function forward_seconds(parts)
  local sum = 0
  for _, seconds in pairs(parts.forward) do sum = sum + seconds end
  return sum
end

describe("a layer of seven weights that is recomputed", function()
  it("runs forward nine times where PyTorch splits its backward, and twice where it does not", function()
    for _, framework in ipairs { "torch", "torchtitan" } do
      local parts, block = terms(framework, "full")
      local forward = forward_seconds(parts)
      assert.near(1, parts.input.recompute / forward, 1e-9)
      assert.near(7, parts.weight.recompute / forward, 1e-9)
      assert.near(block.input + block.weight - 7 * forward, block.full, 1e-12)
    end
  end)

  it("runs twice where Megatron or DeepSeek's own code splits it", function()
    for _, framework in ipairs { "megatron", "deepseek-dualpipe", "zero-bubble" } do
      local parts = terms(framework, "full")
      assert.near(1, parts.input.recompute / forward_seconds(parts), 1e-9)
      assert.equal(0, parts.weight.recompute)
    end
  end)

  it("runs once where nothing is recomputed", function()
    local parts = terms("torch", "none")
    assert.same({ 0, 0 }, { parts.input.recompute, parts.weight.recompute })
  end)
end)
