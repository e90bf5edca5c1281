-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan monitor`: a run held against its plan's rollback trigger, as a user does it. The plan is tests/monitoring.lua's,
-- with figures that are derived by hand: ideal step 24 s, threshold 24/33, 90 steps that count.

require "pipeplan"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local monitoring = require "monitoring"
local program = require "program"

teardown(files.remove)

local plan = files.write("plan.json", monitoring.plan())

local function run(arguments, input)
  local result = program.run("monitor " .. arguments, input)
  return result.status, result.stdout, result.stderr
end

local function monitor(input, more, plan_path)
  return run((plan_path or plan) .. " - " .. (more or ""), input)
end

local function object(input, more, plan_path)
  local status, out, problem = monitor(input, "--format json " .. (more or ""), plan_path)
  assert.equal("", problem)
  return json.decode(out, "monitor"), status
end

local healthy, slow = monitoring.log(1, 100, 27.2), monitoring.log(1, 100, 24 / 0.7)

describe("a run", function()
  it("that reaches what its plan says is kept, exit 0", function()
    local status, out, problem = monitor(healthy)
    assert.same({ 0, "" }, { status, problem })
    assert.matches("^KEEP · utilisation 88%.2 %%, threshold 72%.7 %% +ZB%-H1 at P 4\n", out)   -- 24/27.2
    assert.matches("keep ZB%-H1 at P 4", out)
  end)

  -- one rank at 70 % of its speed works 8 × 3 s / 0.7 = 34.3 s, whatever the schedule: 70 %
  it("with a straggler is rolled back, exit 1, and told to what, how, and what to look at first", function()
    local status, out, problem = monitor(slow)
    assert.same({ 1, "" }, { status, problem })
    assert.matches("^ROLL BACK · utilisation 70 %%, threshold 72%.7 %%", out)
    assert.matches("switch to 1F1B at P 4, predicted 33 s a step", out)
    assert.matches("pipeplan plan SPEC --schedule 1f1b --pipeline 4", out, 1, true)
    assert.matches("first look for one slow card, link or node", out, 1, true)
  end)

  it("that began as planned and became slower is a fault to find first, exit 1, without a word of another schedule", function()
    local slower = monitoring.log(1, 60, 27) .. monitoring.log(61, 100, 40)
    local status, out, problem = monitor(slower)
    assert.same({ 1, "" }, { status, problem })
    assert.matches("^FIND THE FAULT · utilisation", out)
    local flat = out:gsub("%s+", " ")
    assert.matches("find what became slower after iteration 60: at first 27 s a step, above the threshold, at last 40 s, below it", flat, 1, true)
    assert.not_matches("switch to", flat, 1, true)
    local found = json.decode((select(2, monitor(slower, "--format json"))))
    assert.same({ "fault", 60 }, { found.verdict, found.measured.rise_after_iteration })
    assert.is_true(math.abs(found.measured.rise_fraction - 13 / 27) < 0.01)
  end)

  -- tests/monitoring.lua: at 32 sequences 12/15 = 80 % is predicted, 12/21 = 57.1 % the threshold; at 64 24/27 and 24/33
  it("of a ramp is told prediction and threshold of the batch of its steps, and of several batches each", function()
    local ramp = files.write("ramp.json", monitoring.plan(monitoring.ramp()))
    local function line(batch) return function(i, seconds) return monitoring.megatron(i, seconds, { batch = batch }) end end
    local small = monitoring.log(1, 40, 15, 1, line(32))
    local status, out = monitor(small, nil, ramp)
    local flat = out:gsub("%s+", " ")
    assert.equal(0, status)
    assert.matches("^KEEP · utilisation 80 %%, threshold 57%.1 %%", out)
    assert.matches("ZB-H1 at P 4, M 4 at the batch of 32: predicted 80 %, 15 s a step; roll back below 57.1 % (steps over 21 s)", flat, 1, true)
    status, out = monitor(small .. monitoring.log(41, 100, 45, 1, line(64)), nil, ramp)
    flat = out:gsub("%s+", " ")
    assert.equal(1, status)
    -- ideal 30 × 12 + 60 × 24 = 1,800 s: of 30 × 15 + 60 × 27 = 2,070 s predicted, 30 × 21 + 60 × 33 = 2,610 s the limit, over 90 steps
    assert.matches("M 4 to 8, the mean of these steps at batches of 32 to 64: predicted 87 %, 23 s a step; roll back below 69 % (steps over 29 s)",
                   flat, 1, true)
    assert.matches("by batch, 30 steps of 32: 80 % (predicted 80 %, threshold 57.1 %), 60 steps of 64: 53.3 % (predicted 88.9 %, threshold 72.7 %)",
                   flat, 1, true)
    assert.matches("switch to 1F1B at P 4, predicted 33 s a step at the batch of 64", flat, 1, true)
    assert.matches("after iteration 40: the batch grew there", flat, 1, true)
    local found = object(small, nil, ramp)
    assert.near(12 / 21, found.threshold_fraction, 1e-12)
    assert.same({ 1, 32, 30 }, { #found.batches, found.batches[1].global_batch_size, found.batches[1].steps })
    assert.near(12 / 15, found.batches[1].predicted_utilisation_fraction, 1e-12)
    assert.equal(json.null, object(healthy).batches)
  end)

  it("of a ramp whose plan has no threshold at each batch is held against the one that it has, and told so", function()
    local changes = monitoring.ramp()
    changes["rollback.batches"] = nil
    local found = object(healthy, nil, files.write("ramp.json", monitoring.plan(changes)))
    assert.near(1920 / 2820, found.threshold_fraction, 1e-12)
    assert.matches("says one threshold for all batches of its ramp, which holds for none: plan again", found.warnings[1], 1, true)
  end)

  it("is told the fallback's chunks a rank where the plan has others, for its spec may fix them", function()
    local interleaved = files.write("plan.json", monitoring.plan { ["parallelism.virtual"] = 2 })
    local _, out = monitor(slow, nil, interleaved)
    assert.matches("plan SPEC --schedule 1f1b --pipeline 4 --virtual 1", (out:gsub("%s+", " ")), 1, true)
    _, out = monitor(slow)
    assert.not_matches("--virtual", out, 1, true)
  end)

  it("is a page of 80 columns, whatever was read", function()
    local noise = {}
    for i = 1, 40 do noise[i] = files.write(string.rep("long-name-", 12) .. i .. ".log", "nothing\n") end
    local status, out = run(plan .. " - " .. table.concat(noise, " "), slow .. monitoring.log(90, 100, 500) .. "torn")
    assert.equal(1, status)
    local count = 0
    for line in out:gmatch "([^\n]*)\n" do
      count = count + 1
      assert.is_true(utf8.len(line) <= 80, line)
    end
    assert.is_true(count <= 66, count)
  end)

  it("in JSON has every number", function()
    local found, status = object(slow)
    assert.equal(1, status)
    assert.same({ "roll_back", "zb_h1", 4 }, { found.verdict, found.schedule, found.pipeline })
    assert.near(0.7, found.measured.utilisation_fraction, 0.001)
    assert.near(24 / 0.7, found.measured.mean_step_seconds, 0.05)
    assert.same({ 90, 11, 100 }, { found.measured.steps, found.measured.first_iteration, found.measured.last_iteration })
    assert.near(24 / 33, found.threshold_fraction, 1e-12)
    assert.near(24 / 27, found.predicted_utilisation_fraction, 1e-12)
    assert.same({ schedule = "1f1b", pipeline = 4, step_seconds = 33 }, found.fallback)
    local dropped = found.dropped[1]
    assert.same({ "warm_up", 10, 10, 1 }, { dropped.why, dropped.steps, dropped.lines, dropped.first_iteration })
    assert.equal(1, #found.dropped)
    assert.same({ 0, 0 }, { #found.gaps, #found.warnings })
  end)

  it("is judged alike from either framework's log", function()
    -- a rank's group has 131,072 tokens of a step; in 27.2 s over P 4 that is 1,204.7 a second and device; in 24/0.7 s 955.7
    local function titan(tps)
      return monitoring.log(1, 100, tps, 1, function(i, value) return monitoring.torchtitan(i, string.format("%.0f", value)) end)
    end
    local found, status = object(titan(131072 / 27.2 / 4))
    assert.same({ "keep", 0 }, { found.verdict, status })
    assert.near(27.2, found.measured.mean_step_seconds, 0.05)
    assert.equal("roll_back", object(titan(131072 / (24 / 0.7) / 4)).verdict)
  end)

  it("is not condemned for its checkpoints, whether the log says them or not", function()
    local parts, silent = {}, {}
    for i = 1, 100 do
      if i % 25 == 1 and i > 1 then parts[#parts + 1] = "saving checkpoint at iteration " .. i - 1 .. " to /ckpt in torch_dist format\n" end
      parts[#parts + 1] = monitoring.megatron(i, i % 25 == 1 and 300 or 27.2 + i % 3 * 0.1)
      silent[i] = monitoring.megatron(i, i % 25 == 1 and 300 or 27.2 + i % 3 * 0.1)
    end
    local said, unsaid = object(table.concat(parts)), object(table.concat(silent))
    assert.same({ "keep", "checkpoint", 3 }, { said.verdict, said.dropped[2].why, said.dropped[2].steps })
    assert.same({ "keep", "stall", 3 }, { unsaid.verdict, unsaid.dropped[2].why, unsaid.dropped[2].steps })
    assert.is_true(unsaid.measured.utilisation_with_dropped_fraction < unsaid.threshold_fraction)   -- 36.4 s a step, with them
  end)

  it("of whose steps too few are there is undecided, exit 0, and says so", function()
    local status, out = monitor(monitoring.log(1, 15, 40))
    assert.equal(0, status)
    assert.matches("^UNDECIDED · utilisation 60 %%", out)
    assert.matches("too few steps: 5 counted, 9 are asked for", out, 1, true)
    assert.equal(1, (monitor(monitoring.log(1, 15, 40), "--min-steps 5")))
  end)

  it("of a plan inside the error band is undecided near the threshold, kept above it, rolled back far below", function()
    local band = files.write("plan.json", monitoring.plan { ["rollback.inside_error_band"] = true })
    local status, out = monitor(slow, "", band)
    assert.equal(0, status)
    assert.matches("only running the fallback as well decides", (out:gsub("%s+", " ")), 1, true)
    assert.same({ "keep", 0 }, { object(healthy, "", band).verdict, (monitor(healthy, "", band)) })
    status, out = monitor(monitoring.log(1, 100, 60), "", band)   -- 40 %; 72.7 % / 1.25 = 58.2 % is as far as the estimates can be off
    assert.equal(1, status)
    assert.matches("^ROLL BACK · utilisation 40 %%, threshold 72%.7 %%", out)
    out = out:gsub("%s+", " ")
    assert.matches("first look at the counters of each rank: neither the plan nor its fallback was predicted to be this slow, so something "
                   .. "else is wrong (a slow card, link or node, other traffic on the network)", out, 1, true)
    assert.matches("switch to 1F1B at P 4", out, 1, true)
    assert.is_true(object(monitoring.log(1, 100, 60), "", band).measured.slower_than_error_allows)
    assert.is_false(object(slow, "", band).measured.slower_than_error_allows)
  end)

  it("of whose steps even the fastest takes twice the predicted one is told that the plan's model does not hold", function()
    local sentence = "the plan's model of this machine does not hold"
    local status, out = monitor(monitoring.log(1, 100, 190))   -- the fastest 190 × 0.995 = 189.05 s, over 27 s
    assert.equal(1, status)
    out = out:gsub("%s+", " ")
    assert.matches("warning even the fastest step takes 7.0 times the predicted one: " .. sentence .. ". Profile again, and plan with the profile",
                   out, 1, true)
    assert.near(189.05 / 27, object(monitoring.log(1, 100, 190)).measured.fastest_step_over_predicted, 1e-4)   -- the log has 0.1 ms
    -- some steps as predicted: those that are slow are not the model's fault
    local mixed = monitoring.log(1, 100, function(i) return i % 4 == 0 and 27 or 190 end)
    assert.is_nil((select(2, monitor(mixed)):gsub("%s+", " ")):find(sentence, 1, true))
    assert.is_nil((select(2, monitor(monitoring.log(1, 100, 52))):gsub("%s+", " ")):find(sentence, 1, true))
  end)

  it("without a fallback is told that the estimate is wrong", function()
    local none = files.write("plan.json", monitoring.plan { ["rollback.fallback"] = json.null })
    local status, out = monitor(slow, "", none)
    assert.equal(1, status)
    assert.matches("nothing simpler fits: the estimate is wrong", out, 1, true)
    local flat = files.write("plan.json", monitoring.plan { ["rollback.fallback"] = { schedule = "none", pipeline = 1 } })
    status, out = monitor(slow, "", flat)
    assert.equal(1, status)
    assert.matches("switch to no pipeline.*pipeplan plan SPEC %-%-pipeline 1\n", out)
  end)

  it("with no step in the window is nothing: exit 5, and says which iterations there are", function()
    local status, out, problem = monitor(monitoring.log(1, 8, 27))
    assert.same({ 5, "" }, { status, out })
    assert.matches("standard input has iterations 1 to 8, and steps from 11 to 100 count", problem, 1, true)
    assert.equal(5, (monitor(monitoring.log(5001, 5100, 27))))
    assert.equal(0, (monitor(monitoring.log(5001, 5100, 27), "--steps 5002-5100")))
  end)

  it("of which no line is known is nothing: exit 5", function()
    for _, text in ipairs { "", "\n\n", "hello\n", "0, 97, 71234\n", monitoring.megatron(50, 27):sub(1, -2) } do
      local status, out, problem = monitor(text)
      assert.same({ 5, "" }, { status, out }, text)
      assert.matches("no sample in standard input", problem, 1, true)
    end
  end)

  -- a week of 604,800 s; 262,144 tokens a step on 8 GPUs: 262,144 / 8 / 604,800 = 0.05418 tokens a second and GPU at least
  it("of whose lines no value is one is nothing, and says which line, what it has, and what it should be", function()
    local status, out, problem = monitor(monitoring.log(1, 100, -27))
    assert.same({ 5, "" }, { status, out })
    assert.matches("100 values of Megatron-LM log cannot be read, the first in standard input:1: '-27000.0' of step '1': expected a step from 1 on, "
                   .. "and a time or rate over 0, of at most a week a step", problem, 1, true)
    status, out, problem = monitor(monitoring.torchtitan(60, "0.01"):rep(3))
    assert.same({ 5, "" }, { status, out })
    assert.matches("3 lines with tokens per second and GPU that no step takes, the first in iteration 60 (standard input:1): 0.01: expected 0.05418 to "
                   .. "3.277e+10 for a step of this plan", problem, 1, true)
  end)

  it("of another format than --input says is told which it is", function()
    local log = files.write("run.log", monitoring.log(1, 100, 27))
    local status, out, problem = run(plan .. " " .. log .. " --input torchtitan")
    assert.same({ 5, "" }, { status, out })
    assert.matches("100 lines, none with a value of torchtitan; " .. log .. " has Megatron-LM log 100 lines, which --input torchtitan leaves out", problem,
                   1, true)
  end)

  -- the plan's: 8 GPUs, P 4, DP 2, TP 1
  it("whose log says another layout than the plan's is refused, with the line and both values", function()
    local function args(name, value) return ("  %s %s %d\n"):format(name, ("."):rep(47 - #name), value) end
    local own = args("world_size", 8) .. args("pipeline_model_parallel_size", 4) .. args("data_parallel_size", 2) .. args("global_batch_size", 64)
    assert.equal(0, (monitor(own .. monitoring.log(1, 100, 27))))
    for name, value in pairs { world_size = 64, tensor_model_parallel_size = 8, global_batch_size = 128, seq_length = 8192 } do
      local status, out, problem = monitor(own .. args(name, value) .. monitoring.log(1, 100, 27))
      assert.same({ 2, "" }, { status, out })
      assert.matches("^pipeplan: standard input:5: " .. name .. " is [%d,]+: .*plan.json has [%d,]+, so this is the log of another %l+\n$", problem)
    end
    assert.equal(2, (monitor("Building device mesh with parallelism: pp=4, dp_replicate=1, dp_shard=4, cp=1, tp=1, ep=1\n" .. own)))
  end)

  it("of whose lines no time of a step follows is nothing, and says why", function()
    local status, out, problem = monitor "Epoch 1 | iter 64 step 16 | loss train: 11.201, val: n/a | iter time: 450.12 ms (step) remaining time: 1:00:00\n"
    assert.same({ 5, "" }, { status, out })
    assert.matches("no sample in standard input: litgpt tells the time of a step's last microbatch alone", problem, 1, true)
  end)

  it("that began again has its later lines count, and says so", function()
    local found = object(monitoring.log(1, 60, 60) .. "[before the start of training step] datetime: 2026-11-27 12:00:00\n" .. monitoring.log(11, 100, 27.2))
    assert.same({ "keep", 1 }, { found.verdict, found.restarts })
    assert.matches("1 restart: iterations begin anew; of those logged twice (50) the later line counts", found.warnings[1], 1, true)
  end)

  -- NVIDIA/Megatron-LM megatron/training/training.py and checkpointing.py: a run that resumed from the checkpoint that it had just saved
  it("that went on from where it ended is told of one start, and of nothing out of order", function()
    local first = monitoring.log(10, 50, 27.2, 10) .. "  successfully saved checkpoint from iteration      50 to /ckpt [ t 1/1, p 1/4 ]\n"
    local second = "[before the start of training step] datetime: 2026-11-27 12:00:00\n" .. monitoring.log(60, 100, 27.2, 10)
    local one, two = files.write("a.log", first), files.write("b.log", second)
    for _, found in ipairs { object(first .. second), json.decode((select(2, run(plan .. " " .. one .. " " .. two .. " --format json")))) } do
      assert.same({ "keep", 1, {} }, { found.verdict, found.restarts, found.warnings })
    end
    -- of four ranks that say no number: none of their lines stands in another order either
    local found = object(((first .. second):gsub("iteration +%d+/[^\n]*\n", function(line) return line:rep(4) end)))
    assert.matches("30 of 40 lines are of iterations that were logged before: several ranks", found.warnings[1], 1, true)
  end)

  it("that goes back behind the window is not out of order in it", function()
    local found = object(monitoring.log(11, 200, 27.2) .. monitoring.log(151, 210, 27.2))
    assert.same({ "keep", 1, {} }, { found.verdict, found.restarts, found.warnings })
  end)

  -- huggingface/transformers ProgressCallback with steps of 8 s: a sample each three steps, so those of a resumed process stand elsewhere
  it("that began again with samples at other iterations is told of a restart, and of no wrong order", function()
    local parts = {}
    local function process(first, last)
      parts[#parts + 1] = "  0%|          | 0/1000 [00:00<?, ?it/s]"
      for step = first, last do
        local seconds = 8 * (step - first + 1)
        parts[#parts + 1] = string.format("\r  %d%%|▎         | %d/1000 [%02d:%02d<2:12:58,  8.00s/it]", step // 10, step, seconds // 60, seconds % 60)
        if step % 10 == 0 then parts[#parts + 1] = "\r{'loss': 1.2, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n" end
      end
    end
    process(1, 60)
    process(41, 100)
    local found = object(table.concat(parts))
    assert.equal(1, found.restarts)
    assert.matches("^1 restart: iterations begin anew; no older line counts from where the newer process began$", found.warnings[1])
  end)

  it("whose lines stand in another order is told to be so, and nothing of ranks or restarts", function()
    local lines = {}
    for line in monitoring.log(1, 100, 27.2):gmatch "[^\n]+\n" do table.insert(lines, #lines % 3 + 1, line) end
    local found = object(table.concat(lines))
    assert.equal("keep", found.verdict)
    assert.matches("^iterations go back %d+ times, and none stands twice: the lines are not in their order$", found.warnings[1])
    for _, warning in ipairs(found.warnings) do assert.is_nil(warning:find "ranks write" or warning:find "begin anew") end
  end)

  it("of several ranks that say no number is told to be so, whether they keep step or not", function()
    local lines = {}
    for line in monitoring.log(1, 100, 27.2):gmatch "[^\n]+\n" do lines[#lines + 1] = line end
    local alike, apart = {}, {}
    for i, line in ipairs(lines) do
      alike[i] = line:rep(3)
      apart[i] = line .. (lines[i - 2] or "")   -- the second rank is two iterations behind
    end
    local advice = "several ranks write into one file without their number. Give the log of one rank, or let the launcher write numbers"
    local found = object(table.concat(alike))
    assert.equal("keep", found.verdict)
    assert.matches("200 of 300 lines are of iterations that were logged before: " .. advice, found.warnings[1], 1, true)
    found = object(table.concat(apart))
    assert.matches("98 of 198 lines are of iterations that were logged before, going back 98 times: " .. advice, found.warnings[1], 1, true)
  end)

  it("over several files is one run, in their order", function()
    local one, two = files.write("a.log", monitoring.log(1, 60, 27.2)), files.write("b.log", monitoring.log(61, 100, 27.2))
    local status, out = run(plan .. " " .. one .. " " .. two .. " --format json")
    local found = json.decode(out, "monitor")
    assert.same({ 0, 90, 0, 2 }, { status, found.measured.steps, found.restarts, #found.files })
  end)

  it("is warned of its gaps, its torn end, its losses that are no number, its skipped iterations", function()
    local text = monitoring.log(1, 30, 27.2) .. monitoring.log(41, 98, 27.2) .. monitoring.megatron(99, 27.2, { nan = 1, skipped = 1 })
      .. monitoring.megatron(100, 27.2):sub(1, 90)
    local found = object(text)
    assert.same({ { first_iteration = 31, last_iteration = 40 } }, found.gaps)
    assert.is_true(found.files[1].torn)
    assert.same({ 1, 1 }, { found.undefined_iterations, found.skipped_iterations })
    local _, out = monitor(text)
    assert.matches("\ngaps +10 iterations of the window missing: 31–40\n", out)
    assert.matches("NaN or infinite loss or gradient in 1 iteration, first at", out, 1, true)
    assert.matches("its last line has no end", out, 1, true)
  end)
end)

describe("counters beside a log", function()
  -- P 4, DP 2: ranks 0 to 3 are GPUs 0-1, 2-3, 4-5, 6-7
  local function prometheus(of)
    local parts = {}
    for gpu = 0, 7 do
      parts[#parts + 1] = string.format('DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="%d",hostname="n1"} %.6f\n', gpu, of(gpu // 2))
      parts[#parts + 1] = string.format('DCGM_FI_DEV_GPU_UTIL{gpu="%d",hostname="n1"} 99\n', gpu)
    end
    return table.concat(parts)
  end

  it("never decide", function()
    local path = files.write("x.prom", prometheus(function() return 0.01 end))
    local log = files.write("x.log", healthy)
    local status, out = run(table.concat({ plan, log, path }, " "))
    assert.equal(0, status)
    assert.matches("^KEEP", out)
    assert.matches("GPU utilisation: mean 99 % of 8 GPUs, cannot see a bubble", (out:gsub("%s+", " ")), 1, true)
  end)

  it("hold ranks against each other, beside what the plan expects", function()
    local found = object(healthy .. prometheus(function(rank) return rank == 2 and 0.5 or 0.3 end))
    local kind = found.counters[1]
    assert.same({ "tensor_active", "ranks", 8 }, { kind.name, kind.sees_bubble, kind.gpus })
    assert.near(0.6, kind.ranks[1].of_highest_fraction, 1e-9)
    assert.same({ 2, 1, 1 }, { kind.ranks[3].rank, kind.ranks[3].of_highest_fraction, kind.ranks[3].planned_fraction })
    assert.equal("nothing", found.counters[2].sees_bubble)
  end)

  it("alone leave it undecided, exit 0, and say what they can see", function()
    local status, out = monitor(prometheus(function() return 0.4 end))
    assert.equal(0, status)
    assert.matches("^UNDECIDED", out)
    assert.matches("tensor-active can only hold ranks against each other", out, 1, true)
    for _, text in ipairs { "index, utilization.gpu [%]\n0, 12 %\n", 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 12\n', "#Entity GRACT\nGPU 0 0.12\n" } do
      status, out = monitor(text)
      assert.equal(0, status)
      assert.matches("because +[%a%- ]+ cannot see a bubble", out)
    end
    assert.equal("weakly", object("#Entity SMACT\nGPU 0 0.12\n").counters[1].sees_bubble)
  end)

  it("that all have no value are nothing: exit 5", function()
    assert.equal(5, (monitor 'DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 9223372036854775794\n'))
    assert.equal(5, (monitor "#Entity SMACT\nGPU 0 N/A\n"))
    assert.equal(5, (monitor "index, utilization.gpu [%]\n0, [N/A]\n"))
  end)

  -- MODEL_TFLOP/s is no percentage: 66.5 is none of utilisation
  it("are not what Megatron-Bridge calls GPU utilization", function()
    local parts = {}
    for i = 1, 100 do parts[i] = "Step Time : 27.2" .. i % 3 .. "s GPU utilization: 66.5MODEL_TFLOP/s/GPU\n" end
    local found = object(table.concat(parts))
    assert.same({ "keep", 0, 90 }, { found.verdict, #found.counters, found.measured.steps })
    assert.matches("counted in order", found.warnings[1], 1, true)
  end)
end)

describe("the command line", function()
  local log = files.write("x.log", healthy)

  it("that cannot be read is answered in one line, exit 2, with nothing on standard output", function()
    for arguments, words in pairs {
      [""] = "monitor: missing argument 'plan'", [plan] = "missing argument 'metrics'",
      [plan .. " no-such.log"] = "no-such.log: cannot be read: No such file or directory", ["no-such.json " .. log] = "no-such.json: cannot be read",
      [plan .. " ."] = ".: cannot be read", [log .. " " .. log] = "x.log:1:", [plan .. " - -"] = "standard input (-) can be read once only",
      ["- -"] = "standard input (-) can be read once only",
      [plan .. " " .. log .. " --input megatronn"] = "--input", [plan .. " " .. log .. " --steps 5"] = "--steps must be FIRST-LAST",
      [plan .. " " .. log .. " --steps 9-5"] = "--steps must be FIRST-LAST", [plan .. " " .. log .. " --steps 1-99999999"] = "at most 1000000 steps",
      [plan .. " " .. log .. " --steps 1-99999999999999999999"] = "--steps must be FIRST-LAST",
      [plan .. " " .. log .. " --min-steps 0"] = "--min-steps must be", [plan .. " " .. log .. " --stall-factor 1"] = "--stall-factor must be",
      [plan .. " " .. log .. " --format xml"] = "--format",
    } do
      local status, out, problem = run(arguments)
      assert.same({ 2, "" }, { status, out }, arguments .. problem)
      assert.matches(words, problem, 1, true)
      assert.equal(1, select(2, problem:gsub("\n", "")), problem)
    end
  end)

  it("may have the plan on standard input, and the answer in a file", function()
    local path = files.write("out.txt", "")
    local status, out = run("- " .. log .. " -o " .. path, monitoring.plan())
    assert.same({ 0, "" }, { status, out })
    assert.matches("^KEEP", assert(io.open(path)):read "a")
  end)

  it("takes what plan prints, and no plan that is none", function()
    local real = program.run "plan examples/specs/deepseek-v3.json --format json"
    local path = files.write("plan.json", real.stdout)
    assert.equal(0, (run(path .. " examples/monitor/healthy.log")))
    assert.equal(1, (run(path .. " examples/monitor/straggler.log")))
    local refused = files.write("plan.json", program.run("plan examples/specs/rules/too_deep.json --format json").stdout)
    local status, _, problem = run(refused .. " " .. log)
    assert.equal(2, status)
    assert.matches("status is rejected: there is no plan to hold a run against", problem, 1, true)
  end)

  -- its training.batch_ramp: 6.45 s a step at 3,072, 22.1 s at 15,360, which begins at step 19,414; 1.20 times that, the error of an
  -- estimate, is where it is given up: 7.74 s and 26.5 s
  it("takes the ramp that plan prints, and holds each step against its own batch", function()
    local path = files.write("plan.json", program.run("plan examples/specs/deepseek-v3-ramp.json --format json").stdout)
    local function lines(first, last, seconds, batch)
      return monitoring.log(first, last, seconds, 10, function(i, value) return monitoring.megatron(i, value, { batch = batch }) end)
    end
    local status, out = monitor(lines(10, 400, 6.452, 3072), nil, path)
    assert.equal(0, status)
    assert.matches("M 24 at the batch of 3,072: predicted 42 %, 6.45 s a step; roll back below 35 % (steps over 7.74 s)", (out:gsub("%s+", " ")),
                   1, true)
    status, out = monitor(lines(60010, 60400, 36, 15360), "--steps 60001-60400", path)
    assert.equal(1, status)
    assert.matches("^ROLL BACK · utilisation 37%.%d %%, threshold 51 %%", out)   -- 13.5 s over 36 s, and 0.5 % of jitter
    assert.matches("M 120 at the batch of 15,360: predicted 61.2 %, 22.1 s a step; roll back below 51 % (steps over 26.5 s)",
                   (out:gsub("%s+", " ")), 1, true)
  end)

  it("takes no plan whose schedule or fallback somebody damaged", function()
    for words, change in pairs {
      ["schedule: there is no schedule 'dualpip', did you mean 'dualpipe'?"] = function(o) o.schedule = "dualpip" end,
      ["rollback.fallback is nothing: expected an object, or null"] = function(o) o.rollback.fallback = nil end,
      ["rollback.fallback is 3: expected an object, or null"] = function(o) o.rollback.fallback = 3 end,
      ["rollback.fallback.schedule: there is no schedule '1f1'"] = function(o) o.rollback.fallback.schedule = "1f1" end,
      ["rollback.fallback.pipeline is nothing"] = function(o) o.rollback.fallback.pipeline = nil end,
    } do
      local damaged = json.decode(monitoring.plan())
      change(damaged)
      local status, out, problem = run(files.write("damaged.json", json.encode(damaged)) .. " " .. log)
      assert.same({ 2, "" }, { status, out })
      assert.matches(words, problem, 1, true)
    end
  end)

  it("gives the same bytes twice", function()
    for _, form in ipairs { "text", "json" } do
      local _, one = monitor(slow, "--format " .. form)
      local _, two = monitor(slow, "--format " .. form)
      assert.equal(one, two)
    end
  end)
end)

describe("a log of any size", function()
  it("is read in bounded memory", function()
    if (os.getenv "LD_PRELOAD" or ""):find("san", 1, true) then
      pending "a sanitizer takes all the address space there is"
    end
    local path = files.write("big.log", "")
    local handle = assert(io.open(path, "wb"))
    local lines = monitoring.log(101, 1100, 27.2)
    for _ = 1, 120 do handle:write(lines) end   -- 40 MB
    handle:write(healthy)
    handle:close()
    local arguments = "--version >/dev/null; ulimit -v 60000; '%s' monitor %s %s"   -- the program alone takes 30,000 KiB
    local result = program.run(arguments:format(os.getenv "PIPEPLAN", plan, path))
    assert.equal(0, result.status, result.stderr)
  end)
end)
