-- SPDX-License-Identifier: Apache-2.0
-- Tests that teach: what is wrong in a test is told at its line, files lie beside it, and one that does not end is ended.

local files = require "policy_files"
local program = require "program"

local function tested(text, more)
  local path = files.directory { ["hall.lua"] = "site 'hall' reject { id = 'deep', pipeline_parallel = over(8), message = 'm' }",
    ["spec.json"] = [[{ "cluster": { "gpus": 64, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
      "model": { "architecture": "dense", "total": "70B", "layers": 80 }, "training": { "tokens": "1T" }, "parallelism": { "tensor": 8 } }]] }
  files.write("hall_spec.lua", text, path)
  local result = program.run("policy test " .. path .. (more or ""))
  return result.status, result.stdout .. result.stderr
end

describe("a test of a policy", function()
  it("names files beside it", function()
    local status, text = tested [[local site = require("pipeplan").policy "hall.lua"
      it("plans", function() assert.decided(site:plan { "spec.json" }, "planned") end)]]
    assert.equal(0, status, text)
  end)

  it("has what is wrong in it told at the line that asserts", function()
    local status, text = tested [[local site = require("pipeplan").policy "hall.lua"
      it("plans", function()
        assert.decided(site:plan { "spec.json" }, "rejected", "dep")
      end)]]
    assert.equal(1, status)
    assert.matches("hall_spec%.lua:3: assert%.decided: no rule 'dep', did you mean 'deep'%?", text)
  end)

  it("may give the helper only the options that it has", function()
    local status, text = tested [[local site = require("pipeplan").policy("hall.lua", { dat = "2026-11-27" })
      it("plans", function() assert.decided(site:plan { "spec.json" }, "planned") end)]]
    assert.equal(1, status)
    assert.matches("pipeplan.policy: no option 'dat', did you mean 'date'?", text, 1, true)
  end)

  it("that does not end is ended, and the others run", function()
    local runner = "require('pipeplan.analysis.runner').test_seconds = 1 "
    local status, text = tested(runner .. [[
      it("loops", function() while true do end end)
      it("goes on", function() assert.is_true(true) end)]])
    assert.equal(1, status)
    assert.matches("ERROR    loops\n[^\n]*it does not end: more than 1 s of processor time", text)
    assert.matches("ok       goes on", text, 1, true)
  end)

  it("that ends the program does not end the run as if all were good: an error in a test and outside of tests", function()
    local status, text = tested [[it("leaves", function() os.exit(0) end)
      it("goes on", function() assert.is_true(true) end)]]
    assert.equal(1, status)
    assert.matches("ERROR    leaves\n[^\n]*a test may not end the program", text)
    assert.matches("ok       goes on", text, 1, true)
    status, text = tested "os.exit(true, true)"
    assert.equal(1, status)
    assert.matches("a test may not end the program", text, 1, true)
  end)

  it("that is pending is none that ran: exit 5 where all are", function()
    local status, text = tested [[pending("later", function() end) it("some day", function() pending "not yet" end)]]
    assert.equal(5, status)
    assert.matches("2 skipped\n", text, 1, true)
    assert.matches("policy test: every test is pending: none ran", text, 1, true)
    assert.equal(0, (tested [[pending("later", function() end) it("runs", function() assert.is_true(true) end)]]))
  end)

  it("that is a policy is told from a test", function()
    local path = files.write("mine.lua", "reject { id = 'deep', pipeline_parallel = over(8), message = 'm' }")
    for command, status in pairs { ["test "] = 1, ["mutate --policy " .. path .. " "] = 1 } do
      local result = program.run("policy " .. command .. path)
      assert.equal(status, result.status)
      local said = result.stdout .. result.stderr
      assert.matches("mine.lua:1: attempt to call a nil value (global 'over'): this reads like a policy; expected a test", said, 1, true)
      assert.is_nil(said:find(": : ", 1, true))
    end
  end)
end)
