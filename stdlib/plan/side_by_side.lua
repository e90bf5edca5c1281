-- SPDX-License-Identifier: Apache-2.0
--[[
side_by_side.lua: plans of several specs beside each other: what differs in the specs, in the choice and in what it takes, each difference
beside the error that such a comparison can have. Each is compared with the first.

side_by_side.of{ { name, request, plan }, … } → {
  plans    { name, status, reasons } each
  spec     { field, values, assumed } of each field that the specs do not all say alike: as written, or what is assumed
  choice   { field, values } of each field of the plans that differs
  takes    { figure, values, ratios, error_fractions, ties }: of the plans; a ratio is the value over the first's
  basis    per plan, what its error of a comparison rests on: "schedule", "layout", "pipeline" (docs/accuracy.md), "estimates", "same"
}
What is not there (of a plan that is none, of a field that is not said) is absent from `values`; `count` says how many plans there are.
]]

local accuracy = require "pipeplan.catalog.accuracy"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local stated = require "pipeplan.input.stated"

local side_by_side = {}

local function same(a, b)
  if a == nil or b == nil then return a == b end
  return json.encode(a) == json.encode(b)
end

-- Do the entries 1 … count of a list differ?
local function differ(values, count)
  for i = 2, count do
    if not same(values[i], values[1]) then return true end
  end
  return false
end

-- ------------------------------------------------------------------------------------------------------------------------- the specs

