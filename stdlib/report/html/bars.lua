-- SPDX-License-Identifier: Apache-2.0
-- bars.lua: the actions of a schedule as a few SVG paths: one of each kind and height, a bar being a stroke along the row, "h" its length.
-- A rectangle for each action would be nine times as large. Two codes tell kinds apart, for whoever sees no hue: F and B fill the row, I
-- two thirds of it and W one (B = I + W), and a pair has two stripes.
--
-- x is in whole units of the drawing, y in pixels.

local element = require "pipeplan.report.html.element"

local bars = {}

local methods = {}
methods.__index = methods

-- Of each kind its strokes: class, height as a share of the row, and where it stands: its middle, from the row's top.
local kinds = {
  F = { { "kF", 1, 1 / 2 } }, B = { { "kB", 1, 1 / 2 } }, I = { { "kI", 2 / 3, 2 / 3 } }, W = { { "kW", 1 / 3, 5 / 6 } },
  FB = { { "kF", 1 / 2, 1 / 4 }, { "kB", 1 / 2, 3 / 4 } },
}

-- bars.new(height of a row, space between rows, units above which a bar has its edge drawn in the whole view too)
function bars.new(row_height, space, fine)
  return setmetatable({ row_height = row_height, space = space, fine = fine, strokes = {}, order = {}, edges = { {}, {} } }, methods)
end

local function stroke_of(self, part)
  local key = part[1] .. part[2]
  local stroke = self.strokes[key]
  if not stroke then
    stroke = { class = part[1], width = part[2] * (self.row_height - self.space), parts = {} }
    self.strokes[key] = stroke
    self.order[#self.order + 1] = stroke
  end
  return stroke
end

-- A bar of that kind in the row, from x to x; touches: its left edge is another bar's right one.
function methods:add(kind, row, from, to, touches)
  local top, inner = row * self.row_height + self.space / 2, self.row_height - self.space
  for _, part in ipairs(kinds[kind]) do
    local stroke, y = stroke_of(self, part), top + part[3] * inner
    local parts = stroke.parts
    if stroke.y ~= y then parts[#parts + 1] = string.format("M%d %s", from, element.number(y))
    elseif stroke.x ~= from then parts[#parts + 1] = string.format("m%d 0", from - stroke.x) end
    parts[#parts + 1] = string.format("h%d", to - from)
    stroke.x, stroke.y = to, y
  end
  if touches then
    local list, height = self.edges[to - from >= self.fine and 1 or 2], kinds[kind][1][2] * (#kinds[kind] == 2 and 2 or 1)
    list[#list + 1] = string.format("M%d %sv%s", from, element.number(top + (1 - height) * inner), element.number(height * inner))
  end
end

function methods:markup()
  local paths = {}
  for i, stroke in ipairs(self.order) do
    paths[i] = element("path", { class = stroke.class, ["stroke-width"] = element.number(stroke.width), d = table.concat(stroke.parts) })
  end
  for i, class in ipairs { "sep", "sep fine" } do
    if #self.edges[i] > 0 then paths[#paths + 1] = element("path", { class = class, d = table.concat(self.edges[i]) }) end
  end
  return element("g", { fill = "none" }, paths)
end

-- What a kind looks like, beside its name.
function bars.swatch(kind)
  local strokes = {}
  for i, part in ipairs(kinds[kind]) do
    strokes[i] = element("path", { class = part[1], ["stroke-width"] = element.number(14 * part[2]),
                                   d = "M0 " .. element.number(14 * part[3]) .. "h22" })
  end
  return element("svg", { class = "sw", width = 22, height = 14, ["aria-hidden"] = "true" }, strokes)
end

return bars
