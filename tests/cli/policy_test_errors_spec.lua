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

  it("that does not end is ended wherever it loops, and the others run", function()
    local loop = "while true do end"
    local endless = {
      ["loops"] = ("it('loops', function() LOOP end)"),
      ["hook before_each"] = "describe('hook', function() before_each(function() LOOP end) it('x', function() end) end)",
      ["hook setup"] = "describe('hook', function() setup(function() LOOP end) it('x', function() end) end)",
      ["hook after_each"] = "describe('hook', function() after_each(function() LOOP end) it('y', function() assert.is_true(true) end) end)",
      ["body"] = "describe('body', function() LOOP end)",
      ["coroutine"] = "it('coroutine', function() coroutine.wrap(function() LOOP end)() end)",
      ["coroutines"] = [[it('coroutines', function()
        while true do coroutine.resume(coroutine.create(function() LOOP end)) end end)]],
      ["caught"] = "it('caught', function() while true do pcall(function() LOOP end) end end)",
      ["caught once"] = "it('caught once', function() pcall(function() LOOP end) assert.is_true(true) end)",
      ["expected"] = "it('expected', function() assert.has_error(function() LOOP end) end)",
    }
    local text, names = "require('pipeplan.analysis.runner').test_seconds = 0.02 ", {}
    for name in pairs(endless) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do text = text .. endless[name]:gsub("LOOP", loop) .. "\n" end
    local status, said = tested(text .. "while true do pcall(function() while true do end end) end")
    assert.equal(1, status)
    assert.matches("it does not end: more than 0.02 s of processor time", said, 1, true)   -- the file itself, and so none of its tests
    status, said = tested(text .. "it('goes on', function() assert.is_true(true) end)")
    assert.equal(1, status)
    for _, name in ipairs(names) do
      assert.matches("\nERROR    " .. name .. "\n[^\n]*it does not end: more than 0.02 s of processor time", "\n" .. said)
    end
    assert.matches("\nok       goes on\n", said, 1, true)
    assert.matches("\n2 passed, 10 errors\n", said, 1, true)   -- after_each loops behind a test that passes
  end)

  it("has what it prints on standard error, in every format, and the spec's file for what is wrong outside of tests", function()
    local path = files.directory { ["a_spec.lua"] = [[print "by print"
      describe("a", function()
        setup(function() io.write "by io.write\n" io.stdout:write "by a file\n" os.execute "echo by a child" error "no setup" end)
        it("x", function() end)
      end)
      describe("b", function() before_each(function() error "no start" end) it("x", function() end) end)
      describe("c", function() error "no body" end)]], ["b_spec.lua"] = "\nerror 'no file'" }
    for _, format in ipairs { "text", "tap", "junit", "json" } do
      local result = program.run("policy test --format " .. format .. " " .. path)
      assert.is_nil(result.stdout:find("by ", 1, true), result.stdout)
      for _, how in ipairs { "print", "io.write", "a file", "a child" } do assert.matches("by " .. how .. "\n", result.stderr, 1, true) end
      if format == "json" then
        local places = {}
        for i, one in ipairs(require("cjson").decode(result.stdout).tests) do places[i] = string.format("%s:%d", one.file:sub(#path + 2), one.line) end
        table.sort(places)
        assert.same({ "a_spec.lua:3", "a_spec.lua:6", "a_spec.lua:7", "b_spec.lua:0" }, places)
      end
    end
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
