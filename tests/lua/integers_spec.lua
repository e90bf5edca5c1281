-- SPDX-License-Identifier: Apache-2.0
-- base/integers.lua: against the definitions of multiple and divisor, tried one by one.

require "pipeplan"
local integers = require "pipeplan.base.integers"

local function divisors_by_definition(number, most)
  local list = {}
  for each = 1, math.min(number, most or number) do
    if number % each == 0 then list[#list + 1] = each end
  end
  return list
end

describe("divisors", function()
  it("are all numbers that divide it, ascending, and no larger than is asked", function()
    for number = 1, 400 do
      assert.same(divisors_by_definition(number), integers.divisors(number))
      assert.same(divisors_by_definition(number, 12), integers.divisors(number, 12))
    end
  end)

  it("have one that is nearest, the smaller of two", function()
    assert.equal(6, integers.nearest_divisor(24, 7))   -- 6 and 8
    assert.equal(12, integers.nearest_divisor(24, 17))
    assert.equal(24, integers.nearest_divisor(24, 1000))
    assert.equal(1, integers.nearest_divisor(13, 4.5))
  end)

  it("that two numbers have in common have a greatest: Euclid's", function()
    assert.same({ 21, 1, 5, 7 }, { integers.common_divisor(1071, 462), integers.common_divisor(8, 27), integers.common_divisor(5, 0),
                                   integers.common_divisor(7, 7) })
  end)
end)

describe("a multiple", function()
  it("is the nearest one, the larger of two, and at least once its step", function()
    assert.same({ 8, 16, 16, 8 }, { integers.nearest_multiple(11, 8), integers.nearest_multiple(12, 8), integers.nearest_multiple(16, 8),
                                    integers.nearest_multiple(1, 8) })
  end)
end)
