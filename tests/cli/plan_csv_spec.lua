-- SPDX-License-Identifier: Apache-2.0
-- `plan --format csv`: the planned program for PyTorch's runtime, against the tables that PyTorch's own schedule classes made
-- (tests/data/pytorch), and what is said where there is no program.

require "pipeplan"
local cjson = require "cjson"
local program = require "program"

local anyway = "plan examples/specs/measured-4xH200.json --policy examples/sites/pipeline-anyway.lua --date 2026-11-27 --global_batch_size 8"

-- The program of a schedule on 4 ranks with 8 microbatches.
local function csv(schedule, more)
  local result = program.run(anyway .. " --schedule " .. schedule .. " --format csv " .. (more or ""))
  assert.same({ 0, "" }, { result.status, result.stderr })
  return result.stdout
end

-- A table that PyTorch dumped, without the blanks for time steps in which a rank waits.
local function dumped(name)
  local lines = {}
  for line in io.lines("tests/data/pytorch/" .. name .. ".csv") do
    local cells = {}
    for cell in (line:gsub("\r$", "") .. ","):gmatch "([^,]*)," do cells[#cells + 1] = cell ~= "" and cell or nil end
    lines[#lines + 1] = table.concat(cells, ",") .. "\n"
  end
  return table.concat(lines)
end

-- A pair as two actions: the forward and then the backward.
local function apart(text) return (text:gsub("%((%d+F%d+);(%d+B%d+)%)OVERLAP_F_B", "%1,%2")) end

local function read_back(text, more)
  local name = os.tmpname()
  local handle = assert(io.open(name .. ".csv", "wb"))
  handle:write(text)
  handle:close()
  local result = program.run("simulate " .. name .. ".csv --format json " .. (more or ""))
  os.remove(name)
  os.remove(name .. ".csv")
  assert.equal(0, result.status, result.stderr)
  return cjson.decode(result.stdout)
end

describe("plan --format csv", function()
  it("is PyTorch's own order where that has the schedule", function()
    assert.equal(dumped "Interleaved1F1B_P4_M8", csv("interleaved_1f1b", "--virtual 2 --framework torch"))
    assert.equal(dumped "ZBVZeroBubble_P4_M8", csv "zb_v")
  end)

  it("writes each pair of DualPipeV as two actions, unless something overlaps them", function()
    local overlapped = dumped "DualPipeV_P4_M8"
    assert.is_truthy(overlapped:find("OVERLAP_F_B", 1, true))
    assert.is_nil(apart(overlapped):find("OVERLAP_F_B", 1, true))
    assert.equal(apart(overlapped), csv "dualpipev")
    assert.equal(apart(overlapped), csv("dualpipev", "--framework torch"))
    assert.equal(apart(overlapped), csv("dualpipev", "--framework torchtitan"))
    assert.equal(overlapped, csv("dualpipev", "--framework torch --pairs overlapped"))
    assert.equal(overlapped, csv("dualpipev", "--framework deepseek-dualpipe"))
    assert.equal(apart(overlapped), csv("dualpipev", "--framework deepseek-dualpipe --pairs split"))
    assert.is_true(read_back(csv "dualpipev").legal)
  end)

  it("leaves the pairs of both directions of DualPipe", function()
    local name = "plan examples/specs/deepseek-v3.json --date 2026-11-27 --format csv"
    local result = program.run(name)
    assert.equal(0, result.status)
    local planned = cjson.decode(program.run(name:gsub("csv", "json")).stdout)
    local value = read_back(result.stdout, "--directions 2")
    assert.equal("dualpipe", planned.schedule)
    assert.same({ planned.parallelism.pipeline, planned.microbatches }, { value.ranks, value.microbatches })
    result = program.run(name .. " --pairs split")
    assert.same({ 2, "" }, { result.status, result.stdout })
    assert.equal("pipeplan: --pairs split: the pairs of dualpipe exchange messages together, and are no program of PyTorch's\n", result.stderr)
  end)

  it("is the program that was planned, of a schedule that is planned from the times of its stages", function()
    local planned = cjson.decode(program.run(anyway .. " --schedule zb_auto --framework torch --format json").stdout)
    local value = read_back(csv("zb_auto", "--framework torch"), "--profile examples/profiles/4xH200.json --runtime torch-multi")
    -- the plan has a mean stage on cards of different speed, the profile each card's own stage
    assert.near(planned.step.pipeline_seconds, value.makespan_seconds, 0.005 * value.makespan_seconds)
  end)

  it("writes to a file, whole or not at all", function()
    local name = os.tmpname()
    assert.same({ 0, "" }, { program.run(anyway .. " --schedule zb_h1 --format csv -o " .. name).status, "" })
    assert.equal(csv "zb_h1", assert(io.open(name)):read "a")
    os.remove(name)
    assert.equal(1, program.run("plan examples/specs/7b-fits-one-gpu.json --format csv -o " .. name).status)
    assert.is_nil(io.open(name))
  end)

  it("prints nothing without a plan or a pipeline, and says why, exit 1", function()
    local result = program.run "plan examples/specs/7b-fits-one-gpu.json --format csv"
    assert.same({ 1, "" }, { result.status, result.stdout })
    assert.matches("^pipeplan: rejected: the model fits one GPU [^\n]*\n$", result.stderr)
    result = program.run "plan examples/specs/7b-fits-one-gpu.json --pipeline 1 --format csv"
    assert.same({ 1, "" }, { result.status, result.stdout })
    assert.equal("pipeplan: planned without a pipeline: there is no program to write\n", result.stderr)
  end)

  it("is what --pairs is for, exit 2", function()
    local result = program.run "plan examples/specs/deepseek-v3.json --pairs split"
    assert.same({ 2, "", "pipeplan: plan: --pairs is for --format csv\n" }, { result.status, result.stdout, result.stderr })
  end)
end)
