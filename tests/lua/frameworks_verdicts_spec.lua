-- frameworks_verdicts_spec.lua: the rules of Megatron's table against what Megatron itself said of flags (tests/data/frameworks), and plans for
-- Megatron against its rules written down a second time, from its source: where each stands is said beside it.

local planning = require "planning"  -- first: it loads the module
local framework = require "pipeplan.plan.framework"
local frameworks = require "pipeplan.catalog.frameworks"
local random_specs = require "random_specs"
local vocabulary = require "pipeplan.vocabulary"

local megatron = frameworks.find "megatron"
local by_key = {}
for _, key in ipairs(megatron.keys) do by_key[key.key] = key end

-- { "--flag", "value", … } of a line.
local function words(line)
  local out = {}
  for word in line:gmatch "%S+" do out[#out + 1] = (word:gsub("'", "")) end  -- no quoted word of these files has a space
  return out
end

-- Flags → what they say of a spec, by the table's keys, with its defaults.
local function said(list)
  local values = { ["training.micro_batch_size"] = 1, ["training.precision"] = "bf16", ["model.layers"] = 32, ["model.hidden"] = 1024,
                   ["model.heads"] = 16, ["training.sequence_length"] = 2048 }
  local present = {}
  for i, word in ipairs(list) do
    present[word] = true
    local key = by_key[word]
    if key and key.field then
      local value
      if key.type == "flag" then value = key.present else value = math.tointeger(tonumber(list[i + 1])) or list[i + 1] end
      if key.key == "--num-layers-per-virtual-pipeline-stage" then present.layers_a_chunk = value
      else values[key.field] = value end
    end
  end
  for _, key in ipairs(megatron.keys) do
    if key.field and values[key.field] == nil then values[key.field] = key.default_of and values[key.default_of] or key.default end
  end
  return values, present
end

-- The record that rules read, of so many GPUs and those flags.
local function record_of(gpus, list, batch)
  local values, present = said(list)
  local record = {
    gpus = gpus, heads = values["model.heads"], experts = values["model.experts"] or 0, mtp_layers = values["model.mtp_layers"],
    query_groups = present["--group-query-attention"] and values["model.kv_heads"] or values["model.heads"],
    sequence_length = values["training.sequence_length"], micro_batch_size = values["training.micro_batch_size"],
    precision = values["training.precision"], recompute_kind = values["training.recompute"] or "none", recomputes_moe = false,
    microbatch_group = values["plan.microbatch_group_size"],
  }
  for name, field in pairs(vocabulary.parallelism) do record[field] = values["parallelism." .. name] end
  record.virtual = record.virtual or 1
  if present.layers_a_chunk then
    record.virtual = values["model.layers"] // record.pipeline_parallel // present.layers_a_chunk
  elseif type(values["plan.megatron_layout"]) == "string" and record.virtual == 1 then
    local expanded = values["plan.megatron_layout"]:gsub("%((.-)%)%*(%d+)", string.rep)
    record.virtual = (select(2, expanded:gsub("|", "")) + 1) // record.pipeline_parallel
  end
  record.expert_bias = record.experts > 0 and not present["--disable-bias-linear"]
  record.schedule = record.pipeline_parallel == 1 and "none" or record.virtual > 1
    and (present["--overlap-moe-expert-parallel-comm"] and "interleaved_1f1b_overlap" or "interleaved_1f1b") or "1f1b"
  record.data_parallel = gpus // (record.tensor_parallel * record.context_parallel * record.pipeline_parallel)
  record.global_batch_size = values["training.global_batch_size"] or batch or record.micro_batch_size * record.data_parallel
  record.microbatches = record.data_parallel > 0 and record.global_batch_size // (record.micro_batch_size * record.data_parallel) or 0
  return record
end

local function holding(record)
  local list = {}
  for _, rule in ipairs(megatron.rules) do
    if framework.holds(rule, record) then list[rule.id] = true; list[#list + 1] = rule.id end
  end
  return list
end

local function each_line(name, f)
  local count = 0
  for line in io.lines("tests/data/frameworks/" .. name) do
    local gpus, verdict, flags = line:match "^(%d+) (%S+) ?(.*)$"
    if gpus then
      count = count + 1
      f(math.tointeger(tonumber(gpus)), verdict, words(flags), line)
    end
  end
  return count
end

describe("rules of Megatron", function()
  it("refuse nothing that megatron-core accepts, and refuse what they are about", function()
    local meant = 0
    local count = each_line("megatron_verdicts.txt", function(gpus, verdict, flags, line)
      local rules = holding(record_of(gpus, flags, 128))
      if verdict == "accept" then assert.same({ line }, { line, table.unpack(rules) })
      elseif verdict ~= "other" then
        meant = meant + 1
        assert.is_true(rules[verdict], line)
      end
    end)
    assert.same({ 47, 7 }, { count, meant })
  end)

  it("refuse none of the runs that NVIDIA tests Megatron-LM with", function()
    local count = each_line("megatron_runs.txt", function(gpus, _, flags, line)
      assert.same({ line }, { line, table.unpack(holding(record_of(gpus, flags))) })
    end)
    assert.equal(33, count)
  end)
end)

-- Rules 1 to 10 of Megatron-LM @d98e8a64 for a plan, from its source and not from the table.
local function broken(plan, request)
  local p, shape = plan.parallelism, request.model.shape
  local P, V, M = p.pipeline, 1, plan.microbatches
  local gpus = plan.cluster.gpus
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

it("every plan of 200 random specs for Megatron is one that Megatron takes", function()
  local spec = require "pipeplan.input.spec"
  local planned = 0
  for seed = 1, 200 do
    local object = random_specs.any(random_specs.generator(seed))
    object.framework = "megatron"
    local good, result = pcall(planning.plan, object)
    if good and result.status == "planned" then
      planned = planned + 1
      assert.same({ seed }, { seed, broken(result, spec.from_table(object, ".")) })
    end
  end
  assert.is_true(planned > 40)
end)
