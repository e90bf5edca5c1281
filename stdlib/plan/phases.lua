-- SPDX-License-Identifier: Apache-2.0
--[[
phases.lua: one training in phases, such as of growing sequence length: a plan each, and what changing over from one to the next moves.

phases.of{ { name, request, plan }, … } → {
  phases    { name, status, reasons, plan } each, the plan as its JSON has it
  changes   between phase i and i + 1: { fields = { { field, from, to }, … }, moves, checkpoint_bytes, seconds, most_bytes }
            moves: does any GPU hold other weights or another part of the optimizer's state than before? If so all of it is written as
            a checkpoint and read in the new layout: checkpoint_bytes each way, over storage as fast as both specs say (seconds; nil:
            unknown); most_bytes of it are what the fullest GPU of the new layout holds, weights and its part of the optimizer
  total     { training_days, gpu_hours, cost }; nil where a phase is not planned
}
]]

local json = require "pipeplan.base.json"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"

local phases = {}

local degrees = { "pipeline", "virtual", "tensor", "context", "expert", "expert_tensor", "data" }

-- What weights are kept in beside the optimizer's.
local function weights(_, training)
  return training.precision == "fp8" and (training.weights or "fp8") or training.precision
end

-- What says which GPU holds what, of a plan, its training and its request: a framework writes checkpoints of its own. by: what counts of
-- it, where another name may hold the same.
local held = {
  { "gpus used", function(p) return p.gpus_used end },
  { "schedule", function(p) return p.schedule end, by = function(p) return json.encode(p.placement) end },
  { "sharding", function(p) return p.sharding end },
  { "replicas", function(_, t) return t.replicas or 1 end },
  { "layers per stage", function(p) return p.layers_per_stage and table.concat(p.layers_per_stage, " ") end },
  { "optimizer", function(_, t) return t.optimizer end },
  { "moments", function(_, t) return t.moments end },
  { "rank of adapters", function(_, t) return t.lora_rank or "none" end },
  { "weights", weights }, { "optimizer on the host", function(_, t) return t.optimizer_offload or 0 end },
  { "accelerator", function(p) return p.cluster.accelerator end },
  { "framework", function(_, _, request) return request.framework or "none" end },
}
for i, name in ipairs(degrees) do
  table.insert(held, i, { name, function(p) return p.parallelism and p.parallelism[name] end })
end

-- What a microbatch is, and how it goes through.
local beside = {
  { "schedule", function(p) return p.schedule end },
  { "sequence length", function(p) return p.training.sequence_length end }, { "global batch", function(p) return p.global_batch_size end },
  { "microbatch", function(p) return p.micro_batch_size end },
  { "recompute", function(p) return p.recompute and (#p.recompute > 0 and table.concat(p.recompute, ", ") or "none") end },
}

-- Adds what differs to `rows`, once.
local function differences(rows, list, a, b)
  local known = {}
  for _, row in ipairs(rows) do known[row.field] = true end
  for _, one in ipairs(list) do
    local from, to = one[2](a.plan, a.request.training, a.request), one[2](b.plan, b.request.training, b.request)
    local differ = from ~= to and (not one.by or one.by(a.plan) ~= one.by(b.plan))
    if differ and not known[one[1]] then rows[#rows + 1] = { field = one[1], from = from, to = to } end
  end
  return rows
end

-- Weights and optimizer of the fullest rank.
local function most_bytes(plan)
  local most = 0
  for _, rank in ipairs(plan.memory.ranks) do most = math.max(most, rank.parameters_bytes + rank.optimizer_bytes) end
  return most
end

local function change(a, b)
  local before, after = a.plan, b.plan
  if before.status ~= "planned" or after.status ~= "planned" then return nil end
  local rows = differences({}, held, a, b)
  local moves = #rows > 0
  local out = { fields = differences(rows, beside, a, b), moves = moves, checkpoint_bytes = moves and after.host.checkpoint_bytes or 0,
                most_bytes = moves and most_bytes(after) or 0 }
  local storage = a.request.cluster.storage and b.request.cluster.storage
  if storage and out.moves then
    out.seconds = out.checkpoint_bytes / a.request.cluster.storage + out.checkpoint_bytes / b.request.cluster.storage
  elseif not out.moves then out.seconds = 0 end
  return out
end

-- Phases are of one model.
local function check(entries)
  local first = entries[1].request.model
  for i = 2, #entries do
    local other = entries[i].request.model
    if json.encode(first.shape) ~= json.encode(other.shape) then
      failure.usage("plan: phases are of one model; %s has another than %s: %s and %s", entries[i].name, entries[1].name, other.name,
                    first.name)
    end
  end
end

function phases.of(entries)
  check(entries)
  local out = { phases = {}, changes = {} }
  local total = { training_days = 0, gpu_hours = 0, cost = 0 }
  for i, entry in ipairs(entries) do
    local plan = entry.plan
    out.phases[i] = { name = entry.name, status = plan.status, reasons = lists.column(plan.reasons, "message"), plan = plan }
    out.changes[i] = entries[i + 1] and (change(entry, entries[i + 1]) or { fields = {} })
    for name, sum in pairs(total or {}) do
      if plan.status ~= "planned" then total = nil break end
      total[name] = sum and plan[name] and sum + plan[name] or false
    end
  end
  if total and not total.cost then total.cost = nil end
  out.total = total
  return out
end

return phases
