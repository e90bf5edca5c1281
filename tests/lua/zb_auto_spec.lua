-- SPDX-License-Identifier: Apache-2.0
-- zb_auto in plans: the limit that it is planned under, and what follows from it.

local planning = require "planning"  -- first: it loads the module

local plan, page_of = planning.plan, planning.page_of
local llama = planning.llama

local function fixed(schedule, pipeline, changes)
  return plan(planning.merge(llama, { parallelism = { tensor = 8, pipeline = pipeline, schedule = schedule } }), changes)
end

describe("a plan of zb_auto", function()
  it("holds between P and 2P microbatches on a rank, as many as fit", function()
    local before = 0
    for _, headroom in ipairs { "60%", "50%", "40%", "30%", "20%", "8%" } do
      local policy = planning.policy_of(([[set { memory_headroom = %q }]]):format(headroom))
      local result = plan(planning.merge(llama, { parallelism = { tensor = 8, context = 1, pipeline = 4, schedule = "zb_auto" } }), {}, policy)
      local limit = result.activation_limit_chunks
      if result.status == "planned" then
        assert.is_true(limit >= 4 and limit <= 8)
        assert.is_true(limit >= before)
        before = limit
        for _, rank in ipairs(result.memory.ranks) do
          assert.is_true(rank.total_bytes <= result.memory.device_bytes - result.memory.headroom_bytes)
        end
      end
    end
    assert.equal(8, before)
  end)

  it("takes no longer than one of ZB-H1 at the same layout", function()
    for _, pipeline in ipairs { 2, 4, 8 } do
      local ours, handmade = fixed("zb_auto", pipeline), fixed("zb_h1", pipeline)
      if ours.status == "planned" and handmade.status == "planned" and ours.parallelism.data == handmade.parallelism.data then
        assert.is_true(ours.step_seconds <= handmade.step_seconds * (1 + 1e-9))
      end
    end
  end)

  it("says its limit, which other plans do not have, and the sail fork's flag for it", function()
    local result = fixed("zb_auto", 4)
    assert.equal("zero_bubble", result.schedule_family)
    local page = page_of(result)
    assert.matches("planned for at most " .. result.activation_limit_chunks .. " microbatches' activations", page)
    local sail = page_of(fixed("zb_auto", 4, { framework = "zero-bubble" }))
    assert.matches("%-%-zero%-bubble%-max%-pending%-backward%s+" .. result.activation_limit_chunks, sail)
    assert.is_nil(fixed("zb_h1", 4).activation_limit_chunks)
  end)
end)
