-- SPDX-License-Identifier: Apache-2.0
-- import.lua: launch configurations in place of specs: what of a spec they say, and what they lack. What judges them is loaded for them
-- alone: a plan of a spec starts without it.

local failure = require "pipeplan.base.failure"
local launch = require "pipeplan.input.launch.init"

local import = {}

-- Files whose names say that they are no spec.
local endings = { sh = true, bash = true, slurm = true, sbatch = true, yaml = true, yml = true, log = true, out = true, py = true,
                  toml = true }

-- The first thing that is wrong with it, where it is planned as it is.
local function check(result)
  for _, finding in ipairs(result.findings) do
    if finding.severity == "error" then
      failure.usage("%s:%d: %s; pipeplan lint says all of it, --layout free plans its model and training without its layout", finding.file,
                    finding.line, finding.message)
    end
  end
end

-- Keys that are nearly others, and values of another type: what the framework takes for not said, somebody may have meant.
local function add_warnings(list, result)
  for _, finding in ipairs(result.findings) do
    if finding.severity == "warning" and (finding.id == "unknown_key" or finding.id == "bad_value") then
      list[#list + 1] = { id = finding.id, severity = "warning",
                          message = string.format("%s:%d: %s", finding.file, finding.line, finding.message) }
    end
  end
end

-- Ends at what no spec says and no option says instead, but for what is assumed or chosen for it.
local function add_unsaid(list, unsaid, given, layout)
  local free = { ["training.recompute"] = layout == "free" }
  for _, each in ipairs(unsaid) do
    local said = free[each.field] or given[each.field:match "[^.]*$"] ~= nil
    if not said and each.message then failure.usage("%s:%d: %s", each.setting.file, each.setting.line, each.message) end
    if not said then list[#list + 1] = { field = each.field, value = each.value, why = each.why } end
  end
end

local function object_of(path, given, layout, read)
  local list = launch.read(path, { given = given })
  if #list > 1 then failure.usage("%s: starts %d runs: one to a plan", path, #list) end
  local gpus = math.tointeger(tonumber(given.gpus))
  local result = require("pipeplan.analysis.lint.init").of(list[1], { gpus = gpus })
  if not result.record then failure.usage("%s: %s", path, result.findings[1] and result.findings[1].message or "not judged") end
  if layout ~= "free" then check(result) end
  add_warnings(read.warnings, result)
  local object, lacks, unsaid = require("pipeplan.analysis.lint.reads").spec(result)
  add_unsaid(read.assumptions, unsaid, given, layout)
  if layout == "free" then
    object.parallelism, object.training.micro_batch_size, object.training.recompute, object.training.zero = nil, nil, nil, nil
  end
  if given.gpus then object.cluster = nil end
  return object, lacks
end

-- What a plan cannot do without, and the option that says it.
local function missing(object, given, lacks)
  local list = {}
  if not given.gpus and not (object.cluster and object.cluster.gpus) then list[#list + 1] = "the number of GPUs (--gpus)" end
  if not given.accelerator and not given.memory_per_gpu then list[#list + 1] = "the accelerator (--accelerator)" end
  if not given.tokens and not object.training.tokens then list[#list + 1] = "the training volume (--tokens)" end
  if not given.model and not object.model then
    list[#list + 1] = lacks and "the model's " .. lacks .. " (--model config.json)" or "the model (--model config.json)"
  end
  return list
end

-- import.split(paths, options, layout) → objects for spec.read, the paths that are specs, and { assumptions, warnings } of what was read,
-- nil of specs alone. layout: "free", its model and training alone.
function import.split(paths, given, layout)
  local objects, specs, read = {}, {}, { assumptions = {}, warnings = {} }
  for _, path in ipairs(paths) do
    if endings[path:match "%.([%w]+)$" or ""] or launch.is_configuration(path) then
      local object, lacks = object_of(path, given, layout, read)
      local list = #paths == 1 and missing(object, given, lacks) or {}
      if #list > 0 then failure.usage("%s: a plan needs more than a launch says: %s", path, table.concat(list, ", ")) end
      objects[#objects + 1] = { object = object, name = path, base = "" }
    else specs[#specs + 1] = path end
  end
  if layout and #objects == 0 then failure.usage("plan: --layout is for a launch configuration") end
  return objects, specs, #objects > 0 and read or nil
end

return import
