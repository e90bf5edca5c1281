-- SPDX-License-Identifier: Apache-2.0
-- plan.lua: `pipeplan plan`: specs and policies in, one plan out (or, with --jsonl, one a line).

local command_line = require "pipeplan.cli.arguments"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local launches = require "pipeplan.report.launch.formats"
local lists = require "pipeplan.base.lists"
local options = require "pipeplan.input.options"
local reading = require "pipeplan.base.reading"

-- One plan allocates a few megabytes and is done: tracing them over and over would be a sixth of its time.
local command = { pause = 1000 }

local examples = [[
Examples:
   pipeplan plan examples/specs/deepseek-v3.json
       the plan of a shipped spec, one page
   pipeplan plan --gpus 64 --accelerator H100 --model examples/models/llama-3-70b.json --tokens 2T
       without a spec file: fields by name, - and _ are the same
   pipeplan plan examples/specs/deepseek-v3.json --global_batch_size 8192 --format json
       a spec with one field changed, for a machine
   pipeplan plan examples/specs/mixtral-8x7b.json --policy examples/sites/aws-p5.lua
       with a site's policy laid over the default one
   pipeplan plan examples/specs/mixtral-8x7b.json --no-site
       without the policies of this machine
   pipeplan plan examples/specs/deepseek-v3.json --format verdict
       for a gate: a word and its answer a line; with --explain also the nearest change that is planned
   pipeplan plan examples/specs/llama-3.1-405b.json --framework torchtitan --format csv
       what PyTorch's pipelining runtime reads
   pipeplan plan examples/specs/deepseek-v3.json --format html -o plan.html
       a page to look at and to print: timeline, memory, alternatives, what decided
   pipeplan plan examples/launch/llama3_70b.sh --accelerator H100 --per_gpu 400Gbps --layout free
       of a script that starts Megatron-LM: its model and training, in a layout of the planner's
   pipeplan plan examples/specs/qwen3-235b.json --gpus minimum
       on how few GPUs of this kind, and what keeps it from fewer
   pipeplan plan examples/specs/deepseek-v3.json --why pipeline=8,schedule=zb_v
       why these were not planned
   pipeplan plan examples/specs/qwen3-235b.json --shortlist 4
       which layouts are worth a run before the long one; --measured reads their logs
   pipeplan plan examples/specs/mixtral-8x7b.json examples/specs/qwen3-235b.json --compare
       two side by side: the specs, the choice, and what it takes
   pipeplan plan examples/specs/llama-3.1-405b.json examples/phases/llama-3.1-405b-128k.json --phases
       a training that goes on with longer sequences: a plan each, and what lies between
   pipeplan plan --jsonl --jobs 8 -o plans.jsonl --resume plans.jsonl <specs.jsonl
       many; after an interruption the same command goes on where it was
   pipeplan plan examples/specs/mixtral-8x7b.json --format json -o plan.json --record log.jsonl
       and a line that says when, who, from what, and what came out
   pipeplan plan --verify plan.json
       is it what is planned here: the same engine, policy, spec and figures?
   pipeplan plan --jsonl --verify - <plans.jsonl
       of each line the same

With --jsonl each line is answered as soon as those before it are: by a plan, whose spec.run is
the spec's run, or by {"error": {"line", "message", "run", "status"}}. A line is at most 1 MiB, and
may end in CRLF; lines without a spec are skipped. With --shard K/N a line's number is still that
in all of the input, and a line of each of the N outputs in turn (paste -d '\n') is what one
process writes. A worker that dies costs its line (status 70; 4 for want of processor time, or where
none can be started). The exit status is the worst of all lines, in the order 70 6 2 3 4 5 1 0.
--resume takes the k-th whole line of FILE as the answer to the k-th spec, if version, policy, date
and the line numbers in errors agree, and errors and the 1st, 2nd, 4th, 8th, ... and last of them,
planned again, are the same to the byte; errors of status 4 and 70 are taken as they are. New
answers follow: on standard output, or, with -o of the same FILE, in it, as they come; -o of another
file gets all answers, whole or not at all.

--verify plans the spec that the plan carries, at the plan's date; with SPEC or fields beside it,
that one. Policies are those in force here and --policy. It names what differs, of the engine, the
policy, the spec and the figures, each with both values, and what is not compared: where files lie.
Exit status: 0 equal, whatever its outcome; 1 something differs; 2 no plan that can be read.
With --jsonl --verify - the lines of standard input are plans, as --jsonl writes them; each is
answered by what differs, in JSON. A line that says why there is no plan is no plan: status 2.

--record appends one line (pipeplan facts schema decision) to a regular file, in one write, and on
the disk before the answer is shown (with --jsonl at the end); what cannot be decided is recorded
too, as verdict error. A file that cannot be written: nothing is shown, exit status 2.

A quantity may have a unit: 14.8T tokens, 80GiB, 400Gbps, 160GB/s, 8%.
Exit status: 0 planned; 1 refused or rejected; 2 the command or a spec cannot be read;
3 a rule raised an error; 4 over budget; 5 nothing to evaluate; 6 a policy, or --set, cannot be
loaded.]]

