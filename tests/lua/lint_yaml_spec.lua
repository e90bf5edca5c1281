-- SPDX-License-Identifier: Apache-2.0
-- lint_yaml_spec.lua: what lint says of YAML of FlagScale, Megatron-Bridge, NeMo and Primus, and of files that it does not judge.

require "pipeplan"
local files = require "policy_files"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"
local linting = require "linting"
local reads = require "pipeplan.analysis.lint.reads"
local vocabulary = require "pipeplan.vocabulary"

teardown(files.remove)

local first, found = linting.first, linting.found

local flagscale = [[
system:
  tensor_model_parallel_size: 1
  pipeline_model_parallel_size: 4
  expert_model_parallel_size: 2
  disable_bias_linear: true
  use_distributed_optimizer: true
  use_dualpipev: true
  moe_fb_overlap: true
  precision:
    bf16: true
  checkpoint:
    load: ${experiment.load}
model:
  num_layers: 16
  hidden_size: 2048
  num_attention_heads: 16
  seq_length: 4096
  max_position_embeddings: 4096
  untie_embeddings_and_output_weights: true
  num_experts: 64
  moe_token_dispatcher_type: alltoall
  micro_batch_size: 1
  global_batch_size: 256
]]

-- arguments.py.patch:209-264 at 16a2dd5b, seen both ways with its own code; DualPipe is from the description of pull request 1157
describe("FlagScale's YAML", function()
  local function of(change, by, gpus) return first("body.yaml", (flagscale:gsub(change or "^", by or "", 1)), { gpus = gpus or 8 }) end

  it("is legal as FlagScale's own example is: DP 2, M 128, 2 layers of each of 8 stages", function()
    local result = of()
    assert.same({}, found(result, "error"))
    local read = reads.of(result)
    assert.same({ 2, 128, "dualpipev", { 2, 2, 2, 2, 2, 2, 2, 2 } },
                { read.parallelism.data, read.microbatches, read.schedule, read.layers_per_stage })
    assert.equal("experiment.load", result.unresolved[1].key)
  end)

  it("is refused as FlagScale refuses it", function()
    local function refused(change, by, gpus) return found(of(change, by, gpus), "error") end
    assert.same({ "flagscale.dualpipev_tied:7" }, refused("  untie_embeddings_and_output_weights: true\n", ""))
    assert.same({ "flagscale.dualpipev_experts:4" }, refused("expert_model_parallel_size: 2", "expert_model_parallel_size: 1"))
    assert.same({ "flagscale.dualpipev_layers:14" }, refused("num_layers: 16", "num_layers: 12"))
    assert.same({ "flagscale.dualpipev_mtp:23" }, refused("  micro_batch", "  position_embedding_type: rope\n  mtp_num_layers: 1\n  micro_batch"))
    assert.same({ "flagscale.dualpipev_mtp_given:7" }, refused("  micro_batch", "  mtp_num_layers: 0\n  micro_batch"))
    assert.same({ "flagscale.dualpipev_overlap:9" }, refused("  moe_fb_overlap", "  overlap_grad_reduce: true\n  moe_fb_overlap"))
    assert.same({ "flagscale.dualpipev_microbatches:3" }, refused("global_batch_size: 256", "global_batch_size: 8"))
    assert.same({ "flagscale.dualpipev_virtual:7" },
                refused("  moe_fb_overlap", "  num_virtual_stages_per_pipeline_rank: 2\n  moe_fb_overlap"))
  end)

  it("may ask for DualPipe, which nobody has run", function()
    local function dualpipe(change, by)
      return first("body.yaml", (flagscale:gsub("  use_dualpipev: true\n  moe_fb_overlap: true\n", "  use_dualpipe: true\n"):gsub(change or "^",
                   by or "")), { gpus = 8 })
    end
    local result = dualpipe()
    assert.same({ {}, "dualpipe" }, { found(result, "error"), reads.of(result).schedule })
    assert.equal("flagscale.dualpipe_unverified:7", found(result, "note")[1])
    assert.same({ "flagscale.dualpipe_tied:7" }, found(dualpipe("  untie_embeddings_and_output_weights: true\n", ""), "error"))
    assert.same({ "flagscale.dualpipe_microbatches:3" }, found(dualpipe("global_batch_size: 256", "global_batch_size: 8"), "error"))
    assert.same({ "flagscale.dualpipe_virtual:7" },
                found(dualpipe("  precision", "  num_virtual_stages_per_pipeline_rank: 1\n  precision"), "error"))
    -- without the key nothing of it is asked
    assert.same({}, found(dualpipe("  use_dualpipe: true\n", ""), "error"))
  end)

  it("is composed as Hydra does: GPUs from the top file, values from its experiment", function()
    local directory = files.directory { ["train.yaml"] = [[
defaults:
  - _self_
  - train: small
experiment:
  load: null
  steps: 4
  runner: { hostfile: null, nnodes: 2, nproc_per_node: 16 }
  envs: { CUDA_VISIBLE_DEVICES: "0,1,2,3,4,5,6,7" }
]] }
    assert(os.execute("mkdir " .. directory .. "/train"))
    files.write("small.yaml", flagscale .. "data:\n  split: 1\n  eval_iters: ${experiment.steps}\n", directory .. "/train")
    local result = lint.of(launch.read(directory .. "/train.yaml", {})[1], {})
    assert.same({ 16, 64, {} }, { reads.of(result).gpus, reads.of(result).microbatches, result.unresolved })
    assert.equal(directory .. "/train/small.yaml", result.file)
    -- how many nodes there are is not known before they meet
    files.write("train.yaml", "defaults:\n  - train: small\nexperiment:\n  runner: { nnodes: auto, nproc_per_node: 8 }\n", directory)
    assert.is_nil(reads.of(lint.of(launch.read(directory .. "/train.yaml", {})[1], {})).gpus)
    result = first("top.yaml", "defaults:\n  - train: none\nexperiment: {}\n")
    assert.same({ "no_body:2" }, found(result, "error"))
  end)

  it("is not judged where nothing is trained with Megatron-LM", function()
    for task, line in pairs { ["type: serve"] = 4, ["type: train, backend: pi0"] = 4 } do
      local result = first("top.yaml", "defaults:\n  - serve: x\nexperiment:\n  task: { " .. task .. " }\n")
      assert.same({ {}, {}, { "not_judged:" .. line } }, { found(result, "error"), found(result, "warning"), found(result, "note") })
    end
    assert.same({}, found(first("body.yaml", "system: { seed: 1 }\nmodel: { batch_size: 4 }\ndata: { x: 1 }\n"), "error"))
  end)

  it("may not say a key twice (omegaconf refuses it), nor mix kinds of ranks", function()
    assert.same({ "duplicate_key:17" }, found(of("  seq_length", "  hidden_size: 2048\n  seq_length"), "error"))
    local result = of("  precision:", "  hetero: { enable_hetero: true }\n  precision:")
    assert.same({ "heterogeneous:9" }, found(result, "note"))
  end)
end)

