-- SPDX-License-Identifier: Apache-2.0
-- compare.lua: what a plan is compared with: the other schedules, those that would be faster, no pipeline at all. All by step time.

local accuracy = require "pipeplan.catalog.accuracy"
local candidates = require "pipeplan.plan.candidates"
local framework = require "pipeplan.plan.framework"
local lists = require "pipeplan.base.lists"
local rank = require "pipeplan.plan.rank"
local reasons = require "pipeplan.plan.reasons"

local compare = {}

-- Where other schedules are looked for: with V and a given split freed, for these are the planned schedule's own; then with its recipe.
local function others_of(set, choice)
  local fixed, context = set.context.fixed, set.context
  if set.others then return set.others end
  set.others = set
  if fixed.virtual or fixed.layers_per_stage or fixed.schedule then
    local arguments = lists.with(context.arguments, { choices = { context.arguments.choices[set.c:choice(choice.row)] } })
    set.others = candidates.open(lists.with(context, {
      arguments = arguments, fixed = candidates.without(candidates.without(fixed, "virtual"), "schedule") }))
  end
  return set.others
end

-- The row that speaks for a schedule: the fastest survivor, else the fastest of those with the fewest rules against them.
local function speaker(set, mask)
  local row = set:best(mask)
  if row or #mask == 0 then return row end
  set:weigh(mask)
  local fewest = rank.fewest(set, mask)
  set.c:memory(fewest)
  return (set.c:best(fewest)) or fewest:first()
end

-- Of a schedule, with the recipe of the plan.
local function alternative(set, recipe, here, name)
  local mine = set.main & recipe & set:scheduled { name }
  local buildable = mine - set.unbuildable
  local there = buildable & here
  local row = speaker(set, #there > 0 and there or buildable)
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
  return { schedule = name, row = row, candidates = set.c, set = set, at_plan_layout = #there > 0, fields = fields,
           why_not = why_not, fits = fits }
end

-- One entry for each other schedule that may be planned: at the plan's layout where it can be built there, else at its own best.
function compare.alternatives(set, choice)
  if set.context.fixed.pipeline == 1 then return {} end
  local others, list, mine = others_of(set, choice), {}, set.c:get("schedule", choice.row)
  local recipe, here = others:recipe_of(choice.row, set.c), others.main & others:layout_of(choice.row, set.c)
  for _, name in ipairs(candidates.planned(set.policy)) do
    if name ~= mine then list[#list + 1] = alternative(others, recipe, here, name) end
  end
  return list
end

-- Schedules with a survivor, at any layout that the "any" preferences leave, that is faster than the plan by more than a tie.
function compare.dominated_by(set, choice)
  if set.context.fixed.pipeline == 1 then return {} end
  local others, list = others_of(set, choice), {}
  local left = rank.preferred(others, others.main)
  local seconds, mine = set.c:get("step_seconds", choice.row), set.c:get("schedule", choice.row)
  local limit = seconds * (1 - set.policy.parameters.tie_fraction.value)
  for _, name in ipairs(candidates.planned(set.policy)) do
    local row, faster
    if name ~= mine then row, faster = others:best(left & others:scheduled { name }, 0, limit) end
    if row then
      local gain = 1 - faster / seconds
      list[#list + 1] = { schedule = name, gain_fraction = gain, row = row, candidates = others.c, set = others,
                          fields = others.c:row(row), tie = gain < accuracy.comparison_fraction }
    end
  end
  table.sort(list, function(a, b)
    if a.gain_fraction ~= b.gain_fraction then return a.gain_fraction > b.gain_fraction end
    return a.schedule < b.schedule
  end)
  return list
end

-- A row with what it is of: { row, fields, candidates, set }.
local function found(set, row)
  return { row = row, fields = set.c:row(row), candidates = set.c, set = set }
end

-- The fastest survivor of another layout or schedule.
function compare.runner_up(set, choice)
  if set.context.fixed.pipeline == 1 then return nil end
  local same = set:layout_of(choice.row) & set:scheduled { set.c:get("schedule", choice.row) }
  local row = set:best(set.main - same)
  return row and found(set, row)
end

local POINTS, LESS = 8, 0.03  -- points of a frontier; by how much of the bytes the next one takes less

-- Survivors of which none is faster with as few bytes: the fastest first, each next one the fastest that takes LESS fewer bytes. Of depth 1
-- too, unless the spec fixes a depth.
function compare.frontier(set)
  local rows = set.context.fixed.pipeline and set.main or set.main | set.alone
  local list, bytes = {}, nil
  for _ = 1, POINTS do
    local row = set:best(rows, 0, math.huge, bytes)
    if not row then break end
    list[#list + 1] = found(set, row)
    bytes = set.c:get("peak_bytes", row) * (1 - LESS)
  end
  return list
end

-- The best candidate without a pipeline that no rule drops: what rules without a pipeline recommend, and what a plan has to be worth.
function compare.alone(set, among)
  local left = rank.preferred(set, among or set.alone)
  local _, _, close = set:best(left, set.policy.parameters.tie_fraction.value)
  local best
  for _, row in ipairs(close and close:rows() or {}) do
    local function less(field)
      local a, b = set.c:get(field, row), set.c:get(field, best)
      return a ~= b and a < b, a ~= b
    end
    local better, differs = best == nil, best == nil
    if best and set.c:choice(row) ~= set.c:choice(best) then better, differs = set.c:choice(row) < set.c:choice(best), true end
    for _, field in ipairs { "tensor_parallel", "peak_bytes", "expert_parallel", "context_parallel" } do
      if not differs then better, differs = less(field) end
    end
    if better then best = row end
  end
  return best
end

candidates.alone = compare.alone

-- The best without a pipeline: { row, fields, candidates }.
function compare.without_pipeline(set)
  local row = compare.alone(set)
  return row and found(set, row) or nil
end

return compare
