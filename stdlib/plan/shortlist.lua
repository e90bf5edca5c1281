-- SPDX-License-Identifier: Apache-2.0
--[[
shortlist.lua: the layouts that are worth measuring beside the plan: those that a comparison cannot tell from it, and that differ most.

shortlist.of(request, policy, result, known, count) → { { … }, … }, the plan first, at most `count`; fewer where fewer lie within the
error of their comparison. An entry: what stdlib/schema/plan.lua says of `shortlist`.

Which ones: of each value that the plan does not have (schedule, each degree, microbatch size, recompute, sharding, no pipeline) the fastest
candidate that no rule drops. Of those that lie within the error, one after the other the one with the largest
  chance × distance
chance: that it is faster than the plan, where the error of the comparison (nine of ten within it) is normal; distance: the share of both
steps that their prices do not have in common, to the nearest one on the list. A twin, whose schedule's family, degrees and recipe are
those of another, adds nothing.
]]

local accuracy = require "pipeplan.catalog.accuracy"
local attempt = require "pipeplan.plan.attempt"
local candidates = require "pipeplan.plan.candidates"
local format = require "pipeplan.base.format"
local integers = require "pipeplan.base.integers"
local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"
local pins = require "pipeplan.plan.pins"
local price = require "pipeplan.plan.price"
local rank = require "pipeplan.plan.rank"
local spec = require "pipeplan.input.spec"
local what_if = require "pipeplan.plan.what_if"

local shortlist = {}

-- ----------------------------------------------------------------------------------------------------------------------- the pool

local degrees = { "pipeline_parallel", "tensor_parallel", "context_parallel", "expert_parallel", "expert_tensor_parallel", "virtual" }

local most_of_degree = 1000

