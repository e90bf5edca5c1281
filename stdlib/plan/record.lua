-- SPDX-License-Identifier: Apache-2.0
-- record.lua: all fields of an outcome, for rules and messages that read them.

local accuracy = require "pipeplan.catalog.accuracy"
local lists = require "pipeplan.base.lists"

local record = {}

-- Of the ranks of a plan what rules ask of any or of every one of them: the least and the most.
local function of_ranks(out, evaluation)
  local function note(name, value)
    local least, most = "least_rank_" .. name, "most_rank_" .. name
    out[least] = math.min(out[least] or value, value)
    if name ~= "bytes" then out[most] = math.max(out[most] or value, value) end
  end
  local idle, split = evaluation.idle_per_rank_seconds or {}, evaluation.layers_per_stage
  for i, rank in ipairs(evaluation.memory) do
    local layers = 0
    for _, stage in ipairs(rank.stages) do layers = layers + split[(stage - 1) % #split + 1] end
    note("bytes", rank.total)
    note("layers", layers)
    note("stages", #rank.stages)
    if idle[i] then note("idle", idle[i] / evaluation.makespan_seconds) end
  end
end

-- known: fields of the request; fields: of the candidate that is planned or judged. finished: of a plan { evaluation, host = of host.of,
-- avoidable = fields of the best candidate without a pipeline, or nil }; nil where there is none.
function record.of(status, known, fields, finished)
  local out = lists.with(known, fields)
  out.status = status
  if not finished then return out end
  out.host_optimizer_bytes, out.host_memory = finished.host.optimizer_bytes, finished.host.memory_bytes
  local avoidable, evaluation = finished.avoidable, finished.evaluation
  if avoidable and evaluation.pipeline > 1 then
    out.pipeline_avoidable_error = accuracy.comparisons.pipeline
    out.avoidable_tensor_parallel, out.avoidable_sharding = avoidable.tensor_parallel, avoidable.sharding
  end
  of_ranks(out, evaluation)
  return out
end

return record
