-- SPDX-License-Identifier: Apache-2.0
-- plan --format verdict: what a gate reads of a plan, a word and its answer a line.

local files = require "policy_files"
local program = require "program"

teardown(files.remove)

local function run(arguments) return program.run("plan --format verdict " .. arguments) end

-- { word, answer } of each line.
local function answers(text)
  local list = {}
  for line in text:gmatch "([^\n]*)\n" do list[#list + 1] = { line:match "^([%l_]+) (.+)$" } end
  return list
end

local function column(list, i)
  local out = {}
  for n, entry in ipairs(list) do out[n] = entry[i] end
  return out
end

local deep = files.write("deep.json", [[
{ "cluster": { "gpus": 1152, "accelerator": "H100-SXM", "network": { "fabric": "ethernet", "per_gpu": "400Gbps" } },
  "model": { "architecture": "dense", "total": "70B", "layers": 96 }, "training": { "tokens": "1T", "global_batch_size": 1152 },
  "parallelism": { "pipeline": 72, "tensor": 8, "schedule": "1f1b" } }]])

describe("plan --format verdict", function()
  it("says of a plan its status, GPUs, schedule and digests", function()
    local got = run "examples/specs/deepseek-v3.json"
    local list = answers(got.stdout)
    assert.equal(0, got.status)
    assert.same({ "status", "gpus", "accelerator", "schedule", "digest", "spec" }, column(list, 1))
    assert.same({ "planned", "2048", "H800-SXM", "dualpipe" }, { table.unpack(column(list, 2), 1, 4) })
  end)

  it("prints the digest that --policy-digest demands", function()
    local digest = run("examples/specs/deepseek-v3.json --policy examples/sites/campus.lua").stdout:match "\ndigest (%x+)\n"
    assert.equal(16, #digest)
    local demand = "examples/specs/deepseek-v3.json --policy-digest " .. digest
    assert.is_not.equal(6, run(demand .. " --policy examples/sites/campus.lua").status)
    assert.equal(6, run(demand).status)
  end)

  it("says of a refusal the rule, with its place, and what would be planned", function()
    local got = run(deep)
    local list = answers(got.stdout)
    assert.equal(1, got.status)
    assert.same({ "status", "gpus", "accelerator", "digest", "spec", "reason", "instead" }, column(list, 1))
    assert.equal("rejected", list[1][2])
    assert.matches("^too_deep: P 72 is over 64 .*%[policies/default/hard_rejects.lua:%d+", list[6][2])
    assert.matches("1F1B: P 9 · M 72 · TP 8 · DP 16;.*the plan where the spec leaves pipeline free$", list[7][2])
  end)

  it("adds with --explain the nearest change with which there is a plan", function()
    local got = run(deep .. " --explain")
    assert.matches("\nnearest pipeline 48 instead of 72: planned: 1F1B at P 48, M 192, TP 8, DP 3\n$", got.stdout)
    assert.equal(0, program.run("plan " .. deep .. " --pipeline 48").status)
    assert.equal(run(deep).stdout, got.stdout:gsub("nearest [^\n]*\n", ""))
  end)

  it("says with what it would fit", function()
    local got = run "--gpus 64 --accelerator H100 --model examples/models/llama-3-70b.json --tokens 2T --tensor 1 --pipeline 2 --sequence_length 1Mi"
    assert.matches("\nreason does_not_fit: 1F1B at P 2,", got.stdout, 1, true)
    assert.matches("\nwould_fit another tensor:", got.stdout, 1, true)
  end)

  it("keeps a line a line, whatever a policy or a spec says", function()
    local policy = files.write("lines.lua", 'site "lines"\nreject { id = "never", gpus = at_least(1), message = "no {run}" }\n')
    local got = run("examples/specs/deepseek-v3.json --run \"$(printf 'a\\nstatus planned\\033[2J')\" --policy " .. policy)
    assert.equal(1, got.status)
    assert.equal(1, select(2, ("\n" .. got.stdout):gsub("\nstatus ", "")))
    assert.not_matches("\27", got.stdout, 1, true)
  end)

  it("tells by its exit status whose fault it is that there is no verdict", function()
    local policy = files.write("broken.lua", 'site "broken"\nrejct { id = "x" }\n')
    local spec = files.write("broken.json", "{")
    for arguments, status in pairs { [deep .. " --policy " .. policy] = 6, [spec] = 2, [spec .. " --policy " .. policy] = 6 } do
      local got = run(arguments)
      assert.equal(status, got.status)
      assert.equal("", got.stdout)
      assert.matches("^pipeplan: ", got.stderr)
    end
  end)
end)
