-- SPDX-License-Identifier: Apache-2.0
-- bubble.lua: the bubble of a simulated schedule, by the definitions that papers use, and its closed form.

local document = require "pipeplan.report.html.document"
local format = require "pipeplan.base.format"
local simulation = require "pipeplan.report.simulation"
local tables = require "pipeplan.report.html.table"

local bubble = {}

local function share(seconds, whole) return whole > 0 and format.percent(seconds / whole) or "" end

function bubble.section(run)
  local result, form = run.result, run.closed_form
  local duration, whole = simulation.duration, run.result.makespan
  local list = {
    { "mean idle", duration(result.bubble_fraction * whole), format.percent(result.bubble_fraction), "1 − Σ busy / (P × makespan)" },
    { "most idle rank", duration(result.max_idle), share(result.max_idle, whole), "makespan − work, of the rank that idles most" },
    { "span", duration(result.span_bubble), share(result.span_bubble, result.max_span),
      "longest own span − work, what zero-bubble papers count" },
  }
  if form then
    list[#list + 1] = { "closed form", form.seconds and duration(form.seconds) or "–", form.seconds and share(form.seconds, whole) or "",
                        (form.exact and "exact here: " or "not exact here: ") .. form.conditions }
  end
  if run.step_seconds and run.profile then
    list[#list + 1] = { "step", duration(run.step_seconds), "", "with what it does beside the schedule, by " .. run.profile.file }
  end
  return document.section("The bubble", tables.make({ { "definition" }, { "seconds", class = "nb" }, { "share", class = "nb" },
                                                      { "what it is" } }, list, { class = "chg" }),
                          { id = "bubble" })
end

return bubble
