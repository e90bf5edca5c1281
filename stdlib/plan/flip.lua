-- SPDX-License-Identifier: Apache-2.0
--[[
flip.lua: how far a spec is from another answer. For each field that the spec states: the nearest value with which the outcome would be
another. Of a spec that is not planned: with which it is; of a planned one: with which another row of the decision table decides, another
rule is among the reasons, or nothing is planned.

  flip.of(request, policy [, hints]) → { { field, value, side, words, status, decision, rules, effect }, … }, nearest first
    field, value  path in the spec, and what to put there: as an option it gives that outcome, of gpus "minimum" with the plan's GPUs
    side          "over" or "under": where the outcome changes beyond a limit of a real number, `value` is that close to it
    words         "tokens 1 B instead of 500 M", "per_gpu over 200 Gb/s"
    effect        "planned: 1F1B at …", "row small_run decides: …", "refused by short_run"
    hints         path → a value that is known to be planned, tried however far it is

Values that are tried: limits that rows, rejects, refusals and invariants set for the field, on either side, and the next ones that a
layout can have.
Each answer was planned; nothing between the value and the spec's own was found that changes the outcome, of those values.
Near is the ratio of two numbers; another name counts as much as twice the number.
Cost: at most TRIES searches, fewer where a search is large.
]]

local attempt = require "pipeplan.plan.attempt"
local candidates = require "pipeplan.plan.candidates"
local choose = require "pipeplan.plan.choose"
local facts = require "pipeplan.plan.facts"
local fields = require "pipeplan.input.fields"
local format = require "pipeplan.base.format"
local integers = require "pipeplan.base.integers"
local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"
local spec = require "pipeplan.input.spec"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local flip = {}

local TRIES, ROWS = 64, 20000   -- searches; candidates of all of them together
local LEAST = 12                -- searches, however large they are
local SHOWN = 4                 -- changes, each of another field
local HAIR = 1e-9               -- how far beyond a limit of a real number is tried, as a share of it
local NAME = math.log(2)        -- how far another name is
local SECONDS_PER_HOUR = 3600

-- ---------------------------------------------------------------------------------------------------------------------- the outcome

-- What choose would decide for a request, and what tells outcomes apart; nil where it cannot.
local function outcome(request, policy)
  local good, result = attempt.try(policy, function()
    local known = facts.of(request, policy)
    local found = choose.outcome { request = request, policy = policy, record = known.record, arguments = known.arguments }
    found.batch = known.batch
    return found
  end)
  if not good then return nil end
  local ids = lists.column(result.reasons, "id")
  table.sort(ids)
  result.ids = ids
  result.key = result.status .. " " .. (result.decision or "") .. " " .. table.concat(ids, " ")
  return result
end

