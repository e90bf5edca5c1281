-- SPDX-License-Identifier: Apache-2.0
-- engine.search: candidates as a table of columns, masks over its rows, and what is filled in on demand.

require "pipeplan"
local engine = require "engine"
local recipe = require "pipeplan.input.recipe"
local spec = require "pipeplan.input.spec"

local schedules = engine.schedule.kinds

-- Mixtral on 64 A100, everything free unless `fixed` says otherwise.
local function arguments(changes)
  local request = spec.read { files = { "examples/specs/mixtral-8x7b.json" } }
  local given = {
    model = request.model.shape, training = recipe.training(request), device = request.device, network = recipe.network(request),
    gpus = 64, global_batch = 512, scale_up_gpus = 8, usable_bytes = 73 * 2 ^ 30, overhead_bytes = 4 * 2 ^ 30, schedules = schedules,
  }
  for key, value in pairs(changes or {}) do given[key] = value end
  return given
end

local function open(changes)
  return engine.search(arguments(changes))
end

-- DeepSeek-V3 on 2,048 H800: all-to-all over the network is worth hiding.
local function open_deepseek(fixed)
  local request = spec.read { files = { "examples/specs/deepseek-v3.json" } }
  return open {
    model = request.model.shape, training = recipe.training(request), device = request.device, network = recipe.network(request),
    gpus = 2048, global_batch = 15360, fixed = fixed,
  }
end

local function equal(field, value)
  return { field = field, op = "equal", value = value }
end

