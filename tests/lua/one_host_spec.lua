-- SPDX-License-Identifier: Apache-2.0
-- A cluster that is one host needs no network, and none is made up for it: without network.per_gpu nothing is planned across hosts.

local files = require "policy_files"
local planning = require "planning"

local nothing = planning.none

local function mixtral(gpus, network, more)
  return planning.plan(planning.merge(planning.mixtral, {
    cluster = { gpus = gpus, accelerator = "H100-SXM", network = network },
    training = { global_batch_size = 64, recompute = "full" },
  }), more)
end

local function seventy_billion(network)
  return planning.plan(planning.merge(planning.llama, { cluster = { gpus = 8, network = network }, training = { global_batch_size = 64 } }))
end

describe("one host without a network speed", function()
  it("plans experts, of which none leaves the host, and assumes no speed", function()
    local plan = mixtral(8, nothing, { parallelism = { tensor = 1, expert = 8, pipeline = 1 } })
    assert.is_nil(planning.assumption(plan, "cluster.network.per_gpu"))
    assert.is_nil(plan.cluster.network_bytes_per_second)
    assert.equal("none", plan.cluster.fabric)
    -- whatever the speed, nothing crosses it
    for _, speed in ipairs { "25Gbps", "800Gbps" } do
      local given = mixtral(8, { fabric = "infiniband", per_gpu = speed }, { parallelism = { tensor = 1, expert = 8, pipeline = 1 } })
      assert.equal(plan.status, given.status)
      assert.equal(plan.step_seconds, given.step_seconds)
    end
  end)

  it("is no longer one host with one GPU more: the speed is asked for", function()
    local good, problem = pcall(mixtral, 16, nothing)
    assert.is_false(good)
    assert.matches("cluster.network.per_gpu is missing", tostring(problem), 1, true)
  end)

  it("is asked of dense models too where no catalogue has the GPU", function()
    local found = planning.problem(planning.llama, {
      cluster = { gpus = 16, accelerator = nothing, memory_per_gpu = "80GiB", flops = "989T", network = nothing } })
    assert.matches("cluster.network.per_gpu is missing.*no catalogue knows this GPU's usual one$", found.message)
  end)

  -- eight GPUs of which bridges join pairs: the others are reached over PCIe, still inside the host
  it("needs none between pairs of its GPUs that NVLink bridges join", function()
    local rows = {}
    for gpu = 0, 7 do
      local cells = {}
      for other = 0, 7 do cells[#cells + 1] = other == gpu and "X" or other // 2 == gpu // 2 and "NV12" or "SYS" end
      rows[#rows + 1] = "GPU" .. gpu .. "\t" .. table.concat(cells, "\t")
    end
    local text = "\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\n" .. table.concat(rows, "\n") .. "\n"
    local network = { fabric = nothing, per_gpu = nothing, measured = files.write("pairs.txt", text) }
    local plan = mixtral(8, network, { cluster = { accelerator = "H100-PCIe" }, parallelism = { tensor = 1, expert = 8 } })
    assert.is_nil(plan.cluster.network_bytes_per_second)
    assert.equal("none", plan.cluster.fabric)
  end)

  -- 70.6 B parameters of 16 bytes and more are 1.1 TB: eight H100 have 640 GiB
  it("cannot say how many hosts would do for what does not fit it; with the speed it can", function()
    local alone = seventy_billion(nothing)
    assert.same({ "refused", "does_not_fit" }, { alone.status, alone.reasons[1].id })
    assert.is_nil(alone.gpus_needed)
    assert.matches("; how many GPUs would do takes cluster.network.per_gpu to say", alone.reasons[1].message, 1, true)
    local joined = seventy_billion{ fabric = "infiniband", per_gpu = "400Gbps" }
    assert.same({ "refused", "does_not_fit" }, { joined.status, joined.reasons[1].id })
    assert.is_true(joined.gpus_needed > 8)
  end)
end)
