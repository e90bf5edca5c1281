-- SPDX-License-Identifier: Apache-2.0
-- rollback.lua: when to give up on the plan: the threshold and the plan on one scale of utilisation, and the rule in words.

local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"

local rollback = {}

local function percent(share) return string.format("%.2f%%", 100 * share) end

local function upright(class, x, from)
  return element("line", { class = class, x1 = percent(x), x2 = percent(x), y1 = from, y2 = 56 })
end

-- A text at x that stays inside: right of it, or left of it where the scale ends or another line comes soon.
local function named(x, y, class, words, soon)
  local flipped = x > 0.5 or soon and x > 0.3
  return element("text", { class = class .. (flipped and " end" or ""), x = percent(x), dx = flipped and -4 or 4, y = y }, words)
end

-- Where the scale ends at most. What is further out, a run of another plan's, stands at its end.
local farthest = 2

-- rollback.gauge{ threshold, predicted, measured?, error } as shares of the ideal step.
function rollback.gauge(values)
  local least, most = math.min(values.threshold, values.predicted, values.measured or 1), math.max(values.predicted, values.measured or 0)
  local low = math.max(0, math.min(1, math.floor(10 * (least - 0.08)) / 10))
  local high = math.max(1, math.ceil(10 * math.min(farthest, most)) / 10)
  local function x(value) return math.max(0, math.min(1, (value - low) / (high - low))) end
  local shapes = { element("rect", { class = "gback", x = 0, y = 38, width = percent(x(values.threshold)), height = 14 }) }
  local function add(shape) shapes[#shapes + 1] = shape end
  if values.error then
    local from, to = x(values.predicted / (1 + values.error)), x(values.predicted / (1 - values.error))
    add(element("rect", { class = "gerr", x = percent(from), y = 42, width = percent(to - from), height = 6 }))
  end
  add(upright("lim", x(values.threshold), 18))
  add(named(x(values.threshold), 28, "acc", "below " .. format.percent(values.threshold) .. " roll back",
            values.predicted > values.threshold))
  add(upright("cap", x(values.predicted), 4))
  add(named(x(values.predicted), 13, "b", "plan " .. format.percent(values.predicted)))
  if values.measured then
    add(element("circle", { class = "pc", cx = percent(x(values.measured)), cy = 45, r = 6 }))
    add(named(x(values.measured), 71, "b", "measured " .. format.percent(values.measured)))
  end
  add(element("line", { class = "axis", x1 = 0, x2 = "100%", y1 = 56, y2 = 56 }))
  local ticks = math.floor(10 * (high - low) + 0.5)
  for i = 0, ticks do
    if ticks <= 6 or i % 2 == 0 then
      local value = low + i / 10
      local class = i == 0 and "" or i == ticks and "end" or "mid"
      add(element("text", { class = class, x = percent(x(value)), y = values.measured and 87 or 71 },
                  string.format("%.0f%s", 100 * value, (i == 0 or i == ticks) and " %" or "")))
    end
  end
  return element("svg", { class = "ga", width = "100%", height = values.measured and 92 or 76, role = "img",
    ["aria-label"] = string.format("Utilisation: the plan predicts %s, below %s roll back%s", format.percent(values.predicted),
      format.percent(values.threshold), values.measured and ", measured " .. format.percent(values.measured) or "") }, shapes)
end

function rollback.section(plan)
  local known = plan.rollback
  if not known then return nil end
  local error = plan.expected_error and plan.expected_error.time_fraction
  local batches = known.batches or {}
  local words = string.format("%selow %s (steps over %s)", #batches > 1 and "On the mean of the window, at its own batches: b" or "B",
                              format.percent(known.threshold_fraction), format.seconds(known.threshold_seconds))
  if known.fallback then
    local name = known.fallback.schedule == "none" and "no pipeline"
      or format.schedule(known.fallback.schedule) .. " at P " .. known.fallback.pipeline
    words = words .. " switch to " .. name .. "."
  else
    words = words .. " the estimate is wrong: measure, and plan again."
  end
  if error then
    local inside = known.threshold_fraction > known.predicted_utilisation_fraction / (1 + error)
    words = words .. string.format(" The grey bar is the plan with its error of ±%s; the threshold lies %s it.", format.percent(error),
                                   inside and "inside" or "outside")
  end
  words = words .. string.format(" Window: the first %s steps without %s.", format.integer(known.window_steps),
                                 format.integer(known.warmup_steps))
  for i, batch in ipairs(#batches > 1 and batches or {}) do
    words = words .. string.format("%s %s below %s (steps over %s)", i == 1 and " Steps of one batch are held against their own: " or ";",
                                   format.integer(batch.global_batch_size), format.percent(batch.threshold_fraction),
                                   format.seconds(batch.threshold_seconds)) .. (i == #batches and "." or "")
  end
  return document.section("When to roll back", element.list(
    rollback.gauge { threshold = known.threshold_fraction, predicted = known.predicted_utilisation_fraction, error = error },
    element("p", nil, words), document.folded("The rule in full", element("p", nil, known.paragraph))), { id = "rollback" })
end

return rollback
