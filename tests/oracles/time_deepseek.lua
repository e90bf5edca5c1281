-- SPDX-License-Identifier: Apache-2.0
-- time_deepseek.lua: DeepSeek-V3's own pre-training, on which no efficiency was calibrated, though two terms of the cost model were
-- added with it in sight: 2,048 H800, PP 16, EP 64 over 8 nodes, no TP, ZeRO-1, DualPipe, 15,360 sequences of 4,096 tokens; 20 SMs for
-- communication; fp8 caches, bf16 moments; norms, MLA up-projections and SwiGLU recomputed; four nodes a token (the report 2412.19437,
-- §2.1, 3.2, 3.3). 2.664 million GPU-hours for 14.8 T tokens. deepseek-ai/profile-data train.json: 120 pairs of four layers of 129 ms
-- are 15.4 s; the hours are 19.9 s.

local models = require "oracles.models"
local predict = require "oracles.predict"
local rows = require "oracles.rows"

local TOKENS, BATCH, SEQUENCE, GPUS = 14.8e12, 15360, 4096, 2048

local function step(layers_per_stage)
  return predict.step(models["deepseek-v3"], {
    accelerator = "H800", gpus = GPUS, precision = "fp8", batch = BATCH, micro_batch = 1, sequence = SEQUENCE, tensor = 1, context = 1,
    expert = 64, pipeline = 16, virtual = 1, schedule = "dualpipe", kernel = "deepep_v1", file = "examples/models/deepseek-v3.json",
    layers_per_stage = layers_per_stage,
    recompute = { norm = true, mla_up_projection = true, activation = true },
    training = { moments = "bf16" },
  }).seconds
end

local function million_hours(seconds) return TOKENS / (BATCH * SEQUENCE) * seconds * GPUS / 3600 / 1e6 end

local light_end = {}
for s = 1, 15 do light_end[s] = 4 end
light_end[16] = 1

local balanced = rows.range("DeepSeek-V3", "a full batch, layers balanced", "step, s", 15.4, 20, step())
balanced.excused = "a split of ours, in hours above: which layers its stages have is not published"

return {
  rows.number("DeepSeek-V3", "pre-training, layers balanced", "million H800-hours", 2.664, million_hours(step()), 0.15),
  rows.number("DeepSeek-V3", "pre-training, last stage of one layer", "million H800-hours", 2.664, million_hours(step(light_end)), 0.15),
  rows.range("DeepSeek-V3", "a full batch, last stage of one layer", "step, s", 15.4, 20, step(light_end)),
  balanced,
}
