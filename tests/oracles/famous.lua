-- SPDX-License-Identifier: Apache-2.0
-- famous.lua: ten published runs whose layout and speed are known: what they ran and what it took, what we say that takes, what the shipped
-- policy chooses where the layout and the recipe are left out, and which term of the price makes the difference. Nothing is fitted here.
-- docs/famous-runs.md:
--   LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/oracles/famous.lua > docs/famous-runs.md

local pipeplan = require "pipeplan"
local accuracy = require "pipeplan.catalog.accuracy"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local models = require "oracles.models"
local planner = require "pipeplan.plan.init"
local predict = require "oracles.predict"
local price = require "pipeplan.plan.price"
local spec = require "pipeplan.input.spec"

local famous = {}

local anyway = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-29" })
local shipped = pipeplan.policy(nil, { date = "2026-11-29" })

local full = { full = true }

-- seconds of a step: measured, or from what the source gives. Where a source says TFLOP/s, the step follows from its own count of FLOPs.
famous.runs = {
  { name = "Llama 3.1 405B", model = "llama3.1-405b", accelerator = "H100-SXM", gpus = 16384, precision = "bf16", batch = 2048,
    micro_batch = 1, sequence = 8192, tensor = 8, context = 1, expert = 1, pipeline = 16, virtual = 8, recompute = {}, fabric = "roce",
    training = { moments = "fp32", gradients = "fp32" },
    -- 6 × 405.8e9 + attention of 8,192 causal tokens, at 400 TFLOP/s a GPU
    seconds = 2048 * 8192 * (6 * 405.8e9 + 6 * 126 * 16384 * 8192) / (400e12 * 16384),
    source = "400 TFLOP/s a GPU: https://arxiv.org/abs/2407.21783, Table 4; V is not told: 8 here" },
  { name = "DeepSeek-V3", model = "deepseek-v3", accelerator = "H800-SXM", gpus = 2048, precision = "fp8", batch = 15360,
    micro_batch = 1, sequence = 4096, tensor = 1, context = 1, expert = 64, pipeline = 16, virtual = 1, schedule = "dualpipe",
    kernel = "deepep",
    recompute = { norm = true, mla_up_projection = true, activation = true }, fabric = "infiniband", training = { moments = "bf16" },
    seconds = 180e3 * 3600 / 1e12 * 15360 * 4096 / 2048,
    source = "180 k GPU-hours a trillion tokens: https://arxiv.org/abs/2412.19437, Table 1 and §3.2" },
  { name = "Qwen3 235B-A22B", model = "qwen3-235b", accelerator = "H100-SXM", gpus = 256, precision = "fp8", batch = 8192, micro_batch = 1,
    sequence = 4096, tensor = 2, context = 1, expert = 32, pipeline = 8, virtual = 4, overlapped = true, kernel = false, recompute = {},
    fabric = "infiniband", seconds = 8192 * 4096 / 256 / 1686,
    source = "1,686 tokens a second and GPU: NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary-archive.md, 26.04" },
  { name = "Llama 3 70B", model = "llama3-70b", accelerator = "H100-SXM", gpus = 64, precision = "fp8", batch = 256, micro_batch = 1,
    sequence = 8192, tensor = 4, context = 1, expert = 1, pipeline = 8, virtual = 5, recompute = {}, tensor_overlap = 0.7,
    fabric = "infiniband", seconds = 256 * 8192 / 64 / 1633, source = "1,633 tokens a second and GPU: the same, 26.04" },
  { name = "DeepSeek-V3", model = "deepseek-v3", accelerator = "B200", gpus = 256, precision = "fp8", batch = 4096, micro_batch = 1,
    sequence = 4096, tensor = 1, context = 1, expert = 32, pipeline = 8, virtual = 2, overlapped = true, kernel = "hybrid_ep",
    recompute = { mla_up_projection = true }, fabric = "infiniband", seconds = 4096 * 4096 / 256 / 3328,
    source = "3,328 tokens a second and GPU: the same, 26.04.01" },
  { name = "Nemotron-4 340B", model = "nemotron4-340b", accelerator = "H100-SXM", gpus = 6144, precision = "bf16", batch = 2304,
    micro_batch = 1, sequence = 4096, tensor = 8, context = 1, expert = 1, pipeline = 12, virtual = 8, recompute = {},
    fabric = "infiniband", seconds = 8.0,
    source = "8.0 s a step: https://arxiv.org/abs/2406.11704, Table 2" },
  { name = "BLOOM 176B", model = "bloom-176b", accelerator = "A100-SXM-80GB", gpus = 384, precision = "bf16", batch = 2048,
    micro_batch = 2, sequence = 2048, tensor = 4, context = 1, expert = 1, pipeline = 12, virtual = 1, recompute = full,
    fabric = "infiniband",
    network_per_gpu = 4 * 100e9 / 8 / 8, layers_per_stage = { 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5 }, training = predict.megatron_2021,
    seconds = 104.7, source = "104.7 s a step: bigscience-workshop/bigscience, train/tr11-176B-ml/README.md" },
  { name = "MT-NLG 530B", model = "gpt-530b", accelerator = "A100-SXM-80GB", gpus = 2240, precision = "fp16", batch = 1920, micro_batch = 1,
    sequence = 2048, tensor = 8, context = 1, expert = 1, pipeline = 35, virtual = 1, recompute = full, fabric = "infiniband",
    training = predict.megatron_2021, seconds = 60.1, source = "60.1 s a step: https://arxiv.org/abs/2201.11990, §2.3" },
  { name = "GPT 1T", model = "gpt-1t", accelerator = "A100-SXM-80GB", gpus = 3072, precision = "fp16", batch = 3072, micro_batch = 1,
    sequence = 2048, tensor = 8, context = 1, expert = 1, pipeline = 64, virtual = 1, recompute = full, fabric = "infiniband",
    training = predict.megatron_2021,
    seconds = 96 * 3072 * 2048 * 128 * 25600 ^ 2 * (1 + 2048 / (6 * 25600) + 51200 / (16 * 128 * 25600)) / (163e12 * 3072),
    source = "163 TFLOP/s a GPU by its equation 3: https://arxiv.org/abs/2104.04473, Table 1" },
  { name = "Kimi K2", model = "kimi-k2", accelerator = "GB300", gpus = 256,
    precision = "fp8", batch = 4096, micro_batch = 2, sequence = 4096,
    tensor = 1, context = 1, expert = 64, pipeline = 4, virtual = 4, kernel = "hybrid_ep", recompute = { mla_up_projection = true },
    seconds = 4096 * 4096 / 256 / 5372,
    source = "5,372 tokens a second and GPU: NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary-archive.md, 26.06" },
}

