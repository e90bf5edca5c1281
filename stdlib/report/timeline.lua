-- timeline.lua: a simulated schedule as text: one row per rank, time from left to right, each action as wide as it takes long.
--
--   F0 B0 I0 W0  action and microbatch of the rank's first chunk, f0 b0 i0 w0 of its others (the other direction in DualPipe)
--   4&0          forward of microbatch 4 overlapped with the backward of microbatch 0
--   -            the action goes on        .  the rank waits
-- Where there is no room for a number its last digits remain, then nothing but the letter.

local format = require "pipeplan.report.format"

local timeline = {}

timeline.width = 100      -- of a whole line
local max_columns = 6     -- of the shortest action: short schedules need not fill the page
local max_rows = 64

-- Seconds of one column: a whole part of the shortest action where that leaves room, so that equal actions look equal.
local function seconds_of_column(result, room)
  local shortest = math.huge
  for _, row in ipairs(result.intervals) do
    for _, interval in ipairs(row) do
      local seconds = interval.finish - interval.start
      if seconds > 0 then shortest = math.min(shortest, seconds) end
    end
  end
  local columns = math.min(max_columns, math.floor(room * shortest / result.makespan + 1e-9))
  return columns >= 1 and shortest / columns or result.makespan / room
end

-- The last digits of a microbatch that fit.
local function number(microbatch, room)
  local text = tostring(microbatch)
  return room < 1 and "" or text:sub(-room)
end

-- An action in exactly `width` columns.
local function cell(action, ranks, width)
  local text
  if action.kind == "FB" then
    local room = (width - 1) // 2
    text = number(action.microbatch, room) .. "&" .. number(action.microbatch_b, room)
  else
    local letter = action.stage < ranks and action.kind or action.kind:lower()
    text = letter .. number(action.microbatch, width - 1)
  end
  return text .. string.rep("-", width - #text)
end

-- One rank: actions that round to no column at all are left out, as are their neighbours' fractions.
local function row(actions, intervals, ranks, seconds, columns)
  local parts, at = {}, 0
  for i, action in ipairs(actions) do
    local from, to = math.floor(intervals[i].start / seconds + 0.5), math.floor(intervals[i].finish / seconds + 0.5)
    if to > from then
      parts[#parts + 1] = string.rep(".", from - at)
      parts[#parts + 1] = cell(action, ranks, to - from)
      at = to
    end
  end
  parts[#parts + 1] = string.rep(".", columns - at)
  return table.concat(parts)
end

-- Lines that show `result` = schedule:simulate{ …, intervals = true }.
function timeline.draw(schedule, result)
  local ranks = schedule:info().ranks
  local label_width = #tostring(ranks - 1) + 6   -- "rank 7 "
  if result.makespan <= 0 then return { "nothing takes any time" } end
  local seconds = seconds_of_column(result, timeline.width - label_width)
  local columns = math.floor(result.makespan / seconds + 0.5)
  local lines = {}
  for rank = 0, ranks - 1 do
    if ranks <= max_rows or rank < max_rows // 2 or rank >= ranks - max_rows // 2 then
      local label = format.pad("rank " .. rank, label_width)
      lines[#lines + 1] = label .. row(schedule:actions(rank), result.intervals[rank + 1], ranks, seconds, columns)
    elseif rank == max_rows // 2 then
      lines[#lines + 1] = string.format("… %d more ranks", ranks - 2 * (max_rows // 2))
    end
  end
  local finish = format.digits(result.makespan, 6) .. " s"
  lines[#lines + 1] = format.pad("", label_width) .. format.pad("0 s", math.max(0, columns - format.width(finish))) .. finish
  return lines
end

-- What the letters of this schedule's picture mean.
function timeline.legend(schedule)
  local traits = require("engine").schedule.traits(schedule:info().kind)
  local parts = { "F forward", traits.split_backward and "I backward for input, W for weights" or "B backward" }
  if traits.overlaps then
    parts[2] = "B backward, I its part for input, W for weights"
    parts[3] = "4&0 forward of 4 overlapped with backward of 0"
  end
  if traits.chains == 2 then
    parts[#parts + 1] = "small letters: the other direction"
  elseif schedule:info().chunks_per_rank > 1 then
    parts[#parts + 1] = "small letters: later chunks"
  end
  parts[#parts + 1] = ". idle"
  return table.concat(parts, " · ")
end

return timeline
