-- SPDX-License-Identifier: Apache-2.0
-- bridge_spec.lua: overrides of Megatron-Bridge: what lint says of each is what Bridge's own code says (tests/data/bridge_cases.txt;
-- tests/torch/bridge_plans_test.py asks it), and which plans are not written for it.

local planning = require "planning"  -- first: it loads the module
local files = require "policy_files"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"
local planner = require "pipeplan.plan.init"
local policy = require "pipeplan.policy.load".load { date = "2026-11-27" }
local reads = require "pipeplan.analysis.lint.reads"
local spec = require "pipeplan.input.spec"
local writer = require "pipeplan.report.launch.init"

teardown(files.remove)

-- The base without what a case says itself.
local function command(gpus, base, overrides)
  local kept = {}
  for word in base:gmatch "%S+" do
    if not overrides:find(word:match "^[^=]+=", 1, true) then kept[#kept + 1] = word end
  end
  return string.format("torchrun --nproc_per_node %s scripts/training/run_recipe.py --recipe vanilla_gpt_pretrain_config --mode pretrain %s %s\n",
                       gpus, table.concat(kept, " "), overrides)
end

describe("overrides of Megatron-Bridge", function()
  it("are refused by lint where Bridge refuses them, for that reason, and nowhere else", function()
    local base, tried, wrong, verdicts = nil, 0, {}, {}
    for line in io.lines "tests/data/bridge_cases.txt" do
      base = base or line:match "^BASE (.*)$"
      local gpus, verdict, want, name, overrides = line:match "^(%d+) (%a+):?(%S*) (%S+) (.*)$"
      if gpus then
        tried, verdicts[verdict] = tried + 1, (verdicts[verdict] or 0) + 1
        local experts, rest = overrides:match "^ETP=(%d+) (.*)$"
        local result = lint.of(launch.read(files.write("bridge.sh", command(gpus, base, rest or overrides)), {})[1], {})
        local ids, list = {}, {}
        for _, finding in ipairs(result.findings) do
          if finding.severity ~= "note" then ids[#ids + 1] = (finding.severity == "warning" and "?" or "") .. finding.id end
          list[#list + 1] = finding.id .. ": " .. finding.message
        end
        local read = experts and reads.of(result).parallelism.expert_tensor
        if table.concat(ids, " ") ~= want then wrong[#wrong + 1] = name .. ": " .. table.concat(list, "; ") end
        if experts and read ~= math.tointeger(tonumber(experts)) then wrong[#wrong + 1] = name .. ": expert TP " .. tostring(read) end
      end
    end
    assert.same({}, wrong)
    assert.is_true(tried > 50 and verdicts.accept > 20 and verdicts.reject > 20, tried)
  end)

  -- scripts/training/recipe_runner.py: sync_model_dataset_sequence_length; recipes/gpt/h100/vanilla_gpt.py: dataset=GPTDatasetConfig(seq_length=1024)
  it("have the sequence of the data set, whatever the model's own says", function()
    local base = "model.num_layers=4 model.hidden_size=64 model.num_attention_heads=8 train.global_batch_size=64 train.micro_batch_size=1 "
    for options, want in pairs {
      ["dataset.seq_length=2048"] = "2048", ["-sl 8192"] = "8192", ["--seq_length 512"] = "512", [""] = "1024",
      ["dataset.seq_length=2048 model.seq_length=2048"] = "2048", ["dataset.seq_length=2048 model.seq_length=4096"] = "2048 ignored_key",
      ["model.seq_length=4096 dataset.seq_length=2048"] = "2048 ignored_key", ["model.seq_length=4096"] = "1024 ignored_key",
      ["model.seq_length=1024"] = "1024",
    } do
      local result = lint.of(launch.read(files.write("bridge.sh", command(8, base, options)), {})[1], {})
      local told = tostring(reads.of(result).training.sequence_length)
      for _, finding in ipairs(result.findings) do
        if finding.severity ~= "note" then told = told .. " " .. finding.id end
      end
      assert.equal(want, told, options)
    end
  end)

  -- scripts/training/run_recipe.py of NVIDIA-NeMo/Megatron-Bridge @067f987d: _collect_overrides ends with "Unknown option", and its parser has
  -- allow_abbrev=False
  it("stand beside options of its runner, and one that it does not have ends it", function()
    local function found(options)
      local base = "model.num_layers=4 model.hidden_size=64 model.num_attention_heads=8 train.global_batch_size=64 train.micro_batch_size=1 "
      local result = lint.of(launch.read(files.write("bridge.sh", command(8, base, options)), {})[1], {})
      local list = {}
      for _, finding in ipairs(result.findings) do
        if finding.severity == "error" then list[#list + 1] = finding.id .. " " .. tostring(finding.key) .. " " .. tostring(finding.nearest) end
      end
      return list, reads.of(result).parallelism.tensor
    end
    assert.same({ {}, 2 }, { found "--tensor_model_parallel_size 2 --lr 1e-4 --dry-run --step-func gpt_step --save_dir=/tmp/x" })
    assert.same({ {}, 1 }, { found "--dump-env --min_lr 1e-5 -mb 1" })
    assert.same({ "unknown_key --dump --dump-env" }, (found "--dump"))
    assert.same({ "unknown_key --use-distributed-optimizer nil" }, (found "--use-distributed-optimizer"))
    assert.same({ "unknown_key --save-dir --save_dir" }, (found "--save-dir /tmp/x"))
  end)

  -- src/megatron/bridge/training/utils/omegaconf_utils.py: parse_hydra_overrides hands all to Hydra, which sets one after the other
  it("are taken back by a later null", function()
    local function virtual(overrides)
      local base = "model.num_layers=16 model.hidden_size=64 model.num_attention_heads=8 train.global_batch_size=64 train.micro_batch_size=1 "
                   .. "model.pipeline_model_parallel_size=4 "
      return reads.of(lint.of(launch.read(files.write("bridge.sh", command(8, base, overrides)), {})[1], {})).parallelism.virtual
    end
    assert.equal(2, virtual "model.virtual_pipeline_model_parallel_size=2")
    local name = "model.virtual_pipeline_model_parallel_size="
    assert.equal(virtual "", virtual(name .. "2 " .. name .. "4 " .. name .. "null"))
    assert.equal(2, virtual(name .. "null " .. name .. "2"))
  end)

  it("are not written where Bridge has none, and what has is said", function()
    local function problem(changes)
      local request = spec.from_table(planning.merge({
        cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } }, framework = "megatron-bridge",
        model = { layers = 48, hidden = 4096, heads = 32, ffn = 16384, vocab = 32000 },
        training = { tokens = "100B", sequence_length = 4096, global_batch_size = 256, precision = "bf16" },
        parallelism = { pipeline = 2, tensor = 2, schedule = "1f1b" },
      }, changes), ".")
      local function plan_for(framework)
        local asked = spec.laid(request, { framework = framework })
        return planner.plan { request = asked, policy = policy }, asked
      end
      local text, why = writer.write("bridge", planner.plan { request = request, policy = policy }, request, plan_for)
      return not text and why or "written"
    end
    assert.equal("written", problem {})
    assert.matches("a batch that grows in steps %(megatron can%)", problem { training = { global_batch_size = { { 0, 128 }, { "50B", 256 } } } })
    assert.matches("1024 learned positions beside sequences of 4096", problem { model = { learned_positions = 1024 } })
    assert.matches("there is no plan: .* %(torchtitan, primus can%)$", problem { parallelism = { schedule = "zb_h1" } })
  end)
end)
