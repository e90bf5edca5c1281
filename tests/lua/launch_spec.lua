-- SPDX-License-Identifier: Apache-2.0
-- launch_spec.lua: plans written as launches (report/launch) are launches that lint finds nothing in, that are the plan, and that are planned
-- as it was; one that is changed is not. PIPEPLAN_LONG=1 tries 200 plans of each format. The frameworks' own word on the same scripts is
-- tests/torch/megatron_plans_test.py and torchtitan_plans_test.py.

local planning = require "planning"  -- first: it loads the module
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local judge = require "launch_judge"
local long = require "long"
local planner = require "pipeplan.plan.init"
local policy = require "pipeplan.policy.load".load { date = "2026-11-27" }
local random_specs = require "random_specs"
local spec = require "pipeplan.input.spec"
local launches = require "pipeplan.report.launch.formats"
local writer = require "pipeplan.report.launch.init"

local judged, imported, decision = judge.judged, judge.imported, judge.decision

teardown(files.remove)

-- Plans of so many random specs for a framework: seed, plan and request.
local function each_plan(name, first, count, take, model)
  local made, seed = 0, first
  while made < count do
    local object = random_specs.any(random_specs.generator(seed))
    object.framework = launches.framework[name] or name
    if model and type(object.model) == "table" then object.model = planning.merge(object.model, model) end
    if object.parallelism.schedule == "zb_auto" then object.parallelism.schedule = nil end
    local good, problem = failure.try(function()
      local request = spec.from_table(object, ".")
      local plan = planner.plan { request = request, policy = policy }
      if plan.status == "planned" then
        made = made + 1
        take(seed, plan, request, object)
      end
    end)
    if not good and not failure.is(problem) then error(problem, 0) end
    seed = seed + 1
  end
end

