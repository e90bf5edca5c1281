-- SPDX-License-Identifier: Apache-2.0
-- program.lua: the plan's schedule, action by action, as its step was simulated: for pictures and for the phases of a step. The search
-- keeps no program, so this one is built again, from the plan's own seconds; where it does not come to the plan's makespan nothing is
-- shown of it, and why is said.

local engine = require "engine"
local heat_at = require("pipeplan.input.profile").heat_at
local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"
local phases = require "pipeplan.base.phases"

local program = {}

program.most_actions = 400000   -- a quarter of a minute to draw

-- What the search itself simulates whole; beyond it, it takes a shorter program that stands for this one.
local function too_many(actions)
  return { why_not = string.format("%d actions are too many to draw", actions) }
end

-- Seconds of F&B by the stage that runs forward and the place on its rank of the one that runs backward.
local function pair_seconds(evaluation, device, info)
  local of_rank, out = {}, {}
  for i, rank in ipairs(info.placement) do
    of_rank[rank] = of_rank[rank] or {}
    table.insert(of_rank[rank], i)
  end
  local seconds, n = evaluation.stage_seconds, #evaluation.stage_seconds
  for i, rank in ipairs(info.placement) do
    out[i] = {}
    for slot, other in ipairs(of_rank[rank]) do
      out[i][slot] = engine.cost.pair { device = device, forward = seconds[(i - 1) % n + 1], backward = seconds[(other - 1) % n + 1] }
    end
  end
  return out
end

-- The seconds of each stage as schedule:simulate takes them: of DualPipe both directions have the same stages.
local function times_of(evaluation, known, info, kernel)
  local seconds, n = evaluation.stage_seconds, #evaluation.stage_seconds
  local times = { F = {}, I = {}, W = {}, B = {}, p2p = evaluation.hop_seconds, host = evaluation.stage_hosts, intervals_of = true }
  for i = 1, info.stages do
    local stage = seconds[(i - 1) % n + 1]
    times.F[i], times.I[i], times.W[i], times.B[i] = stage.forward, stage.input, stage.weight, stage.full
  end
  local device = measure.overlaps(evaluation.schedule) and measure.pair_device(known, evaluation, kernel)
  if device then times.FB = pair_seconds(evaluation, device, info) end
  return times
end

-- Every action `factor` times as long.
local function stretched(times, factor)
  local out = {}
  local function stretch(value)
    if type(value) == "number" then return value * factor end
    local list = {}
    for i, one in ipairs(value) do list[i] = stretch(one) end
    return list
  end
  for _, kind in ipairs { "F", "I", "W", "B", "FB" } do out[kind] = times[kind] and stretch(times[kind]) end
  return out
end

-- Simulated as the search does it: under the profile's runtime, of PyTorch's two the one that can run the schedule, else the ideal
-- one, on cards as hot as they get; on cards as fast as the profile has those of so many ranks.
local function simulated(schedule, times, profile, makespan)
  local tries, ranks = { {} }, schedule:info().ranks
  local speed = profile and profile.rank_speed
  if speed and #speed == ranks then times = lists.with(times, { rank_speed = speed }) end
  if profile and profile.runtime and profile.runtime ~= "ideal" then
    local names = profile.runtime == "torch-single" and { "torch-single", "torch-multi" } or { profile.runtime }
    tries = {}
    for _, name in ipairs(names) do
      for _, order in ipairs(name == "torch-multi" and { "overlapped", "in_turn", "split" } or { false }) do
        tries[#tries + 1] = { runtime = name, pairs = order or nil, contention = profile.contention,
                              heat = profile.heat and heat_at(profile.heat, ranks) }
      end
    end
    tries[#tries + 1] = stretched(times, 1 + (profile.heat and profile.heat.slope or 0))
  end
  for _, try in ipairs(tries) do
    local result = schedule:simulate(lists.with(times, try))
    if result and math.abs(result.makespan - makespan) <= 1e-9 * makespan then return result, try.runtime or "ideal" end
  end
end

local function request_of(evaluation, traits)
  local group = evaluation.group
  return {
    kind = evaluation.schedule, ranks = evaluation.pipeline, microbatches = evaluation.microbatches,
    virtual = traits.virtual == nil and evaluation.chunks or nil, limit = evaluation.limit,
    group = group and (group < evaluation.pipeline and "rounds" or group) or nil,
  }
end

-- program.of(evaluation, known, request, kernel) → a run as report/simulation.lua describes it, with `phases`; or { why_not }.
function program.of(evaluation, known, request, kernel)
  if evaluation.schedule == "none" then return { why_not = "without a pipeline there is nothing to draw" } end
  local traits = engine.schedule.traits(evaluation.schedule)
  local asked = request_of(evaluation, traits)
  local least = (traits.split_backward and 3 or 2) * evaluation.microbatches * evaluation.pipeline * evaluation.chunks
  if least > 2 * program.most_actions then return too_many(least) end
  local seconds, n, one = evaluation.stage_seconds, evaluation.pipeline, lists.with(asked)
  one.F, one.I, one.W, one.p2p = {}, {}, {}, evaluation.hop_seconds
  for i = 1, n do one.F[i], one.I[i], one.W[i] = seconds[i].forward, seconds[i].input, seconds[i].weight end
  if evaluation.schedule ~= "zb_auto" then one.F, one.I, one.W, one.p2p = nil, nil, nil, nil end
  local schedule = engine.schedule(one)
  if not schedule then return { why_not = "its program is not built here" } end
  local info = schedule:info()
  if info.actions > program.most_actions then return too_many(info.actions) end
  local result, runtime = simulated(schedule, times_of(evaluation, known, info, kernel), request.profile, evaluation.makespan_seconds)
  if not result then return { why_not = "built again, it does not come to the step that the search simulated" } end
  local pairs_run = traits.overlaps and runtime == "ideal"
  return {
    request = asked, schedule = schedule, info = info, traits = traits, result = result, runtime = { name = runtime }, times = {},
    phases = phases.of(schedule, info, result, pairs_run),
  }
end

return program
