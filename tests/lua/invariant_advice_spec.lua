-- SPDX-License-Identifier: Apache-2.0
-- What a policy's invariants forbid is no advice: no nearest value, no minimum of GPUs, no recommendation, no entry of a shortlist and nothing
-- to switch to. What is expected is what the planner says of the same spec with the change written into it: the promise is kept.

local planning = require "planning"  -- first: it loads the module
local files = require "policy_files"
local planner = require "pipeplan.plan.init"
local spec = require "pipeplan.input.spec"

teardown(files.remove)

local merge, policy_of, has, ids = planning.merge, planning.policy_of, planning.has, planning.ids

local infiniband = { fabric = "infiniband", per_gpu = "400Gbps" }

local small = { cluster = { gpus = 8, accelerator = "H100-SXM" }, parallelism = { tensor = 8, context = 1 },
                training = { tokens = "1T", micro_batch_size = 1, recompute = "selective", sharding = "optimizer" },
                model = { architecture = "dense", total = "70B", layers = 80 } }

local free = { cluster = { gpus = 64, accelerator = "H100-SXM", network = infiniband },
               model = { architecture = "dense", total = "30B", layers = 48 }, training = { tokens = "1T", global_batch_size = 512 } }

-- The spec with the changes, written into it as its user would.
local function laid(base, changes)
  local copy = base
  for path, value in pairs(changes) do
    local change = value
    for part in path:reverse():gmatch "[^.]+" do change = { [part:reverse()] = change } end
    copy = merge(copy, change)
  end
  return copy
end

local function plan_of(base, policy, more)
  return planner.plan(merge({ request = spec.from_table(base, "."), policy = policy.policy }, more))
end

local function check_advice(base, policy, plan)
  for _, entry in ipairs(plan.advice) do
    assert.equal("planned", plan_of(laid(base, entry.changes), policy).status, entry.id .. ": " .. entry.message)
  end
end

describe("what an invariant forbids", function()
  local shallow = policy_of [[site "s" invariant { id = "not_deep", status = "planned", pipeline_parallel = over(2) }]]

  it("is no nearest change", function()
    local plan = plan_of(small, shallow, { explain = true })
    -- TP 8 on 24 GPUs: 24 / 8 = 3 stages, more than the invariant has; on 16 two stages do not fit
    assert.equal("not_deep", plan_of(merge(small, { cluster = { gpus = 24 } }), shallow).reasons[1].id)
    assert.are_not.equal("planned", plan_of(merge(small, { cluster = { gpus = 16 } }), shallow).status)
    check_advice(small, shallow, plan)
    assert.same({ "cluster.gpus", "32", "planned" },
                { plan.explanation.changes[1].field, plan.explanation.changes[1].value, plan.explanation.changes[1].status })
  end)

  it("is what keeps `minimum` from fewer GPUs", function()
    local plan = plan_of(merge(small, { cluster = { gpus = "minimum" } }), shallow)
    assert.same({ "planned", 32, 24, "not_deep" }, { plan.status, plan.minimum.gpus, plan.minimum.fewer[1].gpus, plan.minimum.fewer[1].id })
  end)

  it("is not recommended, nor told as what to do instead", function()
    -- docs/policy.md, deep.json: a depth of 32 that a rule rejects, where the depth is left free the plan has TP 4
    local deep = { cluster = { gpus = 256, accelerator = "H100-SXM", network = { fabric = "ethernet", per_gpu = "400Gbps" } },
                   model = { architecture = "dense", total = "70B", layers = 80 },
                   training = { tokens = "1T", micro_batch_size = 1, global_batch_size = 2048, recompute = "full" },
                   parallelism = { pipeline = 32 } }
    local rule = [[site "s" reject { id = "deep", pipeline_parallel = over(8), message = "x" } ]]
    local plain = plan_of(deep, policy_of(rule))
    assert.is_true(plain.recommend.parallelism.tensor > 1)
    local policy = policy_of(rule .. [[invariant { id = "tp_one", status = "planned", tensor_parallel = over(1) }]])
    local plan = plan_of(deep, policy)
    assert.same({ "rejected", "deep" }, { plan.status, plan.reasons[1].id })
    assert.is_true(plan.recommend == nil or plan.recommend.parallelism.tensor == 1)
    check_advice(deep, policy, plan)
  end)

  it("is not on a shortlist, not beside the plan and not what to switch to; an alternative says so", function()
    local policy = policy_of [[site "s" invariant { id = "never", status = "planned", schedule = { "zb_v", "interleaved_1f1b", "none" } }]]
    local plain, plan = plan_of(free, planning.policy, { shortlist = 4 }), plan_of(free, policy, { shortlist = 4 })
    assert.same({ plain.schedule, plain.parallelism }, { plan.schedule, plan.parallelism })   -- what is planned is the same
    assert.is_true(has(plain.dominated_by, "zb_v") and #plan.shortlist > 1)
    for _, entry in ipairs(plan.shortlist) do
      assert.equal("planned", plan_of(laid(free, entry.changes), policy).status, entry.schedule)
    end
    check_advice(free, policy, plan)
    local allowed = { ["1f1b"] = true }   -- simpler than zb_v by rollback_fallback are 1F1B and those that are forbidden
    assert.is_true(plan.rollback.fallback == nil or allowed[plan.rollback.fallback.schedule])
    assert.is_false(has(plan.dominated_by, "zb_v") or has(plan.dominated_by, "interleaved_1f1b"))
    assert.is_nil(plan.without_pipeline)
    for _, other in ipairs(plan.alternatives) do
      assert.equal(other.schedule == "zb_v" or other.schedule == "interleaved_1f1b", table.concat(other.why_not, " "):find "never" ~= nil)
    end
  end)

  it("is not the number of GPUs that would do, also where it reads what only a finished plan has, or is a function", function()
    -- without it 24 GPUs would do: TP 8, 80 layers on 3 ranks, of which one has at least 27
    local base = merge(small, { cluster = { network = infiniband } })
    for _, words in ipairs { [[any_rank = { layers = over(%d) }]], [[when = function(f) return f.most_rank_layers > %d end]] } do
      local rule = [[site "s" invariant { id = "wide", status = "planned", ]] .. words .. " }"
      assert.equal(24, plan_of(base, policy_of(rule:format(40))).gpus_needed)
      local policy = policy_of(rule:format(26))
      local plan = plan_of(base, policy)
      assert.are_not.equal(24, plan.gpus_needed)
      check_advice(base, policy, plan)
    end
  end)

  it("leaves out what it cannot say of, and the plan tells that the rule fails there", function()
    local policy = policy_of [[site "s" invariant { id = "odd", status = "planned",
      when = function(f) if f.schedule ~= "1f1b" then error "only 1F1B is known here" end return false end }]]
    local plan = plan_of(free, policy)
    assert.equal("planned", plan.status)
    assert.same({}, ids(plan.dominated_by))
    assert.is_true(has(plan.warnings, "rule_fails_elsewhere"))
  end)
end)
