-- SPDX-License-Identifier: Apache-2.0
-- Rules whose condition is a function: the same semantics as conditions.

local planning = require "planning"  -- first: it loads the module
local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local evaluate = require "pipeplan.analysis.evaluate"
local functions = require "pipeplan.policy.functions"
local lists = require "pipeplan.base.lists"
local planner = require "pipeplan.plan.init"
local spec = require "pipeplan.input.spec"

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

  it("is told that there is no cost where there is no price, whoever asks it: a reject, a warning, --explain, policy eval", function()
    local asks = [[message = "m", when = function(f) return f.cost == nil end }]]
    local reject, warn = policy_of([[reject { id = "r", ]] .. asks), policy_of([[warn { id = "r", ]] .. asks)
    for price, holds in pairs { [2] = false, [planning.none] = true } do
      local request = spec.from_table(planning.merge(planning.merge(dense, narrow), { cluster = { price_per_gpu_hour = price } }), ".")
      local dropped = planner.plan { request = request, policy = reject.policy, explain = true }
      assert.equal(holds, dropped.status == "rejected" and dropped.reasons[1].id == "r")
      assert.equal(holds, planning.entry(dropped.explanation.rules, "r").holds)
      assert.equal(holds, evaluate.of(reject.policy.rules.r, request, reject.policy).plan.holds)
      assert.equal(holds, planning.has(planner.plan({ request = request, policy = warn.policy }).warnings, "r"))
    end
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

  -- 3e9 by hand: the function says yes above it, so it is the largest legal value. 0 tokens are none: a spec has at least 1.
  it("names the nearest value of a field that cannot be 0", function()
    local out = plan([[refuse { id = "r", message = "m", when = function(f) local t = f.tokens return t > 3e9 end }]], narrow)
    assert.same({ field = "tokens", value = 3e9 }, planning.entry(out.dropped, "r").nearest)
  end)

  -- Decided with one call, for all candidates have the same f.gpus; a nearest value is looked for with some dozens more, which no budget holds.
  -- A rule that is asked after it has what a plan has.
  it("whose nearest value takes more than a budget to find rejects without one", function()
    local source = [[reject { id = "r", message = "m", when = function(f) for i = 1, 2000 do local _ = f.gpus end return f.gpus > 0 end }
                     warn { id = "w", message = "m", when = function(f) for i = 1, 2000 do local _ = f.gpus end return f.gpus > 0 end }]]
    local policy = policy_of(source, 200000)
    local out = planning.plan(dense, narrow, policy)
    assert.decided(out, "rejected", "r")
    assert.is_nil(planning.entry(out.dropped, "r").nearest)
    assert.is_true(planning.has(out.warnings, "w"))
  end)

  -- Lua 5.4 manual 3.4.4: values of different types are different. A condition reads "256" as a number of GPUs.
  it("that compares a number with a text means what Lua means", function()
    local warns = plan([[warn { id = "same", message = "m", when = function(f) return f.gpus == "256" end }
                         warn { id = "other", message = "m", when = function(f) return f.gpus ~= "256" end }]], narrow).warnings
    assert.is_false(planning.has(warns, "same"))
    assert.is_true(planning.has(warns, "other"))
  end)

  it("says nothing of a figure that is not known, also where it only asks whether that differs", function()
    local rejected = [[reject { id = "r", tensor_parallel = at_least(1), message = "m" }]]
    for _, body in ipairs { "return f.most_rank_idle ~= 5", "local z = 0 return f.most_rank_idle ~= 5" } do
      local out = plan(rejected .. string.format([[warn { id = "w", message = "m", when = function(f) %s end }]], body), narrow)
      assert.equal("rejected", out.status)
      assert.is_false(planning.has(out.warnings, "w"), body)
    end
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

-- A run with few candidates.
local small = {
  cluster = { gpus = 16, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
  model = { architecture = "dense", total = "30B", layers = 24 },
  training = { tokens = "1T", global_batch_size = 128, micro_batch_size = 1, recompute = "full", sharding = "optimizer" },
}

describe("a function and the conditions that say the same", function()
  -- What a policy makes of that run, but for places and digests; and how many candidates its rule drops.
  local function told(source)
    local out = planning.plan(small, {}, policy_of("set { schedules = { '1f1b', 'zb_h1', 'interleaved_1f1b' } } " .. source))
    local ids = {}
    for i, reason in ipairs(out.reasons) do ids[i] = reason.id end
    local dropped = planning.entry(out.dropped, "r")
    return { out.status, out.schedule, out.parallelism, out.step_seconds, ids, out.recommend }, dropped and dropped.count or 0
  end

  local limits = {  -- values on both sides of which there are candidates
    tensor_parallel = { 1, 2, 4 }, pipeline_parallel = { 2, 4, 8 }, data_parallel = { 2, 4, 8 }, virtual = { 1, 2, 4 },
    microbatches_per_rank = { 4, 8, 16 }, bubble_fraction = { 0.00001, 0.01, 0.05 }, step_seconds = { 0.001, 2, 4 },
    peak_bytes = { 20e9, 30e9 }, training_days = { 10, 30 },
  }
  local operators = { over = ">", at_least = ">=", under = "<", at_most = "<=" }

  it("decide the same, drop as many candidates and are reported alike: 48 random rules", function()
    local names, ops, seed, dropping = { table.unpack(lists.sorted_keys(limits)) }, lists.sorted_keys(operators), 7, 0
    local function pick(list)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return list[1 + (seed >> 8) % #list]
    end
    for _ = 1, 48 do
      local written, terms, verb = {}, {}, pick { "reject", "refuse" }
      for _ = 1, pick { 1, 2 } do
        local field, op = pick(names), pick(ops)
        local limit = pick(limits[field])
        if not written[field] then
          written[field] = string.format("%s = %s(%.17g)", field, op, limit)
          terms[#terms + 1] = string.format("(f.%s ~= nil and f.%s * 1 %s %.17g)", field, field, operators[op], limit)
        end
      end
      local stated = {}
      for _, field in ipairs(lists.sorted_keys(written)) do stated[#stated + 1] = written[field] end
      local rule = verb .. " { id = 'r', message = 'm', recommend = 'data_parallel', "
      local conditions_of_it = rule .. table.concat(stated, ", ") .. " }"
      local function_of_it = rule .. "when = function(f) return " .. table.concat(terms, " and ") .. " end }"
      assert.is_truthy(rule_of(function_of_it).when)  -- it is asked, not read as conditions
      local expected, expected_count = told(conditions_of_it)
      local asked, count = told(function_of_it)
      assert.same(expected, asked, conditions_of_it)
      -- Where there is a plan, bounds may tell of conditions on bytes and seconds that they hold for what did not come up.
      local late = rule_of(conditions_of_it).phase == "simulated" and expected[1] == "planned"
      assert.is_true(count == expected_count or late and count < expected_count, conditions_of_it)
      dropping = dropping + (expected_count > 0 and 1 or 0)
    end
    assert.is_true(dropping > 16)
  end)

  it("refuse what leaves nothing, and are the reason that is reported", function()
    for _, text in ipairs { "bubble_fraction = over '0.001%'",
                            "when = function(f) return f.bubble_fraction ~= nil and f.bubble_fraction > 0.00001 end",
                            "when = function(f) local b = f.bubble_fraction return b ~= nil and b * 1 > 0.00001 end" } do
      local out = planning.plan(small, {}, policy_of("refuse { id = 'r', recommend = 'data_parallel', message = 'm', " .. text .. " }"))
      assert.same({ "refused", "r", "none" }, { out.status, out.reasons[1].id, out.recommend.schedule }, text)
    end
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
