-- SPDX-License-Identifier: Apache-2.0
-- engine.cost.terms: what the seconds of a block are made of; that --explain shows them; and what training.data_overlap hides of a step.
-- Expected values are arithmetic that stands beside them.

require "pipeplan"
local costs = require "lua.costs"
local engine = require "engine"
local planning = require "planning"
local program = require "program"
local recipe = require "pipeplan.input.recipe"
local spec = require "pipeplan.input.spec"

local TOKENS = 4096

local function near(expected, actual, what)
  assert.is_true(math.abs(actual - expected) <= 1e-9 * math.abs(expected), string.format("%s: expected %.12g, got %.12g", what or "it", expected, actual))
end

-- A card whose every figure is another, so that none stands for another.
local function card(changes)
  local device = costs.h100()
  for name, value in pairs {
    gemm_efficiency = 0.5, grouped_gemm_efficiency = 0.4, attention_efficiency = 0.6, attention_backward = 0.9, attention_half = 700,
    attention_half_backward = 1300, attention_fill = 200, product_depth = 64, product_floor = 4e-6, grouped_rows = 128, grouped_floor = 2e-5,
    layer_latency = 1e-4, routing_latency = 3e-4, tensor_latency = 2e-5, tensor_regather = 0.5,
  } do device[name] = value end
  for name, value in pairs(changes or {}) do device[name] = value end
  return device
end

local function setting(changes)
  local given = { model = costs.llama_8b(), layout = { data = 128 }, training = costs.bf16(), device = card(), network = costs.network() }
  return planning.merge(given, changes or {})
end

local function mixture()
  return { layers = 8, hidden = 1024, vocab = 32000, heads = 8, kv_heads = 8, head_dim = 128, ffn = 4096, experts = 8, experts_per_token = 2,
           expert_ffn = 768 }
end

local function sum_of(terms)
  local sum = 0
  for _, seconds in pairs(terms) do sum = sum + seconds end
  return sum
end

