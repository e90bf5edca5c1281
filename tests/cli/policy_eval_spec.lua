-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan policy eval`, findings that a comment takes back, and print under --debug.

require "pipeplan"  -- first: it loads the rest
local files = require "policy_files"
local json = require "pipeplan.base.json"
local program = require "program"

local source = os.getenv "PIPEPLAN_SOURCE"

local spec = files.write("spec.json", [[{ "cluster": { "gpus": 64, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
  "model": { "architecture": "dense", "total": "70B", "layers": 80 }, "training": { "tokens": "1T" }, "parallelism": { "tensor": 8, "schedule": "1f1b" } }]])

local function eval(rule, text, more)
  local site = files.write("site.lua", text)
  local result = program.run(string.format("policy eval %s %s --policy %s %s", rule, spec, site, more or ""))
  return result.stdout, result.status, result.stderr
end

describe("policy eval", function()
  -- TP 8 of 64 GPUs leaves 8 ranks for P × DP, so that P is 1, 2, 4 or 8
  it("says of each condition for how many candidates it holds, and what its field is there", function()
    local text, status = eval("deep", "reject { id = 'deep', pipeline_parallel = over(4), gpus = at_least(64), message = 'm' }", "--format json")
    local answer = json.decode(text)
    assert.equal(0, status)
    assert.same({ "gpus at least 64", "pipeline_parallel over 4" }, { answer.conditions[1].text, answer.conditions[2].text })
    assert.equal(answer.total, answer.conditions[1].holds)
    assert.same({ "64", "1, 2, 4, 8" }, { answer.conditions[1].values, answer.conditions[2].values })
    assert.equal(answer.conditions[2].holds, answer.holds)
    assert.is_true(answer.holds > 0 and answer.holds < answer.total)
    assert.equal(8, answer.first.fields.pipeline_parallel)
  end)

  it("counts a function like a condition, and simulates what it reads", function()
    local text = eval("slow", "reject { id = 'slow', message = 'm', when = function(f) local s = f.step_seconds return s ~= nil and s > 0 end }")
    assert.matches("its function `when` +holds for %d+ of %d+", text)
    assert.matches("the outcome is rejected; the rule holds for it", text, 1, true)
  end)

  -- 9 million rounds of the loop are over a budget, so 400,000 take some 5 % of it: hundreds of candidates have P 8, and asking each of them
  -- would be over it. They have one value of what is read.
  it("asks a function as often as a plan does: where the conditions hold, once for equal values", function()
    local text, status, message = eval("dear", [[reject { id = 'dear', message = 'm', pipeline_parallel = over(4), when = function(f)
      if f.pipeline_parallel <= 4 then error "not asked there" end
      for i = 1, 400000 do local _ = f.pipeline_parallel end
      return true end }]])
    assert.equal(0, status, message)
    local deep, all, total = text:match "pipeline_parallel over 4 +holds for (%d+) of (%d+).*\n  its function `when`, where these hold +holds for (%d+)"
    assert.is_true(tonumber(deep) > 1 and tonumber(deep) < tonumber(all))
    assert.equal(deep, total)
  end)

  it("of a rule that holds for nothing is exit 1, and of one that does not exist 2", function()
    local text, status = eval("deep", "reject { id = 'deep', pipeline_parallel = over(8), message = 'm' }")
    assert.equal(1, status)
    assert.matches("holds for none of %d+ candidates", text)
    local _, unknown, message = eval("dep", "reject { id = 'deep', pipeline_parallel = over(8), message = 'm' }")
    assert.equal(2, unknown)
    assert.matches("no row or rule has the id 'dep', did you mean 'deep'?", message, 1, true)
  end)

  it("of one that is disabled or has expired says so, and where", function()
    local _, status, message = eval("odd_microbatches", "site 'x'\ndisable { id = 'odd_microbatches', reason = 'r' }")
    assert.equal(2, status)
    assert.matches("'odd_microbatches' is disabled %([^\n]*%.lua:2%): %-%-explain of a plan says whether it would hold\n", message)
    local kernel = "kernel { id = 'ours', expert_parallel = over(1), why = 'w', expires = '2020-01-01' }"
    _, status, message = eval("ours", kernel)
    assert.equal(2, status)
    assert.matches("'ours' has expired %([^\n]*%.lua:1%)\n", message)
    _, status, message = eval("short_run", kernel .. " change { id = 'ours', expert_parallel = over(2) }")
    assert.equal(6, status)
    assert.matches("change 'ours': it has expired %([^\n]*%.lua:1%)\n", message)
  end)

  it("of what the planner decides itself says so", function()
    local _, status, message = eval("does_not_fit", "reject { id = 'deep', pipeline_parallel = over(8), message = 'm' }")
    assert.same({ 2, "pipeplan: policy eval: 'does_not_fit' is what the planner decides itself, no rule: --explain of a plan says why\n" },
                { status, message })
  end)
end)

describe("a finding", function()
  local function check(text)
    local result = program.run("policy check --no-witnesses --policy " .. files.write("site.lua", text))
    return result.status, result.stdout
  end
  local rule = "reject { id = 'x', expert_parallel = at_most(1), schedule = 'dualpipe', message = 'm' }"

  it("is taken back by a comment at its line, with a reason", function()
    local status, text = check(rule)
    assert.equal(1, status)
    assert.matches("never_fires", text, 1, true)
    assert.equal(0, (check(rule .. "  -- check: ignore never_fires: it says what this hall is about")))
    assert.equal(0, (check("-- check: ignore never_fires: it says what this hall is about\n" .. rule)))
  end)

  it("is not without one, nor by a comment about something else", function()
    for comment, told in pairs { ["-- check: ignore never_fires"] = "it needs a reason", ["-- check: ignore never_fires:"] = "it needs a reason",
                                 ["-- check: ignore overlap: why"] = "there is no finding 'overlap' here",
                                 ["-- check: ignore nevr_fires: why"] = "no finding has the code 'nevr_fires'" } do
      local status, text = check(rule .. "  " .. comment)
      assert.equal(1, status)
      assert.is_not_nil(text:find(told, 1, true), text)
    end
  end)
end)

describe("print", function()
  local site = files.write("site.lua", [[warn { id = "w", message = "m", when = function(f)
    print("gpus", f.gpus, "\27[31m")
    return f.gpus > 1 or false
  end }]])

  it("of a policy writes to standard error under --debug, and nothing that a terminal obeys", function()
    local result = program.run(string.format("plan %s --policy %s --debug --format json", spec, site))
    assert.equal(0, result.status, result.stderr)
    assert.matches("gpus 64 \\", result.stderr, 1, true)
    assert.is_nil(result.stderr:find "\27")
    assert.equal("planned", json.decode(result.stdout).status)
  end)

  it("is not there otherwise, and says so", function()
    local result = program.run(string.format("plan %s --policy %s", spec, site))
    assert.equal(3, result.status)
    assert.matches("under --debug it writes to standard error", result.stderr, 1, true)
  end)
end)

describe("policy eval -e", function()
  -- P, V, M and EP are left to the planner: some 1,000 candidates
  local mixtral = files.write("mixtral.json", string.format([[{ "model": "%s/examples/models/mixtral-8x7b.json",
    "cluster": { "gpus": 64, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
    "training": { "tokens": "1T", "global_batch_size": 1024, "recompute": "none", "sharding": "optimizer" }, "parallelism": { "tensor": 1 } }]], source))

  local function values(expression, more)
    return program.run(string.format("policy eval -e '%s' %s --date 2026-11-28 %s", expression, mixtral, more or ""))
  end

  it("has no order and no sign for what is not a number", function()
    local result = values "f.microbatches > 8 and 0/0 or f.microbatches"
    assert.equal(0, result.status, result.stderr)
    assert.same({ "4", "8", "nan" }, { result.stdout:match "\n  (%S+) +%d+  [^\n]+\n  (%S+) +%d+  [^\n]+\n  (%S+) +%d+  [^\n]+\nfrom 4 to 8\n" })
    assert.is_nil(values("-(0/0)", "--format json").stdout:find("-nan", 1, true))
  end)

  it("cuts a value that is a table, for the page; JSON has all of it", function()
    local expression = 'engine.bubble { schedule = "1f1b", ranks = 2, microbatches = 8, F = 1, I = 1, W = 1 }'
    local text = values(expression).stdout
    for line in text:match "\n\n(.*)":gmatch "[^\n]+" do assert.is_true(utf8.len(line) <= 160, line) end
    assert.is_truthy(text:find("…", 1, true))
    assert.is_truthy(values(expression, "--format json").stdout:find "seconds = 3")
  end)

  -- PipeDream-flush: the bubble of 1F1B is P − 1 forwards and backwards (Narayanan et al. 2021, section 2.2)
  it("shows what an expression is of each candidate, and of the plan", function()
    local result = values "engine.bubble { schedule = \"1f1b\", ranks = f.pipeline_parallel, microbatches = f.microbatches, F = 1, I = 1, W = 1 }.seconds"
    assert.equal(0, result.status, result.stderr)
    local seen = {}
    for value, depth in result.stdout:gmatch "\n  (%d+) +%d+  [^\n]-P (%d+)" do
      assert.equal(3 * (tonumber(depth) - 1), tonumber(value))
      seen[depth] = true
    end
    assert.same({ ["2"] = true, ["4"] = true, ["8"] = true, ["16"] = true, ["32"] = true }, seen)
    assert.matches("\nfrom 3 to 93\nof the plan %(.-P 2 .-%): 3\n$", result.stdout)
  end)

  it("simulates for figures that only a simulation says, and names what is absent", function()
    local result = values("f.step_seconds > 1", "--format json")
    local answer = require("pipeplan.base.json").decode(result.stdout, "values")
    assert.same({ "true", answer.total }, { answer.values[1].text, answer.values[1].count })
    assert.matches("attempt to compare nil with number", values("f.expert_link < 1").stdout, 1, true)
  end)

  it("says what is wrong with one that is none: exit 3, or 6 for what is no Lua", function()
    local unknown = values "f.gpu"
    assert.same({ 3, "" }, { unknown.status, unknown.stdout })
    assert.matches("no field 'gpu', did you mean 'gpus'?", unknown.stderr, 1, true)
    assert.matches("no name 'gpus': write f.gpus", values("gpus > 3").stderr, 1, true)
    assert.equal(6, values("f.gpus +").status)
    assert.equal(2, program.run("policy eval odd_microbatches").status)
  end)

  -- Of a name that nothing has there is nothing to learn from another candidate, of which there may be a hundred thousand.
  it("ends at the first candidate of which it reads a name that nothing has", function()
    local asked = values "f.expert_parallel == 1 or f.gpu"
    assert.same({ 3, "" }, { asked.status, asked.stdout })
    assert.equal("pipeplan: no field 'gpu', did you mean 'gpus'?\n", asked.stderr)
  end)

  it("has one budget for all candidates", function()
    for _, endless in ipairs { "(function() while true do end end)()", "(function() if f.pipeline_parallel > 2 then while true do end end end)()" } do
      local result = values(endless)
      assert.same({ 4, "" }, { result.status, result.stdout })
      assert.matches("over budget", result.stderr, 1, true)
    end
  end)
end)
