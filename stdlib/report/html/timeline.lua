-- SPDX-License-Identifier: Apache-2.0
-- timeline.lua: one step in time: a row for each rank, its actions as bars, phases above and seconds below; the numbers that the script
-- needs to zoom and to say what an action is; and the words beside it.

local bars = require "pipeplan.report.html.bars"
local element = require "pipeplan.report.html.element"
local extent = require "pipeplan.report.html.extent"
local format = require "pipeplan.base.format"
local rows = require "pipeplan.report.rows"
local round_steps = require "pipeplan.report.ticks"

local timeline = {}

local ticks = 200000        -- of the makespan: what starts and lengths are told in
local units = 20000         -- of the same, for the drawing
local pixels = 1000         -- of a usual plot: an action that is narrower than 2.5 has its edges drawn only when zoomed
local space = 4             -- pixels between two rows of bars
local most_rows = 64

-- How many rows there are, which ranks they are, and their height.
local function shown_ranks(info)
  local list, half = {}, most_rows // 2
  for rank = 0, info.ranks - 1 do
    if info.ranks <= most_rows or rank < half or rank >= info.ranks - half then list[#list + 1] = rank end
  end
  return list, #list <= 20 and 22 or #list <= 40 and 16 or 12
end

-- Seconds as the plot shows them: { factor, unit }.
local function unit_of(makespan)
  for _, unit in ipairs { { 1, "s" }, { 1e3, "ms" }, { 1e6, "µs" }, { 1e9, "ns" } } do
    if makespan * unit[1] >= 2 then return unit end
  end
  return { 1, "s" }
end

-- ------------------------------------------------------------------------------------------------------------------------ the numbers

local codes = { F = "F", B = "B", I = "I", W = "W", FB = "P" }

-- The slices of the model that each rank holds: { "0,15", … }.
function timeline.slices_of_ranks(info)
  local stages, direction = {}, info.stages // info.chains
  for rank = 1, info.ranks do stages[rank] = {} end
  for i, rank in ipairs(info.placement) do
    local list = stages[rank + 1]
    list[#list + 1] = (i - 1) % direction
  end
  for rank, list in ipairs(stages) do stages[rank] = table.concat(list, ",") end
  return stages
end

-- What the script knows of a rank: `t` its kinds of action, { code, stage, other stage, length, other direction?, … }; `a` of each action
-- the time since the last one's start, its kind, its microbatch and, of a pair, the microbatch of its backward.
-- A stage is told by its slice of the model: of two directions both have the same.
local function record(info)
  local types, numbers, known, last = {}, {}, {}, 0
  local direction = info.stages // info.chains
  local function slice(stage) return stage and stage % direction or -1 end
  local function way(stage) return info.chains > 1 and stage and stage >= direction and 1 or 0 end
  local self = {}
  function self.add(action, from, to)
    local key = string.format("%s %d %d %d", action.kind, action.stage, action.stage_b or -1, to - from)
    if not known[key] then
      types[#types + 1] = string.format('["%s",%d,%d,%d,%d,%d]', codes[action.kind], slice(action.stage), slice(action.stage_b), to - from,
                                        way(action.stage), way(action.stage_b))
      known[key] = #types - 1
    end
    numbers[#numbers + 1] = from - last
    numbers[#numbers + 1] = known[key]
    numbers[#numbers + 1] = action.microbatch
    if action.kind == "FB" then numbers[#numbers + 1] = action.microbatch_b end
    last = from
  end
  function self.text(rank)
    return string.format('{"r":%d,"t":[%s],"a":[%s]}', rank, table.concat(types, ","), table.concat(numbers, ","))
  end
  return self
end

-- ------------------------------------------------------------------------------------------------------------------------ the drawing

local function inside(windows, time)
  for _, window in ipairs(windows) do
    if time >= window[1] and time < window[2] then return true end
  end
  return false
end

-- What of { from, to } no window shows, as pieces.
local function outside(windows, from, to)
  local pieces = {}
  for _, window in ipairs(windows) do
    if window[1] > from then pieces[#pieces + 1] = { from, math.min(to, window[1]) } end
    from = math.max(from, window[2])
    if from >= to then return pieces end
  end
  pieces[#pieces + 1] = { from, to }
  return pieces
end

-- Draws a rank's actions that a window shows, and the overview between windows → what the script knows, how many actions that are.
local function draw_rank(run, rank, row, drawing, windows, ranks)
  local makespan, known, count, last = run.result.makespan, record(run.info), 0, nil
  local function at(seconds, whole) return math.floor(seconds / makespan * whole + 0.5) end
  for action in rows.each(run, rank) do
    if inside(windows, action.start) and action.finish > action.start then
      local from, to = at(action.start, units), at(action.finish, units)
      if to > from then
        drawing:add(action.kind, row, from, to, last == from)
        last = to
      end
      known.add(action, at(action.start, ticks), at(action.finish, ticks))
      count = count + 1
    end
  end
  if #windows == 1 and windows[1][2] >= makespan then return known.text(rank), count end
  for kind, from, to in extent.overview(run, rank, ranks) do
    for _, piece in ipairs(outside(windows, from, to)) do
      local left, right = at(piece[1], units), at(piece[2], units)
      if right > left then drawing:add(kind, row, left, right) end
    end
  end
  return known.text(rank), count
end

local function percent_of(value, whole) return string.format("%.2f%%", value / whole * 100) end

local function ticks_of(makespan, unit, rows_height)
  local whole, grid, labels = makespan * unit[1], {}, {}
  local step = round_steps.step(whole / 10)
  for i = 0, math.floor(whole / step + 1e-9) do
    local value = i * step
    grid[#grid + 1] = string.format("M%d 0V%d", math.floor(value / whole * units + 0.5), rows_height)
    if value <= 0.97 * whole then
      labels[#labels + 1] = element("text", { x = percent_of(value, whole), y = 14 }, string.format("%.6g", value))
    end
  end
  return table.concat(grid), labels
end

-- ----------------------------------------------------------------------------------------------------------------------- around it

local words = {
  { "F", "F", "forward", "(full height)" }, { "B", "B", "backward, whole", "(full height)" },
  { "I", "I", "backward, input part", "(two thirds)" }, { "W", "W", "backward, weight part", "(one third)" },
  { "FB", "F&B", "both at once", "(two stripes)" },
}

local function legend(run)
  local pairs_run, split = rows.has_pairs(run), run.traits.split_backward
  local shown = { F = true, B = run.traits.overlaps or not split, I = split, W = split, FB = pairs_run }
  local entries = {}
  for _, entry in ipairs(words) do
    if shown[entry[1]] then
      entries[#entries + 1] = element("li", nil, bars.swatch(entry[1]), element("b", nil, entry[2]), " ", entry[3], " ",
                                      element("small", nil, entry[4]))
    end
  end
  entries[#entries + 1] = element("li", nil, element("span", { class = "sw idle" }), "idle ", element("small", nil, "(empty row)"))
  return element("ul", { class = "legend" }, entries)
end

-- What the buttons show: { words, from, to } in seconds.
local function views(run, phases, windows, actions)
  local makespan = run.result.makespan
  local list = { { "Whole step", 0, makespan } }
  if #windows > 1 then
    local names = #windows == 3 and { "Start", "Middle", "End" } or { "Start", "End" }
    for i, window in ipairs(windows) do list[#list + 1] = { names[i], window[1], window[2] } end
    return list
  end
  if actions < 60 then return list end
  local warm, cool = phases.warm_up_seconds, phases.cool_down_seconds
  if warm > 0 and 1.2 * warm < makespan then list[#list + 1] = { "Warm-up", 0, 1.1 * warm } end
  local busy = 0
  for _, seconds in ipairs(run.result.busy) do busy = busy + seconds end
  local width, middle = 16 * busy / run.info.actions, warm + phases.steady_seconds / 2
  if phases.steady_seconds > 0 then
    width = math.min(width, phases.steady_seconds)
    list[#list + 1] = { string.format("Steady (%s of %s)", format.seconds(width), format.seconds(phases.steady_seconds)),
                        middle - width / 2, middle + width / 2 }
  end
  if cool > 0 and 1.2 * cool < makespan then list[#list + 1] = { "Cool-down", makespan - 1.1 * cool, makespan } end
  return list
end

local function buttons(list)
  if #list == 1 then return nil end
  local made = {}
  for i, view in ipairs(list) do
    made[i] = element("button", { type = "button", ["data-a"] = string.format("%.9g", view[2]), ["data-b"] = string.format("%.9g", view[3]),
                                  ["aria-pressed"] = i == 1 and "true" or "false" }, view[1])
  end
  return element("div", { class = "zoom", role = "group", ["aria-label"] = "Zoom" }, made)
end

-- The names of the phases above the plot, and where they meet.
local function phase_marks(phases, makespan, rows_height)
  local warm, steady, cool = phases.warm_up_seconds, phases.steady_seconds, phases.cool_down_seconds
  local function named(name, seconds) return { name, element("tspan", nil, " " .. format.seconds(seconds)) } end
  local texts, marks = {}, {}
  if steady > 0 then
    if warm > 0 then texts[1] = element("text", { x = 0, y = 13 }, named("warm-up", warm)) end
    texts[#texts + 1] = element("text", { class = "mid", x = "50%", y = 13 }, named("steady", steady))
    if cool > 0 then texts[#texts + 1] = element("text", { class = "end", x = "100%", y = 13 }, named("cool-down", cool)) end
    for _, seconds in ipairs { warm, warm + steady } do
      if seconds > 0 and seconds < makespan then
        marks[#marks + 1] = string.format("M%d 0V%d", math.floor(seconds / makespan * units + 0.5), rows_height)
      end
    end
  else
    texts[1] = element("text", { x = 0, y = 13 }, { "no steady phase", element("tspan", nil, ": too few microbatches for one") })
  end
  return texts, table.concat(marks)
end

-- Labels of the rows: where these are low, of every second.
local function labels(list, height, class, text)
  local spans = {}
  for i in ipairs(list) do
    spans[i] = element("span", nil, (height >= 14 or i % 2 == 1) and text(list[i]) or "")
  end
  return element("div", { class = class, ["aria-hidden"] = "true" }, spans)
end

-- What is drawn, what is left out, and how the phases are told.
local function caption(run, counted, windows, list, pairs_run)
  local parts, actions, makespan = {}, run.info.actions, run.result.makespan
  if #list < run.info.ranks then
    parts[1] = string.format("The first and the last %d of %s ranks. ", most_rows // 2, format.integer(run.info.ranks))
  end
  if #windows == 1 then
    parts[#parts + 1] = string.format("All %s actions of the %s ranks are drawn, none merged and none left out", format.integer(counted),
                                      format.integer(#list))
  else
    local spans = {}
    for i, window in ipairs(windows) do
      spans[i] = string.format("%s to %s", format.seconds(window[1]), format.seconds(window[2]))
    end
    parts[#parts + 1] = string.format("%s of %s actions are drawn one by one, from %s; of the others each column shows what takes "
                                      .. "most of it",
                                      format.integer(counted), format.integer(actions), table.concat(spans, ", "))
  end
  local more = string.format("; a pixel of a plot %s wide is %s, zoom to see shorter actions apart. Numbers in the zoomed "
                             .. "view are microbatches%s",
                             format.integer(pixels), format.seconds(makespan / pixels),
                             run.info.chains > 1 and ", in italics those that enter at the last rank" or "")
  return element("figcaption", nil, table.concat(parts), element("span", { class = "scr" }, more), ". ",
                 pairs_run and "Warm-up ends when every rank runs F&B; cool-down starts when the first one stops."
                   or "Warm-up ends when every rank has begun a backward; cool-down starts when the first one has no forward left.")
end

-- timeline.make(run, phases) → the figure with its legend and buttons, and the numbers for the script, as JSON.
function timeline.make(run, phases)
  local list, height = shown_ranks(run.info)
  local makespan, stages = run.result.makespan, timeline.slices_of_ranks(run.info)
  local most = (run.runtime.name == "ideal" and 1 or 0.5) * extent.most_actions
  local windows = extent.windows(run, phases, math.floor(most))
  local drawing, data, counted = bars.new(height, space, units * 2.5 / pixels), {}, 0
  for i, rank in ipairs(list) do
    local text, count = draw_rank(run, rank, i - 1, drawing, windows, #list)
    data[i], counted = text, counted + count
  end
  local rows_height, unit, pairs_run = #list * height, unit_of(makespan), rows.has_pairs(run)
  local grid, axis = ticks_of(makespan, unit, rows_height)
  local names, marks = phase_marks(phases, makespan, rows_height)
  local title = string.format("%s, %d ranks, %d microbatches, %s; idle %s", run.request.file or format.schedule(run.request.kind),
                              run.info.ranks, run.info.microbatches, format.seconds(makespan), format.percent(run.result.bubble_fraction))
  local plot = element("div", { class = "plot", id = "plot", tabindex = 0, role = "application", ["aria-describedby"] = "out",
      ["aria-label"] = "Timeline. Arrow keys go from action to action and from rank to rank, plus and minus zoom." },
    element("svg", { id = "tl", width = "100%", height = rows_height, viewBox = string.format("0 0 %d %d", units, rows_height),
                     preserveAspectRatio = "none", role = "img", ["aria-labelledby"] = "tld" },
      element("title", { id = "tld" }, title), element("path", { class = "grid", d = grid }), drawing:markup(),
      marks ~= "" and element("path", { class = "grid mark", d = marks })),
    element("svg", { id = "ov", width = "100%", height = rows_height, ["aria-hidden"] = "true" }))
  local figure = element("figure", nil,
    element("div", { class = "tl", style = string.format("--p:%d;--h:%dpx", #list, height) },
      element("div", { class = "hd" }, "rank", element("i", nil, " · stages")),
      element("div", { class = "ph", ["aria-hidden"] = "true" }, element("svg", { width = "100%", height = 18, id = "ph" }, names)),
      element("div", { class = "hd r" }, "idle %"),
      labels(list, height, "lab", function(rank)
        return { tostring(rank), element("i", nil, " · " .. format.cut(stages[rank + 1], 9)) }
      end),
      plot,
      labels(list, height, "lab r", function(rank) return format.digits(run.result.idle[rank + 1] / makespan * 100) end),
      element("div"), element("svg", { class = "ax", width = "100%", height = 18, id = "ax", ["aria-hidden"] = "true" }, axis),
      element("div", { class = "hd r" }, unit[2])),
    element("output", { id = "out", class = "js" }, "Point at, tap or focus the timeline; arrow keys walk from action to action."),
    caption(run, counted, windows, list, pairs_run))
  local cuts, json_cuts = outside(windows, 0, makespan), {}
  for _, cut in ipairs(cuts) do
    if cut[2] - cut[1] > 1e-9 * makespan then json_cuts[#json_cuts + 1] = string.format("[%.9g,%.9g]", cut[1], cut[2]) end
  end
  local numbers = string.format('{"W":%.9g,"u":%.9g,"N":%d,"p":%d,"H":%d,"f":%.0f,"n":"%s","c":[%s],"R":[%s]}', makespan,
                                makespan / ticks, units,
                                #list, height, unit[1], unit[2], table.concat(json_cuts, ","), table.concat(data, ","))
  return { legend = legend(run), buttons = buttons(views(run, phases, windows, run.info.actions)), figure = figure, numbers = numbers }
end

return timeline
