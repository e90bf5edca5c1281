-- SPDX-License-Identifier: Apache-2.0
-- framework.lua: what the framework of a request cannot run, over a set of candidates: schedules that it lacks, rules of its table
-- (catalog/frameworks), splits of layers that it has no way to say. No policy disables these. Where no framework is named, a rule about a
-- schedule holds that all frameworks which run it share.

local engine = require "engine"
local format = require "pipeplan.base.format"
local frameworks = require "pipeplan.catalog.frameworks"
local integers = require "pipeplan.base.integers"
local lists = require "pipeplan.base.lists"
local vocabulary = require "pipeplan.vocabulary"

local framework = {}

-- Ids of the rules by which a framework, or none, may drop a candidate.
function framework.ids(name)
  local entry = name and frameworks.find(name)
  return entry and lists.column(entry.plan_rules, "id") or {}
end

-- The table of the request's framework, or nil.
function framework.of(context)
  return context.request.framework and frameworks.find(context.request.framework) or nil
end

-- ----------------------------------------------------------------------------------------------------------------------------- facts

-- What rules of frameworks read beside the fields of the vocabulary, and what it is.
framework.fields = {
  mtp_layers = "MTP modules of the model", heads = "attention heads", query_groups = "key-value heads; with MLA as many as heads",
  mixer_heads = "heads that TP cuts in each of the layers with a state, at once", mixer_groups = "groups of such heads",
  expert_bias = "do experts have biases?", precision = "of the matrix products", zero = "ZeRO stage",
  recompute_kind = "none, selective or full", recomputes_moe = "is the expert MLP computed again?",
  optimizer_state = "fp32, or reduced: moments or gradients in less",
  stages = "P × chunks", replicas = "copies of what is sharded", sequence_parallel = "are sequences split over TP between its products?",
  microbatch_group = "microbatches of a chunk's turn, where a file says so",
}

-- Of the layers with a state that have `field`: the largest number that divides it in each; nil where there is none.
local function in_mixers(shape, field)
  local common
  for _, kind in ipairs(shape.kinds or {}) do
    if kind[field] then common = integers.common_divisor(kind[field], common or kind[field]) end
  end
  return common or shape[field]
end

-- With one of the context's choices.
local function facts_of(context, choice)
  local shape, training, asked = context.arguments.model, choice.training, context.request.training
  local recompute, zero = training.recompute, vocabulary.zero_of[choice.values.sharding]
  return {
    mtp_layers = shape.mtp_layers or 0, heads = shape.heads,
    query_groups = shape.attention ~= "mla" and shape.kv_heads or shape.heads, expert_bias = shape.expert_bias or false,
    mixer_heads = in_mixers(shape, "value_heads"), mixer_groups = in_mixers(shape, "key_heads"),
    precision = training.precision, zero = zero, replicas = asked.replicas or 1, sequence_parallel = asked.sequence_parallel ~= false,
    recompute_kind = recompute.full and "full" or next(recompute) and "selective" or "none",
    recomputes_moe = recompute.moe or false,
    optimizer_state = asked.moments ~= "fp32" and "reduced" or asked.gradients ~= "fp32" and zero < 2 and "reduced" or "fp32",
  }
end

-- ----------------------------------------------------------------------------------------------------------------------------- rules

local compiled = setmetatable({}, { __mode = "k" })

local function conditions_of(rule)
  compiled[rule] = compiled[rule] or frameworks.conditions(rule)
  return compiled[rule]
end

-- Does a rule hold for that record (field → value)?
function framework.holds(rule, record)
  local read = {}   -- the engine sorts what it is given
  for _, condition in ipairs(conditions_of(rule)) do
    local other = type(condition.value) == "table" and condition.value.field
    read[condition.field] = record[condition.field]
    if other then read[other] = record[other] end
  end
  return engine.conditions.match(read, conditions_of(rule)) and (not rule.when or rule.when(record))
end

-- Does a framework take a candidate, by the rules that its record (with what framework.fields names) has all fields for?
function framework.takes(name, record)
  for _, rule in ipairs(frameworks.find(name).plan_rules) do
    local known = not rule.when
    for _, condition in ipairs(conditions_of(rule)) do known = known and record[condition.field] ~= nil end
    if known and framework.holds(rule, record) then return false end
  end
  return true
end

