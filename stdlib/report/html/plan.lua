-- SPDX-License-Identifier: Apache-2.0
-- plan.lua: a plan as a page: verdict, warnings, one step in time, memory and alternatives, what decided, what would change it, when to
-- roll back, assumptions, how to make it again. The plan has its explanation.

local alternatives = require "pipeplan.report.html.alternatives"
local decided = require "pipeplan.report.html.decided"
local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local measured = require "pipeplan.report.html.measured"
local memory = require "pipeplan.report.html.memory"
local ramp = require "pipeplan.report.html.ramp"
local rollback = require "pipeplan.report.html.rollback"
local run = require "pipeplan.report.run"
local said = require "pipeplan.report.html.said"
local timeline = require "pipeplan.report.html.timeline"
local words = require "pipeplan.report.html.words"

local page = {}

-- "18.5 s: pipeline 18.2 s, …. The ranks idle 11.5 % of the pipeline on average (1F1B: 12.2 %), the most idle one 14.3 %."
local function step_words(plan)
  local bubble = plan.bubble
  local line = run.step(plan):gsub("^%l", string.upper)
    .. (plan.training.batch_ramp and ", at the full batch of " .. format.integer(plan.global_batch_size) or "") .. ". "
  if plan.parallelism.pipeline == 1 then return line end
  return line .. string.format("The ranks idle %s of the pipeline on average%s, the most idle one %s.", format.percent(bubble.fraction),
    bubble.baseline_1f1b_fraction and " (1F1B: " .. format.percent(bubble.baseline_1f1b_fraction) .. ")" or "",
    format.percent(bubble.max_idle_fraction))
end

-- Which stages are how long: what the bars of the timeline are.
local function stage_words(plan)
  local parts = run.stages(plan)
  table.insert(parts, 1, run.stage_time(plan))
  return element("p", { class = "sub scr" }, "Stages: " .. table.concat(parts, "; ") .. ".")
end

local function in_time(plan, program)
  local content, numbers
  if program and program.schedule then
    local drawn = timeline.make(program, plan.explanation.phases)
    content, numbers = { drawn.legend, drawn.buttons, drawn.figure }, drawn.numbers
  else
    content = element("p", { class = "sub" }, "No timeline: ", program and program.why_not or "the schedule was not built again", ".")
  end
  return document.section("One step in time", element.list(element("p", nil, step_words(plan)), content, stage_words(plan)),
                          { id = "timeline" }), numbers
end

-- page.planned(plan, program, command): program as stdlib/plan/program.lua has it.
function page.planned(plan, program, command)
  local warnings = words.warnings(plan)
  local time, numbers = in_time(plan, program)
  local picture, listed = alternatives.sections(plan)
  return document.write {
    title = string.format("%s: %s, %s", plan.model.name, format.schedule(plan.schedule),
                          layout.line(plan.parallelism, plan.microbatches, ", ")),
    kind = "pipeplan · plan of " .. plan.policy.date,
    heading = string.format("%s: %s, %s", plan.model.name, format.schedule(plan.schedule),
                            plan.schedule == "none" and layout.line(plan.parallelism, nil, ", ")
                              or string.format("P %d, M %s", plan.parallelism.pipeline, words.microbatches(plan))),
    verdict = words.verdict(plan), sure = words.sure(plan), numbers = numbers,
    sections = {
      warnings and document.section("Warnings", warnings, { id = "warnings" }) or false, said.section(plan, {}) or false,
      ramp.section(plan) or false, time,
      element("div", { class = "two" }, memory.section(plan), picture),
      element("div", { class = "rest" }, listed, decided.section(plan), decided.changes(plan), rollback.section(plan) or false,
              measured.section(plan) or false, decided.assumptions(plan) or false, decided.again(plan, command)),
    },
  }
end

return page