-- { field, values } of what candidates differ in.
local function axes(set)
  local context = set.context
  local counts = {}
  for _, choice in ipairs(context.arguments.choices) do
    for _, divisor in ipairs(integers.divisors(choice.gpus, most_of_degree)) do counts[divisor] = true end
  end
  local list = { { "schedule", candidates.planned(set.policy) } }
  for _, field in ipairs(degrees) do list[#list + 1] = { field, lists.sorted_keys(counts) } end
  for _, field in ipairs(candidates.chosen) do
    local seen = {}
    for _, choice in ipairs(context.arguments.choices) do seen[choice.values[field]] = true end
    list[#list + 1] = { field, lists.sorted_keys(seen) }
  end
  return list
end

-- How far off the ratio of a candidate's step to the plan's may be: by what differs between them.
local function error_of(fields, own)
  if (fields.pipeline_parallel == 1) ~= (own.pipeline_parallel == 1) then return accuracy.comparisons.pipeline end
  for _, field in ipairs(degrees) do
    if field ~= "virtual" and fields[field] ~= own[field] then return accuracy.comparisons.layout end
  end
  for _, field in ipairs(candidates.chosen) do
    if fields[field] ~= own[field] then return accuracy.comparisons.layout end
  end
  return accuracy.comparisons.schedule
end

-- What makes twins.
local function signature(fields)
  local parts = { fields.schedule_family }
  for _, field in ipairs(degrees) do parts[#parts + 1] = tostring(fields[field]) end
  for _, field in ipairs(candidates.chosen) do parts[#parts + 1] = tostring(fields[field]) end
  return table.concat(parts, " ")
end

-- Rows of candidates within the error, each the fastest with some value that the plan does not have.
local function pool_of(set, own)
  local list, seen = {}, {}
  local function add(rows)
    local limit = own.step_seconds * (1 + accuracy.comparisons.pipeline)
    local row = #rows > 0 and set:best(rows, 0, limit)
    if not row or seen[row] then return end
    seen[row] = true
    local fields = set.c:row(row)
    local error = error_of(fields, own)
    if fields.step_seconds <= own.step_seconds * (1 + error) then list[#list + 1] = { row = row, fields = fields, error = error } end
  end
  local left = rank.preferred(set, set.main)
  for _, axis in ipairs(axes(set)) do
    for _, value in ipairs(axis[2]) do
      if value ~= own[axis[1]] then
        add(left & set.c:match { { field = axis[1], op = "equal", value = value } })
      end
    end
  end
  if own.pipeline_parallel > 1 and not set.context.fixed.schedule and not set.context.fixed.pipeline then
    add(rank.preferred(set, set.alone))
  end
  return list
end

-- -------------------------------------------------------------------------------------------------------------------- which of them

-- Of the standard normal distribution, up to x (Abramowitz and Stegun, 26.2.17: within 7.5e-8).
local function normal(x)
  local t = 1 / (1 + 0.2316419 * math.abs(x))
  local tail = math.exp(-x * x / 2) / math.sqrt(2 * math.pi) *
               t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return x > 0 and 1 - tail or tail
end

local nine_of_ten = 1.6449   -- standard deviations

-- The chance that it is faster than the plan.
local function chance(entry, own)
  return normal(-math.log(entry.fields.step_seconds / own.step_seconds) / (math.log(1 + entry.error) / nine_of_ten))
end

-- The share of two steps that their prices do not have in common.
local function distance(a, b)
  local apart, sum = 0, 0
  for _, term in ipairs(price.terms) do
    apart, sum = apart + math.abs(a[term[1]] - b[term[1]]), sum + a[term[1]] + b[term[1]]
  end
  return apart / sum
end

-- ----------------------------------------------------------------------------------------------------------------------- one of them

local function kernel_at(set, row)
  local kernel = set:kernel_of(row)
  return kernel and kernel.name or false
end

local function priced(set, entry)
  entry.evaluation = set.c:evaluate(entry.row)
  entry.choice = set.context.arguments.choices[set.c:choice(entry.row)]
  entry.price = price.of(entry.choice.request, entry.evaluation, kernel_at(set, entry.row))
end

-- As the schema has a price.
local function named(terms)
  local out = {}
  for key, seconds in pairs(terms) do out[key .. "_seconds"] = seconds end
  return out
end

-- The term in which two prices differ most.
local function teaches(entry, own)
  local best, most
  for _, term in ipairs(price.terms) do
    local apart = math.abs(entry.price[term[1]] - own.price[term[1]])
    if not most or apart > most then best, most = term[1], apart end
  end
  return best
end

local least_apart = 0.01   -- of a step: a term that differs by less is not what a run would tell

local function sentence(entry, own, term)
  local here, there = entry.price[term], own.price[term]
  local words = string.format("%s: %s of its step here, %s in the plan", price.title[term], format.seconds(here), format.seconds(there))
  if math.abs(here - there) < least_apart * entry.evaluation.step_seconds then
    words = "what the price leaves out: no term of it differs by 1 % of a step"
  end
  if entry.fit ~= "tight" then return words end
  return words .. "; and whether it fits, with " .. format.bytes(entry.evaluation.peak_bytes)
end

-- Is what is planned with the changes this layout? Then its changes reproduce it.
local function reproduced(request, policy, entry)
  local other = spec.laid(request, entry.changes)
  local good, evaluation, known = attempt.try(policy, what_if.layout, other or request, policy)
  if not other or not good or not evaluation then return false end
  local values = known.record
  for _, field in ipairs { "tensor", "context", "expert", "expert_tensor", "data", "pipeline", "virtual", "schedule", "microbatches",
                           "step_seconds", "peak_bytes" } do
    if evaluation[field] ~= entry.evaluation[field] then return false end
  end
  for _, field in ipairs { "micro_batch_size", "recompute", "sharding", "gpus_used" } do
    if values[field] ~= entry.choice.values[field] then return false end
  end
  return table.concat(evaluation.layers_per_stage, " ") == table.concat(entry.evaluation.layers_per_stage, " ")
end

local function told(entry, own)
  local evaluation, values = entry.evaluation, entry.choice.values
  local term = entry ~= own and teaches(entry, own) or nil
  return {
    schedule = evaluation.schedule, parallelism = measure.parallelism(evaluation), layers_per_stage = evaluation.layers_per_stage,
    microbatches = evaluation.microbatches, micro_batch_size = values.micro_batch_size,
    recompute = lists.sorted_keys(entry.choice.request.training.recompute), sharding = values.sharding, gpus_used = values.gpus_used,
    step_seconds = evaluation.step_seconds, slower_fraction = evaluation.step_seconds / own.evaluation.step_seconds - 1,
    error_fraction = entry.error, peak_bytes = evaluation.peak_bytes, fit = entry.fit,
    changes = entry.changes, options = pins.options(entry.changes), price = named(entry.price), term = term,
    teaches = term and sentence(entry, own, term) or "the plan itself: how far off the whole price is",
  }
end

-- -------------------------------------------------------------------------------------------------------------------------- the list

local function next_of(pool, chosen, own)
  local best, most
  for i, entry in ipairs(pool) do
    local nearest = math.huge
    for _, other in ipairs(chosen) do nearest = math.min(nearest, distance(entry.price, other.price)) end
    local score = chance(entry, own) * (nearest + 1e-3)   -- what differs in no term may still differ
    if not most or score > most then best, most = i, score end
  end
  return best
end

function shortlist.of(request, policy, result, known, count)
  local set = result.set
  local own = { row = result.row, fields = result.fields, error = 0 }
  own.step_seconds = own.fields.step_seconds
  priced(set, own)
  local pool, twins = {}, { [signature(own.fields)] = true }
  for _, entry in ipairs(pool_of(set, own.fields)) do
    priced(set, entry)
    pool[#pool + 1] = entry
  end
  local chosen, out = {}, {}
  local function take(entry)
    local modules = entry.choice.request.training.recompute
    entry.changes = pins.of(request, entry.fields, modules, entry.evaluation.layers_per_stage, known.batch)
    entry.fit = measure.fit(entry.evaluation.peak_bytes, known)
    if entry ~= own and not reproduced(request, policy, entry) then return end
    chosen[#chosen + 1] = entry
    out[#out + 1] = told(entry, own)
  end
  take(own)
  while #out < count and #pool > 0 do
    local entry = table.remove(pool, next_of(pool, chosen, own.fields))
    local twin = signature(entry.fields)
    if not twins[twin] then
      twins[twin] = true
      take(entry)
    end
  end
  return out
end

return shortlist
