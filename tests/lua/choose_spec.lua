-- SPDX-License-Identifier: Apache-2.0
-- choose.lua: filter, rank, refusing a schedule, nothing left. Real models on clusters of the reports that describe them; the policy is the
-- default one, with what a test changes in a layer above it.

require "pipeplan"
local candidates = require "pipeplan.plan.candidates"
local choose = require "pipeplan.plan.choose"
local conditions = require "pipeplan.policy.conditions"
local facts = require "pipeplan.plan.facts"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local load = require("pipeplan.policy.load").load
local spec = require "pipeplan.input.spec"

teardown(files.remove)

local function policy_of(text)
  return load { files = text and { files.write("site.lua", text) } or {}, date = "2026-11-27" }
end

local default = policy_of()

local function merge(base, changes)
  local out = {}
  for key, value in pairs(base) do out[key] = value end
  for key, value in pairs(changes or {}) do
    out[key] = type(value) == "table" and #value == 0 and type(out[key]) == "table" and merge(out[key], value) or value
  end
  return out
end

-- DeepSeek-V3 report §4.2 and §3: 2,048 H800, 15,360 sequences of 4,096, TP 1, EP 64, fp8, bf16 moments, selective recompute.
local deepseek = {
  cluster = { gpus = 2048, accelerator = "H800-SXM-80GB", gpus_per_node = 8,
              network = { fabric = "infiniband", per_gpu = "400Gbps", nics_per_node = 8, scale_up_gpus = 8, scale_up_per_gpu = "160GB/s" } },
  model = "examples/models/deepseek-v3.json",
  training = { sharding = "optimizer", tokens = "14.8T", sequence_length = 4096, micro_batch_size = 1, global_batch_size = 15360, precision = "fp8",
               moments = "bf16", recompute = { "norm", "mla_up_projection", "swiglu" } },
  parallelism = { tensor = 1, expert = 64 },
}

local mixtral = {
  cluster = { gpus = 64, accelerator = "A100-SXM-80GB", network = { fabric = "infiniband", per_gpu = "200Gbps" } },
  model = "examples/models/mixtral-8x7b.json",
  training = { recompute = "none", sharding = "optimizer",
               tokens = "1T", sequence_length = 4096, micro_batch_size = 1, global_batch_size = 1024, precision = "bf16" },
}

