-- SPDX-License-Identifier: Apache-2.0
-- simulate.lua: `pipeplan simulate NAME`: builds one schedule, or reads one from a CSV, verifies it, simulates it, and shows when each rank
-- works and waits; or several, and shows what they come to side by side.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local documents = require "pipeplan.base.documents"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local lists = require "pipeplan.base.lists"
local program = require "pipeplan.input.program"
local output = require "pipeplan.cli.output"
local simulation = require "pipeplan.report.simulation"
local times = require "pipeplan.input.times"

local profile_times   -- of input, loaded for --profile

local simulate = {}

local function encode(value)
  return documents.encode("simulation", value, { indent = 2 }) .. "\n"
end

-- What --format prints, and who writes it from a simulation. drawn: the most actions whose single times it shows; no_more: those that show
-- nothing else.
local formats = {
  text = { drawn = 100000, write = simulation.text },   -- a picture of more has several actions in each column
  json = { drawn = 0, write = function(run) return encode(simulation.object(run)) end },
  csv = { drawn = 0, write = simulation.csv },
  svg = { drawn = 20000, no_more = true, write = function(run) return require("pipeplan.report.svg").write(run) end },
  html = { drawn = 400000,
           write = function(run, command) return require("pipeplan.report.html.init").simulation(run, command) end },
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
   pipeplan simulate dualpipev --ranks 4 --microbatches 32 --runtime torch-multi --p2p 0.01
       what PyTorch's order of sends and receives makes of it
   pipeplan simulate 1f1b --ranks 4 --microbatches 8 --times examples/times/uneven-stages.json
       stages that differ, with the bytes of activations
   pipeplan simulate 1f1b --ranks 4 --microbatches 8 --profile examples/profiles/4xH200.json
       measured stages, under the runtime that ran them, and what heat makes of it
   pipeplan simulate zb_h1 --ranks 4 --microbatches 8 --format csv
       the program, one rank a line
   pipeplan simulate examples/schedules/pytorch-interleaved-zero-bubble.csv
       a program from elsewhere, as PyTorch's pipelining writes it (compute_only)
   pipeplan simulate gpipe,1f1b,interleaved_1f1b,zb_h1 --ranks 4 --microbatches 8
       several side by side, at equal work of a rank]]

simulate.follow = { [""] = engine.schedule.kinds }

function simulate.parser()
  local parser = argparse("pipeplan simulate", "Builds, verifies and simulates one pipeline schedule."):add_help(false)
    :help_max_width(100):help_description_margin(28)
    :usage("Usage: pipeplan simulate NAME[,NAME...] --ranks P --microbatches M [OPTIONS]\n       pipeplan simulate FILE.csv [OPTIONS]")
    :epilog(examples)
  parser:argument("name", "schedule: " .. table.concat(engine.schedule.kinds, ", ") .. "; or a program's CSV")
  parser:option("--ranks", "pipeline depth P"):argname("P")
  parser:option("--microbatches", "microbatches M per step; for dualpipe over both directions"):argname("M")
  parser:option("--virtual", "chunks per rank of looped_bfs and interleaved schedules (default 2); V schedules have 2"):argname("V")
  parser:option("--group", "interleaved: microbatches of a chunk's turn (default P), or rounds: as PyTorch"):argname("N")
  parser:option("--limit", "most chunks that a rank of zb_auto may hold, from F to W (default 2P)"):argname("CHUNKS")
  parser:option("--directions", "2: in a CSV the upper half of the stages is DualPipe's other direction (default 1)"):argname("N")
  parser:option("--times", "seconds of one chunk: forward, backward for input, for weights, and an overlapped pair "
    .. "(F+I+W if left out); or a JSON file, which may say more (facts schema times) (default 1,1,1)"):argname("F,I,W[,FB]|FILE")
  parser:option("--profile", "instead of --times: measured stages, one for each of the schedule's (facts schema profile)"):argname("FILE")
  parser:option("--p2p", "seconds that a hop between ranks takes (default 0, or the profile's)"):argname("SECONDS")
  parser:option("--runtime", "whose order of messages: ideal (they take p2p, and block nothing), or a framework's (default ideal, or the "
    .. "profile's)"):choices({ "ideal", "torch-single", "torch-multi", "deepseek", "pipeplan", "megatron" })
  parser:option("--pairs", "what torch-multi makes of an F&B pair: in_turn (F, then B, then what both send; default), split (two actions, "
    .. "each with its messages) or overlapped (at once: takes FB, if that is known)"):choices({ "in_turn", "split", "overlapped" })
  parser:option("--queues", "of a framework's messages on a rank: one for all (default), or one per_peer"):choices({ "one", "per_peer" })
  parser:option("--format", "text, html (a page for a browser), json, csv (its program, as PyTorch has it), svg or trace (for Perfetto)")
    :choices(lists.sorted_keys(formats)):default("text")
  parser:option("--color", "colour the timeline; auto: on a terminal, unless NO_COLOR is set"):choices({ "auto", "always", "never" })
    :default("auto")
  parser:option("--output", "write to this file instead, whole or not at all (also: -o FILE)"):argname("FILE"):hidden_name("-o")
  parser:option("--stdlib"):hidden(true)   -- read by the program before Lua starts
  parser:flag("-h --help", "show this help")
  return parser
