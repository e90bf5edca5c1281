-- SPDX-License-Identifier: Apache-2.0
-- measured.lua: the profile's own runs, measured above predicted.

local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local lists = require "pipeplan.base.lists"

local measured = {}

local row_height = 34   -- pixels: two bars and what stands between rows

local function percent(value, whole) return string.format("%.2f%%", 78 * value / whole) end

function measured.section(plan)
  local runs = plan.profile and plan.profile.calibration or {}
  if #runs == 0 then return nil end
  local whole, shapes = 0, {}
  for _, run in ipairs(runs) do whole = math.max(whole, run.measured_seconds, run.predicted_seconds) end
  for i, run in ipairs(runs) do
    local y = (i - 1) * row_height
    for k, bar in ipairs { { "m4", run.measured_seconds, "measured " }, { "m3", run.predicted_seconds, "predicted " } } do
      local width, top = percent(bar[2], whole), y + (k - 1) * 14
      shapes[#shapes + 1] = element("rect", { class = bar[1], x = 0, y = top, width = width, height = 11 })
      shapes[#shapes + 1] = element("text", { x = width, dx = 5, y = top + 9 }, bar[3] .. format.seconds(bar[2])
                                    .. (k == 2 and string.format(" (%+.1f %%)", 100 * run.error_fraction) or ""))
    end
  end
  local names = {}
  for i, run in ipairs(runs) do names[i] = element("span", nil, format.schedule(run.schedule) .. " M " .. run.microbatches) end
  local worst = lists.largest(runs, function(run) return math.abs(run.error_fraction) end)
  return document.section("Measured above predicted", element.list(
    element("p", nil, string.format("The profile's own runs on %s: the furthest off is %s, by %+.1f %%.", plan.profile.source
                                    or plan.profile.file,
                                    format.schedule(worst.schedule), 100 * worst.error_fraction)),
    element("figure", nil, element("div", { class = "tl runs", style = string.format("--h:%dpx", row_height) },
      element("div", { class = "lab" }, names),
      element("svg", { width = "100%", height = row_height * #runs, role = "img",
                       ["aria-label"] = "Steps of the profile's own runs, measured and predicted" }, shapes)))), { id = "measured" })
end

return measured
