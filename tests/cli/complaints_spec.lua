-- SPDX-License-Identifier: Apache-2.0
-- What users of other policy engines complain about, as right behaviours here, each named after the report it comes from. Those about
-- sandbox and budgets have specs of their own (tests/lua/sandbox_spec.lua, tests/hostile).

local files = require "policy_files"
local json = require "cjson"
local program = require "program"

teardown(files.remove)

local spec = [[{"cluster":{"gpus":%d,"accelerator":"H100-SXM","network":{"fabric":"infiniband","per_gpu":"400Gbps"}},]]
             .. [["model":{"architecture":"dense","total":"70B","layers":80},"training":{"tokens":"1T","global_batch_size":%d},"parallelism":{%s}}]]
local good, deep = spec:format(64, 512, ""), spec:format(576, 576, '"pipeline":72,"tensor":8,"schedule":"1f1b"')

local function run(arguments, input)
  local result = program.run(arguments, input)
  return result.status, result.stdout, result.stderr
end

local function site(text) return files.write("site.lua", text) end

-- Under that policy, in JSON.
local function plan(policy, text, more)
  local path = files.write("spec.json", text)
  local layer = policy and "--policy " .. policy or ""
  local status, out, problem = run(string.format("plan %s --date 2026-11-27 --format json %s %s", path, layer, more or ""))
  assert.is_true(status <= 1, problem)
  return json.decode(out)
end

-- Misspelt statements, each the second line of a file, and what is said of them.
local misspelt = {
  { "rejct { id = 'x', gpus = 1, message = 'm' }", "no name 'rejct', did you mean 'reject'?" },
  { "reject { id = 'x', gpuss = over(1), message = 'm' }", "no field or property 'gpuss', did you mean 'gpus'?" },
  { "reject { id = 'x', gpus = ovr(1), message = 'm' }", "no name 'ovr', did you mean 'over'?" },
  { "reject { id = 'x', gpus = 1, mesage = 'm' }", "no field or property 'mesage', did you mean 'message'?" },
  { "reject { id = 'x', gpus = over 'small_run_gpu', message = 'm' }", "no parameter or field 'small_run_gpu', did you mean 'small_run_gpus'?" },
  { "reject { id = 'x', schedule = 'dualpip', message = 'm' }", "no schedule 'dualpip', did you mean 'dualpipe'?" },
  { "reject { id = 'x', fabric = 'infinband', message = 'm' }", "no fabric 'infinband', did you mean 'infiniband'?" },
  { "reject { id = 'x', microbatches = od, message = 'm' }", "no name 'od', did you mean 'odd'?" },
  { "reject { id = 'x', network_per_gpu = under '200Gbsp', message = 'm' }", "expected a link speed such as \"400Gbps\" or \"160GB/s\", got \"200Gbsp\"" },
  { "reject { id = 'x', gpus = 1, message = '{gpuz}' }", "no parameter or field 'gpuz', did you mean 'gpus'?" },
  { "reject { id = 'x', gpus = 1, recommend = 'data_paralel', message = 'm' }", "no schedule or layout 'data_paralel', did you mean 'data_parallel'?" },
  { "row { id = 'x', gpus = 1, try = { 'zero_buble' } }", "no schedule 'zero_buble', did you mean 'zero_bubble'?" },
  { "warn { id = 'x', gpus = 1, severity = 'nte', message = 'm' }", "severity: \"warning\" or \"note\" is expected" },
  { "invariant { id = 'x', gpus = 1, unless = 'to_deep' }", "no rule has the id 'to_deep', did you mean 'too_deep'?" },
  { "change { id = 'to_deep', gpus = 1 }", "no row or rule has that id, did you mean 'too_deep'?" },
  { "disable { id = 'slow_interconect', reason = 'r' }", "no row or rule has that id, did you mean 'slow_interconnect'?" },
  { "disable { id = 'too_deep', reasn = 'r' }", "not 'reasn', did you mean 'reason'?" },
  { "set { small_run_gpu = 5 }", "no parameter 'small_run_gpu', did you mean 'small_run_gpus'?" },
  { "set { schedules = { 'interleaved' } }", "no schedule 'interleaved', did you mean 'interleaved_1f1b'?" },
  { "prefer { id = 'x', gpus = 1, within = 'tie_fractoin' }", "got 'tie_fractoin', did you mean 'tie_fraction'?" },
  { "parameter { id = 'x', value = 1, unit = 'gpus', loosens = 'none', meaning = 'm' }", "no unit 'gpus', did you mean 'gpu'?" },
}

