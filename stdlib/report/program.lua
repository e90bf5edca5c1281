-- SPDX-License-Identifier: Apache-2.0
-- program.lua: a plan's schedule as a program for PyTorch's pipelining runtime: its compute_only CSV, one rank a line.
--
-- F&B pairs are written as two actions, the F and then the B, each of which sends what it has as soon as it is done. PyTorch lowers a
-- pair as one unit, whose sends follow the whole of it (torch/distributed/pipelining/schedules.py, _add_send_recv), and runs F, then B:
-- as two actions its DualPipeV was 13 % faster at M 8 and 20 % at M 32, on 4 × H200. A pair stays one where something runs both at once:
-- a function registered for OVERLAP_F_B (_PipelineScheduleRuntime.register_custom_function), or a framework that overlaps by itself.
-- Both directions of DualPipe are no program of PyTorch's, and stay as they are.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local frameworks = require "pipeplan.catalog.frameworks"
local recipe = require "pipeplan.input.recipe"

local program = {}

-- Do its schedules come from a CSV?
local function runs_programs(framework)
  for _, entry in pairs(framework.schedules) do
    if entry.csv then return true end
  end
  return false
end

-- "split" or "overlapped", where the command line says neither.
local function pairs_of(plan, request)
  local framework = request.framework and frameworks.find(request.framework)
  if framework and not runs_programs(framework) then return "overlapped" end
  return engine.schedule.traits(plan.schedule).chains > 1 and "overlapped" or "split"
end

-- By stage and by name, what some schedules are planned from.
local function times_of(plan)
  local names, times = { F = "forward_seconds", I = "input_seconds", W = "weight_seconds" }, {}
  for kind, name in pairs(names) do
    times[kind] = {}
    for stage, seconds in ipairs(plan.stages) do times[kind][stage] = seconds[name] end
  end
  return times
end

local function hop_of(plan, request)
  local layout = {}
  for _, degree in ipairs { "tensor", "context", "expert", "expert_tensor", "data", "pipeline" } do
    layout[degree] = plan.parallelism[degree]
  end
  return engine.cost.hop { model = request.model.shape, layout = layout, training = recipe.training(request),
                           network = recipe.network(request) }
end

local function schedule_of(plan, request)
  local wanted = { kind = plan.schedule, ranks = plan.parallelism.pipeline, microbatches = plan.microbatches,
                   group = plan.microbatch_group_size, limit = plan.activation_limit_chunks }
  if not engine.schedule.traits(plan.schedule).virtual then wanted.virtual = plan.parallelism.virtual end
  if plan.schedule == "zb_auto" then
    local times = times_of(plan)
    wanted.F, wanted.I, wanted.W, wanted.p2p = times.F, times.I, times.W, hop_of(plan, request)
  end
  local schedule, rule = engine.schedule(wanted)
  if schedule then return schedule end
  if rule.id ~= "engine.too_many_actions" then error("a planned schedule cannot be built: " .. rule.message) end
  failure.usage("--format csv: %s; at most %s microbatches can be written", rule.message, format.integer(rule.nearest))
end

-- The program of a plan: an iterator over its lines; or nil, and why there is none. pairs: "split" or "overlapped"; nil: as the framework
-- asks for. O(actions).
function program.csv(plan, request, pairs_wanted)
  if plan.status ~= "planned" then
    return nil, string.format("%s: %s", plan.status, plan.reasons[1] and plan.reasons[1].message or "no plan")
  end
  if plan.schedule == "none" then return nil, "planned without a pipeline: there is no program to write" end
  local traits = engine.schedule.traits(plan.schedule)
  if pairs_wanted == "split" and traits.chains > 1 then
    failure.usage("--pairs split: the pairs of %s exchange messages together, and are no program of PyTorch's", plan.schedule)
  end
  local schedule, rank = schedule_of(plan, request), -1
  local split = (pairs_wanted or pairs_of(plan, request)) == "split"
  return function()
    rank = rank + 1
    if rank == plan.parallelism.pipeline then return nil end
    local line = schedule:csv(rank)
    return split and line:gsub("%((%w+);(%w+)%)OVERLAP_F_B", "%1,%2") or line
  end
end

return program
