-- SPDX-License-Identifier: Apache-2.0
-- alternatives.lua: other schedules on the same devices, layers and tokens: a scatter and the same as a table that sorts.

local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local scatter = require "pipeplan.report.html.scatter"
local tables = require "pipeplan.report.html.table"

local alternatives = {}

local function name_of(schedule, parallelism)
  local name = format.schedule(schedule)
  return parallelism.virtual > 1 and name:gsub(" 1F1B$", "") .. " V " .. parallelism.virtual or name
end

-- The plan and what is beside it, the fastest first; those of which no step was simulated last.
local function entries(plan)
  local fullest = 0
  for _, rank in ipairs(plan.memory.ranks) do fullest = math.max(fullest, rank.total_bytes) end
  local list = { { schedule = plan.schedule, parallelism = plan.parallelism, fit = plan.memory.fit, step_seconds = plan.step_seconds,
                   bubble_fraction = plan.bubble.fraction, peak_bytes = fullest, why_not = {}, planned = true, allowed = true,
                   place = 0 } }
  for i, other in ipairs(plan.alternatives or {}) do
    list[i + 1] = setmetatable({ place = i }, { __index = other })
  end
  table.sort(list, function(a, b)
    local one, two = a.step_seconds or math.huge, b.step_seconds or math.huge
    if one ~= two then return one < two end
    return a.place < b.place
  end)
  return list
end

local fits = { fits = "fits", tight = "tight", does_not_fit = "no" }
local order = { fits = 0, tight = 1, does_not_fit = 2 }

local function number(value, text) return { value and text or "–", value = value or "" } end

local columns = { { "schedule" }, { "step s" }, { "slower %" }, { "bubble %" }, { "peak GiB" }, { "fits" } }

-- Reasons that the other columns do not show.
local function why_not(entry)
  local parts = {}
  for _, reason in ipairs(entry.why_not) do
    reason = reason:gsub("^[%d.]+ %% %a+ ?", ""):gsub("^as fast ?", ""):gsub("^does_not_fit$", "")
    if reason ~= "" then parts[#parts + 1] = reason end
  end
  return #parts > 0 and element("small", { class = "why" }, table.concat(parts, ", ")) or nil
end

local function seconds(value) return string.format(value < 10 and "%.2f" or "%.1f", value) end

local function row(entry, plan)
  local where = entry.planned and "same" or layout.difference(entry.parallelism, plan.parallelism)
  local slower = not entry.planned and entry.slower_fraction
  return {
    class = entry.planned and "chosen" or not entry.allowed and "nofit" or nil,
    element.list(name_of(entry.schedule, entry.parallelism), where ~= "same" and element("small", nil, " at " .. where),
                 entry.planned and element("em", nil, " planned"), entry.tie and entry.allowed and element("em", nil, " tie"),
                 why_not(entry)),
    number(entry.step_seconds, entry.step_seconds and seconds(entry.step_seconds)),
    number(slower or entry.planned and 0, slower and string.format("%+.1f", 100 * slower) or ""),
    number(entry.bubble_fraction, entry.bubble_fraction and string.format("%.1f", 100 * entry.bubble_fraction)),
    number(entry.peak_bytes, entry.peak_bytes and format.gib(entry.peak_bytes)),
    { fits[entry.fit] or "–", value = order[entry.fit] or 3 },
  }
end

-- The two sections: the picture, and the table.
function alternatives.sections(plan)
  local list, points, rows = entries(plan), {}, {}
  for i, entry in ipairs(list) do
    rows[i] = row(entry, plan)
    if entry.step_seconds and entry.peak_bytes then
      points[#points + 1] = { name = name_of(entry.schedule, entry.parallelism), seconds = entry.step_seconds, bytes = entry.peak_bytes,
                              fit = entry.fit, allowed = entry.allowed, planned = entry.planned }
    end
  end
  for _, point in ipairs(plan.frontier or {}) do  -- of any layout and recipe
    local known = false
    for _, other in ipairs(points) do known = known or other.seconds == point.step_seconds and other.bytes == point.peak_bytes end
    if not known then
      local where = layout.difference(point.parallelism, plan.parallelism)
      points[#points + 1] = { name = name_of(point.schedule, point.parallelism) .. (where ~= "same" and " at " .. where or ""),
                              seconds = point.step_seconds, bytes = point.peak_bytes, fit = point.fit, allowed = true }
    end
  end
  table.sort(points, function(a, b) return (a.planned and 0 or 1) < (b.planned and 0 or 1) or a.planned == b.planned
             and a.seconds < b.seconds end)
  local picture = document.section("Alternatives", element.list(
    element("p", nil, "Same GPUs, layers and tokens: step time against peak memory, with the frontier of all layouts."),
    scatter.make(points, plan)), { id = "alternatives" })
  local listed = document.section("The same as a table",
    tables.make(columns, rows, { class = "n sort", id = "alt", sortable = true, sorted = 2 }), { class = "cont", quiet = true })
  return picture, listed
end

return alternatives
