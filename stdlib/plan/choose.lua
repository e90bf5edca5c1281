-- SPDX-License-Identifier: Apache-2.0
--[[
choose.lua: from a request and a policy to the plan's candidate, or to a verdict and what to do instead.

choose.choose{
  request    what stdlib/input produced; of it parallelism (what is fixed), framework and cluster.alltoall_kernel are read here
  policy     what stdlib/policy loaded
  record     every request field of the vocabulary (absent: nil)
  arguments  for engine.search: all but `fixed`, `schedules` and `layers`; and choices (choices.lua)
  explain    also fill result.steps
} → result:
  status           "planned" | "refused" | "rejected"
  candidates, row  engine.search and the row of the plan, when planned;  set: candidates.open's, for who wants to look further
  judged           the row whose rules are the verdict, when not planned; nil: there was not one candidate
  fields           candidates:row(row or judged)
  evaluation       candidates:evaluate(row), when planned
  reasons          { id, kind, message, source, layer, file, line, also, recommend, nearest } each. Not planned: all rules of the judged
                   candidate. Planned: why the wanted schedule was replaced. kind: reject refuse engine memory framework rank
  choice           what the plan, or else the judged candidate, chooses of the recipe: an entry of arguments.choices
  cost             { fraction, statements = { id, file, line, fraction } }: what the policy's wishes cost of the fastest survivor's step
  recommend        { candidates, row, fields, evaluation, choice, why, freed,
                     source = "data_parallel" | "data_and_tensor_parallel" | "freed" }
  decision, list   id of the decision table's row that holds for the plan, and its list as used
  schedule_wanted  first name of that row as written; nil: the schedule is fixed, or there is no pipeline
  replaced         the plan's schedule is not the wanted one
  dropped          { rule, count, at_least, nearest } each, count falling
  alternatives     { schedule, row, candidates, set, at_plan_layout, fields, fits, why_not } each
  dominated_by     { schedule, gain_fraction, row, candidates, set, fields, tie } each, gain falling
  runner_up        { row, fields, candidates, set } of the fastest survivor of another layout or schedule, or nil
  frontier         function() → the same of survivors of which none is faster with as few bytes, fastest first: it searches
  kernel           { name | false, id, use, why, given, statement } or nil at EP 1
  avoidable        { row, fields, candidates, set }: the best candidate without a pipeline, or nil
  why              why.of(set, …): function(field, value, what_if) → answer
  steps            how the plan was decided, in words

evaluation: tensor context expert expert_tensor data pipeline virtual chunks group limit schedule schedule_family copies chains
  microbatches smallest_microbatches; of one chain layers_per_stage[] stages[] placement[] stage_seconds[]; memory[] per rank,
  heaviest_rank, peak_bytes, further_copies_bytes (of it, beside one copy of its stages), parameters { resident, unique };
  makespan_seconds bubble_fraction max_idle_fraction max_idle_seconds min_idle_seconds max_span_seconds idle_per_rank_seconds[]
  busy_per_rank_seconds[] hop_seconds hop_exposed_seconds; step { gradient_sync, parameter_sync, optimizer, mirror, overhead }
  step_seconds; ideal_step_seconds (mean compute of a rank, all-to-all
  left out) work_seconds (with it) alltoall_seconds alltoall_exposed_seconds tensor_seconds (all exposed) context_seconds
  context_exposed_seconds; no_overlap { step_seconds, makespan_seconds,
  bubble_fraction }: F&B = F + B; baselines { schedule → … } at the same layout and M without overlap: { step_seconds,
  makespan_seconds, bubble_fraction, peak_bytes, fits }
]]

local baselines_of = require("pipeplan.catalog.schedules").baselines
local candidates = require "pipeplan.plan.candidates"
local choices = require "pipeplan.plan.choices"
local compare = require "pipeplan.plan.compare"
local format = require "pipeplan.base.format"
local framework = require "pipeplan.plan.framework"
local guard = require "pipeplan.plan.guard"
local lists = require "pipeplan.base.lists"
local recipe = require "pipeplan.input.recipe"
local rank = require "pipeplan.plan.rank"
local reasons = require "pipeplan.plan.reasons"
local statements = require "pipeplan.policy.statements"

local choose = {}

-- --------------------------------------------------------------------------------------------------- planned: the wanted and the chosen

