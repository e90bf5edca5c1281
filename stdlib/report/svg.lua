-- SPDX-License-Identifier: Apache-2.0
-- svg.lua: a simulated schedule as a picture: one row a rank, time from left to right, each action as wide as it takes long, with its
-- microbatch where that fits. A pair is drawn in two halves, forward above backward; chunks after a rank's first are paler. The picture
-- stands alone: no script, no font, no link; it brings a light and a dark background, and says in words what it shows.

local format = require "pipeplan.base.format"
local rows = require "pipeplan.report.rows"
local simulation = require "pipeplan.report.simulation"
local ticks = require "pipeplan.report.ticks"
local xml = require "pipeplan.report.xml"

local svg = {}

-- Pixels.
local left, right, top, bottom = 72, 24, 68, 64   -- what surrounds the rows
local row_height, row_gap = 24, 6
local least_width = 660                           -- of the plot: room for the legend
local widest_plot = 1440                          -- wider plots are shrunk to this
local widest_action = 40                          -- of the shortest action
local letter_width, small_letter_width = 6.8, 5.4 -- on average, of the fonts below

local style = [[
text{font:11px ui-sans-serif,system-ui,Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.on{text-anchor:middle;fill:#111;pointer-events:none}.small{font-size:9px}
.end{text-anchor:end}.mid{text-anchor:middle}
.page{fill:#fff}.idle{fill:#eceff2}.tick{stroke:#d0d7de}.box{stroke:#fff;stroke-width:1}
.F{fill:#62a0ec}.f{fill:#abcff8}.B{fill:#ef9146}.b{fill:#f9c899}.I{fill:#55b87b}.i{fill:#a6ddb8}.W{fill:#b083db}.w{fill:#d8c1ee}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.idle{fill:#21262d}.tick{stroke:#3d444d}.box{stroke:#0d1117}}
]]

-- A coordinate: hundredths of a pixel are enough.
local function px(value)
  return (string.format("%.2f", value):gsub("0+$", ""):gsub("%.$", ""))
end

local function text_at(x, y, class, text)
  return string.format('<text x="%s" y="%s"%s>%s</text>\n', px(x), px(y), class and ' class="' .. class .. '"' or "", xml.escape(text))
end

-- Pixels of one second: the shortest action as wide as its number asks for, as long as the whole fits.
local function pixels_of_second(run)
  local makespan = run.result.makespan
  if makespan <= 0 then return 0 end
  return math.min(widest_action / rows.shortest(run), widest_plot / makespan)
end

-- ------------------------------------------------------------------------------------------------------------------------ the rows

-- What is written on an action of that width, and whether small: its letter and microbatch, or that alone, or nothing. `digits` of the
-- largest microbatch are made room for, so that actions of equal width look alike.
local function label(kind, microbatch, at, digits)
  local room = at.width - 3
  if at.height == row_height and (digits + 1) * letter_width <= room then return kind .. microbatch, false end
  if (digits + 1) * small_letter_width <= room then return kind .. microbatch, true end
  return digits * small_letter_width <= room and tostring(microbatch) or nil, true
end

-- One action, or one half of a pair: `kind` of `microbatch` in the stage.
local function box(run, later, kind, stage, microbatch, at)
  local class = later[stage] and kind:lower() or kind
  local parts = { string.format('<rect class="%s%s" x="%s" y="%s" width="%s" height="%s"><title>%s%d, stage %d: %s to %s</title></rect>',
    class, at.width >= 4 and " box" or "", px(at.x), px(at.y), px(at.width), px(at.height), kind, microbatch, stage,
    simulation.duration(at.start), simulation.duration(at.finish)) }
  local shown, small = label(kind, microbatch, at, #tostring(run.info.microbatches - 1))
  if shown then
    parts[2] = string.format('<text class="on%s" x="%s" y="%s">%s</text>', small and " small" or "", px(at.x + at.width / 2),
                             px(at.y + at.height / 2 + (small and 3 or 4)), shown)
  end
  parts[#parts + 1] = "\n"
  return table.concat(parts)
end

-- Writes a rank's row, action by action.
local function row(run, later, rank, scale, write)
  local y = top + rank * (row_height + row_gap)
  write(text_at(left - 8, y + row_height / 2 + 4, "end", "rank " .. rank))
  write(string.format('<rect class="idle" x="%d" y="%d" width="%s" height="%d"/>\n', left, y, px(run.result.makespan * scale), row_height))
  for action in rows.each(run, rank) do
    local at = { x = left + action.start * scale, y = y, width = (action.finish - action.start) * scale, height = row_height,
                 start = action.start, finish = action.finish }
    if action.kind == "FB" then
      at.height = row_height / 2
      write(box(run, later, "F", action.stage, action.microbatch, at))
      at.y = y + row_height / 2
      write(box(run, later, "B", action.stage_b, action.microbatch_b, at))
    else
      write(box(run, later, action.kind, action.stage, action.microbatch, at))
    end
  end
end

-- --------------------------------------------------------------------------------------------------------------- around the rows

local function axis(run, scale, height)
  local makespan = run.result.makespan
  if makespan <= 0 then return text_at(left, top + height + 16, nil, "nothing takes any time") end
  local step, parts = ticks.step(72 / scale), {}
  for tick = 0, math.floor(makespan / step + 1e-9) do
    local x = left + tick * step * scale
    parts[#parts + 1] = string.format('<line class="tick" x1="%s" y1="%d" x2="%s" y2="%d"/>\n', px(x), top - 4, px(x), top + height)
    parts[#parts + 1] = text_at(x, top + height + 14, "mid", simulation.duration(tick * step))
  end
  return table.concat(parts)
end

-- What the colours mean, of the actions that the schedule has.
local function legend(run, y)
  local entries = { { "F", "forward" } }
  if run.traits.split_backward then
    entries[#entries + 1] = { "I", "backward for input" }
    entries[#entries + 1] = { "W", "backward for weights" }
  end
  if run.traits.overlaps or not run.traits.split_backward then entries[#entries + 1] = { "B", "backward" } end
  local parts, x = {}, left
  local function entry(swatch, words)
    parts[#parts + 1] = swatch
    parts[#parts + 1] = text_at(x + 20, y + 10, nil, words)
    x = x + 20 + #words * letter_width + 18
  end
  local function swatch(class, dy, height)
    return string.format('<rect class="%s" x="%s" y="%s" width="14" height="%d"/>', class, px(x), px(y + dy), height)
  end
  for _, each in ipairs(entries) do entry(swatch(each[1], 0, 14), each[1] .. " " .. each[2]) end
  if rows.has_pairs(run) then entry(swatch("F", 0, 7) .. swatch("B", 7, 7), "overlapped pair") end
  entry(swatch("idle", 0, 14), "idle")
  if run.info.chunks_per_rank > 1 then
    local paler = run.traits.chains == 2 and "paler: the other direction" or "paler: later chunks of a rank"
    parts[#parts + 1] = text_at(left, y + 32, nil, paler)
  end
  return table.concat(parts)
end

-- The picture of a run (see simulation.lua) whose result has intervals_of: an iterator over its text, piece by piece. O(actions) time.
function svg.write(run)
  local result, ranks, later = run.result, run.info.ranks, rows.later_chunks(run.info)
  local scale = pixels_of_second(run)
  local rows_height = ranks * (row_height + row_gap) - row_gap
  local what, costs = simulation.subject(run), simulation.costs_per_chunk(run) .. ". " .. simulation.summary(run)
  local width = math.ceil(left + right + math.max(result.makespan * scale, letter_width * #costs, least_width))
  local height = top + rows_height + bottom + (run.info.chunks_per_rank > 1 and 22 or 0)
  return rows.text(function(write)
    write(table.concat {
      string.format('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d"', width, height, width, height),
      ' role="img" aria-labelledby="title desc">\n',
      '<title id="title">', xml.escape(format.schedule(run.info.kind)), " timeline</title>\n",
      '<desc id="desc">', xml.escape(what .. "; " .. costs .. ". One row a rank, time from left to right."), "</desc>\n",
      "<style>\n", style, "</style>\n",
      '<rect class="page" width="100%" height="100%"/>\n',
      text_at(left, 26, "title", what), text_at(left, 46, nil, costs), axis(run, scale, rows_height),
    })
    for rank = 0, ranks - 1 do row(run, later, rank, scale, write) end
    write(legend(run, top + rows_height + 34) .. "</svg>\n")
  end)
end

return svg
