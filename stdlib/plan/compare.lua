-- compare.lua: what a plan is compared with: the other schedules, those that would be faster, no pipeline at all; and why another choice
-- lost. All by step time.

local candidates = require "pipeplan.plan.candidates"
local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.failure"
local format = require "pipeplan.report.format"
local rank = require "pipeplan.plan.rank"
local reasons = require "pipeplan.plan.reasons"
local vocabulary = require "pipeplan.vocabulary"

local compare = {}

-- Gains under this are called a tie: what an estimate without measured kernels can tell apart.
local TIE_GAIN = 0.05

-- Where other schedules are looked for: with V and a given split freed, for these are the planned schedule's own.
local function open_others(set)
  local fixed = set.context.fixed
  if not fixed.virtual and not fixed.layers_per_stage and not fixed.schedule then return set end
  local context = {}
  for key, value in pairs(set.context) do context[key] = value end
  context.fixed = candidates.without(candidates.without(fixed, "virtual"), "schedule")
  return candidates.open(context)
end

-- The rows of `others` that have the plan's layout.
local function at_layout(others, set, row)
  local list = {}
  for _, field in ipairs { "pipeline_parallel", "tensor_parallel", "context_parallel", "expert_parallel", "expert_tensor_parallel" } do
    list[#list + 1] = { field = field, op = "equal", value = set.c:get(field, row) }
  end
  return others.main & others.c:match(list)
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
    return { schedule = name, at_plan_layout = false, why_not = judged and reasons.all(set, judged) or { reasons.no_candidates(name) } }
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
  local here = at_layout(set.others, set, choice.row)
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
  local left = others.main & others.alive
  for _, rule in ipairs(set.policy.prefers) do
    if rule.within == "any" then
      local matching = others:match(rule, left)
      if #matching > 0 then left = matching end
    end
  end
  local seconds, mine = set.c:get("step_seconds", choice.row), set.c:get("schedule", choice.row)
  local limit = seconds * (1 - set.policy.parameters.tie_fraction.value)
  for _, name in ipairs(candidates.planned(set.policy)) do
    local row, faster
    if name ~= mine then row, faster = others.c:best(left & others:scheduled { name }, 0, limit) end
    if row then
      local gain = 1 - faster / seconds
      list[#list + 1] = { schedule = name, gain_fraction = gain, row = row, candidates = others.c, fields = others.c:row(row),
                          tie = gain < TIE_GAIN }
    end
  end
  table.sort(list, function(a, b)
    if a.gain_fraction ~= b.gain_fraction then return a.gain_fraction > b.gain_fraction end
    return a.schedule < b.schedule
  end)
  return list
end

-- The best candidate without a pipeline that no rule drops: what R14 and R17 recommend, and what a plan has to be worth.
function compare.alone(set, among)
  local left = (among or set.alone) & set.alive
  for _, rule in ipairs(set.policy.prefers) do
    if rule.within == "any" then
      local matching = set:match(rule, left)
      if #matching > 0 then left = matching end
    end
  end
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

-- -------------------------------------------------------------------------------------------------------------------- why another lost

local short = {
  tensor = "tensor_parallel", context = "context_parallel", expert = "expert_parallel", expert_tensor = "expert_tensor_parallel",
  data = "data_parallel", pipeline = "pipeline_parallel",
}

local function field_of(name)
  local field = short[name] or short[name:gsub("^parallelism%.", "")] or name:gsub("^parallelism%.", "")
  local entry = vocabulary.by_name[field]
  if not entry or (entry.scope ~= "candidate" and entry.scope ~= "simulated") then
    local names = {}
    for from in pairs(short) do names[#names + 1] = from end
    for _, known in ipairs(vocabulary.fields) do
      if known.scope == "candidate" then names[#names + 1] = known.name end
    end
    table.sort(names)
    failure.usage("--why: no field '%s' of a candidate%s", name, failure.suggestion(name, names))
  end
  return field
end

-- Which step of the ranking a survivor did not pass, and the rows of `mask` that came as far as that.
local function lost_at(set, mask, choice)
  local left = mask & set.listed
  if #left == 0 then return { by = "wanted" }, mask end
  for _, step in ipairs(choice.steps) do
    if #(left & step.left) == 0 then return step, left end
    left = left & step.left
  end
  return nil, left
end

local function lost_answer(set, answer, mask, choice)
  local step, left = lost_at(set, mask, choice)
  local row, seconds = set.c:best(left)
  local plan = set.c:get("step_seconds", choice.row)
  answer.row, answer.fields, answer.verdict = row, row and set.c:row(row), "lost"
  local by = step and step.by or "order"
  answer.lost = { by = by, id = step and step.id, step_fraction = seconds and seconds / plan - 1 }
  local compared = seconds and string.format("; its best, %s, takes %s a step against %s", format.schedule(answer.fields.schedule),
                                             format.seconds(seconds), format.seconds(plan)) or ""
  if by == "preference" then answer.text = string.format("lost to the preference %s%s", step.id, compared)
  elseif by == "wanted" then
    answer.text = string.format("the decision table's row %s takes %s first%s", choice.group.decision or "(fixed)",
                                format.schedule(choice.group.list[1]), compared)
  elseif by == "time" then answer.text = string.format("slower by %s%s", format.percent(seconds / plan - 1), compared)
  else
    answer.text = "as fast as the plan within a tie; of equals the earlier name, then the smaller P, V, TP, memory and EP stay" .. compared
  end
end

-- why(field, value) of a planned set (choice nil: of one that has no plan).
function compare.why(set, choice)
  return function(name, value)
    local field = field_of(name)
    local all = field == "pipeline_parallel" and value == 1 and set.c:all() or set.main
    local mask = all & set.c:match { { field = field, op = "equal", value = value } }
    local answer = { field = name, value = value, reasons = {} }
    if #mask == 0 then
      answer.verdict = "none"
      answer.text = string.format("there is no candidate with %s = %s: it does not divide, or the spec fixes another", name,
                                  tostring(value))
    elseif choice and mask:has(choice.row) then
      answer.verdict, answer.row, answer.fields, answer.text = "chosen", choice.row, set.c:row(choice.row), "it is the plan's"
    elseif #(mask & set.alive) == 0 then
      local fewest = rank.fewest(set, mask)
      set.c:memory(fewest)
      local row = set.c:best(fewest) or fewest:first()
      answer.verdict, answer.row, answer.reasons = "dropped", row, reasons.all(set, row)
      answer.fields = set.c:row(row)
      local words = {}
      for i, reason in ipairs(answer.reasons) do words[i] = reason.id .. ": " .. reason.message end
      answer.text = "dropped by " .. table.concat(words, "; ")
    elseif #(mask & set.alive & set.main) == 0 then
      answer.verdict, answer.row = "lost", compare.alone(set, mask)
      answer.fields, answer.lost = set.c:row(answer.row), { by = "order" }
      answer.text = "no pipeline is the plan only where the spec fixes pipeline 1"
    elseif not choice then
      answer.verdict, answer.text = "none", "no row of the decision table lists its schedules"
    else
      lost_answer(set, answer, mask & set.alive, choice)
    end
    return answer
  end
end

-- Conditions of a row of the decision table that hold for the plan: for `explain`.
function compare.explain(set, choice)
  local steps, rows = {}, {}
  for i, step in ipairs(choice and choice.steps or {}) do steps[i] = { by = step.by, id = step.id, left = #step.left } end
  for i, group in ipairs(rank.groups(set)) do
    local texts = {}
    for j, condition in ipairs(group.rule and group.rule.conditions or {}) do texts[j] = conditions.text(condition) end
    rows[i] = { decision = group.decision, candidates = #group.mask, survivors = #(group.mask & set.alive), list = group.list,
                conditions = texts }
  end
  return { steps = steps, rows = rows }
end

return compare
