-- SPDX-License-Identifier: Apache-2.0
-- The search for plans that break what must hold of them.

local files = require "policy_files"
local pipeplan = require "pipeplan"  -- first: it loads the rest
local invariants = require "pipeplan.analysis.invariants"

teardown(files.remove)

local date = "2026-11-27"

local function options(text)
  return { files = text and { files.write("site.lua", text) } or {}, date = date }
end

describe("the search for broken invariants", function()
  it("finds none in the default policy: fixed points, loosening, declared invariants", function()
    local list, tried = invariants.search(options(nil), { specs = {}, random = require "long" and 30 or 5 })
    assert.same({}, list)
    assert.is_true(tried >= 5)
  end)

  it("finds a declared invariant that does not hold, and shrinks the spec that shows it", function()
    local text = [[invariant { id = "never_deep", status = "planned", pipeline_parallel = over(1) }]]
    local list = invariants.search(options(text), { specs = {}, random = 6 })
    assert.equal(1, #list)
    assert.equal("invariant", list[1].kind)
    assert.equal("never_deep", list[1].rule)
    assert.same({}, list[1].spec.parallelism)
    assert.is_nil(list[1].spec.framework)
    -- it is a spec whose plan the invariant rejects
    assert.decided(pipeplan.policy(options(text).files, { date = date }):plan_spec(list[1].spec), "rejected", "never_deep")
  end)

  -- Random specs have sequences of 2048, 4096, 8192 or 32768, so the function fails with each, where `plan` ends with exit status 3.
  it("finds a rule whose function fails with a spec, with the rule's words and the spec", function()
    local text = [[reject { id = "sf", message = "no", when = function(f)
      if f.sequence_length > 2000 then error "boom" end return false end }]]
    local list = invariants.search(options(text), { specs = {}, random = 2 })
    assert.equal(1, #list)
    assert.same({ "function_fails", "sf" }, { list[1].kind, list[1].rule })
    assert.matches("^rule 'sf' %(.*site%.lua:1%): .*: boom$", list[1].message)
    assert.is_table(list[1].spec.cluster)
  end)

  it("ends at the first spec with which a rule spends the budget, and tells it", function()
    local text = [[reject { id = "e", message = "no", when = function(f) while true do local _ = f.gpus end end }]]
    local how = options(text)
    how.work = 1000000
    local list, tried = invariants.search(how, { specs = {}, random = 40 })
    assert.same({ 1, "function_fails", "e", 1 }, { #list, list[1].kind, list[1].rule, tried })
    assert.matches("over budget: more than 1000000 units of work", list[1].message)
  end)

  it("tries the edges of all rules by itself", function()
    local list = invariants.search(options(files.few_rules .. [[set { schedules = { "1f1b" } }
      invariant { id = "never_large", status = "planned", gpus = at_least(64) }]]), {})
    assert.equal("never_large", list[1] and list[1].rule)
  end)
end)
