-- SPDX-License-Identifier: Apache-2.0
-- launch_untold_spec.lua: what of a recipe a framework has no key for (report/launch/untold.lua) is in no launch: the plan is refused, with the
-- field, its value, and who can.

local planning = require "planning"  -- first: it loads the module
local planner = require "pipeplan.plan.init"
local policy = require "pipeplan.policy.load".load { date = "2026-11-27" }
local launches = require "pipeplan.report.launch.formats"
local spec = require "pipeplan.input.spec"
local writer = require "pipeplan.report.launch.init"

-- A dense model on 64 GPUs, as a launch of that format: text; or nil and why there is none.
local function written(name, training, changes)
  local object = planning.merge({
    cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { layers = 80, hidden = 8192, heads = 64, kv_heads = 8, ffn = 28672, vocab = 128256 },
    training = planning.merge({ tokens = "10B", sequence_length = 2048, global_batch_size = 128, micro_batch_size = 1, precision = "bf16",
                                recompute = "none", sharding = "optimizer" }, training),
    parallelism = { pipeline = 4, tensor = 4, schedule = "1f1b" },
  }, changes or {})
  local function plan_for(framework)
    object.framework = framework
    local request = spec.from_table(object, ".")
    return planner.plan { request = request, policy = policy }, request
  end
  local plan, request = plan_for(launches.framework[name])
  return writer.write(name, plan, request, plan_for)
end

-- 10e9 tokens of sequences of 2,048, a quarter of which trains nothing: 10e9 / (2048 · 0.75) = 6,510,416.7 sequences, 50,862.6 batches of 128
it("a launch reads as many sequences as train the plan's tokens", function()
  for name, want in pairs { megatron = "--train-samples 6510417", bridge = "train.train_iters=50863", torchtitan = "--training.steps 50863",
                            primus = "train_iters: 50863", flagscale = "train_samples: 6510417" } do
    local text = assert(written(name, { padding = 0.25 }))
    assert.truthy(text:find(want, 1, true), name .. text)
  end
end)

describe("a launch of what a framework has no key for", function()
  -- of 1,800 arguments of megatron-core 0.19.2 two speak of a rank like that, --q-lora-rank and --kv-lora-rank of MLA (training/arguments.py:
  -- 3381-3384): adapters are no part of Megatron-LM
  it("is not written where adapters train", function()
    for _, name in ipairs { "megatron", "bridge", "flagscale", "primus" } do
      assert(written(name, {}))
      local text, problem = written(name, { lora_rank = 16 })
      assert.is_nil(text)
      assert.truthy(problem:find("has no key for training.lora_rank 16: adapters (no other format can)", 1, true), problem)
    end
    assert.truthy(select(2, written("torchtitan", { lora_rank = 16 })):find("(no other format can)", 1, true))
  end)

  -- megatron-core 0.19.2, training/arguments.py:1803-1807, asserts the flag; core/optimizer/optimizer_config.py:431-437 Adam, and that it is sharded
  it("keeps a part of Megatron's optimizer in host memory beside the precision-aware optimizer, or is not written", function()
    local host = { host_memory = "4TiB" }
    local text = assert(written("megatron", { optimizer_offload = 0.5 }, { cluster = host }))
    for _, flag in ipairs { "--use-precision-aware-optimizer", "--optimizer-cpu-offload", "--optimizer-offload-fraction 0.5" } do
      assert.truthy(text:find("  " .. flag .. " \\\n", 1, true), flag)
    end
    local _, problem = written("megatron", { optimizer_offload = 0.5, optimizer = "sgd" }, { cluster = host })
    assert.truthy(problem:find("training.optimizer_offload 0.5 of sgd", 1, true), problem)
    _, problem = written("megatron", { optimizer_offload = 0.5, sharding = "none" }, { cluster = host })
    assert.truthy(problem:find("training.optimizer_offload 0.5 of an optimizer that is not sharded", 1, true), problem)
  end)

  -- megatron-core 0.19.2, core/transformer/transformer_config.py:181,184: hidden_dropout and attention_dropout are 0.1 when nobody says;
  -- Primus @fd1eeabb, configs/models/megatron/language_model.yaml, has them so too, and Bridge's bare provider is that class
  it("says dropout 0 where the plan has none, for Megatron's default is 0.1", function()
    for name, keys in pairs { megatron = { "--hidden-dropout 0", "--attention-dropout 0" }, bridge = { "model.hidden_dropout=0", "model.attention_dropout=0" },
                              flagscale = { "hidden_dropout: 0", "attention_dropout: 0" }, primus = { "hidden_dropout: 0", "attention_dropout: 0" } } do
      local without, with = assert(written(name, { dropout = false })), assert(written(name, { dropout = true }))
      for _, key in ipairs(keys) do
        assert.truthy(without:find(key, 1, true), key)
        assert.is_nil(with:find("dropout 0", 1, true) or with:find("dropout[:=] ?0"), key)
      end
    end
  end)

  -- megatron-core 0.19.2: core/distributed/param_and_grad_buffer.py reduces to parts wherever the optimizer is sharded, and
  -- distributed_data_parallel_config.py has no field that says otherwise
  it("is not written with other kernels, graphs or reductions than its framework is told of", function()
    for _, name in ipairs { "megatron", "bridge", "flagscale", "primus" } do
      for training, what in pairs { [{ unfused = { "norm" } }] = "training.unfused norm", [{ cuda_graphs = true }] = "training.cuda_graphs true",
                                    [{ reduction = "all" }] = "training.reduction all", [{ tensor_overlap = 0.5 }] = "training.tensor_overlap 0.5",
                                    [{ reduced_gradients = "bf16" }] = "training.reduced_gradients bf16" } do
        local text, problem = written(name, training)
        assert.is_nil(text)
        assert.truthy(problem:find("has no key for " .. what, 1, true), problem)
        assert.truthy(problem:find(" can)", 1, true), problem)
      end
      assert(written(name, { unfused = "none", cuda_graphs = false, reduction = "scatter", reduced_gradients = "fp32", tensor_overlap = 0 }))
    end
    assert(written("bridge", { unfused = { "activation" } }))   -- model.bias_activation_fusion
    local _, problem = written("torchtitan", { dropout = true })
    assert.truthy(problem:find("training.dropout true", 1, true), problem)
  end)
end)
