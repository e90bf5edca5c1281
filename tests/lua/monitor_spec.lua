-- SPDX-License-Identifier: Apache-2.0
-- Which steps of a log count, what they come to, and what is decided. The plan is tests/monitoring.lua's: ideal step 24 s, own step 27 s,
-- threshold 24/33 (a step of 33 s), window of 100 steps, 10 of them warm-up.

require "pipeplan"
local files = require "policy_files"
local counters = require "pipeplan.monitor.counters"
local monitoring = require "monitoring"
local plan_file = require "pipeplan.input.plan_file"
local json = require "pipeplan.base.json"
local steps = require "pipeplan.monitor.kinds"
local verdict = require "pipeplan.monitor.verdict"

teardown(files.remove)

local function plan(changes) return plan_file.read(files.write("plan.json", monitoring.plan(changes))) end

-- Lines as { iteration, seconds [, what] }; a string is a mark. → what was found, the collector
local function find(list, changes, first, last, factor)
  local p = plan(changes)
  local collector = steps.new(p, first or p.warmup + 1, last or p.window)
  for _, line in ipairs(list) do
    if type(line) == "string" then collector:mark(line)
    else
      local sample = { iteration = line[1], seconds = line[2], undefined = 0, skipped = 0 }
      for name, value in pairs(line) do if type(name) == "string" then sample[name] = value end end
      collector:add(sample)
    end
  end
  return collector:finish(factor or 2), collector, p
end

