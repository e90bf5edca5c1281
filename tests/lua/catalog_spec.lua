-- SPDX-License-Identifier: Apache-2.0
-- stdlib/catalog: the fact tables are complete, sourced, and speak the vocabulary's names.

require "pipeplan"
local accelerators = require "pipeplan.catalog.accelerators"
local costs = require "lua.costs"
local engine = require "engine"
local frameworks = require "pipeplan.catalog.frameworks"
local hosts = require "pipeplan.catalog.hosts"
local kernels = require "pipeplan.catalog.kernels"
local links = require "pipeplan.catalog.links"
local overheads = require "pipeplan.catalog.overheads"
local vocabulary = require "pipeplan.vocabulary"

local function set(list)
  local result = {}
  for _, name in ipairs(list) do result[name] = true end
  return result
end

local families, fabrics = set(vocabulary.by_name.accelerator_family.domain), set(vocabulary.by_name.fabric.domain)

describe("every catalogue", function()
  for title, catalogue in pairs { accelerators = accelerators, links = links, kernels = kernels, frameworks = frameworks, hosts = hosts,
                               overheads = overheads } do
    it("names a source for every entry: " .. title, function()
      assert.is_true(#catalogue.names > 0)
      for i, entry in ipairs(catalogue.entries) do
        assert.equal(catalogue.names[i], entry.name)
        assert.is_true(type(entry.source) == "string" and #entry.source > 10, entry.name)
      end
    end)

    it("finds names and aliases in any case, and suggests the nearest: " .. title, function()
      for _, entry in ipairs(catalogue.entries) do
        assert.equal(entry, catalogue.find(entry.name:upper()))
        for _, alias in ipairs(entry.aliases or {}) do assert.equal(entry, catalogue.find(alias)) end
      end
      local entry, nearest = catalogue.find(catalogue.names[1] .. "x")
      assert.is_nil(entry)
      assert.equal(1, #nearest)
      entry, nearest = catalogue.find("nothing of the kind whatsoever")
      assert.is_nil(entry)
      assert.same({}, nearest)
    end)
  end
end)

describe("accelerators", function()
  it("have all that a plan reads", function()
    for _, entry in ipairs(accelerators.entries) do
      assert.is_true(families[entry.family], entry.name)
      assert.is_true(fabrics[entry.fabric], entry.name)
      assert.is_truthy(links.find(entry.scale_up_link), entry.name)
      assert.is_truthy(entry.flops.bf16 or entry.flops.fp16, entry.name)
      for _, field in ipairs { "memory_bytes", "memory_bandwidth", "scale_up_per_gpu", "scale_up_gpus", "gpus_per_node", "network_per_gpu" } do
        assert.is_true(type(entry[field]) == "number" and entry[field] > 0, entry.name .. " " .. field)
      end
    end
  end)

  it("reach between a tenth and nine tenths of their peaks", function()
    for _, entry in ipairs(accelerators.entries) do
      for _, precision in ipairs { "bf16", "fp8" } do
        for field, share in pairs(accelerators.efficiencies(entry, precision)) do
          if field:find "efficiency$" then assert.is_true(share >= 0.1 and share <= 0.95, entry.name .. " " .. field) end
        end
      end
    end
  end)

  it("are known under the names that clusters use", function()
    for name, expected in pairs { ["H100"] = "H100-SXM", ["H800-SXM-80GB"] = "H800-SXM", ["A100-SXM-80GB"] = "A100-SXM-80GB", ["H200"] = "H200-SXM",
                                  ["GB200"] = "GB200-NVL72", ["gb300"] = "GB300-NVL72", ["MI300X"] = "MI300X" } do
      assert.equal(expected, accelerators.find(name).name)
    end
  end)

  -- nvidia-smi; the catalogue name says 141 GB, the driver 140.4 GiB (sgl-project/sglang PR 13282)
  it("have the memory that drivers report, not that of their names", function()
    assert.equal(143771 * 2 ^ 20, accelerators.find("H200").memory_bytes)
    assert.equal(81559 * 2 ^ 20, accelerators.find("H100").memory_bytes)
  end)

  -- NVIDIA data sheets headline 1,979 and 3,958 TFLOP/s, with sparsity
  it("have dense peaks", function()
    assert.equal(989e12, accelerators.find("H100").flops.bf16)
    assert.equal(1979e12, accelerators.find("H100").flops.fp8)
  end)

  -- Data sheets of NVIDIA (dense: half of what they headline with sparsity), AMD and Google: TFLOP/s in bf16 (V100: fp16) and fp8, GB/s of
  -- memory. B200 and B300 are those of the HGX boards
  it("have the peaks and the memory bandwidth of their data sheets", function()
    local sheets = {
      ["V100-SXM-32GB"] = { 125, nil, 900 }, ["A100-SXM-40GB"] = { 312, nil, 1555 }, ["A100-SXM-80GB"] = { 312, nil, 2039 },
      ["A100-PCIe-80GB"] = { 312, nil, 1935 }, ["H100-SXM"] = { 989, 1979, 3350 }, ["H100-PCIe"] = { 756, 1513, 2000 },
      ["H200-SXM"] = { 989, 1979, 4800 }, ["H800-SXM"] = { 989, 1979, 3350 }, ["H20"] = { 148, 296, 4000 }, ["L40S"] = { 362, 733, 864 },
      ["GB200-NVL72"] = { 2500, 5000, 8000 }, ["MI250X"] = { 383, nil, 3277 }, ["MI300X"] = { 1307.4, 2614.9, 5300 },
      ["MI325X"] = { 1307.4, 2614.9, 6000 }, ["TPU-v5p"] = { 459, 459, 2765 },
    }
    for name, sheet in pairs(sheets) do
      local entry = accelerators.find(name)
      assert.equal(sheet[1] * 1e12, entry.flops.bf16 or entry.flops.fp16, name)
      assert.equal(sheet[2] and sheet[2] * 1e12, entry.flops.fp8, name)
      assert.equal(sheet[3] * 1e9, entry.memory_bandwidth, name)
    end
  end)

  -- Ascend 910B: 64 GB of HBM2e at 1.6 TB/s; 910C is two of its dies
  it("have the memory bandwidth of an Ascend 910B, and of two in a 910C", function()
    local one = accelerators.find("Ascend-910B").memory_bandwidth
    assert.is_true(one >= 1.6e12 and one < 1.8e12)
    for name, dies in pairs { ["Ascend-910B2"] = 1, ["Ascend-910B3"] = 1, ["Ascend-910C"] = 2 } do
      assert.equal(dies * one, accelerators.find(name).memory_bandwidth)
    end
  end)

  -- The report's own figures: NVLink 160 GB/s, InfiniBand 50 GB/s
  it("give an H800 the links of the DeepSeek-V3 report", function()
    local entry = accelerators.find("H800-SXM-80GB")
    assert.equal(160e9, entry.scale_up_per_gpu)
    assert.equal(50e9, entry.network_per_gpu)
  end)
end)

describe("links", function()
  it("cover every fabric of the vocabulary", function()
    for _, fabric in ipairs(vocabulary.by_name.fabric.domain) do
      local entry = links.find(fabric)
      assert.equal("scale_out", entry.kind)
      assert.is_true(entry.efficiency > 0 and entry.efficiency <= 1 and entry.latency >= 0)
    end
  end)
end)

describe("kernels", function()
  it("work on families and fabrics of the vocabulary", function()
    for _, entry in ipairs(kernels.entries) do
      for _, family in ipairs(entry.accelerator_families or {}) do assert.is_true(families[family], entry.name) end
      for _, fabric in ipairs(entry.fabrics or {}) do assert.is_true(fabrics[fabric], entry.name) end
      assert.is_true(entry.expert_parallel[1] <= entry.expert_parallel[2])
      assert.is_boolean(entry.trains)
      assert.is_boolean(entry.overlapping)
      assert.is_table(entry.needs)
    end
  end)

  -- GB/s of dispatch and combine: DeepEP @94a9f8f docs/README_PCIe.md, 53.01 and 53.67, 47.98 and 49.48; @dd758ca docs/legacy.md
  it("have the figures of their authors, in whole GB/s", function()
    assert.same({ { "H20 without NVLink EP8", 53, 54 }, { "EP16", 48, 49 } }, kernels.find("deepep_pcie").measured)
    assert.same({ { "H800 EP8", 153, 158 }, { "H800 + 400 Gb/s EP16", 43, 43 }, { "EP32", 58, 57 }, { "EP64", 51, 50 } },
                kernels.find("deepep_v1").measured)
  end)

  -- the plain all-to-all does not count as one that overlaps
  it("do not count NCCL's all-to-all as overlapping", function()
    assert.is_false(kernels.find("nccl_alltoall").overlapping)
    assert.is_true(kernels.find("deepep").overlapping)
  end)

  -- deepseek-ai/DeepEP#759 and awslabs/awsome-distributed-ai#1116: DeepEP cannot run on EFA
  it("say where they do not work", function()
    local situation = { accelerator_family = "hopper", fabric = "efa", expert_parallel = 32, scale_up_gpus = 8 }
    local good, why = kernels.works(kernels.find("deepep"), situation)
    assert.is_false(good)
    assert.matches("efa", why)
    assert.is_true(kernels.works(kernels.find("uccl_ep"), situation))
    situation.fabric = "infiniband"
    assert.is_true(kernels.works(kernels.find("deepep"), situation))
    assert.is_false(kernels.works(kernels.find("primus_turbo"), situation))
  end)

  it("need no fabric inside a scale-up domain", function()
    assert.is_true(kernels.works(kernels.find("deepep"), { accelerator_family = "hopper", fabric = "efa", expert_parallel = 8, scale_up_gpus = 8 }))
  end)

  -- DeepEP docs/legacy.md lists the node counts that its normal kernels are built for
  it("know the node counts of DeepEP V1", function()
    local v1 = kernels.find("deepep_v1")
    assert.is_true(kernels.works(v1, { accelerator_family = "ampere", fabric = "infiniband", expert_parallel = 64, scale_up_gpus = 8 }))
    assert.is_false(kernels.works(v1, { accelerator_family = "ampere", fabric = "infiniband", expert_parallel = 40, scale_up_gpus = 8 }))
  end)

  it("are not built for GB200 in DeepEP's case", function()
    assert.is_false(kernels.works(kernels.find("deepep"), { accelerator_family = "gb200", expert_parallel = 32, scale_up_gpus = 72 }))
    assert.is_true(kernels.works(kernels.find("hybrid_ep"), { accelerator_family = "gb200", expert_parallel = 32, scale_up_gpus = 72 }))
  end)
end)

describe("frameworks", function()
  it("are those of the vocabulary, and run its schedules", function()
    local schedules = set(vocabulary.schedules)
    local names = table.move(frameworks.names, 1, #frameworks.names, 1, {})
    local expected = table.move(vocabulary.by_name.framework.domain, 1, #vocabulary.by_name.framework.domain, 1, {})
    table.sort(names)
    table.sort(expected)
    assert.same(expected, names)
    for _, entry in ipairs(frameworks.entries) do
      for _, name in ipairs(frameworks.schedules(entry)) do assert.is_true(schedules[name], entry.name .. " " .. name) end
    end
  end)

  -- NVIDIA/Megatron-LM#5254 was closed; FlagScale, MindSpeed, torchtitan and PyTorch have DualPipeV
  it("say where a schedule can be run", function()
    assert.same({ "flagscale", "deepseek-dualpipe" }, frameworks.running("dualpipe"))
    assert.same({ "flagscale", "deepseek-dualpipe", "torchtitan", "torch", "mindspeed" }, frameworks.running("dualpipev"))
    assert.same({ "torchtitan", "torch", "primus", "zero-bubble" }, frameworks.running("zb_h1"))   -- torchtitan: from a CSV
    assert.same({ "torchtitan", "torch", "primus", "zero-bubble" }, frameworks.running("v_half"))
    assert.same({ "megatron", "megatron-bridge" }, frameworks.running("interleaved_1f1b_overlap"))
  end)
end)

describe("hosts", function()
  it("are known for every family of accelerators, and update slower than the GPU would", function()
    for family in pairs(families) do
      local host = hosts.find(family)
      assert.is_true(host.link > 1e9 and host.memory_bandwidth * host.update_efficiency < 200e9, family)
    end
  end)

  -- NVIDIA Grace: 512 GB/s of LPDDR5X, for the two GPUs of a superchip, GB200's and GB300's
  it("are half a Grace for a GPU of GB200 and of GB300", function()
    assert.same({ 256e9, 256e9 }, { hosts.find("gb200").memory_bandwidth, hosts.find("gb300").memory_bandwidth })
  end)

  -- channels of 8 bytes times transfers a second (JEDEC's DDR4-3200 has 3,200 million), of all processors of a node, over its GPUs
  it("have the bandwidth of their channels of memory", function()
    for family, node in pairs { volta = { 2 * 4, 2400, 8 }, ampere = { 2 * 8, 3200, 8 }, hopper = { 2 * 8, 4800, 8 }, blackwell = { 2 * 8, 5600, 8 },
                                mi200 = { 8, 3200, 4 }, mi300 = { 2 * 12, 4800, 8 }, ascend = { 4 * 8, 2933, 16 } } do
      assert.near(node[1] * 8 * node[2] * 1e6 / node[3], hosts.find(family).memory_bandwidth, 2e9, family)
    end
  end)
end)

describe("what a process takes beside tensors", function()
  -- tests/data/gpu/README.md, a process of PyTorch 2.11 on an H200: context 612 MiB, cuBLAS 160, NCCL's first communicator 560, each further 390
  it("is what was measured: a context, libraries, a communicator, and more for each further one", function()
    assert.near((612 + 160 + 560) * 2 ^ 20, overheads.bytes, 1)
    assert.near(390 * 2 ^ 20, overheads.find("communicator").bytes, 1)
  end)

  -- tests/data/gpu/README.md: the first communicator of several ranks 840 MiB, of one 558; each further 484 to 486, 388 to 390
  it("is what was measured of Megatron's groups", function()
    local groups = frameworks.find("megatron").communicators
    local sizes = overheads.communicators(groups, 8)
    assert.near(612 + 160 + 840, (overheads.process(groups, 4) + sizes.several) / 2 ^ 20, 1)
    assert.near(612 + 160 + 558, (overheads.process(groups, 1) + sizes.one) / 2 ^ 20, 1)
    assert.near(485, sizes.several / 2 ^ 20, 1)
    assert.near(389, sizes.one / 2 ^ 20, 1)
  end)

  -- NVIDIA aiconfigurator reserves 3.5 GiB and 342 to 392 MiB of NCCL; pith-train PR 18 measured 5.84 GiB with FSDP's buffers of 0.96 GiB, experts
  -- over 8 GPUs: data parallel, experts, and the GPUs that hold the same ones
  it("lies, with experts, between what others reserve and what was measured", function()
    local bytes = overheads.bytes + overheads.find("experts").bytes + 2 * overheads.find("communicator").bytes
    assert.is_true(bytes >= 3.5 * 2 ^ 30 and bytes <= (5.84 - 0.96) * 2 ^ 30)
  end)

  it("is as it was without a framework whose groups were measured: the first communicator and each further one", function()
    local groups = frameworks.communicators()
    local function of(layout, gpus)
      local ranks = engine.memory.stages {
        model = { layers = 4, hidden = 64, vocab = 256, heads = 4, ffn = 128, experts = 8, experts_per_token = 2, expert_ffn = 64 },
        training = costs.bf16(), layout = layout, overhead = overheads.process(groups, gpus), communicators = overheads.communicators(groups, 8),
      }
      return ranks[1].overhead / 2 ^ 20
    end
    assert.near(1332, of({}, 1), 1)
    assert.near(1332, of({ data = 8 }, 8), 1)
    assert.near(1332 + 390, of({ data = 4, tensor = 2 }, 8), 1)
    assert.near(1332 + 2 * 390, of({ data = 8, expert = 4 }, 8), 1)   -- and the GPUs with the same experts
  end)
end)
