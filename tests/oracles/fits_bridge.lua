-- fits_bridge.lua: Megatron-Bridge's pre-training runs (data/oracles/megatron_bridge_pretraining.csv: docs/performance-summary and its
-- archive @067f987): they ran, so they must fit, with what their recipes recompute. NVFP4 is planned as fp8, which takes no less.

local csv = require "oracles.csv"
local fits = require "oracles.fits"
local models = require "oracles.models"
local recipes = require "oracles.recipes"
local rows = require "oracles.rows"

local list = {}
local file, why = rows.data "oracles/megatron_bridge_pretraining.csv"
if not file then
  list.skipped = why
  return list
end

local names = {
  DeepSeekV3 = "deepseek-v3", ["DeepSeekV3 (w/o MTP)"] = "deepseek-v3 without MTP", ["GPT OSS 120B"] = "gpt-oss-120b", Kimi_K2 = "kimi-k2",
  Qwen3_30B_a3B = "qwen3-30b", Qwen3_235B_a22B = "qwen3-235b", LLAMA3_70B = "llama3-70b", ["LLAMA3.1_405B"] = "llama3.1-405b",
}

-- The layout of the 25.11 tables, with the system in the model's place.
local function told(row)
  local accelerator = (row.System ~= "" and row.System or row.model):match "DGX%-(%w+)"
  return row.System ~= "" and row.model or row.Model, accelerator
end

-- What the tables say against the repository's recipes of the time (scripts/performance/configs, December 2025 to March 2026).
local misprints = {
  ["GPT OSS 120B, 64 × H100 bf16, 1/4/1/1/8, batch 512 × 4"] =
    "the repository's recipe has MBS 1, which fits; the table's GA 2 is none of this layout",
  ["LLAMA3_70B, 64 × GB300 fp8, 1/4/1/n/a/n/a, batch 256 × 2"] = "the repository's recipe has MBS 1 and VP 5, which fits",
}

-- What no spec can say; nil: nothing stands against a verdict.
local function unplannable(row, name)
  if not names[name] then return "no shape of this model here: hybrid or sparse attention" end
  local sharded = tonumber(row.FSDP)
  if sharded and sharded > 0 then return "sharded by FSDP, activations of 5 to 40 layers offloaded" end
  if row.TP == "1" and row.PP == "1" and name == "LLAMA3_70B" then return "sharded by FSDP, which its table leaves out" end
end

local seen = {}
for _, row in ipairs(csv.read(file)) do
  local name, accelerator = told(row)
  local precision = row.Precision:match "BF16" and "bf16" or "fp8"
  local layout = table.concat({ row.TP, row.PP, row.CP, row.VP, row.EP }, "/")
  local case = string.format("%s, %s × %s %s, %s, batch %s × %s", name, row["#-GPUs"], accelerator, precision, layout, row.GBS, row.MBS)
  -- releases repeat a setting: once is enough
  if not seen[case] then
    seen[case] = true
    local excused, ok, words = unplannable(row, name), nil, ""
    if not excused then
      local model = names[name]
      ok, words = fits.verdict {
        accelerator = accelerator, gpus = tonumber(row["#-GPUs"]), model = models[model],
        tensor = tonumber(row.TP), pipeline = tonumber(row.PP), context = tonumber(row.CP),
        virtual = tonumber(row.VP) or 1, expert = tonumber(row.EP) or 1, batch = tonumber(row.GBS),
        micro_batch = tonumber(row.MBS), sequence = tonumber(row["Sequence Length"]), precision = precision,
        recipe = recipes.of_bridge(model:match "^%S+", accelerator, precision, row.MBS),
      }
    end
    list[#list + 1] = rows.verdict("Megatron-Bridge", case, true, ok == true, words, excused or misprints[case])
  end
end
return list
