-- SPDX-License-Identifier: Apache-2.0
-- Random stacks of two layers, with functions that compare, changes, disable, enable and final: what the loader makes of them, and what
-- check says of that, against counting on a grid of all values that matter. The grid's own reading of the statements is written here.

require "pipeplan"
local check = require "pipeplan.analysis.check"
local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local load = require "pipeplan.policy.load"
local ranks = require "pipeplan.policy.ranks"

teardown(files.remove)

local state = 20261128
local function random(n)
  state = (state * 1103515245 + 12345) % 2147483648
  return (state >> 8) % n + 1
end
local function chance(percent) return random(100) <= percent end

-- ------------------------------------------------------------------------------------------- conditions, as text and as what they mean

local LIMIT, LAST = 9, 12  -- constants are 1 to 9: all values from 10 on are alike, but for parity and thirds
local numbers = { "gpus", "pipeline_parallel" }

local operators = {
  { "under", "<", function(a, b) return a < b end }, { "at_most", "<=", function(a, b) return a <= b end },
  { "over", ">", function(a, b) return a > b end }, { "at_least", ">=", function(a, b) return a >= b end },
}

-- { field, text of a statement, text of a function or nil, holds(value) }
local function number_condition(field)
  local kind, value = random(8), random(LIMIT)
  local op = operators[kind]
  if op then
    return { field, string.format("%s = %s(%d)", field, op[1], value), string.format("f.%s %s %d", field, op[2], value),
             function(x) return op[3](x, value) end }
  elseif kind == 5 then
    return { field, field .. " = " .. value, string.format("%d == f.%s", value, field), function(x) return x == value end }
  elseif kind == 6 then
    local high = math.min(LIMIT, value + random(4))
    return { field, string.format("%s = between(%d, %d)", field, value, high), nil, function(x) return x >= value and x <= high end }
  elseif kind == 7 then return { field, field .. " = odd", nil, function(x) return x % 2 == 1 end } end
  return { field, field .. " = multiple_of(3)", nil, function(x) return x % 3 == 0 end }
end

local function name_condition()
  local name = chance(50) and "dense" or "moe"
  if chance(30) then
    return { "architecture", string.format("architecture = none_of { %q }", name), string.format("f.architecture ~= %q", name),
             function(x) return x ~= name end }
  end
  return { "architecture", string.format("architecture = %q", name), string.format("f.architecture == %q", name), function(x) return x == name end }
end

