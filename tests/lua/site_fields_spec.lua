-- What sites want to say of a run: whose it is, how it is trained, what it costs and how long it takes.

local planning = require "planning"  -- first: it loads the module

-- A dense 70 B model for 1 T tokens on 256 H100 at 2 an hour, by the NLP team.
local dense = {
  cluster = { gpus = 256, accelerator = "H100-SXM", price_per_gpu_hour = 2, network = { fabric = "infiniband", per_gpu = "400Gbps" } },
  model = { architecture = "dense", total = "70B", layers = 80 },
  training = { tokens = "1T", sequence_length = 4096, global_batch_size = 4096, optimizer = "muon", recompute = "full", goodput = 0.9 },
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
