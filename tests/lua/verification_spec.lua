-- SPDX-License-Identifier: Apache-2.0
-- schedule:verify, schedule:receive_buffers and engine.schedule.from_csv as Lua sees them: findings, where they are, the cycle of a deadlock.

require "pipeplan"
local engine = require "engine"

local read = require "read_file"

local function schedule_of(...) return assert(engine.schedule.from_csv(table.concat({ ... }, "\n") .. "\n")) end

describe("schedule:verify", function()
  it("accepts each kind", function()
    for _, kind in ipairs(engine.schedule.kinds) do
      local schedule = engine.schedule { kind = kind, ranks = 4, microbatches = 8 }
      assert.is_true(schedule:verify())
      assert.is_true(schedule:verify { buffers = schedule:receive_buffers() })
    end
  end)

  it("says what is wrong, and where", function()
    local verified, finding = schedule_of("0F0,0F1,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"):verify()
    assert.is_nil(verified)
    assert.same({ id = "engine.duplicate_action", field = "action", rank = 0, position = 3, action = "0F1",
                  message = "rank 0, action 3, 0F1: it was already run" }, finding)
    verified, finding = schedule_of("0F0,0F1,0B0,0B1", "1F0,1B0,1F1"):verify()
    assert.is_nil(verified)
    assert.same({ id = "engine.missing_action", field = "action", rank = 1,
                  message = "rank 1 never runs the backward of stage 1, microbatch 1" }, finding)
  end)

  it("shows the cycle of a deadlock", function()
    local _, finding = schedule_of("0F0,0B0,0F1,0B1", "1F0,1F1,1B0,1B1"):verify()
    assert.equal("engine.deadlock", finding.id)
    assert.same({ { rank = 0, position = 2, action = "0B0", of = 1, what = "1B0", sends = false },
                  { rank = 1, position = 2, action = "1F1", of = 0, what = "0F1", sends = false } }, finding.waits)
  end)

  it("knows where blocking p2p stops what asynchronous p2p does not", function()   -- derived in tests/unit/schedule_verify_test.c
    local schedule = schedule_of("0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3", "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3")
    assert.is_true(schedule:verify())
    local _, finding = schedule:verify { buffers = 1 }
    assert.equal("engine.blocking_deadlock", finding.id)
    assert.same({ rank = 0, position = 5, action = "0B0", of = 1, what = "0F3", sends = true }, finding.waits[1])
    assert.equal(2, schedule:receive_buffers())
    assert.is_true(schedule:verify { buffers = 2 })
  end)

  it("answers for the number of buffers of a program that never runs with the finding", function()
    local buffers, finding = schedule_of("0F0,0B0,0F1,0B1", "1F0,1F1,1B0,1B1"):receive_buffers()
    assert.is_nil(buffers)
    assert.equal("engine.deadlock", finding.id)
    assert.equal(2, #finding.waits)
  end)

  it("says which argument is wrong", function()
    local schedule = engine.schedule { kind = "1f1b", ranks = 2, microbatches = 2 }
    assert.error_matches(function() schedule:verify { buffers = 0 } end, "'buffers'")
    assert.error_matches(function() schedule:verify { p2p = "blocking" } end, "p2p")
    assert.error_matches(function() schedule:verify(true) end, "table")
  end)
end)

describe("engine.schedule.from_csv", function()
  it("reads what csv() writes", function()
    for _, kind in ipairs(engine.schedule.kinds) do
      for ranks = 1, 8 do
        for _, microbatches in ipairs { 1, 3, 2 * ranks, 4 * ranks + 2 } do
          local schedule = engine.schedule { kind = kind, ranks = ranks, microbatches = microbatches }
          if schedule then
            local text, info = schedule:csv(), schedule:info()
            local again = assert(engine.schedule.from_csv(text, { directions = info.chains }))
            assert.equal(text, again:csv())
            assert.is_true(again:verify())
            assert.same(schedule:peaks(), again:peaks())
            local times = { F = 3, I = 2, W = 1, FB = 5, p2p = 0.25 }
            assert.same(schedule:simulate(times), again:simulate(times))
            info.kind, info.group, info.limit = "csv", nil, nil   -- the order says nothing of the rule that made it,
            info.overlaps, info.split_backward = text:find("OVERLAP") ~= nil, text:find("W") ~= nil   -- but what it does
            assert.same(info, again:info())
          end
        end
      end
    end
  end)

  -- of the independent simulator (tests/data/schedule_times.txt); InterleavedZeroBubble: (P − 1)(F + I − W) + M·v·(F + I + W)
  local dumped = {
    { "DualPipeV_P4_M8", "dualpipev", 54 }, { "DualPipeV_P4_M32", "dualpipev", 198 },
    { "Interleaved1F1B_P4_M8", "interleaved_1f1b", 57 }, { "Interleaved1F1B_P4_M32", "interleaved_1f1b", 201 },
    { "ZBVZeroBubble_P4_M8", "zb_v", 51 }, { "ZBVZeroBubble_P4_M32", "zb_v", 195 },
    { "InterleavedZeroBubble_P4_M8", nil, 51 },
  }

  it("reads, verifies and simulates what PyTorch dumped", function()
    for _, case in ipairs(dumped) do
      local schedule = assert(engine.schedule.from_csv(read("tests/data/pytorch/" .. case[1] .. ".csv")))
      local microbatches = tonumber(case[1]:match("M(%d+)$"))
      assert.is_true(schedule:verify())
      assert.equal(case[3], schedule:simulate { F = 1, I = 1, W = 1 }.makespan, case[1])
      local info = schedule:info()
      assert.same({ 4, microbatches, 2, 8 }, { info.ranks, info.microbatches, info.virtual, info.stages })
      if case[2] then assert.equal(engine.schedule { kind = case[2], ranks = 4, microbatches = microbatches }:csv(), schedule:csv()) end
    end
  end)

  -- A second implementation in Python (receives posted in each channel's order, one message at a time) gives the same number.
  it("finds that PyTorch's interleaved zero bubble runs ahead of one receive buffer a stage", function()
    local schedule = assert(engine.schedule.from_csv(read("tests/data/pytorch/InterleavedZeroBubble_P4_M8.csv")))
    assert.equal(2, schedule:receive_buffers())
    assert.equal("engine.blocking_deadlock", select(2, schedule:verify { buffers = 1 }).id)
  end)

  it("says where a text is no schedule", function()
    local schedule, problem = engine.schedule.from_csv("0F0,0B0\n1F0,2BW3\n")
    assert.is_nil(schedule)
    assert.same({ id = "engine.csv_old_dialect", field = "csv", line = 2, column = 2,
                  message = "line 2, column 2, '2BW3': BW is the full backward of PyTorch's files of 2024: it is B now, and their B is I" },
                problem)
  end)

  it("says which argument is wrong", function()
    assert.error_matches(function() engine.schedule.from_csv(nil) end, "string")
    assert.error_matches(function() engine.schedule.from_csv("0F0,0B0", { directions = 3 }) end, "'directions' must be")
    assert.error_matches(function() engine.schedule.from_csv("0F0,0B0", { direction = 2 }) end, "did you mean 'directions'")
  end)

  it("is charged to a policy's budget", function()
    local host = assert(engine.host.open { fields = { "gpus" }, work = 1000000 })
    local statements = assert(host:run("rule.lua", "reject { id = 'x', when = function() "
      .. "for _ = 1, 300 do engine.schedule.from_csv('" .. engine.schedule { kind = "1f1b", ranks = 8, microbatches = 64 }:csv():gsub("\n", "\\n")
      .. "') end return true end }", false))
    host:refill()
    local result, problem = host:call(statements[1].argument.when[1], {})
    assert.is_nil(result)
    assert.equal("budget", problem.kind)
  end)
end)
