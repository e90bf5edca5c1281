-- SPDX-License-Identifier: Apache-2.0
-- megatron_stages.lua: layers of stages in Megatron's words: a layout string, layers of the first and the last rank, ends that count as a
-- layer. What is wrong with one is what Megatron says of it (catalog/frameworks/megatron_layers.lua).

local engine = require "engine"
local layers = require "pipeplan.catalog.frameworks.megatron_layers"

local stages = {}

local LAYOUT, FIRST, LAST = "pipeline_model_parallel_layout", "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"
local EMBEDDING, LOSS = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"

-- The value nearest to `wanted` for which problem(value) is nil, of 1 … most; or nil.
local function nearest(wanted, most, problem)
  for distance = 0, most do
    for _, value in ipairs { wanted - distance, wanted + distance } do
      if value >= 1 and value <= most and not problem(value) then return value end
    end
  end
end

local function shortened(text) return #text > 60 and text:sub(1, 57) .. "…" or text end

-- Of a layout string.
local function of_layout(f, at, fixed, complain)
  local list = layers.parse(f.layout)
  if #list == 1 or fixed.pipeline == 1 then
    complain(at, "%s: divides layers over a pipeline; expected several stages and no pipeline 1", shortened(f.layout))
  end
  local schedule = fixed.schedule
  if schedule and schedule ~= "none" and engine.schedule.traits(schedule).placement == "v" then
    complain(at, "%s: its stage k is on rank k mod pipeline, and schedule %s places chunks in a V; layers_per_stage says that",
             shortened(f.layout), schedule)
  end
  f.pipeline_parallel = fixed.pipeline or fixed.virtual and #list % fixed.virtual == 0 and #list // fixed.virtual or nil
  if f.pipeline_parallel and #list % f.pipeline_parallel ~= 0 then
    local legal = nearest(f.pipeline_parallel, #list, function(value) return #list % value ~= 0 end)
    complain(at, "%s: has %d stages, no multiple of pipeline %d; nearest: pipeline %d", shortened(f.layout), #list, f.pipeline_parallel,
             legal)
  end
  f.pipeline_parallel = f.pipeline_parallel or #list
  local problem = layers.layout_problem(f)
  if problem then
    local legal = layers.mended(f)
    complain(at, "%s: %s%s", shortened(f.layout), problem, legal and "; nearest: " .. legal or "")
  end
  local chunks = fixed.pipeline and #list // fixed.pipeline
  if chunks and chunks > 1 and not fixed.virtual then fixed.virtual = chunks end
end

-- Of the ranks' numbers. Each number's nearest legal value is the one with the other kept.
local function of_ends(f, given, complain)
  local problem = layers.problem(f)
  if not problem then return end
  for _, each in ipairs { { FIRST, "first_layers" }, { LAST, "last_layers" } } do
    local at, key = given["parallelism." .. each[1]], each[2]
    local kept = f[key]
    local legal = at and nearest(kept, f.layers, function(value)
      f[key] = value
      return layers.problem(f)
    end)
    f[key] = kept
    if legal then complain(at, "%d: %s; nearest: %d", kept, problem, legal) end
  end
  complain(given["parallelism." .. FIRST] or given["parallelism." .. LAST], "%d: %s", f.first_layers or f.last_layers, problem)
end

local function of_accounts(f, at, complain)
  if not layers.problem(f) then return end
  local count = f.pipeline_parallel * f.virtual
  local counted = f.layers + (f.account_embedding and 1 or 0) + (f.account_loss and 1 or 0)
  local best = 1
  for other = 2, counted do
    if counted % other == 0 and math.abs(other - count) < math.abs(best - count) then best = other end
  end
  complain(at, "%s: %d layers and what counts as one are %d, no multiple of pipeline × virtual = %d stages; nearest: %d stages",
           tostring(at.value), f.layers, counted, count, best)
end

-- Where a layout has MTP layers on a stage that has no loss, which the engine does not place so.
local function mtp_apart(list)
  for i, stage in ipairs(list) do
    if stage.m > 0 and i < #list then return i end
  end
end

-- found: { way, at }: the way of stages.lua that is given. → the layers of each stage, first to last.
function stages.of(found, request, given, complain)
  local fixed, shape = request.parallelism, request.model.shape
  local function value(name) return given["parallelism." .. name] and given["parallelism." .. name].value or nil end
  local f = { layers = request.model.layers, pipeline_parallel = fixed.pipeline, virtual = fixed.virtual or 1,
              mtp_layers = shape.mtp_layers or 0, layout = value(LAYOUT), first_layers = value(FIRST), last_layers = value(LAST) }
  if f.layout then
    of_layout(f, found.at, fixed, complain)
    local apart = mtp_apart(layers.parse(f.layout))
    if apart then
      table.insert(request.assumptions, { field = "MTP layers", value = "on the last stage",
                                          why = "counted there: the layout has them on stage " .. apart .. ", from 1" })
    end
    return layers.built(f)
  end
  if not fixed.pipeline or fixed.pipeline == 1 then
    complain(found.at, "%s: divides layers over a pipeline; expected pipeline too", tostring(found.at.value))
  end
  local ends = value "account_for"
  f.account_embedding = ends == "embedding" or ends == "both" or value(EMBEDDING)
  f.account_loss = ends == "loss" or ends == "both" or value(LOSS)
  if found.way == 3 then of_ends(f, given, complain) else of_accounts(f, found.at, complain) end
  return layers.built(f)
end

return stages