-- list: arguments; of a spec's options only those that it names are declared then.
function command.parser(list)
  local argparse = require "pipeplan.argparse"
  local p = argparse("pipeplan plan", "Plans a training run: pipeline depth, microbatches, schedule, memory, time, and when to roll back.")
    :add_help(false):help_max_width(100):help_description_margin(30):usage("Usage: pipeplan plan [SPEC ...] [OPTIONS]"):epilog(examples)
  p:argument("spec", "spec files (JSON), laid over each other in order, or a framework's launch configuration (pipeplan lint --help); "
    .. "- is standard input"):args("*")
  p:group("What is printed",
    p:option("--format", "text (one page), markdown, html (a page for a browser, with --explain), json, verdict (for a gate: status, "
      .. "GPUs, schedule, digests, reasons, a line each), csv: the program for PyTorch's pipelining runtime, or what starts it in a "
      .. "framework: megatron, bridge, torchtitan or deepspeed (a script), flagscale or primus (YAML) (default text)")
      :argname("FORMAT"):choices { "text", "markdown", "html", "json", "verdict", "csv", table.unpack(launches.names) },
    p:option("--pairs", "with csv: split, each F&B pair as two actions, which is faster where nothing runs both at once (default); or "
      .. "overlapped, for a runtime with a function registered for them"):argname("PAIRS"):choices { "split", "overlapped" },
    p:option("--layout", "of a launch configuration: file, plan it as it is (default); or free, only its model and training")
      :argname("LAYOUT"):choices { "file", "free" },
    p:flag("--explain", "say how the plan was decided, which rules fired, why the others did not, and where each figure comes from"),
    p:flag("--recommended", "where there is no plan: print what is recommended instead, in any format; the exit status stays 1"),
    p:option("--why", "say why another choice is not the plan, such as pipeline=8,schedule=zb_v"):argname("FIELD=VALUE,..."):count("*"),
    p:option("--shortlist", "in text or json: the plan and layouts that a comparison cannot tell from it and that teach most when they "
      .. "are measured, N in all, 2 to 16"):argname("N"),
    p:option("--verify", "plan again what this plan (plan --format json) carries, and say what differs (below)"):argname("PLAN.json"),
    p:option("--record", "append a line of JSON for each decision to this file, before it is shown (below)"):argname("FILE"),
    p:option("--record-for", "with --record: for whom this is decided, such as who submits a job"):argname("WHOM"),
    p:option("--output", "write to this file instead, whole or not at all (also: -o FILE)"):argname("FILE"):hidden_name("-o"),
    p:option("--keep", "with --measured PLAN.json=LOG: write what the runs say of the price to this file, beside what is in it")
      :argname("FILE"),
    p:flag("--compare", "plan each SPEC by itself and say what differs, beside the error of the comparison, in text or json"),
    p:flag("--phases", "one training in phases: the first SPEC, then each further one laid over it; a plan each, and what changing over "
      .. "moves, in text or json"),
    p:flag("--jsonl", "read one spec a line from standard input, write one plan a line, in the same order (below)"),
    p:option("--jobs", "with --jsonl: worker processes (default 1)"):argname("N"),
    p:option("--shard", "with --jsonl: of N processes that read the same specs the K-th, which plans the K-th, (K+N)-th, ... spec")
      :argname("K/N"),
    p:option("--resume", "with --jsonl: go on after what this output of an earlier run, cut or not, has answered"):argname("FILE"),
    p:flag("-h --help", "show this help"))
  p:group("The policy", command_line.declare_policy_in_force(p))
  options.declare(p, list)
  return p
end

