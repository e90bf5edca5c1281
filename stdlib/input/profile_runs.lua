-- SPDX-License-Identifier: Apache-2.0
-- profile_runs.lua: the steps that a profile was held against (its `calibration`), and which of them its stages can run again.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local format = require "pipeplan.base.format"
local lists = require "pipeplan.base.lists"

local runs = {}

-- Runs by schedule, microbatches and seconds. Fails where a schedule is none.
function runs.of(raw, file)
  local list = {}
  for i, run in ipairs(raw.calibration or {}) do
    local schedule = run.schedule or "1f1b"
    if not lists.contains(engine.schedule.kinds, schedule) then
      failure.usage("%s: calibration[%d].schedule is %s: expected a schedule%s", file, i - 1, fields.show(schedule),
                    failure.suggestion(schedule, engine.schedule.kinds))
    end
    list[i] = { schedule = schedule, microbatches = run.microbatches, seconds = run.step_ms * 1e-3 }
  end
  return list
end

-- How many ranks the stages were measured on; nil where some do not say.
local function ranks_of(raw)
  local known, count = {}, 0
  for _, stage in ipairs(raw.stage) do
    if not stage.rank then return nil end
    if not known[stage.rank] then known[stage.rank], count = true, count + 1 end
  end
  return count
end

-- The program of a run over the stages, as engine.schedule takes it; nil and why they cannot run it. Where a schedule has any number of
-- stages a rank, the ranks that the stages name say which. temperature: which of their times are read.
local function program(raw, run, temperature)
  local traits, stages = engine.schedule.traits(run.schedule), #raw.stage
  local ranks = traits.virtual and stages // traits.virtual or ranks_of(raw)
  if not ranks then return nil, "on how many ranks is not known: stage[].rank says it" end
  local virtual = traits.virtual or stages // ranks
  if virtual * ranks ~= stages or virtual < (traits.virtual or 2) then
    return nil, string.format("it needs %s stages a rank, and the profile has %d%s", traits.virtual or "two or more", stages,
                              traits.virtual and "" or " on " .. ranks .. " ranks")
  end
  local wanted = { kind = run.schedule, ranks = ranks, microbatches = run.microbatches, virtual = virtual > 1 and virtual or nil }
  local good, illegal = engine.schedule.check(wanted)
  if not good then return nil, illegal.message end
  for _, stage in ipairs(traits.split_backward and raw.stage or {}) do
    if not (stage[temperature].I or stage[temperature].W) then return nil, "neither I nor W of its stages was measured" end
  end
  return wanted
end

-- The runs that the stages of a profile can run, each with its `program`; of the others a warning each is added to `warnings`.
function runs.on_stages(raw, temperature, file, warnings)
  local list = {}
  for i, run in ipairs(runs.of(raw, file)) do
    local why
    run.program, why = program(raw, run, temperature)
    if run.program then
      list[#list + 1] = run
    else
      table.insert(warnings, { id = "run_of_other_stages", severity = "warning",
                               message = string.format("%s: calibration[%d], %s at M %d, is held against nothing: %s", file:match "[^/]*$",
                                                       i - 1, format.schedule(run.schedule), run.microbatches, why) })
    end
  end
  return list
end

return runs
