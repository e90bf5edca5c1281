-- SPDX-License-Identifier: Apache-2.0
-- weighted.lua: what stands in the middle and near the ends of values, each of which stands for several steps.

local weighted = {}

-- entries: each with its weight, a whole number; value_of(entry) → { { value, weight }, … } in order, and the sum of weights.
function weighted.sorted(entries, value_of)
  local list, total = {}, 0
  for k, entry in ipairs(entries) do
    list[k] = { value_of(entry), entry.weight }
    total = total + entry.weight
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list, total
end

-- The value of the place-th step, from 1.
function weighted.at(list, place)
  local passed = 0
  for _, one in ipairs(list) do
    passed = passed + one[2]
    if passed >= place then return one[1] end
  end
end

-- The mean of the two in the middle, where there are two.
function weighted.median(entries, value_of)
  local list, total = weighted.sorted(entries, value_of)
  return (weighted.at(list, (total + 1) // 2) + weighted.at(list, total // 2 + 1)) / 2
end

-- The tenth and the ninetieth of a hundred.
function weighted.tenths(entries, value_of)
  local list, total = weighted.sorted(entries, value_of)
  return weighted.at(list, (total + 9) // 10), weighted.at(list, total - (total - 1) // 10)
end

return weighted
