-- SPDX-License-Identifier: Apache-2.0
-- deepspeed_spec.lua: configurations of DeepSpeed: what lint says of each is what DeepSpeed's own code says (tests/data/deepspeed_cases.txt;
-- tests/torch/deepspeed_plans_test.py asks it), and where it reads P, TP, the split of layers and GPUs.

local planning = require "planning"  -- first: it loads the module
local against = require "pipeplan.analysis.lint.against"
local files = require "policy_files"
local hjson = require "pipeplan.input.launch.hjson"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"
local json = require "pipeplan.base.json"
local planner = require "pipeplan.plan.init"
local policy = require "pipeplan.policy.load".load { date = "2026-11-27" }
local reads = require "pipeplan.analysis.lint.reads"
local schema = require "pipeplan.schema.plan"
local spec = require "pipeplan.input.spec"
local writer = require "pipeplan.report.launch.init"

teardown(files.remove)

-- Errors and warnings, ? before these, in the order of lint; and the result.
local function judged(folder, name, given)
  local result = lint.of(launch.read(folder .. "/" .. name, { given = given })[1], {})
  local ids, list = {}, {}
  for _, finding in ipairs(result.findings) do
    if finding.severity ~= "note" then ids[#ids + 1] = (finding.severity == "warning" and "?" or "") .. finding.id end
    list[#list + 1] = finding.id .. ": " .. finding.message
  end
  return table.concat(ids, ":"), result, table.concat(list, "; ")
end

-- A program, its configuration, and the script that starts it.
local function folder_of(gpus, arguments, configuration)
  local list = {}
  for name, value in arguments:gmatch "(%S+)=(%S+)" do
    list[#list + 1] = name .. "=" .. (value:find "^%d+$" and value or '"' .. value .. '"')
  end
  return files.directory {
    ["train.py"] = "import deepspeed\nmodel = PipelineModule(layers,\n    " .. table.concat(list, ", ") .. ")\n",
    ["ds_config.json"] = configuration,
    ["run.sh"] = string.format("torchrun --nproc_per_node %d train.py --deepspeed --deepspeed_config ds_config.json\n", gpus),
  }
end

describe("a configuration of DeepSpeed", function()
  it("is refused by lint where DeepSpeed refuses it, for that reason, and nowhere else", function()
    local tried, wrong = 0, {}
    for line in io.lines "tests/data/deepspeed_cases.txt" do
      local gpus, want, name, rest = line:match "^(%d+) %a+(%S*) (%S+) (.*)$"
      if gpus then
        tried = tried + 1
        local arguments, configuration = rest:match "^(.-) ?(%{.*)$"
        if not arguments or rest:find "^[^{]*\\n" then arguments, configuration = rest:match "^(.-) (\\n.*)$" end
        if not arguments then arguments, configuration = rest:match "^(.-) (%{.*)$" end
        local ids, result, all = judged(folder_of(gpus, arguments, (configuration:gsub("\\n", "\n"))), "run.sh")
        if ids ~= want:gsub("^:", "") then wrong[#wrong + 1] = string.format("%s: %s, not %s: %s", name, ids, want, all) end
        if want == "" and #result.undecided > 0 then wrong[#wrong + 1] = name .. " is undecided: " .. table.concat(result.undecided, ", ") end
      end
    end
    assert.same({}, wrong)
    assert.is_true(tried >= 60)
  end)

  it("is judged alone as far as it goes, and with P beside it", function()
    local folder = files.directory { ["ds_config.json"] = '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1}',
                                     hostfile = "# two machines\nworker-0 slots=8\nworker-1 slots=8\n" }
    local ids, result = judged(folder, "ds_config.json")
    assert.same({ "", 16, nil }, { ids, reads.of(result).gpus, reads.of(result).microbatches })
    assert.is_true(#result.undecided > 3)
    ids, result = judged(folder, "ds_config.json", { pipeline = "4", tensor = "2" })
    local read = reads.of(result)
    assert.same({ "", 16, 4, 2, 2, 32 },
                { ids, read.gpus, read.parallelism.pipeline, read.parallelism.tensor, read.parallelism.data, read.microbatches })
    assert.same({}, result.undecided)
  end)

  -- runtime/config.py:592-608, _batch_assertion: train_batch_size == microbatch × steps × ranks. Of 8 GPUs there are 1, 2, 4 or 8 ranks, whatever P
  -- and TP are; 6.25 of them are nearest to 8.
  it("is refused where its batch is its parts on no number of ranks, and is told the nearest that is", function()
    local function of(batch, program, options)
      local folder = files.directory {
        ["ds_config.json"] = string.format('{"train_batch_size": %d, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4}', batch),
        ["train.py"] = program or "", ["run.sh"] = "deepspeed --num_gpus 8 train.py --deepspeed_config ds_config.json " .. (options or "") .. "\n" }
      local ids, result = judged(folder, "run.sh")
      return { ids, result.findings[1] and result.findings[1].nearest }
    end
    for batch, nearest in pairs { [100] = 128, [96] = 64, [256] = 128 } do
      assert.same({ "deepspeed.batch", "train_batch_size " .. nearest }, of(batch), batch)
    end
    for _, batch in ipairs { 16, 32, 64, 128 } do assert.equal("", of(batch)[1], batch) end
    assert.same({ "deepspeed.batch", "train_batch_size 64" }, of(128, nil, "--pipeline-parallel-size 2"))
    -- a model in one piece: all 8 GPUs are ranks of data parallelism
    local plain = "import deepspeed\nengine, *_ = deepspeed.initialize(model=model, config=args.config)\n"
    assert.same({ "deepspeed.batch", "train_batch_size 128" }, of(64, plain))
    assert.equal("", of(128, plain)[1])
    assert.equal("", of(64, "from deepspeed.pipe import PipelineModule\n" .. plain)[1])   -- of how many stages is not said
    assert.equal("", of(64, (plain:gsub("model=model", "model=model, mpu=mpu")))[1])
    local folder = files.directory { ["ds_config.json"] = '{"train_batch_size": 100, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4}' }
    assert.equal("deepspeed.batch", (judged(folder, "ds_config.json")))
  end)

  -- deepspeed/launcher/runner.py: fetch_hostfile, parse_resource_filter, apply_num_nodes_and_gpus
  -- runtime/config.py:590-650: a batch and its parts are asserted to be over 0, and 0 of a part is divided by
  it("is refused where its batch, or a part of it, is none, whether P is known or not", function()
    for text, id in pairs { ['"train_batch_size": 0'] = "deepspeed.batch", ['"train_batch_size": -8'] = "deepspeed.batch",
                            ['"train_batch_size": 16, "train_micro_batch_size_per_gpu": 0'] = "deepspeed.batch",
                            ['"train_batch_size": 16, "gradient_accumulation_steps": -1'] = "bad_value" } do
      local folder = files.directory { ["ds_config.json"] = '{ ' .. text .. ', "optimizer": { "type": "Adam" } }' }
      assert.equal(id, (judged(folder, "ds_config.json")), text)
    end
  end)

  it("runs on the GPUs that DeepSpeed's launcher takes of a hostfile", function()
    local function gpus(words)
      local folder = files.directory { ["ds_config.json"] = '{"train_micro_batch_size_per_gpu": 1}', ["train.py"] = "",
                                       hosts = "a slots=8\nb slots=8\nc slots=4\n",
                                       ["run.sh"] = "deepspeed --hostfile hosts " .. words .. " train.py --deepspeed_config=ds_config.json -p 2\n" }
      local _, result = judged(folder, "run.sh")
      return reads.of(result).gpus
    end
    assert.same({ 20, 16, 6, 10, 8 },
                { gpus "", gpus "--num_nodes 2", gpus "--num_gpus 2", gpus "--include a@b:0,2", gpus "--num_nodes=2 --num_gpus=4" })
  end)

  it("has no pipeline where Hugging Face's Trainer reads it", function()
    local folder = files.directory { ["z3.json"] = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}, '
                                                   .. '"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto"}',
                                     ["run.sh"] = "torchrun --nproc_per_node 8 run_clm.py --deepspeed z3.json --bf16\n" }
    local ids, result, all = judged(folder, "run.sh")
    assert.equal("?auto:?auto:?auto", ids, all)
    assert.same({ 1, 3 }, { reads.of(result).parallelism.pipeline, reads.of(result).training.zero })
    assert.truthy(all:find("from per_device_train_batch_size", 1, true))
  end)

  it("leaves the layers of a stage open where its partition_method weighs what is not known", function()
    local function stages(method)
      local folder = folder_of(8, "num_stages=4 partition_method=" .. method, '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1}')
      local handle = assert(io.open(folder .. "/train.py", "a"))
      handle:write("layers_per_stage = [8, 8, 7, 7]\n")
      handle:close()
      local _, result = judged(folder, "run.sh")
      return reads.of(result).layers_per_stage
    end
    assert.same({ { 8, 8, 7, 7 } }, { stages "type:DecoderLayer" })
    assert.is_nil(stages "parameters")
  end)
end)

-- A plan for DeepSpeed, and its request.
local function planned(changes)
  local request = spec.from_table(planning.merge({
    cluster = { gpus = 128, gpus_per_node = 8, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { layers = 79, hidden = 8192, heads = 64, kv_heads = 8, ffn = 28672, vocab = 128256 }, framework = "deepspeed",
    training = { tokens = "1T", sequence_length = 4096, global_batch_size = 512, micro_batch_size = 1, precision = "bf16",
                 sharding = "optimizer", recompute = "none" },
    parallelism = { pipeline = 4, tensor = 8, schedule = "1f1b" },
  }, changes or {}), ".")
  return planner.plan { request = request, policy = policy }, request
end

local alone = { pipeline = 1, tensor = 1, schedule = planning.none }
local moe = { model = { layers = 32, hidden = 4096, heads = 32, experts = 8, experts_per_token = 2, expert_ffn = 14336, ffn = planning.none },
              parallelism = { tensor = 1, pipeline = 8, expert = 4 } }

-- Without a pipeline, sharded.
local function small(parallelism)
  return { model = { layers = 32, hidden = 4096, heads = 32, kv_heads = 8, ffn = 11008, vocab = 32000 },
           training = { sharding = "parameters", sequence_length = 2048 }, parallelism = planning.merge(alone, parallelism) }
end

-- Where values stand in a launch: of its configuration behind colons, in Python behind "=" and in the list.
local function places(text)
  local list = {}
  local function add(from, value) list[#list + 1] = { from = from, value = value } end
  local json_from, json_to = text:match "<<'JSON'\n()", text:match "()\nJSON\n"
  local python_from, python_to = text:match "<<'PYTHON'\n()", text:match "()\n\n\ndef " or text:match "()\nPYTHON\n"
  for from, value in text:sub(1, json_to):gmatch("(): (%w+)", json_from) do add(from + 2, value) end
  for from, value in text:sub(1, json_to):gmatch(': "()(%w+)"', json_from) do add(from, value) end
  for from, value in text:sub(1, python_to):gmatch("=%s*()(%d+)", python_from) do add(from, value) end
  add(text:match("layers_per_stage = %[()(%d+)", python_from))
  return list
end

local others = { ["true"] = "false", fp32 = "fp16", bf16 = "fp16" }

describe("a launch of DeepSpeed", function()
  -- deepspeed/launcher/runner.py of 0.19.8, parse_resource_filter: run on two hosts of four slots
  it("has as many GPUs as --include names of the hostfile, and is refused for what the hostfile has not", function()
    local function with(include)
      local folder = files.directory {
        ["train.py"] = "import deepspeed\n", hostfile = "worker-0 slots=4\nworker-1 slots=4\n",
        ["ds_config.json"] = '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}',
        ["run.sh"] = "deepspeed --hostfile hostfile --include " .. include .. " train.py --deepspeed_config ds_config.json\n" }
      local ids, result, list = judged(folder, "run.sh")
      return ids, result.record and reads.of(result).gpus, list
    end
    for include, gpus in pairs { ["worker-0@worker-1:0,2"] = 6, ["worker-1:3"] = 1 } do
      local ids, counted = with(include)
      assert.same({ "", gpus }, { ids, counted })
    end
    local ids, _, list = with "worker-2"
    assert.same({ "bad_value", true }, { ids, list:find("no host worker-2", 1, true) ~= nil })
    ids, _, list = with "worker-1:0,4"
    assert.same({ "bad_value", true }, { ids, list:find("no slot 4 on worker-1, which has 4", 1, true) ~= nil })
  end)

  -- what DeepSpeed says and goes on (runtime/engine.py:2664: run); that fewer microbatches than stages idle is arithmetic
  it("is told in a note what DeepSpeed takes and does otherwise in a pipeline", function()
    local function notes(configuration, stages)
      local _, result = judged(folder_of(8, "num_stages=" .. stages .. " partition_method=type:Decoder", configuration), "run.sh")
      local list = {}
      for _, finding in ipairs(result.findings) do
        if finding.severity == "note" and finding.id:find "^deepspeed%." then list[#list + 1] = finding.id end
      end
      return list
    end
    local few, many = '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2}',
                      '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}'
    local overlaps = '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true}, '
                     .. '"data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 1, "overlap_comm": true}}'
    assert.same({ { "deepspeed.few_microbatches" }, {}, { "deepspeed.overlap" } }, { notes(few, 4), notes(many, 4), notes(overlaps, 4) })
    assert.same({}, notes(overlaps, 1))
  end)
end)

describe("a plan written for DeepSpeed", function()
  it("is another one, or none, when any of its values is changed", function()
    local tried, unseen = 0, {}
    for i, changes in ipairs { {}, moe, { training = { recompute = "full", gradients = "bf16" } }, small {}, small { context = 2 },
                               small { tensor = 4 } } do
      local plan, request = planned(changes)
      local text = assert(writer.write("deepspeed", plan, request))
      local object = json.decode(json.encode(json.shape(plan, schema)))
      local function is_seen(other)
        local result = lint.of(launch.read(files.write("other.sh", other), {})[1], {})
        return lint.count(result.findings) + #against.compare(result, reads.of(result), object, "plan.json") > 0
      end
      assert.is_false(is_seen(text), i .. text)
      for _, place in ipairs(places(text)) do
        local number = math.tointeger(tonumber(place.value))
        local other = number and tostring(2 * number + 1) or others[place.value]
        tried = tried + 1
        if not is_seen(text:sub(1, place.from - 1) .. other .. text:sub(place.from + #place.value)) then
          unseen[#unseen + 1] = string.format("%d: %s → %s", i, text:sub(place.from - 30, place.from + #place.value), other)
        end
      end
    end
    assert.same({}, unseen)
    assert.is_true(tried > 50, tried)
  end)

  it("is none where DeepSpeed has no word for it, and which format has one is said", function()
    local function problem(changes)
      local plan, request = planned(changes)
      assert.equal("planned", plan.status, plan.reasons[1] and plan.reasons[1].message)
      local text, why = writer.write("deepspeed", plan, request, function(framework)
        local asked = spec.laid(request, { framework = framework })
        return planner.plan { request = asked, policy = policy }, asked
      end)
      return not text and why or "written"
    end
    assert.equal("written", problem {})
    assert.matches("fp8 products %(megatron, ", problem { training = { precision = "fp8" } })
    assert.matches("moments in bf16", problem { training = { moments = "bf16" } })
    assert.matches("gradients in fp32 where nothing is sharded", problem { training = { sharding = "none", gradients = "fp32" } })
    assert.matches("its BF16_Optimizer shards it", problem { training = { sharding = "none", gradients = "bf16" } })
    assert.matches("a batch that grows", problem { training = { global_batch_size = { { 0, 128 }, { "50B", 256 } } } })
    assert.matches("recompute without a pipeline",
                   problem { parallelism = alone, training = { recompute = "full", sharding = "parameters" } })
    assert.matches("tensor parallelism beside context", problem { parallelism = { pipeline = 1, context = 2, schedule = planning.none },
                                                                  training = { sharding = "parameters" } })
  end)

  it("is none where DeepSpeed refuses it, and the plan says which rule", function()
    for rule, changes in pairs {
      ["deepspeed.zero"] = { training = { sharding = "gradients" } },
      ["deepspeed.context"] = { parallelism = { context = 2 } },
      ["deepspeed.expert_groups"] = planning.merge(moe, { parallelism = { expert = 8, tensor = 4 } }),
    } do
      local plan = planned(changes)
      assert.same({ "rejected", rule }, { plan.status, plan.reasons[1].id })
    end
  end)
end)

-- https://hjson.github.io/rfc.html, and the Python package hjson 3.1.0: run
describe("HJSON", function()
  local function of(text)
    local out = {}
    for _, entry in ipairs(hjson.read(text, "f").entries) do
      local value = entry.node.value
      if entry.node.kind == "array" then
        value = {}
        for i, each in ipairs(entry.node.entries) do value[i] = each.value end
      elseif entry.node.kind == "object" then value = entry.node.entries[1].key end
      out[#out + 1] = { entry.key, entry.node.kind, value, entry.line }
    end
    return out
  end

  it("is JSON with fewer signs", function()
    assert.same({ { "a", "number", 1, 1 }, { "b", "string", "two words, and }", 2 }, { "c", "boolean", true, 3 }, { "d e", "string", "x", 4 } },
                of 'a: 1, # one\nb: two words, and }\nc: true // yes\n"d e": \'x\'\n')
    assert.same({ { "a", "array", { 1, 2, "x y" }, 1 }, { "b", "object", "c", 4 }, { "d", "string", "1\n2", 5 } },
                of "{a: [1, 2,\nx y\n]\nb: {c: 1}\nd: '''1\n2''' }")
    assert.same({ { "a", "string", "1 2", 1 }, { "b", "number", 1e5, 2 }, { "c", "null", nil, 3 }, { "d", "number", -0.5, 3 } },
                of "a: 1 2\nb: 1e5\nc: null /* no */ d: -0.5")
  end)

  it("that is none is refused with its line", function()
    for text, want in pairs { ["{a: 1"] = "f:1: no HJSON, which DeepSpeed reads: an object that does not end",
                              ["{a 1}"] = "f:1: no HJSON, which DeepSpeed reads: no ':' behind the key a",
                              ["{\n'a\n': 1}"] = "f:2: no HJSON, which DeepSpeed reads: a string that does not end on its line",
                              ["{a: 1}\n}"] = "f:2: no HJSON, which DeepSpeed reads: more behind the object",
                              [("["):rep(100)] = "f:1: no HJSON, which DeepSpeed reads: '[' where a key is expected",
                              ["a: " .. ("["):rep(100)] = "f:1: no HJSON, which DeepSpeed reads: nested more than 64 deep" } do
      local good, problem = pcall(hjson.read, text, "f")
      assert.same({ false, want }, { good, problem.message })
    end
  end)
end)
