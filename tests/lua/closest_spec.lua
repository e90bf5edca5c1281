-- SPDX-License-Identifier: Apache-2.0
-- Where nothing is planned, the candidate whose rules are told is one that the spec asks for and that its framework runs, where there is one.

local planning = require "planning"  -- first: it loads the module
local candidates = require "pipeplan.plan.candidates"
local failure = require "pipeplan.base.failure"
local planner = require "pipeplan.plan.init"
local random_specs = require "random_specs"

-- What a spec fixes → the field of a candidate.
local degrees = { tensor = "tensor_parallel", context = "context_parallel", pipeline = "pipeline_parallel", expert = "expert_parallel",
                  expert_tensor = "expert_tensor_parallel", data = "data_parallel", virtual = "virtual" }

-- The choice that was made of a spec: choose.lua's result; nil where it cannot be read.
local function chosen(spec)
  local seen
  planner.observer = function(_, _, result) seen = result end
  local good, problem = pcall(planning.plan, spec)
  planner.observer = nil
  assert(good or failure.is(problem), problem)
  return good and seen or nil
end

local function check(spec, result, told)
  local fields, given = result.fields, spec.parallelism
  for name, field in pairs(degrees) do
    if given[name] then assert.equal(given[name], fields[field], told .. ": " .. name) end
  end
  if given.schedule and given.pipeline ~= 1 then
    assert.is_true(#(result.set.c:only(result.judged) & result.set:scheduled(candidates.members(result.set.policy, given.schedule))) == 1,
                   told .. ": " .. fields.schedule)
  end
  if spec.training.micro_batch_size then assert.equal(spec.training.micro_batch_size, fields.micro_batch_size, told) end
  -- rows whose schedule policy or framework does not run at all
  local set = result.set
  local run = set.main
  for _, entry in ipairs(set.entries) do
    if entry.outside then run = run - entry.mask end
  end
  if #(run & set:recipe(set.c:choice(result.judged))) > 0 then
    assert.equal(1, #(set.c:only(result.judged) & run), told .. ": " .. fields.schedule .. " is not run there")
    return 1
  end
  return 0
end

describe("the closest candidate", function()
  it("is one that the given fields and the framework allow, of random specs", function()
    local judged, run = 0, 0
    for number = 1, require "long" and 1500 or 60 do
      local spec = random_specs.any(random_specs.generator(number + 900))
      if not require "long" then spec.cluster.gpus = math.min(spec.cluster.gpus, 128) end
      local result = chosen(spec)
      if result and result.judged then
        judged, run = judged + 1, run + check(spec, result, "spec " .. number)
      end
    end
    assert.is_true(judged >= 8 and run >= 4, judged .. " specs were refused, " .. run .. " with something that is run")
  end)
end)
