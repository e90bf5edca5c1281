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
    assert.matches("^out.txt:%d+: the bus bandwidth is 1.75 times the algorithm's: expected 0.88 for all_gather over 8 GPUs",
                   problem((good:gsub("all_reduce", "all_gather"))))
    assert.matches("^out.txt:%d+: Out of bounds values : 3 FAILED", problem((good:gsub("values : 0 OK", "values : 3 FAILED"))))
    assert.matches("^out.txt:%d+: a table of one size", problem((good:gsub("\n%s+4194304.*$", "\n"))))
    assert.matches("^out.txt:%d+: a size of 1048576 bytes without a time", problem((good:gsub("\n(%s+1048576 [^\n]-%-1)[^\n]*", "\n%1"))))
  end)
end)
