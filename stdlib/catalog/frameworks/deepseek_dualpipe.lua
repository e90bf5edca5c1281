-- SPDX-License-Identifier: Apache-2.0
-- deepseek_dualpipe.lua: DeepSeek's package of two schedules, deepseek-ai/DualPipe @3da1bbe. Arguments of Python constructors.

local source = "https://github.com/deepseek-ai/DualPipe, dualpipe.py, dualpipev.py"

return {
  name = "deepseek-dualpipe", title = "DeepSeek DualPipe package",
  versions = { { name = "@3da1bbe", what = "deepseek-ai/DualPipe" } },
  schedules = { dualpipe = { flag = "dualpipe.DualPipe" }, dualpipev = { flag = "dualpipe.DualPipeV" } },
  names = { microbatches = "num_chunks", pipeline = "size of the process group" },
  has = { tensor = true, context = true, expert = true, expert_tensor = true, sequence_parallel = "the caller's", tied_embeddings = true },
  layers = { how = "any", source = source .. ": the caller builds each stage" },
  sharding = { with_pipeline = { 0, 1 }, source = source },
  overlap = { expert = "of a pair, by the caller's overlapped_forward_backward", source = source },
  weight_gradients = require("pipeplan.catalog.frameworks.torch").weight_gradients,
  defaults = { source = source .. ": a schedule, not a trainer" },
  communicators = { "tensor", "context", "data", "pipeline", "expert", "expert_data", source = source },
  host_floor = nil,
  keys = {
    { key = "num_chunks", field = "parallelism.microbatches", type = "integer", written = "always" },
  },
  gone = {},
  rules = {
    { id = "deepseek.microbatches", by = "engine", schedule = { "dualpipe", "dualpipev" },
      when = function(f) return f.microbatches < 2 * f.pipeline_parallel end,
      message = "{framework}: {schedule} needs M ≥ 2 P: M is {microbatches}, P {pipeline_parallel}", source = source .. ": step" },
    { id = "deepseek.even", by = "engine", schedule = "dualpipe",
      when = function(f) return f.microbatches % 2 == 1 or f.pipeline_parallel % 2 == 1 end,
      message = "{framework}: DualPipe needs even P and even M: M is {microbatches}, P {pipeline_parallel}", source = source .. ": __init__, step" },
  },
  notes = "a schedule, not a trainer: model, data parallelism and optimizer are the caller's",
  source = source,
}
