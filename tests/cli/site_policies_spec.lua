-- SPDX-License-Identifier: Apache-2.0
-- Policies of a machine, which hold without being named: where they are found, that a plan says so, --no-site, and --policy-digest.

local files = require "policy_files"
local program = require "program"

teardown(files.remove)

local spec = files.write("spec.json", [[{ "cluster": { "gpus": 64, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
  "model": { "architecture": "dense", "total": "70B", "layers": 80 }, "training": { "tokens": "1T", "recompute": "full" },
  "parallelism": { "tensor": 8, "pipeline": 4, "schedule": "1f1b" } }]])

local function rejects(id, conditions)
  return string.format("site '%s' reject { id = '%s', %s, message = '{tensor_parallel}' }", id, id, conditions)
end

-- A machine: company and hall in its system folder, a user's own.
local system, config = files.directory {}, files.directory {}
assert(os.execute(string.format("mkdir -p %s/policies.d/20-hall %s/pipeplan", system, config)))
files.write("10-company.lua", rejects("company", "tensor_parallel = over(64)"), system .. "/policies.d")
files.write("10-company_spec.lua", "error 'a test is no policy'", system .. "/policies.d")
files.write("README", "no policy either", system .. "/policies.d")
files.write("rules.lua", "local l = require 'limits' " .. rejects("hall", "tensor_parallel = over(l)"), system .. "/policies.d/20-hall")
files.write("limits.lua", "return 32", system .. "/policies.d/20-hall")
files.write("mine.lua", rejects("mine", "tensor_parallel = over(16)"), config .. "/pipeplan")
local named = files.write("named.lua", rejects("named", "tensor_parallel = over(4)"))

local machine = string.format("PIPEPLAN_SYSTEM=%s XDG_CONFIG_HOME=%s", system, config)
local function run(arguments, environment, input) return program.run(arguments, input, environment or machine) end
local function plan(arguments, environment) return run(string.format("plan %s --date 2026-11-28 %s", spec, arguments or ""), environment) end

describe("the policies of a machine", function()
  it("hold without being named, in order, under what is named; and the plan's first lines say so", function()
    local shown = run("policy show --date 2026-11-28 --policy " .. named, machine .. " PIPEPLAN_POLICY=examples/sites/campus.lua").stdout
    assert.equal("policy  default ← company ← hall ← mine ← campus ← named", shown:match "^[^\n]*")
    assert.matches("10-company.lua (found on this machine)", shown, 1, true)
    local text = plan().stdout
    local first = text:match "^(.-)\n\n"
    assert.matches("site      found on this machine:", first, 1, true)
    for _, name in ipairs { "10-company.lua", "20-hall", "mine.lua" } do assert.matches(name, first:gsub("\n%s+", ""), 1, true) end
  end)

  it("decide", function()
    local stricter = files.write("stricter.lua", rejects("stricter", "tensor_parallel = over(4)"))
    assert.equal(0, plan().status)
    local refused = plan("", machine .. " PIPEPLAN_POLICY=" .. stricter)
    assert.equal(1, refused.status)
    assert.matches("because   stricter: 8", refused.stdout, 1, true)
    assert.equal(1, run("plan --jsonl", machine .. " PIPEPLAN_POLICY=" .. stricter,
                        (io.open(spec):read "a"):gsub("\n", "") .. "\n").status)
  end)

  it("are left out by --no-site, which says so", function()
    local text = plan("--no-site", machine .. " PIPEPLAN_POLICY=" .. named).stdout
    assert.matches("site      --no-site leaves out", text, 1, true)
    assert.matches("policy    default; digest", text, 1, true)
    assert.is_nil(plan("--no-site", "PIPEPLAN_SYSTEM=/nonexistent").stdout:find("\nsite ", 1, true))
  end)

  it("leave tests, check and the module alone", function()
    local test = files.write("default_spec.lua", string.format([[
      it("is the default", function() assert.equal(1, #require("pipeplan").policy():plan { %q }.policy.layers) end)]], spec))
    local result = run("policy test " .. test, machine .. " PIPEPLAN_POLICY=" .. named)
    assert.equal(0, result.status, result.stdout)
    assert.matches("^default: ", (run("policy check --no-witnesses").stdout:match "[^\n]*\n?$" or ""):gsub("^.*\n", "") .. "default: ")
  end)

  it("that cannot be loaded stop every plan: exit 6", function()
    local result = plan("", machine .. " PIPEPLAN_POLICY=/no/such/policy.lua")
    assert.equal(6, result.status)
    assert.matches("/no/such/policy.lua: cannot be read", result.stderr, 1, true)
    assert.equal("", result.stdout)
  end)

  it("may be demanded by digest, whatever the day", function()
    local function digest(arguments, environment)
      return (run("policy show --files " .. (arguments or ""), environment).stdout:match "layers     (%x+)")
    end
    local demanded = digest("--date 2026-01-01")
    assert.equal(demanded, digest("--date 2026-11-28"))
    assert.equal(0, plan("--policy-digest " .. demanded).status)
    for _, other in ipairs { "--no-site", "--policy " .. named, "--set tie_fraction=2%" } do
      local result = plan(other .. " --policy-digest " .. demanded)
      assert.equal(6, result.status, other)
      assert.matches(demanded .. " is demanded", result.stderr, 1, true)
    end
    local of_plan = plan("--date 2026-11-28 --policy-digest " .. run("policy show --files --date 2026-11-28").stdout:match "digest +(%x+)")
    assert.equal(6, of_plan.status)
    assert.matches("policy.digest of a plan, and not its policy.stack", of_plan.stderr, 1, true)
    assert.equal(0, plan("--set tie_fraction=2% --policy-digest " .. digest "--set tie_fraction=2%").status)
    local edited = demanded
    files.write("limits.lua", "return 31", system .. "/policies.d/20-hall")
    assert.is_not.equal(edited, digest "")
    files.write("limits.lua", "return 32", system .. "/policies.d/20-hall")
  end)
end)
