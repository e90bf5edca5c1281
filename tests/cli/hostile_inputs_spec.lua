-- SPDX-License-Identifier: Apache-2.0
-- Hostile specs, command lines and files: exit status, message, and what they may take. See tests/hostile.lua.

require "pipeplan"
local files = require "policy_files"
local hostile = require "hostile"

teardown(files.remove)

local commands = { specs = hostile.spec_command, files = hostile.file_command, long = hostile.file_command }

for _, name in ipairs { "specs", "files", "long" } do
  describe("corpus/" .. name .. ".lua", function()
    for _, entry in ipairs(hostile.entries(name)) do
      it(entry[1] .. " ends as its entry says", function() hostile.check(entry, commands[name](entry)) end)
    end
  end)
end