local function spec_rows(entries)
  local order, said, rows = {}, {}, {}
  for i, entry in ipairs(entries) do
    for _, field in ipairs(stated.list(entry.request)) do
      if not said[field.field] then
        said[field.field] = {}
        order[#order + 1] = field.field
      end
      said[field.field][i] = field.value
    end
  end
  for _, field in ipairs(order) do
    if differ(said[field], #entries) then
      local row = { field = field, values = said[field], assumed = {} }
      for i, entry in ipairs(entries) do
        for _, one in ipairs(said[field][i] == nil and entry.plan.assumptions or {}) do
          if one.field == field then row.assumed[i] = one.value end
        end
      end
      rows[#rows + 1] = row
    end
  end
  return rows
end

-- ------------------------------------------------------------------------------------------------------------------------ the choice

local degrees = { "pipeline", "virtual", "tensor", "context", "expert", "expert_tensor", "data" }

local chosen = {
  { "status", function(p) return p.status end }, { "decision", function(p) return p.decision end },
  { "schedule", function(p) return p.schedule end }, { "microbatches", function(p) return p.microbatches end },
  { "micro_batch_size", function(p) return p.micro_batch_size end },
  { "recompute", function(p) return p.recompute and (#p.recompute > 0 and table.concat(p.recompute, ", ") or "none") end },
  { "sharding", function(p) return p.sharding end }, { "gpus_used", function(p) return p.gpus_used end },
  { "global_batch_size", function(p) return p.global_batch_size end },
  { "alltoall_kernel", function(p) return p.alltoall_kernel and p.alltoall_kernel.name end },
  { "layers_per_stage", function(p) return p.layers_per_stage and table.concat(p.layers_per_stage, " ") end },
  { "microbatch_group_size", function(p) return p.microbatch_group_size end },
  { "activation_limit_chunks", function(p) return p.activation_limit_chunks end },
  { "overlap_alone", function(p) return p.overlap_alone end },
  { "fit", function(p) return p.memory and p.memory.fit end },
}
for i, name in ipairs(degrees) do
  table.insert(chosen, 3 + i, { name, function(p) return p.parallelism and p.parallelism[name] end })
end

-- side_by_side.choice{ plan, … } → { { field, values }, … }: each choice in which the plans differ.
function side_by_side.choice(plans)
  local rows = {}
  for _, one in ipairs(chosen) do
    local values = {}
    for i, plan in ipairs(plans) do values[i] = one[2](plan) end
    if differ(values, #plans) then rows[#rows + 1] = { field = one[1], values = values } end
  end
  return rows
end

-- ------------------------------------------------------------------------------------------------------------------------ the errors

-- What may differ between two specs of one job on the same GPUs.
local of_the_layout = { framework = true, framework_version = true, run = true, team = true, labels = true,
                        ["training.micro_batch_size"] = true, ["training.recompute"] = true, ["training.sharding"] = true,
                        ["training.zero"] = true, ["training.replicas"] = true, ["training.goodput"] = true,
                        ["cluster.price_per_gpu_hour"] = true }

-- Are both one job on the same GPUs, so that what the estimates of both have in common cancels?
local function one_job(a, b)
  local said = {}
  for i, entry in ipairs { a, b } do
    said[i] = {}
    for _, field in ipairs(stated.list(entry.request)) do said[i][field.field] = field.value end
  end
  for i, fields in ipairs(said) do
    for field, value in pairs(fields) do
      local layout = of_the_layout[field] or field:find "^parallelism%."
      if not layout and not same(value, said[3 - i][field]) then return false end
    end
  end
  return a.plan.tokens_per_step == b.plan.tokens_per_step
end

local function same_choice(a, b)
  for _, one in ipairs(chosen) do
    if one[1] ~= "decision" and not same(one[2](a), one[2](b)) then return false end
  end
  return true
end

-- By what differs: the key of accuracy.comparisons; "same": nothing; "estimates": two jobs, of which each is off by its own error.
local function basis_of(a, b)
  if not one_job(a, b) or a.request.framework ~= b.request.framework then return "estimates" end   -- each framework has its own costs
  local p, q = a.plan, b.plan
  if same_choice(p, q) and p.step_seconds == q.step_seconds then return "same" end
  if (p.parallelism.pipeline == 1) ~= (q.parallelism.pipeline == 1) then return "pipeline" end
  for _, name in ipairs(degrees) do
    if name ~= "virtual" and p.parallelism[name] ~= q.parallelism[name] then return "layout" end
  end
  for _, name in ipairs { "micro_batch_size", "recompute", "sharding", "gpus_used" } do
    if not same(p[name], q[name]) then return "layout" end
  end
  return "schedule"
end

-- Of the ratio of two seconds, and of two numbers of bytes: errors of two estimates as if they had nothing to do with each other.
local function errors_of(basis, a, b)
  if basis == "same" then return 0, 0 end
  local x, y = a.plan.expected_error, b.plan.expected_error
  local memory = math.sqrt(x.memory_fraction ^ 2 + y.memory_fraction ^ 2)
  return accuracy.comparisons[basis] or math.sqrt(x.time_fraction ^ 2 + y.time_fraction ^ 2), memory
end

-- -------------------------------------------------------------------------------------------------------------------- what it takes

local function fullest(plan)
  local most
  for _, rank in ipairs(plan.memory and plan.memory.ranks or {}) do most = math.max(most or 0, rank.total_bytes) end
  return most
end

local figures = {
  { "step_seconds", function(p) return p.step_seconds end },
  { "seconds_per_million_tokens", function(p)   -- of those that train: padding is computed, and trains nothing
      return p.step_seconds and p.step_seconds / (p.tokens_per_step * (1 - (p.training.padding or 0))) * 1e6
    end },
  { "training_days", function(p) return p.training_days end }, { "gpu_hours", function(p) return p.gpu_hours end },
  { "cost", function(p) return p.cost end }, { "mfu_fraction", function(p) return p.mfu_fraction end },
  { "peak_bytes", fullest, memory = true },
}

local function takes(entries, basis)
  local rows, first = {}, entries[1]
  for _, figure in ipairs(figures) do
    local row = { figure = figure[1], values = {}, ratios = {}, error_fractions = {}, ties = {} }
    local any = false
    for i, entry in ipairs(entries) do
      local value, base = entry.plan.status == "planned" and figure[2](entry.plan) or nil, row.values[1]
      row.values[i], any = value, any or value ~= nil
      if i > 1 and value and base and basis[i] then
        local time, memory = errors_of(basis[i], first, entry)
        row.ratios[i], row.error_fractions[i] = value / base, figure.memory and memory or time
        row.ties[i] = math.abs(row.ratios[i] - 1) <= row.error_fractions[i]
      end
    end
    if any then rows[#rows + 1] = row end
  end
  return rows
end

function side_by_side.of(entries)
  local plans, basis = {}, {}
  for i, entry in ipairs(entries) do
    plans[i] = { name = entry.name, status = entry.plan.status, reasons = lists.column(entry.plan.reasons, "message") }
    if i > 1 and entry.plan.status == "planned" and entries[1].plan.status == "planned" then basis[i] = basis_of(entries[1], entry) end
  end
  return { count = #entries, plans = plans, spec = spec_rows(entries), choice = side_by_side.choice(lists.column(entries, "plan")),
           takes = takes(entries, basis), basis = basis }
end

return side_by_side
