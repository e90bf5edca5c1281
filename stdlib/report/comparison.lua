-- SPDX-License-Identifier: Apache-2.0
-- comparison.lua: several simulated schedules side by side, on the same ranks, microbatches and work: a schedule whose ranks hold V chunks
-- has chunks of a V-th of the work, and what a rank holds is counted in microbatches of all its chunks together.

local format = require "pipeplan.base.format"
local simulation = require "pipeplan.report.simulation"

local comparison = {}

local duration = simulation.duration

local function fullest(peaks, virtual)
  return format.digits(math.max(table.unpack(peaks)) / virtual, 4)
end

local function cells_of(run)
  local result, virtual = run.result, run.info.virtual
  return { format.schedule(run.request.kind), tostring(virtual), duration(result.makespan), format.percent(result.bubble_fraction),
           duration(result.max_idle), duration(result.span_bubble),
           fullest(run.peaks.freed_at_w, virtual), fullest(run.peaks.freed_at_i, virtual), tostring(run.traits.copies) }
end

local headings = { "schedule", "V", "makespan", "bubble", "most idle", "span bubble", "held to W", "to I", "copies" }

-- entries: { request, run } of what could be simulated, { request, rule } of what breaks a rule; times: of a rank's whole slice.
function comparison.text(entries, times)
  local request = entries[1].request
  local rows, widths = { headings }, {}
  for i, entry in ipairs(entries) do
    rows[i + 1] = entry.run and cells_of(entry.run) or { format.schedule(entry.request.kind), note = entry.rule.id }
  end
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, format.width(cell)) end
  end
  local lines = format.wrap(string.format(
    "%d ranks, %d microbatches; for one microbatch a rank takes %s. Held: microbatches on the fullest rank, until their W or their I",
    request.ranks, request.microbatches, simulation.costs(times, true)), 100)
  lines[#lines + 1] = ""
  for _, row in ipairs(rows) do
    local line = format.pad(row[1], widths[1])
    for i = 2, #row do line = line .. "  " .. format.pad(row[i], widths[i], true) end
    lines[#lines + 1] = line .. (row.note and "  not legal: " .. row.note or "")
  end
  return format.page(lines)
end

return comparison
