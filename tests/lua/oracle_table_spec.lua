-- SPDX-License-Identifier: Apache-2.0
-- The oracle table: no row outside its band, and every verdict about memory right. `lua5.4 tests/oracles/table.lua` prints all rows.

local oracles = require "oracles.table"

describe("the oracle table", function()
  for _, source in ipairs(oracles.collect()) do
    it("holds: " .. source.name, function()
      if source.rows.skipped then
        pending(source.rows.skipped)
        return
      end
      assert.is_true(#source.rows > 0)
      for _, row in ipairs(source.rows) do
        local words = string.format("%s, %s: published %s, ours %s", row.case, row.quantity, row.published, row.ours)
        assert.is_true(row.ok or row.excused ~= nil, words)
        if row.band then assert.is_true(row.published == row.published and row.ours > 0, words) end
      end
    end)
  end

  it("has verdicts of both kinds, and excuses few", function()
    local all = {}
    for _, source in ipairs(oracles.collect()) do table.move(source.rows, 1, #source.rows, #all + 1, all) end
    local counts = oracles.confusion(all)
    assert.same({ 0, 0 }, { counts.ran_not, counts.out_fits })
    assert.is_true(counts.out_not >= 4)
    if os.getenv "PIPEPLAN_DATA" then assert.is_true(counts.ran_fits >= 100 and counts.excused <= 24) end
  end)

  it("bears out the expected error of memory that plans print", function()
    local accuracy = require "pipeplan.catalog.accuracy"
    local errors = {}
    for _, name in ipairs { "memory_simumax", "memory_zero_bubble", "memory_bridge" } do
      for _, row in ipairs(require("oracles." .. name)) do
        if row.source ~= "SimuMax" then errors[#errors + 1] = math.abs(row.error) end  -- that is its own estimate
      end
    end
    table.sort(errors)
    assert.equal(69, #errors)
    assert.is_true(errors[68] <= accuracy.memory_fraction)
    assert.is_true(errors[35] <= 0.011)
  end)

  it("bears out the expected error of time that plans print", function()
    if not os.getenv "PIPEPLAN_DATA" then
      pending "PIPEPLAN_DATA names no folder"
      return
    end
    local uncalibrated = { time_narayanan = true, time_mtnlg = true, time_vtrain = true, time_deepseek = true, time_published = true }
    local errors = {}
    for _, group in ipairs(oracles.groups(oracles.collect())) do
      if (uncalibrated[group.name:match "^[%w_]+"] or group.name:find "held out") and not group.name:find "fitted" then
        for _, row in ipairs(group.rows) do
          if row.error and not row.excused then errors[#errors + 1] = math.abs(row.error) end
        end
      end
    end
    table.sort(errors)
    local fraction = require("pipeplan.catalog.accuracy").time_fraction
    assert.equal(97, #errors)
    assert.is_true(errors[math.floor(0.9 * #errors)] <= fraction)
    assert.is_true(errors[49] <= 0.06)
    assert.is_true(errors[math.ceil(0.95 * #errors)] > fraction, "it could be less")
  end)

  it("bears out the fraction below which two schedules tie", function()
    local fraction, errors = require("pipeplan.catalog.accuracy").comparison_fraction, {}
    for _, row in ipairs(require "oracles.time_cases") do
      if row.quantity == "speed over 1F1B" and row.error then errors[#errors + 1] = math.abs(row.error) end
    end
    table.sort(errors)
    assert.is_true(#errors >= 10)
    assert.is_true(errors[(#errors + 1) // 2] <= fraction)
    for _, row in ipairs(require "oracles.time_runs") do  -- where the profile is the run's own, no pair that differs by 3 % is misordered
      if row.quantity == "order" then assert.equal("another day's profile", row.group) end
    end
  end)

  it("fails when a row lies outside its band", function()
    local rows = require "oracles.rows"
    local inside, outside = rows.number("s", "c", "q", 100, 104, 0.05), rows.number("s", "c", "q", 100, 106, 0.05)
    assert.same({ true, false }, { inside.ok, outside.ok })
    local sum = oracles.summary { inside, outside, rows.verdict("s", "c", false, true, "fits 1", nil) }
    assert.same({ 3, 2, 0 }, { sum.count, sum.outside, sum.excused })
    assert.near(0.06, sum.worst, 1e-12)
  end)
end)
