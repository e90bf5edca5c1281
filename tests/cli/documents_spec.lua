-- SPDX-License-Identifier: Apache-2.0
-- Each JSON document says in "$schema" what it is, in which version; a schema says the same in "$id"; what reads one looks.

require "pipeplan"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local monitoring = require "monitoring"
local program = require "program"

teardown(files.remove)

local plan_text = monitoring.plan()

local function document(arguments, input)
  local result = program.run(arguments, input)
  assert.is_true(result.status <= 1, result.stderr)
  return json.decode(result.stdout, arguments)
end

describe("a JSON document", function()
  for kind, arguments in pairs {
    plan = "plan examples/specs/mixtral-8x7b.json --date 2026-12-01 --format json",
    simulation = "simulate 1f1b --ranks 4 --microbatches 8 --format json",
    findings = "policy check --policy examples/sites/aws-p5.lua --date 2026-12-01 --format json",
    policy = "policy show --date 2026-12-01 --format json",
    changes = "policy diff default examples/sites/aws-p5.lua examples/specs/mixtral-8x7b.json --date 2026-12-01 --format json",
    comparison = "plan examples/specs/mixtral-8x7b.json examples/specs/qwen3-235b.json --compare --date 2026-12-01 --format json",
    phases = "plan examples/specs/llama-3.1-405b.json examples/phases/llama-3.1-405b-128k.json --phases --date 2026-12-01 --format json",
    facts = "facts kernels --format json",
  } do
    it("of kind " .. kind .. " says so", function()
      assert.equal("urn:pipeplan:" .. kind .. ":1", document(arguments)["$schema"])
    end)
  end

  it("of kind monitoring says so", function()
    local plan = files.write("plan.json", plan_text)
    local told = document("monitor " .. plan .. " - --format json", monitoring.log(1, 100, 27.2))
    assert.equal("urn:pipeplan:monitoring:1", told["$schema"])
  end)

  it("says so in each line of a stream", function()
    local result = program.run("plan --jsonl --date 2026-12-01", '{"cluster":{"gpus":64,"accelerator":"H100-SXM"},"training":{"tokens":"1T"},'
      .. '"model":{"architecture":"dense","total":"7B","layers":32}}\n')
    assert.equal("urn:pipeplan:plan:1", json.decode(result.stdout, "line")["$schema"])
  end)

  it("has a schema of that name", function()
    for _, kind in ipairs { "spec", "plan", "profile", "times", "kernels", "calibration" } do
      assert.equal("urn:pipeplan:" .. kind .. ":1", document("facts schema " .. kind)["$id"])
    end
    assert.equal("urn:pipeplan:plan:1", document("facts schema plan").properties["$schema"].const)
  end)

  it("holds the catalogue's facts, each with its source", function()
    for _, topic in ipairs { "accelerators", "frameworks", "hosts", "kernels", "links", "overheads", "schedules" } do
      local facts = document("facts " .. topic .. " --format json")
      assert.equal(topic, facts.topic)
      for _, entry in ipairs(facts.entries) do assert.is_string(entry.source, topic) end
    end
    -- H100-SXM's data sheet: 989.4 TFLOP/s in bf16 without sparsity
    local found
    for _, entry in ipairs(document("facts accelerators --format json").entries) do found = entry.name:find "^H100%-SXM" and entry or found end
    assert.is_true(math.abs(found.flops.bf16 - 989e12) < 1e12)
  end)
end)

describe("what reads a JSON document", function()
  -- The plan with another "$schema".
  local function plan_of(schema)
    local plan = json.decode(plan_text, "plan")
    plan["$schema"] = schema
    return files.write("other.json", json.encode(plan))
  end

  it("takes a plan that says nothing of itself, from before plans did", function()
    assert.equal(0, program.run("monitor " .. plan_of(nil) .. " -", monitoring.log(1, 100, 27.2)).status)
  end)

  it("takes no plan of another version", function()
    local file = plan_of "urn:pipeplan:plan:2"
    local result = program.run("monitor " .. file .. " -", monitoring.log(1, 100, 27.2))
    assert.equal(2, result.status)
    assert.equal("", result.stdout)
    assert.matches(file .. ": $schema is urn:pipeplan:plan:2: this pipeplan reads version 1 of a plan, not 2", result.stderr, 1, true)
  end)

  it("takes no document of another kind", function()
    local result = program.run("monitor " .. plan_of "urn:pipeplan:simulation:1" .. " -", monitoring.log(1, 100, 27.2))
    assert.equal(2, result.status)
    assert.matches("$schema is urn:pipeplan:simulation:1: expected a plan (urn:pipeplan:plan:1)", result.stderr, 1, true)
    local spec = files.write("spec.json", '{"$schema":"urn:pipeplan:plan:1","cluster":{"gpus":8}}')
    for _, arguments in ipairs { "plan " .. spec, "policy diff default default " .. spec } do
      result = program.run(arguments)
      assert.equal(2, result.status, arguments)
      assert.matches("$schema is urn:pipeplan:plan:1: expected a spec (urn:pipeplan:spec:1)", result.stderr, 1, true)
    end
  end)

  it("takes what names a schema for an editor", function()
    local spec = files.write("editor.json", '{"$schema":"./spec.schema.json","cluster":{"gpus":64,"accelerator":"H100-SXM"},'
      .. '"training":{"tokens":"1T"},"model":{"architecture":"dense","total":"7B","layers":32}}')
    assert.is_true(program.run("plan " .. spec .. " --date 2026-12-01").status <= 1)
  end)
end)
