-- SPDX-License-Identifier: Apache-2.0
-- measured.lua: `pipeplan plan SPEC --measured PLAN.json[:N]=LOG …`: reads the logs of layouts that were run, and plans with what they say.

local accelerators = require "pipeplan.catalog.accelerators"
local calibration = require "pipeplan.input.calibration"
local documents = require "pipeplan.base.documents"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local metrics = require "pipeplan.input.metrics.init"
local output = require "pipeplan.cli.output"
local reading = require "pipeplan.base.reading"
local runs = require "pipeplan.input.runs"
local said = require "pipeplan.input.metrics.arguments"
local verdict = require "pipeplan.monitor.verdict"

local command = {}

local most_steps = 1000000
local LEAST_LINES = 3   -- of which there is a scatter

-- Of --measured, files of a network and runs of layouts: takes the runs out of the fields given, as a list; nil where there are none.
function command.take(parsed, given)
  local texts, files = {}, {}
  for part in ((given.measured or "") .. ","):gmatch "([^,]*)," do
    if part ~= "" then table.insert(part:find("=", 1, true) and texts or files, part) end
  end
  if #texts == 0 then
    if parsed.keep then failure.usage "plan: --keep is for --measured PLAN.json=LOG" end
    return nil
  end
  if parsed.keep == "-" then failure.usage "plan: --keep -: what runs say is kept in a file, for standard output has the answer" end
  for _, name in ipairs { "compare", "explain", "jsonl", "pairs", "phases", "shard", "shortlist", "verify" } do
    if parsed[name] then failure.usage("plan: --measured PLAN.json=LOG and --%s are two questions: ask one", name) end
  end
  if #parsed.why > 0 then failure.usage "plan: --measured PLAN.json=LOG and --why are two questions: ask one" end
  if parsed.format and parsed.format ~= "text" and parsed.format ~= "json" then
    failure.usage("plan: --measured PLAN.json=LOG is for --format text and json, not %s", parsed.format)
  end
  given.measured = #files > 0 and table.concat(files, ",") or nil
  return texts
end

-- What the log says of its own run, and what it should say: names → values.
local function expected_of(run, request, plan)
  local own, shape = run.layout, request.model.shape
  return {
    tensor = own.parallelism.tensor, pipeline = own.parallelism.pipeline, context = own.parallelism.context, data = own.parallelism.data,
    expert = own.parallelism.expert, expert_tensor = shape.experts and own.parallelism.expert > 1 and own.parallelism.expert_tensor or nil,
    micro_batch_size = own.micro_batch_size, global_batch_size = plan.global_batch_size, gpus = own.gpus_used,
    sequence_length = request.training.sequence_length, layers = request.model.layers, hidden = shape.hidden, experts = shape.experts,
  }
end

-- Reads a run's log → what its steps come to.
local function read_log(run, request, plan, limits)
  local ideal = plan.ideal_step_seconds * plan.gpus_used / run.layout.gpus_used   -- only ratios of steps to it are asked for
  local as_planned = { tokens = plan.tokens_per_step, batch = plan.global_batch_size, gpus = run.layout.gpus_used, ideal = ideal,
                       predicted = 1, batches = { [plan.global_batch_size] = { predicted = 1, threshold = 1 } } }
  local steps = require("pipeplan.monitor.kinds").new(as_planned, limits.warmup + 1, limits.warmup + most_steps)
  local expected, line = expected_of(run, request, plan), 0
  local function wrong(words, ...) failure.usage("%s:%d: " .. words, run.log, line, ...) end
  local file = metrics.read(run.log, {
    line = function(number) line = number end,
    step = function(sample)
      if sample.undefined > 0 then wrong("iteration %d has a loss that is not a number: such a run measures nothing", sample.iteration) end
      if sample.batch and sample.batch ~= plan.global_batch_size then
        wrong("iteration %d has a batch of %s: the plan's is %s", sample.iteration, format.integer(sample.batch),
              format.integer(plan.global_batch_size))
      end
      steps:add(sample)
    end,
    unnumbered_step = function(seconds) steps:add_unnumbered(seconds) end,
    mark = function(what) steps:mark(what) end,
    counter = function() end,
    unreadable = function() wrong "a line of a step whose time or number is no number" end,
    argument = function(name, value, written)
      local words = said.differs(expected, name, value, written, run.name)
      if words then wrong("%s", words) end
    end,
  })
  if steps.lines + steps.unnumbered_lines == 0 then
    if file.caution then failure.raise("nothing", "%s: no step in %d lines: %s", run.log, file.lines, file.caution) end
    failure.raise("nothing", "%s: no step in %d lines: expected a log of a kind that monitor reads (%s)", run.log, file.lines,
                  table.concat(metrics.inputs, ", "))
  end
  local found = steps:finish(limits.stall_factor)
  local counted = found.measured or { steps = 0, lines = 0 }
  if counted.steps < limits.least or counted.lines < LEAST_LINES then
    failure.usage("%s: %s in %s count%s behind the first %d: expected at least %d, in %d lines or more", run.log,
                  format.plural(counted.steps, "step"), format.plural(counted.lines, "line"), counted.steps == 1 and "s" or "",
                  limits.warmup, limits.least, LEAST_LINES)
  end
  if found.marked_kept > 0 then failure.usage("%s: %s", run.log, verdict.marked) end
  for _, doubt in ipairs { file.caution or false, verdict.slowed(counted) or false } do
    if doubt then output.complain(run.log .. ": " .. doubt) end
  end
  return counted
end

local stall_factor = 2   -- as `monitor` leaves them out

-- What a calibration that is there already has seen.
local function earlier_of(file, request)
  if not file or not reading.exists(file) then return nil end
  return calibration.of_the_same(file, request).runs
end

-- → the text, the exit status, the plan. parsed: keep, format; texts: of --measured.
function command.run(request, policy, texts, parsed, render)
  if request.any_gpus then failure.usage "plan: --measured takes a number of GPUs, not minimum" end
  if request.training.batch_ramp then
    failure.usage "plan: --measured takes one batch: a step of a ramp is of the batch that it happens to have (--global_batch_size N)"
  end
  if request.profile then failure.usage "plan: --measured corrects what is computed: the profile's times are measured already" end
  if parsed.keep and not accelerators.find(request.cluster.accelerator) then
    failure.usage "plan: --keep writes what runs say of one accelerator of the catalogue: the spec names none (cluster.accelerator)"
  end
  local given, earlier = runs.read(texts), earlier_of(parsed.keep, request)
  local plan = require("pipeplan.plan.init").plan { request = request, policy = policy }
  if plan.status ~= "planned" then return render(plan), failure.status.refused, plan end
  local limits = { warmup = policy.parameters.measured_warmup_steps.value, least = policy.parameters.measured_least_steps.value,
                   stall_factor = stall_factor }
  for _, run in ipairs(given) do
    runs.check(run, plan)
    run.measured = read_log(run, request, plan, limits)
  end
  local after, file = require("pipeplan.plan.measured").of { request = request, policy = policy, plan = plan, runs = given,
                                                             earlier = earlier }
  if parsed.keep then
    calibration.check(file, parsed.keep .. ": what would be kept")
    output.write(documents.encode("calibration", file, { indent = 2 }) .. "\n", parsed.keep)
  end
  local status = after.status == "planned" and failure.status.ok or failure.status.refused
  if parsed.format == "json" then return render(after), status, after end
  return require("pipeplan.report.measured").text(after, parsed.keep), status, after
end

return command
