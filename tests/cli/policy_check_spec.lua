-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan policy check`: what it prints in each format, and its exit status.

local files = require "policy_files"
local json = require "cjson"
local program = require "program"

teardown(files.remove)

local function check(arguments, status)
  local result = program.run("policy check --date 2026-11-27 " .. arguments)
  assert.equal(status, result.status, result.stderr)
  return result.stdout, result.stderr
end

local idle = files.write("idle.lua", [[
reject { id = "very_deep", pipeline_parallel = over(70), message = "P {pipeline_parallel}" }
]])

describe("pipeplan policy check", function()
  it("finds nothing to act on in the default policy, and says what a review should know", function()
    local text = check("", 0)
    assert.matches("decision_table%.lua:%d+: note%[overlap%]\n  rows 'small_run' and 'dense' both hold for gpus under 100; 'small_run' decides\n"
                   .. "  policies/default/decision_table%.lua:8: 'small_run' decides\n  spec: {\"cluster\"", text)
    assert.matches("\ndefault: 9 notes\n$", text)
  end)

  it("exits 1 on findings, from the severity that --fail-on names", function()
    local text = check("--policy " .. idle, 1)
    assert.matches("idle%.lua:1: warning%[never_fires%]\n  reject 'very_deep' changes nothing: 'too_deep' drops all its candidates\n", text)
    assert.matches("default ← idle: 1 warning\n9 notes about the default policy alone are left out; %-%-all shows them\n$", text)
    check("--policy " .. idle .. " --fail-on error", 0)
    check("--policy " .. idle .. " --fail-on note", 1)
    check("--fail-on note", 1)
  end)

  it("writes JSON, with the spec that shows a finding", function()
    local data = json.decode((check("--format json --all", 0)))
    assert.equal(9, #data.findings)
    local spec = data.findings[1].witness
    local path = files.write("spec.json", json.encode(spec))
    local plan = program.run("plan " .. path .. " --explain")
    assert.is_true(plan.status == 0 or plan.status == 1, plan.stderr)
  end)

  -- SARIF 2.1.0, OASIS standard, §3.13, §3.27: version, runs, tool.driver.name, results with message and level.
  it("writes SARIF 2.1.0", function()
    local data = json.decode((check("--format sarif --policy " .. idle, 1)))
    assert.equal("2.1.0", data.version)
    local run = data.runs[1]
    assert.equal("pipeplan", run.tool.driver.name)
    local known = {}
    for _, rule in ipairs(run.tool.driver.rules) do known[rule.id] = true end
    assert.equal(1, #run.results)
    local result = run.results[1]
    assert.is_true(known[result.ruleId])
    assert.equal("warning", result.level)
    assert.equal(1, result.locations[1].physicalLocation.region.startLine)
    assert.matches("idle%.lua$", result.locations[1].physicalLocation.artifactLocation.uri)
  end)

  it("writes GitHub annotations", function()
    local text = check("--format github --policy " .. idle, 1)
    assert.matches("^::warning file=[^,]+idle%.lua,line=1,title=never_fires::reject 'very_deep' changes nothing", text)
  end)

  it("answers a policy that cannot be loaded with status 6, as findings where a machine reads them", function()
    local path = files.write("bad.lua", 'set { smal_run_gpus = 3 }\nrow { id = "x", gpuss = 3, try = { "1f1b" } }\n')
    local text, problem = check("--policy " .. path, 6)
    assert.equal("", text)
    assert.matches("bad%.lua:1: set: no parameter 'smal_run_gpus', did you mean 'small_run_gpus'%?", problem)
    text = check("--format github --policy " .. path, 6)
    assert.matches("^::error file=[^\n]+bad%.lua,line=1,title=load::set: no parameter", text)
    assert.matches("\n::error file=[^\n]+bad%.lua,line=2,title=load::row 'x': no field or property 'gpuss', did you mean 'gpus'%?\n", text)
  end)

  it("explains its codes, all of which findings can have", function()
    local text = check("--codes", 0)
    for _, code in ipairs { "gap", "shadowed", "overlap", "never_fires", "unused_parameter", "opaque" } do
      assert.matches("\n" .. code .. " +%l+ +%l", text)
    end
  end)

  it("refuses what it does not know", function()
    local _, problem = check("--fail-on fatal", 2)
    assert.matches("%-%-fail%-on.*note.*warning.*error", problem)
    assert.equal(2, program.run("policy chek").status)
  end)
end)
