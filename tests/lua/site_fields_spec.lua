-- SPDX-License-Identifier: Apache-2.0
-- What sites want to say of a run: whose it is, how it is trained, what it costs and how long it takes.

local planning = require "planning"  -- first: it loads the module

-- A dense 70 B model for 1 T tokens on 256 H100 at 2 an hour, by the NLP team.
local dense = {
  cluster = { gpus = 256, accelerator = "H100-SXM", price_per_gpu_hour = 2, network = { fabric = "infiniband", per_gpu = "400Gbps" } },
  model = { architecture = "dense", total = "70B", layers = 80 },
  training = { tokens = "1T", sequence_length = 4096, global_batch_size = 4096, optimizer = "muon", recompute = "full", goodput = 0.9,
               micro_batch_size = 1, sharding = "optimizer" },
  framework = "megatron", framework_version = "0.14", run = "nlp-70b-3", team = "nlp",
}

local function plan(source, changes) return planning.plan(dense, changes, planning.policy_of(source)) end

local function warns(conditions, changes)
  return planning.has(plan("warn { id = 'w', message = 'm', " .. conditions .. " }", changes).warnings, "w")
end

describe("a rule", function()
  it("may read whose run it is, and how it is trained", function()
    for _, holds in ipairs { "team = 'nlp'", "run = 'nlp-70b-3'", "framework_version = '0.14'", "precision = 'bf16'", "optimizer = 'muon'",
                             "recompute = 'full'", "optimizer_offload = at_most(0)", "model_name = 'inline dense'" } do
      assert.is_true(warns(holds), holds)
    end
    for _, other in ipairs { "team = 'vision'", "precision = 'fp8'", "optimizer = { 'adam', 'sgd' }", "recompute = 'none'",
                             "optimizer_offload = over(0)" } do
      assert.is_false(warns(other), other)
    end
    assert.is_false(warns("team = none_of { 'nlp' }"))
    assert.is_true(warns("team = none_of { 'nlp' }", { team = planning.none }))  -- absent
  end)

  it("may read how long the run takes and what it costs, before it is planned", function()
    local free = plan "set { tie_fraction = '1%' }"
    -- tokens / (batch × sequence) steps, at a goodput of 0.9; × 24 h × 256 GPUs × 2
    local days = 1e12 / (4096 * 4096) * free.step_seconds / 0.9 / 86400
    assert.is_near(days, free.training_days, 1e-9 * days)
    assert.is_near(days * 24 * 256 * 2, free.cost, 1e-9 * free.cost)
    for field, value in pairs { training_days = days, gpu_hours = days * 24 * 256, cost = days * 24 * 256 * 2 } do
      local over = plan(string.format("reject { id = 'r', %s = over(%.17g), message = 'm' }", field, value * 1.001))
      assert.same({ "planned", free.schedule }, { over.status, over.schedule }, field)
      local under = plan(string.format("reject { id = 'r', %s = over(%.17g), message = 'm' }", field, value * 0.2))
      assert.decided(under, "rejected", "r")
    end
  end)

  it("about cost says nothing where no price is given", function()
    local free = plan("reject { id = 'r', cost = over(1), message = 'm' }", { cluster = { price_per_gpu_hour = planning.none } })
    assert.decided(free, "planned")
  end)

  it("may read days in a function", function()
    assert.decided(plan "reject { id = 'r', message = 'm', when = function(f) local d = f.training_days return d > 1 end }", "rejected", "r")
  end)

  it("may say from what share of a step on a pipeline is not worth it", function()
    local out = plan([[disable { id = "fits_one_gpu", reason = "to see a pipeline" }
      warn { id = "w", pipeline_avoidable_fraction = none_of { 0.5 }, message = "{pipeline_avoidable_seconds} {pipeline_avoidable_fraction}" }]],
                     { cluster = { gpus = 64 }, model = { total = "13B", layers = 40 } })
    local seconds, unit, percent = planning.entry(out.warnings, "w").message:match "^(%-?[%d.]+) (m?s) (%-?[%d.]+) %%$"
    local share = 100 * tonumber(seconds) / (unit == "ms" and 1000 or 1) / out.step_seconds
    assert.is_near(share, tonumber(percent), 0.02 * math.abs(share))
  end)
end)