describe("terms of a block", function()
  local settings = {
    dense = {},
    ["tensor parallel"] = { layout = { tensor = 8, data = 16 } },
    ["context parallel"] = { layout = { context = 16, data = 8 } },
    ["computed again"] = { training = { recompute = { full = true } } },
    ["partly computed again"] = { training = { recompute = { norm = true, core_attention = true, activation = true } } },
    ["not fused"] = { training = { fused_attention = false, unfused_norm = true, unfused_rope = true, unfused_activation = true, loss = "torch" } },
    ["late host"] = { device = { host = { forward = 1, backward = 2, moe_forward = 3, moe_backward = 4 } } },
    ["experts"] = { model = mixture(), layout = { expert = 8 } },
    ["experts one by one"] = { model = mixture(), layout = { expert = 4 }, training = { unfused_experts = true },
                               device = { hides_alltoall = false, host = { moe_forward = 1e-3, moe_backward = 9, expert_forward = 1e-3, waiting = 0.2 } } },
    ["latent attention"] = { model = costs.deepseek_v3(), layout = { tensor = 2, data = 64, expert = 64 },
                             training = { recompute = { moe = true, mla_up_projection = true } } },
  }
  for name, changes in pairs(settings) do
    it("sum to its seconds: " .. name, function()
      local given = setting(changes)
      local blocks, terms, seen = engine.cost.blocks(given), engine.cost.terms(given), 0
      for block, seconds in pairs(blocks) do
        for _, pass in ipairs { "forward", "input", "weight" } do
          near(seconds[pass], sum_of(terms[block][pass]), block .. " " .. pass)
          if seconds[pass] > 0 then seen = seen + 1 end
        end
      end
      assert.is_true(seen >= 7, seen .. " passes take time")   -- a layer, a head, and F of the embedding
    end)
  end

  -- Llama 8B: products of Q with K and V (6,144 columns of 4,096), of the output, of gate with up (28,672), of down (from 14,336)
  it("are products of 2·m·n·(k + depth) FLOPs and a floor each; I turns n and k, W has tokens for its inner size", function()
    local dense, rate = engine.cost.terms(setting()).dense, 0.5 * 989e12
    local shapes = { { 6144, 4096 }, { 4096, 4096 }, { 28672, 4096 }, { 4096, 14336 } }
    local forward, input, weight = 0, 0, 0
    for _, shape in ipairs(shapes) do
      forward = forward + 2 * TOKENS * shape[1] * (shape[2] + 64) / rate + 4e-6
      input = input + 2 * TOKENS * shape[2] * (shape[1] + 64) / rate + 4e-6
      weight = weight + 2 * shape[1] * shape[2] * (TOKENS + 64) / rate + 4e-6
    end
    near(forward, dense.forward.products)
    near(input, dense.input.products)
    near(weight, dense.weight.products)
  end)

  -- causal: 2 length² heads head_dim FLOPs; 32 heads × 32 pieces of 128 queries; 2.5 times as many backward, at 0.9 of the rate
  it("are attention by length and by how many pieces fill the card", function()
    local dense = engine.cost.terms(setting()).dense
    local flops, filled = 2 * TOKENS ^ 2 * 32 * 128, 1 + 200 / (32 * 32)
    near(flops / (0.6 * 989e12) * (1 + 700 / 4096) * filled, dense.forward.attention)
    near(2.5 * flops / (0.6 * 0.9 * 989e12) * (1 + 1300 / 4096) * filled, dense.input.attention)
    assert.equal(0, dense.weight.attention)
  end)

  -- Two norms and two residual additions: 10 elements of 2 bytes; queries and keys rotated, read and written; gate, up and their product
  it("are bytes of element-wise kernels, twice as many in I; gradients read and written in W", function()
    local dense, speed = engine.cost.terms(setting()).dense, 0.8 * 3.35e12
    near(TOKENS * (10 * 2 * 4096 + 2 * 2 * (4096 + 1024) + 3 * 2 * 14336) / speed, dense.forward.moved)
    near(2 * dense.forward.moved, dense.input.moved)
    assert.equal(0, dense.weight.moved)
    local weights = 6144 * 4096 + 4096 * 4096 + 28672 * 4096 + 4096 * 14336
    near(weights * 2 * 4 / speed, dense.weight.accumulated)
    assert.equal(0, dense.forward.accumulated + dense.input.accumulated)
  end)

  it("are TP's gathers and scatters around two regions; half a gather more in I is not hidden", function()
    local bytes = 2 * TOKENS * 4096
    local once = 2e-6 * 7 + 7 / 8 * bytes / (0.8 * 450e9) + 2e-5   -- 7 hops round a ring of 8, and what a collective takes beside
    local dense = engine.cost.terms(setting { layout = { tensor = 8, data = 16 } }).dense
    near(4 * once, dense.forward.tensor)
    near(4 * once + 0.5 * 2 * once, dense.input.tensor)
    assert.equal(0, dense.weight.tensor)
    local beside = engine.cost.terms(setting { layout = { tensor = 8, data = 16 }, training = { tensor_overlap = 0.7 } }).dense
    near(0.3 * 4 * once, beside.forward.tensor)
  end)

  -- 8,192 rows over 8 experts, each padded by half a tile of 128: 1,088; gate with up are 1,536 columns of 1,024, down 1,024 of 768
  it("are grouped products of padded rows", function()
    local moe, rate = engine.cost.terms(setting { model = mixture() }).moe, 0.4 * 989e12
    near(2 * 8 * 1088 * (1536 * (1024 + 64) + 1024 * (768 + 64)) / rate + 2 * 2e-5, moe.forward.grouped)
    near(2 * 8 * 1088 * (1024 * (1536 + 64) + 768 * (1024 + 64)) / rate + 2 * 2e-5, moe.input.grouped)
    near(2 * 8 * (1536 * 1024 + 1024 * 768) * (1088 + 64) / rate + 2 * 2e-5, moe.weight.grouped)
  end)

  it("are latencies of a layer, and of routing each way", function()
    local moe = engine.cost.terms(setting { model = mixture(), layout = { expert = 8 } }).moe
    near(1e-4 + 3e-4, moe.forward.latency)
    near(1e-4 + 3e-4, moe.input.latency)
    near(0.5e-4, moe.weight.latency)
    local head = engine.cost.terms(setting()).head.forward
    near(head.products + head.moved, sum_of(head))
  end)

  it("are all of F once more in I where all is computed again", function()
    local terms = engine.cost.terms(setting { training = { recompute = { full = true } } }).dense
    near(sum_of(terms.forward), terms.input.recompute)
    assert.equal(0, engine.cost.terms(setting()).dense.input.recompute)
  end)

  it("are what a layer waits for its host: F takes no less than its launches, I and W together neither", function()
    local alone = engine.cost.terms(setting()).dense
    local late = engine.cost.terms(setting { device = { host = { forward = 0.1, backward = 0.3 } } }).dense
    near(0.1 - sum_of(alone.forward), late.forward.host)
    near(0.2, sum_of(late.input))   -- W has half as many kernels as I
    near(0.1, sum_of(late.weight))
    near(0.3 - sum_of(alone.input) - sum_of(alone.weight), late.input.host + late.weight.host)
    local quick = engine.cost.terms(setting { device = { host = { forward = 1e-6, backward = 1e-6 } } }).dense
    assert.equal(0, quick.forward.host + quick.input.host + quick.weight.host)
  end)
end)

