-- simulate.lua: `pipeplan simulate NAME`: builds one schedule, verifies it, simulates it, and shows when each rank works and waits.

local argparse = require "argparse"
local command_line = require "pipeplan.cli.arguments"
local engine = require "engine"
local failure = require "pipeplan.failure"
local format = require "pipeplan.report.format"
local json = require "pipeplan.report.json"
local lists = require "pipeplan.lists"
local timeline = require "pipeplan.report.timeline"

local simulate = {}

local max_drawn_actions = 100000   -- a picture of more has several actions in each column

-- -------------------------------------------------------------------------------------------------------------------- arguments

local examples = [[
Examples:
   pipeplan simulate 1f1b --ranks 4 --microbatches 8
       the timeline, the bubble by three definitions, and the closed form
   pipeplan simulate dualpipe --ranks 8 --microbatches 20 --times 1,1,1,3 --format json
       an overlapped pair that takes as long as its parts
   pipeplan simulate interleaved_1f1b --ranks 8 --microbatches 32 --virtual 4 --p2p 0.05
       hand-overs between ranks that take time
   pipeplan simulate zb_h1 --ranks 4 --microbatches 8 --format csv
       the program, one rank a line]]

local function new_parser()
  local parser = argparse("pipeplan simulate", "Builds, verifies and simulates one pipeline schedule."):add_help(false)
    :help_max_width(100):help_description_margin(28):usage("Usage: pipeplan simulate NAME --ranks P --microbatches M [OPTIONS]")
    :epilog(examples)
  parser:argument("name", "schedule: " .. table.concat(engine.schedule.kinds, ", "))
  parser:option("--ranks", "pipeline depth P"):argname("P"):count(1)
  parser:option("--microbatches", "microbatches M per step; for dualpipe over both directions"):argname("M"):count(1)
  parser:option("--virtual", "chunks per rank of interleaved_1f1b (default 2); V schedules have 2"):argname("V")
  parser:option("--group", "microbatch group size of interleaved_1f1b (default P)"):argname("N")
  parser:option("--times", "seconds of one chunk: forward, backward for input, for weights, and an overlapped pair (F+I+W if left out)")
    :argname("F,I,W[,FB]"):default("1,1,1")
  parser:option("--p2p", "seconds that a hop between ranks takes"):argname("SECONDS"):default("0")
  parser:option("--format", "what to print"):choices({ "text", "json", "csv" }):default("text")
  parser:option("--stdlib"):hidden(true)   -- read by the program before Lua starts
  parser:flag("-h --help", "show this help")
  return parser
end

local function integer(options, name)
  local text = options[name]
  if not text then return nil end
  local value = text:match("^%d+$") and math.tointeger(tonumber(text))
  if not value or value < 1 then failure.usage("--%s must be an integer ≥ 1, got '%s'", name, text) end
  return value
end

local function seconds(name, text)
  local value = text:match("^[%d.][%d.eE+-]*$") and tonumber(text)
  if not value or value == math.huge then failure.usage("--%s must be seconds ≥ 0, got '%s'", name, text) end
  return value
end

