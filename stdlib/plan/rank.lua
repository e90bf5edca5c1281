-- SPDX-License-Identifier: Apache-2.0
-- rank.lua: which of the candidates that no rule drops is the plan. In this order:
--   1  preferences "within any": each keeps the matching candidates, when there are any
--   2  step time: those within wanted_tolerance of the fastest (a row of the decision table may say another tolerance)
--   3  the decision table: among candidates for which the same row holds, the wanted schedule, or the others of its list where it is not
--      among those, or any
--   4  the other preferences: each keeps the matching candidates within its fraction of the fastest, when there are any
--   5  step time: those within tie_fraction of the fastest
--   6  position in the row's list, then in the family's; fewest GPUs idle, smaller P, V, TP, the recipe that stands first, bytes, EP. The
--      order is total.
-- So what the policy costs is at most the largest of those tolerances, but for preferences and rows "within any".

local candidates = require "pipeplan.plan.candidates"
local lists = require "pipeplan.base.lists"
local statements = require "pipeplan.policy.statements"

local rank = {}

local function parameter(policy, id)
  return policy.parameters[id].value
end

-- A list of names without repetitions, and without what may not be planned.
local function new_list(set)
  local planned, list, seen = {}, {}, {}
  for _, name in ipairs(candidates.planned(set.policy)) do planned[name] = true end
  return list, function(name)
    local possible = set.context.fixed.schedule ~= nil or name == "none"
    for _, member in ipairs(candidates.members(set.policy, name)) do possible = possible or planned[member] end
    if possible and not seen[name] then
      seen[name] = true
      list[#list + 1] = name
    end
  end
end

-- The list of a row for its candidates: a name of which refusals leave nothing, though rejects would, is replaced by what they recommend.
local function with_recommendations(set, group)
  local list, put = new_list(set)
  group.refusals = {}
  for _, name in ipairs(group.names) do
    local mine = group.mask & set:scheduled(candidates.members(set.policy, name))
    local allowed = mine - set.hard
    if not set.context.fixed.schedule and #allowed > 0 and #(allowed - set.refused) == 0 then
      for _, entry in ipairs(set.entries) do
        if entry.kind == "refuse" and candidates.names_schedule(entry.rule) and #(entry.mask & allowed) > 0 then
          group.refusals[#group.refusals + 1] = { name = name, entry = entry, row = (entry.mask & allowed):first() }
          local instead = entry.rule.recommend
          if instead and not lists.contains(statements.layouts, instead) then put(instead) end
        end
      end
    else
      put(name)
    end
  end
  return list
end

-- The candidates by the row of the decision table that holds for them: { decision, rule, mask, names, list, refusals, wanted }.
-- A fixed schedule, and depth 1, make a list of their own. set.listed: rows whose schedule is in their list.
function rank.groups(set)
  if set.groups then return set.groups end
  local groups, fixed = {}, set.context.fixed
  local function add(group)
    group.list = with_recommendations(set, group)
    group.members = {}
    for i, name in ipairs(group.list) do group.members[i] = group.mask & set:scheduled(candidates.members(set.policy, name)) end
    groups[#groups + 1] = group
  end
  if fixed.pipeline == 1 then
    add { mask = set.main, names = { "none" } }
  elseif fixed.schedule then
    add { mask = set.main, names = { fixed.schedule } }
  else
    local left = set.main
    for _, rule in ipairs(set.policy.rows) do
      local mask = set:match(rule, left)
      left = left - mask
      if #mask > 0 then add { decision = rule.id, rule = rule, mask = mask, names = rule.try, wanted = rule.try[1] } end
    end
  end
  set.groups, set.listed = groups, set.c:none()
  for _, group in ipairs(groups) do
    for _, mask in ipairs(group.members) do set.listed = set.listed | mask end
  end
  return groups
end

local order = { "idle", "pipeline_parallel", "virtual", "tensor_parallel", "choice", "peak_bytes", "expert_parallel", "context_parallel",
                "expert_tensor_parallel" }

-- Where a row stands: position of its name in the list and in its family, then the degrees, then its number.
local function key_of(set, groups, row)
  local c, schedule = set.c, set.c:get("schedule", row)
  local key = { math.huge, math.huge }
  for _, group in ipairs(groups) do
    for i, name in ipairs(group.list) do
      if group.members[i]:has(row) and i < key[1] then
        for j, member in ipairs(candidates.members(set.policy, name)) do
          if member == schedule then key[1], key[2] = i, j end
        end
      end
    end
  end
  local known = { idle = -c:get("gpus_used", row), choice = c:choice(row) }
  for _, field in ipairs(order) do key[#key + 1] = known[field] or c:get(field, row) or math.huge end
  key[#key + 1] = row
  return key
end

local function before(a, b)
  for i = 1, #a do
    if a[i] ~= b[i] then return a[i] < b[i] end
  end
  return false
end

-- What puts a row before the first of `others`: "list" (its schedule), a field of the order, or nil; and that other row.
function rank.decider(set, row, others)
  local groups, first, least = rank.groups(set), nil, nil
  for _, other in ipairs(others:rows()) do
    local key = key_of(set, groups, other)
    if not least or before(key, least) then first, least = other, key end
  end
  local own = key_of(set, groups, row)
  for i = 1, least and #own - 1 or 0 do
    if own[i] ~= least[i] then return i <= 2 and "list" or order[i - 2], first end
  end
  return nil, first
end

-- ----------------------------------------------------------------------------------------------------------------------------- steps

-- What the preferences "within any" leave of those rows; adds a step for each to `steps`, where given.
function rank.preferred(set, left, steps)
  for _, rule in ipairs(set.policy.prefers) do
    if rule.within == "any" then
      local matching = set:match_any(rule, left)
      if #matching > 0 and set:best(matching) then left = matching end
      if steps then steps[#steps + 1] = { by = "preference", id = rule.id, rule = rule, left = left } end
    end
  end
  return left
end

local function faster_than(set, seconds)
  return set.c:match { { field = "step_seconds", op = "at_most", value = seconds } }
end

-- The largest fraction that a row or a preference allows a plan to be slower by.
local function widest(set, groups)
  local window = math.max(parameter(set.policy, "wanted_tolerance"), parameter(set.policy, "tie_fraction"))
  for _, group in ipairs(groups) do
    local within = group.rule and group.rule.within
    if within and within ~= "any" then window = math.max(window, within) end
  end
  for _, rule in ipairs(set.policy.prefers) do
    if rule.within ~= "any" then window = math.max(window, rule.within) end
  end
  return window
end

-- Of a group's rows those that come close: to the fastest of all, or where its row of the table says "any", to the fastest of the first
-- name of its list that has a survivor.
local function close_of(set, group, left, near, fastest)
  local mine = left & group.mask
  local within = group.rule and group.rule.within or parameter(set.policy, "wanted_tolerance")
  if within ~= "any" then return mine & near & faster_than(set, fastest * (1 + within)) end
  for _, members in ipairs(group.members) do
    local row, _, close = set:best(mine & members, parameter(set.policy, "wanted_tolerance"))
    if row then return close end
  end
  return set.c:none()
end

-- The wanted name among those, or the others of the list, or any.
local function wanted_of(set, group, close)
  local first, others = close & (group.members[1] or set.c:none()), set.c:none()
  if #first > 0 then return first end
  for i = 2, #group.list do others = others | (close & group.members[i]) end
  return #others > 0 and others or close
end

-- The least step time of some rows that were simulated.
local function least_seconds(set, mask)
  local least = math.huge
  for _, row in ipairs(mask:rows()) do least = math.min(least, set.c:get("step_seconds", row) or math.huge) end
  return least
end

-- What the statements cost that kept slower rows: { fraction, statements = { id, file, line, fraction } }, of the fastest survivor's time.
local function cost_of(set, steps, fastest, row, group)
  local cost = { fraction = set.c:get("step_seconds", row) / fastest - 1, statements = {} }
  local least = fastest
  for _, step in ipairs(steps) do
    local rule = step.by == "preference" and step.rule or step.by == "wanted" and group.rule
    local seconds = rule and least_seconds(set, step.left) or math.huge
    if seconds < math.huge and seconds > least then
      cost.statements[#cost.statements + 1] = { id = rule.id, file = rule.file, line = rule.line, fraction = (seconds - least) / fastest }
      least = seconds
    end
  end
  return cost
end

local function first_of(set, groups, rows)
  local first, least
  for _, row in ipairs(rows:rows()) do
    local key = key_of(set, groups, row)
    if not least or before(key, least) then first, least = row, key end
  end
  return first
end

-- Why the wanted schedule is not the plan's: "wanted" (it is), "too_slow" with its seconds, or "none".
local function state_of(set, choice, left)
  local group, first = choice.group, choice.group.members[1] or set.c:none()
  if first:has(choice.row) then return "wanted" end
  local row, seconds = set:best(left & group.mask & first)
  if row then return "too_slow", seconds end
  return "none"
end

--[[
rank.pick(set, left) → choice | nil: the best of the rows `left`. choice: { row, group, state = "wanted" | "none" | "too_slow",
seconds (of a wanted schedule that is too slow), against = { row, seconds } (the fastest that "any" preferences leave: what that was held
against), fastest (of all survivors), cost = { fraction, statements }, preferred (rows after "any" preferences),
steps = { { by = "preference" | "wanted" | "time" | "order", id, left }, … } }
]]
function rank.pick(set, left)
  local groups, steps, c = rank.groups(set), {}, set.c
  local grouped = c:none()
  for _, group in ipairs(groups) do grouped = grouped | group.mask end
  left = left & grouped
  local found, fastest, near = set:best(left, widest(set, groups))
  if not found then return nil end
  local overall, preferred = fastest, rank.preferred(set, left, steps)
  if #preferred < #left then
    left = preferred
    found, fastest, near = set:best(left, widest(set, groups))
  end
  local close, kept = c:none(), c:none()
  for _, group in ipairs(groups) do
    local rows = close_of(set, group, left, near, fastest)
    close, kept = close | rows, kept | wanted_of(set, group, rows)
  end
  if #kept == 0 then return nil end   -- rows of the table "within any" of which no name has a survivor
  steps[#steps + 1] = { by = "time", left = close, seconds = fastest, window = parameter(set.policy, "wanted_tolerance") }
  steps[#steps + 1] = { by = "wanted", left = kept }
  for _, rule in ipairs(set.policy.prefers) do
    if rule.within ~= "any" then
      local wide = rule.within > parameter(set.policy, "wanted_tolerance")
      local matching = set:match(rule, (wide and near or kept) & faster_than(set, fastest * (1 + rule.within)))
      if #matching > 0 then kept = matching end
      steps[#steps + 1] = { by = "preference", id = rule.id, rule = rule, left = kept }
    end
  end
  local least, tie = least_seconds(set, kept), parameter(set.policy, "tie_fraction")
  local ties = kept & faster_than(set, least * (1 + tie))
  steps[#steps + 1] = { by = "time", left = ties, seconds = least, window = tie }
  local choice = { row = first_of(set, groups, ties), preferred = left, steps = steps, fastest = overall }
  steps[#steps + 1] = { by = "order", left = c:only(choice.row) }
  for _, group in ipairs(groups) do
    if group.mask:has(choice.row) then choice.group = group break end
  end
  choice.against = { row = found, seconds = fastest }
  choice.state, choice.seconds = state_of(set, choice, left)
  choice.cost = cost_of(set, steps, overall, choice.row, choice.group)
  return choice
end

-- Of rows that cannot all be built or do not fit, the one that would rank first by lower bounds of their times.
function rank.closest(set, mask)
  local least = math.huge
  local rows = mask:rows()
  for _, row in ipairs(rows) do least = math.min(least, set.c:bound(row)) end
  local close = {}
  for _, row in ipairs(rows) do
    if set.c:bound(row) <= least * (1 + parameter(set.policy, "tie_fraction")) then close[#close + 1] = row end
  end
  return first_of(set, rank.groups(set), set.c:only(#close > 0 and close or rows))
end

-- The rows of `mask` with the fewest entries, and how many entries those have.
function rank.fewest(set, mask)
  local at_least = { [0] = mask }
  for _, entry in ipairs(set.entries) do
    for k = #at_least + 1, 1, -1 do
      local more = at_least[k - 1] & entry.mask
      at_least[k] = at_least[k] and at_least[k] | more or more
    end
  end
  for k = 0, #at_least do
    local exactly = at_least[k + 1] and at_least[k] - at_least[k + 1] or at_least[k]
    if #exactly > 0 then return exactly, k end
  end
  return mask, 0
end

return rank
