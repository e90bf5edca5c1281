-- SPDX-License-Identifier: Apache-2.0
-- scatter.lua: step time against memory of the fullest rank, of the plan and its alternatives, with the frontier: what nothing that could
-- be planned beats in both. Linear to twice the GPU's memory and to 2.2 times the plan's step; what lies beyond stands at the edge, with
-- its value.

local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local labels = require "pipeplan.report.html.labels"
local ticks = require "pipeplan.report.ticks"

local scatter = {}

local height, top, bottom = 292, 22, 264   -- pixels: of all, where the plot begins, where it ends
local strip = 40                           -- of them above, for what needs more than the scale has
local beyond = 2.2                         -- of the plan's step

-- The frontier of points that could be planned: { point, … }, fastest first.
function scatter.frontier(points)
  local open, list, least = {}, {}, math.huge
  for _, point in ipairs(points) do
    if point.allowed then open[#open + 1] = point end
  end
  table.sort(open, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds < b.seconds end
    return a.bytes < b.bytes
  end)
  for _, point in ipairs(open) do
    if point.bytes < least then
      least = point.bytes
      list[#list + 1] = point
    end
  end
  return list
end

-- Where values go: x as a share of the width, y in pixels.
local function scales(points, plan)
  local gib, own = 2 ^ 30, plan.step_seconds
  local left, right, low, high, far = own, own, math.huge, 0, false
  local ceiling = 2 * plan.memory.device_bytes / gib
  for _, point in ipairs(points) do
    local bytes = point.bytes / gib
    left, low = math.min(left, point.seconds), math.min(low, bytes)
    if point.seconds <= beyond * own then right = math.max(right, point.seconds) end
    if bytes <= ceiling then high = math.max(high, bytes) else far = true end
  end
  local usable = (plan.memory.device_bytes - plan.memory.headroom_bytes) / gib
  high, low = math.max(high, 1.04 * usable), math.min(low, usable)
  local wide, tall = math.max(right - left, 0.05 * own), math.max(high - low, 0.1 * high)
  left, right = left - 0.08 * wide, right + 0.06 * wide
  low, high = math.max(0, low - 0.12 * tall), high + 0.04 * tall
  local ceiling_y = top + (far and strip or 0)
  return {
    far = far, left = left, right = right, low = low, high = high, ceiling = ceiling_y, usable = usable,
    x = function(seconds) return math.max(0, math.min(0.97, (seconds - left) / (right - left))) end,
    y = function(bytes)
      local value = bytes / gib
      if value > ceiling then return top + strip / 2 end
      return bottom - (value - low) / (high - low) * (bottom - ceiling_y)
    end,
    outside = function(point) return point.seconds > beyond * own or point.bytes / gib > ceiling end,
  }
end

local function percent(share) return string.format("%.2f%%", 100 * share) end

local function across(class, y)
  return element("line", { class = class, x1 = 0, x2 = "100%", y1 = element.number(y), y2 = element.number(y) })
end

-- Zones, ticks and axes.
local function ground(at, plan, add)
  local limit = at.y(plan.memory.device_bytes - plan.memory.headroom_bytes)
  add(element("rect", { class = "nofitzone", x = 0, y = top, width = "100%", height = element.number(math.max(0, limit - top)) }))
  local tie = plan.expected_error and plan.expected_error.comparison_fraction or 0
  local from, to = at.x(plan.step_seconds), at.x(plan.step_seconds * (1 + tie))
  if to > from then
    add(element("rect", { class = "tiezone", x = percent(from), width = percent(to - from), y = top, height = bottom - top }))
    add(element("text", { x = percent(from), dx = 3, y = 15 }, "under " .. format.percent(tie) .. ": a tie"))
  end
  add(across("lim", limit))
  add(element("text", { class = "end acc", x = "100%", dx = -4, y = at.ceiling + 13 },
              string.format("above %.1f GiB: does not fit", at.usable)))
  if at.far then
    add(across("brk", top + strip - 3))
    add(across("brk", top + strip))
  end
  local step = ticks.step((at.high - at.low) / 6)
  for i = math.ceil(at.low / step), math.floor(at.high / step) do
    local y = bottom - (i * step - at.low) / (at.high - at.low) * (bottom - at.ceiling)
    if y > at.ceiling + 8 and y < bottom - 8 then
      add(across("tick", y))
      add(element("text", { class = "yl", x = 4, y = element.number(y - 3) }, string.format("%.6g", i * step)))
    end
  end
  add(across("axis", bottom))
  local whole = at.right - at.left
  step = ticks.step(whole / 6)
  for i = math.ceil(at.left / step), math.floor(at.right / step) do
    local x = (i * step - at.left) / whole
    if x > 0.04 and x < 0.96 then add(element("text", { class = "mid ax", x = percent(x), y = bottom + 15 },
                                              string.format("%.6g", i * step))) end
  end
end

local function mark(point, x, y)
  if point.planned then
    return element.list(element("circle", { class = "pc", cx = x, cy = y, r = 6.5 }),
                        element("circle", { class = "pf", cx = x, cy = y, r = 3 }))
  elseif not point.allowed then
    return element("svg", { x = x, y = y, overflow = "visible" }, element("path", { class = "px", d = "M-4-4 4 4M-4 4 4-4" }))
  end
  return element("circle", { class = point.fit == "tight" and "pt" or "pf", cx = x, cy = y, r = 4 })
end

local fits = { fits = "fits", tight = "fits tightly", does_not_fit = "does not fit" }

local function said(point)
  local words = string.format("%s: %s a step, %s GiB, %s", point.name, format.seconds(point.seconds), format.gib(point.bytes),
                              fits[point.fit] or "")
  return words .. (not point.allowed and point.fit ~= "does_not_fit" and ", a rule forbids it" or "")
end

local anchors = { start = nil, ["end"] = "end", middle = "mid" }

-- The frontier as steps: at each point's time no less memory is to be had.
local function steps(list, at, add)
  for i = 2, #list do
    local a, b = list[i - 1], list[i]
    local x1, x2, y1, y2 = percent(at.x(a.seconds)), percent(at.x(b.seconds)), element.number(at.y(a.bytes)), element.number(at.y(b.bytes))
    add(element("line", { class = "fr", x1 = x1, x2 = x2, y1 = y1, y2 = y1 }))
    add(element("line", { class = "fr", x1 = x2, x2 = x2, y1 = y1, y2 = y2 }))
  end
end

-- What the signs mean.
local function key(at, count)
  local function sign(shape, words) return { element("svg", { class = "ik", width = 14, height = 12 }, shape), words } end
  return element("figcaption", nil,
    string.format("Across: seconds a step. Up: peak GiB%s. ", at.far and "; above the double line not to scale" or ""),
    sign({ element("circle", { class = "pc", cx = 7, cy = 6, r = 5 }), element("circle", { class = "pf", cx = 7, cy = 6, r = 2.5 }) },
         "planned "),
    sign(element("circle", { class = "pf", cx = 7, cy = 6, r = 4 }), "fits "),
    sign(element("circle", { class = "pt", cx = 7, cy = 6, r = 4 }), "tight "),
    sign(element("path", { class = "px", d = "M3 2 11 10M3 10 11 2" }), "does not fit, or a rule forbids it "),
    count > 1 and sign(element("line", { class = "fr", x1 = 0, x2 = 14, y1 = 6, y2 = 6 }),
                       "the frontier: nothing that could be planned is faster and smaller"))
end

-- points: { name, seconds, bytes, fit, allowed, planned }; the plan's first. allowed: it fits, and no rule forbids it.
function scatter.make(points, plan)
  local at, shapes = scales(points, plan), {}
  local function add(shape) shapes[#shapes + 1] = shape end
  ground(at, plan, add)
  local frontier = scatter.frontier(points)
  steps(frontier, at, add)
  for _, point in ipairs(points) do
    point.x, point.y, point.text = at.x(point.seconds), at.y(point.bytes), point.name
    if at.outside(point) then
      point.text = string.format("%s, %s GiB", point.name, format.integer(point.bytes / 2 ^ 30))
      if point.seconds > beyond * plan.step_seconds then point.text = point.name .. ", " .. format.seconds(point.seconds) end
    end
  end
  labels.place(points, top, bottom, { { labels.width - 170, at.ceiling, labels.width, at.ceiling + 16 } })
  for _, point in ipairs(points) do
    local x, y, name = percent(point.x), element.number(point.y), nil
    if point.side then
      name = element("text", { class = (point.planned and "b " or "") .. (anchors[point.side[1]] or ""), x = x, dx = point.side[2],
                               y = element.number(point.y + point.side[3]) }, point.text)
    end
    add(element("g", nil, element("title", nil, said(point)), mark(point, x, y), name))
  end
  return element("figure", nil, element("svg", { class = "sc", width = "100%", height = height, role = "img",
    ["aria-label"] = "Scatter of step time in seconds against peak memory in GiB; the table below has the numbers" }, shapes),
      key(at, #frontier))
end

return scatter
