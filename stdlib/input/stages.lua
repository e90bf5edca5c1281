-- SPDX-License-Identifier: Apache-2.0
-- stages.lua: how a spec divides layers over stages: a list of them, or in Megatron's words (megatron_stages.lua).

local stages = {}

-- The fields, each way in a list of its own: a list; a layout string; layers of the first and the last rank; ends that count as a layer.
stages.ways = {
  { "layers_per_stage" }, { "pipeline_model_parallel_layout" },
  { "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage" },
  { "account_for", "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split" },
}

-- The one way that was given: its first field; nil: none. Two are a contradiction.
local function way_of(given, complain)
  local first
  for i, way in ipairs(stages.ways) do
    for _, name in ipairs(way) do
      local at = given["parallelism." .. name]
      if at and at.value ~= false then
        if first and first.way ~= i then complain(at, "given beside %s, which says how layers are divided; leave one out", first.name) end
        first = first or { way = i, name = name, at = at }
      end
    end
  end
  return first
end

-- stages.of(request, given, complain): the layers of each stage, first to last; nil where the spec does not say. Fixes V where a layout
-- says it.
function stages.of(request, given, complain)
  local found = way_of(given, complain)
  local fixed = request.parallelism
  for _, way in ipairs(stages.ways) do
    for _, name in ipairs(way) do
      if name ~= "layers_per_stage" then fixed[name] = nil end
    end
  end
  if not found or found.way == 1 then return fixed.layers_per_stage end
  return require("pipeplan.input.megatron_stages").of(found, request, given, complain)
end

return stages
