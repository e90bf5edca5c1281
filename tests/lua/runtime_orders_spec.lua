-- SPDX-License-Identifier: Apache-2.0
-- In which order runtimes post messages, against what PyTorch's and DeepSeek's own code does. tests/torch/runtime_lowering.py and
-- tests/oracles/deepseek_messages.py made the digests.

require "pipeplan"
local engine = require "engine"
local digest = require "digest"

-- Fields of each line that is not a comment.
local function rows_of(path)
  local rows = {}
  for line in io.lines(path) do
    if line:sub(1, 1) ~= "#" then
      local row = {}
      for word in line:gmatch("%S+") do row[#row + 1] = math.tointeger(tonumber(word)) or word end
      rows[#rows + 1] = row
    end
  end
  return rows
end

-- DeepSeek's messages have no names: ">" or "<" and the rank at the other end.
local function by_peer(text, placement)
  return (text:gsub("(%d+)([SR])%u+_([FB])%d+", function(stage, way, direction)
    local up = (way == "S") == (direction == "F")
    return (way == "S" and ">" or "<") .. placement[math.tointeger(stage) + (up and 2 or 0)]
  end))
end

describe("the order of messages", function()
  it("under torch-multi is PyTorch's, message for message", function()
    local rows, texts = rows_of "tests/data/pytorch_lowering.txt", {}
    for i, row in ipairs(rows) do
      local schedule = assert(engine.schedule { kind = row[1], ranks = row[2], microbatches = row[3], virtual = row[4] })
      texts[i] = assert(schedule:lowered { runtime = "torch-multi", pairs = row[5], receives = row[6] })
    end
    assert.is_true(#rows >= 240)
    for i, sum in ipairs(digest.sha256(texts)) do assert.equal(rows[i][7], sum, table.concat(rows[i], " ")) end
  end)

  it("under deepseek is that of DeepSeek's step(), group for group", function()
    local rows, texts = rows_of "tests/data/deepseek_messages.txt", {}
    for i, row in ipairs(rows) do
      local schedule = assert(engine.schedule { kind = row[1], ranks = row[2], microbatches = row[3] })
      texts[i] = by_peer(assert(schedule:lowered { runtime = "deepseek" }), schedule:info().placement)
    end
    assert.is_true(#rows >= 54)
    for i, sum in ipairs(digest.sha256(texts)) do assert.equal(rows[i][4], sum, table.concat(rows[i], " ")) end
  end)
end)
