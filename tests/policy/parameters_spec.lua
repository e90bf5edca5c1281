-- SPDX-License-Identifier: Apache-2.0
-- Parameters that no rule compares with: what the planner does with each, on both sides of its value.

local pipeplan = require "pipeplan"

local policy = pipeplan.policy():with { fits_one_gpu = false }

-- Memory is plenty unless a test says what there is; next to no vocabulary, so that the stages are equal.
local function spec(gpus, batch, parallelism)
  return {
    cluster = { gpus = gpus, accelerator = "H100-SXM", memory_per_gpu = "1000GiB", network = { fabric = "infiniband", per_gpu = "3200Gbps" } },
    model = { layers = 96, hidden = 4096, heads = 32, ffn = 16384, vocab = 256 },
    training = { tokens = "1T", sequence_length = 4096, global_batch_size = batch, micro_batch_size = 1, recompute = "none", sharding = "optimizer" },
    parallelism = parallelism,
  }
end

local function plan(...)
  return policy:plan_spec(spec(...), ".")
end

-- Seconds of a step of 1F1B on `ranks` stages of a model whose head weighs as much as `vocab` says, with a parameter set or (nil) as it is.
local function split_seconds(set, ranks, microbatches, layers, vocab)
  local run = spec(ranks, microbatches, { pipeline = ranks, tensor = 1, schedule = "1f1b" })
  run.model.layers, run.model.vocab = layers, vocab
  return pipeplan.policy(nil, { set = set }):with { fits_one_gpu = false }:plan_spec(run, ".").step_seconds
end

local function most_bytes(of)
  local most = 0
  for _, rank in ipairs(of.memory.ranks) do most = math.max(most, rank.total_bytes) end
  return most
end

