-- frameworks.lua: which schedules each framework runs, and its legality rules as data.
--
-- schedules           name → { since or state, flag: how a user asks for it ({limit}: the plan's activation limit), and where stricter than the schedule itself: its rules }
--   csv  true: not a schedule of the framework, but its runtime executes the program that `pipeplan plan --format csv` prints
--   rules: microbatches_multiple_of "ranks" | "group", min_microbatches_per_rank, even_layers (layers divide by ranks × virtual),
--          layers_multiple_of (per rank), max_virtual, microbatches_short_of_ranks n (M ≥ P − n), min_expert_parallel,
--          recomputes_experts false (no recompute of whole layers or of the expert MLP), max_mtp_layers
-- rounds              microbatches of a chunk's turn: M in max(1, M div P) equal rounds, instead of any group of at least P
-- even_layers         the framework cannot give stages different numbers of layers at all
-- zero_stages         ZeRO stages that go together with a pipeline
-- tied_embeddings     can embedding and output weights be tied across stages?
-- names               what its users call M and P

local lists = require "pipeplan.base.lists"
local lookup = require "pipeplan.catalog.lookup"

-- What Megatron-LM's arguments.py asks of --overlap-moe-expert-parallel-comm beside virtual stages.
local function overlapped(flag)
  return { flag = flag, since = "PyTorch 2.6", microbatches_multiple_of = "group", min_expert_parallel = 2, recomputes_experts = false,
           max_mtp_layers = 1 }
end

-- PyTorch's runtime executes any program of loop placement, or of a V of two stages a rank.
local titan_csv = { flag = "parallelism.pipeline_parallel_schedule_csv", csv = true }
local torch_csv = { flag = "_PipelineScheduleRuntime._load_csv", csv = true }

local entries = {
  { name = "megatron", title = "Megatron-LM", even_layers = false, zero_stages = { 0, 1 }, tied_embeddings = true,
    schedules = {
      ["1f1b"] = { flag = "--pipeline-model-parallel-size" },
      interleaved_1f1b = { flag = "--num-virtual-stages-per-pipeline-rank", microbatches_multiple_of = "group" },
      interleaved_1f1b_overlap = overlapped "--num-virtual-stages-per-pipeline-rank --overlap-moe-expert-parallel-comm",
    },
    names = { microbatches = "global-batch-size / (micro-batch-size × data parallel)", pipeline = "--pipeline-model-parallel-size" },
    notes = "uneven stages by --pipeline-model-parallel-layout",
    source = "NVIDIA/Megatron-LM arguments.py, schedules.py @d98e8a6; DualPipe: PR 5254 closed, #1524 says why" },
  { name = "megatron-bridge", title = "Megatron-Bridge", even_layers = false, zero_stages = { 0, 1 }, tied_embeddings = true,
    schedules = {
      ["1f1b"] = { flag = "pipeline_model_parallel_size" },
      interleaved_1f1b = { flag = "virtual_pipeline_model_parallel_size", microbatches_multiple_of = "group" },
      interleaved_1f1b_overlap = overlapped "virtual_pipeline_model_parallel_size, comm_overlap.overlap_moe_expert_parallel_comm",
    },
    names = { microbatches = "global_batch_size / (micro_batch_size × data parallel)", pipeline = "pipeline_model_parallel_size" },
    source = "NVIDIA-NeMo/Megatron-Bridge performance guide @067f987" },
  { name = "flagscale", title = "FlagScale", even_layers = false, zero_stages = { 0, 1 }, tied_embeddings = false,
    schedules = {
      ["1f1b"] = { flag = "system.pipeline_model_parallel_size" },
      interleaved_1f1b = { flag = "system.num_layers_per_virtual_pipeline_stage", microbatches_multiple_of = "group" },
      dualpipev = { flag = "system.use_dualpipev", even_layers = true, min_microbatches_per_rank = 2 },
      dualpipe = { flag = "system.use_dualpipe", state = "open pull request 1157", min_microbatches_per_rank = 2 },
    },
    names = { microbatches = "model.global_batch_size / (micro_batch_size × data parallel)", pipeline = "system.pipeline_model_parallel_size" },
    notes = "DualPipeV with moe_fb_overlap needs untied embeddings, EP > 1, no MTP, no gradient or parameter overlap",
    source = "flagos-ai/FlagScale arguments.py.patch, examples @16a2dd5; PR 1157" },
  { name = "deepseek-dualpipe", title = "DeepSeek DualPipe package", even_layers = false, zero_stages = { 0, 1 }, tied_embeddings = true,
    schedules = {
      dualpipe = { flag = "dualpipe.DualPipe", min_microbatches_per_rank = 2 },
      dualpipev = { flag = "dualpipe.DualPipeV", min_microbatches_per_rank = 2 },
    },
    names = { microbatches = "num_chunks", pipeline = "size of the process group" },
    notes = "a schedule, not a trainer: model, data parallelism and optimizer are the caller's",
    source = "deepseek-ai/DualPipe dualpipe.py, dualpipev.py" },
  { name = "torchtitan", title = "torchtitan", rounds = true, even_layers = false, zero_stages = { 0, 1, 2, 3 }, tied_embeddings = false,
    schedules = {
      gpipe = { flag = "GPipe" }, looped_bfs = { flag = "LoopedBFS" }, ["1f1b"] = { flag = "1F1B", microbatches_short_of_ranks = 0 },
      interleaved_1f1b = { flag = "Interleaved1F1B" }, interleaved_zero_bubble = { flag = "InterleavedZeroBubble" },
      zb_h1 = titan_csv, zb_h2 = titan_csv, zb_auto = titan_csv, v_half = titan_csv, v_min = titan_csv,
      zb_v = { flag = "ZBVZeroBubble" }, dualpipev = { flag = "DualPipeV", since = "PyTorch with ScheduleDualPipeV", min_microbatches_per_rank = 2 },
    },
    names = { microbatches = "parallelism.num_pp_microbatches", pipeline = "parallelism.pipeline_parallel_degree" },
    notes = "composes fully sharded data parallelism with a pipeline (#562); M ≥ stages, or 1F1B hangs in older versions (#775)",
    source = "pytorch/torchtitan configs.py, pipeline_parallel.py @b5bcd76" },
  { name = "torch", title = "torch.distributed.pipelining", rounds = true, even_layers = false, zero_stages = { 0, 1, 2, 3 },
    tied_embeddings = false,
    schedules = {
      gpipe = { flag = "ScheduleGPipe" }, looped_bfs = { flag = "ScheduleLoopedBFS" },
      ["1f1b"] = { flag = "Schedule1F1B", microbatches_short_of_ranks = 0 },
      interleaved_1f1b = { flag = "ScheduleInterleaved1F1B" }, interleaved_zero_bubble = { flag = "ScheduleInterleavedZeroBubble" },
      zb_h1 = { flag = "ScheduleInterleavedZeroBubble, one stage a rank" },
      zb_h2 = torch_csv, zb_auto = torch_csv, v_half = torch_csv, v_min = torch_csv,
      zb_v = { flag = "ScheduleZBVZeroBubble" }, dualpipev = { flag = "ScheduleDualPipeV", since = "2.9", min_microbatches_per_rank = 2 },
    },
    names = { microbatches = "n_microbatches", pipeline = "size of the process group" },
    notes = "any program of V or loop placement from a CSV of compute actions; forwards and backwards of a pair one after the other",
    source = "pytorch/pytorch torch/distributed/pipelining/schedules.py; M ≥ stages for single-stage schedules: #144702" },
  { name = "deepspeed", title = "DeepSpeed", even_layers = false, zero_stages = { 0, 1 }, tied_embeddings = true,
    schedules = { ["1f1b"] = { flag = "PipelineModule" } },
    names = { microbatches = "gradient_accumulation_steps", pipeline = "num_stages" },
    notes = "refuses ZeRO-2 and ZeRO-3 with a pipeline (#823, #568); DualPipeV: open PR 8576",
    source = "deepspeedai/DeepSpeed runtime/pipe @edaa722" },
  { name = "nanotron", title = "nanotron", even_layers = false, zero_stages = { 0, 1 }, tied_embeddings = true,
    schedules = { gpipe = { flag = "pp_engine: afab" }, ["1f1b"] = { flag = "pp_engine: 1f1b", microbatches_short_of_ranks = 1 } },
    names = { microbatches = "batch_accumulation_per_replica", pipeline = "parallelism.pp" },
    notes = "needs M ≥ P − 1 (#347)", source = "huggingface/nanotron @2411b02" },
  { name = "mindspeed", title = "MindSpeed", even_layers = false, zero_stages = { 0, 1 }, tied_embeddings = false,
    schedules = {
      ["1f1b"] = { flag = "--pipeline-model-parallel-size" },
      interleaved_1f1b = { flag = "--num-layers-per-virtual-pipeline-stage", microbatches_multiple_of = "group" },
      dualpipev = { flag = "--schedules-method dualpipev", even_layers = true, min_microbatches_per_rank = 2 },
    },
    names = { microbatches = "global-batch-size / (micro-batch-size × data parallel)", pipeline = "--pipeline-model-parallel-size" },
    notes = "its DualPipeV keeps W joined in the cool-down; layers padded with no-op layers to a multiple of 2P",
    source = "Ascend/MindSpeed docs/zh/features/dualpipev.md @028de58" },
  { name = "primus", title = "Primus", even_layers = false, zero_stages = { 0, 1 }, tied_embeddings = false,
    schedules = {
      ["1f1b"] = { flag = "pipeline_model_parallel_size" },
      interleaved_1f1b = { flag = "virtual_pipeline_model_parallel_size", microbatches_multiple_of = "group" },
      zb_h1 = { flag = "zero_bubble, zb1p" }, zb_h2 = { flag = "zero_bubble, zb2p" },
      zb_v = { flag = "zero_bubble_v_schedule", even_layers = true },
      zb_auto = { flag = "zero_bubble, zero_bubble_max_pending_backward: {limit}" },
      v_half = { flag = "zero_bubble_v_schedule, zero_bubble_v_schedule_mem_setup: half", even_layers = true },
      v_min = { flag = "zero_bubble_v_schedule, zero_bubble_v_schedule_mem_setup: min", even_layers = true },
    },
    names = { microbatches = "global_batch_size / (micro_batch_size × data parallel)", pipeline = "pipeline_model_parallel_size" },
    notes = "zero-bubble schedules need gradient and parameter overlap off",
    source = "AMD-AGI/Primus primus/configs/modules/megatron/zero_bubble.yaml @fd1eeab" },
  { name = "colossalai", title = "Colossal-AI", even_layers = false, zero_stages = { 0, 1 }, tied_embeddings = true,
    schedules = {
      ["1f1b"] = { flag = "pp_style = 1f1b" }, interleaved_1f1b = { flag = "pp_style = interleaved" }, zb_v = { flag = "pp_style = zbv" },
    },
    names = { microbatches = "num_microbatches", pipeline = "pp_size" },
    source = "hpcaitech/ColossalAI booster/plugin/hybrid_parallel_plugin.py" },
  { name = "zero-bubble", title = "sail-sg zero-bubble fork of Megatron", even_layers = true, zero_stages = { 0, 1 }, tied_embeddings = false,
    schedules = {
      ["1f1b"] = { flag = "--pipeline-model-parallel-size" }, interleaved_1f1b = { flag = "--num-layers-per-virtual-pipeline-stage", microbatches_multiple_of = "group" },
      zb_h1 = { flag = "--enable-zero-bubble --zero-bubble-max-pending-backward P" },
      zb_h2 = { flag = "--enable-zero-bubble --zero-bubble-max-pending-backward 2P" },
      zb_v = { flag = "--zero-bubble-v-schedule", layers_multiple_of = 2 },
      zb_auto = { flag = "--enable-zero-bubble --zero-bubble-max-pending-backward {limit}" },
      v_half = { flag = "--zero-bubble-v-schedule --zero-bubble-v-schedule-mem-setup half", layers_multiple_of = 2 },
      v_min = { flag = "--zero-bubble-v-schedule --zero-bubble-v-schedule-mem-setup min", layers_multiple_of = 2 },
    },
    names = { microbatches = "global-batch-size / (micro-batch-size × data parallel)", pipeline = "--pipeline-model-parallel-size" },
    notes = "padding layers with --allow-padding-num-layers; no Transformer Engine",
    source = "sail-sg/zero-bubble-pipeline-parallelism arguments.py, zbpp_utils.py @39f2c18" },
}

local catalogue = lookup { entries = entries }

-- Names of the frameworks that run a schedule, in the order above.
function catalogue.running(schedule)
  local list = {}
  for _, entry in ipairs(entries) do
    if entry.schedules[schedule] then list[#list + 1] = entry.name end
  end
  return list
end

-- What all frameworks that run a schedule ask alike: the value of that rule, or nil.
function catalogue.shared(schedule, rule)
  local value
  for _, entry in ipairs(entries) do
    local rules = entry.schedules[schedule]
    if rules and value ~= nil and rules[rule] ~= value or rules and rules[rule] == nil then return nil end
    if rules then value = rules[rule] end
  end
  return value
end

-- Sorted names of the schedules that a framework runs.
function catalogue.schedules(entry)
  return lists.sorted_keys(entry.schedules)
end

return catalogue
