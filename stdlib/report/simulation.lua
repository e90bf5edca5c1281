-- SPDX-License-Identifier: Apache-2.0
-- simulation.lua: one simulated schedule as text, JSON and CSV. A run is what cli/simulate.lua puts together: the request and the times
-- that were asked for, and whether to colour; the schedule, its info, traits and peaks; the result of schedule:simulate; the closed form
-- of its bubble, which a program from a file has not, and the communication that one may have (input/program_messages.lua); with a profile
-- also step_seconds, held_bytes and peak_bytes of each rank, or why they are unknown.

local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local timeline = require "pipeplan.report.timeline"

local simulation = {}

-- The stages of each rank: { "0,7", … }.
function simulation.stages_of_ranks(info)
  local stages = {}
  for rank = 1, info.ranks do stages[rank] = {} end
  for stage, rank in ipairs(info.placement) do table.insert(stages[rank + 1], stage - 1) end
  for rank, list in ipairs(stages) do stages[rank] = table.concat(list, ",") end
  return stages
end

-- ------------------------------------------------------------------------------------------------------------------------- JSON

-- What is known of a schedule only when it was simulated; null where it is not legal.
local measured = { "bubble", "busy_per_rank_seconds", "closed_form", "communication", "held_bytes", "host_wait_per_rank_seconds",
                   "hosts_ahead_seconds", "idle_per_rank_seconds", "limit",
                   "makespan_seconds", "max_idle_seconds", "max_span_seconds", "min_idle_seconds", "peak_activation_bytes",
                   "peak_activation_bytes_freed_at_i", "peak_activations", "peak_activations_freed_at_i", "peak_bytes",
                   "peak_bytes_unknown", "profile", "receive_buffers", "span_per_rank_seconds", "step_seconds" }

local function object(request, times, virtual, runtime)
  local value = { schedule = request.kind, ranks = request.ranks or json.null, microbatches = request.microbatches or json.null,
                  virtual = virtual or json.null, times = times or json.null, runtime = runtime.name,
                  pairs = runtime.pairs or json.null, queues = runtime.queues or json.null }
  for _, name in ipairs(measured) do value[name] = json.null end
  return value
end

-- What a machine reads of a run, as a table.
function simulation.object(run)
  local result, form = run.result, run.closed_form
  local value = object(run.request, run.times, run.info.virtual, run.runtime)
  value.legal, value.finding = true, json.null
  value.limit = run.info.limit or json.null
  value.makespan_seconds, value.max_span_seconds = result.makespan, result.max_span
  value.max_idle_seconds, value.min_idle_seconds = result.max_idle, result.min_idle
  value.busy_per_rank_seconds = json.array(result.busy)
  value.idle_per_rank_seconds = json.array(result.idle)
  value.span_per_rank_seconds = json.array(result.span)
  if result.host_wait then
    value.host_wait_per_rank_seconds, value.hosts_ahead_seconds = json.array(result.host_wait), run.hosts_ahead_seconds
  end
  value.bubble = { fraction = result.bubble_fraction, definition = "mean_idle", max_idle_fraction = result.max_idle_fraction,
                   mean_idle_seconds = result.bubble_fraction * result.makespan, max_idle_seconds = result.max_idle,
                   span_seconds = result.span_bubble }
  if form then
    value.closed_form = { seconds = form.seconds or json.null, exact = form.exact, conditions = form.conditions }
  end
  value.peak_activations = json.array(run.peaks.freed_at_w)
  value.peak_activations_freed_at_i = json.array(run.peaks.freed_at_i)
  if run.communication then value.communication = { messages = run.communication.messages, order = run.communication.order } end
  value.receive_buffers = run.schedule:receive_buffers()
  if result.peak_bytes then
    value.peak_activation_bytes = json.array(result.peak_bytes.freed_at_w)
    value.peak_activation_bytes_freed_at_i = json.array(result.peak_bytes.freed_at_i)
  end
  if run.profile then
    value.profile, value.step_seconds = run.profile.file, run.step_seconds
    value.held_bytes = run.held_bytes and json.array(run.held_bytes) or json.null
    value.peak_bytes = run.peak_bytes and json.array(run.peak_bytes) or json.null
    value.peak_bytes_unknown = run.bytes_unknown or json.null
  end
  return value
end

-- The same of a schedule that cannot be, with the rule it breaks.
function simulation.illegal_object(request, times, virtual, runtime, rule)
  local value = object(request, times, virtual, runtime)
  value.legal = false
  value.finding = { id = rule.id, message = rule.message, line = rule.line, rank = rule.rank, position = rule.position,
                    action = rule.action, waits = rule.waits and json.array(rule.waits) }
  return value
