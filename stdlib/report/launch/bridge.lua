-- SPDX-License-Identifier: Apache-2.0
-- bridge.lua: a shell script that starts Megatron-Bridge's own runner with its bare recipe and overrides, from the settings of a plan
-- (settings.lua). The recipe sets as little as one can (recipes/gpt/vanilla_gpt.py), so that nothing holds that no plan says.

local shell = require "pipeplan.report.launch.shell"

-- Overrides of a field that the bare recipe's provider has not, which Hydra adds.
local added = { ["model._target_"] = true, ["model.q_lora_rank"] = true, ["model.kv_lora_rank"] = true, ["model.qk_head_dim"] = true,
                ["model.qk_pos_emb_head_dim"] = true, ["model.v_head_dim"] = true }

-- The bare recipe has no comm_overlap, which would say it for the model.
local of_model = { ["comm_overlap.overlap_moe_expert_parallel_comm"] = "model.overlap_moe_expert_parallel_comm" }

-- As Hydra's grammar has it: words as they are, what it could take for something else in quotes.
local function value_of(setting)
  local value = setting.value
  if value == true then return "true" elseif value == "no" then return "false" end
  if type(value) == "table" then return "[" .. table.concat(value, ",") .. "]" end
  local text = tostring(value)
  return setting.base == "--pipeline-model-parallel-layout" and '"' .. text .. '"' or text
end

return function(launch)
  local lines = shell.head(launch, {
    "In a checkout of Megatron-Bridge; data, tokenizer and learning rate behind it, as overrides too.",
    "Was tried: megatron-bridge 0.6.2 beside megatron-core 0.19.2.",
  })
  if launch.connections then lines[#lines + 1] = "export CUDA_DEVICE_MAX_CONNECTIONS=" .. launch.connections end
  lines[#lines + 1] = shell.torchrun(launch, "scripts/training/run_recipe.py")
  lines[#lines + 1] = "  --recipe vanilla_gpt_pretrain_config --mode pretrain \\"
  for _, setting in ipairs(launch.settings) do
    local plus = added[setting.key] and "+" or ""
    lines[#lines + 1] = "  " .. shell.quoted(plus .. (of_model[setting.key] or setting.key) .. "=" .. value_of(setting)) .. " \\"
  end
  lines[#lines + 1] = '  "$@"'
  return table.concat(lines, "\n") .. "\n"
end
