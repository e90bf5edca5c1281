-- SPDX-License-Identifier: Apache-2.0
-- nanotron.lua: Hugging Face's nanotron, huggingface/nanotron @2411b02. A file of YAML.

local common = require "pipeplan.catalog.frameworks.common_rules"

local source = "https://github.com/huggingface/nanotron/tree/2411b02"

return {
  name = "nanotron", title = "nanotron",
  versions = { { name = "@2411b02", what = "huggingface/nanotron" } },
  schedules = { gpipe = { flag = "pp_engine: afab" }, ["1f1b"] = { flag = "pp_engine: 1f1b" } },
  names = { microbatches = "batch_accumulation_per_replica", pipeline = "parallelism.pp" },
  has = { tensor = true, context = true, expert = true, expert_tensor = false, sequence_parallel = "tp_mode REDUCE_SCATTER",
          tied_embeddings = true },
  layers = { how = "any", source = source .. ": by the cost of blocks" },
  sharding = { with_pipeline = { 0, 1 }, source = source },
  overlap = { source = source },
  loss = { how = "vocab_parallel", source = source .. ": parallel/tensor_parallel/functional.py, sharded_cross_entropy" },
  weight_gradients = require("pipeplan.catalog.frameworks.torch").weight_gradients,
  defaults = { source = source },
  communicators = { "tensor", "context", "data", "pipeline", "expert", "expert_data", source = source },
  host_floor = nil,
  keys = {
    { key = "parallelism.pp", field = "parallelism.pipeline", type = "integer", written = "always" },
    { key = "parallelism.tp", field = "parallelism.tensor", type = "integer", written = "always" },
    { key = "parallelism.context_parallel_size", field = "parallelism.context", type = "integer", default = 1, written = "differs",
      note = "of Qwen's class" },
    { key = "parallelism.dp", field = "parallelism.data", type = "integer", written = "always" },
    { key = "parallelism.pp_engine", field = "parallelism.schedule", type = "choice", values = { "1f1b", "afab" }, default = "afab",
      written = "always" },
    { key = "tokens.batch_accumulation_per_replica", field = "parallelism.microbatches", type = "integer", written = "always" },
    { key = "tokens.micro_batch_size", field = "training.micro_batch_size", type = "integer", written = "always" },
    { key = "tokens.sequence_length", field = "training.sequence_length", type = "integer", written = "always" },
    { key = "optimizer.zero_stage", field = "training.zero", type = "integer", written = "always" },
  },
  gone = {},
  rules = {
    { id = "nanotron.1f1b_microbatches", schedule = "1f1b", when = function(f) return f.microbatches < f.pipeline_parallel - 1 end,
      message = "{framework} needs M ≥ P − 1 = {nearest} for 1F1B, M is {microbatches}: {name_of_m} there",
      nearest = function(f) return { field = "microbatches", value = f.pipeline_parallel - 1 } end, source = "https://github.com/huggingface/nanotron/issues/347" },
    common.query_groups("nanotron", source .. ", models/llama.py:352, config/config.py:541"),
    common.expert_tensor("nanotron", source .. ", config/parallelism_config.py: no key for it"),
  },
  notes = "needs M ≥ P − 1 (https://github.com/huggingface/nanotron/issues/347)", source = source,
}
