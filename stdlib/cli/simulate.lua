-- simulate.lua: `pipeplan simulate NAME`: builds one schedule, verifies it, simulates it, and shows when each rank works and waits.

local argparse = require "argparse"
local command_line = require "pipeplan.cli.arguments"
local engine = require "engine"
local failure = require "pipeplan.failure"
local format = require "pipeplan.report.format"
local lists = require "pipeplan.lists"
local simulation = require "pipeplan.report.simulation"

local simulate = {}

-- What --format prints, and who writes it from a simulation. drawn: the most actions whose single times it shows; no_more: those that show
-- nothing else.
local formats = {
  text = { drawn = 100000, write = simulation.text },   -- a picture of more has several actions in each column
  json = { drawn = 0, write = simulation.json },
  csv = { drawn = 0, write = function(run) return run.schedule:csv() end },
  svg = { drawn = 20000, no_more = true, write = function(run) return require("pipeplan.report.svg").write(run) end },
  trace = { drawn = 1000000, no_more = true, write = function(run) return require("pipeplan.report.trace").write(run) end },
}

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
  parser:option("--virtual", "chunks per rank of looped_bfs and interleaved schedules (default 2); V schedules have 2"):argname("V")
  parser:option("--group", "interleaved: microbatches of a chunk's turn (default P), or rounds: as PyTorch"):argname("N")
  parser:option("--limit", "most chunks that a rank of zb_auto may hold, from F to W (default 2P)"):argname("CHUNKS")
  parser:option("--times", "seconds of one chunk: forward, backward for input, for weights, and an overlapped pair (F+I+W if left out)")
    :argname("F,I,W[,FB]"):default("1,1,1")
  parser:option("--p2p", "seconds that a hop between ranks takes"):argname("SECONDS"):default("0")
  parser:option("--format", "what to print"):choices(lists.sorted_keys(formats)):default("text")
  parser:option("--color", "colour the timeline; auto: on a terminal, unless NO_COLOR is set"):choices({ "auto", "always", "never" })
    :default("auto")
  parser:option("--output", "write to this file instead of standard output (also: -o FILE)"):argname("FILE"):hidden_name("-o")
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

local most_seconds = 1e9   -- of one action: 31 years, so that no sum overflows

local function seconds(name, text)
  local value = text:match("^[%d.][%d.eE+-]*$") and tonumber(text)
  if not value or value > most_seconds then failure.usage("--%s must be seconds from 0 to %.0f, got '%s'", name, most_seconds, text) end
  return value
end

-- Seconds by name, as schedule:simulate takes them.
local function times_of(options)
  local text = options.times
  local values = {}
  for part in (text .. ","):gmatch("([^,]*),") do values[#values + 1] = seconds("times", part) end
  if #values < 3 or #values > 4 then failure.usage("--times must be F,I,W or F,I,W,FB, got '%s'", text) end
  return { F = values[1], I = values[2], W = values[3], FB = values[4] or values[1] + values[2] + values[3],
           p2p = seconds("p2p", options.p2p) }
end

-- https://no-color.org: set and not empty.
local function colour_of(options)
  if options.color ~= "auto" then return options.color == "always" end
  return not options.output and (os.getenv "NO_COLOR" or "") == "" and engine.host.terminal()
end

local function read_arguments(arguments)
  local options, help = command_line.parse(new_parser(), arguments, "simulate")
  if not options then return nil, help end
  if not lists.contains(engine.schedule.kinds, options.name) then
    failure.usage("no schedule '%s'%s", options.name, failure.suggestion(options.name, engine.schedule.kinds))
  end
  return {
    request = { kind = options.name, ranks = integer(options, "ranks"), microbatches = integer(options, "microbatches"),
                virtual = integer(options, "virtual"),
                group = options.group == "rounds" and "rounds" or integer(options, "group"), limit = integer(options, "limit") },
    times = times_of(options),
    format = options.format,
    colour = colour_of(options),
    output = options.output,
  }
end

-- -------------------------------------------------------------------------------------------------------------------- the flow

-- A closed form knows nothing of hops between ranks.
local function closed_form(request, times)
  local form = assert(engine.bubble { schedule = request.kind, ranks = request.ranks, microbatches = request.microbatches,
    virtual = request.virtual, group = request.group, limit = request.limit, F = times.F, I = times.I, W = times.W, FB = times.FB })
  if times.p2p > 0 then
    form.exact, form.low, form.high = false, nil, nil
    form.conditions = form.conditions .. "; holds for hops that take no time"
  end
  return form
end

-- The schedule, verified; or nil and the rule it breaks.
local function build(asked)
  local arguments = { F = asked.times.F, I = asked.times.I, W = asked.times.W, p2p = asked.times.p2p }
  for name, value in pairs(asked.request) do arguments[name] = value end
  local schedule, rule = engine.schedule(arguments)
  if not schedule then return nil, rule end
  local verified, finding = schedule:verify()
  if not verified then return nil, finding end
  return schedule
end

local function measure(asked, schedule)
  local info, times, shown = schedule:info(), {}, formats[asked.format]
  if shown.no_more and info.actions > shown.drawn then
    failure.usage("--format %s shows at most %s actions, and this schedule has %s", asked.format, format.integer(shown.drawn),
                  format.integer(info.actions))
  end
  for name, value in pairs(asked.times) do times[name] = value end
  times.intervals = info.actions <= shown.drawn
  return {
    request = asked.request, times = asked.times, colour = asked.colour,
    schedule = schedule, info = info, traits = engine.schedule.traits(info.kind), peaks = schedule:peaks(),
    result = assert(schedule:simulate(times)), closed_form = closed_form(asked.request, asked.times),
  }
end

-- What is not legal is an answer: the rule and the nearest legal value, on stderr; in JSON also as legal = false.
local function refuse(asked, rule)
  local nearest, request = "", asked.request
  if rule.field and rule.field ~= "" and rule.nearest then
    nearest = string.format("; nearest legal %s: %s", rule.field, format.integer(rule.nearest):gsub(",", ""))
  end
  io.stderr:write("pipeplan: ", rule.id, ": ", rule.message, nearest, "\n")
  if asked.format ~= "json" then return "" end
  local virtual = request.virtual or engine.schedule.traits(request.kind).virtual or 2
  return simulation.illegal_json(request, asked.times, virtual, rule)
end

function simulate.run(arguments)
  local asked, help = read_arguments(arguments)
  if not asked then return help, failure.status.ok end
  local schedule, rule = build(asked)
  local status = schedule and failure.status.ok or failure.status.refused
  local text = schedule and formats[asked.format].write(measure(asked, schedule)) or refuse(asked, rule)
  if not asked.output or text == "" then return text, status end
  require("pipeplan.cli.output").to_file(asked.output, text)
  return "", status
end

return simulate
