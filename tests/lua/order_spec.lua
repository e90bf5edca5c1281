-- SPDX-License-Identifier: Apache-2.0
-- Order of layouts against sweeps that others ran (tests/oracles/order.lua): groups on which nothing was chosen.

local order = require "oracles.order"

local function judged(pattern)
  local groups, why = order.groups { pattern }
  if not groups then
    print("skipped: " .. why)
    return nil
  end
  local list = {}
  for i, group in ipairs(groups) do list[i] = order.judge(group) end
  assert.is_true(#list > 0)
  return list
end

describe("Kendall's tau", function()
  it("is 1 in the same order, -1 in the other, and counts a tie of ours as neither", function()
    local function tau(...)
      local list = {}
      for i, seconds in ipairs { ... } do list[i] = { measured = i, seconds = seconds } end
      return order.tau(list)
    end
    assert.equal(1, tau(1, 2, 3))
    assert.equal(-1, tau(3, 2, 1))
    assert.near(2 / 3, tau(1, 1, 2), 1e-12)
  end)
end)

describe("layouts are in the order that was measured:", function()
  it("30 B parameters at 8,192 tokens on 128 A100: the cheapest that ran is within 2 % of the best, tau over 0.8", function()
    for _, one in ipairs(judged "^hagemann%-30B%-s8192" or {}) do
      assert.is_true(one.regret <= 0.02, one.name .. ": regret " .. one.regret)
      assert.is_true(one.tau > 0.8, one.name .. ": tau " .. one.tau)
      assert.is_true(one.false_fits <= 0.05 * one.out, one.name .. ": " .. one.false_fits .. " called fitting")
      assert.is_true(one.false_refusals <= 0.05 * one.ran, one.name .. ": " .. one.false_refusals .. " refused")
    end
  end)

  it("layouts of 176 B parameters on 384 A100, a few days after those that one figure was chosen on", function()
    for _, one in ipairs(judged "^bloom%-h14336%-L72%-48nodes%-gbs2048%-fp16%-02%-2[56]" or {}) do
      assert.is_true(one.regret == nil or one.regret <= 0.02, one.name .. ": regret " .. tostring(one.regret))
      assert.is_true(one.first_ran, one.name)
    end
  end)

  it("1 B and 3 B parameters on 8 H100, from TP 1 to 8 and microbatches of 1 to 16", function()
    for _, one in ipairs(judged "^nanotron%-[13]B%-8gpu" or {}) do
      assert.is_true(one.regret <= 0.03, one.name .. ": regret " .. one.regret)
      assert.is_true(one.tau > 0.55, one.name .. ": tau " .. one.tau)
    end
  end)
end)
