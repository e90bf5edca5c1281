-- SPDX-License-Identifier: Apache-2.0
-- Every suggestion of a plan was planned: its changes, laid over the spec, give its outcome. What was chosen, given, changes nothing. The
-- frontier has no point that another candidate beats in both. Expected values are other runs of the planner: what is asked is that they agree.

local planning = require "planning"  -- first: it loads the module
local files = require "policy_files"
local json = require "pipeplan.base.json"
local program = require "program"
local random_specs = require "random_specs"

teardown(files.remove)

-- A spec with fields by path laid over it.
local function laid(spec, changes)
  local out = planning.merge(spec, {})
  for path, value in pairs(changes) do
    local at = out
    for part in path:gmatch "([^.]+)%." do
      at[part] = planning.merge(at[part] or {}, {})
      at = at[part]
    end
    at[path:match "[^.]+$"] = value
  end
  return out
end

local function fullest(plan)
  local most = 0
  for _, rank in ipairs(plan.memory.ranks) do most = math.max(most, rank.total_bytes) end
  return most
end

local function replan(spec, base)
  return planning.policy:plan_spec(spec, base or ".")
end

-- Plans the spec and each piece of advice that it gets → the plan, how many there were.
local function check_advice(spec, base, where)
  local made, plan = pcall(replan, spec, base)
  if not made then return nil, 0 end
  for _, entry in ipairs(plan.advice) do
    local told = string.format("%s: %s: %s %s", where, entry.id, entry.message, json.encode(entry.changes))
    local good, other = pcall(replan, laid(spec, entry.changes), base)
    assert.is_true(good, told .. ": " .. tostring(type(other) == "table" and other.message or other))
    assert.equal(entry.outcome.status, other.status, told)
    assert.near(entry.outcome.step_seconds, other.step_seconds, 1e-9 * other.step_seconds, told)
    assert.equal(entry.outcome.peak_bytes, fullest(other), told)
    assert.same({ entry.outcome.schedule, entry.outcome.parallelism, entry.outcome.microbatches },
                { other.schedule, other.parallelism, other.microbatches }, told)
  end
  return plan, #plan.advice
end

local headline = { "7b-fits-one-gpu", "deepseek-v3", "deepseek-v3-ramp", "kimi-k2", "llama-3.1-405b", "mixtral-8x7b", "qwen3-235b" }

local function shipped(name) return json.read("examples/specs/" .. name .. ".json") end

-- On 16 GPUs nothing of it fits, so that its peak is asked of other specs' candidates alone.
local small = { cluster = { gpus = 16, accelerator = "H100-SXM" }, parallelism = { tensor = 8, context = 1 },
                training = { tokens = "1T", micro_batch_size = 1, recompute = "selective", sharding = "optimizer" },
                model = { architecture = "dense", total = "70B", layers = 80 } }

-- A plan of it under a site with that body of a rule → its warning of the rule, its reason, with how many other specs the rule failed.
local function with_rule(body, more)
  local folder = files.directory { ["site.lua"] = 'site "s"\nreject { id = "elsewhere", when = function(f) ' .. body .. ' end, message = "no" }\n'
                                                  .. (more or "") }
  local what_if = require "pipeplan.plan.what_if"
  local layout, failed = what_if.layout, 0
  function what_if.layout(...)
    local answers = table.pack(pcall(layout, ...))
    if answers[1] then return table.unpack(answers, 2, answers.n) end
    failed = failed + 1
    error(answers[2], 0)
  end
  local good, plan = pcall(function() return require("pipeplan").policy(folder .. "/site.lua"):plan_spec(small, ".") end)
  what_if.layout = layout
  assert(good, plan)
  local told
  for _, warning in ipairs(plan.warnings) do told = warning.id == "rule_fails_elsewhere" and warning.message or told end
  return told, plan.reasons[1].id, failed
end

