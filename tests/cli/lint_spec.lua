-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan lint` as a user sees it: exit statuses, formats, a launch against its plan, published configurations, hostile ones.

local json = require "cjson"
local files = require "policy_files"
local program = require "program"

teardown(files.remove)

local function quoted(path) return "'" .. path .. "'" end

local function lint(arguments, input) return program.run("lint " .. arguments, input) end

local flags = "--num-layers 32 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
              .. "--micro-batch-size 1 --bf16 --global-batch-size 128 --tokenizer-type NullTokenizer --vocab-size 32000 --swiglu "
              .. "--ffn-hidden-size 4096 --use-distributed-optimizer --pipeline-model-parallel-size 4 "

local function script(more, gpus, own)
  return files.write("run.sh", string.format("torchrun --nproc_per_node %d pretrain_gpt.py %s %s\n", gpus or 8, own or flags, more or ""))
end

describe("pipeplan lint", function()
  it("ends with 0 without findings, with 1 with some, with 2 where a file cannot be read", function()
    local good, bad = quoted(script()), quoted(script "--num-layers 30")
    assert.equal(0, lint(good).status)
    assert.equal(1, lint(bad).status)
    local result = lint "no_such_file.sh"
    assert.same({ 2, "", "pipeplan: no_such_file.sh: cannot be read: No such file or directory\n" },
                { result.status, result.stdout, result.stderr })
    result = lint(bad .. " no_such_file.sh " .. good)   -- the others are read, and the worst counts
    assert.equal(2, result.status)
    assert.truthy(result.stdout:find("error[megatron.layers]", 1, true) and result.stderr:find "cannot be read")
    assert.equal(0, lint("-", "torchrun --nproc_per_node 8 pretrain_gpt.py " .. flags .. "\n").status)
  end)

  it("says where, what, why and what would be right", function()
    local path = script "--num-layers 30"
    local result = lint(quoted(path))
    assert.truthy(result.stdout:find(path .. ":1: error[megatron.layers]\n  Megatron-LM: 30 layers do not divide by P 4\n"
                                     .. "  nearest: --num-layers 32\n  source: https://github.com/NVIDIA/Megatron-LM", 1, true), result.stdout)
  end)

  it("prints JSON as it is documented", function()
    local result = lint(quoted(script "--num-layers 30 --load $DIR") .. " --format json")
    local value = json.decode(result.stdout)
    assert.same({ "urn:pipeplan:lint:1", "megatron", "core 0.20.0" }, { value["$schema"], value.framework, value.version })
    local finding = value.findings[1]
    for _, name in ipairs { "id", "severity", "message", "file", "line", "key", "value", "nearest", "source" } do
      assert.is_true(finding[name] ~= nil and finding[name] ~= json.null, name)
    end
    assert.equal(json.null, finding.conditional)
    assert.equal("DIR", value.unresolved[1].key)
    assert.same({ 4, 2, 64, "1f1b" }, { value.reads.parallelism.pipeline, value.reads.parallelism.data, value.reads.microbatches,
                                        value.reads.schedule })
    local two = json.decode(lint(quoted(script()) .. " " .. quoted(script()) .. " --format json").stdout)
    assert.equal(2, #two.launches)
  end)

  it("prints annotations and SARIF, with the line", function()
    local path = script "--num-layers 30"
    local result = lint(quoted(path) .. " --format github")
    assert.equal("::error file=" .. path .. ",line=1,title=megatron.layers::Megatron-LM: 30 layers do not divide by P 4; nearest: "
                 .. "--num-layers 32\n", result.stdout:match "^::error[^\n]*\n")
    local value = json.decode(lint(quoted(path) .. " --format sarif").stdout)
    local found = value.runs[1].results[1]
    assert.same({ "2.1.0", "megatron.layers", "error", 1 },
                { value.version, found.ruleId, found.level, found.locations[1].physicalLocation.region.startLine })
  end)

  it("computes memory where the accelerator is known", function()
    local result = json.decode(lint(quoted(script()) .. " --accelerator H100-SXM --format json").stdout)
    assert.equal(4, #result.reads.memory.ranks)
    assert.truthy(lint(quoted(script()) .. " --accelerator H100-SXM").stdout:find("memory: fits: rank 0 is the fullest", 1, true))
  end)

  it("takes variables and GPUs from its command line", function()
    local path = files.write("run.sh", "python pretrain_gpt.py " .. flags .. " --tensor-model-parallel-size $TP\n")
    assert.equal(1, lint(quoted(path) .. " --variable TP=3 --gpus 16").status)
    assert.equal(0, lint(quoted(path) .. " --variable TP=4 --gpus 16").status)
    assert.equal(2, lint(quoted(path) .. " --variable TP").status)
    assert.equal(2, lint(quoted(path) .. " --gpus many").status)
  end)
end)

describe("pipeplan lint --plan", function()
  local spec = [[{ "cluster": { "gpus": 64, "accelerator": "H100-SXM", "network": { "per_gpu": "400Gbps" } }, "framework": "megatron",
    "model": { "layers": 32, "hidden": 8192, "heads": 64, "kv_heads": 64, "ffn": 28672, "vocab": 32000 },
    "training": { "tokens": "1T", "sequence_length": 2048, "global_batch_size": 128, "micro_batch_size": 1 },
    "parallelism": { "pipeline": 4, "tensor": 8, "schedule": "1f1b", "layers_per_stage": [8, 8, 8, 8] } }]]
  local plan = program.run("plan - --format json", spec)
  local path = files.write("plan.json", plan.stdout)

  local function planned(more, gpus)
    local large = flags:gsub("hidden%-size 1024", "hidden-size 8192"):gsub("heads 16", "heads 64"):gsub("4096", "28672")
    return quoted(script((more or ""), gpus or 64, large .. "--tensor-model-parallel-size 8 --sequence-parallel "
                         .. "--hidden-dropout 0.0 --attention-dropout 0"))
  end

  it("ends with 0 for the launch that was planned", function()
    assert.equal("planned", json.decode(plan.stdout).status)
    local result = lint(planned() .. " --plan " .. path)
    assert.same({ 0, "" }, { result.status, result.stderr }, result.stdout)
  end)

  it("counts what fills sequences up as read, and not as trained", function()
    local padded = " - --padding 0.25 --format "
    local answer = files.write("padded.json", program.run("plan" .. padded .. "json", spec).stdout)
    local text = program.run("plan" .. padded .. "megatron", spec).stdout
    local whole = text:gsub("%-%-train%-samples %d+", "--train-samples 488281250")   -- 1e12 / 2048
    assert.equal(0, lint(quoted(files.write("padded.sh", text)) .. " --plan " .. answer).status)
    assert.matches("error[plan.training_tokens]", lint(quoted(files.write("whole.sh", whole)) .. " --plan " .. answer).stdout, 1, true)
  end)

  -- Primus's runner takes the number of GPUs from its command line or Slurm: AMD-AGI/Primus @fd1eeabb, runner/primus-cli-direct.sh
  it("notes what nobody knows of a launch that does not say how many GPUs it gets", function()
    local function in_format(format)
      return program.run("plan examples/specs/llama-3.1-405b.json --accelerator MI300X --fabric roce --framework primus --date 2026-12-01 --format "
                         .. format).stdout
    end
    local answer = in_format "json"
    local gpus = json.decode(answer).gpus_used
    local held = quoted(files.write("launch.yaml", in_format "primus")) .. " --plan " .. quoted(files.write("primus.json", answer))
    local result = lint(held)
    assert.equal(0, result.status, result.stdout)
    for _, field in ipairs { "gpus_used", "parallelism_data", "microbatches" } do assert.matches("note[plan." .. field .. "]", result.stdout, 1, true) end
    assert.matches("nothing to say", lint(held .. " --gpus " .. gpus).stdout, 1, true)
    assert.equal(1, lint(held .. " --gpus " .. 2 * gpus).status)
  end)

  it("ends with 1 on every field in which the launch differs", function()
    for field, more in pairs { ["parallelism.tensor"] = "--tensor-model-parallel-size 4", microbatches = "--global-batch-size 64",
                               layers_per_stage = "--decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 9",
                               schedule = "--num-virtual-stages-per-pipeline-rank 2", ["training.precision"] = "--fp8-format hybrid",
                               hidden_dropout = "--hidden-dropout 0.1", attention_dropout = "--attention-dropout 0.1",
                               optimizer = "--optimizer sgd",
                               optimizer_offload_fraction = "--use-precision-aware-optimizer --optimizer-cpu-offload --optimizer-offload-fraction 1",
                               ["training.sequence_length"] = "--seq-length 1024" } do
      local result = lint(planned(more) .. " --plan " .. path)
      assert.equal(1, result.status, more)
      assert.truthy(result.stdout:find("error[plan." .. field:gsub("%.", "_") .. "]", 1, true), more .. result.stdout)
    end
    assert.equal(1, lint(planned(nil, 128) .. " --plan " .. path).status)
  end)

  -- megatron-core 0.19.2: training/arguments.py:1672-1676 takes dist_muon for Muon; :1884-1893, the hybrid optimizer is the precision-aware one
  it("holds the optimizer and its share on the host against a plan that has others than the default", function()
    local function with(field, value)
      local answer = program.run("plan - --format json --" .. field .. " " .. value, spec)
      return " --plan " .. files.write(field .. ".json", answer.stdout), table.concat(json.decode(answer.stdout).framework_flags, " ")
    end
    local muon, words = with("optimizer", "muon")
    assert.matches(" --optimizer muon$", words)
    for given, status in pairs { ["--optimizer muon"] = 0, ["--optimizer dist_muon"] = 0, ["--optimizer adam"] = 1, [""] = 1 } do
      local result = lint(planned("--ckpt-format torch_dist " .. given) .. muon)
      assert.equal(status, result.status, given .. ": " .. result.stdout)
    end
    local half, told = with("optimizer_offload", "0.5")
    assert.matches(" --use-precision-aware-optimizer --optimizer-cpu-offload --optimizer-offload-fraction 0.5 ", told, 1, true)
    local switched = "--use-precision-aware-optimizer --optimizer-cpu-offload --optimizer-offload-fraction "
    assert.equal(0, lint(planned(switched .. "0.5") .. half).status)
    assert.equal(1, lint(planned(switched .. "0.25") .. half).status)
    assert.equal(1, lint(planned() .. half).status)
  end)

  -- a plan.json that somebody changed by hand is held against the launch as it now is
  it("finds what was edited in the plan", function()
    for field, change in pairs { ["parallelism.tensor"] = { '\n    "tensor": 8', '\n    "tensor": 4' },
                                 schedule = { '\n  "schedule": "1f1b"', '\n  "schedule": "zb_h1"' },
                                 microbatches = { '\n  "microbatches": 64', '\n  "microbatches": 32' } } do
      local at, last = plan.stdout:find(change[1], 1, true)
      assert.is_number(at, change[1])
      local edited = plan.stdout:sub(1, at - 1) .. change[2] .. plan.stdout:sub(last + 1)
      local result = lint(planned() .. " --plan " .. files.write("edited.json", edited))
      assert.same({ 1, "" }, { result.status, result.stderr }, field)
      assert.truthy(result.stdout:find("error[plan." .. field:gsub("%.", "_") .. "]", 1, true), field .. result.stdout)
    end
  end)

  it("is told what of a plan is not there, or something else, field by field", function()
    local function told(change)
      local broken = json.decode(plan.stdout)
      change(broken)
      local result = lint(planned() .. " --plan " .. quoted(files.write("broken.json", json.encode(broken))))
      return { result.status, result.stdout }
    end
    local needed = { "gpus_used", "schedule", "layers_per_stage", "micro_batch_size", "global_batch_size", "microbatches", "recompute", "sharding",
                     "parallelism", "parallelism.tensor", "parallelism.context", "parallelism.pipeline", "parallelism.data", "training",
                     "training.sequence_length", "training.tokens", "training.precision", "model", "model.layers", "model.total_parameters" }
    for _, field in ipairs(needed) do
      local outer, inner = field:match "^(.*)%.(.*)$"
      for _, value in ipairs { "gone", json.null, "word", true, -1 } do
        if not (value == "word" and (field == "schedule" or field == "sharding" or field == "training.precision")) then
          local function change(broken) (outer and broken[outer] or broken)[inner or field] = value ~= "gone" and value or nil end
          assert.same({ 2, "" }, told(change), field .. " " .. tostring(value))
        end
      end
    end
    assert.same({ 2, "" }, told(function(broken) broken.alltoall_kernel = 1 end))
    for _, value in ipairs { 1, -0.1, "word", true } do   -- of no tokens, or of more than all
      assert.same({ 2, "" }, told(function(broken) broken.training.padding = value end))
    end
  end)

  it("is told what is no plan", function()
    local result = lint(quoted(script()) .. " --plan " .. quoted(files.write("no.json", "{}")))
    assert.same({ 2, "" }, { result.status, result.stdout })
  end)
end)

describe("pipeplan plan of a launch configuration", function()
  local path = "examples/launch/llama3_70b.sh"

  it("asks for all that a launch does not say", function()
    local result = program.run("plan " .. quoted(files.write("run.sh", "python pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
                               .. "--num-attention-heads 16 --micro-batch-size 1 --seq-length 1024 --max-position-embeddings 1024\n")))
    assert.same({ 2, "" }, { result.status, result.stdout })
    for _, name in ipairs { "--gpus", "--accelerator", "--tokens", "--model" } do assert.truthy(result.stderr:find(name, 1, true), name) end
  end)

  it("plans it as it is, and the plan is what lint holds it against", function()
    local result = program.run("plan " .. path .. " --accelerator H200 --per_gpu 400Gbps --format json")
    local plan = json.decode(result.stdout)
    assert.same({ "planned", 4, 5, 4, 8, 128, 1024 },
                { plan.status, plan.parallelism.pipeline, plan.parallelism.virtual, plan.parallelism.tensor, plan.parallelism.data,
                  plan.microbatches, plan.global_batch_size })
    assert.near(70.55e9, plan.model.total_parameters, 0.1e9)   -- Llama 3 70B: its model card
    assert.equal(0, lint(path .. " --plan " .. files.write("plan.json", result.stdout)).status)
  end)

  it("plans its model and training in another layout when asked", function()
    local plan = json.decode(program.run("plan " .. path .. " --accelerator H100 --per_gpu 400Gbps --layout free --format json").stdout)
    assert.same({ "planned", 1024, 128 }, { plan.status, plan.global_batch_size, plan.cluster.gpus })
    assert.equal(2, program.run("plan examples/specs/mixtral-8x7b.json --layout free").status)
  end)

  it("says what is wrong with it first", function()
    local result = program.run("plan " .. quoted(files.write("run.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py " .. flags
                                                             .. "--num-layers 30\n")) .. " --accelerator H100 --tokens 1T")
    assert.equal(2, result.status)
    assert.truthy(result.stderr:find("run.sh:1: Megatron-LM: 30 layers do not divide by P 4", 1, true))
  end)

  -- Primus has its default of 1 there (tests/lua/lint_yaml_spec.lua)
  it("warns of a key that its framework does not read, and ends at a value that is none", function()
    local function plan(line, gpus)
      local file = files.write("primus.yaml", "modules:\n  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n"
                               .. "    model: language_model.yaml\n    overrides:\n      position_embedding_type: rope\n"
                               .. "      vocab_size: 32000\n      " .. line .. "\n")
      return program.run("plan " .. quoted(file) .. " --gpus " .. gpus .. " --accelerator H100 --tokens 1B --format json")
    end
    for _, gpus in ipairs { "8", "minimum" } do
      local found = {}
      for _, warning in ipairs(json.decode(plan("tensor_model_paralel_size: 8", gpus).stdout).warnings) do found[warning.id] = warning.message end
      assert.truthy((found.unknown_key or ""):find("primus.yaml:9: Primus does not read tensor_model_paralel_size", 1, true), gpus)
    end
    local result = plan("tensor_model_parallel_size: [8]", "8")
    assert.equal(2, result.status)
    assert.truthy(result.stderr:find("primus.yaml:9: Primus: tensor_model_parallel_size is a list: expected a whole number", 1, true))
  end)

  -- Megatron-LM's .gitlab/cerno.yml is such a file
  it("refuses modules of which none has overrides, whatever they hold", function()
    for _, modules in ipairs { "  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n", "  one: 3\n  two: [1]\n",
                               "  pre_trainer:\n    framework: megatron\n    over.rides:\n      num_layers: 32\n" } do
      local file = quoted(files.write("modules.yaml", "modules:\n" .. modules))
      for _, command in ipairs { "lint " .. file, "plan " .. file .. " --layout free --gpus 4" } do
        local result = program.run(command)
        assert.same({ 2, "" }, { result.status, result.stdout })
        assert.truthy(result.stderr:find("modules.yaml: no launch configuration that is known", 1, true), result.stderr)
      end
    end
  end)
end)

-- What data/configs' own lists of sources say of each; every other file there is refused with a line, and none ends otherwise.
describe("published configurations", function()
  local data = os.getenv "PIPEPLAN_DATA"
  local expected = {
    ["megatron__train_gpt3_175b_distributed.sh"] = { 1, "megatron.world", "megatron.two_batches" },
    ["megatron__train_gpt3_175b_distributed.sh --gpus 128"] = { 1, "megatron.two_batches", "128 GPUs; P 16 · M 1,536 · TP 8 · DP 1; 1F1B; 16 × 6" },
    ["megatron__functional_tp1_pp4_vp1.yaml --gpus 8"] = { 0, "V 3 · M 4", "DP 2", "12 × 1 layers" },
    ["megatron__sc21_CONFIG.sh"] = { 1, "--DDP-impl any more", "MEGATRON_EXTRA_PARAMS" },
    ["modelzoo__run_mixtral_8x22B.sh"] = { 0, "cannot be judged, for this is not known: GPUs, P" },
    ["flagscale__deepseek_v3_11b_a2b_dualpipev.yaml --gpus 8"] = { 0, "P 4 · M 128", "DP 2", "DualPipeV" },
    ["flagscale__deepseek_v3_16b_a3b_uneven_mtp.yaml --gpus 8"] = { 0, "P 2 · M 32", "DP 4", "layers 13 14" },
    ["flagscale__qwen3_235b_a22b.yaml --gpus 8"] = { 1, "P 2 · M 1,024", "2 × 47 layers", "num_query_groups" },
    ["flagscale__deepseek_v3_hetero.yaml"] = { 0, "not judged" },
    ["flagscale__qwen3_32b_auto_tuner.yaml"] = { 0, "auto tuner" },
    ["primus__trainer_zero_bubble.yaml --gpus 8"] = { 0, "V-Half" },
    ["torchtitan__llama3_405b.toml"] = { 1, "reads no TOML since February 2026", "enable_async_tensor_parallel is gone" },
    ["deepspeed__pipeline_parallelism_ds_config.json"] = { 0, "HJSON" },
    ["bridge__qwen35_vl_h100.py"] = { 2, "print it with cfg.print_yaml()" },
    ["nemo__gpt3_175b_mlperf.yaml"] = { 0, "48 × 2 layers", "DP 16", "512 GPUs" },
  }

  it("are judged as their sources say", function()
    if not data then return pending "PIPEPLAN_DATA names no folder with configs/" end
    for command, want in pairs(expected) do
      local result = lint(data .. "/configs/" .. command)
      local said = (result.stdout .. result.stderr):gsub("%s+", " ")
      assert.equal(want[1], result.status, command .. "\n" .. said)
      for i = 2, #want do assert.truthy(said:find(want[i], 1, true), command .. ": " .. want[i] .. "\n" .. said) end
    end
  end)

  it("are all read or refused, and none breaks the reader", function()
    if not data then return pending "PIPEPLAN_DATA names no folder with configs/" end
    local count = 0
    for name in io.popen("ls '" .. data .. "/configs'"):lines() do
      local result = lint(data .. "/configs/" .. name)
      assert.is_true(result.status <= 2, name .. "\n" .. result.stderr)
      count = count + 1
    end
    assert.is_true(count >= 30)
  end)
end)

describe("hostile launch configurations", function()
  local limits = "prlimit --cpu=20 --as=600000000"
  if os.getenv "PIPEPLAN_PRELOAD" then
    print "# a sanitizer takes all the address space there is: memory has no limit here"
    limits = "prlimit --cpu=200"
  end

  it("end in bounded time and memory, with a line that says why", function()
    local random = {}
    for i = 1, 4096 do random[i] = string.char((i * 7919 + i // 3) % 256) end
    for name, text in pairs {
      ["a.sh"] = ("--tensor-model-parallel-size 8\n"):rep(100000), ["b.sh"] = table.concat(random), ["c.yaml"] = table.concat(random),
      ["d.sh"] = "X=" .. ("${A:-"):rep(3000) .. ("}"):rep(3000) .. "\npython pretrain_gpt.py --num-layers $X\n",
      ["e.sh"] = "python pretrain_gpt.py --num-layers 4 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout '(t*99999)*99999'\n",
      ["f.sh"] = "torchrun --nproc_per_node 99999999999999999999 pretrain_gpt.py --num-layers 99999999999999999999 --hidden-size 0 "
                 .. "--num-attention-heads 0 --pipeline-model-parallel-size 1000000000 --micro-batch-size 9223372036854775807\n",
      ["g.yaml"] = "system: { a: '${b}', b: '${a}${a}', tensor_model_parallel_size: '${a}' }\nmodel: { num_layers: '${multiply:${a},2}' }\n",
      ["h.log"] = "---- arguments ----\n" .. ("  tensor_model_parallel_size ...... 2\n"):rep(100000), ["i.sh"] = "", ["j.yaml"] = "a: \0",
      ["k.sh"] = "torchrun --nproc_per_node 8 pretrain_gpt.py \\\r\n  --tensor-model-parallel-size 3 \\\r\n  --num-layers 4\r\n",
    } do
      local result = program.run("lint " .. quoted(files.write(name, text)), nil, limits)
      assert.is_true(result.status <= 2, name .. " " .. result.status .. "\n" .. result.stderr)
      if result.status == 2 then assert.truthy(result.stderr:find "^pipeplan: [^\n]+\n$", name .. result.stderr) end
    end
    -- products of degrees and batches that are 2^64, which an integer has as 0
    local sizes = "python pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
      .. "--max-position-embeddings 1024 --global-batch-size 8 --bf16 "
    for name, text in pairs {
      ["degrees.sh"] = sizes .. "--micro-batch-size 1 --tensor-model-parallel-size 4194304 --context-parallel-size 2097152 "
                       .. "--pipeline-model-parallel-size 2097152",
      ["experts.sh"] = sizes .. "--micro-batch-size 1 --expert-model-parallel-size 4194304 --num-experts 8 --expert-tensor-parallel-size 2097152 "
                       .. "--pipeline-model-parallel-size 2097152",
      ["evaluation.sh"] = sizes .. "--micro-batch-size 1 --eval-micro-batch-size 4611686018427387904 --tensor-model-parallel-size 4",
      ["titan.sh"] = "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b --parallelism.tensor_parallel_degree 4194304 "
                     .. "--parallelism.context_parallel_degree 2097152 --parallelism.pipeline_parallel_degree 2097152",
      ["parts.json"] = '{ "train_batch_size": 8, "train_micro_batch_size_per_gpu": 4611686018427387904, "gradient_accumulation_steps": 4 }',
    } do
      local result = program.run("lint --gpus 16 " .. quoted(files.write(name, text)), nil, limits)
      assert.same({ 1, "" }, { result.status, result.stderr }, name)
      assert.matches("error[", result.stdout, 1, true, name)
    end
    local large = files.write("large.yaml", "")   -- 100 MB, of which no byte stands on a disk
    assert(os.execute("truncate -s 100000000 " .. quoted(large)))
    local result = program.run("lint " .. quoted(large), nil, limits)
    assert.equal(2, result.status)
    assert.truthy(result.stderr:find("larger than 1 MiB", 1, true), result.stderr)
  end)
end)