describe("--explain", function()
  local names = { products = "products", grouped = "experts", attention = "attention", moved = "element-wise", accumulated = "gradients added",
                  tensor = "TP", ring = "CP", latency = "latency", recompute = "again", host = "waiting for the host" }

  -- What is told of a pass: name → milliseconds.
  local function told(text, pass)
    local found = {}
    for part in (assert(text:match("[;:] " .. pass .. " ([^;]+)"), pass) .. " + "):gmatch "(.-) %+ " do
      local name, ms = part:match "^(.-) ([%d.]+)$"
      found[assert(name, part)] = tonumber(ms)
    end
    return found
  end

  for file, block in pairs { ["llama-3.1-405b"] = "dense", ["deepseek-v3"] = "moe", ["mixtral-8x7b"] = "moe" } do
    it("shows what a layer of the plan's layout is made of: " .. file, function()
      local name = "examples/specs/" .. file .. ".json"
      local page = program.run("plan " .. name .. " --explain --date 2026-12-01").stdout:gsub("%s+", " ")
      local text = assert(page:match("ms of an? (" .. (block == "moe" and "MoE" or "dense") .. " layer: F .-) %[engine/core/cost.c, kernels.c%]"), page)
      local plan = planning.policy:plan_request(spec.read { files = { name } })
      local chosen = plan.recompute[1] and table.concat(plan.recompute, ",") or "none"
      local request = spec.read { files = { name }, options = { recompute = chosen, micro_batch_size = plan.micro_batch_size } }
      local terms = require("pipeplan.plan.terms").of(request, plan)[block]
      for pass, key in pairs { F = "forward", I = "input", W = "weight" } do
        local shown = told(text, pass)
        for term, word in pairs(names) do
          local ms = terms[key][term] * 1e3
          assert.is_true(math.abs((shown[word] or 0) - ms) <= (ms < 99.95 and 0.05 or 0.5) + 1e-9, pass .. " " .. word .. ": " .. ms)
        end
      end
    end)
  end

  it("says nothing of it where stages were measured", function()
    local page = program.run("plan examples/specs/measured-4xH200.json --profile examples/profiles/4xH200.json --explain " ..
                             "--policy examples/sites/pipeline-anyway.lua --date 2026-12-01").stdout
    assert.matches("event simulation", page, 1, true)
    assert.is_nil(page:find("ms of a dense layer", 1, true))
  end)
end)

