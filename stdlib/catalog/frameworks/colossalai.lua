-- SPDX-License-Identifier: Apache-2.0
-- colossalai.lua: Colossal-AI's HybridParallelPlugin, hpcaitech/ColossalAI colossalai/booster/plugin/hybrid_parallel_plugin.py. Arguments of
-- a Python constructor.

local common = require "pipeplan.catalog.frameworks.common_rules"

local source = "https://github.com/hpcaitech/ColossalAI, colossalai/booster/plugin/hybrid_parallel_plugin.py"

return {
  name = "colossalai", title = "Colossal-AI",
  versions = { { name = "main", what = "hpcaitech/ColossalAI, with pp_style zbv" } },
  schedules = {
    ["1f1b"] = { flag = "pp_style = 1f1b" }, interleaved_1f1b = { flag = "pp_style = interleaved" }, zb_v = { flag = "pp_style = zbv" },
  },
  names = { microbatches = "num_microbatches", pipeline = "pp_size" },
  has = { tensor = true, context = true, expert = true, expert_tensor = false, sequence_parallel = "enable_sequence_parallelism",
          tied_embeddings = true },
  layers = { how = "any", source = source },
  sharding = { with_pipeline = { 0, 1 }, source = source },
  overlap = { source = source },
  weight_gradients = require("pipeplan.catalog.frameworks.torch").weight_gradients,
  defaults = { source = source },
  communicators = { "tensor", "context", "data", "pipeline", "expert", "expert_data", source = source },
  host_floor = nil,
  keys = {
    { key = "tp_size", field = "parallelism.tensor", type = "integer", written = "always" },
    { key = "pp_size", field = "parallelism.pipeline", type = "integer", written = "always" },
    { key = "pp_style", field = "parallelism.schedule", type = "choice", values = { "1f1b", "interleaved", "zbv" }, default = "1f1b",
      written = "differs" },
    { key = "num_model_chunks", field = "parallelism.virtual", type = "integer", default = 1, written = "differs", note = "exactly 2 for zbv" },
    { key = "num_microbatches", field = "parallelism.microbatches", type = "integer", written = "always" },
    { key = "microbatch_size", field = "training.micro_batch_size", type = "integer", written = "never", note = "in place of num_microbatches" },
    { key = "zero_stage", field = "training.zero", type = "integer", default = 0, written = "differs", note = "at most 1 with a pipeline" },
  },
  gone = {},
  rules = {
    { id = "colossalai.zero", pipeline_parallel = { over = 1 }, zero = { over = 1 },
      message = "{framework}: ZeRO {zero} does not go together with a pipeline", source = source },
    common.query_groups("colossalai", "https://github.com/hpcaitech/ColossalAI, colossalai/shardformer/policies/llama.py, qwen2.py, mistral.py"),
    common.expert_tensor("colossalai", source .. ": no argument for it"),
  },
  source = source,
}