describe("advice", function()
  it("says that a rule fails with what it tries, and tries nothing more once the budget is spent", function()
    assert.same({ nil, "does_not_fit", 0 }, { with_rule "return f.peak_bytes > 1e30" })
    local told, reason, failed = with_rule "while true do local _ = f.peak_bytes end"
    assert.same({ "does_not_fit", 1 }, { reason, failed })
    -- the rules behind it have a budget of their own
    local behind = 'warn { id = "behind", when = function(f) local gpus = f.gpus return gpus == 16 end, message = "behind" }\n'
    assert.equal("does_not_fit", select(2, with_rule("while f.gpus ~= 16 do local _ = f.gpus end return false", behind)))
    assert.matches("^rule 'elsewhere' .*: over budget: more than 100000000 units of work: with a spec that was tried for advice", told)
    told, reason, failed = with_rule "return f.peak_bytes.of > 1"
    assert.equal("does_not_fit", reason)
    assert.is_true(failed > 1)
    assert.matches("^rule 'elsewhere' .*attempt to index .*: with a spec that was tried for advice, which may lack something for it$", told)
  end)

  it("is what a plan of the changed spec says: of the shipped specs, as they are, on 64 GPUs, with a small batch, at TP 8", function()
    local tried = 0
    for _, name in ipairs(headline) do
      for _, over in ipairs { {}, { cluster = { gpus = 64 } }, { training = { global_batch_size = 128 } },
                              { parallelism = { tensor = 8, pipeline = 8 } } } do
        local _, count = check_advice(planning.merge(shipped(name), over), "examples/specs", name)
        tried = tried + count
      end
    end
    assert.is_true(tried > 60, tried .. " were tried")
  end)

  it("is what a plan of the changed spec says, without a pipeline too where the spec fixes a schedule that has no depth of 1", function()
    local base = planning.merge(small, { cluster = { gpus = 8 }, parallelism = { schedule = "dualpipe" } })
    local plan = check_advice(base, nil, "dualpipe")
    assert.is_true(planning.entry_of(plan.advice, "message", "no pipeline, lora_rank 16, recompute full") ~= nil)
    -- DualPipe pairs rank r with rank P - 1 - r (deepseek-ai/DualPipe): with the schedule kept it could not be
    local kept = planning.merge(base, { parallelism = { pipeline = 1 }, training = { lora_rank = 16, recompute = "full" } })
    assert.equal("rejected", replan(kept).status)
  end)

  it("is what a plan of the changed spec says: of random specs", function()
    local tried, kinds, seeds = 0, {}, require "long" and 120 or 30
    for seed = 1, seeds do
      local spec = random_specs.with_everything(random_specs.generator(seed))
      local plan, count = check_advice(spec, nil, "seed " .. seed)
      tried = tried + count
      for _, entry in ipairs(plan and plan.advice or {}) do kinds[entry.id] = true end
    end
    assert.is_true(tried > seeds, tried .. " were tried")
    for _, kind in ipairs { "dominated", "runner_up", "rollback", "without_pipeline", "to_fit" } do assert.is_true(kinds[kind], kind) end
  end)

  it("suggests nothing slower without saying so", function()
    for _, name in ipairs(headline) do
      local plan = replan(shipped(name), "examples/specs")
      for _, entry in ipairs(plan.advice) do
        if entry.saved_fraction and entry.saved_fraction < -0.001 then assert.matches("slower", entry.message) end
      end
    end
  end)

  it("brings M/P where a rule wants it, and says what that saves of a token's GPU time", function()
    local spec = shipped "llama-3.1-405b"
    local plan = replan(spec, "examples/specs")
    local batch = planning.entry_of(plan.advice, "id", "few_microbatches")
    assert.equal(16384, batch.changes["training.global_batch_size"])
    local other = replan(laid(spec, batch.changes), "examples/specs")
    assert.equal(8, other.microbatches_per_rank)
    assert.near(1 - (other.step_seconds / other.global_batch_size) / (plan.step_seconds / plan.global_batch_size), batch.saved_fraction, 1e-9)
    assert.matches("a batch of 16,384 (now 2,048): ", planning.entry(plan.warnings, "few_microbatches").message, 1, true)
  end)

  it("is printed as options that give it, by --explain", function()
    local printed = program.run "plan examples/specs/llama-3.1-405b.json --explain"
    local words = printed.stdout:gsub("%s+", " ")
    local count = 0
    for message, options in words:gmatch "(runner_up: [^%[]+) %[([^%]]+)%]" do
      count = count + 1
      local step = message:match ": ([%d.]+ m?s) a step"
      local other = program.run("plan examples/specs/llama-3.1-405b.json --format json " .. options)
      assert.equal(0, other.status, other.stderr)
      assert.equal(step, (string.format("%.3g s", json.decode(other.stdout).step_seconds)))
    end
    assert.equal(1, count)
  end)
end)