-- The rules that hold in a framework; where none is named, those about a schedule alone: { rule, entry, only: that schedule } each.
local function rules_of(context, schedules)
  local entry, list = framework.of(context), {}
  for _, rule in ipairs(entry and entry.plan_rules or {}) do list[#list + 1] = { rule = rule, entry = entry } end
  for _, name in ipairs(entry and {} or schedules) do
    for _, rule in ipairs(frameworks.shared(name)) do
      list[#list + 1] = { rule = rule, entry = frameworks.find(frameworks.running(name)[1]), only = name }
    end
  end
  return list
end

-- Of those, the rules about schedules that conditions alone decide.
local function rules_about(context, schedule)
  local list = {}
  for _, each in ipairs(rules_of(context, { schedule })) do
    local about = false
    for _, condition in ipairs(each.rule.when and {} or conditions_of(each.rule)) do about = about or condition.field == "schedule" end
    if about then list[#list + 1] = each end
  end
  return list
end

local function forbidden_with(context, schedule, choice, rules)
  local record = facts_of(context, choice)
  for name, value in pairs(context.record) do record[name] = value end
  for name, value in pairs(choice.values) do record[name] = value end
  record.schedule = schedule
  if record.architecture == "dense" then record.expert_parallel, record.expert_tensor_parallel = 1, 1 end
  for _, each in ipairs(rules) do
    local known = true
    for _, condition in ipairs(conditions_of(each.rule)) do known = known and record[condition.field] ~= nil end
    if known and framework.holds(each.rule, record) then
      return { rule = each.rule, entry = each.entry, record = record }
    end
  end
end

-- The rule for which no layout of the request could run that schedule, whatever its recipe: { rule, entry, record }; or nil.
function framework.forbidden(context, schedule)
  local rules, first = rules_about(context, schedule), nil
  for i, choice in ipairs(#rules > 0 and context.arguments.choices or {}) do
    local found = forbidden_with(context, schedule, choice, rules)
    if not found then return nil end
    if i == 1 then first = found end
  end
  return first
end

-- The same for some schedules: what forbids the first of them, where all of them are; or nil.
function framework.forbidden_all(context, schedules)
  local first
  for i, name in ipairs(schedules) do
    local found = framework.forbidden(context, name)
    if not found then return nil end
    if i == 1 then first = found end
  end
  return first
end

-- --------------------------------------------------------------------------------------------------------------------------- messages

-- The nearest legal value that a rule knows, or that its one numeric condition tells: { field, value }. One that is more than anything can
-- be is none.
local function nearest(rule, record)
  if rule.nearest then
    local near = rule.nearest(record)
    return (math.type(near and near.value) ~= "integer" or near.value <= vocabulary.most.counted) and near or nil
  end
  for _, condition in ipairs(conditions_of(rule)) do
    local known = vocabulary.by_name[condition.field]
    local bound = type(condition.value) == "table" and record[condition.value.field] or condition.value
    if known and known.scope ~= "request" and math.type(bound) == "integer" then
      if condition.op == "under" then return { field = condition.field, value = bound } end
      if condition.op == "at_most" then return { field = condition.field, value = bound + 1 } end
    end
  end
end

-- Why, in words, and the nearest legal value, for the record that the rule holds for.
function framework.told(rule, entry, record)
  local near = nearest(rule, record)
  local words = { framework = entry.title, schedule = record.schedule and format.schedule(record.schedule),
                  name_of_m = entry.names.microbatches, nearest = near and tostring(near.value) }
  local text = rule.message:gsub("{([^{}]*)}", function(name)
    local value = words[name] or record[name]
    return math.type(value) == "integer" and format.integer(value) or tostring(value)
  end)
  return text, near
end

-- ------------------------------------------------------------------------------------------------------------------------------ layers

local function is_even(list)
  for i = 2, #list do
    if list[i] ~= list[1] then return false end
  end
  return true
end

-- How many layers each of so many stages holds where the first ones get what is left over.
local function remainder_first(layers, stages)
  local list = {}
  for s = 1, stages do list[s] = layers // stages + (s <= layers % stages and 1 or 0) end
  return list
end

-- Layers on each rank of a V, or of one chunk a rank.
local function of_ranks(list, ranks)
  if #list == ranks then return list end
  local sums = {}
  for r = 1, ranks do sums[r] = list[r] + list[2 * ranks + 1 - r] end
  return sums
end

-- Has a framework that lets only the ends differ a split of so many layers over so many ranks?
local function ends_exist(layers, ranks, multiple)
  if layers % multiple ~= 0 or ranks < 2 then return false end
  return layers >= ranks * multiple  -- the ends take what is left over, in multiples
end

local function same(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- Can stages hold those layers (a given list, or what the planner would choose, nil)?
local function layers_legal(how, list, layers, ranks, stages)
  if how.how == "even" then
    if list then return is_even(list) end
    return layers % stages == 0
  elseif how.how == "remainder_first" then
    return not list or same(list, remainder_first(layers, stages))
  elseif how.how == "ends" then
    if not list then return ends_exist(layers, ranks, how.multiple) end
    local held = of_ranks(list, ranks)
    for r, count in ipairs(held) do
      if count < how.multiple or count % how.multiple ~= 0 or r > 2 and r < ranks and count ~= held[2] then return false end
      if #list > ranks and list[r] ~= (count + 1) // 2 then return false end
    end
  end
  return true
end

-- Why not, in words.
local function layers_told(how, list, layers, ranks, stages, title, schedule)
  local name = format.schedule(schedule)
  if how.how == "remainder_first" then
    return string.format("%s places no layers by list: of %d layers its %s puts %s on %d stages", title, layers, how.key,
                         table.concat(remainder_first(layers, stages), ", "), stages)
  elseif how.how == "ends" then
    local what = list and "[" .. table.concat(list, ",") .. "] is not so"
                 or string.format("%d layers on %d ranks cannot be so", layers, ranks)
    return string.format("%s gives every rank of %s an even number of layers, half to each of its chunks, and the ranks between the first "
                         .. "and the last as many each: %s", title, name, what)
  end
  if list and layers % stages == 0 then
    return string.format("%s gives every stage of %s as many layers: [%s] does not", title, name, table.concat(list, ","))
  end
  return string.format("%s gives every stage of %s as many layers: %d layers do not divide by %d stages", title, name, layers, stages)
end

-- The engine's word for a rule of layers.
local rule_names = { even = "even", remainder_first = "remainder_first", ends = "even_ends" }

-- engine.search's `layers`: the rule of each schedule that the request's framework runs.
function framework.layer_rules(context)
  local entry, rules = framework.of(context), {}
  for _, name in ipairs(entry and frameworks.schedules(entry) or {}) do rules[name] = rule_names[frameworks.layers(entry, name).how] end
  return rules
end

-- The message of an entry `uneven_layers`, for a row of the set.
function framework.uneven(set, entry, row)
  local schedule, stages = set.c:get("schedule", row), set.c:get("stages", row)
  local given = set.context.fixed.layers_per_stage
  return layers_told(entry.layers, given and #given == stages and given or nil, set.context.record.layers,
                     set.c:get("pipeline_parallel", row), stages, entry.framework.title, schedule)
end

-- ----------------------------------------------------------------------------------------------------------------------------- flags

-- What a finished plan has under a key's field, or makes of it.
local function value_of(key, plan, request)
  local field = key.field
  if key.value then return key.value(request.training, request.given or {}, plan) end
  local group, name = field:match("^(%w+)%.(.+)$")
  if group == "parallelism" then return plan.parallelism[name] end
  if field == "plan.sequence_parallel" then return plan.parallelism.tensor > 1 and request.training.sequence_parallel ~= false end
  if group == "plan" then return plan[name] end
  if field == "training.zero" then return request.training.zero or 1 end
  return group == "training" and request.training[name] or nil
end

-- What a framework calls a field of a plan, or nil where it takes none; of a plan for no framework in particular, what Megatron-LM does.
local function key_of(request, field)
  for _, key in ipairs((framework.of { request = request } or frameworks.find "megatron").keys) do
    if key.field == field then return key.key end
  end
end

-- What says a plan's layers and groups of microbatches, in the framework's words: "--pipeline-model-parallel-layout 'Et*3|…'"; or nil.
function framework.layout_flags(request, plan)
  local layout, group, list = key_of(request, "plan.megatron_layout"), key_of(request, "plan.microbatch_group_size"), {}
  if layout and plan.megatron_layout then list[1] = string.format("%s '%s'", layout, plan.megatron_layout) end
  local entry = framework.of { request = request }
  if entry and entry.layers.how == "names" and plan.parallelism.pipeline > 1 and entry.writes then
    list[1] = entry.layers.key .. " " .. table.concat(entry.writes[entry.layers.key] { plan = plan }, " ")
  end
  if group and plan.microbatch_group_size and plan.microbatch_group_size ~= plan.parallelism.pipeline then
    list[#list + 1] = group .. " " .. plan.microbatch_group_size
  end
  return #list > 0 and list or nil
end

-- Keys whose absence is legal and means something else than the plan: what to write beside the layout, in the framework's words.
function framework.flags(request, plan)
  local entry, list, seen, by_name = framework.of { request = request }, {}, {}, {}
  for _, key in ipairs(entry and entry.keys or {}) do by_name[key.key] = key end
  local function add_wanted(name)
    if not name or seen[name] then return end
    seen[name] = true
    add_wanted(by_name[name].wants)
    list[#list + 1] = name
  end
  for _, key in ipairs(entry and entry.keys or {}) do
    local value = key.silent and value_of(key, plan, request)
    local default = key.default
    if key.default_of then default = value_of({ field = key.default_of }, plan, request) end
    local about_experts = key.field == "parallelism.expert_tensor" and plan.parallelism.expert == 1 and request.model.architecture ~= "moe"
    if value and value ~= default and not about_experts then
      add_wanted(key.wants)
      list[#list + 1] = key.present ~= nil and key.key or key.key .. " " .. tostring(value)
    end
  end
  return #list > 0 and list or nil
end

-- The same for another layout, and perhaps another stage of sharding, than the request's.
function framework.flags_of(request, evaluation, parallelism, sharding)
  local training = sharding and lists.with(request.training, { zero = vocabulary.zero_of[sharding] }) or request.training
  return framework.flags(lists.with(request, { training = training }),
                         { parallelism = parallelism, overlap_alone = evaluation and evaluation.overlap_alone or nil })
end

-- Can a framework run a finished plan, by what its record tells: its rules, its tied weights, and layers that a spec gives (list)?
function framework.runs(name, plan, record, list)
  local entry, P = frameworks.find(name), plan.parallelism.pipeline
  if not framework.takes(name, record) then return false end
  if P == 1 then return true end
  if record.tied_embeddings and not entry.has.tied_embeddings then return false end
  return not list or layers_legal(frameworks.layers(entry, plan.schedule), list, record.layers, P, #list)
end

-- --------------------------------------------------------------------------------------------------------------------------- applying

local function apply_rules(set, add, names)
  local facts = {}
  for i, choice in ipairs(set.context.arguments.choices) do facts[i] = facts_of(set.context, choice) end
  for _, name in ipairs(lists.sorted_keys(facts[1])) do set.c:set(name, lists.column(facts, name)) end
  for _, each in ipairs(rules_of(set.context, names)) do
    local mask = set.c:match(conditions_of(each.rule))
    if each.only then mask = mask & set:scheduled { each.only } end
    if each.rule.when then
      local rows = {}
      for _, row in ipairs(mask:rows()) do
        if each.rule.when(set.c:row(row)) then rows[#rows + 1] = row end
      end
      mask = set.c:only(rows)
    end
    add(set, "framework", each.rule.id, mask, { fact = each.rule, framework = each.entry })
  end
end

local function apply_layers(set, add, entry, pipelines)
  local c, given, layers = set.c, set.context.fixed.layers_per_stage, set.context.record.layers
  for _, name in ipairs(frameworks.schedules(entry)) do
    local how, wrong = frameworks.layers(entry, name), {}
    for _, row in ipairs(rule_names[how.how] and (pipelines & set:scheduled { name }):rows() or {}) do
      local stages = c:get("stages", row)
      local list = given and #given == stages and given or nil
      if not layers_legal(how, list, layers, c:get("pipeline_parallel", row), stages) then wrong[#wrong + 1] = row end
    end
    add(set, "framework", "uneven_layers", c:only(wrong), { framework = entry, layers = how })
  end
end

-- Adds the entries of what cannot be run, with add(set, kind, id, mask, more). planned: names of the schedules that the policy plans;
-- entries with `outside` are rows whose schedule is not run at all, by the policy or the framework.
function framework.apply(set, add, planned)
  local pipelines = set.c:match { { field = "pipeline_parallel", op = "over", value = 1 } }
  local outside = pipelines - set:scheduled(planned)
  add(set, "framework", "not_in_framework", outside, { planned = planned, outside = true })
  local entry = framework.of(set.context)
  local runs = entry and frameworks.schedules(entry)
  if entry then
    add(set, "framework", "not_in_framework", pipelines - outside - set:scheduled(runs), { framework = entry, outside = true })
    if not entry.has.tied_embeddings and set.context.record.tied_embeddings then
      add(set, "framework", "not_in_framework", pipelines & set:scheduled(runs), { framework = entry, tied = true })
    end
  end
  apply_rules(set, add, planned)
  if entry then apply_layers(set, add, entry, pipelines) end
end

return framework