describe("rules about what a pipeline is worth", function()
  local job = { cluster = { gpus = 64 }, model = { total = "13B", layers = 40 } }
  local anyway = [[disable { id = "fits_one_gpu", reason = "to see a pipeline" } ]]

  local free = plan(anyway, job)
  local share = 1 - free.without_pipeline.step_seconds / free.step_seconds

  it("refuse the plan where a step without one is shorter, whether they are conditions or functions, and recommend that", function()
    for _, condition in ipairs { "pipeline_avoidable_fraction = over(%.17g)",
                                 "when = function(f) local s = f.pipeline_avoidable_fraction return s ~= nil and s > %.17g end" } do
      local rule = "refuse { id = 'r', recommend = 'data_and_tensor_parallel', message = 'm', " .. condition .. " }"
      local refused = plan(anyway .. rule:format(share - 0.2), job)
      assert.decided(refused, "refused", "r")
      assert.equal(free.without_pipeline.step_seconds, refused.recommend.step_seconds)
      assert.decided(plan(anyway .. rule:format(share + 0.001), job), "planned")
    end
  end)

  it("say nothing of what has no pipeline, and where none fits", function()
    local rule = anyway .. "reject { id = 'r', pipeline_avoidable_seconds = over(-1000), message = 'm' }"
    assert.decided(plan(rule, job), "rejected", "r")
    assert.decided(plan(rule, planning.merge(job, { parallelism = { pipeline = 1 } })), "planned")
    local large = { cluster = { gpus = 64 }, model = { total = "405B", layers = 126 }, training = { recompute = "full", sharding = "none" } }
    assert.is_nil(plan(anyway, large).without_pipeline)
    assert.is_false(planning.has(plan(rule, large).reasons, "r"))
  end)
end)

describe("labels of a spec", function()
  it("are fields of rules, and absent where the spec has none", function()
    local labelled = { labels = { tier = "research", region = "north" } }
    assert.is_true(warns("label_tier = 'research'", labelled))
    assert.is_true(warns("label_tier = { 'research', 'student' }, label_region = none_of { 'south' }", labelled))
    assert.is_false(warns("label_tier = 'production'", labelled))
    assert.is_false(warns "label_tier = 'research'")
    assert.is_true(warns "label_tier = none_of { 'research' }")
  end)

  it("are read by functions and messages", function()
    local rule = "reject { id = 'r', message = 'tier {label_tier}', when = function(f) local t = f.label_tier return t == 'research' or false end }"
    local out = plan(rule, { labels = { tier = "research" } })
    assert.decided(out, "rejected", "r")
    assert.equal("tier research", out.reasons[1].message)
    assert.decided(plan(rule), "planned")
    assert.decided(plan(rule, { labels = { tier = "production" } }), "planned")
  end)

  it("are texts by name", function()
    for _, labels in ipairs { { tier = 1 }, { ["a b"] = "x" }, { [""] = "x" }, "tier", { tier = "" } } do
      local problem = planning.problem(dense, { labels = labels })
      assert.equal(2, problem.status)
      assert.matches("expected texts by name", problem.message)
    end
    assert.matches("labels is .*: expected each name once: tier stands twice", planning.problem(dense, { labels = "tier=x,tier=y" }).message)
    assert.decided(plan("reject { id = 'r', label_tier = 'x', message = 'm' }", { labels = "tier=x,other=y" }), "rejected", "r")
  end)
end)

describe("the model's family", function()
  it("is what its config.json calls itself, and absent of an inline shape", function()
    assert.is_true(warns("model_family = 'llama'", { model = "examples/models/llama-3-70b.json" }))
    assert.is_false(warns "model_family = 'llama'")
  end)
end)

