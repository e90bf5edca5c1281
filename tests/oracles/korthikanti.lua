-- SPDX-License-Identifier: Apache-2.0
-- korthikanti.lua: measured steps of Korthikanti et al. 2205.05198, Table 5, on A100-80GB: full recompute without sequence parallelism, and
-- selective recompute with it. TP 8; interleaved where virtual > 1; unfused attention, dropout, fp16.

local function gpt(layers, hidden, heads)
  return { layers = layers, hidden = hidden, vocab = 51200, heads = heads, head_dim = hidden // heads, ffn = 4 * hidden, gated = false,
           norm_bias = true, learned_positions = 2048 }
end

local columns = { "name", "model", "pipeline", "virtual", "micro_batch", "gpus", "batch", "full", "selective" }
local sizes = {
  { "22B",  gpt(48, 6144, 64),    1,  1, 4, 8,   4,   1.42,  1.10 },
  { "175B", gpt(96, 12288, 96),   8,  3, 1, 64,  64,  18.13, 13.75 },
  { "530B", gpt(105, 20480, 128), 35, 3, 1, 280, 280, 49.05, 37.83 },
  { "1T",   gpt(128, 25600, 160), 64, 1, 1, 512, 512, 94.42, 71.49 },
}

local rows = {}
for _, values in ipairs(sizes) do
  local size = {}
  for c, column in ipairs(columns) do size[column] = values[c] end
  for _, mode in ipairs { "full", "selective" } do
    rows[#rows + 1] = {
      name = size.name .. " " .. mode, model = size.model, seconds = size[mode],
      accelerator = "A100-SXM-80GB", precision = "fp16", gpus = size.gpus,
      batch = size.batch, micro_batch = size.micro_batch, sequence = 2048,
      tensor = 8, context = 1, expert = 1, pipeline = size.pipeline, virtual = size.virtual,
      recompute = mode == "full" and { full = true } or { core_attention = true },
      training = { sequence = mode == "selective", scatter_messages = true, unfused = { "attention" }, dropout = true, zero = 0 },
    }
  end
end
return rows