-- Megatron-Core when layers are built; https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/5884: 60 layers, P 8, V 4
describe("YAML of Megatron-Bridge and NeMo", function()
  local resolved = [[
model:
  _target_: megatron.bridge.models.GPTModelProvider
  num_layers: %d
  hidden_size: 4096
  num_attention_heads: 32
  seq_length: 4096
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 8
  virtual_pipeline_model_parallel_size: 4
  expert_tensor_parallel_size: null
  share_embeddings_and_output_weights: false
train:
  micro_batch_size: 1
  global_batch_size: 64
mixed_precision: bf16_mixed
]]
  it("is refused where layers do not divide by P × V", function()
    local result = first("run_config.yaml", resolved:format(60), { gpus = 32 })
    assert.same({ { "megatron.layers:3" }, "model.num_layers 64" }, { found(result, "error"), result.findings[1].nearest })
    result = first("run_config.yaml", resolved:format(64), { gpus = 32 })
    assert.same({ {}, 2, 32, "interleaved_1f1b" },
                { found(result, "error"), reads.of(result).parallelism.data, reads.of(result).microbatches, reads.of(result).schedule })
  end)

  it("names NeMo's keys as NeMo does, and its nodes are its GPUs", function()
    local result = first("nemo.yaml", [[
trainer: { num_nodes: 64, devices: 8, precision: bf16 }
model:
  micro_batch_size: 2
  global_batch_size: 2048
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 8
  virtual_pipeline_model_parallel_size: 6
  encoder_seq_length: 2048
  max_position_embeddings: 2048
  num_layers: 96
  hidden_size: 12288
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  num_attention_heads: 96
]])
    local read = reads.of(result)
    assert.same({ {}, 512, 16, 64, 49152 }, { found(result, "error"), read.gpus, read.parallelism.data, read.microbatches, result.record.ffn })
  end)
end)

