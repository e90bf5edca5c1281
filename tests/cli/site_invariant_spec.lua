-- SPDX-License-Identifier: Apache-2.0
-- An invariant that a site states, and that a plan breaks: an answer like any other (exit 1), with its words, its place and its layer.

local files = require "policy_files"
local json = require "cjson"
local program = require "program"

teardown(files.remove)

local policy = files.write("hall.lua", [[
site "hall"
invariant { id = "no_idle", status = "planned", bubble_fraction = over "1%", message = "{bubble_fraction} is idle", source = "ticket 4711" }
invariant { id = "shallow", status = "planned", pipeline_parallel = over(8) }
]])
local spec = "examples/specs/deepseek-v3.json"

describe("an invariant of a site that a plan breaks", function()
  it("rejects the plan, and says which, where it stands, and what the plan would have been", function()
    local result = program.run("plan " .. spec .. " --date 2026-11-27 --policy " .. policy)
    assert.equal(1, result.status, result.stderr)
    assert.equal("", result.stderr)
    local page = result.stdout:gsub("%s+", " ")
    assert.matches("^REJECTED · no plan", page)
    assert.matches("no_idle: [%d.]+ %% is idle %(an invariant of the policy; the plan would be DualPipe, P 16 ", page)
    assert.matches("hall%.lua:2, ticket 4711%]", page)
    assert.matches("shallow: no plan may have pipeline_parallel over 8: it is 16 ", page)
  end)

  it("is a reason with id, file, line and layer in JSON, beside nothing that only a plan has", function()
    local result = program.run("plan " .. spec .. " --date 2026-11-27 --format json --explain --policy " .. policy)
    assert.equal(1, result.status, result.stderr)
    local plan = json.decode(result.stdout)
    assert.same({ "rejected", json.null, json.null, json.null }, { plan.status, plan.schedule, plan.memory, plan.rollback })
    assert.same({ "no_idle", policy, 2, "hall" }, { plan.reasons[1].id, plan.reasons[1].file, plan.reasons[1].line, plan.reasons[1].layer })
    assert.same({ "shallow", 3 }, { plan.reasons[2].id, plan.reasons[2].line })
  end)

  it("is a line of its own among many", function()
    local file = assert(io.open(spec))
    local object = json.decode(file:read "a")
    file:close()
    object.model = "examples/models/deepseek-v3.json"
    local result = program.run("plan --jsonl --policy " .. policy, json.encode(object) .. "\n")
    assert.equal(1, result.status, result.stderr)
    assert.matches('"id":"no_idle".-"status":"rejected"', result.stdout)
    assert.is_nil(result.stderr:find("internal error", 1, true))
  end)

  it("is what `policy test` sees, and what `policy check --search` finds", function()
    files.write("hall_spec.lua", string.format([[
      local site = require("pipeplan").policy("%s", { date = "2026-11-27" })
      it("rejects it", function() assert.decided(site:plan { "%s" }, "rejected", "no_idle") end)]], policy, spec), policy:match "^(.*)/")
    assert.equal(0, program.run("policy test " .. policy:gsub("%.lua$", "_spec.lua")).status)
    -- over a default policy of few rules, which have few edges
    local few = files.directory {}
    assert(os.execute(string.format("cd '%s/policies/default' && cp parameters.lua decision_table.lua '%s'", os.getenv "PIPEPLAN_SOURCE", few)))
    local result = program.run(string.format("policy check --search 0 --no-witnesses --format json --policies '%s' --policy %s", few, policy))
    assert.equal(1, result.status, result.stderr)
    local found
    for _, finding in ipairs(json.decode(result.stdout).findings) do
      if finding.code == "invariant" then found = found or finding end
    end
    assert.same({ policy, "hall" }, { found.file, found.layer })
  end)
end)
