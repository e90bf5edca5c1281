-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan simulate FILE.csv`: a program from elsewhere is verified before it is simulated.

require "pipeplan"
local cjson = require "cjson"

local program = require "program"

local function run(arguments)
  local result = program.run("simulate " .. arguments)
  return { status = result.status, out = result.stdout, err = result.stderr }
end

-- Simulates a text that lies in a file; its name is FILE in what comes out.
local function simulate(text, options)
  local stem = os.tmpname()
  local name = stem .. ".csv"
  local file = assert(io.open(name, "wb"))
  file:write(text)
  file:close()
  local result = run(name .. " " .. (options or ""))
  os.remove(name)
  os.remove(stem)
  local plain = name:gsub("%p", "%%%0")
  result.out, result.err = result.out:gsub(plain, "FILE"), result.err:gsub(plain, "FILE")
  return result
end

local function has(text, part)
  assert.is_truthy(text:find(part, 1, true), "no '" .. part .. "' in:\n" .. text)
end

describe("pipeplan simulate FILE.csv", function()
  -- 51: the independent simulator's time of this order (tests/data/schedule_times.txt)
  it("verifies and simulates what PyTorch dumped", function()
    local result = run "tests/data/pytorch/ZBVZeroBubble_P4_M8.csv --times 1,1,1"
    assert.equal(0, result.status)
    assert.equal("", result.err)
    has(result.out, "makespan         51 s")
    has(result.out, "4 ranks, 8 microbatches, 2 chunks per rank")
    has(result.out, "runs with 1 receive buffer for each stage input")
    assert.is_nil(result.out:find("closed form", 1, true))
  end)

  it("prints and draws a program as the schedule that it is", function()
    for _, case in ipairs { { "zb_v", "" }, { "dualpipe", "--directions 2" }, { "dualpipev", "" }, { "interleaved_1f1b", "" } } do
      local text = run(case[1] .. " --ranks 4 --microbatches 8 --format csv").out
      assert.equal(text, simulate(text, "--format csv " .. case[2]).out)
      local drawn, expected = simulate(text, case[2]).out, run(case[1] .. " --ranks 4 --microbatches 8").out
      assert.equal(expected:match("\n(rank +stages.*)$"), drawn:match("\n(rank +stages.*)$"))
      for _, format in ipairs { "svg", "trace" } do
        assert.equal(0, simulate(text, "--format " .. format .. " " .. case[2]).status, case[1] .. " as " .. format)
      end
    end
  end)

  it("writes the same JSON, without a closed form", function()
    local text = run("dualpipe --ranks 8 --microbatches 20 --format csv").out
    local value = cjson.decode(simulate(text, "--directions 2 --times 1,1,1,3 --format json").out)
    local expected = cjson.decode(run("dualpipe --ranks 8 --microbatches 20 --times 1,1,1,3 --format json").out)
    assert.equal("csv", value.schedule)
    assert.equal(cjson.null, value.closed_form)
    assert.equal(1, value.receive_buffers)
    value.schedule, value.closed_form = expected.schedule, expected.closed_form
    assert.same(expected, value)
  end)

  it("ends with 1 and the finding where the program is wrong", function()
    for text, part in pairs {
      ["0F0,0F1,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"] = "engine.duplicate_action: FILE: line 1: rank 0, action 3, 0F1: it was already run",
      ["0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"] = "engine.missing_action: FILE: line 2: rank 1 never runs the backward of stage 1, microbatch 1",
      ["0F0,0B1,0F1,0B0\n1F0,1B0,1F1,1B1\n"] = "engine.action_order: FILE: line 1: rank 0, action 2, 0B1: it comes before its F",
      ["0F0,0F1,0B0,1B0\n1F0,0B1,1F1,1B1\n"] = "engine.wrong_rank: FILE: line 1: rank 0, action 4, 1B0: stage 1 is on rank 1",
      ["0F0,0F1,0B0,0I0,0W0\n"] = "engine.duplicate_action: FILE: line 1: rank 0, action 4, 0I0: its backward was already 0B0",
      ["0F0,0B0,0W0\n"] = "in PyTorch's files of 2024 B stood for what is I now",
      ["0F0,0B0\n2F0,2B0\n"] = "engine.missing_stage: FILE: stage 1 occurs nowhere, but 2 does",
      ["0F0,0B0,0F2,0B2\n"] = "engine.missing_microbatch: FILE: microbatch 1 occurs nowhere, but 2 does",
    } do
      local result = simulate(text)
      assert.equal(1, result.status, text)
      assert.equal("", result.out)
      has(result.err, part)
      assert.matches("^pipeplan: [^\n]+\n$", result.err)
      local value = cjson.decode(simulate(text, "--format json").out)
      assert.is_false(value.legal)
      assert.matches("^engine%.", value.finding.id)
      assert.equal(cjson.null, value.makespan_seconds)
    end
  end)

  it("shows the cycle of a deadlock, rank by rank", function()
    local text = "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"
    local result = simulate(text)
    assert.equal(1, result.status)
    assert.equal("pipeplan: engine.deadlock: FILE: line 1: deadlock: rank 0 waits for 1B0 of rank 1, rank 1 waits for 0F1 of rank 0\n"
      .. "  line 1: rank 0 waits before its action 2, 0B0, for rank 1 to run 1B0\n"
      .. "  line 2: rank 1 waits before its action 2, 1F1, for rank 0 to run 0F1\n", result.err)
    local finding = cjson.decode(simulate(text, "--format json").out).finding
    assert.equal(2, #finding.waits)
    assert.same({ rank = 1, position = 2, action = "1F1", of = 0, what = "0F1", sends = false }, finding.waits[2])
    assert.same({ 0, 2, "0B0", 1 }, { finding.rank, finding.position, finding.action, finding.line })
  end)

  it("asks for the other direction where a V would wait for itself", function()
    local result = simulate(run("dualpipe --ranks 4 --microbatches 8 --format csv").out)
    assert.equal(1, result.status)
    has(result.err, "say --directions 2")
    assert.equal(1, simulate("0F0,0B0\n", "--directions 2").status)
  end)

  it("says what p2p that blocks needs", function()
    has(run("tests/data/pytorch/InterleavedZeroBubble_P4_M8.csv").out, "runs with 2 receive buffers for each stage input")
  end)

  it("ends with 2 where the file cannot be read as a program", function()
    for text, part in pairs {
      [""] = "FILE: nothing to read",
      ["0F0,0B0\n\n"] = "FILE: line 2: no actions",
      ["0F0,2BW3\n"] = "FILE: line 1, column 2, '2BW3': BW is the full backward of PyTorch's files of 2024",
      ["0F0,,0F1x\n"] = "FILE: line 1, column 3, '0F1x': expected an action",
      ["0F1000000000\n"] = "at most 65535 stages and 134217728 actions",
      ["0F0\0\n"] = "'0F0\\x00': expected an action",
      ["\27[31m\n"] = "'\\x1B[31m'",
      ["{ \"F\": 1 }\n"] = "expected an action",
    } do
      local result = simulate(text)
      assert.equal(2, result.status, text)
      assert.equal("", result.out)
      has(result.err, part)
      assert.matches("^pipeplan: [^\n]+\n$", result.err)
    end
    for arguments, part in pairs {
      ["nowhere.csv"] = "nowhere.csv cannot be read: No such file",
      ["tests/data"] = "tests/data cannot be read: Is a directory",
      ["/dev/null"] = "nothing to read",
      ["tests/data/pytorch/ZBVZeroBubble_P4_M8.csv --ranks 4"] = "--ranks: tests/data/pytorch/ZBVZeroBubble_P4_M8.csv says that itself",
      ["tests/data/pytorch/ZBVZeroBubble_P4_M8.csv --directions 3"] = "--directions must be 1 or 2, got '3'",
      ["zb_v --ranks 4 --microbatches 8 --directions 2"] = "--directions is said of a CSV",
      ["zb_v --microbatches 8"] = "missing option '--ranks'",
    } do
      local result = run(arguments)
      assert.equal(2, result.status, arguments)
      assert.equal("", result.out)
      has(result.err, part)
    end
  end)

  it("takes a line of a million cells, and a million lines", function()
    local wide = "0F0" .. (","):rep(1000000) .. "0B0\n"
    assert.equal(0, simulate(wide).status)
    local result = simulate(("0F0\n"):rep(1000000))
    assert.equal(2, result.status)
    has(result.err, "at most 65535 ranks")
  end)
end)
