-- SPDX-License-Identifier: Apache-2.0
--[[
boundary.lua: specs at the edges of rules: for each rule one for which it holds, and for each of its limits and conditions one on either
side. What two policies, or a policy and a wrong version of it, may judge differently shows there.

  boundary.specs({ policy, … } [, jobs]) → { spec, … }, each once, in the order of the rules; the same for any number of jobs
      as long as functions keep to their budget

Cost: a few small searches per rule and condition (realise.lua), in `jobs` processes.
]]

local cells = require "pipeplan.analysis.cells"
local conditions = require "pipeplan.policy.conditions"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local mutants = require "pipeplan.analysis.mutants"
local realise = require "pipeplan.analysis.realise"
local workers = require "pipeplan.base.workers"

local boundary = {}

-- A candidate for which the first rule holds and the second does not.
local function between(policy, holds, fails, planned)
  local space = cells.space(fails and { holds, fails } or { holds })
  return realise.any(policy, { space = space, holds = { holds }, fails = fails and { fails } or {}, planned = planned },
                     { space:box(holds) })
end

-- What a rule says, as far as it decides for whom it holds; where a function stands too, which.
local function claim(rule)
  if not rule then return "" end
  local parts = { rule.when and format.place(rule) or "" }
  for _, condition in ipairs(rule.conditions) do parts[#parts + 1] = conditions.text(condition) end
  return table.concat(parts, "; ")
end

-- The edges of policies, each once: a spec at an edge that another policy has too is at its edge as well. Where the first found none, the
-- next may.
local function edges_of(policies)
  local list, by_claim = {}, {}
  local function edge(policy, holds, fails)
    local key = claim(holds) .. " | " .. claim(fails)
    local known = by_claim[key]
    if not known then
      known = {}
      by_claim[key], list[#list + 1] = known, known
    end
    if not known[#known] or known[#known].policy ~= policy then
      known[#known + 1] = { policy = policy, holds = holds, fails = fails }
    end
  end
  for _, policy in ipairs(policies) do
    for _, mutant in ipairs(mutants.of(policy, true)) do
      local before, after = mutant.before, mutant.after
      if mutant.kind == "delete" then
        edge(policy, before, nil)
      elseif mutant.kind == "bound" or mutant.kind == "negate" then
        edge(policy, before, after)
        edge(policy, after, before)
      end
    end
  end
  return list
end

function boundary.specs(policies, jobs)
  local list, planned, out, seen = edges_of(policies), {}, {}, {}
  for _, policy in ipairs(policies) do
    planned[policy] = {}
    realise.begin(policy)
  end
  local texts = workers.each(#list, jobs or 1, function(number)
    for _, edge in ipairs(list[number]) do
      local found = between(edge.policy, edge.holds, edge.fails, planned[edge.policy])
      if found then return json.encode(found.spec) end
    end
    return ""
  end)
  for _, text in ipairs(texts) do
    if text ~= "" and not seen[text] then
      seen[text] = true
      out[#out + 1] = json.decode(text, "spec")
    end
  end
  return out
end

return boundary
