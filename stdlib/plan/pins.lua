-- SPDX-License-Identifier: Apache-2.0
-- pins.lua: the changes over a spec that leave one candidate only: path → value, as the spec would say it.

local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"

local pins = {}

local function alike(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for key, value in pairs(a) do if b[key] ~= value then return false end end
  for key in pairs(b) do if a[key] == nil then return false end end
  return true
end

-- A setter of changes that leaves out what the spec says already; `checked` is the value as the reader has it.
local function changes_of(request)
  local changes = {}
  return changes, function(path, value, checked)
    local at = request.stated and request.stated[path]
    if checked == nil then checked = value end
    if value ~= nil and not (at and alike(at.value, checked)) then changes[path] = value end
  end
end

local function recompute_words(modules)
  local names = lists.sorted_keys(modules)
  return #names == 0 and "none" or modules.full and "full" or names
end

-- What makes one candidate the only one. fields: its row; modules: what it recomputes; layers: of each stage; batch: of a step. What the
-- spec says of M, of DP, of V and of a split has to follow the layout.
function pins.of(request, fields, modules, layers, batch)
  local changes, put = changes_of(request)
  local given = request.stated or {}
  local alone = fields.pipeline_parallel == 1
  local degrees = measure.parallelism_of_fields(fields)
  for _, name in ipairs { "tensor", "context", "pipeline" } do put("parallelism." .. name, degrees[name]) end
  if (request.model.shape.experts or 0) > 0 then
    put("parallelism.expert", degrees.expert)
    put("parallelism.expert_tensor", degrees.expert_tensor)
  end
  if not alone then
    put("parallelism.schedule", fields.schedule)
    put("parallelism.virtual", degrees.virtual)
  else
    if given["parallelism.schedule"] then put("parallelism.schedule", "none") end
    if given["parallelism.virtual"] then put("parallelism.virtual", 1) end
  end
  if given["parallelism.data"] then put("parallelism.data", degrees.data) end
  if given["parallelism.microbatches"] then put("parallelism.microbatches", fields.microbatches) end
  if given["parallelism.layers_per_stage"] then put("parallelism.layers_per_stage", layers) end
  -- assumed, it follows the microbatch size
  if not given["training.global_batch_size"] then put("training.global_batch_size", batch) end
  put("training.micro_batch_size", fields.micro_batch_size)
  put("training.recompute", recompute_words(modules), modules)
  if not given["training.zero"] then put("training.sharding", fields.sharding) end
  if fields.gpus_used < request.cluster.gpus then  -- so many and no fewer
    put("cluster.gpus", fields.gpus_used)
    put("parallelism.data", degrees.data)
  end
  return changes
end

-- As options of the command line: "--tensor 2 --recompute norm,activation".
function pins.options(changes)
  local words = {}
  for _, path in ipairs(lists.sorted_keys(changes)) do
    local value = changes[path]
    if type(value) == "table" then value = table.concat(value, ",") end
    words[#words + 1] = string.format("--%s %s", path:match("[^.]+$"):gsub("_", "-"), tostring(value))
  end
  return table.concat(words, " ")
end

return pins
