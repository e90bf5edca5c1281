-- SPDX-License-Identifier: Apache-2.0
-- page.lua: what the one page says about a plan, before it is laid out: sections in reading order, most important first, rollback last.
-- text.lua fits them to 66 lines of 80 columns, markdown.lua writes them all.
--
-- A section: { label, group, lines = { paragraph, … }, columns = { { title, left }, … }, rows = { { cell, … }, … }, keep, weight }
--   It has lines or a table. With `inline` its lines are parts of one paragraph. `keep` is how many lines or rows stay when the page is
--   too long; sections of smaller `weight` are cut first. Sections of one group stand together. A column's `short` makes its cells shorter
--   where a row would be wider than the page.

local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local others = require "pipeplan.report.others"
local run = require "pipeplan.report.run"
local verdict = require "pipeplan.report.verdict"

local page = {}

-- Adds a section to `sections`; one without lines is left out.
local function adder(sections)
  return function(label, group, lines, weight, keep, inline)
    if type(lines) == "string" then lines = { lines } end
    if not lines or #lines == 0 then return end
    sections[#sections + 1] = { label = label, group = group, lines = lines, weight = weight, keep = keep or #lines, inline = inline }
  end
end

-- ----------------------------------------------------------------------------------------------------------------- the two pages

-- What every page says, in its place.
local function caution(add, plan)
  add("site", "verdict", verdict.site(plan), 23)
  add("loosened", "verdict", verdict.loosened(plan), 22, 2)
  add("warning", "verdict", verdict.warnings(plan, "warning"), 18, 2)
  add("run", "run", run.described(plan), 99)
  add("ramp", "run", run.ramp(plan), 15, 1)
end

local function remainder(add, plan, sections)
  sections[#sections + 1] = others.alternatives(plan)
  add("dropped", "others", others.dropped(plan), 3, 2, true)
  add("note", "others", verdict.warnings(plan, "note"), 5, 1)
  add("links", "others", others.links(plan), 9, 2)
  add("assumed", "others", others.assumptions(plan), 2, 2, true)
  add("policy", "others", others.policy(plan), 16)
end

local function time_lines(plan)
  local lines = { run.step(plan) }
  for _, line in ipairs { run.stage_time, run.launches, run.traffic } do lines[#lines + 1] = line(plan) end
  return lines
end

local function planned(plan)
  local sections = {}
  local add = adder(sections)
  add("fewest", "verdict", verdict.minimum(plan.minimum), 98)
  add("fits", "verdict", verdict.fits(plan.memory), 99)
  add("bubble", "verdict", verdict.bubble(plan.bubble), 99)
  add("saves", "verdict", verdict.saved(plan), 20, 1)
  add("takes", "verdict", verdict.takes(plan), 99)
  local reasons = verdict.reasons(plan)
  table.insert(reasons, 1, verdict.wanted(plan))
  add("wanted", "verdict", reasons, 21, 2)
  add("costs", "verdict", verdict.cost(plan), 17)
  add("next", "verdict", verdict.runner_up(plan), 8)
  add("faster", "verdict", verdict.dominated(plan), 19, 1)
  caution(add, plan)
  add("stages", "run", run.stages(plan), 12, plan.even_split and 2 or 1)

  sections[#sections + 1] = run.memory(plan)
  add("time", "sizes", time_lines(plan), 7, 2)
  add("measured", "sizes", run.profile(plan), 14)
  add("power", "sizes", run.power(plan), 14)
  add("copies", "sizes", run.copies(plan), 11)
  add("host", "sizes", run.host(plan), 9)
  add("kernel", "sizes", run.kernel(plan), 10, 1)
  add("run in", "sizes", run.available(plan), 13)
  remainder(add, plan, sections)
  return sections
end

local function not_planned(plan)
  local sections = {}
  local add = adder(sections)
  add("because", "verdict", verdict.reasons(plan), 30, 4)
  add("instead", "verdict", verdict.instead(plan), 99)
  add("to fit", "verdict", verdict.ways(plan), 25, 3)
  caution(add, plan)
  add("one GPU", "sizes", verdict.one_gpu(plan), 14)
  remainder(add, plan, sections)
  return sections
end

-- Lines of --explain and --why, grouped: { { label, lines }, … }.
local function explanation(plan)
  local known = plan.explanation
  if not known then return nil end
  local sections = {}
  local add = adder(sections)
  local answers, fired, silent, figures, hidden, nearest = {}, {}, {}, {}, {}, {}
  for i, entry in ipairs(known.answers) do answers[i] = entry.question .. ": " .. entry.answer end
  for _, rule in ipairs(known.rules) do
    local list = rule.holds and fired or silent
    list[#list + 1] = rule.verb .. " " .. rule.id .. ": " .. rule.because
  end
  for i, entry in ipairs(known.overridden) do
    hidden[i] = string.format("%s, %s by %s (%s:%s): %s", entry.id, entry.kind, entry.layer, entry.file, entry.line, entry.what)
  end
  for i, entry in ipairs(known.changes) do nearest[i] = entry.words .. ": " .. entry.effect end
  for i, entry in ipairs(known.figures) do
    figures[i] = string.format("%s: %s, %s; %s [%s]", entry.figure, entry.name, entry.formula, entry.inputs, entry.source)
  end
  add("why", "answers", answers)
  add("decided", "decided", known.decided)
  add("fired", "fired", fired)
  add("did not", "silent", silent)
  add("hidden", "hidden", hidden)
  add("nearest", "nearest", nearest)
  add("turns", "turns", verdict.turns(plan))
  add("advice", "advice", verdict.advice(plan))
  add("frontier", "frontier", verdict.frontier(plan))
  add("figures", "figures", figures)
  return sections
end

-- → { title, subject, sections, closing, explanation }: closing is the rollback paragraph, or nil; explanation more sections, or nil.
function page.of(plan)
  if plan.status == "planned" then
    return {
      title = format.schedule(plan.schedule) .. " · " .. layout.line(plan.parallelism, plan.microbatches),
      subject = plan.model.name, sections = planned(plan), closing = plan.rollback and plan.rollback.paragraph,
      explanation = explanation(plan),
    }
  end
  return {
    title = plan.status:upper() .. (plan.recommend and " · instead: " .. format.schedule(plan.recommend.schedule) or " · no plan"),
    subject = plan.model.name, sections = not_planned(plan), explanation = explanation(plan),
  }
end

return page
