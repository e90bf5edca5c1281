-- SPDX-License-Identifier: Apache-2.0
-- time_megatron_core.lua: our own runs of megatron-core 0.19.2 on H200 (tests/data/gpu/megatron_core_H200.jsonl), from the catalogue alone:
-- seconds of a step, and GiB that tensors take on each rank at most. They gave init_process_group a device_id, which Megatron-LM does not:
-- what else they took of a card is no plan's (memory_megatron_groups.lua does that). Models shaped like Llama, untied, bf16
-- with fp32 gradients, local layer specs: rotary embedding and the update are PyTorch's own operations, experts run one by one. SwiGLU
-- keeps its input alone (megatron/core/fusions/fused_bias_swiglu.py, SwiGLUFunction), and torch.nn.RMSNorm is one kernel in PyTorch 2.11.
--
-- One of them calibrates: the dense model of hidden 2,048 the host's floor of a dense layer (stdlib/catalog/frameworks/megatron.lua). All
-- others test. The band of memory is the worst row's, rounded up: three runs with 8,192 tokens a microbatch and more take 3.5 to 4 bytes a
-- logit that are not explained.

local cjson = require "cjson"
local pipeplan = require "pipeplan"
local rows = require "oracles.rows"

local GIB = 2 ^ 30
local FILE = "tests/data/gpu/megatron_core_H200.jsonl"
local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-28" })

-- Megatron's own division: as many layers on each stage.
local function even(o)
  local list = {}
  for s = 1, o.pp * o.vp do list[s] = o.layers // (o.pp * o.vp) end
  return o.pp > 1 and list or nil
end

local function spec_of(o)
  local moe = o.experts > 0
  return {
    cluster = { gpus = o.pp * o.tp, accelerator = "H200-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { layers = o.layers, hidden = o.hidden, heads = o.heads, kv_heads = o.kv, vocab = o.vocab, ffn = not moe and o.ffn or nil,
              experts = moe and o.experts or nil, experts_per_token = moe and o.topk or nil, expert_ffn = moe and o.ffn or nil },
    training = { tokens = "1T", sequence_length = o.seq, micro_batch_size = o.mbs, global_batch_size = o.m * o.mbs, precision = "bf16",
                 recompute = o.recompute == "full" and "full" or "none", gradients = "fp32", moments = "fp32", sharding = "optimizer",
                 unfused = { "rope", "optimizer", moe and "experts" or nil }, weight_gradients = "dropped" },
    parallelism = { tensor = o.tp, pipeline = o.pp, expert = moe and o.ep or nil, virtual = o.vp > 1 and o.vp or nil,
                    layers_per_stage = even(o), schedule = o.pp == 1 and "none" or o.vp > 1 and "interleaved_1f1b" or "1f1b" },
    framework = "megatron",
  }
end

local function case_of(o)
  return string.format("L%d h%d%s, TP %d PP %d V %d, %d × %d of %d%s", o.layers, o.hidden,
                       o.experts > 0 and string.format(" E%d", o.experts) or "", o.tp, o.pp, o.vp, o.m, o.mbs, o.seq,
                       o.recompute == "full" and ", recompute" or "")
end

local list = {}
for line in io.lines(FILE) do
  local run = cjson.decode(line)
  local o = run.options
  local plan = policy:plan_spec(spec_of(o), ".")
  local case = case_of(o)
  assert(plan.step_seconds, case)
  local calibrates = o.hidden == 2048 and o.experts == 0
  local group = calibrates and "step, calibrates" or "step"
  local excused = o.experts > 0 and "its experts, one by one, take 39 ms a layer, launches with few tokens 16: not explained" or nil
  local step = rows.number("megatron-core 0.19.2, H200", case, "step, s", run.step_s, plan.step_seconds, 0.08, excused)
  list[#list + 1] = rows.of(group, step)
  for i, measured in ipairs(run.ranks) do
    local ours = plan.memory.ranks[i]
    local where = #run.ranks > 1 and string.format(", rank %d", measured.rank) or ""
    list[#list + 1] = rows.of("allocated", rows.number("megatron-core 0.19.2, H200", case .. where, "tensors, GiB", measured.allocated_gib,
                                                       (ours.total_bytes - ours.overhead_bytes) / GIB, 0.12))
  end
end
return list
