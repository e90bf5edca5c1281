-- SPDX-License-Identifier: Apache-2.0
-- The page and its Markdown: what must hold of every plan, shown on plans written by hand.

require "pipeplan"
local text = require "pipeplan.report.text"
local markdown = require "pipeplan.report.markdown"
local fixtures = require "fixtures.plan"

local function lines_of(page)
  local lines = {}
  for line in page:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  return lines
end

-- A plan with far too much to say.
local function crowded(plan)
  local long = string.rep("a long sentence about what went wrong and what to do, ", 12)
  for i = 1, 60 do
    plan.warnings[i] = { id = "warning_" .. i, severity = i % 3 == 0 and "note" or "warning", message = long }
    plan.assumptions[i] = { field = "training.some_field_" .. i, value = i * 1.5, why = long }
    plan.loosened[i] = { id = "rule_" .. i, kind = "disabled", layer = "site", file = string.rep("x/", 60) .. "f.lua", line = i,
                         reason = long, expires = "2027-01-01" }
    plan.dropped[i] = { rule = "rule_" .. i, count = i }
    plan.policy.layers[i] = "layer-" .. i
    plan.reasons[i] = { id = "reason_" .. i, message = long, source = "https://arxiv.org/abs/2104.04473", file = "f.lua", line = 1 }
  end
  plan.model.name = string.rep("very-long-model-name-", 6)
  plan.cluster.accelerator = string.rep("Z", 200)
  if plan.status == "planned" then
    plan.rollback.paragraph = string.rep("measure and compare; ", 100)
    for i = 1, 40 do
      plan.alternatives[i] = plan.alternatives[1]
      plan.dominated_by[i] = { schedule = "zb_v", gain_fraction = 0.07, tie = false, change = long }
      plan.alltoall_kernel.needs[i] = long
      plan.available_in[i] = "framework-" .. i
    end
    for i, rank in ipairs(plan.memory.ranks) do rank.total_bytes = rank.total_bytes + i * 2 ^ 28 end
    plan.training.batch_ramp = {}
    for i = 1, 50 do plan.training.batch_ramp[i] = { first_token = i * 1e9, global_batch_size = 128 * i, microbatches = i } end
  else
    plan.recommend.why = long
  end
  return plan
end

