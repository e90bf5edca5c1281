-- SPDX-License-Identifier: Apache-2.0
-- `plan --gpus minimum`, and options that are two questions, beside what else a plan is asked for.

require "pipeplan"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local program = require "program"

teardown(files.remove)

local spec = files.write("run.json", [[{ "cluster": { "gpus": "minimum", "accelerator": "H100-SXM" },
  "model": { "architecture": "dense", "total": "70B", "layers": 80 }, "training": { "tokens": "1T", "global_batch_size": 512 } }]])
local plan, gpus
setup(function()
  plan = program.run("plan " .. spec .. " --date 2026-12-01 --format json")
  gpus = json.decode(plan.stdout, "plan").gpus_used
end)

describe("plan --gpus minimum", function()
  it("starts Megatron-LM on the GPUs that it found", function()
    local script = program.run("plan " .. spec .. " --date 2026-12-01 --format megatron")
    local found = json.decode(program.run("plan " .. spec .. " --date 2026-12-01 --framework megatron --format json").stdout, "plan").gpus_used
    assert.equal(0, script.status, script.stderr)
    local each, nodes = script.stdout:match "nproc.per.node[= ](%d+)", script.stdout:match "nnodes[= ](%d+)"
    assert.equal(found, tonumber(each) * tonumber(nodes or 1))
  end)

  it("is verified as what it found", function()
    local result = program.run("plan --verify -", plan.stdout)
    assert.equal(0, result.status, result.stdout .. result.stderr)
    assert.equal(0, program.run("plan " .. spec .. " --verify -", plan.stdout).status)
  end)

  it("is recorded with the GPUs of its plan", function()
    local record = files.write("record.jsonl", "")
    assert.equal(0, program.run("plan " .. spec .. " --date 2026-12-01 --record " .. record).status)
    local file <close> = assert(io.open(record))
    assert.equal(gpus, json.decode(file:read "a", "record").gpus_used)
  end)

  it("is compared with a number of GPUs", function()
    local other = files.write("other.json", (([[{ "cluster": { "gpus": 256, "accelerator": "H100-SXM" },
      "model": { "architecture": "dense", "total": "70B", "layers": 80 }, "training": { "tokens": "1T", "global_batch_size": 512 } }]])))
    local result = program.run("plan " .. spec .. " " .. other .. " --date 2026-12-01 --compare")
    assert.equal(0, result.status, result.stderr)
    assert.matches(tostring(gpus), result.stdout, 1, true)
  end)
end)

describe("plan --shortlist", function()
  it("is another question than --why and --explain", function()
    for _, other in ipairs { "--explain", "--why pipeline=8" } do
      local result = program.run("plan examples/specs/mixtral-8x7b.json --shortlist 3 " .. other)
      assert.same({ 2, "" }, { result.status, result.stdout })
      assert.matches("--shortlist and --" .. other:match "%a+" .. " are two questions", result.stderr, 1, true)
    end
  end)
end)

describe("an option that would do nothing", function()
  it("is refused", function()
    for arguments, why in pairs {
      ["examples/specs/mixtral-8x7b.json --explain --format csv"] = "--format csv has no place for --explain",
      ["examples/specs/mixtral-8x7b.json --explain --format megatron"] = "--format megatron has no place for --explain",
      ["--jsonl --layout free"] = "--layout is for a launch configuration",
      ["--verify examples/measuring/shortlist.json --layout free"] = "--layout is not for --verify",
    } do
      local result = program.run("plan " .. arguments, "{}\n")
      assert.same({ 2, "" }, { result.status, result.stdout }, arguments)
      assert.matches(why, result.stderr, 1, true)
    end
  end)
end)

describe("plan --jsonl --record", function()
  it("records that the policy cannot be loaded, once", function()
    local record, broken = files.write("record.jsonl", ""), files.write("broken.lua", "refuse {")
    assert.equal(6, program.run("plan --jsonl --policy " .. broken .. " --record " .. record, "{}\n{}\n").status)
    local file <close> = assert(io.open(record))
    local text = file:read "a"
    assert.equal(1, select(2, text:gsub("\n", "")))
    local decision = json.decode(text, "record")
    assert.same({ "error", 6 }, { decision.verdict, decision.exit_status })
  end)
end)