local function without(list, other)
  local known, out = {}, {}
  for _, id in ipairs(other) do known[id] = true end
  for _, id in ipairs(list) do if not known[id] then out[#out + 1] = id end end
  return table.concat(out, ", ")
end

local function effect(before, after)
  if after.status ~= "planned" then return after.status .. " by " .. table.concat(after.ids, ", ") end
  if before.status ~= "planned" then return "planned: " .. measure.label(after.fields) end
  if after.decision ~= before.decision then return "row " .. tostring(after.decision) .. " decides: " .. measure.label(after.fields) end
  local new, gone = without(after.ids, before.ids), without(before.ids, after.ids)
  return (new ~= "" and new .. " holds: " or gone .. " no longer holds: ") .. measure.label(after.fields)
end

-- Does the second outcome answer what the first leaves to ask? That nothing divides any more is no rule's doing.
local function flips(before, after)
  if before.status ~= "planned" then return after.status == "planned" end
  return after.key ~= before.key and after.ids[1] ~= "no_candidates"
end

-- ------------------------------------------------------------------------------------------------------------------ values to try

local sides = { "value", "low", "high" }

-- The limits that rows, rejects, refusals and invariants set for a field of a rule: numbers.
local function limits(policy, name, record)
  local list = {}
  for _, verb in ipairs { "rows", "rejects", "refuses", "invariants" } do
    for _, rule in ipairs(policy[verb]) do
      for _, condition in ipairs(rule.conditions) do
        for _, side in ipairs(condition.field == name and sides or {}) do
          local value = condition[side]
          if value == nil and condition[side == "value" and "ref" or side .. "_ref"] then
            value = record[condition[side == "value" and "ref" or side .. "_ref"]]
          end
          if type(value) == "number" then list[#list + 1] = value end
        end
      end
    end
  end
  return list
end

-- A whole number that a limit concerns: it and its neighbours.
local function around(list, values)
  for _, value in ipairs(values) do
    for whole = math.floor(value) - 1, math.ceil(value) + 1 do list[#list + 1] = { value = whole } end
  end
end

-- A real number: the limit, and a hair beyond it, as seen from the value that the spec has.
local function beside(list, values, from)
  for _, value in ipairs(values) do
    list[#list + 1] = { value = value }
    if from <= value then list[#list + 1] = { value = value * (1 + HAIR), limit = value, side = "over" } end
    if from >= value then list[#list + 1] = { value = value * (1 - HAIR), limit = value, side = "under" } end
  end
end

local function divisors(number)
  local list = {}
  for i, value in ipairs(integers.divisors(number, 4096)) do list[i] = { value = value } end
  return list
end

local function doubled(value)
  return { { value = value * 2 }, { value = value % 2 == 0 and value // 2 or nil } }
end

local make = {}

make["cluster.gpus"] = function(context, from)
  local list, fixed, unit = {}, context.request.parallelism, 1
  for _, name in ipairs { "tensor", "context", "pipeline", "data" } do unit = unit * (fixed[name] or 1) end
  local host = context.request.cluster.gpus_per_node
  local step = from % host == 0 and math.max(unit, host) or unit  -- whole nodes, where the spec has such
  local function whole(value) list[#list + 1] = { value = math.tointeger(value) } end
  for _, limit in ipairs(limits(context.policy, "gpus", context.record)) do
    for multiple = limit // step - (limit % step == 0 and 1 or 0), limit // step + 1 do whole(multiple * step) end
  end
  for _, ratio in ipairs { 1 / 4, 1 / 2, 2, 3, 4, 8 } do whole(from * ratio // step * step) end
  return list
end

make["cluster.network.per_gpu"] = function(context, from)
  local list = {}
  beside(list, limits(context.policy, "network_per_gpu", context.record), from)
  beside(list, limits(context.policy, "expert_link", context.record), from)
  return list
end

make["training.tokens"] = function(context, from)
  local list = {}
  beside(list, limits(context.policy, "tokens", context.record), from)
  return list
end

make["training.sequence_length"] = function(context, from)
  local list = doubled(from)
  around(list, limits(context.policy, "sequence_length", context.record))
  return list
end

make["training.micro_batch_size"] = function(context, from)
  local list = doubled(from)
  around(list, limits(context.policy, "micro_batch_size", context.record))
  list[#list + 1] = { value = 1 }
  return list
end

-- Microbatches at which a rule about M or M/P changes its mind, for the depth at hand.
local function microbatches(context, scale)
  local record, counts, list = context.record, {}, {}
  local m = record.microbatches
  if not m then return list end
  around(counts, limits(context.policy, "microbatches", record))
  for _, ratio in ipairs(limits(context.policy, "microbatches_per_rank", record)) do
    around(counts, { ratio * record.pipeline_parallel })
  end
  for _, value in ipairs { m - 1, m + 1, m // record.pipeline_parallel * record.pipeline_parallel,
                           (m // record.pipeline_parallel + 1) * record.pipeline_parallel } do
    counts[#counts + 1] = { value = value }
  end
  for i, count in ipairs(counts) do list[i] = { value = count.value * scale } end
  return list
end

make["training.global_batch_size"] = function(context, from)
  local list = context.record.data_parallel and
               microbatches(context, context.record.data_parallel * context.record.micro_batch_size) or {}
  around(list, limits(context.policy, "global_batch_size", context.record))
  for _, other in ipairs(doubled(from)) do list[#list + 1] = other end
  return list
end

make["parallelism.microbatches"] = function(context)
  return microbatches(context, 1)
end

for _, name in ipairs { "tensor", "context", "data", "pipeline" } do
  make["parallelism." .. name] = function(context) return divisors(context.request.cluster.gpus) end
end

make["parallelism.expert"] = function(context)
  return divisors(math.max(1, context.record.experts or 1))
end

make["parallelism.virtual"] = function(_, from)
  return { { value = 1 }, { value = from - 1 }, { value = from + 1 }, { value = from * 2 }, { value = from // 2 } }
end

local function names(list)
  local out = {}
  for i, name in ipairs(list) do out[i] = { value = name, name = true } end
  return out
end

make["parallelism.schedule"] = function(context)
  return names(candidates.planned(context.policy))
end

make["framework"] = function()
  return names(vocabulary.by_name.framework.domain)
end

make["cluster.alltoall_kernel"] = function(context)
  local list, known = { false }, {}
  for _, rule in ipairs(context.policy.kernels) do
    local name = rule.recommend or rule.id
    if rule.overlapping and not known[name] then
      known[name] = true
      list[#list + 1] = name
    end
  end
  return names(list)
end

-- For each stated field the values to try, nearest first: { { { entry, from, value, distance, … }, … }, … }.
local function changes(context, hints)
  local all = {}
  for _, entry in ipairs(fields.list) do
    local stated = context.request.stated[entry.path]
    local from = stated and stated.value
    if make[entry.path] and stated and type(from) ~= "table" then
      local values, list, seen = make[entry.path](context, from), {}, {}
      table.insert(values, 1, { value = hints[entry.path], hint = true })
      for _, change in ipairs(values) do
        local value = change.value
        local usable = value ~= nil and value ~= from and (change.name or (value > 0 and from and from > 0))
        if usable and not seen[value] then
          seen[value] = true
          change.entry, change.from, change.number = entry, from, #list
          change.distance = change.name and NAME or math.abs(math.log(value / from))
          list[#list + 1] = change
        end
      end
      table.sort(list, function(a, b)
        if math.abs(a.distance - b.distance) > 1e-12 then return a.distance < b.distance end
        return a.number < b.number
      end)
      all[#all + 1] = list
    end
  end
  return all
end

-- --------------------------------------------------------------------------------------------------------------------------- together

-- As a spec and an option say it.
local function written(value)
  if math.type(value) == "float" then return value == math.floor(value) and value < 2 ^ 53 and math.tointeger(value) or value end
  return value
end

local function words(change)
  local name, unit = change.entry.name, change.entry.unit
  if change.side then return string.format("%s %s %s", name, change.side, units.exact(change.limit, unit)) end
  return string.format("%s %s instead of %s", name, units.exact(change.value, unit), format.quantity(change.from, unit))
end

-- What the changed request would take with what is planned for it; nil where nothing is, and where its batch ramps up.
local function gpu_hours(request, after)
  local training, step_seconds = request.training, after.fields and after.fields.step_seconds
  if not step_seconds or training.batch_ramp then return nil end
  local steps = training.tokens / (after.batch * training.sequence_length * (1 - (training.padding or 0)))
  return steps * step_seconds / (training.goodput or 1) * request.cluster.gpus / SECONDS_PER_HOUR
end

function flip.of(request, policy, hints)
  if not request.stated then return {} end
  local before = outcome(request, policy)
  if not before then return {} end
  local known = facts.of(request, policy).record
  local context = { request = request, policy = policy, record = setmetatable({}, { __index = function(_, name)
    local value = before.fields and before.fields[name]
    if value == nil then return known[name] end
    return value
  end }) }
  local left, found = math.max(LEAST, math.min(TRIES, ROWS // math.max(1, before.total))), {}
  local all, turn, more = changes(context, hints or {}), 1, true
  while more do  -- in turns, so that no field takes all the searches
    more = false
    for at, list in ipairs(all) do
      local change = list[turn]
      local tried = change and not list.done and (left > 0 or change.hint)
      local other = tried and spec.laid(request, { [change.entry.path] = written(change.value) })
      more = more or change ~= nil
      if other then
        left = left - 1
        local after = outcome(other, policy)
        if after and flips(before, after) then
          list.done = true
          found[#found + 1] = { change = change, after = after, at = at, gpu_hours = gpu_hours(other, after) }
        end
      end
    end
    turn = turn + 1
  end
  table.sort(found, function(a, b)
    if math.abs(a.change.distance - b.change.distance) > 1e-12 then return a.change.distance < b.change.distance end
    return a.at < b.at
  end)
  local out, gpus = {}, request.cluster.gpus
  local fewest = request.stated["cluster.gpus"].written == "minimum" and "on " .. format.plural(gpus, "GPU") .. ", "
  for i = 1, math.min(SHOWN, #found) do
    local change, after = found[i].change, found[i].after
    local there, said = after.fields or {}, effect(before, after)
    if fewest and change.entry.path ~= "cluster.gpus" then said = fewest .. said end
    out[i] = { field = change.entry.path, value = tostring(written(change.value)), side = change.side, words = words(change),
               status = after.status, decision = after.decision, rules = after.ids, effect = said,
               step_seconds = there.step_seconds, peak_bytes = there.peak_bytes, gpu_hours = found[i].gpu_hours }
  end
  return out
end

return flip
