-- SPDX-License-Identifier: Apache-2.0
-- What a plan says about a candidate that was chosen: sums and ratios of its evaluation, checked by hand.

require "pipeplan"
local measure = require "pipeplan.plan.measure"

local function stage(layers, ends)
  ends = ends or {}
  return { embedding = ends.embedding or 0, dense = 0, moe = layers, head = ends.head or 0, mtp = ends.mtp or 0 }
end

-- An evaluation of `layers` (a list: decoder layers per stage) over P ranks, placed as a loop, embedding first, head last.
local function evaluation(layers, ranks, mtp)
  local out = { pipeline = ranks, copies = 1, stages = {}, placement = {}, stage_seconds = {}, microbatches = 8 }
  for i, count in ipairs(layers) do
    out.stages[i] = stage(count, { embedding = i == 1 and 1 or 0, head = i == #layers and 1 or 0, mtp = i == #layers and mtp or 0 })
    out.placement[i] = { (i - 1) % ranks }
    out.stage_seconds[i] = { forward = 1, input = 1, weight = 1, full = 2, alltoall_forward = 0.25, alltoall_backward = 0.5 }
  end
  return out
end

-- Stages and decoder layers of a layout string, by its grammar (megatron/core/transformer/pipeline_parallel_layer_layout.py).
local function count_layout(text)
  text = text:gsub(",", ""):gsub("(%b())%*(%d+)", function(group, times) return group:sub(2, -2):rep(tonumber(times)) end)
  text = text:gsub("(%a)%*(%d+)", function(letter, times) return letter:rep(tonumber(times)) end)
  return select(2, text:gsub("|", "")) + 1, select(2, text:gsub("t", "")), text
end

describe("the Megatron layout string", function()
  it("reads back as the stages it was made of", function()
    local layers = { 3 }
    for i = 2, 30 do layers[i] = 2 end
    layers[31], layers[32] = 0, 0
    -- Et*3|(tt|)*29,m|L of Megatron's own documentation has DeepSeek-V3's 61 layers on 32 stages
    local text = measure.megatron_layout(evaluation(layers, 16, 1))
    local stages, decoders, expanded = count_layout(text)
    assert.same({ 32, 61 }, { stages, decoders })
    assert.matches("^Ettt|tt|", expanded)
    assert.matches("mL$", expanded)
  end)

  it("writes equal stages once", function()
    assert.equal("Et*4|(t*4|)*14t*4,L", measure.megatron_layout(evaluation({ 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4 }, 16)))
    assert.equal("Et|tt|L", (measure.megatron_layout(evaluation({ 1, 2, 0 }, 3)):gsub("t%*2", "tt")))
  end)

  it("is absent where Megatron has no such placement", function()
    local two_copies = evaluation({ 2, 2 }, 2)
    two_copies.copies = 2
    assert.is_nil(measure.megatron_layout(two_copies))
    local folded = evaluation({ 2, 2, 2, 2 }, 2)
    folded.placement = { { 0 }, { 1 }, { 1 }, { 0 } }
    assert.is_nil(measure.megatron_layout(folded))
    assert.is_nil(measure.megatron_layout(evaluation({ 4 }, 1)))
  end)
end)

describe("fit", function()
  it("is tight over tight_bytes and none over usable_bytes", function()
    local known = { usable_bytes = 92, tight_bytes = 87.4 }
    assert.equal("fits", measure.fit(87, known))
    assert.equal("tight", measure.fit(88, known))
    assert.equal("does_not_fit", measure.fit(93, known))
    assert.is_nil(measure.fit(nil, known))
  end)
end)

-- A dense model small enough to count by hand, on 8 GPUs: DP 2 × P 4.
local shape = { layers = 8, hidden = 64, vocab = 128, attention = "gqa", heads = 4, kv_heads = 4, head_dim = 16, ffn = 256, gated = true,
                norms_per_layer = 2, tied_embeddings = false }

local function chosen(schedule)
  local e = evaluation({ 2, 2, 2, 2 }, 4)
  local more = {
    tensor = 1, context = 1, expert = 1, expert_tensor = 1, data = 2, virtual = 1, chunks = 1, schedule = schedule, schedule_family = schedule,
    layers_per_stage = { 2, 2, 2, 2 }, memory = {}, heaviest_rank = 1, peak_bytes = 60, makespan_seconds = 33, bubble_fraction = 0.2,
    max_idle_fraction = 0.25, idle_per_rank_seconds = { 9, 9, 9, 9 }, hop_seconds = 0, hop_waiting_seconds = 0,
    alltoall_seconds = 0, alltoall_exposed_seconds = 0,
    tensor_seconds = 0, context_seconds = 0, context_exposed_seconds = 0,
    step = { gradient_sync = 1, parameter_sync = 1, optimizer = 0.5, mirror = 0, overhead = 0 }, step_seconds = 36, ideal_step_seconds = 18,
    no_overlap = { step_seconds = 40 }, baselines = { ["1f1b"] = { step_seconds = 45, bubble_fraction = 0.3, fits = true },
                                                      zb_h1 = { step_seconds = 42, fits = false } },
    parameters = { resident = 1000, unique = 500 },
  }
  for key, value in pairs(more) do e[key] = value end
  for r = 0, 3 do
    e.memory[r + 1] = { rank = r, stages = { r + 1 }, parameters = 10, gradients = 20, optimizer = 5, activations = 15, transient = 6,
                        overhead = 4, total = 60, host = 0 }
  end
  return e
end

local device = { flops = 1e9, flops_bf16 = 1e9, memory_bandwidth = 1e9, gemm_efficiency = 1, grouped_gemm_efficiency = 1,
                 attention_efficiency = 1, memory_efficiency = 1, overlap_overhead = 0 }

local function request()
  return {
    model = { shape = shape, layers = 8, total_parameters = 1000 }, device = device, cluster = { gpus = 8, gpus_per_node = 8 },
    training = { tokens = 16 * 32 * 1000, sequence_length = 32, micro_batch_size = 1, recompute = {} },
  }
end

local function filled(schedule, changes)
  local e, r = chosen(schedule), request()
  for key, value in pairs(changes or {}) do e[key] = value end
  local plan = { training = {} }
  local known = { batch = 16, usable_bytes = 92, tight_bytes = 87, record = { sharding = "optimizer", gpus_used = 8 },
                  arguments = { device_bytes = 100, device = device,
                                training = { frozen = 0, data_overlap = 0, tensor_overlap = 0, master_bytes = 4, moment_bytes = 8 } } }
  measure.fill(plan, r, known, { evaluation = e, schedule_wanted = schedule })
  return plan
end

describe("a measured plan", function()
  it("takes tokens / tokens per step × step: days and GPU-hours", function()
    local plan = filled "1f1b"
    assert.equal(16 * 32, plan.tokens_per_step)
    assert.near(1000 * 36 / 86400, plan.training_days, 1e-12)
    assert.near(1000 * 36 * 8 / 3600, plan.gpu_hours, 1e-9)
  end)

  it("tells bubble and overlap apart in what it saves, against 1F1B and for DualPipe against ZB-H1 too", function()
    local plan = filled("dualpipev", { chunks = 2 })
    local hours = 1000 * 8 / 3600
    assert.equal(2, #plan.gpu_hours_saved)
    local first, second = plan.gpu_hours_saved[1], plan.gpu_hours_saved[2]
    assert.equal("1f1b", first.baseline)
    assert.near(5 * hours, first.bubble, 1e-9)
    assert.near(4 * hours, first.overlap, 1e-9)
    assert.near(9 * hours, first.total, 1e-9)
    assert.is_true(first.baseline_fits)
    assert.equal("zb_h1", second.baseline)
    assert.near(6 * hours, second.total, 1e-9)
    assert.is_false(second.baseline_fits)
  end)

  it("saves nothing against itself", function()
    assert.same({}, filled("1f1b").gpu_hours_saved)
  end)

  it("costs what a second copy costs, and one copy nothing", function()
    local plan = filled("dualpipe", { copies = 2, further_copies_bytes = 15, placement = { { 0, 3 }, { 1, 2 }, { 2, 1 }, { 3, 0 } } })
    assert.equal(2, plan.replication.copies)
    assert.equal(15, plan.replication.extra_bytes)
    assert.equal(0.5, plan.replication.density_fraction)
  end)

  it("gives 1F1B's closed form where stages are equal: (P − 1)/(M + P − 1)", function()
    local plan = filled "1f1b"
    assert.near(3 / 11, plan.bubble.closed_form_fraction, 1e-12)
    assert.is_true(plan.bubble.closed_form_exact)
    local uneven = chosen "1f1b"
    uneven.stage_seconds[4].forward = 2
    assert.is_false(filled("1f1b", { stage_seconds = uneven.stage_seconds }).bubble.closed_form_exact)
  end)

  it("relates the step to ideal work and to the peak of the GPUs", function()
    local plan = filled "1f1b"
    assert.near(18 / 36, plan.predicted_utilisation_fraction, 1e-12)
    local flops = require("engine").model.flops(shape, 32).per_token
    assert.near(flops * 16 * 32 / (36 * 8 * 1e9), plan.mfu_fraction, 1e-12)
  end)
end)
