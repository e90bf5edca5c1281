-- SPDX-License-Identifier: Apache-2.0
-- frameworks_verdicts_spec.lua: lint, with the rules of Megatron's table, against what Megatron itself said of flags (tests/data/frameworks),
-- and plans for Megatron against its rules written down a second time, from its source: where each stands is said beside it.

local planning = require "planning"  -- first: it loads the module
local lint = require "pipeplan.analysis.lint.init"
local random_specs = require "random_specs"
local script = require "pipeplan.input.launch.megatron_script"

-- The findings of a launch with those flags on so many GPUs, errors alone: by id, and a list of them.
local function refused(gpus, flags, base)
  local text = string.format("torchrun --nproc_per_node %d pretrain_gpt.py %s %s\n", gpus, base or "", flags)
  local list = {}
  for _, finding in ipairs(lint.of(script.read(text, "case.sh")[1]).findings) do
    if finding.severity == "error" then
      list[finding.id] = true
      list[#list + 1] = finding.id
    end
  end
  return list
end

local function each_line(name, f)
  local count = 0
  for line in io.lines("tests/data/frameworks/" .. name) do
    local gpus, verdict, flags = line:match "^(%d+) (%S+) ?(.*)$"
    if gpus then
      count = count + 1
      f(math.tointeger(tonumber(gpus)), verdict, flags, line)
    end
  end
  return count
end

local base = "--num-layers 32 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
             .. "--micro-batch-size 1 --global-batch-size 128 --bf16"

describe("lint of Megatron's arguments", function()
  it("refuses nothing that megatron-core accepts, and what it refuses by the rule that it is about", function()
    local meant = 0
    local count = each_line("megatron_verdicts.txt", function(gpus, verdict, flags, line)
      local rules = refused(gpus, flags, base)
      if flags:find "%-%-rampup" then   -- taken, and then ignored: the run starts at the full batch
        assert.same({ line, "ignored_key" }, { line, table.unpack(rules) })
      elseif verdict == "accept" then assert.same({ line }, { line, table.unpack(rules) })
      else
        assert.is_true(#rules > 0, line)
        if verdict ~= "other" then
          meant = meant + 1
          assert.is_true(rules[verdict], line)
        end
      end
    end)
    assert.same({ 60, 16 }, { count, meant })
  end)

  it("refuses none of the runs that NVIDIA tests Megatron-LM with", function()
    local count = each_line("megatron_runs.txt", function(gpus, _, flags, line)
      assert.same({ line }, { line, table.unpack(refused(gpus, flags:match "^%S+ (.*)$")) })
    end)
    assert.equal(65, count)
  end)
end)

-- Rules 1 to 10 of Megatron-LM @d98e8a64 for a plan, from its source and not from the table.
local function broken(plan, request)
  local p, shape = plan.parallelism, request.model.shape
  local P, V, M = p.pipeline, 1, plan.microbatches
  local gpus = plan.gpus_used
  if gpus % (p.tensor * p.pipeline * p.context) ~= 0 then return "arguments.py:432" end
  if gpus % (p.pipeline * p.expert * p.expert_tensor) ~= 0 then return "parallel_state.py:882" end
  if plan.global_batch_size % (plan.micro_batch_size * p.data) ~= 0 or M < 1 then return "num_microbatches_calculator.py:381" end
  local groups = shape.attention == "mla" and shape.heads or shape.kv_heads or shape.heads
  if shape.heads % p.tensor ~= 0 or groups % p.tensor ~= 0 and p.tensor % groups ~= 0 then return "transformer_config.py:1446" end
  if p.expert > 1 and (shape.experts or 0) % p.expert ~= 0 then return "arguments.py:1657" end
  if p.context > 1 and plan.training.sequence_length % (2 * p.context) ~= 0 then return "arguments.py:1335" end
  local sum = 0
  for _, layers in ipairs(plan.layers_per_stage) do sum = sum + layers end
  if sum ~= shape.layers then return "layers" end
  if P == 1 then return plan.schedule ~= "none" and "schedule" or nil end
  if plan.schedule ~= "1f1b" then
    V = #plan.layers_per_stage // P
    if plan.schedule ~= "interleaved_1f1b" and plan.schedule ~= "interleaved_1f1b_overlap" then return "schedule" end
    local N = plan.microbatch_group_size or P
    if N < P or N > M or M % N ~= 0 and M % N < P then return "schedules.py:1161" end
  end
  -- pipeline_parallel_layer_layout.py:78-150: commas go, (…)*n is written out, then x*n
  local text = plan.megatron_layout:gsub(",", ""):gsub("%((.-)%)%*(%d+)", string.rep):gsub("(%a)%*(%d+)", string.rep)
  if text:find "[^EtmL|]" then return "characters of the layout" end
  local stages = {}
  for stage in (text .. "|"):gmatch "(.-)|" do stages[#stages + 1] = stage end
  if #stages ~= P * V then return "stages of the layout" end
  local all = table.concat(stages)
  if not all:find "^Et*m*L$" or select(2, all:gsub("t", "")) ~= shape.layers then return "order of the layout" end
  if select(2, all:gsub("m", "")) ~= (shape.mtp_layers or 0) then return "MTP of the layout" end
  for i, stage in ipairs(stages) do
    if select(2, stage:gsub("t", "")) ~= plan.layers_per_stage[i] then return "layers of the layout" end
    if stage:find "m" and i <= P * (V - 1) then return "MTP before the last chunk" end
  end
  if plan.schedule == "interleaved_1f1b_overlap" and (p.expert == 1 or (shape.mtp_layers or 0) > 1) then return "transformer_config.py:3002" end
end

it("every plan of random specs for Megatron is one that Megatron takes", function()
  local spec = require "pipeplan.input.spec"
  local planned, specs = 0, require "long" and 400 or 40
  for seed = 1, specs do
    local object = random_specs.any(random_specs.generator(seed))
    object.framework = "megatron"
    local good, result = pcall(planning.plan, object)
    if good and result.status == "planned" then
      planned = planned + 1
      assert.same({ seed }, { seed, broken(result, spec.from_table(object, ".")) })
    end
  end
  assert.is_true(planned > specs // 5)
end)
