-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan plan` as a user runs it: the page, the JSON, the exit status.

require "pipeplan"
local cjson = require "cjson"
local program = require "program"

local date = " --date 2026-11-27"

local function run_anew(arguments, input)
  return program.run("plan " .. arguments .. date, input)
end

-- The same once: several tests look at the same page. What reads an input or writes a file is run each time.
local answered = {}
local function run(arguments, input)
  if input or arguments:find(" -o ", 1, true) then return run_anew(arguments, input) end
  answered[arguments] = answered[arguments] or run_anew(arguments)
  return answered[arguments]
end

-- The plan as JSON; the exit status must be what the outcome says.
local function plan(arguments)
  local result = run(arguments .. " --format json")
  assert.equal("", result.stderr)
  local decoded = cjson.decode(result.stdout)
  assert.equal(decoded.status == "planned" and 0 or 1, result.status)
  return decoded
end

local function ids(list)
  local set = {}
  for _, entry in ipairs(list) do set[entry.id or entry.rule] = entry end
  return set
end

local headline = "examples/specs/deepseek-v3.json"
local function rule(name) return "examples/specs/rules/" .. name .. ".json" end

local function lines_of(page)
  local lines = {}
  for line in page:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  return lines
end

describe("a batch as large as a spec can give", function()
  it("is answered at once, and with no batch larger still", function()
    local result = plan("--gpus 2 --accelerator H100-SXM --model examples/models/qwen3-0.6b.json --tokens 1T --pipeline 2 " ..
                        "--global_batch_size 2147483647")
    assert.is_not_nil(ids(result.reasons).fits_one_gpu)
    assert.equal(2, result.recommend.parallelism.tensor)  -- two GPUs divide no batch that can be given near this odd one
    assert.is_not_nil(ids(result.warnings).many_microbatches)
  end)
end)

describe("the headline, DeepSeek-V3 on 2,048 H800", function()
  local answer = plan(headline)

  it("is DualPipe with EP 64 at an even depth from 8 to 32 that fits", function()
    assert.equal("planned", answer.status)
    assert.equal("dualpipe", answer.schedule)
    assert.equal(64, answer.parallelism.expert)
    assert.equal(0, answer.parallelism.pipeline % 2)
    assert.is_true(answer.parallelism.pipeline >= 8 and answer.parallelism.pipeline <= 32)
    assert.is_true(answer.memory.fit ~= "does_not_fit")
  end)

  it("has rank 0 hold embedding, head and MTP at once, and prints its activations and headroom", function()
    local depth = answer.parallelism.pipeline
    assert.same({ 0, depth - 1 }, answer.placement[1])
    local page = run(headline).stdout
    assert.matches("fits +yes.-GiB on rank %d+.-activations", page)
    assert.matches("headroom of", page, 1, true)
  end)

  it("keeps M × DP × microbatch size at the batch of 15,360", function()
    assert.equal(15360, answer.global_batch_size)
    assert.equal(15360, answer.microbatches * answer.parallelism.data * answer.micro_batch_size)
    assert.equal(answer.microbatches / answer.parallelism.pipeline, answer.microbatches_per_rank)
  end)

  it("adds its figures up: days, GPU-hours, savings, step", function()
    assert.near(answer.training_days * 24 * 2048, answer.gpu_hours, 1e-6 * answer.gpu_hours)
    local steps = 14.8e12 / (15360 * 4096)
    assert.near(steps * answer.step_seconds * 2048 / 3600, answer.gpu_hours, 1e-6 * answer.gpu_hours)
    local baselines = {}
    for _, saving in ipairs(answer.gpu_hours_saved) do
      baselines[#baselines + 1] = saving.baseline
      assert.near(saving.total, saving.bubble + saving.overlap, 1e-6 * answer.gpu_hours)
    end
    assert.same({ "1f1b", "zb_h1" }, baselines)
    local step, sum = answer.step, 0
    for _, seconds in pairs(step) do sum = sum + seconds end
    assert.near(answer.step_seconds, sum, 1e-9 * sum)
  end)

  it("takes the GPU-hours that DeepSeek published, within a factor of 1.33", function()
    -- 2,664 K H800 GPU-hours of pre-training: DeepSeek-V3 technical report, Table 1
    local ratio = answer.gpu_hours / 2.664e6
    assert.is_true(ratio > 1 / 1.33 and ratio < 1.33, "ratio " .. ratio)
  end)

  it("sums memory by rank, and the fullest rank fits under the headroom", function()
    for _, rank in ipairs(answer.memory.ranks) do
      assert.near(rank.transient_bytes + rank.overhead_bytes, rank.buffers_bytes, 1)
      local sum = rank.parameters_bytes + rank.gradients_bytes + rank.optimizer_bytes + rank.activations_bytes + rank.buffers_bytes
      assert.near(sum, rank.total_bytes, 1)
      assert.is_true(rank.total_bytes <= answer.memory.device_bytes - answer.memory.headroom_bytes)
    end
  end)

  it("tells each kind of communication apart, and what of it is exposed", function()
    for _, kind in ipairs { "pipeline", "tensor", "expert", "data", "context" } do
      local traffic = answer.communication[kind]
      assert.is_true(traffic.exposed_seconds >= 0 and traffic.exposed_seconds <= traffic.seconds, kind)
    end
    assert.equal(0, answer.communication.tensor.seconds)  -- TP 1
    assert.is_true(answer.communication.expert.exposed_seconds < answer.communication.expert.seconds)
  end)

  it("has no more bubble than 1F1B at the same depth, microbatches and layout", function()
    assert.is_true(answer.bubble.fraction < answer.bubble.baseline_1f1b_fraction)
    assert.equal("mean_idle", answer.bubble.definition)
  end)

  it("names an all-to-all kernel, what it needs, and where the schedule can be run", function()
    assert.equal("deepep", answer.alltoall_kernel.name)
    assert.equal("stated in the spec", answer.alltoall_kernel.why)
    assert.is_true(#answer.alltoall_kernel.needs > 0)
    assert.same({ "flagscale", "deepseek-dualpipe" }, answer.available_in)
  end)

  it("ends with the condition to roll back: metric, threshold, window, simpler schedule", function()
    local rollback = answer.rollback
    assert.equal("ideal step / measured step", rollback.metric)
    assert.equal(1000, rollback.window_steps)
    assert.is_true(rollback.threshold_fraction > 0 and rollback.threshold_fraction < 1)
    assert.is_not_nil(rollback.fallback.schedule)
    -- switching pays where the measured step is longer than the fallback's predicted one
    for _, other in ipairs(answer.alternatives) do
      if other.schedule == rollback.fallback.schedule then
        assert.near(answer.ideal_step_seconds / other.step_seconds, rollback.threshold_fraction, 1e-9)
      end
    end
    assert.matches("receive kernel", rollback.paragraph, 1, true)
    local page = run(headline).stdout:gsub("%s+", " ")
    assert.equal(rollback.paragraph, page:sub(-#rollback.paragraph - 1, -2))
  end)

  it("measures both where the difference is inside the error band", function()
    local rollback = answer.rollback
    local gain = math.abs(answer.predicted_utilisation_fraction / rollback.threshold_fraction - 1)
    assert.equal(gain < answer.expected_error.comparison_fraction, rollback.inside_error_band)
    assert.equal(rollback.inside_error_band, rollback.paragraph:find("measure both", 1, true) ~= nil)
  end)

  it("fits a page of 66 lines of 80 columns", function()
    local lines = lines_of(run(headline).stdout)
    assert.is_true(#lines <= 66)
    for _, line in ipairs(lines) do assert.is_true(utf8.len(line) <= 80, line) end
    assert.matches("^DualPipe · P %d+ · M %d+", lines[1])
  end)

  it("is the same bytes on every run, in every format", function()
    for _, format in ipairs { "text", "markdown", "json" } do
      local first = run(headline .. " --format " .. format)
      assert.equal(0, first.status)
      assert.equal(first.stdout, run_anew(headline .. " --format " .. format).stdout)
    end
  end)
end)

-- A shipped spec without what it fixes beyond the cluster and the recipe, so that anything may replace the wanted schedule.
local function freed(name, ...)
  local file = assert(io.open(os.getenv "PIPEPLAN_SOURCE" .. "/examples/specs/" .. name .. ".json"))
  local spec = cjson.decode(file:read "a")
  file:close()
  spec.framework = nil
  for _, field in ipairs { ... } do spec.parallelism[field] = nil end
  spec.model = spec.model:gsub("^%.%./", "examples/")
  return cjson.encode(spec)
end

describe("a batch ramp", function()
  local result = run("- --format json", freed("deepseek-v3-ramp", "pipeline"))
  local answer = cjson.decode(result.stdout)

  it("is judged at its smallest batch: where M is under 2P, DualPipe is replaced, and the plan says why", function()
    assert.equal("planned", answer.status)
    assert.equal("dualpipe", answer.schedule_wanted)
    local smallest = answer.training.batch_ramp[1]
    assert.equal(3072, smallest.global_batch_size)
    assert.equal(3072, smallest.microbatches * answer.parallelism.data)
    if answer.schedule == "dualpipe" then assert.is_true(smallest.microbatches >= 2 * answer.parallelism.pipeline)
    else assert.is_true(#answer.reasons > 0) end
    local fixed = cjson.decode(run("- --format json --pipeline 16", freed "deepseek-v3-ramp").stdout)
    assert.is_true(fixed.schedule ~= "dualpipe")
    assert.is_not_nil(ids(fixed.reasons).too_few_microbatches)
  end)

  it("has its totals integrated over its segments", function()
    local hours, tokens = 0, 0
    local ramp = answer.training.batch_ramp
    for i, segment in ipairs(ramp) do
      hours = hours + segment.gpu_hours
      local last = ramp[i + 1] and ramp[i + 1].first_token or 14.8e12
      local steps = (last - segment.first_token) / (segment.global_batch_size * 4096)
      assert.near(steps * segment.step_seconds * 2048 / 3600, segment.gpu_hours, 1e-6 * segment.gpu_hours)
      tokens = tokens + last - segment.first_token
    end
    assert.near(answer.gpu_hours, hours, 1e-6 * hours)
    assert.equal(14.8e12, tokens)
  end)

  it("has its rollback window at its own batches", function()
    assert.matches("at the batches of the ramp", answer.rollback.paragraph, 1, true)
    -- 1,000 steps of 3,072 sequences end before the first change, at 117.25 B tokens
    local ideal = answer.rollback.paragraph:match "ideal step %(([%d.]+) s"
    assert.is_true(tonumber(ideal) < answer.ideal_step_seconds / 4)
  end)
end)

describe("a wanted schedule that is replaced", function()
  it("gives way to DualPipeV over slow links, and the reason stands in the first lines", function()
    local answer = plan(rule "slow_interconnect")
    assert.equal("dualpipev", answer.schedule)
    assert.equal("dualpipe", answer.schedule_wanted)
    assert.matches("https://github.com/deepseek-ai/DeepEP", ids(answer.reasons).slow_interconnect.source, 1, true)
    local head = table.concat(lines_of(run(rule "slow_interconnect").stdout), " ", 1, 16)
    assert.matches("wanted +DualPipe %(row moe_with_ep%), replaced by DualPipeV +slow_interconnect: 200 Gb/s", head)
  end)

  it("counts DualPipeV's one copy at equal devices, and says so", function()
    local answer = plan(rule "slow_interconnect")
    assert.equal(1, answer.replication.copies)
    assert.equal(0, answer.replication.extra_bytes)
    local page = run(rule "slow_interconnect").stdout:gsub("%s+", " ")
    assert.matches("1 copy of the parameters at equal devices", page, 1, true)
    assert.matches("counts at equal stages", page, 1, true)
  end)
end)

describe("schedules that simulation says are faster", function()
  local answer = plan "examples/specs/mixtral-8x7b.json --recompute none --micro-batch-size 1 --sharding optimizer"

  it("stand in the first lines, by how much, with what would change it, and as ties under 5 %", function()
    assert.equal("small_run", answer.decision)  -- under 100 GPUs
    assert.equal("1f1b", answer.schedule_wanted)
    assert.is_true(answer.policy_cost.fraction <= 0.05)
    for _, other in ipairs(answer.dominated_by) do
      assert.is_true(other.gain_fraction > 0.01)
      assert.equal(other.gain_fraction < 0.05, other.tie)
      assert.matches('change { id = "small_run", try = { "' .. other.schedule .. '"', other.change, 1, true)
    end
    local head = table.concat(lines_of(run("examples/specs/mixtral-8x7b.json").stdout), "\n", 1, 18)
    assert.equal(#plan("examples/specs/mixtral-8x7b.json").dominated_by > 0, head:find("\nfaster ", 1, true) ~= nil)
  end)

  it("are in the table of alternatives too, with bubble and memory side by side", function()
    local seen = {}
    for _, other in ipairs(answer.alternatives) do
      seen[other.schedule] = true
      assert.is_true(#other.why_not > 0, other.schedule)
    end
    assert.is_true(seen.dualpipe)
    assert.is_true(seen.none)
  end)

  it("have less depth or no pipeline to fall back to from 1F1B", function()
    local fallback = answer.rollback.fallback
    assert.is_true(fallback == cjson.null or fallback.pipeline < answer.parallelism.pipeline)
  end)
end)

describe("a plan that is none", function()
  it("is refused under a billion tokens, with a whole layout without a pipeline instead", function()
    local answer = plan(rule "short_run")
    assert.equal("refused", answer.status)
    local reason = ids(answer.reasons).short_run
    assert.matches("https://arxiv.org/abs/2203.15556", reason.source, 1, true)
    assert.matches("refusals%.lua$", reason.file)
    assert.is_true(reason.line > 0)
    assert.equal(1, answer.recommend.parallelism.pipeline)
    assert.equal("none", answer.recommend.schedule)
    assert.is_true(answer.recommend.peak_bytes > 0)
    assert.equal(cjson.null, answer.schedule)
    assert.equal(cjson.null, answer.rollback)
  end)

  it("is rejected when the model fits one GPU, with the memory of data parallelism and ZeRO-3 beside it", function()
    local answer = plan(rule "fits_one_gpu")
    assert.equal("rejected", answer.status)
    assert.is_not_nil(ids(answer.reasons).fits_one_gpu)
    assert.is_true(answer.one_gpu.fits)
    assert.is_true(answer.one_gpu.bytes <= answer.one_gpu.usable_bytes)
    assert.is_true(answer.one_gpu.sharded_bytes < answer.one_gpu.bytes)
    assert.equal(answer.cluster.gpus, answer.recommend.parallelism.data)
    local page = run(rule "fits_one_gpu")
    assert.equal(1, page.status)
    assert.matches("^REJECTED · instead: no pipeline", page.stdout)
    assert.matches("ZeRO%-3", page.stdout)
  end)
end)

describe("a pipeline that could be avoided", function()
  it("is a warning with how much faster a step is without it, and the layout stands among the alternatives", function()
    local answer = plan("--gpus 64 --accelerator H100-SXM --per-gpu 400Gbps --model examples/models/llama-3-70b.json --tokens 2T "
                        .. "--sequence-length 8192 --recompute full --global-batch-size 16 --pipeline 32 --schedule gpipe")
    assert.equal("planned", answer.status)  -- what the user fixes is judged, not changed
    assert.matches("without a pipeline", ids(answer.warnings).pipeline_avoidable.message, 1, true)
    local without
    for _, other in ipairs(answer.alternatives) do
      if other.schedule == "none" then without = other end
    end
    assert.equal(1, without.parallelism.pipeline)
    assert.is_true(without.step_seconds < answer.step_seconds)
  end)
end)

describe("sequences longer than the model's maximum", function()
  it("are a warning, whatever the outcome", function()
    for _, tokens in ipairs { "2T", "100M" } do
      local answer = plan("examples/specs/llama-3.1-405b.json --sequence-length 262144 --tokens " .. tokens)
      assert.matches("262,144 .* 131,072", ids(answer.warnings).sequence_over_maximum.message)
    end
  end)
end)

describe("a run that fits nowhere", function()
  local arguments = "examples/specs/llama-3.1-405b.json --gpus 64"

  it("is refused with the rank, the missing memory, and a count of GPUs that would do", function()
    local answer = plan(arguments)
    assert.equal("refused", answer.status)
    local message = ids(answer.reasons).does_not_fit.message
    assert.matches("rank %d+ takes [%d.]+ GiB of [%d.]+ GiB usable, [%d.]+ GiB too much: weights .* GiB; it fits %d+ GPUs", message)
    assert.equal("planned", plan("examples/specs/llama-3.1-405b.json --gpus " .. answer.gpus_needed).status)
  end)
end)

describe("M/P outside the usual range", function()
  it("is a warning that says what would move it and by how much, never a refusal", function()
    local answer = plan(headline .. " --global-batch-size 7680")
    assert.equal("planned", answer.status)
    local warning = ids(answer.warnings).few_microbatches
    assert.equal("warning", warning.severity)
    for _, mover in ipairs { "batch of ", "TP × CP ", "GPUs (now 2,048)" } do assert.matches(mover, warning.message, 1, true) end
  end)

  it("names the batch that really brings M/P there", function()
    local message = ids(plan(headline .. " --global-batch-size 7680").warnings).few_microbatches.message
    local batch = message:match("batch of ([%d,]+)"):gsub(",", "")
    local answer = plan(headline .. " --global-batch-size " .. batch)
    assert.is_nil(ids(answer.warnings).few_microbatches)
  end)

  it("is a note where it is large: there a larger microbatch or more GPUs bring it down", function()
    -- M/P = batch × TP × CP / (GPUs × microbatch size): more GPUs, not fewer
    local note = ids(plan "examples/specs/qwen3-235b.json --gpus 64 --micro-batch-size 1".warnings).many_microbatches
    assert.equal("note", note.severity)
    assert.matches("room for a larger microbatch or more GPUs; M/P 16 and less GPU time a token by ", note.message, 1, true)
    local more = note.message:match("([%d,]+) GPUs %(now 64%)"):gsub(",", "")
    assert.is_true(tonumber(more) > 64)
    -- of a layout that is not the plan's there is nothing to bring anywhere
    assert.is_nil(ids(plan(rule "does_not_fit").warnings).many_microbatches.message:find("M/P 16", 1, true))
  end)
end)

describe("the JSON plan", function()
  it("satisfies its schema, whatever the outcome", function()
    local script = [[
import json, subprocess, sys
from jsonschema import Draft202012Validator as Validator
program = sys.argv[1]
schema = json.loads(subprocess.run([program, "facts", "schema", "plan"], capture_output=True, check=True).stdout)
Validator.check_schema(schema)
for arguments in sys.argv[2:]:
    out = subprocess.run([program, "plan", "--format", "json", "--date", "2026-11-27"] + arguments.split(), capture_output=True).stdout
    errors = [error.json_path + ": " + error.message[:200] for error in Validator(schema).iter_errors(json.loads(out))]
    if errors: sys.exit(arguments + "\n" + "\n".join(errors[:5]))
]]
    local name = os.tmpname()
    local file = assert(io.open(name, "w"))
    file:write(script)
    file:close()
    local source, path = os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN"
    local cases = { headline, "examples/specs/deepseek-v3-ramp.json", "examples/specs/llama-3.1-405b.json", rule "short_run",
                    rule "fits_one_gpu", headline .. " --explain --why pipeline=8" }
    for i, case in ipairs(cases) do cases[i] = "'" .. case .. "'" end
    local command = string.format("cd '%s' && env -u LD_PRELOAD python3 %s '%s' %s 2>&1", source, name, path, table.concat(cases, " "))
    local pipe = assert(io.popen(command))
    local output = pipe:read "a"
    local good = pipe:close()
    os.remove(name)
    assert.is_true(good or false, output)
  end)
end)

describe("the command line", function()
  it("takes fields of the spec as options, with dashes or underscores", function()
    assert.equal(7680, plan(headline .. " --global-batch-size 7680").global_batch_size)
    assert.equal(7680, plan(headline .. " --global_batch_size=7680").global_batch_size)
  end)

  it("takes parameters of the policy", function()
    local answer = plan(headline .. " --set rollback_window_steps=200")
    assert.equal(200, answer.rollback.window_steps)
  end)

  it("writes to a file, whole, and nothing to standard output", function()
    local name = os.tmpname()
    local result = run(headline .. " -o " .. name)
    assert.same({ 0, "", "" }, { result.status, result.stdout, result.stderr })
    local file = assert(io.open(name))
    assert.equal(run(headline).stdout, file:read "a")
    file:close()
    os.remove(name)
    result = run(headline .. " -o /no/such/directory/plan.txt")
    assert.same({ 2, "" }, { result.status, result.stdout })
    assert.matches("^pipeplan: cannot write /no/such/directory/plan%.txt: .*\n$", result.stderr)
  end)

  it("explains: every rule that held, the first condition of each that did not, the formula of each figure", function()
    local answer = plan(headline .. " --explain")
    local rules = ids(answer.explanation.rules)
    assert.is_true(rules.moe_with_ep.holds)
    assert.is_false(rules.small_run.holds)
    assert.matches("gpus under small_run_gpus %(100%).*2,?048", rules.small_run.because)
    assert.is_true(#answer.explanation.figures > 5)
    assert.matches("small_run: not gpus under small_run_gpus", run(headline .. " --explain").stdout, 1, true)
    assert.matches("^candidates: %d+, of which %d+ break no rule, as far as they were looked at$", answer.explanation.decided[1])
  end)

  it("says why another choice lost", function()
    local answers = plan(headline .. " --why pipeline=8,schedule=zb_v").explanation.answers
    assert.equal(2, #answers)
    assert.equal("pipeline=8", answers[1].question)
    assert.is_true(#answers[2].answer > 10)
    local result = run(headline .. " --why pipeline")
    assert.same({ 2, "" }, { result.status, result.stdout })
  end)

  it("plans one spec a line, in order, and gives the worst status", function()
    local one = cjson.encode { cluster = { gpus = 64, accelerator = "H100-SXM" }, training = { tokens = "1T" },
                               model = { architecture = "dense", total = "70B", layers = 80 } }
    local bad = '{"cluster": {"gpus": 0}}'
    local result = run("--jsonl", one .. "\n" .. bad .. "\n\n" .. one .. "\n")
    assert.equal(2, result.status)
    local lines = lines_of(result.stdout)
    assert.equal(3, #lines)
    assert.equal(cjson.decode(lines[1]).status, cjson.decode(lines[3]).status)
    assert.equal(2, cjson.decode(lines[2]).error.status)
    assert.matches("^pipeplan: line 2: ", result.stderr)
    result = run("--jsonl", "\n")
    assert.same({ 5, "" }, { result.status, result.stdout })
  end)

  it("plans lines in several processes: the same bytes, messages and status as in one", function()
    local specs = {}
    for i = 1, 5 do
      specs[i] = cjson.encode { cluster = { gpus = i == 4 and 0 or 16 * i, accelerator = "H100-SXM" },
                                training = { tokens = "1T", micro_batch_size = 1, recompute = "selective", sharding = "optimizer" },
                                model = { architecture = "dense", total = "70B", layers = 80 }, parallelism = { tensor = 8, context = 1 } }
    end
    local input = table.concat(specs, "\n\n") .. "\n"
    local one = run("--jsonl --explain --why pipeline=4", input)
    assert.equal(2, one.status)
    assert.equal(5, #lines_of(one.stdout))
    assert.matches("^pipeplan: line 7: [^\n]+\n$", one.stderr)
    for _, jobs in ipairs { 1, 3, 16 } do
      assert.same(one, run("--jsonl --explain --why pipeline=4 --jobs " .. jobs, input))
    end
  end)

  it("takes only counts of processes, and only for lines", function()
    for _, arguments in ipairs { "--jsonl --jobs 0", "--jsonl --jobs two", "--jsonl --jobs=-1", "--jsonl --jobs 1.5", "--jsonl --jobs 1000",
                                 headline .. " --jobs 2" } do
      local result = run(arguments, "{}\n")
      assert.same({ 2, "" }, { result.status, result.stdout })
      assert.matches("%-%-jobs", result.stderr)
    end
  end)

  it("says what is wrong with an option on one line, and prints nothing", function()
    for _, arguments in ipairs { headline .. " --frobnicate", headline .. " --format xml", "--gpus 8" } do
      local result = run(arguments)
      assert.same({ 2, "" }, { result.status, result.stdout })
      assert.matches("^pipeplan: [^\n]+\n$", result.stderr)
    end
  end)

  it("has help", function()
    local result = run "--help"
    assert.equal(0, result.status)
    assert.matches("%-%-policy", result.stdout)
    assert.matches("%-%-global", result.stdout)
  end)
end)

describe("a launch", function()
  -- each format's own rule: FlagScale has no key for growing batches (core 0.15), DeepSpeed no ZeRO 2 beside a pipeline (pipe/engine.py)
  local llama = "--gpus 64 --accelerator H100-SXM --model examples/models/llama-3-70b.json --tokens 1T --per_gpu 400Gbps --pipeline 4 "

  it("that a framework refuses names who can, whether a key or a rule is lacking", function()
    for arguments, wanted in pairs {
      [llama .. "--format deepspeed --sharding gradients"] = "^pipeplan: %-%-format deepspeed: there is no plan: .*ZeRO.* %(.*can%)\n$",
      [llama .. "--format bridge --schedule zb_h1"] = "^pipeplan: %-%-format bridge: there is no plan: .* %(torchtitan, primus can%)\n$",
      ["examples/specs/deepseek-v3-ramp.json --format bridge"] = "has no key for a batch that grows in steps %(megatron can%)\n$",
      ["examples/specs/deepseek-v3.json --format deepspeed"] = "recompute of activation %(megatron, bridge, flagscale, primus can%)\n$",
    } do
      local result = run(arguments)
      assert.same({ 1, "" }, { result.status, result.stdout })
      assert.matches(wanted, result.stderr)
    end
  end)

  it("is planned for the format's framework where the spec names none, from standard input too", function()
    local spec = cjson.encode { cluster = { gpus = 64, accelerator = "H100-SXM", network = { per_gpu = "400Gbps" } },
                                model = "examples/models/llama-3-70b.json", training = { tokens = "1T" } }
    local result = run("- --format bridge", spec)
    assert.same({ 0, "" }, { result.status, result.stderr })
    assert.matches("^#!/bin/sh\n# llama%-3%-70b in Megatron%-Bridge", result.stdout)
    result = run("- --framework megatron --format bridge --gpus minimum", spec)
    assert.same({ 2, "" }, { result.status, result.stdout })
    assert.matches("the spec's framework is megatron; %-%-framework megatron%-bridge plans for it", result.stderr)
  end)
end)

describe("what a refusal recommends", function()
  local refused = "examples/specs/7b-fits-one-gpu.json --recommended"
  -- 671B parameters on two GPUs: nothing that was tried fits
  local hopeless = "--gpus 2 --accelerator H100 --model examples/models/deepseek-v3.json --tokens 1T"

  it("is printed in every format, and the exit status stays that of the refusal", function()
    local result = run(refused .. " --format json")
    local decoded = cjson.decode(result.stdout)
    assert.same({ 1, "planned", 1 }, { result.status, decoded.status, decoded.parallelism.pipeline })
    assert.matches("^pipeplan: rejected: .*instead", result.stderr)
    for format, line in pairs { megatron = "\nexec torchrun .* pretrain_gpt%.py", bridge = "\nexec torchrun .* scripts/training/run_recipe%.py",
                                torchtitan = "\nexec torchrun .* %-m torchtitan%.train", deepspeed = "\nexec torchrun .* \"%${TRAIN:%?}\"",
                                flagscale = "\naction: run\n", primus = "\n  pre_trainer:\n" } do
      local launch = run(refused .. " --format " .. format)
      assert.equal(1, launch.status)
      assert.matches(line, launch.stdout)
    end
  end)

  it("is planned where the spec asks for the fewest GPUs too", function()
    local result = run "examples/specs/mixtral-8x7b.json --gpus minimum --pipeline 1000 --recommended --format verdict"
    assert.same({ 1, "pipeplan: rejected: none of the " }, { result.status, result.stderr:sub(1, 32) })
    assert.matches("^status planned\n", result.stdout)
  end)

  it("is nothing where there is a plan, or a refusal that recommends nothing", function()
    for arguments, status in pairs { ["examples/specs/mixtral-8x7b.json"] = 0, [hopeless] = 1 } do
      local without, with = run(arguments .. " --format verdict"), run(arguments .. " --recommended --format verdict")
      assert.same({ status, "" }, { without.status, without.stderr })
      assert.same(without, with)
    end
  end)

  it("is asked for beside nothing that it is no answer to", function()
    local small = "examples/specs/mixtral-8x7b.json "
    for _, beside in ipairs { refused .. " --explain", small .. small .. "--recommended --compare",
                              small .. "--recommended --measured plan.json=log" } do
      local result = run(beside)
      assert.same({ 2, "" }, { result.status, result.stdout })
      assert.matches("%-%-recommended and %-%-%l+ are two questions: ask one", (result.stderr:gsub("%-%-compare and %-%-recommended",
                                                                                             "--recommended and --compare")))
    end
  end)
end)