describe("engine.search", function()
  it("names what is wrong with its arguments", function()
    assert.has_error(function() open { gpus = 0 } end, "engine.search: 'gpus' must be an integer from 1 to 16777216, got 0")
    assert.error_matches(function() open { schedule = {} } end, "schedule")
    assert.error_matches(function() open { schedules = { "zb_h9" } } end, "no schedule is called 'zb_h9'")
    assert.error_matches(function() open { fixed = { pipelines = 4 } } end, "pipelines")
    for _, layers in ipairs { 2 ^ 32 + 16, -1, 1.5 } do
      assert.error_matches(function() open { fixed = { layers_per_stage = { 16, layers } } } end, "must list integers from 0 to 1024")
    end
  end)

  it("gives every row all columns, degrees as integers, what is not known yet as nil", function()
    local c = open()
    local row = c:row(c:match({ equal("schedule", "zb_v"), equal("pipeline_parallel", 4), equal("tensor_parallel", 2) }):first())
    assert.equal("integer", math.type(row.microbatches))
    assert.equal(64, row.tensor_parallel * row.context_parallel * row.data_parallel * row.pipeline_parallel)
    assert.equal("zero_bubble", row.schedule_family)
    assert.equal(1, row.virtual)
    assert.equal(8, row.stages)
    assert.is_nil(row.step_seconds)
    assert.is_nil(row.peak_bytes)
    assert.is_nil(row.alltoall_kernel)
  end)

  -- Dispatch and combine, forward and backward: four calls a MoE layer and microbatch; 58 layers and MTP's one, spread over 16 ranks.
  it("prices calls of the all-to-all by each candidate's kernel", function()
    local request = spec.read { files = { "examples/specs/deepseek-v3.json" } }
    local device = recipe.device(request, false)
    device.alltoall_latency = 0
    local c = open {
      model = request.model.shape, training = recipe.training(request), device = device, network = recipe.network(request),
      gpus = 2048, global_batch = 15360, fixed = { tensor = 1, expert = 64, pipeline = 16, schedule = "1f1b" },
      kernel_latency = { slow_ep = 5e-4, quick_ep = 1e-4 },
    }
    local row = c:match({ equal("pipeline_parallel", 16) }):first()
    local function work(kernel)
      c:set("alltoall_kernel", kernel)
      local evaluation = c:evaluate(row)
      return evaluation.work_seconds, evaluation.microbatches
    end
    local slow, microbatches = work "slow_ep"
    local quick, other = work "quick_ep", work "other_ep"
    local call = 4 * 59 * microbatches / 16
    assert.near(4e-4 * call, slow - quick, 1e-6)
    assert.near(1e-4 * call, quick - other, 1e-6)
    assert.error_matches(function() open { kernel_latency = { slow_ep = -1 } } end, "kernel_latency")
  end)

  it("reads request fields beside columns, and takes absent ones for absent", function()
    local c = open()
    c:set("gpus", 64)
    c:set("fabric", "infiniband")
    c:set("fits_one_gpu", false)
    assert.equal(#c, #c:match { equal("fabric", "infiniband"), equal("fits_one_gpu", false) })
    assert.equal(0, #c:match { { field = "tokens", op = "over", value = 0 } })
    assert.equal(#c:match { equal("pipeline_parallel", 64) }, #c:match { equal("pipeline_parallel", 1) } * 0)
    assert.equal(64, c:get("gpus", 1))
    assert.equal("infiniband", c:row(1).fabric)
    assert.is_false(c:row(1).fits_one_gpu)
  end)

  it("lets no one set what it computes", function()
    assert.error_matches(function() open():set("step_seconds", 1) end, "'step_seconds' is computed")
  end)

  it("has masks with the algebra of sets", function()
    local c = open()
    local deep, moe = c:match { { field = "pipeline_parallel", op = "over", value = 2 } }, c:match { equal("expert_parallel", 8) }
    assert.equal(#deep + #moe, #(deep | moe) + #(deep & moe))
    assert.equal(#c, #(c:all() - deep) + #deep)
    assert.equal(c:none(), deep - deep)
    assert.is_nil(c:none():first())
    assert.same({ 3, 7 }, (c:only(7) | c:only { 3 }):rows())
    assert.is_true(c:only(7):has(7))
    assert.is_false(c:only(7):has(8))
    assert.error_matches(function() return deep & open { gpus = 128 }:all() end, "does not belong")
  end)

  it("sets a kernel for some candidates, and overlapping schedules gain most from it", function()
    local c = open_deepseek { tensor = 1, expert = 64, pipeline = 8 }
    local plain, fast = {}, {}
    local dualpipev, one_f1b
    for row = 1, #c do plain[row] = c:simulate(row) end
    local some = c:match { { field = "schedule", op = "one_of", values = { "dualpipev", "1f1b" } } }
    c:set("alltoall_kernel", { { "deepep", some } })
    for row = 1, #c do fast[row] = c:simulate(row) end
    for row = 1, #c do
      local schedule = c:get("schedule", row)
      if some:has(row) then assert.is_true(fast[row] < plain[row])  -- 1F1B too: the kernel itself is faster than a plain all-to-all
      else assert.equal(plain[row], fast[row]) end
      if schedule == "dualpipev" then dualpipev = fast[row] / plain[row] end
      if schedule == "1f1b" then one_f1b = fast[row] / plain[row] end
    end
    assert.is_true(dualpipev < one_f1b)
    assert.equal("deepep", c:get("alltoall_kernel", some:first()))
    assert.is_nil(c:get("alltoall_kernel", (c:all() - some):first()))
  end)

  it("says which candidates cannot be built, by rule, and what would be legal", function()
    local c = open { global_batch = 192, fixed = { pipeline = 8, tensor = 2 } }  -- M 48 / 4 = 48: DP 4, M 48
    for _, rule in ipairs(c:engine_rules(c:all())) do
      for _, row in ipairs(rule.mask:rows()) do
        local good, problem = c:check(row)
        assert.is_nil(good)
        assert.equal(rule.id, problem.id)
      end
    end
    local odd = open { global_batch = 16 * 15, fixed = { pipeline = 4, tensor = 1 } }  -- 15 microbatches
    local ids = {}
    for _, rule in ipairs(odd:engine_rules(odd:all())) do ids[rule.id] = #rule.mask end
    assert.is_true(ids["engine.odd_microbatches"] > 0)
    assert.is_nil(odd:check(odd:match({ equal("schedule", "dualpipe") }):first()))
    assert.is_true(odd:check(odd:match({ equal("schedule", "1f1b") }):first()))
  end)

  it("finds the fastest row and those near it as simulating everything would", function()
    local lazy, all = open { fixed = { tensor = 1 } }, open { fixed = { tensor = 1 } }
    local best, seconds, within = lazy:best(lazy:all(), 0.05)
    local fastest = math.huge
    for row = 1, #all do
      local time = all:simulate(row)
      if time then
        assert.is_true(all:bound(row) <= time)
        fastest = math.min(fastest, time)
      end
    end
    assert.equal(fastest, seconds)
    assert.equal(fastest, all:get("step_seconds", best))
    for row = 1, #all do
      local time = all:get("step_seconds", row)
      assert.equal(time ~= nil and time <= fastest * 1.05, within:has(row))
    end
    assert.is_nil(lazy:best(lazy:all(), 0, fastest))
    assert.is_nil(lazy:best(lazy:none()))
  end)

  -- whoever is told early is right, and of what takes far longer everyone is told
  it("tells by bounds what will hold once a row is simulated", function()
    local c = open { fixed = { tensor = 1 } }
    c:memory(c:all())
    local _, fastest = c:best(c:all())
    local simulated = open { fixed = { tensor = 1 } }
    simulated:memory(simulated:all())
    for row = 1, #simulated:all() do simulated:simulate(row) end
    for _, times in ipairs { 0.2, 0.9, 1.01, 1.3, 1.5 } do
      local long = { { field = "step_seconds", op = "over", value = times * fastest }, { field = "microbatches", op = "over", value = 16 } }
      local told, holds = c:match_late(long, c:all()), simulated:match(long)
      assert.equal(0, #(told - simulated:only(holds:rows())), times)
      if times < 1 then assert.equal(#holds, #told) end
      assert.is_true(#told > 0, times)
    end
    assert.is_nil(c:get("step_seconds", c:match_late({ { field = "step_seconds", op = "over", value = 1.5 * fastest } }, c:all()):first()))
    assert.equal(0, #c:match_late({ { field = "step_seconds", op = "over", value = 0 } }, c:none()))
  end)

  it("has experts split as the rest, or not at all, or both where TP is left open too", function()
    local function degrees(changes)
      local seen, c = {}, open(changes)
      for row = 1, #c:all() do
        local tensor, experts = c:get("tensor_parallel", row), c:get("expert_tensor_parallel", row)
        if tensor > 1 then seen[experts == tensor and "as TP" or experts == 1 and "not" or "otherwise"] = true end
      end
      return seen
    end
    assert.same({ ["not"] = true }, degrees())
    assert.same({ ["as TP"] = true }, degrees { experts_as_tensor = true })
    assert.same({ ["as TP"] = true, ["not"] = true }, degrees { experts_as_tensor = true, experts_apart = true })
    assert.same({ ["as TP"] = true }, degrees { experts_as_tensor = true, experts_apart = true, fixed = { tensor = 2 } })
    assert.same({ otherwise = true }, degrees { experts_as_tensor = true, experts_apart = true, fixed = { tensor = 8, expert_tensor = 4 } })
  end)

  it("says what a step saves without a pipeline, once it is told what that takes", function()
    local c = open { fixed = { tensor = 1, expert = 8 } }
    local early = c:match({ equal("pipeline_parallel", 2), equal("schedule", "1f1b") }):first()
    local late = c:match({ equal("pipeline_parallel", 8), equal("schedule", "1f1b") }):first()
    local first = c:simulate(early)
    assert.is_nil(c:get("pipeline_avoidable_seconds", early))
    c:set("alone_seconds", 5)
    local second = c:simulate(late)
    assert.near(first - 5, c:get("pipeline_avoidable_seconds", early), 1e-12)
    assert.near(1 - 5 / second, c:get("pipeline_avoidable_fraction", late), 1e-12)
    local alone = c:match({ equal("pipeline_parallel", 1) }):first()
    c:simulate(alone)
    assert.is_nil(c:get("pipeline_avoidable_seconds", alone))
    c:set("alone_seconds", nil)
    assert.is_nil(c:get("pipeline_avoidable_fraction", late))
  end)

  it("balances stages by time unless equal layers are asked for or a split is given", function()
    local fixed = { tensor = 1, expert = 8, pipeline = 4 }
    local function layers(changes, row_of)
      local c = open(changes)
      local row = c:match({ equal("schedule", row_of or "1f1b"), equal("pipeline_parallel", 4) }):first()
      return c:evaluate(row).layers_per_stage
    end
    assert.same({ 8, 8, 8, 8 }, layers { fixed = fixed, layers = { ["1f1b"] = "even" } })
    fixed.layers_per_stage = { 6, 9, 9, 8 }
    assert.same({ 6, 9, 9, 8 }, layers { fixed = fixed })
  end)

  it("keeps its numbers to itself on collection, whatever raised an error before", function()
    for _ = 1, 20 do
      pcall(open, { schedules = { "1f1b" }, fixed = { schedule = "?" } })
      local c = open { fixed = { tensor = 1, pipeline = 4 } }
      c:memory(c:all())
      pcall(c.evaluate, c, 0)
    end
    collectgarbage()
    collectgarbage()
  end)
end)

describe("candidates:evaluate", function()
  local function evaluate(schedule, changes, baselines)
    local c = open_deepseek(changes or { tensor = 1, expert = 64, pipeline = 4 })
    c:set("alltoall_kernel", "deepep")
    c:memory(c:all())
    local row = c:match({ equal("schedule", schedule) }):first()
    c:simulate(row)
    return c:evaluate(row, baselines or {}), c:row(row), c
  end

  it("agrees with the table's columns", function()
    for _, schedule in ipairs { "1f1b", "zb_h1", "zb_v", "zb_auto", "dualpipe", "dualpipev" } do
      local e, row = evaluate(schedule)
      assert.equal(row.step_seconds, e.step_seconds)
      assert.equal(row.bubble_fraction, e.bubble_fraction)
      -- zb_auto: what its limit allows, before it is known how much of that its order uses
      if schedule == "zb_auto" then assert.is_true(row.peak_bytes >= e.peak_bytes)
      else assert.near(row.peak_bytes, e.peak_bytes, 1) end
      assert.equal(row.microbatches, e.microbatches)
      local step = e.step
      assert.near(e.makespan_seconds + step.gradient_sync + step.parameter_sync + step.optimizer + step.mirror + step.overhead,
                  e.step_seconds, 1e-9)
    end
  end)

  it("splits all layers over the stages, and says which ranks hold them", function()
    local e = evaluate "dualpipe"
    local sum = 0
    for _, layers in ipairs(e.layers_per_stage) do sum = sum + layers end
    assert.equal(61, sum)
    assert.same({ { 0, 3 }, { 1, 2 }, { 2, 1 }, { 3, 0 } }, e.placement)  -- stage s on rank s, and on rank P − 1 − s (DualPipe README)
    assert.same({ 1, 4 }, e.memory[1].stages)
    local v = evaluate "dualpipev"
    assert.same({ { 0 }, { 1 }, { 2 }, { 3 }, { 3 }, { 2 }, { 1 }, { 0 } }, v.placement)
    assert.equal(1, v.virtual)
    assert.equal(2, v.chunks)
  end)

  it("evaluates the schedules that are asked for in its place, at the same layout without overlap", function()
    local e = evaluate("dualpipe", nil, { "1f1b", "zb_h1" })
    assert.is_true(e.step_seconds < e.no_overlap.step_seconds)
    assert.is_true(e.no_overlap.step_seconds <= e.baselines["1f1b"].step_seconds)
    assert.is_not_nil(e.baselines.zb_h1.step_seconds)
    assert.is_true(e.alltoall_exposed_seconds < e.alltoall_seconds)
    local plain = evaluate("1f1b", nil, { "1f1b" })
    assert.equal(plain.step_seconds, plain.baselines["1f1b"].step_seconds)
    assert.equal(plain.step_seconds, plain.no_overlap.step_seconds)
    assert.near(plain.alltoall_seconds, plain.alltoall_exposed_seconds, 1e-9)
    assert.is_nil(plain.baselines.zb_h1)
    assert.same({}, evaluate("1f1b").baselines)
    assert.has_error(function() evaluate("1f1b", nil, { "zb_h3" }) end, "candidates:evaluate: no schedule 'zb_h3'")
  end)

  it("tells the collectives of tensor parallelism apart, on the rank that spends most on them", function()
    -- DeepSeek-V3 gathers and scatters around attention and around its shared expert, dense layers around their MLP: 4 each way and layer,
    -- (t − 1)/t · n/B of n = 2·s·b·h bytes each, and 20 µs beside; the embedding and the head two more each, MTP a layer and a head. Backward
    -- gathers once more for each two of forward, beside I, and half of that is not hidden.
    local e = evaluate("1f1b", { tensor = 2, expert = 64, pipeline = 4 })
    local tier = recipe.network(spec.read { files = { "examples/specs/deepseek-v3.json" } }).tiers[1]
    local once = 20e-6 + tier.latency + 1 / 2 * 2 * 4096 * 7168 / (tier.bandwidth * tier.efficiency)
    local most = 0
    for i, stage in ipairs(e.stages) do
      local layers = e.layers_per_stage[i] + stage.mtp
      most = math.max(most, (8 + 4 / 4) * layers + 2 * stage.embedding + (2 + 1 / 4) * (stage.head + stage.mtp))
    end
    assert.near(e.microbatches * most * once, e.tensor_seconds, 1e-9 * e.tensor_seconds)
    assert.equal(0, evaluate("1f1b").tensor_seconds)
    assert.equal(0, e.context_seconds)
    assert.equal(0, e.context_exposed_seconds)
  end)

  it("holds two copies on DualPipe's ranks and one on others", function()
    local two, one = evaluate "dualpipe", evaluate "dualpipev"
    assert.equal(2, two.copies)
    assert.equal(1, one.copies)
    assert.near(one.parameters.unique, two.parameters.unique, 1)
    assert.is_true(two.parameters.resident > 1.9 * two.parameters.unique)
    assert.is_true(one.parameters.resident < 1.6 * one.parameters.unique)
  end)

  it("of a candidate without a pipeline has one stage and no bubble", function()
    local e = evaluate("none", { tensor = 2, expert = 64 }, { "1f1b" })
    assert.equal("none", e.schedule)
    assert.same({ 61 }, e.layers_per_stage)
    assert.same({ { 0 } }, e.placement)
    assert.equal(0, e.bubble_fraction)
    assert.equal(1, #e.memory)
    assert.same({}, e.baselines)
  end)

  it("answers nil and the rule where nothing can be built", function()
    local c = open { global_batch = 16 * 15, fixed = { pipeline = 4, tensor = 1 } }
    local e, problem = c:evaluate(c:match({ equal("schedule", "dualpipe") }):first())
    assert.is_nil(e)
    assert.equal("engine.odd_microbatches", problem.id)
  end)
end)