-- A 70B on 256 H100, as NVIDIA/Megatron-LM's README runs it.
local llama = {
  cluster = { gpus = 256, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
  model = "examples/models/llama-3-70b.json",
  training = { recompute = "none", sharding = "optimizer",
               tokens = "2T", sequence_length = 8192, micro_batch_size = 1, global_batch_size = 1024, precision = "bf16" },
}

local function decide(base, changes, policy, options)
  local request = spec.from_table(merge(base, changes), ".")
  local known = facts.of(request, policy or default)
  return choose.choose(merge({ request = request, policy = policy or default, record = known.record, arguments = known.arguments },
                             options)), known
end

local function ids(list)
  local out = {}
  for i, entry in ipairs(list) do out[i] = entry.id or entry.rule or entry.schedule end
  return out
end

local function contains(list, id)
  for _, entry in ipairs(list) do
    if (entry.id or entry.rule or entry.schedule) == id then return entry end
  end
end

describe("the headline", function()
  it("is DualPipe at EP 64 with an even depth that fits 80 GB", function()
    local result, known = decide(deepseek)
    assert.equal("planned", result.status)
    assert.equal("dualpipe", result.evaluation.schedule)
    assert.equal(64, result.evaluation.expert)
    assert.equal(0, result.evaluation.pipeline % 2)
    assert.is_true(result.evaluation.pipeline >= 8 and result.evaluation.pipeline <= 32)
    assert.is_true(result.evaluation.peak_bytes <= known.usable_bytes)
    assert.equal("moe_with_ep", result.decision)
    assert.equal("dualpipe", result.schedule_wanted)
    assert.is_false(result.replaced)
    assert.same({}, result.reasons)
    assert.equal("deepep", result.kernel.name)
  end)

  it("is compared with every other schedule, at its layout where that can be built", function()
    local result = decide(deepseek)
    assert.same({ "gpipe", "1f1b", "interleaved_1f1b", "interleaved_1f1b_overlap", "zb_h1", "zb_h2", "zb_v", "zb_auto", "dualpipev",
                  "interleaved_zero_bubble", "looped_bfs" }, ids(result.alternatives))
    local one_f1b = contains(result.alternatives, "1f1b")
    assert.is_true(one_f1b.at_plan_layout)
    assert.is_true(one_f1b.fields.step_seconds > result.evaluation.step_seconds)
    assert.equal(result.evaluation.pipeline, one_f1b.fields.pipeline_parallel)
    assert.is_false(contains(result.alternatives, "gpipe").fits)
    assert.equal("does_not_fit", contains(result.alternatives, "gpipe").why_not[1].id)
  end)

  it("is the same on every run", function()
    local json = require "pipeplan.base.json"
    assert.equal(json.encode(decide(deepseek).evaluation), json.encode(decide(deepseek).evaluation))
  end)
end)

describe("ranking", function()
  it("first keeps what matches a preference within any, when anything does", function()  -- rank 1
    local deep = policy_of [[prefer { id = "deep", pipeline_parallel = at_least(8), within = "any" }]]
    assert.equal(2, decide(mixtral).evaluation.pipeline)
    assert.is_true(decide(mixtral, {}, deep).evaluation.pipeline >= 8)
    local absurd = policy_of [[prefer { id = "absurd", pipeline_parallel = at_least(1000), within = "any" }]]
    assert.equal(2, decide(mixtral, {}, absurd).evaluation.pipeline)
  end)

  it("keeps the wanted schedule though another is faster, and says which", function()
    local result = decide(mixtral)
    assert.equal("small_run", result.decision)
    assert.equal("1f1b", result.evaluation.schedule)
    assert.is_true(#result.dominated_by > 0)
    local first = result.dominated_by[1]
    assert.is_true(first.gain_fraction > 0.01)
    assert.near(1 - first.fields.step_seconds / result.evaluation.step_seconds, first.gain_fraction, 1e-12)
    assert.equal(first.gain_fraction < 0.05, first.tie)
  end)

  it("takes another where the wanted schedule is slower than the fastest by more than the tolerance", function()
    local result = decide(mixtral, {}, policy_of [[set { wanted_tolerance = "1%" }]])
    assert.equal("zb_v", result.evaluation.schedule)   -- its row lists 1F1B and interleaved 1F1B, and neither is that close
    assert.is_true(result.replaced)
    assert.equal("1f1b", result.schedule_wanted)
    assert.same({ "wanted_too_slow" }, ids(result.reasons))
    assert.matches("1F1B takes .* slower than the fastest, ZB%-V at P %d+ %(.*%): more than wanted_tolerance 1 %%", result.reasons[1].message)
  end)

  -- docs/policy.md: the first name of a row is replaced when its plan is "slower than the fastest of all", which the row need not list
  it("says of the wanted schedule by how much it is slower than the fastest of all, and not than what is planned", function()
    local result = decide { cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                            model = { architecture = "dense", total = "34B", layers = 48 },
                            training = { tokens = "1T", global_batch_size = 256 } }
    assert.same({ "interleaved_1f1b", "wanted_too_slow" }, { result.evaluation.schedule, result.reasons[1].id })
    local pattern = "1F1B takes ([%d.]+) s a step at best, ([%d.]+) %% slower than the fastest, (%S+) at P 4 %(([%d.]+) s%): more than .* 5 %%"
    local taken, slower, name, least = result.reasons[1].message:match(pattern)
    local fastest = result.evaluation.step_seconds / (1 + result.cost.fraction)   -- of all: what the row costs is held against it
    assert.equal("ZB-V", name)
    assert.is_true(result.cost.fraction > 0.005)   -- so what is planned is another
    assert.near(fastest, tonumber(least), 0.005)
    assert.near(100 * (tonumber(taken) / fastest - 1), tonumber(slower), 0.1)   -- taken is told to 5 ms of 7 s
    assert.is_true(tonumber(slower) > 5)
  end)

  it("takes nothing else where a row says within any, whatever it costs, and says what it costs", function()
    local function row_of(name)
      return policy_of(string.format([[set { wanted_tolerance = "1%%" } row { id = "only", gpus = over(1), within = "any", try = { "%s" } }]], name))
    end
    local slow = decide(mixtral, {}, row_of "1f1b")   -- too slow for a row without it: the test above
    assert.equal("1f1b", slow.evaluation.schedule)
    assert.is_true(slow.cost.fraction > 0.01)
    assert.same({ "only" }, ids(slow.cost.statements))
    assert.near(slow.cost.fraction, slow.cost.statements[1].fraction, 1e-9)
    local none = decide(llama, {}, row_of "dualpipe")   -- without experts it is rejected
    assert.equal("rejected", none.status)
    assert.is_not_nil(contains(none.reasons, "dualpipe_without_ep"))
  end)

  -- NVIDIA-NeMo/Megatron-Bridge runs Qwen3-235B-A22B with TP 2 and whole experts on 256 H100 (docs/performance-summary @067f987)
  it("chooses expert TP where the framework can be told and TP is left open", function()
    local qwen = { cluster = { gpus = 256, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                   model = "examples/models/qwen3-235b-a22b.json",
                   training = { tokens = "2T", sequence_length = 4096, micro_batch_size = 1, global_batch_size = 2048, sharding = "optimizer",
                                recompute = { "norm", "activation" } } }
    local function degrees(framework, parallelism)
      local result = decide(qwen, { framework = framework, parallelism = parallelism })
      return result.fields.tensor_parallel, result.fields.expert_tensor_parallel, result.fields.step_seconds
    end
    local tensor, experts, seconds = degrees("megatron", { expert = 16 })
    assert.same({ true, 1 }, { tensor > 1, experts })
    for _, framework in ipairs { "megatron", "zero-bubble" } do   -- the fork has no switch for it
      local given, as_tensor, more = degrees(framework, { tensor = tensor, expert = 16 })
      assert.same({ tensor, tensor }, { given, as_tensor })
      assert.is_true(more > seconds)
    end
    local own, forked = degrees("zero-bubble", { expert = 16 })
    assert.equal(own, forked)
  end)

  it("drops what takes too long by its bound, as simulating each would, and judges the fastest", function()
    local fixed = { parallelism = { tensor = 8 } }
    local free = decide(llama, fixed)
    local seconds = free.evaluation.step_seconds
    local function under(share, more)
      return decide(llama, fixed, policy_of(string.format("reject { id = 'long', step_seconds = over(%.17g), message = '{step_seconds}' } %s",
                                                            share * seconds, more or "")))
    end
    assert.equal(free.evaluation.schedule, under(1.0001).evaluation.schedule)
    local none = under(0.5)
    assert.same({ "rejected", { "long" } }, { none.status, ids(none.reasons) })
    assert.is_true(none.fields.step_seconds <= seconds)
    -- with a function beside it, which reads seconds, each is simulated
    local each = under(0.5, "reject { id = 'never', message = 'm', when = function(f) local s = f.step_seconds return s < 0 end }")
    assert.same({ each.status, each.fields }, { none.status, none.fields })
    local function count(result) return #result.candidates:match { { field = "step_seconds", op = "over", value = 0 } } end
    assert.is_true(count(none) < count(each) / 3)
    local function dropped(result)
      for _, entry in ipairs(result.dropped) do
        if entry.rule == "long" then return entry.count end
      end
    end
    assert.equal(dropped(each), dropped(none))
  end)

  it("takes the others, and says why, where the wanted schedule has no candidate that may be planned", function()
    local result = decide(deepseek, { training = { global_batch_size = { { 0, 3072 }, { "469B", 15360 } } }, parallelism = { pipeline = 16 } })
    assert.equal("planned", result.status)
    assert.equal("dualpipe", result.schedule_wanted)
    assert.is_true(result.replaced)
    assert.is_not_nil(contains(result.reasons, "too_few_microbatches"))
    assert.matches("M is 24, P 16", result.reasons[1].message)
    assert.equal("microbatches_per_rank", result.reasons[1].nearest.field)
  end)

  it("takes the least step time among what is left", function()  -- rank 3
    local result = decide(mixtral, {}, policy_of [[set { tie_fraction = "0%" }]])
    local c, set = result.candidates, result.set
    local fastest = math.huge
    for _, row in ipairs((set.main & set.alive & set:scheduled { "1f1b" }):rows()) do
      if c:get("expert_parallel", row) > 1 and c:get("tensor_parallel", row) <= 8 then fastest = math.min(fastest, c:simulate(row)) end
    end
    assert.equal(fastest, result.evaluation.step_seconds)
  end)

  it("lets a preference within a fraction decide among what comes that close", function()
    local wide = policy_of [[prefer { id = "wide", tensor_parallel = 2, within = "50%" }]]
    local narrow = policy_of [[prefer { id = "wide", tensor_parallel = 2, within = "0.01%" }]]
    assert.equal(1, decide(mixtral).evaluation.tensor)
    assert.equal(2, decide(mixtral, {}, wide).evaluation.tensor)
    assert.equal(1, decide(mixtral, {}, narrow).evaluation.tensor)
  end)

  it("prefers 16 to 32 ranks for a frontier MoE only among ties", function()
    local loose = policy_of [[set { tie_fraction = "60%" }]]
    local free = { parallelism = { tensor = 1, expert = 32 } }
    local result = decide(deepseek, free, loose)
    assert.is_true(result.evaluation.pipeline >= 16 and result.evaluation.pipeline <= 32)
  end)

  it("ends with position in the list, then the smaller depth and degrees", function()  -- rank 5
    local policy = policy_of [[
      set { tie_fraction = "1000%", small_cluster_depth = 64 }
      change { id = "small_run", try = { "interleaved_1f1b", "1f1b" } }
    ]]
    local result = decide(mixtral, {}, policy)
    local c, set = result.candidates, result.set
    assert.equal("interleaved_1f1b", result.evaluation.schedule)
    local least = { math.huge, math.huge, math.huge }
    for _, row in ipairs((set.main & set.alive & set:scheduled { "interleaved_1f1b" }):rows()) do
      local key = { c:get("pipeline_parallel", row), c:get("virtual", row), c:get("tensor_parallel", row) }
      if c:get("expert_parallel", row) > 1 then
        for i = 1, 3 do
          if key[i] ~= least[i] then
            if key[i] < least[i] then least = key end
            break
          end
        end
      end
    end
    assert.same(least, { result.evaluation.pipeline, result.evaluation.virtual, result.evaluation.tensor })
  end)

  it("plans the fastest member of a family, the earlier in a tie", function()
    local result = decide(llama, { parallelism = { tensor = 8, pipeline = 4 } })
    assert.equal("dense", result.decision)
    assert.equal("zero_bubble", result.schedule_wanted)
    assert.is_false(result.replaced)
    assert.equal("zero_bubble", result.evaluation.schedule_family)
    local first = policy_of [[set { tie_fraction = "1000%", zero_bubble_members = { "zb_v", "zb_h1" } }]]
    assert.equal("zb_v", decide(llama, { parallelism = { tensor = 8, pipeline = 4 } }, first).evaluation.schedule)
  end)

  it("reads the decision table from the top", function()
    local function decision(base, changes) return decide(base, changes).decision end
    assert.equal("small_run", decision(mixtral))
    assert.equal("moe_with_ep", decision(deepseek))
    assert.equal("dense", decision(llama))
    assert.equal("dense_large", decision(llama, { cluster = { gpus = 512 } }))
  end)
end)

describe("refusing a schedule", function()
  it("puts DualPipeV in DualPipe's place on slow links", function()
    local result = decide(deepseek, { cluster = { network = { per_gpu = "200Gbps" } } })
    assert.equal("planned", result.status)
    assert.equal("dualpipev", result.evaluation.schedule)
    assert.equal("dualpipe", result.schedule_wanted)
    assert.is_true(result.replaced)
    assert.same({ "slow_interconnect" }, ids(result.reasons))
    assert.equal("dualpipev", result.list[1])
  end)

  it("takes as long with a kernel that the policy picks as with the same kernel given", function()
    local picked, given = decide(deepseek), decide(deepseek, { cluster = { alltoall_kernel = "deepep" } })
    assert.equal("deepep", picked.kernel.name)
    assert.is_false(picked.kernel.given)
    assert.equal(given.evaluation.step_seconds, picked.evaluation.step_seconds)
  end)

  it("puts Zero Bubble in DualPipe's place without a kernel", function()
    local result = decide(deepseek, { cluster = { alltoall_kernel = false } })
    assert.equal("planned", result.status)
    assert.equal("no_alltoall_kernel", result.reasons[1].id)
    assert.same({ "zero_bubble", "dualpipev", "interleaved_1f1b_overlap", "interleaved_1f1b", "1f1b" }, result.list)
    assert.is_false(result.kernel.name)
  end)

  it("lets the first of two refusals decide and reports the other", function()
    local result = decide(deepseek, { cluster = { alltoall_kernel = false, network = { per_gpu = "200Gbps" } } })
    assert.equal("dualpipev", result.evaluation.schedule)
    assert.same({ "slow_interconnect", "no_alltoall_kernel" }, ids(result.reasons))
    assert.is_nil(result.reasons[1].also)
    assert.is_true(result.reasons[2].also)
    assert.same({ "dualpipev", "zero_bubble", "interleaved_1f1b_overlap", "interleaved_1f1b", "1f1b" }, result.list)
  end)

  it("does nothing where nobody wanted the schedule", function()
    local policy = policy_of [[refuse { id = "no_zb_v", schedule = "zb_v", message = "not here" }]]
    local result = decide(mixtral, {}, policy)
    assert.equal("1f1b", result.evaluation.schedule)
    assert.same({}, result.reasons)
    assert.is_not_nil(contains(result.dropped, "no_zb_v"))
  end)

  it("refuses a schedule that the user fixed, and recommends the plan without that", function()
    local result = decide(deepseek, { cluster = { network = { per_gpu = "200Gbps" } }, parallelism = { schedule = "dualpipe", pipeline = 16 } })
    assert.equal("refused", result.status)
    assert.same({ "slow_interconnect" }, ids(result.reasons))
    assert.equal("freed", result.recommend.source)
    assert.equal("schedule", result.recommend.freed)
    assert.equal("dualpipev", result.recommend.evaluation.schedule)
  end)
end)

describe("nothing left", function()
  it("rejects DualPipe without expert parallelism", function()
    local result = decide(mixtral, { parallelism = { schedule = "dualpipe", expert = 1, pipeline = 8, tensor = 4 } })
    assert.equal("rejected", result.status)
    assert.equal("dualpipe_without_ep", result.reasons[1].id)
    assert.is_not_nil(result.recommend)
  end)

  it("rejects more than 64 ranks and names the limit", function()
    local result = decide(llama, { cluster = { gpus = 1280 }, training = { global_batch_size = 2560 },
                                   parallelism = { pipeline = 80, tensor = 8 } })
    assert.equal("rejected", result.status)
    assert.same({ "too_deep" }, ids(result.reasons))
    assert.same({ field = "pipeline_parallel", value = 64 }, { field = result.reasons[1].nearest.field, value = result.reasons[1].nearest.value })
    assert.matches("P 80 is over 64 %(bubble %d", result.reasons[1].message)
    assert.equal("pipeline", result.recommend.freed)
  end)

  it("rejects odd numbers of microbatches and says what batch would do", function()
    local result = decide(deepseek, { parallelism = { schedule = "dualpipev", pipeline = 16 }, training = { global_batch_size = 33 * 128 } })
    assert.equal("rejected", result.status)
    assert.same({ "odd_microbatches" }, ids(result.reasons))
    assert.equal("microbatches", result.reasons[1].nearest.field)
  end)

  it("rejects a pipeline where the model fits one GPU, and recommends data parallelism", function()
    local small = merge(llama, { model = "examples/models/llama-3.1-8b.json", cluster = { gpus = 64 },
                                 training = { recompute = "full", global_batch_size = 512 } })
    local result = decide(small)
    assert.equal("rejected", result.status)
    assert.same({ "fits_one_gpu" }, ids(result.reasons))
    assert.equal("data_parallel", result.recommend.source)
    local e = result.recommend.evaluation
    assert.same({ 1, 1, 1, 64 }, { e.pipeline, e.tensor, e.expert, e.data })
    assert.equal("planned", decide(small, { parallelism = { pipeline = 1 } }).status)
  end)

  it("refuses a pipeline for less than a billion tokens", function()
    local result = decide(llama, { training = { micro_batch_size = 1, sharding = "optimizer", tokens = "500M", recompute = "full" } })
    assert.equal("refused", result.status)
    assert.same({ "short_run" }, ids(result.reasons))
    assert.equal("data_and_tensor_parallel", result.recommend.source)
    assert.equal(1, result.recommend.evaluation.pipeline)
    assert.is_true(result.recommend.evaluation.tensor > 1)
  end)

  it("refuses what fits nowhere, with the rank and what is missing", function()
    local result = decide(llama, { cluster = { gpus = 8 }, training = { global_batch_size = 64 } })
    assert.equal("refused", result.status)
    assert.same({ "does_not_fit" }, ids(result.reasons))
    assert.matches("rank %d+ takes .* GiB of .* GiB usable, .* too much", result.reasons[1].message)
    assert.is_true(result.reasons[1].missing_bytes > 0)
  end)

  it("tells apart what only a second copy makes too large", function()
    local result = decide(deepseek, { parallelism = { schedule = "dualpipe", pipeline = 8, tensor = 2, expert = 16 } })
    assert.equal("refused", result.status)
    assert.same({ "replication_does_not_fit" }, ids(result.reasons))
    assert.matches("with two copies of its stages, .* with one", result.reasons[1].message)
    assert.is_true(result.fields.one_copy_bytes <= result.fields.usable_bytes)
  end)

  it("reports the engine's own rules where no rule of the policy says it", function()
    local result = decide(deepseek, { parallelism = { tensor = 1, expert = 16, pipeline = 64, schedule = "1f1b" } })
    assert.equal("rejected", result.status)
    assert.is_not_nil(contains(result.reasons, "engine.layers_below_stages"))
    assert.equal(61, contains(result.reasons, "engine.layers_below_stages").nearest.value)
    local odd = decide(deepseek, { parallelism = { pipeline = 16, schedule = "dualpipe" }, training = { global_batch_size = 33 * 128 } })
    assert.same({ "odd_microbatches" }, ids(odd.reasons))
  end)

  it("rejects a framework's own limits", function()
    local zb = decide(deepseek, { framework = "megatron", parallelism = { schedule = "zb_h1" } })
    assert.equal("rejected", zb.status)
    assert.is_not_nil(contains(zb.reasons, "not_in_framework"))
    local uneven = decide(deepseek, { framework = "mindspeed", parallelism = { schedule = "dualpipev", pipeline = 16 } })
    assert.is_not_nil(contains(uneven.reasons, "uneven_layers"))
    assert.matches("61 layers do not divide by 32 stages", contains(uneven.reasons, "uneven_layers").message)
    local site = decide(deepseek, { parallelism = { schedule = "dualpipe" } }, policy_of [[set { schedules = { "interleaved_1f1b", "1f1b" } }]])
    assert.equal("rejected", site.status)
    assert.matches("the policy plans no DualPipe, only interleaved 1F1B, 1F1B", contains(site.reasons, "not_in_framework").message)
  end)

  it("says so when not one layout exists", function()
    local result = decide(deepseek, { parallelism = { pipeline = 16, data = 64 } })
    assert.equal("rejected", result.status)
    assert.same({ "no_candidates" }, ids(result.reasons))
    assert.is_nil(result.judged)
  end)

  it("counts by rule what was dropped and names the nearest value", function()
    local result = decide(deepseek)
    local odd = contains(result.dropped, "odd_microbatches")
    assert.is_true(odd.count > 0)
    assert.equal("microbatches", odd.nearest.field)
    for i = 2, #result.dropped do assert.is_true(result.dropped[i - 1].count >= result.dropped[i].count) end
  end)
end)

describe("rules beyond a candidate's own fields", function()
  it("may read what only a simulation says", function()
    local result = decide(mixtral, {}, policy_of [[reject { id = "idle", bubble_fraction = over "1%", message = "bubble {bubble_fraction}" }]])
    assert.equal("planned", result.status)
    assert.is_true(result.evaluation.bubble_fraction <= 0.01)
    assert.is_true(contains(result.dropped, "idle").count > 0)
  end)

  it("may be functions, asked only about survivors", function()
    local result = decide(mixtral, {}, policy_of [[
      reject { id = "odd_one", pipeline_parallel = 2, message = "no",
               when = function(f) return f.virtual == 1 and f.schedule == "1f1b" end }]])
    assert.equal("planned", result.status)
    assert.is_true(result.evaluation.pipeline ~= 2 or result.evaluation.schedule ~= "1f1b")
    assert.is_true(contains(result.dropped, "odd_one").count > 0)
  end)
end)

describe("a plan without a pipeline", function()
  it("is made only where the spec fixes depth 1", function()
    local full = { training = { recompute = "full", sharding = "optimizer" } }
    local free, fixed = decide(llama, full), decide(llama, merge(full, { parallelism = { pipeline = 1 } }))
    assert.is_true(free.evaluation.pipeline > 1)
    assert.is_not_nil(free.avoidable)
    assert.equal(1, free.avoidable.fields.pipeline_parallel)
    assert.is_true(free.avoidable.fields.tensor_parallel <= 8)
    assert.equal("planned", fixed.status)
    assert.equal("none", fixed.evaluation.schedule)
    assert.near(free.avoidable.fields.step_seconds, fixed.evaluation.step_seconds, free.avoidable.fields.step_seconds * 0.011)
    assert.is_nil(fixed.schedule_wanted)
    assert.same({}, fixed.alternatives)
  end)
end)

describe("context parallelism", function()
  it("is searched only for long sequences, unless it is fixed", function()
    local long = { training = { sequence_length = 131072, global_batch_size = 64, recompute = "full" }, cluster = { gpus = 256 },
                   parallelism = { tensor = 8 } }
    local function degrees(changes)
      local seen, c = {}, decide(llama, changes).candidates
      for row = 1, #c do seen[c:get("context_parallel", row)] = true end
      return seen
    end
    assert.same({ true, true }, degrees { parallelism = { tensor = 8 } })              -- 8,192 / 2 = 4,096 tokens a rank
    assert.same({ true }, degrees { parallelism = { tensor = 8 }, training = { sequence_length = 4096 } })
    assert.same({ true, true, [4] = true, [8] = true, [16] = true, [32] = true }, degrees(long))  -- 131,072 / 32 = 4,096
    assert.same({ [4] = true }, degrees { parallelism = { tensor = 8, context = 4 } })
  end)
end)

describe("why", function()
  local result = decide(deepseek)

  it("knows the plan's own values", function()
    assert.equal("chosen", result.why("schedule", "dualpipe").verdict)
    assert.equal("chosen", result.why("parallelism.expert", 64).verdict)
  end)

  it("tells what dropped another choice", function()
    local answer = result.why("pipeline", 2)
    assert.equal("dropped", answer.verdict)
    assert.is_true(#answer.reasons > 0)
    assert.matches("^dropped by ", answer.text)
  end)

  it("tells where a survivor lost", function()
    assert.equal("lost", result.why("schedule", "1f1b").verdict)
    assert.equal("time", result.why("schedule", "1f1b").lost.by)
    local deeper = result.why("pipeline", 32)
    assert.equal("lost", deeper.verdict)
    assert.is_true(deeper.lost.step_fraction > 0)
  end)

  it("tells what never was a candidate, and what is no field", function()
    assert.equal("none", result.why("pipeline", 7).verdict)
    assert.error_matches(function() result.why("pipelines", 7) end, "no field 'pipelines'")
  end)
end)

-- A value the planner chose never fails a rule.
describe("whatever is asked for", function()
  local seed = 20261127
  local function random(n)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed // 65536 % n + 1
  end
  local function pick(list) return list[random(#list)] end

  local function random_spec()
    local model = pick { "deepseek-v3", "mixtral-8x7b", "llama-3-70b", "llama-3.1-8b", "qwen3-235b-a22b", "kimi-k2", "qwen3-0.6b" }
    local gpus = 8 * pick { 1, 2, 3, 4, 6, 8, 12, 16, 32, 48, 64, 128, 256 }
    return {
      cluster = { gpus = gpus, accelerator = pick { "H100-SXM", "A100-SXM-80GB", "H800-SXM", "B200-SXM" },
                  network = { fabric = pick { "infiniband", "roce", "efa" }, per_gpu = pick { "100Gbps", "200Gbps", "400Gbps", "800Gbps" } },
                  alltoall_kernel = pick { "deepep", false } },
      model = "examples/models/" .. model .. ".json",
      training = { sharding = "optimizer",
                   tokens = pick { "300M", "100B", "10T" }, sequence_length = pick { 2048, 4096, 8192 }, micro_batch_size = pick { 1, 1, 2 },
                   global_batch_size = gpus * pick { 1, 2, 3, 5, 8, 16 }, precision = pick { "bf16", "bf16", "fp8" },
                   recompute = pick { "none", "selective", "full" } },
      parallelism = { tensor = pick { 1, 2, 4, 8 } },
      framework = pick { "megatron", "torchtitan", "primus" },
    }
  end

  it("is planned within all rules, or not planned with a reason", function()
    local planned, other, specs = 0, 0, require "long" and 1000 or 100
    for _ = 1, specs do
      local object = random_spec()
      if random(2) == 1 then object.framework = nil end
      if random(2) == 1 then object.parallelism = {} end
      if random(3) > 1 then object.cluster.alltoall_kernel = nil end
      local good, result, known = pcall(decide, object)
      -- a spec that contradicts itself (fp8 on an A100, a batch that no layout divides) is an answer of its own
      if not good and not failure.is(result) then error(result, 0) end
      if good and result.status == "planned" then
        planned = planned + 1
        local fields = result.fields
        for _, kind in ipairs { "rejects", "refuses" } do
          for _, rule in ipairs(default[kind]) do
            assert.is_false(conditions.holds(rule, default, fields), rule.id)
          end
        end
        assert.is_true(fields.peak_bytes <= known.usable_bytes)
        assert.is_true(fields.pipeline_parallel > 1)
        assert.is_true(result.candidates:check(result.row))
        assert.equal(result.replaced, #result.reasons > 0)
      elseif good then
        other = other + 1
        assert.is_true(#result.reasons > 0)
        if result.recommend then assert.is_true(result.recommend.fields.peak_bytes <= known.usable_bytes) end
      end
    end
    assert.is_true(planned > specs / 5 and other > specs / 10, planned .. " planned, " .. other .. " not")
  end)

  it("has schedules only from the policy's list", function()
    local policy = policy_of [[set { schedules = { "interleaved_1f1b", "1f1b" } }]]
    assert.same({ "interleaved_1f1b", "1f1b" }, candidates.planned(policy))
    local result = decide(deepseek, {}, policy)
    assert.equal("interleaved_1f1b", result.schedule_wanted == "dualpipe" and result.evaluation.schedule or "interleaved_1f1b")
    assert.same({ "interleaved_1f1b", "1f1b" }, result.list)
  end)
end)
