-- SPDX-License-Identifier: Apache-2.0
-- timeline.lua: a simulated schedule as text: one row per rank, time from left to right, each action as wide as it takes long.
--
--   F0 B0 I0 W0  action and microbatch of the rank's first chunk, f0 b0 i0 w0 of its others (the other direction in DualPipe)
--   4&0          forward of microbatch 4 overlapped with the backward of microbatch 0
--   -            the action goes on        .  the rank waits
-- Where there is no room for a number its last digits remain, then nothing but the letter. Where not even each action has a column, a
-- column shows what takes most of it. Colour adds to the letters and never replaces them.

local format = require "pipeplan.base.format"
local rows = require "pipeplan.report.rows"

local timeline = {}

timeline.width = 100      -- of a whole line
local max_columns = 6     -- of the shortest action: short schedules need not fill the page
local max_rows = 64

-- Backgrounds out of the 256 colours of a terminal, under black letters; "&" where a whole column stands for pairs.
local colours = { F = 75, f = 153, B = 215, b = 223, I = 114, i = 157, W = 176, w = 225, ["&"] = 222 }

local function paint(text, class, colour)
  if not colour or text == "" then return text end
  if not colours[class] then return "\27[2m" .. text .. "\27[0m" end
  return string.format("\27[38;5;16;48;5;%dm%s\27[0m", colours[class], text)
end

-- Seconds of one column: a whole part of the shortest action where that leaves room, so that equal actions look equal. And whether it does.
local function seconds_of_column(run, room)
  local result, shortest = run.result, rows.shortest(run)
  local columns = math.min(max_columns, math.floor(room * shortest / result.makespan + 1e-9))
  if columns >= 1 then return shortest / columns, true end
  return result.makespan / room, false
end

-- The last digits of a microbatch that fit.
local function number(microbatch, room)
  local text = tostring(microbatch)
  return room < 1 and "" or text:sub(-room)
end

-- The letter of an action in that stage.
local function letter(kind, stage, later)
  return later[stage] and kind:lower() or kind
end

-- An action in exactly `width` columns.
local function cell(action, later, width, colour)
  local class = letter(action.kind == "FB" and "F" or action.kind, action.stage, later)
  if action.kind ~= "FB" then
    local text = class .. number(action.microbatch, width - 1)
    return paint(text .. string.rep("-", width - #text), class, colour)
  end
  local room = (width - 1) // 2
  local forward, backward = number(action.microbatch, room) .. "&", number(action.microbatch_b, room)
  backward = backward .. string.rep("-", width - #forward - #backward)
  return paint(forward, class, colour) .. paint(backward, letter("B", action.stage_b, later), colour)
end

-- One rank, each action in columns of its own.
local function row(actions, later, seconds, columns, colour)
  local parts, at = {}, 0
  for action in actions do
    local from, to = math.floor(action.start / seconds + 0.5), math.floor(action.finish / seconds + 0.5)
    if to > from then
      parts[#parts + 1] = paint(string.rep(".", from - at), ".", colour)
      parts[#parts + 1] = cell(action, later, to - from, colour)
      at = to
    end
  end
  parts[#parts + 1] = paint(string.rep(".", columns - at), ".", colour)
  return table.concat(parts)
end

-- One rank, several actions in a column: the letter of what takes most of it.
local function dense_row(actions, later, seconds, columns, colour)
  local shares = {}   -- of each column: letter → seconds
  for column = 1, columns do shares[column] = {} end
  for action in actions do
    local start, finish = action.start / seconds, action.finish / seconds
    local what = action.kind == "FB" and "&" or letter(action.kind, action.stage, later)
    for column = math.floor(start) + 1, math.min(columns, math.ceil(finish)) do
      local share = shares[column]
      share[what] = (share[what] or 0) + math.min(finish, column) - math.max(start, column - 1)
    end
  end
  local parts = {}
  for column, share in ipairs(shares) do
    local most, idle = ".", 1
    for _, amount in pairs(share) do idle = idle - amount end
    local largest = idle
    for what in ("FBIWfbiw&"):gmatch(".") do
      local amount = share[what] or 0
      if amount > largest then most, largest = what, amount end
    end
    parts[column] = paint(most, most, colour)
  end
  return table.concat(parts)
end

-- What the letters of this picture mean, and its scale.
local function legend(run, seconds, roomy)
  local traits = run.traits
  local parts = { "F forward", traits.split_backward and "I backward for input, W for weights" or "B backward" }
  if traits.overlaps then parts[2] = "B backward" .. (traits.split_backward and ", I its part for input, W for weights" or "") end
  if rows.has_pairs(run) then
    parts[3] = roomy and "4&0 forward of 4 overlapped with backward of 0" or "& forward and backward overlapped"
  end
  if traits.chains == 2 then
    parts[#parts + 1] = "small letters: the other direction"
  elseif run.info.chunks_per_rank > 1 then
    parts[#parts + 1] = "small letters: later chunks"
  end
  parts[#parts + 1] = ". idle"
  parts[#parts + 1] = "a column is " .. format.digits(seconds, 3) .. " s" .. (roomy and "" or ", and shows what takes most of it")
  return table.concat(parts, " · ")
end

-- Lines that show a run (see simulation.lua) whose result has intervals_of. O(actions) time.
function timeline.draw(run, colour)
  local result, ranks = run.result, run.info.ranks
  local label_width = #tostring(ranks - 1) + 6   -- "rank 7 "
  if result.makespan <= 0 then return { "nothing takes any time" } end
  local seconds, roomy = seconds_of_column(run, timeline.width - label_width)
  local columns = math.floor(result.makespan / seconds + 0.5)
  local draw_row, later, lines = roomy and row or dense_row, rows.later_chunks(run.info), {}
  for rank = 0, ranks - 1 do
    if ranks <= max_rows or rank < max_rows // 2 or rank >= ranks - max_rows // 2 then
      local label = format.pad("rank " .. rank, label_width)
      lines[#lines + 1] = label .. draw_row(rows.each(run, rank), later, seconds, columns, colour)
    elseif rank == max_rows // 2 then
      lines[#lines + 1] = string.format("… %d more ranks", ranks - 2 * (max_rows // 2))
    end
  end
  local finish = format.digits(result.makespan, 6) .. " s"
  lines[#lines + 1] = format.pad("", label_width) .. format.pad("0 s", math.max(0, columns - format.width(finish))) .. finish
  for _, line in ipairs(format.wrap(legend(run, seconds, roomy), timeline.width)) do lines[#lines + 1] = line end
  return lines
end

return timeline
