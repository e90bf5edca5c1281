-- SPDX-License-Identifier: Apache-2.0
-- megatron.lua: a shell script that starts Megatron-LM, from the settings of a plan (settings.lua).

local shell = require "pipeplan.report.launch.shell"

return function(launch)
  local lines = shell.head(launch, { "Data, tokenizer and learning rate behind it." })
  if launch.connections then lines[#lines + 1] = "export CUDA_DEVICE_MAX_CONNECTIONS=" .. launch.connections end
  lines[#lines + 1] = shell.torchrun(launch, "pretrain_gpt.py")
  for _, setting in ipairs(launch.settings) do lines[#lines + 1] = "  " .. shell.words(setting.key, setting.value) .. " \\" end
  lines[#lines + 1] = '  "$@"'
  return table.concat(lines, "\n") .. "\n"
end
