-- SPDX-License-Identifier: Apache-2.0
--[[
boundary.lua: specs at the edges of rules: for each rule one for which it holds, and for each of its limits and conditions one on either
side. What two policies, or a policy and a wrong version of it, may judge differently shows there.

  boundary.specs(policy [, more policies…]) → { spec, … }, each once, in the order of the rules

Cost: a few small searches per rule and condition (realise.lua).
]]

local cells = require "pipeplan.analysis.cells"
local conditions = require "pipeplan.policy.conditions"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local mutants = require "pipeplan.analysis.mutants"
local realise = require "pipeplan.analysis.realise"

local boundary = {}

local function add(out, seen, found)
  if not found then return end
  local key = json.encode(found.spec)
  if seen[key] then return end
  seen[key] = true
  out[#out + 1] = found.spec
end

-- A candidate for which the first rule holds and the second does not.
local function between(policy, holds, fails)
  local space = cells.space(fails and { holds, fails } or { holds })
  return realise.any(policy, { space = space, holds = { holds }, fails = fails and { fails } or {} }, { space:box(holds) })
end

-- What a rule says, as far as it decides for whom it holds; where a function stands too, which.
local function claim(rule)
  if not rule then return "" end
  local parts = { rule.when and format.place(rule) or "" }
  for _, condition in ipairs(rule.conditions) do parts[#parts + 1] = conditions.text(condition) end
  return table.concat(parts, "; ")
end

function boundary.specs(...)
  local out, seen, found = {}, {}, {}
  -- A spec at an edge that another policy has too is at its edge as well.
  local function edge(policy, holds, fails)
    local key = claim(holds) .. " | " .. claim(fails)
    found[key] = found[key] or between(policy, holds, fails)
    add(out, seen, found[key])
  end
  for _, policy in ipairs { ... } do
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
  return out
end

return boundary
