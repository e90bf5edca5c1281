-- SPDX-License-Identifier: Apache-2.0
--[[
ordinary.lua: what a rule's function says of ordinary candidates: those of a few specs under the default policy. An error there is one that
some user will see; the same answer for all of them is rarely meant.

  ordinary.asked(rule, policy) → { yes =, no =, message = of the first error or nil }

Cost: four small searches and four plans, once for a process, where a policy has such a function at all.
]]

local candidates = require "pipeplan.plan.candidates"
local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local facts = require "pipeplan.plan.facts"
local failure = require "pipeplan.base.failure"
local functions = require "pipeplan.policy.functions"
local load = require "pipeplan.policy.load"
local planner = require "pipeplan.plan.init"
local spec = require "pipeplan.input.spec"

local ordinary = {}

local DATE = "2026-01-01"  -- the default policy has nothing that expires
local ROWS = 48            -- of one spec, spread over its candidates
local SIMULATED = 12       -- of those

local function described(gpus, fabric, model, training)
  training.tokens = training.tokens or "1T"
  return { cluster = { gpus = gpus, accelerator = "H100-SXM", price_per_gpu_hour = 2, network = { fabric = fabric, per_gpu = "400Gbps" } },
           model = model, training = training }
end

local specs = {
  described(256, "infiniband", { architecture = "dense", total = "70B", layers = 80 }, { recompute = "full" }),
  described(512, "infiniband", { architecture = "moe", total = "235B", active = "22B", layers = 94 },
            { tokens = "10T", recompute = "full" }),
  described(16, "roce", { architecture = "dense", total = "8B", layers = 32 }, { tokens = "100B" }),
  described(64, "efa", { architecture = "moe", total = "47B", active = "13B", layers = 32 }, { recompute = "full" }),
}

-- Rows that can be built, spread over all.
local function spread(rows, most)
  if #rows <= most then return rows end
  local list = {}
  for i = 1, most do list[i] = rows[1 + (i - 1) * (#rows - 1) // (most - 1)] end
  return list
end

local records  -- { known before simulation = { … }, simulated = { … }, plan = { … } }

local function read_all()
  local policy = load.load { date = DATE }
  records = { early = {}, simulated = {}, plan = {} }
  for _, one in ipairs(specs) do
    policy.host:refill()
    local request = spec.from_table(one, ".")
    local known = facts.of(request, policy)
    local set = candidates.open { request = request, policy = policy, record = known.record, arguments = known.arguments,
                                  fixed = request.parallelism }
    local rows = spread((set.main - set.unbuildable):rows(), ROWS)
    for _, row in ipairs(rows) do table.insert(records.early, set.c:row(row)) end
    set:fill_memory(set:recipe(1))
    for _, row in ipairs(spread(rows, SIMULATED)) do
      set.c:simulate(row)
      table.insert(records.simulated, set.c:row(row))
    end
    local before = planner.observer
    planner.observer = function(_, record) table.insert(records.plan, record) end
    planner.plan { request = request, policy = policy }
    planner.observer = before
  end
end

local kind_of = { row = "early", kernel = "early", reject = "simulated", refuse = "simulated", prefer = "simulated", warn = "plan",
                  invariant = "plan" }

function ordinary.asked(rule, policy)
  if not records then
    local before = load.observer
    load.observer = nil
    read_all()
    load.observer = before
  end
  local out = { yes = 0, no = 0 }
  for _, record in ipairs(records[kind_of[rule.verb]]) do
    policy.host:refill()
    if engine.conditions.match(record, conditions.engine(rule)) then
      local good, answer, _, unknown = failure.try(functions.ask, rule, policy, record, functions.late_of(record))
      if not good then
        out.message = tostring(answer)
        return out
      elseif unknown then
        out.message = string.format("it reads '%s', which is not known where a %s is decided", unknown, rule.verb)
        return out
      end
      local said = answer and "yes" or "no"
      out[said] = out[said] + 1
    end
  end
  return out
end

return ordinary
