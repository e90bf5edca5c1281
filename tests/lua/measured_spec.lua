-- SPDX-License-Identifier: Apache-2.0
-- cluster.network.measured: files of nccl-tests and nvidia-smi that replace what the catalogues say of links. Tables are made here from a
-- latency and a speed, which the plan must find again.

local planning = require "planning"
local files = require "policy_files"
local recipe = require "pipeplan.input.recipe"
local spec = require "pipeplan.input.spec"

-- A table of nccl-tests in which a size takes latency + bytes / speed.
local function nccl(test, hosts, per_host, factor, latency, speed)
  local redop = (test == "all_reduce" or test == "reduce_scatter") and "sum" or "none"
  local lines = { "# Collective test starting: " .. test .. "_perf" }
  for rank = 0, hosts * per_host - 1 do
    lines[#lines + 1] = string.format("#  Rank %2d Group  0 Pid %6d on node%d device %2d [0000:00:00] NVIDIA H100 80GB HBM3", rank, rank + 1,
                                      rank // per_host, rank % per_host)
  end
  lines[#lines + 1] = "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong"
  for power = 10, 33 do
    local seconds = latency + 2 ^ power / speed
    local half = string.format("  %.4f  %.4f  %.4f  0", seconds * 1e6, 2 ^ power / seconds / 1e9, factor * 2 ^ power / seconds / 1e9)
    lines[#lines + 1] = string.format("%12d  %12d  float  %s  -1", 2 ^ power // 1 | 0, 2 ^ power // 4 | 0, redop) .. half .. half
  end
  return files.write(test .. hosts .. ".txt", table.concat(lines, "\n") .. "\n")
end

local base = planning.merge(planning.llama, { cluster = { gpus = 64, gpus_per_node = 8 } })

local function request(measured, changes)
  return spec.from_table(planning.merge(planning.merge(base, { cluster = { network = { measured = measured } } }), changes), ".")
end

local function near(expected, actual, share)
  assert.is_true(math.abs(actual / expected - 1) < (share or 1e-3), expected .. " is not " .. actual)
end

local function assumed(from, field)
  for _, entry in ipairs(from.assumptions) do
    if entry.field == field then return entry end
  end
end

local topology = "tests/data/measured/topo-4xH200.txt"

describe("measured links", function()
  it("inside a host come from runs on one host", function()
    -- all-gather over 8: 7 latencies and 7/8 of the bytes
    local gather, message = nccl("all_gather", 1, 8, 7 / 8, 7 * 3e-6, 340e9 * 8 / 7), nccl("sendrecv", 1, 8, 1, 25e-6, 380e9)
    local tiers = recipe.network(request { gather, message }).tiers
    near(340e9, tiers[1].measured.ring.bandwidth)
    near(3e-6, tiers[1].measured.ring.latency)
    near(380e9, tiers[1].measured.message.bandwidth)
    near(25e-6, tiers[1].measured.message.latency)
    assert.is_nil(tiers[2].measured)
  end)

  it("between hosts come from runs on several", function()
    -- 16 GPUs of two hosts behind eight ports of 46 GB/s: 15/16 of the bytes over 8 × 46
    local run = nccl("all_gather", 2, 8, 15 / 16, 40e-6, 8 * 46e9 * 16 / 15)
    local read = request { run }
    near(46e9, recipe.network(read).tiers[2].measured.ring.bandwidth)
    local entry = assumed(read, "network rings")
    assert.matches("^368 Gb/s and", entry.value)
    assert.matches("all_gather2%.txt:18: all_gather over 16 GPUs of 2 nodes, α %+ β·bytes through 24 sizes, median error [%d.]+ %%, " ..
                   "worst [%d.]+ %%$", entry.why)
  end)

  it("say how fast the network is where the spec does not", function()
    local read = request({ nccl("sendrecv", 2, 8, 1, 20e-6, 23e9) }, { cluster = { network = { per_gpu = planning.none } } })
    near(23e9, read.cluster.network.per_gpu)
    assert.matches("sendrecv2%.txt:18: what sendrecv reaches", assumed(read, "cluster.network.per_gpu").why)
  end)

  it("limit what was not measured: no kernel fills what NCCL cannot", function()
    near(0.5, recipe.network(request { nccl("all_gather", 2, 8, 15 / 16, 40e-6, 8 * 25e9 * 16 / 15) }).tiers[2].efficiency)
    near(0.9, recipe.network(request { nccl("all_gather", 2, 8, 15 / 16, 40e-6, 8 * 49e9 * 16 / 15) }).tiers[2].efficiency)
  end)

  -- nccl-tests#290: "476 GB/s looks to be in the expected range for H100", by NVLink SHARP; a port has 450
  it("of an all-reduce are no more than the link: switches that add do not gather", function()
    near(450e9, recipe.network(request { nccl("all_reduce", 1, 8, 7 / 4, 30e-6, 476e9 * 4 / 7) }).tiers[1].measured.ring.bandwidth)
    near(300e9, recipe.network(request { nccl("all_reduce", 1, 8, 7 / 4, 30e-6, 476e9 * 4 / 7),
                                         nccl("reduce_scatter", 1, 8, 7 / 8, 30e-6, 300e9 * 8 / 7) }).tiers[1].measured.ring.bandwidth)
  end)

  -- NVIDIA/nccl#812: "Tree performs better on two nodes as there are fewer inter-node data transmissions"
  it("of an all-reduce over two hosts are doubted", function()
    local two = request { nccl("all_reduce", 2, 8, 15 / 8, 30e-6, 480e9 * 8 / 15) }
    assert.equal("tree_allreduce", two.warnings[1].id)
    local four = request { nccl("all_reduce", 4, 8, 31 / 16, 30e-6, 370e9 * 16 / 31) }
    assert.equal(0, #four.warnings)
  end)

  -- 8 to 64 KiB take 20 us whatever their size, give or take: a line through that reaches terabytes a second, or falls
  it("of small sizes say nothing of the bandwidth: the catalogue's stays, with a word", function()
    for _, noise in ipairs { 0.01, -0.01 } do
      local path = nccl("sendrecv", 2, 8, 1, 20e-6, 23e9)
      local handle = assert(io.open(path))
      local text = handle:read "a":gsub("\n%s+(%d+)[^\n]+", function(bytes)
        local power = math.log(tonumber(bytes), 2)
        if power < 13 or power > 16 then return "" end
        local us = 20 + noise * (power - 13)
        return string.format("\n %s %s float none -1 %.3f 0.01 0.01 0 %.3f 0.01 0.01 0", bytes, bytes, us, us)
      end)
      handle:close()
      local read = request { files.write("small.txt", text) }
      assert.equal("measured_latency", read.warnings[1].id)
      assert.matches("small.txt:18: of the time of 64 KiB, its largest size, 0[%.%d]* %% grows with the size: nothing is taken from it",
                     read.warnings[1].message)
      assert.is_nil(recipe.network(read).tiers[2].measured)
      assert.equal(50e9, read.cluster.network.per_gpu)
    end
  end)

  it("of another card than the spec's are doubted, once a file", function()
    local path = nccl("sendrecv", 2, 8, 1, 20e-6, 23e9)
    local handle <close> = assert(io.open(path))
    local text = handle:read "a":gsub("H100 80GB HBM3", "A100-SXM4-80GB")
    local read = request { files.write("a100.txt", text .. text) }
    assert.equal(1, #read.warnings)
    assert.equal("measured_card", read.warnings[1].id)
    assert.matches("a100.txt:18: measured on NVIDIA A100%-SXM4%-80GB: expected a run on the spec's accelerator, H100%-SXM$",
                   read.warnings[1].message)
    assert.equal(0, #request({ files.write("a100.txt", text) }, { cluster = { accelerator = "A100-SXM-80GB" } }).warnings)
  end)

  it("of the same test say which is taken, and what the other reached", function()
    local fast, slow = nccl("sendrecv", 2, 8, 1, 20e-6, 23e9), nccl("sendrecv", 2, 4, 1, 20e-6, 11.5e9)
    for _, order in ipairs { { fast, slow }, { slow, fast } } do
      local read = request(order)
      near(11.5e9, recipe.network(read).tiers[2].measured.message.bandwidth)
      assert.matches("; .*sendrecv2.txt:18 says 184 Gb/s: the slower is taken$", assumed(read, "network messages").why)
    end
  end)

  it("change the plan", function()
    local fixed = { parallelism = { tensor = 8, pipeline = 4, schedule = "1f1b" } }
    local slow = planning.merge(fixed, { cluster = { network = { measured = { nccl("sendrecv", 2, 8, 1, 1e-3, 2e9) } } } })
    local before, after = planning.plan(base, fixed), planning.plan(base, slow)
    -- a hand-over of 8,192 × 8,192 × 2 bytes over TP 8: 16.8 MB take 1 ms + 8.4 ms; M 128 a step, forward and backward
    local hop = 1e-3 + 8192 * 8192 * 2 / 8 / 2e9
    near(2 * (after.microbatches + 3) * hop, after.communication.pipeline.seconds)   -- and the way through the other three stages
    assert.is_true(after.step_seconds > before.step_seconds + hop)
    assert.truthy(planning.assumption(after, "network messages"))
    local page = planning.page_of(after):gsub("%s+", " ")
    assert.matches("links network messages 16 Gb/s and 1 ms: sendrecv over 16 GPUs of 2 nodes (sendrecv2.txt:18)", page, 1, true)   -- of 2 GB/s
  end)
end)

-- What nccl-tests 2.19 printed on 4 × H100 of one host (NVLink 4 behind NVSwitch, multicast off), with the bus bandwidth that it gives for 1 GiB.
describe("a real run", function()
  local printed = { all_reduce = 354.06, all_gather = 322.96, reduce_scatter = 323.26, alltoall = 333.49, sendrecv = 358.55 }
  for test, gigabytes in pairs(printed) do
    it("of " .. test .. " is met by its line", function()
      local path = "tests/data/measured/" .. test .. "-4xH100.txt"
      local read = request({ path }, { cluster = { gpus = 4, gpus_per_node = 4 } })
      local tier = recipe.network(read).tiers[1].measured
      local _, link = next(tier)
      near(gigabytes * 1e9, link.bandwidth, test == "sendrecv" and 0.2 or 0.05)
      local kinds = { sendrecv = "messages", alltoall = "all-to-all without a kernel" }
      local entry = assumed(read, "scale-up " .. (kinds[test] or "rings"))
      assert.is_true(tonumber(entry.why:match "median error ([%d.]+) %%") < 10)
    end)
  end

  it("of all five takes rings from gathers, and says where each figure is from", function()
    local list = { "tests/data/measured/topo-4xH100.txt" }
    for test in pairs(printed) do list[#list + 1] = "tests/data/measured/" .. test .. "-4xH100.txt" end
    local read = request(list, { cluster = { gpus = 4, gpus_per_node = 4 } })
    local tier = recipe.network(read).tiers[1]
    assert.equal(450e9, tier.bandwidth)  -- NV18: 18 × 25 GB/s
    assert.is_true(tier.measured.ring.bandwidth < 340e9)
    assert.matches("reduce_scatter%-4xH100.txt:12: reduce_scatter over 4 GPUs of 1 node", assumed(read, "scale-up rings").why)
    assert.matches("sendrecv%-4xH100.txt:12: ", assumed(read, "scale-up messages").why)
  end)
end)

describe("nvidia-smi topo -m", function()
  it("says how many GPUs a host has and what joins them", function()
    local read = request({ topology }, { cluster = { gpus_per_node = planning.none, accelerator = "H200-SXM" } })
    assert.equal(4, read.cluster.gpus_per_node)
    assert.equal(4, read.cluster.network.scale_up_gpus)
    assert.equal(450e9, read.cluster.network.scale_up_per_gpu)
    assert.matches("topo%-4xH200.txt:1: 4 GPUs joined by 18 NVLinks each", assumed(read, "cluster.network.scale_up_per_gpu").why)
  end)

  it("contradicts another number of GPUs a host", function()
    local good, message = pcall(request, { topology })
    assert.is_false(good)
    assert.equal("spec: cluster.gpus_per_node is 8: the matrix in ./tests/data/measured/topo-4xH200.txt has 4 GPUs; nearest: 4", tostring(message))
  end)

  -- H100 PCIe pairs behind bridges: NVLink inside a pair, PCIe 5 to the others of the host, the network beyond
  it("of pairs makes three tiers", function()
    local text = "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tNV12\tSYS\tSYS\nGPU1\tNV12\tX\tSYS\tSYS\nGPU2\tSYS\tSYS\tX\tNV12\nGPU3\tSYS\tSYS\tNV12\tX\n"
    local read = request({ files.write("pairs.txt", text) }, { cluster = { gpus_per_node = 4, accelerator = "H100-PCIe" } })
    local tiers = recipe.network(read).tiers
    assert.same({ 2, 4, 64 }, { tiers[1].reach, tiers[2].reach, tiers[3].reach })
    assert.same({ 300e9, 64e9, 50e9 }, { tiers[1].bandwidth, tiers[2].bandwidth, tiers[3].bandwidth })
  end)

  it("without NVLink is planned over PCIe, and warned of", function()
    local text = "\tGPU0\tGPU1\nGPU0\tX\tPHB\nGPU1\tPHB\tX\n"
    local read = request({ files.write("none.txt", text) }, { cluster = { gpus_per_node = 2 } })
    assert.equal("no_nvlink", read.warnings[1].id)
    assert.equal(64e9, read.cluster.network.scale_up_per_gpu)
  end)

  it("counts the network cards", function()
    local text = "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\tX\tNV18\tPIX\tSYS\nGPU1\tNV18\tX\tSYS\tSYS\nNIC0\tPIX\tSYS\tX\tSYS\nNIC1\tSYS\tSYS\tSYS\tX\n"
    local read = request({ files.write("cards.txt", text) }, { cluster = { gpus_per_node = 2 } })
    assert.equal(1, read.cluster.network.nics_per_node)
    assert.equal("distant_nic", read.warnings[1].id)
    near(25e9, recipe.network(read).tiers[2].bandwidth)  -- two GPUs share 50
  end)
end)

describe("a measured file", function()
  it("that is neither is refused by name", function()
    local path = files.write("notes.txt", "nothing\n")
    local good, message = pcall(request, { path })
    assert.is_false(good)
    assert.equal(path .. ": none of nccl-tests output (# size count type …), nvidia-smi topo -m (GPU0 GPU1 …), rocm-smi --showtopo", tostring(message))
  end)

  it("that is missing is refused by field", function()
    local good, message = pcall(request, "gone.txt")
    assert.is_false(good)
    assert.matches("spec: cluster.network.measured is \"gone.txt\": ./gone.txt cannot be read: No such file", tostring(message))
  end)
end)
