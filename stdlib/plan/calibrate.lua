-- SPDX-License-Identifier: Apache-2.0
-- calibrate.lua: a profile's own runs, simulated from its own stages: how far off the plan's model is on this machine.

local accuracy = require "pipeplan.catalog.accuracy"
local engine = require "engine"
local lists = require "pipeplan.base.lists"
local profile = require "pipeplan.input.profile"
local recipe = require "pipeplan.input.recipe"

local calibrate = {}

-- Seconds of each stage; I and W where one of them was measured, which a split schedule has.
local function times(read)
  local out = { F = {}, I = {}, W = {}, B = {} }
  for i, stage in ipairs(read.stages) do
    local input = stage.I or stage.W and stage.B - stage.W
    out.F[i], out.B[i] = stage.F, stage.B
    out.I[i] = input or stage.B
    out.W[i] = stage.W or input and stage.B - input or 0
  end
  out.host = read.stages[1].host and profile.host_lists(lists.column(read.stages, "host"))
  return out
end

-- Under the profile's runtime; of PyTorch's two the one that can run the schedule, else the ideal one on hot cards.
local function makespan(read, schedule, seconds)
  for _, name in ipairs(read.runtime == "torch-single" and { "torch-single", "torch-multi" } or { read.runtime }) do
    seconds.runtime, seconds.contention = name, read.contention
    seconds.heat = read.heat and profile.heat_at(read.heat, schedule:info().ranks)
    local made = schedule:simulate(seconds)
    if made then return made.makespan end
  end
  seconds.runtime, seconds.contention, seconds.heat = nil, nil, nil
  return schedule:simulate(seconds).makespan * (1 + (read.heat and read.heat.slope or 0))
end

-- Each run of the profile's `calibration` that its stages can run → { schedule, microbatches, measured_seconds, predicted_seconds,
-- error_fraction }.
function calibrate.of(request)
  local read, list = request.profile, {}
  local network, training = recipe.network(request), recipe.training(request)
  for _, run in ipairs(read.calibration) do
    local seconds = times(read)
    local layout = { tensor = read.layout.tensor, context = read.layout.context, expert = read.layout.expert,
                     expert_tensor = read.layout.expert_tensor, data = read.layout.data, pipeline = #read.stages }
    seconds.p2p = engine.cost.hop { model = request.model.shape, layout = layout, training = training, network = network }
    local predicted = makespan(read, engine.schedule(run.program), seconds) + (read.step_fixed_seconds or 0)
    list[#list + 1] = { schedule = run.schedule, microbatches = run.microbatches, measured_seconds = run.seconds,
                        predicted_seconds = predicted, error_fraction = predicted / run.seconds - 1 }
  end
  return list
end

-- What to expect of a plan's figures: where the profile holds runs of the planned schedule, how far these were from what is predicted of
-- them. Of the prediction, as the plan's time ± that share of it.
function calibrate.expected_error(runs, schedule)
  local worst, count = 0, 0
  for _, run in ipairs(runs or {}) do
    if run.schedule == schedule then
      worst, count = math.max(worst, math.abs(run.measured_seconds / run.predicted_seconds - 1)), count + 1
    end
  end
  if count == 0 then return accuracy end
  local out = lists.with(accuracy)
  out.time_fraction = worst
  out.source = string.format("time by the profile's own %s, memory %s", count == 1 and "run" or count .. " runs", accuracy.source)
  return out
end

return calibrate
