-- SPDX-License-Identifier: Apache-2.0
-- engine.conditions: conditions as plain data, over one record or over columns.

require "pipeplan"
local match = require("engine").conditions.match

describe("engine.conditions.match", function()
  it("answers true or false for one record", function()
    local condition = { { field = "gpus", op = "under", value = 100 } }
    assert.is_true(match({ gpus = 99 }, condition))
    assert.is_false(match({ gpus = 100 }, condition))
  end)

  it("compares strings and booleans as they are", function()
    assert.is_true(match({ schedule = "dualpipe" }, { { field = "schedule", op = "one_of", values = { "dualpipe", "dualpipev" } } }))
    assert.is_false(match({ schedule = "1f1b" }, { { field = "schedule", op = "one_of", values = { "dualpipe", "dualpipev" } } }))
    assert.is_true(match({ tied_embeddings = true }, { { field = "tied_embeddings", op = "equal", value = true } }))
    assert.is_true(match({ alltoall_kernel = false }, { { field = "alltoall_kernel", op = "equal", value = false } }))
    assert.is_false(match({ alltoall_kernel = "deepep" }, { { field = "alltoall_kernel", op = "equal", value = false } }))
  end)

  it("lets an absent field satisfy nothing but none_of", function()
    assert.is_false(match({}, { { field = "expert_link", op = "at_most", value = 25e9 } }))
    assert.is_true(match({}, { { field = "framework", op = "none_of", values = { "deepseek-dualpipe" } } }))
  end)

  it("takes another field as the right side", function()
    local over = { { field = "tensor_parallel", op = "over", value = { field = "gpus_per_node" } } }
    assert.is_true(match({ tensor_parallel = 16, gpus_per_node = 8 }, over))
    assert.is_false(match({ tensor_parallel = 8, gpus_per_node = 8 }, over))
    assert.is_false(match({ tensor_parallel = 8 }, over))
  end)

  it("answers a list for columns, one boolean a row, with constants beside them", function()
    local columns = { schedule = "dualpipe", pipeline_parallel = { 2, 3, 4, 5 }, microbatches = { 8, 8, 7, 0 / 0 } }
    assert.same({ false, true, false, true }, match(columns, { { field = "pipeline_parallel", op = "odd" } }))
    assert.same({ true, true, false, false }, match(columns, {
      { field = "schedule", op = "equal", value = "dualpipe" }, { field = "microbatches", op = "even" } }))
    assert.same({ true, true, true, true }, match(columns, {}))
  end)

  it("refuses what is not a condition", function()
    assert.has_error(function() match({}, { { field = "gpus", op = "below", value = 1 } }) end, "a condition has no operator 'below'")
    assert.has_error(function() match({}, { { op = "odd" } }) end, "a condition needs 'field'")
    assert.has_error(function() match({}, { { field = "gpus", op = "one_of" } }) end, "'one_of' needs a list of values")
    assert.has_error(function() match({ a = { 1 }, b = { 1, 2 } }, {}) end)
  end)
end)
