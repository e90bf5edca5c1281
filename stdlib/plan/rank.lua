-- rank.lua: which of the candidates that no rule drops is the plan. In this order:
--   1  preferences "within any": each keeps the matching candidates, when there are any
--   2  the decision table: among candidates for which the same row holds, the wanted schedule, or the others when it has none or only much
--      slower ones
--   3  step time: those within tie_fraction of the fastest
--   4  the other preferences
--   5  position in the row's list, then in the family's; smaller P, V, TP, bytes, EP. The order is total.

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

-- ------------------------------------------------------------------------------------------------------------------------------ time

-- best(mask, tolerance, limit) → row, seconds, rows within tolerance. By simulation, or by the bound where some cannot be built.
local function by_simulation(set)
  return function(mask, tolerance, limit) return set.c:best(mask, tolerance, limit) end
end

local function by_bound(set)
  return function(mask, tolerance, limit)
    local c, best, least, within = set.c, nil, limit or math.huge, {}
    local rows = mask:rows()
    for _, row in ipairs(rows) do
      local bound = c:bound(row)
      if bound < least then best, least = row, bound end
    end
    if not best then
      -- nothing can even be bounded: any of them
      if #rows == 0 or limit then return nil end
      return rows[1], math.huge, mask
    end
    for _, row in ipairs(rows) do
      if c:bound(row) <= least * (1 + (tolerance or 0)) then within[#within + 1] = row end
    end
    return best, least, c:only(within)
  end
end

-- ----------------------------------------------------------------------------------------------------------------------------- steps

-- What the preferences that apply to all leave of those rows; adds a step for each to `steps`, where given.
function rank.preferred(set, left, steps)
  for _, rule in ipairs(set.policy.prefers) do
    if rule.within == "any" then
      local matching = set:match(rule, left)
      if #matching > 0 then left = matching end
      if steps then steps[#steps + 1] = { by = "preference", id = rule.id, rule = rule, left = left } end
    end
  end
  return left
end

-- Only the wanted name of a group, or only the others: rows, and how it was decided ("wanted", "none", "too_slow") with seconds.
local function wanted_or_others(set, group, left, best)
  local first = left & (group.members[1] or set.c:none())
  local others = set.c:none()
  for i = 2, #group.list do others = others | (left & group.members[i]) end
  others = others - first
  if #first == 0 then return others, "none" end
  if #others == 0 then return first, "wanted" end
  local tolerance = parameter(set.policy, "wanted_tolerance")
  local _, seconds = best(first, 0)
  -- A schedule that is faster than that by more than the tolerance, if there is one: usually the bounds say no without a simulation.
  local _, faster = best(others, 0, seconds / (1 + tolerance))
  if not faster then return first, "wanted" end
  return others, "too_slow", seconds, faster
end

-- Preferences among those that come close to the fastest: each has its own idea of close, and sees what the ones before it left.
local function close_preferences(set, left, fastest, steps)
  for _, rule in ipairs(set.policy.prefers) do
    if rule.within ~= "any" then
      local close = left & set.c:match { { field = "step_seconds", op = "at_most", value = fastest * (1 + rule.within) } }
      local matching = set:match(rule, close)
      if #matching > 0 then left = matching end
      steps[#steps + 1] = { by = "preference", id = rule.id, rule = rule, left = left }
    end
  end
  return left
end

local order = { "pipeline_parallel", "virtual", "tensor_parallel", "peak_bytes", "expert_parallel", "context_parallel",
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
  for _, field in ipairs(order) do key[#key + 1] = c:get(field, row) or math.huge end
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

-- Steps 3 and 4. Where times are only bounded, preferences among close ones would compare nothing: they are left out.
local function settle(set, left, best, bounded, steps)
  local tie = parameter(set.policy, "tie_fraction")
  local window = tie
  for _, rule in ipairs(set.policy.prefers) do
    if rule.within ~= "any" then window = math.max(window, rule.within) end
  end
  local _, fastest, close = best(left, bounded and tie or window)
  if not fastest then return nil end
  steps[#steps + 1] = { by = "time", left = close, seconds = fastest, window = bounded and tie or window }
  if not bounded then
    close = close_preferences(set, close, fastest, steps)
    -- a preference with a wider window may have left slower rows: the fastest of them and its ties
    local _, again, ties = best(close, tie)
    steps[#steps + 1] = { by = "time", left = ties, seconds = again, window = tie }
    close = ties
  end
  return close
end

--[[
rank.pick(set, left, bounded) → choice | nil: the best of the rows `left`; `bounded`: some of them cannot be built, so that lower bounds
stand for times. choice: { row, group, state = "wanted" | "none" | "too_slow", seconds, faster (of a wanted schedule that is too slow),
preferred (rows after "any" preferences), steps = { { by = "preference" | "wanted" | "time" | "order", id, left }, … } }
]]
function rank.pick(set, left, bounded)
  local groups, steps = rank.groups(set), {}
  local best = bounded and by_bound(set) or by_simulation(set)
  left = rank.preferred(set, left & set.listed, steps)
  local preferred, kept = left, set.c:none()
  local how = {}
  for i, group in ipairs(groups) do
    local rows, state, seconds, faster = wanted_or_others(set, group, left & group.mask, best)
    how[i] = { state = state, seconds = seconds, faster = faster }
    kept = kept | rows
  end
  steps[#steps + 1] = { by = "wanted", left = kept }
  if #kept == 0 then return nil end
  local close = settle(set, kept, best, bounded, steps)
  if not close then return nil end
  local first, least
  for _, row in ipairs(close:rows()) do
    local key = key_of(set, groups, row)
    if not least or before(key, least) then first, least = row, key end
  end
  steps[#steps + 1] = { by = "order", left = set.c:only(first) }
  for i, group in ipairs(groups) do
    if group.mask:has(first) then
      return { row = first, group = group, state = how[i].state, seconds = how[i].seconds, faster = how[i].faster, preferred = preferred,
               steps = steps }
    end
  end
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