-- Arguments as the parser reads them; nil, help: as command_line.parse. Specs alone need no parser, which takes longer than reading them.
local function read(arguments)
  for _, argument in ipairs(arguments) do
    if argument:sub(1, 1) == "-" then return command_line.parse_few(command.parser, arguments, "plan") end
  end
  return { spec = { table.unpack(arguments) }, policy = {}, set = {}, why = {} }
end

local most_runs = 16   -- more layouts than that nobody measures

local function shortlist_of(parsed)
  local count = command_line.integer("shortlist", parsed.shortlist, 2, most_runs)
  if not count then return nil end
  local format = parsed.format or "text"
  if parsed.jsonl or format ~= "text" and format ~= "json" then
    failure.usage("plan: --shortlist is for --format text and json, not %s", parsed.jsonl and "--jsonl" or format)
  end
  if parsed.explain or #parsed.why > 0 then
    failure.usage("plan: --shortlist and --%s are two questions: ask one", parsed.explain and "explain" or "why")
  end
  return count
end

-- "3/8" → { 3, 8 }
local function shard_of(text)
  if not text then return nil end
  local which, of = text:match "^(%d+)/(%d+)$"
  which, of = math.tointeger(tonumber(which)), math.tointeger(tonumber(of))
  if not which or not of or which < 1 or which > of then failure.usage("--shard must be K/N, such as 1/4 to 4/4, got '%s'", text) end
  return { which, of }
end

-- ---------------------------------------------------------------------------------------------------------------------- rendering

local render = {}

function render.text(plan) return require("pipeplan.report.text").render(plan) end

function render.markdown(plan) return require("pipeplan.report.markdown").render(plan) end

function render.json(plan)
  local json = require "pipeplan.base.json"
  local schema = require "pipeplan.schema.plan"
  return json.encode(json.shape(plan, schema), { indent = 2 }) .. "\n"
end

function render.verdict(plan) return require("pipeplan.report.terse").render(plan) end

function render.html(plan, _, _, program, words) return require("pipeplan.report.html.init").plan(plan, program, words) end

-- No text unless there is a program.
function render.csv(plan, request, pairs)
  local lines, problem = require("pipeplan.report.program").csv(plan, request, pairs)
  if lines then return lines end
  require("pipeplan.cli.output").complain(problem)
  return nil, failure.status.refused
end

-- What starts the plan in a framework.
local function written(name)
  return function(plan, request, _, _, _, plan_for)
    local text, problem = require("pipeplan.report.launch.init").write(name, plan, request, plan_for)
    if text then return text end
    require("pipeplan.cli.output").complain(string.format("--format %s: %s", name, problem))
    return nil, failure.status.refused
  end
end

for _, name in ipairs(launches.names) do render[name] = written(name) end

-- The request for what a plan that there is not recommends instead; nil: it recommends nothing.
local function instead_of(plan, request)
  for _, each in ipairs(plan.status ~= "planned" and plan.advice or {}) do
    if each.id == "recommend" then
      local reason = plan.reasons[1]
      require("pipeplan.cli.output").complain(string.format("%s%s; this is what is recommended instead: %s", plan.status,
                                                            reason and ": " .. reason.message or "", each.message))
      return require("pipeplan.input.spec").laid(request, each.changes)
    end
  end
end

-- A launch is of a plan for that framework: where nobody names one, the format does.
-- held: texts of specs that were read before.
local function request_of(parsed, given, held)
  local import = require "pipeplan.analysis.lint.import"
  local objects, specs, read_of = import.split(parsed.spec, given, parsed.layout)
  local format = parsed.format
  local name = launches.framework[format]
  local request = require("pipeplan.input.spec").read {
    objects = objects, files = specs, held = held, options = given, otherwise = { framework = name }, read = read_of }
  if not name or request.framework == name then return request end
  failure.usage("plan: --format %s: the spec's framework is %s; --framework %s plans for it", format, request.framework, name)
end

local function status_of(plan)
  return plan.status == "planned" and failure.status.ok or failure.status.refused
end

-- ----------------------------------------------------------------------------------------------------------------------- decisions

-- Each fills in what is known of `decision`, as far as it comes, and returns a text and an exit status.