local function times_of(text)
  local values = {}
  for part in (text .. ","):gmatch("([^,]*),") do values[#values + 1] = seconds("times", part) end
  if #values < 3 or #values > 4 then failure.usage("--times must be F,I,W or F,I,W,FB, got '%s'", text) end
  return { F = values[1], I = values[2], W = values[3], FB = values[4] or values[1] + values[2] + values[3] }
end

local function read_arguments(arguments)
  local options, help = command_line.parse(new_parser(), arguments, "simulate")
  if not options then return nil, help end
  if not lists.contains(engine.schedule.kinds, options.name) then
    failure.usage("no schedule '%s'%s", options.name, failure.suggestion(options.name, engine.schedule.kinds))
  end
  return {
    request = { kind = options.name, ranks = integer(options, "ranks"), microbatches = integer(options, "microbatches"),
                virtual = integer(options, "virtual"), group = integer(options, "group") },
    times = times_of(options.times),
    p2p = seconds("p2p", options.p2p),
    format = options.format,
  }
end

-- -------------------------------------------------------------------------------------------------------------------- the facts

-- A closed form knows nothing of hops between ranks.
local function closed_form(asked)
  local request, times = asked.request, asked.times
  local form = assert(engine.bubble { schedule = request.kind, ranks = request.ranks, microbatches = request.microbatches,
    virtual = request.virtual, group = request.group, F = times.F, I = times.I, W = times.W, FB = times.FB })
  if asked.p2p > 0 then
    form.exact, form.low, form.high = false, nil, nil
    form.conditions = form.conditions .. "; holds for hops that take no time"
  end
  return form
end

-- The span bubble of the zero-bubble papers: the longest time from a rank's own first start to its own last end, less its work.
local function span_bubble(result)
  local most = 0
  for rank = 1, #result.span do most = math.max(most, result.span[rank] - result.busy[rank]) end
  return most
end

-- -------------------------------------------------------------------------------------------------------------------- output

local function as_json(asked, facts)
  local request = asked.request
  local times = { F = asked.times.F, I = asked.times.I, W = asked.times.W, FB = asked.times.FB, p2p = asked.p2p }
  local value = {
    schedule = request.kind, ranks = request.ranks, microbatches = request.microbatches, times = times, legal = facts ~= nil,
    virtual = request.virtual or engine.schedule.traits(request.kind).virtual or 2,
  }
  local measured = { "makespan_seconds", "max_span_seconds", "max_idle_seconds", "min_idle_seconds", "idle_per_rank_seconds", "bubble",
                     "closed_form", "peak_activations", "peak_activations_freed_at_i" }
  for _, name in ipairs(measured) do value[name] = json.null end
  if facts then
    local result, form = facts.result, facts.closed_form
    value.makespan_seconds, value.max_span_seconds = result.makespan, result.max_span
    value.max_idle_seconds, value.min_idle_seconds = result.max_idle, result.min_idle
    value.idle_per_rank_seconds = json.array(result.idle)
    value.bubble = { fraction = result.bubble_fraction, definition = "mean_idle", max_idle_fraction = result.max_idle_fraction }
    value.closed_form = { seconds = form.seconds, exact = form.exact, conditions = form.conditions }
    value.peak_activations = json.array(facts.peaks.freed_at_w)
    value.peak_activations_freed_at_i = json.array(facts.peaks.freed_at_i)
  end
  return json.encode(value, { indent = 2 }) .. "\n"
end

local function of_makespan(value, result)
  return result.makespan > 0 and string.format(" (%s of the makespan)", format.percent(value / result.makespan)) or ""
end

-- Here the second is a unit of account: no minutes, and enough digits to check a derivation by hand.
local function duration(value)
  return value > 0 and value < 0.1 and format.seconds(value) or format.digits(value, 6) .. " s"
end

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

local function rank_table(lines, facts)
  local result, peaks, info = facts.result, facts.peaks, facts.schedule:info()
  local split = engine.schedule.traits(info.kind).split_backward
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

local function headline(asked, schedule)
  local request, times = asked.request, asked.times
  local info = schedule:info()
  local parts = {
    format.schedule(request.kind),
    string.format("%d ranks", request.ranks),
    string.format("%d microbatches", request.microbatches),
    info.chunks_per_rank > 1 and string.format("%d chunks per rank", info.chunks_per_rank) or nil,
  }
  if request.group then parts[#parts + 1] = string.format("groups of %d", request.group) end
  local costs = { "F " .. duration(times.F), "I " .. duration(times.I), "W " .. duration(times.W) }
  if engine.schedule.traits(request.kind).overlaps then costs[#costs + 1] = "F&B " .. duration(times.FB) end
  if asked.p2p > 0 then costs[#costs + 1] = "hop " .. duration(asked.p2p) end
  return table.concat(parts, ", ") .. "; per chunk " .. table.concat(costs, ", ")
end

local function as_text(asked, facts)
  local result, form, lines = facts.result, facts.closed_form, {}
  local span = span_bubble(result)
  lines[1], lines[2] = headline(asked, facts.schedule), ""
  labelled(lines, "makespan", duration(result.makespan) .. ", longest span of a rank " .. duration(result.max_span))
  labelled(lines, "bubble", format.percent(result.bubble_fraction) .. ", mean idle share of the makespan: 1 − Σ busy / (P × makespan)")
  labelled(lines, "idle", idle_range(result))
  labelled(lines, "makespan bubble", string.format("%s%s: makespan − work, of the rank that idles most",
           duration(result.max_idle), of_makespan(result.max_idle, result)))
  labelled(lines, "span bubble", string.format("%s: longest own span − work, what zero-bubble papers count", duration(span)))
  labelled(lines, "closed form", string.format("%s, %s: %s", duration(form.seconds), standing(form), form.conditions))
  lines[#lines + 1] = ""
  rank_table(lines, facts)
  lines[#lines + 1] = ""
  if facts.drawing then
    table.move(facts.drawing, 1, #facts.drawing, #lines + 1, lines)
    for _, line in ipairs(format.wrap(timeline.legend(facts.schedule), timeline.width)) do lines[#lines + 1] = line end
  else
    lines[#lines + 1] = string.format("%s actions are too many to draw", format.integer(facts.schedule:info().actions))
  end
  return table.concat(lines, "\n") .. "\n"
end

-- What is not legal is an answer: the rule and the nearest legal value, on stderr; in JSON also as legal = false.
local function refuse(asked, rule)
  local nearest = ""
  if rule.field and rule.field ~= "" and rule.nearest then
    nearest = string.format("; nearest legal %s: %s", rule.field, format.integer(rule.nearest):gsub(",", ""))
  end
  io.stderr:write("pipeplan: ", rule.id, ": ", rule.message, nearest, "\n")
  return asked.format == "json" and as_json(asked, nil) or "", failure.status.refused
end

function simulate.run(arguments)
  local asked, help = read_arguments(arguments)
  if not asked then return help, failure.status.ok end
  local schedule, rule = engine.schedule(asked.request)
  if not schedule then return refuse(asked, rule) end
  local verified, finding = schedule:verify()
  if not verified then return refuse(asked, finding) end
  if asked.format == "csv" then return schedule:csv(), failure.status.ok end
  local times = asked.times
  local draw = asked.format == "text" and schedule:info().actions <= max_drawn_actions
  local result = assert(schedule:simulate { F = times.F, I = times.I, W = times.W, FB = times.FB, p2p = asked.p2p, intervals = draw })
  local facts = { schedule = schedule, result = result, peaks = schedule:peaks(), closed_form = closed_form(asked) }
  if asked.format == "json" then return as_json(asked, facts), failure.status.ok end
  if draw then facts.drawing = timeline.draw(schedule, result) end
  return as_text(asked, facts), failure.status.ok
end

return simulate
