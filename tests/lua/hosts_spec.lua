-- SPDX-License-Identifier: Apache-2.0
-- Hosts as a resource: a profile's host_ms, through `pipeplan simulate --profile` and through plans. What hosts do to a step is tested by hand
-- in tests/unit/runtime_test.c and against an independent simulator in simulator_spec.lua.

require "pipeplan"
local cjson = require "cjson"
local engine = require "engine"
local files = require "policy_files"
local planning = require "planning"
local program = require "program"
local read = require "read_file"

local anyway = require("pipeplan").policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-27" })

-- A profile of `count` stages: of the card F 8, I 8, W 7, B 14 ms; of the host, with experts, F 6, in which it waits, I 6, W `weight`, B 7.
local function profile(count, weight, changes)
  local out = { behind_ms = 50, message_bytes = 1e6, p2p = { { bytes = 1e6, us = 0.001 } }, stage = {} }
  for i = 1, count do
    out.stage[i] = { layers = 4, embedding = false, head = false, kind_ms = { F = 8, B = 14, I = 8, W = 7 },
                     host_ms = { F = 6, B = 7, I = 6, W = weight }, host_ms_behind = { F = 55, B = 7.5, I = 6.2, W = weight } }
  end
  for key, value in pairs(changes or {}) do out[key] = value end
  return out
end

local function simulate(arguments, made)
  local path = files.write("profile.json", cjson.encode(made))
  local result = program.run(string.format("simulate %s --profile '%s'", arguments, path))
  return result, path
end

local function near(expected, actual) assert.is_true(math.abs(actual / expected - 1) <= 1e-9, expected .. " expected, got " .. actual) end

describe("simulate with a profile's host times", function()
  -- by hand: a round F I W takes what the host takes for all three, 6 + 6 + 14, for it waits in F until the card is as far; tests/unit/runtime_test.c
  it("lets a card wait for its host, and says what it would take without", function()
    local result = simulate("zb_h1 --ranks 1 --microbatches 2 --runtime ideal --format json", profile(1, 14))
    local value = cjson.decode(result.stdout)
    near(52e-3, value.makespan_seconds)
    near(6e-3, value.host_wait_per_rank_seconds[1])
    near(46e-3, value.hosts_ahead_seconds)
    assert.equal(14e-3, value.times.host.W[1])
    assert.same({ true }, value.times.host.waits.F)
    assert.same({ false }, value.times.host.waits.W)
  end)

  it("names the rank that waits most, and what helps, on the page", function()
    local text = simulate("zb_h1 --ranks 1 --microbatches 2 --runtime ideal", profile(1, 14)).stdout:gsub("%s+", " ")
    assert.matches("hosts cards wait for their hosts, rank 0 most: 6 ms %(11.5 %% of the makespan%); with hosts that are always ahead the makespan is "
      .. "46 ms, 11.5 %% less", text)
    assert.matches("grouped product, CUDA graphs, a larger microbatch", text)
    assert.matches("hosts always ahead of their cards", (simulate("zb_h1 --ranks 1 --microbatches 2 --runtime ideal", profile(1, 7)).stdout:gsub("%s+", " ")))
  end)

  it("says nothing of hosts where the profile does not", function()
    local made = profile(1)
    for _, stage in ipairs(made.stage) do stage.host_ms, stage.host_ms_behind = nil, nil end
    local result = simulate("zb_h1 --ranks 1 --microbatches 2 --runtime ideal --format json", made)
    local value = cjson.decode(result.stdout)
    near(46e-3, value.makespan_seconds)
    assert.equal(cjson.null, value.host_wait_per_rank_seconds)
    assert.equal(cjson.null, value.hosts_ahead_seconds)
  end)

  -- Hot times have waits for hosts in them: where hosts are told apart and heat was looked for and not found, cards take what they take cold.
  it("takes cold times where hosts are known and cards were found not to heat up", function()
    local made = profile(1, 14, { heat = { curve = { { duty = 1, slow_down = 1 } } } })
    local stage = made.stage[1]
    stage.kind_ms_cold, stage.kind_ms = stage.kind_ms, nil
    stage.kind_ms_hot = { F = 8, B = 14, I = 9.5, W = 14 }
    near(52e-3, cjson.decode(simulate("zb_h1 --ranks 1 --microbatches 2 --runtime ideal --format json", made).stdout).makespan_seconds)
    made.heat = nil
    local value = cjson.decode(simulate("zb_h1 --ranks 1 --microbatches 2 --runtime ideal --format json", made).stdout)
    assert.equal(14e-3, value.times.W[1])
  end)

  it("refuses host times that are not whole, by name", function()
    local function refused(message, change)
      local made = profile(2, 14)
      change(made)
      local result, path = simulate("zb_h1 --ranks 2 --microbatches 2 --runtime ideal", made)
      assert.equal(2, result.status)
      assert.equal("", result.stdout)
      assert.is_truthy(result.stderr:find(path .. message, 1, true), result.stderr)
    end
    refused(": 1 of 2 stages have host_ms: expected it in all of them or in none", function(made)
      made.stage[1].host_ms, made.stage[1].host_ms_behind = nil, nil
    end)
    refused(": behind_ms is missing: for how long the card was busy when stage[0].host_ms_behind was measured", function(made) made.behind_ms = nil end)
    refused(": stage[0].host_ms has only one of I and W: expected both or neither", function(made) made.stage[1].host_ms.I = nil end)
    refused(": stage[1].host_ms.F is -1: expected", function(made) made.stage[2].host_ms.F = -1 end)
    refused(": stage[1].host_ms_behind without host_ms: expected both, or host_ms alone", function(made)
      for _, stage in ipairs(made.stage) do stage.host_ms = nil end
      made.stage[1].host_ms_behind = nil
    end)
  end)
end)

