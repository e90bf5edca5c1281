-- SPDX-License-Identifier: Apache-2.0
-- engine.comm: named arguments in, seconds out; the formulas are tested in tests/unit/comm_test.c.

local engine = require("pipeplan") and require "engine"
local costs = require "lua.costs"

local function near(expected, actual)
  assert.is_true(math.abs(actual - expected) <= 1e-9 * expected, string.format("expected %g, got %g", expected, actual))
end

describe("engine.comm", function()
  it("times a message, a collective and an all-to-all", function()
    local network = costs.network()
    near(1e-5 + 1e9 / 45e9, engine.comm.p2p { network = network, stride = 8, bytes = 1e9 })
    near(3 * 2e-6 + 0.75 * 1e9 / 360e9, engine.comm.allgather { network = network, size = 4, bytes = 1e9 })
    near(2 * (3 * 2e-6 + 0.75 * 1e9 / 360e9), engine.comm.allreduce { network = network, size = 4, bytes = 1e9 })
    local transfer = { network = network, group = 64, tokens = 4096, experts_per_token = 8, bytes_per_token = 7168, max_domains = 4 }
    local kernel = engine.comm.alltoall(transfer)
    transfer.flat = true
    assert.is_true(engine.comm.alltoall(transfer) > 1.5 * kernel)
  end)

  it("sends a token to no more experts than there are", function()
    local transfer = { network = costs.network(), group = 64, tokens = 4096, experts_per_token = 4, experts = 2, bytes_per_token = 7168 }
    local good, problem = pcall(engine.comm.alltoall, transfer)
    assert.is_false(good)
    assert.matches("engine.comm.alltoall: 'experts_per_token' must be at most 'experts', 2, got 4", problem)
  end)

  -- marin-community/marin#7706: per token of a mixture with hidden 6144, top-4 and 48 layers, EP 16 over two nodes sends 2.25 MiB across, two
  -- pipeline stages with EP 8 inside a node send 12 KiB one way. One byte a second across: seconds are bytes.
  it("counts what crosses between nodes as the report does", function()
    local network = { tiers = { { reach = 8, bandwidth = 1e30 }, { reach = 16, bandwidth = 1 } } }
    local dispatch = engine.comm.alltoall { network = network, group = 16, tokens = 1, experts_per_token = 4, bytes_per_token = 2 * 6144, flat = true }
    near(2.25 * 2 ^ 20, 2 * 48 * dispatch)  -- a dispatch and a combine a layer
    near(12 * 2 ^ 10, engine.comm.p2p { network = network, stride = 8, bytes = 2 * 6144 })
  end)

  it("names what is wrong with a network", function()
    local function message(network)
      local _, problem = pcall(engine.comm.p2p, { network = network, bytes = 1 })
      return tostring(problem)
    end
    assert.matches("network: from 1 to 4 tiers expected, got 0", message { tiers = {} })
    assert.matches("network tier: 'bandwidth'", message { tiers = { { reach = 8 } } })
    assert.matches("tier 2 reaches 4 GPUs", message { tiers = { { reach = 8, bandwidth = 1 }, { reach = 4, bandwidth = 1 } } })
    assert.matches("engine.comm.p2p: 'network'", message(nil))
  end)
end)