-- Plans a spec with the price of what is planned.
local function planned(object, policy)
  local plan = planner.plan { request = spec.from_table(object, "."), policy = policy.policy, shortlist = 2 }
  return plan, plan.shortlist and plan.shortlist[1]
end

-- The same job with what a spec may leave out left out, on the GPUs as they are. What stays is what the job is: model, tokens, batch,
-- precision, what is kept.
local function free_of(object)
  local training = object.training
  return {
    cluster = { gpus = object.cluster.gpus, accelerator = object.cluster.accelerator, network = object.cluster.network },
    model = object.model,
    training = { tokens = training.tokens, sequence_length = training.sequence_length, global_batch_size = training.global_batch_size,
                 precision = training.precision, moments = training.moments, gradients = training.gradients,
                 unfused = training.unfused, loss = training.loss,
                 dropout = training.dropout, tensor_overlap = training.tensor_overlap },
  }
end

-- The terms in which two prices differ most, the largest first, as far as they are a fiftieth of the step.
local function differences(theirs, ours)
  local list = {}
  for _, term in ipairs(price.terms) do
    local key = term[1] .. "_seconds"
    list[#list + 1] = { title = term[2], apart = ours.price[key] - theirs.price[key] }
  end
  table.sort(list, function(a, b)
    if math.abs(a.apart) ~= math.abs(b.apart) then return math.abs(a.apart) > math.abs(b.apart) end
    return a.title < b.title
  end)
  local words = {}
  for i = 1, 3 do
    if math.abs(list[i].apart) >= 0.02 * theirs.step_seconds then
      words[#words + 1] = string.format("%s %s%s", list[i].title, list[i].apart < 0 and "−" or "+",
                                        format.seconds(math.abs(list[i].apart)))
    end
  end
  return #words > 0 and table.concat(words, ", ") or "no term by 2 %"
end

-- → { run, theirs, ours, measured, predicted, chosen, words } each; theirs and ours as a shortlist has its entries.
function famous.list()
  local list = {}
  for i, run in ipairs(famous.runs) do
    local object = predict.spec(models[run.model], run)
    object.cluster.memory_per_gpu = nil
    local _, theirs = planned(object, anyway)
    local fits = theirs ~= nil
    if not fits then
      object.cluster.memory_per_gpu = "100TiB"
      _, theirs = planned(object, anyway)
    end
    local plan, ours = planned(free_of(object), shipped)
    list[i] = { run = run, fits = fits, theirs = theirs, ours = ours, plan = plan, measured = run.seconds, predicted = theirs.step_seconds,
                chosen = ours and ours.step_seconds, words = ours and differences(theirs, ours) or plan.reasons[1].message }
  end
  return list
end

local function described(entry)
  local parts = { layout.line(entry.parallelism, entry.microbatches, " ") }
  parts[#parts + 1] = "mbs " .. entry.micro_batch_size
  parts[#parts + 1] = #entry.recompute > 0 and "recompute " .. table.concat(entry.recompute, "+") or nil
  return format.schedule(entry.schedule) .. ", " .. table.concat(parts, ", ")
end

function famous.page(list)
  local lines = {
    "# Ten published runs, and what pipeplan would have chosen", "",
    "Printed by `tests/oracles/famous.lua`, by the program's own path: do not edit. Each run is priced as it ran, from the",
    "catalogue alone. Then the layout, the microbatch size, recompute and sharding are left out of its spec, and the shipped policy",
    "chooses them. A choice that is faster by less than a comparison of layouts can be wrong, 19 %, is a tie: measure both. Their software",
    "could not run every schedule of ours: `framework` in a spec limits the choice to what one can.", "",
  }
  list = list or famous.list()
  local within = 0
  for _, entry in ipairs(list) do
    if math.abs(entry.predicted / entry.measured - 1) <= accuracy.time_fraction then within = within + 1 end
  end
  lines[#lines + 1] = string.format("%d of the %d prices of what was run lie within the ±%s that plans print for time.", within, #list,
                                    format.percent(accuracy.time_fraction))
  lines[#lines + 1] = ""
  for i, entry in ipairs(list) do
    local run = entry.run
    lines[#lines + 1] = string.format("## %d. %s on %s %s, %s", i, run.name, format.integer(run.gpus), run.accelerator, run.precision)
    lines[#lines + 1] = ""
    lines[#lines + 1] = string.format("- They ran %s: %s a step (%s).", described(entry.theirs), format.seconds(entry.measured), run.source)
    lines[#lines + 1] = string.format("- Our price of that: %s, %+.0f %%%s.", format.seconds(entry.predicted),
                                      100 * (entry.predicted / entry.measured - 1), entry.fits and "" or "; by our bytes it would not fit")
    if entry.ours then
      local gain = entry.chosen / entry.predicted - 1
      lines[#lines + 1] = string.format("- We choose %s: %s, %s.", described(entry.ours), format.seconds(entry.chosen),
                                        math.abs(gain) < 0.0005 and "as fast" or string.format("%.1f %% %s", 100 * math.abs(gain),
                                                                                              gain < 0 and "faster" or "slower"))
      lines[#lines + 1] = "- What makes the difference: " .. entry.words .. "."
    else
      lines[#lines + 1] = "- We plan nothing: " .. entry.words .. "."
    end
    lines[#lines + 1] = ""
  end
  return table.concat(lines, "\n")
end

if arg and arg[0] and arg[0]:find "famous%.lua$" then io.write(famous.page(), "\n") end

return famous
