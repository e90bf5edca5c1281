-- SPDX-License-Identifier: Apache-2.0
-- predict.lua: a published run → a spec, and what `plan` says of it: seconds of a step. Used by the sources of the oracle table. What no
-- spec can say of a run is an excuse, printed with its row.

local pipeplan = require "pipeplan"
local accelerators = require "pipeplan.catalog.accelerators"
local models = require "oracles.models"

local predict = {}

-- What ran is planned as it ran, where it would fit one GPU too.
local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-28" })

-- As Megatron-LM trained GPT in 2021, and Megatron-DeepSpeed after it: all-reduces, no fused attention, no sharded optimizer; messages
-- between stages scattered over TP (2104.04473 §4.1; DeepSpeed runtime/pipe/engine.py: is_pipe_partitioned, on by default).
predict.megatron_2021 = { sequence = false, scatter_messages = true, unfused = { "attention" }, dropout = true, zero = 0 }

-- Megatron's overlap of neighbouring microbatches needs virtual stages where there is a pipeline.
local function schedule_of(run)
  if run.pipeline == 1 then return "none" end
  if run.schedule then return run.schedule end
  if run.virtual == 1 then return "1f1b" end
  return run.overlapped and "interleaved_1f1b_overlap" or "interleaved_1f1b"
end

local function recompute_of(run)
  local list = {}
  for name in pairs(run.recompute or {}) do list[#list + 1] = name end
  table.sort(list)
  if list[1] == "full" then return "full" end
  return #list > 0 and list or "none"
end

-- Of which Megatron-Bridge's recipes set account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split (src/megatron/
-- bridge/recipes @067f987: llama/llama3.py, qwen/qwen3_moe.py).
local accounted = { [models["llama3.1-405b"]] = true, [models["qwen3-235b"]] = true }

-- More stages than layers: the ends, which hold embedding and head, go without.
local function layers_of(model, run)
  local stages = run.pipeline * run.virtual
  if accounted[model] then return nil end
  if run.layers_per_stage or run.pipeline == 1 or model.layers >= stages then return run.layers_per_stage end
  local counts, before = {}, (stages - model.layers) // 2
  for s = 1, stages do counts[s] = s > before and s <= before + model.layers and 1 or 0 end
  return counts
end

-- run = { accelerator, gpus, precision, batch, micro_batch, sequence, tensor, context, expert, pipeline, virtual, schedule?, overlapped?,
-- layers_per_stage?, recompute?, kernel?, cuda_graphs?, tensor_overlap?, network_per_gpu?, fabric?, file?: of the model's configuration,
-- training?: more of a spec's training, and its parallelism.sequence and scatter_messages } → a spec with memory enough
function predict.spec(model, run)
  local more = run.training or {}
  local training = {
    tokens = "1T", sequence_length = run.sequence, micro_batch_size = run.micro_batch, global_batch_size = run.batch,
    precision = run.precision, zero = 1, recompute = recompute_of(run), cuda_graphs = run.cuda_graphs, tensor_overlap = run.tensor_overlap,
  }
  for key, value in pairs(more) do
    if key ~= "sequence" and key ~= "scatter_messages" then training[key] = value end
  end
  if run.pipeline == 1 and model.experts then training.alltoall_overlap = run.overlapped or false end
  return {
    cluster = { gpus = run.gpus, accelerator = run.accelerator, memory_per_gpu = "100TiB",
                alltoall_kernel = model.experts and (run.kernel or false) or nil,
                network = { fabric = run.fabric, per_gpu = run.network_per_gpu or accelerators.find(run.accelerator).network_per_gpu } },
    model = run.file or model, training = training,
    parallelism = { tensor = run.tensor, context = run.context, data = run.gpus // (run.tensor * run.context * run.pipeline),
                    expert = model.experts and run.expert or nil,
                    expert_tensor = model.experts and 1 or nil, pipeline = run.pipeline,
                    virtual = run.virtual > 1 and run.pipeline > 1 and run.virtual or nil,
                    schedule = schedule_of(run), sequence = more.sequence, scatter_messages = more.scatter_messages,
                    layers_per_stage = layers_of(model, run), account_for = accounted[model] and run.pipeline > 1 and "both" or nil },
  }
end

-- → { seconds, tokens_per_second, plan }
function predict.step(model, run)
  local plan = policy:plan_spec(predict.spec(model, run), ".")
  local why = plan.reasons and plan.reasons[1] and plan.reasons[1].message or plan.status
  if not plan.step_seconds then error(string.format("%d × %s: %s", run.gpus, run.accelerator, why)) end
  return { seconds = plan.step_seconds, tokens_per_second = run.batch * run.sequence / run.gpus / plan.step_seconds, plan = plan }
end

-- Predicted over measured tokens per second of a row of megatron_bridge.lua, and the prediction.
function predict.ratio(model, row)
  local run = setmetatable({ kernel = row.kernel or "hybrid_ep" }, { __index = row })
  local ours = predict.step(model, run).tokens_per_second
  return ours / row.tokens_per_second, ours
end

return predict