describe("nothing that is misspelt goes unnoticed", function()
  -- pulumi/pulumi-policy-opa#38: a rule with an unexpected name never runs; google-gemini/gemini-cli#20635: a misspelt key matches everything
  it("in a policy: file, line and the nearest name", function()
    for _, case in ipairs(misspelt) do
      local path = site("-- one line\n" .. case[1] .. "\n")
      local status, out, problem = run("policy show --policy " .. path)
      assert.same({ 6, "" }, { status, out }, case[1])
      assert.matches("pipeplan: " .. path .. ":2: ", problem, 1, true)
      assert.matches(case[2], problem, 1, true)
    end
  end)

  it("in names that a site may have of its own: check says that the catalogue has none such", function()
    local path = site [[
kernel { id = "deepepp", why = "w" }
warn { id = "x", accelerator = "H100-SMX-80GB", message = "m" }
row { id = "y", alltoall_kernel = { "deepep", "uccl-ep" }, try = { "1f1b" } }
]]
    local status, out = run("policy check --no-witnesses --policy " .. path)
    assert.equal(1, status)
    assert.matches("site%.lua:1: warning%[unknown_name%]\n  kernel 'deepepp': the catalogue has no kernel 'deepepp', did you mean 'deepep'%?\n", out)
    assert.matches("site%.lua:2: warning%[unknown_name%]\n  warn 'x': the catalogue has no accelerator 'H100%-SMX%-80GB', did you mean 'H100", out)
    assert.matches("site%.lua:3: warning%[unknown_name%]\n  row 'y': the catalogue has no kernel 'uccl%-ep', did you mean 'uccl_ep'%?\n", out)
  end)

  -- kyverno#9379: a wrong rule name in a test passes
  it("in a test: an unknown rule is an error, and so is a test that looks at nothing", function()
    local path = files.write("x_spec.lua", [[
local site = require("pipeplan").policy()
describe("x", function()
  it("names no rule", function() assert.is_not.decided(site:plan { "examples/specs/rules/too_deep.json" }, "rejected", "to_deep") end)
  it("says nothing", function() site:plan { "examples/specs/rules/too_deep.json" } end)
end)]])
    local status, out = run("policy test " .. path)
    assert.equal(1, status)
    assert.matches("no rule 'to_deep', did you mean 'too_deep'%?", out)
    assert.matches("it asserts nothing", out)
  end)
end)

describe("nothing evaluated is never green", function()
  -- open-policy-agent/conftest#181, #298; runatlantis/atlantis#1550; kyverno#1876, #10497
  it("no specs, no tests, no rules, no policy in a directory, a policy that states nothing: exit 5, and what was looked for", function()
    local empty = files.directory {}
    for arguments, words in pairs {
      ["plan --jsonl"] = "no spec on standard input",
      ["policy test " .. empty] = "no test was found in " .. empty,
      ["policy mutate " .. empty] = "no test",
      ["policy diff default default"] = "no spec to compare them on",
      ["policy show --policy " .. empty] = "no policy file (*.lua) in this directory",
      ["policy show --policy " .. site "-- nothing\n"] = "states nothing",
      ["plan examples/specs/deepseek-v3.json --policy " .. site "site 'x'\n"] = "states nothing",
    } do
      local status, out, problem = run(arguments, "")
      assert.same({ 5, "" }, { status, out }, arguments)
      assert.matches(words, problem, 1, true)
    end
  end)

  -- conftest#108: the exit status of the last file only
  it("over several specs the worst decides, wherever it stands", function()
    for _, lines in ipairs { good .. "\n" .. deep .. "\n" .. good, deep .. "\n" .. good, good .. "\n" .. deep } do
      assert.equal(1, (run("plan --jsonl", lines .. "\n")))
    end
    assert.equal(2, (run("plan --jsonl", '{"cluster":{}}\n' .. good .. "\n" .. deep .. "\n")))
    assert.equal(0, (run("plan --jsonl", good .. "\n" .. good .. "\n")))
  end)
end)

