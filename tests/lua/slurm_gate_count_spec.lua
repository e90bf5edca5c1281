-- SPDX-License-Identifier: Apache-2.0
-- The gate of examples/slurm counts GPUs as Slurm does. Lines are of Slurm's source, slurm-22-05-8-1 unless another is named.

local gate = dofile(os.getenv "PIPEPLAN_SOURCE" .. "/examples/slurm/pipeplan_gate.lua")

local function span(job)
  local asked = {}
  for name, value in pairs(job) do asked[name] = type(value) == "string" and gate.gpus(value) or value end
  return { gate.count(asked) }
end

describe("the GPUs of an option", function()
  -- src/common/gres.c:5253 _get_next_gres; src/common/slurm_protocol_defs.c:6133 suffix_mult
  for text, kinds in pairs {
    ["gres:gpu:8"] = { [""] = 8 }, ["gres/gpu=8"] = { [""] = 8 }, ["gres:gpu"] = { [""] = 1 }, ["gres:gpu:h100"] = { h100 = 1 },
    ["gres:gpu:h100:4,gres:nic:2,gres:gpu:a100:2"] = { h100 = 4, a100 = 2 },
    ["gres:gpu:4k"] = { [""] = 4096 }, ["gres:gpu:1KB"] = { [""] = 1000 }, ["gres:gpu:a100:1mib"] = { a100 = 1048576 },
    ["gres:gpu:2gb"] = { [""] = 2000000000 },
    -- gres.c:5241: the product overflows, here to 64 (387381625547900584 × 1000 mod 2^64)
    ["gres:gpu:387381625547900584kb"] = { [""] = math.huge },
    -- gres.c:5341: what is no number behind one colon is a kind, of which there is one
    ["gres:gpu:1g.10gb"] = { ["1g.10gb"] = 1 }, ["gres:gpu:3g.40gb:2"] = { ["3g.40gb"] = 2 }, ["gres:gpu:0x100"] = { ["0x100"] = 1 },
    ["gres:gpu:4090"] = { [""] = 4090 },
    -- gres.c:5280: "gres:" is looked for wherever it is; slurm-24-11-5-1, slurm_protocol_defs.c slurm_get_next_tres: and without a sign
    ["xgres:gpu:64"] = { [""] = 64 }, ["nic,xgres:gpu:64"] = { [""] = 64 }, ["gresgpu:64"] = { [""] = 64 },
    -- gres.c:5761: of one kind in one option twice the total is the larger (what a node gets is the last)
    ["gres:gpu:h100:4,gres:gpu:h100:2"] = { h100 = 4 },
    -- slurm-24-11-5-1, doc/html/gres.shtml:346, 566: shares have to fit on a single GPU of each node
    ["gres:mps:100"] = { mps = 1 }, ["gres:shard:h100:4,gres:nic:1"] = { shard = 1 }, ["gres:shard:0"] = { shard = 0 }, ["gres:mps"] = { mps = 1 },
    -- what is an error (gres.c:5321, 5327), or a number to 22.05 (strtoull) and none to 24.11 (isdigit): nobody knows
    ["gres:gpu:"] = { [""] = math.huge }, ["gres:gpu:h100:"] = { h100 = math.huge }, ["gres:gpu:h100:x"] = { h100 = math.huge },
    ["gres:gpu:+8"] = { [""] = math.huge }, ["gres:gpu:-8"] = { [""] = math.huge },
  } do
    it("are counted in " .. text, function() assert.same(kinds, gate.gpus(text)) end)
  end

  it("are none of other resources", function()
    for _, text in ipairs { "", "gres:nic:4", "gres:gpux:4", "license:gpu", "billing:8" } do assert.is_nil(gate.gpus(text)) end
  end)
end)

describe("the GPUs of a job", function()
  it("add up over kinds, each of which may be asked for in another way", function()
    -- gres.c:5442: a record for each kind; the counts are what slurmctld logs as total_gres (DebugFlags=Gres)
    assert.same({ 6, 6 }, span { tasks = 3, per_job = "gres:gpu:a100:3", per_task = "gres:gpu:h100:1" })
    assert.same({ 5, 5 }, span { least_nodes = 1, most_nodes = 1, per_job = "gres:gpu:a100:1", per_node = "gres:gpu:h100:4" })
    assert.same({ 4, 6 }, span { tasks = 3, per_node = "gres:gpu:a100:1", per_task = "gres:gpu:h100:1" })
    assert.same({ 6, 6 }, span { least_nodes = 2, most_nodes = 2, per_node = "gres:gpu:a100:1,gres:gpu:h100:2" })
    assert.same({ 8, 8 }, span { least_nodes = 2, most_nodes = 2, sockets = 2, per_socket = "gres:gpu:h100:1", per_node = "gres:gpu:a100:2" })
  end)

  it("are one a node of which shares are asked for", function()
    assert.same({ 64, 64 }, span { least_nodes = 64, most_nodes = 64, per_node = "gres:mps:100" })
  end)

  it("are counted once where one kind is asked for in two ways, which Slurm demands to agree", function()
    assert.same({ 4, 4 }, span { least_nodes = 2, most_nodes = 2, per_job = "gres:gpu:4", per_node = "gres:gpu:2" })
  end)

  it("are one a node where tasks are told by GPU and nothing tells how many", function()
    -- gres.c:5668: num_tasks = nodes × ntasks_per_gpu; gres.c:5841: GPUs = num_tasks / ntasks_per_gpu
    assert.same({ 64, 64 }, span { least_nodes = 64, most_nodes = 64, tasks_per_gpu = 2 })
    assert.same({ 32, 32 }, span { least_nodes = 4, most_nodes = 4, tasks = 64, tasks_per_gpu = 2 })
  end)
end)
