-- SPDX-License-Identifier: Apache-2.0
-- time_mtnlg.lua: strong scaling of MT-NLG 530B (Smith et al. 2201.11990 §2.3; cli99/llm-analysis
-- examples/megatron-turing-nlg/README.md): TP 8, PP 35, 1,920 sequences of one, on 2,240, 2,800 and 3,360 A100: 60.1, 50.2 and 44.4 s.
-- Of two of the points we take the seconds of a microbatch's forward and backward and the seconds beside the pipeline, and predict the
-- third: only the schedule's ramps and that fixed cost are at stake. And all three from the catalogue alone, with a wide band:
-- Megatron-LM took the same model on the same kind of machine to 163 TFLOP/s a GPU (2104.04473, Table 1, which we meet), this run under
-- DeepSpeed to 126, so a quarter of its time is no property of the plan.

local engine = require("pipeplan") and require "engine"
local models = require "oracles.models"
local predict = require "oracles.predict"
local rows = require "oracles.rows"

local RANKS = 35
local points = { { gpus = 2240, M = 240, seconds = 60.1 }, { gpus = 2800, M = 192, seconds = 50.2 },
                 { gpus = 3360, M = 160, seconds = 44.4 } }

-- The step in times of one microbatch's forward and backward on one stage.
for _, point in ipairs(points) do
  local schedule = assert(engine.schedule { kind = "1f1b", ranks = RANKS, microbatches = point.M })
  point.slots = schedule:simulate({ F = 1, I = 1, W = 1 }).makespan / 3
end

local list = {}
local low, middle, high = points[3], points[2], points[1]
local slot = (high.seconds - low.seconds) / (high.slots - low.slots)
local fixed = high.seconds - slot * high.slots
local predicted = slot * middle.slots + fixed
list[1] = rows.of("fitted", rows.number("MT-NLG", "2,800 GPUs from 2,240 and 3,360", "step, s", middle.seconds, predicted, 0.01))

for _, point in ipairs(points) do
  local ours = predict.step(models["gpt-530b"], {
    accelerator = "A100-SXM-80GB", precision = "fp16", gpus = point.gpus, batch = 1920, micro_batch = 1, sequence = 2048, tensor = 8,
    context = 1, expert = 1, pipeline = RANKS, virtual = 1, recompute = { full = true }, training = predict.megatron_2021,
  }).seconds
  list[#list + 1] = rows.of("from the catalogue", rows.number("MT-NLG", point.gpus .. " GPUs", "step, s", point.seconds, ours, 0.30))
end
return list
