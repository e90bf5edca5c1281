-- SPDX-License-Identifier: Apache-2.0
-- Clusters from what people paste: scontrol show node, sinfo, hostfiles, nvidia-smi -L, rocm-smi --showtopo. Texts are our own, in the forms of
-- slurm.schedmd.com (scontrol, sinfo), DeepSpeed's and Open MPI's hostfiles, NVIDIA's and AMD's tools.

require "pipeplan"
local accelerators = require "pipeplan.catalog.accelerators"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local inventory = require "pipeplan.input.inventory"
local measured = require "pipeplan.input.measured"
local planning = require "planning"
local spec = require "pipeplan.input.spec"

teardown(files.remove)

local function node(name, gres, state)
  return string.format("NodeName=%s Arch=x86_64 CoresPerSocket=56\n   CPUAlloc=0 CPUTot=224 CPULoad=0.01\n   Gres=%s\n   NodeAddr=%s Version=24.11.5\n"
    .. "   State=%s ThreadsPerCore=2 TmpDisk=0\n   CfgTRES=cpu=224,mem=2000000M,gres/gpu=8\n\n", name, gres, name, state or "IDLE")
end

local function read(text)
  local found = inventory.read(text, "x")
  return { found.nodes, found.per_node, found.kind, found.first }
end

local function problem(text)
  local good, message = failure.try(inventory.read, text, "x")
  assert.is_false(good)
  return tostring(message)
end

describe("the nodes of Slurm", function()
  it("are counted by their Gres, without those that are gone", function()
    local text = node("gpu01", "gpu:h100:8(S:0-1)", "MIXED") .. node("gpu02", "gpu:h100:8", "ALLOCATED") .. node("gpu03", "gpu:h100:8", "DOWN*")
      .. node("gpu04", "gpu:h100:8", "IDLE+DRAIN") .. node("login", "(null)") .. node("gpu05", "gpu:h100:8,lustre:1", "IDLE+CLOUD+POWERED_DOWN")
    assert.same({ 3, 8, "h100", "x:1" }, read(text))
    assert.same({ 1, 4, nil, "x:1" }, read "NodeName=a Gres=gpu:4 State=IDLE\n")
    -- slurm.schedmd.com/sinfo.html, NODE STATE CODES: * and $ stand for a node that does not respond and one in a reservation for maintenance
    for _, state in ipairs { "IDLE+NOT_RESPONDING", "IDLE*", "IDLE$", "UNKNOWN", "FUTURE", "IDLE+MAINTENANCE", "FAILING" } do
      assert.same({ 1, 8, "h100", "x:1" }, read(node("gpu01", "gpu:h100:8", "IDLE+PLANNED") .. node("gpu02", "gpu:h100:8", state)), state)
    end
  end)

  it("are read of sinfo, once for each node whatever its partitions", function()
    assert.same({ 4, 8, "h100", "x:2" },
                read "PARTITION AVAIL NODES STATE NODELIST GRES\nall* up 3 idle gpu[01-03] gpu:h100:8\nbig up 2 mix gpu[03,7] gpu:h100:8\n")
    assert.same({ 2, 8, "a100", "x:2" },
                read "NODELIST GRES STATE\nn1 gpu:a100:8 idle\nn1 gpu:a100:8 idle\nn2 gpu:a100:8 mix\nn3 gpu:a100:8 down*\nlogin (null) idle\n")
    assert.same({ 5, 4, nil, "x:2" }, read "NODES GRES\n5 gpu:4\n")
  end)

  it("that are not alike, or cannot be read, are refused with file, line and value", function()
    assert.equal("x:8: a node of 4 a100, where x:1 has 8 h100: expected nodes that are alike (paste those of one partition)",
                 problem(node("a", "gpu:h100:8") .. node("b", "gpu:a100:4")))
    assert.equal("x:3: Gres is gpu:h100:many: expected gpu:TYPE:COUNT or gpu:COUNT", problem(node("a", "gpu:h100:many")))
    assert.equal("x:3: two kinds of GPUs in a node, gpu:a100:4,gpu:v100:4: a plan is of one", problem(node("a", "gpu:a100:4,gpu:v100:4")))
    assert.equal("x: scontrol show node without a GPU that can be used (1 nodes are down or drained)", problem(node("a", "gpu:h100:8", "DOWN")))
    assert.equal("x:1: no column GRES: expected sinfo -N -o '%N %G %t'", problem "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\nall up 1 2 idle a\n")
    assert.equal("x:2: gpu[3-1] is no list of nodes", problem "NODELIST GRES\ngpu[3-1] gpu:8\n")
    assert.equal("x:2: 3 cells: expected 2, as in the heading", problem "NODELIST GRES\na gpu:8 idle\n")
    assert.equal("x:3: node a for the second time (the first: x:1)", problem "NodeName=a Gres=gpu:8\n\nNodeName=a Gres=gpu:8\n")
    assert.equal("x:3: 2/2/0/4 nodes: expected a number", problem "NODES(A/I) GRES\n4 gpu:8\n2/2/0/4 gpu:8\n")
    assert.matches("x:3: a second partition: a node may stand in both", problem "PARTITION NODES GRES\nbatch 4 gpu:8\ndebug 4 gpu:8\n", 1, true)
    assert.matches("^x: none of scontrol show node, sinfo", problem "hello\n")
  end)
end)

