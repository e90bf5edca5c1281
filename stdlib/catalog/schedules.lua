-- SPDX-License-Identifier: Apache-2.0
-- schedules.lua: what there is to know of a schedule beside its program, names and traits (those are engine.schedule's): where it comes from, since
-- when and elsewhere it can be run. Which frameworks run it, and under which rules of theirs, is frameworks.lua's subject.
--
-- idea       what distinguishes it, in one line
-- source     who published it
-- since      first release, or state, in frameworks whose users ask (PyTorch: from the merge dates of the pull requests named)
-- elsewhere  where else it runs or is being built, outside the frameworks of the vocabulary
-- limits     what surprises its users
-- baselines  what a saving is told against: 1F1B, which every trainer has; of what hides the all-to-all also ZB-H1, which has as little
--            bubble and hides nothing

local entries = {
  { name = "gpipe",
    idea = "all forwards, then all backwards: as much bubble as 1F1B, activations of all microbatches",
    source = "Huang et al. 2019, https://arxiv.org/abs/1811.06965",
    since = { torch = "2.4 (https://github.com/pytorch/pytorch/pull/125975)" } },
  { name = "looped_bfs",
    idea = "GPipe over V chunks per rank, each chunk's microbatches at once: interleaving's bubble, activations of all microbatches",
    source = "Lamy-Poirier 2023, https://arxiv.org/abs/2211.05953; the order simulated is PyTorch's, backwards from the last microbatch to the first",
    since = { torch = "2.4 (https://github.com/pytorch/pytorch/pull/125975)" },
    limits = { "below P microbatches every chunk but one waits for the first to come round" } },
  { name = "1f1b", baselines = {},
    idea = "a forward and a backward in turn: at most P − r microbatches held on rank r",
    source = "Narayanan et al. 2021, https://arxiv.org/abs/2104.04473, section 2.2.1 (PipeDream-flush)",
    since = { torch = "2.4 (https://github.com/pytorch/pytorch/pull/125975)" },
    limits = { "PyTorch and torchtitan want M ≥ P (https://github.com/pytorch/pytorch/issues/144702, https://github.com/pytorch/torchtitan/issues/775); nanotron M ≥ P − 1; Megatron-LM and DeepSpeed any M" } },
  { name = "interleaved_1f1b",
    idea = "V chunks per rank: 1F1B's bubble divided by V, messages multiplied by V",
    source = "Narayanan et al. 2021, https://arxiv.org/abs/2104.04473, section 2.2.2",
    since = { torch = "2.4 (https://github.com/pytorch/pytorch/pull/125975); microbatch counts other than multiples of P from 2.6 (https://github.com/pytorch/pytorch/pull/137783)" },
    limits = { "Megatron-LM: group size N with P ≤ N ≤ M, M mod N = 0 or ≥ P", "layers divide by P × V, or a layout is given" } },
  { name = "interleaved_1f1b_overlap", baselines = { "1f1b", "zb_h1" },
    idea = "interleaved 1F1B, one forward more to warm up: a turn's forward and backward overlap and hide each other's all-to-all",
    source = "https://github.com/NVIDIA/Megatron-LM, schedules.py and combined_1f1b.py; https://github.com/NVIDIA/Megatron-LM/issues/1524: preferred there to DualPipe",
    since = { megatron = "--overlap-moe-expert-parallel-comm", ["megatron-bridge"] = "comm_overlap.overlap_moe_expert_parallel_comm" },
    limits = { "PyTorch ≥ 2.6, EP > 1, an all-to-all or flex dispatcher, bf16 or fp16", "no full recompute, no recomputed expert MLP",
               "one chunk more held on every rank than interleaved 1F1B" } },
  { name = "zb_h1",
    idea = "backward split into I and W, W fills the wait: a third of 1F1B's bubble at F = I = W, P microbatches held on every rank",
    source = "Qi et al. 2024, https://arxiv.org/abs/2401.10241",
    since = { torch = "2.5 (https://github.com/pytorch/pytorch/pull/130210): ScheduleInterleavedZeroBubble with one stage per rank" },
    limits = { "PyTorch's split backward does not go together with torch.compile (https://github.com/pytorch/pytorch/issues/161904)" } },
  { name = "zb_h2",
    idea = "twice the warm-up of ZB-H1: less bubble still, 2P − 1 microbatches held",
    source = "Qi et al. 2024, https://arxiv.org/abs/2401.10241",
    limits = { "the sail fork's scheduler at a limit of 2P is usually better than the handmade order simulated here" } },
  { name = "interleaved_zero_bubble",
    idea = "ZB-H1 over V chunks per rank: its bubble of one chunk, divided by V in all, V·P chunks held on every rank",
    source = "https://github.com/pytorch/pytorch, torch/distributed/pipelining/schedules.py, ScheduleInterleavedZeroBubble; after Qi et al. 2024, https://arxiv.org/abs/2401.10241",
    since = { torch = "2.5 (https://github.com/pytorch/pytorch/pull/130210)", torchtitan = "with that PyTorch" },
    limits = { "M in equal rounds: M mod max(1, M div P) = 0", "PyTorch's split backward does not go together with torch.compile (https://github.com/pytorch/pytorch/issues/161904)" } },
  { name = "zb_v",
    idea = "two chunks per rank in a V, backward split: ZB-H2's bubble with 1F1B's memory at F = I = W",
    source = "Qi et al. 2024, https://arxiv.org/abs/2405.15362; the order simulated is PyTorch's",
    since = { torch = "2.7 (https://github.com/pytorch/pytorch/pull/142084, December 2024)", torchtitan = "with that PyTorch" },
    limits = { "embedding and head are both on rank 0", "PyTorch's split backward does not go together with torch.compile (https://github.com/pytorch/pytorch/issues/161904)",
               "zero only in the span and at F = I = W; the sail fork plans from measured times instead" } },
  { name = "zb_auto",
    idea = "planned from the stages' times under a limit of microbatches held: ZB-H1 at a limit of P, at least ZB-H2 from 2P on",
    source = "Qi et al. 2024, https://arxiv.org/abs/2401.10241, section 3.1 (ZB-1p, ZB-2p); our own list scheduler, several orders tried",
    elsewhere = { "the sail fork plans its zero-bubble schedules so, from times measured in the first steps" },
    limits = { "the order suits the times it was planned from", "sends must not block: passes run as early as they can", "PyTorch runs it from a CSV; its split backward does not go together with torch.compile (https://github.com/pytorch/pytorch/issues/161904)" } },
  { name = "v_half",
    idea = "two chunks per rank in a V, backward split: half of 1F1B's activations, half of its bubble at F = I = W",
    source = "Qi et al. 2024, https://arxiv.org/abs/2405.15362, section 3; our own list scheduler",
    limits = { "embedding and head are both on rank 0", "twice 1F1B's messages", "sends must not block: passes run as early as they can",
               "a plan has its order at F = I = W; simulate takes the times it is given" } },
  { name = "v_min",
    idea = "two chunks per rank in a V, backward split: a third of 1F1B's activations, two thirds of its bubble at F = I = W",
    source = "Qi et al. 2024, https://arxiv.org/abs/2405.15362, section 3; our own list scheduler",
    limits = { "embedding and head are both on rank 0", "its bubble grows with M when F, I and W differ", "twice 1F1B's messages",
               "sends must not block", "a plan has its order at F = I = W; simulate takes the times it is given" } },
  { name = "dualpipev", baselines = { "1f1b", "zb_h1" },
    idea = "DualPipe cut in half: one copy of the parameters, two chunks per rank in a V, forward and backward overlapped",
    source = "https://github.com/deepseek-ai/DualPipe, README and dualpipev.py; the idea: sail-sg, \"cut in half\", February 2025",
    since = { torch = "2.9 (https://github.com/pytorch/pytorch/pull/159591, August 2025)", torchtitan = "with that PyTorch", flagscale = "merged, https://github.com/flagos-ai/FlagScale/pull/644",
              mindspeed = "documented; W not split in the cool-down unless --dualpipev-dw-detach" },
    elsewhere = { "PaddlePaddle (https://github.com/PaddlePaddle/Paddle/pull/71427) and PaddleNLP (https://github.com/PaddlePaddle/PaddleNLP/pull/10138)", "DeepSpeed 0.19.8 has DualPipeVModule, whose backward keeps the weight gradients: another schedule (https://github.com/deepspeedai/DeepSpeed/tree/v0.19.8, deepspeed/runtime/pipe/schedule.py:327)", "https://github.com/mlc-ai/pith-train" },
    limits = { "without an overlapping kernel a pair takes F + B: it then loses to ZB-V", "embedding and head are both on rank 0" } },
  { name = "dualpipe", baselines = { "1f1b", "zb_h1" },
    idea = "microbatches from both ends, forward and backward overlapped: two copies of the parameters",
    source = "DeepSeek-AI 2024, https://arxiv.org/abs/2412.19437, section 3.2.1; https://github.com/deepseek-ai/DualPipe, dualpipe.py",
    since = { ["deepseek-dualpipe"] = "the reference, a schedule and not a trainer", flagscale = "open, https://github.com/flagos-ai/FlagScale/pull/1157 (March 2026)" },
    elsewhere = { "Megatron-LM: https://github.com/NVIDIA/Megatron-LM/pull/5254 was closed; https://github.com/NVIDIA/Megatron-LM/issues/1524 says why: interleaved 1F1B with all-to-all overlap instead" },
    limits = { "P even, M even, M ≥ 2P", "the copies' gradients are summed by the caller", "embedding and head are both on the outer ranks" } },
}

local catalogue = { entries = entries, names = {} }
local by_name = {}
for i, entry in ipairs(entries) do
  entry.baselines = entry.baselines or { "1f1b" }
  catalogue.names[i] = entry.name
  by_name[entry.name] = entry
end

-- Names of what a schedule's savings are told against; none without a pipeline.
function catalogue.baselines(name)
  return by_name[name] and by_name[name].baselines or {}
end

-- The entry of a schedule, or nil.
function catalogue.find(name)
  return by_name[name]
end

return catalogue
