-- SPDX-License-Identifier: Apache-2.0
-- integers.lua: multiples and divisors of whole numbers from 1 on: what degrees, batches and numbers of GPUs may be instead.

local integers = {}

-- The product of whole numbers from 0 on; where no integer has it, the largest there is, of which no number of GPUs or batch is a multiple.
function integers.product(...)
  local product = 1
  for _, number in ipairs { ... } do
    if number > 0 and product > math.maxinteger // number then return math.maxinteger end
    product = product * number
  end
  return product
end

-- The multiple of `step` that is nearest to `number`, the larger of two, and at least one step.
function integers.nearest_multiple(number, step) return math.max(1, (number + step // 2) // step) * step end

-- Divisors of a number that are at most `most` (default: all of them), ascending. O(√number).
function integers.divisors(number, most)
  local list, divisor = {}, 1
  while divisor * divisor <= number do
    if number % divisor == 0 then list[#list + 1] = divisor end
    divisor = divisor + 1
  end
  for i = #list, 1, -1 do   -- each with the other of its pair
    if list[i] * list[i] ~= number then list[#list + 1] = number // list[i] end
  end
  while most and #list > 0 and list[#list] > most do list[#list] = nil end
  return list
end

-- The one that is nearest to `wanted`, the smaller of two.
function integers.nearest_divisor(number, wanted)
  local best = 1
  for _, divisor in ipairs(integers.divisors(number)) do
    if math.abs(divisor - wanted) < math.abs(best - wanted) then best = divisor end
  end
  return best
end

-- The greatest that two numbers have in common; of a number and 0, the number.
function integers.common_divisor(a, b)
  while b > 0 do a, b = b, a % b end
  return a
end

return integers
