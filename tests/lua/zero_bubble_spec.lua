-- SPDX-License-Identifier: Apache-2.0
-- Measured throughput of the zero-bubble paper, from simulated bubbles. The work of a rank does not depend on the schedule, so with bubble rate r
-- a step takes work / (1 − r), and one schedule's throughput is another's times (1 − r) / (1 − r of the other). Rates are of the longest
-- stage's time with hops, as the paper's; that the simulated ones are the paper's is tests/unit/simulate_test.c's subject.

require "pipeplan"
local engine = require "engine"
local models = require "oracles.zero_bubble"

-- Milliseconds of a step with the run's profiled times.
local function simulated(kind, model, run, microbatches, chunks)
  local schedule = engine.schedule { kind = kind, ranks = model.p, microbatches = microbatches, virtual = chunks }
  chunks = chunks or 1
  return schedule:simulate { F = model.F[run] / chunks, I = model.I[run] / chunks, W = model.W[run] / chunks, p2p = model.hop[run] }.makespan
end

-- Errors of predictions as fractions: their mean, least and greatest.
local function spread(errors)
  local sum, least, most = 0, math.huge, -math.huge
  for _, value in ipairs(errors) do
    sum, least, most = sum + value, math.min(least, value), math.max(most, value)
  end
  return { mean = sum / #errors, least = least, most = most }
end

local function each_run(predict)
  local errors = {}
  for _, model in ipairs(models) do
    for run, microbatches in ipairs(model.m) do errors[#errors + 1] = predict(model, run, microbatches) end
  end
  assert.equal(12, #errors)
  return spread(errors)
end

-- A prediction from the measured 1F1B: its throughput by the ratio of steps.
local function from_1f1b(name, kind, interleaved)
  return each_run(function(model, run, microbatches)
    local ratio = simulated("1f1b", model, run, microbatches) / simulated(kind, model, run, microbatches, interleaved and model.v or nil)
    return model.samples["1f1b"][run] * ratio / model.samples[name][run] - 1
  end)
end

local function within(low, value, high) assert.is_true(low <= value and value <= high, string.format("%+.4f is not in %+.4f … %+.4f", value, low, high)) end

-- The bands are those of an independent calculation with the paper's own rates: ZB-1p +1.3 % (−0.3 … +2.3), ZB-2p +3.2 % (+1.0 … +5.6),
-- interleaved +6.5 % (+4.5 … +8.6). Our interleaved schedule waits for every wrap-around message, the paper's script only for the first of a
-- group (its rates are 2 to 4 % lower), so its predictions come out 0.1 to 0.4 % lower than that.
describe("throughput measured by Qi et al.", function()
  it("of ZB-1p follows from that of 1F1B within −0.3 … +2.3 %", function()
    local found = from_1f1b("zb_1p", "zb_h1")
    within(-.0031, found.least, found.most)
    within(found.least, found.most, .0235)
    within(.0125, found.mean, .0135)
  end)

  it("of ZB-2p follows from that of 1F1B and the paper's rate within +1.0 … +5.6 %", function()
    local found = each_run(function(model, run, microbatches)
      local work = microbatches * (model.F[run] + model.I[run] + model.W[run])
      local step = work / (1 - model.zb_2p_rate[run])
      return model.samples["1f1b"][run] * simulated("1f1b", model, run, microbatches) / step / model.samples.zb_2p[run] - 1
    end)
    within(.0095, found.least, found.most)
    within(found.least, found.most, .0565)
    within(.0315, found.mean, .0335)
  end)

  it("of interleaved 1F1B is overrated by 4 to 9 %: what it loses is not in its bubble", function()
    local found = from_1f1b("interleaved", "interleaved_1f1b", true)
    within(.041, found.least, found.most)
    within(found.least, found.most, .0865)
    within(.0605, found.mean, .0655)
  end)

  it("of 1F1B itself is overrated by 4 to 8 % from profiled times alone", function()
    local found = each_run(function(model, run, microbatches)
      local second = simulated("1f1b", model, run, microbatches) / 1e3
      return microbatches * model.b / second / model.p / model.samples["1f1b"][run] - 1
    end)
    within(.035, found.least, found.most)
    within(found.least, found.most, .085)
  end)

  -- Section on fewer microbatches than ranks: (M + P − 1)(F + I) + W instead of (M + P − 1)(F + I + W). Profiled times of the first run; the
  -- measured numbers have two digits.
  it("of ZB-1p below P microbatches gains what is predicted, within 6 %", function()
    local cases = 0
    for _, model in ipairs(models) do
      for microbatches, measured in pairs(model.few) do
        local predicted = simulated("1f1b", model, 1, microbatches) / simulated("zb_h1", model, 1, microbatches)
        within(-.03, predicted / (measured[2] / measured[1]) - 1, .06)
        cases = cases + 1
      end
    end
    assert.equal(9, cases)
  end)
end)
