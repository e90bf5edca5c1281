-- SPDX-License-Identifier: Apache-2.0
-- stdlib/input/spec.lua: from spec files and options to the request, and one clear line for everything that is wrong.

require "pipeplan"
local failure = require "pipeplan.base.failure"
local spec = require "pipeplan.input.spec"
local vocabulary = require "pipeplan.vocabulary"

-- 64 H100 and a dense model of 32 layers.
local function dense()
  return {
    cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { name = "7B", layers = 32, hidden = 4096, heads = 32, kv_heads = 32, ffn = 11008, vocab = 32000 },
    training = { tokens = "2T", sequence_length = 4096, global_batch_size = 1024 },
    parallelism = {},
  }
end

-- 256 H100 and a mixture of 64 experts.
local function moe()
  local object = dense()
  object.cluster.gpus = 256
  object.model = { name = "moe", layers = 32, hidden = 2048, heads = 16, vocab = 32000, experts = 64, experts_per_token = 4, expert_ffn = 1024 }
  return object
end

-- Sets a value by its path; nil removes it.
local function set(object, path, value)
  local parts = {}
  for part in path:gmatch("[^.]+") do parts[#parts + 1] = part end
  for i = 1, #parts - 1 do
    object[parts[i]] = object[parts[i]] or {}
    object = object[parts[i]]
  end
  object[parts[#parts]] = value
end

local function with(object, changes)
  for path, value in pairs(changes) do
    if value == "(absent)" then value = nil end
    set(object, path, value)
  end
  return object
end

local function message_of(f, ...)
  local good, problem = pcall(f, ...)
  assert.is_false(good, "was accepted")
  assert.is_true(failure.is(problem), tostring(problem))
  assert.equal(failure.status.usage, problem.status)
  assert.is_nil(problem.message:find("\n", 1, true))
  return problem.message
end

local function refuses(object, changes, message)
  assert.equal(message, message_of(spec.from_table, with(object, changes)))
end

local function accepts(object, changes)
  return spec.from_table(with(object, changes))
end

-- Writes files into a new directory, runs f(directory), removes them.
local function with_files(files, f)
  local directory = os.tmpname()
  os.remove(directory)
  assert(os.execute("mkdir -p " .. directory .. "/sub"))
  for name, text in pairs(files) do
    local handle = assert(io.open(directory .. "/" .. name, "wb"))
    handle:write(text)
    handle:close()
  end
  local good, problem = pcall(f, directory)
  os.execute("rm -r " .. directory)
  if not good then error(problem, 0) end
end

describe("a request", function()
  it("has every quantity in SI units", function()
    local request = accepts(dense(), {
      ["cluster.memory_per_gpu"] = "80GiB", ["cluster.network.scale_up_per_gpu"] = "160GB/s", ["training.goodput"] = "95%",
      ["training.sequence_length"] = "8Ki",
    })
    assert.equal(64, request.cluster.gpus)
    assert.equal(85899345920, request.cluster.device_bytes)
    assert.equal(50000000000, request.cluster.network.per_gpu)
    assert.equal(160000000000, request.cluster.network.scale_up_per_gpu)
    assert.equal(2000000000000, request.training.tokens)
    assert.equal(8192, request.training.sequence_length)
    assert.equal(0.95, request.training.goodput)
  end)

  it("says of each value whether it was given", function()
    local request = accepts(dense(), {})
    assert.is_true(request.given["training.tokens"])
    assert.is_nil(request.given["training.micro_batch_size"])
  end)

  it("lists what was assumed", function()
    local request = accepts(dense(), { ["training.sequence_length"] = "(absent)", ["training.global_batch_size"] = "(absent)" })
    local assumed = {}
    for _, assumption in ipairs(request.assumptions) do assumed[assumption.field] = assumption.value end
    assert.equal(4096, assumed["training.sequence_length"])
    assert.equal("bf16", assumed["training.precision"])
    -- what the plan will choose is not assumed
    assert.same({ micro_batch_size = true, recompute = true, sharding = true, gpus_used = true }, request.free)
    assert.is_nil(assumed["training.micro_batch_size"] or assumed["training.recompute"])
    assert.equal(4096, request.training.sequence_length)
    -- the batch follows from a parameter of the policy
    assert.is_nil(request.training.global_batch_size)
    assert.is_nil(assumed["training.global_batch_size"])
  end)

  it("counts the model", function()
    -- Llama-2-7B: 6,738,415,616 parameters
    local request = accepts(dense(), {})
    assert.equal(6738415616, request.model.total_parameters)
    assert.equal("dense", request.model.architecture)
    assert.equal(32, request.model.layers)
    assert.equal("moe", accepts(moe(), {}).model.architecture)
  end)

  it("takes a batch ramp: the smallest batch, the full batch, and when each begins", function()
    local training = accepts(dense(), { ["training.global_batch_size"] = { { 0, 256 }, { "100B", 512 }, { "200B", 1024 } } }).training
    assert.equal(256, training.smallest_batch_size)
    assert.equal(1024, training.global_batch_size)
    assert.same({ { 0, 256 }, { 100000000000, 512 }, { 200000000000, 1024 } }, training.batch_ramp)
  end)

  it("knows recompute as none, selective, full and by module", function()
    local function recompute(value)
      return accepts(dense(), { ["training.recompute"] = value }).training.recompute
    end
    assert.same({}, recompute("none"))
    assert.same({ core_attention = true }, recompute("selective"))
    assert.same({ full = true }, recompute("full"))
    assert.same({ norm = true, activation = true }, recompute({ "norm", "swiglu" }))
  end)

  it("tells no all-to-all kernel from none said", function()
    assert.is_false(accepts(moe(), { ["cluster.alltoall_kernel"] = false }).cluster.alltoall_kernel)
    assert.is_nil(accepts(moe(), {}).cluster.alltoall_kernel)
    assert.equal("deepep", accepts(moe(), { ["cluster.alltoall_kernel"] = "deepep" }).cluster.alltoall_kernel)
  end)

  it("counts a kernel that does not run beside compute, or does not train, as none, and says so", function()
    local request = accepts(moe(), { ["cluster.alltoall_kernel"] = "nccl_alltoall" })
    assert.is_false(request.cluster.alltoall_kernel)
    assert.equal("NCCL or RCCL all-to-all does not run beside compute: planned as if there were no kernel", request.warnings[1].message)
    request = accepts(moe(), { ["cluster.alltoall_kernel"] = "pplx" })
    assert.is_false(request.cluster.alltoall_kernel)
    assert.matches("is for serving", request.warnings[1].message)
  end)

  it("knows the peak of each precision", function()
    -- A100: 312 TFLOP/s bf16, 156 TF32, no fp8 (NVIDIA A100 data sheet); V100: no bf16
    local device = accepts(dense(), { ["cluster.accelerator"] = "A100-SXM-80GB", ["training.precision"] = "fp32" }).device
    assert.equal(156e12, device.flops)
    assert.equal(312e12, device.flops_bf16)
    device = accepts(dense(), { ["training.precision"] = "fp8" }).device
    assert.equal(1979e12, device.flops)
    assert.equal(989e12, device.flops_bf16)
    assert.equal("fp16", accepts(dense(), { ["cluster.accelerator"] = "V100-SXM-32GB" }).training.precision)
    refuses(dense(), { ["cluster.accelerator"] = "A100-SXM-80GB", ["training.precision"] = "fp8" },
            'spec: training.precision is "fp8": A100-SXM-80GB has no fp8 matrix products; nearest: bf16')
  end)

  it("warns when the memory contradicts the accelerator's name", function()
    -- a public B200 description says 80 GB, its measurements 148 GiB (MooreThreads/SimuMax)
    local request = accepts(dense(), { ["cluster.accelerator"] = "B200-SXM", ["cluster.memory_per_gpu"] = "80GB" })
    assert.equal("accelerator_memory", request.warnings[1].id)
    assert.matches("is it the right GPU", request.warnings[1].message)
    assert.same({}, accepts(dense(), {}).warnings)
  end)

  it("with weights kept in fp8 wants fp8 products", function()
    refuses(dense(), { ["training.precision"] = "bf16", ["training.weights"] = "fp8" },
            "spec: training.weights is fp8: products are bf16, and so are the weights; leave it out, or give precision fp8")
    assert.equal("fp8_single", accepts(dense(), { ["training.precision"] = "fp8", ["training.weights"] = "fp8_single" }).training.weights)
  end)

  it("with parameters gathered in fp8 wants fp8 products", function()
    refuses(dense(), { ["training.precision"] = "bf16", ["training.fp8_gathers"] = true },
            "spec: training.fp8_gathers is true: products are bf16, and so is what is gathered; leave it out, or give precision fp8")
    assert.is_true(accepts(dense(), { ["training.precision"] = "fp8", ["training.fp8_gathers"] = true }).training.fp8_gathers)
  end)

  it("warns of what a recipe says of parts that the model lacks", function()
    local function warned(object, changes)
      local list = {}
      for _, warning in ipairs(accepts(object, changes).warnings) do list[#list + 1] = warning.id .. ": " .. warning.message end
      return list
    end
    local lacks = "the model is dense, it has no experts: nothing reads it"
    assert.same({ "unused_field: training.expert_imbalance: " .. lacks }, warned(dense(), { ["training.expert_imbalance"] = 1.5 }))
    assert.same({ "unused_field: training.unfused experts: " .. lacks }, warned(dense(), { ["training.unfused"] = { "experts", "norm" } }))
    assert.same({ "unused_field: training.recompute moe: " .. lacks }, warned(dense(), { ["training.recompute"] = { "moe" } }))
    assert.same({ "unused_field: training.recompute mla_up_projection: the model has no latent attention: nothing reads it" },
                warned(dense(), { ["training.recompute"] = { "mla_up_projection" } }))
    assert.same({}, warned(dense(), { ["training.expert_imbalance"] = 1, ["training.unfused"] = { "norm" } }))
    assert.same({}, warned(moe(), { ["training.expert_imbalance"] = 1.5, ["training.unfused"] = { "experts" }, ["training.recompute"] = { "moe" } }))
  end)

  it("warns of GPUs that fill no whole number of nodes", function()
    local function warned(changes)
      local warning = accepts(dense(), changes).warnings[1]
      return warning and warning.id .. ": " .. warning.message
    end
    assert.equal("partial_node: 64 GPUs are 9 nodes of 7 and 1 GPU of another: is that meant?", warned { ["cluster.gpus_per_node"] = 7 })
    assert.equal("partial_node: 60 GPUs are 7 nodes of 8 and 4 GPUs of another: is that meant?",
                 warned { ["cluster.gpus"] = 60, ["training.global_batch_size"] = 960 })
    assert.is_nil(warned { ["cluster.gpus"] = 4 })
    assert.is_nil(warned {})
  end)

  it("names the field of a file that cannot be read", function()
    refuses(dense(), { profile = "/no/such.json" },
            'spec: profile is "/no/such.json": /no/such.json cannot be read: No such file or directory')
  end)

  it("takes a GPU that no catalogue knows, by memory, peak and link", function()
    local request = accepts(dense(), {
      ["cluster.accelerator"] = "(absent)", ["cluster.memory_per_gpu"] = "96GiB", ["cluster.flops"] = "500T",
      ["cluster.network.scale_up_per_gpu"] = "100GB/s",
    })
    assert.equal(500e12, request.device.flops)
    assert.equal(96 * 2 ^ 30, request.cluster.device_bytes)
    assert.equal("other", request.cluster.accelerator_family)
  end)

  it("assumes the links of a GPU given by memory and peak alone, and says so", function()
    local request = accepts(dense(), { ["cluster.accelerator"] = "(absent)", ["cluster.memory_per_gpu"] = "80GiB", ["cluster.flops"] = "989T" })
    -- an H100 has 450 GB/s and 3.35 TB/s at this peak
    assert.near(450e9, request.cluster.network.scale_up_per_gpu, 1e9)
    assert.near(3.35e12, request.device.memory_bandwidth, 0.1e12)
    local fields = {}
    for _, assumption in ipairs(request.assumptions) do fields[assumption.field] = true end
    assert.is_true(fields["cluster.network.scale_up_per_gpu"])
    assert.is_true(fields["cluster.memory_bandwidth"])
  end)

  it("does not need a network inside one scale-up domain", function()
    local request = accepts(dense(), { ["cluster.gpus"] = 8, ["cluster.network"] = {}, ["training.global_batch_size"] = 64 })
    assert.equal("none", request.cluster.network.fabric)
    assert.is_nil(request.cluster.network.per_gpu)
  end)
end)

describe("several sources", function()
  local base = [[{"cluster": {"gpus": 64, "accelerator": "H100-SXM", "network": {"fabric": "roce", "per_gpu": "400Gbps"}},
    "model": {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 32, "ffn": 11008, "vocab": 32000},
    "training": {"tokens": "1T", "global_batch_size": 512}}]]

  it("are laid over each other field by field, options last", function()
    with_files({ ["a.json"] = base, ["b.json"] = '{"cluster": {"gpus": 128, "network": {"fabric": "efa"}}, "training": {"tokens": "2T"}}' },
               function(directory)
      local request = spec.read { files = { directory .. "/a.json", directory .. "/b.json" }, options = { tokens = "3T", tensor = "8" } }
      assert.equal(128, request.cluster.gpus)
      assert.equal("efa", request.cluster.network.fabric)
      assert.equal(50000000000, request.cluster.network.per_gpu)
      assert.equal(3000000000000, request.training.tokens)
      assert.equal(8, request.parallelism.tensor)
      assert.equal(512, request.training.global_batch_size)
    end)
  end)

  it("need no file at all", function()
    with_files({ ["config.json"] = [[{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
      "num_attention_heads": 32, "num_key_value_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000, "max_position_embeddings": 2048,
      "tie_word_embeddings": false}]] }, function(directory)
      local request = spec.read {
        options = { gpus = "64", accelerator = "H100-SXM", model = "config.json", tokens = "2T", tensor = "8", global_batch_size = "0:256,10B:512",
                    layers_per_stage = "16,16", recompute = "norm,swiglu", alltoall_kernel = "false" },
        base = directory .. "/",
      }
      assert.equal(6738415616, request.model.total_parameters)
      assert.equal(2048, request.training.sequence_length)  -- the model's maximum
      assert.same({ { 0, 256 }, { 10000000000, 512 } }, request.training.batch_ramp)
      assert.same({ 16, 16 }, request.parallelism.layers_per_stage)
      assert.is_false(request.cluster.alltoall_kernel)
    end)
  end)

  it("find a model relative to the file that names it", function()
    with_files({
      ["config.json"] = [[{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100}]],
      ["sub/spec.json"] = base:gsub('"model": %b{}', '"model": "../config.json"'),
    }, function(directory)
      local request = spec.read { files = { directory .. "/sub/spec.json" } }
      assert.equal(2, request.model.layers)
      assert.equal(directory .. "/sub/../config.json", request.model.config_file)
    end)
  end)
end)

describe("bad input", function()
  it("without GPUs is one line that says what is missing", function()
    refuses(dense(), { ["cluster.gpus"] = "(absent)" }, "spec: cluster.gpus is missing: expected GPUs of the training run (or option --gpus)")
  end)

  it("lacks what else is required", function()
    refuses(dense(), { ["training.tokens"] = "(absent)" }, "spec: training.tokens is missing: expected training volume (or option --tokens)")
    refuses(dense(), { model = "(absent)" },
            "spec: model is missing: expected path of a Hugging Face config.json, or an inline shape (or option --model)")
    assert.matches("^spec: cluster.accelerator is missing: expected a name of the catalogue such as H100%-SXM",
                   message_of(spec.from_table, with(dense(), { ["cluster.accelerator"] = "(absent)" })))
  end)

  it("with zero, negative or fractional counts names the nearest legal one", function()
    local expected = 'expected a whole number of GPUs, at least 1 and at most 10000000, or "minimum"'
    refuses(dense(), { ["cluster.gpus"] = 0 }, "spec: cluster.gpus is 0: " .. expected .. "; nearest: 1")
    refuses(dense(), { ["cluster.gpus"] = -8 }, "spec: cluster.gpus is -8: " .. expected .. "; nearest: 1")
    refuses(dense(), { ["cluster.gpus"] = 12.5 }, "spec: cluster.gpus is 12.5: " .. expected .. "; nearest: 13")
    refuses(dense(), { ["cluster.gpus"] = 1e12 }, "spec: cluster.gpus is 1000000000000: " .. expected .. "; nearest: 10000000")
    refuses(dense(), { ["cluster.gpus"] = true }, "spec: cluster.gpus is true: " .. expected)
    refuses(dense(), { ["training.micro_batch_size"] = 0 },
            "spec: training.micro_batch_size is 0: expected a whole number of sequences, at least 1; nearest: 1")
    refuses(dense(), { ["parallelism.pipeline"] = "4.5" },
            'spec: parallelism.pipeline is "4.5": expected a whole number of ranks, at least 1 and at most 10000000; nearest: 5')
  end)

  it("with tokens in words shows how tokens are written", function()
    refuses(dense(), { ["training.tokens"] = "ten trillion" },
            'spec: training.tokens is "ten trillion": expected a number of tokens such as "14.8T"')
    refuses(dense(), { ["training.tokens"] = 0 }, 'spec: training.tokens is 0: expected a number of tokens such as "14.8T", at least 1; nearest: 1')
  end)

  it("with a quantity of the wrong kind shows the right one", function()
    refuses(dense(), { ["cluster.network.per_gpu"] = "80GiB" },
            'spec: cluster.network.per_gpu is "80GiB": expected a link speed such as "400Gbps" or "160GB/s"')
    refuses(dense(), { ["cluster.network.per_gpu"] = 400 },
            'spec: cluster.network.per_gpu is 400: expected a link speed such as "400Gbps" or "160GB/s", at least 8 Mb/s; nearest: 8 Mb/s')
    refuses(dense(), { ["cluster.memory_per_gpu"] = 80 },
            'spec: cluster.memory_per_gpu is 80: expected bytes such as "80GiB", at least 1 GiB; nearest: 1 GiB')
  end)

  it("with an unknown key names the nearest, or where the key belongs", function()
    refuses(dense(), { ["cluster.gpu"] = 8 }, "spec: cluster.gpu is no field of a spec, did you mean 'gpus'?")
    refuses(dense(), { ["training.fabric"] = "efa" },
            "spec: training.fabric is no field of a spec; fabric belongs under cluster.network.fabric")
    refuses(dense(), { ["gpus"] = 8 }, "spec: gpus is no field of a spec; gpus belongs under cluster.gpus")
    refuses(dense(), { ["xyzzyxyzzy"] = 8 }, "spec: xyzzyxyzzy is no field of a spec")
    assert.equal("command line: no option --tokns, did you mean 'tokens'?", message_of(spec.read, { options = { tokns = "1T" } }))
  end)

  it("with a name that is not known names the nearest", function()
    refuses(dense(), { ["parallelism.schedule"] = "dualpip" },
            'spec: parallelism.schedule is "dualpip": expected one of ' .. table.concat(vocabulary.schedules, ", ") .. "; nearest: dualpipe")
    assert.matches('^spec: cluster.accelerator is "H100%-SMX": expected a name of the catalogue .*; nearest: H100%-SXM$',
                   message_of(spec.from_table, with(dense(), { ["cluster.accelerator"] = "H100-SMX" })))
    assert.matches('^spec: cluster.alltoall_kernel is "depep": expected .*; nearest: deepep$',
                   message_of(spec.from_table, with(moe(), { ["cluster.alltoall_kernel"] = "depep" })))
    assert.matches('^spec: training.recompute is %["norn"%]: expected none, selective, full, or a list of .*; nearest: norm$',
                   message_of(spec.from_table, with(dense(), { ["training.recompute"] = { "norn" } })))
  end)

  it("with an object where a value belongs, or the other way round, says which", function()
    refuses(dense(), { cluster = 8 },
            "spec: cluster is 8: expected an object with accelerator, alltoall_kernel, calibration, flops, gpus, gpus_per_node, host_memory, inventory, " ..
            "kernels, memory_bandwidth, memory_per_gpu, network, overhead, price_per_gpu_hour, storage")
    refuses(dense(), { ["training.tokens"] = { 1 } }, 'spec: training.tokens is [1]: expected a number of tokens such as "14.8T"')
  end)

  it("with GPUs that the fixed layout does not divide names the nearest number that it does", function()
    refuses(dense(), { ["cluster.gpus"] = 1000, ["parallelism.tensor"] = 8, ["parallelism.pipeline"] = 16 },
            "spec: cluster.gpus is 1000: not divisible by the fixed layout tensor 8 × pipeline 16 = 128; nearest: 1024")
    refuses(dense(), { ["parallelism.tensor"] = 7 }, "spec: parallelism.tensor is 7: does not divide the 64 GPUs; nearest: 8")
    refuses(dense(), { ["parallelism.tensor"] = 2, ["parallelism.context"] = 1, ["parallelism.pipeline"] = 4, ["parallelism.data"] = 4 },
            "spec: parallelism.data is 4: tensor 2 × context 1 × pipeline 4 × data 4 is 32 GPUs, not 64; nearest: 8")
    -- a public page's sample: DeepSeek-V3 on 256 GPUs with TP 2, PP 16, EP 64 needs 1,024 (Megatron-Bridge, parallelism strategies)
    refuses(moe(), { ["parallelism.tensor"] = 2, ["parallelism.pipeline"] = 16, ["parallelism.expert"] = 64 },
            "spec: cluster.gpus is 256: not divisible by the fixed layout expert 64 × pipeline 16 = 1024; nearest: 1024")
  end)

  it("with more expert parallelism than experts names their number", function()
    refuses(moe(), { ["parallelism.expert"] = 128 }, "spec: parallelism.expert is 128: the model has 64 experts; nearest: 64")
    refuses(dense(), { ["parallelism.expert"] = 8 }, "spec: parallelism.expert is 8: the model is dense, it has no experts; nearest: 1")
    assert.equal(1, accepts(dense(), { ["parallelism.expert"] = 1 }).parallelism.expert)
  end)

  it("with microbatches that contradict the batch names those that follow from it", function()
    refuses(dense(), { ["parallelism.data"] = 8, ["parallelism.microbatches"] = 100 },
            "spec: parallelism.microbatches is 100: microbatches 100 × microbatch size 1 × data 8 is 800, but the batch is 1024; nearest: 128")
    refuses(dense(), { ["parallelism.microbatches"] = 100 },
            "spec: parallelism.microbatches is 100: batch 1024 / (100 × microbatch size 1) is no data parallelism that divides 64 GPUs; nearest: 128")
    assert.equal(128, accepts(dense(), { ["parallelism.microbatches"] = 128 }).parallelism.microbatches)
  end)

  it("with a batch that does not divide over the replicas names the nearest that does", function()
    -- NeMo-Framework-Launcher falcon_7b: 128 GPUs, TP 1, PP 1, batch 32 → DP 128
    refuses(dense(), { ["cluster.gpus"] = 128, ["parallelism.tensor"] = 1, ["parallelism.context"] = 1, ["parallelism.pipeline"] = 1,
                       ["training.global_batch_size"] = 32 },
            "spec: training.global_batch_size is 32: not a multiple of microbatch size 1 × data 128 = 128; nearest: 128")
    refuses(dense(), { ["training.micro_batch_size"] = 3 },
            "spec: training.global_batch_size is 1024: not a multiple of microbatch size 3 = 3; nearest: 1023")
  end)

  it("with a ramp that is none says what a ramp is", function()
    local function ramp(value, message)
      assert.matches(message, message_of(spec.from_table, with(dense(), { ["training.global_batch_size"] = value })))
    end
    ramp({ { 5, 256 } }, "expected a ramp whose first entry starts at token 0; nearest: 0$")
    ramp({ { 0, 256 }, { "2B", 512 }, { "1B", 1024 } }, "in which first tokens and sequences grow %(entry 3 does not%)$")
    ramp({ { 0, 512 }, { "2B", 256 } }, "entry 2 does not")
    ramp({ { 0 } }, "expected a whole number of sequences, at least 1, or a ramp")
    ramp({}, "training.global_batch_size is {}: expected a whole number of sequences")
    ramp({ { 0, 256 }, { "3T", 512 } }, "reaches its last batch at token 3000000000000: the run ends at 2000000000000")
  end)

  -- Megatron-LM core/transformer/transformer_block.py: get_num_layers_to_build: embedding and loss are a layer each of what is divided; 126
  -- layers of Llama 3.1 405B and both are 128: two on each of 64 stages, one on the first and the last
  it("with ends that count as layers divides as Megatron does", function()
    local function stages(layers, ends, pipeline, virtual)
      local request = accepts(dense(), { ["model.layers"] = layers, ["parallelism.account_for"] = ends, ["parallelism.pipeline"] = pipeline,
                                         ["parallelism.virtual"] = virtual })
      assert.is_nil(request.parallelism.account_for)
      return request.parallelism.layers_per_stage
    end
    assert.same({ 8, 8, 8, 7 }, stages(31, "loss", 4))
    assert.same({ 7, 8, 8, 8 }, stages(31, "embedding", 4))
    assert.same({ 7, 8, 8, 8, 8, 8, 8, 7 }, stages(62, "both", 4, 2))
    local llama = stages(126, "both", 8, 8)
    assert.same({ 64, 1, 2, 1 }, { #llama, llama[1], llama[32], llama[64] })
    refuses(dense(), { ["parallelism.account_for"] = "both" },
            "spec: parallelism.account_for is both: divides layers over a pipeline; expected pipeline too")
    refuses(dense(), { ["parallelism.account_for"] = "both", ["parallelism.pipeline"] = 4 },
            "spec: parallelism.account_for is both: 32 layers and what counts as one are 34, no multiple of pipeline × virtual = 4 stages; " ..
            "nearest: 2 stages")
    refuses(dense(), { ["parallelism.account_for"] = "loss", ["parallelism.pipeline"] = 2, ["parallelism.layers_per_stage"] = { 16, 16 } },
            "spec: parallelism.account_for is given beside layers_per_stage, which says how layers are divided; leave one out")
  end)

  it("with layers per stage that do not sum to the model's says both sums", function()
    refuses(dense(), { ["parallelism.layers_per_stage"] = { 8, 8, 8, 7 } },
            "spec: parallelism.layers_per_stage is [8,8,8,7]: sums to 31, but the model has 32 layers")
    refuses(dense(), { ["parallelism.layers_per_stage"] = { 8, 8, 16 }, ["parallelism.pipeline"] = 2 },
            "spec: parallelism.layers_per_stage is [8,8,16]: has 3 stages, no multiple of pipeline 2; nearest: 4")
    refuses(dense(), { ["parallelism.layers_per_stage"] = { 8, 8, 8, 8 }, ["parallelism.pipeline"] = 4, ["parallelism.virtual"] = 4 },
            "spec: parallelism.layers_per_stage is [8,8,8,8]: has 4 entries, but pipeline 4 × virtual 4 = 16 stages; nearest: virtual 1")
    refuses(dense(), { ["parallelism.layers_per_stage"] = { 8.5 } }, "spec: parallelism.layers_per_stage is [8.5]: expected whole numbers from 0 to 1024")
  end)

  it("asks for the network's speed where expert groups will be judged by it", function()
    assert.matches('^spec: cluster.network.per_gpu is missing: expected the network\'s speed per GPU, one direction, such as "400Gbps"',
                   message_of(spec.from_table, with(moe(), { ["cluster.network.per_gpu"] = "(absent)" })))
    -- a dense model, or expert groups inside the scale-up domain, take the catalogue's
    assert.is_number(accepts(dense(), { ["cluster.network.per_gpu"] = "(absent)" }).cluster.network.per_gpu)
    assert.is_number(accepts(moe(), { ["cluster.network.per_gpu"] = "(absent)", ["parallelism.expert"] = 8 }).cluster.network.per_gpu)
  end)

  it("that is consistent but illegal for its schedule is no bad input", function()
    accepts(moe(), { ["parallelism.schedule"] = "dualpipe", ["parallelism.pipeline"] = 1 })
    accepts(dense(), { ["parallelism.pipeline"] = 64 })  -- more stages than layers
  end)

  it("takes the schedule none as depth 1, and contradicts what only a pipeline has", function()
    assert.equal(1, accepts(dense(), { ["parallelism.schedule"] = "none" }).parallelism.pipeline)
    refuses(dense(), { ["parallelism.schedule"] = "none", ["parallelism.pipeline"] = 4 },
            "spec: parallelism.schedule is none: pipeline 4 needs a schedule; nearest: 1f1b")
    refuses(dense(), { ["parallelism.virtual"] = 2, ["parallelism.pipeline"] = 1 },
            "spec: parallelism.virtual is 2: pipeline 1 has nothing to interleave; nearest: 1")
  end)

  it("in a file names the file", function()
    with_files({
      ["list.json"] = "[1]", ["text.json"] = "{\n  'gpus': 1\n}", ["null.json"] = '{"cluster": {"gpus": null}}',
      ["model.json"] = '{"model": "nowhere.json", "cluster": {"gpus": 8, "accelerator": "H100-SXM"}, "training": {"tokens": 1000}}',
      ["not_a_model.json"] = '{"model": "list.json", "cluster": {"gpus": 8, "accelerator": "H100-SXM"}, "training": {"tokens": 1000}}',
    }, function(directory)
      local function read(name)
        return message_of(spec.read, { files = { directory .. "/" .. name } }):gsub(directory:gsub("%p", "%%%0"), "DIR")
      end
      assert.equal("DIR/list.json: holds [1]: expected an object with cluster, framework, framework_version, labels, model, parallelism, profile, run, "
        .. "team, training", (read "list.json"))
      assert.equal("DIR/text.json:2:3: expected a key in double quotes, got '''", (read "text.json"))
      assert.equal("DIR/null.json: cluster.gpus is null: leave the field out when it has no value", (read "null.json"))
      assert.equal('DIR/model.json: model is "nowhere.json": DIR/nowhere.json cannot be read: No such file or directory', (read "model.json"))
      assert.equal("DIR/list.json: holds [1]: expected the config.json of a model", (read "not_a_model.json"))
      assert.equal("DIR/none.json: cannot be read: No such file or directory", (read "none.json"))
    end)
  end)

  it("in an option names the option", function()
    assert.equal("command line: --gpus is \"0\": expected a whole number of GPUs, at least 1 and at most 10000000, or \"minimum\"; nearest: 1",
                 message_of(spec.read, { options = { gpus = "0" } }))
  end)
end)
