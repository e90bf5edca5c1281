-- SPDX-License-Identifier: Apache-2.0
-- `simulate --profile`: what it takes from a profile, against schedules of two ranks that are worked out by hand, and what is said of a
-- profile that does not fit the schedule. How well the predictions meet measured steps: compare_spec.lua.

require "pipeplan"
local cjson = require "cjson"
local program = require "program"

local function simulate(arguments, profile)
  local name = os.tmpname()
  local handle = assert(io.open(name, "wb"))
  handle:write(type(profile) == "table" and cjson.encode(profile) or profile)
  handle:close()
  local result = program.run("simulate " .. arguments .. " --profile " .. name)
  os.remove(name)
  result.stderr = result.stderr:gsub(name:gsub("%p", "%%%0"), "FILE")
  return result
end

local function value_of(arguments, profile)
  local result = simulate(arguments .. " --format json", profile)
  assert.equal(0, result.status, result.stderr)
  return cjson.decode(result.stdout)
end

local function near(expected, actual) assert.is_true(math.abs(actual - expected) < 1e-9, expected .. " is not " .. actual) end

-- `more` laid over a profile of two stages without I and W; a hop takes 0.5 ms.
local function two_stages(more)
  local profile = {
    stage = { { kind_ms = { F = 1, B = 2 } }, { kind_ms = { F = 2, B = 4 } } },
    p2p = { { bytes = 50, us = 400 }, { bytes = 150, us = 600 } }, message_bytes = 100,
  }
  for name, value in pairs(more or {}) do profile[name] = value end
  return profile
end

local function split_stages()
  return two_stages { stage = { { kind_ms = { F = 1, B = 2, I = 1 } }, { kind_ms = { F = 1, B = 2, W = 1 } } } }
end

local two = "1f1b --ranks 2 --microbatches 2"   -- rank 0: F0 F1 B0 B1, rank 1: F0 B0 F1 B1

