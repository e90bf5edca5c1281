-- Whatever is asked: a value that the planner chose never fails a rule. A thousand random specs; each plan's whole layout, given as a spec,
-- is planned again as the same plan, and so is each recommendation.
--
-- 1,000 where CI is set, else 200; PIPEPLAN_SPECS=N tries N instead; PIPEPLAN_FIRST=K begins with the K-th, to look at one that failed.

local planning = require "planning"  -- first: it loads the module
local engine = require "engine"
local failure = require "pipeplan.failure"
local json = require "pipeplan.report.json"
local schema = require "pipeplan.schema.plan"

-- ---------------------------------------------------------------------------------------------------------------------- random specs

-- A linear congruential generator of its own (Knuth's MMIX constants), so that the specs are the same wherever and whenever they are made.
local function generator(seed)
  local state = seed
  local function integer(high)  -- 1 … high
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % high + 1
  end
  for _ = 1, 8 do integer(2) end  -- neighbouring seeds drift apart
  local random = { integer = integer }
  function random.pick(list) return list[integer(#list)] end
  function random.sometimes(percent) return integer(100) <= percent end
  return random
end

local files = { "deepseek-v3", "kimi-k2", "llama-2-7b", "llama-3-70b", "llama-3.1-405b", "mixtral-8x7b", "qwen3-235b-a22b",
                "llama-3-70b", "deepseek-v3", "qwen3-0.6b" }
local schedules = engine.schedule.kinds

local function random_model(r)
  if r.sometimes(55) then return "examples/models/" .. r.pick(files) .. ".json" end
  local layers, heads = r.pick { 24, 31, 48, 61, 80, 96, 126 }, r.pick { 8, 32, 64, 64 }
  if r.sometimes(25) then
    return r.sometimes(50) and { architecture = "moe", total = r.pick { "16B", "46.7B", "235B", "671B", "1T" },
                                 active = r.pick { "2.4B", "6B", "13B" }, layers = layers }
           or { architecture = "dense", total = r.pick { "8B", "34B", "70B", "180B", "405B" }, layers = layers }
  end
  local model = { name = "random", layers = layers, hidden = 128 * heads, heads = heads, kv_heads = r.pick { 1, 2, 4, 8 }, head_dim = 128,
                  vocab = r.pick { 32000, 50257, 128256, 151936 }, tied_embeddings = r.sometimes(20) }
  if r.sometimes(50) then
    model.experts, model.experts_per_token, model.expert_ffn = r.pick { 8, 16, 60, 64, 128, 160, 256 }, r.pick { 1, 2, 4, 8 }, 64 * r.integer(40)
    if r.sometimes(30) then model.shared_ffn = model.expert_ffn end
  else
    model.ffn = 256 * (heads + r.integer(heads))
  end
  return model
end

local function random_gpus(r)
  if r.sometimes(20) then return r.integer(600) end
  return r.pick { 1, 2, 4, 8, 16, 32, 64, 96, 99, 100, 128, 192, 256, 384, 499, 500, 512, 768, 1000, 1024, 1536, 2048, 3072, 4096, 16384 }
end

local function random_batch(r, gpus, tokens)
  if r.sometimes(25) then return nil end
  if r.sometimes(15) and tokens:find "T" then return { { 0, 512 }, { "10B", 1024 }, { "50B", 3072 } } end
  if r.sometimes(5) then return r.integer(5000) end
  if r.sometimes(40) then return gpus * r.pick { 1, 2, 3, 4, 8, 15, 32 } end
  return r.pick { 64, 256, 384, 1024, 1536, 2048, 4096, 7680, 15360 }
end

local function maybe(r, percent, list) return r.sometimes(percent) and r.pick(list) or nil end

-- Degrees that do not divide the GPUs are an error of the spec: some, not most.
local function maybe_degree(r, percent, list, gpus)
  local degree = maybe(r, percent, list)
  if degree and gpus % degree ~= 0 and not r.sometimes(5) then return nil end
  return degree
end

local function random_parallelism(r, gpus, dense)
  local experts = dense and (r.sometimes(2) and { 2 } or { 1 }) or { 1, 2, 8, 16, 64 }
  return {
    tensor = maybe_degree(r, 25, { 1, 2, 4, 8 }, gpus), context = maybe_degree(r, 10, { 1, 2 }, gpus),
    pipeline = maybe_degree(r, 30, { 1, 2, 3, 4, 8, 16, 30, 64 }, gpus), expert = maybe_degree(r, 20, experts, gpus),
    expert_tensor = not dense and maybe_degree(r, 5, { 1, 2 }, gpus) or nil, virtual = maybe(r, 5, { 1, 2, 3 }),
    schedule = maybe(r, 25, schedules),
  }
end

local frameworks = { "megatron", "megatron-bridge", "flagscale", "deepseek-dualpipe", "torchtitan", "torch", "deepspeed", "nanotron", "mindspeed",
                     "primus", "colossalai", "zero-bubble" }

local function random_spec(r)
  local gpus, model, tokens = random_gpus(r), random_model(r), r.pick { "999M", "1B", "100B", "100B", "2T", "2T", "15T", "15T", "15T" }
  local name = type(model) == "string" and model or model.experts and "moe" or model.architecture or "dense"
  return {
    cluster = {
      gpus = gpus, gpus_per_node = maybe(r, 10, { 4, 8, 16 }), memory_per_gpu = maybe(r, 15, { "24GiB", "40GiB", "96GiB", "192GiB" }),
      accelerator = r.pick { "H100-SXM", "H800-SXM-80GB", "A100-SXM-80GB", "B200", "MI300X", "GB200", "H200-SXM" },
      network = { per_gpu = r.pick { "800Gbps", "400Gbps", "201Gbps", "200Gbps", "100Gbps", "25Gbps" },
                  fabric = r.pick { "infiniband", "roce", "efa", "ethernet", "slingshot" }, oversubscription = maybe(r, 10, { 2, 4 }) },
      alltoall_kernel = maybe(r, 25, { "deepep", "nccl_alltoall", "uccl_ep", "false" }),
    },
    model = model,
    training = {
      tokens = tokens, sequence_length = maybe(r, 80, { 2048, 4096, 8192, 32768 }),
      micro_batch_size = maybe(r, 20, { 1, 1, 2, 4 }), global_batch_size = random_batch(r, gpus, tokens),
      precision = maybe(r, 40, { "bf16", "bf16", "fp8", "fp16" }), moments = maybe(r, 20, { "bf16", "fp32" }),
      gradients = maybe(r, 20, { "bf16", "fp32" }), optimizer = maybe(r, 20, { "adamw", "muon", "sgd" }),
      recompute = maybe(r, 70, { "none", "selective", "full", "selective", "full" }),
    },
    parallelism = random_parallelism(r, gpus, name == "dense" or name:find "llama" ~= nil or name:find "0.6b" ~= nil),
    framework = maybe(r, 20, frameworks),
  }
end

-- ------------------------------------------------------------------------------------------------------------------------ properties

local function expect(condition, format, ...)
  if not condition then error(string.format(format, ...), 0) end
end

local function encoded(plan) return json.encode(json.shape(plan, schema)) end

-- A spec whose every degree is fixed. Where the batch was assumed it is given now.
local function fixed_spec(spec, layout, batch)
  local out = planning.merge(spec, { training = { global_batch_size = batch } })
  out.parallelism = layout
  return out
end

local function check_planned(plan, spec)
  local p = plan.parallelism
  expect(p.data * p.tensor * p.context * p.pipeline == plan.cluster.gpus, "%d GPUs", plan.cluster.gpus)
  expect(plan.microbatches * p.data * plan.micro_batch_size == plan.global_batch_size, "a batch of %d", plan.global_batch_size)
  local layers = 0
  for _, count in ipairs(plan.layers_per_stage) do layers = layers + count end
  expect(layers == plan.model.layers, "%d layers on the stages", layers)
  for _, rank in ipairs(plan.memory.ranks) do
    expect(rank.total_bytes <= plan.memory.device_bytes - plan.memory.headroom_bytes + 1, "rank %d takes %.0f bytes", rank.rank, rank.total_bytes)
  end
  expect(p.pipeline > 1 or spec.parallelism.pipeline == 1, "no pipeline, unasked")  -- ruling 24
  for field, value in pairs(spec.parallelism) do                                     -- ruling 12
    local chosen = field == "schedule" and plan.schedule or p[field]
    expect(chosen == value or p.pipeline == 1 and field == "schedule", "%s %s was given, %s is planned", field, value, chosen)
  end
end

-- The plan's layout as a spec: the same plan.
local function check_again(plan, spec)
  local layout = {}
  for field, value in pairs(plan.parallelism) do layout[field] = value end
  layout.schedule, layout.layers_per_stage = plan.schedule, plan.layers_per_stage
  local batch = spec.training.global_batch_size
  if type(batch) ~= "table" then
    layout.microbatches, batch = plan.microbatches, plan.global_batch_size
  end
  local again = planning.plan(fixed_spec(spec, layout, batch))
  expect(again.status == "planned", "its own layout is %s: %s", again.status, table.concat(planning.ids(again.reasons), ", "))
  for field, value in pairs(plan.parallelism) do
    expect(again.parallelism[field] == value, "%s %d becomes %d", field, value, again.parallelism[field])
  end
  expect(again.schedule == plan.schedule, "%s becomes %s", plan.schedule, again.schedule)
  expect(again.step_seconds == plan.step_seconds, "its step takes %.17g s, now %.17g", plan.step_seconds, again.step_seconds)
end

-- A recommendation as a spec: a plan.
local function check_recommended(plan, spec)
  local recommended = plan.recommend
  local layout = {}
  for field, value in pairs(recommended.parallelism) do layout[field] = value end
  layout.schedule = recommended.schedule
  local batch = spec.training.global_batch_size
  if type(batch) ~= "table" then batch = recommended.microbatches * layout.data * recommended.micro_batch_size end
  local fixed = fixed_spec(spec, layout, batch)
  fixed.training.micro_batch_size = recommended.micro_batch_size
  fixed.training.recompute = recommended.recompute or fixed.training.recompute
  local again = planning.plan(fixed)
  expect(again.status == "planned", "its recommendation %s at P %d is %s: %s", layout.schedule, layout.pipeline, again.status,
         table.concat(planning.ids(again.reasons), ", "))
end

local function check_not_planned(plan, spec)
  expect(#plan.reasons > 0, "no reason")
  for _, reason in ipairs(plan.reasons) do
    expect(type(reason.id) == "string" and #reason.id > 0, "a reason without an id")
    expect(type(reason.message) == "string" and #reason.message > 20, "%s says nothing", reason.id)
  end
  if plan.recommend then check_recommended(plan, spec) end
  local alone = planning.entry(plan.reasons, "fits_one_gpu") and type(spec.training.global_batch_size) ~= "table"
  expect(plan.recommend or not alone, "nothing is recommended for a model that fits one GPU")  -- ruling 6
end

local function check(spec, number)
  local plan = planning.plan(spec)
  if number % 4 == 0 then expect(encoded(plan) == encoded(planning.plan(spec)), "the second time it is another plan") end
  if plan.status == "planned" then
    check_planned(plan, spec)
    check_again(plan, spec)
  else
    check_not_planned(plan, spec)
  end
  return plan.status
end

describe("a thousand random specs", function()
  it("have plans that are planned again, and answers with a reason", function()
    local first = math.tointeger(tonumber(os.getenv "PIPEPLAN_FIRST" or 1))
    local last = first - 1 + math.tointeger(tonumber(os.getenv "PIPEPLAN_SPECS" or os.getenv "CI" and 1000 or 200))
    local outcomes = { planned = 0, refused = 0, rejected = 0, unreadable = 0 }
    local broken = {}
    for number = first, last do
      local spec = random_spec(generator(number))
      local good, outcome = xpcall(check, function(problem)
        return failure.is(problem) and problem or type(problem) == "string" and problem or debug.traceback(tostring(problem))
      end, spec, number)
      if good then
        outcomes[outcome] = outcomes[outcome] + 1
      elseif failure.is(outcome) and outcome.status == 2 then
        outcomes.unreadable = outcomes.unreadable + 1
        if not outcome.message:match "^spec: [^\n]+$" then broken[#broken + 1] = number .. ": " .. outcome.message end
      else
        broken[#broken + 1] = string.format("%d: %s\n%s", number, failure.is(outcome) and outcome.message or outcome, json.encode(spec))
      end
    end
    assert.equal("", table.concat(broken, "\n", 1, math.min(#broken, 10)))
    if last - first >= 999 then
      for outcome, count in pairs(outcomes) do assert.is_true(count > 40, outcome .. " " .. count) end
    end
  end)
end)
