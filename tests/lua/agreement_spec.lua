-- SPDX-License-Identifier: Apache-2.0
-- What a plan says in two places, or by two ways, agrees: the columns that rules read with what is printed of the candidate, the terms of a rank
-- with their sum, the verdict with the bytes. C's halves of it: tests/unit/agreement_test.c.
--
-- PIPEPLAN_SPECS=N tries N random specs; PIPEPLAN_FIRST=K begins with the K-th.

local planning = require "planning"  -- first: it loads the module
local choose = require "pipeplan.plan.choose"
local facts = require "pipeplan.plan.facts"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local load = require("pipeplan.policy.load").load
local random_specs = require "random_specs"
local spec = require "pipeplan.input.spec"

local asked = os.getenv "PIPEPLAN_SPECS" ~= nil  -- then no more is tried than was asked for
local first = math.tointeger(tonumber(os.getenv "PIPEPLAN_FIRST" or 1))

local function wanted(count) return first - 1 + math.tointeger(tonumber(os.getenv "PIPEPLAN_SPECS" or count)) end

local function expect(condition, format, ...)
  if not condition then error(string.format(format, ...), 0) end
end

-- Runs check(spec) for so many random specs; what cannot be read is passed over. → how many were checked
local function each(count, check)
  local checked = 0
  for number = first, wanted(count) do
    local made = random_specs.with_everything(random_specs.generator(number))
    local good, problem = pcall(check, made)
    if good then checked = checked + 1
    elseif not failure.is(problem) then error("spec " .. number .. ": " .. tostring(problem), 0) end
  end
  return checked
end

-- ------------------------------------------------------------------------------------------------------------------------- candidates

local no_term = { rank = true, stages = true, total = true, host = true }

