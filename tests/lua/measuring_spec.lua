-- SPDX-License-Identifier: Apache-2.0
-- Measuring a shortlist in a world whose all-to-all takes half as long again as is computed: what the runs choose, and what they say of the
-- price. The world is the engine's own, with a factor: the truth is known, and what is found is held against it.

local planning = require "planning"  -- first: it loads the module
local candidates = require "pipeplan.plan.candidates"
local facts = require "pipeplan.plan.facts"
local lists = require "pipeplan.base.lists"
local measured = require "pipeplan.plan.measured"
local planner = require "pipeplan.plan.init"
local random_specs = require "random_specs"
local spec = require "pipeplan.input.spec"
local what_if = require "pipeplan.plan.what_if"

local policy = require("pipeplan.policy.load").load { date = "2026-11-27" }

local slow_alltoall = { expert = 1.5 }

local function in_world(request, factors) return lists.with(request, { calibration = { factors = factors } }) end

-- The step of a layout there, with the split that it has here.
local function true_seconds(request, entry, factors)
  local split = entry.parallelism.pipeline > 1 and entry.layers_per_stage or nil
  local there = in_world(spec.laid(request, lists.with(entry.changes, { ["parallelism.layers_per_stage"] = split })), factors)
  return (assert(what_if.layout(there, policy))).step_seconds
end

-- The least step of all that no rule drops, there.
local function best_seconds(request, factors)
  local there = in_world(request, factors)
  policy.host:refill()
  local known = facts.of(there, policy)
  local set = candidates.open { request = there, policy = policy, record = known.record, arguments = known.arguments,
                                fixed = there.parallelism }
  local main, seconds = set:best(set.main)
  local alone, other = set:best(set.alone)
  return math.min(main and seconds or math.huge, alone and other or math.huge)
end

-- Runs of a shortlist there: steps off by up to `noise`, the same each time.
local function runs_of(request, shortlist, factors, noise)
  local runs = {}
  for i, entry in ipairs(shortlist) do
    local seconds = true_seconds(request, entry, factors) * (1 + noise * ((i * 7) % 5 - 2) / 2)
    runs[i] = { name = "shortlist.json:" .. i, file = "shortlist.json", log = "run-" .. i .. ".log", layout = entry,
                measured = { steps = 30, median_seconds = seconds, low_seconds = seconds, high_seconds = seconds, error_fraction = 0.001 } }
  end
  return runs
end

local function random_moe(r)
  return {
    cluster = { gpus = r.pick { 64, 128, 256, 512 }, accelerator = r.pick { "H100-SXM", "H800-SXM-80GB", "H200-SXM", "B200" },
                network = { fabric = "infiniband", per_gpu = r.pick { "400Gbps", "200Gbps" } },
                alltoall_kernel = r.pick { "deepep", "nccl_alltoall", "false" } },
    model = "examples/models/" .. r.pick { "mixtral-8x7b", "qwen3-235b-a22b", "deepseek-v3" } .. ".json",
    training = { tokens = "1T", sequence_length = 4096, global_batch_size = r.pick { 1024, 2048, 4096 }, precision = r.pick { "bf16", "fp8" } },
  }
end

-- The shortlists of random specs, measured there: regrets against the fastest layout of all, { blind, chosen, listed (the best of the
-- shortlist) }, and what was found.
local function study(seed, count, size, truth, noise)
  local r, out = random_specs.generator(seed), {}
  while #out < count do
    local request = spec.from_table(random_moe(r), ".")
    local plan = planner.plan { request = request, policy = policy, shortlist = size }
    if plan.status == "planned" and #plan.shortlist > 1 then
      local best, least = best_seconds(request, truth), math.huge
      for _, entry in ipairs(plan.shortlist) do least = math.min(least, true_seconds(request, entry, truth)) end
      local runs = runs_of(request, plan.shortlist, truth, noise)
      local after = measured.of { request = request, policy = policy, plan = plan, runs = runs }
      local chosen
      for i, run in ipairs(after.measured.runs) do
        if run.chosen then chosen = true_seconds(request, plan.shortlist[i], truth) end
      end
      out[#out + 1] = { request = request, blind = true_seconds(request, plan.shortlist[1], truth) / best - 1, chosen = chosen / best - 1,
                        listed = least / best - 1, factors = after.measured.factors }
    end
  end
  return out
