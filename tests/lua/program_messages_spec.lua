-- SPDX-License-Identifier: Apache-2.0
-- Schedule programs with communication, as PyTorch's runtime dumps them, and as spreadsheets save them. The small ones are our own, written
-- from what _add_send_recv does (torch/distributed/pipelining/schedules.py): a receive stands where its sender's action has run.

require "pipeplan"
local failure = require "pipeplan.base.failure"
local program = require "pipeplan.input.program"

local function load(text, directions)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  local out = table.pack(failure.try(program.load, path, directions))
  os.remove(path)
  if not out[1] then return nil, tostring(out[2]):gsub("^.-/lua_%w+", "FILE") end
  if not out[2] then return nil, out[3].id .. ": " .. out[3].message:gsub("^[^ ]+: ", ""), out[3] end
  return out[2], out[3], out[4]
end

-- Two ranks, a stage each, two microbatches, 1F1B: as the runtime lowers it.
local two = "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\n"
  .. "1UNSHARD,1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD\n"

-- A V: stages 0 and 3 on rank 0, 1 and 2 on rank 1. Between 1 and 2 nothing is sent.
local v = "0F0,0SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,0RECV_B0,0B0\n1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2B0,1B0,1SEND_B0\n"

describe("a program with communication", function()
  it("is the program without it, and its messages are counted", function()
    local schedule, info, talk = load(two)
    assert.equal("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", schedule:csv())
    assert.same({ 2, 2, 2 }, { info.ranks, info.stages, info.microbatches })
    assert.same({ messages = 4, order = "early" }, talk)   -- two forward, two backward
    assert.same({ messages = 4, order = "early" }, select(3, load(v)))
    assert.is_nil((select(3, load "0F0,0B0\n1F0,1B0\n")))
  end)

  it("may have an order of its own, if it is legal", function()
    -- rank 1 receives both first: rank 0 sends in the same order
    local early = two:gsub("1RECV_F0,1F0,1RECV_F1", "1RECV_F0,1RECV_F1,1F0")
    assert.same({ messages = 4, order = "other" }, select(3, load(early)))
    local deferred = two:gsub("1F0,1RECV_F1,1B0,1SEND_B0,1F1", "1F0,1B0,1SEND_B0,1RECV_F1,1F1")
    assert.same({ messages = 4, order = "before_use" }, select(3, load(deferred)))
  end)

  it("names what is wrong with it: rank, line, column, cell", function()
    for change, expected in pairs {
      [{ "0SEND_F1,", "" }] = "program.unmatched_message: line 2: column 4, 1RECV_F1: rank 0 never sends it",
      [{ "1RECV_F1,", "" }] = "program.unmatched_message: line 1: column 5, 0SEND_F1: rank 1 never receives it",
      [{ "0SEND_F1,", "0SEND_F1,0SEND_F1," }] = "program.message_twice: line 1: column 6, 0SEND_F1: for the second time",
      [{ "0SEND_F1", "1SEND_F1" }] = "program.message_elsewhere: line 1: column 5, 1SEND_F1: stage 1 is rank 1's",
      [{ "0SEND_F1", "0SEND_F7" }] = "program.no_such_message: line 1: column 5, 0SEND_F7: the program has stages 0 to 1 and microbatches 0 to 1",
      [{ "0SEND_F1", "0SEND_B1" }] = "program.needless_message: line 1: column 5, 0SEND_B1: there is no stage at the other end",
      [{ "0F1,0SEND_F1", "0SEND_F1,0F1" }] = "program.message_too_early: line 1: column 4, 0SEND_F1: before the action that makes it",
      [{ "0RECV_B0,0B0", "0B0,0RECV_B0" }] = "program.missing_message: line 1: 0B0 runs before its 0RECV_B0",
      [{ "0UNSHARD,0F0", "0F0,0UNSHARD" }] = "program.not_gathered: line 1: 0F0 runs where stage 0 is not gathered (0UNSHARD)",
      [{ "0B1,0REDUCE_GRAD", "0REDUCE_GRAD,0B1" }] = "program.reduced_early: line 1: column 9, 0REDUCE_GRAD: before 0B1, whose gradients it leaves out",
      [{ "1RECV_F0,1F0,1RECV_F1", "1RECV_F1,1RECV_F0,1F0" }] =
        "program.message_order: line 2: column 2, 1RECV_F1: rank 0 sends 0SEND_F0 there (its column 3): without tags the one is taken for the other",
    } do
      local text = two:gsub(change[1]:gsub("%p", "%%%0"), change[2], 1)
      local schedule, message, finding = load(text)
      assert.is_nil(schedule)
      assert.equal(expected, message)
      assert.equal(tonumber(message:match "line (%d)"), finding.line)
    end
    assert.equal("program.needless_message: line 2: column 3, 1SEND_F0: both stages are on this rank",
                 (select(2, load((v:gsub("2F0", "1SEND_F0,2F0", 1))))))
  end)

  it("that waits for itself is a deadlock, whoever waits first", function()
    -- two microbatches in a V: each rank waits for what the other sends behind its own wait
    local text = "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n"
    local schedule, message = load(text)
    assert.is_nil(schedule)
    assert.equal("program.message_deadlock: line 1: column 3, 0RECV_B0: waits for rank 1, which waits itself: no rank goes on", message)
  end)

  it("whose actions are wrong is told that first, at its place in the file", function()
    assert.matches("^engine.missing_action: ", (select(2, load((two:gsub(",0B1", ""))))))
    assert.matches("^engine", (select(2, load((two:gsub("0B0", "0B1"))))))
    assert.matches("FILE: line 2, column 3, '1X0': expected an action", (select(2, load((two:gsub("1F0", "1X0"))))))
  end)
end)

