-- SPDX-License-Identifier: Apache-2.0
-- primus.lua: AMD's Primus over Megatron-LM: what differs from it. Names are Megatron's with _ for -, in modules.pre_trainer.overrides.
-- AMD-AGI/Primus @fd1eeabb. Two runtimes of zero bubble, never both: sail's (patch_zero_bubble) and its own (patch_primus_pipeline).

local derive = require "pipeplan.catalog.frameworks.derive"
local megatron = require "pipeplan.catalog.frameworks.megatron"

local function at(where) return "https://github.com/AMD-AGI/Primus/tree/fd1eeabb, " .. where end

local function spell(key) return (key:gsub("^%-%-", ""):gsub("%-", "_")) end

local zero_bubble = "patch_zero_bubble: true, enable_zero_bubble: true, num_virtual_stages_per_pipeline_rank: 1, zero_bubble_max_pending_backward: "
local v_schedule = "patch_zero_bubble: true, zero_bubble_v_schedule: true, num_virtual_stages_per_pipeline_rank: 2, zero_bubble_v_schedule_mem_setup: "
local in_v = { how = "even", source = at "primus/configs/modules/megatron/zero_bubble.yaml" }

local algorithms = { ["1f1b"] = "1f1b", ["1f1b-interleaved"] = "interleaved_1f1b", ["zero-bubble"] = "zb_h1", ["zero-bubble-heuristic"] = "zb_auto",
                     ["zbv-formatted"] = "zb_v", ["v-half"] = "v_half", ["v-min"] = "v_min" }
local setups = { zb = "zb_v", half = "v_half", min = "v_min" }

-- The schedule that the keys of its two runtimes ask for, or nil: Megatron's.
local function chosen(key)
  if key "patch_primus_pipeline" then return algorithms[key "pp_algorithm" or ""] end
  if not key "patch_zero_bubble" then return nil end
  if key "zero_bubble_v_schedule" then return setups[key "zero_bubble_v_schedule_mem_setup" or ""] end
  return key "enable_zero_bubble" and "zb_auto" or nil
end

return derive(megatron, {
  name = "primus", title = "Primus",
  versions = { { name = "@fd1eeabb", what = "AMD-AGI/Primus, 22 August 2026" } },
  schedules = {
    ["1f1b"] = { flag = "pipeline_model_parallel_size" },
    interleaved_1f1b = { flag = "num_virtual_stages_per_pipeline_rank" },
    interleaved_1f1b_overlap = false,
    zb_h1 = { flag = zero_bubble .. "P" }, zb_h2 = { flag = zero_bubble .. "2P" }, zb_auto = { flag = zero_bubble .. "{limit}" },
    zb_v = { flag = v_schedule .. "zb", layers = in_v }, v_half = { flag = v_schedule .. "half", layers = in_v },
    v_min = { flag = v_schedule .. "min", layers = in_v },
  },
  names = { microbatches = "global_batch_size / (micro_batch_size × data parallel)", pipeline = "pipeline_model_parallel_size" },
  has = { tensor = true, context = true, expert = true, expert_tensor = true, sequence_parallel = "beside TP, when asked for",
          tied_embeddings = false },
  layers = { how = "layout", key = "pipeline_model_parallel_layout", first = "decoder_first_pipeline_num_layers",
             last = "decoder_last_pipeline_num_layers", source = at "validate_args_patches.py:73: a list of its own, decoder_pipeline_manual_split_list, too" },
  spell = spell,
  facts = { patch_zero_bubble = "patch_zero_bubble", patch_primus_pipeline = "patch_primus_pipeline" },
  chosen = chosen,
  keys = {
    { key = "patch_zero_bubble", type = "flag", present = true, default = false, written = "differs", note = "not beside patch_primus_pipeline" },
    { key = "enable_zero_bubble", type = "flag", present = true, default = false, written = "differs" },
    { key = "zero_bubble_v_schedule", type = "flag", present = true, default = false, written = "differs",
      note = "alone it is V-Half, for zero_bubble_v_schedule_mem_setup is half" },
    { key = "zero_bubble_v_schedule_mem_setup", field = "parallelism.schedule", type = "choice", values = { "zb", "half", "min" },
      default = "half", written = "differs" },
    { key = "zero_bubble_max_pending_backward", field = "plan.activation_limit_chunks", type = "integer", default = "auto", written = "differs" },
    { key = "patch_primus_pipeline", type = "flag", present = true, default = false, written = "never" },
    { key = "pp_algorithm", field = "parallelism.schedule", type = "choice", default = "1f1b-interleaved", written = "never",
      values = { "1f1b", "1f1b-interleaved", "zero-bubble", "zero-bubble-heuristic", "zbv-formatted", "v-half", "v-min" } },
    { key = "pp_max_mem", type = "number", written = "never" },
    { key = "decoder_pipeline_manual_split_list", field = "parallelism.layers_per_stage", type = "list", written = "never" },
    { key = "recompute_layer_ids", type = "list", written = "never" },
    { key = "no_persist_layer_norm", type = "flag", present = true, default = false, written = "differs", note = "with zero bubble" },
    { key = "create_attention_mask_in_dataloader", type = "flag", present = true, default = true, written = "differs",
      note = "false with zero bubble" },
    { key = "gradient_accumulation_fusion", type = "flag", present = true, default = true, written = "differs", note = "with zero bubble" },
    { key = "use_turbo_deepep", type = "flag", present = true, default = false, written = "never", note = "wants enable_primus_turbo and EP > 1" },
    { key = "enable_primus_turbo", type = "flag", present = true, default = false, written = "never" },
    { key = "turbo_deepep_num_cu", type = "integer", written = "never", note = "at most 32 from EP 16 on" },
  },
  rules = {
    { id = "primus.two_runtimes", by = "engine", patch_zero_bubble = true, patch_primus_pipeline = true,
      message = "{framework} takes patch_zero_bubble or patch_primus_pipeline", source = at "wgrad_adapter.py:22" },
    { id = "primus.overlap", by = "engine",
      when = function(f) return (f.patch_zero_bubble or f.patch_primus_pipeline) and (f.overlap_gradients or f.overlap_parameters) end,
      message = "{framework}: its schedules want overlap_grad_reduce and overlap_param_gather off", source = at "zerobubble/README.md" },
  },
  notes = "zero-bubble schedules need gradient and parameter overlap off",
  source = "https://github.com/AMD-AGI/Primus/blob/fd1eeab/primus/configs/modules/megatron/zero_bubble.yaml",
})