describe("what is asked of ranks", function()
  -- An uneven split: what the emptiest and the fullest rank hold is stated.
  local uneven = { parallelism = { tensor = 8, pipeline = 4, schedule = "1f1b", layers_per_stage = { 18, 21, 21, 20 } } }
  local free = plan("set { tie_fraction = '1%' }", uneven)
  local bytes = { math.huge, 0 }
  for _, rank in ipairs(free.memory.ranks) do
    bytes = { math.min(bytes[1], rank.total_bytes), math.max(bytes[2], rank.total_bytes) }
  end

  local function asked(quantifier, condition) return warns(string.format("%s = { %s }", quantifier, condition), uneven) end

  it("is whether one or all of them have it", function()
    for _, case in ipairs {
      { "layers = over(20)", true, false }, { "layers = over(21)", false, false }, { "layers = at_least(18)", true, true },
      { "layers = under(19)", true, false }, { "layers = at_most(21)", true, true }, { "layers = under(18)", false, false },
      { "stages = at_most(1)", true, true }, { "stages = over(1)", false, false },
      { string.format("bytes = over(%.17g)", bytes[1]), true, false }, { string.format("bytes = at_least(%.17g)", bytes[1]), true, true },
      { string.format("bytes = under(%.17g)", bytes[2]), true, false }, { string.format("bytes = at_most(%.17g)", bytes[2]), true, true },
      { string.format("idle = at_least(%.17g)", free.bubble.max_idle_fraction - 1e-9), true, false },
      { string.format("idle = over(%.17g)", free.bubble.max_idle_fraction + 1e-9), false, false },
    } do
      assert.same({ case[2], case[3] }, { asked("any_rank", case[1]), asked("every_rank", case[1]) }, case[1])
    end
  end)

  it("may be a range, and several things, of every rank", function()
    assert.is_true(asked("every_rank", "layers = between(18, 21), stages = at_most(1)"))
    assert.is_false(asked("every_rank", "layers = between(19, 21)"))
    assert.is_false(asked("every_rank", "layers = between(18, 20)"))
  end)

  it("rejects a plan too, as far as that is known of a candidate", function()
    assert.decided(plan(string.format("reject { id = 'r', any_rank = { bytes = over(%.17g) }, message = 'm' }", bytes[2] - 1), uneven),
                   "rejected", "r")
    assert.decided(plan("invariant { id = 'i', any_rank = { layers = over(20) } }", uneven), "rejected", "i")
  end)

  it("is refused where it could not mean what it says", function()
    for text, said in pairs {
      ["any_rank = { layers = over(4), bytes = over('1GiB') }"] = "any_rank takes one comparison",
      ["any_rank = { layers = between(4, 8) }"] = "any_rank takes one comparison",
      ["any_rank = { layer = over(4) }"] = "did you mean 'layers'",
      ["any_rank = { layers = 4 }"] = "one of over",
      ["any_rank = over(4)"] = "it is written { bytes = over",
      ["any_rank = { bytes = over('1GiB'), nil, 5 }"] = "it is written { bytes = over",
      ["every_rank = { [7] = over(4), layers = over(4) }"] = "it is written { bytes = over",
      ["every_rank = { bytes = over('80G') }"] = "of what",
      ["any_rank = { bytes = over('1GiB') }, peak_bytes = over('2GiB')"] = "peak_bytes has a condition already",
    } do
      local good, problem = pcall(planning.policy_of, "warn { id = 'w', message = 'm', " .. text .. " }")
      assert.is_false(good)
      assert.matches(said, problem.message or tostring(problem), 1, true)
    end
    local good, problem = pcall(planning.policy_of, "reject { id = 'r', message = 'm', any_rank = { layers = over(4) } }")
    assert.is_false(good)
    assert.matches("known only of a finished plan", problem.message, 1, true)
  end)
end)
