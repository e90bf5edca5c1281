-- SPDX-License-Identifier: Apache-2.0
-- fits_published.lua: published plans that ran (data/oracles/published_configs.csv, each with its source): they must fit, with what they
-- recomputed (recipes.lua). Two rows are there because their batch arithmetic is wrong; they never ran.

local csv = require "oracles.csv"
local fits = require "oracles.fits"
local models = require "oracles.models"
local recipes = require "oracles.recipes"
local rows = require "oracles.rows"

local list = {}
local file, why = rows.data "oracles/published_configs.csv"
if not file then
  list.skipped = why
  return list
end

local shapes = {
  ["llama3-70b-sft"] = models["llama3-70b"], ["llama3-70b-lora"] = models["llama3-70b"], ["qwen3-235b-a22b"] = models["qwen3-235b"],
  ["qwen3-30b-a3b"] = models["qwen3-30b"], ["mt-nlg-530b"] = models["gpt-530b"],
}
local accelerators = { H100 = "H100-SXM", ["H100-96GB"] = "H100-SXM", A100 = "A100-SXM-80GB", H800 = "H800-SXM-80GB",
                       ["MI355X?"] = "MI355X", ["Ascend A3 die"] = "Ascend-910B" }
local never_ran = { O58 = true, O59 = true }

for _, row in ipairs(csv.read(file)) do
  local case = string.format("%s %s, %s × %s", row.id, row.model, row.gpus, row.gpu)
  local model, recipe = shapes[row.model] or models[row.model], recipes.published[row.id]
  if not recipe then recipe = recipes.of_bridge((row.model:gsub("%-a%d+b$", "")), row.gpu, row.precision, row.mbs) or {} end
  if not never_ran[row.id] then
    local ok, words, excused = nil, "", recipe.excused
    if not model then excused = excused or "no shape of this model here"
    elseif row.gbs == "" then excused = excused or "its batch is not published"
    else
      ok, words = fits.verdict {
        accelerator = row.gpu == "A100" and row.gpu_mem_gb == "40" and "A100-SXM-40GB" or accelerators[row.gpu] or row.gpu,
        memory = row.gpu_mem_gb == "96" and "95830MiB" or nil, gpus = tonumber(row.gpus), model = model, tensor = tonumber(row.tp),
        pipeline = tonumber(row.pp), context = tonumber(row.cp), virtual = tonumber(row.vp), expert = tonumber(row.ep),
        batch = tonumber(row.gbs), micro_batch = tonumber(row.mbs), sequence = tonumber(row.seq),
        precision = row.precision == "mxfp8" and "fp8" or row.precision, recipe = recipe,
      }
    end
    list[#list + 1] = rows.verdict("published plans", case, true, ok == true, words, excused)
  end
end
return list
