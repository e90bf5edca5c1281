-- SPDX-License-Identifier: Apache-2.0
-- schedule:simulate: what it takes beside four numbers, worked out by hand on two ranks; runtimes; what it refuses.

require "pipeplan"
local engine = require "engine"

local function schedule_of(kind, ranks, microbatches, virtual)
  return assert(engine.schedule { kind = kind, ranks = ranks, microbatches = microbatches, virtual = virtual })
end

local function arguments(more)
  local all = { F = 1, I = 1, W = 1 }
  for name, value in pairs(more or {}) do all[name] = value end
  return all
end

describe("schedule:simulate", function()
  local one = schedule_of("1f1b", 2, 2)

  -- Rank 1: F 2, B 3. Its second backward runs from 8 to 11; rank 0's own second backward follows.
  it("adds the work of embedding and head to the first and the last stage", function()
    assert.near(13, one:simulate(arguments { last_stage = { F = 1, I = 0.5, W = 0.5 } }).makespan, 1e-12)
    assert.near(13, one:simulate(arguments { last_stage = { F = 1, B = 1 } }).makespan, 1e-12)
    local both = one:simulate(arguments { first_stage = { F = 1 }, last_stage = { B = 3 } })
    assert.near(2 * (1 + 3), both.busy[1], 1e-12)
    assert.near(2 * (3 + 3), both.busy[2], 1e-12)
  end)

  -- Rank 1 at half speed: F 2, B 4, ends at 13.
  it("knows ranks of different speed", function()
    assert.near(15, one:simulate(arguments { rank_speed = { 1, 0.5 } }).makespan, 1e-12)
    assert.near(18, one:simulate(arguments { rank_speed = 0.5 }).makespan, 1e-12)
  end)

  -- (M + P − 1)(F + B) with F 1.5 and B 2.5.
  it("adds to each action what launching it takes", function()
    assert.near(12, one:simulate(arguments { launch = 0.5 }).makespan, 1e-12)
  end)

  it("takes a hop as latency, bandwidth and bytes", function()
    local seconds = one:simulate(arguments { p2p = 1 }).makespan
    assert.near(seconds, one:simulate(arguments { p2p = { latency = 0.5, bandwidth = 4, bytes = 2 } }).makespan, 1e-12)
  end)

  it("takes a pair's seconds by the stage that runs forward and the slot that runs backward", function()
    local schedule = schedule_of("dualpipev", 2, 4)
    local pairs_of = 0   -- forward of stage 0 beside backward of stage 3, which is in rank 0's second slot
    for _, action in ipairs(schedule:actions(0)) do
      if action.kind == "FB" and action.stage == 0 then
        assert.equal(3, action.stage_b)
        pairs_of = pairs_of + 1
      end
    end
    local flat = schedule:simulate(arguments { FB = 3 })
    local longer = schedule:simulate(arguments { FB = { { 3, 4 }, { 3, 3 }, { 3, 3 }, { 3, 3 } } })
    assert.near(flat.busy[1] + pairs_of, longer.busy[1], 1e-12)
    assert.near(flat.busy[2], longer.busy[2], 1e-12)
  end)

  -- Qi et al. 2024: ZB-H1's span exceeds the work by (P − 1)(F + I − W), ZB-H2's by (P − 1)(F + I − 2W); both idle (P − 1) F in the makespan.
  it("has the bubble of the zero-bubble papers beside the idle share", function()
    local h1 = schedule_of("zb_h1", 4, 8):simulate(arguments())
    local h2 = schedule_of("zb_h2", 4, 8):simulate(arguments())
    assert.near(3, h1.span_bubble, 1e-12)
    assert.near(3 / 27, h1.span_bubble_fraction, 1e-12)
    assert.near(0, h2.span_bubble, 1e-12)
    assert.near(3, h2.max_idle, 1e-12)
  end)

  -- 1F1B holds P − r microbatches; ZB-H1 holds P on every rank until W, P − r until I.
  it("has peak bytes of what stages store", function()
    local peaks = one:simulate(arguments { bytes = { stored = { 2, 3 } } }).peak_bytes
    assert.same({ freed_at_w = { 4, 3 }, freed_at_i = { 4, 3 } }, peaks)
    peaks = schedule_of("zb_h1", 4, 8):simulate(arguments { bytes = { stored = 10 } }).peak_bytes
    assert.same({ freed_at_w = { 40, 40, 40, 40 }, freed_at_i = { 40, 30, 20, 10 } }, peaks)
  end)

  it("says which pair is wrong", function()
    local schedule = schedule_of("dualpipev", 2, 4)
    local function says(value, text)
      local good, problem = pcall(schedule.simulate, schedule, arguments { FB = value })
      assert.is_false(good)
      assert.is_truthy(problem:find(text, 1, true), problem)
    end
    says({ { 3, 3 }, { 3 }, { 3, 3 }, { 3, 3 } }, "'FB' must have 2 numbers, one per slot, got 1")
    says({ { 3, 3 }, 3, { 3, 3 }, { 3, 3 } }, "'FB' of stage 1 must be a list")
    says({ { 3, 3 }, { 3, -1 }, { 3, 3 }, { 3, 3 } }, "'FB' of slot 1 must be a number from 0 to 1e30, got -1")
    says({ { 3, 3 }, { 3, 3 } }, "'FB' must have 4 numbers, one per stage, got 2")
  end)

  it("says which field is wrong, and what was expected", function()
    local function says(more, ...)
      local good, problem = pcall(one.simulate, one, arguments(more))
      assert.is_false(good)
      for _, text in ipairs { ... } do assert.is_truthy(problem:find(text, 1, true), problem) end
    end
    says({ F = -1 }, "'F'")
    says({ F = 0 / 0 }, "'F'")
    says({ F = { 1, 2, 3 } }, "'F' must have 2 numbers, one per stage, got 3")
    says({ F = { 1, -2 } }, "'F' of stage 1 must be a number from 0 to 1e30, got -2")
    says({ F = { 1, 0 / 0 } }, "'F' of stage 1")
    says({ F = { 1, "2" } }, "'F' of stage 1 must be a number, got string")
    says({ FB = { 1, 2, 3 } }, "'FB' must have 2 numbers")
    says({ rank_speed = { 1 } }, "'rank_speed' must have 2 numbers, one per rank, got 1")
    says({ rank_speed = { 1, 0 } }, "rank_speed of rank 1 must be 1e-06 … 1e+06, got 0")
    says({ rank_speed = 1e7 }, "rank_speed of rank 0 must be 1e-06 … 1e+06, got 1e+07")
    says({ launch = -1 }, "'launch'")
    says({ last_stage = { f = 1 } }, "last_stage", "F")
    says({ last_stage = 1 }, "'last_stage'")
    says({ p2p = { bandwidth = 0, bytes = 1 } }, "'bandwidth' must be bytes per second > 0")
    says({ F = 1e308 }, "'F' must be a number from 0 to 1e+30, got 1e+308")
    says({ F = { 1, 1e308 } }, "'F' of stage 1 must be a number from 0 to 1e30")
    says({ F = 5e-324 }, "F of stage 0 must be 0 or 1e-30 … 1e30 seconds, got 4.94066e-324")
    says({ I = 1e30, W = 1e30 }, "B of stage 0 must be 0 or 1e-30 … 1e30 seconds, got 2e+30")
    says({ p2p = 1e31 }, "p2p must be 0 or 1e-30 … 1e30 seconds, got 1e+31")
    says({ launch = 1e31 }, "launch must be 0 or 1e-30 … 1e30 seconds, got 1e+31")
    says({ first_stage = { F = 1e31 } }, "extra times of the first stage must be 0 or 1e-30 … 1e30 seconds")
    says({ bytes = { stored = 1e308 } }, "'stored' must be a number from 0 to 1e+30, got 1e+308")
    says({ runtime = "torch-single", contention = 1e25 }, "contention must be a factor of 1 … 1e+24, got 1e+25")
    says({ runtime = "torch-single", heat = { onset = 0, slope = 1e25, tau = 1 } }, "the slope of heat must be 0 … 1e+24, got 1e+25")
    says({ runtime = "torch-single", heat = { onset = 0, slope = 1, tau = 1e-31 } }, "tau of heat must be above 0")
    says({ p2p = { bytes = 1 } }, "'bandwidth'")
    says({ bytes = {} }, "'stored'")
    says({ bytes = { stored = { 1, 2, 3 } } }, "'stored' must have 2 numbers, one per stage, got 3")
    says({ runtime = "torch" }, "'runtime' must be ideal, torch-single, torch-multi, deepseek, pipeplan or megatron")
    says({ contention = 0.5 }, "'contention'")
    says({ contention = 1.2 }, "the ideal runtime has neither contention nor heat")
    says({ runtime = "torch-single", heat = { onset = 1, slope = 0.1, tau = 1 } }, "onset of heat")
    says({ runtime = "torch-single", heat = { onset = 0, slope = 0.1, tau = 0 } }, "tau of heat")
  end)
end)