-- What random specs seldom are: torchtitan's without a pipeline, on one GPU, with copies of what is sharded, with few bits of moments.
local function corners(changes)
  return planning.merge({
    cluster = { gpus = 64, gpus_per_node = 8, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { layers = 32, hidden = 4096, heads = 32, kv_heads = 8, ffn = 14336, vocab = 128256 },
    training = { tokens = "100B", sequence_length = 8192, global_batch_size = 256, precision = "bf16" }, framework = "torchtitan",
  }, changes)
end
local few = { corners { parallelism = { pipeline = 1 } },
              corners { parallelism = { pipeline = 1, tensor = 1 }, training = { replicas = 8, sharding = "parameters" } },
              corners { parallelism = { pipeline = 2, tensor = 1, schedule = "1f1b" }, training = { moments = "bf16", sharding = "optimizer" } },
              corners { parallelism = { pipeline = 1, context = 4 } },
              corners { cluster = { gpus = 1 }, model = { layers = 2 }, parallelism = { pipeline = 1 }, training = { global_batch_size = 4 } } }

describe("a plan written as a launch", function()
  for _, name in ipairs(launches.names) do
    it("is one that lint finds nothing in, and that is the plan, which it is planned as again: " .. name, function()
      local written = 0
      -- most plans of torchtitan here ask for what it has no key for, and the first specs are refused after long searches
      local first, tried = table.unpack(name == "torchtitan" and not long and { 26, 5 } or { 1, 3 })
      each_plan(name, first, long and 200 or tried, function(seed, plan, request, object)
        local text, problem = writer.write(name, plan, request)
        if not text then
          assert.truthy(problem:find "has no key for", problem)
          return
        end
        written = written + 1
        local found, differences, result = judged(name, text, plan)
        assert.same({ {}, {} }, { found, differences }, seed .. "\n" .. text)
        local ramp = type(object.training.global_batch_size) == "table"   -- read as its first batch
        if not ramp then assert.same(decision(plan), decision(imported(result, object)), seed .. "\n" .. text) end
      end)
      assert.is_true(written >= (long and 50 or 2), written)
    end)
  end

  it("is that plan in the corners too", function()
    for i, object in ipairs(few) do
      local request = spec.from_table(object, ".")
      local plan = planner.plan { request = request, policy = policy }
      assert.equal("planned", plan.status, i)
      local text = writer.write("torchtitan", plan, request)
      assert.equal(plan.parallelism.pipeline > 1, text:find("layers of each stage", 1, true) ~= nil, text)   -- without a pipeline there is one
      local found, differences, result = judged("torchtitan", text, plan)
      assert.same({ {}, {} }, { found, differences }, i .. "\n" .. text)
      local again = imported(result, object)
      assert.same(decision(plan), decision(again), i .. "\n" .. text)
      assert.equal(plan.memory.ranks[1].total_bytes, again.memory.ranks[1].total_bytes)
    end
  end)

  it("is none where torchtitan would refuse it, and the plan says which rule", function()
    local moe = { layers = 48, hidden = 2048, heads = 32, kv_heads = 4, head_dim = 128, vocab = 151936, ffn = planning.none, experts = 128,
                  experts_per_token = 8, expert_ffn = 768 }
    for rule, changes in pairs {
      expert_shards = { model = moe, parallelism = { pipeline = 2, tensor = 1, expert = 8, data = 32 },
                        training = { replicas = 8, sharding = "parameters" } },
      sequence = { parallelism = { pipeline = 2, context = 4, tensor = 1 }, training = { sequence_length = 8190 } },
      optimizer_alone = { parallelism = { pipeline = 1 }, training = { sharding = "optimizer" } },
      gradients_alone = { parallelism = { pipeline = 2 }, training = { sharding = "gradients" } },
    } do
      local plan = planner.plan { request = spec.from_table(corners(changes), "."), policy = policy }
      assert.same({ "rejected", rule == "sequence" and "engine.context_sequence" or "torchtitan." .. rule }, { plan.status, plan.reasons[1].id })
    end
  end)

  -- facts of the switches: flagos-ai/FlagScale @16a2dd5b arguments.py.patch:209-264; DualPipe: FlagScale pull request 1157, its description
  it("has FlagScale's switches of DualPipe and DualPipeV, and none where neither is planned", function()
    local function written(parallelism)
      local request = spec.from_table({
        cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } }, framework = "flagscale",
        model = { layers = 32, hidden = 2048, heads = 16, ffn = 11264, vocab = 102400, experts = 64, experts_per_token = 6, expert_ffn = 1408 },
        training = { tokens = "1T", sequence_length = 4096, global_batch_size = 1024, precision = "bf16" },
        parallelism = planning.merge({ pipeline = 4, expert = 8 }, parallelism),
      }, ".")
      local plan = planner.plan { request = request, policy = policy }
      local text = writer.write("flagscale", plan, request)
      local found, differences, result = judged("flagscale", text, plan)
      assert.same({ {}, {} }, { found, differences })
      local notes = {}
      for _, finding in ipairs(result.findings) do notes[finding.id] = true end
      return text, notes
    end
    local text = written { schedule = "dualpipev", layers_per_stage = { 3, 4, 4, 5, 5, 4, 4, 3 } }
    for _, line in ipairs { "use_dualpipev: true", "moe_fb_overlap: true", "decoder_first_pipeline_num_layers: 6",
                            "decoder_last_pipeline_num_layers: 10" } do assert.truthy(text:find(line, 1, true), line) end
    local other, notes = written { schedule = "dualpipe" }
    assert.truthy(other:find("use_dualpipe: true", 1, true) and other:find("unverified", 1, true) and notes["flagscale.dualpipe_unverified"])
    assert.is_nil(other:find "dualpipev" or other:find "moe_fb_overlap" or other:find "layers_per" or other:find "layout")
    assert.is_nil((written { schedule = "1f1b" }):find "dualpipe")
  end)

  -- its README's table of strategies and the flags under it: AMD-AGI/Primus @fd1eeabb, primus/backends/megatron/core/pipeline_parallel/zerobubble;
  -- pending backwards: primus/configs/modules/megatron/zero_bubble.yaml:11, 16 of 8 stages is ZB-2P and 8 ZB-1P
  it("asks Primus for zero bubble as its README does, and says that its runtime was not asked", function()
    local function written(schedule)
      local request = spec.from_table({
        cluster = { gpus = 64, accelerator = "MI300X", network = { fabric = "roce", per_gpu = "400Gbps" } }, framework = "primus",
        model = { layers = 80, hidden = 8192, heads = 64, kv_heads = 8, ffn = 28672, vocab = 128256 },
        training = { tokens = "1T", sequence_length = 4096, global_batch_size = 512, precision = "bf16", recompute = "full" },
        parallelism = { pipeline = 8, tensor = 2, schedule = schedule:gsub("^v_.*", "zb_v"),
                        virtual = schedule == "interleaved_1f1b" and 2 or nil },
      }, ".")
      local plan = planner.plan { request = request, policy = policy }
      plan.schedule = schedule   -- the default policy plans no V-Half and V-Min, which are placed as ZB-V is
      local text = assert(writer.write("primus", plan, request))
      local found, differences = judged("primus", text, plan)
      assert.same({ {}, {} }, { found, differences }, schedule)
      assert.equal(schedule:find "1f1b" == nil, text:find("# Unverified: zero bubble, for its runtime", 1, true) ~= nil)
      return function(key) return text:match("\n      " .. key .. ": ([^\n]*)") end
    end
    for schedule, want in pairs {
      ["1f1b"] = {}, interleaved_1f1b = { "2" }, zb_h1 = { nil, "true", nil, nil, "8" }, zb_h2 = { nil, "true", nil, nil, "16" },
      zb_v = { "2", "true", "true", "zb" }, v_half = { "2", "true", "true", "half" }, v_min = { "2", "true", "true", "min" },
    } do
      local value = written(schedule)
      for i, key in ipairs { "num_virtual_stages_per_pipeline_rank", "patch_zero_bubble", "zero_bubble_v_schedule",
                             "zero_bubble_v_schedule_mem_setup", "zero_bubble_max_pending_backward" } do
        assert.same({ schedule, key, want[i] }, { schedule, key, value(key) })
      end
      assert.is_nil(value "overlap_grad_reduce" or value "overlap_param_gather" or value "patch_primus_pipeline")
      local split = want[2]
      assert.same({ split, split and "false", split }, { value "no_persist_layer_norm", value "create_attention_mask_in_dataloader",
                                                         value "gradient_accumulation_fusion" })
    end
  end)

  it("says which part of a model has no key", function()
    local function problem(model)
      local request = spec.from_table({
        cluster = { gpus = 16, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } }, framework = "megatron",
        model = planning.merge({ layers = 48, hidden = 4096, heads = 32, ffn = 8192, vocab = 32000 }, model),
        training = { tokens = "10B", sequence_length = 4096, global_batch_size = 64, precision = "bf16" },
        parallelism = { pipeline = 2, tensor = 1, schedule = "1f1b" },
      }, ".")
      local text, told = writer.write("megatron", planner.plan { request = request, policy = policy }, request)
      return not text and told or nil
    end
    assert.is_nil(problem {})
    assert.is_nil(problem { experts = 0 })
    assert.truthy(problem { norms_per_layer = 4 }:find("4 norms a layer", 1, true))
    assert.truthy(problem { qk_norm = "full" }:find("norms of queries and keys over all heads", 1, true))
    assert.truthy(problem { output_bias = true }:find("biases of some linear layers", 1, true))
    assert.is_nil(problem { output_bias = true, qkv_bias = true, mlp_bias = true, norm_bias = true, learned_positions = 4096 })
    assert.is_nil(problem { qkv_bias = true })
    assert.truthy(problem { head_bias = true }:find("a bias of the output weights", 1, true))
  end)

  it("keeps the ranks of a group of tensor parallelism on one node where they fit there", function()
    local request = spec.from_table({
      cluster = { gpus = 12, gpus_per_node = 8, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      framework = "megatron", model = { layers = 48, hidden = 6144, heads = 32, ffn = 16384, vocab = 32000 },
      training = { tokens = "10B", sequence_length = 4096, global_batch_size = 48, precision = "bf16" },
      parallelism = { pipeline = 3, tensor = 4, data = 1, schedule = "1f1b" },
    }, ".")
    local plan = planner.plan { request = request, policy = policy }
    local text = writer.write("megatron", plan, request)
    assert.equal(12, plan.gpus_used)
    assert.truthy(text:find("--nproc_per_node 4", 1, true) or text:find("--nproc-per-node 4", 1, true), text)
  end)

  -- a limit, which may be larger; and what need not stand in a launch: a tokenizer has a vocabulary, and how long it trains is its own
  local others = { ["--moe-token-dispatcher-type"] = "allgather", ["--recompute-granularity"] = "full", ["--recompute-method"] = "block",
                   ["--recompute-modules"] = "core_attn shared_experts", ["--pipeline-model-parallel-layout"] = "'Et|L'", ["--ckpt-format"] = "torch",
                   ["--step-batch-size-schedule"] = "'0:16 1B:32'", ["--moe-layer-freq"] = "3", ["--exp-avg-dtype"] = "fp16",
                   ["--exp-avg-sq-dtype"] = "fp16", ["--main-grads-dtype"] = "fp32", ["--fp8-format"] = "hybrid",
                   ["--data-parallel-sharding-strategy"] = "optim", ["--optimizer-offload-fraction"] = "0.25",
                   ["--normalization"] = "LayerNorm", ["--position-embedding-type"] = "learned_absolute", ["--fp8-recipe"] = "delayed",
                   ["--moe-flex-dispatcher-backend"] = "ncclep", ["--vocab-size"] = "1000", ["--max-position-embeddings"] = "8" }
  local may_lack = { ["--vocab-size"] = true, ["--train-samples"] = true, ["--max-position-embeddings"] = true }

  it("is another one, or none, when any of its keys is changed or left out", function()
    local tried, unseen = 0, {}
    each_plan("megatron", 100, 3, function(seed, plan, request)
      local text = writer.write("megatron", plan, request)
      -- no layer of it has an MLP of that width, or experts' is that width when nobody says
      local of_experts = text and text:find("--num-experts", 1, true) and not text:find("--moe-layer-freq", 1, true)
      local function is_idle(key, left_out) return of_experts and (key == "--ffn-hidden-size" or left_out and key == "--moe-ffn-hidden-size") end
      local function try(line, instead)
        tried = tried + 1
        local at, stop = text:find(line, 1, true)
        local found, differences = judged("megatron", text:sub(1, at - 1) .. "  " .. instead .. " \\" .. text:sub(stop + 1), plan)
        if #found + #differences == 0 then unseen[#unseen + 1] = seed .. ": " .. line .. " → " .. instead end
      end
      for line in (text or ""):gmatch "\n(  %-%-[^\n]*)" do
        local key, value = line:match "^  (%S+) (.-) ?\\$"
        local other = others[key] or tonumber(value) and tostring(2 * math.tointeger(value))
        if value ~= "" and other and other ~= value and not is_idle(key) then try(line, key .. " " .. other) end
        local implied = key == "--use-distributed-optimizer" and text:find("--use-megatron-fsdp", 1, true)   -- arguments.py:1135
                        or key == "--num-query-groups" and value == "1"
        if not may_lack[key] and not implied and not is_idle(key, true) then try(line, "") end
      end
    end, { tied_embeddings = false, norm_bias = false, mlp_bias = false, qkv_bias = false, learned_positions = 0 })
    assert.same({}, unseen)
    assert.is_true(tried > 100, tried)
  end)
end)
