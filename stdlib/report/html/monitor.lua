-- SPDX-License-Identifier: Apache-2.0
-- monitor.lua: a monitored run as a page: the verdict, utilisation beside plan and threshold, each rank's counter above what the plan
-- expects of it, and all that the text says.

local decided = require "pipeplan.report.html.decided"
local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local report = require "pipeplan.report.monitor"
local rollback = require "pipeplan.report.html.rollback"
local tables = require "pipeplan.report.html.table"

local page = {}

local most_ranks = 128   -- that are drawn
local verdicts = { keep = "Keep the plan", roll_back = "Roll back", fault = "Find the fault", undecided = "Undecided" }

local function sentence(text) return (text:gsub("^%l", string.upper)) .. (text:find "[.!?]$" and "" or ".") end

-- How many steps that is, and what they took.
local function verdict(run)
  local measured = run.found.measured
  local words = element("b", nil, verdicts[run.verdict])
  if not measured then return element.list(words, ": no step was measured. ", sentence(run.reasons[1] or "")) end
  local against = measured.utilisation < measured.threshold and "below" or "above"
  return element.list(words, ": over ", format.plural(measured.steps, "step"), " utilisation is ",
                      element("b", nil, format.percent(measured.utilisation)),
    string.format(", %s the threshold of %s; the plan predicts %s. ", against, format.percent(measured.threshold),
                  format.percent(measured.predicted)),
    run.verdict == "undecided" and sentence(run.reasons[1] or "") or nil)
end

local function gauge(run)
  local measured = run.found.measured
  if not measured then return nil end
  return document.section("Utilisation", rollback.gauge { threshold = measured.threshold, predicted = measured.predicted,
                                                          measured = measured.utilisation },
                          { id = "utilisation" })
end

local columns = { { "rank" }, { "", class = "bar" }, { "of the highest %" }, { "planned %" }, { "below plan" } }

local function rank_rows(kind, plan)
  local rows = {}
  for i, row in ipairs(report.ranks_of(kind, plan)) do
    if i > most_ranks then break end
    local width = string.format("%.1f%%", 100 * math.max(0, math.min(1, row.share)))
    local mark = row.planned and string.format("%.1f%%", 100 * math.max(0, math.min(1, row.planned)))
    local bar = element("svg", { width = "100%", height = 12, role = "img",
                                 ["aria-label"] = "rank " .. row.rank .. ": " .. format.percent(row.share) },
      element("rect", { class = "m4", x = 0, y = 1, width = width, height = 10 }),
      mark and element("line", { class = "cap", x1 = mark, x2 = mark, y1 = 0, y2 = 12 }) or nil)
    local below = (row.planned or 1) - row.share
    rows[i] = { { tostring(row.rank), value = row.rank }, bar, { string.format("%.1f", 100 * row.share), value = row.share },
                { row.planned and string.format("%.1f", 100 * row.planned) or "–", value = row.planned or "" },
                { string.format("%.1f", 100 * below), value = below } }
  end
  return rows
end

local function ranks(run)
  for _, kind in ipairs(run.counters) do
    if kind.ranks and #kind.ranks >= 2 and math.max(table.unpack(kind.ranks, 1, math.min(#kind.ranks, 4096))) > 0 then
      local more = #kind.ranks - most_ranks
      return document.section("Ranks, measured against planned", element.list(
        element("p", nil, kind.title, " of each rank as a share of the highest; the line is the planned share of busy time.",
                more > 0 and string.format(" %s ranks more are in --format json.", format.integer(more)) or ""),
        tables.make(columns, rank_rows(kind, run.plan), { class = "n sort", sortable = true, sorted = 1 }),
        #kind.ranks > 24 and element("p", { class = "paper" }, "On paper the first 24 ranks.")), { id = "ranks" })
    end
  end
end

local headings = { ["do"] = "What to do", because = "Because", ["if below"] = "If it stays below", measured = "Measured",
                   planned = "Planned",
                   ["left out"] = "Left out", gaps = "Gaps", warning = "Warnings", sees = "What sees a bubble", read = "Read" }

-- page.write(run, command): run as report/monitor.lua takes it.
function page.write(run, command)
  local sections = {}
  for _, paragraph in ipairs(report.paragraphs(run)) do
    local label, texts = paragraph[1], {}
    for i, text in ipairs(paragraph[2]) do
      text = label == "read" and text or sentence(text)   -- a file is called as it is
      texts[i] = element(label == "warning" and "li" or "p", nil, text)
    end
    if headings[label] then
      sections[#sections + 1] = document.section(headings[label], label == "warning" and element("ul", { class = "warn" }, texts)
                                                 or element.list(texts),
                                                 { id = label:gsub(" ", "-") })
    end
    if #sections == 1 then sections[2] = gauge(run) end
  end
  sections[#sections + 1] = ranks(run)
  sections[#sections + 1] = document.section("Make it again", element("pre", { class = "cmd", tabindex = 0 }, decided.command(command)),
                                             { id = "again" })
  local head, subject = report.headline(run)
  return document.write { title = subject .. ": " .. head, kind = "pipeplan · monitored run", heading = subject, verdict = verdict(run),
                          sections = sections, class = "monitor" }
end

return page
