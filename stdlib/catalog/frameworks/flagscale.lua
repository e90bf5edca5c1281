-- SPDX-License-Identifier: Apache-2.0
-- flagscale.lua: FlagScale, patches over Megatron-LM: what differs from it. Q = flagscale/backends/Megatron-LM/megatron/training/
-- arguments.py.patch, R = flagscale/runner/runner_train.py, U = flagscale/runner/utils.py, H = flagscale/train/arguments.py, of
-- flagos-ai/FlagScale @16a2dd5b; Megatron core 0.15.0rc5 @8479eb35 under it. A key stands in system, model or data, in any of them.

local derive = require "pipeplan.catalog.frameworks.derive"
local megatron = require "pipeplan.catalog.frameworks.megatron"

local function at(where) return "https://github.com/flagos-ai/FlagScale/tree/16a2dd5b, " .. where end

-- --tensor-model-parallel-size → tensor_model_parallel_size (U: flatten_dict_to_args)
local function spell(key) return (key:gsub("^%-%-", ""):gsub("%-", "_")) end

local two_directions = "https://github.com/flagos-ai/FlagScale/pull/1157, its description"

return derive(megatron, {
  name = "flagscale", title = "FlagScale",
  versions = {
    { name = "@16a2dd5b", what = "flagos-ai/FlagScale, 27 November 2025: lines are of it" },
    { name = "Megatron-LM-FL @175ae90e", what = "flagos-ai, core 0.17.1, 24 July 2026: where the backend lives since" },
  },
  schedules = {
    ["1f1b"] = { flag = "system.pipeline_model_parallel_size" },
    interleaved_1f1b = { flag = "system.num_layers_per_virtual_pipeline_stage" },
    interleaved_1f1b_overlap = false,
    dualpipev = { flag = "system.use_dualpipev", layers = { how = "ends", multiple = 2, first = "decoder_first_pipeline_num_layers",
                                                            last = "decoder_last_pipeline_num_layers", source = at "arguments.py.patch:209-264" } },
    dualpipe = { flag = "system.use_dualpipe", state = "open pull request, unverified",
                 layers = { how = "even", source = two_directions } },
  },
  names = { microbatches = "model.global_batch_size / (micro_batch_size × data parallel)", pipeline = "system.pipeline_model_parallel_size" },
  has = { tensor = true, context = true, expert = true, expert_tensor = true, sequence_parallel = "beside TP, when asked for",
          tied_embeddings = true },   -- as Megatron; H:130-148 only has rules for meshes that differ
  layers = { how = "layout", key = "pipeline_model_parallel_layout", first = "decoder_first_pipeline_num_layers",
             last = "decoder_last_pipeline_num_layers", source = at "its Megatron-LM, core 0.15.0rc5" },
  spell = spell,
  strangers = { severity = "error", words = true, source = at "flagscale/runner/utils.py: flatten_dict_to_args; Megatron's argparse: run" },
  unverified = "its package runs nothing without a Megatron-LM of its own, patched: rules are of its source",
  chosen = function(key) return key "use_dualpipe" or key "use_dualpipev" end,
  plan_rules = {
    { id = "flagscale.dualpipev_experts", schedule = "dualpipev", expert_parallel = { at_most = 1 },
      message = "{framework} runs DualPipeV only with expert parallelism: EP is {expert_parallel}", source = at "arguments.py.patch:209-264" },
    { id = "flagscale.dualpipev_mtp", schedule = "dualpipev", mtp_layers = { over = 0 },
      message = "{framework} runs DualPipeV only without MTP layers: the model has {mtp_layers}", source = at "arguments.py.patch:209-264" },
    { id = "flagscale.dualpipev_tied", schedule = "dualpipev", tied_embeddings = true,
      message = "{framework} runs DualPipeV only with untie_embeddings_and_output_weights", source = at "arguments.py.patch:209-264" },
    { id = "flagscale.dualpipe_tied", schedule = "dualpipe", tied_embeddings = true,
      message = "{framework} runs DualPipe only with untie_embeddings_and_output_weights (unverified)", source = two_directions },
  },
  notes = "DualPipeV with moe_fb_overlap needs untied embeddings, EP > 1, no MTP, no gradient or parameter overlap",
  source = "https://github.com/flagos-ai/FlagScale/tree/16a2dd5, arguments.py.patch, examples; https://github.com/flagos-ai/FlagScale/pull/1157",
}, function() return require "pipeplan.catalog.frameworks.flagscale_keys" end)
