-- SPDX-License-Identifier: Apache-2.0
-- mindspeed.lua: Ascend MindSpeed, patches over Megatron-LM: what differs from it.

local derive = require "pipeplan.catalog.frameworks.derive"
local megatron = require "pipeplan.catalog.frameworks.megatron"

local documented = "https://github.com/Ascend/MindSpeed/blob/028de58/docs/zh/features/dualpipev.md"

return derive(megatron, {
  name = "mindspeed", title = "MindSpeed",
  versions = { { name = "@028de58", what = "Ascend/MindSpeed, its documentation" } },
  schedules = {
    ["1f1b"] = { flag = "--pipeline-model-parallel-size" },
    interleaved_1f1b = { flag = "--num-layers-per-virtual-pipeline-stage" },
    interleaved_1f1b_overlap = false,
    dualpipev = { flag = "--schedules-method dualpipev", layers = { how = "even", source = documented } },
  },
  has = { tensor = true, context = true, expert = true, expert_tensor = true, sequence_parallel = "beside TP, when asked for",
          tied_embeddings = false },
  defaults = { expert_tensor = "tensor", zero = 0, moments = "fp32", gradients = "fp32", precision = "fp32", sequence_parallel = false,
               source = megatron.defaults.source },
  notes = "its DualPipeV keeps W joined in the cool-down; layers padded with no-op layers to a multiple of 2P",
  source = documented,
}, function() return {
  keys = {
    { key = "--schedules-method", field = "parallelism.schedule", type = "choice", values = { "dualpipev" }, written = "differs" },
    { key = "--moe-fb-overlap", type = "flag", present = true, default = false, written = "differs" },
    { key = "--dualpipev-dw-detach", type = "flag", present = true, default = false, written = "never" },
    { key = "--num-layer-list", field = "parallelism.layers_per_stage", type = "list", written = "never", note = "without virtual stages" },
    { key = "--noop-layers", type = "list", written = "never", note = "not beside --num-layer-list" },
  },
} end)
