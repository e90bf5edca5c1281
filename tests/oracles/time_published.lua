-- SPDX-License-Identifier: Apache-2.0
-- time_published.lua: steps of published plans (data/oracles/published_configs.csv, each with its source) that no other source of the
-- table has: seconds, or tokens per second and GPU, or for GPT models TFLOP/s a GPU by equation 3 of 2104.04473 (which counts full
-- recompute). What they recomputed and kept: recipes.lua. Nothing is fitted to these rows.

local csv = require "oracles.csv"
local models = require "oracles.models"
local predict = require "oracles.predict"
local recipes = require "oracles.recipes"
local rows = require "oracles.rows"

local list = {}
local file, why = rows.data "oracles/published_configs.csv"
if not file then
  list.skipped = why
  return list
end

local accelerators = { ["A100 40"] = "A100-SXM-40GB", A100 = "A100-SXM-80GB", ["MI355X?"] = "MI355X", ["H100-96GB"] = "H100-SXM" }

-- Elsewhere in the table, or no measurement at all.
local elsewhere = { ["mt-nlg-530b"] = true, ["dsv3-proxy-14L"] = true, ["llama2-7b"] = true }
local function skip(row)
  return elsewhere[row.model] or row.source:find "sc21/run_table_1" or row.tok_s_gpu .. row.tflops_gpu .. row.step_s == "" or
         row.source:find "docs/performance%-summary" and row.id ~= "O03"
end

local not_claimed = {
  O34 = "FSDP, no pipeline", O61 = "FSDP beside a pipeline; its microbatch size is not published", O62 = "FSDP beside a pipeline",
  O65 = "its batch is not published", O71 = "LoRA over two desktops", O37 = "which FLOPs its rate counts is not published",
}

-- Four Omni-Path links of 100 Gb/s a host of eight, ends a layer shorter: bigscience-workshop/bigscience train/tr11-176B-ml/README.md.
local jean_zay = { network_per_gpu = 4 * 100e9 / 8 / 8, layers_per_stage = { 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5 } }
local more = {
  -- Megatron-Bridge scripts/performance/configs/deepseek/workload_base_configs.py @d19cb73, H100: moe_a2a_overlap, deepep
  O03 = { overlapped = true, kernel = "deepep_v1" },
  -- yanring/Megatron-MoE-ModelZoo best_practice/Qwen3/readme.md @c1ad0b5, its columns Dispatcher and Notes
  O33 = { overlapped = true, kernel = "deepep_v1" }, O35 = { kernel = "nccl_alltoall" },
  O47 = jean_zay, O49 = jean_zay, O50 = jean_zay,
}

-- Where no recipe says more: Megatron's with full recompute or none.
local function training_of(recipe)
  if recipe.zero == 0 or recipe.recompute == "full" then return predict.megatron_2021 end
end

local function recompute_of(recipe)
  if recipe.recompute == "full" then return { full = true } end
  if recipe.recompute == "selective" then return { core_attention = true } end
  local set = {}
  for _, name in ipairs(type(recipe.recompute) == "table" and recipe.recompute or {}) do set[name] = true end
  return set
end

local function flops_of(model, run)
  return 96 * run.batch * run.sequence * model.layers * model.hidden ^ 2 *
         (1 + run.sequence / (6 * model.hidden) + model.vocab / (16 * model.layers * model.hidden))
end

local function seconds_of(row, model, run)
  if row.step_s ~= "" then return tonumber(row.step_s) end
  if row.tok_s_gpu ~= "" then return run.batch * run.sequence / run.gpus / tonumber(row.tok_s_gpu) end
  return flops_of(model, run) / run.gpus / tonumber(row.tflops_gpu) / 1e12
end

local shapes = { ["qwen3-235b-a22b"] = "qwen3-235b" }

local function run_of(row, recipe)
  local run = {
    accelerator = accelerators[row.gpu .. " " .. row.gpu_mem_gb] or accelerators[row.gpu] or row.gpu, gpus = tonumber(row.gpus),
    precision = row.precision, kernel = "hybrid_ep", batch = tonumber(row.gbs), micro_batch = tonumber(row.mbs),
    sequence = tonumber(row.seq), tensor = tonumber(row.tp), pipeline = tonumber(row.pp), context = tonumber(row.cp),
    virtual = tonumber(row.vp), expert = tonumber(row.ep), recompute = recompute_of(recipe), training = training_of(recipe),
  }
  for key, value in pairs(more[row.id] or {}) do run[key] = value end
  return run
end

for _, row in ipairs(csv.read(file)) do
  local model, recipe = models[shapes[row.model] or row.model], recipes.published[row.id] or {}
  local case = string.format("%s %s, %s × %s", row.id, row.model, row.gpus, row.gpu)
  if not_claimed[row.id] then
    list[#list + 1] = { source = "published plans", case = case, quantity = "step, s", published = "", ours = "", ok = false,
                        excused = not_claimed[row.id] }
  elseif not skip(row) then
    local run = run_of(row, recipe)
    local ours = predict.step(model, run).seconds
    list[#list + 1] = rows.number("published plans", case, "step, s", seconds_of(row, model, run), ours, 0.35)
  end
end

-- Two more rows of the table that O33 and O35 are from: experts over hosts without the overlap, and inside a host at TP 4.
local qwen = { accelerator = "H100-SXM", gpus = 256, precision = "bf16", kernel = "deepep_v1", batch = 2048, micro_batch = 1,
               sequence = 4096, pipeline = 8, context = 1, virtual = 4 }
for _, row in ipairs { { 2, 32, 19.7, { norm = true, activation = true } }, { 4, 8, 29.0, {} } } do
  qwen.tensor, qwen.expert, qwen.recompute = row[1], row[2], row[4]
  local case = string.format("Qwen3-235B, 256 × H100, TP %d PP 8 VP 4 EP %d", row[1], row[2])
  local ours = predict.step(models["qwen3-235b"], qwen).seconds
  list[#list + 1] = rows.number("Megatron-MoE-ModelZoo", case, "step, s", row[3], ours, 0.35)
end
return list
