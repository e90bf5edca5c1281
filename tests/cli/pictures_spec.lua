-- SPDX-License-Identifier: Apache-2.0
-- The pictures of `pipeplan simulate`, checked by readers that are not ours: Python's JSON and XML parsers (check_trace.py, check_svg.py),
-- against counts that follow from the schedule by hand.

require "pipeplan"
local program = require "program"

-- What a checker prints of a picture.
local function checked(checker, arguments)
  local name = os.tmpname()
  local result = program.run("simulate " .. arguments .. " -o " .. name)
  assert.equal(0, result.status, result.stderr)
  local pipe = assert(io.popen(string.format("env -u LD_PRELOAD python3 '%s/tests/cli/%s' <%s 2>&1", os.getenv "PIPEPLAN_SOURCE", checker, name)))
  local output = pipe:read("a")
  pipe:close()
  os.remove(name)
  return (output:gsub("\n$", ""))
end

describe("simulate --format trace", function()
  -- slices: F and B of each microbatch and stage, pairs as two; flows: each chain of S stages hands M activations and M gradients over
  -- S − 1 times, less those between two stages of one rank; peaks: P − r for 1F1B, P + 1 for DualPipe, 2P for PyTorch's ZB-V,
  -- M for GPipe (Narayanan et al. 2021; deepseek-ai/DualPipe README; Qi et al. 2405.15362; Huang et al. 2019)
  for arguments, expected in pairs {
    ["1f1b --ranks 4 --microbatches 8"] = "64 48 4 4,3,2,1",
    ["gpipe --ranks 2 --microbatches 3 --times 0.001,0.002,0.0005 --p2p 1e-6"] = "12 6 2 3,3",
    ["zb_v --ranks 4 --microbatches 8"] = "192 96 4 8,8,8,8",                       -- F, I, W of 8 stages; 7 hand-overs, 1 local
    ["dualpipe --ranks 8 --microbatches 20 --times 1,1,1,3"] = "%d+ 280 8 9,9,9,9,9,9,9,9",
    ["dualpipev --ranks 2 --microbatches 4"] = "%d+ 16 2 5,5",                      -- 3 hand-overs, 1 local; 2P + 1
    ["interleaved_1f1b --ranks 2 --microbatches 4 --times 0.1,0.3,0.7"] = "32 24 2 %d,%d",
    ["1f1b --ranks 3 --microbatches 5 --times 0,0,0"] = "30 20 3 3,2,1",
    ["gpipe --ranks 1 --microbatches 2"] = "4 0 1 2",
  } do
    it("is a sound trace of " .. arguments, function()
      assert.matches("^" .. expected .. "$", checked("check_trace.py", arguments .. " --format trace"))
    end)
  end

  it("puts the two halves of a pair on two threads, at the same time", function()
    local trace = program.run("simulate dualpipev --ranks 2 --microbatches 4 --format trace").stdout
    -- rank 0's first pair: (0F3;3B1), after F F F, F I W, F: at 7 s for 3 s
    assert.is_truthy(trace:find('"pid":0,"tid":0,"cat":"F","name":"F3","ts":7000000.000,"dur":3000000.000,"args":{"stage":0,', 1, true))
    assert.is_truthy(trace:find('"pid":0,"tid":1,"cat":"B","name":"B1","ts":7000000.000,"dur":3000000.000,"args":{"stage":3,', 1, true))
  end)

  it("has a limit, and says so", function()
    local result = program.run "simulate dualpipev --ranks 64 --microbatches 16384 --format trace"
    assert.equal(2, result.status)
    assert.equal("", result.stdout)
    assert.matches("^pipeplan: %-%-format trace shows at most 1,000,000 actions, and this schedule has [%d,]+\n$", result.stderr)
    result = program.run "simulate 1f1b --ranks 4 --microbatches 100 --times 1e6,1e6,1e6 --format trace"
    assert.equal(2, result.status)
    assert.matches("counts nanoseconds, which ends at 104 days", result.stderr)
  end)
end)

