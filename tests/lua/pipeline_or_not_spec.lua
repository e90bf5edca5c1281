-- SPDX-License-Identifier: Apache-2.0
-- With or without a pipeline: pairs of runs of one job on one cluster, and whether a plan of each says which was faster. Where nothing but
-- the layout differs, the side has to be right wherever the two are 5 % apart; where their software differs too, a tie within the error of
-- such comparisons will do.

local pipeplan = require "pipeplan"   -- first: it loads the module
local accuracy = require "pipeplan.catalog.accuracy"

local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-29" })

local llama_70b = { layers = 80, hidden = 8192, heads = 64, kv_heads = 8, ffn = 28672, vocab = 128256 }
local llama_405b = { layers = 126, hidden = 16384, heads = 128, kv_heads = 8, ffn = 53248, vocab = 128256 }
local gpt_52b = { layers = 64, hidden = 8192, heads = 64, ffn = 32768, vocab = 50257, gated = false }
local small_1b = { layers = 16, hidden = 2048, heads = 32, ffn = 8192, vocab = 131072, tied_embeddings = true }
local small_3b = { layers = 28, hidden = 3072, heads = 32, ffn = 8192, vocab = 131072, tied_embeddings = true }
local large_80b = { layers = 80, hidden = 8192, heads = 64, ffn = 28672, vocab = 131072 }

-- On racks of 64 cards; the runs without a pipeline sent activations to their hosts, which nothing here does: so they get the memory.
local function rack(accelerator, model, gpus, batch, layout)
  return {
    cluster = { gpus = gpus, accelerator = accelerator, memory_per_gpu = "100TiB", gpus_per_node = 4,
                network = { fabric = "infiniband", per_gpu = "400Gbps", scale_up_gpus = 64 } },
    model = model, framework = "megatron-bridge",
    training = { tokens = "1T", sequence_length = 8192, global_batch_size = batch, precision = "fp8", micro_batch_size = layout.micro,
                 recompute = "none", sharding = layout.pipeline > 1 and "optimizer" or "parameters" },
    parallelism = { tensor = layout.tensor, pipeline = layout.pipeline, virtual = layout.virtual, context = layout.context or 1,
                    schedule = layout.pipeline > 1 and "interleaved_1f1b" or nil },
  }
end

local function h100(model, gpus, layout)
  return {
    cluster = { gpus = gpus, accelerator = "H100-SXM", memory_per_gpu = "100TiB", network = { fabric = "efa", per_gpu = "400Gbps" } },
    model = model,
    training = { tokens = "1T", sequence_length = 4096, global_batch_size = 256, precision = "bf16", micro_batch_size = layout.micro,
                 recompute = "none", zero = layout.zero or 1 },
    parallelism = { tensor = layout.tensor or 1, pipeline = layout.pipeline or 1, context = 1, schedule = layout.pipeline and "1f1b" or nil },
  }
end

local function v100(layout)
  return {
    cluster = { gpus = 64, gpus_per_node = 4, accelerator = "V100-SXM-32GB", memory_per_gpu = "100TiB",
                network = { fabric = "infiniband", per_gpu = "100Gbps" } },
    model = gpt_52b, framework = layout.framework,
    training = { tokens = "300B", sequence_length = 1024, global_batch_size = 1024, precision = "fp16", micro_batch_size = layout.micro,
                 recompute = "full", sharding = layout.sharding },
    parallelism = { tensor = layout.tensor, pipeline = layout.pipeline, context = 1, schedule = layout.pipeline > 1 and "1f1b" or nil },
  }
end

