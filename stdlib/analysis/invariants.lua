-- SPDX-License-Identifier: Apache-2.0
--[[
invariants.lua: tries to break what must hold of every plan. Specs at the edges of all rules (boundary.lua) and seeded random ones are
planned, and what breaks is made smaller until nothing can be taken away.

  invariant       a planned result satisfies one of the policy's `invariant` statements, or a built-in one of the planner's own
  fixed_point     the whole layout of a plan, given as a spec, is not planned, or not as the same plan
  monotone        a spec that is planned is not planned any more when a reject or refusal is taken away, or a parameter moved the way that
                  its `loosens` says
  function_fails  a rule's function fails, or spends the budget of a plan, after which no further spec is tried

  invariants.search(options of load, { random = N, seed =, specs = instead of those at the edges, progress? })
      → { { kind, rule, spec, message }, … }, specs tried

Cost: a plan for each spec, its layout, and each loosening.
]]

local boundary = require "pipeplan.analysis.boundary"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local load = require "pipeplan.policy.load"
local mutants = require "pipeplan.analysis.mutants"
local planner = require "pipeplan.plan.init"
local spec = require "pipeplan.input.spec"

local copy = lists.deep_copy

local invariants = {}

local SHRINKS = 80  -- smaller specs that are tried for one finding

-- ------------------------------------------------------------------------------------------------------------------------- planning

-- The plan of a spec; or nil, and what is broken where the error is none that the spec answers for: { rule, message, kind? }.
local function plan_of(policy, object)
  local good, result = failure.try(function()
    return planner.plan { request = spec.from_table(copy(object)), policy = policy }
  end)
  if good then return result end
  local message = tostring(result)
  if not failure.is(result) then return nil, { message:match "the invariant ([%w_]+)" or "built-in", message } end
  local over_budget = result.status == failure.status.over_budget
  if not over_budget and result.status ~= failure.status.policy_error then return nil end
  return nil, { message:match "^rule '(.-)'" or "built-in", message, "function_fails", over_budget = over_budget }
end

-- A plan's whole layout as a spec.
local function fixed(object, plan)
  local out = copy(object)
  out.parallelism = copy(plan.parallelism)
  out.parallelism.schedule, out.parallelism.layers_per_stage = plan.schedule, copy(plan.layers_per_stage)
  out.parallelism.microbatches = plan.microbatches
  out.training.global_batch_size = plan.global_batch_size
  return out
end

-- ---------------------------------------------------------------------------------------------------------------------- what must hold

-- Each takes a policy's context and a spec and returns what is broken: { rule, message, kind where it is another }; or nil.
local checks = {}

function checks.invariant(context, object)
  local plan, broken = plan_of(context.policy, object)
  for _, reason in ipairs(plan and plan.reasons or {}) do
    local rule = context.policy.rules[reason.id]
    if rule and rule.verb == "invariant" then return { reason.id, reason.message } end
  end
  return broken
end

function checks.fixed_point(context, object)
  local plan = plan_of(context.policy, object)
  if not plan or plan.status ~= "planned" or type(object.training.global_batch_size) == "table" then return nil end
  local again, broken = plan_of(context.policy, fixed(object, plan))
  if broken then return broken end
  if not again or again.status ~= "planned" then
    return { again and again.reasons[1] and again.reasons[1].id or "none",
             "its own layout, given as a spec, is " .. (again and again.status or "no spec") }
  end
  for field, value in pairs(plan.parallelism) do
    local other = again.parallelism[field]
    if other ~= value then return { "none", string.format("%s %s becomes %s", field, value, other) } end
  end
  if again.schedule ~= plan.schedule then return { "none", plan.schedule .. " becomes " .. again.schedule } end
  return nil
end

function checks.monotone(context, object)
  local plan = plan_of(context.policy, object)
  if not plan or plan.status ~= "planned" then return nil end
  for _, loosened in ipairs(context.loosened) do
    local other, broken = plan_of(loosened.policy, object)
    if broken and broken[3] then return broken end
    if other and other.status ~= "planned" then
      return { loosened.rule, string.format("%s, and the spec is %s: %s", loosened.text, other.status, other.reasons[1].id) }
    end
  end
  return nil
end

local order = { "invariant", "fixed_point", "monotone" }

-- The policy with each guard taken away, and each parameter moved the way that lets more through.
local function loosenings(options, policy)
  local list = {}
  for _, mutant in ipairs(mutants.of(policy, true)) do
    local rule, parameter = mutant.before, policy.parameters[mutant.parameter or ""]
    local takes_away = mutant.kind == "delete" and (rule.verb == "reject" or rule.verb == "refuse")
    local moves = parameter and (parameter.loosens == "up" and mutant.value > parameter.value
                                 or parameter.loosens == "down" and mutant.value < parameter.value)
    if takes_away or moves then
      local other = load.load(options)
      mutant.apply(other)
      list[#list + 1] = { policy = other, rule = rule and rule.id or mutant.parameter,
                          text = takes_away and "without " .. rule.id or "with " .. mutant.parameter .. " " .. mutant.text }
    end
  end
  return list
