-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan facts`: tables to read and schemas to check with.

local json = require "cjson"
local program = require "program"

describe("pipeplan facts", function()
  local function facts(topic)
    local result = program.run("facts " .. topic)
    assert.equal("", result.stderr)
    assert.equal(0, result.status)
    return result.stdout
  end

  it("prints every field that a rule may read", function()
    local text = facts "fields"
    assert.matches("\npipeline_parallel +candidate +integer +rank +1 to 10000000 +P: pipeline depth\n", text)
    assert.matches("\ntokens +request ", text)
  end)

  it("has the keys of every framework as data, of one that is another with changes too", function()
    local count = 0
    for _, entry in ipairs(json.decode(facts "frameworks --format json").entries) do
      count = count + 1
      assert.is_true(#entry.keys > 0, entry.name)
    end
    assert.is_true(count >= 12)
  end)

  it("prints every field of a spec with its option", function()
    assert.matches("\ncluster%.network%.per_gpu +%-%-per_gpu +quantity +byte/s ", facts "spec")
  end)

  it("prints the schedules", function()
    local text = facts "schedules"
    assert.matches("\ndualpipe +DualPipe +dualpipe +bidirectional +1 +2 ", text)
    assert.matches("\ninterleaved_1f1b +interleaved 1F1B ", text)
  end)

  it("prints the catalogues, with a source for each figure", function()
    assert.matches("\nH100%-SXM +hopper +79%.6 GiB +989 +1979 +3350 GB/s +8 × 450 GB/s +nvlink +400 Gb/s +infiniband +%w", facts "accelerators")
    assert.matches("\ntogether +1.3 GiB +cluster.overhead", facts "overheads")
    assert.matches("\nhopper +50 GB/s +77 GB/s +40 %% +PCIe 5", facts "hosts")
    assert.matches("\nnvlink +scale_up +80 %% +2 µs +%w", facts "links")
    assert.matches("\nnccl_alltoall +NCCL or RCCL all%-to%-all +no +yes ", facts "kernels")
    assert.matches("\ndeepep +DeepEP V2 +yes +yes +2%-2048 +hopper blackwell +infiniband roce ", facts "kernels")
    assert.matches("\ndeepseek%-dualpipe +DeepSeek DualPipe package +dualpipe dualpipev ", facts "frameworks")
  end)

  it("prints tables whose lines have no trailing space and a last newline", function()
    for _, topic in ipairs { "accelerators", "fields", "frameworks", "hosts", "kernels", "links", "overheads", "schedules", "spec" } do
      local text = facts(topic)
      assert.is_nil(text:find(" \n", 1, true))
      assert.equal("\n", text:sub(-1))
    end
  end)

  it("prints JSON Schemas that an independent validator takes, and the examples satisfy", function()
    local script = [[
import glob, json, sys
from jsonschema import Draft202012Validator as Validator
schema = json.load(open(sys.argv[1]))
Validator.check_schema(schema)
count = 0
for name in sys.argv[2:]:
    Validator(schema).validate(json.load(open(name)))
    count += 1
for bad in ({"cluster": {"gpu": 8}}, {"cluster": {"gpus": 0}}, {"training": {"tokens": "ten trillion"}}, {"training": {"recompute": ["norn"]}}, []):
    assert list(Validator(schema).iter_errors(bad)), bad
print(count)]]
    local name = os.tmpname()
    local handle = assert(io.open(name, "wb"))
    handle:write(facts "schema spec")
    handle:close()
    local pipe = assert(io.popen(string.format("cd '%s' && env -u LD_PRELOAD python3 -c '%s' %s examples/specs/*.json examples/specs/rules/*.json 2>&1",
                                               os.getenv "PIPEPLAN_SOURCE", script, name)))
    local output = pipe:read("a")
    pipe:close()
    os.remove(name)
    assert.is_true((tonumber(output) or 0) >= 18, output)
  end)

  it("prints the schema of a plan", function()
    assert.matches('"%$schema": "https://json%-schema%.org/draft/2020%-12/schema"', facts "schema plan")
  end)

  it("prints the schema of a profile", function()
    assert.matches('"title": "pipeplan profile"', facts "schema profile", 1, true)
  end)

  it("says what is wrong with a topic, on stderr alone", function()
    for arguments, message in pairs {
      [""] = "facts: expected a topic: accelerators, completion, fields, frameworks, hosts, kernels, links, man, overheads, primitives, schedules, schema, "
             .. "spec, statements",
      ["feilds"] = "facts: no topic 'feilds', did you mean 'fields'?",
      ["schema"] = "facts schema: expected one of calibration, decision, kernels, plan, profile, spec, times",
      ["schema x"] = "facts schema: expected one of calibration, decision, kernels, plan, profile, spec, times: got 'x'",
      ["fields x"] = "facts fields: one argument too many: 'x'",
    } do
      local result = program.run("facts " .. arguments)
      assert.equal("pipeplan: " .. message .. "\n", result.stderr)
      assert.equal("", result.stdout)
      assert.equal(2, result.status)
    end
  end)
end)