describe("a hostfile", function()
  it("has a name and its GPUs in a line", function()
    assert.same({ 2, 8, nil, "x:2" }, read "# ours\nnode1 slots=8\n\nnode2 slots=8 max_slots=8  # the other\n")
    assert.same({ 2, 4, nil, "x:1" }, read "10.0.0.1:4\n10.0.0.2:4\n")
    assert.same({ 1, 8, nil, "x:1" }, read "\xEF\xBB\xBFnode1 slots=8\n")   -- as Windows' editors save it
  end)

  it("is refused where a line has none, a host is there twice, or hosts differ", function()
    assert.equal("x:2: node2: expected a name and its GPUs, such as node1 slots=8", problem "node1 slots=8\nnode2\n")
    assert.equal("x:2: node1 slots=0: expected a name and its GPUs, such as node1 slots=8", problem "node0 slots=8\nnode1 slots=0\n")
    assert.equal("x:2: host node1 for the second time (the first: x:1)", problem "node1 slots=8\nnode1 slots=8\n")
    assert.matches("^x:2: a node of 4 GPUs, where x:1 has 8 GPUs", problem "node1 slots=8\nnode2 slots=4\n")
  end)
end)

describe("nvidia-smi -L", function()
  local function cards(count, name)
    local lines = {}
    for i = 0, count - 1 do lines[#lines + 1] = ("GPU %d: %s (UUID: GPU-%08x-aaaa)"):format(i, name, i) end
    return table.concat(lines, "\n") .. "\n"
  end

  it("has a node's GPUs and what they are called", function()
    assert.same({ 1, 8, "NVIDIA H100 80GB HBM3", "x:1" }, read(cards(8, "NVIDIA H100 80GB HBM3")))
    assert.equal("x:3: GPU 0 for the second time: expected the list of one node", problem(cards(2, "NVIDIA L40S") .. cards(2, "NVIDIA L40S")))
    assert.matches("^x:2: a slice of a GPU", problem(cards(1, "NVIDIA A100-SXM4-40GB") .. "  MIG 1g.5gb Device 0: (UUID: MIG-1)\n"))
    assert.matches("^x:3: NVIDIA L4, where GPU 0 is NVIDIA L40S: a plan is of one kind", problem(cards(2, "NVIDIA L40S") .. "GPU 2: NVIDIA L4 (UUID: GPU-1)\n"))
  end)

  it("names cards as drivers do, and Slurm", function()
    for name, expected in pairs {
      ["NVIDIA H100 80GB HBM3"] = "H100-SXM", ["NVIDIA H100 PCIe"] = "H100-PCIe", ["NVIDIA A100-SXM4-80GB"] = "A100-SXM-80GB",
      ["NVIDIA A100-SXM4-40GB"] = "A100-SXM-40GB",
      ["NVIDIA A100 80GB PCIe"] = "A100-PCIe-80GB", ["Tesla V100-SXM2-32GB"] = "V100-SXM-32GB", ["NVIDIA H200"] = "H200-SXM", ["NVIDIA H20"] = "H20",
      ["NVIDIA L40S"] = "L40S", ["NVIDIA B200"] = "B200-SXM", ["NVIDIA GB200"] = "GB200-NVL72", ["NVIDIA GB10"] = "GB10",
      ["NVIDIA GeForce RTX 4090"] = "RTX-4090",
      ["NVIDIA GeForce RTX 5090"] = "RTX-5090", ["AMD Instinct MI300X"] = "MI300X", nvidia_h100_80gb_hbm3 = "H100-SXM", h100 = "H100-SXM", rtx4090 = "RTX-4090",
      rtx_5090 = "RTX-5090", mi300a = "MI300A", l40s = "L40S",
    } do
      local entry = inventory.card(name)
      assert.equal(expected, entry and entry.name, name)
    end
  end)
end)

describe("a spec with an inventory", function()
  local function request(text, cluster, more)
    local path = files.write("found.txt", text)
    local base = { cluster = planning.merge({ inventory = path, network = { per_gpu = "400Gbps" } }, cluster or {}),
                   model = { architecture = "dense", total = "8B", layers = 32 }, training = { tokens = "2T" } }
    return spec.from_table(planning.merge(base, more or {}), ".")
  end
  local function refused(...)
    local good, message = failure.try(request, ...)
    assert.is_false(good)
    return (tostring(message):gsub("/[^ ]*/found", "found"))
  end
  local slurm = node("gpu01", "gpu:h100:8") .. node("gpu02", "gpu:h100:8")

  it("needs no GPUs and no accelerator, and the plan says where they are from", function()
    local read_request = request(slurm)
    local cluster = read_request.cluster
    assert.same({ 16, 8, "H100-SXM" }, { cluster.gpus, cluster.gpus_per_node, cluster.accelerator })
    assert.matches("found.txt:1: scontrol show node: 2 nodes of 8$", planning.assumption(read_request, "cluster.gpus").why)
    cluster = request("a slots=4\nb slots=4\n", { accelerator = "L40S" }).cluster
    assert.same({ 8, 4 }, { cluster.gpus, cluster.gpus_per_node })
  end)

  it("may use a part of what Slurm has, and not more; a hostfile is all there is", function()
    assert.equal(8, request(slurm, { gpus = 8 }).cluster.gpus)
    assert.equal("spec: cluster.gpus is 32, but found.txt:1 has 16 GPUs (scontrol show node: 2 nodes of 8)", refused(slurm, { gpus = 32 }))
    assert.equal("spec: cluster.gpus is 8, but found.txt:1 has 16 GPUs (a hostfile: 2 nodes of 8)",
                 refused("a slots=8\nb slots=8\n", { gpus = 8, accelerator = "H100-SXM" }))
  end)

  it("that contradicts it is refused with file, field and both values", function()
    assert.equal("spec: cluster.gpus_per_node is 4, but found.txt:1 has 8 a node (scontrol show node: 2 nodes of 8)", refused(slurm, { gpus_per_node = 4 }))
    assert.equal('spec: cluster.accelerator is "A100", but found.txt:1 has h100 (scontrol show node: 2 nodes of 8)', refused(slurm, { accelerator = "A100" }))
    assert.equal("H100-PCIe", request(slurm, { accelerator = "H100-PCIe" }).cluster.accelerator)   -- Slurm says only h100
    assert.matches("^found.txt:1: h1oo is no accelerator of the catalogue; nearest: H100", refused((slurm:gsub("h100", "h1oo"))))
  end)

  it("takes several files that agree, and names one that is not there", function()
    local cards = files.write("cards.txt", "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)\n")
    local hosts = files.write("hosts", "a slots=2\nb slots=2\nc slots=2\n")
    local cluster = request("", { inventory = { cards, hosts } }).cluster
    assert.same({ 6, 2, "H200-SXM" }, { cluster.gpus, cluster.gpus_per_node, cluster.accelerator })
    assert.matches("cluster.inventory is .*nowhere", refused("", { inventory = "nowhere.txt" }))
  end)
end)

describe("rocm-smi --showtopo", function()
  local function matrix(count, link)
    local names, lines = {}, { "============================ ROCm System Management Interface ============================",
                               "=============================== Link Type between two GPUs ===============================" }
    for i = 0, count - 1 do names[#names + 1] = "GPU" .. i end
    lines[#lines + 1] = "       " .. table.concat(names, "         ")
    for i = 0, count - 1 do
      local row = { "GPU" .. i }
      for k = 0, count - 1 do row[#row + 1] = i == k and "0" or link(i, k) end
      lines[#lines + 1] = table.concat(row, "         ")
    end
    lines[#lines + 1] = "======================================= Numa Nodes ======================================="
    return table.concat(lines, "\n") .. "\n"
  end
  local function topology(text) return measured.read { files.write("topo.txt", text) }.topology end

  it("that joins two GPUs one way only is an error by its line", function()
    local good, failed = pcall(topology, matrix(4, function(i, k) return i == 1 and k == 2 and "PCIE" or "XGMI" end))
    assert.is_false(good)
    assert.matches(":%d+: GPU2 to GPU1 is XGMI, and GPU1 to GPU2 PCIE: expected the same both ways", failed.message)
  end)

  it("says which GPUs xGMI joins", function()
    local all = topology(matrix(8, function() return "XGMI" end))
    assert.same({ 8, 8, true }, { all.gpus, all.joined, all.xgmi })
    local halves = topology(matrix(8, function(i, k) return i // 4 == k // 4 and "XGMI" or "PCIE" end))
    assert.same({ 8, 4 }, { halves.gpus, halves.joined })
    local none = topology(matrix(2, function() return "PCIE" end))
    assert.same({ 2, 1, false }, { none.gpus, none.joined, none.xgmi })
  end)

  it("is planned with: MI300X of two halves have scale-up domains of four", function()
    local path = files.write("topo.txt", matrix(8, function(i, k) return i // 4 == k // 4 and "XGMI" or "PCIE" end))
    local network = spec.from_table({ cluster = { gpus = 64, accelerator = "MI300X", network = { per_gpu = "400Gbps", measured = path } },
      model = { architecture = "dense", total = "8B", layers = 32 }, training = { tokens = "2T" } }, ".").cluster.network
    assert.same({ 4, "xgmi", 448e9 }, { network.scale_up_gpus, network.scale_up_link, network.scale_up_per_gpu })
  end)

  it("that is torn is refused with its line", function()
    local text = matrix(4, function() return "XGMI" end)
    assert.has_error(function() topology((text:gsub("\nGPU3[^\n]*", ""))) end)
    assert.has_error(function() topology((text:gsub("XGMI", "WIFI", 1))) end)
  end)
end)

-- Data sheets: NVIDIA's Ada and Blackwell RTX white papers (appendix A, dense, sums in fp32), its DGX Spark page, AMD's MI300A data sheet
describe("cards without NVLink", function()
  it("have their data sheets' figures and their real link", function()
    for name, expected in pairs {
      ["RTX-4090"] = { 165.2e12, 330.3e12, 1008e9, 24564 * 2 ^ 20, "pcie", 32e9 }, ["RTX-5090"] = { 209.5e12, 419e12, 1792e9, 32607 * 2 ^ 20, "pcie", 64e9 },
      ["MI300A"] = { 980.6e12, 1961.2e12, 5300e9, 128 * 2 ^ 30, "xgmi", 384e9 }, L40S = { 362e12, 733e12, 864e9, 46068 * 2 ^ 20, "pcie", 32e9 },
    } do
      local entry = accelerators.find(name)
      assert.same(expected, { entry.flops.bf16, entry.flops.fp8, entry.memory_bandwidth, entry.memory_bytes, entry.scale_up_link,
                              entry.scale_up_per_gpu })
    end
    local spark = accelerators.find "GB10"
    assert.same({ 273e9, 128e9, 1, 25e9, "roce" }, { spark.memory_bandwidth, spark.memory_bytes, spark.gpus_per_node, spark.network_per_gpu, spark.fabric })
  end)
end)

-- What went over its bytes once for each of them would need minutes here.
describe("an inventory of a megabyte", function()
  it("is read in a time that follows its length", function()
    local heading = "NODELIST GRES\n"
    local ranges = {}
    for i = 1, 200 do ranges[i] = "b" .. i .. "[0-99999] gpu:8" end
    for i, each in ipairs {
      { ("NodeName=a Gres=gpu:8 "):rep(5e4), 1 }, { (" "):rep(1e6) .. " slots=8", "without a GPU that can be used" },
      { ("GPU 1: "):rep(1e5) .. "(UUID: ", "without a GPU that can be used" }, { heading .. ("["):rep(1e6) .. " gpu:8", "1 cells: expected 2" },
      { heading .. "a[" .. ("1,"):rep(3e4) .. "] gpu:8\n", 1 }, { ("a slots=8\n"):rep(1e5), "for the second time" },
      { heading .. ("a,"):rep(3e4) .. " gpu:8\n", 1 }, { heading .. table.concat(ranges, "\n") .. "\n", "more than 100000 nodes" },
      { heading .. (("a,"):rep(3e4) .. " gpu:8\n"):rep(16), "more than 100000 nodes" },
    } do
      local good, found = failure.try(inventory.read, each[1], "x")
      if type(each[2]) == "number" then assert.same({ true, each[2] }, { good, found.nodes }, i)
      else assert.matches(each[2], not good and found.message or "", 1, true) end
    end
  end)

  -- a list that was shortened to its ends would be a node of two cards
  it("takes no list of cards that is not whole", function()
    local ends = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n…\nGPU 7: NVIDIA H100 80GB HBM3 (UUID: GPU-8)\n"
    local good, failed = failure.try(inventory.read, ends, "x")
    assert.is_false(good)
    assert.equal("x:3: GPU 1 is missing: of GPUs 0 to 7 there are 2: expected a line for each", failed.message)
  end)

  -- pdsh and clush write a node's name before each line, srun --label a task's number; several tasks of a node tell of the same cards
  it("takes lists of several nodes, each once", function()
    local function list(prefix, first)
      local lines = {}
      for i = 0, 7 do lines[i + 1] = string.format("%sGPU %d: NVIDIA H100 80GB HBM3 (UUID: GPU-%d)\n", prefix, i, first + i) end
      return table.concat(lines)
    end
    local function nodes(text)
      local found = inventory.read(text, "x")
      return { found.nodes, found.per_node, found.one_node }
    end
    assert.same({ 2, 8 }, nodes(list("node1: ", 0) .. list("node2: ", 100)))
    assert.same({ 2, 8 }, nodes(list("0: ", 0) .. list("1: ", 100)))
    assert.same({ 1, 8 }, nodes(list("0: ", 0) .. list("1: ", 0)))
    assert.same({ 1, 8, true }, nodes(list("> ", 0)))
    local hidden = list("node1: ", 0) .. list("node2: ", 0)
    assert.same({ 2, 8 }, nodes((hidden:gsub("GPU%-%d+", "GPU-xxxx"))))
    local good, failed = failure.try(inventory.read, list("node1: ", 0) .. "node2: GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-9)\n", "x")
    assert.is_false(good)
    assert.matches("x:9: a node of 1 NVIDIA H100 80GB HBM3, where x:1 has 8", failed.message, 1, true)
  end)
end)
