-- SPDX-License-Identifier: Apache-2.0
-- docs/famous-runs.md is what tests/oracles/famous.lua prints; and of ten published runs the policy chooses nothing that we price slower than
-- what was run by more than what it may cost.

local famous = require "oracles.famous"

local list = famous.list()

it("the page of published runs is what the command prints", function()
  local file <close> = assert(io.open("docs/famous-runs.md", "rb"))
  assert.equal(famous.page(list) .. "\n", file:read "a")
end)

it("what is chosen for published runs is at most wanted_tolerance slower than what they ran, by our own prices", function()
  assert.equal(10, #list)
  for _, entry in ipairs(list) do
    assert.is_not_nil(entry.ours, entry.run.name)
    if entry.fits then assert.is_true(entry.chosen <= entry.predicted * 1.05 * (1 + 1e-9), entry.run.name) end
  end
end)
