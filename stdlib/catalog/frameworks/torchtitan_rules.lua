-- SPDX-License-Identifier: Apache-2.0
-- torchtitan_rules.lua: what torchtitan 0.3.0 refuses, or runs otherwise than its command line seems to ask. C = torchtitan/config/configs.py,
-- T = torchtitan/trainer.py, PP = torchtitan/distributed/pipeline_parallel.py, D = torchtitan/distributed/parallel_dims.py; "run": seen with
-- the PyPI package on a CPU (tests/torch/torchtitan_plans_test.py).

local integers = require "pipeplan.base.integers"
local torch = require "pipeplan.catalog.frameworks.torch"

local function at(where) return "https://github.com/pytorch/torchtitan/tree/v0.3.0, " .. where end

-- Is the model run without the compiler?
local function is_plain(f) return not (f.compiled and f.components:find("model", 1, true)) end

local list = {
  { id = "torchtitan.world", by = "engine",
    when = function(f) return f.gpus % integers.product(f.tensor_parallel, f.context_parallel, f.pipeline_parallel) ~= 0 end,
    message = "{framework}: {gpus} GPUs do not divide by TP {tensor_parallel} × CP {context_parallel} × P {pipeline_parallel}",
    source = at "parallel_dims.py:186" },
  { id = "torchtitan.degrees", by = "engine",
    when = function(f) return f.replicas * f.shards ~= f.data_parallel end,
    message = "{framework}: {replicas} replicas × {shards} shards are not the DP {data_parallel} that {gpus} GPUs leave",
    source = at "parallel_dims.py:186" },
  "torchtitan.expert_tensor",
  "torchtitan.query_groups",
  "torchtitan.expert_shards",
  "torchtitan.optimizer_alone",
  "torchtitan.gradients_alone",
  "torchtitan.sequence",

  { id = "torchtitan.batch", by = "engine",
    when = function(f) return f.global_batch_size % (f.local_batch * f.data_parallel) ~= 0 end,
    message = "{framework}: a batch of {global_batch_size} does not divide by local batch {local_batch} × DP {data_parallel}",
    source = at "trainer.py:422" },
  { id = "torchtitan.microbatch", by = "engine", pipeline_parallel = { over = 1 },
    when = function(f) return f.local_batch % f.micro_batch_size ~= 0 end,
    message = "{framework}: local batch {local_batch} does not divide by microbatch size {micro_batch_size}", source = at "trainer.py:132: run" },
  { id = "torchtitan.accumulation", by = "engine", severity = "warning", pipeline_parallel = { over = 1 },
    when = function(f) return f.accumulation > 1 end,
    message = "{framework} fills and drains the pipeline {accumulation} times a step, with {microbatches} microbatches each: a local batch of "
              .. "the whole step does it once", source = at "trainer.py:422" },

  { id = "torchtitan.cuda_graphs", by = "engine", pipeline_parallel = { over = 1 }, disable_cuda_graphs = false,
    message = "{framework}: CUDA graphs are on unless --training.disable_cuda_graphs is said, and refused with a pipeline",
    source = at "trainer.py:185: run" },
  { id = "torchtitan.cuda_graphs_experts", by = "engine", severity = "warning", pipeline_parallel = 1, expert_parallel = { over = 1 },
    experts = { over = 0 },
    disable_cuda_graphs = false,
    message = "{framework}: with EP {expert_parallel} CUDA graphs want a dispatcher that never waits for the host (HybridEP, "
              .. "MinimalAsyncEP) in the configuration function, or --training.disable_cuda_graphs", source = at "trainer.py:190" },
  { id = "torchtitan.typechecking", by = "engine", pipeline_parallel = { over = 1 }, spmd_typechecking = true,
    message = "{framework}: --debug.spmd_typechecking goes with no pipeline", source = at "trainer.py:145" },
  { id = "torchtitan.memory_budget", by = "engine", checkpointing = "memory-budget", when = is_plain,
    message = "{framework}: activation_checkpoint:memory-budget wants --compile.enable and model in --compile.components", source = at "trainer.py:174: run" },
  { id = "torchtitan.async_tensor", by = "engine", async_tensor = true, when = is_plain,
    message = "{framework}: --compile.enable_async_tensor_parallel wants --compile.enable and model in --compile.components", source = at "configs.py: CompileConfig: run" },
  { id = "torchtitan.tied", by = "engine", pipeline_parallel = { over = 1 }, tied_embeddings = true,
    message = "{framework} ties no embedding and head over stages", source = at "models: enable_weight_tying" },

  { id = "torchtitan.schedule", by = "engine", pipeline_parallel = { over = 1 }, when = function(f) return f.schedule_problem end,
    message = "{framework}: {schedule_problem}", source = "https://github.com/pytorch/pytorch/tree/v2.13.0/torch/distributed/pipelining, schedules.py:3620, get_schedule_class: run" },
  { id = "torchtitan.stages", by = "engine", pipeline_parallel = { over = 1 },
    when = function(f) return not f.schedule_problem and f.split_problem end,
    message = "{framework}: {split_problem}", source = at "pipeline_parallel.py:223-257, 403-427, 560-572: run" },
  { id = "torchtitan.parts", by = "engine", pipeline_parallel = { over = 1 }, when = function(f) return f.parts_problem end,
    message = "{framework} builds its stages from the names alone: {parts_problem}", source = at "pipeline_parallel.py: _split_module" },
  { id = "torchtitan.program", by = "engine", pipeline_parallel = { over = 1 },
    when = function(f) return not f.schedule_problem and not f.split_problem and f.program_problem end,
    message = "{framework}: {program_problem}", source = at "pipeline_parallel.py:560; schedules.py: _load_csv: run" },
}

-- What the schedule classes of PyTorch ask holds here too.
return table.move(torch.rules, 1, #torch.rules, #list + 1, list)
