-- SPDX-License-Identifier: Apache-2.0
-- counters.lua: means of the GPUs' counters, and which of them can see a bubble.
--
-- A rank that waits runs a receive kernel: the GPU is "busy" all the same. So GPU utilisation and graphics-engine active see nothing. SM
-- active falls while a rank waits (the kernel holds few SMs), and rises with what else communicates. Tensor active follows the matrix
-- products: ranks can be held against each other, never against 1.0, for what it reaches while a rank works nobody told.

local counters = {}

-- Order of trust. sees: "ranks" against each other, "weakly", or "nothing".
counters.kinds = {
  { name = "tensor_active", title = "tensor-active", sees = "ranks" },
  { name = "sm_active", title = "SM-active", sees = "weakly" },
  { name = "gr_engine_active", title = "graphics-engine-active", sees = "nothing" },
  { name = "gpu_utilisation", title = "GPU utilisation", sees = "nothing" },
}

local max_entities = 200000   -- GPUs that are told apart; no cluster has more

local methods = {}

function counters.new()
  return setmetatable({ by_kind = {}, entities = 0, too_many = 0 }, { __index = methods })
end

-- One value. who: { host, gpu, slice }.
function methods:add(kind, who, fraction)
  local of_kind = self.by_kind[kind] or { samples = 0, list = {} }
  self.by_kind[kind] = of_kind
  local key = table.concat({ who.host, who.gpu or "", who.slice or "" }, "\0")
  local entry = of_kind.list[key]
  if not entry then
    if self.entities >= max_entities or #key > 512 then
      self.too_many = self.too_many + 1
      return
    end
    self.entities = self.entities + 1
    entry = { host = who.host, gpu = who.gpu, slice = who.slice, sum = 0, count = 0 }
    of_kind.list[key] = entry
  end
  entry.sum, entry.count, of_kind.samples = entry.sum + fraction, entry.count + 1, of_kind.samples + 1
end

-- "node2" before "node10": digits compare as numbers.
local function natural(text)
  return (text:gsub("%d+", function(digits) return #digits < 20 and string.rep("0", 20 - #digits) .. digits end))
end

local function sorted_entities(list)
  local entities = {}
  for _, entry in pairs(list) do
    entry.mean = entry.sum / entry.count
    entry.key = natural(entry.host) .. "\0" .. natural(entry.gpu or "") .. "\0" .. natural(entry.slice or "")
    entry.name = entry.host .. (entry.gpu and " GPU " .. entry.gpu or "") .. (entry.slice and " slice " .. entry.slice or "")
    entities[#entities + 1] = entry
  end
  table.sort(entities, function(a, b) return a.key < b.key end)
  return entities
end

-- Means by pipeline rank, where there are as many GPUs as the plan has and none is sliced: global ranks go through nodes by name and GPUs
-- by number, and the pipeline is the outermost dimension of them (Megatron-LM's order tp-cp-ep-dp-pp, torchtitan's mesh).
local function by_rank(entities, plan)
  if #entities ~= plan.gpus or plan.gpus % plan.pipeline ~= 0 then return nil end
  local each, ranks = plan.gpus // plan.pipeline, {}
  for i, entry in ipairs(entities) do
    if entry.slice or not entry.gpu then return nil end
    local rank = (i - 1) // each + 1
    ranks[rank] = (ranks[rank] or 0) + entry.mean / each
  end
  return ranks
end

-- Of each kind that was given, in order of trust: { name, title, sees, gpus, samples, mean, lowest, highest, ranks }.
function methods:finish(plan)
  local out = {}
  for _, kind in ipairs(counters.kinds) do
    local of_kind = self.by_kind[kind.name]
    if of_kind and of_kind.samples > 0 then
      local entities, sum = sorted_entities(of_kind.list), 0
      local lowest, highest = entities[1], entities[1]
      for _, entry in ipairs(entities) do
        sum = sum + entry.mean
        if entry.mean < lowest.mean then lowest = entry end
        if entry.mean > highest.mean then highest = entry end
      end
      out[#out + 1] = {
        name = kind.name, title = kind.title, sees = kind.sees, gpus = #entities, samples = of_kind.samples, mean = sum / #entities,
        lowest = { name = lowest.name, mean = lowest.mean }, highest = { name = highest.name, mean = highest.mean },
        ranks = kind.sees ~= "nothing" and by_rank(entities, plan) or nil,
      }
    end
  end
  return out
end

return counters
