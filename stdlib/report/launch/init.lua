-- SPDX-License-Identifier: Apache-2.0
-- init.lua: a plan as the launch of the framework that runs it: what starts it on as many GPUs as the plan uses, with every key that the
-- plan needs and no other. What no plan says, data, tokenizer, checkpoints, learning rates, is left to whoever starts it.
--
-- launch.write(format, plan, request, plan_for) → text, of a file of this folder; or nil and why the plan cannot be written so.

local format = require "pipeplan.base.format"
local frameworks = require "pipeplan.catalog.frameworks"
local layout = require "pipeplan.base.layout"
local launches = require "pipeplan.report.launch.formats"
local settings = require "pipeplan.report.launch.settings"
local visible = require "pipeplan.base.visible"

local launch = {}

-- Processes of a node and nodes of so many GPUs, the nodes as full as can be with whole groups of tensor parallelism, whose ranks are
-- neighbours: with TP inside a node it stays there.
local function nodes_of(gpus, per_node, tensor)
  for count = math.min(gpus, per_node), 1, -1 do
    local whole = count % tensor == 0 or tensor > per_node and tensor % count == 0
    if gpus % count == 0 and whole then return count, gpus // count end
  end
end

-- What of a launch no code of the framework's was asked about, and why; a line each.
local function unverified(entry, plan, said)
  local list = { entry.unverified }
  for _, part in ipairs((entry.accepts or {}).except or {}) do
    if part.when(plan, said) then list[#list + 1] = string.format("%s, for %s", part.what, part.why) end
  end
  return list
end

-- What a reader of the file should know, a line each.
local function heading(plan, entry, shape, said)
  local how = entry.schedules[plan.schedule]
  local list = {
    string.format("%s in %s, as planned, with the keys of %s: %s · %s", plan.model.name, entry.title, entry.versions[1].name,
                  format.schedule(plan.schedule), layout.line(plan.parallelism, plan.microbatches)),
  }
  if plan.layers_per_stage and plan.parallelism.pipeline > 1 then
    list[2] = "layers of each stage, first to last: " .. table.concat(plan.layers_per_stage, " ")
  end
  local what, keys = (entry.unplanned or function() end)(shape)
  if what then
    for i, key in ipairs(keys) do keys[i] = entry.spell and entry.spell(key) or key end
    list[#list + 1] = string.format("No plan says %s: at %s's defaults (%s).", what, entry.title, table.concat(keys, ", "))
  end
  for _, line in ipairs(unverified(entry, plan, said)) do list[#list + 1] = "Unverified: " .. line end
  if how and how.state then
    list[#list + 1] = string.format("%s in %s: %s; nothing of it was run", format.schedule(plan.schedule), entry.title, how.state)
  end
  return list
end

-- CUDA_DEVICE_MAX_CONNECTIONS: one, where tensor or context parallelism overlaps; more, or nothing said, where gradients are sharded or
-- experts overlap (Megatron-LM arguments.py: validate_args).
local function connections(plan, said)
  if said["--use-megatron-fsdp"] then return nil end
  if said["--overlap-moe-expert-parallel-comm"] then return 32 end
  return (plan.parallelism.tensor > 1 or plan.parallelism.context > 1) and 1 or nil
end

-- Formats in which the same spec, planned for their framework, can be written: " (megatron can)"; plan_for(framework) → plan, request.
local function neighbours(name, plan_for)
  if not plan_for then return "" end
  local list = {}
  for _, other in ipairs(launches.names) do
    if other ~= name then
      local plan, request = plan_for(launches.framework[other])
      local written = plan and plan.status == "planned" and settings.of(plan, request, frameworks.find(launches.framework[other]))
      if written then list[#list + 1] = other end
    end
  end
  return #list > 0 and string.format(" (%s can)", table.concat(list, ", ")) or " (no other format can)"
end

-- Is it the framework that refuses, and not arithmetic or a policy?
local function by_framework(reason)
  return reason.id == "not_in_framework" or reason.id == "uneven_layers" or frameworks.find(reason.id:match "^([%w_-]+)%.") ~= nil
end

-- plan_for: as above, where it is wanted which other format can.
function launch.write(name, plan, request, plan_for)
  if plan.status ~= "planned" then
    local reason = plan.reasons and plan.reasons[1]
    local others = reason and by_framework(reason) and neighbours(name, plan_for) or ""
    return nil, string.format("there is no plan: it is %s%s%s", plan.status, reason and ": " .. reason.message or "", others)
  end
  local entry = frameworks.find(launches.framework[name])
  local list, problem = settings.of(plan, request, entry)
  if not list then return nil, string.format("%s has no key for %s%s", entry.title, problem, neighbours(name, plan_for)) end
  local said = {}
  for _, each in ipairs(list) do said[each.base] = each.value end
  local per_node, nodes = nodes_of(plan.gpus_used, request.cluster.gpus_per_node, plan.parallelism.tensor)
  if not per_node then
    return nil, string.format("no number of processes a node, at most %d, has whole groups of TP %d", request.cluster.gpus_per_node,
                              plan.parallelism.tensor)
  end
  local lines = heading(plan, entry, request.model.shape, said)
  for i, line in ipairs(lines) do lines[i] = visible.line(line) end  -- a name with a line break would begin a line of its own
  return require("pipeplan.report.launch." .. name) {
    heading = lines, settings = list, said = said, per_node = per_node, nodes = nodes, connections = connections(plan, said),
    name = plan.model.name, plan = plan, request = request,
  }
end

return launch