local function run(first, last, seconds, step)
  local list = {}
  for i = first, last, step or 1 do list[#list + 1] = { i, type(seconds) == "function" and seconds(i) or seconds } end
  return list
end

local function dropped(found)
  local out = {}
  for _, group in ipairs(found.dropped) do out[group.why] = group.steps end
  return out
end

describe("the steps that count", function()
  it("are those of the window behind its warm-up", function()
    local found = find(run(1, 130, function(i) return i <= 10 and 90 or i > 100 and 60 or 30 end))
    assert.same({ 90, 11, 100, 30, 24 / 30 }, { found.measured.steps, found.measured.first, found.measured.last, found.measured.mean_seconds,
                                                found.measured.utilisation })
    assert.same({ warm_up = 10 }, dropped(found))
    assert.same({}, found.gaps)
  end)

  it("are as many as a line tells the mean of: intervals", function()
    local found = find(run(8, 96, 30, 8))
    assert.same({ 8, 80, 10, 17 }, { found.interval, found.measured.steps, found.measured.lines, found.measured.first })   -- 9 to 16 has warm-up in it
    assert.same({ warm_up = 16 }, dropped(found))
  end)

  it("are weighed by them, where the first line tells of one step alone, as torchtitan's does", function()
    local found = find({ { 1, 100 }, { 10, 30 }, { 20, 30 }, { 30, 60 } }, { ["rollback.warmup_steps"] = 0 })
    assert.near((100 + 9 * 30 + 10 * 30 + 10 * 60) / 30, found.measured.mean_seconds, 1e-9)
  end)

  it("are the later ones where iterations were logged twice, and the first of a process is none", function()
    local list = run(11, 60, 40)
    table.move(run(41, 100, 30), 1, 60, 51, list)
    local found, collector = find(list)
    assert.same({ 1, 20 }, { collector.restarts, collector.repeated })
    assert.same({ start_up = 1 }, dropped(found))   -- 41, at 30 s or not
    assert.near((30 * 40 + 59 * 30) / 89, found.measured.mean_seconds, 1e-9)
  end)

  -- 27 s to iteration 90, then a process that was at 40 again: what the old one did from there on was undone, also where the new one is not yet
  it("are none of the old process from where a newer one began", function()
    local list = run(1, 90, 27)
    table.move(run(41, 70, 18.6), 1, 30, 91, list)
    local found, collector = find(list)
    assert.same({ 1, 30 }, { collector.restarts, collector.repeated })
    assert.near((30 * 27 + 29 * 18.6) / 59, found.measured.mean_seconds, 1e-9)
    assert.equal(70, found.measured.last)
    -- from scratch, with a line each 20 steps: 1 to 20 are of the new process's first line, which is left out
    list = run(1, 90, 27)
    table.move(run(20, 100, 18.6, 20), 1, 5, 91, list)
    found = find(list)
    assert.same({ 80, 18.6 }, { found.measured.steps, found.measured.mean_seconds })
  end)

  -- old lines at 10, 20, … 100, 27 s; a process that was at 45 again logs at 55, 65, … 95, 40 s. Of the old one 11 to 40 are left, for its line at
  -- 50 has steps that were done again; of the new one 56 to 95.
  it("are none of the old process either where the newer one logs at other iterations", function()
    local list = run(10, 100, 27, 10)
    table.move(run(55, 95, 40, 10), 1, 5, 11, list)
    local found, collector = find(list)
    assert.same({ 1, 0, 70 }, { collector.restarts, collector.repeated, found.measured.steps })
    assert.near((30 * 27 + 40 * 40) / 70, found.measured.mean_seconds, 1e-9)
    -- parts of one run in another order were not done again
    list = run(1, 40, 27)
    for _, part in ipairs { { 71, 100 }, { 41, 70 } } do
      for _, line in ipairs(run(part[1], part[2], 27)) do list[#list + 1] = line end
    end
    found, collector = find(list)
    assert.same({ 1, false, 89 }, { collector.turns, collector.again, found.measured.steps })   -- 11 to 100 without 41, the first of a process
  end)

  -- log_interval 1 to 50, then 10: 40 steps of 18.6 s and 50 of 27 s behind the warm-up
  it("weigh what they stand for where the log interval changed, and none is missing", function()
    for _, turned in ipairs { false, true } do
      local list = turned and run(10, 50, 18.6, 10) or run(1, 50, 18.6)
      for _, line in ipairs(turned and run(51, 100, 27) or run(60, 100, 27, 10)) do list[#list + 1] = line end
      local found = find(list)
      assert.same({ {}, 90 }, { found.gaps, found.measured.steps })
      assert.near((40 * 18.6 + 50 * 27) / 90, found.measured.mean_seconds, 1e-9)
      assert.equal(27, found.measured.median_seconds)   -- of the steps: 40 take 18.6 s, 50 take 27 s
    end
  end)

  -- 1,250 lines of a step each, three of 1,000, four of one: a quarter of the steps is nearly all one line
  it("tell the same mean in whatever intervals they are logged", function()
    math.randomseed(20261130)
    local turns = { { { 1250, 1 }, { 3, 1000 }, { 4, 1 } } }
    for t = 2, 200 do
      turns[t] = {}
      for k = 1, math.random(1, 5) do turns[t][k] = { math.random(1, 30), 10 ^ math.random(0, 3) // 1 } end
    end
    local judged = 0
    for _, turn in ipairs(turns) do
      local list, at = {}, 10
      for _, part in ipairs(turn) do
        for _ = 1, part[1] do
          at = at + part[2]
          list[#list + 1] = { at, 18.6 }
        end
      end
      local found = find(list, nil, 11, math.tointeger(at))
      if found.measured then
        assert.near(18.6, found.measured.mean_seconds, 1e-9)
        assert.is_nil(found.measured.rise or found.measured.recovered_after)
        judged = judged + 1
      end
    end
    assert.is_true(judged > 150, judged)
  end)

  it("are of another rank where the run began again at an earlier iteration and that one logs", function()
    local list = run(11, 60, 40)
    for _, line in ipairs(list) do line.rank = "0" end
    for i = 31, 100 do list[#list + 1] = { i, 30, rank = "5" } end
    local found, collector = find(list)
    assert.same({ 3, 1 }, { collector.other_ranks, collector.restarts })
    assert.near((23 * 40 + 66 * 30) / 89, found.measured.mean_seconds, 1e-9)   -- 11 to 33 of the old process, 35 to 100 of the new
  end)

  it("do not begin anew where another rank logs the same", function()
    local list = {}
    for i = 11, 50 do for rank = 0, 3 do list[#list + 1] = { i, 30, rank = tostring(rank) } end end
    local found, collector = find(list)
    assert.same({ 40, 0, 120 }, { found.measured.steps, collector.restarts, collector.other_ranks })
    list = {}
    for i = 11, 50 do
      if i == 30 then list[#list + 1] = "checkpoint" end
      for _ = 0, 3 do list[#list + 1] = { i, i == 30 and 500 or 30 } end
    end
    found, collector = find(list)
    assert.same({ 39, 0 }, { found.measured.steps, collector.restarts })
    assert.same({ checkpoint = 1 }, dropped(found))
  end)

  it("are of the rank that was read first, until it is silent while another goes on", function()
    local found, collector = find { { 11, 30, rank = "3" }, { 11, 40, rank = "0" }, { 12, 30, rank = "3" }, { 12, 40, rank = "0" },
                                    { 13, 40, rank = "0" }, { 14, 40, rank = "0" }, { 15, 40, rank = "0" }, { 16, 40, rank = "0" } }
    assert.same({ 3 + 1, 4 }, { collector.other_ranks, found.measured.lines })   -- 11 and 12 of rank 3, 15 and 16 of rank 0
  end)

  it("are of the kind of line that tells a step's time best", function()
    local best = { { 11, 30 }, { 12, 30 } }
    local mixed = { { 11, nil, sequences_per_second = 1, grade = "step" }, { 11, 99, grade = "bar" }, best[1],
                    { 12, nil, sequences_per_second = 1, grade = "step" }, { 12, 99, grade = "difference" }, best[2] }
    local found, collector = find(mixed)
    assert.same({ 30, 2, 0 }, { found.measured.mean_seconds, found.measured.lines, collector.repeated })
    -- unless it is of a few of them: one line of DeepSpeed's in a log of bars
    local bars = {}
    for i = 12, 100, 2 do bars[#bars + 1] = { i, 30, grade = "bar" } end
    table.insert(bars, 20, { 50, nil, sequences_per_second = 1, grade = "step" })
    found, collector = find(bars)
    assert.same({ 30, 45, 45 }, { found.measured.mean_seconds, found.measured.lines, collector.lines })
    -- 64 sequences a step (tests/monitoring.lua) at 2 a second
    assert.equal(32, find({ { 11, nil, sequences_per_second = 2, grade = "step" } }).measured.mean_seconds)
  end)

  it("are not those behind a checkpoint, an evaluation, a start", function()
    local list = run(11, 100, 30)
    for at, what in pairs { [30] = "checkpoint", [50] = "evaluation", [70] = "start" } do list[at][2] = 300; list[at].mark = what end
    local marked = {}
    for _, line in ipairs(list) do
      if line.mark then marked[#marked + 1] = line.mark end
      marked[#marked + 1] = { line[1], line[2] }
    end
    local found = find(marked)
    assert.same({ checkpoint = 1, evaluation = 1, start_up = 1 }, dropped(found))
    assert.equal(30, found.measured.mean_seconds)
    assert.near(24 * 89 / (87 * 30 + 600), found.utilisation_with_dropped, 1e-12)
  end)

  it("are those whose time begins behind an evaluation, unless a checkpoint came behind that", function()
    local found = find { { 11, 30 }, "evaluation", { 12, 30, without_evaluation = true }, "evaluation", "checkpoint",
                         { 13, 300, without_evaluation = true }, { 14, 30 }, "start", "evaluation", { 15, 30, without_evaluation = true } }
    assert.same({ 3, { checkpoint = 1, start_up = 1 } }, { found.measured.steps, dropped(found) })
  end)

  it("are those behind checkpoints after all, where there are hardly others", function()
    local list = {}
    for i = 11, 100 do list[#list + 1] = "checkpoint"; list[#list + 1] = { i, 36 } end
    local found, _, p = find(list)
    assert.same({ 90, 90 }, { found.marked_kept, found.measured.steps })
    assert.equal("undecided", (verdict.of(p, found, { min_steps = 5 })))   -- 36 s with checkpoints may be under 33 s without
    for i = 2, #list, 2 do list[i][2] = 28 end
    found = find(list)
    assert.equal("keep", (verdict.of(p, found, { min_steps = 5 })))
  end)

  it("are not the rare stalls, over twice the median", function()
    local found = find(run(11, 100, function(i) return i % 25 == 0 and 600 or 30 end))
    assert.same({ stall = 4 }, dropped(found))      -- 4 of 90, under one in twenty
    assert.equal(30, found.measured.mean_seconds)
    assert.equal(25, found.dropped[1].first)
    found = find(run(11, 100, function(i) return i % 25 == 0 and 600 or 30 end), nil, nil, nil, 0)
    assert.near((86 * 30 + 4 * 600) / 90, found.measured.mean_seconds, 1e-9)
    found = find(run(11, 100, function(i) return i % 25 == 0 and 59 or 30 end))
    assert.same({}, dropped(found))
  end)

  it("are all, where what takes long is not rare", function()
    local found = find(run(11, 100, function(i) return i % 10 == 0 and 90 or 30 end))   -- one in ten
    assert.same({}, dropped(found))
    assert.same({ 9, 36 }, { found.too_many_stalls, found.measured.mean_seconds })
  end)

  it("are missing where no line tells of them: gaps, none behind the last line", function()
    local list = run(1, 20, 30)
    table.move(run(31, 60, 30), 1, 30, 21, list)
    table.insert(list, { 62, 30 })
    local found = find(list)
    assert.same({ { first = 21, last = 30 }, { first = 61, last = 61 } }, found.gaps)
    assert.equal(10 + 30 + 1, found.measured.steps)
    assert.same({ { first = 11, last = 14 } }, find(run(15, 100, 30)).gaps)   -- of the window
    assert.same({ { first = 41, last = 50 } }, find({ { 20, 30 }, { 30, 30 }, { 40, 30 }, { 60, 30 }, { 70, 30 } }).gaps)
  end)

  it("need no iteration where no line has one: in order, from 1", function()
    local p = plan()
    local collector = steps.new(p, 11, 100)
    for i = 1, 50 do collector:add_unnumbered(i <= 10 and 99 or 30) end
    local found = collector:finish(2)
    assert.same({ true, 40, 30 }, { found.counted_in_order, found.measured.steps, found.measured.mean_seconds })
    collector = steps.new(p, 11, 100)
    for i = 1, 50 do collector:add_unnumbered(99); collector:add { iteration = i, seconds = 30, undefined = 0, skipped = 0 } end
    found = collector:finish(2)
    assert.same({ false, 30 }, { found.counted_in_order, found.measured.mean_seconds })
  end)

  it("take what their tokens per second come to: tokens of a step / (tps × GPUs)", function()
    -- torchtitan's own arithmetic: a rank's data-parallel group has 262,144 / 2 tokens of a step; in 32 s that is
    -- tps = 131,072 / (32 s × P 4) = 1,024 a second and device
    local found = find({ { 11, nil, tokens_per_second = 1024 }, { 12, nil, tokens_per_second = 2048 } })
    assert.equal((32 + 16) / 2, found.measured.mean_seconds)
  end)

  it("are none that take longer than a week, or less than a microsecond", function()
    local found, collector = find { { 11, nil, tokens_per_second = 1e-30 }, { 12, nil, tokens_per_second = 1e30 }, { 13, 30 } }
    assert.same({ 2, 1 }, { collector.senseless, found.measured.steps })
  end)

  it("may lie late in a run, and what is held does not grow with it", function()
    local collector = steps.new(plan(), 1000001, 1000100)
    for i = 50, 1000200, 50 do collector:add { iteration = i, seconds = 30, undefined = 0, skipped = 0 } end
    local held = 0
    for _ in pairs(collector.seconds) do held = held + 1 end
    assert.is_true(held <= 203, held)
    assert.same({ 100, 1000001 }, { collector:finish(2).measured.steps, collector:finish(2).measured.first })
  end)

  it("have the ideal step of their own batch", function()
    local list = run(11, 100, 30)
    for _, line in ipairs(list) do line.batch = 32 end
    local found, _, p = find(list)
    assert.equal(12 / 30, found.measured.utilisation)
    assert.same({ size = 32, lines = 90 }, found.wrong_batch)
    local word, reasons = verdict.of(p, found, { min_steps = 5 })
    assert.equal("undecided", word)
    assert.matches("global batch is 32, the plan's 64", reasons[1], 1, true)
  end)

  it("of a ramp have the ideal step of its segment, whether the log says the batch or not", function()
    local found = find(run(11, 100, function(i) return i <= 40 and 15 or 30 end), monitoring.ramp())
    assert.near((30 * 12 + 60 * 24) / (30 * 15 + 60 * 30), found.measured.utilisation, 1e-12)
    assert.is_nil(found.wrong_batch)
    found = find({ { 40, 15, batch = 32 }, { 41, 30, batch = 64 } }, monitoring.ramp())
    assert.is_nil(found.wrong_batch)
  end)

  it("of a ramp have the batch that the log says, also where the plan has another at that step", function()
    local list = run(11, 30, 27)
    for _, line in ipairs(list) do line.batch = 64 end
    local measured = find(list, monitoring.ramp()).measured
    assert.same({ 24, 24 / 33 }, { measured.ideal_seconds, measured.threshold })
  end)

  it("of a ramp have the batch of their number where lines have no iteration", function()
    local collector = steps.new(plan(monitoring.ramp()), 11, 100)
    for i = 1, 100 do collector:add_unnumbered(i <= 40 and 15 or 27) end
    local measured = collector:finish(2).measured
    assert.same({ 32, 30, 64, 60 }, { measured.batches[1].batch, measured.batches[1].steps, measured.batches[2].batch,
                                      measured.batches[2].steps })
    assert.near(measured.predicted, measured.utilisation, 1e-12)
  end)

  -- a fifth of each sequence trains nothing, so the tokens that train of the first 40 steps are four fifths
  it("of a ramp whose sequences are padded begin a batch at the step that has trained its first token", function()
    local changes = monitoring.ramp()
    changes["training.padding"] = 0.2
    changes["training.batch_ramp"][2].first_token = 40 * 32 * 4096 * 4 // 5
    local p = plan(changes)
    assert.same({ 32, 64 }, { plan_file.batch_at(p, 40), plan_file.batch_at(p, 41) })
  end)

  -- lines of 10 steps: that of 45 is the mean of five at 32 and five at 64
  it("of a ramp are not those of a line in which the batch grew", function()
    local found = find(run(15, 95, function(i) return i < 45 and 15 or i == 45 and 21 or 27 end, 10), monitoring.ramp())
    assert.same({ warm_up = 10, batch = 10 }, dropped(found))
    assert.near(found.measured.predicted, found.measured.utilisation, 1e-12)
  end)
end)

describe("what they come to", function()
  it("has a standard error that neighbours cannot make small", function()
    -- 40 steps of 25 s, 40 of 35 s: 20 stretches of 4, ten of each: mean 30, deviation 5, ten each: sd = 5 √(20/19), over √20
    local found = find(run(11, 90, function(i) return i <= 50 and 25 or 35 end))
    assert.near(5 * math.sqrt(20 / 19) / math.sqrt(20) / 30, found.measured.error_fraction, 1e-12)
    -- the same steps in turn: each stretch is 30
    assert.near(0, find(run(11, 90, function(i) return i % 2 == 0 and 25 or 35 end)).measured.error_fraction, 1e-12)
    assert.is_nil(find({ { 11, 30 } }).measured.error_fraction)
  end)

  it("has a beginning and an end", function()
    local measured = find(run(11, 90, function(i) return i <= 50 and 25 or 35 end)).measured
    assert.same({ 25, 35 }, { measured.early_seconds, measured.late_seconds })
  end)
end)

describe("the verdict", function()
  local function decide(list, changes, min_steps)
    local found, _, p = find(list, changes)
    local word, reasons = verdict.of(p, found, { min_steps = min_steps or 9 })
    return word, table.concat(reasons, "; ")
  end

  local function noisy(mean, spread) return function(i) return mean + spread * ((i * 7) % 5 - 2) / 2 end end

  it("is keep above the threshold and roll back below it: a step of 33 s", function()
    assert.equal("keep", (decide(run(11, 100, noisy(27, 0.1)))))
    assert.equal("keep", (decide(run(11, 100, noisy(32.8, 0.1)))))
    assert.equal("roll_back", (decide(run(11, 100, noisy(33.2, 0.1)))))
    -- one rank at 70 % of its speed works 8 × 3 / 0.7 = 34.3 s, whatever the schedule
    assert.equal("roll_back", (decide(run(11, 100, noisy(24 / 0.7, 0.1)))))
  end)

  -- the threshold is a step of 33 s; a schedule's bubble does not come with the hours
  it("is a fault to find first, of a run that began as planned and became slower", function()
    for late, before in pairs { [40] = 40, [60] = 35, [36] = 55 } do
      local found, _, p = find(run(11, 100, function(i) return noisy(i <= before and 27 or late, 0.1)(i) end))
      assert.equal("fault", (verdict.of(p, found, { min_steps = 9 })))
      assert.equal(before, found.measured.rise.after)
      assert.is_true(math.abs(found.measured.rise.fraction - (late / 27 - 1)) < 0.01)
    end
    -- a drift: from 27 s to 40 s, 0.144 s a step; its quarters differ by 68 steps of the 90
    local drift = find(run(11, 100, function(i) return 27 + (i - 11) * 13 / 89 end))
    assert.is_true(math.abs(drift.measured.late_seconds - drift.measured.early_seconds - 68 * 13 / 89) < 0.1)
    assert.equal("fault", (decide(run(11, 100, function(i) return 27 + (i - 11) * 13 / 89 end))))
    -- slower than the threshold from the first step on: the schedule's, or the estimate's; the rise is told beside it
    assert.equal("roll_back", (decide(run(11, 100, function(i) return i <= 50 and 34 or 40 end))))
    -- still above the threshold, faster, by less than 5 %, or for the last few steps only: no fault
    for _, seconds in ipairs { function(i) return i <= 50 and 27 or 30 end, function(i) return i <= 50 and 40 or 27 end,
                               function(i) return i <= 50 and 32.5 or 33.3 end, function(i) return i <= 90 and 27 or 50 end } do
      local found, _, p = find(run(11, 100, seconds))
      assert.not_equal("fault", (verdict.of(p, found, { min_steps = 9 })))
    end
  end)

  -- a schedule is as slow to the end: 27 s a step at last, above the threshold of 33 s
  it("is undecided, of a run that was too slow and became fast enough", function()
    for _, seconds in ipairs { function(i) return i <= 60 and 60 or 27 end, function(i) return i > 20 and i <= 60 and 60 or 27 end } do
      local word, why = decide(run(11, 100, function(i) return noisy(seconds(i), 0.1)(i) end))
      assert.equal("undecided", word)
      assert.matches("^steps became faster while it ran, most of it after iteration 60: the last quarter takes 27 s a step", why)
      assert.matches("(--steps 61-100)", why, 1, true)
    end
    assert.equal("roll_back", (decide(run(11, 100, function(i) return noisy(i <= 60 and 60 or 34, 0.1)(i) end))))   -- still too slow
  end)

  local function decide_ramp(list, first, last)
    local found, _, p = find(list, monitoring.ramp(), first, last)
    local word, reasons = verdict.of(p, found, { min_steps = 9, last = last or 100 })
    return word, table.concat(reasons, "; "), found.measured
  end

  -- tests/monitoring.lua: steps of 32 are given up over 21 s, of 64 over 33 s; the mean of the first hundred is 68.1 %
  it("of a ramp is that of each step's own batch", function()
    local word, _, measured = decide_ramp(run(11, 40, noisy(20, 0.1)))   -- 60 %, under the mean
    assert.equal("keep", word)
    assert.same({ 12 / 15, 12 / 21 }, { measured.predicted, measured.threshold })
    assert.equal("roll_back", (decide_ramp(run(11, 40, noisy(22, 0.1)))))
    word, _, measured = decide_ramp(run(61, 100, noisy(34, 0.1)), 61, 100)   -- 70.6 %, above the mean
    assert.equal("roll_back", word)
    assert.same({ 24 / 27, 24 / 33 }, { measured.predicted, measured.threshold })
    assert.equal("keep", (decide_ramp(run(61, 100, noisy(32, 0.1)), 61, 100)))
  end)

  it("of a ramp whose window has steps of two batches is that of their sums, and a batch that grows is no change of the run", function()
    local word, why, measured = decide_ramp(run(11, 100, function(i) return noisy(i <= 40 and 15 or 27, 0.1)(i) end))
    assert.same({ "keep", "" }, { word, why })
    assert.near(1800 / (30 * 15 + 60 * 27), measured.predicted, 1e-12)   -- ideal: 30 × 12 + 60 × 24
    assert.near(1800 / (30 * 21 + 60 * 33), measured.threshold, 1e-12)
    assert.is_nil(measured.rise or measured.recovered_after)
    assert.is_true(measured.error_fraction < 0.002, measured.error_fraction)
    assert.near(measured.predicted, measured.median_utilisation, 0.01)
    assert.equal("roll_back", (decide_ramp(run(11, 100, function(i) return noisy(i <= 40 and 22 or 34.5, 0.1)(i) end))))
  end)

  it("of a ramp is a fault where the run became slower inside a batch, and none where the batch grew just there", function()
    assert.equal("fault", (decide_ramp(run(11, 100, function(i) return noisy(i <= 40 and 15 or i <= 60 and 27 or 45, 0.1)(i) end))))
    local word, why, measured = decide_ramp(run(11, 100, function(i) return noisy(i <= 40 and 15 or 45, 0.1)(i) end))
    assert.same({ "roll_back", "" }, { word, why })
    assert.same({ true, 40 }, { measured.with_batch, measured.rise.after })
  end)

  -- 30 steps of 25 s at 32 (48 %), ten of 27 s at 64: 600/1020 is under 600/(30 × 21 + 10 × 33) = 62.5 %
  it("of a ramp is undecided where the newest batch is on another side of its threshold than all steps together", function()
    local word, why = decide_ramp(run(11, 50, function(i) return noisy(i <= 40 and 25 or 27, 0.1)(i) end))
    assert.equal("undecided", word)
    assert.matches("the steps at the newest batch, 64, are above their threshold", why, 1, true)
    assert.matches("(--steps 41-100)", why, 1, true)
  end)

  it("is undecided on few steps", function()
    local word, why = decide(run(11, 18, noisy(40, 0.1)))
    assert.equal("undecided", word)
    assert.matches("too few steps: 8 counted, 9 are asked for", why)
  end)

  it("is undecided where the threshold is inside the noise", function()
    local word, why = decide(run(11, 100, function(i) return i // 10 % 2 == 0 and 28 or 37.5 end))
    assert.equal("undecided", word)
    assert.matches("steps differ too much", why)
  end)

  it("is undecided where a part of the steps makes the mean", function()
    local word, why = decide(run(11, 100, function(i) return i % 10 == 0 and 150 or 27 end))   -- mean 39.3 s, median 27 s
    assert.equal("undecided", word)
    assert.matches("mean and median disagree", why)
  end)

  -- The threshold is a step of 33 s, the error of an estimate 25 %: up to 41.25 s may be the estimate's fault. Up to 33 s a run is as predicted, or
  -- slower by no more than a comparison can be wrong, which the threshold has in it: it is kept, whatever its noise.
  it("is, of a plan inside the error band: undecided below the threshold, keep above, roll back far below", function()
    local band = { ["rollback.inside_error_band"] = true }
    for _, seconds in ipairs { 34, 40, 41 } do
      local word, why = decide(run(11, 100, noisy(seconds, 0.1)), band)
      assert.equal("undecided", word, seconds)
      assert.matches("only running the fallback as well decides", why)
    end
    for _, seconds in ipairs { 31, 31.4, 32, 32.5 } do assert.equal("keep", (decide(run(11, 100, noisy(seconds, 0.1)), band)), seconds) end
    assert.equal("keep", (decide(run(11, 100, noisy(27, 0.1)), band)))
    for _, seconds in ipairs { 41.5, 60, 240 } do assert.same({ "roll_back", "" }, { decide(run(11, 100, noisy(seconds, 0.1)), band) }) end
    -- of a plan with another error
    band["expected_error.time_fraction"] = 0.1
    assert.equal("undecided", (decide(run(11, 100, noisy(36, 0.1)), band)))
    assert.equal("roll_back", (decide(run(11, 100, noisy(36.6, 0.1)), band)))
  end)

  it("of a plan inside the error band still needs steps enough, however slow they are", function()
    local band = { ["rollback.inside_error_band"] = true }
    local word, why = decide(run(11, 18, noisy(240, 0.1)), band)
    assert.equal("undecided", word)
    assert.matches("^too few steps: 8 counted, 9 are asked for %(%-%-min%-steps%)$", why)
  end)

  it("is undecided where steps are faster than an error of the estimate allows", function()
    local word, why = decide(run(11, 100, noisy(15, 0.1)))
    assert.equal("undecided", word)
    assert.matches("is it this run's plan?", why, 1, true)
    assert.equal("keep", (decide(run(11, 100, noisy(23, 0.1)))))   -- 4 % faster than ideal: estimates are off by more
  end)
end)

describe("counters", function()
  local function filled(list, changes)
    local collector = counters.new()
    for _, entry in ipairs(list) do collector:add(entry[1], { host = entry[2], gpu = entry[3], slice = entry[5] }, entry[4]) end
    return collector:finish(plan(changes)), collector
  end

  it("are means by GPU, in order of trust", function()
    local seen = filled { { "gpu_utilisation", "a", "0", 1 }, { "sm_active", "a", "0", 0.5 }, { "tensor_active", "a", "0", 0.2 },
                          { "tensor_active", "a", "0", 0.4 }, { "tensor_active", "b", "0", 0.5 } }
    assert.same({ "tensor_active", "sm_active", "gpu_utilisation" }, { seen[1].name, seen[2].name, seen[3].name })
    assert.same({ "ranks", "weakly", "nothing" }, { seen[1].sees, seen[2].sees, seen[3].sees })
    assert.near(0.4, seen[1].mean, 1e-12)            -- of GPUs, not of samples
    assert.same({ "a GPU 0", "b GPU 0" }, { seen[1].lowest.name, seen[1].highest.name })
  end)

  it("go by pipeline rank where all GPUs of the plan are there: hosts by name as people count, pipeline outermost", function()
    local list = {}
    -- P 4, DP 2, 2 GPUs a host: rank p is node (p + 1) × 4; node4, node8, node12, node16
    for p = 0, 3 do
      for gpu = 0, 1 do list[#list + 1] = { "tensor_active", "node" .. (p + 1) * 4, tostring(gpu), 0.1 * (p + 1) + 0.02 * gpu } end
    end
    local ranks = filled(list)[1].ranks
    for p = 1, 4 do assert.near(0.1 * p + 0.01, ranks[p], 1e-12) end
    table.remove(list)
    assert.is_nil(filled(list)[1].ranks)
  end)

  it("of slices are by GPU alone", function()
    local list = {}
    for i = 0, 7 do list[#list + 1] = { "tensor_active", "a", "0", 0.5, tostring(i) } end
    local seen = filled(list)
    assert.same({ 8, "a GPU 0 slice 0" }, { seen[1].gpus, seen[1].lowest.name })
    assert.is_nil(seen[1].ranks)
  end)
end)

describe("a plan that is read back", function()
  local function problem(changes, text)
    local good, err = pcall(plan_file.read, files.write("plan.json", text or monitoring.plan(changes)))
    assert.is_false(good)
    assert.equal(2, err.status, err)
    return err.message
  end

  it("is what plan prints", function()
    local p = plan()
    assert.same({ 24, 27, 24 / 33, 100, 10, 8, 262144, 33 },
                { p.ideal, p.step, p.batches[64].threshold, p.window, p.warmup, p.gpus, p.tokens, p.fallback.alternative.step_seconds })
    assert.is_true(p.fallback.alternative.same_layout)
    local real = require("pipeplan").policy(nil, { date = "2026-11-27" }):plan { "examples/specs/deepseek-v3.json" }
    local schema = require "pipeplan.schema.plan"
    p = plan_file.read(files.write("plan.json", json.encode(json.shape(real, schema))))
    assert.same({ 2048, 16, 1000, 50, "dualpipe" }, { p.gpus, p.pipeline, p.window, p.warmup, p.schedule })
    assert.equal(real.rollback.threshold_fraction, p.batches[15360].threshold)
    assert.equal(16, #p.busy)
  end)

  it("may be of as many GPUs as a spec", function()
    local degrees = { ["parallelism.data"] = 5000000, ["parallelism.tensor"] = 1, ["parallelism.context"] = 1, ["parallelism.pipeline"] = 2 }
    assert.equal(10000000, plan_file.read(files.write("plan.json", monitoring.plan(degrees))).gpus)
    degrees["parallelism.tensor"] = 2
    assert.matches("parallelism: degrees whose product is 2e+07: expected at most 10000000 GPUs", problem(degrees), 1, true)
  end)

  it("says which field is not what it should be", function()
    assert.matches("plan.json: status is refused", problem { status = "refused" }, 1, true)
    assert.matches("plan.json: rollback is null", problem { rollback = json.null }, 1, true)
    assert.matches("rollback.threshold_fraction is nothing: expected a number", problem { ["rollback.threshold_fraction"] = json.null }, 1, true)
    assert.matches("rollback.window_steps is 2000000: expected an integer from 1 to 1000000", problem { ["rollback.window_steps"] = 2000000 }, 1, true)
    assert.matches("rollback.warmup_steps is 100: expected an integer from 0 to 99", problem { ["rollback.warmup_steps"] = 100 }, 1, true)
    assert.matches("ideal_step_seconds is -1", problem { ideal_step_seconds = -1 }, 1, true)
    assert.matches("rollback.inside_error_band is 1: expected true or false", problem { ["rollback.inside_error_band"] = 1 }, 1, true)
    assert.matches("parallelism.data is 0", problem { ["parallelism.data"] = 0 }, 1, true)
    assert.matches("training.batch_ramp", problem { ["training.batch_ramp"] = { { first_token = 5 } } }, 1, true)
    local ramp = monitoring.ramp()
    ramp["rollback.batches"][1].threshold_fraction = 2
    assert.matches("rollback.batches: expected what is predicted at the batch of 32, and its threshold", problem(ramp), 1, true)
    for _, text in ipairs { "[]", "3", "{}", "null", '{"status":3}', '"planned"' } do
      assert.matches("this is no plan", problem(nil, text), 1, true)
    end
  end)

  it("in which any field is of another kind is an answer, never a crash", function()
    local text = monitoring.plan(monitoring.ramp())
    local seen = {}
    for name in text:gmatch '"([%w_]+)":' do
      for _, value in ipairs(seen[name] and {} or { "null", "[]", "{}", "-1", "1e300", '"x"', "true", "[1,{}]" }) do
        local changed = text:gsub('"' .. name .. '":%b{}', '"' .. name .. '":' .. value)
          :gsub('"' .. name .. '":%b[]', '"' .. name .. '":' .. value):gsub('"' .. name .. '":[^,}%]{%[]+', '"' .. name .. '":' .. value)
        local good, err = pcall(plan_file.read, files.write("plan.json", changed))
        if not good then assert.equal(2, type(err) == "table" and err.status, name .. " " .. value .. " " .. tostring(err)) end
      end
      seen[name] = true
    end
  end)
end)
