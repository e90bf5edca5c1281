-- SPDX-License-Identifier: Apache-2.0
-- stdlib/input/nccl.lua: what nccl-tests prints, in the forms that its versions have. Lines are made here as its sources print them:
-- NVIDIA/nccl-tests src/util.cu (writeBenchmarkLinePreamble, writeBenchmarkLineBody), src/common.cu; older: src/alltoall.cu of 2019.

require "pipeplan"
local nccl = require "pipeplan.input.nccl"

local heading = {
  "#",
  "#                                                              out-of-place                       in-place          ",
  "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong",
  "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         ",
}

local function ranks(hosts, per_host)
  local lines = { "# Using devices" }
  for rank = 0, hosts * per_host - 1 do
    lines[#lines + 1] = string.format("#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:%02x:00] NVIDIA H100 80GB HBM3", rank, 4000 + rank,
                                      "node" .. rank // per_host, rank % per_host, 16 * (rank % per_host))
  end
  return lines
end

local function row(bytes, redop, seconds, factor)
  local us, algbw = seconds * 1e6, bytes / seconds / 1e9
  local half = string.format("  %7.2f  %6.2f  %6.2f  %6g", us, algbw, algbw * factor, 0)
  return string.format("%12d  %12d  %8s  %6s  %6s", bytes, bytes // 4, "float", redop, "-1") .. half .. half
end

-- A run of `test` whose sizes take latency + bytes / speed.
local function run(name, hosts, per_host, redop, factor, latency, speed)
  local lines = { "# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703", "# Collective test starting: " .. name .. "_perf",
                  "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1073741824 step: 4(factor) warmup iters: 1 iters: 20 agg iters: 1 " ..
                  "validation: 1 graph: 0", "#" }
  for _, line in ipairs(ranks(hosts, per_host)) do lines[#lines + 1] = line end
  for _, line in ipairs(heading) do lines[#lines + 1] = line end
  for power = 20, 30, 2 do lines[#lines + 1] = row(2 ^ power // 1 | 0, redop, latency + 2 ^ power / speed, factor) end
  lines[#lines + 1] = "# Out of bounds values : 0 OK"
  lines[#lines + 1] = "# Avg bus bandwidth    : 123.4 "
  lines[#lines + 1] = "#\n# Collective test concluded: " .. name .. "_perf"
  return table.concat(lines, "\n") .. "\n"
end

local function problem(text, name)
  local good, message = pcall(nccl.read, text, name or "out.txt")
  assert.is_false(good)
  return tostring(message)
end

describe("nccl-tests output", function()
  it("is read as test, GPUs, hosts, and seconds by size", function()
    local runs = nccl.read(run("all_reduce", 2, 8, "sum", 1.875, 50e-6, 200e9), "out.txt")
    assert.equal(1, #runs)
    local only = runs[1]
    assert.equal("all_reduce", only.test)
    assert.same({ 16, 2, 8 }, { only.ranks, only.host_count, only.ranks_per_host })
    assert.equal(6, #only.points)
    assert.equal(2 ^ 20, only.points[1].bytes)
    assert.is_true(math.abs(only.points[1].seconds - (50e-6 + 2 ^ 20 / 200e9)) < 1e-8)
  end)

  it("has no size in a line of numbers alone, whatever printed it there", function()
    local text = run("all_reduce", 2, 8, "sum", 1.875, 50e-6, 200e9)
    local line = row(2 ^ 22 // 1 | 0, "sum", 1, 1.875):gsub("float", "    4")
    local torn = text:gsub("# Out of bounds", line:gsub("%%", "%%%%") .. "\n# Out of bounds")
    assert.same(#nccl.read(text, "out.txt")[1].points, #nccl.read(torn, "out.txt")[1].points)
  end)

  it("may hold several runs", function()
    local text = run("all_gather", 1, 8, "none", 0.875, 10e-6, 400e9) .. run("sendrecv", 2, 8, "sum", 1, 20e-6, 45e9)
    local runs = nccl.read(text, "out.txt")
    assert.same({ "all_gather", "sendrecv" }, { runs[1].test, runs[2].test })
    assert.same({ 8, 16 }, { runs[1].ranks, runs[2].ranks })
  end)

  it("may stand in a log: launcher prefixes, NCCL's own lines, colours", function()
    local lines = {}
    for line in run("reduce_scatter", 2, 8, "sum", 0.9375, 10e-6, 300e9):gmatch "(.-)\n" do
      lines[#lines + 1] = "[1,0]<stdout>:" .. line .. "\r"
      lines[#lines + 1] = "node0:4000:4000 [0] NCCL INFO Channel 00/16 :    0   1   2   3"
    end
    local runs = nccl.read(table.concat(lines, "\n"), "log.txt")
    assert.same({ "reduce_scatter", 16, 6 }, { runs[1].test, runs[1].ranks, #runs[1].points })
  end)

  -- NVIDIA/nccl-tests#78: eight hosts of eight V100, an early version: no redop for alltoall, no root, `error` for `#wrong`
  it("of old versions has fewer columns and no name", function()
    local lines = {}
    for rank = 0, 63 do
      lines[#lines + 1] = string.format("#   Rank %2d Pid  %5d on node%d device %2d [0x%02x] Tesla V100-SXM2-32GB", rank, 900 + rank,
                                        rank // 8, rank % 8, rank % 8)
    end
    lines[#lines + 1] = "#                                                       out-of-place                       in-place          "
    lines[#lines + 1] = "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error"
    lines[#lines + 1] = "#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "
    lines[#lines + 1] = "   268435456       1048576     float           520935    0.52    0.51  0e+00   519562    0.52    0.51  1e+00"
    lines[#lines + 1] = "   536870912       2097152     float          1041974    0.52    0.51  0e+00  1041299    0.52    0.51  1e+00"
    local runs = nccl.read(table.concat(lines, "\n"), "results/alltoall-64.txt")
    assert.same({ "alltoall", 64, 8 }, { runs[1].test, runs[1].ranks, runs[1].host_count })
    assert.is_true(math.abs(runs[1].points[1].seconds - 0.520935) < 1e-12)
    local engine = require "engine"
    local fit = engine.comm.fit { test = "alltoall", ranks = 64, members = 8,
                                  points = { { 268435456, 0.520935 }, { 536870912, 1.041974 } } }
    -- 0.507 GB/s of bus bandwidth is what they print; of that 56 of 63 parts leave the host: 0.451
    assert.is_true(math.abs(fit.bandwidth - 0.507638e9 * 56 / 63) < 0.002e9, fit.bandwidth)
  end)

  it("without a name is told by its bus bandwidth where that is possible", function()
    local text = run("x", 1, 8, "sum", 1.75, 10e-6, 400e9):gsub("[^\n]*_perf\n", "")
    assert.equal("all_reduce", nccl.read(text, "out.txt")[1].test)
    text = run("x", 1, 8, "sum", 0.875, 10e-6, 400e9):gsub("[^\n]*_perf\n", "")
    assert.equal("reduce_scatter", nccl.read(text, "out.txt")[1].test)
    text = run("x", 1, 8, "none", 0.875, 10e-6, 400e9):gsub("[^\n]*_perf\n", "")
    assert.matches("out.txt:15: which test was this%? .*all_gather or alltoall", problem(text))
    assert.equal("alltoall", nccl.read(text, "alltoall_8gpu.log")[1].test)
  end)

  it("that says nothing usable is refused with file and line", function()
    local good = run("all_reduce", 1, 8, "sum", 1.75, 10e-6, 400e9)
    assert.matches("^out.txt: no table", problem "hello\n")
    assert.matches("^out.txt:%d+: broadcast_perf: expected one of", problem(run("broadcast", 1, 8, "none", 1, 1e-6, 1e9)))
    assert.matches("^out.txt:%d+: no '# Rank' lines", problem((good:gsub("#  Rank[^\n]*\n", ""))))
    assert.matches("^out.txt:%d+: one GPU took part", problem(run("all_reduce", 1, 1, "sum", 0, 1e-6, 1e9)))
    assert.matches("^out.txt:%d+: the bus bandwidth is 1.75 times the algorithm's: expected 0.875 for all_gather over 8 GPUs",
                   problem((good:gsub("all_reduce", "all_gather"))))
    assert.matches("^out.txt:%d+: Out of bounds values : 3 FAILED", problem((good:gsub("values : 0 OK", "values : 3 FAILED"))))
    assert.matches("^out.txt:%d+: a table of one size", problem((good:gsub("\n%s+4194304.*$", "\n"))))
    assert.matches("^out.txt:%d+: a size of 1048576 bytes without a time", problem((good:gsub("\n(%s+1048576 [^\n]-%-1)[^\n]*", "\n%1"))))
  end)

  -- The list of ranks: `keep(rank)` says which of them stand there; `between` what stands where others were.
  local function listed(text, keep, between)
    local before
    return (text:gsub("#  Rank +(%d+)[^\n]*\n", function(rank)
      if keep(tonumber(rank)) then
        before = true
        return nil
      end
      local gap = before and between or ""
      before = false
      return gap
    end))
  end
  local function ends(rank) return rank < 3 or rank > 60 end

  it("with a shortened list of ranks is of all of them, where the rest admits one reading", function()
    local text = run("alltoall", 8, 8, "none", 63 / 64, 60e-6, 45.7e9)
    for _, dots in ipairs { "......\n", "...\n", "# …\n", "[... 58 more ranks ...]\n", "<snip>\n" } do
      local only = nccl.read(listed(text, ends, dots), "out.txt")[1]
      assert.same({ 64, 8, 8, 6 }, { only.ranks, only.host_count, only.ranks_per_host, only.listed })
    end
    assert.is_nil(nccl.read(text, "out.txt")[1].listed)
    -- it is told by its bus bandwidth, 63/64 of the algorithm's, that it is no sendrecv over the six that are listed
    text = listed(text, ends, "......\n"):gsub("[^\n]*_perf\n", "")
    assert.matches("which test was this%? Nothing names it; over 64 GPUs of 8 nodes it may be all_gather or alltoall", problem(text))
    assert.equal("alltoall", nccl.read(text, "alltoall.txt")[1].test)
  end)

  it("with a list that is not whole is refused", function()
    local text = run("alltoall", 8, 8, "none", 63 / 64, 60e-6, 45.7e9)
    assert.matches("^out.txt:11: rank 3 is missing: of ranks 0 to 63 there are 6: expected a line for each", problem(listed(text, ends, "")))
    assert.matches("^out.txt:%d+: rank 7 is missing: of ranks 0 to 63 there are 63:", problem(listed(text, function(rank) return rank ~= 7 end, "")))
    -- each process sees one device: nothing says whether a node has four or eight
    local torn = listed(text, ends, "......\n"):gsub("device  %d", "device  0")
    assert.matches("rank 3 is missing: .* which do not say how many GPUs each node has", problem(torn))
    -- the last ranks are cut off: 0 to 5 are whole, the bus bandwidth is not theirs
    assert.matches("the bus bandwidth is 0.98%d+ times the algorithm's: expected 0.8333 for alltoall over 6 GPUs",
                   problem(listed(text, function(rank) return rank < 6 end, "")))
    assert.matches("^out.txt:6: .*expected '# Rank N … Pid N on HOST device N", problem((text:gsub("on      node0 device  0[^\n]*", "on", 1))))
  end)

  it("of processes that do not know of each other is refused: built without MPI", function()
    local two = run("all_reduce", 1, 2, "sum", 1, 10e-6, 100e9)
    local list = two:match "\n(#  Rank.-\n)#\n"
    local text = two:gsub("#  Rank.-\n#\n", list:gsub("node0", "node1"):gsub("%%", "%%%%") .. list:gsub("%%", "%%%%") .. "#\n", 1)
    assert.matches("^out.txt:8: rank 0 for the second time %(the first: line 6%), before any table: .*MPI=1", problem(text))
    local same = run("all_reduce", 2, 2, "sum", 1.5, 10e-6, 100e9):gsub("node1", "node0")
    assert.matches("^out.txt:8: rank 2 is on device 0 of node0, where rank 0 is %(line 6%): expected another name for each node", problem(same))
    -- each process sees one device, whose bus number tells it from the others
    local own = run("all_reduce", 1, 8, "sum", 1.75, 10e-6, 100e9):gsub("device  %d", "device  0")
    assert.same({ 8, 1 }, { nccl.read(own, "out.txt")[1].ranks, nccl.read(own, "out.txt")[1].host_count })
  end)

  it("is read past tests that say nothing of links, which are named", function()
    local text = run("broadcast", 1, 8, "none", 1, 10e-6, 400e9) .. run("all_gather", 1, 8, "none", 0.875, 10e-6, 400e9)
    local runs, passed = nccl.read(text, "out.txt")
    assert.equal(1, #runs)
    assert.same({ { line = 16, test = "broadcast" } }, passed)
  end)

  it("has lines of NCCL between and behind its own, and commands", function()
    local lines, n = {}, 0
    for line in run("all_gather", 2, 8, "none", 0.9375, 10e-6, 300e9):gmatch "(.-)\n" do
      n = n + 1
      lines[#lines + 1] = "\27[0;32m" .. n % 2 .. ": " .. line .. (n == 27 and "node0:4000:4321 [3] NCCL INFO Channel 00" or "") .. "\27[0m"
      if n == 28 then lines[#lines + 1] = "node0:4000:4000 [0] NCCL INFO cmd sendrecv_perf -b 8" end
    end
    local runs = nccl.read(table.concat(lines, "\n"), "log.txt")
    assert.same({ "all_gather", 16, 2, 6 }, { runs[1].test, runs[1].ranks, runs[1].host_count, #runs[1].points })
  end)

  it("as web pages show it has no # before its lines", function()
    local text = run("reduce_scatter", 2, 8, "sum", 0.9375, 10e-6, 300e9):gsub("# ", "  ")
    assert.is_true(nccl.is(text))
    local runs = nccl.read(text, "log.txt")
    assert.same({ "reduce_scatter", 16, 6 }, { runs[1].test, runs[1].ranks, #runs[1].points })
  end)

  it("without in-place columns, with N/A among them, or with values that were wrong", function()
    local text = run("sendrecv", 2, 1, "sum", 1, 20e-6, 45e9)
    local half = text:gsub("(\n%s+%d+%s+%d+%s+float[^\n]*)", function(line) return line:sub(1, #line - 34) end)
    assert.equal(6, #nccl.read(half, "out.txt")[1].points)
    local without = text:gsub("(\n%s+%d+%s+%d+%s+float[^\n]*)     0\n", "%1   N/A\n")
    assert.equal(6, #nccl.read(without, "out.txt")[1].points)
    local wrong = text:gsub("(1048576[^\n]-)     0  ", "%1     7  ", 1)
    assert.matches("^out.txt:12: 7 values of this size were wrong", problem(wrong))
    wrong = text:gsub("(1048576[^\n]-     0  [^\n]-)     0\n", "%1     5\n", 1)   -- in place
    assert.matches("^out.txt:12: 5 values of this size were wrong", problem(wrong))
  end)

  it("with a figure that is no number is an error by its line", function()
    local text = run("sendrecv", 2, 1, "sum", 1, 20e-6, 45e9)
    for _, case in ipairs { { 1, "the time" }, { 2, "algbw" }, { 3, "busbw" } } do
      local cells, place = {}, 0
      local changed = text:gsub("(\n%s+1048576%s+%d+%s+float%s+sum%s+%-1)([^\n]*)", function(first, rest)
        for cell in rest:gmatch "%S+" do cells[#cells + 1] = cell end
        cells[case[1]] = "1e999"
        place = place + 1
        return first .. "  " .. table.concat(cells, "  ")
      end)
      assert.equal(1, place)
      assert.matches("^out.txt:12: " .. case[2] .. " of a size of 1048576 bytes is no number", problem(changed))
    end
  end)

  it("of any size is read in a time that follows it", function()
    -- a second for a megabyte would be a minute if it grew with the square
    for _, line in ipairs { (" "):rep(1e6), ("# "):rep(5e5), ("Rank 0 Pid "):rep(1e5), ("a:1:1 [0] NCCL"):rep(7e4), ("1:"):rep(5e5), ("#"):rep(1e6) } do
      local good, message = pcall(nccl.read, "# size count type time busbw\n" .. line .. "\n", "out.txt")
      assert.is_false(good)
      assert.matches("^out.txt:%d", tostring(message))
    end
  end)

  it("is read out of a quotation, and behind the times that docker and kubectl write", function()
    local text = run("all_reduce", 2, 8, "sum", 2 * 15 / 16, 20e-6, 300e9)
    local whole = nccl.read(text, "out.txt")
    for _, before in ipairs { "> ", ">> ", "2026-01-15T10:00:00.123456789Z ", "2026-01-15T10:00:00+01:00 [1,0]<stdout>:" } do
      assert.same(whole, (nccl.read(text:gsub("([^\n]+)", before .. "%1"), "out.txt")), before)
    end
  end)
end)
