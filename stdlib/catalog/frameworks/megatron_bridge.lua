-- SPDX-License-Identifier: Apache-2.0
-- megatron_bridge.lua: NVIDIA's recipes over Megatron-Core: what differs from it. G = src/megatron/bridge/training/config.py,
-- O = src/megatron/bridge/training/comm_overlap.py, X = src/megatron/bridge/training/mixed_precision.py, of
-- NVIDIA-NeMo/Megatron-Bridge @067f987d. A recipe is a Python function; what can be read is run_config.yaml, which it writes, and overrides of
-- the bare recipe, whose values are `recipes`. Run: megatron-bridge 0.6.2 beside megatron-core 0.19.2 (tests/torch/bridge_verdict.py).

local derive = require "pipeplan.catalog.frameworks.derive"
local lists = require "pipeplan.base.lists"
local megatron = require "pipeplan.catalog.frameworks.megatron"

local function at(where) return "https://github.com/NVIDIA-NeMo/Megatron-Bridge/tree/067f987d, " .. where end

-- --tensor-model-parallel-size → model.tensor_model_parallel_size: most keys are fields of the model's provider.
local function spell(key) return "model." .. key:gsub("^%-%-", ""):gsub("%-", "_") end

return derive(megatron, {
  name = "megatron-bridge", title = "Megatron-Bridge",
  versions = { { name = "0.6.2", what = "PyPI megatron-bridge; NVIDIA-NeMo/Megatron-Bridge @067f987d, 22 August 2026: lines are of it" } },
  schedules = {
    ["1f1b"] = { flag = "pipeline_model_parallel_size" },
    interleaved_1f1b = { flag = "virtual_pipeline_model_parallel_size" },
    interleaved_1f1b_overlap = { flag = "virtual_pipeline_model_parallel_size, comm_overlap.overlap_moe_expert_parallel_comm",
                                 alone = true, since = "PyTorch 2.6" },
  },
  names = { microbatches = "global_batch_size / (micro_batch_size × data parallel)", pipeline = "pipeline_model_parallel_size" },
  layers = { how = "layout", key = "model.pipeline_model_parallel_layout", first = "model.num_layers_in_first_pipeline_stage",
             last = "model.num_layers_in_last_pipeline_stage", source = "Megatron-Core, when layers are built: " .. megatron.layers.source },
  overlap = {
    pipeline = "on with V > 1, off without, unless comm_overlap.overlap_p2p_comm says", gradients = "ddp.overlap_grad_reduce",
    parameters = "ddp.overlap_param_gather", expert = "comm_overlap.overlap_moe_expert_parallel_comm, with V > 1 or without a pipeline",
    tensor = "comm_overlap.tp_comm_overlap", data = 0.7, source = at "comm_overlap.py:453-517",
  },
  -- with EP over 1, else as many as TP: _set_moe_expert_tensor_parallel_default; run
  defaults = lists.with(megatron.defaults, {
    expert_tensor = 1, source = at "src/megatron/bridge/models/transformer_config.py:79-88; " .. megatron.defaults.source }),
  loss = { how = "vocab_parallel_compiled",
           source = at "src/megatron/bridge/models/gpt_provider.py: cross_entropy_loss_fusion; cross_entropy_fusion_impl is Megatron-Core's, native" },
  spell = spell,
  strangers = { severity = "warning", source = at "src/megatron/bridge/training/utils/omegaconf_utils.py: _apply_overrides"
                  .. "; https://github.com/NVIDIA/NeMo, nemo/collections/nlp/models/language_modeling/megatron_base_model.py: cfg.get" },
  without = { "megatron.gather_gradients", "megatron.gather_optimizer" },   -- of Megatron-LM's arguments.py; Bridge takes both: run
  notes = "num_layers is checked only when layers are built (Megatron-Core), not when a recipe is made",
  source = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/tree/067f987, performance guide",
}, function() return require "pipeplan.catalog.frameworks.megatron_bridge_keys" end)
