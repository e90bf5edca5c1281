-- SPDX-License-Identifier: Apache-2.0
-- The tests of the default policy (tests/policy) and of the example sites look at all of it, and notice every mistake that a test can notice: `policy test` and
-- `policy mutate` say so. All mutants take minutes: they are tried with PIPEPLAN_LONG=1 in the environment, elsewhere those of a few rules.

local long = require "long"
local program = require "program"

local sample = { "reject too_deep", "row small_run" }

local function mutate(arguments, filter)
  local result = program.run(string.format("policy mutate %s --min-score 100 --jobs 2 --no-witnesses%s", arguments,
                                           filter and " --filter '" .. filter .. "'" or ""))
  assert.equal(0, result.status, result.stdout .. result.stderr)
  return result.stdout
end

describe("the default policy's tests", function()
  it("reach every row, reason, warning and choice, and both sides of every bound", function()
    local result = program.run "policy test tests/policy --min 100"
    assert.equal(0, result.status, result.stdout .. result.stderr)
  end)

  it("notice every mutant but those listed with a reason", function()
    local tests = "tests/policy --equivalent tests/policy/equivalent.txt"
    if long then
      mutate(tests)
      return
    end
    print("# only mutants of " .. table.concat(sample, ", ") .. ": set PIPEPLAN_LONG=1 to try all")
    for _, filter in ipairs(sample) do assert.matches("^[1-9]%d* mutants: [1-9]", mutate(tests, filter)) end
  end)
end)

describe("the example sites' tests", function()
  -- a cloud hall with EFA, an academic cluster whose exceptions end, a frontier MoE site with rows of its own
  it("reach all that their policies say, which pass check", function()
    for _, site in ipairs { "aws-p5", "campus", "frontier-moe" } do
      local path = "examples/sites/" .. site
      local tested = program.run("policy test " .. path .. "_spec.lua --min 100")
      assert.equal(0, tested.status, tested.stdout .. tested.stderr)
      assert.equal(0, program.run("policy check --no-witnesses --date 2026-12-01 --policy " .. path .. ".lua").status)
    end
  end)

  it("of campus and frontier-moe notice every mutant but those listed with a reason", function()
    if not long then print "# of frontier-moe only its rows: set PIPEPLAN_LONG=1 to try all" end
    for site, filter in pairs { campus = false, ["frontier-moe"] = not long and "^row " } do
      local path = "examples/sites/" .. site
      local text = mutate(string.format("--policy %s.lua --date 2026-12-01 %s_spec.lua --equivalent %s_equivalent.txt", path, path, path), filter)
      assert.matches("^[1-9]%d* mutants: [1-9]", text)
    end
  end)

  it("notice every mutant but those listed with a reason", function()
    local sites = "examples/sites/"
    assert.matches("^3 mutants: 3 killed", mutate("--policy " .. sites .. "ml-hall-3.lua " .. sites .. "ml-hall-3_spec.lua"))
    if not long then print "# of aws-p5 only its rows: set PIPEPLAN_LONG=1 to try all" end
    local text = mutate("--policy " .. sites .. "aws-p5.lua --date 2026-12-01 " .. sites .. "aws-p5_spec.lua --equivalent " .. sites
                        .. "equivalent.txt", not long and "row long_context" or nil)
    assert.matches("^[1-9]%d* mutants: [1-9]", text)
  end)
end)