-- how: { arguments = of the command, why = questions, shortlist = layouts }.
local function planned(decision, parsed, given, how)
  local policy = command_line.policy_in_force(parsed)  -- first: where the policy is wrong too, that is what a gate has to know
  decision.policy = policy
  local request = request_of(parsed, given)
  decision.request = request
  local explain = parsed.explain or parsed.format == "html"
  local function decide(asked)
    return require("pipeplan.plan.init").plan { request = asked, policy = policy, explain = explain, why = how.why,
                                                shortlist = how.shortlist, frontier = parsed.format == "json" }
  end
  local plan, program
  plan, program, request = decide(request)
  decision.plan, decision.request = plan, request
  if how.shortlist and plan.shortlist and parsed.format ~= "json" then
    return require("pipeplan.report.shortlist").text(plan, how.shortlist), status_of(plan)
  end
  local words = { "pipeplan", "plan", table.unpack(how.arguments) }
  local status = status_of(plan)
  local instead = parsed.recommended and instead_of(plan, request)
  if instead then plan, program, request = decide(instead) end
  local function plan_for(framework)
    local asked = require("pipeplan.input.spec").laid(request, { framework = framework })
    if not asked then return nil end
    local plan_of_it = decide(asked)
    return plan_of_it, asked
  end
  local text, problem = render[parsed.format or "text"](plan, request, parsed.pairs, program, words, plan_for)
  return text, problem or status
end

-- With what runs of its layouts say.
local function measured(decision, parsed, given, how)
  decision.policy = command_line.policy_in_force(parsed)
  decision.request = request_of(parsed, given)
  local text, status, plan = require("pipeplan.cli.measured").run(decision.request, decision.policy, how.runs, parsed,
                                                                  render[parsed.format or "text"])
  decision.plan = plan
  return text, status
end

-- The policy of a plan of that day.
local function policy_at(parsed, day)
  return command_line.policy_in_force(lists.with(parsed, { date = parsed.date or day }))
end

-- A plan that was handed in, held against what is planned here.
local function verified(decision, parsed, given)
  local verify, report = require "pipeplan.analysis.verify", require "pipeplan.report.verification"
  local shape = report[parsed.format or "text"]
  if not shape then failure.usage("plan: --verify prints text or json, not %s", parsed.format) end
  local good, handed = failure.try(verify.read, parsed.verify)
  decision.policy = policy_at(parsed, good and handed.date or nil)
  if not good then error(handed, 0) end
  local beside = #parsed.spec > 0 or next(given)
  local result = verify.of { handed = handed, policy = decision.policy, request = beside and request_of(parsed, given) or nil }
  decision.request, decision.plan = result.request, result.plan
  decision.verified = { file = handed.name, equal = result.equal, differ = verify.subjects(result) }
  return shape(result, handed.name), result.equal and failure.status.ok or failure.status.refused
end

-- ------------------------------------------------------------------------------------------------------------------------ the command

-- Options that have no meaning beside others.
local function check(parsed, given)
  if parsed.pairs and parsed.format ~= "csv" then failure.usage("plan: --pairs is for --format csv") end
  for _, name in ipairs(parsed.recommended and { "explain", "shortlist", "verify", "jsonl" } or {}) do
    if parsed[name] then failure.usage("plan: --recommended and --%s are two questions: ask one", name) end
  end
  for _, name in ipairs { "verdict", "csv", table.unpack(launches.names) } do
    local option = #parsed.why > 0 and "why" or parsed.explain and name ~= "verdict" and "explain"   -- which names the nearest change
    if parsed.format == name and option then failure.usage("plan: --format %s has no place for --%s", name, option) end
  end
  if parsed.verify then
    if parsed.jsonl and parsed.verify ~= "-" then
      failure.usage("plan --jsonl reads plans from standard input, one a line: --verify -, and not %s", parsed.verify)
    end
    for _, name in ipairs { "explain", "resume", "shortlist" } do
      if parsed[name] then failure.usage("plan: --%s is not for --verify", name) end
    end
    if parsed.layout and #parsed.spec == 0 then
      failure.usage "plan: --layout is not for --verify alone: name the launch configuration too"
    end
    if #parsed.why > 0 then failure.usage("plan: --why is not for --verify") end
  end
  if not parsed.jsonl then
    for _, name in ipairs { "jobs", "resume", "shard" } do
      if parsed[name] then failure.usage("plan: --%s is for --jsonl", name) end
    end
    return
  end
  if parsed.layout then failure.usage("plan: --layout is for a launch configuration, and --jsonl reads specs") end
  if #parsed.spec > 0 or next(given) then
    failure.usage("plan --jsonl reads its specs from standard input: no SPEC and no fields beside it")
  end
  if parsed.format and parsed.format ~= "json" then failure.usage("plan --jsonl writes JSON, not --format %s", parsed.format) end
end

