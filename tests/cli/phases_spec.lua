-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan plan A.json B.json --phases`: a plan for each phase of one training, and what changing over moves.

require "pipeplan"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local program = require "program"

teardown(files.remove)

local root = os.getenv "PIPEPLAN_SOURCE" or "."
local whole = string.format("%s/examples/specs/llama-3.1-405b.json", root)
local long = string.format("%s/examples/phases/llama-3.1-405b-128k.json", root)

local function told(arguments)
  local result = program.run("plan " .. arguments .. " --phases --date 2026-12-01 --format json")
  return json.decode(result.stdout ~= "" and result.stdout or "null", "phases"), result
end

local function field(change, name)
  for _, row in ipairs(change.fields) do
    if row.field == name then return row end
  end
end

describe("a training in phases", function()
  -- Llama 3 report, https://arxiv.org/abs/2407.21783: Table 4, 16,384 GPUs, TP 8, CP 16, PP 16, DP 8, sequences of 131,072, 16 M tokens a batch:
  -- 380 TFLOP/s a GPU, MFU 38 %; section 3.4.2: some 800 B tokens.
  it("has a plan a phase: Llama 3.1 405B with sequences of 131,072 tokens as it was trained", function()
    local phases, result = told(whole .. " " .. long)
    assert.equal(0, result.status)
    local first, second = phases.phases[1].plan, phases.phases[2].plan
    assert.same({ 8192, 131072 }, { first.training.sequence_length, second.training.sequence_length })
    assert.same({ 8, 16, 16, 8 }, { second.parallelism.tensor, second.parallelism.context, second.parallelism.pipeline, second.parallelism.data })
    assert.near(0.38, second.mfu_fraction, 0.2 * 0.38)
    assert.equal(16777216, second.tokens_per_step)
    assert.near(first.training_days + second.training_days, phases.total.training_days, 1e-9)
    assert.near(first.gpu_hours + second.gpu_hours, phases.total.gpu_hours, 1e-6)
  end)

  -- 405,853,388,800 parameters: 2 bytes of weights and 12 of master weights and moments each; 1/(8 · 16) of the weights on a GPU, and of the
  -- optimizer a part of 16,384, within what the ends of the pipeline hold more.
  it("says what is written and read between two of them, and what the fullest GPU gets of it", function()
    local change = told(whole .. " " .. long .. " --storage 1TB/s").changes[1]
    local parameters = 405853388800
    assert.is_true(change.moves)
    assert.same({ 1, 16 }, { field(change, "context").from, field(change, "context").to })
    assert.same({ 128, 8 }, { field(change, "data").from, field(change, "data").to })
    assert.equal(14 * parameters, change.checkpoint_bytes)
    assert.near(2 * 14 * parameters / 1e12, change.seconds, 1e-6)
    assert.near(parameters * (2 / 128 + 12 / 16384), change.most_bytes, 0.1 * change.most_bytes)
    assert.equal(json.null, told(whole .. " " .. long).changes[1].seconds)
  end)

  it("moves nothing where the layout stays", function()
    local more = files.write("more.json", '{ "training": { "tokens": "1T" } }')
    local phases = told(whole .. " " .. more)
    assert.is_false(phases.changes[1].moves)
    assert.equal(0, phases.changes[1].checkpoint_bytes)
    assert.equal(1e12, phases.phases[2].plan.training.tokens)
    local page, labels = program.run("plan " .. whole .. " " .. more .. " --phases --date 2026-12-01").stdout, {}
    assert.matches("every GPU holds what it held: nothing moves", page)
    for label in ("\n" .. page):gmatch "\n(%S.-)  " do labels[#labels + 1] = label end   -- one a part, however many lines it has
    assert.same({ "phase 1", "1 → 2", "phase 2", "in all" }, labels)
  end)

  -- 2 bytes of weights; 12 of Adam's master weights and moments, 8 of Muon's, which has one (Llama 3.1 405B: 405,853,388,800 parameters).
  it("moves what another optimizer or other replicas hold, and nothing for another order of the same layers", function()
    local function changed(training, parallelism)
      local text = { training = training, parallelism = parallelism }
      training.tokens = "1T"
      return told(whole .. " " .. files.write("more.json", json.encode(text))).changes[1]
    end
    local muon = changed { optimizer = "muon" }
    assert.same({ true, "adamw", "muon", 10 * 405853388800 },
                { muon.moves, field(muon, "optimizer").from, field(muon, "optimizer").to, muon.checkpoint_bytes })
    local replicas = changed { replicas = 4 }
    assert.same({ true, 1, 4 }, { replicas.moves, field(replicas, "replicas").from, field(replicas, "replicas").to })
    local layout = told(whole .. " " .. long).phases[1].plan
    local same = { recompute = "full", sharding = layout.sharding, micro_batch_size = layout.micro_batch_size }
    local order = changed(same, { schedule = "interleaved_zero_bubble", pipeline = 16, virtual = 4, tensor = 8,
                                  layers_per_stage = layout.layers_per_stage })
    assert.equal("interleaved_zero_bubble", field(order, "schedule").to)
    assert.same({ false, 0 }, { order.moves, order.checkpoint_bytes })
  end)

  local whole_layout = [[{ "cluster": { "gpus": 64, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
    "model": { "architecture": "dense", "total": "13B", "layers": 40 },
    "training": { "tokens": "1T", "global_batch_size": 512, "micro_batch_size": 1, "recompute": "selective", "sharding": "optimizer" },
    "parallelism": { "tensor": 2, "pipeline": 4, "schedule": "1f1b", "layers_per_stage": [10, 11, 11, 8] } }]]

  it("moves what another GPU, host, format of weights or framework holds", function()
    local first, others = files.write("first.json", whole_layout), {
      ["accelerator"] = { '"cluster": { "accelerator": "A100-SXM-80GB" }', "", "H100-SXM", "A100-SXM-80GB" },
      ["optimizer on the host"] = { '"run": "x"', ', "optimizer_offload": 0.5', 0, 0.5 },
      ["weights"] = { '"run": "x"', ', "precision": "fp8"', "bf16", "fp8" },
      ["framework"] = { '"framework": "torchtitan"', "", "none", "torchtitan" },
    }
    for name, other in pairs(others) do
      local text = string.format('{ %s, "training": { "tokens": "100B"%s } }', other[1], other[2])
      local change = told(first .. " " .. files.write("next.json", text)).changes[1]
      assert.same({ true, other[3], other[4] }, { change.moves, field(change, name).from, field(change, name).to }, name)
      assert.is_true(change.checkpoint_bytes > 0)
    end
  end)

  it("may be of the fewest GPUs, of each phase", function()
    local any = files.write("any.json", (whole_layout:gsub('"gpus": 64', '"gpus": "minimum"'):gsub(', "layers_per_stage": %b[]', "")))
    local phases, result = told(any .. " " .. files.write("next.json", '{ "training": { "tokens": "100B" } }'))
    assert.equal(0, result.status, result.stderr)
    assert.equal(phases.phases[1].plan.minimum.gpus, phases.phases[2].plan.minimum.gpus)
    assert.is_false(phases.changes[1].moves)
    assert.equal(2, select(2, told(any .. " " .. files.write("next.json", '{ "training": { "micro_batch_size": 1 } }'))).status)
  end)

  it("reads each file once, whatever its name is and whether it can be read again", function()
    local function text_of(path)
      local file <close> = assert(io.open(path))
      return file:read "a"
    end
    local specs = files.write("whole.json", (text_of(whole):gsub('"%.%./models', '"' .. root .. '/examples/models')))
    local expected = program.run("plan " .. specs .. " " .. long .. " --phases --date 2026-12-01").stdout
    local piped = program.run("plan - " .. long .. " --phases --date 2026-12-01", text_of(specs)).stdout
    assert.equal((expected:gsub(specs:gsub("%p", "%%%0"), "standard input")), piped)
    local without = files.write("phase", '{ "training": { "sequence_length": 16384 } }')   -- no tokens
    for name, input in pairs { [without] = "", ["-"] = text_of(without) } do
      local result = program.run("plan " .. specs .. " " .. name .. " --phases", input)
      assert.same({ 2, "" }, { result.status, result.stdout })
      assert.matches("training.tokens is missing: expected the tokens of this phase", result.stderr, 1, true)
    end
  end)

  it("is no total where a phase is refused, and ends with that status", function()
    local small = files.write("small.json", '{ "cluster": { "gpus": 16 }, "training": { "tokens": "1T", "global_batch_size": 128 } }')
    local phases, result = told(whole .. " " .. small)
    assert.equal(1, result.status)
    assert.same({ "planned", json.null, json.null }, { phases.phases[1].plan.status, phases.total, phases.changes[1].moves })
    assert.matches("not every phase is planned", program.run("plan " .. whole .. " " .. small .. " --phases --date 2026-12-01").stdout)
  end)

  it("has tokens of its own in each phase", function()
    local same = files.write("next.json", '{ "training": { "sequence_length": 16384 } }')
    local _, result = told(whole .. " " .. same)
    assert.same({ 2, "", "pipeplan: " .. same .. ": training.tokens is missing: expected the tokens of this phase, for each has its own\n" },
                { result.status, result.stdout, result.stderr })
    _, result = told(whole .. " " .. whole)
    assert.same({ 2, "" }, { result.status, result.stdout })
    assert.matches("is the first phase: expected another spec, with tokens of its own", result.stderr, 1, true)
  end)

  it("is of one model", function()
    local other = program.run(string.format("plan %s %s/examples/specs/mixtral-8x7b.json --phases", whole, root))
    assert.equal(2, other.status)
    assert.equal("", other.stdout)
    assert.matches("phases are of one model; .*mixtral%-8x7b.json has another than", other.stderr)
  end)

  it("is asked for by itself", function()
    for _, beside in ipairs { "--compare", "--explain", "--why pipeline=8", "--jsonl", "--format html", "--measured plan.json=a.log",
                             "--tokens 1T" } do
      local result = program.run(string.format("plan %s %s --phases %s", whole, long, beside))
      assert.equal(2, result.status, beside)
      assert.matches("%-%-phases", result.stderr)
    end
    assert.matches("%-%-phases takes two specs or more, got 1", program.run("plan " .. whole .. " --phases").stderr)
  end)
end)
