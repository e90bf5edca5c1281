-- SPDX-License-Identifier: Apache-2.0
-- A share of tests/sweep.lua, the same in every run: each input damaged in each place answers with a documented exit status and a message
-- that names where. The whole of it is a command of its own: see there.

require "pipeplan"
local sweep = require "sweep"

local few = os.getenv "PIPEPLAN_SPECS" ~= nil   -- where another test runs this one

it("no value in any place of an input ends otherwise than documented", function()
  local problems = {}
  local tried = sweep.run { every = few and 997 or 97, told = function(text) problems[#problems + 1] = text end }
  assert.equal("", table.concat(problems, "\n"))
  assert.is_true(tried > (few and 20 or 200))
end)

it("nor do several small and large numbers at once", function()
  local problems = {}
  local tried, _, read = sweep.together { times = few and 1 or 8, told = function(text) problems[#problems + 1] = text end }
  assert.equal("", table.concat(problems, "\n"))
  assert.is_true(few or tried > 100 and read > 5, read)
end)

-- What the sweep asks is asked in earnest: outcomes that it must not let through.
it("the sweep sees what is wrong", function()
  for what, outcome in pairs {
    ["exit status 70"] = { 70, "", "pipeplan: internal error\n" }, ["something stands on standard output"] = { 2, "half", "pipeplan: gpus\n" },
    ["no message"] = { 2, "", "" }, ["a control character is shown"] = { 2, "", "pipeplan: gpus \27[31m\n" },
    ["what is shown is no UTF-8"] = { 2, "", "pipeplan: gpus \xff\n" }, ["names neither of gpus"] = { 2, "", "pipeplan: wrong\n" },
    ["a figure is nan"] = { 0, "step  nan s\n", "" }, ["a figure is inf"] = { 0, '{"step_seconds": inf}', "" },
    ["a figure has wrapped around"] = { 0, "tokens -9223372036854775808\n", "" }, ["31.0 s"] = { 0, "", "", 31 },
  } do
    assert.equal(what, sweep.wrong({ "gpus" }, "1e308", outcome[1], outcome[2], outcome[3], outcome[4] or 0))
  end
  assert.is_nil(sweep.wrong({ "gpus" }, "1e308", 2, "", "pipeplan: gpus is 1e308\n", 0))
  assert.is_nil(sweep.wrong({ "gpus" }, "1", 0, "an information, fit for nancy\n", "", 0))
end)