it("Primus asks for a schedule in words of its own, and its presets are not here", function()
  local result = first("primus.yaml", [[
modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: llama2_7B.yaml
    overrides:
      micro_batch_size: 1
      global_batch_size: 32
      num_layers: ${PRIMUS_NUM_LAYERS:16}
      pipeline_model_parallel_size: 8
      num_virtual_stages_per_pipeline_rank: 2
      overlap_grad_reduce: false
      overlap_param_gather: false
      patch_primus_pipeline: true
      pp_algorithm: "v-half"
]], { gpus = 8 })
  local read = reads.of(result)
  assert.same({ {}, "v_half", 32 }, { found(result, "error"), read.schedule, read.microbatches })
end)

-- AMD-AGI/Primus @fd1eeabb, primus/configs: modules/megatron/pre_trainer.yaml (batch 16, sequences of 1,024, distributed optimizer),
-- trainer_base.yaml (microbatches of 2, bf16), zero_bubble.yaml (enable_zero_bubble), models/megatron/language_model.yaml (24 layers of 1,024);
-- keys are what Megatron's parser calls its values: primus/backends/megatron/argument_builder.py. Muon: run (tests/torch/primus_plans_test.py)
it("Primus's barest presets are known, and no others", function()
  local function read(overrides, model)
    local result = first("primus.yaml", string.format([[
modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: %s
    overrides:
      num_attention_heads: 16
      position_embedding_type: rope
%s]], model or "language_model.yaml", overrides), { gpus = 8 })
    local out = reads.of(result)
    return { found(result, "error"), out.model.layers, out.microbatches, out.training.precision, out.training.zero, out.schedule }
  end
  assert.same("megatron.no_positions:9", read("      position_embedding_type: learned_absolute\n")[1][1])   -- arguments.py:1237 of its Megatron
  assert.same({ {}, 24, 1, "bf16", 1, "none" }, read "")
  assert.same({ {}, nil, nil, nil, nil, "none" }, read("", "llama3_8B.yaml"))
  assert.same({ {}, 24, 8, "fp16", 0, "1f1b" },
              read "      pipeline_model_parallel_size: 8\n      bf16: false\n      fp16: true\n      use_distributed_optimizer: false\n")
  assert.same({ {}, 24, 8, "bf16", 1, "zb_h2" },
              read "      pipeline_model_parallel_size: 8\n      patch_zero_bubble: true\n      zero_bubble_max_pending_backward: 16\n")
  assert.same("primus.muon:9", read("      optimizer: muon\n")[1][1])
  assert.same({}, read("      optimizer: muon\n      use_distributed_optimizer: false\n")[1])
end)

it("counts no GPUs of no nodes, and ends all the same", function()
  for _, words in ipairs { "num_nodes: 0\n  devices: 8", "num_nodes: 1\n  devices: 0", "num_nodes: -1\n  devices: 8" } do
    local result = first("nemo.yaml", "trainer:\n  " .. words .. "\nmodel:\n  tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 2\n"
                                      .. "  num_layers: 32\n  global_batch_size: 64\n  micro_batch_size: 1\n")
    assert.same({ {}, nil }, { found(result, "error"), reads.of(result).gpus }, words)
  end
end)

