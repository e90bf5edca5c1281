-- SPDX-License-Identifier: Apache-2.0
-- memory_megatron_groups.lua: what processes of megatron-core 0.19.2 take of H200 in a step of Megatron-LM's training, by layout
-- (tests/data/gpu/megatron_groups_4xH200.json): MiB beside PyTorch's own memory, and all that is used of a card. Sizes of communicators and
-- which groups have one are from these runs and from Megatron-LM's source; what tensors take is not.

local cjson = require "cjson"
local pipeplan = require "pipeplan"
local rows = require "oracles.rows"

local MIB = 2 ^ 20
local SOURCE = "megatron-core 0.19.2, 4 × H200"
local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-28" })

local handle <close> = assert(io.open "tests/data/gpu/megatron_groups_4xH200.json")
local measured = cjson.decode(handle:read "a")

local function spec_of(layout)
  local m, pipeline, tensor = measured.model, layout.pipeline or 1, layout.tensor or 1
  local moe = layout.expert ~= nil
  return {
    cluster = { gpus = layout.gpus, accelerator = "H200-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { layers = m.layers, hidden = m.hidden, heads = m.heads, kv_heads = m.heads, vocab = m.vocab, ffn = not moe and m.ffn or nil,
              experts = moe and m.experts or nil, experts_per_token = moe and m.experts_per_token or nil,
              expert_ffn = moe and m.expert_ffn or nil, tied_embeddings = layout.tied },
    training = { tokens = "1T", sequence_length = m.sequence_length, micro_batch_size = 1,
                 global_batch_size = m.microbatches * layout.gpus // (pipeline * tensor), precision = "bf16", recompute = "none",
                 gradients = "fp32", moments = "fp32", sharding = "optimizer",
                 unfused = { "activation", "rope", "optimizer", moe and "experts" or nil }, weight_gradients = "dropped" },
    parallelism = { tensor = tensor, pipeline = pipeline, expert = layout.expert, virtual = layout.virtual,
                    schedule = pipeline == 1 and "none" or layout.virtual and "interleaved_1f1b" or "1f1b" },
    framework = "megatron",
  }
end

-- Not held against plans: all communicators from the start; a dispatcher without an all-to-all, which a spec does not say; an optimizer
-- that is not sharded; P1 with experts and P2 compiled, which take what P1 and P2 do.
local function is_planned(layout)
  return not (layout.eager or layout.experts or layout.compiled or layout.dispatcher or layout.shards == false)
end

local list = {}
for _, layout in ipairs(measured.layouts) do
  if is_planned(layout) then
    local plan = policy:plan_spec(spec_of(layout), ".")
    assert(plan.memory, layout.name)
    for i, rank in ipairs(layout.ranks) do
      local ours, case = plan.memory.ranks[i], layout.name .. (#layout.ranks > 1 and string.format(", rank %d", rank.rank) or "")
      list[#list + 1] = rows.of("process", rows.number(SOURCE, case, "beside tensors, MiB", rank.used_mib - rank.reserved_mib,
                                                       ours.overhead_bytes / MIB, 0.02))
      list[#list + 1] = rows.of("used", rows.number(SOURCE, case, "used, MiB", rank.used_mib, ours.total_bytes / MIB, 0.05))
    end
  end
end
return list
