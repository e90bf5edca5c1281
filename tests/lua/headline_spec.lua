-- SPDX-License-Identifier: Apache-2.0
-- The headline, DeepSeek-V3 on 2,048 H800, against what is known of it from outside: the published GPU-hours, the schedule's law, and a
-- replay of the plan's schedule by a simulator of this file's own.

require "pipeplan"
local choose = require "pipeplan.plan.choose"
local engine = require "engine"
local facts = require "pipeplan.plan.facts"
local policy = require("pipeplan.policy.load").load { date = "2026-12-01" }
local spec = require "pipeplan.input.spec"

local request = spec.read { files = { "examples/specs/deepseek-v3.json" } }
local known = facts.of(request, policy)
local result = choose.choose { request = request, policy = policy, record = known.record, arguments = known.arguments }
local chosen = result.evaluation

-- When each action ends, by asking again and again which rank can go on: slow, and nothing like the engine's event simulation.
-- seconds(action) → its length; needs(action) → list of keys of actions that must have ended, each with the ranks' distance in hops.
local function replay(schedule, ranks, seconds, needs, hop)
  local ended, at, clock, busy, actions = {}, {}, {}, {}, {}
  for rank = 0, ranks - 1 do actions[rank], at[rank], clock[rank], busy[rank] = schedule:actions(rank), 1, 0, 0 end
  repeat
    local moved = false
    for rank = 0, ranks - 1 do
      local action = actions[rank][at[rank]]
      while action do
        local start, ready = clock[rank], true
        for _, need in ipairs(needs(action)) do
          local done = ended[need.key]
          if not done then ready = false break end
          start = math.max(start, done.time + (done.rank ~= rank and hop or 0))
        end
        if not ready then break end
        clock[rank] = start + seconds(action)
        busy[rank] = busy[rank] + seconds(action)
        for _, key in ipairs(action.keys) do ended[key] = { time = clock[rank], rank = rank } end
        at[rank], moved = at[rank] + 1, true
        action = actions[rank][at[rank]]
      end
    end
  until not moved
  local makespan, work = 0, 0
  for rank = 0, ranks - 1 do
    assert(at[rank] > #actions[rank], "the replay is stuck")
    makespan, work = math.max(makespan, clock[rank]), work + busy[rank]
  end
  return makespan, 1 - work / (ranks * makespan)
end

describe("the headline", function()
  it("is DualPipe with EP 64, an even P in 8 … 32, and fits 80 GB with activations and headroom printed", function()
    assert.equal("dualpipe", chosen.schedule)
    assert.equal(64, chosen.expert)
    assert.is_true(chosen.pipeline % 2 == 0 and chosen.pipeline >= 8 and chosen.pipeline <= 32)
    local page = require("pipeplan").policy({}, { date = "2026-12-01" }):plan { "examples/specs/deepseek-v3.json" }
    assert.are_not.equal("does_not_fit", page.memory.fit)
    for _, rank in ipairs(page.memory.ranks) do
      assert.is_true(rank.total_bytes + page.memory.headroom_bytes <= page.memory.device_bytes)
      assert.is_true(rank.activations_bytes > 0)
    end
  end)

  it("has the bubble that a replay of its schedule finds", function()
    local P, schedule = chosen.pipeline, assert(engine.schedule { kind = "dualpipe", ranks = chosen.pipeline, microbatches = chosen.microbatches })
    local stage_seconds, overhead = chosen.stage_seconds, known.arguments.device.overlap_overhead
    local function slice(stage) return stage_seconds[stage % P + 1] end
    -- F&B = clamp(max(compute, all-to-all) + overhead, max(F, B), F + B): the formula that was asked for, written out here once more
    local function pair(forward, backward)
      local alone = forward.forward + backward.full
      local alltoall = forward.alltoall_forward + backward.alltoall_backward
      if alltoall <= 0 then return alone end
      local both = math.max(alone - alltoall, alltoall) + overhead * (alone - alltoall)
      return math.min(math.max(both, forward.forward, backward.full), alone)
    end
    local function seconds(action)
      local of = slice(action.stage)
      if action.kind == "FB" then return pair(of, slice(action.stage_b)) end
      return ({ F = of.forward, B = of.full, I = of.input, W = of.weight })[action.kind]
    end
    local function key(kind, stage, microbatch) return kind .. stage .. ":" .. microbatch end
    -- stages P … 2P − 1 are the second direction: the first of a direction needs nothing, the last turns a forward into a backward
    local function forward_needs(stage, microbatch)
      return stage % P > 0 and { { key = key("F", stage - 1, microbatch) } } or {}
    end
    local function backward_needs(stage, microbatch)
      return { { key = stage % P < P - 1 and key("B", stage + 1, microbatch) or key("F", stage, microbatch) } }
    end
    local function needs(action)
      if action.kind == "F" then
        action.keys = { key("F", action.stage, action.microbatch) }
        return forward_needs(action.stage, action.microbatch)
      elseif action.kind == "W" then
        action.keys = {}
        return {}
      elseif action.kind == "FB" then
        action.keys = { key("F", action.stage, action.microbatch), key("B", action.stage_b, action.microbatch_b) }
        local all = forward_needs(action.stage, action.microbatch)
        all[#all + 1] = backward_needs(action.stage_b, action.microbatch_b)[1]
        return all
      end
      action.keys = { key("B", action.stage, action.microbatch) }
      return backward_needs(action.stage, action.microbatch)
    end
    local makespan, bubble = replay(schedule, P, seconds, needs, chosen.hop_seconds)
    assert.near(makespan, chosen.makespan_seconds, 1e-9 * makespan)
    assert.near(bubble, chosen.bubble_fraction, 1e-9)
  end)

  -- facts on DualPipe's time: with F ≥ I (F = I included) idle of the worst rank is (P/2 − 1)(F&B + F − 2W); with I > F it lies between that
  -- and (P/2 − 1)(F&B + I − 2W), whose upper end is the README's (PP/2 − 1)(F&B + B − 3W). deepseek-ai/DualPipe README; derived
  it("obeys the schedule's law with its own mean stage: exactly when F = I, inside the interval otherwise", function()
    local P, M, F, I, W = chosen.pipeline, chosen.microbatches, 0, 0, 0
    for _, stage in ipairs(chosen.stage_seconds) do
      F, I, W = F + stage.forward / P, I + stage.input / P, W + stage.weight / P
    end
    assert.is_true(W <= math.min(F, I))
    local schedule = assert(engine.schedule { kind = "dualpipe", ranks = P, microbatches = M })
    local FB = 0.85 * (F + I + W)
    local equal = schedule:simulate { F = F, I = F, W = W, FB = 0.85 * (2 * F + W) }
    local law = (P / 2 - 1) * (0.85 * (2 * F + W) + F - 2 * W)
    assert.near(law, equal.max_idle, 1e-9 * law)
    local own = schedule:simulate { F = F, I = I, W = W, FB = FB }
    local low, high = (P / 2 - 1) * (FB + F - 2 * W), (P / 2 - 1) * (FB + math.max(F, I) - 2 * W)
    assert.is_true(own.max_idle >= low * (1 - 1e-9) and own.max_idle <= high * (1 + 1e-9))
  end)

  -- DeepSeek-V3 report, table 1: 2,664 K H800 GPU-hours of pre-training for 14.8 T tokens. Efficiencies are calibrated on other rows.
  it("predicts the published GPU-hours within a factor 1.33", function()
    local steps = 14.8e12 / (15360 * 4096)
    local hours = steps * chosen.step_seconds * 2048 / 3600
    assert.is_true(hours / 2.664e6 < 1.33 and 2.664e6 / hours < 1.33, ("%.3g GPU-hours"):format(hours))
  end)
end)
