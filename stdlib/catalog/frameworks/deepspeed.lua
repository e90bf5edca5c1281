-- SPDX-License-Identifier: Apache-2.0
-- deepspeed.lua: DeepSpeed and its pipeline. C = deepspeed/runtime/config.py, I = deepspeed/__init__.py, EN = deepspeed/runtime/engine.py, E =
-- deepspeed/runtime/pipe/engine.py, M = deepspeed/runtime/pipe/module.py, U = deepspeed/runtime/utils.py, G = deepspeed/utils/groups.py of
-- PyPI deepspeed 0.19.8; "run": seen with it on a CPU (tests/torch/deepspeed_plans_test.py). Its configuration is HJSON. P, the split of layers,
-- TP beside a pipeline and experts are arguments in Python: keys with a capital letter. What begins with planned. DeepSpeed has no word for:
-- `plan --format deepspeed` writes it beside them, where the launch can be held against it.

local lists = require "pipeplan.base.lists"
local megatron = require "pipeplan.catalog.frameworks.megatron"
local parts = require "pipeplan.catalog.frameworks.parts"

local function at(where) return "https://github.com/deepspeedai/DeepSpeed/tree/v0.19.8, deepspeed/" .. where end

return parts.split({
  name = "deepspeed", title = "DeepSpeed",
  versions = { { name = "0.19.8", what = "PyPI deepspeed, October 2026: what these facts are of" } },
  schedules = { ["1f1b"] = { flag = "PipelineModule" } },
  names = { microbatches = "gradient_accumulation_steps", pipeline = "num_stages" },

  has = { tensor = true, context = true, expert = true, expert_tensor = true, sequence_parallel = false, tied_embeddings = true },
  -- partition_method type:REGEX of the decoder layer's class: as even as can be, the first stages one more (U: partition_balanced)
  layers = { how = "remainder_first", key = "partition_method", source = at "runtime/pipe/module.py:389-421; runtime/utils.py:606-665, partition_uniform and partition_balanced: run" },
  sharding = { alone = { 0, 1, 2, 3 }, with_pipeline = { 0, 1 }, source = at "runtime/pipe/engine.py:76; https://github.com/deepspeedai/DeepSpeed/issues/823 and issues/568" },
  overlap = { gradients = "zero_optimization.overlap_comm, without a pipeline", source = at "runtime/engine.py:2664" },
  weight_gradients = require("pipeplan.catalog.frameworks.torch").weight_gradients,
  defaults = { expert_tensor = 1, zero = 0, moments = "fp32", gradients = "fp32", precision = "fp32", sequence_parallel = false,
               source = at "runtime/config.py; runtime/engine.py:1797, get_data_types; moe/layer.py: enable_expert_tensor_parallelism" },
  communicators = { "tensor", "context", "data", "pipeline", "expert", "expert_data", source = at "utils/groups.py; runtime/pipe/p2p.py" },
  host_floor = lists.with(megatron.host_floor, { gap = 2.1e-3,
    source = "as Megatron; gap: https://github.com/bigscience-workshop/bigscience train/tr11-176B-ml/chronicles-prequel.md, nine steps of 21 February 2022: 12 layers take 90 ms a microbatch beside their work" }),

  program = { "model.layers", "layers_per_stage", "training.sequence_length" },
  plan_rules = {
    { id = "deepspeed.zero", pipeline_parallel = { over = 1 }, zero = { over = 1 },
      message = "{framework}: ZeRO {zero} does not go together with a pipeline", source = at "runtime/pipe/engine.py:76: run" },
    { id = "deepspeed.context", pipeline_parallel = { over = 1 }, context_parallel = { over = 1 },
      message = "{framework} has no place for sequence parallelism in a pipeline: a topology has pipe, data and model, and sequence_parallel_size "
                .. "{context_parallel} is not read beside it", nearest = function() return { field = "context_parallel", value = 1 } end,
      source = at "__init__.py:590; runtime/pipe/topology.py:244: run" },
    { id = "deepspeed.expert_groups", expert_parallel = { over = 1 }, data_parallel = { not_multiple_of = "expert_parallel" },
      message = "{framework} makes expert groups of data-parallel ranks: EP {expert_parallel} does not divide DP {data_parallel}",
      source = at "utils/groups.py:634, _create_expert_data_and_model_parallel: run" },
  },
  notes = "refuses ZeRO-2 and ZeRO-3 with a pipeline (https://github.com/deepspeedai/DeepSpeed/issues/823, issues/568); DualPipeVModule of 0.19.8 runs another schedule than the one planned here: its backward keeps the weight gradients (runtime/pipe/schedule.py:327, https://github.com/deepspeedai/DeepSpeed/pull/8576)",
  source = at "runtime/config.py, runtime/engine.py, runtime/pipe",
}, function(entry) return require "pipeplan.catalog.frameworks.deepspeed_config"(entry.plan_rules) end)
