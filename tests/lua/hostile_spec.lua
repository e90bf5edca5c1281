-- SPDX-License-Identifier: Apache-2.0
-- The hostile policies of tests/hostile/corpus through the module, as somebody's interpreter meets them: the same ends as on the command line,
-- within the budget that was given. tests/cli/hostile_policies_spec.lua has the command line.

local pipeplan = require "pipeplan"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local hostile = require "hostile"
local vocabulary = require "pipeplan.vocabulary"

teardown(files.remove)

local function holds(list, value)
  for _, one in ipairs(type(list) == "table" and list or { list }) do
    if one == value then return true end
  end
  return false
end

local function shown(status) return type(status) == "table" and table.concat(status, " or ") or tostring(status) end

local limits = { work = 20000000, bytes = 64 * 1024 * 1024 }

-- What texts do while they load: statuses of the command line, told by the sandbox alone.
local ends = { budget = 4, broken = 6 }

for _, name in ipairs { "parser", "native", "engine" } do
  describe("a policy of corpus/" .. name .. ".lua, in a sandbox,", function()
    for _, entry in ipairs(hostile.entries(name)) do
      it("with " .. entry[1] .. " ends as its entry says, and takes no more than it may", function()
        local host = assert(engine.host.open { fields = vocabulary.names, work = limits.work, bytes = limits.bytes })
        local stated, problem = host:run("policy.lua", entry[2], false)
        local used = host:usage()
        -- an instruction that does much is charged before it is done: what is over the limit was not begun
        assert(used.bytes_peak <= limits.bytes, "bytes: " .. used.bytes_peak)
        local status = stated and (#stated == 0 and 5 or 0) or ends[problem.kind]
        assert(holds(entry.status, status), string.format("exit %s, expected %s: %s", status, shown(entry.status), problem and problem.message))
        host:close()
      end)
    end
  end)
end

for _, name in ipairs { "statements", "rules" } do
  describe("a policy of corpus/" .. name .. ".lua, planned with,", function()
    for _, entry in ipairs(hostile.entries(name)) do
      it("with " .. entry[1] .. " ends as its entry says", function()
        local good, plan = pcall(function()
          local site = pipeplan.policy(files.write("policy.lua", entry[2]), { date = "2026-12-01", work = limits.work, bytes = limits.bytes })
          return site:plan_spec(hostile.plain_spec())
        end)
        local status
        if good then status = plan.status == "planned" and 0 or 1 else status = failure.is(plan) and plan.status or 70 end
        assert(holds(entry.status, status), string.format("exit %s, expected %s: %s", status, shown(entry.status), good and plan.status or tostring(plan)))
        if not good then assert(tostring(plan):find(entry.says or "", 1, true), tostring(plan) .. "\nexpected to read: " .. tostring(entry.says)) end
      end)
    end
  end)
end
