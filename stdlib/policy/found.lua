-- SPDX-License-Identifier: Apache-2.0
--[[
found.lua: the policies of a machine, which hold without being named: company and hall in /etc/pipeplan/policies.d, the user's in
$XDG_CONFIG_HOME/pipeplan (~/.config/pipeplan), and what PIPEPLAN_POLICY names, separated by colons. In that order they lie between the
default and what the command line names. Of a folder each *.lua is a layer, and each folder in it, in the order of their names.

  found.paths() → { path, … }

PIPEPLAN_SYSTEM is another folder than /etc/pipeplan, for containers and tests. Who must have a policy demands its digest (--policy-digest):
whoever may set a variable may leave a policy out.
]]

local engine = require "engine"
local failure = require "pipeplan.base.failure"

local found = {}

local function variable(name)
  local value = os.getenv(name)
  return value ~= "" and value or nil
end

-- Appends the layers that lie in a folder.
local function of_folder(folder, list)
  local names, problem = engine.host.directory(folder)
  if problem then failure.unloadable("%s: cannot be read: %s", folder, problem) end
  table.sort(names or {})
  for _, name in ipairs(names or {}) do
    local path = folder .. "/" .. name
    local inside = not name:find "^%." and engine.host.directory(path)
    local policy = name:find "%.lua$" and not name:find "_spec%.lua$" and not name:find "^%."
    for _, file in ipairs(inside or {}) do policy = policy or file:find "%.lua$" and not file:find "_spec%.lua$" end
    if policy then list[#list + 1] = path end
  end
end

function found.paths()
  local list = {}
  of_folder((variable "PIPEPLAN_SYSTEM" or "/etc/pipeplan") .. "/policies.d", list)
  local home = variable "HOME"
  local config = variable "XDG_CONFIG_HOME" or home and home .. "/.config"
  if config and config:sub(1, 1) == "/" then of_folder(config .. "/pipeplan", list) end  -- a relative one is to be ignored
  for path in (variable "PIPEPLAN_POLICY" or ""):gmatch "[^:]+" do list[#list + 1] = path end
  return list
end

return found