it("what was chosen, given, changes nothing", function()
  for _, name in ipairs(headline) do
    local spec = shipped(name)
    local plan = replan(spec, "examples/specs")
    if plan.status == "planned" then
      local degrees = plan.parallelism
      local other = replan(planning.merge(spec, {
        parallelism = { tensor = degrees.tensor, context = degrees.context, expert = degrees.expert, pipeline = degrees.pipeline,
                        virtual = degrees.virtual, schedule = plan.schedule },
        training = { micro_batch_size = plan.micro_batch_size, sharding = plan.sharding,
                     recompute = #plan.recompute > 0 and plan.recompute or "none" },
      }), "examples/specs")
      assert.same({ "planned", plan.step_seconds, fullest(plan), plan.layers_per_stage, plan.bubble.fraction },
                  { other.status, other.step_seconds, fullest(other), other.layers_per_stage, other.bubble.fraction }, name)
    end
  end
end)

describe("the frontier", function()
  local function with_frontier(options)
    return json.decode(program.run("plan examples/specs/" .. options .. " --format json").stdout)
  end

  it("grows slower and smaller, and nothing that the plan names beats a point of it in both", function()
    for _, name in ipairs { "mixtral-8x7b", "llama-3.1-405b" } do
      local plan = with_frontier(name .. ".json")
      assert.is_true(#plan.frontier >= 2)
      for i = 2, #plan.frontier do
        assert.is_true(plan.frontier[i].step_seconds > plan.frontier[i - 1].step_seconds)
        assert.is_true(plan.frontier[i].peak_bytes <= 0.97 * plan.frontier[i - 1].peak_bytes)
      end
      local others = { plan.runner_up, plan.without_pipeline, { step_seconds = plan.step_seconds, peak_bytes = fullest(plan) } }
      for _, other in ipairs(others) do
        for i, point in ipairs(plan.frontier) do
          -- smaller by less than a step of the frontier is not a point of its own
          assert.is_false(other.step_seconds < point.step_seconds * (1 - 1e-9)
                          and other.peak_bytes <= (i == 1 and math.huge or 0.97 * plan.frontier[i - 1].peak_bytes), name .. " " .. i)
        end
      end
    end
  end)

  it("holds what is planned on smaller GPUs, or slower: memory of a point is enough for a step as fast", function()
    local whole = with_frontier "mixtral-8x7b.json"
    local point = whole.frontier[#whole.frontier]
    local usable = (whole.memory.device_bytes - whole.memory.headroom_bytes) / whole.memory.device_bytes
    local smaller = with_frontier("mixtral-8x7b.json --memory_per_gpu " .. math.ceil(point.peak_bytes / usable) + 1)
    assert.is_true(smaller.frontier[1].step_seconds <= point.step_seconds * (1 + 1e-9))
  end)

  it("is not searched for where nobody asks", function()
    assert.is_nil(replan(shipped "mixtral-8x7b", "examples/specs").frontier)
  end)
end)

describe("a nearest value", function()
  local spec = { cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                 model = { architecture = "dense", total = "30B", layers = 48 },
                 training = { tokens = "1.1B", global_batch_size = 512, micro_batch_size = 1, recompute = "selective" } }

  -- 1.23 billion are fewer than 1.2345678 billion, which the rule takes.
  it("is legal as it is printed", function()
    local policy = planning.policy_of [[disable { id = "short_run", reason = "a test" }
      refuse { id = "few", tokens = under(1.2345678e9), message = "{tokens}" }]]
    local refused = planning.plan(spec, nil, policy)
    local dropped = planning.page_of(refused):match "%(legal: tokens ([%d.]+ B)%)"
    local told = refused.advice[1].message:match "^training%.tokens ([%d.]+ B) instead of 1%.1 B$"
    assert.same({ "1.2345678 B", "1.2345678 B" }, { dropped, told })
    assert.equal("planned", planning.plan(spec, { training = { tokens = told } }, policy).status)
    assert.equal("refused", planning.plan(spec, { training = { tokens = "1.23B" } }, policy).status)
  end)

  it("says that it has to be passed where it does", function()
    local policy = planning.policy_of [[disable { id = "short_run", reason = "a test" }
      refuse { id = "few", tokens = at_most(1.2e9), message = "{tokens}" }]]
    local refused = planning.plan(spec, nil, policy)
    assert.equal("training.tokens over 1.2 B instead of 1.1 B", refused.advice[1].message)
    assert.matches("(legal: tokens beyond 1.2 B)", planning.page_of(refused), 1, true)
  end)
end)
