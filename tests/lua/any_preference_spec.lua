-- SPDX-License-Identifier: Apache-2.0
-- A preference within "any" keeps the survivors that match it, when there are any. What is expected is the plan of the same policy with a reject
-- of all that do not match: where some match, both leave the same candidates.

local planning = require "planning"  -- first: it loads the module
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local pipeplan = require "pipeplan"

teardown(files.remove)

local merge, policy_of = planning.merge, planning.policy_of

local dense = { cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                model = { architecture = "dense", total = "30B", layers = 48 },
                training = { tokens = "1T", global_batch_size = 512, micro_batch_size = 1, recompute = "selective" } }
local moe = merge(dense, { model = { architecture = "moe", total = "47B", active = "13B", layers = 32 }, training = { sharding = "optimizer" } })

local function most(plan)
  local bytes = 0
  for _, rank in ipairs(plan.memory.ranks) do bytes = math.max(bytes, rank.total_bytes) end
  return bytes
end

local function layout(plan) return { plan.schedule, plan.parallelism, plan.microbatches, plan.layers_per_stage } end

-- What keeps a policy or a plan from being: { status, message }.
local function problem_of(run)
  local good, problem = pcall(run)
  assert.is_false(good)
  assert(failure.is(problem), problem)
  return problem
end

describe("a preference within any", function()
  for name, spec in pairs { dense = dense, moe = moe } do
    it("about bytes is asked of all survivors of a " .. name .. " model, and plans what a reject of the others plans", function()
      local reject = planning.plan(spec, {}, policy_of [[site "s" reject { id = "fat", peak_bytes = at_least "40GiB", message = "x" }]])
      assert.is_true(most(planning.plan(spec)) > 40 * 2 ^ 30 and most(reject) < 40 * 2 ^ 30)
      local lean = policy_of [[site "s" prefer { id = "lean", peak_bytes = under "40GiB", within = "any" }]]
      local plan = planning.plan(spec, {}, lean)
      assert.same(layout(reject), layout(plan))
      local called = policy_of [[site "s" prefer { id = "lean", within = "any",
        when = function(f) local b = f.peak_bytes return b ~= nil and b < 40 * 2 ^ 30 end }]]
      local other = planning.plan(spec, {}, called)
      assert.same({ layout(plan), plan.dropped, plan.alternatives, plan.policy_cost.fraction },
                  { layout(other), other.dropped, other.alternatives, other.policy_cost.fraction })
    end)
  end

  it("that no survivor matches changes nothing", function()
    local none = policy_of [[site "s" prefer { id = "lean", peak_bytes = under "1GiB", within = "any" }]]
    assert.same(layout(planning.plan(dense)), layout(planning.plan(dense, {}, none)))
  end)

  it("about time does not load, by whatever layer, and says what to write instead", function()
    for _, words in ipairs { "step_seconds = under(14)", "bubble_fraction = under '2%'", "cost = under(1e6)", "training_days = over(3), gpus = over(1)",
                             "pipeline_avoidable_seconds = under(1)", "when = function(f) return f.step_seconds < 14 end" } do
      local problem = problem_of(function() policy_of('site "s" prefer { id = "q", ' .. words .. ', within = "any" }') end)
      assert.equal(failure.status.policy_unloadable, problem.status)
      assert.matches("site%.lua:1: prefer 'q': '[%w_]+' is known only of the survivors that come close to the fastest", problem.message)
      assert.matches("write a fraction, such as within = \"10%\", or a reject of the others", problem.message, 1, true)
    end
    local first = files.write("first.lua", [[site "first" prefer { id = "q", step_seconds = under(14), within = "10%" }]])
    assert.is_table(pipeplan.policy(first))
    local second = files.write("second.lua", [[site "second" change { id = "q", within = "any" }]])
    assert.equal(failure.status.policy_unloadable, problem_of(function() pipeplan.policy { first, second } end).status)
  end)

  it("whose function reads a time is answered, before anything is simulated for it", function()
    local policy = policy_of [[site "s" prefer { id = "q", within = "any", when = function(f) local s = f.step_seconds return s ~= nil and s < 42 end }]]
    local problem = problem_of(function() planning.plan(dense, {}, policy) end)
    assert.equal(failure.status.policy_error, problem.status)
    assert.matches("its function reads 'step_seconds' is known only of the survivors", problem.message, 1, true)
  end)
end)
