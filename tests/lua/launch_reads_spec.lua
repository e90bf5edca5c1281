-- SPDX-License-Identifier: Apache-2.0
-- launch_reads_spec.lua: the spec that a launch is (analysis/lint/reads.lua): what a flag makes of it, and that what no spec says is refused by
-- name, or stands among the plan's assumptions. Files and lines are those of PyPI megatron-core 0.19.2, unless others are named.

require "planning"  -- first: it loads the module
local files = require "policy_files"
local import = require "pipeplan.analysis.lint.import"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"
local reads = require "pipeplan.analysis.lint.reads"

teardown(files.remove)

-- 78 layers, embedding and loss accounted for, on 4 ranks with two chunks each: chunks of 10, the first and last of 9.
local base = "torchrun --nproc_per_node 8 --nnodes 16 pretrain_gpt.py --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 "
             .. "--num-virtual-stages-per-pipeline-rank 2 --num-layers 78 --hidden-size 8192 --num-attention-heads 64 "
             .. "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split --swiglu --seq-length 4096 "
             .. "--max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 256 --train-samples 1000000 --vocab-size 50257 "
             .. "--bf16 --use-distributed-optimizer --sequence-parallel --normalization RMSNorm --position-embedding-type rope "

local function write(flags) return files.write("launch.sh", base .. flags .. "\n") end

local function spec_of(flags)
  return reads.spec(lint.of(launch.read(write(flags), {})[1]))
end

-- What `plan` says of the launch: nil where it plans it, and what it assumes for it.
local function refusal(flags, given, layout)
  local options = { accelerator = "H100-SXM" }
  for name, value in pairs(given or {}) do options[name] = value end
  local good, problem = pcall(import.split, { write(flags) }, options, layout)
  return not good and problem.message or nil
end

describe("recompute of a launch", function()
  local full = "--recompute-granularity full "

  -- core/recompute.py:157-166: uniform goes over a chunk in steps of so many layers; :167-182: block takes the first so many of a chunk
  it("is full where every layer of every chunk is computed again by itself, and none where no layer is", function()
    for flags, want in pairs { ["--recompute-method uniform --recompute-num-layers 1"] = "full",
                               ["--recompute-method block --recompute-num-layers 10"] = "full",
                               ["--recompute-method block --recompute-num-layers 78"] = "full",
                               ["--recompute-method block --recompute-num-layers 0"] = "none" } do
      assert.same({ flags, want }, { flags, spec_of(full .. flags).training.recompute })
      assert.is_nil(refusal(full .. flags))
    end
  end)

  it("is refused, with the flag, its value and what a spec says, where some layers of a chunk are not, or several are at once", function()
    for flags, words in pairs {
      ["--recompute-method block --recompute-num-layers 1"] = "--recompute-num-layers 1 recomputes the first 1 layer of the 10 of a chunk",
      ["--recompute-method block --recompute-num-layers 9"] = "--recompute-num-layers 9 recomputes the first 9 layers of the 10 of a chunk",
      ["--recompute-method uniform --recompute-num-layers 2"] = "--recompute-num-layers 2 recomputes 2 layers at once",
      -- transformer/multi_token_prediction.py:1424-1428: block skips MTP layers
      ["--recompute-method block --recompute-num-layers 10 --mtp-num-layers 1"] = "and none of MTP",
      ["--recompute-method block --recompute-num-layers $LAYERS"] = "how many is not known",
    } do
      local object, _, unsaid = spec_of(full .. flags)
      assert.is_nil(object.training.recompute, flags)
      assert.matches(words, unsaid[1].message, 1, true)
      local told = refusal(full .. flags)
      assert.matches(words, told, 1, true)
      assert.matches("none, selective, full, or modules", told, 1, true)
      assert.is_nil(refusal(full .. flags, { recompute = "full" }))
      assert.is_nil(refusal(full .. flags, nil, "free"))
    end
  end)

  -- transformer/transformer_config.py, recompute_modules: shared_experts is one, and no module of a spec's
  -- transformer/transformer_config.py:1835-1846: selective, with moe beside the modules, which are core_attn when nobody says (:1763)
  it("has experts under the old name of that too", function()
    for flags, want in pairs { ["--moe-layer-recompute"] = { "core_attention", "moe" },
                               ["--moe-layer-recompute --recompute-granularity selective --recompute-modules layernorm"] = { "norm", "moe" } } do
      assert.same(want, spec_of(flags).training.recompute, flags)
    end
  end)

  it("is chosen where its modules are not known", function()
    local object, _, unsaid = spec_of '--recompute-granularity selective --recompute-modules moe "$MORE"'
    assert.same({ "nil", "training.recompute", "chosen" }, { tostring(object.training.recompute), unsaid[1].field, unsaid[1].value })
    assert.same({ "moe" }, spec_of('--recompute-granularity selective --recompute-modules moe "$@"').training.recompute)
  end)

  it("is refused where a module has no word in a spec", function()
    assert.same({ "core_attention", "norm" }, spec_of("--recompute-granularity selective --recompute-modules core_attn layernorm").training.recompute)
    assert.matches("--recompute-modules shared_experts", refusal "--recompute-granularity selective --recompute-modules core_attn shared_experts", 1, true)
  end)
end)

