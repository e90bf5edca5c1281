-- SPDX-License-Identifier: Apache-2.0
-- fits_bridge.lua: Megatron-Bridge's pre-training runs (bridge_settings.lua): they ran, so they must fit, with what their recipes
-- recompute. NVFP4 is planned as fp8, which takes no less.

local fits = require "oracles.fits"
local models = require "oracles.models"
local recipes = require "oracles.recipes"
local rows = require "oracles.rows"
local settings = require "oracles.bridge_settings"

-- What the tables say against the repository's recipes of the time (scripts/performance/configs, December 2025 to March 2026).
local misprints = {
  ["GPT OSS 120B, 64 × H100 bf16, 1/4/1/1/8, batch 512 × 4"] =
    "the repository's recipe has MBS 1, which fits; the table's GA 2 is none of this layout",
  ["LLAMA3_70B, 64 × GB300 fp8, 1/4/1/n/a/n/a, batch 256 × 2"] = "the repository's recipe has MBS 1 and VP 5, which fits",
}

-- A setting with NVFP4 is planned as its twin with fp8: once is enough.
local planned = {}
local function repeats(setting)
  local case = setting.case:gsub("nvfp4", "fp8")
  if planned[case] then return true end
  planned[case] = true
  return false
end

local function verdict_row(setting)
  local excused, ok, words = setting.unplannable, nil, ""
  if not excused then
    ok, words = fits.verdict {
      accelerator = setting.accelerator, gpus = setting.gpus, model = models[setting.model], tensor = setting.tensor,
      pipeline = setting.pipeline, context = setting.context, virtual = setting.virtual, expert = setting.expert, batch = setting.batch,
      micro_batch = setting.micro_batch, sequence = setting.sequence, precision = setting.precision,
      recipe = recipes.of_bridge(setting.model:match "^%S+", setting.accelerator, setting.precision, tostring(setting.micro_batch)),
    }
  end
  return rows.verdict("Megatron-Bridge", setting.case, true, ok == true, words, excused or misprints[setting.case])
end

local list = { skipped = settings.skipped }
for _, setting in ipairs(settings) do
  if not repeats(setting) then list[#list + 1] = verdict_row(setting) end
end
return list