end

-- --------------------------------------------------------------------------------------------------------------------- making smaller

-- Smaller versions of a spec: one without each thing that can be left out, and with smaller numbers.
local function smaller(object)
  local list = {}
  local function with(change)
    local out = copy(object)
    change(out)
    list[#list + 1] = out
  end
  for _, group in ipairs { "parallelism", "training", "cluster" } do
    for _, name in ipairs(lists.sorted_keys(object[group] or {})) do
      if name ~= "gpus" and name ~= "accelerator" and name ~= "tokens" then with(function(out) out[group][name] = nil end) end
    end
  end
  if object.framework then with(function(out) out.framework = nil end) end
  local gpus = object.cluster.gpus
  if gpus > 1 then with(function(out) out.cluster.gpus = (gpus + 1) // 2 end) end
  if type(object.model) == "table" and object.model.layers and object.model.layers > 1 then
    with(function(out) out.model.layers = object.model.layers // 2 end)
  end
  return list
end

-- The smallest spec found for which the same check breaks by the same rule, and what it says there.
local function shrunk(context, kind, was, object)
  local left, message = SHRINKS, was[2]
  local again = true
  while again do
    again = false
    for _, candidate in ipairs(smaller(object)) do
      if left == 0 then return object, message end
      left = left - 1
      local broken = checks[kind](context, candidate)
      if broken and broken[1] == was[1] and broken[3] == was[3] and not broken.over_budget then
        object, message, again = candidate, broken[2], true
        break
      end
    end
  end
  return object, message
end

-- ------------------------------------------------------------------------------------------------------------------------ random specs

-- Knuth's MMIX generator: the same specs wherever they are made.
local function generator(seed)
  local state = seed
  local function integer(high)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % high + 1
  end
  for _ = 1, 8 do integer(2) end
  return function(list) return list[integer(#list)] end
end

local function random_spec(seed)
  local pick = generator(seed)
  local experts = pick { 0, 0, 1 }
  local out = {
    cluster = {
      gpus = pick { 8, 16, 64, 96, 100, 128, 256, 500, 512, 1024, 2048 }, accelerator = pick { "H100-SXM", "A100-SXM-80GB", "B200" },
      network = { fabric = pick { "infiniband", "roce", "efa" }, per_gpu = pick { "100Gbps", "200Gbps", "201Gbps", "400Gbps" } },
    },
    model = { architecture = "dense", total = pick { 1e9, 8e9, 34e9, 70e9, 180e9, 405e9 }, layers = pick { 24, 31, 48, 80, 126 } },
    training = { tokens = pick { "900M", "1B", "100B", "2T" }, sequence_length = pick { 2048, 4096, 8192, 32768 } },
    parallelism = {},
  }
  if experts == 1 then
    out.model = { architecture = "moe", total = pick { 47e9, 235e9, 671e9 }, active = pick { 13e9, 22e9, 37e9 },
                  layers = pick { 32, 61, 94 } }
  end
  local p = out.parallelism
  if pick { 1, 2 } == 1 then p.tensor = pick { 1, 2, 4, 8 } end
  if pick { 1, 2, 3 } == 1 then p.pipeline = pick { 2, 4, 5, 8, 16 } end
  if experts == 1 and pick { 1, 2, 3 } == 1 then p.expert = pick { 8, 16, 32, 64 } end
  if pick { 1, 2, 3 } == 1 then p.schedule = pick { "1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "dualpipe", "dualpipev" } end
  if pick { 1, 2, 3 } == 1 then out.training.global_batch_size = pick { 256, 512, 1023, 1024, 4096 } end
  if pick { 1, 2, 3, 4 } == 1 then out.training.recompute = pick { "selective", "full" } end
  return out
end

-- ---------------------------------------------------------------------------------------------------------------------------- search

function invariants.search(options, how)
  local policy = load.load(options)
  local context = { policy = policy, loosened = loosenings(options, policy) }
  local specs, list, seen = {}, {}, {}
  for i, object in ipairs(how.specs or boundary.specs { policy }) do specs[i] = object end
  for i = 1, how.random or 0 do specs[#specs + 1] = random_spec((how.seed or 0) * 1000003 + i) end
  for number, object in ipairs(specs) do
    for _, kind in ipairs(order) do
      local broken = checks[kind](context, object)
      local found = broken and (broken[3] or kind)
      if broken and not seen[found .. broken[1]] then
        seen[found .. broken[1]] = true
        local small, said = object, broken[2]
        if not broken.over_budget then small, said = shrunk(context, kind, broken, object) end
        list[#list + 1] = { kind = found, rule = broken[1], spec = small, message = said }
      end
      if broken and broken.over_budget then return list, number end
    end
    if how.progress then how.progress(number, #specs) end
  end
  return list, #specs
end

return invariants
