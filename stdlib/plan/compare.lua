-- compare.lua: what a plan is compared with: the other schedules, those that would be faster, no pipeline at all. All by step time.

local accuracy = require "pipeplan.catalog.accuracy"
local candidates = require "pipeplan.plan.candidates"
local frameworks = require "pipeplan.catalog.frameworks"
local framework = require "pipeplan.plan.framework"
local lists = require "pipeplan.base.lists"
local rank = require "pipeplan.plan.rank"
local reasons = require "pipeplan.plan.reasons"

local compare = {}

-- Where other schedules are looked for: with V and a given split freed, for these are the planned schedule's own.
local function open_others(set)
  local fixed = set.context.fixed
  if not fixed.virtual and not fixed.layers_per_stage and not fixed.schedule then return set end
  return candidates.open(lists.with(set.context, { fixed = candidates.without(candidates.without(fixed, "virtual"), "schedule") }))
end

-- The row that speaks for a schedule: the fastest survivor, else the fastest of those with the fewest rules against them.
local function speaker(set, mask)
  local alive = mask & set.alive
  if #alive > 0 then return (set.c:best(alive)) end
  if #mask == 0 then return nil end
  local fewest = rank.fewest(set, mask)
  set.c:memory(fewest)
  return (set.c:best(fewest)) or fewest:first()
end

local function alternative(set, here, name)
  local mine = set.main & set:scheduled { name }
  local buildable = mine - set.unbuildable
  local there = buildable & here
  local row = speaker(set, #there > 0 and there or #(buildable & set.alive) > 0 and buildable & set.alive or buildable)
  if not row then
    local judged = #mine > 0 and rank.fewest(set, mine):first()
    local why_not = judged and reasons.all(set, judged) or { reasons.no_candidates(name, framework.forbidden(set.context, name)) }
    return { schedule = name, at_plan_layout = false, why_not = why_not }
  end
  set.c:memory(set.c:only(row))
  set.c:simulate(row)
  local fields, why_not = set.c:row(row), reasons.all(set, row)
  local fits = fields.peak_bytes and fields.peak_bytes <= set.context.arguments.usable_bytes
  -- Bytes are entries only where nothing else drops a candidate; who compares wants to know all the same.
  local told = false
  for _, reason in ipairs(why_not) do told = told or reason.kind == "memory" end
  if fits == false and not told then why_not[#why_not + 1] = reasons.memory(set, row) end
  return { schedule = name, row = row, candidates = set.c, at_plan_layout = #there > 0, fields = fields, why_not = why_not, fits = fits }
end

-- One entry for each other schedule that may be planned: at the plan's layout where it can be built there, else at its own best.
function compare.alternatives(set, choice)
  if set.context.fixed.pipeline == 1 then return {} end
  set.others = set.others or open_others(set)
  local list, mine = {}, set.c:get("schedule", choice.row)
  local here = set.others.main & set.others:layout_of(choice.row, set.c)
  for _, name in ipairs(candidates.planned(set.policy)) do
    if name ~= mine then list[#list + 1] = alternative(set.others, here, name) end
  end
  return list
end

-- Schedules with a survivor, at any layout that the "any" preferences leave, that is faster than the plan by more than a tie.
function compare.dominated_by(set, choice)
  if set.context.fixed.pipeline == 1 then return {} end
  set.others = set.others or open_others(set)
  local others, list = set.others, {}
  local left = rank.preferred(others, others.main & others.alive)
  local seconds, mine = set.c:get("step_seconds", choice.row), set.c:get("schedule", choice.row)
  local limit = seconds * (1 - set.policy.parameters.tie_fraction.value)
  for _, name in ipairs(candidates.planned(set.policy)) do
    local row, faster
    if name ~= mine then row, faster = others.c:best(left & others:scheduled { name }, 0, limit) end
    if row then
      local gain = 1 - faster / seconds
      list[#list + 1] = { schedule = name, gain_fraction = gain, row = row, candidates = others.c, fields = others.c:row(row),
                          tie = gain < accuracy.comparison_fraction }
    end
  end
  table.sort(list, function(a, b)
    if a.gain_fraction ~= b.gain_fraction then return a.gain_fraction > b.gain_fraction end
    return a.schedule < b.schedule
  end)
  return list
end

-- The best candidate without a pipeline that no rule drops: what rules without a pipeline recommend, and what a plan has to be worth.
function compare.alone(set, among)
  local left = rank.preferred(set, (among or set.alone) & set.alive)
  local _, _, close = set.c:best(left, set.policy.parameters.tie_fraction.value)
  local best
  for _, row in ipairs(close and close:rows() or {}) do
    local function less(field)
      local a, b = set.c:get(field, row), set.c:get(field, best)
      return a ~= b and a < b, a ~= b
    end
    local better, differs = best == nil, best == nil
    for _, field in ipairs { "tensor_parallel", "peak_bytes", "expert_parallel", "context_parallel" } do
      if not differs then better, differs = less(field) end
    end
    if better then best = row end
  end
  return best
end

-- The context without a pipeline, and with parameters and gradients sharded: nil where the spec says what is sharded, or what runs the plan
-- does not shard parameters.
function compare.sharded(context)
  local request = context.request
  local framework_entry = request.framework and frameworks.find(request.framework)
  if request.training.zero or (framework_entry and not lists.contains(framework_entry.sharding.alone or {}, 3)) then return nil end
  local fixed = lists.with(context.fixed, { pipeline = 1 })
  for _, name in ipairs { "schedule", "virtual", "layers_per_stage", "microbatches" } do fixed[name] = nil end
  local training = lists.with(context.arguments.training, { shard_optimizer = true, shard_gradients = true, shard_parameters = true })
  return lists.with(context, { fixed = fixed, arguments = lists.with(context.arguments, { training = training }) })
end

-- The best without a pipeline, of what the spec shards and, where it does not say, of fully sharded data parallelism:
-- { row, fields, candidates, sharding }.
function compare.without_pipeline(set)
  local row = compare.alone(set)
  local best = row and { row = row, fields = set.c:row(row), candidates = set.c } or nil
  local context = compare.sharded(set.context)
  if not context then return best end
  local other = candidates.open(context)
  row = compare.alone(other)
  local fields = row and other.c:row(row)
  if fields and (not best or fields.step_seconds < best.fields.step_seconds) then
    best = { row = row, fields = fields, candidates = other.c, sharding = "parameters" }
  end
  return best
end

return compare
