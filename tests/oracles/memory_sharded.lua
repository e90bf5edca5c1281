-- SPDX-License-Identifier: Apache-2.0
-- memory_sharded.lua: peaks of FSDP2 in torchtitan (rows of sharded_rows.csv in the folder $PIPEPLAN_DATA/oracles that give one), planned
-- by `plan` itself. What was measured is what PyTorch's allocator reserved: 4 to 8 % more than tensors take (tests/data/gpu:
-- megatron_core_H200.jsonl), 6 % taken, without what lies beside it. The loss is PyTorch's cross entropy in fp32, which was not compiled
-- then (pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md). Nothing was fitted.

local csv = require "oracles.csv"
local models = require "oracles.models"
local pipeplan = require "pipeplan"
local rows = require "oracles.rows"

local file, why = rows.data "oracles/sharded_rows.csv"
if not file then return { skipped = why } end

local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-28" })
local RESERVED = 1.06
local small = { layers = 32, hidden = 4096, heads = 32, kv_heads = 8, ffn = 14336, vocab = 128256 }
local shapes = { ["Llama-3.1-8B"] = small, ["Llama-3.1-70B"] = models["llama3-70b"] }

local function excuse(row)
  if tonumber(row.pp) > 1 then return "a pipeline whose microbatches the source does not give" end
  if row.recompute:match "selective" then
    return "keeps the outputs of every second product and of attention (torchtitan distributed/activation_checkpoint.py): no spec says that"
  end
  if tonumber(row.tp) > 1 then return "its loss stays split over TP, which no spec says of one that is not fused" end
end

local function spec_of(row)
  local gpus, tensor, context = tonumber(row.gpus), tonumber(row.tp), tonumber(row.cp)
  return {
    cluster = { gpus = gpus, accelerator = "H100-SXM", memory_per_gpu = "100TiB",
                network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = shapes[row.model], framework = "torchtitan",
    training = { tokens = "1T", sequence_length = tonumber(row.seq), global_batch_size = tonumber(row.global_batch),
                 micro_batch_size = tonumber(row.micro_batch), precision = row.precision:match "fp8" and "fp8" or "bf16",
                 sharding = "parameters", recompute = row.recompute == "full" and "full" or "none", loss = "torch" },
    parallelism = { tensor = tensor, context = context, pipeline = 1, schedule = "none" },
  }
end

local list = {}
for _, row in ipairs(csv.read(file)) do
  local peak, excused = tonumber(row.peak_mem_gb), excuse(row)
  if peak and shapes[row.model] and tonumber(row.micro_batch) then
    local plan = policy:plan_spec(spec_of(row), ".")
    local case = string.format("%s, %s × %s, %s × %s of %s, TP %s, CP %s, %s", row.model, row.gpus, row.accelerator:match "^[%w_-]+",
                               row.global_batch, row.micro_batch, row.seq, row.tp, row.cp, row.recompute)
    local rank = plan.memory.ranks[1]
    local ours = RESERVED * (rank.total_bytes - rank.overhead_bytes) / 2 ^ 30
    list[#list + 1] = rows.number("torchtitan", case, "reserved, GiB", peak, ours, 0.08, excused)
  end
end
return list
