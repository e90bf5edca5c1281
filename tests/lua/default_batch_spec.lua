-- SPDX-License-Identifier: Apache-2.0
-- The batch of a spec that gives none: 16 Mi tokens a step (parameter default_batch_tokens), in whole sequences that every data-parallel
-- degree divides. Expected: by hand, 16,777,216 / sequence length, to the nearest multiple of GPUs × microbatch size.

local planning = require "planning"

-- Sequences of a step that the plan assumes.
local function assumed(gpus, sequence_length, changes)
  local plan = planning.plan(planning.merge(planning.llama, planning.merge(
    { cluster = { gpus = gpus }, training = { sequence_length = sequence_length } }, changes)),
    { training = { global_batch_size = planning.none } })
  local assumption = planning.assumption(plan, "training.global_batch_size")
  assert.equal(plan.global_batch_size or assumption.value, assumption.value)
  return assumption.value, assumption.why
end

describe("a batch that the spec leaves out", function()
  it("is 16 Mi tokens", function()
    assert.equal(4096, assumed(256, 4096))
    assert.equal(2048, assumed(256, 8192))
  end)

  it("is the nearest multiple of the GPUs and their microbatches", function()
    assert.equal(43 * 96, assumed(96, 4096))                                              -- 4,096 / 96 = 42.67
    assert.equal(21 * 192, assumed(96, 4096, { training = { micro_batch_size = 2 } }))    -- 4,096 / 192 = 21.33
  end)

  it("is no more than 16 Mi tokens where that is less than a microbatch on every GPU", function()
    assert.equal(128, assumed(256, 131072))                                               -- 128 sequences for 256 GPUs
    assert.equal(38 * 4, assumed(256, 110000, { training = { micro_batch_size = 4 } }))   -- 152.5 sequences, 4 at a time
    assert.equal(4096, assumed(8192, 4096))
  end)

  it("is a microbatch where a sequence is longer than all that", function()
    assert.equal(1, assumed(256, 64 * 2 ^ 20 // 1))
    assert.equal(2, assumed(256, 64 * 2 ^ 20 // 1, { training = { micro_batch_size = 2 } }))
  end)

  it("is as many sequences as there are GPUs where that is 16 Mi tokens", function()
    assert.equal(2048, assumed(2048, 8192))
  end)

  it("follows from microbatches and data-parallel degree where both are given", function()
    local batch, why = assumed(256, 4096, { training = { micro_batch_size = 2 },
                                            parallelism = { microbatches = 16, data = 8, tensor = 8, pipeline = 4 } })
    assert.equal(16 * 8 * 2, batch)
    assert.equal("microbatches × data × micro_batch_size", why)
  end)
end)
