-- SPDX-License-Identifier: Apache-2.0
-- The orders of actions against those of others: what DeepSeek's own package executes, what PyTorch dumped, digests and sequences worked out
-- elsewhere.

require "pipeplan"
local engine = require "engine"
local sha256 = require("digest").sha256

local function lines_of(path)
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  return lines
end

describe("DeepSeek's own step()", function()
  -- tests/oracles/deepseek_orders.py drove it and says what text the digests are of.
  it("executes DualPipe and DualPipeV action for action as they are here", function()
    local cases, texts = {}, {}
    for _, line in ipairs(lines_of "tests/data/deepseek_orders.txt") do
      local kind, ranks, microbatches, digest = line:match "^(%w+) (%d+) (%d+) (%x+)$"
      if kind then
        cases[#cases + 1] = { name = line, digest = digest }
        texts[#texts + 1] = engine.schedule { kind = kind, ranks = tonumber(ranks), microbatches = tonumber(microbatches) }:csv()
      end
    end
    assert.equal(96, #cases)
    for i, digest in ipairs(sha256(texts)) do assert.equal(cases[i].digest, digest, cases[i].name) end
  end)
end)

describe("the text of an order", function()
  -- The first is text-identical to PyTorch's test/distributed/pipelining/artifacts/dualpipev_4rank_10mb.csv; the others come from an
  -- independent generator that reproduces it.
  local digests = {
    { "dualpipev",        4, 10, 1261, "16ce4a29936e4c5ad774098add32489b4937942e3f5ab0108f17d2826b184529" },
    { "dualpipev",        2, 4,  226,  "ef55f1a20be514b4b5935259fce467e02847824fe0a963e161b7e1a48dec7bbf" },
    { "dualpipev",        8, 20, 5707, "4d5e1f545fb0dc527b0dd456f7f032175deefcfddffd4a1e0b9a31676d259736" },
    { "zb_v",             4, 8,  768,  "b11f519ecc9ee72f6e6f826898f1ff77d534206853fdd44c5cf37349a7b07b5d" },
    { "interleaved_1f1b", 4, 8,  512,  "60b6b19fe1c7adf362d3d002635eab84c62c4ff4c13a0214d7d04a09480bc23d" },
    { "1f1b",             4, 8,  256,  "1eecbf97575817149614af777b1ac4e33dcaa0e66aba798a3e47f4952d3ea180" },
  }

  it("has the digest that was found elsewhere", function()
    local texts = {}
    for i, case in ipairs(digests) do texts[i] = engine.schedule { kind = case[1], ranks = case[2], microbatches = case[3] }:csv() end
    for i, digest in ipairs(sha256(texts)) do
      assert.equal(digests[i][4], #texts[i], digests[i][1])
      assert.equal(digests[i][5], digest, digests[i][1])
    end
  end)
end)

describe("PyTorch's dump", function()
  -- Blanks are time steps in which PyTorch's grid lets a rank wait: only the order matters.
  local function without_blanks(line)
    local cells = {}
    for cell in line:gsub("\r", ""):gmatch "[^,]+" do cells[#cells + 1] = cell end
    return table.concat(cells, ",")
  end

  local dumps = {   -- tests/data/pytorch/README.md
    { kind = "zb_v", "ZBVZeroBubble_P4_M8", "ZBVZeroBubble_P4_M32" },
    { kind = "dualpipev", "DualPipeV_P4_M8", "DualPipeV_P4_M32" },
    { kind = "interleaved_1f1b", "Interleaved1F1B_P4_M8", "Interleaved1F1B_P4_M32", "Interleaved1F1B_P4_M10_V2", "Interleaved1F1B_P4_M3_V3",
      group = "rounds" },
    { kind = "interleaved_zero_bubble", "InterleavedZeroBubble_P4_M8", "InterleavedZeroBubble_P4_M10_V2", "InterleavedZeroBubble_P4_M3_V3" },
    { kind = "looped_bfs", "LoopedBFS_P4_M8_V2", "LoopedBFS_P3_M2_V3" },
  }

  for _, dump in ipairs(dumps) do
    it("of " .. dump.kind .. " has the same actions in the same order", function()
      for _, name in ipairs(dump) do
        local ranks, microbatches, virtual = name:match("_P(%d+)_M(%d+)_?V?(%d*)")
        local expected = {}
        for _, line in ipairs(lines_of("tests/data/pytorch/" .. name .. ".csv")) do expected[#expected + 1] = without_blanks(line) end
        local text = engine.schedule { kind = dump.kind, ranks = tonumber(ranks), microbatches = tonumber(microbatches),
                                       virtual = tonumber(virtual) or 2, group = dump.group }:csv()
        assert.equal(table.concat(expected, "\n") .. "\n", text, name)
      end
    end)
  end
end)
