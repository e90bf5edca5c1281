-- SPDX-License-Identifier: Apache-2.0
-- What a plan makes of its step: days, GPU-hours, money, MFU; the even split beside the planned one; and where each figure comes from.

require "pipeplan"
local cjson = require "cjson"
local files = require "policy_files"
local format = require "pipeplan.base.format"
local planning = require "planning"
local random_specs = require "random_specs"

local anyway = require("pipeplan").policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-27" })

local read = require "read_file"

local shipped = cjson.decode(read "examples/specs/measured-4xH200.json")
shipped.profile = "examples/profiles/4xH200.json"

local function plan(changes) return planning.plan(shipped, changes, anyway) end

-- With --explain.
local function explained(base, changes, policy)
  local request = require("pipeplan.input.spec").from_table(planning.merge(base, changes), ".")
  return require("pipeplan.plan.init").plan { request = request, policy = (policy or planning.policy).policy, explain = true }
end

local function near(expected, actual, share)
  assert.is_true(math.abs(actual / expected - 1) <= (share or 1e-9), string.format("expected %.9g, got %.9g", expected, actual))
end

-- DeepSeek-V3's report, https://arxiv.org/abs/2412.19437, section 3.2.1: within a pair the all-to-all of one direction runs beside the other's
-- compute. Of DualPipe and its like a kernel hides it: not the share that streams were measured to hide.
describe("an overlapped pair", function()
  it("of DualPipeV is as long as the step was simulated with", function()
    local spec = planning.merge(cjson.decode(read "examples/specs/qwen3-235b.json"), { framework = "torchtitan" })
    local planned = planning.policy:plan_spec(spec, "examples/specs")
    assert.equal("dualpipev", planned.schedule)
    local least, most, like = 0, 0, 0   -- seconds of all ranks, with everything in pairs and with nothing; stages like the other of their rank
    for _, stage in ipairs(planned.stages) do
      local alone = stage.forward_seconds + stage.full_seconds
      local traffic = stage.alltoall_forward_seconds + stage.alltoall_backward_seconds
      local compute = alone - traffic
      local pair = math.max(compute, traffic) + 0.15 * compute   -- the overhead is stdlib/catalog/accelerators.lua's
      local mate = planned.stages[#planned.stages - stage.stage]
      if mate.layers == stage.layers and mate.full_seconds == stage.full_seconds then
        near(math.min(math.max(pair, stage.forward_seconds, stage.full_seconds), alone), stage.pair_seconds)
        like = like + 1
      end
      least, most = least + planned.microbatches * stage.pair_seconds, most + planned.microbatches * alone
    end
    assert.is_true(like >= 4)
    local ranks = planned.parallelism.pipeline
    assert.is_true(least / ranks < planned.step.pipeline_seconds and planned.step.pipeline_seconds < most / ranks)
  end)
end)

describe("the time of a run", function()
  local made = plan { parallelism = { schedule = "1f1b" } }

  it("is its steps: tokens over tokens a step", function()
    local steps = 100e9 / (32 * 4096)
    near(steps * made.step_seconds / 86400, made.training_days)
    near(steps * made.step_seconds * 4 / 3600, made.gpu_hours)
    assert.is_nil(made.cost)
  end)

  it("is longer where only a share of it trains", function()
    local lost = plan { parallelism = { schedule = "1f1b" }, training = { goodput = "90%" } }
    near(made.training_days / 0.9, lost.training_days)
    near(made.gpu_hours / 0.9, lost.gpu_hours)
    assert.is_nil(planning.assumption(lost, "training.goodput"))
    assert.equal(1.0, planning.assumption(made, "training.goodput").value)
  end)

  it("costs GPU-hours times the price of one", function()
    local priced = plan { parallelism = { schedule = "1f1b" }, cluster = { price_per_gpu_hour = 2.5 } }
    near(made.gpu_hours * 2.5, priced.cost)
    assert.matches(format.count(math.floor(priced.cost + 0.5)) .. " in GPU rent", planning.page_of(priced), 1, true)
    assert.is_nil(planning.page_of(made):find "GPU rent")
  end)

  -- model FLOPs by hand, forward and backward: 6 for each of 12 h² weights and 6 s h of causal attention a layer and token, 6 h V of the head;
  -- H200: 989 dense TFLOP/s in bf16 (NVIDIA H200 data sheet: 1,979 with sparsity)
  it("gives an MFU of the dense peak", function()
    local h, s, vocab = 4096, 4096, 256
    local flops = 16 * (72 * h * h + 6 * s * h) + 6 * h * vocab
    near(flops * 32 * s / (made.step_seconds * 4 * 989e12), made.mfu_fraction, 1e-3)
  end)

  it("adds up what a step is made of", function()
    local sum = 0
    for _, seconds in pairs(made.step) do sum = sum + seconds end
    near(sum, made.step_seconds)
    assert.is_true(made.step.optimizer_seconds > 0)
  end)
end)

-- An embedding on the first and a head of 64 Ki words with loss on the last of four H200, 32 blocks: measured, 1F1B with 9, 9, 9, 5 layers is 6.6
-- to 6.8 % faster than with 8 on each. The profile is of blocks alone, on cards of another day: the head is computed and scaled with them.
describe("a balanced split", function()
  local profile = cjson.decode(read "examples/profiles/4xH200.json")
  profile.rank_speed = nil
  local path = files.write("alike.json", cjson.encode(profile))
  local with_head = planning.merge(shipped, { model = { layers = 32, vocab = 65536 }, profile = path })

  local function split(microbatches, layers)
    return planning.plan(with_head, { training = { global_batch_size = microbatches },
                                      parallelism = { schedule = "1f1b", layers_per_stage = layers } }, anyway)
  end

  for _, microbatches in ipairs { 8, 32 } do
    it("of 9, 9, 9 and 5 gains what was measured, within 1.5 points, at M " .. microbatches, function()
      local even, uneven = split(microbatches, { 8, 8, 8, 8 }), split(microbatches, { 9, 9, 9, 5 })
      local gain = even.step.pipeline_seconds / uneven.step.pipeline_seconds - 1
      assert.is_true(math.abs(gain - 0.067) < 0.015, "gain " .. gain)
    end)
  end

  it("is chosen, with the even one beside it", function()
    local made = split(8)
    assert.same({ 9, 9, 9, 5 }, made.layers_per_stage)
    assert.same({ 8, 8, 8, 8 }, made.even_split.layers_per_stage)
    near(split(8, { 8, 8, 8, 8 }).step_seconds, made.even_split.step_seconds)
    near(made.even_split.step_seconds / made.step_seconds - 1, made.even_split.slower_fraction)
    assert.equal("fits", made.even_split.fit)
    assert.matches("even split %(4 times 8%): [%d.]+ m?s a step, [%d.]+ %% slower", planning.page_of(made))
  end)

  it("has its layers on early ranks where that wins as much of a step as the policy asks", function()
    local never = require("pipeplan").policy("examples/sites/pipeline-anyway.lua",
                                             { date = "2026-11-27", set = { split_gain_fraction = "100%" } })
    local made = planning.plan(with_head, { training = { global_batch_size = 8 }, parallelism = { schedule = "1f1b" } }, never)
    local sum, most = 0, 0
    for _, layers in ipairs(made.layers_per_stage) do sum, most = sum + layers, math.max(most, layers) end
    assert.same({ 32, 9 }, { sum, most })  -- as balanced as with them, but not with all that 9 leaves room for up front
    assert.not_same({ 9, 9, 9, 5 }, made.layers_per_stage)
    assert.is_true(made.step_seconds > split(8).step_seconds)
  end)

  it("is told of with --explain", function()
    local made = explained(with_head, { training = { global_batch_size = 8 }, parallelism = { schedule = "1f1b" } }, anyway)
    assert.matches("layers: stages balanced by time, 9/9/9/5; as many on each stage, 8/8/8/8, would take", planning.page_of(made), 1, true)
  end)

  it("moves layers off a rank that is over its memory as far as the policy says", function()
    -- DeepSeek-V3's balanced splits over 16 ranks are over 76 GiB. With layers moved it fits; without, only a slower split does.
    local file, date = "examples/specs/deepseek-v3.json", "2026-11-27"
    local spec = cjson.decode(read(file))
    spec.model = "examples/models/deepseek-v3.json"
    spec.parallelism.pipeline, spec.parallelism.schedule, spec.cluster.memory_per_gpu = 16, "dualpipe", "76GiB"
    local function planned(set) return require("pipeplan").policy(nil, { date = date, set = set }):plan_spec(spec, ".") end
    local moved, kept = planned(), planned { split_overfull_fraction = 0 }
    assert.same({ "planned", "planned", 16, 16 }, { moved.status, kept.status, #moved.layers_per_stage, #kept.layers_per_stage })
    assert.not_same(moved.layers_per_stage, kept.layers_per_stage)
    assert.is_true(moved.step_seconds < kept.step_seconds)
  end)

  it("that is even has nothing beside it", function()
    assert.is_nil(plan({ parallelism = { schedule = "1f1b", layers_per_stage = { 4, 4, 4, 4 } } }).even_split)
  end)
end)

-- The mean of a rank's stages is not all that counts: with few microbatches the slowest stage is, too.
describe("no even split that fits is faster than the planned one", function()
  local function hold(made, seed)
    local even = made.even_split
    if not even or even.fit == "does_not_fit" then return 0 end
    assert.is_true(even.slower_fraction >= 0, string.format("%s: %s at P %d, %.3g %% faster", seed, made.schedule,
                                                            made.parallelism.pipeline, -100 * even.slower_fraction))
    return 1
  end

  -- A V of 16 stages over 8 ranks at M 16: ranks balanced, with 5 to 6 layers a stage, take 3.06 % more than 5 on each.
  it("where a V has two microbatches a rank", function()
    local base = { cluster = { gpus = 4096, accelerator = "H100-SXM", network = { per_gpu = "400Gbps" } },
                   model = "examples/models/llama-3-70b.json",
                   training = { tokens = "1T", sequence_length = 4096, precision = "bf16", recompute = { "norm", "activation" } },
                   parallelism = { schedule = "dualpipev", pipeline = 8, tensor = 2 } }
    local made = planning.plan(base)
    local even = planning.plan(base, { parallelism = { layers_per_stage = { 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5 } } })
    assert.equal("planned", made.status)
    assert.equal(16, made.microbatches)
    assert.is_true(made.step_seconds <= even.step_seconds)
    hold(made, "the case")
  end)

  it("in any spec", function()
    local compared = 0
    for _, seed in ipairs { 53, 71, 222, 261, 280, 301, 302, 303, 304, 305, 306, 307, 308, 309, 310 } do
      local good, made = pcall(planning.plan, random_specs.any(random_specs.generator(seed)))
      if good and made.status == "planned" then compared = compared + hold(made, "seed " .. seed) end
    end
    assert.is_true(compared > 0)
  end)
end)

describe("figures", function()
  local function named(made)
    local all = {}
    for _, entry in ipairs(made.explanation.figures) do
      for _, key in ipairs { "figure", "name", "formula", "inputs", "source" } do
        assert.is_true(type(entry[key]) == "string" and #entry[key] > 0, entry.figure .. " has no " .. key)
      end
      for path in entry.figure:gmatch "[^,%s]+" do all[#all + 1] = path end
    end
    return table.concat(all, " ") .. " "
  end

  -- every number that the page shows, by its field
  local shown = { "memory.ranks", "bubble.fraction", "gpu_hours_saved", "training_days", "gpu_hours", "mfu_fraction", "expected_error",
                  "model.total_parameters", "cluster.scale_up_bytes_per_second", "cluster.network_bytes_per_second", "microbatches",
                  "tokens_per_step", "layers_per_stage", "step_seconds", "step.pipeline_seconds", "step.gradient_sync_seconds",
                  "step.optimizer_seconds", "ideal_step_seconds", "predicted_utilisation_fraction", "stages[].forward_seconds",
                  "stages[].pair_seconds", "stages[].alltoall_forward_seconds", "communication.pipeline", "communication.expert",
                  "communication.data", "replication", "alternatives[]", "rollback.threshold_fraction", "bubble.closed_form_fraction",
                  "bubble.baseline_1f1b_fraction", "step.mirror_seconds" }

  it("of a plan each have a formula, inputs and a source", function()
    local paths = named(explained(planning.deepseek))
    for _, path in ipairs(shown) do assert.is_truthy(paths:find(path, 1, true), path .. " is not explained") end
  end)

  it("of the answer to \"minimum\", and of a run that fits nothing, are explained too", function()
    local spec = { cluster = { gpus = "minimum", network = { per_gpu = "400Gbps" }, storage = "10GB/s" } }
    local paths = named(explained(planning.llama, spec))
    for _, path in ipairs { "minimum.gpus", "minimum.state_gpus", "host.checkpoint_bytes" } do
      assert.is_truthy(paths:find(path, 1, true), path .. " is not explained")
    end
    paths = named(explained(planning.llama, { cluster = { gpus = 8 } }))
    for _, path in ipairs { "gpus_needed", "ways_to_fit[]" } do assert.is_truthy(paths:find(path, 1, true), path .. " is not explained") end
  end)

  it("that were measured say where", function()
    local made = explained(shipped, { parallelism = { schedule = "1f1b" } }, anyway)
    local source = planning.entry_of(made.explanation.figures, "figure", "stages[].forward_seconds, input_seconds, weight_seconds").source
    assert.matches("measured: ./examples/profiles/4xH200.json", source, 1, true)
    source = planning.entry_of(made.explanation.figures, "figure", "communication.pipeline").source
    assert.equal("./examples/profiles/4xH200.json, p2p", source)
    source = planning.entry_of(made.explanation.figures, "figure", "step.pipeline_seconds").source
    assert.equal("engine/core/runtime.c, torch-single", source)
    local paths = named(explained(shipped, { parallelism = { schedule = "zb_h1" } }, anyway))
    for _, path in ipairs { "profile.calibration[]", "power.taken_back_fraction" } do assert.is_truthy(paths:find(path, 1, true), path) end
  end)

  it("of a rejected run explain what rejected it", function()
    local made = explained(shipped, {})
    assert.equal("rejected", made.status)
    assert.matches("one_gpu.bytes", named(made), 1, true)
  end)
end)

describe("communication", function()
  it("says what it runs beside", function()
    local hidden = planning.plan(planning.deepseek).communication
    assert.matches("other half of its F&B pair", hidden.expert.runs_beside, 1, true)
    assert.equal("nothing", hidden.tensor.runs_beside)
    local exposed = planning.plan(planning.deepseek, { cluster = { alltoall_kernel = false }, parallelism = { schedule = "1f1b" } }).communication
    assert.equal("nothing", exposed.expert.runs_beside)
    near(exposed.expert.seconds, exposed.expert.exposed_seconds, 1e-6)
  end)
end)
