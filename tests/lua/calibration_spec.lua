-- SPDX-License-Identifier: Apache-2.0
-- Factors of a site's calibration: what they multiply, exactly, and what is refused.

local planning = require "planning"  -- first: it loads the module
local engine = require "engine"
local files = require "policy_files"
local json = require "pipeplan.base.json"

teardown(files.remove)

local written = 0

-- The plan of a spec with these factors.
local function with(base, factors, changes)
  written = written + 1
  local file = files.write("calibration" .. written .. ".json", json.encode { accelerator = base.cluster.accelerator, factors = factors })
  return planning.plan(planning.merge(base, { cluster = { calibration = file } }), changes)
end

-- All degrees fixed, so that the plan stays the same one.
local fixed = planning.merge(planning.deepseek, { parallelism = { pipeline = 8, schedule = "dualpipev", context = 1, expert_tensor = 1 } })
local dense = planning.merge(planning.llama, { parallelism = { tensor = 8, pipeline = 4, context = 2, schedule = "1f1b",
                                                                 layers_per_stage = { 20, 20, 20, 20 } } })

describe("a calibration", function()
  it("of all makes every step and every part of it as many times as long, and nothing else", function()
    for _, base in ipairs { fixed, dense, planning.merge(planning.deepseek, {}),
                            planning.merge(planning.llama, { parallelism = { pipeline = 1 }, training = { sharding = "parameters" } }) } do
      local plain, slower = planning.plan(base), with(base, { all = 1.37 })
      assert.near(1.37 * plain.step_seconds, slower.step_seconds, 1e-9 * plain.step_seconds)
      assert.near(1.37 * plain.ideal_step_seconds, slower.ideal_step_seconds, 1e-9 * plain.step_seconds)
      assert.near(plain.bubble.fraction, slower.bubble.fraction, 1e-9)
      for i, rank in ipairs(plain.memory.ranks) do assert.equal(rank.total_bytes, slower.memory.ranks[i].total_bytes) end
      assert.same({ plain.schedule, plain.parallelism }, { slower.schedule, slower.parallelism })
    end
  end)

  it("of a family multiplies the seconds of that family alone", function()
    local plain = planning.plan(fixed)
    local expert = with(fixed, { expert = 1.5 })
    assert.near(1.5 * plain.communication.expert.seconds, expert.communication.expert.seconds, 1e-9)
    assert.near(plain.ideal_step_seconds, expert.ideal_step_seconds, 1e-12 * plain.ideal_step_seconds)   -- stages may be cut elsewhere
    assert.equal(plain.step.gradient_sync_seconds, expert.step.gradient_sync_seconds)
    local data = with(fixed, { data = 2 })
    assert.near(2 * plain.step.gradient_sync_seconds, data.step.gradient_sync_seconds, 1e-12)
    assert.near(2 * plain.step.parameter_sync_seconds, data.step.parameter_sync_seconds, 1e-12)
    assert.equal(plain.step.pipeline_seconds, data.step.pipeline_seconds)
    local pipeline = with(fixed, { pipeline = 3 })
    assert.near(3 * plain.hop_seconds, pipeline.hop_seconds, 1e-12)
    local own = planning.plan(dense)
    local tensor = with(dense, { tensor = 0.5 })
    assert.near(0.5 * own.communication.tensor.seconds, tensor.communication.tensor.seconds, 1e-9)
    assert.near(2 * own.communication.context.seconds, with(dense, { context = 2 }).communication.context.seconds, 1e-9)
    assert.near(1.2 * 2 * own.communication.context.seconds, with(dense, { all = 1.2, context = 2 }).communication.context.seconds, 1e-9)
  end)

  it("of compute leaves what is sent as it is", function()
    local own, slower = planning.plan(dense), with(dense, { compute = 2 })
    assert.near(own.communication.tensor.seconds, slower.communication.tensor.seconds, 1e-9)
    assert.near(2 * own.step.optimizer_seconds, slower.step.optimizer_seconds, 1e-12)
    assert.is_true(slower.step_seconds > 1.6 * own.step_seconds and slower.step_seconds < 2 * own.step_seconds)
  end)

  it("is named among what is assumed, and belongs to the spec's digest", function()
    local slower = with(fixed, { all = 1.1, expert = 1.5 })
    assert.equal("all × 1.1, expert × 1.5", planning.assumption(slower, "cluster.calibration").value)
    assert.is_true(slower.spec.digest ~= with(fixed, { all = 1.1 }).spec.digest)
  end)

  it("of another GPU, beside a profile, or that is none, is refused", function()
    local function problem(object, changes)
      local file = files.write("bad.json", type(object) == "string" and object or json.encode(object))
      local base = planning.merge(planning.merge(planning.llama, changes or {}), { cluster = { calibration = file } })
      local found = planning.problem(base)
      assert.equal(2, found.status)
      return found.message
    end
    assert.matches('accelerator is "B200": expected runs on the spec\'s, H100-SXM', problem { accelerator = "B200", factors = {} }, 1, true)
    assert.matches("factors.expert is 0: expected a number from 0.05 to 20", problem { accelerator = "H100-SXM", factors = { expert = 0 } }, 1, true)
    assert.matches("factors.experts is no field of such a file, did you mean 'expert'?",
                   problem { accelerator = "H100-SXM", factors = { experts = 1 } }, 1, true)
    local run = { name = "a.log", layout = "1F1B", measured_seconds = 301, predicted_seconds = 100, responses = {} }
    assert.matches("runs[0].measured_seconds is 301 where 100 were predicted: expected at most 3 times as much, and at least 1/3",
                   problem { accelerator = "H100-SXM", factors = {}, runs = { run } }, 1, true)
    assert.matches("$schema is urn:pipeplan:plan:1", problem { ["$schema"] = "urn:pipeplan:plan:1" }, 1, true)
  end)
end)

describe("the engine", function()
  it("takes no factor that is not positive, and none that it does not know", function()
    local network = { tiers = { { reach = 8, bandwidth = 1e11 } }, slower = { expert = 0 } }
    local function allgather() return engine.comm.allgather { network = network, size = 8, stride = 1, bytes = 1e6 } end
    assert.has_error(allgather)
    network.slower = { experts = 1 }
    assert.has_error(allgather)
    network.slower = { expert = 2 }
    assert.has_no.errors(allgather)
  end)
end)
