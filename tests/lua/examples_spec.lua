-- SPDX-License-Identifier: Apache-2.0
-- The shipped specs: each is read, and is what it says it is.

require "pipeplan"
local recipe = require "pipeplan.input.recipe"
local spec = require "pipeplan.input.spec"

local function read(name, options)
  return spec.read { files = { "examples/specs/" .. name .. ".json" }, options = options }
end

describe("the headline, DeepSeek-V3 on 2,048 H800,", function()
  local request = read "deepseek-v3"

  it("is the recipe of its report", function()
    -- DeepSeek-V3 report, 3.1 to 3.3 and 4.2: 2,048 H800, EP 64, no TP, 14.8T tokens, sequences of 4K, 15,360 of them a step, fp8, bf16
    -- moments; RMSNorm, MLA up-projections and SwiGLU recomputed; at most 4 nodes per token
    assert.equal(2048, request.cluster.gpus)
    assert.equal(671026419200, request.model.total_parameters)
    assert.equal(14800000000000, request.training.tokens)
    assert.equal(15360, request.training.global_batch_size)
    assert.same({ norm = true, mla_up_projection = true, activation = true }, request.training.recompute)
    assert.same({ tensor = 1, expert = 64 }, request.parallelism)
    assert.equal("deepep", request.cluster.alltoall_kernel)
    local training = recipe.training(request)
    assert.equal(4, training.max_domains)
    assert.equal("fp8", training.precision)
  end)

  it("has links of 160 GB/s inside a node and 400 Gb/s between nodes", function()
    local tiers = recipe.network(request).tiers
    assert.equal(8, tiers[1].reach)
    assert.equal(160e9, tiers[1].bandwidth)
    assert.equal(2048, tiers[2].reach)
    assert.equal(50e9, tiers[2].bandwidth)
  end)

  it("ramps its batch from 3,072 to 15,360 over 469B tokens", function()
    -- DeepSeek-V3 report, 4.2
    local training = read("deepseek-v3-ramp").training
    assert.equal(3072, training.smallest_batch_size)
    assert.equal(15360, training.global_batch_size)
    assert.equal(469000000000, training.batch_ramp[#training.batch_ramp][1])
  end)
end)

it("the other specs are of the models and sizes they are named after", function()
  local expected = {
    ["llama-3.1-405b"] = { 16384, 405853388800 }, ["qwen3-235b"] = { 256, 235093634560 }, ["mixtral-8x7b"] = { 64, 46702792704 },
    ["kimi-k2"] = { 1024, 1026408232448 }, ["7b-fits-one-gpu"] = { 64, 6738415616 },
  }
  for name, facts in pairs(expected) do
    local request = read(name)
    assert.equal(facts[1], request.cluster.gpus)
    assert.equal(facts[2], request.model.total_parameters)
  end
end)

it("there is a spec for each rule, consistent in itself", function()
  for _, name in ipairs { "dualpipe_without_ep", "too_deep", "odd_microbatches", "fits_one_gpu", "slow_interconnect", "no_alltoall_kernel",
                          "short_run", "too_few_microbatches", "dualpipe_odd_depth", "dualpipe_virtual", "dualpipe_tied_embeddings" } do
    assert.is_table(read("rules/" .. name).model)
  end
end)
