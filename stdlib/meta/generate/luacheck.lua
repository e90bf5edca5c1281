-- SPDX-License-Identifier: Apache-2.0
-- luacheck.lua: the luacheck std of policy files, from the allow-list of their sandbox: it knows what a policy has and nothing else.

local engine = require "engine"
local lists = require "pipeplan.base.lists"

-- Names without a dot, and below each name with one its fields.
local function tree()
  local top = {}
  for name in pairs(engine.host.allowed) do
    local base, field = name:match "^([^.]+)%.?(.*)$"
    top[base] = top[base] or {}
    if field ~= "" then top[base][field] = true end
  end
  return top
end

return function()
  local lines = {
    "-- The luacheck std of pipeplan's policy files: stds.policy = dofile \"…/luacheck.lua\" in .luacheckrc.",
    "-- Made by scripts/generate-meta; a test compares. Edit what it is made from, not this file.",
    "", "return {", "  read_globals = {",
  }
  local names = tree()
  for _, name in ipairs(lists.sorted_keys(names)) do
    local fields = lists.sorted_keys(names[name])
    if #fields == 0 then
      lines[#lines + 1] = string.format("    %s = {},", name)
    else
      lines[#lines + 1] = string.format("    %s = {", name)
      lines[#lines + 1] = "      fields = {"
      -- what the engine's groups hold, LuaLS knows
      for _, field in ipairs(fields) do
        lines[#lines + 1] = string.format("        %s = { other_fields = %s },", field, tostring(name == "engine"))
      end
      lines[#lines + 1] = "      },"
      lines[#lines + 1] = "    },"
    end
  end
  lines[#lines + 1] = "  },"
  lines[#lines + 1] = "}"
  return table.concat(lines, "\n") .. "\n"
end
