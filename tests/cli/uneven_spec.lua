-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan simulate FILE.csv` of programs whose ranks hold unequally many stages: every runtime that runs them, every format.

require "pipeplan"
local cjson = require "cjson"
local program = require "program"

local function with_file(suffix, text, use)
  local stem = os.tmpname()
  local file = assert(io.open(stem .. suffix, "wb"))
  file:write(text)
  file:close()
  local result = use(stem .. suffix)
  os.remove(stem)
  os.remove(stem .. suffix)
  return result
end

local function simulate(text, options)
  return with_file(".csv", text, function(name) return program.run("simulate " .. name .. " " .. options) end)
end

local function output_of(text, options)
  local result = simulate(text, options)
  assert.equal(0, result.status, result.stderr)
  assert.equal("", result.stderr)
  return result.stdout
end

-- Stages 0, 1 and 4 on rank 0, 2 on rank 1, 3 on rank 2; one microbatch, so that each action waits for the one before.
local way = "0F0,1F0,4F0,4B0,1B0,0B0\n2F0,2B0\n3F0,3B0\n"

describe("a program whose ranks hold unequally many stages", function()
  -- 5 stages of 3 s, and 6 hops: 1 → 2 → 3 → 4 and back
  it("takes the way of its microbatch under every runtime, and says which runtimes do not run it", function()
    for _, options in ipairs { "ideal", "torch-multi", "torch-multi --queues per_peer", "torch-multi --pairs split",
                               "torch-multi --pairs overlapped --queues per_peer" } do
      local value = cjson.decode(output_of(way, "--p2p 0.5 --format json --runtime " .. options))
      assert.equal(18, value.makespan_seconds, options)
      assert.same({ 9, 15, 15 }, value.idle_per_rank_seconds)
      assert.same({ 3, 1, 1 }, value.peak_activations)
    end
    for name, words in pairs { ["torch-single"] = "torch-single runs gpipe and 1f1b, not csv", deepseek = "deepseek runs dualpipe and dualpipev, not csv",
                               pipeplan = "pipeplan runs dualpipe and dualpipev, not csv" } do
      local result = simulate(way, "--runtime " .. name)
      assert.equal(1, result.status)
      assert.is_truthy(result.stderr:find("engine.runtime: " .. words, 1, true), result.stderr)
    end
  end)

  it("is drawn with a large letter for the first chunk of each rank only", function()
    local text = output_of(way, "--p2p 0.5")
    assert.is_truthy(text:find("3 ranks, 1 microbatch, up to 3 chunks per rank", 1, true), text)
    -- a column is 0.2 s: 1 s for F, 2 s for B, 4.5 s in which stages 2 and 3 run forward, 7.5 s backward
    assert.is_truthy(text:find("rank 0 F0---f0---" .. ("."):rep(18) .. "f0---b0--------" .. ("."):rep(27) .. "b0--------B0--------\n", 1, true), text)
    assert.is_truthy(text:find("rank 2 " .. ("."):rep(20) .. "F0---" .. ("."):rep(20) .. "B0--------", 1, true), text)
    local picture = output_of(way, "--format svg")
    for _, part in ipairs { 'class="F box".-F0, stage 0:', 'class="f box"[^>]*><title>F0, stage 1:', 'class="f box"[^>]*><title>F0, stage 4:',
                            'class="F box"[^>]*><title>F0, stage 2:', 'class="B box"[^>]*><title>B0, stage 3:' } do
      assert.is_truthy(picture:find(part), part)
    end
  end)

  it("has a flow in the trace for each hop between ranks", function()
    local sends, receives, labels = {}, {}, {}
    for _, event in ipairs(cjson.decode(output_of(way, "--format trace")).traceEvents) do
      if event.ph == "s" then sends[#sends + 1] = event.pid end
      if event.ph == "f" then receives[#receives + 1] = event.pid end
      if event.name == "process_labels" then labels[#labels + 1] = event.args.labels end
    end
    assert.same({ 0, 0, 1, 1, 2, 2 }, sends)   -- 1F, 4B; 2F, 2B; 3F, 3B
    assert.same({ 0, 0, 1, 1, 2, 2 }, receives)
    assert.same({ "stage 0,1,4", "stage 2", "stage 3" }, labels)
  end)

  it("is written as it was read", function()
    assert.equal(way, output_of(way, "--format csv"))
  end)

  -- Rank 0 holds stages 0 and 2. 0F0 to 1, 1F0 to 2, 2F0 to 3; the pair of 0F1 with 2B0, FB[0][1] = 5, to 8; 1B0 on rank 1 to 10, 1F1 to 11,
  -- for it comes behind; 0B0 to 12; 2F1 to 13, 2B1 to 15, 1B1 to 17, 0B1 to 19.
  it("takes the seconds of pairs by the chunks that the rank of the forward holds", function()
    local pairs_of = "0F0,2F0,(0F1;2B0)OVERLAP_F_B,0B0,2F1,2B1,0B1\n1F0,1B0,1F1,1B1\n"
    local function timed(list)
      return with_file(".json", '{"F": 1, "I": 1, "W": 1, "FB": ' .. list .. "}", function(name)
        return simulate(pairs_of, "--format json --times " .. name)
      end)
    end
    local result = timed "[[9, 5], [9], [9, 9]]"
    assert.equal(0, result.status, result.stderr)
    assert.equal(19, cjson.decode(result.stdout).makespan_seconds)
    result = timed "[[9, 5], [9, 9], [9, 9]]"
    assert.equal(2, result.status)
    assert.is_truthy(result.stderr:find("FB[1] has 2 entries: expected 1, one per chunk of its rank", 1, true), result.stderr)
  end)
end)

-- F 1 s, B 2 s: F0 f0, then the pair of F1 and b0, of f1 and B0, then b1 B1; a column is a sixth of a second.
describe("pairs whose halves run in turn", function()
  local text = "0F0,1F0,(0F1;1B0)OVERLAP_F_B,(1F1;0B0)OVERLAP_F_B,1B1,0B1\n"
  local function row(...)
    local parts = { ... }
    for i, part in ipairs(parts) do parts[i] = part .. ("-"):rep((part:lower():find "f" and 6 or 12) - #part) end
    return "\nrank 0 " .. table.concat(parts) .. "\n"
  end

  it("are drawn as what they are", function()
    for _, options in ipairs { "", " --pairs split" } do
      local drawn = output_of(text, "--runtime torch-multi" .. options)
      assert.is_truthy(drawn:find(row("F0", "f0", "F1", "b0", "f1", "B0", "b1", "B1"), 1, true), drawn)
      assert.is_nil(drawn:find("overlapped with", 1, true))
      local picture = output_of(text, "--format svg --runtime torch-multi" .. options)
      assert.is_truthy(picture:find("F1, stage 0: 2 s to 3 s", 1, true))
      assert.is_truthy(picture:find("B0, stage 1: 3 s to 5 s", 1, true))
      assert.is_nil(picture:find("overlapped pair", 1, true))
      for _, event in ipairs(cjson.decode(output_of(text, "--format trace --runtime torch-multi" .. options)).traceEvents) do
        if event.ph == "X" then assert.equal(0, event.tid) end
      end
    end
    assert.is_truthy(output_of(text, "--runtime torch-multi --pairs overlapped"):find("4&0 forward of 4 overlapped with", 1, true))
    assert.is_truthy(output_of(text, "--format svg"):find("overlapped pair", 1, true))
  end)

  -- Rank 0's pair needs 1B0 of rank 1 only when its F has run: 0F0 to 1, 0F1 to 2, the pair's 0F2 to 3. Rank 1: 1F0 to 2, 1B0 to 4. The B is from 4 to 6.
  it("say when each half ran, where the second waited inside", function()
    local picture = output_of("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n", "--format svg --runtime torch-multi --queues per_peer")
    assert.is_truthy(picture:find("F2, stage 0: 2 s to 3 s", 1, true))
    assert.is_truthy(picture:find("B0, stage 0: 4 s to 6 s", 1, true))
  end)
end)

describe("a program of one rank or of one stage", function()
  for text, makespan in pairs { ["0F0,0B0\n"] = 3, ["0F0,0F1,0B1,0B0\n"] = 6, ["0F0,1F0,2F0,2I0,1I0,0I0,2W0,1W0,0W0\n"] = 9 } do
    it("runs " .. text:gsub("\n", ""), function()
      for _, runtime in ipairs { "ideal", "torch-multi", "torch-multi --queues per_peer" } do
        for _, format in ipairs { "text", "svg", "trace", "csv" } do
          output_of(text, "--p2p 7 --runtime " .. runtime .. " --format " .. format)
        end
        local value = cjson.decode(output_of(text, "--p2p 7 --format json --runtime " .. runtime))
        assert.equal(makespan, value.makespan_seconds)   -- no hop, and no wait
        assert.equal(0, value.bubble.fraction)
      end
    end)
  end
end)
