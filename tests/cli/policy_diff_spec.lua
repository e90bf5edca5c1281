-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan policy diff` and `pipeplan policy init`.

local files = require "policy_files"
local json = require "cjson"
local program = require "program"

teardown(files.remove)

local function run(arguments, status, input)
  local result = program.run("policy " .. arguments, input)
  assert.equal(status, result.status, result.stderr .. result.stdout)
  return result.stdout, result.stderr
end

local small = [[{ "cluster": { "gpus": 64, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
  "model": "examples/models/llama-3-70b.json", "training": { "tokens": "2T", "global_batch_size": 512, "micro_batch_size": 1,
  "sharding": "optimizer", "recompute": "selective" },
  "parallelism": { "tensor": 8, "context": 1 } }]]
local deep = [[{ "cluster": { "gpus": 576, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
  "model": "examples/models/llama-3.1-405b.json", "training": { "tokens": "2T", "global_batch_size": 1152, "micro_batch_size": 1,
  "sharding": "optimizer", "recompute": "selective" }, "parallelism": { "pipeline": 72, "tensor": 8, "context": 1, "schedule": "1f1b" } }]]
local function line(text) return (text:gsub("\n%s*", " ")) end

local looser = files.write("looser.lua", [[set { max_pipeline_depth = 128, reason = "126 layers need it" }]])
local tighter = files.write("tighter.lua", [[reject { id = "no_pipeline", pipeline_parallel = over(1), message = "P {pipeline_parallel}" }]])
local other = files.write("other.lua", [[change { id = "small_run", try = { "zb_h1", "1f1b" } }]])

describe("pipeplan policy diff", function()
  it("shows what changes, by the rule responsible, newly accepted first", function()
    local corpus = line(small) .. "\n\n" .. line(deep) .. "\n"
    local text = run("diff default " .. looser .. " --corpus -", 0, corpus)
    assert.matches("^newly accepted: too_deep\n  %-:3\n    before: rejected by too_deep[^\n]*\n    after:  1F1B, P 72, M 1,152, TP 8, DP 1\n", text)
    assert.matches("\n1 of 2 specs change: 1 newly accepted\n$", text)
    text = run("diff default " .. tighter .. " --corpus -", 0, corpus)
    assert.matches("^no longer planned: no_pipeline\n", text)
    text = run("diff default " .. other .. " --corpus -", 0, corpus)
    assert.matches("^planned differently: small_run\n", text)
    assert.matches("\n0 of 2 specs change\n$", "\n" .. run("diff default default --corpus -", 0, corpus))
  end)

  it("compares every choice of a plan, not only the layout that a line has", function()
    local fixed = [[{ "cluster": { "gpus": 256, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
      "model": { "architecture": "dense", "total": "70B", "layers": 80 }, "training": { "tokens": "1T", "global_batch_size": 1024%s },
      "parallelism": { "pipeline": 8, "tensor": 4, "schedule": "1f1b" } }]]
    local function differs(rule, said)
      local path = files.write("choice.lua", string.format("reject { id = 'choice', %s, message = 'm' }", rule))
      local data = json.decode((run("diff default " .. path .. " --corpus - --fail-on any --format json", 1, line(fixed:format(said)))))
      local change, fields = data.changes[1], {}
      for _, one in ipairs(change.differs) do fields[one.field] = one end
      assert.same({ "replanned", "choice" }, { change.kind, change.rule })
      return fields, change
    end
    local fields, change = differs("recompute = none_of { 'full' }", ', "micro_batch_size": 1')
    assert.equal(change.before.outcome, change.after.outcome)
    assert.same({ "none", "full" }, { fields.recompute.before, fields.recompute.after })
    -- a forward more for a forward and a backward of two: 4/3, less what is not computed again (head, hand-overs, the update)
    local ratio = fields.step_seconds.after / fields.step_seconds.before
    assert.is_true(ratio > 1.25 and ratio < 4 / 3)
    assert.is_near(ratio, fields.gpu_hours.after / fields.gpu_hours.before, 1e-9)
    fields = differs("micro_batch_size = 1", "")   -- 1,024 sequences over DP 8: 128 microbatches of one, 64 of two
    assert.same({ 1, 2, 128, 64 }, { fields.micro_batch_size.before, fields.micro_batch_size.after,
                                     fields.microbatches.before, fields.microbatches.after })
    local text = run("diff default " .. files.write("full.lua", "reject { id = 'full', recompute = none_of { 'full' }, message = 'm' }")
                     .. " --corpus -", 0, line(fixed:format ', "micro_batch_size": 1'))
    assert.matches("\n    differs: recompute none → full; [^\n]*step %d+%.%d s → %d+%.%d s %(%+%d+%.%d %%%); GPU%-hours %d+ k → %d+ k\n", text)
  end)

  it("exits 1 on what --fail-on names", function()
    local path = files.write("corpus.jsonl", line(deep):gsub("examples/", os.getenv "PIPEPLAN_SOURCE" .. "/examples/") .. "\n")
    run("diff default " .. looser .. " --corpus " .. path .. " --fail-on loosened", 1)
    run("diff " .. looser .. " default --corpus " .. path .. " --fail-on loosened", 0)
    run("diff " .. looser .. " default --corpus " .. path .. " --fail-on any", 1)
  end)

  it("exits 3 where a policy raises an error, on either side or on both, and 4 where one is over its budget", function()
    local raising = files.write("raising.lua", [[reject { id = "boom", message = "m", when = function(f) return f.gpus + {} end }]])
    local endless = files.write("endless.lua", [[reject { id = "loops", message = "m", when = function(f) while true do end end }]])
    local spec = files.write("small.json", (small:gsub("examples/", os.getenv "PIPEPLAN_SOURCE" .. "/examples/")))
    for _, sides in ipairs { "default " .. raising, raising .. " default", raising .. " " .. raising } do
      local text = run("diff " .. sides .. " " .. spec, 3)
      assert.matches("^without an answer\n", text)
      assert.matches("rule 'boom'", text, 1, true)
      assert.matches("\n0 of 1 specs change; 1 without an answer\n$", text)
      run("diff " .. sides .. " --fail-on loosened " .. spec, 3)
    end
    run("diff default " .. endless .. " " .. spec, 4)
    run("diff " .. raising .. " " .. endless .. " " .. spec, 3)
  end)

  it("takes spec files, and writes JSON", function()
    local data = json.decode((run("diff default examples/sites/aws-p5.lua examples/specs/deepseek-v3.json --date 2026-12-01 --format json", 0)))
    assert.equal(1, data.specs)
    assert.equal("replanned", data.changes[1].kind)
    assert.equal("moe_with_ep", data.changes[1].rule)
  end)

  it("finds by itself the specs at the edge of a rule", function()
    local mine = files.few_rules .. [[set { schedules = { "1f1b" } } reject { id = "mine", tokens = under "%dB", message = "m {gpus}" }]]
    local edge, wrong = files.write("edge.lua", mine:format(3)), files.write("wrong.lua", mine:format(2))
    local text = run(string.format("diff %s %s --boundary --fail-on loosened", edge, wrong), 1)
    assert.matches("newly accepted: mine\n", text)
    for _, format in ipairs { "text", "json" } do  -- whoever looks for them, they are the same
      local arguments = string.format("diff %s %s --boundary --format %s --jobs ", edge, wrong, format)
      local one = run(arguments .. 1, 0)
      assert.equal(one, (run(arguments .. 2, 0)))
      if format == "text" then assert.equal(text, one) end
    end
  end)

  it("answers in several processes as in one", function()
    local good = line(small):gsub("examples/", os.getenv "PIPEPLAN_SOURCE" .. "/examples/")
    local broken = files.write("broken.jsonl", good .. "\n" .. [[{ "cluster": { "gpus": "many" } }]] .. "\n" .. good .. "\n")
    local said = {}
    for jobs = 1, 2 do said[jobs] = select(2, run("diff default " .. tighter .. " --corpus " .. broken .. " --jobs " .. jobs, 2)) end
    assert.matches("broken.jsonl:2: ", said[1])
    assert.equal(said[1], said[2])
    for _, wrong in ipairs { "0", "257", "2.5", "x" } do run("diff default default --corpus - --jobs " .. wrong, 2) end
  end)

  it("exits 5 without a spec and 6 without a policy", function()
    run("diff default default", 5)
    run("diff default no/such.lua examples/specs/deepseek-v3.json", 6)
  end)
end)

describe("pipeplan policy init", function()
  it("writes a policy and a test that pass", function()
    local directory = files.directory {}
    assert.matches("next: pipeplan policy test", (run("init hall-7 --directory " .. directory, 0)))
    assert.matches("2 passed", (run("test " .. directory .. "/hall-7_spec.lua", 0)))
    assert.matches("default ← hall%-7: nothing to say", (run("check --policy " .. directory .. "/hall-7.lua", 0)))
    local _, problem = run("init hall-7 --directory " .. directory, 2)
    assert.matches("hall%-7%.lua exists already", problem)
  end)

  it("takes only names that are file names", function()
    for _, name in ipairs { "'a b'", "../x", "default", "''" } do run("init " .. name, 2) end
    run("init hall --directory /no/such/place", 2)
  end)
end)
