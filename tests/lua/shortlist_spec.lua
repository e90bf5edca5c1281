-- SPDX-License-Identifier: Apache-2.0
-- The layouts that are worth measuring: each is reproduced by its changes, lies within the error of its comparison and is no twin of another.

local planning = require "planning"  -- first: it loads the module
local accuracy = require "pipeplan.catalog.accuracy"
local json = require "pipeplan.base.json"
local planner = require "pipeplan.plan.init"
local random_specs = require "random_specs"
local spec = require "pipeplan.input.spec"

local policy = require("pipeplan.policy.load").load { date = "2026-11-27" }

local function read(object) return spec.from_table(object, ".") end

local function planned(request, count) return planner.plan { request = request, policy = policy, shortlist = count } end

-- What is left out of the recipe is chosen: the widest choice.
local wide = planning.merge(planning.mixtral, { training = { micro_batch_size = planning.none, recompute = planning.none,
                                                             sharding = planning.none } })

-- The spec with the changes, written into it as its user would.
local function laid_over(object, changes)
  local copy = planning.merge(object, {})
  for path, value in pairs(changes) do
    local change = value
    for part in path:reverse():gmatch "[^.]+" do change = { [part:reverse()] = change } end
    copy = planning.merge(copy, change)
  end
  return copy
end

-- Is a plan of these changes the layout of the entry? `seen`: what is compared.
local function check_entry(object, entry)
  local plan = planned(read(laid_over(object, entry.changes)))
  assert.equal("planned", plan.status)
  assert.same(entry.parallelism, plan.parallelism)
  assert.same(entry.layers_per_stage, plan.layers_per_stage)
  assert.same({ entry.schedule, entry.microbatches, entry.micro_batch_size, entry.recompute, entry.sharding, entry.gpus_used },
              { plan.schedule, plan.microbatches, plan.micro_batch_size, plan.recompute, plan.sharding, plan.gpus_used })
  assert.equal(entry.step_seconds, plan.step_seconds)
  local peak = 0
  for _, rank in ipairs(plan.memory.ranks) do peak = math.max(peak, rank.total_bytes) end
  assert.equal(entry.peak_bytes, peak)
end

-- Accuracy's error of a comparison, by what differs: written out again, from docs/accuracy.md.
local function error_of(entry, plan)
  if entry == plan then return 0 end
  if (entry.parallelism.pipeline == 1) ~= (plan.parallelism.pipeline == 1) then return accuracy.comparisons.pipeline end
  local alike = entry.micro_batch_size == plan.micro_batch_size and entry.sharding == plan.sharding and entry.gpus_used == plan.gpus_used
                and table.concat(entry.recompute, " ") == table.concat(plan.recompute, " ")
  for name, degree in pairs(plan.parallelism) do alike = alike and (name == "virtual" or entry.parallelism[name] == degree) end
  return alike and accuracy.comparisons.schedule or accuracy.comparisons.layout
end

local function check_list(object, list)
  local seen = {}
  for i, entry in ipairs(list) do
    check_entry(object, entry)
    assert.equal(error_of(entry, list[1]), entry.error_fraction)
    assert.is_true(entry.slower_fraction <= entry.error_fraction + 1e-12, i .. " lies beyond its error")
    local sum = 0
    for term, seconds in pairs(entry.price) do
      assert.is_true(seconds >= -1e-9 * entry.step_seconds, term .. " takes less than nothing")
      sum = sum + seconds
    end
    assert.near(entry.step_seconds, sum, 1e-9 * entry.step_seconds)
    local key = json.encode { entry.schedule, entry.parallelism, entry.micro_batch_size, entry.recompute, entry.sharding, entry.gpus_used }
    assert.is_nil(seen[key], "twice: " .. key)
    seen[key] = true
    for term, seconds in pairs(entry.price) do   -- no other term is further from the plan's
      if entry.term then
        local own = entry.term .. "_seconds"
        assert.is_true(math.abs(seconds - list[1].price[term]) <= math.abs(entry.price[own] - list[1].price[own]) + 1e-12, term)
      end
    end
  end
end

describe("a shortlist", function()
  it("begins with the plan, and its entries are planned from their changes to the byte and the second", function()
    local plan = planned(read(wide), 6)
    assert.equal(6, #plan.shortlist)
    assert.same({ plan.schedule, plan.step_seconds, 0 },
                { plan.shortlist[1].schedule, plan.shortlist[1].step_seconds, plan.shortlist[1].slower_fraction })
    check_list(wide, plan.shortlist)
  end)

  it("has terms that add up where links are slow and ranks wait for each other's experts", function()
    local slow = { cluster = { network = { per_gpu = "1Gbps" } }, parallelism = { expert = 8 } }
    check_list(planning.merge(wide, slow), planned(read(planning.merge(wide, slow)), 4).shortlist)
  end)

  it("holds no near-twins: what a spec leaves free differs between any two", function()
    local list, axes = planned(read(wide), 5).shortlist, {}
    for _, entry in ipairs(list) do
      for name, value in pairs { schedule = entry.schedule, pipeline = entry.parallelism.pipeline, tensor = entry.parallelism.tensor,
                                 recompute = table.concat(entry.recompute, ","), micro = entry.micro_batch_size } do
        axes[name] = axes[name] or {}
        axes[name][value] = true
      end
    end
    for name, values in pairs(axes) do
      assert.is_truthy(next(values, next(values)), "all have the same " .. name)
    end
  end)

  it("has one entry, which says so, where the spec leaves nothing to choose", function()
    local fixed = laid_over(wide, planned(read(wide), 2).shortlist[1].changes)
    local plan = planned(read(fixed), 4)
    assert.equal(1, #plan.shortlist)
    assert.matches("nothing to measure it against", require("pipeplan.report.shortlist").text(plan, 4), 1, true)
  end)

  it("is not there of what is not planned, nor unasked", function()
    assert.is_nil(planned(read(planning.merge(wide, { training = { tokens = "999M" } })), 4).shortlist)
    assert.is_nil(planned(read(wide)).shortlist)
  end)

  it("keeps all of this on random specs", function()
    local r, lists, entries, several = random_specs.generator(16), 0, 0, 0
    while lists < 12 do
      local object = random_specs.any(r)
      if object.cluster.gpus > 1024 then object.cluster.gpus = 256 end
      local good, request = pcall(read, object)
      local plan = good and planned(request, 4)
      if plan and plan.shortlist then
        check_list(object, plan.shortlist)
        lists, entries = lists + 1, entries + #plan.shortlist
        several = several + (#plan.shortlist > 1 and 1 or 0)
      end
    end
    assert.is_true(several >= 6 and entries >= 24, entries .. " entries, " .. several .. " lists of several")
  end)
end)
