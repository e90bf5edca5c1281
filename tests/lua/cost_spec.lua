-- SPDX-License-Identifier: Apache-2.0
-- engine.cost: named arguments in, seconds out; the arithmetic is tested in tests/unit/cost_test.c and cost_step_test.c.

local engine = require("pipeplan") and require "engine"
local costs = require "lua.costs"

local function setting(change)
  local arguments = { model = costs.deepseek_v3(), layout = { data = 128, expert = 64, pipeline = 16 }, training = costs.bf16(),
                      device = costs.h100(), network = costs.network() }
  if change then change(arguments) end
  return arguments
end

local function stage(counts, change)
  local arguments = setting(change)
  arguments.stage = counts
  return engine.cost.stage(arguments)
end

local function near(expected, actual)
  assert.is_true(math.abs(actual - expected) <= 1e-9 * expected, string.format("expected %g, got %g", expected, actual))
end

describe("engine.cost.stage", function()
  it("adds up its blocks", function()
    local blocks = engine.cost.blocks(setting())
    local seconds = stage { moe = 3, dense = 1 }
    near(3 * (blocks.moe.forward + blocks.moe.alltoall_forward) + blocks.dense.forward, seconds.forward)
    near(seconds.input + seconds.weight, seconds.full)
    near(3 * blocks.moe.alltoall_backward, seconds.alltoall_backward)
  end)

  it("takes the plain all-to-all where no kernel hides it", function()
    local plain = stage({ moe = 1 }, function(a) a.device.hides_alltoall = false end)
    assert.is_true(plain.alltoall_forward > stage({ moe = 1 }).alltoall_forward)
  end)

  -- recompute is part of I
  it("pays full recompute in I", function()
    local none = stage { dense = 4 }
    local full = stage({ dense = 4 }, function(a) a.training.recompute = { full = true } end)
    near(none.input + none.forward, full.input)
    near(none.weight, full.weight)
  end)
end)

describe("engine.cost.pair", function()
  -- clamp(max(compute, all-to-all) + overhead, max(F, B), F + B)
  it("hides all-to-all behind compute, never under max(F, B), never over F + B", function()
    local seconds = { forward = 6, full = 9, alltoall_forward = 4, alltoall_backward = 5 }
    local device = costs.h100()
    device.overlap_overhead = 0
    assert.equal(9.0, engine.cost.pair { device = device, forward = seconds, backward = seconds })
    device.overlap_overhead = 2
    assert.equal(15.0, engine.cost.pair { device = device, forward = seconds, backward = seconds })
    device.hides_alltoall = false
    device.overlap_overhead = 0
    assert.equal(15.0, engine.cost.pair { device = device, forward = seconds, backward = seconds })
  end)
end)

describe("engine.cost.step and hop", function()
  it("cost what leaves the pipeline", function()
    local a = setting()
    local step = engine.cost.step { layout = a.layout, training = a.training, device = a.device, network = a.network,
                                    dense_parameters = 1e9, expert_parameters = 4e9, copies = 2 }
    for _, term in ipairs { "gradient_sync", "parameter_sync", "optimizer", "mirror" } do assert.is_true(step[term] > 0, term) end
    near(1e-5 + 2 * 4096 * 7168 / 45e9, engine.cost.hop { model = a.model, layout = a.layout, training = a.training, network = a.network })
  end)
end)

describe("wrong devices", function()
  it("are named", function()
    local function message(change)
      local _, problem = pcall(stage, { dense = 1 }, change)
      return tostring(problem)
    end
    assert.matches("device: 'gemm_efficiency' must be .*got 1.5", message(function(a) a.device.gemm_efficiency = 1.5 end))
    assert.matches("device: 'flops'.*got nothing", message(function(a) a.device.flops = nil end))
    assert.matches("device: .*'efficiency'", message(function(a) a.device.efficiency = 1 end))
  end)
end)
