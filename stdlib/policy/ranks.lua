-- SPDX-License-Identifier: Apache-2.0
--[[
ranks.lua: what a rule says of any or of every rank of a plan:

  any_rank = { bytes = over "70GiB" }      every_rank = { layers = at_least(1), idle = under "20%" }

A comparison holds for every rank when it does for the least or the most of them, and for any when it does for the other: so it is a
condition on a field of the plan, and all that is done with conditions is done with it. Of two comparisons of `any_rank` that would not
be so, for each may hold on another rank: it takes one.

  ranks.read(quantifier, what stands behind it, names, complain) → conditions
]]

local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"

local ranks = { quantifiers = { any_rank = true, every_rank = true } }

local tag = engine.host.tag

-- What there is of a rank: the fields that are the least and the most of it.
ranks.attributes = {
  bytes = { least = "least_rank_bytes", most = "peak_bytes" },
  idle = { least = "least_rank_idle", most = "most_rank_idle" },
  layers = { least = "least_rank_layers", most = "most_rank_layers" },
  stages = { least = "least_rank_stages", most = "most_rank_stages" },
}

-- Where a comparison holds of all that is as far from its limit as the nearest to it.
local nearest = { over = "least", at_least = "least", under = "most", at_most = "most" }
local other = { least = "most", most = "least" }

-- A raw condition as comparisons, { operator, limit } each; nil: it is none.
local function comparisons(raw)
  local op = type(raw) == "table" and raw[tag]
  if nearest[op] then return { { op, raw[1] } } end
  if op == "between" then return { { "at_least", raw[1] }, { "at_most", raw[2] } } end
  return nil
end

function ranks.read(quantifier, value, names, complain)
  local found, taken = {}, {}
  if type(value) ~= "table" or value[tag] or not next(value) or not lists.is_named(value) then
    complain("%s: it is written { bytes = over \"70GiB\" }, of %s", quantifier, table.concat(lists.sorted_keys(ranks.attributes), ", "))
    return found
  end
  for _, key in ipairs(lists.sorted_keys(value)) do
    local fields, list = ranks.attributes[key], comparisons(value[key])
    if not fields then
      local known = lists.sorted_keys(ranks.attributes)
      local name = conditions.shown(key)
      local near = failure.suggestion(name, known)
      complain("%s: a rank has no '%s'%s", quantifier, name, near ~= "" and near or "; it has " .. table.concat(known, ", "))
    elseif not list then
      complain("%s: %s: one of over, at_least, under, at_most and between is expected", quantifier, key)
    elseif quantifier == "any_rank" and (#list > 1 or next(value, next(value))) then
      complain("any_rank takes one comparison: two of them might hold on different ranks; write two rules, or every_rank")
      return {}
    end
    for _, one in ipairs(fields and list or {}) do
      local side = nearest[one[1]]
      local field = fields[quantifier == "every_rank" and side or other[side]]
      local condition, problem = conditions.read(field, { [tag] = one[1], one[2] }, names)
      if problem then complain("%s: %s: %s", quantifier, key, problem)
      elseif not taken[field] then found[#found + 1], taken[field] = condition, true end
    end
  end
  return found
end

return ranks