local function random_conditions()
  local list = {}
  for _, field in ipairs(numbers) do
    if chance(60) then list[#list + 1] = number_condition(field) end
  end
  if chance(40) or #list == 0 then list[#list + 1] = name_condition() end
  return list
end

-- What stands in the statement: as fields, or as a function that says the same.
local function text_of(list)
  local fields, terms = {}, {}
  for i, condition in ipairs(list) do
    fields[i], terms[i] = condition[2], condition[3]
  end
  if #terms == #list and chance(40) then
    return string.format("when = function(f) return %s end", table.concat(terms, " and ")), true
  end
  return table.concat(fields, ", "), false
end

local points = {}
for gpus = 1, LAST do
  for depth = 1, LAST do
    for _, architecture in ipairs { "dense", "moe" } do
      points[#points + 1] = { gpus = gpus, pipeline_parallel = depth, architecture = architecture }
    end
  end
end

local function set_of(list)
  local set = {}
  for i, point in ipairs(points) do
    local holds = true
    for _, condition in ipairs(list) do holds = holds and condition[4](point[condition[1]]) end
    set[i] = holds
  end
  return set
end

local function inside(a, b)
  for i = 1, #points do
    if a[i] and not b[i] then return false end
  end
  return true
end

-- -------------------------------------------------------------------------------------------------------------------------- stacks

-- A default of rejects, and a site over it that changes some: texts, the rules in force in order with their sets (a final one is not
-- loosened), and the ids of which a later layer loosens what is final.
local function random_stack()
  local default, site, rules, broken = {}, {}, {}, {}
  local loosened = 0
  for i = 1, 3 + random(3) do
    local list, final = random_conditions(), chance(30)
    local text = text_of(list)
    rules[i] = { id = "r" .. i, list = list, set = set_of(list), final = final, plain = text:find("when", 1, true) ~= nil }
    default[i] = string.format("reject { id = 'r%d', message = 'm', %s%s }", i, text, final and ", final = true" or "")
  end
  for _, rule in ipairs(rules) do
    local what = random(10)
    if what == 1 then
      site[#site + 1] = string.format("disable { id = %q, reason = 'r' }", rule.id)
      if rule.final then broken[rule.id] = true else rule.gone = true end
      loosened = loosened + 1
    elseif what == 2 and not rule.plain then
      -- another condition on one of its fields
      local at = random(#rule.list)
      local new = rule.list[at][1] == "architecture" and name_condition() or number_condition(rule.list[at][1])
      local list = table.move(rule.list, 1, #rule.list, 1, {})
      list[at] = new
      local set = set_of(list)
      rule.looser = not inside(rule.set, set)
      site[#site + 1] = string.format("change { id = %q, %s, reason = 'r' }", rule.id, new[2])
      if rule.final and rule.looser then broken[rule.id] = true end
      rule.changed, rule.list, rule.set = true, list, set
    end
  end
  for i = 1, random(2) do
    local list = random_conditions()
    rules[#rules + 1] = { id = "s" .. i, list = list, set = set_of(list) }
    site[#site + 1] = string.format("reject { id = 's%d', message = 'm', %s }", i, (text_of(list)))
  end
  local team = {}
  for _, rule in ipairs(rules) do
    if rule.gone and chance(50) then
      team[#team + 1] = string.format("enable { id = %q }", rule.id)
      rule.gone, rule.back = false, true
    end
  end
  return { table.concat(default, "\n"), table.concat(site, "\n"), #team > 0 and table.concat(team, "\n") or nil }, rules, broken
end

local function loaded(texts)
  local base = files.directory { ["all.lua"] = texts[1] }
  local list = { files.write("site.lua", texts[2]) }
  if texts[3] then list[2] = files.write("team.lua", texts[3]) end
  return failure.try(load.load, { policies = base, files = list, date = "2026-11-28" })
end

local function found(policy, code)
  local ids = {}
  for _, finding in ipairs(check.policy(policy, { witnesses = false })) do
    if finding.code == code then ids[finding.id] = true end
  end
  return ids
end

-- Of the rules in force those that others drop all of, the later first; and those that hold nowhere.
local function by_counting(order)
  local idle, empty, gone = {}, {}, {}
  for i = #order, 1, -1 do
    local rule, any, covered = order[i], false, true
    for k = 1, #points do
      if rule.set[k] then
        any = true
        local taken = false
        for _, other in ipairs(order) do taken = taken or other ~= rule and not gone[other] and other.set[k] end
        covered = covered and taken
      end
    end
    if not any then empty[rule.id] = true
    elseif covered then idle[rule.id], gone[rule] = true, true end
  end
  return idle, empty
end

describe("analysis of random stacks", function()
  it("agrees with counting: which rules stand, which are idle, which can never hold; and final holds", function()
    local seen = { idle = 0, empty = 0, refused = 0, back = 0, plain = 0, changed = 0 }
    for case = 1, require "long" and 300 or 120 do
      local texts, rules, broken = random_stack()
      local name = string.format("stack %d:\n%s", case, table.concat(texts, "\n--\n"))
      local good, policy = loaded(texts)
      if next(broken) then
        assert.is_false(good, name)
        assert.matches("no later layer may loosen it", table.concat(policy.lines or { policy.message }, "\n"), 1, true)
        seen.refused = seen.refused + 1
      elseif not good then
        -- what cannot be proved to be as strict counts as loosening: of a final rule that is refused, of others it had its reason
        local message = table.concat(policy.lines or { policy.message }, "\n")
        assert.matches("no later layer may loosen it", message, 1, true)
      else
        local ids, order = {}, {}
        for _, rule in ipairs(rules) do
          if not rule.gone then ids[rule.id] = true end
          seen.back, seen.plain = seen.back + (rule.back and 1 or 0), seen.plain + (rule.plain and 1 or 0)
          seen.changed = seen.changed + (rule.changed and 1 or 0)
        end
        local stand = {}
        for _, rule in ipairs(policy.rejects) do
          stand[rule.id] = true
          assert.is_nil(rule.when, name)  -- what compares is read as conditions
          for _, mine in ipairs(rules) do
            if mine.id == rule.id then order[#order + 1] = mine end
          end
          for k = 1, #points, 7 do
            assert.equal(order[#order].set[k], conditions.holds(rule, policy, points[k]), name .. "\n" .. rule.id)
          end
        end
        assert.same(ids, stand, name)
        local idle, empty = by_counting(order)
        assert.same(idle, found(policy, "never_fires"), name)
        -- what no candidate can be is impossible too, so there may be more of these than the grid knows
        local impossible = found(policy, "impossible")
        for id in pairs(empty) do assert.is_true(impossible[id], name .. "\n" .. id) end
        for id in pairs(impossible) do assert.is_true(empty[id] or false, name .. "\n" .. id) end
        for _ in pairs(idle) do seen.idle = seen.idle + 1 end
        for _ in pairs(empty) do seen.empty = seen.empty + 1 end
      end
      if case % 20 == 0 then files.remove() end
    end
    for what, count in pairs(seen) do assert.is_true(count > 5, what .. " " .. count) end  -- the cases are there
  end)
end)

describe("what is asked of ranks", function()
  it("agrees with asking each of them, on random pipelines", function()
    local yes = 0
    for case = 1, 400 do
      local held, record = {}, {}
      for i = 1, random(5) do
        held[i] = random(LIMIT)
        record.least_rank_layers = math.min(record.least_rank_layers or held[i], held[i])
        record.most_rank_layers = math.max(record.most_rank_layers or held[i], held[i])
      end
      local op, limit, quantifier = operators[random(4)], random(LIMIT), chance(50) and "any_rank" or "every_rank"
      local tag = require("engine").host.tag
      local list = ranks.read(quantifier, { layers = { [tag] = op[1], limit } }, { by_name = {}, list = {} }, error)
      local all, any = true, false
      for _, count in ipairs(held) do
        all, any = all and op[3](count, limit), any or op[3](count, limit)
      end
      local expected = any
      if quantifier == "every_rank" then expected = all end
      yes = yes + (expected and 1 or 0)
      assert.equal(expected, conditions.holds({ conditions = list }, { parameters = {} }, record),
                   string.format("case %d: %s %s %d of %s", case, quantifier, op[1], limit, table.concat(held, " ")))
    end
    assert.is_true(yes > 100 and yes < 300)
  end)
end)
