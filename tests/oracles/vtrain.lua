-- SPDX-License-Identifier: Apache-2.0
-- vtrain.lua: the rows of vTrain's validation (VIA-Research/vTrain data/ground_truth_multi.csv; Bang et al. 2312.12391 §IV): GPT models
-- of 3.6 to 175 billion parameters with Megatron-DeepSpeed on up to 64 hosts of 8 A100-80GB. Their setting: full recompute, tensor
-- parallelism by all-reduce, unfused attention with dropout, fp16, 1F1B; four 200 Gb/s ports a host.

local csv = require "oracles.csv"
local gpt = require("oracles.models").of_megatron
local predict = require "oracles.predict"
local rows = require "oracles.rows"

local file, why = rows.data "oracles/vtrain__ground_truth_multi.csv"
if not file then return { skipped = why } end

local list = {}
for i, line in ipairs(csv.read(file)) do
  local function value(heading) return tonumber(line[heading]) end
  list[i] = {
    model = gpt(value "# layers", value "hidden size", value "attention heads"), seconds = value "iteration time (ms)" / 1000,
    accelerator = "A100-SXM-80GB", network_per_gpu = 4 * 200e9 / 8 / 8, precision = "fp16", gpus = value "# GPUs",
    batch = value "global batch", micro_batch = value "micro batch", sequence = value "sequence length",
    tensor = value "tensor parallelism", pipeline = value "pipeline parallelism", context = 1, expert = 1, virtual = 1,
    recompute = { full = true }, training = predict.megatron_2021,
  }
  list[i].name = string.format("%sB, TP %d DP %s PP %d, microbatch size %d", line["Parameters (billion)"], list[i].tensor,
                               line["data parallelism"], list[i].pipeline, list[i].micro_batch)
end
return list
