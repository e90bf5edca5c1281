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

describe("the ideal step", function()
  it("is the work of all microbatches without all-to-all, spread evenly over the ranks", function()
    -- by hand: 8 microbatches × 4 stages × (1 + 2 − 0.75) s / 4 ranks
    assert.equal(8 * 4 * 2.25 / 4, measure.ideal_step(evaluation({ 2, 2, 2, 2 }, 4)))
  end)
end)

describe("fit", function()
  it("is tight when less than another headroom is left", function()
    assert.equal("fits", measure.fit(80, 92, 100))
    assert.equal("tight", measure.fit(85, 92, 100))
    assert.equal("does_not_fit", measure.fit(93, 92, 100))
    assert.is_nil(measure.fit(nil, 92, 100))
  end)
end)
