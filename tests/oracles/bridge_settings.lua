-- SPDX-License-Identifier: Apache-2.0
-- bridge_settings.lua: the settings of Megatron-Bridge's pre-training tables (data/oracles/megatron_bridge_pretraining.csv: docs/
-- performance-summary and its archive @067f987), each once: { case, model, accelerator, gpus, precision, nvfp4, batch, micro_batch,
-- sequence, tensor, pipeline, context, virtual, expert, tokens_per_second (of its newest release), release, unplannable }. model: a
-- name of models.lua, or nil. unplannable: what no spec can say. skipped: why there are none.

local csv = require "oracles.csv"
local rows = require "oracles.rows"

local file, why = rows.data "oracles/megatron_bridge_pretraining.csv"
if not file then return { skipped = why } end

local names = {
  DeepSeekV3 = "deepseek-v3", ["DeepSeekV3 (w/o MTP)"] = "deepseek-v3 without MTP", ["GPT OSS 120B"] = "gpt-oss-120b", Kimi_K2 = "kimi-k2",
  Qwen3_30B_a3B = "qwen3-30b", Qwen3_235B_a22B = "qwen3-235b", LLAMA3_70B = "llama3-70b", ["LLAMA3.1_405B"] = "llama3.1-405b",
}

-- The tables of 25.11 have the system in the model's place.
local function told(row)
  local accelerator = (row.System ~= "" and row.System or row.model):match "DGX%-(%w+)"
  return row.System ~= "" and row.model or row.Model, accelerator
end

local function unplannable(row, name)
  if not names[name] then return "no shape of this model here: hybrid or sparse attention" end
  local sharded = tonumber(row.FSDP)
  if sharded and sharded > 0 then return "sharded by FSDP, activations of 5 to 40 layers offloaded" end
  if row.TP == "1" and row.PP == "1" and name == "LLAMA3_70B" then return "sharded by FSDP, which its table leaves out" end
end

local list, seen = {}, {}
for _, row in ipairs(csv.read(file)) do
  local name, accelerator = told(row)
  local nvfp4, precision = row.Precision:match "NVFP4" ~= nil, row.Precision:match "BF16" and "bf16" or "fp8"
  local layout = table.concat({ row.TP, row.PP, row.CP, row.VP, row.EP }, "/")
  local case = string.format("%s, %s × %s %s, %s, batch %s × %s", name, row["#-GPUs"], accelerator, nvfp4 and "nvfp4" or precision, layout,
                             row.GBS, row.MBS)
  -- releases repeat a setting, the newest first
  if not seen[case] then
    seen[case] = true
    list[#list + 1] = {
      case = case, model = names[name], accelerator = accelerator, gpus = tonumber(row["#-GPUs"]), precision = precision, nvfp4 = nvfp4,
      batch = tonumber(row.GBS), micro_batch = tonumber(row.MBS), sequence = tonumber(row["Sequence Length"]), tensor = tonumber(row.TP),
      pipeline = tonumber(row.PP), context = tonumber(row.CP), virtual = tonumber(row.VP) or 1, expert = tonumber(row.EP) or 1,
      tokens_per_second = tonumber(row["Tokens / sec / GPU"]:match "%d+"), release = row.container:match "^%S+",
      unplannable = unplannable(row, name),
    }
  end
end
return list
