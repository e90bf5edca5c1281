-- SPDX-License-Identifier: Apache-2.0
-- A wrong rule in a site's policy, hall-7's limit of 16 stages typed as 160, under tests that all pass: check, diff and mutate find it, each in
-- its own way. What each should say follows from the default policy, where too_deep rejects all beyond 64.

local files = require "policy_files"
local program = require "program"

teardown(files.remove)

local function run(arguments, status)
  local result = program.run("policy " .. arguments)
  assert.equal(status, result.status, result.stderr .. result.stdout)
  return result.stdout
end

local right_text = assert(io.open "examples/sites/hall-7.lua"):read "a"
local wrong_text, slips = right_text:gsub("over%(16%)", "over(160)")

local tests = [[
local site = require("pipeplan").policy "%s/hall-7.lua"
describe("hall-7", function()
  it("takes 16 stages over Ethernet", function()
    assert.decided(site:plan { "examples/specs/llama-3-70b.json", fabric = "ethernet", pipeline = 16 }, "planned")
  end)
end)
]]

local spec = [[{ "cluster": { "gpus": 256, "accelerator": "H100-SXM", "network": { "fabric": "ethernet", "per_gpu": "400Gbps" } },
  "model": { "architecture": "dense", "total": "70B", "layers": 80 }, "training": { "tokens": "1T" }, "parallelism": { "pipeline": %d } }]]

local function site(text)
  local directory = files.directory { ["hall-7.lua"] = text, ["16.json"] = spec:format(16), ["32.json"] = spec:format(32) }
  files.write("hall-7_spec.lua", tests:gsub("%%s", directory):gsub("examples/specs/llama%-3%-70b", directory .. "/16"), directory)
  return directory
end

describe("a wrong rule", function()
  local wrong, right = site(wrong_text), site(right_text)

  it("passes the tests that there are", function()
    assert.equal(1, slips)
    assert.matches("\n1 passed\n", run("test " .. wrong, 0))
    assert.matches("no test reaches reject 'deep_on_ethernet'", run("test " .. wrong, 0), 1, true)
    run("test " .. wrong .. " --min 1", 1)
  end)

  it("is found by check: another rule drops all its candidates", function()
    assert.matches("warning[never_fires]\n  reject 'deep_on_ethernet' changes nothing: 'too_deep' drops all its candidates",
                   run("check --no-witnesses --policy " .. wrong .. "/hall-7.lua", 1), 1, true)
    run("check --no-witnesses --policy " .. right .. "/hall-7.lua", 0)
  end)

  it("is found by diff: against the right one it lets a pipeline of 32 through", function()
    local text = run(string.format("diff %s/hall-7.lua %s/hall-7.lua %s/16.json %s/32.json --fail-on loosened", right, wrong, wrong, wrong), 1)
    assert.matches("^newly accepted: deep_on_ethernet\n  [^\n]*/32%.json\n    before: rejected by deep_on_ethernet\n", text)
    assert.matches("\n1 of 2 specs change: 1 newly accepted\n$", text)
  end)

  it("is found by mutate: no test notices that it is gone", function()
    local text = run(string.format("mutate --no-witnesses --policy %s/hall-7.lua %s --min-score 90", wrong, wrong), 1)
    assert.matches("hall%-7%.lua:%d+: survived: reject deep_on_ethernet: deleted\n", text)
  end)
end)