describe("training.data_overlap", function()
  -- Llama 8B on 64 GPUs in four ranks: DP 16 at a network of 4 GB/s a GPU, so that gradients and parameters take about as long as a pass.
  local function evaluate(share, schedule)
    local device, training = card { host = { forward = 1e-3, backward = 2e-3 } }, costs.bf16()
    local network = { tiers = { { reach = 8, bandwidth = 450e9, efficiency = 0.8, latency = 2e-6 },
                                { reach = 1024, bandwidth = 4e9, efficiency = 0.9, latency = 1e-5 } } }
    training.data_overlap = share
    local given = { model = costs.llama_8b(), training = training, device = device, network = network }
    local search = planning.merge(given, {
      gpus = 64, global_batch = 512, scale_up_gpus = 8, usable_bytes = 1e15, overhead_bytes = 0,
      schedules = { schedule ~= "none" and schedule or "1f1b" },
      fixed = { tensor = 1, pipeline = schedule == "none" and 1 or 4, virtual = schedule == "interleaved_1f1b" and 2 or nil },
    })
    local candidates = engine.search(search)
    local row = candidates:match({ { field = "schedule", op = "equal", value = schedule },
                                   { field = "pipeline_parallel", op = "equal", value = search.fixed.pipeline } }):first()
    return assert(candidates:evaluate(row)), candidates:bound(row), given
  end

  -- The step beside the pipeline: of each rank what its parameters take (engine.cost.step), less that share of F and B of one microbatch in
  -- all of its stages; of the ranks the slowest.
  local function by_hand(share, e, given)
    local blocks, slowest, most = engine.model.parameters(given.model).blocks, nil, -1
    for rank = 0, #e.memory - 1 do
      local forward, full, parameters = 0, 0, 0
      for stage, ranks in ipairs(e.placement) do
        for _, holder in ipairs(ranks) do
          if holder == rank then
            forward, full = forward + e.stage_seconds[stage].forward, full + e.stage_seconds[stage].full
            for block, count in pairs(e.stages[stage]) do
              parameters = parameters + count * (blocks[block] and blocks[block].tensor + blocks[block].replicated or 0)
            end
          end
        end
      end
      local step = engine.cost.step { layout = { data = e.data, pipeline = e.pipeline }, training = given.training, device = given.device,
                                      network = given.network, dense_parameters = parameters, copies = e.copies }
      step.gradient_sync = math.max(0, step.gradient_sync - share * full)
      step.parameter_sync = math.max(0, step.parameter_sync - share * forward)
      local sum = step.gradient_sync + step.parameter_sync + step.optimizer + step.mirror
      if sum > most * (1 + 1e-12) then slowest, most = step, sum end
    end
    return slowest
  end

  for _, schedule in ipairs { "none", "1f1b", "interleaved_1f1b", "zb_v", "dualpipe" } do
    it("hides that share of one microbatch's backward and forward, and its bound stays one: " .. schedule, function()
      local before = math.huge
      for _, share in ipairs { 0, 0.01, 0.3, 0.7, 1 } do
        local e, bound, given = evaluate(share, schedule)
        local expected = by_hand(share, e, given)
        for _, part in ipairs { "gradient_sync", "parameter_sync", "optimizer", "mirror" } do near(expected[part], e.step[part], part .. " at " .. share) end
        assert.is_true(bound <= e.step_seconds, bound .. " over " .. e.step_seconds)
        assert.is_true(e.step_seconds < before, "a larger share hides more")
        before = e.step_seconds
      end
    end)
  end

  it("never hides more than there is", function()
    local request = spec.read { files = { "examples/specs/mixtral-8x7b.json" } }
    request.training.data_overlap = 1
    local plan = planning.policy:plan_request(request)
    assert.is_true(plan.step.gradient_sync_seconds >= 0 and plan.step.parameter_sync_seconds >= 0)
  end)

  it("is told where the plan says what its communication runs beside", function()
    local function beside(training) return planning.plan(planning.llama, { training = training }).communication end
    assert.equal("nothing: after the last backward, before the next forward", beside({}).data.runs_beside)
    assert.equal("70 % of the last backward and of the first forward, which is not counted", beside({ data_overlap = 0.7 }).data.runs_beside)
    assert.equal("nothing", beside({}).tensor.runs_beside)
    assert.equal("70 % of it, not counted, beside products", beside({ tensor_overlap = 0.7 }).tensor.runs_beside)
  end)

  it("is what the framework does where the spec does not say, else nothing", function()
    local function share(framework, given)
      return recipe.training(spec.from_table(planning.merge(planning.llama, { framework = framework, training = { data_overlap = given } }), "."))
        .data_overlap
    end
    assert.equal(0, share())
    assert.equal(0, share "megatron")     -- overlap_grad_reduce is off unless asked for
    assert.equal(0.7, share "torchtitan")
    assert.equal(0.25, share("torchtitan", 0.25))
    assert.equal(1, share(nil, 1))
    local problem = planning.problem(planning.llama, { training = { data_overlap = 1.5 } })
    assert.equal(2, problem.status)
    assert.matches("training.data_overlap is 1.5", problem.message, 1, true)
  end)
end)
