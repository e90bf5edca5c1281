-- SPDX-License-Identifier: Apache-2.0
-- torchtitan.lua: torchtitan. C = torchtitan/config/configs.py, T = torchtitan/trainer.py, PP = torchtitan/distributed/pipeline_parallel.py,
-- D = torchtitan/distributed/parallel_dims.py of the PyPI package 0.3.0, S = torch/distributed/pipelining/schedules.py of PyTorch 2.13;
-- "run": seen with both on a CPU.

local common = require "pipeplan.catalog.frameworks.common_rules"
local integers = require "pipeplan.base.integers"
local parts = require "pipeplan.catalog.frameworks.parts"
local torch = require "pipeplan.catalog.frameworks.torch"

local function at(where) return "https://github.com/pytorch/torchtitan/tree/v0.3.0, " .. where end

-- PyTorch's runtime executes any program of loop placement, or of a V of two stages a rank. The name beside the CSV decides the placement
-- (PP:560).
local function csv(name)
  return { flag = "parallelism.pipeline_parallel_schedule_csv, parallelism.pipeline_parallel_schedule " .. name, csv = true, name = name,
           since = "PyTorch 2.14" }
end

-- Its trainer hands microbatches on (trainer.py:856), which PyTorch takes since 2.14 (https://github.com/pytorch/pytorch/pull/188500).
local function named(name) return { flag = "parallelism.pipeline_parallel_schedule " .. name, name = name, since = "PyTorch 2.14" } end

local plan_rules = {
  common.expert_tensor("torchtitan", at "parallel_dims.py:186; expert_tensor_parallel_degree is gone"),
  common.query_groups("torchtitan", at "models/common/attention.py: the product of keys is viewed as heads, which DTensor refuses where "
                                    .. "TP does not divide them: \"Cannot unflatten unevenly sharded tensor\": run with PyTorch 2.13"),
  { id = "torchtitan.expert_shards", expert_parallel = { over = 1 },
    when = function(f)
      local shards = f.zero == 0 and 1 or f.data_parallel // f.replicas
      return integers.product(shards, f.context_parallel, f.tensor_parallel) % f.expert_parallel ~= 0
    end,
    message = "{framework} takes the ranks of EP {expert_parallel} from those that shard: DP {data_parallel} ÷ {replicas} replicas × CP "
              .. "{context_parallel} × TP {tensor_parallel}, without DP where nothing is sharded, is no multiple of it",
    source = at "parallel_dims.py: build_mesh" },
  { id = "torchtitan.optimizer_alone", by = "plan", pipeline_parallel = 1, zero = 1,
    when = function(f) return f.data_parallel * f.context_parallel > 1 end,
    message = "{framework} shards no optimizer alone without a pipeline: gradients are sharded with it",
    source = "https://github.com/pytorch/pytorch/tree/v2.13.0/torch/distributed/fsdp/_fully_shard, fully_shard" },
  { id = "torchtitan.gradients_alone", by = "plan", pipeline_parallel = { over = 1 }, zero = 2,
    message = "{framework} reduces gradients behind the last microbatch of a pipeline: until then they are whole",
    source = "https://github.com/pytorch/pytorch/tree/v2.13.0/torch/distributed/pipelining, stage.py: set_requires_gradient_sync" },
  { id = "torchtitan.sequence",
    when = function(f)
      local tensor = f.sequence_parallel and f.tensor_parallel or 1
      return f.sequence_length % (tensor * (f.context_parallel > 1 and 2 * f.context_parallel or 1)) ~= 0
    end,
    message = "{framework}: sequences of {sequence_length} tokens do not divide by TP {tensor_parallel}, where sequences are split over it, × 2 CP "
              .. "of CP {context_parallel}", source = at "trainer.py:307-315" },
}
for _, rule in ipairs(parts.of_plans(torch.rules)) do table.insert(plan_rules, rule) end   -- what PyTorch's schedule classes ask holds here too

return parts.split({
  name = "torchtitan", title = "torchtitan",
  versions = {
    { name = "0.3.0", what = "PyPI torchtitan, September 2026: what these facts are of; with a pipeline beside PyTorch 2.14: its trainer hands microbatches on (trainer.py:856), which 2.13 takes for arguments of the model (https://github.com/pytorch/pytorch/pull/188500)" },
    { name = "main @b5bcd76c", what = "21 August 2026: other names for the batch, M is parallelism.num_pp_microbatches" },
  },
  schedules = {
    gpipe = named "GPipe", looped_bfs = named "LoopedBFS", ["1f1b"] = named "1F1B",
    interleaved_1f1b = named "Interleaved1F1B", interleaved_zero_bubble = named "InterleavedZeroBubble",
    zb_h1 = csv "PipelineScheduleSingle", zb_h2 = csv "PipelineScheduleSingle", zb_auto = csv "PipelineScheduleSingle",
    v_half = csv "ZBVZeroBubble", v_min = csv "ZBVZeroBubble",
    zb_v = named "ZBVZeroBubble", dualpipev = named "DualPipeV",
  },
  names = { microbatches = "training.local_batch_size / parallelism.pipeline_parallel_microbatch_size",
            pipeline = "parallelism.pipeline_parallel_degree" },
  rounds = true,

  has = { tensor = true, context = true, expert = true, expert_tensor = false, sequence_parallel = "on", tied_embeddings = false },
  layers = { how = "names", key = "parallelism.module_fqns_per_model_part",
             source = at "pipeline_parallel.py:403-427: evenly, the first and last stage fewer; module_fqns_per_model_part says any other split" },
  -- gradients are reduced behind each microbatch, in a pipeline behind the last
  sharding = { alone = { 0, 2, 3 }, with_pipeline = { 0, 1, 3 }, master = true,
               source = "https://github.com/pytorch/torchtitan/issues/562; torch/distributed/pipelining/stage.py: backward_maybe_with_nosync; docs/fsdp.md, MixedPrecisionPolicy: parameters are stored in fp32 and cast at the gather" },
  recompute = { per_weight = true, source = torch.recompute.source },
  overlap = { data = 0.7, gradients = "FSDP's own", parameters = "FSDP's own; with a pipeline parameters stay unsharded between microbatches",
              source = at "configs.py: parallelism.fsdp_reshard_after_forward" },
  weight_gradients = torch.weight_gradients,
  -- compiled with the model (compile.components)
  loss = { how = "torch_compiled", eager = "torch", source = at "torchtitan/components/loss.py" },
  defaults = { expert_tensor = 1, zero = 3, moments = "fp32", gradients = "fp32", precision = "bf16", sequence_parallel = true,
               source = at "parallel_dims.py:186: EP borrows from shards, CP and TP" },
  communicators = { "tensor", "context", "data", "pipeline", "expert", "expert_data", source = at "parallel_dims.py" },
  host_floor = torch.host_floor,
  plan_rules = plan_rules,
  notes = "composes fully sharded data parallelism with a pipeline (https://github.com/pytorch/torchtitan/issues/562); M ≥ stages, or 1F1B hangs in older versions (issues/775)",
  source = at "config/configs.py, config/manager.py, trainer.py, distributed/pipeline_parallel.py",
}, function(entry) return require "pipeplan.catalog.frameworks.torchtitan_keys"(entry.plan_rules) end)