end

-- The program as PyTorch's schedule CSV: an iterator over its lines.
function simulation.csv(run)
  local rank = -1
  return function()
    rank = rank + 1
    return rank < run.info.ranks and run.schedule:csv(rank) or nil
  end
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
  local stages, widest = simulation.stages_of_ranks(info), 6
  for rank, list in ipairs(stages) do
    stages[rank] = format.cut(list, timeline.width)
    widest = math.max(widest, format.width(stages[rank]))
  end
  local function row(rank, list, busy, idle, share, peak, peak_i, bytes)
    lines[#lines + 1] = (format.pad(rank, 4, true) .. "  " .. format.pad(list, widest) .. format.pad(busy, 11, true)
      .. format.pad(idle, 11, true) .. format.pad(share, 9, true) .. format.pad(peak, split and 18 or 13, true)
      .. (split and format.pad(peak_i, 12, true) or "") .. format.pad(bytes, 12, true)):gsub("%s+$", "")
  end
  local bytes = run.peak_bytes or run.held_bytes or result.peak_bytes and result.peak_bytes.freed_at_w
  row("rank", "stages", "busy", "idle", "share", split and "peak until W" or "peak chunks", "until I", bytes and "peak bytes" or "")
  for rank = 1, info.ranks do
    row(tostring(rank - 1), stages[rank], duration(result.busy[rank]), duration(result.idle[rank]),
        result.makespan > 0 and format.percent(result.idle[rank] / result.makespan) or "0 %",
        tostring(peaks.freed_at_w[rank]), tostring(peaks.freed_at_i[rank]), bytes and format.bytes(bytes[rank]) or "")
  end
end

-- A time that is the same everywhere, or the range of those of stages and pairs.
local function spread(value)
  if type(value) ~= "table" then return duration(value) end
  local least, most = math.huge, 0
  local function walk(list)
    for _, entry in ipairs(list) do
      if type(entry) == "table" then walk(entry) else least, most = math.min(least, entry), math.max(most, entry) end
    end
  end
  walk(value)
  return least == most and duration(least) or duration(least) .. " to " .. duration(most)
end