-- What a rank's bytes are made of: all that is told of it but these.
local function terms_of(rank)
  local terms = {}
  for _, name in ipairs(lists.sorted_keys(rank)) do
    if not no_term[name] then terms[#terms + 1] = name end
  end
  return terms
end

-- → bytes of the fullest rank, each the sum of its terms.
local function fullest(ranks, total, names, suffix)
  local most = 0
  for _, rank in ipairs(ranks) do
    local sum = 0
    for _, name in ipairs(names) do
      expect(rank[name .. suffix] >= 0, "%s of rank %d is %s", name, rank.rank, rank[name .. suffix])
      sum = sum + rank[name .. suffix]
    end
    expect(math.abs(sum - rank[total]) <= 1e-9 * sum, "terms of rank %d add up to %.17g, not %.17g", rank.rank, sum, rank[total])
    most = math.max(most, rank[total])
  end
  return most
end

local function check_row(c, row)
  local seconds, bubble = c:get("step_seconds", row), c:get("bubble_fraction", row)
  local whole = c:evaluate(row)
  if not whole then return false end
  local peak = c:get("peak_bytes", row)
  local where = string.format("row %d, %s P %d TP %d EP %d", row, whole.schedule, whole.pipeline, whole.tensor, whole.expert)
  expect(whole.peak_bytes == fullest(whole.memory, "total", terms_of(whole.memory[1]), ""), "%s: the fullest rank is not the peak", where)
  expect(whole.memory[whole.heaviest_rank + 1].total == whole.peak_bytes, "%s: rank %d is not the fullest", where, whole.heaviest_rank)
  if whole.schedule == "zb_auto" then   -- judged by a limit, before its program is planned
    expect(whole.peak_bytes <= peak * (1 + 1e-12), "%s: takes %.17g, judged by %.17g", where, whole.peak_bytes, peak)
  else
    expect(whole.peak_bytes == peak, "%s: takes %.17g, judged by %.17g", where, whole.peak_bytes, peak)
    expect(whole.heaviest_rank == c:fullest(row), "%s: rank %d, judged by rank %d", where, whole.heaviest_rank, c:fullest(row))
  end
  local one_copy = c:get("one_copy_bytes", row)
  expect(not one_copy or math.abs(peak - whole.further_copies_bytes - one_copy) <= 1e-9 * peak, "%s: one copy takes %.17g, judged by %.17g",
         where, peak - whole.further_copies_bytes, one_copy or 0)
  expect(c:bound(row) <= whole.step_seconds, "%s: bound %.17g, step %.17g", where, c:bound(row), whole.step_seconds)
  expect(not seconds or seconds == whole.step_seconds, "%s: step %.17g, judged by %.17g", where, whole.step_seconds, seconds or 0)
  expect(not bubble or bubble == whole.bubble_fraction, "%s: bubble %.17g, judged by %.17g", where, whole.bubble_fraction, bubble or 0)
  return true
end

-- Without a pipeline, TP and EP, and with microbatches of one, a candidate is what `one_gpu` speaks of.
local function check_one_gpu(c, request, known)
  if request.training.micro_batch_size ~= 1 then return end
  for row = 1, #c do
    local function is(field, value) return c:get(field, row) == value end
    local recipe = is("micro_batch_size", 1) and is("gpus_used", request.cluster.gpus)
                   and (not request.free.recompute or is("recompute", "none")) and (not request.free.sharding or is("sharding", "optimizer"))
    if recipe and is("pipeline_parallel", 1) and is("tensor_parallel", 1) and is("context_parallel", 1) and is("expert_parallel", 1)
       and is("expert_tensor_parallel", 1) then
      local whole = c:evaluate(row)
      expect(math.abs(whole.peak_bytes - known.one_gpu.bytes) <= 1e-9 * whole.peak_bytes, "one GPU takes %.17g, candidate %d %.17g",
             known.one_gpu.bytes, row, whole.peak_bytes)
    end
  end
end

describe("a candidate", function()
  it("is judged by the bytes and seconds that are printed of it", function()
    local policy, rows = load { date = "2026-11-27" }, 0
    local checked = each(require "long" and 60 or 30, function(made)
      local request = spec.from_table(made, ".")
      local known = facts.of(request, policy)
      local result = choose.choose { request = request, policy = policy, record = known.record, arguments = known.arguments }
      local c = result.candidates
      check_one_gpu(c, request, known)
      local stride = math.max(1, #c // 40)
      for row = 1, #c do
        -- what was simulated, and some of the rest
        if (c:get("step_seconds", row) or row % stride == 0) and check_row(c, row) then rows = rows + 1 end
      end
    end)
    assert.is_true(checked > (asked and 0 or 20) and rows > (asked and 0 or 500), checked .. " specs, " .. rows .. " rows")
  end)
end)

-- -------------------------------------------------------------------------------------------------------------------------------- plans

local printed = { "parameters", "gradients", "optimizer", "activations", "buffers" }

local function check_memory(plan)
  local memory = plan.memory
  local most = fullest(memory.ranks, "total_bytes", printed, "_bytes")
  local usable = memory.device_bytes - memory.headroom_bytes
  expect(memory.fit == "fits" or memory.fit == "tight", "planned, and memory.fit is %s", memory.fit)
  expect(most <= usable * (1 + 1e-12), "planned with %.17g of %.17g bytes", most, usable)
  return most / usable * memory.device_bytes
end

-- The plan with everything fixed, on a GPU of so much memory.
local function fixed(made, plan, memory)
  local layout = planning.merge(plan.parallelism, { schedule = plan.schedule, layers_per_stage = plan.layers_per_stage })
  return planning.plan(planning.merge(made, {
    cluster = { gpus = plan.gpus_used, memory_per_gpu = string.format("%.0f", memory) }, parallelism = layout,
    training = { micro_batch_size = plan.micro_batch_size, global_batch_size = plan.global_batch_size,
                 recompute = plan.recompute[1] and plan.recompute or "none", sharding = not made.training.zero and plan.sharding or nil },
  }))
end

describe("a plan", function()
  it("fits by the sum of what it prints, and is none where a thousandth of that is missing", function()
    local planned, tight = 0, 0
    each(require "long" and 80 or 40, function(made)
      local plan = planning.plan(made)
      if plan.status ~= "planned" then return end
      planned = planned + 1
      local memory = check_memory(plan)
      if type(made.training.global_batch_size) == "table" or memory < 2 ^ 30 then return end
      local less, more = fixed(made, plan, memory * 0.999), fixed(made, plan, memory * 1.001)
      -- zb_auto is planned for the memory that there is
      expect(less.status ~= "planned" or plan.schedule == "zb_auto", "planned as %s with a thousandth less than it takes", less.schedule)
      if less.status == "planned" then check_memory(less) end
      if more.status == "planned" then
        check_memory(more)
        tight = tight + 1
      end
    end)
    assert.is_true(planned > (asked and 0 or 10) and tight > (asked and 0 or 5), planned .. " planned, " .. tight .. " tight")
  end)
end)

-- Ring Attention (Liu et al. 2310.01889 §3): blocks of c tokens take 4dc² FLOPs, half of them under the causal mask, and pass on 4cd bytes, backward
-- twice as many beside 2.5 times the work; n − 1 blocks come by while n − 1 are worked on. What shows of it is the plan's figure. Attention runs at the
-- catalogue's share of the peak, less where sequences are short or pieces of 128 queries of a head are few.
describe("a plan with context parallelism", function()
  it("says how much of the ring its attention does not hide", function()
    local made = {
      cluster = { gpus = 8, gpus_per_node = 1, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "100Gbps" } },
      model = { layers = 8, hidden = 4096, heads = 32, kv_heads = 32, head_dim = 128, ffn = 14336, vocab = 32000 },
      training = { micro_batch_size = 1, sharding = "optimizer", tokens = "1T", sequence_length = 8192, global_batch_size = 16, recompute = "none" },
      parallelism = { tensor = 1, context = 4, pipeline = 2, schedule = "1f1b", layers_per_stage = { 4, 4 } },
    }
    local policy = require("pipeplan").policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-27" })
    local plan, request = planning.plan(made, nil, policy), spec.from_table(made, ".")
    assert.equal("planned", plan.status)
    local network, device = request.cluster.network, request.device
    local n, c, d = 4, 8192 / 4, 4096
    local speed, few = network.per_gpu * network.efficiency, 1 + device.attention_fill / (32 * c / 128)
    local peak = device.flops_bf16 * device.attention_efficiency / few
    local step = 14e-6   -- of a ring over a network: NVIDIA/nccl src/graph/tuning.cc, hwLatencies
    local passed, worked = step + 4 * c * d / speed, 2 * d * c ^ 2 / peak * (1 + device.attention_half / 8192)
    local back = step + 2 * 4 * c * d / speed
    local worked_back = 2.5 * 2 * d * c ^ 2 / (peak * device.attention_backward) * (1 + device.attention_half_backward / 8192)
    local ahead_shown, back_shown = (n - 1) * math.max(0, passed - worked), (n - 1) * math.max(0, back - worked_back)
    local context, times = plan.communication.context, plan.microbatches * 4
    assert.is_true(ahead_shown > 0 and back_shown > 0)
    assert.near(times * (n - 1) * (passed + back), context.seconds, 1e-9 * context.seconds)
    assert.near(times * (ahead_shown + back_shown), context.exposed_seconds, 1e-9 * context.seconds)
  end)
end)