describe("the page", function()
  for _, outcome in ipairs { "planned", "refused" } do
    it("is at most 66 lines of 80 columns: " .. outcome, function()
      for _, plan in ipairs { fixtures[outcome](), crowded(fixtures[outcome]()) } do
        local lines = lines_of(text.render(plan))
        assert.is_true(#lines <= 66, #lines .. " lines")
        for _, line in ipairs(lines) do assert.is_true(utf8.len(line) <= 80, line) end
      end
    end)
  end

  -- Megatron-LM: --expert-tensor-parallel-size is that of --tensor-model-parallel-size when nobody says (megatron/training/arguments.py)
  it("says how experts are cut where that is not how the rest is", function()
    local plan = fixtures.planned()
    plan.parallelism.tensor, plan.parallelism.expert, plan.parallelism.expert_tensor = 2, 8, 1
    assert.matches("TP 2 · EP 8 · ETP 1 · DP", lines_of(text.render(plan))[1])
    plan.parallelism.expert_tensor = 2
    assert.matches("TP 2 · EP 8 · DP", lines_of(text.render(plan))[1])
    plan.parallelism.expert, plan.parallelism.expert_tensor = 1, 1  -- a dense model: no experts to cut
    assert.matches("TP 2 · DP", lines_of(text.render(plan))[1])
  end)

  it("ends with the rollback paragraph, also when it is crowded", function()
    local plan = fixtures.planned()
    assert.matches("switch to ZB%-H1 at P 16%.\n$", text.render(plan))
    local lines = lines_of(text.render(crowded(plan)))
    local last_label
    for _, line in ipairs(lines) do last_label = line:match("^(%l%S*)") or last_label end
    assert.equal("rollback", last_label)
  end)

  it("never cuts why another schedule is not the plan, however long names, layouts and reasons are", function()
    local plan = fixtures.planned()
    local reasons = { "not_in_framework", "megatron.interleaved_group", "does_not_fit", "a_rule_of_a_site_with_a_name_that_says_everything" }
    local wide = { pipeline = 32, virtual = 16, tensor = 16, context = 16, expert = 128, expert_tensor = 8, data = 1024 }
    for i, schedule in ipairs { "interleaved_zero_bubble", "interleaved_1f1b_overlap" } do
      for j, layout in ipairs { wide, plan.parallelism } do
        plan.alternatives[2 * i + j - 2] = { schedule = schedule, parallelism = layout, fit = "fits", step_seconds = 1234.5, bubble_fraction = 0.1234,
                                             peak_bytes = 1e15, why_not = table.move(reasons, 1, 2 * i, 1, {}) }
      end
    end
    local page = text.render(plan)
    for _, line in ipairs(lines_of(page)) do assert.is_true(utf8.len(line) <= 80, line) end
    page = page:gsub("%s+", " ")
    local why = "not_in_framework, megatron.interleaved_group"
    assert.matches("interleaved zero bubble V 16 %S+ %a+ 12.3 %% %S+ at P 32 TP 16 CP 16 EP 128 ETP 8: " .. why, page)
    assert.matches(why .. ", does_not_fit, a_rule_of_a_site_with_a_name_that_says_everything", page, 1, true)
    local shown = 0
    for _ in page:gmatch "not_in_framework, megatron.interleaved_group" do shown = shown + 1 end
    assert.equal(4, shown)
  end)

  it("says what it left out", function()
    assert.matches("… %d+ more, see %-%-format json", text.render(crowded(fixtures.planned())))
    assert.is_nil(text.render(fixtures.planned()):find("more, see", 1, true))
  end)

  it("says first what matters most: schedule, P, M, fit, bubble, hours saved", function()
    local lines = lines_of(text.render(fixtures.planned()))
    assert.matches("^DualPipe · P 16 · M 120 .*DeepSeek%-V3$", lines[1])
    local head = table.concat(lines, "\n", 1, 8)
    assert.matches("67.0 of 80 GiB on rank 0", head, 1, true)
    assert.matches("3.17 %", head, 1, true)
    assert.matches("112 k GPU-hours against 1F1B", head, 1, true)
  end)

  it("shows loosened rules, their reason and their expiry among the first lines", function() -- any rule
    local plan = fixtures.planned()
    plan.loosened = { { id = "odd_microbatches", kind = "disabled", layer = "aws-p5", file = "aws-p5.lua", line = 7,
                        reason = "our DualPipeV takes odd M", expires = "2027-06-30" } }
    local head = table.concat(lines_of(text.render(plan)), "\n", 1, 20)
    assert.matches("odd_microbatches disabled by aws-p5: our DualPipeV takes odd M, until 2027-06-30", head:gsub("%s+", " "), 1, true)
  end)

  it("calls a small gain a tie and a larger one by its size", function()
    local plan = fixtures.planned()
    assert.matches("in simulation DualPipeV by 2.1 %: a tie", text.render(plan), 1, true)
    plan.dominated_by = { { schedule = "zb_v", gain_fraction = 0.12, tie = false } }
    local page = text.render(plan)
    assert.matches("in simulation ZB-V by 12 %", page, 1, true)
    assert.is_nil(page:find("a tie", 1, true))
  end)

  it("shows ranks that look alike as one row, and of many rows the ones that matter", function()
    local plan = fixtures.planned()
    assert.matches("ranks 1–14 ", text.render(plan), 1, true)
    for i, rank in ipairs(plan.memory.ranks) do
      rank.activations_bytes = (17 - i) * 2 ^ 30
      rank.total_bytes = rank.parameters_bytes + rank.gradients_bytes + rank.optimizer_bytes + rank.activations_bytes + rank.buffers_bytes
    end
    local page = text.render(plan)
    for _, row in ipairs { "rank 0 ", "rank 1 ", "rank 15 " } do assert.matches(row, page, 1, true) end
    assert.is_nil(page:find("rank 7 ", 1, true))
    assert.matches("GiB, 12 more", page, 1, true)
    assert.matches(" total\n", page, 1, true)
  end)

  it("says what a saving is due to, and calls a loss a loss", function()
    local plan = fixtures.planned()
    plan.gpu_hours_saved = { { baseline = "1f1b", bubble = 51200, overlap = 0, total = 51200, baseline_fits = true },
                             { baseline = "zb_h1", bubble = -7709, overlap = 0, total = -7709, baseline_fits = false } }
    local page = text.render(plan):gsub("%s+", " ")
    assert.matches("51.2 k GPU-hours against 1F1B (7.95 %): bubble 51.2 k nothing: ", page, 1, true)
    assert.matches("nothing: 7,709 GPU-hours more than ZB-H1 (1.32 %): bubble −7,709; ZB-H1 does not fit", page, 1, true)
  end)

  it("says of links that their speed is one GPU's, and among how many GPUs", function()
    local plan = fixtures.planned()
    assert.matches("2,048 × H800-SXM-80GB, 8 a node: each 160 GB/s there, infiniband 400 Gb/s", text.render(plan):gsub("%s+", " "), 1, true)
    plan.cluster.scale_up_gpus, plan.cluster.gpus_per_node = 72, 4
    assert.matches("4 a node: each 160 GB/s among 72, infiniband", text.render(plan):gsub("%s+", " "), 1, true)
  end)

  it("tells every kind of communication that there is", function()
    local plan = fixtures.planned()
    plan.communication.tensor = { seconds = 0.5, exposed_seconds = 0.5 }
    plan.communication.context = { seconds = 0.25, exposed_seconds = 0 }
    local page = text.render(plan):gsub("%s+", " ")
    assert.matches("pipeline 200 ms (+20 ms), TP 500 ms (+500 ms), CP 250 ms (+0 s), EP 1.3 s (+100 ms), DP", page, 1, true)
  end)

  it("gives the verdict, each reason with its place, and the whole recommended layout when there is no plan", function()
    local page = text.render(fixtures.refused()):gsub("%s+", " ")
    assert.matches("^REFUSED · instead: no pipeline", page)
    assert.matches("short_run: 500 M tokens are too few to be worth a pipeline [policies/default/refusals.lua:31, "
                   .. "https://arxiv.org/abs/2203.15556]", page, 1, true)
    assert.matches("TP 8 · EP 64 · ETP 1 · DP 256", page, 1, true)
    assert.matches("61.0 of 80 GiB a GPU", page, 1, true)
  end)
end)

describe("the Markdown", function()
  it("says all that the page says, uncut, and ends with the rollback paragraph", function()
    local plan = crowded(fixtures.planned())
    local written = markdown.render(plan)
    assert.is_nil(written:find("more, see", 1, true))
    assert.matches("warning_59", written, 1, true)
    assert.matches("compare;%s*\n$", written)
  end)

  it("has tables with as many cells in each row as in the head", function()
    local rows
    for _, line in ipairs(lines_of(markdown.render(fixtures.planned()))) do
      if line:sub(1, 1) == "|" then
        local _, bars = line:gsub("|", "")
        rows = rows or bars
        assert.equal(rows, bars)
      else
        rows = nil
      end
    end
  end)

  it("escapes what Markdown would take for its own", function()
    local plan = fixtures.planned()
    plan.warnings = { { id = "w", severity = "warning", message = "a | b <c> *d* [e]" } }
    assert.matches("a \\| b \\<c\\> \\*d\\* \\[e\\]", markdown.render(plan), 1, true)
  end)
end)

describe("the coverage of a policy's tests", function()
  it("is not called all where it is not", function()
    local items = {}
    for i = 1, 251 do items[i] = { kind = "row", covered = i > 1, file = "f", line = 1, text = "t" } end
    local one = require("pipeplan.report.tests").text({}, items)
    assert.matches("coverage: 99.6 % (row 250/251)", one, 1, true)   -- 250/251 = 0.99602
    items[1].covered = true
    assert.matches("coverage: 100 % (row 251/251)", require("pipeplan.report.tests").text({}, items), 1, true)
  end)
end)