-- What is known of the actions' times, in words; of pairs where there are any.
function simulation.costs(times, overlaps)
  local parts = {}
  local function add(label, value) parts[#parts + 1] = value and label .. " " .. spread(value) or nil end
  for _, name in ipairs { "F", "I", "W", "B" } do add(name, times[name]) end
  if overlaps then add("F&B", times.FB) end
  for _, place in ipairs { "first", "last" } do
    for _, name in ipairs { "F", "I", "W", "B" } do
      local beside = times[place .. "_stage"]
      if beside then add(string.format("%s stage's %s +", place, name), beside[name]) end
    end
  end
  if times.rank_speed then parts[#parts + 1] = "ranks of different speed" end
  add("launch", times.launch)
  if times.p2p > 0 then add("hop", times.p2p) end
  if times.heat then parts[#parts + 1] = "up to " .. format.percent(times.heat.slope) .. " slower where cards heat up" end
  if times.contention then
    parts[#parts + 1] = format.percent(times.contention - 1) .. " slower beside a message that waits"
  end
  return table.concat(parts, ", ")
end

local words = { in_turn = "in turn", split = "as two actions", overlapped = "overlapped" }

-- "2 chunks per rank", or how many there are at most.
local function chunks(info)
  if info.chunks_per_rank == 1 then return nil end
  return string.format("%s%d chunks per rank", info.ranks * info.chunks_per_rank > info.stages and "up to " or "", info.chunks_per_rank)
end

-- What was simulated, in words: the schedule and its size.
function simulation.subject(run)
  local request, info = run.request, run.info
  local parts = {
    request.file or format.schedule(request.kind),
    string.format("%d rank%s", info.ranks, info.ranks == 1 and "" or "s"),
    string.format("%d microbatch%s", info.microbatches, info.microbatches == 1 and "" or "es"),
    chunks(info),
  }
  if info.group then parts[#parts + 1] = string.format("groups of %d", info.group) end
  if info.limit then parts[#parts + 1] = string.format("at most %d chunk%s held", info.limit, info.limit == 1 and "" or "s") end
  if run.runtime.name ~= "ideal" then
    parts[#parts + 1] = "as run by " .. run.runtime.name .. (run.runtime.pairs and ", pairs " .. words[run.runtime.pairs] or "")
      .. (run.runtime.queues == "per_peer" and ", a queue for each peer" or "")
  end
  return table.concat(parts, ", ")
end

function simulation.costs_per_chunk(run)
  return "per chunk " .. simulation.costs(run.times, run.traits.overlaps)
end

function simulation.headline(run)
  return simulation.subject(run) .. "; " .. simulation.costs_per_chunk(run)
end

-- What came out, in one line.
function simulation.summary(run)
  local result = run.result
  return string.format("Makespan %s, bubble %s, idle %s", duration(result.makespan), format.percent(result.bubble_fraction),
                       idle_range(result))
end

-- Where its times come from, and what it says of the step and of memory.
local function profile_words(run)
  local raw, parts = run.profile.raw, {}
  parts[1] = run.profile.file .. (raw.source and " (" .. raw.source .. ")" or "") .. ", " .. run.profile.temperature
  if run.step_seconds > run.result.makespan then
    parts[#parts + 1] = string.format("a step takes %s with what it does beside the schedule", duration(run.step_seconds))
  end
  parts[#parts + 1] = run.peak_bytes and "peak bytes with weights and gradients" or run.held_bytes and "peak bytes beside weights" or nil
  local speeds = raw.rank_speed
  if speeds and run.info.chains > 1 and #speeds ~= run.info.ranks then
    parts[#parts + 1] = string.format("ranks taken for equally fast, for its rank_speed is of %d", #speeds)
  end
  parts[#parts + 1] = run.profile.noise
  parts[#parts + 1] = run.profile.beyond
  if run.bytes_unknown then parts[#parts + 1] = "memory is not all known: " .. run.bytes_unknown end
  return table.concat(parts, "; ")
end

-- What cards wait for their hosts, and what it would be without.
local function hosts_words(run)
  local most, at = 0, 0
  for rank, seconds in ipairs(run.result.host_wait) do
    if seconds > most then most, at = seconds, rank - 1 end
  end
  if most == 0 then return "always ahead of their cards" end
  local gain = run.result.makespan - run.hosts_ahead_seconds
  return string.format("cards wait for their hosts, rank %d most: %s%s; with hosts that are always ahead the makespan is %s%s. What "
    .. "brings them ahead: experts in one grouped product, CUDA graphs, a larger microbatch, a backward that autograd does not split",
    at, duration(most), of_makespan(most, run.result), duration(run.hosts_ahead_seconds),
    gain > 0 and string.format(", %s less", format.percent(gain / run.result.makespan)) or "")
end

local orders = {
  early = "as PyTorch's runtime orders them by itself",
  before_use = "as PyTorch's runtime orders them with defer_pp_recv",
  other = "in an order of its own, which does not deadlock; simulated is the order of --runtime",
}

-- What a file's own communication is.
local function messages_words(run)
  local talk = run.communication
  return string.format("%s of the file, each sent and received once, %s", format.plural(talk.messages, "message"), orders[talk.order])
end

function simulation.text(run)
  local result, form, lines = run.result, run.closed_form, {}
  for _, line in ipairs(format.wrap(simulation.headline(run), timeline.width)) do lines[#lines + 1] = line end
  lines[#lines + 1] = ""
  labelled(lines, "makespan", duration(result.makespan) .. ", longest span of a rank " .. duration(result.max_span))
  labelled(lines, "bubble", format.percent(result.bubble_fraction) .. ", mean idle share of the makespan: 1 − Σ busy / (P × makespan)")
  labelled(lines, "idle", idle_range(result))
  labelled(lines, "makespan bubble", string.format("%s%s: makespan − work, of the rank that idles most",
           duration(result.max_idle), of_makespan(result.max_idle, result)))
  labelled(lines, "span bubble", string.format("%s: longest own span − work, what zero-bubble papers count", duration(result.span_bubble)))
  if form then
    local known = form.seconds and string.format("%s, %s: ", duration(form.seconds), standing(form)) or ""
    labelled(lines, "closed form", known .. form.conditions)
  end
  if run.request.file then
    local buffers = run.schedule:receive_buffers()
    labelled(lines, "blocking p2p", string.format("runs with %d receive buffer%s for each stage input, deadlocks with fewer; p2p that "
      .. "blocks nobody needs none", buffers, buffers == 1 and "" or "s"))
  end
  if run.communication then labelled(lines, "messages", messages_words(run)) end
  if run.profile then labelled(lines, "profile", profile_words(run)) end
  if result.host_wait then labelled(lines, "hosts", hosts_words(run)) end
  lines[#lines + 1] = ""
  rank_table(lines, run)
  lines[#lines + 1] = ""
  if not result.intervals_of then
    lines[#lines + 1] = string.format("%s actions are too many to draw", format.integer(run.info.actions))
    return format.page(lines)
  end
  -- The picture may have colours: it is our own text, and stands as it is.
  return format.page(lines) .. table.concat(timeline.draw(run, run.colour), "\n") .. "\n"
end

return simulation
