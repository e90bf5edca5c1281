-- SPDX-License-Identifier: Apache-2.0
--[[
ordinary.lua: what a rule says of ordinary candidates: those of a few specs under the default policy. An error of its function there is one
that some user will see; the same answer for all of them is rarely meant.

  ordinary.asked(rule, policy) → { yes =, no =, message = of the first error or nil, spent = budgets that it took }: of its function
  ordinary.held(rule) → for how many its conditions hold, of how many; nil where they say nothing of candidates. What they say of the run
    and its cluster is left out: a rule that is about other runs is no slip.

Cost: four small searches, and four plans for who asks of what only plans have, once for a process.
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
local vocabulary = require "pipeplan.vocabulary"

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

local found = {}  -- records by kind: early (known before simulation), alone (the same without a pipeline), simulated, plan

local function set_of(request, policy)
  policy.host:refill()
  local known = facts.of(request, policy)
  return candidates.open { request = request, policy = policy, record = known.record, arguments = known.arguments,
                           fixed = request.parallelism }
end

local function read_rows(set, rows, list)
  for _, row in ipairs(rows) do table.insert(list, set.c:row(row)) end
end

local read = {}

function read.early(request, policy)
  local set = set_of(request, policy)
  read_rows(set, spread((set.main - set.unbuildable):rows(), ROWS), found.early)
  read_rows(set, spread(set.alone:rows(), SIMULATED), found.alone)
end

function read.simulated(request, policy)
  local set = set_of(request, policy)
  set:fill_memory(set:recipe(1))
  for _, row in ipairs(spread(spread((set.main - set.unbuildable):rows(), ROWS), SIMULATED)) do
    set.c:simulate(row)
    table.insert(found.simulated, set.c:row(row))
  end
end

function read.plan(request, policy)
  local before = planner.observer
  policy.host:refill()
  planner.observer = function(_, record) table.insert(found.plan, record) end
  planner.plan { request = request, policy = policy }
  planner.observer = before
end

-- The records of a kind, which are read once.
local function records(kind)
  if found[kind] then return found[kind] end
  local before = load.observer
  load.observer = nil
  local policy, by = load.load { date = DATE }, kind == "alone" and "early" or kind
  found[kind] = {}
  if by == "early" then found.early, found.alone = {}, {} end
  for _, one in ipairs(specs) do read[by](spec.from_table(one, "."), policy) end
  load.observer = before
  return found[kind]
end

local kind_of = { row = "early", kernel = "early", reject = "simulated", refuse = "simulated", prefer = "simulated", warn = "plan",
                  invariant = "plan" }

-- As a plan asks it: with one budget, once for equal values of what it reads.
function ordinary.asked(rule, policy)
  local out, compiled, asked = { yes = 0, no = 0 }, conditions.engine(rule), functions.memo()
  local list = records(kind_of[rule.verb])
  policy.host:refill()
  for _, record in ipairs(list) do
    if engine.conditions.match(record, compiled) then
      local late = functions.late_of(record) or {}
      local good, answer, unknown = failure.try(asked.answer, asked, rule, policy, function(field) return record[field] end,
                                                function(field) return late[field] end)
      if not good then
        out.message = tostring(answer)
      elseif unknown and not record.status then   -- of what is not planned a rule about plans says nothing
        out.message = string.format("it reads '%s', which is not known where a %s is decided", unknown, rule.verb)
      end
      if out.message then break end
      local said = answer and "yes" or "no"
      out[said] = out[said] + 1
    end
  end
  local usage = policy.host:usage()
  out.spent = usage.work / usage.work_limit
  return out
end

-- Does a condition say something of what a candidate or a plan is, and not of the run alone?
local function about_candidates(condition)
  for _, name in ipairs { condition.field, condition.value == nil and condition.ref or nil } do
    local field = vocabulary.by_name[name]
    if field.scope ~= "request" and name ~= "status" then return true end
  end
  return false
end

-- Where all that some conditions read is known.
local function kinds_for(verb, list)
  local latest = "request"
  for _, condition in ipairs(list) do
    local scope = vocabulary.by_name[condition.field].scope
    if scope == "plan" or scope == "simulated" and latest ~= "plan" then latest = scope end
  end
  if latest == "plan" or verb == "invariant" then return { "plan" } end
  if latest == "simulated" then return { "simulated" } end
  return verb == "warn" and { "early" } or { "early", "alone" }
end

function ordinary.held(rule)
  local list, yes, all = {}, 0, 0
  for _, condition in ipairs(rule.conditions) do
    if about_candidates(condition) then list[#list + 1] = condition end
  end
  if #list == 0 then return nil end
  local compiled = conditions.engine { conditions = list }
  for _, kind in ipairs(kinds_for(rule.verb, list)) do
    for _, record in ipairs(records(kind)) do
      all = all + 1
      if engine.conditions.match(record, compiled) then yes = yes + 1 end
    end
  end
  return yes, all
end

return ordinary
