-- SPDX-License-Identifier: Apache-2.0
-- base/phases.lua: warm-up, steady state and cool-down, against orders of actions written out by hand.

require "pipeplan"
local engine = require "engine"
local phases = require "pipeplan.base.phases"

local function of(request, times, pairs_run)
  local schedule = assert(engine.schedule(request))
  times.intervals_of = true
  local result = assert(schedule:simulate(times))
  return phases.of(schedule, schedule:info(), result, pairs_run), result
end

describe("phases", function()
  -- Narayanan et al. 2104.04473, figure 4: with B = 2 F rank 0 begins its first backward when the first microbatch has gone down four ranks
  -- and come back over three, 4 + 3 × 2 = 10 s; its last forward stands before its 4 last backwards and the wait for each: it ends at
  -- 10 + 4 × (2 + 1) = 22 s, of 33 = (8 + 3) × 3.
  it("of 1F1B are those of the paper's figure", function()
    assert.same({ warm_up_seconds = 10, steady_seconds = 12, cool_down_seconds = 11, actions = 64 },
                (of({ kind = "1f1b", ranks = 4, microbatches = 8 }, { F = 1, I = 1, W = 1 })))
  end)

  -- all forwards first (Huang et al. 1811.06965): no rank has a forward left when the first backward begins
  it("of GPipe have nothing between them", function()
    local found, result = of({ kind = "gpipe", ranks = 4, microbatches = 8 }, { F = 1, I = 1, W = 1 })
    assert.equal(0, found.steady_seconds)
    assert.equal(result.makespan, found.warm_up_seconds + found.cool_down_seconds)
  end)

  it("are told by pairs where these run", function()
    local found, result = of({ kind = "dualpipe", ranks = 4, microbatches = 20 }, { F = 1, I = 1, W = 1, FB = 2 }, true)
    assert.is_true(found.steady_seconds > 0.4 * result.makespan)
    assert.near(result.makespan, found.warm_up_seconds + found.steady_seconds + found.cool_down_seconds, 1e-9)
  end)
end)
