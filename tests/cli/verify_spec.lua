-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan plan --verify`: exit statuses, what is printed, and where policies lie elsewhere than when the plan was made.

require "pipeplan"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local program = require "program"

teardown(files.remove)

local SPEC = "examples/specs/mixtral-8x7b.json"
local made = program.run("plan " .. SPEC .. " --date 2026-12-01 --format json")
local plan_file = files.write("approved.json", made.stdout)

local function changed(edit)
  local plan = json.decode(made.stdout, "plan")
  edit(plan)
  return files.write("changed.json", json.encode(plan))
end

describe("plan --verify", function()
  it("ends with 0 for what is planned here, at the plan's date, and says what it compared", function()
    local result = program.run("plan --verify " .. plan_file)
    assert.equal(0, result.status, result.stderr)
    assert.is_truthy(result.stdout:find "^equal +.*approved.json: planned: ")
    assert.is_truthy(result.stdout:find("judged at 2026-12-01", 1, true) or result.stdout:find("judged at\n", 1, true))
    assert.is_truthy(result.stdout:find "unchecked +spec.files")
  end)

  it("ends with 0 for a refusal that is one here too, for it compares", function()
    local refused = program.run "plan examples/specs/rules/too_deep.json --date 2026-12-01 --format json"
    assert.equal(1, refused.status)
    local result = program.run("plan --verify -", refused.stdout)
    assert.equal(0, result.status, result.stderr)
    assert.is_truthy(result.stdout:find "^equal +standard input: rejected: too_deep")
  end)

  it("ends with 1 and names what differs, the plan's own figures first", function()
    local file = changed(function(plan) plan.memory.ranks[1].total_bytes, plan.step_seconds, plan.engine_version = 1, 1, "0.0.1" end)
    local result = program.run("plan --verify " .. file)
    assert.equal(1, result.status)
    local engine, step, rank = result.stdout:find "\nengine ", result.stdout:find "step_seconds: 1 in the plan",
                               result.stdout:find "memory.ranks%[0%].total_bytes: 1 in the plan"
    assert.is_true(engine < step and step < rank, result.stdout)
  end)

  it("says the same as JSON, a document of its own kind", function()
    local told = json.decode(program.run("plan --format json --verify " .. changed(function(plan) plan.gpus_used = 1 end)).stdout, "told")
    assert.equal("urn:pipeplan:verification:1", told["$schema"])
    assert.is_false(told.equal)
    assert.same({ subject = "figures", field = "gpus_used", plan = 1, here = 64, message = "gpus_used: 1 in the plan, 64 here" },
                told.differences[1])
    assert.equal(1, #told.differences)
    assert.is_true(#told.not_checked > 2)
  end)

  it("judges what expires at the plan's date, or at the one that is given", function()
    local site = files.write("hall.lua", [[site "hall"
      disable { id = "few_microbatches", reason = "we know", expires = "2027-01-31" }
      set { small_run_gpus = 64 }]])
    local plan = files.write("hall.json", program.run("plan " .. SPEC .. " --date 2026-12-01 --format json --policy " .. site).stdout)
    assert.equal(0, program.run("plan --verify " .. plan .. " --policy " .. site).status)
    local later = program.run("plan --date 2027-06-01 --verify " .. plan .. " --policy " .. site)
    assert.equal(1, later.status)
    assert.is_truthy(later.stdout:find('date: "2026-12-01" in the plan, "2027-06-01" here', 1, true))
    local without = program.run("plan --verify " .. plan)
    assert.equal(1, without.status)
    assert.is_truthy(without.stdout:find("layers: default ← hall in the plan, default here", 1, true))
  end)

  it("takes the policies of the machine, wherever they lie", function()
    local folder = os.tmpname()
    os.remove(folder)
    os.execute("mkdir -p " .. folder .. "/policies.d && cp examples/sites/aws-p5.lua " .. folder .. "/policies.d/")
    for _, date in ipairs { "2026-12-01", "2028-01-01" } do   -- when its override holds, and when a warning says that it has expired
      local plan = files.write("named.json", program.run("plan " .. SPEC .. " --format json --policy examples/sites/aws-p5.lua --date " .. date).stdout)
      local result = program.run("plan --verify " .. plan, nil, "PIPEPLAN_SYSTEM=" .. folder)
      assert.equal(0, result.status, result.stdout .. result.stderr)
      assert.equal(1, program.run("plan --verify " .. plan).status)
    end
    os.execute("rm -r " .. folder)
  end)

  it("holds the plan against a spec beside it", function()
    assert.equal(0, program.run("plan " .. SPEC .. " --verify " .. plan_file).status)
    local other = program.run("plan " .. SPEC .. " --tokens 17T --verify " .. plan_file)
    assert.equal(1, other.status)
    assert.is_truthy(other.stdout:find('spec +training.tokens: "[^"]+" in the plan, "17T" here'))
  end)

  for what, case in pairs {
    ["no JSON"] = { "{", "approved%.json:1:" },
    ["no plan"] = { '{"status":"planned"}', "this is no plan" },
    ["an error of a stream"] = { '{"error":{"line":1,"message":"x","status":2}}', "this is no plan" },
    ["a document of another kind"] = { '{"$schema":"urn:pipeplan:profile:1"}', "expected a plan" },
    ["a plan of another version"] = { (made.stdout:gsub("urn:pipeplan:plan:1", "urn:pipeplan:plan:9")), "reads version 1 of a plan" },
    ["a plan without its spec"] = { (made.stdout:gsub('"fields": %[.-\n    %],', "", 1)), "carries no spec; hand it in too" },
    ["a spec that cannot be read"] = { (made.stdout:gsub('"field": "cluster.gpus"', '"field": "cluster.gpu"')), "the spec that it carries" },
    ["a date that is none"] = { (made.stdout:gsub('"date": "2026%-12%-01"', '"date": "2026-13-01"')), "policy.date" },
  } do
    it("ends with 2 for " .. what .. ", and prints nothing", function()
      local result = program.run("plan --verify " .. files.write("approved.json", (case[1])))
      files.write("approved.json", made.stdout)
      assert.equal(2, result.status, result.stdout .. result.stderr)
      assert.equal("", result.stdout)
      assert.is_truthy(result.stderr:find(case[2]), result.stderr)
    end)
  end

  it("says first that a policy cannot be loaded", function()
    local site = files.write("broken.lua", "refuse {")
    assert.equal(6, program.run("plan --verify /nonexistent --policy " .. site).status)
    assert.equal(2, program.run("plan --verify /nonexistent").status)
  end)

  it("with --jsonl does so for each line of plans, at its own day, and answers in their order", function()
    local spec = '{"cluster":{"gpus":64,"accelerator":"H100-SXM"},"model":{"architecture":"dense","total":"70B","layers":80},'
      .. '"training":{"tokens":"1T"},"run":"%s"}\n'
    local few = spec:gsub('"gpus":64', '"gpus":8')
    local first = program.run("plan --jsonl --date 2026-12-01", spec:format "a" .. few:format "b" .. "{}\n").stdout
    local second = program.run("plan --jsonl --date 2026-12-02", spec:format "c").stdout
    local record = files.write("record.jsonl", "")
    local asked = first .. second .. second:gsub('"gpus_used":64', '"gpus_used":63')
    for _, jobs in ipairs { 1, 2 } do
      local result = program.run("plan --jsonl --verify - --jobs " .. jobs .. " --record " .. record, asked)
      local told = {}
      for line in result.stdout:gmatch "[^\n]+" do told[#told + 1] = json.decode(line, "line") end
      assert.equal(2, result.status, result.stderr)  -- the third is no plan
      assert.equal(5, #told)
      for i, name in ipairs { "a", "b", false, "c", "c" } do
        if name then assert.same({ i, name, i ~= 5 }, { told[i].line, told[i].run, told[i].equal }) end
      end
      assert.same({ "planned", "refused", "2026-12-02" }, { told[1].status, told[2].status, told[4].policy.date })
      assert.same({ 3, 2 }, { told[3].error.line, told[3].error.status })
      assert.is_truthy(told[3].error.message:find("no plan, but why there is none", 1, true))
      assert.same({ "gpus_used", 63, 64 }, { told[5].differences[1].field, told[5].differences[1].plan, told[5].differences[1].here })
    end
    local lines = {}
    for line in io.lines(record) do lines[#lines + 1] = json.decode(line, "record") end
    assert.equal(10, #lines)
    assert.same({ file = "standard input", equal = false, differ = { "figures" } }, lines[5].verified)
    assert.same({ "2026-12-01", "2026-12-02" }, { lines[1].policy.date, lines[5].policy.date })
  end)

  it("with --jsonl reads plans from standard input alone, and ends with 0 where all are equal", function()
    local other = program.run("plan --jsonl --verify " .. plan_file, "")
    assert.equal(2, other.status)
    assert.is_truthy(other.stderr:find("--verify -, and not ", 1, true), other.stderr)
    local plans = program.run("plan --jsonl --date 2026-12-01", '{"cluster":{"gpus":64,"accelerator":"H100-SXM"},"model":{"architecture":'
                              .. '"dense","total":"70B","layers":80},"training":{"tokens":"1T"}}\n').stdout
    assert.equal(0, program.run("plan --jsonl --verify -", plans).status)
    assert.equal(5, program.run("plan --jsonl --verify -", "\n").status)
  end)

  it("goes with nothing that has no meaning beside it", function()
    for _, option in ipairs { "--jsonl", "--explain", "--why pipeline=8", "--format html", "--resume x", "--jobs 2" } do
      local result = program.run("plan --verify " .. plan_file .. " " .. option)
      assert.equal(2, result.status, option)
      assert.is_truthy(result.stderr:find(option:find "jobs" and "--jobs is for --jsonl" or "--verify", 1, true), result.stderr)
    end
  end)
end)
