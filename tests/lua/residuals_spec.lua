-- SPDX-License-Identifier: Apache-2.0
-- What measured steps say of the price, on runs made by hand: a step of so many seconds of compute and so many of all-to-all, one behind the
-- other, so that a factor on one of them gives what the sum does.

require "pipeplan"
local residuals = require "pipeplan.plan.residuals"

-- compute and all-to-all of a run, and what was measured of it.
local function run(compute, expert, measured)
  local responses = { compute = {}, expert = {} }
  for i, factor in ipairs(residuals.factors) do
    responses.compute[i] = { factor = factor, seconds = factor * compute + expert }
    responses.expert[i] = { factor = factor, seconds = compute + factor * expert }
  end
  return { predicted_seconds = compute + expert, responses = responses, measured_seconds = measured }
end

describe("residuals", function()
  it("of one run, or of two, are a factor of everything: the geometric mean", function()
    local fitted = residuals.fit { run(10, 1, 13.2) }
    assert.near(1.2, fitted.factors.all, 1e-12)
    assert.is_nil(fitted.family)
    fitted = residuals.fit { run(10, 1, 11 * 1.1), run(5, 6, 11 * 1.6) }
    assert.near(math.sqrt(1.1 * 1.6), fitted.factors.all, 1e-12)
    assert.is_nil(fitted.family)
  end)

  it("of runs that differ in what takes the time name the family that explains them", function()
    local list = {}
    for i, parts in ipairs { { 10, 1 }, { 8, 3 }, { 6, 6 }, { 9, 2 } } do
      list[i] = run(parts[1], parts[2], 1.1 * (parts[1] + 1.5 * parts[2]))
    end
    local fitted = residuals.fit(list)
    -- all × 1.1, all-to-all × 1.5; compute × 1/1.5 with all × 1.65 says the same, and comes second: the families in the order of the file
    assert.is_true(fitted.family == "expert" or fitted.family == "compute")
    for _, one in ipairs(list) do assert.near(one.measured_seconds, residuals.predict(one, fitted), 0.02 * one.measured_seconds) end
    assert.is_true(fitted.off < 0.01)
  end)

  it("within noise, or that nothing explains, are a factor of everything", function()
    local fitted = residuals.fit { run(10, 1, 11 * 1.21), run(8, 3, 11 * 1.19), run(6, 6, 12 * 1.2) }
    assert.is_nil(fitted.family)
    assert.near(1.2, fitted.factors.all, 1e-3)
    -- the one without all-to-all is the slow one, then the one with most, then neither
    fitted = residuals.fit { run(10, 0.1, 10.1 * 1.5), run(6, 6, 12 * 1.5), run(8, 3, 11), run(9, 2, 11 * 1.4), run(7, 4.5, 11.5 * 0.9) }
    assert.is_nil(fitted.family)
  end)
end)
