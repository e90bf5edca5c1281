-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan plan SPEC --measured PLAN.json[:N]=LOG`: logs of layouts that were run, what they choose and keep, and what is wrong with them.

require "pipeplan"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local monitoring = require "monitoring"
local planning = require "planning"
local program = require "program"

teardown(files.remove)

local date = " --date 2026-12-01"

local object = planning.merge(planning.mixtral, {
  model = os.getenv "PIPEPLAN_SOURCE" .. "/" .. planning.mixtral.model,
  training = { micro_batch_size = planning.none, recompute = planning.none, sharding = planning.none },
})
local spec = files.write("spec.json", json.encode(object))
local shortlist_text = program.run("plan " .. spec .. date .. " --shortlist 3 --format json").stdout
local shortlist, list = files.write("shortlist.json", shortlist_text), json.decode(shortlist_text, "plan").shortlist

-- Lines of iterations 1 … count as Megatron-LM prints them, of steps with that mean.
local function steps(seconds, count, change)
  local lines = {}
  for i = 1, count or 30 do
    local more = { batch = 1024 }
    if change then change(i, more) end
    lines[i] = monitoring.megatron(i, seconds * (1 + 0.002 * ((i * 7) % 5 - 2)) * (i < 3 and 3 or 1), more)
  end
  return table.concat(lines)
end

local place = files.write("run-1.log", ""):match "^(.*/)[^/]*$"   -- each in a folder of its own, so beside one of them
local function write_run(n, text)
  local path = place .. "run-" .. n .. ".log"
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
  return path
end

local function measure(arguments)
  return program.run("plan " .. spec .. date .. " " .. arguments)
end

-- What a single bad log is answered with.
local function problem(text, status)
  local log = write_run("bad", text)
  local result = measure("--measured " .. shortlist .. ":2=" .. log)
  assert.same({ status or 2, "" }, { result.status, result.stdout })
  return result.stderr, log
end

describe("measured runs", function()
  it("choose the fastest, beside what was predicted, and say what changes", function()
    for i, seconds in ipairs { 41, 37, 40 } do write_run(i, steps(seconds)) end
    local result = measure("--measured '" .. shortlist .. "=" .. place .. "run-%a.log' --format json")
    assert.same({ 0, "" }, { result.status, result.stderr })
    local plan = json.decode(result.stdout, "plan")
    local found = plan.measured
    assert.same({ 3, true }, { #found.runs, found.changed })
    for i, seconds in ipairs { 41, 37, 40 } do
      local run = found.runs[i]
      assert.near(seconds, run.measured_seconds, 1e-3)
      assert.is_true(run.low_seconds < seconds and run.high_seconds > seconds and run.steps == 20)
      assert.near(list[i].step_seconds, run.predicted_seconds, 1e-9)
      assert.near(seconds / list[i].step_seconds - 1, run.residual_fraction, 1e-4)
      assert.same({ i == 1, i == 2, i == 2 }, { run.planned, run.chosen, run.tie })
    end
    assert.same({ list[2].schedule, list[2].parallelism, list[2].recompute }, { plan.schedule, plan.parallelism, plan.recompute })
    assert.same({ list[1].schedule, list[1].step_seconds }, { found.before.schedule, found.before.step_seconds })
    local text = measure("--measured '" .. shortlist .. "=" .. place .. "run-%a.log'").stdout
    assert.matches("\nafter   [^\n]*: measured, it takes 9.76 %% less than the", text)
    for line in text:gmatch "[^\n]+" do assert.is_true(utf8.len(line) <= 100 or line:find " %-%-" ~= nil, line) end
    -- what planned it is in no spec: it is verified as the plan of the calibration that was kept
    local verified = program.run("plan --verify -", result.stdout)
    assert.same({ 2, "" }, { verified.status, verified.stdout })
    assert.matches("keep them (plan --measured … --keep FILE), plan with cluster.calibration FILE", verified.stderr, 1, true)
  end)

  it("say a tie, and leave the plan where it is", function()
    for i, seconds in ipairs { 40, 39.9, 44 } do write_run(i, steps(seconds)) end
    local text = measure("--measured " .. shortlist .. ":1=" .. place .. "run-1.log --measured " .. shortlist .. ":2=" .. place
                         .. "run-2.log," .. shortlist .. ":3=" .. place .. "run-3.log").stdout
    assert.matches("the plan, taken", text, 1, true)
    assert.matches("a tie with the fastest", text, 1, true)
    assert.matches("the same: the plan ties with the fastest that was measured, so it stays", text:gsub("\n +", " "), 1, true)
  end)

  it("pass over logs of an array that are not there, and take a plan without a shortlist as itself", function()
    os.remove(place .. "run-3.log")
    local found = json.decode(measure("--measured '" .. shortlist .. "=" .. place .. "run-%a.log' --format json").stdout, "plan").measured
    assert.equal(2, #found.runs)
    local own = files.write("own.json", program.run("plan " .. spec .. date .. " --format json").stdout)
    found = json.decode(measure("--measured " .. own .. "=" .. place .. "run-1.log --format json").stdout, "plan").measured
    assert.same({ true, true, false }, { found.runs[1].planned, found.runs[1].chosen, found.changed })
    assert.near(40 / list[1].step_seconds, found.factors.all, 1e-3)
  end)

  it("are read from torchtitan's logs too", function()
    local lines = {}
    for i = 1, 30 do lines[i] = monitoring.torchtitan(i, string.format("%.3f", 1024 * 4096 / (42 * list[2].gpus_used))) end
    local p = list[2].parallelism
    local head = string.format("[titan] - root - INFO - Building device mesh with parallelism: pp=%d, dp_replicate=1, dp_shard=%d, cp=1, tp=%d, ep=%d\n",
                               p.pipeline, p.data, p.tensor, p.expert)
    local log = write_run("titan", head .. table.concat(lines))
    local found = json.decode(measure("--measured " .. shortlist .. ":2=" .. log .. " --format json").stdout, "plan").measured
    assert.near(42, found.runs[1].measured_seconds, 1e-3)
  end)

  it("are kept beside those of the same layout in another split", function()
    local other = json.decode(shortlist_text, "plan")
    local layers = other.shortlist[1].layers_per_stage
    layers[1], layers[#layers] = layers[1] - 1, layers[#layers] + 1
    local kept, path = place .. "splits.json", files.write("split.json", json.encode(other))
    write_run(1, steps(41))
    for _, of in ipairs { shortlist, path } do
      local result = measure("--measured " .. of .. ":1=" .. place .. "run-1.log --keep " .. kept)
      assert.equal(0, result.status, result.stderr)
    end
    assert.equal(2, #json.read(kept).runs)
    -- of two splits one is the plan's, and the other takes 1 − 41/48 = 14.6 % less; what is named alike is told apart by its layers
    write_run(2, steps(48))
    local both = "--measured " .. shortlist .. ":1=" .. place .. "run-2.log --measured " .. path .. ":1=" .. place .. "run-1.log"
    both = both:gsub(" %-%-measured ", ",")
    local found = json.decode(measure(both .. " --format json").stdout, "plan").measured
    assert.same({ true, false, false, true }, { found.runs[1].planned, found.runs[1].chosen, found.runs[2].planned, found.runs[2].chosen })
    assert.same({ true, layers }, { found.changed, found.runs[2].layers_per_stage })
    assert.matches("measured, it takes 14.6 % less than the plan", found.why, 1, true)
    local text = measure(both).stdout:gsub("\n +", " ")
    assert.matches("\nafter [^\n]+, layers " .. table.concat(layers, " "), text)
    assert.matches("\nbefore [^\n]+, layers " .. table.concat(list[1].layers_per_stage, " "), text)
  end)

  it("are kept, together with earlier ones, as a calibration that plans with them", function()
    for i, seconds in ipairs { 41, 37 } do write_run(i, steps(seconds)) end
    local kept = place .. "site.json"
    assert.equal(0, measure("--measured " .. shortlist .. ":1=" .. place .. "run-1.log --keep " .. kept).status)
    local first = json.read(kept)
    assert.same({ "urn:pipeplan:calibration:1", 1 }, { first["$schema"], #first.runs })
    local result = measure("--measured " .. shortlist .. ":2=" .. place .. "run-2.log --keep " .. kept)
    assert.equal(0, result.status)
    local both = json.read(kept)
    assert.equal(2, #both.runs)
    assert.near(math.sqrt(41 / list[1].step_seconds * 37 / list[2].step_seconds), both.factors.all, 1e-3)   -- the geometric mean
    assert.equal(0, measure("--measured " .. shortlist .. ":2=" .. place .. "run-2.log --keep " .. kept).status)
    assert.equal(2, #json.read(kept).runs)   -- the same layout again: in place of the one before
    local plain, calibrated = json.decode(shortlist_text, "plan"), json.decode(measure("--calibration " .. kept .. " --format json").stdout, "plan")
    assert.near(both.factors.all * plain.step_seconds, calibrated.step_seconds, 1e-6)
    -- the same log under a spec that says something else by now is the same run; another log of that layout and job is none
    local own = measure("--tokens 3T --measured " .. shortlist .. ":2=" .. place .. "run-2.log --keep " .. kept)
    assert.equal(0, own.status, own.stderr)
    assert.equal(2, #json.read(kept).runs)
    -- against a calibration that holds already: told against it, kept without it
    local again = json.decode(measure("--calibration " .. kept .. " --measured " .. shortlist .. ":1=" .. place .. "run-1.log --format json").stdout,
                              "plan").measured
    assert.near(41 / (both.factors.all * list[1].step_seconds) - 1, again.runs[1].residual_fraction, 1e-4)
    assert.near(41 / list[1].step_seconds, again.factors.all, 1e-4)
  end)

  -- all × 1.2 makes every step 1.2 times as long, so what a change saves stays as it is
  it("give advice with the factors that they gave: each outcome as many times as long as computed, and as much saved", function()
    local dense = files.write("dense.json", json.encode {
      cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = { architecture = "dense", total = "34B", layers = 48 }, training = { tokens = "1T", global_batch_size = 256 } })
    local text = program.run("plan " .. dense .. date .. " --format json").stdout
    local own, lines = json.decode(text, "plan"), {}
    for i = 1, 30 do lines[i] = monitoring.megatron(i, 1.2 * own.step_seconds, { batch = 256 }) end
    local log = write_run("dense", table.concat(lines))
    local told = program.run("plan " .. dense .. date .. " --format json --measured " .. files.write("own.json", text) .. "=" .. log)
    assert.equal(0, told.status, told.stderr)
    local plan = json.decode(told.stdout, "plan")
    assert.near(1.2 * own.step_seconds, plan.step_seconds, 1e-3)
    local pinned = program.run("plan " .. dense .. date .. " --format json " .. plan.measured.options).stdout
    local computed, tried = json.decode(pinned, "plan").advice, 0
    assert.equal(#computed, #plan.advice)
    for i, each in ipairs(plan.advice) do
      assert.same(computed[i].changes, each.changes)
      assert.near(1.2 * computed[i].outcome.step_seconds, each.outcome.step_seconds, 1e-3)
      assert.near(computed[i].saved_fraction, each.saved_fraction, 1e-3)
      tried = tried + (each.id == "few_microbatches" and 1 or 0)
    end
    assert.is_true(tried > 0)
  end)
end)

describe("what is kept", function()
  it("can be read again, or is not written", function()
    write_run(1, steps(41))
    local kept = place .. "damaged.json"
    assert.equal(0, measure("--measured " .. shortlist .. ":1=" .. place .. "run-1.log --keep " .. kept).status)
    local damaged = json.read(kept)
    for i = 2, 1000 do damaged.runs[i] = json.decode(json.encode(damaged.runs[1]), "run") damaged.runs[i].layout = "another " .. i end
    local text = json.encode(damaged)
    local writing = assert(io.open(kept, "wb"))
    writing:write(text)
    writing:close()
    write_run(2, steps(37))
    local result = measure("--measured " .. shortlist .. ":2=" .. place .. "run-2.log --keep " .. kept)
    assert.same({ 2, "" }, { result.status, result.stdout })
    assert.matches("what would be kept: runs", result.stderr, 1, true)
    local handle = assert(io.open(kept))
    assert.equal(text, handle:read "a")
    handle:close()
  end)
end)

describe("a log that measures nothing", function()
  local seconds = list[2].step_seconds

  it("is named with its line", function()
    local stderr, log = problem(steps(seconds, 30, function(i, more) if i == 12 then more.nan = 1 end end))
    assert.matches(log .. ":12: iteration 12 has a loss that is not a number", stderr, 1, true)
    stderr = problem(steps(seconds, 30, function(i, more) if i == 7 then more.loss = "NaN" end end))
    assert.matches(":7: iteration 7 has a loss that is not a number", stderr, 1, true)
    stderr = problem("\n\r\n" .. steps(seconds, 30, function(_, more) more.batch = 512 end))
    assert.matches(":3: iteration 1 has a batch of 512: the plan's is 1,024", stderr, 1, true)
    stderr = problem(steps(seconds, 4) .. steps(seconds, 1):gsub("%(ms%): [%d.]+", "(ms): nan"))
    assert.matches(":5: a line of a step whose time or number is no number", stderr, 1, true)
  end)

  it("is told from one of this layout and this model by its list of arguments", function()
    local function listed(name, value) return string.format("  %s %s %s\n", name, string.rep(".", 48 - #name), value) end
    local p = list[2].parallelism
    local good = listed("tensor_model_parallel_size", p.tensor) .. listed("pipeline_model_parallel_size", p.pipeline) .. listed("num_layers", 32)
                 .. listed("num_experts", 8) .. listed("hidden_size", 4096) .. listed("virtual_pipeline_model_parallel_size", "None")
    local log = write_run("good", good .. steps(seconds))
    assert.equal(0, measure("--measured " .. shortlist .. ":2=" .. log).status)
    local stderr = problem(good .. listed("expert_model_parallel_size", 2) .. steps(seconds))
    local wanted = string.format(":7: expert_model_parallel_size is 2: %s:2 has %d, so this is the log of another layout", shortlist, p.expert)
    assert.matches(wanted, stderr, 1, true)
    assert.matches(":1: num_layers is 80: .* has 32, so this is the log of another model", (problem(listed("num_layers", 80) .. steps(seconds))))
    assert.matches(":1: tp is 16: ", (problem("Building device mesh with parallelism: tp=16\n" .. steps(seconds))), 1, true)
  end)

  -- NVIDIA/Megatron-LM megatron/training/training.py: newer ones stop the interval's timer while they evaluate, older ones do not
  it("is one with an evaluation between most of its lines, for their time may be in it; with a few of them it measures", function()
    local lines, few = {}, {}
    for i = 10, 200, 10 do
      lines[#lines + 1] = monitoring.megatron(i, 1.28 * seconds, { batch = 1024 })
      few[#few + 1] = monitoring.megatron(i, (i == 60 and 1.28 or 1) * seconds, { batch = 1024 })
      local mark = string.format(" validation loss at iteration %d | lm loss value: 2.3E+00 | lm loss PPL: 1.0E+01 |\n", i)
      lines[#lines + 1] = mark
      if i == 50 then few[#few + 1] = mark end
    end
    local stderr, log = problem(table.concat(lines))
    assert.equal("pipeplan: " .. log .. ": most lines have a checkpoint or an evaluation before them, so their time may be in what was measured: "
                 .. "log more often\n", stderr)
    local result = measure("--measured " .. shortlist .. ":2=" .. write_run("few", table.concat(few)) .. " --format json")
    assert.same({ 0, "" }, { result.status, result.stderr })
    assert.near(seconds, json.decode(result.stdout, "plan").measured.runs[1].measured_seconds, 0.01)
  end)

  -- pytorch/torchtune: tokens with a label; Lightning-AI/litgpt: the last microbatch alone
  it("is doubted in the words that monitor has for it", function()
    local lines = {}
    for i = 1, 30 do
      lines[i] = string.format("Step %d | loss:1.2 lr:2e-05 tokens_per_second_per_gpu:%.3f \n", i, 1024 * 4096 / (seconds * list[2].gpus_used))
    end
    local result = measure("--measured " .. shortlist .. ":2=" .. write_run("tune", table.concat(lines)))
    assert.equal(0, result.status)
    assert.matches("run-tune.log: torchtune counts tokens with a label alone", result.stderr, 1, true)
    -- 30 steps as predicted, then 20 that take half as long again
    local function line(i, s) return monitoring.megatron(i, s, { batch = 1024 }) end
    result = measure("--measured " .. shortlist .. ":2="
                     .. write_run("slowed", monitoring.log(1, 30, seconds, 1, line) .. monitoring.log(31, 50, 1.5 * seconds, 1, line)))
    assert.equal(0, result.status)
    assert.matches("run-slowed.log: steps became slower while it ran, by 50 % from the first quarter to the last, most of it after iteration 30: "
                   .. "a fault to find, not the schedule's doing", result.stderr, 1, true)
    assert.matches("no step in 1 lines: litgpt tells the time of a step's last microbatch alone",
                   (problem("Epoch 1 | iter 64 step 16 | loss train: 1.2, val: n/a | iter time: 450.12 ms (step) remaining time: 1:00:00\n", 5)), 1, true)
  end)

  it("may be too short, too far off, empty or not there", function()
    assert.matches(": 5 steps in 5 lines count behind the first 10: expected at least 10, in 3 lines or more", (problem(steps(seconds, 15))), 1, true)
    assert.matches(": 0 steps in 0 lines count behind the first 10", (problem(steps(seconds, 9))), 1, true)
    local sparse = monitoring.log(100, 300, seconds, 100, function(i, s) return monitoring.megatron(i, s, { batch = 1024 }) end)
    assert.matches(": 200 steps in 2 lines count behind the first 10: expected at least 10, in 3 lines or more", (problem(sparse)), 1, true)
    assert.matches("the log of another model, or of another layout", (problem(steps(4 * seconds))), 1, true)
    assert.matches("no step in 1 lines: expected a log of a kind that monitor reads (megatron, ", (problem("hello\n", 5)), 1, true)
    local result = measure("--measured " .. shortlist .. ":2=/nowhere.log")
    assert.same({ 2, "" }, { result.status, result.stdout })
  end)
end)

describe("a plan of measured runs", function()
  local log = write_run("fine", steps(list[1].step_seconds))

  it("has to be of the spec's job, and to have the layout that is named", function()
    local function bad(text, wanted, number)
      local result = measure("--measured " .. files.write("other.json", text) .. (number or "") .. "=" .. log)
      assert.same({ 2, "" }, { result.status, result.stdout })
      assert.matches(wanted, result.stderr, 1, true)
    end
    local function changed(path, value)
      local plan = json.decode(shortlist_text, "plan")
      local owner, name = plan, path
      for part, rest in path:gmatch "([^.]+)%.(.*)" do owner, name = owner[tonumber(part) or part], rest end
      owner[name] = value
      return json.encode(plan)
    end
    bad(changed("model.name", "another"), "model.name is another: the spec's is mixtral-8x7b, so that was another job")
    bad(changed("tokens_per_step", 8388608), "tokens_per_step is 8,388,608: the spec's is 4,194,304")
    bad(changed("status", "refused"), "status is refused: nothing of it was run")
    bad(shortlist_text, "there is no layout 9: its shortlist has 3", ":9")
    bad("{}", "this is no plan")
    bad(changed("parallelism.tensor", "8"), 'parallelism.tensor is "8": expected a whole number, at least 1')
    bad(changed("microbatches", 0), "microbatches is 0: expected a whole number, at least 1")
    bad(changed("micro_batch_size", 1.5), "micro_batch_size is 1.5: expected a whole number, at least 1")
    bad(changed("recompute", { 7 }), "recompute has 7")
    bad(changed("parallelism.tensor", 3), "its layout contradicts the spec")
  end)

  it("has a layout and a log of its own, however they are spelled", function()
    local one, other, link = write_run(1, steps(40)), write_run(2, steps(41)), place .. "link.log"
    assert(os.execute(string.format("ln -sf '%s' '%s'", one, link)))
    local function bad(first, second, wanted)
      local result = measure("--measured " .. first .. " --measured " .. second)
      assert.same({ 2, "" }, { result.status, result.stdout })
      assert.matches(wanted, result.stderr, 1, true)
    end
    local dotted = shortlist:gsub("[^/]*$", "./%0")
    for _, pair in ipairs { { shortlist, shortlist .. ":1" }, { shortlist .. ":2", dotted .. ":2" } } do
      bad(pair[1] .. "=" .. one, pair[2] .. "=" .. other,
          string.format("%s and %s are the same layout: one log to a layout", pair[1], pair[2]))
    end
    for _, again in ipairs { one, link } do
      bad(shortlist .. ":1=" .. one, shortlist .. ":2=" .. again,
          string.format("%s is given for %s:1 and for %s:2: a log is of one layout", again, shortlist, shortlist))
    end
  end)

  it("stands beside no other question", function()
    for arguments, words in pairs {
      ["--shortlist 4"] = "and --shortlist are two questions", ["--explain"] = "and --explain are two questions",
      ["--why pipeline=8"] = "and --why are two questions", ["--format csv"] = "is for --format text and json, not csv",
      ["--measured " .. shortlist .. ":1=" .. log] = "is given twice",
    } do
      local result = measure("--measured " .. shortlist .. ":1=" .. log .. " " .. arguments)
      assert.same({ 2, "" }, { result.status, result.stdout }, arguments)
      assert.matches(words, result.stderr, 1, true)
    end
    assert.matches("--keep is for --measured PLAN.json=LOG", measure("--keep x.json").stderr, 1, true)
    local nowhere = measure("--measured " .. shortlist .. ":1=x.log --keep -")
    assert.same({ 2, "" }, { nowhere.status, nowhere.stdout })
    assert.matches("--keep -: what runs say is kept in a file", nowhere.stderr, 1, true)
    assert.matches("takes one batch", program.run("plan examples/specs/deepseek-v3-ramp.json --measured " .. shortlist .. "=" .. log).stderr, 1, true)
  end)
end)