describe("training of a launch", function()
  local function same(cases)
    for flags, want in pairs(cases) do
      local object, _, unsaid = spec_of(flags)
      local found = {}
      for name in pairs(want) do found[name] = object.training[name] end
      for name, value in pairs(want) do want[name] = value ~= "nothing" and value or nil end
      assert.same({ flags, want, 0 }, { flags, found, #unsaid })
    end
  end

  -- training/arguments.py:2776: its default is adam; dist_muon is muon
  it("has the optimizer that it says, and is refused where a spec has none such", function()
    same { [""] = { optimizer = "adam" }, ["--optimizer sgd"] = { optimizer = "sgd" }, ["--optimizer dist_muon"] = { optimizer = "muon" } }
    assert.matches("--optimizer is lion: a spec's optimizer is adam, adamw, muon, sgd", refusal "--optimizer lion", 1, true)
    assert.is_nil(refusal("--optimizer lion", { optimizer = "sgd" }))
  end)

  -- training/arguments.py:1186-1193 and core/distributed/param_and_grad_buffer.py:917: in bf16 a gradient has 4 bytes, unless it is reduced
  -- in bf16, or kept so by the precision-aware optimizer
  it("keeps gradients in the bytes that Megatron does", function()
    local aware = "--use-precision-aware-optimizer --main-grads-dtype bf16"
    same { [""] = { gradients = "fp32" }, ["--grad-reduce-in-bf16"] = { gradients = "bf16" }, [aware] = { gradients = "bf16" } }
    -- with fp16 they are as the parameters, unless they are added up in fp32 (core/distributed/param_and_grad_buffer.py:917)
    local half = base
    base = base:gsub("%-%-bf16", "--fp16")
    same { [""] = { gradients = "bf16" }, ["--accumulate-allreduce-grads-in-fp32"] = { gradients = "fp32" } }
    base = half
    local object, _, unsaid = spec_of "--grad-reduce-in-bf16 --optimizer sgd"   -- megatron.precision_aware: no plan says that
    assert.same({ "training.gradients", "fp32" }, { unsaid[1].field, unsaid[1].value })
    assert.is_nil(object.training.gradients)
  end)

  -- core/transformer/dot_product_attention.py:194-239 keeps scores: of local layers (core/models/backends.py:129), or where asked for
  -- (training/models/gpt.py:296); core/models/common/language_module/language_module.py:135: the unfused one alone
  it("has an attention that is not fused where it says so", function()
    same { [""] = { unfused = "nothing" }, ["--attention-backend unfused"] = { unfused = { "attention" } },
           ["--transformer-impl local"] = { unfused = { "attention" } }, ["--attention-backend fused"] = { unfused = "nothing" } }
  end)

  -- core/optimizer/optimizer_config.py:344-347: without a fraction it is 0
  it("has the share of the optimizer that lies in host memory", function()
    local cpu = "--use-precision-aware-optimizer --optimizer-cpu-offload"
    same { [cpu .. " --optimizer-offload-fraction 0.5"] = { optimizer_offload = 0.5 }, [cpu] = { optimizer_offload = 0 },
           [""] = { optimizer_offload = "nothing" } }
  end)

  -- core/models/common/language_module/language_module.py:167-200; core/transformer/transformer_config.py:1032
  it("has its loss, its CUDA graphs and its buckets", function()
    same { ["--cross-entropy-loss-fusion"] = { loss = "vocab_parallel_compiled" }, [""] = { loss = "nothing", cuda_graphs = "nothing" },
           ["--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"] = { loss = "in_place" },
           ["--cuda-graph-impl transformer_engine"] = { cuda_graphs = true }, ["--ddp-bucket-size 1000000"] = { bucket = 1000000 } }
  end)

  it("is refused, or has an assumption that names the flag, where no spec says what the flag does", function()
    for flags, what in pairs { ["--fine-grained-activation-offloading"] = "activations of some modules in host memory",
                               ["--fp4-format e2m1"] = "products in fp4",
                               ["--fp32-residual-connection"] = "a residual stream in fp32" } do
      local told = refusal(flags)
      assert.matches(flags, told, 1, true)
      assert.matches(what, told, 1, true)
    end
    for flags, field in pairs { ["--overlap-grad-reduce"] = "training.data_overlap", ["--tp-comm-overlap"] = "training.tensor_overlap" } do
      local assumptions = select(3, import.split({ write(flags) }, { accelerator = "H100-SXM" })).assumptions
      assert.same({ field, 0 }, { assumptions[1].field, assumptions[1].value })
      assert.matches(flags, assumptions[1].why, 1, true)
      assert.same({ assumptions = {}, warnings = {} },
                  select(3, import.split({ write(flags) }, { accelerator = "H100-SXM", [field:match "[^.]*$"] = 0.5 })))
    end
  end)

  local function of(name, text)
    return reads.spec(lint.of(launch.read(files.write(name, text), {})[1], { gpus = 8 }))
  end

  -- deepspeed/runtime/config.py:52-66 and runtime/engine.py:1803 of 0.19.8; runtime/zero/offload_config.py: ratio is of stage 3
  it("is read of DeepSpeed's configuration", function()
    local function config(more)
      return '{ "train_batch_size": 64, "train_micro_batch_size_per_gpu": 1, "bf16": { "enabled": true }, ' .. more .. " }"
    end
    local object = of("a.json", config [["optimizer": { "type": "SGD", "params": { "lr": 0.1 } }, "data_types": { "grad_accum_dtype": "fp32" },
      "zero_optimization": { "stage": 2, "offload_optimizer": { "device": "cpu", "ratio": 0.3 } }]])
    assert.same({ "sgd", "fp32", 1 }, { object.training.optimizer, object.training.gradients, object.training.optimizer_offload })
    object = of("a.json", config [["zero_optimization": { "stage": 3, "offload_optimizer": { "device": "cpu", "ratio": 0.3 } }]])
    assert.same({ "bf16", 0.3 }, { object.training.gradients, object.training.optimizer_offload })
    local _, _, unsaid = of("a.json", config [["optimizer": { "type": "Lamb" },
      "zero_optimization": { "stage": 3, "offload_param": { "device": "cpu" } }]])
    local told = unsaid[1].message .. unsaid[2].message
    for _, part in ipairs { "Lamb", "offload_param.device cpu" } do assert.matches(part, told, 1, true) end
  end)

  -- torchtitan 0.3.0: config/configs.py: fsdp_reshard_after_forward, CompileConfig: enable is off by default; components/loss.py
  it("is read of torchtitan's arguments", function()
    local function run(flags)
      return of("t.sh", "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_70b "
                        .. "--parallelism.pipeline_parallel_degree 2 --parallelism.tensor_parallel_degree 1 " .. flags .. "\n")
    end
    local plain = run("").training
    assert.same({ "torch", { "activation", "rope" } }, { plain.loss, plain.unfused })
    local compiled = run("--compile.enable --parallelism.fsdp_reshard_after_forward always --optimizer.implementation foreach").training
    assert.same({ "torch_compiled", { "optimizer" }, true, 3 }, { compiled.loss, compiled.unfused, compiled.reshard, compiled.zero })
    assert.matches("enable_cpu_offload", select(3, run "--training.enable_cpu_offload")[1].message, 1, true)
  end)
end)

describe("the model of a launch", function()
  -- core/transformer/transformer_config.py: experimental_attention_variant, moe_latent_size, mtp_use_repeated_layer, window_attn_skip_freq;
  -- training/arguments.py:3462
  it("is refused by the flag's name where a spec's model has no such part", function()
    for _, flags in ipairs { "--experimental-attention-variant gated_delta_net", "--experimental-attention-variant dsa", "--moe-latent-size 1024",
                             "--heterogeneous-layers-config-path layers.json", "--hybrid-layer-pattern M-M*",
                             "--window-attn-skip-freq 2", "--mtp-use-repeated-layer" } do
      local told = refusal(flags, nil, "free")
      assert.matches(flags, told, 1, true)
      assert.matches("--model says the model", told, 1, true)
      assert.is_nil(refusal(flags, { model = "config.json" }, "free"))
    end
  end)

  local function shape(flags) return spec_of(flags).model end

  -- core/tokenizers/utils/build_tokenizer.py:124-130: ceil(50257 / 256) 256 = 50432 with 64 at TP 4, ceil(50257 / 512) 512 = 50688 with 128;
  -- training/argument_utils.py:473: a padded one is taken as it is
  it("has the vocabulary that Megatron builds", function()
    assert.same({ 50688, 50432, 50304 }, { shape("").vocab, shape("--make-vocab-size-divisible-by 64").vocab,
                                           shape("--padded-vocab-size 50304").vocab })
  end)

  -- core/transformer/moe/shared_experts.py:134: a gate of one row; core/transformer/attention.py:1399: query_projection_size more columns, 64
  -- heads of 128 here; softmax_type learnable: an offset a head; window_size (L, R): i - L to i + R
  it("has the gates, offsets and windows that flags say", function()
    local moe = "--num-experts 8 --moe-ffn-hidden-size 1024 --moe-shared-expert-intermediate-size 2048 "
    assert.is_nil(shape(moe).shared_gate)
    assert.is_true(shape(moe .. "--moe-shared-expert-gate").shared_gate)
    assert.same({ nil, nil, nil }, { shape("").output_gate, shape("").attention_sinks, shape("").window })
    assert.equal(64 * 128, shape("--attention-output-gate").output_gate)
    assert.equal(64, shape("--softmax-type learnable").attention_sinks)
    assert.equal(128, shape("--window-size 127,0").window)
    assert.is_nil(shape("--window-size -1,0").window)
    local _, lacks = spec_of "--window-size 127,64"
    assert.equal("window of attention", lacks)
  end)

  it("can be planned with them", function()
    local spec = require "pipeplan.input.spec"
    local object = spec_of "--attention-output-gate --softmax-type learnable --window-size 127,0"
    object.cluster.accelerator = "H100-SXM"
    local own = spec.from_table(object, ".").model
    assert.same({ 64 * 128, 64, 128 }, { own.shape.output_gate, own.shape.attention_sinks, own.shape.window })
  end)

  it("lacks the places of experts where a list has not an entry for each layer, and says so", function()
    local _, lacks = spec_of "--num-experts 8 --moe-layer-freq '([0]*3+[1]*74)'"
    assert.equal("places of experts: --moe-layer-freq has 77 entries for 78 layers", lacks)
    local told = refusal("--num-experts 8 --moe-layer-freq '([0]*3+[1]*74)'", nil, "free")
    assert.matches("--moe-layer-freq has 77 entries for 78 layers", told, 1, true)
  end)
end)
