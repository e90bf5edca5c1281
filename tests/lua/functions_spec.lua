-- SPDX-License-Identifier: Apache-2.0
-- Rules whose condition is a function: the same semantics as conditions.

local planning = require "planning"  -- first: it loads the module
local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local functions = require "pipeplan.policy.functions"

local policy_of = planning.policy_of

-- A dense 70 B model on 256 H100, as small as a spec can be said.
local dense = {
  cluster = { gpus = 256, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
  model = { architecture = "dense", total = "70B", layers = 80 }, training = { tokens = "1T" },
}

local function plan(source, changes) return planning.plan(dense, changes, policy_of(source)) end

-- A layout of few candidates, for rules of which each is simulated.
local narrow = { training = { micro_batch_size = 1, recompute = "selective", sharding = "optimizer" }, parallelism = { tensor = 4, context = 1 } }

-- The rule of that text, and what of a plan does not name its file: two policies that say the same differ in their digests alone.
local function outcome(source, changes)
  local out = plan(source, changes)
  return { out.status, out.schedule, out.parallelism, out.step_seconds, planning.entry(out.dropped, "r").count, out.reasons[1] and out.reasons[1].id }
end

local function rule_of(source) return policy_of(source).policy.rules.r end

describe("a function", function()
  it("that reads a simulated figure is asked when it is known, and drops what the condition drops", function()
    local condition = outcome([[refuse { id = "r", bubble_fraction = over "1%", recommend = "data_parallel", message = "m" }]], narrow)
    local opaque = outcome([[refuse { id = "r", recommend = "data_parallel", message = "m",
                                      when = function(f) local bubble = f.bubble_fraction return bubble ~= nil and bubble > 0.01 end }]], narrow)
    assert.same(condition, opaque)
    assert.is_true(opaque[5] > 0)
  end)

  it("that reads a candidate's own fields is asked of all candidates, before those that do not fit are gone", function()
    local condition = outcome [[reject { id = "r", tensor_parallel = over(4), message = "m" }]]
    local opaque = outcome [[reject { id = "r", message = "m", when = function(f) local t = f.tensor_parallel return t > 4 end }]]
    assert.same(condition, opaque)
  end)

  it("of a row that reads what only a simulation says is told so: exit 3", function()
    local good, problem = pcall(plan, [[row { id = "r", try = { "1f1b" }, when = function(f) local s = f.step_seconds return s ~= nil end }]])
    assert.is_false(good)
    assert.equal(3, problem.status)
    assert.matches("its function reads 'step_seconds' is known only after simulation; a row is decided before", problem.message, 1, true)
  end)

  it("that warns of a plan's figure says nothing where there is no plan, instead of an error", function()
    local warn = [[warn { id = "w", message = "m", when = function(f) local s = f.step_seconds return s + 0 > 0 end }]]
    assert.is_true(planning.has(plan(warn).warnings, "w"))
    local refused = plan(warn .. [[reject { id = "r", tensor_parallel = at_least(1), message = "m" }]])
    assert.equal("rejected", refused.status)
  end)

  it("names the nearest value at which it says no, like a condition", function()
    local out = plan([[reject { id = "r", message = "m", when = function(f) local t = f.tensor_parallel return t > 4 end }]],
                     { parallelism = { tensor = 8 } })
    assert.decided(out, "rejected", "r")
    assert.same({ field = "tensor_parallel", value = 4 }, planning.entry(out.dropped, "r").nearest)
  end)

  it("names the nearest value of a real number too", function()
    local policy = policy_of [[reject { id = "r", message = "m", when = function(f) local b = f.bubble_fraction return b > 0.01 end }]].policy
    local near = conditions.nearest(policy.rules.r, policy, { bubble_fraction = 0.2, tensor_parallel = 1 })
    assert.equal("bubble_fraction", near.field)
    assert.is_near(0.01, near.value, 1e-7)
  end)

  it("is asked once for equal values of what it reads", function()
    local policy = policy_of [[reject { id = "r", message = "m", when = function(f) return f.gpus > 4 and f.layers > 2 or f.gpus == 3 end }]].policy
    local memo, real, calls = functions.memo(), functions.ask, 0
    functions.ask = function(...)
      calls = calls + 1
      return real(...)
    end
    local answers = {}
    for i, record in ipairs { { gpus = 8, layers = 3, tokens = 1 }, { gpus = 8, layers = 3, tokens = 2 }, { gpus = 3, layers = 3 },
                              { gpus = 3, layers = 9 }, { gpus = 8, layers = 2 } } do
      answers[i] = memo:answer(policy.rules.r, policy, function(name) return record[name] end, function() return false end)
    end
    functions.ask = real
    assert.same({ true, true, true, true, false }, answers)
    assert.equal(3, calls)  -- (8, 3), (3), (8, 2)
  end)

  it("may recommend a schedule in place of the one that it refuses", function()
    local out = planning.plan(planning.deepseek, {}, policy_of [[
      refuse { id = "r", recommend = "dualpipev", message = "m", when = function(f) return f.schedule == "dualpipe" or false end }]])
    assert.same({ "planned", "r" }, { out.status, out.reasons[1].id })
  end)
end)

describe("a function that only compares", function()
  local function texts(when)
    local list = {}
    for i, condition in ipairs(rule_of("reject { id = 'r', message = 'm', when = function(f) return " .. when .. " end }").conditions) do
      list[i] = conditions.text(condition)
    end
    return table.concat(list, ", ")
  end

  it("is read as the conditions that say the same", function()
    for written, expected in pairs {
      ["f.tensor_parallel > 4"] = "tensor_parallel over 4",
      ["4 < f.tensor_parallel and f.schedule == '1f1b'"] = "tensor_parallel over 4, schedule = 1f1b",
      ["f.bubble_fraction ~= nil and f.bubble_fraction >= 0.01"] = "bubble_fraction at least 1 %",
      ["f.expert_link and f.expert_link <= f.slow_link"] = "expert_link at most slow_link (200 Gb/s)",
      ["not f.fits_one_gpu and f.tied_embeddings"] = "tied_embeddings = true, fits_one_gpu = false",
      ["f.schedule ~= \"gpipe\""] = "schedule none of gpipe",
      ["f.tensor_parallel > f.gpus_per_node"] = "tensor_parallel over gpus_per_node",
    } do
      assert.equal(expected, texts(written), written)
    end
  end)

  it("is left a function where it says more", function()
    for _, written in ipairs { "f.gpus > 4 or f.layers > 4", "f.gpus * 2 > 4", "(f.gpus > 4)", "f.gpus > 4 and f.gpus < 9", "f.gpus > 4 -- c\n",
                               "f.gpus > helper", "f.gpus ~= f.layers", "f.gpus > 2^3" } do
      assert.equal("", texts(written), written)
    end
  end)

  it("has a slip in it told when the policy is loaded", function()
    local good, problem = pcall(policy_of, [[reject { id = "r", message = "m", when = function(f) return f.schedule == "dualpipes" end }]])
    assert.is_false(good)
    assert.equal(6, problem.status)
    assert.matches("no schedule 'dualpipes', did you mean 'dualpipe'?", problem.message, 1, true)
  end)

  it("gives way to the function of a later layer as a whole", function()
    local files = require "policy_files"
    local first = files.write("first.lua", [[reject { id = "r", message = "m", when = function(f) return f.tensor_parallel > 4 end }]])
    local second = files.write("second.lua", [[change { id = "r", reason = "as we run", when = function(f) return f.gpus > 8 end }]])
    local both = require("pipeplan").policy({ first, second }).policy.rules.r
    assert.same({ "gpus over 8" }, { conditions.text(both.conditions[1]), both.conditions[2] })
  end)
end)

describe("the rule that decides", function()
  it("is the site's where without it there would be a plan, and not the memory of what it leaves", function()
    assert.decided(plan("set { tie_fraction = '1%' }", narrow), "planned")
    local slow = plan([[reject { id = "slow_step", step_seconds = over(1), message = "step {step_seconds}" }]], narrow)
    assert.same({ "rejected", "slow_step" }, { slow.status, slow.reasons[1].id })
    local shallow = plan [[set { max_pipeline_depth = 2 } reject { id = "narrow", tensor_parallel = over(2), message = "m" }]]
    assert.same("rejected", shallow.status)
    assert.is_false(planning.has(shallow.reasons, "does_not_fit"))
  end)

  it("is memory where nothing fits without the site either", function()
    local out = plan([[reject { id = "slow_step", step_seconds = over(1), message = "step {step_seconds}" }]],
                     planning.merge(narrow, { cluster = { gpus = 8 } }))
    assert.same({ "refused", "does_not_fit" }, { out.status, out.reasons[1].id })
  end)
end)

describe("engine.host", function()
  it("notes what a function reads, and ends a call that reads what is not known yet", function()
    local host = engine.host.open { fields = { "gpus", "layers", "tokens" } }
    local statements = assert(host:run("a.lua", [[reject { id = "x", when = function(f) return f.gpus > 4 and f.layers ~= nil and f.gpus > 5 end }]], false))
    local handle = statements[1].argument.when[1]
    local answer, reads = host:call(handle, { gpus = 8 })
    assert.is_false(answer)
    assert.same({ "gpus", "layers" }, { table.unpack(reads) })
    local none, problem = host:call(handle, { gpus = 8 }, "x", { layers = true })
    assert.is_nil(none)
    assert.same({ "broken", "layers", "gpus" }, { problem.kind, problem.late, problem.reads[1] })
    assert.is_false((host:call(handle, { gpus = 3 }, "x", { layers = true })))  -- it does not come to that
  end)
end)
