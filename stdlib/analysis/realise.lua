-- SPDX-License-Identifier: Apache-2.0
--[[
realise.lua: from what rules say to a spec that shows it. A finding about rules is a claim about some values of some fields; a spec that
`pipeplan plan` accepts and for which the claim can be seen is its witness. Fields that a spec states are set to values of the box,
degrees of parallelism are fixed, the rest (what follows from the model, the network, the search) is tried with a few models and links.

  realise.spec(policy, { space, box, holds = { rule, … }, fails = { rule, … }, shows = function(spec) → bool?, planned = {}? })
      → { spec, fields } | nil: a spec with a candidate for which all rules of `holds` and none of `fails` hold; its layout is fixed, so
        that the plan is about that candidate; fields is the candidate. planned: a table that several calls with the same policy share,
        so that none plans again what another did

  realise.begin(policy)   what is asked from here on has a budget of its own

Deterministic. Cost: at most `tries` plans of small searches; of the policy's budget all drafts since realise.begin together take one, and
the rest of a draft.
]]

local boxes = require "pipeplan.analysis.boxes"
local candidates = require "pipeplan.plan.candidates"
local recipes = require "pipeplan.plan.choices"
local cells = require "pipeplan.analysis.cells"
local conditions = require "pipeplan.policy.conditions"
local facts = require "pipeplan.plan.facts"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local plan = require "pipeplan.plan.init"
local spec = require "pipeplan.input.spec"
local vocabulary = require "pipeplan.vocabulary"

local copy = lists.deep_copy

local realise = {}

local TRIES = 96   -- of one box
local VALUES = 4   -- of one field
local BOXES = 4
local LIMIT = 20000   -- pieces into which what is wanted may fall
local MORE = 8     -- drafts, after one was found that is no clear case

-- Models of both kinds in turn: what a spec may say in one line. First those that need a pipeline on a usual cluster, then smaller and
-- larger ones.
local models = {
  { architecture = "dense", total = 70e9, layers = 80 }, { architecture = "moe", total = 235e9, active = 22e9, layers = 94 },
  { architecture = "dense", total = 405e9, layers = 126 }, { architecture = "moe", total = 30e9, active = 3e9, layers = 48 },
  { architecture = "dense", total = 8e9, layers = 32 }, { architecture = "moe", total = 671e9, active = 37e9, layers = 61 },
  { architecture = "dense", total = 1e9, layers = 16 },
}

-- What a draft says where the box leaves it free.
local USUAL = { tokens = 1e12, sequence_length = 4096, micro_batch_size = 1, fabric = "infiniband", network_per_gpu = 50e9,
                expert_link = 50e9, gpus_per_node = 8, scale_up_gpus = 8, framework = cells.absent, layers = 32 }

-- Fields that a spec states, and where.
local stated = {
  gpus_per_node = { "cluster", "gpus_per_node" }, accelerator = { "cluster", "accelerator" },
  device_bytes = { "cluster", "memory_per_gpu" }, run = { "run" }, team = { "team" }, framework_version = { "framework_version" },
  precision = { "training", "precision" }, optimizer = { "training", "optimizer" }, recompute = { "training", "recompute" },
  optimizer_offload = { "training", "optimizer_offload" }, model_name = { "model", "name" },
  alltoall_kernel = { "cluster", "alltoall_kernel" }, framework = { "framework" },
  tokens = { "training", "tokens" }, sequence_length = { "training", "sequence_length" },
  micro_batch_size = { "training", "micro_batch_size" }, global_batch_size = { "training", "global_batch_size" },
  fabric = { "cluster", "network", "fabric" }, scale_up_gpus = { "cluster", "network", "scale_up_gpus" },
  network_per_gpu = { "cluster", "network", "per_gpu" }, expert_link = { "cluster", "network", "per_gpu" },
  total_parameters = { "model", "total" }, active_parameters = { "model", "active" }, layers = { "model", "layers" },
  experts = { "model", "experts" }, tied_embeddings = { "model", "tied_embeddings" },
}

-- An accelerator of each family: what families are tried with.
local of_family = {
  volta = "V100-SXM2-32GB", ampere = "A100-SXM-80GB", hopper = "H100-SXM", blackwell = "B200", gb200 = "GB200", gb300 = "GB300",
  mi200 = "MI250X", mi300 = "MI300X", mi350 = "MI355X", ada = "L40S",
}

-- Degrees in the order in which they are fixed.
local degrees = { "tensor_parallel", "context_parallel", "expert_parallel", "pipeline_parallel", "data_parallel" }
local short = {}
for name, field in pairs(vocabulary.parallelism) do short[field] = name end

