-- simulation.lua: one simulated schedule as text and as JSON. A run is what cli/simulate.lua puts together: the request and the times that
-- were asked for, and whether to colour; the schedule, its info, traits and peaks; the result of schedule:simulate; the closed form of its
-- bubble.

local format = require "pipeplan.report.format"
local json = require "pipeplan.report.json"
local timeline = require "pipeplan.report.timeline"

local simulation = {}

-- The span bubble of the zero-bubble papers: the longest time from a rank's own first start to its own last end, less its work.
local function span_bubble(result)
  local most = 0
  for rank = 1, #result.span do most = math.max(most, result.span[rank] - result.busy[rank]) end
  return most
end

-- ------------------------------------------------------------------------------------------------------------------------- JSON

-- What is known of a schedule only when it was simulated; null where it is not legal.
local measured = { "bubble", "busy_per_rank_seconds", "closed_form", "idle_per_rank_seconds", "makespan_seconds", "max_idle_seconds",
                   "max_span_seconds", "min_idle_seconds", "peak_activations", "peak_activations_freed_at_i", "span_per_rank_seconds" }

local function object(request, times, virtual)
  local value = { schedule = request.kind, ranks = request.ranks, microbatches = request.microbatches, virtual = virtual, times = times }
  for _, name in ipairs(measured) do value[name] = json.null end
  return value
end

function simulation.json(run)
  local result, form = run.result, run.closed_form
  local value = object(run.request, run.times, run.info.virtual)
  value.legal, value.finding = true, json.null
  value.makespan_seconds, value.max_span_seconds = result.makespan, result.max_span
  value.max_idle_seconds, value.min_idle_seconds = result.max_idle, result.min_idle
  value.busy_per_rank_seconds = json.array(result.busy)
  value.idle_per_rank_seconds = json.array(result.idle)
  value.span_per_rank_seconds = json.array(result.span)
  value.bubble = { fraction = result.bubble_fraction, definition = "mean_idle", max_idle_fraction = result.max_idle_fraction,
                   mean_idle_seconds = result.bubble_fraction * result.makespan, max_idle_seconds = result.max_idle,
                   span_seconds = span_bubble(result) }
  value.closed_form = { seconds = form.seconds or json.null, exact = form.exact, conditions = form.conditions }
  value.peak_activations = json.array(run.peaks.freed_at_w)
  value.peak_activations_freed_at_i = json.array(run.peaks.freed_at_i)
  return json.encode(value, { indent = 2 }) .. "\n"
end

-- The same object for a schedule that cannot be, with the rule it breaks.
function simulation.illegal_json(request, times, virtual, rule)
  local value = object(request, times, virtual)
  value.legal = false
  value.finding = { id = rule.id, message = rule.message }
  return json.encode(value, { indent = 2 }) .. "\n"
end

-- ------------------------------------------------------------------------------------------------------------------------- text

local function of_makespan(value, result)
  return result.makespan > 0 and string.format(" (%s of the makespan)", format.percent(value / result.makespan)) or ""
end

-- Here the second is a unit of account: no minutes, and enough digits to check a derivation by hand.
function simulation.duration(value)
  if value >= 1e9 or value > 0 and value < 1e-7 then return string.format("%.6g s", value) end
  return value > 0 and value < 0.1 and format.seconds(value) or format.digits(value, 6) .. " s"
end
local duration = simulation.duration

-- "exact", or what is known of the true value.
local function standing(form)
  if form.exact then return "exact here" end
  if form.low and form.high then
    return string.format("not exact here; the true value is %s to %s", duration(form.low), duration(form.high))
  end
  if form.low then return string.format("not exact here; the true value is at least %s", duration(form.low)) end
  return "not exact here"
end

local function idle_range(result)
  local least, most = duration(result.min_idle), duration(result.max_idle)
  return least == most and most .. " on every rank" or string.format("%s (least) to %s (most)", least, most)
end

local label_width = 17

