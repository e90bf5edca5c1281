-- SPDX-License-Identifier: Apache-2.0
-- labels.lua: where the names of a chart's points stand, so that none covers another, a point, or leaves the chart. Solved at the narrowest
-- width that the chart has on a screen: a wider one has more room, and names keep their side.

local format = require "pipeplan.base.format"

local labels = {}

labels.width = 300                  -- pixels of the narrowest plot
local letter, height = 6.1, 12      -- pixels of the font, on average

-- Sides that are tried: anchor, dx, dy.
local sides = {
  { "start", 8, 4 }, { "end", -8, 4 }, { "middle", 0, -9 }, { "middle", 0, 17 }, { "start", 7, -7 }, { "end", -7, -7 },
  { "start", 7, 15 }, { "end", -7, 15 }, { "start", 8, -18 }, { "end", -8, -18 }, { "start", 8, 27 }, { "end", -8, 27 },
}

local function box(x, y, text, side)
  local width = letter * format.width(text)
  local left = side[1] == "start" and x + side[2] or side[1] == "end" and x + side[2] - width or x - width / 2
  return { left, y + side[3] - height + 2, left + width, y + side[3] + 2 }
end

local function meet(a, b)
  return a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]
end

-- labels.place(points, top, bottom, others): each point { x = share of the width, y = pixels, text } gets `side`, or
-- none where there is no room. Points that come first choose first. others: what is written already, { left, top, right, bottom } each.
function labels.place(points, top, bottom, others)
  local taken = {}
  for i, point in ipairs(points) do
    local x = point.x * labels.width
    taken[i] = { x - 5, point.y - 5, x + 5, point.y + 5, of = point }
  end
  table.move(others, 1, #others, #taken + 1, taken)
  for _, point in ipairs(points) do
    for _, side in ipairs(sides) do
      local here = box(point.x * labels.width, point.y, point.text, side)
      local free = here[1] >= 0 and here[3] <= labels.width and here[2] >= top and here[4] <= bottom
      for _, other in ipairs(taken) do
        if not free then break end
        free = other.of == point or not meet(here, other)
      end
      if free then
        point.side = side
        taken[#taken + 1] = here
        break
      end
    end
  end
end

return labels