-- What is said of a text above a note: "id nearest", ? before a warning's.
local function said(name, text, options)
  local list = {}
  for _, finding in ipairs(first(name, text, options).findings) do
    local mark = finding.severity == "warning" and "?" or ""
    if finding.severity ~= "note" then list[#list + 1] = mark .. finding.id .. (finding.nearest and " " .. finding.nearest or "") end
  end
  return table.concat(list, "; ")
end

-- tests/functional_tests/shell_test_utils/_run_training.sh of Megatron-LM @d98e8a64 makes --key=value of each
it("MODEL_ARGS has one value for each argument, but for those that take several", function()
  for value, want in pairs { ["2"] = "", ["{ a: 1 }"] = "bad_value", ["[2]"] = "bad_value", eight = "bad_value", ["2.5"] = "bad_value 2" } do
    assert.equal(want, said("model_config.yaml", "MODEL_ARGS:\n  --num-layers: 8\n  --hidden-size: 512\n  --num-attention-heads: 8\n"
                            .. "  --recompute-modules: [mlp, core_attn]\n  --tensor-model-parallel-size: " .. value .. "\n"), value)
  end
end)

-- flagscale/runner/utils.py at 16a2dd5b: flatten_dict_to_args; then Megatron's argparse (megatron-core 0.19.2: run), in whose words each of these
-- is "unrecognized arguments", "expected one argument" or "invalid int value"; and a degree of -4 or 0 is no degree
it("FlagScale's values and names become words, which Megatron's parser refuses", function()
  local function of(value, key)
    local text = flagscale:gsub("  tensor_model_parallel_size: 1\n", "  " .. (key or "tensor_model_parallel_size") .. ": " .. value .. "\n")
    return said("body.yaml", text, { gpus = 8 })
  end
  for value, want in pairs {
    ["1"] = "", ['"1"'] = "", ["[1]"] = "", ["0x1"] = "", ["${experiment.tp}"] = "", ["???"] = "", ["<tp>"] = "",
    eight = "bad_value", ["2.5"] = "bad_value 2", ["true"] = "bad_value", [""] = "bad_value", null = "bad_value", ["[]"] = "no_value",
    ["{ a: 1 }"] = "bad_value", ["[1, 2]"] = "bad_value", ["-4"] = "bad_value 1", ["0"] = "bad_value 1",
    ["false"] = "?bad_value",   -- is left out, and Megatron's 1 holds
  } do assert.equal(want, of(value), value) end
  for key, want in pairs {
    ["tensor-model-parallel-size"] = "", tensor_model_paralel_size = "unknown_key tensor_model_parallel_size",
    tensor_model_parallel_sizee = "unknown_key tensor_model_parallel_size", tensor_parallel_size = "unknown_key tensor_model_parallel_size",
    adam_beta1 = "", adam_beta2 = "", a_key_of_its_own = "",
  } do assert.equal(want, of("1", key), key) end
  local function flag(from, to) return said("body.yaml", (flagscale:gsub(from, to)), { gpus = 8 }) end
  assert.equal("bad_value", flag("use_distributed_optimizer: true", "use_distributed_optimizer: 7"))
  assert.equal("bad_value", flag("use_dualpipev: true", "use_dualpipev: 7"))
  assert.equal("bad_value", flag("moe_fb_overlap: true", "moe_fb_overlap: { a: true }"))
end)

-- Each of these values before Primus @fd1eeabb over Megatron-LM @d3528a21, as tests/torch/primus_verdict.py asks them: run. It starts with true,
-- which is 1, and with what stands where true or false belongs; all else of these it refuses, but for a key that is unknown: it has its default.
it("Primus takes values as YAML has them, and does not read what it does not know", function()
  local function of(line)
    return said("primus.yaml", "modules:\n  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n    model: language_model.yaml\n"
                               .. "    overrides:\n      position_embedding_type: rope\n      " .. line .. "\n", { gpus = 8 })
  end
  for value, want in pairs {
    ["2"] = "", ["0x2"] = "", ["02"] = "", ["${X:2}"] = "", ["'${X:2}'"] = "", ["${X}"] = "", ["<TP>"] = "",
    eight = "bad_value", ["2.5"] = "bad_value 2", ["2.0"] = "bad_value 2", ["true"] = "bad_value", ["[2]"] = "bad_value 2",
    ["{ a: 2 }"] = "bad_value", [""] = "bad_value 1", null = "bad_value 1", ["~"] = "bad_value 1", ['"2"'] = "bad_value 2", ["0"] = "bad_value 1",
    ["-2"] = "bad_value 1", ["${X:eight}"] = "bad_value", ["100000000000"] = string.format("bad_value %d", vocabulary.most.gpus),
  } do assert.equal(want, of("tensor_model_parallel_size: " .. value), value) end
  for line, want in pairs {
    ["micro_batch_size: null"] = "bad_value", ["num_layers: null"] = "bad_value", ["global_batch_size: null"] = "", ["mtp_num_layers: null"] = "",
    ["micro_batch_size: 0"] = "bad_value 1", ["global_batch_size: -2"] = "bad_value 1", ["num_attention_heads: 2.5"] = "bad_value 2",
    ["sequence_parallel: maybe"] = "?bad_value", ["sequence_parallel: 0"] = "", ["sequence_parallel: 1"] = "",
    ["sequence_parallel: flase"] = "?bad_value false",
    ['sequence_parallel: "false"'] = "?bad_value false", ["overlap_grad_reduce: { a: 1 }"] = "?bad_value", ["num_query_groups: many"] = "?bad_value",
    ["recompute_granularity: ful"] = "?bad_value full", ["moe_token_dispatcher_type: alltoal"] = "?bad_value alltoall",
    ["recompute_granularity: [full]"] = "?bad_value",
    ["tensor_model_paralel_size: 8"] = "?unknown_key tensor_model_parallel_size",
    ["pipline_model_parallel_size: 8"] = "?unknown_key pipeline_model_parallel_size", ["micro_batch_sizee: 8"] = "?unknown_key micro_batch_size",
    ["tensor-model-parallel-size: 8"] = "?unknown_key tensor_model_parallel_size",
    ["pp_max_memm: 1"] = "?unknown_key pp_max_mem",
  } do assert.equal(want, of(line), line) end
end)

-- Megatron-Bridge: omegaconf_utils.py, _apply_overrides: warns and skips; NeMo: megatron_base_model.py, cfg.get with a default of 1
it("Megatron-Bridge and NeMo do not read what they do not know, and count with what YAML says", function()
  local function of(line, trainer)
    return said("nemo.yaml", (trainer and "trainer: { num_nodes: 1, devices: 8, precision: bf16 }\n" or "") .. "model:\n"
                             .. "  pipeline_model_parallel_size: 1\n  num_layers: 8\n  hidden_size: 1024\n  num_attention_heads: 8\n  " .. line .. "\n")
  end
  for line, want in pairs {
    ["tensor_model_parallel_size: 2"] = "", ["tensor_model_parallel_size: ${.num_layers}"] = "", ["tensor_model_parallel_size: ???"] = "",
    ["tensor_model_parallel_size: ${oc.env:TP,2}"] = "", ["kv_channels: null"] = "", ["num_query_groups: null"] = "",
    ["virtual_pipeline_model_parallel_size: null"] = "",
    ["tensor_model_parallel_size: { a: 1 }"] = "bad_value", ["tensor_model_parallel_size: [8]"] = "bad_value 8",
    ["tensor_model_parallel_size: eight"] = "bad_value", ["tensor_model_parallel_size: null"] = "bad_value 1",
    ["tensor_model_parallel_size: true"] = "bad_value", ["seq_length: -5"] = "bad_value 1",
    ["tensor_model_paralel_size: 8"] = "?unknown_key model.tensor_model_parallel_size",
    ["expert_parallel_size: 2"] = "?unknown_key model.expert_model_parallel_size",
  } do
    assert.equal(want, of(line), line)
    assert.equal(want, of(line, true), line)
  end
  assert.equal("?unknown_key model.micro_batch_size", of("micro_batch_sizee: 1", true))
  assert.equal("bad_value 1", of("micro_batch_size: 0", true))
  assert.equal("", of("kind: &kind 2\n  tensor_model_parallel_size: *kind"))
end)

-- megatron-core 0.19.2: transformer_config.py asks cpu_offloading alone; that layers to offload switch it on is training/arguments.py, of
-- Megatron-LM's command line
it("Megatron-Bridge and NeMo offload activations where that is said, whatever number of layers stands beside it", function()
  for _, trainer in ipairs { "", "trainer: { num_nodes: 1, devices: 8, precision: bf16 }\n" } do
    for switched, want in pairs { ["false"] = "", ["true"] = "megatron.offload_pipeline" } do
      assert.equal(want, said("nemo.yaml", trainer .. "model:\n  pipeline_model_parallel_size: 2\n  num_layers: 8\n  hidden_size: 1024\n"
                                           .. "  num_attention_heads: 8\n  cpu_offloading: " .. switched .. "\n  cpu_offloading_num_layers: 7\n"))
    end
  end
end)

describe("files that are not judged", function()
  local function problem(name, text)
    local good, told = pcall(launch.read, files.write(name, text), {})
    assert.is_false(good)
    return tostring(told):gsub("^.-/([%w_]+%.%w+)", "%1")
  end

  it("are told what to do instead", function()
    assert.truthy(problem("recipe.py", "import os\n"):find "print it with cfg.print_yaml%(%)")
    assert.truthy(problem("preset.yaml", "extends:\n  - base.yaml\nnum_layers: 61\n"):find "preset of Primus")
    assert.truthy(problem("x.sh", "echo hello\n"):find "has no argument of a framework")
    for _, program in ipairs { "./primus-cli slurm srun -N 2 -- container -- train", "python3 primus/cli/main.py" } do   -- AMD-AGI/Primus, docs/cli
      assert.truthy(problem("x.sh", program .. " pretrain --config e.yaml --optimizer adam --recompute_method block\n"):find "a command of Primus: lint")
    end
    assert.truthy(problem("ci.yaml", "modules:\n  one: { name: x }\n"):find "no launch configuration")
  end)

  it("are read by their events, so that nothing grows", function()
    local bomb = { "a: &a [x,x,x,x,x,x,x,x,x]\n" }
    for i = 1, 20 do bomb[#bomb + 1] = string.format("a%d: &a%d [%s]\n", i, i, ("*a" .. (i > 1 and i - 1 or "") .. ","):rep(9)) end
    assert.truthy(problem("bomb.yaml", table.concat(bomb)):find "no launch configuration")
    assert.equal("deep.yaml:1: nested more than 64 deep", (problem("deep.yaml", "a: " .. ("["):rep(100000))))
    assert.equal("tabs.yaml:2: no YAML: found character that cannot start any token", (problem("tabs.yaml", "a:\n\tb: 1\n")))
    assert.truthy(problem("self.yaml", "a: &a [*a]\n"):find "stands in what it names")
  end)

  it("of torchtitan's TOML and DeepSpeed's HJSON say what of them still holds", function()
    local result = first("t.toml", "[training]\nlocal_batch_size = 2\n[parallelism]\ndata_parallel_shard_degree = -1\n"
                                   .. "enable_async_tensor_parallel = true\n")
    assert.same({ "gone_key:1", "gone_key:5" }, found(result, "error"))
    result = first("d.json", '{\n "train_batch_size": 256,\n "train_micro_batch_size_per_gpu": "auto",\n}\n')
    assert.same({ { "auto:3" }, { "not_judged:1", "hjson:3" } }, { found(result, "warning"), found(result, "note") })
  end)
end)