local function labelled(lines, label, words)
  for _, line in ipairs(format.wrap(words, timeline.width, format.pad(label, label_width))) do lines[#lines + 1] = line end
end

local function rank_table(lines, run)
  local result, peaks, info = run.result, run.peaks, run.info
  local split = run.traits.split_backward
  local stages = {}
  for stage, rank in ipairs(info.placement) do
    stages[rank + 1] = (stages[rank + 1] and stages[rank + 1] .. "," or "") .. (stage - 1)
  end
  local widest = 6
  for _, list in ipairs(stages) do widest = math.max(widest, #list) end
  local function row(rank, list, busy, idle, share, peak, peak_i)
    lines[#lines + 1] = (format.pad(rank, 4, true) .. "  " .. format.pad(list, widest) .. format.pad(busy, 11, true)
      .. format.pad(idle, 11, true) .. format.pad(share, 9, true) .. format.pad(peak, split and 18 or 13, true)
      .. (split and format.pad(peak_i, 12, true) or "")):gsub("%s+$", "")
  end
  row("rank", "stages", "busy", "idle", "share", split and "peak until W" or "peak chunks", "until I")
  for rank = 1, info.ranks do
    row(tostring(rank - 1), stages[rank], duration(result.busy[rank]), duration(result.idle[rank]),
        result.makespan > 0 and format.percent(result.idle[rank] / result.makespan) or "0 %",
        tostring(peaks.freed_at_w[rank]), tostring(peaks.freed_at_i[rank]))
  end
end

-- What was simulated, in one line: "schedule, its size; what its actions take".
function simulation.headline(run)
  local request, times, info = run.request, run.times, run.info
  local parts = {
    format.schedule(request.kind),
    string.format("%d rank%s", info.ranks, info.ranks == 1 and "" or "s"),
    string.format("%d microbatch%s", info.microbatches, info.microbatches == 1 and "" or "es"),
    info.chunks_per_rank > 1 and string.format("%d chunks per rank", info.chunks_per_rank) or nil,
  }
  if info.group then parts[#parts + 1] = string.format("groups of %d", info.group) end
  local costs = { "F " .. duration(times.F), "I " .. duration(times.I), "W " .. duration(times.W) }
  if run.traits.overlaps then costs[#costs + 1] = "F&B " .. duration(times.FB) end
  if times.p2p > 0 then costs[#costs + 1] = "hop " .. duration(times.p2p) end
  return table.concat(parts, ", ") .. "; per chunk " .. table.concat(costs, ", ")
end

-- What came out, in one line.
function simulation.summary(run)
  local result = run.result
  return string.format("Makespan %s, bubble %s, idle %s", duration(result.makespan), format.percent(result.bubble_fraction),
                       idle_range(result))
end

function simulation.text(run)
  local result, form, lines = run.result, run.closed_form, {}
  local span = span_bubble(result)
  lines[1], lines[2] = simulation.headline(run), ""
  labelled(lines, "makespan", duration(result.makespan) .. ", longest span of a rank " .. duration(result.max_span))
  labelled(lines, "bubble", format.percent(result.bubble_fraction) .. ", mean idle share of the makespan: 1 − Σ busy / (P × makespan)")
  labelled(lines, "idle", idle_range(result))
  labelled(lines, "makespan bubble", string.format("%s%s: makespan − work, of the rank that idles most",
           duration(result.max_idle), of_makespan(result.max_idle, result)))
  labelled(lines, "span bubble", string.format("%s: longest own span − work, what zero-bubble papers count", duration(span)))
  local known = form.seconds and string.format("%s, %s: ", duration(form.seconds), standing(form)) or ""
  labelled(lines, "closed form", known .. form.conditions)
  lines[#lines + 1] = ""
  rank_table(lines, run)
  lines[#lines + 1] = ""
  if result.intervals then
    for _, line in ipairs(timeline.draw(run, run.colour)) do lines[#lines + 1] = line end
  else
    lines[#lines + 1] = string.format("%s actions are too many to draw", format.integer(run.info.actions))
  end
  return table.concat(lines, "\n") .. "\n"
end

return simulation
