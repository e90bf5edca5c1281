-- SPDX-License-Identifier: Apache-2.0
-- Programs whose ranks hold unequally many stages, as the Lua interface takes them: every runtime, verified, in bytes, and as CSV again.

require "pipeplan"
local engine = require "engine"

-- Stages 0, 1 and 4 on rank 0, 2 on rank 1, 3 on rank 2; one microbatch, so that each action waits for the one before.
local way = "0F0,1F0,4F0,4B0,1B0,0B0\n2F0,2B0\n3F0,3B0\n"

local runtimes = {}
for _, queues in ipairs { "one", "per_peer" } do
  for _, receives in ipairs { "before_use", "early" } do
    for _, pairing in ipairs { "in_turn", "split", "overlapped" } do
      runtimes[#runtimes + 1] = { runtime = "torch-multi", queues = queues, receives = receives, pairs = pairing }
    end
  end
end
runtimes[#runtimes + 1] = { runtime = "ideal" }

local function simulate(schedule, runtime, more)
  local arguments = { F = 1, I = 1, W = 1, p2p = 0.5 }
  for _, part in ipairs { runtime, more or {} } do
    for name, value in pairs(part) do arguments[name] = value end
  end
  return schedule:simulate(arguments)
end

describe("a program whose ranks hold unequally many stages", function()
  local schedule = assert(engine.schedule.from_csv(way))

  it("says how many there are", function()
    local info = schedule:info()
    assert.same({ 3, 5, 1, 10, 3 }, { info.ranks, info.stages, info.microbatches, info.actions, info.chunks_per_rank })
    assert.same({ 0, 0, 1, 2, 0 }, info.placement)
    assert.same({ 3, 1, 1 }, schedule:peaks().freed_at_w)
    assert.is_true(schedule:verify())
    assert.is_true(schedule:verify { buffers = 1 })
    assert.equal(1, schedule:receive_buffers())
    assert.equal(way, schedule:csv())
    assert.equal("2F0,2B0\n", schedule:csv(1))
  end)

  -- F 1 s and B 2 s of five stages, and six hops of half a second: 1 → 2 → 3 → 4 and back
  it("takes the way of its microbatch under every runtime", function()
    for _, runtime in ipairs(runtimes) do
      local result = assert(simulate(schedule, runtime, { intervals_of = true }))
      assert.equal(18, result.makespan)
      assert.same({ 9, 3, 3 }, result.busy)
      assert.same({ 9, 15, 15 }, result.idle)
      assert.same({ { start = 2.5, finish = 3.5 }, { start = 11.5, finish = 13.5 } }, result.intervals_of(1))
      assert.same({ { start = 5.5, finish = 6.5 } }, result.intervals_of(0, 3, 3))
    end
  end)

  it("takes times, speeds and bytes of each stage where it is", function()
    for _, runtime in ipairs(runtimes) do
      -- B of stage s takes 2 (s + 1); F one; hops none: 5 + 2 × 15
      local result = assert(simulate(schedule, runtime, { B = { 2, 4, 6, 8, 10 }, p2p = 0, bytes = { stored = { 1, 2, 4, 8, 16 } } }))
      assert.equal(35, result.makespan)
      assert.same({ 3 + 2 + 4 + 10, 1 + 6, 1 + 8 }, result.busy)
      assert.same({ 1 + 2 + 16, 4, 8 }, result.peak_bytes.freed_at_w)
      -- rank 1 at half the speed: 3 s more
      assert.equal(18, assert(simulate(schedule, runtime, { p2p = 0, rank_speed = { 1, 0.5, 1 } })).makespan)
    end
  end)

  it("is not run by runtimes of one schedule", function()
    for _, name in ipairs { "torch-single", "deepseek", "pipeplan", "megatron" } do
      local result, rule = simulate(schedule, { runtime = name })
      assert.is_nil(result)
      assert.equal("engine.runtime", rule.id)
    end
  end)

  it("wants as many numbers as it has stages", function()
    assert.error_matches(function() simulate(schedule, {}, { F = { 1, 1, 1 } }) end, "'F' must have 5 numbers, one per stage, got 3")
    assert.error_matches(function() simulate(schedule, {}, { rank_speed = { 1 } }) end, "'rank_speed' must have 3 numbers, one per rank, got 1")
  end)
end)

describe("a rank without a stage", function()
  it("is no rank", function()
    for _, text in ipairs { "0F0,1F0,1B0,0B0\n\n2F0,2B0\n", "0F0,0B0\n,,\n" } do
      local schedule, rule = engine.schedule.from_csv(text)
      assert.is_nil(schedule)
      assert.matches("line 2: no actions: each line is a rank's, which runs at least one stage", rule.message, 1, true)
    end
  end)
end)

describe("a program of one rank", function()
  -- without hops and without waiting: the work of the rank
  for text, makespan in pairs { ["0F0,0B0\n"] = 3, ["0F0,0F1,0B1,0B0\n"] = 6, ["0F0,1F0,2F0,2I0,1I0,0I0,2W0,1W0,0W0\n"] = 9 } do
    it("runs " .. text:gsub("\n", ""), function()
      local schedule = assert(engine.schedule.from_csv(text))
      assert.equal(text, schedule:csv())
      for _, runtime in ipairs(runtimes) do
        local result = assert(simulate(schedule, runtime))
        assert.same({ makespan, 0, 0 }, { result.makespan, result.bubble_fraction, result.idle[1] })
      end
    end)
  end
end)