end

local MOST_COUNT = require("pipeplan.vocabulary").most.counted  -- far fewer are legal, and the engine says how many

local function integer(options, name, required)
  if not options[name] and required then failure.usage("missing option '--%s'", name) end
  return command_line.integer(name, options[name], 1, MOST_COUNT)
end

-- What actions take, by the names of a times file, and the name of that file.
local function times_of(options)
  local read, file = times.read(options.times or "1,1,1")
  if options.p2p then read.p2p = times.seconds("p2p", options.p2p) end
  read.p2p = read.p2p or 0
  return read, file
end

local function profile_of(options)
  if not options.profile then return nil end
  if options.times then failure.usage("--times and --profile: expected one of them") end
  profile_times = require "pipeplan.input.profile_times"
  return profile_times.read(options.profile, { runtime = options.runtime, pairs = options.pairs,
                                               p2p = options.p2p and times.seconds("p2p", options.p2p) })
end

-- What runs the schedule: { name, pairs, queues }.
local function runtime_of(options, measured)
  local name = measured and measured.runtime or options.runtime or "ideal"
  for _, choice in ipairs { "pairs", "queues" } do
    if options[choice] and name == "ideal" and options[choice] ~= "overlapped" then
      failure.usage("--%s %s: the ideal runtime has no choice; say also --runtime torch-multi", choice, options[choice])
    end
  end
  return { name = name, pairs = options.pairs, queues = options.queues }
end

