-- SPDX-License-Identifier: Apache-2.0
-- engine.schedule and engine.bubble: what they answer and refuse, and an independent simulator's table. Orders: schedule_orders_spec.lua.

require "pipeplan"
local engine = require "engine"

local function lines_of(path)
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  return lines
end

local function words_of(line)
  local words = {}
  for word in line:gmatch("%S+") do words[#words + 1] = word end
  return words
end

-- "16..1", "8,7,6", "4" → one number per rank.
local function per_rank(text, ranks)
  local list = {}
  local first, last = text:match("^(%d+)%.%.(%d+)$")
  for number in text:gmatch("%d+") do list[#list + 1] = tonumber(number) end
  for rank = 1, first and ranks or 0 do
    list[rank] = first + (last - first) * (rank - 1) // (ranks - 1)
  end
  if #list == 1 then
    for rank = 2, ranks do list[rank] = list[1] end
  end
  return list
end

local function close(expected, actual, digits)
  return math.abs(expected - actual) <= 0.5 * 10 ^ -digits + 1e-9
end

describe("a simulated schedule", function()
  it("has the times and peaks that an independent simulator found, for 228 cases", function()
    local cases = 0
    for _, line in ipairs(lines_of("tests/data/schedule_times.txt")) do
      if line:sub(1, 1) ~= "#" then
        local kind, ranks, microbatches, f, i, w, fb, makespan, span, most, least, fraction, at_w, at_i = table.unpack(words_of(line))
        local schedule = engine.schedule { kind = kind, ranks = tonumber(ranks), microbatches = tonumber(microbatches) }
        local result = schedule:simulate { F = tonumber(f), I = tonumber(i), W = tonumber(w), FB = tonumber(fb) }
        local peaks = schedule:peaks()
        assert.equal(tonumber(makespan), result.makespan, line)
        assert.equal(tonumber(span), result.max_span, line)
        assert.equal(tonumber(most), result.max_idle, line)
        assert.equal(tonumber(least), result.min_idle, line)
        assert.is_true(close(tonumber(fraction), result.max_idle_fraction, 4), line)
        assert.same(per_rank(at_w, tonumber(ranks)), peaks.freed_at_w, line)
        assert.same(per_rank(at_i, tonumber(ranks)), peaks.freed_at_i, line)
        cases = cases + 1
      end
    end
    assert.equal(228, cases)
  end)

  it("takes a list with one number per stage, and knows when each action runs", function()
    -- by hand: rank 0: F0 0–1, F1 1–2, B0 8–10, B1 13–15; rank 1: F0 2–4, B0 4–7, F1 7–9, B1 9–12
    local schedule = engine.schedule { kind = "1f1b", ranks = 2, microbatches = 2 }
    local result = schedule:simulate { F = { 1, 2 }, I = { 1, 2 }, W = 1, B = { 2, 3 }, p2p = 1, intervals = true }
    assert.equal(15, result.makespan)
    assert.same({ { start = 0, finish = 1 }, { start = 1, finish = 2 }, { start = 8, finish = 10 }, { start = 13, finish = 15 } },
                result.intervals[1])
    assert.same({ start = 9, finish = 12 }, result.intervals[2][4])
    assert.same({ 9, 5 }, result.idle)
  end)

  it("tells by pieces what it tells as a list", function()
    local schedule = engine.schedule { kind = "dualpipev", ranks = 4, microbatches = 8 }
    for _, runtime in ipairs { "ideal", "torch-multi" } do
      local function simulate(how) return schedule:simulate { F = 1, I = 1, W = 1, p2p = 0.5, runtime = runtime, [how] = true } end
      local whole, by_piece = simulate "intervals", simulate "intervals_of"
      assert.is_nil(whole.intervals_of)
      assert.is_nil(by_piece.intervals)
      collectgarbage()
      for rank = 0, 3 do
        local actions = schedule:actions(rank)
        assert.same(actions, schedule:actions(rank, 1, #actions))
        assert.same(whole.intervals[rank + 1], by_piece.intervals_of(rank))
        assert.same(table.move(actions, 5, 7, 1, {}), schedule:actions(rank, 5, 7))
        assert.same(table.move(whole.intervals[rank + 1], 5, 7, 1, {}), by_piece.intervals_of(rank, 5, 7))
        assert.same({ actions[#actions] }, schedule:actions(rank, #actions, #actions + 100))
        assert.same({ whole.intervals[rank + 1][#actions] }, by_piece.intervals_of(rank, #actions))
        for _, range in ipairs { { #actions + 1 }, { 5, 4 }, { 1, 0 }, { math.maxinteger, math.maxinteger } } do
          assert.same({}, schedule:actions(rank, range[1], range[2]))
          assert.same({}, by_piece.intervals_of(rank, range[1], range[2]))
        end
      end
      assert.error_matches(function() schedule:actions(0, 0) end, "schedule:actions: places are from 1, got 0")
      assert.error_matches(function() by_piece.intervals_of(4) end, "intervals_of: rank must be 0 … 3, got 4")
    end
  end)

  it("lets a bidirectional list leave out the second direction", function()
    local schedule = engine.schedule { kind = "dualpipe", ranks = 4, microbatches = 8 }
    local short = schedule:simulate { F = { 1, 2, 3, 4 }, I = 1, W = 1 }
    local long = schedule:simulate { F = { 1, 2, 3, 4, 1, 2, 3, 4 }, I = 1, W = 1 }
    assert.equal(long.makespan, short.makespan)
  end)

  it("says which argument is wrong", function()
    local schedule = engine.schedule { kind = "1f1b", ranks = 4, microbatches = 8 }
    assert.error_matches(function() schedule:simulate { F = 1, I = 1 } end, "'W'")
    assert.error_matches(function() schedule:simulate { F = { 1, 2 }, I = 1, W = 1 } end, "'F' must have 4 numbers")
    assert.error_matches(function() schedule:simulate { F = 1, I = -1, W = 1 } end, "'I'")
    assert.error_matches(function() schedule:simulate { F = { 1, 1, 1, "x" }, I = 1, W = 1 } end, "'F' of stage 3")
    assert.error_matches(function() schedule:simulate { F = 1, I = 1, W = 1, P2P = 1 } end, "P2P")
    assert.error_matches(function() schedule:actions(4) end, "rank must be 0 … 3")
  end)
end)

describe("schedule:csv()", function()
  it("says the same as actions()", function()
    local schedule = engine.schedule { kind = "dualpipev", ranks = 4, microbatches = 10 }
    local rank = 0
    for line in schedule:csv():gmatch("[^\n]+") do
      local cells = {}
      for _, a in ipairs(schedule:actions(rank)) do
        cells[#cells + 1] = a.kind == "FB"
          and string.format("(%dF%d;%dB%d)OVERLAP_F_B", a.stage, a.microbatch, a.stage_b, a.microbatch_b)
          or string.format("%d%s%d", a.stage, a.kind, a.microbatch)
      end
      assert.equal(table.concat(cells, ","), line)
      assert.equal(line .. "\n", schedule:csv(rank))
      rank = rank + 1
    end
    assert.equal(4, rank)
    assert.error_matches(function() schedule:csv(4) end, "rank must be 0 … 3, got 4")
  end)
end)

describe("engine.schedule", function()
  it("says what an object is", function()
    local info = engine.schedule { kind = "zb_v", ranks = 3, microbatches = 6 }:info()
    assert.same({ kind = "zb_v", ranks = 3, microbatches = 6, virtual = 2, stages = 6, chains = 1, chunks_per_rank = 2, actions = 108,
                  split_backward = true, overlaps = false,
                  placement = { 0, 1, 2, 2, 1, 0 } }, info)
  end)

  it("answers what cannot be built with the rule and the nearest legal value", function()
    local schedule, rule = engine.schedule { kind = "dualpipe", ranks = 8, microbatches = 14 }
    assert.is_nil(schedule)
    assert.same({ id = "engine.too_few_microbatches", field = "microbatches", nearest = 16,
                  message = "dualpipe needs at least 2 microbatches per rank: 14 < 16" }, rule)
    schedule, rule = engine.schedule.check { kind = "dualpipe", ranks = 5, microbatches = 14 }
    assert.is_nil(schedule)
    assert.equal("engine.odd_depth", rule.id)
    assert.is_true(engine.schedule.check { kind = "dualpipe", ranks = 4, microbatches = 8 })
  end)

  it("refuses a billion microbatches without building them", function()
    local schedule, rule = engine.schedule { kind = "1f1b", ranks = 8, microbatches = 1e9 }
    assert.is_nil(schedule)
    assert.equal("engine.too_many_actions", rule.id)
    assert.equal("engine.too_many_actions", select(2, engine.schedule { kind = "gpipe", ranks = 1e12, microbatches = 1 }).id)
  end)

  it("says which argument is wrong", function()
    assert.error_matches(function() engine.schedule { kind = "dualpipe", microbatches = 8 } end, "engine%.schedule: 'ranks'")
    assert.error_matches(function() engine.schedule { kind = "zbv", ranks = 4, microbatches = 8 } end, "'kind'")
    assert.error_matches(function() engine.schedule { kind = "zb_v", ranks = 4.5, microbatches = 8 } end, "'ranks'")
    assert.error_matches(function() engine.schedule { kind = "zb_v", ranks = 4, microbatch = 8 } end, "microbatch")
    assert.error_matches(function() engine.schedule.traits("zbv") end, "zbv")
  end)

  it("verifies what it builds", function()
    for _, kind in ipairs(engine.schedule.kinds) do
      assert.is_true(engine.schedule { kind = kind, ranks = 4, microbatches = 8 }:verify())
      assert.equal(kind, engine.schedule.traits(kind).name)
    end
  end)

  it("writes titles as the papers do", function()
    -- Qi et al. 2401.10241 and 2405.15362; DeepSeek-AI 2412.19437; the DualPipe repository
    local titles = { zb_h1 = "ZB-H1", zb_h2 = "ZB-H2", zb_v = "ZB-V", v_half = "V-Half", v_min = "V-Min", dualpipe = "DualPipe",
                     dualpipev = "DualPipeV", gpipe = "GPipe" }
    for kind, title in pairs(titles) do assert.equal(title, engine.schedule.traits(kind).title) end
  end)

  it("names the kinds as the vocabulary does", function()
    local names = { "none", table.unpack(engine.schedule.kinds) }
    assert.same(require("pipeplan.vocabulary").schedules, names)
  end)
end)

describe("engine.bubble", function()
  it("says when it is exact, and the interval when it is not", function()
    local exact = engine.bubble { schedule = "dualpipe", ranks = 8, microbatches = 20, F = 1, I = 1, W = 1, FB = 3 }
    assert.equal(6, exact.seconds)
    assert.is_true(exact.exact)
    assert.equal(6, exact.low)
    local interval = engine.bubble { schedule = "dualpipe", ranks = 8, microbatches = 20, F = 2, I = 3, W = 1, FB = 5 }
    assert.is_false(interval.exact)
    assert.equal(3 * (5 + 2 - 2), interval.low)
    assert.equal(3 * (5 + 3 - 2), interval.high)
    assert.equal(interval.high, interval.seconds)
  end)

  it("is 3/35 of the step for 1F1B on 4 ranks with 32 microbatches", function()
    local form = engine.bubble { schedule = "1f1b", ranks = 4, microbatches = 32, F = 1, I = 1, W = 1 }
    assert.equal(9, form.seconds)
    assert.is_true(math.abs(form.seconds / (form.seconds + 32 * 3) - 3 / 35) < 1e-12)
  end)

  it("knows no upper bound where nobody has found one", function()
    local form = engine.bubble { schedule = "zb_h1", ranks = 4, microbatches = 8, F = 1, I = 1, W = 2 }
    assert.is_false(form.exact)
    assert.is_nil(form.high)
    assert.equal(3, form.low)
  end)

  it("answers what cannot be built with the rule", function()
    local form, rule = engine.bubble { schedule = "dualpipev", ranks = 8, microbatches = 12, F = 1, I = 1, W = 1 }
    assert.is_nil(form)
    assert.equal("engine.too_few_microbatches", rule.id)
  end)
end)

describe("a policy's budget", function()
  local function run(body, work)
    local host = assert(engine.host.open { fields = { "gpus" }, work = work })
    local statements = assert(host:run("rule.lua", "reject { id = 'x', when = function() " .. body .. " end }", false))
    host:refill()
    return host:call(statements[1].argument.when[1], {})
  end

  it("is charged for the actions it builds and simulates", function()
    local once = "local s = engine.schedule { kind = '1f1b', ranks = 8, microbatches = 1000 } "   -- 16,000 actions
    assert.is_true(run(once .. "return s:simulate { F = 1, I = 1, W = 1 }.max_idle == 21", 1000000))
    local result, problem = run("for _ = 1, 40 do " .. once .. " end return true", 1000000)
    assert.is_nil(result)
    assert.equal("budget", problem.kind)
    result, problem = run(once .. "for _ = 1, 200 do s:simulate { F = 1, I = 1, W = 1 } end return true", 1000000)
    assert.is_nil(result)
    assert.equal("budget", problem.kind)
  end)

  it("stops a schedule that is too large before it is built", function()
    local result, problem = run("engine.schedule { kind = 'zb_v', ranks = 64, microbatches = 40000 } return true", 1000000)
    assert.is_nil(result)
    assert.equal("budget", problem.kind)
  end)
end)
