-- SPDX-License-Identifier: Apache-2.0
-- time_narayanan.lua: Narayanan et al. 2104.04473, Table 1: GPT models of 1.7 to 1,008 billion parameters on 32 to 3,072 A100-80GB.
-- Nothing is fitted to these rows. Seconds of a step: the FLOPs of its equation 3 (with full recompute) over the table's rate.
--
-- Full recompute, all-reduces instead of sequence parallelism, unfused attention with dropout, no sharded optimizer, fp16;
-- microbatches and virtual stages from Megatron-LM examples/sc21/run_table_1.sh @cf547de. Eight 200 Gb/s ports on each host of eight.

local gpt = require("oracles.models").of_megatron
local predict = require "oracles.predict"
local rows = require "oracles.rows"

local columns = { "name", "heads", "hidden", "layers", "tensor", "pipeline", "gpus", "batch", "micro_batch", "virtual", "teraflops" }
local sizes = {
  { "1.7B",   24,  2304,  24,  1, 1,  32,   512,  16, 1, 137 },
  { "3.6B",   32,  3072,  30,  2, 1,  64,   512,  16, 1, 138 },
  { "7.5B",   32,  4096,  36,  4, 1,  128,  512,  16, 1, 142 },
  { "18.4B",  48,  6144,  40,  8, 1,  256,  1024, 8,  1, 135 },
  { "39.1B",  64,  8192,  48,  8, 2,  512,  1536, 4,  1, 138 },
  { "76.1B",  80,  10240, 60,  8, 4,  1024, 1792, 2,  3, 140 },
  { "145.6B", 96,  12288, 80,  8, 8,  1536, 2304, 2,  2, 148 },
  { "310.1B", 128, 16384, 96,  8, 16, 1920, 2160, 1,  2, 155 },
  { "529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 1,  3, 163 },
  { "1008B",  160, 25600, 128, 8, 64, 3072, 3072, 1,  1, 163 },
}
local SEQUENCE, VOCABULARY = 2048, 51200

-- 96 B s l h² (1 + s/6h + V/16lh), equation 3
local function step_flops(size)
  return 96 * size.batch * SEQUENCE * size.layers * size.hidden ^ 2 *
         (1 + SEQUENCE / (6 * size.hidden) + VOCABULARY / (16 * size.layers * size.hidden))
end

local list = {}
for _, values in ipairs(sizes) do
  local size = { accelerator = "A100-SXM-80GB", precision = "fp16", sequence = SEQUENCE, context = 1, expert = 1,
                 recompute = { full = true }, training = predict.megatron_2021 }
  for c, column in ipairs(columns) do size[column] = values[c] end
  local measured = step_flops(size) / (size.gpus * size.teraflops * 1e12)
  list[#list + 1] = rows.number("Narayanan et al.", size.name .. ", " .. size.gpus .. " GPUs", "step, s", measured,
                                predict.step(gpt(size.layers, size.hidden, size.heads), size).seconds, 0.12)
end
return list