describe("a profile", function()
  -- rank 1 works from 1.5, when F0 has come, to 13.5 with a hop in between; rank 0's B1 14–16: as in times_spec.lua
  it("gives the times of each stage, and of a hop by the bytes of a message", function()
    local value = value_of(two, two_stages())
    near(16e-3, value.makespan_seconds)
    near(0.5e-3, value.times.p2p)
    near(16e-3, value.step_seconds)
    near(15e-3, value_of(two .. " --p2p 0", two_stages()).makespan_seconds)
    assert.is_false(value.closed_form.exact)
  end)

  it("takes no longer for a message than for a larger one, and says so", function()
    local profile = two_stages { p2p = { { bytes = 20, us = 600 }, { bytes = 40, us = 500 } } }
    near(0.5e-3, value_of(two, profile).times.p2p)
    near(16e-3, value_of(two, profile).makespan_seconds)
    local page = simulate(two, profile).stdout:gsub("%s+", " ")
    assert.matches("p2p takes 600 µs for 20 B and 500 µs for 40 B (scale_up): the shorter counts", page, 1, true)
    assert.matches("message_bytes is 100 B and the largest of p2p 40 B: the rest is extrapolated", page, 1, true)
    assert.is_nil(simulate(two, two_stages()).stdout:find("counts", 1, true))
  end)

  it("gives what a step takes beside the schedule", function()
    local value = value_of(two, two_stages { step_fixed_us = 1500 })
    near(16e-3, value.makespan_seconds)
    near(17.5e-3, value.step_seconds)
    assert.matches("; a step takes 17.5 ms with what", simulate(two, two_stages { step_fixed_us = 1500 }).stdout)
  end)

  it("gives of I and W what the other leaves of B, where a schedule splits it", function()
    local value = value_of("zb_h1 --ranks 2 --microbatches 2", split_stages())
    assert.same({ { 1e-3, 1e-3 }, { 1e-3, 1e-3 } }, { value.times.I, value.times.W })
    -- PyTorch's first stage has neither: its I is nothing and its W the whole backward (runtime.h)
    value = value_of("zb_h1 --ranks 2 --microbatches 2 --runtime torch-multi",
                     two_stages { stage = { { kind_ms = { F = 1, B = 2 } }, { kind_ms = { F = 1, B = 2, I = 1, W = 1 } } } })
    assert.same({ 0, 1e-3 }, value.times.I)
    assert.same({ 2e-3, 1e-3 }, value.times.W)
    -- elsewhere its layers take what those of the others take of their B: I 3 and W 2 of 4
    value = value_of("zb_h1 --ranks 2 --microbatches 2",
                     two_stages { stage = { { kind_ms = { F = 1, B = 2 } }, { kind_ms = { F = 1, B = 4, I = 3, W = 2 } } } })
    near(1.5e-3, value.times.I[1])
    near(1e-3, value.times.W[1])
  end)

  it("names the runtime, unless --runtime does, and heat and contention where that has them", function()
    local measured = { kind_ms_cold = { F = 1, B = 2 }, kind_ms_hot = { F = 1.1, B = 2.2 }, kind_ms_shadowed = { F = 1.2, B = 2.4 } }
    local profile = two_stages { runtime = "torch-single", stage = { measured, measured }, heat = { onset = 0.5, tau_ms = 30 } }
    local value = value_of(two, profile)
    assert.equal("torch-single", value.runtime)
    near(1e-3, value.times.F[1])
    near(0.1, value.times.heat.slope)
    near(0.03, value.times.heat.tau)
    near(1.2, value.times.contention)
    -- busy for 48 of 49 turns: of 10 % almost all counts after some time constants
    local long = "gpipe --ranks 2 --microbatches 48 --p2p 0"
    local cold, hot = { kind_ms = { F = 1, B = 2 } }, value_of(long, profile).makespan_seconds
    local least = value_of(long, two_stages { stage = { cold, cold } }).makespan_seconds
    near(49 * 3e-3, least)
    assert.is_true(hot > 1.08 * least and hot < 1.1 * least)
    value = value_of(two .. " --runtime ideal", profile)   -- hot, as a training step runs
    assert.equal("ideal", value.runtime)
    near(1.1e-3, value.times.F[1])
    assert.is_nil(value.times.heat)
  end)

  it("takes what a profile says of its card itself before what these stages' times come to", function()
    local measured = { kind_ms_cold = { F = 1, B = 2 }, kind_ms_hot = { F = 1.1, B = 2.2 }, kind_ms_shadowed = { F = 1.2, B = 2.4 } }
    local times = value_of(two, two_stages { runtime = "torch-single", stage = { measured, measured }, contention = 1.15,
                                             heat = { onset = 0.5, tau_ms = 30, slope = 0.16 } }).times
    near(0.16, times.heat.slope)
    near(1.15, times.contention)
  end)

  -- times_spec.lua works the pairs of DualPipe on two ranks out: with F&B 9 and 4 by the forward's stage the step is 13, with F + B 12
  it("gives the time of a pair, which only happens at once where pairs are overlapped", function()
    local stage = {}
    for i, pair in ipairs { 9, 4 } do stage[i] = { kind_ms = { F = 1, B = 2, I = 1, W = 1, FB = pair } } end
    near(13e-3, value_of("dualpipe --ranks 2 --microbatches 4 --p2p 0", two_stages { stage = stage }).makespan_seconds)
    local v = { stage[1], stage[2], stage[1], stage[2] }
    assert.is_table(value_of("dualpipev --ranks 2 --microbatches 4 --pairs overlapped --runtime torch-multi", two_stages { stage = v }).times.FB)
    for _, pairs in ipairs { "", "--pairs in_turn ", "--pairs split " } do
      assert.is_nil(value_of("dualpipev --ranks 2 --microbatches 4 --runtime torch-multi " .. pairs, two_stages { stage = v }).times.FB)
    end
  end)

  it("of one direction of DualPipe holds for the other, on the cards there", function()
    local stage = {}
    for i, F in ipairs { 1, 2 } do stage[i] = { kind_ms = { F = F, B = 2, I = 1, W = 1 } } end
    local arguments = "dualpipe --ranks 2 --microbatches 4 --p2p 0"
    assert.same({ 1e-3, 2e-3, 1e-3, 2e-3 }, value_of(arguments, two_stages { stage = stage }).times.F)
    -- rank 1's card is half as fast: there the first stage would take 2, the second on rank 0 1
    assert.same({ 1e-3, 2e-3, 2e-3, 1e-3 }, value_of(arguments, two_stages { stage = stage, rank_speed = { 1, 0.5 } }).times.F)
    local of_others = simulate(arguments, two_stages { stage = stage, rank_speed = { 1, 0.5, 1 } }).stdout:gsub("%s+", " ")
    assert.matches("ranks taken for equally fast, for its rank_speed is of 3", of_others, 1, true)
    local both = { stage[1], stage[2], stage[2], stage[2] }
    assert.same({ 1e-3, 2e-3, 2e-3, 2e-3 }, value_of(arguments, two_stages { stage = both, rank_speed = { 1, 0.5 } }).times.F)
  end)

  -- By the rules of pp_runtime_peaks (runtime_memory.c says which allocator peaks they are read off). 1F1B, rank 0: two microbatches, and 3
  -- more while B runs; a buffer of 100 for each microbatch's backward. Rank 1: one, and 3; buffers for forwards and outputs.
  it("gives peak memory where the runtime's is known", function()
    local memory = { act_bytes = 10, transient_bytes = 3, weights = { 1000, 2000 }, grads = 500 }
    local value = value_of(two .. " --runtime torch-single", two_stages { mem = memory })
    assert.same({ 2 * 10 + 3 + 2 * 100, 10 + 3 + 2 * 2 * 100 }, value.held_bytes)
    assert.same({ 1500 + 223, 2500 + 413 }, value.peak_bytes)
    assert.equal(cjson.null, value.peak_bytes_unknown)
    assert.same({ 20, 10 }, value.peak_activation_bytes)
    -- outputs that nobody keeps, and a forward that needs more than a backward
    memory.keeps_outputs, memory.transient_bytes = false, { F = 7, B = 3 }
    assert.same({ 2 * 10 + 7 + 2 * 100, 10 + 7 + 2 * 100 }, value_of(two .. " --runtime torch-single", two_stages { mem = memory }).held_bytes)
    memory.keeps_outputs, memory.transient_bytes = nil, 3
    memory.grads, memory.wgrad_pending_bytes = nil, 10
    value = value_of(two .. " --runtime torch-single", two_stages { mem = memory })
    assert.same({ 223, 413 }, value.held_bytes)
    assert.equal(cjson.null, value.peak_bytes)
    assert.equal("a stage has no mem.weights or no mem.grads", value.peak_bytes_unknown)
    -- DualPipe: a received activation, while its forward has a result of 10 and a gradient waits for the other half of the pair
    local both = two_stages { mem = memory, stage = split_stages().stage }
    for _, runtime in ipairs { "deepseek", "pipeplan" } do
      value = value_of("dualpipe --ranks 2 --microbatches 4 --runtime " .. runtime, both)
      assert.same({ 100 + 10 + 100, 100 + 10 + 100 }, value.held_bytes)
    end
    value = value_of("dualpipe --ranks 2 --microbatches 4 --runtime ideal", both)
    assert.equal(cjson.null, value.held_bytes)
  end)

  -- ZB-H1, rank 1: F0 I0 F1 I1 W0 W1. I frees nothing and adds 4 of gradients, and the 100 that it sends: 10, 114, 124, 228, 214, 200
  it("gives what is kept from I to W, beside what F stored", function()
    local stage = {}
    for i = 1, 2 do stage[i] = { kind_ms = { F = 1, B = 2, I = 1, W = 1 }, mem = { act_bytes = 10, wgrad_pending_bytes = 14 } } end
    local value = value_of("zb_h1 --ranks 2 --microbatches 2 --runtime torch-multi", two_stages { stage = stage })
    assert.equal(228 + 2 * 2 * 100, value.held_bytes[2])
    stage[1].mem.wgrad_pending_bytes, stage[2].mem.wgrad_pending_bytes = nil, nil
    value = value_of("zb_h1 --ranks 2 --microbatches 2 --runtime torch-multi", two_stages { stage = stage })
    assert.equal("stage[0] has no mem.wgrad_pending_bytes", value.peak_bytes_unknown)
  end)

  -- PyTorch's first stage has no I, and its W is its B. ZB-H1, rank 0: F0 F1 and then what they stored goes; it receives 2 gradients of 100
  it("of a first stage without I and W needs no bytes from I to W", function()
    local stage = { { kind_ms = { F = 1, B = 2 }, mem = { act_bytes = 10 } },
                    { kind_ms = { F = 1, B = 2, I = 1, W = 1 }, mem = { act_bytes = 10, wgrad_pending_bytes = 14 } } }
    local value = value_of("zb_h1 --ranks 2 --microbatches 2 --runtime torch-multi", two_stages { stage = stage })
    assert.equal(20 + 200, value.held_bytes[1])
  end)

  it("is read for a program from a file too", function()
    local csv = os.tmpname()
    local handle = assert(io.open(csv .. ".csv", "wb"))
    handle:write "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
    handle:close()
    near(16e-3, value_of(csv .. ".csv", two_stages()).makespan_seconds)
    os.remove(csv)
    os.remove(csv .. ".csv")
  end)

  it("that does not fit the schedule is answered in one line that says what was expected, exit 2", function()
    local one = { kind_ms = { F = 1, B = 2 } }
    for _, case in ipairs {
      { "1f1b --ranks 3 --microbatches 4", two_stages(), "FILE: stage has 2 entries: expected 3, one for each stage of 3 ranks with 1 chunk" },
      { "zb_v --ranks 2 --microbatches 4", two_stages(), "FILE: stage has 2 entries: expected 4, one for each stage of 2 ranks with 2 chunks each" },
      { "dualpipe --ranks 2 --microbatches 4", two_stages { stage = { one } },
        "FILE: stage has 1 entries: expected 2, one for each stage of 2 ranks with 1 chunk (or 4, both directions)" },
      { "zb_h1 --ranks 2 --microbatches 2", two_stages(),
        "FILE: stage[0].kind_ms has neither I nor W: expected both, for the schedule splits its backward" },
      { "zb_h1 --ranks 2 --microbatches 2", two_stages { stage = { { kind_ms = { F = 1, B = 2, I = 1 } }, one } },
        "FILE: stage[1].kind_ms has neither I nor W: expected both, for the schedule splits its backward" },
      { "zb_h1 --ranks 2 --microbatches 2", two_stages { stage = { { kind_ms = { F = 1, B = 2, I = 3 } }, one } },
        "FILE: stage[0].kind_ms.I is 3: expected at most B, which is 2" },
      { two, '{"stage": [{"kind_ms": {"F": 1, "B": 1}}, {"kind_ms": {"F": 1, "B": 1}}]}',
        "FILE: p2p is missing: messages between neighbours, measured, or say --p2p SECONDS" },
      { two, '{"stage": [{"kind_ms": {"F": 1, "B": 1}}, {"kind_ms": {"F": 1, "B": 1}}], "p2p": [{"bytes": 1, "us": 1}]}',
        "FILE: message_bytes is missing: bytes of one hand-over between stages, or say --p2p SECONDS" },
      { two, two_stages { calibration = { { schedule = "1f1", microbatches = 2, step_ms = 9 } } },
        "FILE: calibration[0].schedule is \"1f1\": expected a schedule, did you mean '1f1b'?" },
      { two, '{"stage": [{}, {}]}', "FILE: stage[0] has no times: expected kind_ms_hot, kind_ms or kind_ms_cold with F and B" },
      { two, '{"stage": 3}', "FILE: stage is 3: expected a list: the stages, first to last" },
      { two, "", "FILE: empty file, expected JSON" },
      { two .. " --times 1,1,1", two_stages(), "--times and --profile: expected one of them" },
      { "1f1b,gpipe --ranks 2 --microbatches 2", two_stages(),
        "several schedules: --profile has the stages of one; simulate them one by one" },
      { two .. " --pairs split", two_stages(), "--pairs split: the ideal runtime has no choice; say also --runtime torch-multi" },
      { two .. " --queues per_peer", two_stages(), "--queues per_peer: the ideal runtime has no choice; say also --runtime torch-multi" },
    } do
      local result = simulate(case[1], case[2])
      assert.equal("pipeplan: " .. case[3] .. "\n", result.stderr)
      assert.equal(2, result.status)
      assert.equal("", result.stdout)
    end
  end)

  it("of a schedule that its runtime cannot run is answered with the rule, exit 1", function()
    local result = simulate("dualpipe --ranks 2 --microbatches 4 --runtime torch-multi --format json",
                            two_stages { stage = { { kind_ms = { F = 1, B = 2, I = 1, W = 1 } }, { kind_ms = { F = 1, B = 2, I = 1, W = 1 } } } })
    assert.equal(1, result.status)
    assert.equal("engine.runtime", cjson.decode(result.stdout).finding.id)
  end)
end)

