-- SPDX-License-Identifier: Apache-2.0
-- simulation.lua: one simulated schedule as a page: the result in a sentence, the timeline, the bubble by its definitions, each rank.

local bubble = require "pipeplan.report.html.bubble"
local decided = require "pipeplan.report.html.decided"
local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local phases = require "pipeplan.base.phases"
local rows = require "pipeplan.report.rows"
local simulation = require "pipeplan.report.simulation"
local tables = require "pipeplan.report.html.table"
local timeline = require "pipeplan.report.html.timeline"

local page = {}

local printed_ranks = 24   -- see style.lua

local function number(value, text) return { text, value = value } end

local function ranks(run)
  local result, peaks, list = run.result, run.peaks, {}
  local stages, split = timeline.slices_of_ranks(run.info), run.traits.split_backward
  local bytes = run.peak_bytes or run.held_bytes or result.peak_bytes and result.peak_bytes.freed_at_w
  local columns = { { "rank" }, { "stages", class = "wide" }, { "busy", class = "wide" }, { "idle" }, { "idle %" },
                    { split and "chunks held, until W" or "chunks held" } }
  if split then columns[#columns + 1] = { "until I" } end
  if bytes then columns[#columns + 1] = { "peak GiB" } end
  for rank = 1, run.info.ranks do
    local row = { number(rank - 1, tostring(rank - 1)), format.cut(stages[rank], 24),
                  number(result.busy[rank], simulation.duration(result.busy[rank])),
                    number(result.idle[rank], simulation.duration(result.idle[rank])),
                  number(result.idle[rank], result.makespan > 0 and format.digits(100 * result.idle[rank] / result.makespan) or "0"),
                  number(peaks.freed_at_w[rank], format.integer(peaks.freed_at_w[rank])) }
    if split then row[#row + 1] = number(peaks.freed_at_i[rank], format.integer(peaks.freed_at_i[rank])) end
    if bytes then row[#row + 1] = number(bytes[rank], format.gib(bytes[rank])) end
    list[rank] = row
  end
  return document.section("Each rank", element.list(tables.make(columns, list, { class = "n sort", sortable = true, sorted = 1 }),
    #list > printed_ranks and element("p", { class = "paper" }, string.format("On paper the first %d of %s ranks; the page itself has all.",
                                                                              printed_ranks, format.integer(#list)))), { id = "ranks" })
end

-- page.write(run, command): a run as report/simulation.lua describes it, whose result has intervals_of.
function page.write(run, command)
  local result = run.result
  local content, numbers
  if result.intervals_of and result.makespan > 0 then
    local pairs_run = rows.has_pairs(run)
    local drawn = timeline.make(run, phases.of(run.schedule, run.info, result, pairs_run))
    content, numbers = { drawn.legend, drawn.buttons, drawn.figure }, drawn.numbers
  else
    content = element("p", { class = "sub" }, result.makespan > 0 and format.integer(run.info.actions) .. " actions are too many to draw."
                                              or "Nothing takes any time.")
  end
  local name = run.request.file or format.schedule(run.request.kind)
  return document.write {
    title = string.format("%s, %d ranks, %d microbatches", name, run.info.ranks, run.info.microbatches),
      kind = "pipeplan · simulated schedule",
    heading = simulation.subject(run), numbers = numbers,
    verdict = element.list("A step of ", element("b", nil, name), " takes ", element("b", nil, simulation.duration(result.makespan)),
                           " on ",
      format.plural(run.info.ranks, "rank"), "; these idle ", element("b", nil, format.percent(result.bubble_fraction)),
        " of it on average, the most idle one ",
      format.percent(result.max_idle_fraction), "."),
    sure = simulation.costs_per_chunk(run):gsub("^%l", string.upper) .. ".",
    sections = {
      document.section("One step in time", element.list(content), { id = "timeline" }), bubble.section(run), ranks(run),
      document.section("Make it again", element("pre", { class = "cmd", tabindex = 0 }, decided.command(command)), { id = "again" }),
    },
  }
end

return page
