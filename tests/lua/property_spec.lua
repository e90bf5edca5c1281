-- SPDX-License-Identifier: Apache-2.0
-- Whatever is asked: a value that the planner chose never fails a rule. Random specs; each plan's whole layout, given as a spec,
-- is planned again as the same plan, and so is each recommendation.
--
-- 56; PIPEPLAN_SPECS=N tries N instead (1,000 are a minute or five); PIPEPLAN_FIRST=K begins with the K-th, to look at one that failed.

local planning = require "planning"  -- first: it loads the module
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local random_specs = require "random_specs"
local schema = require "pipeplan.schema.plan"

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
  expect(p.data * p.tensor * p.context * p.pipeline == plan.gpus_used, "%d of %d GPUs", plan.gpus_used, plan.cluster.gpus)
  expect(plan.microbatches * p.data * plan.micro_batch_size == plan.global_batch_size, "a batch of %d", plan.global_batch_size)
  local layers = 0
  for _, count in ipairs(plan.layers_per_stage) do layers = layers + count end
  expect(layers == plan.model.layers, "%d layers on the stages", layers)
  for _, rank in ipairs(plan.memory.ranks) do
    expect(rank.total_bytes <= plan.memory.device_bytes - plan.memory.headroom_bytes + 1, "rank %d takes %.0f bytes", rank.rank, rank.total_bytes)
  end
  expect(p.pipeline > 1 or spec.parallelism.pipeline == 1, "no pipeline, unasked")
  for field, value in pairs(spec.parallelism) do
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
  fixed.training.zero, fixed.training.sharding = nil, recommended.sharding
  fixed.training.optimizer_offload = recommended.optimizer_offload or fixed.training.optimizer_offload
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
  expect(plan.recommend or not alone, "nothing is recommended for a model that fits one GPU")
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

describe("random specs", function()
  it("have plans that are planned again, and answers with a reason", function()
    local first = math.tointeger(tonumber(os.getenv "PIPEPLAN_FIRST" or 1))
    local last = first - 1 + math.tointeger(tonumber(os.getenv "PIPEPLAN_SPECS" or (require "long" and 1000 or 56)))
    local outcomes = { planned = 0, refused = 0, rejected = 0, unreadable = 0 }
    local broken = {}
    for number = first, last do
      local spec = random_specs.any(random_specs.generator(number))
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
