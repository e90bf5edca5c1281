-- SPDX-License-Identifier: Apache-2.0
-- arguments.lua: what a run's log says of the run itself: its layout and its model.
--
--   tensor_model_parallel_size ...................... 2
--
-- of Megatron-LM's list of arguments (NVIDIA/Megatron-LM megatron/training/arguments.py, _print_args: two blanks, the name, dots up to
-- column 48, the value), and
--
--   Building device mesh with parallelism: pp=4, dp_replicate=1, dp_shard=8, cp=1, tp=2, ep=1
--
-- of torchtitan (pytorch/torchtitan torchtitan/distributed/parallel_dims.py, build_mesh). Launchers put names before the line.

local format = require "pipeplan.base.format"

local arguments = {}

-- Their names → ours.
local megatron = {
  tensor_model_parallel_size = "tensor", pipeline_model_parallel_size = "pipeline", context_parallel_size = "context",
  expert_model_parallel_size = "expert", expert_tensor_parallel_size = "expert_tensor", data_parallel_size = "data",
  micro_batch_size = "micro_batch_size", global_batch_size = "global_batch_size", seq_length = "sequence_length", num_layers = "layers",
  hidden_size = "hidden", num_experts = "experts", world_size = "gpus",
}
local torchtitan = { pp = "pipeline", cp = "context", tp = "tensor", ep = "expert" }

local function whole(text)
  return text and #text <= 15 and text:match "^%d+$" and math.tointeger(tonumber(text)) or nil
end

-- Tells sink.argument(name, value, what the log calls it); a value that is no number says nothing.
function arguments.line(text, sink)
  local name, value = text:match "%f[%l_]([%l_]+) %.%.+ (%S+)%s*$"
  if name and megatron[name] and whole(value) then return sink.argument(megatron[name], whole(value), name) end
  local mesh = text:match "Building device mesh with parallelism: (.*)$"
  if not mesh then return end
  local replicas, shards
  for key, number in mesh:gmatch "%f[%l_]([%l_]+)=(%d+)" do
    if torchtitan[key] then sink.argument(torchtitan[key], whole(number), key) end
    if key == "dp_replicate" then replicas = whole(number) elseif key == "dp_shard" then shards = whole(number) end
  end
  if replicas and shards then sink.argument("data", replicas * shards, "dp_replicate × dp_shard") end
end

local of_the_model = { sequence_length = true, layers = true, hidden = true, experts = true }

-- What is wrong with a value that a log says, in words, or nil. expected: names → values; whose: what the expected ones are of.
function arguments.differs(expected, name, value, written, whose)
  local wanted = expected[name]
  if not wanted or wanted == value then return nil end
  return string.format("%s is %s: %s has %s, so this is the log of another %s", written, format.integer(value), whose,
                       format.integer(wanted), of_the_model[name] and "model" or "layout")
end

return arguments
