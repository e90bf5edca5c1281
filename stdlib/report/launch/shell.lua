-- SPDX-License-Identifier: Apache-2.0
-- shell.lua: what shell scripts that start a run have in common.

local shell = {}

-- As a shell takes it for one word.
function shell.quoted(text)
  text = tostring(text)
  if text:find "^[%w_./:=+,-]+$" then return text end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- A key and its values, a word each.
function shell.words(key, value)
  if value == true then return key end
  local values = type(value) == "table" and value or { value }
  local parts = { key }
  for i, each in ipairs(values) do parts[i + 1] = shell.quoted(each) end
  return table.concat(parts, " ")
end

-- The first lines of a script: what it is, where it is run, and comments of its framework's own. In a job of Slurm's it asks Slurm for what
-- torchrun has to be told of the nodes.
function shell.head(launch, comments)
  local lines = { "#!/bin/sh" }
  for _, line in ipairs(launch.heading) do lines[#lines + 1] = "# " .. line end
  if launch.nodes > 1 then
    lines[#lines + 1] = string.format("# On each of %d nodes: with Slurm srun --nodes %d --ntasks-per-node 1 sh FILE; elsewhere with",
                                      launch.nodes, launch.nodes)
    lines[#lines + 1] = "# NODE_RANK from 0 and the first one's name as MASTER_ADDR."
  end
  for _, line in ipairs(comments) do lines[#lines + 1] = "# " .. line end
  lines[#lines + 1] = "set -eu"
  if launch.nodes > 1 then
    lines[#lines + 1] = 'if [ -n "${SLURM_JOB_ID:-}" ]; then'
    lines[#lines + 1] = '  : "${NODE_RANK:=$SLURM_NODEID}" "${MASTER_ADDR:=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)}"'
    lines[#lines + 1] = "fi"
  end
  return lines
end

function shell.torchrun(launch, program)
  local ranks = launch.nodes > 1 and ' --node_rank "$NODE_RANK" --master_addr "$MASTER_ADDR" --master_port "${MASTER_PORT:-29500}"' or ""
  return string.format("exec torchrun --nproc_per_node %d --nnodes %d%s %s \\", launch.per_node, launch.nodes, ranks, program)
end

return shell
