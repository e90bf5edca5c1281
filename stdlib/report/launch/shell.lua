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

-- The first lines of a script: what it is, where it is run, and what stands in its end.
function shell.head(launch, yours)
  local lines = { "#!/bin/sh" }
  for _, line in ipairs(launch.heading) do lines[#lines + 1] = "# " .. line end
  if launch.nodes > 1 then
    lines[#lines + 1] = string.format("# On each of %d nodes, with NODE_RANK from 0 and the first one's name as MASTER_ADDR.", launch.nodes)
  end
  lines[#lines + 1] = "# " .. yours
  lines[#lines + 1] = "set -eu"
  return lines
end

function shell.torchrun(launch, program)
  local ranks = launch.nodes > 1 and ' --node_rank "$NODE_RANK" --master_addr "$MASTER_ADDR" --master_port "${MASTER_PORT:-29500}"' or ""
  return string.format("exec torchrun --nproc_per_node %d --nnodes %d%s %s \\", launch.per_node, launch.nodes, ranks, program)
end

return shell
