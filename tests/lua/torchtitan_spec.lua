-- SPDX-License-Identifier: Apache-2.0
-- torchtitan_spec.lua: command lines of torchtitan: what lint says of each is what torchtitan's own code says (tests/data/torchtitan_cases.txt;
-- tests/torch/torchtitan_plans_test.py asks it), and its models have as many parameters as it builds.

require "planning"  -- first: it loads the module
local engine = require "engine"
local files = require "policy_files"
local frameworks = require "pipeplan.catalog.frameworks"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"
local models = require "pipeplan.catalog.frameworks.torchtitan_models"
local reads = require "pipeplan.analysis.lint.reads"

teardown(files.remove)

local function command(options, gpus)
  local model = options:find("--module", 1, true) and "" or "--module llama3 --config llama3_debugmodel "
  return string.format("torchrun --nproc_per_node %d -m torchtitan.train %s%s\n", gpus, model, options)
end

-- Errors with their messages, and ids of all findings above a note, ? before those of warnings.
local function judged(text)
  local result = lint.of(launch.read(files.write("titan.sh", text), {})[1], {})
  local list, ids = {}, {}
  for _, finding in ipairs(result.findings) do
    if finding.severity == "error" then list[#list + 1] = finding.id .. ": " .. finding.message end
    if finding.severity ~= "note" then ids[#ids + 1] = (finding.severity == "warning" and "?" or "") .. finding.id end
  end
  return list, result, table.concat(ids, " ")
end

local function write_programs()
  local programs = {}
  for _, name in ipairs { "zb_h1", "zb_h2", "v_half", "interleaved_1f1b" } do
    local schedule = engine.schedule { kind = name, ranks = 4, microbatches = 8, virtual = name:find "^inter" and 2 or nil }
    local lines = {}
    for rank = 0, 3 do lines[rank + 1] = schedule:csv(rank) end
    programs[name .. ".csv"] = table.concat(lines, "\n") .. "\n"
  end
  return files.directory(programs)
end

describe("a command line of torchtitan", function()
  it("is refused by lint where torchtitan refuses it, for that reason, and nowhere else", function()
    local folder, tried, wrong = write_programs(), 0, {}
    for line in io.lines "tests/data/torchtitan_cases.txt" do
      local gpus, want, name, options = line:match "^(%d+) %a+(%S*) (%S+) (.*)$"
      if gpus then
        tried = tried + 1
        local list, result, ids = judged(command(options:gsub("{csv}", folder), gpus))
        if ids ~= want:gsub("^:", "") then wrong[#wrong + 1] = name .. ": " .. ids .. ": " .. table.concat(list, "; ") end
        if #result.undecided > 0 then wrong[#wrong + 1] = name .. " is undecided: " .. table.concat(result.undecided, ", ") end
      end
    end
    assert.same({}, wrong)
    assert.is_true(tried >= 70)
  end)

  -- trainer.py:416: less than 0 is the local batch × DP, 0 is refused; a sequence has tokens
  it("has a batch of at least one sequence, and sequences of at least one token", function()
    for options, want in pairs { ["--training.global_batch_size -5"] = "", ["--training.global_batch_size 0"] = "bad_value",
                                 ["--training.seq_len 0"] = "bad_value", ["--training.seq_len -5"] = "bad_value",
                                 -- distributed/pipeline_parallel.py:223-257 divides layers by it
                                 ["--parallelism.pipeline_parallel_layers_per_stage 0"] = "bad_value",
                                 ["--training.local_batch_size 9999999999999999999"] = "bad_value" } do
      local _, _, ids = judged(command(options, 8))
      assert.equal(want, ids, options)
    end
  end)

  it("amounts to what its configuration function sets, where it does not say otherwise", function()
    local text = "torchrun --nproc_per_node 8 --nnodes 4 -m torchtitan.train --module llama3 --config llama3_70b "
    local _, result = judged(text .. "--training.disable_cuda_graphs --parallelism.pipeline_parallel_degree 2 activation_checkpoint:none")
    local read = reads.of(result)
    -- llama3_70b: TP 8, sequences of 8,192, a local batch of 8 (torchtitan/models/llama3/config_registry.py)
    assert.same({ 32, 8, 2, 2, 8, 8192, "1f1b", "none" },
                { read.gpus, read.parallelism.tensor, read.parallelism.pipeline, read.parallelism.data, read.microbatches,
                  read.training.sequence_length, read.schedule, read.training.recompute })
    assert.same({ 40, 40 }, read.layers_per_stage)
  end)

  it("says where it was read wrongly by whoever wrote it", function()
    local parts = "--parallelism.module_fqns_per_model_part tok_embeddings,layers.0,layers.1,layers.2 layers.3,layers.4,layers.5,norm,lm_head "
    local start = "--training.disable_cuda_graphs --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule 1F1B "
    assert.truthy(judged(command(start .. parts .. "activation_checkpoint:full", 8))[1]:find("class_in_list", 1, true))
    assert.same({}, (judged(command(start .. parts .. "--training.steps 5 activation_checkpoint:full", 8))))
    local gap = parts:gsub("layers.1,", "")
    assert.truthy(judged(command(start .. gap, 8))[1]:find("no part has layers.1", 1, true))
    local _, result = judged(command(start .. "--training.global_batch_size 64", 8))
    local warned
    for _, finding in ipairs(result.findings) do warned = warned or finding.id == "torchtitan.accumulation" end
    assert.is_true(warned)
  end)
end)

-- counted of the meta modules that torchtitan 0.3.0 builds: model_registry(flavor).model.build()
local built = { llama3_debugmodel = 6163712, llama3_8b = 8030261248, llama3_70b = 70553706496, llama3_405b = 405853388800, qwen3_0_6b = 596049920,
                qwen3_1_7b = 1720574976, qwen3_14b = 14768307200, qwen3_32b = 32762123264, qwen3_30b_a3b = 30532122624,
                deepseek_v3_16b = 15706484224, deepseek_v3_671b = 671026404352, deepseek_v3_671b_float8 = 671026404352 }

describe("the models of torchtitan's table", function()
  it("have as many parameters as torchtitan builds", function()
    for _, model in ipairs(models) do
      assert.equal(built[model.config], engine.model.parameters(model.shape).total, model.config)
    end
  end)

  it("set keys that there are", function()
    local known = {}
    for _, key in ipairs(frameworks.find("torchtitan").keys) do known[key.key] = true end
    for _, model in ipairs(models) do
      for key in pairs(model.sets) do assert.is_true(known[key], key) end
    end
  end)
end)
