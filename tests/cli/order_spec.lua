-- SPDX-License-Identifier: Apache-2.0
-- The same spec has the same plan, to the byte: whatever was planned before it, in which process, in how many, and where that process runs.

local program = require "program"
require "pipeplan"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local random_specs = require "random_specs"

teardown(files.remove)

local COUNT = require "long" and 400 or 24

-- Functions that see every candidate, with tables and loops of their own.
local policy = files.write("site.lua", [[
site "thoughtful"
local weights = { 3, 1, 2 }
refuse { id = "odd_sum", when = function(f)
  local sum, seen = 0, {}
  for i, weight in ipairs(weights) do
    sum = sum + weight * f.pipeline_parallel
    seen[f.tensor_parallel * i] = weight
  end
  for key, value in pairs(seen) do sum = sum + key * value end
  return sum % 7 == 1
end, message = "{pipeline_parallel} by {tensor_parallel}" }
]])

-- → list of the answers to the specs in that order
local function answers(specs, order, environment, jobs)
  local input = {}
  for i, number in ipairs(order) do input[i] = specs[number] end
  local result = program.run(string.format("plan --jsonl --date 2026-12-01 --policy %s --jobs %d", policy, jobs),
                             table.concat(input, "\n") .. "\n", environment)
  local list = {}
  for line in result.stdout:gmatch "([^\n]*)\n" do
    local number = order[#list + 1]
    -- an error names its line, which is another one
    list[#list + 1] = line:gsub('^{"error":{"line":%d+,"message":"line %d+', '{"error":{"line":' .. number .. ',"message":"line ' .. number)
                          :gsub('^{"error":{"line":%d+', '{"error":{"line":' .. number)
  end
  assert.equal(#order, #list)
  return list
end

describe("the plans of many specs", function()
  it("are the same in another order, in two processes of another process, in another time zone and language", function()
    local r, specs, forth, back = random_specs.generator(12), {}, {}, {}
    for i = 1, COUNT do
      specs[i], forth[i], back[i] = json.encode(random_specs.with_everything(r)), i, COUNT + 1 - i
    end
    local one = answers(specs, forth, "TZ=UTC LC_ALL=C", 1)
    local two = answers(specs, back, "TZ=Pacific/Auckland LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 TERM=dumb COLUMNS=40", 2)
    local planned = 0
    for i = 1, COUNT do
      assert.is_true(one[i] == two[COUNT + 1 - i], "spec " .. i .. " has two plans: " .. specs[i])
      planned = planned + (one[i]:find('"status":"planned"', 1, true) and 1 or 0)
    end
    assert.is_true(planned > COUNT // 5, planned .. " specs are planned")
  end)
end)
