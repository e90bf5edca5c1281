-- SPDX-License-Identifier: Apache-2.0
-- ticks.lua: where the marks of an axis stand.

local ticks = {}

-- The least step of 1, 2 or 5 times a power of ten that is no smaller than that, which is over 0.
function ticks.step(least)
  local power = 10 ^ math.floor(math.log(least, 10))
  for _, factor in ipairs { 1, 2, 5 } do
    if factor * power >= least then return factor * power end
  end
  return 10 * power
end

return ticks