describe("simulate --format svg", function()
  -- letters of sans-serif fonts are on average 0.6 em wide: 6.6 px at 11 px, 5.4 at 9
  it("writes on an action only what fits it", function()
    local seen = {}
    for microbatches = 8, 36, 4 do
      local text = program.run(string.format("simulate 1f1b --ranks 4 --microbatches %d --format svg", microbatches)).stdout
      for width, small, words in text:gmatch('<rect class="F[^>]- width="([%d.]+)"[^\n]-</title></rect><text class="on([^"]*)"[^>]*>([^<]+)<') do
        assert.is_true(#words * (small == "" and 6.6 or 5.4) <= tonumber(width), microbatches .. ": " .. words .. " in " .. width)
        seen[small .. (words:find "%a" and "letter" or "")] = true
      end
    end
    assert.is_true(seen["letter"] and (seen[" smallletter"] or seen[" small"]))
  end)

  -- P × M × V of each kind; DualPipe's 8 × 20 × 2 / 2 forwards, its backwards whole (B) or parted (I and W)
  for arguments, expected in pairs {
    ["1f1b --ranks 4 --microbatches 8"] = "B 32, F 32",
    ["zb_h1 --ranks 4 --microbatches 8"] = "F 32, I 32, W 32",
    ["zb_v --ranks 8 --microbatches 16 --times 0.001,0.003,0.00002 --p2p 0.0001"] = "F 256, I 256, W 256",
    ["dualpipe --ranks 8 --microbatches 20 --times 1,1,1,3"] = "B %d+, F 160, I %d+, W %d+",
    ["gpipe --ranks 1 --microbatches 1"] = "B 1, F 1",
    ["1f1b --ranks 4 --microbatches 8 --times 0,0,0"] = "B 32, F 32",
    ["1f1b --ranks 4 --microbatches 8 --times 1e9,1e-9,0"] = "B 32, F 32",
    ["interleaved_1f1b --ranks 64 --microbatches 64 --times 1e-9,1e-9,1e-9"] = "B 8192, F 8192",
  } do
    it("is a sound picture of " .. arguments, function()
      assert.matches("^" .. expected .. "$", checked("check_svg.py", arguments .. " --format svg"))
    end)
  end

  it("says in words what it shows, and gives each action's times", function()
    local text = program.run("simulate dualpipe --ranks 8 --microbatches 20 --times 1,1,1,3 --format svg").stdout
    assert.is_truthy(text:find("Makespan 66 s, bubble 9.09 %, idle 6 s on every rank", 1, true))
    assert.is_truthy(text:find("<title>F0, stage 0: 0 s to 1 s</title></rect><text", 1, true))
  end)

  it("keeps what it is told from becoming markup", function()
    local escape = require("pipeplan.report.xml").escape
    assert.equal("a &lt;b&gt; &amp; &quot;c&apos; P−1", escape "a <b> & \"c' P−1")
    assert.equal("\\x01x&#x9;y&#xA;\\u{ffff}&#x202E;", escape "\1x\ty\n\u{FFFF}\u{202E}")
    assert.equal("\\xffz", escape "\xffz")
  end)

  it("has a limit, and says so", function()
    local result = program.run "simulate zb_v --ranks 64 --microbatches 128 --format svg"
    assert.equal(2, result.status)
    assert.equal("pipeplan: --format svg shows at most 20,000 actions, and this schedule has 49,152\n", result.stderr)
  end)
end)

describe("the timeline", function()
  local function lines_of(arguments)
    local lines = {}
    for line in program.run("simulate " .. arguments).stdout:gmatch("[^\n]+") do lines[#lines + 1] = line end
    return lines
  end

  it("is coloured when asked, and says the same without", function()
    for arguments, part in pairs { ["1f1b --ranks 4 --microbatches 8"] = "\27[38;5;16;48;5;75mF0\27[0m",
                                   ["dualpipev --ranks 4 --microbatches 8"] = "\27[38;5;16;48;5;75m",
                                   ["zb_v --ranks 16 --microbatches 100"] = "\27[38;5;16;48;5;157mi\27[0m" } do
      local plain = program.run("simulate " .. arguments).stdout
      local coloured = program.run("simulate " .. arguments .. " --color always").stdout
      assert.is_nil(plain:find "\27")
      assert.is_truthy(coloured:find(part, 1, true))
      assert.equal(plain, (coloured:gsub("\27%[[%d;]*m", "")))
      assert.equal(plain, program.run("simulate " .. arguments .. " --color never").stdout)
    end
  end)

  it("is coloured on a terminal, unless NO_COLOR is set or the terminal is dumb", function()
    if not os.execute "python3 -c 'import os; os.openpty()' 2>/dev/null" then
      print("# skipped: this machine lends no pseudo-terminal (no /dev/pts), so nothing can look like a terminal")
      return
    end
    local function on_terminal(environment)
      local command = [[env -u LD_PRELOAD -u NO_COLOR %s python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' ']] ..
                      [[%s' simulate 1f1b --ranks 2 --microbatches 2 </dev/null 2>&1]]
      local pipe = assert(io.popen(string.format(command, environment, os.getenv "PIPEPLAN")))
      local text = pipe:read("a")
      pipe:close()
      assert.matches("rank 0 ", text)
      return text:find("\27[38;5;16;48;5;75mF0", 1, true) ~= nil
    end
    assert.is_true(on_terminal "TERM=xterm")
    assert.is_true(on_terminal "TERM=xterm NO_COLOR=")
    assert.is_false(on_terminal "TERM=xterm NO_COLOR=1")
    assert.is_false(on_terminal "TERM=dumb")
  end)

  it("shows what takes most of a column where actions are too many, and states the scale", function()
    -- 1F1B takes (M + P − 1)(F + B) = 477 s, here in 92 columns; its rank 0 runs P forwards and then waits until the first backward has
    -- come back over P − 1 ranks: from 32 s, column 6.2, to 32 + 62 = 94 s, column 18.1
    local lines = lines_of "1f1b --ranks 32 --microbatches 128"
    local legend = lines[#lines]
    assert.matches("a column is 5%.18 s, and shows what takes most of it$", legend)
    local first
    for _, line in ipairs(lines) do first = first or line:match "^rank 0  ([%a.]+)$" end
    assert.equal(92, #first)
    assert.equal("FFFFFF", first:sub(1, 6))
    assert.matches("^F+%.+[BF.]+$", first)
    assert.equal(18 - 6, #first:match "^F+(%.+)")
  end)

  it("leaves out the middle of very many ranks", function()
    local shown, note = 0, nil
    for _, line in ipairs(lines_of "1f1b --ranks 100 --microbatches 4") do
      if line:find "^rank %d" then shown = shown + 1 end
      note = note or line:match "^… (%d+) more ranks$"
    end
    assert.equal(64, shown)
    assert.equal("36", note)
  end)
end)
