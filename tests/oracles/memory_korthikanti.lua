-- SPDX-License-Identifier: Apache-2.0
-- memory_korthikanti.lua: Korthikanti et al. 2205.05198, Table 2 and Fig. 1, Fig. 7: state and activations of the first stage's transformer
-- layers, GiB a GPU, and activations relative to those without any technique. The figures are what the paper's formulas give; calculon-ai/
-- calculon validation/seqsel holds the same. TP 8, fp16, dropout, unfused attention, 18 bytes of state a parameter (12·L·h²).

local engine = require("pipeplan") and require "engine"
local rows = require "oracles.rows"
local sizes = require "oracles.korthikanti"

local GIB = 2 ^ 30

-- name = { state, activations without any technique, with sequence parallelism and selective recompute; then per cent of the former with
-- sequence parallelism, selective recompute, both, full recompute }
local published = {
  ["22B"]  = { 45.5625, 59.25, 9.5625, 66.84, 49.42, 16.18, 7.64 },
  ["175B"] = { 45.5625, 66.84375, 12.3515625, 62.04, 56.53, 18.49, 8.71 },
  ["530B"] = { 31.640625, 114.0234375, 23.076171875, 58.31, 62.04, 20.27, 9.42 },
  ["1T"]   = { 32.958984375, 131.25, 26.5625, 58.31, 62.04, 20.27, 9.42 },
}

local function dense_block(size, sequence_parallel, recompute)
  return engine.memory.blocks {
    model = size.model, layout = { tensor = 8 },
    training = {
      precision = "fp16", sequence_length = 2048, micro_batch = size.micro_batch, parameter_bytes = 2, gradient_bytes = 4, master_bytes = 4,
      moment_bytes = 8, dropout = true, sequence_parallel = sequence_parallel, recompute = recompute,
    },
  }.dense
end

-- Layers of the first rank, and layers × microbatches that its schedule holds at most.
local function held(size)
  local layers = size.model.layers
  if size.pipeline == 1 then return layers, layers end
  local schedule = assert(engine.schedule { kind = size.virtual > 1 and "interleaved_1f1b" or "1f1b", ranks = size.pipeline,
                                            microbatches = 2 * size.pipeline, virtual = size.virtual > 1 and size.virtual or nil })
  local chunks = schedule:peaks().freed_at_w[1]
  return layers / size.pipeline, chunks * layers / (size.pipeline * size.virtual)
end

local list, seen = {}, {}
for _, size in ipairs(sizes) do
  local name = size.name:match "^%S+"
  local figures = not seen[name] and published[name]
  if figures then
    seen[name] = true
    local layers, in_flight = held(size)
    local function activations(...) return in_flight * dense_block(size, ...).stored / GIB end
    local none, selective, full = {}, { core_attention = true }, { full = true }
    local block = dense_block(size, true, none)
    local function add(quantity, value, ours, band)
      list[#list + 1] = rows.number("Korthikanti", name, quantity, value, ours, band)
    end
    -- 12h² counts neither norms nor biases
    add("state, GiB", figures[1], layers * (block.parameters + block.gradients + block.optimizer) / GIB, 0.003)
    add("activations, GiB", figures[2], activations(false, none), 1e-9)
    add("… seq. parallel and selective, GiB", figures[3], activations(true, selective), 1e-9)
    -- Fig. 7 as calculon (calculon/llm/validation.py @caa4b11) read it off the plot
    local before = activations(false, none)
    add("… sequence parallel, %", figures[4], 100 * activations(true, none) / before, 0.012)
    add("… selective, %", figures[5], 100 * activations(false, selective) / before, 0.012)
    add("… both, %", figures[6], 100 * activations(true, selective) / before, 0.012)
    add("… full recompute, %", figures[7], 100 * activations(false, full) / before, 0.012)
  end
end
return list