end

-- What docs/measuring.md says of a study: PIPEPLAN_STUDY=24 tests/busted.sh tests/lua/measuring_spec.lua prints it.
local function tell(count)
  local sums = { blind = 0, chosen = 0, listed = 0, found = 0, named = 0 }
  for _, one in ipairs(study(7, count, 4, slow_alltoall, 0.004)) do
    io.write(string.format("# %-16s %4d %-10s blind %5.1f %%, measured %5.1f %%, best of the list %5.1f %%; %s\n", one.request.model.name,
                           one.request.cluster.gpus, one.request.cluster.accelerator, 100 * one.blind, 100 * one.chosen, 100 * one.listed,
                           require("pipeplan.input.calibration").words(one.factors)))
    for _, key in ipairs { "blind", "chosen", "listed" } do sums[key] = sums[key] + one[key] / count end
    sums.found = sums.found + (one.chosen <= one.listed + 0.01 and 1 or 0)
    sums.named = sums.named + (one.factors.expert and 1 or 0)
  end
  io.write(string.format("# mean regret: blind %.2f %%, measured %.2f %%, best of the list %.2f %%; the fastest of the list taken in %d of %d; "
                         .. "all-to-all named in %d\n", 100 * sums.blind, 100 * sums.chosen, 100 * sums.listed, sums.found, count, sums.named))
end

if os.getenv "PIPEPLAN_STUDY" then tell(math.tointeger(tonumber(os.getenv "PIPEPLAN_STUDY"))) end

describe("measuring a shortlist", function()
  it("finds the layout that is fastest there, where the blind plan is not, and names what is slow", function()
    local blind, chosen, named = 0, 0, 0
    for _, one in ipairs(study(7, 6, 4, slow_alltoall, 0.004)) do
      blind, chosen = blind + one.blind / 6, chosen + one.chosen / 6
      assert.is_true(one.chosen <= one.blind + 1e-9)
      assert.is_true(one.chosen <= one.listed + 0.01, "not the fastest of the list")
      for family in pairs(one.factors) do assert.is_true(family == "all" or family == "expert", family) end
      if one.factors.expert then
        named = named + 1
        assert.near(1.5, one.factors.expert, 0.1)
        assert.near(1, one.factors.all, 0.02)
      end
    end
    assert.is_true(chosen < blind / 3, string.format("mean regret %.3f measured, %.3f blind", chosen, blind))
    assert.is_true(named >= 3, "named in " .. named .. " of 6")
  end)

  it("corrects nothing but the whole where the price is right but for a factor of everything and noise", function()
    for _, one in ipairs(study(3, 3, 4, { compute = 1.2, tensor = 1.2, context = 1.2, expert = 1.2, data = 1.2, pipeline = 1.2 }, 0.03)) do
      assert.near(1.2, one.factors.all, 0.03)
      assert.is_nil(next(one.factors, next(one.factors)))
    end
  end)

  it("keeps the plan where it ties with the fastest, and says so", function()
    local request = spec.from_table(planning.merge(planning.mixtral, { training = { micro_batch_size = planning.none,
                                                                                    recompute = planning.none } }), ".")
    local plan = planner.plan { request = request, policy = policy, shortlist = 3 }
    local runs = runs_of(request, plan.shortlist, {}, 0)
    for i, run in ipairs(runs) do run.measured.median_seconds = 40 + (i == 2 and -0.2 or 0) end
    local after = measured.of { request = request, policy = policy, plan = plan, runs = runs }
    assert.is_false(after.measured.changed)
    assert.same({ true, true, true }, lists.column(after.measured.runs, "tie"))
    assert.matches("the plan ties with the fastest", after.measured.why, 1, true)
    runs[2].measured.median_seconds = 38
    after = measured.of { request = request, policy = policy, plan = plan, runs = runs }
    assert.is_true(after.measured.changed)
    assert.same({ plan.shortlist[2].schedule, plan.shortlist[2].parallelism }, { after.schedule, after.parallelism })
    assert.matches("measured, it takes 5 % less than the plan", after.measured.why, 1, true)
  end)
end)
