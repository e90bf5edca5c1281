--[[
boundary.lua: specs at the edges of rules: for each rule one for which it holds, and for each of its limits and conditions one on either
side. What two policies, or a policy and a wrong version of it, may judge differently shows there.

  boundary.specs(policy [, more policies…]) → { spec, … }, each once, in the order of the rules

Cost: a few small searches per rule and condition (realise.lua).
]]

local cells = require "pipeplan.analysis.cells"
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

function boundary.specs(...)
  local out, seen = {}, {}
  for _, policy in ipairs { ... } do
    for _, mutant in ipairs(mutants.of(policy, true)) do
      local before, after = mutant.before, mutant.after
      if mutant.kind == "delete" then
        add(out, seen, between(policy, before, nil))
      elseif mutant.kind == "bound" or mutant.kind == "negate" then
        add(out, seen, between(policy, before, after))
        add(out, seen, between(policy, after, before))
      end
    end
  end
  return out
end

return boundary
