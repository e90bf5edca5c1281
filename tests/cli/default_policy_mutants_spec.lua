-- The tests of the default policy (tests/policy) look at all of it, and notice every mistake that a test can notice: `policy test` and
-- `policy mutate` say so. All mutants take half a minute of two processors: they are tried where $CI is set, elsewhere those of a few rules.

local program = require "program"

local sample = { "reject too_deep", "refuse short_run", "row small_run", "parameter tie_fraction" }

local function mutate(filter)
  return program.run(string.format("policy mutate tests/policy --equivalent tests/policy/equivalent.txt --min-score 100 --jobs 2 "
                                   .. "--no-witnesses%s", filter and " --filter '" .. filter .. "'" or ""))
end

describe("the default policy's tests", function()
  it("reach every row, reason, warning and choice, and both sides of every bound", function()
    local result = program.run "policy test tests/policy --min 100"
    assert.equal(0, result.status, result.stdout .. result.stderr)
  end)

  it("notice every mutant but those listed with a reason", function()
    if os.getenv "CI" then
      local result = mutate()
      assert.equal(0, result.status, result.stdout .. result.stderr)
      return
    end
    print("# only mutants of " .. table.concat(sample, ", ") .. ": set CI to try all")
    for _, filter in ipairs(sample) do
      local result = mutate(filter)
      assert.equal(0, result.status, result.stdout .. result.stderr)
      assert.matches("^%d+ mutants: [1-9]", result.stdout)
    end
  end)
end)