-- Of some rows the one whose depth is nearest to the plan's.
local function nearest_depth(set, mask, row)
  local depth, best, distance = set.c:get("pipeline_parallel", row), nil, nil
  for _, other in ipairs(mask:rows()) do
    local away = math.abs(math.log(set.c:get("pipeline_parallel", other) / depth))
    if not best or away < distance then best, distance = other, away end
  end
  return best
end

-- Of some rows the one that comes nearest to fitting; nil where no bytes are known.
local function least_bytes(set, mask)
  local best, least
  for _, row in ipairs(mask:rows()) do
    local bytes = set.c:get("peak_bytes", row)
    if bytes and (not best or bytes < least) then best, least = row, bytes end
  end
  return best
end

-- Dropped candidates of a name: the rules of the one that is nearest to being planned, of the plan's recipe and layout if there is one.
local function why_without(set, group, name, choice)
  local mine = group.mask & set:scheduled(candidates.members(set.policy, name))
  local alike = mine & set:recipe_of(choice.row)
  if #alike > 0 then mine = alike end
  set:weigh(mine)
  if #mine == 0 then
    return { reasons.no_candidates(name, framework.forbidden_all(set.context, candidates.members(set.policy, name))) }
  end
  local alive = mine & set.alive
  if #alive > 0 then
    for _, step in ipairs(choice.steps) do
      if step.by == "preference" and step.rule.within == "any" and #(alive & step.left) == 0 then
        -- and what stands in the way of those that would match
        local list, matching = { reasons.preference(name, step.rule) }, set:match_any(step.rule, mine, true)
        local row = #matching > 0 and nearest_depth(set, rank.fewest(set, matching), choice.row)
        for _, reason in ipairs(row and reasons.all(set, row) or {}) do list[#list + 1] = reason end
        return list
      end
    end
  end
  -- Where memory alone stands in the way, that is what to tell: at the plan's own layout another rule may hold that the next depth escapes.
  local short = mine
  for _, entry in ipairs(set.entries) do
    if entry.kind ~= "memory" then short = short - entry.mask end
  end
  local nearest = least_bytes(set, short)
  if nearest then return reasons.all(set, nearest) end
  local here = mine & set:layout_of(choice.row)
  return reasons.all(set, nearest_depth(set, rank.fewest(set, #here > 0 and here or mine), choice.row))
end

-- Why the plan's schedule is not the one that its row of the decision table names first.
local function replacement(set, choice)
  local list, group = {}, choice.group
  for i, refusal in ipairs(group.refusals) do
    if refusal.name == group.wanted then
      local reason = reasons.of(set, refusal.entry, refusal.row)
      reason.also = i > 1 or nil
      list[#list + 1] = reason
    end
  end
  if choice.state == "none" then
    for _, reason in ipairs(why_without(set, group, group.list[1], choice)) do list[#list + 1] = reason end
  elseif choice.state == "too_slow" then
    list[#list + 1] = reasons.too_slow(set, choice)
  end
  return list
end

local function is_wanted(set, group, schedule)
  for _, member in ipairs(candidates.members(set.policy, group.wanted)) do
    if member == schedule then return true end
  end
  return false
end

-- ----------------------------------------------------------------------------------------------------------------- dropped by which rule

local function dropped(set, planned)
  local list = {}
  for _, entry in ipairs(set.entries) do
    local mask, at_least = set:counted_of(entry, planned)
    mask = mask & set.main
    local found
    for _, other in ipairs(list) do
      if other.rule == entry.id then found = other end
    end
    if #mask > 0 and found then
      found.mask = found.mask | mask
    elseif #mask > 0 then
      list[#list + 1] = { rule = entry.id, mask = mask, entry = entry, at_least = at_least }
    end
  end
  for _, item in ipairs(list) do
    item.count = #item.mask
    local mine = rank.fewest(set, item.mask & set:counted_of(item.entry, planned))
    item.nearest = reasons.nearest(set, item.entry, mine:first())
    item.mask, item.entry = nil, nil
  end
  table.sort(list, function(a, b)
    if a.count ~= b.count then return a.count > b.count end
    return a.rule < b.rule
  end)
  return list
end

-- ---------------------------------------------------------------------------------------------------------------------------- verdict

-- Is a rule what a layer over the default makes of it: its own, one that it changes, or one whose parameter it sets?
local function is_sites(rule, policy)
  if rule.layer ~= "default" or #rule.hides > 0 then return true end
  for _, condition in ipairs(rule.conditions) do
    for _, key in ipairs { "ref", "low_ref", "high_ref" } do
      local parameter = policy.parameters[condition[key] or ""]
      if parameter and parameter.layer ~= "default" then return true end
    end
  end
  return false
end

-- Of dropped candidates those that only the rules of a site drop: without it there would be a plan, so it is what decides.
local function by_site(set, mask)
  local sites, others = set.c:none(), set.c:none()
  for _, entry in ipairs(set.entries) do
    if entry.rule and is_sites(entry.rule, set.policy) then sites = sites | entry.mask else others = others | entry.mask end
  end
  return mask & sites - others
end

-- Nothing is left: the dropped candidate with the fewest rules, one that can be built before one that cannot, then the best rank. Of those
-- that only do not fit, the one that comes nearest, for it says what is missing; where nothing can be built, one whose rules say so. All of
-- those that fit, where some did until rules about time were asked, else of the recipe that takes least memory: with another there is less
-- left.
local function judge(set)
  local saving = choices.saving(set.context.arguments.choices)
  rank.groups(set)
  local mask = set.main & set.judged & set.listed - set.alive
  if #mask == 0 then mask = set.main & set:recipe(saving) end
  if #mask == 0 then mask = set.main & set.c:match { { field = "gpus_used", op = "equal", value = set.context.record.gpus } } end
  if #mask == 0 then return nil end
  set:fill_memory(mask)
  if #(mask & set.listed) > 0 then mask = mask & set.listed end
  local run = mask  -- what policy or framework does not run at all is the closest only where there is nothing else
  for _, entry in ipairs(set.entries) do
    if entry.outside then run = run - entry.mask end
  end
  if #run > 0 then mask = run end
  local sites = by_site(set, mask)
  if #sites > 0 then mask = sites end
  local fewest = rank.fewest(set, mask)
  local built = fewest - set.unbuildable
  local told = set.c:none()
  for _, entry in ipairs(set.entries) do
    if entry.kind == "engine" then told = told | (entry.mask & fewest) end
  end
  if #built > 0 then fewest = built elseif #told > 0 then fewest = told end
  local memory_only = true
  for _, entry in ipairs(set.entries) do
    if entry.kind ~= "memory" and #(entry.mask & fewest) > 0 then memory_only = false end
  end
  if memory_only then
    local best = least_bytes(set, fewest)
    if best then return best end
  end
  return rank.closest(set, fewest) or fewest:first()
end

-- Not one candidate of all GPUs to judge. Without a pipeline there may be some that merely do not fit.
local function no_layout(set)
  local record, depth_one = set.context.record, set.context.fixed.pipeline == 1
  local words = string.format("no layout%s of %s GPU%s leaves whole microbatches of a batch of %s%s%s, with what the spec fixes",
                              depth_one and "" or " with a pipeline", format.integer(record.gpus), record.gpus == 1 and "" or "s",
                              format.integer(record.smallest_batch_size),
                              record.experts > 0 and ", whole expert groups" or "",
                              depth_one and "" or string.format(" and a layer of %d for each stage", record.layers))
  local list = { { id = "no_candidates", kind = "engine", message = words } }
  set:weigh(set.alone)
  local short = #(set.alone & set.alive) == 0 and least_bytes(set, set.alone)
  if short then list[2] = reasons.memory(set, short) end
  return list
end

local hard = { reject = true, engine = true, framework = true, rank = true }

local function status_of(list)
  for _, reason in ipairs(list) do
    if hard[reason.kind] then return "rejected" end
  end
  return "refused"
end

local function verdict(set, result)
  local row = judge(set)
  result.judged = row
  if row then
    set.c:simulate(row)
    result.fields, result.reasons = set.c:row(row), reasons.all(set, row)
    if #result.reasons == 0 then
      local words = string.format("no row of the decision table that holds lists %s", format.schedule(set.c:get("schedule", row)))
      result.reasons = { { id = "no_row", kind = "rank", message = words } }
    end
  else
    -- rules that read the request alone say it better than that nothing divides; they hold at any depth, so at 2 and at 3
    local depth = set.context.fixed.pipeline
    result.reasons = reasons.without_candidate(set, depth and { depth } or { 2, 3 })
    if #result.reasons == 0 then result.reasons = no_layout(set) end
  end
  result.status = status_of(result.reasons)
  return result
end

-- ------------------------------------------------------------------------------------------------------------------------- one search

-- Of a fixed schedule at depth 1 the rules that hold for it: no candidate has it there, where every schedule is `none`.
local function against_fixed(set)
  local fixed = set.context.fixed
  return fixed.pipeline == 1 and fixed.schedule and reasons.without_candidate(set, { 1 }) or {}
end

-- The plan or the verdict for what `context` fixes; nothing that only a finished plan needs.
local function decide(context)
  local set = candidates.open(context)
  local choice = rank.pick(set, set.main)
  local result = { set = set, candidates = set.c, choice = choice, total = #set.main }
  local list = against_fixed(set)
  if #list > 0 then
    result.status, result.reasons, result.choice = status_of(list), list, nil
    return result
  end
  if not choice then return verdict(set, result) end
  result.status, result.row, result.cost = "planned", choice.row, choice.cost
  return result
end

-- The same of what nobody asked for: it is rejected where an invariant forbids its plan, as the plan itself is once it is finished.
local function judged(context)
  local result = decide(context)
  local broken = result.row and guard.of_row(result.set, result.row) or {}
  if #broken > 0 then
    result.status, result.reasons = "rejected", broken
    result.judged, result.row = result.row, nil
  end
  return result
end

-- -------------------------------------------------------------------------------------------------------------------------- recommend

local function choice_of(set, row)
  return set.context.arguments.choices[set.c:choice(row)]
end

-- nil where an invariant forbids it.
local function recommendation(set, row, why, source, freed)
  if not guard.allows(set, row) then return nil end
  set.c:simulate(row)
  return { candidates = set.c, row = row, fields = set.c:row(row), evaluation = set.c:evaluate(row), why = why, source = source,
           freed = freed, choice = choice_of(set, row), optimizer_offload = set.context.offload }
end

local LARGEST_BATCH = 2 ^ 31 - 1  -- that a spec can give

-- The context with another batch, where there is one batch to change and a spec can give the other.
local function with_batch(context, batch)
  if context.arguments.smallest_batch ~= context.arguments.global_batch or batch > LARGEST_BATCH then return nil end
  return lists.with(context, {
    arguments = lists.with(context.arguments, { global_batch = batch, smallest_batch = batch }),
    record = lists.with(context.record, { global_batch_size = batch, smallest_batch_size = batch }),
  })
end

-- The context with something else in every recipe.
local function with_recipe(context, changes)
  local list = choices.with(context.arguments.choices, changes)
  return lists.with(context, { arguments = lists.with(context.arguments, { choices = list }) })
end

local recompute_words = { none = "no recompute", selective = "selective recompute", modules = "recompute of norms and activations",
                          full = "full recompute" }

-- What a recommendation without a pipeline says of its recipe.
local function recipe_words(set, row)
  local values, words, request = choice_of(set, row).values, "", set.context.request
  if request.free.recompute and values.recompute ~= "none" or values.recompute ~= choices.recompute_word(request.training.recompute) then
    words = words .. ", with " .. recompute_words[values.recompute]
  end
  if set.context.offload then words = words .. ", the optimizer in host memory" end
  return words
end

local sharded_words = { none = "nothing sharded", optimizer = "optimizer state sharded", gradients = "gradients and optimizer sharded",
                        parameters = "parameters, gradients and optimizer sharded" }

-- Data parallelism alone over all GPUs. Where the GPUs do not divide the batch, at the nearest batch that they do.
local function data_parallel_only(context, source)
  local record = context.record
  local busy = choices.where(context.arguments.choices, function(values) return values.gpus_used == record.gpus end)
  context = lists.with(context, { arguments = lists.with(context.arguments, { choices = busy }) })
  local least = math.huge
  for _, choice in ipairs(context.arguments.choices) do least = math.min(least, choice.values.micro_batch_size) end
  local step = record.gpus * least
  local batch, why = record.global_batch_size, ""
  if batch % step ~= 0 then
    why = string.format("%s GPUs do not divide a batch of %s", format.integer(record.gpus), format.integer(batch))
    batch = math.max(1, math.floor(batch / step + 0.5)) * step
    context = with_batch(context, batch)
    why = string.format("with a batch of %s: %s, ", format.integer(batch), why)
  end
  if not context then return nil end
  local fixed = { pipeline = 1, tensor = 1, context = 1, expert = 1, expert_tensor = 1 }
  local set = candidates.open(lists.with(context, { fixed = fixed }))
  local row = compare.alone(set)
  if not row then return nil end
  why = why .. sharded_words[set.c:get("sharding", row)]
  if set.c:get("micro_batch_size", row) < context.request.training.micro_batch_size then why = why .. ", microbatches of one sequence" end
  return recommendation(set, row, "data parallelism only, " .. why .. recipe_words(set, row), source)
end

-- The context with the optimizer's state in host memory.
local function with_offload(context)
  local request = lists.with(context.request, { training = lists.with(context.request.training, { optimizer_offload = 1 }) })
  local offloaded = with_recipe(context, { optimizer_offload = 1 })
  return lists.with(offloaded, { offload = 1, request = request, record = lists.with(context.record, { optimizer_offload = 1 }),
                                 arguments = lists.with(offloaded.arguments, { device = recipe.device(request, false) }) })
end

-- The best of a set without a pipeline, in words; nil where there is none. less: with a smaller recipe none fits.
local function alone_in(set, source, less)
  local row = compare.alone(set)
  if not row then return nil end
  local words = set.c:get("sharding", row) == "parameters"
                and "no pipeline: fully sharded data parallelism (parameters, gradients and optimizer)"
                or "no pipeline: data parallelism with tensor parallelism inside the scale-up domain"
  return recommendation(set, row, words .. recipe_words(set, row) .. (less and ": with less none fits" or ""), source)
end

-- A layout without a pipeline, as the spec has it; where none fits, with whole layers recomputed, and at last with the optimizer in host
-- memory. What the plan may choose has been tried by then.
local function without_layout(context, source, set)
  local found = set and alone_in(set, source)
  if found then return found end
  local tried = lists.with(context, { fixed = { pipeline = 1 } })
  local full = with_recipe(tried, { recompute = { full = true } })
  return alone_in(candidates.open(tried), source) or alone_in(candidates.open(full), source, true)
         or alone_in(candidates.open(with_offload(full)), source, true)
end

-- The best layout without a pipeline. "data_parallel": TP and EP are freed too; what does not fit one GPU at the spec's microbatch size or
-- batch is last tried at others, for fits_one_gpu is about a microbatch of one sequence.
local function without_pipeline(context, set, source)
  local pure, record = source == "data_parallel", context.record
  local micro = context.request.training.micro_batch_size
  local found = pure and record.global_batch_size % (record.gpus * micro) == 0 and data_parallel_only(context, source)
  if found then return found end
  if not pure then return without_layout(context, source, set) end
  if compare.alone(set, set.alone & set.c:match { { field = "gpus_used", op = "equal", value = record.gpus } }) then
    return without_layout(context, source, set)
  end
  return data_parallel_only(context, source) or micro > 1 and data_parallel_only(with_recipe(context, { micro_batch_size = 1 }), source)
         or without_layout(context, source)
end

-- What a batch would have to be for the number of microbatches that a rule names: { batch, M }.
local function batch_for(result)
  local fields = result.fields
  for _, reason in ipairs(result.reasons) do
    local near = reason.nearest
    local wanted
    if near and near.field == "microbatches" then wanted = near.value
    elseif near and near.field == "microbatches_per_rank" then wanted = math.ceil(near.value * fields.pipeline_parallel) end
    if wanted and wanted >= 1 then
      return math.tointeger(math.floor(wanted) * fields.data_parallel * fields.micro_batch_size), math.floor(wanted)
    end
  end
end

-- Contexts with one thing freed, in the order in which they are tried: { context, what, why }.
local function freed_contexts(context, result)
  local list, fixed = {}, context.fixed
  local function free(field)
    if fixed[field] ~= nil then
      list[#list + 1] = { lists.with(context, { fixed = candidates.without(fixed, field) }), field,
                          "the plan where the spec leaves " .. field .. " free" }
    end
  end
  free "schedule"
  local batch, microbatches
  if result.judged then batch, microbatches = batch_for(result) end
  local other = batch and with_batch(context, batch)
  if other then
    local words = string.format("the plan with a batch of %s: %s microbatches", format.integer(batch), format.integer(microbatches))
    list[#list + 1] = { lists.with(other, { fixed = candidates.without(fixed, "microbatches") }),
                        fixed.microbatches and "microbatches" or "batch", words }
  elseif fixed.microbatches then
    free "microbatches"
  end
  for _, field in ipairs { "virtual", "pipeline", "expert", "tensor" } do free(field) end
  return list
end

local function recommend(context, result)
  for _, reason in ipairs(result.reasons) do
    if lists.contains(statements.layouts, reason.recommend) then
      local found = without_pipeline(context, result.set, reason.recommend)
      if found then return found end
    end
  end
  for _, entry in ipairs(freed_contexts(context, result)) do
    local other = decide(entry[1])
    -- what no row lists is planned where nothing else is left, but not recommended
    local found = other.status == "planned" and other.set.listed:has(other.row)
                  and recommendation(other.set, other.row, entry[3], "freed", entry[2])
    if found then return found end
  end
  local row = not result.judged and compare.alone(result.set)
  return row and recommendation(result.set, row, "no pipeline: nothing else is left of these GPUs and this batch",
                                "data_and_tensor_parallel") or nil
end

-- --------------------------------------------------------------------------------------------------------------------------- together

local function finish_planned(set, choice, result)
  local group, schedule = choice.group, set.c:get("schedule", choice.row)
  set.c:simulate(choice.row)
  result.fields, result.evaluation = set.c:row(choice.row), set.c:evaluate(choice.row, baselines_of(schedule))
  result.decision, result.list, result.schedule_wanted = group.decision, group.list, group.wanted
  result.replaced = group.wanted ~= nil and not is_wanted(set, group, schedule)
  result.reasons = result.replaced and replacement(set, choice) or {}
  result.kernel = set:kernel_of(choice.row)
  result.alternatives = compare.alternatives(set, choice)
  result.dominated_by = compare.dominated_by(set, choice)
  result.runner_up = compare.runner_up(set, choice)
  result.frontier = function() return compare.frontier(set) end
end

local function context_of(arguments)
  return { request = arguments.request, policy = arguments.policy, record = arguments.record, arguments = arguments.arguments,
           fixed = arguments.request.parallelism or {} }
end

-- The layout that choose would plan, as c:evaluate gives it, with its choice of the recipe; or nil, also where an invariant forbids it: for
-- who only asks whether there is one.
function choose.layout(arguments)
  local set = candidates.open(lists.with(context_of(arguments), { no_comparison = true }))
  local choice = rank.pick(set, set.main)
  if not choice or #against_fixed(set) > 0 or #guard.of_row(set, choice.row) > 0 then return nil end
  return set.c:evaluate(choice.row), choice_of(set, choice.row)
end

-- What would be planned, invariants asked, without what only a finished plan needs: status, reasons, decision, candidates and row (or
-- judged), fields.
function choose.outcome(arguments)
  local result = judged(context_of(arguments))
  local set, choice = result.set, result.choice
  if choice then
    result.fields, result.decision = result.candidates:row(choice.row), choice.group.decision
  end
  if result.row then
    local replaced = choice.group.wanted ~= nil and not is_wanted(set, choice.group, result.fields.schedule)
    result.reasons = replaced and replacement(set, choice) or {}
  end
  return result
end

-- Why choose would plan nothing: the first of its reasons, with what the fullest rank's bytes are where these are the reason.
function choose.obstacle(arguments)
  local result = judged(lists.with(context_of(arguments), { no_comparison = true }))
  local reason = assert(result.reasons)[1]
  if reason.kind == "memory" and result.judged then
    reason.message = reason.message .. reasons.bytes(result.candidates, result.judged)
  end
  return reason
end

function choose.choose(arguments)
  local context = context_of(arguments)
  local result = decide(context)
  local set, choice = result.set, result.choice
  result.choice = nil
  result.replaced = false
  if result.status == "planned" then
    candidates.find_alone(set)
    finish_planned(set, choice, result)
  else
    result.recommend = recommend(context, result)
  end
  if context.fixed.pipeline ~= 1 then
    result.avoidable = compare.without_pipeline(set)
  end
  local row = result.row or result.judged
  result.choice = row and choice_of(set, row)
  set:weigh(set.c:none())
  result.dropped = dropped(set, result.status == "planned")
  -- loaded when asked for: few plans are
  result.why = function(...) return require("pipeplan.plan.why").of(set, choice, judged)(...) end
  if arguments.explain then result.steps = require("pipeplan.plan.why").steps(set, choice) end
  return result
end

return choose