describe("a program that a spreadsheet saved", function()
  local bare = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"

  local function is(text, expected)
    local schedule, problem = load(text)
    assert.equal(expected or bare, schedule and schedule:csv() or problem)
  end

  it("may have a byte order mark, quotes, CRLF, CR, tabs or semicolons", function()
    is("\xEF\xBB\xBF" .. bare)
    is((bare:gsub("[^,\n]+", '"%0"')))
    is((bare:gsub("\n", "\r\n")))
    is((bare:gsub("\n", "\r")))
    is((bare:gsub(",", "\t")))
    is((bare:gsub(",", ";")))
    is((bare:gsub(",", " ; ")))
    is("\xEF\xBB\xBF" .. (bare:gsub("[^,\n]+", '"%0"'):gsub(",", ";"):gsub("\n", "\r\n")))
    is(bare .. ",,,\r\n,,,\n")
    is("0F0,,0F1,0B0,0B1,,\n,1F0,1B0,1F1,1B1,,\n,,,,,,\n")
  end)

  it("may have pairs, whose semicolon parts no cells", function()
    local pairs_of = "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"
    is(pairs_of, pairs_of)
    is((pairs_of:gsub(",", ";")), pairs_of)
    is('"0F0";"(0F1;0B0)OVERLAP_F_B";0B1\r\n', pairs_of)
  end)

  it("has its communication checked too", function()
    local saved = "\xEF\xBB\xBF" .. (two:gsub("[^,\n]+", '"%0"'):gsub(",", ";"):gsub("\n", "\r\n"))
    assert.same({ messages = 4, order = "early" }, select(3, load(saved)))
  end)

  it("keeps its columns in messages", function()
    assert.matches("line 2, column 3, '1X1': expected an action", (select(2, load((bare:gsub("1F1", "1X1"):gsub(",", ";"))))))
    assert.matches("line 1, column 2, '\"0F1': expected an action", (select(2, load((bare:gsub("0F1", '"0F1'))))))
  end)

  it("as UTF-16, or as PyTorch's printed grid, is refused in words", function()
    assert.equal("FILE: UTF-16: expected a CSV of plain text or UTF-8", (select(2, load "\xFF\xFE0\0F\0000\0")))
    assert.matches("PyTorch's printed grid %(a column a rank%): expected its CSV", (select(2, load "        Rank 0 Rank 1\nStep 0: 0F0    1F0\n")))
  end)
end)

-- What went over its bytes once for each of them would need minutes here.
describe("a program of a megabyte", function()
  it("is read in a time that follows its length", function()
    for _, text in ipairs { (" "):rep(1e6) .. '"', '"' .. (" "):rep(1e6) .. "x", ("("):rep(1e6) .. "\t", (";"):rep(1e6), (","):rep(1e6) .. '"',
                            ("\t"):rep(1e6), ("9"):rep(1e6) .. "SEND_F0", ("\r"):rep(1e6), ("0SEND_F0,"):rep(1e5), ("\n,"):rep(5e5) } do
      assert.is_nil((load(text)))
    end
  end)

  it("and of many messages is checked in a time that follows their number", function()
    local first, second = {}, {}
    for i = 0, 9999 do
      first[#first + 1] = ("0F%d,0SEND_F%d,0RECV_B%d,0B%d"):format(i, i, i, i)
      second[#second + 1] = ("1RECV_F%d,1F%d,1B%d,1SEND_B%d"):format(i, i, i, i)
    end
    assert.equal(20000, select(3, load(table.concat(first, ",") .. "\n" .. table.concat(second, ",") .. "\n")).messages)
  end)
end)
