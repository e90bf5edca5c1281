-- SPDX-License-Identifier: Apache-2.0
-- Parts of the pages in HTML by themselves: what they draw of an order worked out by hand, and where.

require "pipeplan"
local engine = require "engine"
local extent = require "pipeplan.report.html.extent"
local scatter = require "pipeplan.report.html.scatter"
local style = require "pipeplan.report.html.style"

describe("an overview", function()
  -- GPipe (Huang et al. 1811.06965) on two ranks, four microbatches, F 1 s and B 2 s: rank 0 has its forwards from 0 to 4 s. Rank 1 ends its own
  -- at 5 s and its first backward at 7 s; rank 0's four follow, to 15 s.
  it("shows from when to when which kind runs, and where a rank waits", function()
    local schedule = assert(engine.schedule { kind = "gpipe", ranks = 2, microbatches = 4 })
    local run = { schedule = schedule, info = schedule:info(), result = schedule:simulate { F = 1, I = 1, W = 1, intervals_of = true } }
    local seen = {}
    for kind, from, to in extent.overview(run, 0, 2) do seen[#seen + 1] = string.format("%s %.6g to %.6g", kind, from, to) end
    assert.same({ "F 0 to 4", "B 7 to 15" }, seen)
  end)
end)

describe("the scatter of alternatives", function()
  it("has a point at the height that its axis gives its memory", function()
    local gib = 2 ^ 30
    local plan = { step_seconds = 1, memory = { device_bytes = 80 * gib, headroom_bytes = 0 } }
    local points = { { name = "lean", seconds = 1.1, bytes = 40 * gib, fit = "fits" },
                     { name = "planned", seconds = 1, bytes = 60 * gib, fit = "fits", planned = true } }
    local picture = scatter.make(points, plan).text
    for name, height in pairs { lean = 40, planned = 60 } do
      local tick = picture:match('<line class="tick" [^>]-y1="([%d.]+)"[^>]*></line><text class="yl"[^>]*>' .. height .. "</text>")
      assert.equal(tick, picture:match("<title>" .. name .. ":[^<]*</title><circle [^>]-cy=\"([%d.]+)\""), name)
      assert.is_not_nil(tick)
    end
  end)
end)

describe("the style of a page", function()
  -- faces have weights in hundreds; of 401 a browser takes the face of 500 where there is one (CSS Fonts Module Level 4, Font Style Matching)
  it("asks for weights that fonts have", function()
    local count = 0
    for weight in style:gmatch "font%-weight:(%w+)" do
      assert.equal(0, tonumber(weight) % 100, weight)
      count = count + 1
    end
    assert.is_true(count > 0)
  end)
end)
