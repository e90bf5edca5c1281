-- SPDX-License-Identifier: Apache-2.0
-- primus.lua: an experiment of Primus with Megatron-LM under it, from the settings of a plan (settings.lua): overrides of its barest
-- presets, so that no preset of a model decides what a plan does.

local yaml = require "pipeplan.report.launch.yaml"

return function(launch)
  local lines = {}
  local function add(indent, text) lines[#lines + 1] = ("  "):rep(indent) .. text end
  for _, line in ipairs(launch.heading) do add(0, "# " .. line) end
  local ranks = launch.nodes > 1 and " NODE_RANK=… MASTER_ADDR=…" or ""
  add(0, string.format("# Start, on each of the nodes: NNODES=%d GPUS_PER_NODE=%d%s primus-cli direct -- train pretrain --config FILE",
                       launch.nodes, launch.per_node, ranks))
  add(0, string.format("# with Slurm: GPUS_PER_NODE=%d primus-cli slurm srun -N %d -- train pretrain --config FILE", launch.per_node,
                       launch.nodes))
  add(0, "# Data, tokenizer and learning rate are yours, in overrides. The file does not say how many GPUs there are:")
  add(0, string.format("# pipeplan lint FILE --gpus %d", launch.plan.gpus_used))
  add(0, "work_group: amd")
  add(0, "user_name: root")
  add(0, "exp_name: " .. yaml.scalar(launch.name))
  add(0, "workspace: ./output")
  add(0, "modules:")
  add(1, "pre_trainer:")
  add(2, "framework: megatron")
  add(2, "config: pre_trainer.yaml")
  add(2, "model: language_model.yaml")
  add(2, "overrides:")
  for _, setting in ipairs(launch.settings) do add(3, setting.key .. ": " .. yaml.value(setting.value)) end
  return table.concat(lines, "\n") .. "\n"
end