describe("--pairs split", function()
  -- tests/data/gpu/what_if_4xH200.json, 4 ranks, M 8: in the run as shipped F took 5.218, B 11.815, I 6.925 and W 5.22 ms, and the step
  -- 416.8; with each pair as two actions, and hotter, 5.492, 12.983, 7.007 and 5.232 ms, and the step 361.3
  it("takes the time that PyTorch's DualPipeV took with each pair as two actions", function()
    local function step(times, more)
      local file = os.tmpname() .. ".json"
      local handle = assert(io.open(file, "wb"))
      handle:write(cjson.encode(times))
      handle:close()
      local result = program.run("simulate dualpipev --ranks 4 --microbatches 8 --p2p 145us --runtime torch-multi --format json --times "
        .. file .. more)
      os.remove(file)
      return cjson.decode(result.stdout).makespan_seconds
    end
    local shipped = { F = "5.218ms", B = "11.815ms", I = "6.925ms", W = "5.22ms" }
    assert.near(0.4168, step(shipped, ""), 0.03 * 0.4168)
    assert.equal(step(shipped, ""), step(shipped, " --pairs in_turn"))
    assert.near(0.3613, step({ F = "5.492ms", B = "12.983ms", I = "7.007ms", W = "5.232ms" }, " --pairs split"), 0.03 * 0.3613)
  end)

  it("is refused by a runtime that posts the messages of a pair together", function()
    local result = program.run "simulate dualpipe --ranks 4 --microbatches 8 --runtime deepseek --pairs split"
    assert.equal(1, result.status)
    assert.equal("", result.stdout)
    assert.matches("deepseek posts the messages of a pair together", result.stderr)
  end)
end)

describe("--queues per_peer", function()
  -- measured: interleaved 1F1B lost more than 20 ms to 1F1B at M 8 (424.8 and 405.8 ms), where messages of one queue wait for each other
  it("takes from interleaved 1F1B what one queue costs", function()
    local command = "simulate interleaved_1f1b --ranks 4 --microbatches 8 --times 5.5ms,6.5ms,6.5ms --p2p 145us --runtime torch-multi --format json"
    local function value(more) return cjson.decode(program.run(command .. more).stdout) end
    assert.equal(value("").makespan_seconds, value(" --queues one").makespan_seconds)
    assert.is_true(value(" --queues per_peer").makespan_seconds < 0.93 * value("").makespan_seconds)
    assert.equal("per_peer", value(" --queues per_peer").queues)
  end)
end)