describe("a plan with a profile's host times", function()
  local shipped = cjson.decode(read "examples/specs/measured-4xH200.json")

  local function plan(schedule, weight, layout)
    local made = profile(4, weight or 1, { runtime = "ideal" })
    for _, stage in ipairs(made.stage) do
      if not weight then stage.host_ms = nil end
      stage.host_ms_behind = nil
    end
    local spec = planning.merge(shipped, { profile = files.write("profile.json", cjson.encode(made)) })
    return planning.plan(spec, { parallelism = layout or { schedule = schedule } }, anyway)
  end

  -- The same stages by schedule:simulate, which the tests above hold against values by hand.
  it("takes what its stages take behind their hosts, and says how long cards wait", function()
    for _, schedule in ipairs { "1f1b", "zb_h1" } do
      local made = plan(schedule, 30)
      local stages = assert(engine.schedule { kind = schedule, ranks = 4, microbatches = 32 })
      local times = { F = 8e-3, I = 8e-3, W = 7e-3, B = 14e-3, p2p = made.step.hop_seconds, host = { F = 6e-3, I = 6e-3, W = 30e-3, B = 7e-3 } }
      local expected = stages:simulate(times)
      local computed_ends = plan(schedule).step.pipeline_seconds - stages:simulate { F = 8e-3, I = 8e-3, W = 7e-3, B = 14e-3, p2p = times.p2p }.makespan
      assert.is_true(math.abs(made.step.pipeline_seconds - expected.makespan) <= math.abs(computed_ends) + 1e-9, schedule)
      assert.is_true(schedule == "1f1b" and made.profile.host_wait_seconds < 1e-3 or made.profile.host_wait_seconds > 0.2, schedule)
    end
  end)

  -- On a card that has nothing else to do B takes 19 ms, 4 beyond what card and host take: 1F1B behind it, by schedule:simulate again.
  it("takes what an action takes beyond both where its card waited for it", function()
    local profiled = profile(4, 6, { runtime = "ideal" })
    for _, stage in ipairs(profiled.stage) do
      stage.host_ms_behind, stage.host_ms = nil, { F = 9, B = 15, I = 9, W = 6 }
      stage.kind_ms_alone = { F = 9, B = 19, I = 9, W = 7 }
    end
    local function step(made)
      local spec = planning.merge(shipped, { profile = files.write("profile.json", cjson.encode(made)) })
      return planning.plan(spec, { parallelism = { schedule = "1f1b" } }, anyway).step
    end
    local found = step(profiled)
    for _, stage in ipairs(profiled.stage) do stage.kind_ms_alone = nil end
    local without = step(profiled).pipeline_seconds
    local stages = assert(engine.schedule { kind = "1f1b", ranks = 4, microbatches = 32 })
    local function simulated(beyond)
      return stages:simulate({ F = 8e-3, I = 8e-3, W = 7e-3, B = 14e-3, p2p = found.hop_seconds,
                               host = { F = 9e-3, I = 9e-3, W = 6e-3, B = 15e-3, beyond = { F = 0, I = 0, W = 0, B = beyond } } }).makespan
    end
    local expected = simulated(4e-3) - simulated(0)
    near(4e-3, expected)   -- of the last B: before it hosts are ahead
    assert.is_true(math.abs(found.pipeline_seconds - without - expected) <= 1e-6, found.pipeline_seconds - without .. " for " .. expected)
  end)

  it("says so among what it measured, and what it cannot see without them", function()
    local function measured(made)
      for _, each in ipairs(made.assumptions) do
        if each.field:find "profile" and tostring(each.value):find "hosts" then return each.why end
      end
    end
    assert.matches("host_ms; as many launches a layer in every layout", measured(plan("zb_h1", 11)))
    assert.matches("no host_ms: where a card waits for its host is not seen", measured(plan "zb_h1"))
  end)

  -- every microbatch by itself, F and B in turn: the host takes 6 + 40 where the card takes 22
  it("paces a layout without a pipeline by its hosts, too", function()
    local made = profile(4, 11, { runtime = "ideal" })
    for _, stage in ipairs(made.stage) do stage.host_ms_behind, stage.host_ms = nil, { F = 6, B = 40, I = 6, W = 11 } end
    local spec = planning.merge(shipped, { profile = files.write("profile.json", cjson.encode(made)) })
    for _, microbatches in ipairs { 8, 40 } do
      local alone = planning.plan(spec, { training = { global_batch_size = 4 * microbatches }, parallelism = { pipeline = 1, data = 4 } }, anyway)
      assert.is_true(alone.step.pipeline_seconds >= microbatches * 4 * 46e-3)
      assert.is_true(alone.step.pipeline_seconds <= microbatches * 4 * 46e-3 + 0.05)
    end
  end)
end)
