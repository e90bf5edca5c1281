-- SPDX-License-Identifier: Apache-2.0
--[[
witness.lua: a spec that a policy and one of its mutants plan differently: what a test would have to plan to notice. Specs at the edge
between the rule and its mutant (realise.lua) are planned by both; only one whose plans differ is a witness.

  witness.of(options of load, policy, mutant) → { spec, … } | nil

Of a parameter the rules that read it are taken in turn, or where none does, what each row of the table is for; of two rules that are
swapped what both hold for. Of preferences there is none: these specs fix the layout. Plans differ when anything in them differs but words
and the policy's digest.
Cost: at most some dozens of plans for each rule.
]]

local boxes = require "pipeplan.analysis.boxes"
local cells = require "pipeplan.analysis.cells"
local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local load = require "pipeplan.policy.load"
local planner = require "pipeplan.plan.init"
local realise = require "pipeplan.analysis.realise"
local spec = require "pipeplan.input.spec"

local copy = lists.deep_copy

local witness = {}

local PLANNED = 24  -- specs of one edge that are planned twice before it is given up

local words = { message = true, paragraph = true, why = true, policy = true, change = true, text = true }

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for key, value in pairs(a) do
    if not words[key] and not same(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if not words[key] and a[key] == nil then return false end
  end
  return true
end

local function plan_of(policy, draft)
  local good, plan = failure.try(function() return planner.plan { request = spec.from_table(copy(draft), "."), policy = policy } end)
  return good and plan or nil
end

-- A rule that only says that experts are spread: without that there is no kernel.
local spread = { id = "spread", conditions = { { field = "expert_parallel", op = "over", value = 1 } } }

-- The rule with another value of the parameter that its conditions read.
local function with_value(rule, id, value)
  local out = copy { conditions = rule.conditions }
  for _, condition in ipairs(out.conditions) do conditions.resolve(condition, { [id] = { value = value } }) end
  return setmetatable(out, { __index = rule })
end

local function reads(rule, id)
  for _, condition in ipairs(rule.conditions) do
    if condition.ref == id or condition.low_ref == id or condition.high_ref == id then return true end
  end
  return false
end

-- Of a list of which the first that holds decides: the rules before that one.
local function earlier(policy, rule)
  local list = {}
  for _, other in ipairs(rule.verb == "row" and policy.rows or rule.verb == "kernel" and policy.kernels or {}) do
    if other.id == rule.id then break end
    list[#list + 1] = other
  end
  return list
end

-- What a witness may show: { holds = rules, fails = rules } each.
local function edges(policy, mutant)
  local list = {}
  local function add(rule, holds, ...)
    if rule.verb == "kernel" then holds[#holds + 1] = spread end
    local fails = earlier(policy, rule)
    for _, other in ipairs { ... } do fails[#fails + 1] = other end
    list[#list + 1] = { holds = holds, fails = fails }
  end
  local function between(before, after)
    add(before, { before }, after)
    if after then add(before, { after }, before) end
  end
  if mutant.parameter then
    for _, name in ipairs { "rows", "rejects", "refuses", "prefers", "kernels", "warns" } do
      for _, rule in ipairs(policy[name]) do
        if reads(rule, mutant.parameter) then between(rule, with_value(rule, mutant.parameter, mutant.value)) end
      end
    end
    if #list > 0 then return list end
    for _, row in ipairs(policy.rows) do add(row, { row }) end
  elseif mutant.other then
    add(mutant.before, { mutant.before, mutant.other })
  elseif mutant.kind == "list" then
    add(mutant.before, { mutant.before })
  else
    between(mutant.before, mutant.after)
  end
  return list
end

-- The rules' boxes, where all of them hold.
local function box_of(space, rules)
  local box = space:box(rules[1])
  for i = 2, #rules do box = box and boxes.intersect(space.shape, box, space:box(rules[i])) end
  return box
end

function witness.of(options, policy, mutant)
  if mutant.before and mutant.before.verb == "prefer" then return nil end  -- a layout that is fixed has nothing to prefer
  local other = load.load(options)
  if not mutant.apply(other) then return nil end
  local given_up, left = {}, PLANNED
  realise.begin(policy)
  local function shows(draft)
    if left == 0 then error(given_up) end
    left = left - 1
    local before, after = plan_of(policy, draft), plan_of(other, draft)
    return before ~= nil and after ~= nil and not same(before, after)
  end
  for _, edge in ipairs(edges(policy, mutant)) do
    local rules = table.move(edge.fails, 1, #edge.fails, #edge.holds + 1, { table.unpack(edge.holds) })
    local space = cells.space(rules)
    local box = box_of(space, edge.holds)
    left = PLANNED
    local good, found = true, nil
    if box then
      good, found = failure.try(realise.any, policy, { space = space, holds = edge.holds, fails = edge.fails, shows = shows }, { box })
    end
    if not good and found ~= given_up then error(found, 0) end
    if good and found then return found end
  end
  return nil
end

return witness
