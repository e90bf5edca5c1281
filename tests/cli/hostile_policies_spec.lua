-- SPDX-License-Identifier: Apache-2.0
-- Hostile policies, each as a file that a user lays over a plan: exit status, message, and what it may take. See tests/hostile.lua.

require "pipeplan"
local files = require "policy_files"
local hostile = require "hostile"

teardown(files.remove)

for _, name in ipairs { "parser", "native", "engine", "statements", "rules" } do
  describe("a policy of corpus/" .. name .. ".lua", function()
    for _, entry in ipairs(hostile.entries(name)) do
      it("with " .. entry[1] .. " ends as its entry says", function() hostile.check(entry, hostile.policy_command(entry[2])) end)
    end
  end)
end

describe("a policy of tests/hostile", function()
  local statuses = { budget = 4, broken = 6, harmless = { 1, 5 } }  -- 1: the spec is rejected, as without it; 5: it states nothing
  for _, name in ipairs(hostile.scripts()) do
    it("such as " .. name .. " ends as its first line says", function()
      local path = "tests/hostile/" .. name
      local kind, rest = io.open(os.getenv "PIPEPLAN_SOURCE" .. "/" .. path):read("l"):match "^%-%- (%a+)(.*)"
      local says = kind == "broken" and rest:match '"(.-)"' or ""
      hostile.check({ status = statuses[kind], says = says }, "plan examples/specs/rules/too_deep.json --policy " .. path)
    end)
  end
end)
