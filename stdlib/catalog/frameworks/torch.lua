-- SPDX-License-Identifier: Apache-2.0
-- torch.lua: torch.distributed.pipelining. S = torch/distributed/pipelining/schedules.py, W = torch/distributed/pipelining/_backward.py, of
-- PyTorch 2.13; "run": seen with it on a CPU.

local function at(where) return "https://github.com/pytorch/pytorch/tree/v2.13.0/torch/distributed/pipelining, " .. where end

-- PyTorch's runtime executes any program of loop placement, or of a V of two stages a rank.
local csv = { flag = "_PipelineScheduleRuntime._load_csv", csv = true }

-- Schedules whose backward is split in I and W, somewhere.
local split = { "zb_h1", "zb_h2", "interleaved_zero_bubble", "zb_v", "zb_auto", "v_half", "v_min", "dualpipev" }

return {
  name = "torch", title = "torch.distributed.pipelining",
  versions = { { name = "2.13", what = "PyTorch" } },
  schedules = {
    gpipe = { flag = "ScheduleGPipe" }, looped_bfs = { flag = "ScheduleLoopedBFS" }, ["1f1b"] = { flag = "Schedule1F1B" },
    interleaved_1f1b = { flag = "ScheduleInterleaved1F1B" }, interleaved_zero_bubble = { flag = "ScheduleInterleavedZeroBubble" },
    zb_h1 = { flag = "ScheduleInterleavedZeroBubble, one stage a rank" },
    zb_h2 = csv, zb_auto = csv, v_half = csv, v_min = csv,
    zb_v = { flag = "ScheduleZBVZeroBubble" }, dualpipev = { flag = "ScheduleDualPipeV", since = "2.9" },
  },
  names = { microbatches = "n_microbatches", pipeline = "size of the process group" },
  rounds = true,  -- microbatches of a chunk's turn: M in max(1, M div P) equal rounds, instead of any group of at least P (S:2938, 3049)

  has = { tensor = true, context = true, expert = true, expert_tensor = true, sequence_parallel = "the caller's", tied_embeddings = false },
  layers = { how = "any", source = at "stage.py: the caller builds each stage" },
  sharding = { alone = { 0, 1, 2, 3 }, with_pipeline = { 0, 1, 2, 3 }, source = "https://github.com/pytorch/torchtitan/issues/562" },
  recompute = { per_weight = true, source = at "_backward.py: stage_backward_weight runs autograd once for each group of parameters" },
  overlap = { source = at "schedules.py: forwards and backwards of a pair run one after the other" },
  weight_gradients = { how = "dropped", source = "https://github.com/pytorch/pytorch/tree/v2.13.0/torch/csrc/autograd/functions/accumulate_grad.h: added "
                                              .. "in place; seen on H200: tests/data/gpu/megatron_runs_4xH200.json, transient_bytes of B" },
  defaults = { source = at "schedules.py: a schedule, not a trainer" },
  communicators = { "tensor", "context", "data", "pipeline", "expert", "expert_data",
                    source = at "stage.py: one group for all messages; others are of the program" },
  host_floor = { forward = 0.75e-3, backward = 1.19e-3, moe_forward = 2.6e-3, moe_backward = 3.4e-3, expert_forward = 0.41e-3,
                 expert_backward = 0.5e-3, waiting = 0.2,
                 source = "measured here: tests/data/gpu/kernels_graphed_and_host_1xH200.jsonl, a plain block of PyTorch 2.11 (RMSNorm, SDPA, SwiGLU); an MoE layer: assumed as much dearer as Megatron's" },

  keys = {
    { key = "n_microbatches", field = "parallelism.microbatches", type = "integer", written = "always" },
    { key = "num_stages", field = "parallelism.pipeline", type = "integer", written = "always", note = "ranks × chunks" },
  },
  gone = {},

  rules = {
    { id = "torch.1f1b_microbatches", schedule = "1f1b", microbatches = { under = "pipeline_parallel" },
      message = "{framework} needs M ≥ P = {pipeline_parallel} for 1F1B, M is {microbatches}: {name_of_m} there",
      source = at "schedules.py:1021; https://github.com/pytorch/pytorch/issues/144702, https://github.com/pytorch/torchtitan/issues/775" },
    { id = "torch.rounds", by = "engine", schedule = { "interleaved_1f1b", "interleaved_zero_bubble" },
      when = function(f) return f.microbatches % math.max(1, f.microbatches // f.pipeline_parallel) ~= 0 end,
      message = "{framework}: M {microbatches} does not divide into max(1, M div P) rounds, P is {pipeline_parallel}",
      source = at "schedules.py:2938, 3049" },
    { id = "torch.dualpipev_microbatches", by = "engine", schedule = "dualpipev",
      when = function(f) return f.microbatches < 2 * f.pipeline_parallel end,
      message = "{framework}: DualPipeV needs M ≥ 2 P: M is {microbatches}, P {pipeline_parallel}", source = at "schedules.py:3440" },
    { id = "torch.split_backward_recompute", schedule = split, recompute_kind = "selective",
      message = "{framework} takes no selective recompute with a split backward, which {schedule} has: I and W each read what a checkpoint "
                .. "frees after its first use; recompute nothing or full, or leave I and W together",
      source = at "_backward.py: stage_backward_input, stage_backward_weight; torch/utils/checkpoint.py: run" },
  },
  notes = "any program of V or loop placement from a CSV of compute actions; forwards and backwards of a pair one after the other",
  source = "https://github.com/pytorch/pytorch, torch/distributed/pipelining/schedules.py; M ≥ stages for single-stage schedules: https://github.com/pytorch/pytorch/issues/144702",
}