local function put(object, path, value)
  for i = 1, #path - 1 do
    object[path[i]] = object[path[i]] or {}
    object = object[path[i]]
  end
  object[path[#path]] = value
end

-- At most VALUES of a list, spread over it, the first among them.
local function few(list)
  if #list <= VALUES then return list end
  local out = {}
  for i = 1, VALUES do out[i] = list[1 + (i - 1) * (#list - 1) // (VALUES - 1)] end
  return out
end

-- ------------------------------------------------------------------------------------------------------------------------- choices

-- One thing that may be varied: { apply = function(draft, value), values = { … } }.
local function choice(values, apply)
  return { values = values, apply = apply }
end

local function model_choice(space, box)
  local list = {}
  for _, model in ipairs(models) do
    if space:contains(box, "architecture", model.architecture) then list[#list + 1] = model end
  end
  return choice(list, function(draft, model)
    for key, value in pairs(model) do draft.model[key] = value end
  end)
end

-- GPU counts of the box that are multiples of `quantum`, first the ones that clusters have.
local function gpu_counts(space, box, quantum)
  local list, seen = {}, {}
  local function try(count)
    if count >= 1 and count % quantum == 0 and not seen[count] and space:contains(box, "gpus", count) then
      seen[count] = true
      list[#list + 1] = count
    end
  end
  for power = 3, 12 do try(quantum * 8 << power) end
  for power = 0, 2 do try(quantum * 8 << power) end
  for power = 0, 12 do try(quantum << power) end
  for _, value in ipairs(space:samples(box, "gpus") or {}) do
    try(value)
    try((value + quantum - 1) // quantum * quantum)
  end
  return list
end

-- Of the degrees those that the box constrains, each with its values.
local function degree_choices(space, box, out)
  local quantum = 1
  for _, field in ipairs(degrees) do
    local samples = space:samples(box, field)
    if samples and #samples > 0 then
      local least
      for _, value in ipairs(samples) do least = math.min(least or value, value) end
      -- 1 and powers of two are what clusters have: they come first, the rest as the box has them.
      local sorted = {}
      for _, value in ipairs(samples) do if value & (value - 1) == 0 then sorted[#sorted + 1] = value end end
      for _, value in ipairs(samples) do if value & (value - 1) ~= 0 then sorted[#sorted + 1] = value end end
      out[#out + 1] = choice(few(sorted), function(draft, value) draft.parallelism[short[field]] = value end)
      if field ~= "expert_parallel" then quantum = quantum * least end
    end
  end
  return quantum
end

-- Microbatches: what the box says of M, or of M / P at the depths that are usual.
local function microbatch_choice(space, box)
  local counts, ratios = space:samples(box, "microbatches"), space:samples(box, "microbatches_per_rank")
  if not counts and not ratios then return nil end
  local values = {}
  for _, count in ipairs(few(counts or {})) do values[#values + 1] = { count = count } end
  for _, ratio in ipairs(few(ratios or {})) do values[#values + 1] = { ratio = ratio } end
  return choice(values, function(draft, value)
    local p = draft.parallelism
    p.pipeline = p.pipeline or 4
    p.tensor, p.context = p.tensor or 1, p.context or 1
    local rest = draft.cluster.gpus // (p.tensor * p.context * p.pipeline)
    p.data = math.max(1, rest)
    p.microbatches = value.count or math.max(1, math.floor(value.ratio * p.pipeline + 0.5))
  end)
end

local function all_choices(space, box)
  local list = { model_choice(space, box) }
  local quantum = degree_choices(space, box, list)
  -- GPUs before what is derived from them.
  table.insert(list, 2, choice(few(gpu_counts(space, box, quantum)), function(draft, value) draft.cluster.gpus = value end))
  for _, field in ipairs(vocabulary.fields) do
    local path, samples = stated[field.name], space:samples(box, field.name)
    if path and samples then
      local usual = USUAL[field.name]
      if usual and space:contains(box, field.name, usual) then samples = { usual } end
      list[#list + 1] = choice(few(samples), function(draft, value)
        if value ~= cells.absent then put(draft, path, value) end
      end)
    end
  end
  for _, dim in ipairs(space.dims) do
    local samples = vocabulary.label(dim.name) and space:samples(box, dim.name)
    if samples then
      local path = { "labels", dim.name:sub(#vocabulary.label_prefix + 1) }
      list[#list + 1] = choice(few(samples), function(draft, value) put(draft, path, value) end)
    end
  end
  local families = space:samples(box, "accelerator_family")
  if families then
    list[#list + 1] = choice(few(families), function(draft, value)
      draft.cluster.accelerator = of_family[value] or draft.cluster.accelerator
    end)
  end
  for _, name in ipairs { "schedule", "virtual" } do
    local samples = space:samples(box, name)
    if samples then list[#list + 1] = choice(few(samples), function(draft, value) draft.parallelism[name] = value end) end
  end
  if space:samples(box, "alltoall_fraction") then
    list[#list + 1] = choice({ "400Gbps", "25Gbps", "3200Gbps" }, function(draft, value) draft.cluster.network.per_gpu = value end)
  end
  list[#list + 1] = microbatch_choice(space, box)
  return list
end

local function new_draft()
  return { cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = USUAL.fabric, per_gpu = "400Gbps" } },
           model = {}, training = { tokens = "1T", sequence_length = USUAL.sequence_length }, parallelism = {} }
end

-- The n-th combination of choices, the last choice varying slowest, so that the first tries differ in the first choices; nil past the end.
local function combination(choices, n)
  local draft = new_draft()
  for _, one in ipairs(choices) do
    local count = #one.values
    if count == 0 then return nil end
    one.apply(draft, one.values[n % count + 1])
    n = n // count
  end
  return n == 0 and draft or nil
end

-- ------------------------------------------------------------------------------------------------------------------------ checking

local function rows_of(set, wanted)
  local mask = set.c:all()
  for _, rule in ipairs(wanted.holds or {}) do mask = set:match(rule, mask) end
  for _, rule in ipairs(wanted.fails or {}) do
    if #mask > 0 then mask = mask - set:match(rule, mask) end
  end
  return mask
end

-- Those of some rows that fit, with the first recipe that may be chosen, else with the one that takes least memory.
local function fitting(set, mask)
  local offered = set.context.arguments.choices
  for _, number in ipairs { 1, recipes.saving(offered) } do
    local some = mask & set:recipe(number)
    set.c:memory(some)
    some = some & set.c:match { { field = "peak_bytes", op = "at_most", value = set.context.arguments.usable_bytes } }
    if #some > 0 then return some end
  end
  return set.c:none()
end

-- Of the rows that show it the one that tells most, and whether nothing but the rules in question drops it: a pipeline, where there is one.
local function telling(set, mask, wanted)
  local meant, spoiled = {}, set.unbuildable
  for _, rule in ipairs(wanted.holds or {}) do meant[rule.id] = true end
  for _, entry in ipairs(set.entries) do
    if not meant[entry.id] then spoiled = spoiled | entry.mask end
  end
  local pipelines = mask - set.alone
  local clear = fitting(set, pipelines - spoiled)
  if #clear > 0 then return clear:first(), true end
  return (#pipelines > 0 and pipelines or mask):first(), false
end

local function request_conditions(rules)
  local list = {}
  for _, rule in ipairs(rules or {}) do
    for _, condition in ipairs(conditions.engine(rule)) do
      if vocabulary.by_name[condition.field].scope == "request" then list[#list + 1] = condition end
    end
  end
  return list
end

local spent = setmetatable({}, { __mode = "k" })   -- by policy: budgets that drafts took of it since realise.begin

-- What is asked of a policy from here on has a budget of its own, whatever was asked of it before.
function realise.begin(policy) spent[policy] = nil end

-- failure.try(run, …) with a whole budget; false where drafts took one together: a function that takes long does so with each.
local function try_draft(policy, run, ...)
  if (spent[policy] or 0) >= 1 then return false end
  policy.host:refill()
  local answers = table.pack(failure.try(run, ...))
  local usage = policy.host:usage()
  spent[policy] = (spent[policy] or 0) + usage.work / usage.work_limit
  return table.unpack(answers, 1, answers.n)
end

local function candidates_of(policy, draft, wanted)
  local request = spec.from_table(copy(draft), ".")
  local known = facts.of(request, policy)
  for _, condition in ipairs(request_conditions(wanted.holds)) do
    local value = condition.value
    if type(value) ~= "table" and not require("engine").conditions.match(known.record, { condition }) then return nil end
  end
  local set = candidates.open { request = request, policy = policy, record = known.record, arguments = known.arguments,
                                fixed = request.parallelism, no_comparison = true }
  return set, rows_of(set, wanted)
end

-- The candidates of a draft and the rows that show what is wanted, or nil: it is no spec, what follows from the request alone rules it
-- out, or no row shows it. An error that is no answer is one of ours and goes on.
local function open(policy, draft, wanted)
  local good, set, mask = try_draft(policy, candidates_of, policy, draft, wanted)
  if good then return mask and #mask > 0 and set or nil, mask end
  if set ~= nil and not failure.is(set) then error(set, 0) end
  return nil
end

-- Fixes the layout of a row, and its recipe where it is not the first that may be chosen, so that a plan of the spec is about it.
local function fixed(draft, set, row)
  local out, fields = copy(draft), set.c:row(row)
  if set.c:choice(row) > 1 then
    local training = out.training
    training.micro_batch_size, training.sharding = fields.micro_batch_size, fields.sharding
    training.recompute = fields.recompute == "modules" and { "norm", "activation" } or fields.recompute
  end
  for field, name in pairs(short) do
    if field ~= "expert_tensor_parallel" and field ~= "virtual" then out.parallelism[name] = fields[field] end
  end
  if fields.virtual and fields.virtual > 1 then out.parallelism.virtual = fields.virtual end
  return out
end

-- Does `plan` take it? An error that is no answer is an invariant that the plan breaks, and worth showing.
local function is_plannable(policy, draft, planned)
  local key = json.encode(draft)
  if planned[key] == nil then
    local good, problem = try_draft(policy, function()
      return plan.plan { request = spec.from_table(copy(draft), "."), policy = policy }
    end)
    planned[key] = good or problem ~= nil and not failure.is(problem)
  end
  return planned[key]
end

-- What shows it in a spec that `plan` accepts: { spec, fields, clear: nothing else drops it }, or nil. Where only what is clear is wanted,
-- nothing else is planned.
local function accepted(policy, draft, wanted, only_clear)
  local set, mask = open(policy, draft, wanted)
  if not set then return nil end
  local row, clear = telling(set, mask, wanted)
  local found = { spec = draft, fields = set.c:row(row), clear = clear }
  if only_clear and not clear then return found end
  if not is_plannable(policy, draft, wanted.planned or {}) then return nil end
  if wanted.shows and not wanted.shows(draft) then return nil end
  return found
end

-- The first draft in which nothing else drops the candidate, or the first that was found MORE drafts before.
function realise.spec(policy, wanted)
  local choices = all_choices(wanted.space, wanted.box)
  local best, left = nil, MORE
  for n = 0, TRIES - 1 do
    local draft = combination(choices, n)
    if not draft or left == 0 then break end
    if best then left = left - 1 end
    local set, mask = open(policy, draft, wanted)
    if set then
      local shown = fixed(draft, set, (telling(set, mask, wanted)))
      local found = accepted(policy, shown, wanted, best) or accepted(policy, draft, wanted, best)
      if found and found.clear then return found end
      best = best or found
    end
  end
  return best
end

-- A rule about the finished plan says nothing of candidates: none of them would show it.
local function about_plans(rules)
  for _, rule in ipairs(rules or {}) do
    for _, condition in ipairs(rule.conditions) do
      if vocabulary.by_name[condition.field].scope == "plan" then return true end
    end
  end
  return false
end

-- Real numbers that follow from a spec in ways that no draft can aim at.
local function is_computed(field)
  return field and field.type == "number" and not stated[field.name] and field.name ~= "microbatches_per_rank"
end

-- Does a box ask for exactly one value of such a number?
local function is_a_point(space, box)
  for _, dim in ipairs(space.dims) do
    local samples = is_computed(dim.field) and space:samples(box, dim.name)
    if samples and #samples == 1 then
      for _, atom in ipairs(dim.atoms) do
        if atom.point and atom.samples[1] == samples[1] then return true end
      end
    end
  end
  return false
end

-- A spec inside any of some boxes, as far as a candidate can be there at all and no rule of `fails` takes it.
function realise.any(policy, wanted, list)
  local space, taken = wanted.space, {}
  if about_plans(wanted.holds) then return nil end
  for _, rule in ipairs(wanted.fails or {}) do
    if not rule.when then taken[#taken + 1] = space:box(rule) end
  end
  list = boxes.without(space.shape, (space:possible(list)), taken, LIMIT) or {}
  local tried = 0
  for _, box in ipairs(list) do
    if tried == BOXES then break end
    if not is_a_point(space, box) then
      tried = tried + 1
      local found = realise.spec(policy, { space = space, box = box, holds = wanted.holds, fails = wanted.fails, shows = wanted.shows,
                                           planned = wanted.planned })
      if found then return found end
    end
  end
  return nil
end

return realise
