-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan policy show`, and what the program says about policies that cannot be used.

local files = require "policy_files"
local program = require "program"

teardown(files.remove)

local function show(arguments, status)
  local result = program.run("policy show --date 2026-11-27 " .. arguments)
  assert.equal(status or 0, result.status, result.stderr)
  if result.status == 0 then assert.equal("", result.stderr) else assert.equal("", result.stdout) end
  return result.status == 0 and result.stdout or result.stderr
end

describe("pipeplan policy show", function()
  it("prints every row, rule and parameter with its layer, file and line", function()
    local text = show ""
    assert.matches("^policy  default\n", text)
    assert.matches("\n  small_run +gpus under small_run_gpus %(100%)  → try 1f1b, interleaved_1f1b\n"
                   .. " +default  policies/default/decision_table%.lua:%d+  https://arxiv%.org/abs/2104%.04473, 2%.2\n", text)
    assert.matches("\n  slow_link +200 Gb/s  %(.-; loosens down%)\n +default  policies/default/parameters%.lua:%d+\n", text)
    for _, id in ipairs { "too_deep", "slow_interconnect", "frontier_moe_depth", "deepep", "few_microbatches", "never_over_memory" } do
      assert.matches("\n  " .. id .. " +%S.-\n +default  policies/default/%l+_?%l*%.lua:%d+", text)
    end
  end)

  it("says what each override hides, and lists what is loosened first", function()
    local text = show "--policy examples/sites/aws-p5.lua --set tie_fraction=2%"
    assert.matches("^policy  default ← aws%-p5 ← %-%-set\n", text)
    assert.matches("\nloosened  odd_microbatches by disable  aws%-p5  examples/sites/aws%-p5%.lua:%d+: our DualPipeV takes odd M "
                   .. "%(until 2027%-06%-30%)\n", text)
    assert.matches("\n  small_run_gpus +64 .-\n +aws%-p5  examples/sites/aws%-p5%.lua:%d+\n"
                   .. " +hides: 100  %(default  policies/default/parameters%.lua:%d+%)\n", text)
    assert.matches("\n  tie_fraction +2 %% .-\n +%-%-set  %-%-set\n +hides: 1 %%", text)
    assert.matches("\n +try changed by aws%-p5  examples/sites/aws%-p5%.lua:%d+, hides: dualpipe, dualpipev, zero_bubble,", text)
    assert.matches("\ndisabled\n  odd_microbatches +reject: our DualPipeV takes odd M\n", text)
  end)

  it("says which schedules a site's list takes out of a row", function()
    assert.matches("\n  moe_with_ep +[^\n]+→ try interleaved_1f1b, 1f1b\n[^\n]+\n"
                   .. " +left out, not in schedules: dualpipe, dualpipev, zero_bubble, interleaved_1f1b_overlap\n",
                   show "--policy examples/sites/ml-hall-3.lua")
  end)

  it("prints the same bytes in every run", function()
    assert.equal(show "--policy examples/sites/aws-p5.lua", show "--policy examples/sites/aws-p5.lua")
    assert.equal(show "--format json", show "--format json")
  end)

  it("prints JSON", function()
    local json = require("pipeplan") and require("pipeplan.base.json")
    local data = json.decode(show "--format json --policy examples/sites/aws-p5.lua", "stdout")
    assert.equal("long_context", data.rows[1].id)
    assert.equal("aws-p5", data.rows[1].layer)
    assert.equal("odd_microbatches", data.loosened[1].id)
  end)

  it("shows the policy that the Lua module loads", function()
    local policy = require("pipeplan").policy("examples/sites/aws-p5.lua", { date = "2026-11-27" }).policy
    assert.equal(policy.digest, show("--policy examples/sites/aws-p5.lua"):match "digest  (%x+)")
  end)

  it("reads the default policies from a directory when told to", function()
    assert.matches("policies/default/decision_table%.lua:", show "--policies policies")
    assert.equal(show(""):match "digest  (%x+)", show("--policies policies/default"):match "digest  (%x+)")
  end)
end)

describe("a policy that cannot be used", function()
  it("ends with the status that says why, one clear line each, and nothing on standard output", function()
    for _, case in ipairs {
      { 6, "row { id = 'x'", ":1: '}' expected near <eof>" },
      { 6, "\nrejct { id = 'x' }", ":2: no name 'rejct', did you mean 'reject'?" },
      { 6, "change { id = 'to_deep', pipeline_parallel = any }", ":1: change 'to_deep': no row or rule has that id, did you mean 'too_deep'?" },
      { 6, "set { small_run_gpu = 5 }", ":1: set: no parameter 'small_run_gpu', did you mean 'small_run_gpus'?" },
      { 6, "disable { id = 'too_deep' }", ":1: disable 'too_deep': this lets more plans through, so it needs reason = \"…\"" },
      { 6, "disable { id = 'too_deep', reason = 'r', expires = '2026-11-31' }", ":1: disable 'too_deep': expires: there is no day 2026-11-31" },
      { 4, "while true do end", ":1: over budget: more than 100000000 units of work" },
      { 5, "site 'x'", ": states nothing: no row, no rule, no set" },
    } do
      local path = files.write("site.lua", case[2])
      assert.equal("pipeplan: " .. path .. case[3] .. "\n", show("--policy " .. path, case[1]))
    end
    assert.matches("^pipeplan: nowhere%.lua: cannot be read: ", show("--policy nowhere.lua", 6))
    assert.equal("pipeplan: --date: a date such as \"2027-06-30\" is expected, got 'today'\n", show("--date today", 2))
    assert.equal("pipeplan: --set: 'x' is not name=value\n", show("--set x", 6))
  end)

  -- DESIGN, "Exit status": a gate can tell whose fault it is
  it("is told apart from a spec that cannot be read and from a command line that is wrong", function()
    local good, broken = "examples/specs/llama-3.1-405b.json", files.write("site.lua", "row {")
    local specs = files.write("spec.json", "{")
    for _, case in ipairs {
      { 6, "--policy " .. broken, good }, { 6, "--policy nowhere.lua", good }, { 6, "--policies /nowhere", good },
      { 6, "--set tie_fraction", good }, { 6, "--set tie_fractoin=1%", good }, { 6, "--set tie_fraction=much", good },
      { 6, "--policy " .. broken, specs }, { 6, "--set tie_fraction=much", "nowhere.json" },
      { 2, "", specs }, { 2, "", "nowhere.json" }, { 2, "--policcy " .. broken, good }, { 2, "--date 1.1.2027", good },
    } do
      local result = program.run("plan " .. case[3] .. " " .. case[2])
      assert.same({ case[1], "" }, { result.status, result.stdout }, case[2] .. " " .. case[3])
      assert.matches("^pipeplan: [^\n]+\n$", result.stderr)
    end
  end)

  it("that fails while a plan is made is 3 or 4, never a refusal, with nothing on standard output", function()
    for status, body in pairs { [3] = "return f.gpus.x", [4] = "while true do end" } do
      local path = files.write("site.lua", "warn { id = 'x', gpus = over(1), message = 'm', when = function(f) " .. body .. " end }")
      local result = program.run("plan examples/specs/llama-3.1-405b.json --policy " .. path)
      assert.equal(status, result.status)
      assert.equal("", result.stdout)
      assert.matches("^pipeplan: rule 'x' %(" .. path:gsub("%p", "%%%0") .. ":1%): [^\n]+\n$", result.stderr)
    end
  end)

  it("is a command that does not exist", function()
    local result = program.run "policy shw"
    assert.equal(2, result.status)
    assert.equal("pipeplan: policy: no command 'shw', did you mean 'show'?\n", result.stderr)
    assert.equal(2, program.run("policy").status)
    assert.equal(0, program.run("policy --help").status)
    assert.equal(0, program.run("policy show --help").status)
  end)
end)