local function is_same(a, b)
  return a == b or a:gsub("^%./", "") == b:gsub("^%./", "") or engine.process.same_file(a, b)
end

-- Files that options name: of each field that is one, or a list of them, in which a run is PLAN.json[:N]=LOG. What goes wrong before they
-- are opened is recorded too, and not in one of them.
local function note_files(parsed, given)
  for _, entry in ipairs(fields.list) do
    local value = given[entry.name]
    local parts = (entry.type == "path" or entry.type == "model") and ".+" or entry.type == "paths" and "[^,=]+"
    if parts and type(value) == "string" then
      for path in value:gmatch(parts) do
        reading.note(path)
        if entry.type == "paths" then reading.note(path:match "^(.*):%d+$" or path) end
      end
    end
  end
  for _, list in ipairs { parsed.spec, type(parsed.policy) == "table" and parsed.policy or {} } do
    for _, path in ipairs(list) do reading.note(path) end
  end
end

-- What is written is a file for each option; none of them may be read either, but what is kept goes into the calibration that holds
-- (base/reading.lua).
local function check_files(parsed, given)
  note_files(parsed, given)
  local outputs = {}
  for _, option in ipairs { "record", "keep" } do
    local path = parsed[option]
    local stream = path and (engine.process.same_file(path, "/dev/stdout") and not parsed.output and "output"
                             or engine.process.same_file(path, "/dev/stderr") and "error")
    if stream then failure.usage("plan: --%s %s is where standard %s goes: expected a file of its own", option, path, stream) end
    if path and parsed.resume and is_same(path, parsed.resume) then
      failure.usage("--%s is %s, which is read (--resume): expected another file", option, path)
    end
  end
  for _, option in ipairs { "output", "record", "keep" } do
    local path = parsed[option] ~= "-" and parsed[option] or nil
    for _, other in ipairs(path and outputs or {}) do
      if is_same(path, other.path) then
        failure.usage("plan: --%s and --%s are both %s: expected a file for each", other.option, option, path)
      end
    end
    outputs[#outputs + 1] = path and { option = option, path = path }
  end
end

-- The policy of a stream; where there is none, that is a decision too.
local function recorded_policy(record, parsed)
  local good, policy = failure.try(command_line.policy_in_force, parsed)
  if good then return policy end
  if record and failure.is(policy) then record:add { status = policy.status, problem = policy.message } end
  error(policy, 0)
end

-- function(day) → the policy of that day; each is loaded once.
local function policies_of_days(parsed)
  local loaded = {}
  return function(day)
    loaded[day] = loaded[day] or policy_at(parsed, day)
    return loaded[day]
  end
end

function command.run(arguments)
  local parsed, help = read(arguments)
  if not parsed then return help, failure.status.ok end
  local questions
  if #parsed.why > 0 then questions = require("pipeplan.plan.explain").questions(table.concat(parsed.why, ",")) end
  local given = options.given(parsed)
  check_files(parsed, given)
  local runs = (given.measured or parsed.keep) and require("pipeplan.cli.measured").take(parsed, given)
  if runs and parsed.recommended then failure.usage "plan: --recommended and --measured are two questions: ask one" end
  local shortlist = shortlist_of(parsed)
  if parsed.compare or parsed.phases then
    local compare = require "pipeplan.cli.compare"
    compare.check(parsed, given, parsed.compare and "compare" or "phases")
    local text, status = compare.run(parsed, command_line.policy_in_force(parsed), function(paths, held)
      return request_of(lists.with(parsed, { spec = paths }), given, held)
    end)
    return text, status, parsed.output
  end
  check(parsed, given)
  local record
  if parsed.record or parsed.record_for then record = require("pipeplan.cli.record").open(parsed.record, parsed.record_for) end
  if parsed.jsonl then
    return require("pipeplan.cli.lines").plan {
      jobs = command_line.jobs(parsed.jobs), policy = recorded_policy(record, parsed), explain = parsed.explain, questions = questions,
      output = parsed.output, resume = parsed.resume, record = record, shard = shard_of(parsed.shard),
      verify = parsed.verify ~= nil, policy_at = policies_of_days(parsed) }
  end
  local decide = parsed.verify and verified or runs and measured or planned
  local how = { arguments = arguments, why = questions, shortlist = shortlist, runs = runs }
  local text, status
  if record then text, status = record:of(decide, parsed, given, how) else text, status = decide({}, parsed, given, how) end
  return text, status, parsed.output
end

return command
