-- SPDX-License-Identifier: Apache-2.0
-- megatron.lua: a shell script that starts Megatron-LM, from the settings of a plan (settings.lua).

-- As a shell takes it for one word.
local function quoted(text)
  text = tostring(text)
  if text:find "^[%w_./:=+-]+$" then return text end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function words(setting)
  if setting.value == true then return setting.key end
  local values = type(setting.value) == "table" and setting.value or { setting.value }
  local parts = { setting.key }
  for i, value in ipairs(values) do parts[i + 1] = quoted(value) end
  return table.concat(parts, " ")
end

return function(launch)
  local lines = { "#!/bin/sh" }
  for _, line in ipairs(launch.heading) do lines[#lines + 1] = "# " .. line end
  local several = launch.nodes > 1
  if several then
    lines[#lines + 1] = string.format("# On each of %d nodes, with NODE_RANK from 0 and the first one's name as MASTER_ADDR.", launch.nodes)
  end
  lines[#lines + 1] = "# Data, tokenizer and learning rate behind it."
  lines[#lines + 1] = "set -eu"
  if launch.connections then lines[#lines + 1] = "export CUDA_DEVICE_MAX_CONNECTIONS=" .. launch.connections end
  local ranks = several and ' --node_rank "$NODE_RANK" --master_addr "$MASTER_ADDR" --master_port "${MASTER_PORT:-29500}"' or ""
  lines[#lines + 1] = string.format("exec torchrun --nproc_per_node %d --nnodes %d%s pretrain_gpt.py \\", launch.per_node, launch.nodes,
                                    ranks)
  for _, setting in ipairs(launch.settings) do lines[#lines + 1] = "  " .. words(setting) .. " \\" end
  lines[#lines + 1] = '  "$@"'
  return table.concat(lines, "\n") .. "\n"
end