-- NO_COLOR counts when it is set and not empty (https://no-color.org).
local function colour_of(options)
  if options.color ~= "auto" then return options.color == "always" end
  return not options.output and (os.getenv "NO_COLOR" or "") == "" and os.getenv "TERM" ~= "dumb" and engine.host.terminal()
end

-- A file's request says only where to read it: its size is in it.
local function file_request(options)
  for _, name in ipairs { "ranks", "microbatches", "virtual", "group", "limit" } do
    if options[name] then failure.usage("--%s: %s says that itself", name, options.name) end
  end
  local directions = integer(options, "directions") or 1
  if directions > 2 then failure.usage("--directions must be 1 or 2, got '%s'", options.directions) end
  return { kind = "csv", file = options.name, directions = directions }
end

-- One request per name. Among several, --virtual, --group and --limit are of those schedules that have a choice.
local function requests_of(options)
  if program.is_file(options.name) then return { file_request(options) } end
  if options.directions then failure.usage("--directions is said of a CSV, not of '%s'", options.name) end
  local requests = {}
  for name in (options.name .. ","):gmatch("([^,]*),") do
    if not lists.contains(engine.schedule.kinds, name) then
      failure.usage("no schedule '%s'%s", name, failure.suggestion(name, engine.schedule.kinds))
    end
    requests[#requests + 1] = {
      kind = name, ranks = integer(options, "ranks", true), microbatches = integer(options, "microbatches", true),
      virtual = integer(options, "virtual"), group = options.group == "rounds" and "rounds" or integer(options, "group"),
      limit = integer(options, "limit"),
    }
  end
  for _, request in ipairs(#requests > 1 and requests or {}) do
    if engine.schedule.traits(request.kind).virtual then request.virtual, request.group = nil, nil end
    if request.kind ~= "zb_auto" then request.limit = nil end
  end
  return requests
end

local function read_arguments(arguments)
  local options, help = command_line.parse(simulate.parser(), arguments, "simulate")
  if not options then return nil, help end
  local measured = profile_of(options)
  local read, file
  if not measured then read, file = times_of(options) end
  return {
    requests = requests_of(options),
    times = read, times_file = file, profile = measured,
    runtime = runtime_of(options, measured),
    format = options.format,
    colour = colour_of(options),
    output = options.output, command = { "pipeplan", "simulate", table.unpack(arguments) },
  }
end

-- -------------------------------------------------------------------------------------------------------------------- the flow

-- One number for all stages: the mean of a list. And whether they were equal.
local function uniform(value)
  if type(value) ~= "table" then return value, true end
  local sum, count, equal = 0, 0, true
  for _, entry in ipairs(value) do
    local number, same = uniform(entry)
    sum, count, equal = sum + number, count + 1, equal and same and number == uniform(value[1])
  end
  return sum / count, equal
end

-- A closed form knows nothing of stages that differ, of hops, and of what else takes time.
local function closed_form(request, read, runtime)
  local arguments = { schedule = request.kind, ranks = request.ranks, microbatches = request.microbatches,
                      virtual = request.virtual, group = request.group, limit = request.limit }
  local unequal = read.first_stage or read.last_stage or read.rank_speed
  for _, name in ipairs { "F", "I", "W", "B", "FB" } do
    local equal
    arguments[name], equal = uniform(read[name])
    unequal = unequal or not equal
  end
  if not arguments.I then arguments.I, arguments.W = 0, arguments.B end   -- of a schedule that runs neither
  local form, beside = assert(engine.bubble(arguments)), {}
  if unequal then beside[#beside + 1] = "holds for equal stages, and is of their mean" end
  if read.p2p ~= 0 then beside[#beside + 1] = "holds for hops that take no time" end
  if read.launch then beside[#beside + 1] = "holds for actions that take nothing beside their work" end
  if runtime.name ~= "ideal" then beside[#beside + 1] = "holds where messages block nothing, not for " .. runtime.name end
  if read.host then beside[#beside + 1] = "holds for hosts that are always ahead of their cards" end
  if read.heat or read.contention then beside[#beside + 1] = "holds for cards that nothing slows down" end
  if #beside > 0 then
    form.exact, form.low, form.high = false, nil, nil
    form.conditions = form.conditions .. "; " .. table.concat(beside, "; ")
  end
  return form
end

local function virtual_of(request)
  if request.file then return request.virtual end
  return engine.schedule.traits(request.kind).virtual or request.virtual or 2
end

-- Of the schedule that a request asks for, what decides how long lists of times must be.
local function shape_of(request)
  local chunks, chains = virtual_of(request), engine.schedule.traits(request.kind).chains
  return { ranks = request.ranks, chains = chains, chunks_per_rank = chunks * chains, stages = request.ranks * chunks * chains }
end

-- What the actions of a schedule take; `shape`: as of shape_of, or the info of a schedule that is built.
local function times_for(asked, read, shape, traits)
  if not asked.profile then
    times.check(read, asked.times_file, shape)
    return read
  end
  return profile_times.of(asked.profile, lists.with({ split_backward = traits.split_backward, overlaps = traits.overlaps }, shape))
end

-- The schedule, verified, and what a file's communication is (program.load); or nil and the rule it breaks. A file's request is completed
-- with what the file says. Some schedules are planned from the times of their stages.
local function build(request, read)
  if request.file then
    local schedule, finding, info = program.load(request.file, request.directions)
    local talk
    if schedule then finding, info, talk = nil, finding, info end
    if info then request.ranks, request.microbatches, request.virtual = info.ranks, info.microbatches, info.virtual end
    return schedule, finding, talk
  end
  local schedule, rule = engine.schedule(lists.with({ F = read.F, I = read.I, W = read.W, p2p = read.p2p }, request))
  if not schedule then return nil, rule end
  local verified, finding = schedule:verify()
  if not verified then return nil, finding end
  return schedule
end

-- Adds to a run what a profile says of memory and of the step around the makespan.
local function add_measured(run, measured, memory)
  local held = run.result.peak_bytes and run.result.peak_bytes.runtime
  run.profile, run.step_seconds = measured, run.result.makespan + profile_times.step_fixed_seconds(measured)
  run.held_bytes = held
  run.bytes_unknown = not held and (memory.bytes and run.result.peak_bytes.runtime_unknown or memory.unknown)
    or not memory.weights and memory.unknown or nil
  if not held or not memory.weights then return end
  run.peak_bytes = {}
  for rank, bytes in ipairs(held) do run.peak_bytes[rank] = bytes + memory.weights[rank] end
end

-- How many actions a legal request has, without building it; 0 where only the program says how many pairs there are.
local function actions_of(request, traits)
  if traits.overlaps then return 0 end
  return (traits.split_backward and 3 or 2) * request.ranks * virtual_of(request) * request.microbatches
end

-- Usage, where the format shows nothing of so many actions.
local function check_drawn(name, actions)
  local shown = formats[name]
  if shown.no_more and actions > shown.drawn then
    failure.usage("--format %s shows at most %s actions, and this schedule has %s", name, format.integer(shown.drawn),
                  format.integer(actions))
  end
end

-- The same step with hosts that are always ahead of their cards.
local function hosts_ahead(schedule, arguments)
  arguments = lists.with(arguments)
  arguments.host, arguments.bytes, arguments.intervals_of = nil, nil, nil
  return schedule:simulate(arguments)
end

-- What the writers write; or nil and the rule that the schedule or its runtime breaks.
local function run_of(asked, request, read)
  local traits = not request.file and engine.schedule.traits(request.kind)
  if traits then
    read = times_for(asked, read, shape_of(request), traits)
    if engine.schedule.check(request) then check_drawn(asked.format, actions_of(request, traits)) end
  end
  local schedule, rule, talk = build(request, read)
  if not schedule then return nil, rule end
  local info, shown = schedule:info(), formats[asked.format]
  traits = traits or info   -- info says of a program what traits say of a kind
  if request.file or asked.profile then read = times_for(asked, read, info, traits) end
  check_drawn(asked.format, info.actions)
  local arguments, memory = times.arguments(read), asked.profile and profile_times.memory(asked.profile, info, traits)
  arguments.runtime, arguments.pairs, arguments.queues = asked.runtime.name, asked.runtime.pairs, asked.runtime.queues
  arguments.bytes = arguments.bytes or memory and memory.bytes
  arguments.intervals_of = info.actions <= shown.drawn and #asked.requests == 1
  local result
  result, rule = schedule:simulate(arguments)
  if not result then return nil, rule end
  local ahead = read.host and hosts_ahead(schedule, arguments) or nil
  local run = {
    request = request, times = read, hosts_ahead_seconds = ahead and ahead.makespan, runtime = asked.runtime, colour = asked.colour,
    schedule = schedule, info = info, peaks = schedule:peaks(), result = result, traits = traits,
    closed_form = not request.file and closed_form(request, read, asked.runtime) or nil, communication = talk,
  }
  if asked.profile then add_measured(run, asked.profile, memory) end
  return run
end

-- What is not legal is an answer: the rule and the nearest legal value, on stderr; in JSON also as legal = false.
local function report_rule(rule)
  local nearest = ""
  if rule.field and rule.field ~= "" and rule.nearest then
    nearest = string.format("; nearest legal %s: %s", rule.field, format.integer(rule.nearest):gsub(",", ""))
  end
  local lines = { rule.id .. ": " .. rule.message .. nearest }
  for i, line in ipairs(rule.details or {}) do lines[i + 1] = "  " .. line end
  output.complain(table.unpack(lines))
end

local function one(asked)
  local request = asked.requests[1]
  local run, rule = run_of(asked, request, asked.times)
  if run then return formats[asked.format].write(run, asked.command), failure.status.ok end
  report_rule(rule)
  if asked.format ~= "json" then return nil, failure.status.refused end
  return encode(simulation.illegal_object(request, asked.times, virtual_of(request), asked.runtime, rule)), failure.status.refused
end

-- Equal work: where a rank holds V chunks, each takes a V-th of what --times says.
local function several(asked)
  if asked.format ~= "text" and asked.format ~= "json" then failure.usage("several schedules: --format text or json") end
  if asked.times_file then failure.usage("several schedules: --times must be F,I,W or F,I,W,FB, got a file") end
  if asked.profile then failure.usage("several schedules: --profile has the stages of one; simulate them one by one") end
  local entries, objects, status = {}, {}, failure.status.ok
  for i, request in ipairs(asked.requests) do
    local virtual, read = virtual_of(request), { p2p = asked.times.p2p }
    for _, name in ipairs { "F", "I", "W", "FB" } do read[name] = asked.times[name] and asked.times[name] / virtual end
    local run, rule = run_of(asked, request, read)
    if run then
      objects[i] = simulation.object(run)
      run.schedule = nil   -- up to 2 GiB that the collector knows nothing of
      collectgarbage()
    else
      objects[i] = simulation.illegal_object(request, read, virtual, asked.runtime, rule)
      report_rule(rule)
      status = failure.status.refused
    end
    entries[i] = { request = request, run = run, rule = rule }
  end
  if asked.format == "json" then return encode { simulations = objects }, status end
  return require("pipeplan.report.comparison").text(entries, asked.times), status
end

function simulate.run(arguments)
  local asked, help = read_arguments(arguments)
  if not asked then return help, failure.status.ok end
  local text, status = (#asked.requests > 1 and several or one)(asked)
  return text, status, asked.output
end

return simulate
