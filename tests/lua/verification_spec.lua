-- schedule:verify as Lua sees it: the finding, where it is, and the cycle of a deadlock.

require "pipeplan"
local engine = require "engine"

describe("schedule:verify", function()
  -- tests/unit/schedule_verify_test.c says why these need receives posted ahead
  local sends_ahead = { looped_bfs = true, interleaved_zero_bubble = true, v_half = true, v_min = true }

  it("accepts each kind, whether sending blocks or not", function()
    for _, kind in ipairs(engine.schedule.kinds) do
      local schedule = engine.schedule { kind = kind, ranks = 4, microbatches = 8 }
      assert.is_true(schedule:verify())
      assert.is_true(schedule:verify { p2p = "asynchronous" })
      if not sends_ahead[kind] then assert.is_true(schedule:verify { p2p = "blocking" }) end
    end
  end)

  it("says which argument is wrong", function()
    local schedule = engine.schedule { kind = "1f1b", ranks = 2, microbatches = 2 }
    assert.error_matches(function() schedule:verify { p2p = "synchronous" } end, "'p2p'")
    assert.error_matches(function() schedule:verify { P2P = "blocking" } end, "P2P")
    assert.error_matches(function() schedule:verify(true) end, "table")
  end)
end)
