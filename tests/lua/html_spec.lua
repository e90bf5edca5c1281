-- SPDX-License-Identifier: Apache-2.0
-- Parts of the pages in HTML by themselves: what they draw of an order worked out by hand, and where.

require "pipeplan"
local engine = require "engine"
local alternatives = require "pipeplan.report.html.alternatives"
local extent = require "pipeplan.report.html.extent"
local format = require "pipeplan.base.format"
local html = require "pipeplan.report.html.init"
local planning = require "planning"
local scatter = require "pipeplan.report.html.scatter"
local style = require "pipeplan.report.html.style"
local words = require "pipeplan.report.html.words"

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
    local points = { { name = "lean", seconds = 1.1, bytes = 40 * gib, fit = "fits", allowed = true },
                     { name = "planned", seconds = 1, bytes = 60 * gib, fit = "fits", allowed = true, planned = true } }
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

-- A dense 70B on 256 H100, where DualPipeV comes out within 1 % of the plan.
local near = { cluster = { gpus = 256, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
               model = { architecture = "dense", total = "70B", layers = 80 }, training = { tokens = "1T", global_batch_size = 1024 } }

describe("what a page offers in place of the plan", function()
  it("is what no rule forbids: not as a tie, and not on the frontier", function()
    local forbidding = planning.policy_of [[
      site "s"
      reject { id = "never_here", schedule = "dualpipev", message = "never here" }
    ]]
    local offered = {}
    for _, policy in ipairs { planning.policy, forbidding } do
      local plan = planning.plan(near, nil, policy)
      local other = planning.entry(plan.alternatives, "dualpipev")
      assert.is_true(other.tie)
      local warnings, _, rows = words.warnings(plan).text, alternatives.sections(plan)
      local point = { name = "DualPipeV", seconds = other.step_seconds, bytes = other.peak_bytes, allowed = other.allowed }
      offered[#offered + 1] = {
        other.allowed, warnings:match "Tie%.</b>[^<]*":find("DualPipeV", 1, true) ~= nil,
        rows.text:find "DualPipeV<em> tie</em>" ~= nil, #scatter.frontier { point },
      }
    end
    assert.same({ { true, true, true, 1 }, { false, false, false, 0 } }, offered)
  end)
end)

describe("a batch that grows", function()
  -- DeepSeek-V3's of 4.2 of its report, from 3,072 to 15,360 sequences on 128 replicas: M 24 to 120. 1F1B has nothing simpler to fall back to, so
  -- a run is given up over 1.20 times its step, the error of an estimate, at each batch.
  it("is shown batch by batch, and each sentence says of which batch it speaks", function()
    local plan = planning.policy:plan { "examples/specs/deepseek-v3-ramp.json" }
    plan.explanation = { decided = {}, rules = {}, overridden = {}, changes = {}, figures = {}, answers = {} }
    local text = html.plan(plan, nil, {}):gsub("<wbr>", "")
    local segments, rollback = plan.training.batch_ramp, text:match '<section [^>]-id="rollback">.-</section>'
    assert.same({ 3072, 15360 }, { segments[1].global_batch_size, segments[5].global_batch_size })
    for i, microbatches in pairs { [1] = "24", [5] = "120" } do
      local batch, limit = format.integer(segments[i].global_batch_size), format.seconds(1.2 * segments[i].step_seconds)
      assert.matches(string.format("<td>%s</td><td>%s</td><td>%s</td>.-<td>%s</td></tr>", batch, microbatches,
                                   format.seconds(segments[i].step_seconds), limit), text)
      assert.matches(string.format("%s below [%%d.]+ %%%% %%(steps over %s%%)", batch, limit), rollback)
    end
    assert.matches("On the mean of the window, at its own batches: below ", rollback, 1, true)
    assert.matches("at the smallest batch, 3,072: M/P is 1.5;", text, 1, true)
    assert.matches("<b>24 to 120</b> microbatches (M)", text, 1, true)
    assert.matches("at the full batch of 15,360", text, 1, true)
  end)
end)

describe("a saving", function()
  -- 285 k GPU-hours against 302 k are 0.9452 of them; of the ratio of two schedules 6 % may be wrong, so it may be 0.9452 × 1.06 = 1.002: no saving
  -- for sure.
  it("is what the error of that comparison leaves of it, as the text has it", function()
    local plan = planning.plan(near, { training = { micro_batch_size = 1, global_batch_size = 448 },
                                       parallelism = { pipeline = 8, tensor = 4, schedule = "zb_h1" } })
    assert.equal(0.06, plan.gpu_hours_saved[1].error_fraction)
    local said = words.verdict(plan).text
    assert.matches("as many as 1F1B needs, as far as can be told (-5.5 %, and the comparison is good to ±6 %)", said, 1, true)
    assert.matches("5.48 ± 6 %", planning.page_of(plan), 1, true)
    assert.matches("the ratio of two schedules ±6 %, of two layouts ±19 %, of a pipeline and none ±26 %", words.sure(plan), 1, true)
  end)
end)