describe("the parameter", function()
  it("memory_headroom leaves 8 % of a GPU free", function()
    assert.equal(math.floor(0.92 * 1000 * 2 ^ 30), math.floor(plan(2, 8, { pipeline = 2, tensor = 1 }).one_gpu.usable_bytes))
  end)

  it("tight_fraction calls tight what fills more than 95 % of the rest", function()
    local layout = { pipeline = 2, tensor = 1, schedule = "1f1b" }
    local most = most_bytes(plan(2, 8, layout))
    for share, fit in pairs { [0.94] = "fits", [0.96] = "tight" } do
      local run = spec(2, 8, layout)
      run.cluster.memory_per_gpu = most / share / 0.92
      assert.equal(fit, policy:plan_spec(run, ".").memory.fit)
    end
  end)

  it("wanted_tolerance keeps 1F1B where it is up to 5 % slower than the fastest", function()
    -- The closed forms at P 8, 6 chunks: 1 + 7/M against 1 + 7/(6 M), less what neither hides. The fastest number of chunks, without ties.
    local every = pipeplan.policy(nil, { set = { tie_fraction = 0, schedules = "1f1b,interleaved_1f1b" } }):with { fits_one_gpu = false }
    local function slower(batch)
      local function seconds(schedule)
        return every:plan_spec(spec(8, batch, { pipeline = 8, tensor = 1, schedule = schedule }), ".").step_seconds
      end
      return seconds "1f1b" / seconds "interleaved_1f1b" - 1
    end
    local function planned(batch) return every:plan_spec(spec(8, batch, { pipeline = 8, tensor = 1 }), ".") end
    local near, far = slower(104), slower(96)
    assert.is_true(near > 0.04 and near < 0.05 and far > 0.05 and far < 0.06, near .. " and " .. far)
    assert.equal("1f1b", planned(104).schedule)
    assert.near(near, planned(104).policy_cost.fraction, 1e-9)
    assert.equal("interleaved_1f1b", planned(96).schedule)
    assert.decided(planned(96), "planned", "wanted_too_slow")
  end)

  it("tie_fraction says what dominates a plan: what is more than 1 % faster", function()
    local every = pipeplan.policy(nil, { set = { tie_fraction = 0 } }):with { fits_one_gpu = false }
    local function gain(of_policy, batch)
      local made = of_policy:plan_spec(spec(2, batch, { pipeline = 2, tensor = 1, schedule = "1f1b" }), ".")
      for _, entry in ipairs(made.dominated_by) do
        if entry.schedule == "interleaved_1f1b" then return entry.gain_fraction end
      end
      return nil
    end
    local more, less = gain(every, 69), gain(every, 75)
    assert.is_true(more > 0.0101 and more < 0.0109 and less > 0.0092 and less < 0.0099, more .. " and " .. less)
    assert.equal(more, gain(policy, 69))
    assert.is_nil(gain(policy, 75))
  end)

  it("heavy_alltoall_fraction calls an all-to-all heavy from 10 % of the step on", function()
    -- An MoE whose experts are spread but that the rules take for a dense model: only the share of its all-to-all decides.
    local function row(threshold, per_gpu)
      local set = threshold and { heavy_alltoall_fraction = threshold }
      local large = pipeplan.policy(nil, { set = set }):with { fits_one_gpu = false, architecture = "dense", gpus = 500 }
      return large:plan_spec({
        cluster = { gpus = 4, gpus_per_node = 1, accelerator = "H100-SXM",
                    network = { fabric = "infiniband", per_gpu = per_gpu, scale_up_gpus = 1 } },
        model = { architecture = "moe", total = "4B", active = "3B", layers = 32, experts = 2 },
        training = { tokens = "1T", sequence_length = 8192, global_batch_size = 16, micro_batch_size = 1, recompute = "none", sharding = "optimizer" },
        parallelism = { pipeline = 2, tensor = 1, expert = 2 },
      }, ".").decision
    end
    -- What the shares are is said by where another threshold would lie: from 9.2 to 9.9 %, and from 10.1 to 10.8 %.
    local light, heavy = "980Gbps", "880Gbps"
    assert.same({ "otherwise", "dense_large" }, { row("9.2%", light), row("9.9%", light) })
    assert.equal("dense_large", row(nil, light))
    assert.same({ "otherwise", "dense_large" }, { row("10.1%", heavy), row("10.8%", heavy) })
    assert.equal("otherwise", row(nil, heavy))
  end)

  it("split_tie_fraction takes the split of less memory where it is at most 0.5 % slower", function()
    -- 13 layers and 11 beside the head against 12 and 12: the head of the larger vocabulary makes these slower by more.
    local function tried(vocab)
      local fastest = split_seconds({ split_tie_fraction = 0 }, 2, 16, 24, vocab)
      local least = split_seconds({ split_tie_fraction = 1 }, 2, 16, 24, vocab)
      return fastest, least, least / fastest - 1, split_seconds(nil, 2, 16, 24, vocab)
    end
    local _, near_least, near, near_taken = tried(54300)
    local far_fastest, _, far, far_taken = tried(54700)
    assert.is_true(near > 0.0046 and near < 0.00499, near)
    assert.is_true(far > 0.0051 and far < 0.0054, far)
    assert.same({ near_least, far_fastest }, { near_taken, far_taken })
  end)

  it("split_gain_fraction puts layers on early ranks where they win more than 1 % of a step", function()
    -- They shorten the warm-up, whose share of a step falls as the batch grows.
    local function tried(batch)
      local forward = split_seconds({ split_gain_fraction = 0 }, 8, batch, 41, 32000)
      local balanced = split_seconds({ split_gain_fraction = 1 }, 8, batch, 41, 32000)
      return forward, balanced, 1 - forward / balanced, split_seconds(nil, 8, batch, 41, 32000)
    end
    local more_forward, _, more, more_taken = tried(26)
    local _, less_balanced, less, less_taken = tried(29)
    assert.is_true(more > 0.0101 and more < 0.0109, more)
    assert.is_true(less > 0.0092 and less < 0.0099, less)
    assert.same({ more_forward, less_balanced }, { more_taken, less_taken })
  end)

  it("split_overfull_fraction moves layers off a rank that is up to 15 % too full", function()
    local layout = { pipeline = 8, tensor = 1, schedule = "1f1b" }
    local most = most_bytes(plan(8, 16, layout))
    local function planned(over)
      local run = spec(8, 16, layout)
      run.cluster.memory_per_gpu = most / over / 0.92  -- memory_headroom
      return policy:plan_spec(run, ".")
    end
    local moved = planned(1.145)
    assert.decided(moved, "planned")
    assert.is_true(most_bytes(moved) <= most / 1.145)
    assert.decided(planned(1.155), "refused")
  end)

  it("default_batch_tokens makes the batch of a spec without one", function()
    assert.equal(16 * 1024 * 1024 // 4096, plan(8, nil, { pipeline = 2, tensor = 1 }).global_batch_size)
  end)

  it("context_rank_tokens cuts no sequence into pieces of fewer than 4,096 tokens", function()
    -- One sequence a step on two GPUs of each stage: they can only share it.
    local run = spec(4, 1, { pipeline = 2, tensor = 1 })
    run.training.sequence_length = 2 * 4096
    local cut = policy:plan_spec(run, ".")
    assert.equal("planned", cut.status)
    assert.equal(2, cut.parallelism.context)
    run.training.sequence_length = 2 * 4095
    assert.are_not.equal("planned", policy:plan_spec(run, ".").status)
  end)

  it("idle_gpus leaves nearly half of the GPUs idle where only the others can be laid out", function()
    -- Two layers make two stages, which do not divide 15 GPUs: one node of 8 is left, and 7 of 15 idle, 46.7 %.
    local run = spec(15, 8, { tensor = 1 })
    run.model.layers = 2
    local plan_of_node = policy:plan_spec(run, ".")
    assert.equal("planned", plan_of_node.status)
    assert.equal(8, plan_of_node.gpus_used)
  end)

  it("rollback_window_steps and rollback_warmup_steps bound the utilisation that is watched", function()
    local rollback = plan(2, 8, { pipeline = 2, tensor = 1 }).rollback
    assert.equal(1000, rollback.window_steps)
    assert.equal(50, rollback.warmup_steps)
  end)
end)
