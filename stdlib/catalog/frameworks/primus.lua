-- SPDX-License-Identifier: Apache-2.0
-- primus.lua: AMD's Primus over Megatron-LM: what differs from it. A key stands in modules.pre_trainer.overrides and is called as Megatron's
-- parser calls its value (primus/backends/megatron/argument_builder.py), which is the flag with _ for - but for those of `renamed`. AMD-AGI/Primus
-- @fd1eeabb, over NVIDIA/Megatron-LM @d3528a21, core 0.16. Two runtimes of zero bubble, never both: sail's (patch_zero_bubble) and its own
-- (patch_primus_pipeline). Its presets set keys beside Megatron's defaults: `recipes` are those of the barest pair.

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
  if not key "enable_zero_bubble" then return nil end
  if key "zero_bubble_v_schedule" then return setups[key "zero_bubble_v_schedule_mem_setup" or ""] end
  local pending, P = tonumber(key "zero_bubble_max_pending_backward"), key "--pipeline-model-parallel-size"
  return pending == P and "zb_h1" or pending == 2 * P and "zb_h2" or "zb_auto"
end

return derive(megatron, {
  name = "primus", title = "Primus",
  gpus_elsewhere = true,   -- runner/primus-cli-*.sh take them from the command line or Slurm, and no key of the file says them
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
  strangers = { severity = "warning", choices = true,
                source = at "primus/core/config/schema_check.py; primus/backends/megatron/argument_builder.py: run" },
  chosen = chosen,
  -- it switches sequence_parallel off at TP 1 (sequence_parallel_tp1_patches.py); two chunks of a V are not interleaved by Megatron's schedule
  without = { "megatron.sequence_alone", "megatron.interleaved_group" },
  notes = "zero-bubble schedules need gradient and parameter overlap off",
  source = "https://github.com/AMD-AGI/Primus/blob/fd1eeab/primus/configs/modules/megatron/zero_bubble.yaml",
}, function() return require "pipeplan.catalog.frameworks.primus_keys" end)