-- { without, with, measured: how much faster without, differs: what else does }
local bridge = "https://github.com/NVIDIA-NeMo/Megatron-Bridge @067f987 docs/performance-summary"
local playbook = "https://huggingface.co/spaces/nanotron/ultrascale-playbook, benchmarks_interactive"
local pairs_of_runs = {
  { "Llama-3-70B on 64 GB200", bridge, 1791 / 1593, "the fp8 recipe", rack("GB200", llama_70b, 64, 128, { micro = 2, tensor = 1, pipeline = 1 }),
    rack("GB200", llama_70b, 64, 128, { micro = 1, tensor = 2, pipeline = 4, virtual = 5 }) },
  { "Llama-3-70B on 64 GB300", bridge, 5243 / 4742, "the fp8 recipe", rack("GB300", llama_70b, 64, 256, { micro = 2, tensor = 1, pipeline = 1 }),
    rack("GB300", llama_70b, 64, 256, { micro = 1, tensor = 1, pipeline = 4, virtual = 5 }) },
  { "Llama-3.1-405B on 128 GB200", bridge, 1840 / 1458, "the fp8 recipe",
    rack("GB200", llama_405b, 128, 64, { micro = 1, tensor = 2, pipeline = 1 }),
    rack("GB200", llama_405b, 128, 64, { micro = 1, tensor = 4, pipeline = 8, context = 2, virtual = 8 }) },
  { "1B on 8 H100", playbook, 40150 / 38895, nil, h100(small_1b, 8, { micro = 2, zero = 0 }), h100(small_1b, 8, { micro = 4, pipeline = 2 }) },
  { "1B on 32 H100", playbook, 36990 / 33677, nil, h100(small_1b, 32, { micro = 2 }), h100(small_1b, 32, { micro = 1, pipeline = 2 }) },
  { "1B on 64 H100", playbook, 31297 / 28494, nil, h100(small_1b, 64, { micro = 1 }), h100(small_1b, 64, { micro = 1, pipeline = 2 }) },
  { "3B on 16 H100", playbook, 16385 / 15402, nil, h100(small_3b, 16, { micro = 2 }), h100(small_3b, 16, { micro = 2, pipeline = 2 }) },
  { "3B on 32 H100", playbook, 15387 / 14210, nil, h100(small_3b, 32, { micro = 2 }), h100(small_3b, 32, { micro = 2, pipeline = 2 }) },
  { "3B on 64 H100", playbook, 13312 / 12501, nil, h100(small_3b, 64, { micro = 1 }), h100(small_3b, 64, { micro = 1, pipeline = 2 }) },
  { "80B on 128 H100", playbook, 445 / 662, nil, h100(large_80b, 128, { micro = 2, tensor = 16 }),
    h100(large_80b, 128, { micro = 1, tensor = 4, pipeline = 32, zero = 0 }) },
  { "80B on 256 H100", playbook, 414 / 594, nil, h100(large_80b, 256, { micro = 2, tensor = 16 }),
    h100(large_80b, 256, { micro = 1, tensor = 4, pipeline = 16 }) },
}
for _, alone in ipairs { { 167, 2, 32 }, { 184, 1, 16 } } do
  table.insert(pairs_of_runs, {
    "GPT-52B on 64 V100, TP " .. alone[2], "https://github.com/bigscience-workshop/bigscience experiments/gpt2.md", 129 / alone[1],
    "ZeRO-3 of DeepSpeed as of 2021, which prefetched less",
    v100 { micro = alone[3], tensor = alone[2], pipeline = 1, sharding = "parameters", framework = "deepspeed" },
    v100 { micro = 4, tensor = 4, pipeline = 16, sharding = "none", framework = "megatron" } })
end

local function seconds(spec)
  local plan = policy:plan_spec(spec, ".")
  assert.equal("planned", plan.status)
  return plan.step_seconds
end

describe("of a pair of runs, with a pipeline and without, plans say which is faster:", function()
  for _, entry in ipairs(pairs_of_runs) do
    local name, source, measured, differs, without, with = table.unpack(entry, 1, 6)
    it(name .. (differs and ", but for " .. differs or ""), function()
      local ours = seconds(with) / seconds(without)
      local right = (ours > 1) == (measured > 1)
      assert.is_true(right or differs ~= nil and math.abs(ours - 1) < accuracy.comparisons.pipeline,
                     string.format("measured %.2f (%s), ours %.2f", measured, source, ours))
    end)
  end
end)