describe("a runtime", function()
  it("changes when actions run, and says so for each", function()
    -- by hand, in tests/unit/runtime_test.c
    local result = schedule_of("1f1b", 2, 2):simulate(arguments { p2p = 0.5, runtime = "torch-single", intervals = true })
    assert.near(10.5, result.makespan, 1e-12)
    assert.near(5, result.intervals[2][3].start, 1e-12)
  end)

  it("that cannot run a schedule says which can", function()
    local result, illegal = schedule_of("zb_h1", 2, 2):simulate(arguments { runtime = "torch-single" })
    assert.is_nil(result)
    assert.equal("engine.runtime", illegal.id)
    assert.is_truthy(illegal.message:find("torch-multi", 1, true))
  end)

  it("writes what it issues as PyTorch does", function()
    -- _add_send_recv of PyTorch, followed by hand: both ranks gather the weights of two stages, then take turns
    local text = assert(schedule_of("1f1b", 2, 2):lowered { runtime = "torch-multi" })
    assert.equal("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n" ..
                 "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n", text)
  end)

  -- Splitting PyTorch's DualPipeV pairs on the same machine took the step from 1673 to 1330 ms (4 ranks, 32 microbatches).
  it("that sends the results of a pair together loses to one that splits it", function()
    local schedule = schedule_of("dualpipev", 4, 32)
    local times = { F = 5.5, I = 7.7, W = 5.4, runtime = "torch-multi" }
    local together = schedule:simulate(times).makespan
    times.pairs = "split"
    assert.is_true(schedule:simulate(times).makespan < 0.85 * together)
  end)

  -- On the machine the pairs were split by loading a CSV without them.
  it("takes a program from elsewhere, whose pairs may be written as two actions", function()
    local schedule = schedule_of("dualpipev", 4, 8)
    local program = assert(engine.schedule.from_csv((schedule:csv():gsub("%((%w+);(%w+)%)OVERLAP_F_B", "%1,%2")), { directions = 1 }))
    local times = { F = 5.5, I = 7.7, W = 5.4, p2p = 0.1, runtime = "torch-multi" }
    local single = program:simulate(times).makespan
    times.pairs = "split"
    assert.equal(single, schedule:simulate(times).makespan)
    local result, illegal = program:simulate { F = 1, I = 1, W = 1, runtime = "torch-single" }
    assert.is_nil(result)
    assert.equal("torch-single runs gpipe and 1f1b, not csv; torch-multi may", illegal.message)
    assert.equal("engine.runtime", select(2, program:simulate { F = 1, I = 1, W = 1, runtime = "deepseek" }).id)
  end)

  -- By hand, from the rules in engine/core/runtime_memory.c. 1F1B: two in flight and what a backward needs on rank 0, one on rank 1; buffers
  -- of M = 2 messages for each neighbour, and as many outputs on the last stage. ZB-H1's rank 1 runs F0 I0 F1 I1 W0 W1: both microbatches, the
  -- gradients and a sent gradient of both; its rank 0 F0 F1 I0 W0 I1 W1, whose I does nothing.
  it("holds buffers for all microbatches, and gradients from I to W", function()
    local bytes = { stored = 10, transient = 3, pending = 15, message = 1 }
    local function peaks(kind, runtime)
      return schedule_of(kind, 2, 2):simulate(arguments { runtime = runtime, bytes = bytes }).peak_bytes.runtime
    end
    assert.same({ 2 * 10 + 3 + 2, 10 + 3 + 2 + 2 }, peaks("1f1b", "torch-single"))
    assert.same({ 2 * 10 + 3 + 2, 2 * (10 + 5 + 1) + 2 + 2 }, peaks("zb_h1", "torch-multi"))
    -- a head's logits, 7, that I frees: rank 1 runs F0 I0 F1 I1 W0 W1 and holds most behind F1
    bytes.pending = { 15, 3 }
    assert.same({ 2 * 10 + 3 + 2, (3 + 1) + 10 + 2 + 2 }, peaks("zb_h1", "torch-multi"))
    bytes.pending = 15
    -- a forward needs 20 more when all is stored, on rank 1 beside one microbatch; no output is kept
    bytes.transient_forward, bytes.kept = 20, 0
    assert.same({ 2 * 10 + 20 + 2, 10 + 20 + 2 }, peaks("1f1b", "torch-single"))
    -- ZB-H1, rank 1: after I1 32 are held, of which W0 frees 15 when it ends; its I1 needs 7 beside them
    bytes.transient_forward, bytes.transient_weight = 0, 4
    assert.same({ 2 * 10 + 3 + 2, 32 + 4 + 2 }, peaks("zb_h1", "torch-multi"))
    bytes.transient_input = 7
    assert.same({ 2 * 10 + 3 + 2, 32 + 7 + 2 }, peaks("zb_h1", "torch-multi"))
  end)

  -- DualPipe, rank 0: 0F0 3F0 0F1 3B0 (3F1;0B0) 3B1 0I1 0W1; stage 0 begins one direction, stage 3 ends the other. A microbatch holds 9 of
  -- stage 0 and 10 of stage 3, which has received an activation; results of 1 leave. Held: 9, 19, 28, 18, in the pair 28 and 19, 9, 6, 0.
  -- The most: in the pair's forward 18, 10 stored, 1 received, 2 beside and the gradient of 1 that its backward waits with.
  it("holds what is still needed under the executor of examples/torch", function()
    local bytes = { stored = 10, deferred = 6, message = 1, transient_forward = 2, transient = 3, transient_input = 4, transient_weight = 5 }
    local result = schedule_of("dualpipe", 2, 4):simulate(arguments { runtime = "pipeplan", bytes = bytes })
    assert.same({ 32, 32 }, result.peak_bytes.runtime)
    bytes.transient_input = 30   -- while I runs: 9 before it, a gradient, and 30
    assert.same({ 40, 40 }, schedule_of("dualpipe", 2, 4):simulate(arguments { runtime = "pipeplan", bytes = bytes }).peak_bytes.runtime)
    -- a last stage, 1 or 3, receives no gradient: while 3B0 runs, the 28 before it and 40
    bytes.transient_input, bytes.transient = 4, { 3, 40, 3, 40 }
    assert.same({ 68, 68 }, schedule_of("dualpipe", 2, 4):simulate(arguments { runtime = "pipeplan", bytes = bytes }).peak_bytes.runtime)
    assert.equal(schedule_of("dualpipe", 2, 4):simulate(arguments { runtime = "deepseek" }).makespan, result.makespan)
  end)

  -- DualPipeV, rank 0: 0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1) (3F2;0B0) … A microbatch holds 9 of stage 0 and 10 of stage 3. Held before
  -- (3F2;0B0): four of stage 0's, 36; in its forward 10 more, a result and the gradient that its backward waits with.
  -- Rank 1, in its first pair: five of 10, a result that has not left, and a received gradient. Its W come last.
  it("keeps what stays after W under DeepSeek's package, if weights' gradients have a history", function()
    local bytes = { stored = 10, deferred = 6, message = 1 }
    local function peaks() return schedule_of("dualpipev", 2, 4):simulate(arguments { runtime = "deepseek", bytes = bytes }).peak_bytes.runtime end
    assert.same({ 36 + 10 + 2, 50 + 2 }, peaks())
    bytes.after_weight = 7   -- of 3W0
    assert.same({ 36 + 10 + 2 + 7, 50 + 2 }, peaks())
  end)
end)
