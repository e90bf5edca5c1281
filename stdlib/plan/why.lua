-- SPDX-License-Identifier: Apache-2.0
-- why.lua: why another choice is not the plan, for who has to defend the plan in a review: the best candidate that has the value, which
-- rules drop it or what it lost by and how much, and where the wanted schedule is not there, why not. And the steps that led to the plan.

local candidates = require "pipeplan.plan.candidates"
local compare = require "pipeplan.plan.compare"
local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local framework = require "pipeplan.plan.framework"
local guard = require "pipeplan.plan.guard"
local kernels = require "pipeplan.catalog.kernels"
local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"
local message = require "pipeplan.policy.message"
local rank = require "pipeplan.plan.rank"
local reasons = require "pipeplan.plan.reasons"
local vocabulary = require "pipeplan.vocabulary"

local why = {}

-- ------------------------------------------------------------------------------------------------------------------ what can be asked

-- Field of a candidate → its name in `parallelism` of a spec.
local spec_names = { microbatches = "microbatches", schedule = "schedule" }
for name, field in pairs(vocabulary.parallelism) do spec_names[field] = name end

local by_short, names, asked = {}, {}, {}
for _, entry in ipairs(vocabulary.fields) do
  if entry.scope == "candidate" and (entry.type == "integer" or entry.type == "string") then
    local short = spec_names[entry.name] or entry.name
    by_short[entry.name], by_short[short] = entry, entry
    asked[#asked + 1] = short
  end
end
for name in pairs(by_short) do names[#names + 1] = name end
table.sort(names)

-- The field that a question names: "pipeline", "pipeline_parallel", "parallelism.pipeline".
function why.field(name)
  local entry = by_short[(name:gsub("^parallelism%.", ""):gsub("-", "_"))]
  if entry then return entry.name end
  local known, near = vocabulary.by_name[name], failure.suggestion(name, names)
  if known and known.scope == "request" then
    failure.usage("--why: no field '%s' of a candidate: the spec states it; plan with --%s and compare", name, name)
  end
  failure.usage("--why: no field '%s' of a candidate%s", name, near ~= "" and near or ": expected one of " .. table.concat(asked, ", "))
end

local families = { schedule = { "zero_bubble" } }

-- A value that the field can have, in the field's type; --why's own error where it cannot.
function why.value(name, value)
  local entry = vocabulary.by_name[why.field(name)]
  if entry.type == "integer" then
    local number = math.tointeger(tonumber(value) or 0)
    if not number or number < entry.low or number > entry.high then
      failure.usage("--why: %s=%s: expected a whole number from %d to %d", name, tostring(value), entry.low, entry.high)
    end
    return number
  elseif entry.name == "alltoall_kernel" then
    if value == false or value == "false" or value == "none" then return false end
    local kernel = kernels.find(tostring(value))
    if not kernel then
      failure.usage("--why: %s=%s: no such kernel%s", name, tostring(value), failure.suggestion(tostring(value), kernels.names))
    end
    return kernel.name
  end
  local domain = table.move(entry.domain, 1, #entry.domain, 1, {})
  for _, family in ipairs(families[entry.name] or {}) do domain[#domain + 1] = family end
  for _, known in ipairs(domain) do
    if known == value then return value end
  end
  failure.usage("--why: %s=%s: expected one of %s%s", name, tostring(value), table.concat(domain, ", "),
                failure.suggestion(tostring(value), domain))
end

-- --------------------------------------------------------------------------------------------------------------------------- in words

local function label(c, row)
  return measure.label(c:row(row))
end

-- "16.5 % slower than the plan's 16.3 s".
local function compared(seconds, plan)
  local ratio = seconds / plan - 1
  if math.abs(ratio) < 0.0005 then return "as fast as the plan" end
  return string.format(math.abs(ratio) < 0.1 and "%.2f %% %s than the plan's %s" or "%.1f %% %s than the plan's %s", math.abs(ratio) * 100,
                       ratio > 0 and "slower" or "faster", format.seconds(plan))
end

-- "takes 19 s a step, 16.5 % slower than the plan's 16.3 s, and 66.5 GiB on its fullest rank"; "" where neither is known.
local function figures(set, row, choice)
  set.c:memory(set.c:only { row })
  local seconds, bytes = set.c:get("step_seconds", row), set.c:get("peak_bytes", row)
  local parts = {}
  if seconds then
    parts[1] = "takes " .. format.seconds(seconds) .. " a step"
    if choice then parts[2] = compared(seconds, set.c:get("step_seconds", choice.row)) end
  end
  local line = table.concat(parts, ", ")
  if not bytes then return line end
  return (line == "" and "takes " or line .. (parts[2] and ", and " or " and ")) .. format.bytes(bytes) .. " on its fullest rank"
end

-- "does_not_fit: rank 0 takes 101 GiB of 73.3 GiB usable, 27.9 GiB too much".
local function said(list)
  local words = {}
  for i, reason in ipairs(list) do
    words[i] = reason.id .. ": " .. (reason.detail or reason.message)
    if reason.nearest then words[i] = words[i] .. message.legal(reason.nearest) end
  end
  return table.concat(words, "; ")
end

-- Of rows that rules drop the one that comes nearest to being planned, and its rules; its bytes are among them where they are too many.
-- Of those with the fewest rules and, where there are such, at the plan's layout: the one that takes least memory where all take too much,
-- else the fastest.
local function nearest(set, mask, choice)
  local fewest = rank.fewest(set, mask)
  local here = choice and fewest & set:layout_of(choice.row)
  if here and #here > 0 then fewest = here end
  set.c:memory(fewest)
  local row, least
  for _, other in ipairs(fewest:rows()) do
    local bytes = set.c:get("peak_bytes", other)
    if bytes and (not least or bytes < least) then row, least = other, bytes end
  end
  if not least or least <= set.context.arguments.usable_bytes then row = set.c:best(fewest) or fewest:first() end
  set.c:simulate(row)
  local list, told = reasons.all(set, row), false
  for _, reason in ipairs(list) do told = told or reason.kind == "memory" end
  local bytes = set.c:get("peak_bytes", row)
  if not told and bytes and bytes > set.context.arguments.usable_bytes then list[#list + 1] = reasons.memory(set, row) end
  return row, list
end

-- ------------------------------------------------------------------------------------------------------------------ a survivor that lost

local function group_of(set, row)
  for _, group in ipairs(rank.groups(set)) do
    if group.mask:has(row) then return group end
  end
end

local function row_words(group)
  return group.decision and "row " .. group.decision or "the spec"
end

local function list_words(list)
  local words = {}
  for i, name in ipairs(list) do words[i] = format.schedule(name) end
  return table.concat(words, ", ")
end

-- Which step of the ranking the rows of `mask` did not pass, and those that came as far as that. nil: the last.
local function lost_at(mask, choice)
  local left = mask
  for _, step in ipairs(choice.steps) do
    if #(left & step.left) == 0 then return step, left end
    left = left & step.left
  end
  return nil, left
end

local function rule_words(rule)
  local texts = {}
  for i, condition in ipairs(rule.conditions) do texts[i] = conditions.text(condition) end
  if rule.when then texts[#texts + 1] = "its function says yes" end
  return rule.id .. " (" .. table.concat(texts, ", ") .. ")"
end

local function fraction_words(set, name)
  return name .. " " .. format.percent(set.policy.parameters[name].value)
end

local function row_within(group) return group and group.rule and group.rule.within end

local decided_by = {
  idle = "the one that leaves fewer GPUs idle stays",
  list = "the schedule that its list names earlier stays", pipeline_parallel = "the smaller P stays", virtual = "the smaller V stays",
  tensor_parallel = "the smaller TP stays", peak_bytes = "the one that takes less memory stays", expert_parallel = "the smaller EP stays",
  context_parallel = "the smaller CP stays", expert_tensor_parallel = "the smaller ETP stays",
  choice = "the recipe that the policy offers first stays",
}

-- By what a survivor lost, in words.
local how = {}

function how.preference(_, _, step)
  return "the preference " .. rule_words(step.rule) .. " keeps others"
end

function how.wanted(set, row)
  local group = group_of(set, row)
  if not group then return "no row of the decision table holds for it" end
  local listed = false
  for _, members in ipairs(group.members) do listed = listed or members:has(row) end
  if not listed then return string.format("%s lists only %s", row_words(group), list_words(group.list)) end
  local slower = row_within(group) ~= "any" and " or one slower by more than " .. reasons.tolerance(set, group) or ""
  return string.format("%s takes %s first, others only where it has no plan%s", row_words(group), format.schedule(group.list[1]), slower)
end

function how.time(set, row, step)
  if step.window ~= set.policy.parameters.tie_fraction.value then
    local group = group_of(set, row)
    local any = row_within(group) == "any"
    if any and not (group.members[1] and group.members[1]:has(row)) then return how.wanted(set, row) end
    return string.format("nothing is planned that is slower than %s by more than %s",
                         any and "the fastest of its schedule" or "the fastest", reasons.tolerance(set, group))
  end
  return "step times count as equal only within " .. fraction_words(set, "tie_fraction")
end

function how.order(set, row, _, choice)
  local field = rank.decider(set, choice.row, set.c:only { row })
  return string.format("times within %s are equal; of equals %s", fraction_words(set, "tie_fraction"),
                       decided_by[field] or "the one that is found first stays")
end

-- Why the schedule that the row wants is not the best one of `mask`: nothing to say where it is, or where the question is about schedules.
local function wanted_words(set, mask, row, choice, already)
  local group = group_of(set, row)
  if not group or not group.decision or not group.members[1] or group.members[1]:has(row) then return "" end
  local wanted = mask & group.members[1]
  if #(wanted & set.alive) > 0 then return "" end
  if #wanted == 0 then return string.format(". %s has no candidate there", format.schedule(group.list[1])) end
  local other, list = nearest(set, wanted, choice)
  if said(list) == already then return "" end
  return string.format(". %s is dropped by %s", label(set.c, other), said(list))
end

-- ---------------------------------------------------------------------------------------------------------------- a value of no candidate

-- What a degree has to satisfy to be a candidate's at all.
local limits = {
  pipeline_parallel = "P × TP × CP has to divide the GPUs, batch / (DP × microbatch size) has to be whole, and every stage needs a layer",
  tensor_parallel = "TP × CP × P has to divide the GPUs, TP the heads, and batch / (DP × microbatch size) has to be whole",
  context_parallel = "TP × CP × P has to divide the GPUs, and no piece of a sequence may be shorter than context_rank_tokens",
  expert_parallel = "EP has to divide the experts and the GPUs of a stage",
  expert_tensor_parallel = "EP × ETP has to divide the GPUs of a stage",
  data_parallel = "DP is GPUs / (TP × CP × P), and batch / (DP × microbatch size) has to be whole",
  microbatches = "M is batch / (DP × microbatch size), at the smallest batch, and has to be whole",
  virtual = "only looped BFS and interleaved schedules have chunks on a rank to choose, and every chunk needs a layer",
}

-- "; the nearest are 4 and 8": values of candidates on either side.
local function neighbours(set, field, value)
  local below, above
  for _, row in ipairs(set.c:all():rows()) do
    local other = set.c:get(field, row)
    if type(other) == "number" then
      if other < value and (not below or other > below) then below = other end
      if other > value and (not above or other < above) then above = other end
    end
  end
  if not below and not above then return "" end
  if not below or not above then return "; the nearest is " .. format.integer(below or above) end
  return string.format("; the nearest are %s and %s", format.integer(below), format.integer(above))
end

local function none(set, field, name, value)
  if value == "none" then return "no candidate is without a pipeline: " .. limits.pipeline_parallel end
  local found = field == "schedule" and framework.forbidden(set.context, value)
  if found then return reasons.forbidden(found) end
  if type(value) ~= "number" then
    local planned = field == "schedule" and "; the policy plans " .. list_words(candidates.planned(set.policy)) or ""
    return string.format("no candidate has %s %s%s", name, format.quantity(value), planned)
  end
  return string.format("no candidate has %s %s%s%s", name, format.integer(value), limits[field] and ": " .. limits[field] or "",
                       neighbours(set, field, value))
end

-- What the spec fixes a field to, or nil.
local function fixed_value(set, field)
  if field == "alltoall_kernel" then return set.context.request.cluster.alltoall_kernel end
  return set.context.fixed[spec_names[field]]
end

-- The spec fixes another value: what would it be with this one?
local function fixed(set, answer, field, value, choice, decide)
  local given = fixed_value(set, field)
  local option = spec_names[field] or field
  answer.verdict = "fixed"
  local alone = set.context.request.without_pipeline and field == "pipeline_parallel"
  answer.text = alone and "on the fewest GPUs the run fits without a pipeline alone"
                or string.format("the spec fixes %s to %s", option, format.quantity(given))
  if not decide or field == "alltoall_kernel" then return answer end
  local other = decide(lists.with(set.context, { fixed = lists.with(candidates.without(set.context.fixed, option), { [option] = value }) }))
  local there = string.format(". With %s %s ", option, format.quantity(value))
  if other.status == "planned" then
    other.candidates:simulate(other.row)
    answer.row, answer.candidates, answer.fields = other.row, other.candidates, other.candidates:row(other.row)
    local seconds = answer.fields.step_seconds
    answer.text = answer.text .. there .. string.format("the plan would be %s: %s a step%s", label(other.candidates, other.row),
                    format.seconds(seconds), choice and ", " .. compared(seconds, set.c:get("step_seconds", choice.row)) or "")
  else
    answer.reasons = other.reasons
    answer.text = answer.text .. there .. string.format("the run would be %s by %s", other.status, said(other.reasons))
  end
  return answer
end

-- ---------------------------------------------------------------------------------------------------------------------------- the answers

local function chosen(set, answer, choice)
  answer.verdict, answer.row, answer.fields = "chosen", choice.row, set.c:row(choice.row)
  answer.text = string.format("it is the plan's: %s", label(set.c, choice.row))
end

local function dropped(set, answer, mask, choice, about_schedule)
  local row, list = nearest(set, mask, choice)
  local more = figures(set, row, choice):gsub("^takes", "would take")
  answer.verdict, answer.row, answer.reasons, answer.fields = "dropped", row, list, set.c:row(row)
  answer.text = string.format("dropped by %s. That is %s%s%s", said(list), label(set.c, row),
                              #mask > 1 and ", of " .. format.integer(#mask) .. " candidates the nearest to a plan" or "",
                              more ~= "" and "; it " .. more or "")
  if not about_schedule then answer.text = answer.text .. wanted_words(set, mask, row, choice, said(list)) end
end

-- A layout that lost, by what. An invariant may forbid it as well.
local function has_lost(set, answer, row, lost)
  answer.verdict, answer.row, answer.fields, answer.lost = "lost", row, set.c:row(row), lost
  answer.reasons = guard.forbids(set, row) or {}
  return #answer.reasons > 0 and ". It would be rejected by " .. said(answer.reasons) or ""
end

local function lost(set, answer, mask, choice, about_schedule)
  local alive = mask & set.alive
  local step, left = lost_at(alive, choice)
  local row, seconds = set.c:best(left)
  local by = step and step.by or "order"
  local step_fraction = seconds / set.c:get("step_seconds", choice.row) - 1
  local forbidden = has_lost(set, answer, row, { by = by, id = step and step.id, step_fraction = step_fraction })
  local wanted = about_schedule and "" or wanted_words(set, mask, row, choice)
  answer.text = string.format("lost: its best, %s, %s; %s%s%s", label(set.c, row), figures(set, row, choice),
                              how[by](set, row, step, choice), wanted, forbidden)
end

--[[
why.of(set, choice, decide) → function(field, value, what_if) → { field, value, verdict, row, candidates, fields, reasons, lost, text }
  choice   nil: nothing is planned.  decide(context) plans once more, with `what_if`, for values that the spec fixes otherwise
  verdict  "chosen" | "dropped" | "lost" | "none" (no such candidate) | "fixed" (the spec fixes another value)
]]
function why.of(set, choice, decide)
  return function(name, value, what_if)
    local field = why.field(name)
    value = why.value(name, value)
    local answer = { field = name, value = value, reasons = {}, candidates = set.c }
    local given = fixed_value(set, field)
    if given ~= nil and given ~= value then return fixed(set, answer, field, value, choice, what_if and decide) end
    local about_schedule = field == "schedule" or field == "schedule_family"
    local all = (field == "pipeline_parallel" and value == 1 or value == "none") and set.c:all() or set.main
    local mask = all & (field == "schedule" and set:scheduled(candidates.members(set.policy, value))
                        or set.c:match { { field = field, op = "equal", value = value } })
    -- of what a recipe may be, with the plan's: the question is about something else
    local alike = choice and not lists.contains(candidates.chosen, field) and mask & set:recipe_of(choice.row)
    if alike and #alike > 0 then mask = alike end
    set:weigh(mask)
    if #mask == 0 then
      answer.verdict, answer.text = "none", none(set, field, name, value)
    elseif choice and mask:has(choice.row) then
      chosen(set, answer, choice)
    elseif #(mask & set.alive) == 0 then
      dropped(set, answer, mask, choice, about_schedule)
    elseif #(mask & set.alive & set.main) == 0 then
      local row = compare.alone(set, mask)
      local forbidden = has_lost(set, answer, row, { by = "order" })
      answer.text = string.format("lost: its best, %s, %s; no pipeline is the plan only where the spec fixes pipeline 1%s",
                                  label(set.c, row), figures(set, row, choice), forbidden)
    elseif choice then
      lost(set, answer, mask, choice, about_schedule)
    else
      answer.verdict, answer.text = "none", "no row of the decision table lists its schedules"
    end
    return answer
  end
end

-- ------------------------------------------------------------------------------------------------------------------- how it was decided

local states = {
  any = "%s, which it takes first, is taken whatever it costs",
  wanted = "%s, which it takes first, is not slower than the fastest by more than %s",
  none = "%s, which it takes first, has no candidate left",
  too_slow = "%s, which it takes first, is slower than the fastest by more than %s",
}

local function stay(left, before)
  return string.format("%s of %s stay", format.integer(#left), format.integer(#before))
end

-- nil for a step that took nothing away; the decision table is told always.
local function step_words(set, step, before, choice)
  if step.by ~= "wanted" and #(before - step.left) == 0 then return nil
  elseif step.by == "preference" then
    return string.format("prefer %s: %s", rule_words(step.rule), stay(step.left, before))
  elseif step.by == "wanted" then
    local state = choice.state == "wanted" and row_within(choice.group) == "any" and "any" or choice.state
    state = choice.group.decision and string.format(states[state], format.schedule(choice.group.list[1]),
                                                    reasons.tolerance(set, choice.group))
    return string.format("%s: %s%s", row_words(choice.group), state and state .. "; " or "", stay(step.left, before))
  elseif step.by == "time" then
    return string.format("time: %s, within %s of the fastest, %s a step", stay(step.left, before), format.percent(step.window),
                         format.seconds(step.seconds))
  end
  local field, other = rank.decider(set, choice.row, before - step.left)
  if not field then return nil end
  return string.format("order: of %d equals %s; next is %s, %s a step", #before, decided_by[field] or "the first stays",
                       label(set.c, other), format.seconds(set.c:get("step_seconds", other)))
end

-- From all candidates to the plan, one line a step.
function why.steps(set, choice)
  local lines = { string.format("candidates: %s, of which %s break no rule, as far as they were looked at", format.integer(#set.main),
                                format.integer(#(set.main & set.alive))) }
  if not choice then return lines end
  local before = set.main & set.alive
  for _, step in ipairs(choice.steps) do
    lines[#lines + 1] = step_words(set, step, before, choice)
    before = before & step.left
  end
  return lines
end

return why
