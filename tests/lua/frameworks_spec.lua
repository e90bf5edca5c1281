-- SPDX-License-Identifier: Apache-2.0
-- frameworks_spec.lua: the tables of frameworks have the shape that stdlib/catalog/frameworks.lua says, and plans obey them. Each case names
-- the line of the framework's source that decides it.

local planning = require "planning"  -- first: it loads the module
local costs = require "lua.costs"
local engine = require "engine"
local facts = require "pipeplan.analysis.lint.facts"
local fields = require "pipeplan.input.fields"
local framework = require "pipeplan.plan.framework"
local frameworks = require "pipeplan.catalog.frameworks"
local overheads = require "pipeplan.catalog.overheads"
local vocabulary = require "pipeplan.vocabulary"

local plan, has = planning.plan, planning.has

local function set(list)
  local out = {}
  for _, value in ipairs(list) do out[value] = true end
  return out
end

local function known(object, names, where)
  local allowed = set(names)
  for name in pairs(object) do assert.is_true(allowed[name] or math.type(name) == "integer", where .. ": " .. tostring(name)) end
end

local function said(text, where)
  assert.is_true(type(text) == "string" and #text > 3, where .. " has no source")
end

-- What only a finished plan has, under the names of its JSON.
local of_plans = set { "megatron_layout", "microbatch_group_size", "sequence_parallel", "activation_limit_chunks", "local_batch_size",
                       "overlap_alone" }

local function is_field(path)
  local group, name = path:match "^(%w+)%.(.+)$"
  if group == "plan" then return of_plans[name] end
  if group == "model" then return set(engine.model.fields)[name] or name == "max_positions" end
  return fields.by_path[path] ~= nil
end

describe("the table of a framework", function()
  for _, entry in ipairs(frameworks.entries) do
    it("holds what is known, and nothing else: " .. entry.name, function()
      local name = entry.name
      assert.is_table(entry.keys)   -- and so the second part of the table is there
      known(entry, { "name", "title", "versions", "schedules", "names", "rounds", "has", "layers", "sharding", "overlap", "recompute", "defaults",
                     "loss", "weight_gradients",
                     "recipes", "spell",
                     "communicators", "host_floor", "keys", "gone", "rules", "plan_rules", "notes", "source", "base", "chosen",
                     "argparse", "facts", "required", "writes", "unplanned", "unsaid", "told",
                     "program", "gpus_elsewhere", "accepts", "unverified", "strangers" }, name)
      known(entry.has, { "tensor", "context", "expert", "expert_tensor", "sequence_parallel", "tied_embeddings" }, name)
      known(entry.names, { "microbatches", "pipeline" }, name)
      known(entry.sharding, { "with_pipeline", "alone", "gradients", "in_place", "master", "bucket", "bucket_per_rank", "source" }, name)
      known(entry.overlap, { "pipeline", "gradients", "parameters", "expert", "tensor", "data", "source" }, name)
      local hidden = entry.overlap.data or 0
      assert.is_true(hidden >= 0 and hidden <= 1 and (hidden == 0 or entry.overlap.gradients ~= nil), name)
      known(entry.defaults, { "expert_tensor", "zero", "moments", "gradients", "precision", "sequence_parallel", "linear_inputs", "dispatcher",
                              "source" }, name)
      known(entry.communicators, { "measured", "source" }, name)
      assert.is_true(pcall(engine.memory.stages, { model = { layers = 1, hidden = 64, vocab = 256, heads = 4, ffn = 128 },
        training = costs.bf16(), layout = {}, communicators = overheads.communicators(entry.communicators, 8) }), name)
      assert.is_true(#entry.versions > 0 and #entry.communicators > 0)
      for _, part in ipairs { "layers", "sharding", "overlap", "defaults", "communicators" } do said(entry[part].source, name .. " " .. part) end
      known(entry.loss or {}, { "how", "eager", "source" }, name)
      for _, way in ipairs { (entry.loss or {}).how, (entry.loss or {}).eager } do
        assert.truthy((" " .. table.concat(engine.cost.losses, " ") .. " "):find(" " .. way .. " ", 1, true), name)
      end
      known(entry.weight_gradients or {}, { "how", "source" }, name)
      for _, part in ipairs { "host_floor", "recompute", "loss", "weight_gradients" } do
        if entry[part] then said(entry[part].source, name .. " " .. part) end
      end
      said(entry.source, name)
    end)

    it("says what a layer's launches take, where that is known: " .. entry.name, function()
      local floor = entry.host_floor
      if not floor then return end
      known(floor, { "forward", "backward", "moe_forward", "moe_backward", "expert_forward", "expert_backward", "waiting", "gap", "source" }, entry.name)
      for _, what in ipairs { "", "moe_", "expert_" } do
        local forward, backward = floor[what .. "forward"], floor[what .. "backward"]
        assert.is_true(forward > 1e-4 and backward >= forward and backward < 20e-3, what)   -- some ten to a thousand launches of 9 us
      end
      assert.is_true(floor.moe_forward >= floor.forward and floor.moe_backward >= floor.backward)
      assert.is_true(floor.waiting >= 0 and floor.waiting <= 1)
    end)

    it("names schedules, layers and fields that there are: " .. entry.name, function()
      local schedules, ways = set(vocabulary.schedules), set { "any", "layout", "names", "ends", "remainder_first", "even" }
      for name, how in pairs(entry.schedules) do
        assert.is_true(schedules[name], name)
        known(how, { "flag", "since", "state", "csv", "name", "layers", "alone" }, entry.name .. " " .. name)
        local layers = frameworks.layers(entry, name)
        known(layers, { "how", "key", "first", "last", "multiple", "source" }, entry.name .. " " .. name)
        assert.is_true(ways[layers.how], layers.how)
        said(layers.source, name)
      end
      local seen = {}
      for _, key in ipairs(entry.keys) do
        known(key, { "key", "field", "type", "values", "default", "default_of", "present", "written", "silent", "wants", "note", "base", "value", "same",
                     "least", "positive", "unset", "needed", "unread", "assumed" }, key.key)
        known(key.unread or {}, { "field", "what" }, key.key)
        known(key.assumed or {}, { "field", "value", "why" }, key.key)
        assert.is_true(not key.assumed or is_field(key.assumed.field), key.key)
        assert.is_nil(seen[key.key], key.key)
        seen[key.key] = true
        if key.field then assert.is_true(is_field(key.field), key.key .. ": " .. key.field) end
        if key.default_of then assert.is_true(is_field(key.default_of), key.key) end
        assert.is_true(set { "always", "differs", "pipeline", "never" }[key.written], key.key)
      end
      local bases = {}
      for _, key in ipairs(entry.keys) do bases[key.base or key.key] = true end
      if not entry.base then
        for name, key in pairs(entry.facts or {}) do assert.is_true(bases[key], name) end
        for key, other in pairs(entry.required or {}) do assert.is_true(bases[key] and (other == true or bases[other]), key) end
      end
      for _, key in ipairs(entry.keys) do assert.is_true(key.wants == nil or seen[key.wants], key.key) end
      for _, gone in ipairs(entry.gone) do
        known(gone, { "key", "now", "how", "source" }, gone.key)
        assert.is_true(set { "refused", "unrecognized", "renamed", "ignored" }[gone.how], gone.key)
        said(gone.source, gone.key)
      end
    end)

    it("has rules over fields that there are, each with its source: " .. entry.name, function()
      local operators, seen = set { "under", "at_most", "over", "at_least", "equal", "one_of", "multiple_of", "not_multiple_of" }, {}
      for _, rule in ipairs(entry.rules) do
        assert.is_nil(seen[rule.id], rule.id)
        seen[rule.id] = true
        said(rule.source, rule.id)
        said(rule.message, rule.id)
        for _, condition in ipairs(frameworks.conditions(rule)) do
          assert.is_true(operators[condition.op], rule.id .. " " .. condition.op)
          for _, field in ipairs { condition.field, type(condition.value) == "table" and condition.value.field or condition.field } do
            assert.is_true((vocabulary.by_name[field] or framework.fields[field]) ~= nil
                           or rule.by == "engine" and facts.is_known(field), rule.id .. " " .. field)
          end
        end
      end
    end)
  end

  it("has a rule against each kind of parallelism that a framework lacks", function()
    for _, entry in ipairs(frameworks.entries) do
      for _, kind in ipairs { "tensor", "context", "expert", "expert_tensor" } do
        local record = { architecture = "moe", pipeline_parallel = 2, tensor_parallel = 1, context_parallel = 1, expert_parallel = 1,
                         expert_tensor_parallel = 1, [kind .. "_parallel"] = 2 }
        local held = entry.has[kind]
        for _, rule in ipairs(not held and entry.rules or {}) do
          held = held or rule.id:find("." .. kind, 1, true) ~= nil and framework.holds(rule, record)
        end
        assert.is_true(held, entry.name .. " " .. kind)
      end
    end
  end)

  -- PyTorch's names of what splits a backward are those of the engine's schedules
  it("knows every schedule of PyTorch whose backward is split", function()
    local torch = frameworks.find "torch"
    for _, rule in ipairs(torch.rules) do
      if rule.id == "torch.split_backward_recompute" then
        local named = set(rule.schedule)
        for name in pairs(torch.schedules) do
          assert.equal(engine.schedule.traits(name).split_backward, named[name] or false, name)
        end
      end
    end
  end)
end)

local function spec(gpus, model, training, parallelism, name, more)
  return planning.merge({ cluster = { gpus = gpus, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                          model = model, parallelism = parallelism,
                          training = planning.merge({ tokens = "1T", sequence_length = 4096, micro_batch_size = 1, recompute = "none",
                                                      sharding = "optimizer" }, training),
                          framework = name }, more)
end

local function small_moe(layers) return { architecture = "moe", total = "16B", active = "3B", layers = layers } end

local function first(result, id)
  assert.same({ "rejected", id }, { result.status, result.reasons[1].id })
  return result.reasons[1].message
end

describe("expert tensor parallelism that nobody states", function()
  local mixtral = "examples/models/mixtral-8x7b.json"
  local function at(name, more)
    return plan(spec(16, mixtral, { tokens = "1B", sequence_length = 2048, global_batch_size = 128 },
                     planning.merge({ tensor = 2, expert = 8, pipeline = 1 }, more), name))
  end

  -- NVIDIA/Megatron-LM arguments.py:588, model_parallel_config.py:507. A run of it took 54,251 MiB of weights, gradients and optimizer:
  -- P 1, TP 2, EP 8 on 16 GPUs; with ETP 1 it would not have fitted
  it("is TP in Megatron", function()
    local result = at "megatron"
    assert.same({ "planned", 2 }, { result.status, result.parallelism.expert_tensor })
    local rank = result.memory.ranks[1]
    local state = rank.parameters_bytes + rank.gradients_bytes + rank.optimizer_bytes
    assert.near(54251, state / 2 ^ 20, 0.01 * 54251)
    assert.equal("refused", at("megatron", { expert_tensor = 1 }).status)
  end)

  it("is one in DeepSpeed, and where no framework is named, which is said", function() -- deepspeed/utils/groups.py, expert_tensor_parallel_world_size
    for _, name in ipairs { "deepspeed", false } do
      local result, told = at(name or nil), nil
      assert.equal("refused", result.status)
      for _, assumption in ipairs(result.assumptions) do
        if assumption.field == "parallelism.expert_tensor" then told = assumption.value end
      end
      assert.equal(1, told)
    end
  end)

  -- 8 GPUs of TP 2 hold no EP 8 × ETP 2: megatron/core/parallel_state.py:882
  it("counts where GPUs have to divide", function()
    local request = spec(8, mixtral, { global_batch_size = 128 }, { tensor = 2, expert = 8, pipeline = 1 }, "megatron")
    local good, problem = pcall(plan, request)
    assert.is_false(good)
    assert.matches("expert_tensor 2 (as TP, by default) = 16; nearest: 16", problem.message, 1, true)
  end)

  it("is written where the plan has another", function()
    local function flags(more)
      local result = plan(spec(64, mixtral, { sequence_length = 2048, global_batch_size = 512 },
                               planning.merge({ tensor = 2, expert = 8, pipeline = 2 }, more), "megatron"))
      return table.concat(result.framework_flags, " ")
    end
    assert.matches("--expert-tensor-parallel-size 1", flags { expert_tensor = 1 }, 1, true)
    assert.is_nil(flags {}:find("expert-tensor", 1, true))
    -- off unless written: arguments.py, --use-distributed-optimizer, --sequence-parallel; 0.1 unless written: transformer_config.py:188,191
    assert.equal("--use-distributed-optimizer --sequence-parallel --hidden-dropout 0 --attention-dropout 0", flags {})
    assert.equal("--use-distributed-optimizer --hidden-dropout 0 --attention-dropout 0", flags { sequence = false })
  end)
end)

describe("heads over TP and tokens over CP", function()
  local function at(name, shape, parallelism, training)
    return plan(spec(64, shape, planning.merge({ global_batch_size = 512, recompute = "full" }, training),
                     planning.merge({ pipeline = 4 }, parallelism), name))
  end
  local few_keys = { architecture = "dense", layers = 80, hidden = 8192, heads = 64, kv_heads = 4, ffn = 28672, vocab = 128256 }

  -- colossalai/shardformer/policies/llama.py and nanotron's models/llama.py:352 assert it; DTensor of PyTorch 2.13: "Cannot unflatten
  -- unevenly sharded tensor: output dimension 0 (size 4) is not evenly divisible by mesh dimension 0 (size 8)". Megatron repeats them
  it("are repeated by none but Megatron and its kin", function()
    for _, name in ipairs { "torchtitan", "nanotron", "colossalai" } do
      assert.matches("TP 8 does not divide 4$", first(at(name, few_keys, { tensor = 8 }), name .. ".query_groups"))
      assert.equal("planned", at(name, few_keys, { tensor = 4 }).status)
    end
    assert.equal("planned", at("megatron", few_keys, { tensor = 8 }).status)
  end)

  -- megatron-core 0.19.2 ssm/mamba_mixer.py:260-268, ssm/mamba_context_parallel.py:106-129: 8 groups over TP 16, and 8 over TP 8 and CP 3
  it("are those of a mixer too", function()
    local layers = {}
    for i = 1, 80, 2 do layers[#layers + 1] = i end
    local hybrid = planning.merge(few_keys, { kv_heads = 8, kinds = { { attention = "mamba2", layers = layers, key_heads = 8, key_dim = 128,
                                                                        value_heads = 128, value_dim = 64, conv_kernel = 4 } } })
    assert.equal("TP 16 does not divide the 8 groups of a mixer's heads", first(at(nil, hybrid, { tensor = 16 }), "engine.tensor_heads"))
    assert.equal("planned", at(nil, hybrid, { tensor = 8 }).status)
    local function three(name)
      return plan(spec(96, hybrid, { global_batch_size = 512, sequence_length = 6144, recompute = "full" },
                       { pipeline = 4, tensor = 8, context = 3 }, name))
    end
    assert.matches("CP 3 does not divide what TP 8 leaves of a mixer's 128 heads in 8 groups", first(three "megatron", "megatron.mixer_context"))
    assert.equal("planned", three(nil).status)
  end)

  it("are whole on each rank, whatever runs them", function()
    for _, name in ipairs { "nanotron", "colossalai", false } do
      assert.equal("CP 8 does not divide a sequence of 4100 tokens",
                   first(at(name or nil, few_keys, { context = 8 }, { sequence_length = 4100 }), "engine.context_sequence"))
    end
  end)

  it("are shared by whole groups, where there are replicas", function()
    local function of(replicas) return at(nil, few_keys, { tensor = 4, data = 4 }, { replicas = replicas, sharding = "parameters" }) end
    assert.equal("3 replicas do not divide DP 4 × CP 1", first(of(3), "engine.replicas"))
    assert.equal("planned", of(2).status)
  end)

  it("have experts cut apart from the rest only where a framework can", function()
    for name, etp in pairs { nanotron = 2, colossalai = 2, ["zero-bubble"] = 1 } do
      local id = name:gsub("-", "_") .. ".expert_tensor"
      first(plan(spec(64, small_moe(16), { global_batch_size = 512 }, { pipeline = 2, tensor = 2, expert_tensor = etp }, name)), id)
    end
    assert.equal(2, plan(spec(64, small_moe(16), { global_batch_size = 512 }, { pipeline = 2, tensor = 2 }, "zero-bubble")).parallelism.expert_tensor)
  end)
end)

describe("the closest candidate", function()
  it("is one that the framework runs: M 2 under P 4 for interleaving, not a schedule that Megatron lacks", function() -- schedules.py:1161-1180
    local result = plan(spec(128, "examples/models/llama-3-70b.json", { global_batch_size = 16, recompute = "full" },
                             { tensor = 4, pipeline = 4, virtual = 2 }, "megatron"))
    assert.matches("interleaved_1f1b .* 2 < 4", first(result, "engine.too_few_microbatches"))
  end)
end)

describe("FlagScale", function()  -- flagos-ai/FlagScale arguments.py.patch:209-264
  it("runs DualPipeV with expert parallelism only, and without MTP", function()
    local dense = spec(1024, { architecture = "dense", total = "70B", layers = 64 }, { global_batch_size = 4096 }, { schedule = "dualpipev" },
                       "flagscale")
    assert.matches("only with expert parallelism", first(plan(dense), "flagscale.dualpipev_experts"))
    local mtp = spec(64, { architecture = "moe", total = "16B", active = "3B", layers = 16, mtp_layers = 1 }, { global_batch_size = 1024 },
                     { expert = 8, pipeline = 4, schedule = "dualpipev" }, "flagscale")
    assert.matches("only without MTP layers", first(plan(mtp), "flagscale.dualpipev_mtp"))
  end)

  -- flagos-ai/FlagScale @1fc181a7, tests/functional_tests/hetero_train/aquila/conf/train/dp2dp4_shared_embedding.yaml trains with P 2 and
  -- untie_embeddings_and_output_weights false; @b98fc0ff, flagscale/train/arguments.py: pre_validate_args has rules for that
  it("runs pipelines with tied embeddings, but for DualPipeV and DualPipe", function()
    local function tied(schedule)
      local model = { layers = 32, hidden = 2048, heads = 16, ffn = 11264, vocab = 102400, experts = 64, experts_per_token = 6, expert_ffn = 1408,
                      tied_embeddings = true }
      return plan(spec(64, model, { global_batch_size = 1024 }, { expert = 8, pipeline = 4, schedule = schedule }, "flagscale"))
    end
    assert.equal("planned", tied("1f1b").status)
    first(tied("dualpipev"), "flagscale.dualpipev_tied")
    first(tied("dualpipe"), "dualpipe_tied_embeddings")   -- the policy says it first
  end)

  local function dualpipev(layers, list)
    return plan(spec(64, small_moe(layers), { global_batch_size = 1024 },
                     { expert = 8, pipeline = 4, schedule = "dualpipev", layers_per_stage = list }, "flagscale"))
  end

  -- even numbers on the first and the last rank, as many on those between: 4 of 18 layers on the ranks in the middle, or 6 and 2 and 2
  it("takes uneven first and last ranks for DualPipeV, by even numbers", function()
    local result = dualpipev(18)
    assert.equal("planned", result.status)
    local held = {}
    for r = 1, 4 do
      held[r] = result.layers_per_stage[r] + result.layers_per_stage[9 - r]
      assert.equal(0, held[r] % 2)
      assert.equal(result.layers_per_stage[r], result.layers_per_stage[9 - r])
    end
    assert.equal(held[2], held[3])
    assert.equal(18, held[1] + held[2] + held[3] + held[4])
    first(dualpipev(17), "uneven_layers")
  end)

  it("is not given other splits", function()
    assert.equal("planned", dualpipev(18, { 3, 2, 2, 2, 2, 2, 2, 3 }).status)
    first(dualpipev(18, { 2, 3, 2, 2, 2, 2, 3, 2 }), "uneven_layers")   -- 4 6 4 4
    first(dualpipev(18, { 4, 2, 2, 2, 2, 2, 2, 2 }), "uneven_layers")   -- 6 4 4 4, but not in halves
  end)

  -- pull request 1157 offers no uneven layers
  it("gives DualPipe as many layers on each stage", function()
    local result = plan(spec(64, small_moe(18), { global_batch_size = 1024 }, { expert = 8, pipeline = 4, schedule = "dualpipe" }, "flagscale"))
    assert.is_true(has(result.reasons, "uneven_layers"))
  end)
end)

describe("DeepSpeed", function()
  it("makes expert groups of data-parallel ranks", function() -- deepspeed/utils/groups.py, _create_expert_data_and_model_parallel
    local request = spec(64, { architecture = "moe", total = "47B", active = "13B", layers = 32 }, { global_batch_size = 1024 },
                         { expert = 8, tensor = 2, pipeline = 8 }, "deepspeed")
    assert.matches("EP 8 does not divide DP 4", first(plan(request), "deepspeed.expert_groups"))
  end)

  it("has no sequence parallelism in a pipeline", function() -- deepspeed/__init__.py: mpu is the module's grid, of pipe, data and model
    local request = spec(64, small_moe(32), { global_batch_size = 1024 }, { context = 2, pipeline = 4 }, "deepspeed")
    assert.matches("sequence_parallel_size 2 is not read", first(plan(request), "deepspeed.context"))
  end)

  -- deepspeed/runtime/utils.py, partition_balanced over decoder layers that weigh alike: 30 on 4 are 8 8 7 7
  it("places layers as its partition_method does, not by list", function()
    local model = { architecture = "dense", total = "70B", layers = 30 }
    local result = plan(spec(64, model, { global_batch_size = 1024 }, { tensor = 8, pipeline = 4, schedule = "1f1b" }, "deepspeed"))
    assert.same({ 8, 8, 7, 7 }, result.layers_per_stage)
    local given = plan(spec(64, model, { global_batch_size = 1024 },
                            { tensor = 8, pipeline = 4, schedule = "1f1b", layers_per_stage = { 7, 8, 8, 7 } }, "deepspeed"))
    assert.matches("places no layers by list", first(given, "uneven_layers"))
  end)
end)

-- A rule of layers stands twice: engine/core/stages.c makes the split, stdlib/plan/framework.lua judges one that is given.
describe("a framework's split of layers", function()
  local site = planning.policy:with { fits_one_gpu = false }
  local function try(name, schedule, layers, ranks, list)
    return site:plan_spec(spec(2 * ranks, { architecture = "dense", total = "7B", layers = layers }, { global_batch_size = 8 * ranks },
                               { tensor = 1, pipeline = ranks, schedule = schedule, layers_per_stage = list }, name,
                               { cluster = { memory_per_gpu = "1000GiB" } }), ".")
  end

  -- the same list with a layer moved from one stage to another
  local function moved(list, from, to)
    local other = table.move(list, 1, #list, 1, {})
    other[from], other[to] = other[from] - 1, other[to] + 1
    return other
  end

  it("is the one that it would accept if it were given, and no other is: DeepSpeed, 20 random shapes", function()
    math.randomseed(20)
    for _ = 1, 20 do
      local ranks = math.random(2, 12)
      local layers = math.random(2 * ranks, 60)
      local made = try("deepspeed", "1f1b", layers, ranks)
      assert.equal("planned", made.status)
      local list, where = made.layers_per_stage, layers .. " layers on " .. ranks
      assert.equal("planned", try("deepspeed", "1f1b", layers, ranks, list).status, where)
      local from = math.random(1, ranks)
      local other = try("deepspeed", "1f1b", layers, ranks, moved(list, from, from % ranks + 1))
      assert.matches("puts " .. table.concat(list, ", ") .. " on " .. ranks .. " stages", first(other, "uneven_layers"), 1, true)
    end
  end)

  it("is one that it would accept if it were given: FlagScale's DualPipeV, 10 random shapes", function()
    math.randomseed(10)
    for _ = 1, 10 do
      local ranks = 2 * math.random(1, 4)
      local layers = 2 * math.random(2 * ranks, 30)
      local function dualpipev(list)
        return site:plan_spec(spec(4 * ranks, small_moe(layers), { global_batch_size = 16 * ranks },
                                   { tensor = 1, expert = 2, pipeline = ranks, schedule = "dualpipev", layers_per_stage = list }, "flagscale",
                                   { cluster = { memory_per_gpu = "1000GiB" } }), ".")
      end
      local made = dualpipev()
      assert.equal("planned", made.status)
      assert.equal("planned", dualpipev(made.layers_per_stage).status)
      first(dualpipev(moved(made.layers_per_stage, 1, 2 * ranks)), "uneven_layers")
    end
  end)
end)

describe("Megatron", function()
  it("divides query groups by TP or TP by query groups, also where TP is given", function() -- transformer_config.py:1446-1466
    local model = { layers = 32, hidden = 6144, heads = 48, kv_heads = 6, head_dim = 128, ffn = 16384, vocab = 32000 }
    assert.equal("TP 4 does not divide the 6 key-value heads, nor they it",
                 first(plan(spec(64, model, { global_batch_size = 512 }, { tensor = 4, pipeline = 4 }, "megatron")), "engine.tensor_heads"))
  end)
end)

describe("PyTorch", function()
  -- torch/distributed/pipelining/_backward.py: what selective checkpointing saved is gone at the second use
  it("takes no selective recompute with a split backward: the planner chooses another schedule", function()
    local function at(schedule, recompute, name)
      return plan(spec(256, "examples/models/llama-3-70b.json", { recompute = recompute, tokens = "2T" }, { schedule = schedule }, name))
    end
    for _, name in ipairs { "torch", "torchtitan" } do
      assert.matches("selective recompute with a split backward", first(at("zb_h1", "selective", name), "torch.split_backward_recompute"))
      local free = at(nil, "selective", name)
      assert.equal("planned", free.status)
      assert.is_false(engine.schedule.traits(free.schedule).split_backward)
      assert.matches("selective recompute with a split backward", free.reasons[1].message)  -- why Zero Bubble is not there
    end
    assert.is_false(has(at("zb_h1", "selective", "primus").reasons, "torch.split_backward_recompute"))
    assert.is_false(has(at("zb_h1", "full", "torchtitan").reasons, "torch.split_backward_recompute"))
  end)
end)

-- Megatron-LM arguments.py; Megatron-Bridge's GPTModelProvider: pipeline_model_parallel_layout; FlagScale's YAML, its keys underscored; torchtitan
-- has neither (configs.py: module_fqns_per_model_part lists modules).
describe("what says layers and groups to a framework", function()
  local function flags(name)
    local planned = plan(spec(256, "examples/models/llama-3-70b.json", { tokens = "2T" }, { schedule = "interleaved_1f1b" }, name))
    assert.equal("planned", planned.status)
    return planned.layout_flags and table.concat(planned.layout_flags, " ") or "", planning.page_of(planned)
  end

  it("has the framework's own words", function()
    for name, key in pairs { megatron = "%-%-pipeline%-model%-parallel%-layout 'E", flagscale = "^pipeline_model_parallel_layout 'E",
                             ["megatron-bridge"] = "^model%.pipeline_model_parallel_layout 'E" } do
      local told, page = flags(name)
      assert.matches(key, told)
      assert.is_truthy(page:find(told:match "^%S+", 1, true))
    end
    assert.matches("^%-%-pipeline%-model%-parallel%-layout 'E", (flags(nil)))  -- of none in particular: Megatron's
  end)

  -- of every framework, as many layers a stage and not; torchtitan 0.3.0 wants PyTorch 2.14 (https://github.com/pytorch/pytorch/pull/188500)
  it("are keys of the framework that is named, beside how its schedule is asked for and since when", function()
    local tried = 0
    for _, entry in ipairs(frameworks.entries) do
      local keys = {}
      for _, key in ipairs(entry.keys) do keys[key.key] = true end
      for _, schedule in ipairs { "1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "dualpipev" } do
        local planned = plan(spec(256, "examples/models/llama-3-70b.json", { tokens = "2T" }, { schedule = schedule, pipeline = 8 }, entry.name))
        local how = entry.schedules[schedule]
        if planned.status == "planned" then
          tried = tried + 1
          local where = entry.name .. " " .. schedule
          for _, line in ipairs(planned.layout_flags or {}) do assert.is_true(keys[line:match "^%S+"], where .. ": " .. line) end
          for _, line in ipairs(planned.framework_flags or {}) do assert.is_true(keys[line:match "^%S+"], where .. ": " .. line) end
          local page = planning.page_of(planned):match " run in( .*)$"
          for _, word in ipairs { how.flag or "", how.csv and "from pipeplan plan --format csv" or "", how.since or "" } do
            assert.truthy(page:find(" " .. entry.name, 1, true) and page:find(word, 1, true), where .. ": " .. page)
          end
        end
      end
      if entry.name == "torchtitan" then assert.equal("PyTorch 2.14", entry.schedules["1f1b"].since) end
    end
    assert.is_true(tried > 25, tried)
  end)

  it("is said in the framework's own words, and no others", function()
    local told, page = flags "torchtitan"
    assert.matches("^parallelism%.module_fqns_per_model_part tok_embeddings,layers%.0,", told)
    assert.is_nil(page:find("parallel-layout", 1, true))
    assert.equal("", (flags "torch"))
  end)
end)

-- torch/distributed/pipelining/_backward.py: a split backward reads twice what a checkpoint frees after its first use.
it("a plan is said to run only in frameworks that take its recompute", function()
  local function where(recompute)
    local made = plan(spec(64, "examples/models/llama-3-70b.json", { global_batch_size = 1024, recompute = recompute },
                           { tensor = 4, pipeline = 4, schedule = "zb_v" }))
    assert.equal("planned", made.status)
    local found = {}
    for _, name in ipairs(made.available_in) do found[name] = true end
    return found
  end
  assert.is_true(where("full").torchtitan)
  local with_modules = where { "norm", "activation" }
  assert.is_nil(with_modules.torchtitan or with_modules.torch)
  assert.is_true(with_modules["zero-bubble"])
end)

-- DeepSpeed 0.19.8, runtime/pipe/module.py:389-421: partition_method cuts the layers, no list does; sail-sg/zero-bubble-pipeline-parallelism @39f2c186
-- has as many on each stage; torchtitan 0.3.0 refuses tied weights over stages (models: enable_weight_tying)
it("a plan is said to run only in frameworks that place its layers and tie its weights", function()
  local function where(tied, list)
    local model = { layers = 80, hidden = 8192, heads = 64, kv_heads = 8, ffn = 28672, vocab = 128256, tied_embeddings = tied }
    local made = plan(spec(64, model, { global_batch_size = 1024 }, { tensor = 4, pipeline = 4, schedule = "1f1b", layers_per_stage = list }))
    assert.equal("planned", made.status)
    return set(made.available_in)
  end
  local even, uneven, tied = where(false, { 20, 20, 20, 20 }), where(false, { 17, 22, 22, 19 }), where(true, { 20, 20, 20, 20 })
  for _, name in ipairs { "megatron", "deepspeed", "zero-bubble", "torchtitan" } do assert.is_true(even[name], name) end
  assert.is_true(uneven.megatron and uneven.torchtitan)
  assert.is_nil(uneven.deepspeed or uneven["zero-bubble"])
  assert.is_true(tied.megatron and tied.deepspeed and tied.flagscale)
  assert.is_nil(tied.torchtitan or tied["zero-bubble"])
end)