describe("an override cannot hide", function()
  local loose = site [[disable { id = "too_deep", reason = "96 layers need it", expires = "2027-06-30" }]]

  -- kyverno#6675: an exemption skips evaluation, so nobody knows what would have happened
  it("what it lets through: the plan lists it, and --explain evaluates it all the same", function()
    local found = plan(loose, deep, "--explain")
    assert.equal("planned", found.status)
    assert.same({ "too_deep", "96 layers need it", "2027-06-30" }, { found.loosened[1].id, found.loosened[1].reason, found.loosened[1].expires })
    assert.is_true(found.explanation.overridden[1].holds)
    local _, page = run("plan --date 2026-11-27 --policy " .. loose .. " " .. files.write("deep.json", deep))
    assert.matches("\nloosened +too_deep disabled by site: 96 layers need it, until 2027%-06%-30", page)
  end)

  -- falcosecurity/falco#3604: overriding one rule silences others
  it("a rule it does not name: all others are as they were, whichever it is", function()
    local _, before = run "policy show --format json"
    local rules = {}
    for _, kind in ipairs { "rows", "rejects", "refuses", "prefers", "kernels", "warns" } do
      for _, rule in ipairs(json.decode(before)[kind]) do rules[#rules + 1] = { kind = kind, id = rule.id } end
    end
    for i = 1, #rules, 3 do
      local id = rules[i].id
      local _, after = run("policy show --format json --policy " .. site(string.format("disable { id = %q, reason = 'r' }", id)))
      for _, kind in ipairs { "rows", "rejects", "refuses", "prefers", "kernels", "warns" } do
        local expected = {}
        for _, rule in ipairs(json.decode(before)[kind]) do if rule.id ~= id then expected[#expected + 1] = rule end end
        assert.same(expected, json.decode(after)[kind], id .. " " .. kind)
      end
    end
  end)

  -- kyverno#9993, #16053, GHSA-gg4x-fgg2-h9w9: several exceptions at once
  it("another override: two of one rule in one layer is an error, a later layer's counts and says what it hides", function()
    local status, _, problem = run("policy show --policy " .. site "set { small_run_gpus = 64 }\nset { small_run_gpus = 80 }\n")
    assert.equal(6, status)
    assert.matches("site%.lua:2: set small_run_gpus: set in this layer already", problem)
    local one, two = files.write("one.lua", "set { small_run_gpus = 64 }"), files.write("two.lua", "set { small_run_gpus = 80 }")
    local _, text = run(string.format("policy show --policy %s --policy %s", one, two))
    assert.matches("\n  small_run_gpus +80 [^\n]+\n +two  [^\n]+\n +hides: 64  %(one  [^\n]+\n +hides: 100  %(default", text)
  end)

  it("the place of anything: every row, rule and parameter has layer, file and line, and all that it hides", function()
    local _, out = run("policy show --date 2026-11-27 --format json --policy examples/sites/aws-p5.lua")
    local data, count = json.decode(out), 0
    local function placed(entry)
      count = count + 1
      assert.is_truthy(entry.layer and entry.file and entry.line > 0, entry.id)
      for _, hidden in ipairs(entry.hides) do assert.is_truthy(hidden.layer and hidden.file and hidden.line > 0 and hidden.value ~= nil) end
    end
    for _, kind in ipairs { "parameters", "rows", "rejects", "refuses", "prefers", "kernels", "warns", "invariants" } do
      for _, entry in ipairs(data[kind]) do placed(entry) end
    end
    assert.is_true(count > 50)
    local hidden = data.disabled[1]
    assert.same({ "odd_microbatches", "aws-p5", "default", "policies/default/hard_rejects.lua" },
                { hidden.id, hidden.layer, hidden.hides.layer, hidden.hides.file })
    assert.same({ "microbatches odd", "schedule = dualpipe or dualpipev" }, hidden.hides.conditions)
  end)
end)

describe("an error is never silence", function()
  -- luarocks/luarocks#228: a configuration with a syntax error is ignored
  it("a policy that is there and does not load is exit 6, not the default", function()
    local status, out, problem = run("plan examples/specs/deepseek-v3.json --policy " .. site "set { small_run_gpus = 64\n")
    assert.same({ 6, "" }, { status, out })
    assert.matches("site%.lua:%d+: ", problem)
  end)

  -- PowerDNS/pdns#6283, #7993; open-policy-agent/opa#2717, #3742: an error in a rule and the deny does not fire
  it("a rule that raises an error is exit 3 with its file and line, and no plan", function()
    local path = site "reject { id = 'x', gpus = over(1), message = 'm', when = function(f) return f.gpus.x end }"
    local status, out, problem = run("plan examples/specs/deepseek-v3.json --policy " .. path)
    assert.same({ 3, "" }, { status, out })
    assert.matches("rule 'x' (" .. path .. ":1)", problem, 1, true)
  end)

  -- Sentinel's scheme, which users praise: a refusal and a failure never share a status
  it("refused, unreadable, failing and over budget are different statuses", function()
    local seen = {}
    for _, arguments in ipairs { "plan examples/specs/rules/too_deep.json", "plan no-such-file.json",
                                 "plan examples/specs/deepseek-v3.json --policy " .. site "while true do end" } do
      seen[(run(arguments))] = true
    end
    assert.same({ [1] = true, [2] = true, [4] = true }, seen)
  end)
end)

describe("what is printed can be relied on", function()
  -- premake#2596; neovim#20124: the order of `pairs` or of a directory shows
  it("two runs print the same bytes, whatever the command", function()
    local directory = files.directory { ["b.lua"] = "set { small_run_gpus = 64 }", ["a.lua"] = "warn { id = 'x', gpus = over(1), message = 'm' }" }
    for _, arguments in ipairs {
      "plan examples/specs/deepseek-v3.json --explain --format json --policy " .. directory, "policy show --format json --policy " .. directory,
      "policy check --format json --no-witnesses --all --policy " .. directory,
      "policy diff default " .. directory .. " examples/specs/mixtral-8x7b.json --format json",
    } do
      local _, one = run(arguments)
      local _, two = run(arguments)
      assert.is_true(#one > 2 and one == two, arguments)
    end
  end)

  -- opa#1377, #2089: a trace nobody reads, and no reason by rule
  it("the reasons are rules, with what they say and where they stand, without being asked for a trace", function()
    local found = plan(nil, deep)
    assert.same({ "too_deep", "default", "policies/default/hard_rejects.lua" },
                { found.reasons[1].id, found.reasons[1].layer, found.reasons[1].file })
    assert.matches("^P 72 is over 64", found.reasons[1].message)
  end)

  -- mpx/lua-cjson#33, openresty/openresty#193: 199 becomes 199.0, [] becomes {}
  it("integers stay integers and empty lists lists", function()
    local path = files.write("spec.json", good)
    local _, out = run("plan --format json " .. path)
    assert.matches('"gpus": 64[,\n]', out)
    assert.matches('"loosened": %[%]', out)
  end)

  -- opa#6785: coverage changed its meaning from one release to the next
  it("coverage says what it counts", function()
    local _, out = run "policy test examples/sites/aws-p5_spec.lua --format json"
    local coverage = json.decode(out).coverage
    assert.is_true(coverage.all > 0 and coverage.covered <= coverage.all)
    local _, text = run "policy test examples/sites/aws-p5_spec.lua"
    assert.matches("\ncoverage: %d+ %% %(%l+ %d+/%d+", text)
  end)
end)
