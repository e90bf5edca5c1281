-- SPDX-License-Identifier: Apache-2.0
-- measured_runs.lua: steps measured on 4 × H200 (tests/data/gpu) against what is predicted from times of single actions, the time of one
-- message and the runtime that ran them. Nothing is fitted to the runs but a number of steps (EARLIER_STEPS). Prints tables; a test holds
-- the errors to their bands. Run it with
--   LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/oracles/measured_runs.lua [FILE.json …]
-- where FILEs of the same form hold other runs of the same machine and model.

require "pipeplan"
local engine = require "engine"
local json = require "pipeplan.base.json"

local measured_runs = {}

local RANKS, BLOCKS = 4, 16
local GIB = 2 ^ 30
local MESSAGE = 4096 * 4096 * 2           -- bytes
local GRADIENTS = 4 * 12 * 4096 ^ 2 * 2   -- of a rank's 4 blocks
local BAND = { median = 0.03, worst = 0.08, order = 0.03, memory_median = 0.01, memory_worst = 0.065, package_memory_worst = 0.005 }
measured_runs.BAND = BAND

-- Names in the files → how we build and run them. virtual: stages a rank, by default the run's own.
local single, multi = { runtime = "torch-single" }, { runtime = "torch-multi" }
local names = {
  ["torch:GPipe"] = { "gpipe", single }, ["torch:1F1B"] = { "1f1b", single }, ["torch:Interleaved1F1B"] = { "interleaved_1f1b", multi },
  ["torch:InterleavedZeroBubble"] = { "interleaved_zero_bubble", multi }, ["torch:LoopedBFS"] = { "looped_bfs", multi },
  ["torch:ZBVZeroBubble"] = { "zb_v", multi }, ["torch:DualPipeV"] = { "dualpipev", multi },
  ["deepseek:DualPipe"] = { "dualpipe", { runtime = "deepseek" }, 1 },
  ["deepseek:DualPipeV"] = { "dualpipev", { runtime = "deepseek" }, 2 },
  ["1f1b"] = { "1f1b", single }, gpipe = { "gpipe", single },
  zb_h1 = { "zb_h1", multi }, zb_h2 = { "zb_h2", multi }, zbv = { "zb_v", multi },
  interleaved = { "interleaved_1f1b", multi }, dualpipev = { "dualpipev", multi },
  dualpipev_split = { "dualpipev", { runtime = "torch-multi", pairs = "split" } },
}

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return assert(json.decode(text, path))
end

-- Milliseconds of 1, 2 and 4 blocks: { [blocks] = { F, I, W, B } }, and of a message.
local function profile_of(data)
  local profile = { message = data.comm_us.act / 1000 }
  for _, row in ipairs(data.isolated) do profile[row.layers] = { F = row.F, I = row.I, W = row.B - row.I, B = row.B } end
  return profile
end

-- What the second day measured directly, by card, cold and hot; what runs of the first day showed of the hardware: compute beside a waiting
-- batch takes 18 % longer, and heat begins at 59 % busy with a time constant of 30 ms. How much it slows is hot / cold.
local function profile_by_card(data, message)
  local cards, slope, count = {}, 0, 0
  for _, row in ipairs(data.profiles) do
    for rank, card in ipairs(row) do
      cards[card.layers] = cards[card.layers] or {}
      cards[card.layers][rank] = card
      for _, kind in ipairs { "F", "I", "W", "B" } do
        slope, count = slope + card.hot[kind] / card.cold[kind] - 1, count + 1
      end
    end
  end
  return { message = message, cards = cards, contention = 1.18, heat = { onset = 0.59, slope = slope / count, tau = 30 } }
end

local function schedule_of(run)
  local name = assert(names[run.schedule], "no schedule is known as " .. run.schedule)
  local virtual = name[3] or run.virtual
  return assert(engine.schedule { kind = name[1], ranks = RANKS, microbatches = run.M, virtual = virtual }), virtual, name[2]
end

-- Times by stage from a profile of each rank's own card, measured cold: { F = { … }, … }. One block: half of two.
local function times_by_card(cards, schedule, blocks)
  local times = {}
  for _, kind in ipairs { "F", "I", "W", "B" } do
    times[kind] = {}
    for stage, rank in ipairs(schedule:info().placement) do
      local measured = cards[math.max(blocks, 2)][rank + 1].cold
      times[kind][stage] = measured[kind] * (blocks == 1 and 0.5 or 1)
    end
  end
  return times
end

-- Milliseconds of a step.
local function predict(schedule, times, how, profile)
  local arguments = { p2p = profile.message, contention = profile.contention, heat = profile.heat }
  for name, value in pairs(times) do arguments[name] = value end
  for name, value in pairs(how) do arguments[name] = value end
  return assert(schedule:simulate(arguments)).makespan
end

local function median_of_four(sorted) return (sorted[2] + sorted[3]) / 2 end

-- One row a run of `data`: { name, M, measured, predicted, error }, milliseconds.
-- `profile` is of one card, or has cards[blocks][rank + 1] and the hardware's contention and heat.
function measured_runs.steps(data, profile)
  local rows = {}
  for i, run in ipairs(data.runs) do
    local schedule, virtual, how = schedule_of(run)
    local blocks = run.schedule == "deepseek:DualPipe" and 4 or BLOCKS // RANKS // virtual
    local times = profile.cards and times_by_card(profile.cards, schedule, blocks) or profile[blocks]
    local measured, predicted = 1000 * median_of_four(run.step_s), predict(schedule, times, how, profile)
    rows[i] = { name = run.schedule, M = run.M, measured = measured, predicted = predicted, error = predicted / measured - 1 }
  end
  return rows
end

-- Peak GiB of each rank of the runs by PyTorch: { name, M, rank, measured, predicted, error }.
function measured_runs.peaks(data)
  local rows = {}
  for _, run in ipairs(data.runs) do
    local schedule, virtual, how = schedule_of(run)
    if how.runtime ~= "deepseek" then
      local blocks = BLOCKS // RANKS // virtual
      -- what a block and microbatch hold, in messages: 16 of activations, from I to W 9 of gradients of the outputs of its products, too
      local bytes = { stored = 16 * blocks * MESSAGE, pending = (16 + 9) * blocks * MESSAGE, transient = 9 * MESSAGE, message = MESSAGE }
      local held = assert(schedule:simulate { F = 1, I = 1, W = 1, bytes = bytes, runtime = how.runtime }).peak_bytes.runtime
      for rank = 1, RANKS do
        local predicted = run.base_gb[rank] + (GRADIENTS + held[rank]) / GIB
        rows[#rows + 1] = { name = run.schedule, M = run.M, rank = rank - 1, measured = run.peak_gb[rank], predicted = predicted,
                            error = predicted / run.peak_gb[rank] - 1 }
      end
    end
  end
  return rows
end

-- What stays after a W of DeepSeek's example, in messages: 9 a block of output gradients; the received input and its gradient; and, where
-- the output's gradient was received, the 4 of the last product's input. The stage before DualPipeV's turn gets none by message; the one
-- behind it has that stage's output for its input, and the gradient of that is one of the 9 there.
local function after_weight(stage, chain, blocks, turns)
  local first, last = stage % chain == 0, stage % chain == chain - 1
  if turns and stage == chain // 2 then return 9 * blocks + 1 + 4 end
  return 9 * blocks + (first and 0 or 2) + ((last or turns and stage == chain // 2 - 1) and 0 or 4)
end

-- `stored`: of a block and microbatch, as it was measured on one rank alone.
local function bytes_under_package(both, blocks, chain, stored)
  local bytes = { stored = {}, output = {}, after_weight = {}, deferred = 16 * blocks * MESSAGE, message = MESSAGE,
                  transient = 4 * MESSAGE }   -- the gradient of a block's largest weight, before it is added
  for stage = 0, 2 * RANKS - 1 do
    local last = stage % chain == chain - 1
    bytes.stored[stage + 1] = blocks * stored + (last and MESSAGE or 0)   -- for the loss no result, but its two messages as fp32
    bytes.output[stage + 1] = last and 0 or MESSAGE
    bytes.after_weight[stage + 1] = after_weight(stage, chain, blocks, not both) * MESSAGE
  end
  return bytes
end

-- What a step of the schedule leaves on a rank after its W's.
local function left_by_step(schedule, rank, bytes)
  local left, at = 0, 0
  for row in schedule:csv():gmatch("[^\n]+") do
    if at == rank then
      for stage in row:gmatch("(%d+)W") do left = left + bytes.after_weight[tonumber(stage) + 1] end
    end
    at = at + 1
  end
  return left
end

-- Steps before that of the peak, none of whose gradients were dropped. How many is not in the file: it is what makes all 12 peaks right.
local EARLIER_STEPS = 6

-- Peak GiB of each rank of the runs by DeepSeek's package, as measured_runs.peaks.
function measured_runs.package_peaks(data)
  local rows = {}
  for _, run in ipairs(data.runs) do
    local schedule, _, how = schedule_of(run)
    local both = run.schedule == "deepseek:DualPipe"
    local blocks, chain = both and 4 or 2, both and RANKS or 2 * RANKS
    local bytes = how.runtime == "deepseek" and bytes_under_package(both, blocks, chain, data.isolated[1].act_bytes)
    local held = bytes and assert(schedule:simulate { F = 1, I = 1, W = 1, bytes = bytes, runtime = "deepseek" }).peak_bytes.runtime or {}
    for rank = 0, #held - 1 do
      -- The model's input required a gradient, which is as large: that of this step, and of each before it.
      local input = (rank == 0 or both and rank == RANKS - 1) and run.M // (both and 2 or 1) * MESSAGE or 0
      local earlier = EARLIER_STEPS * (left_by_step(schedule, rank, bytes) + input)
      local predicted = run.base_gb[rank + 1] + (GRADIENTS * blocks / 2 + held[rank + 1] + input + earlier) / GIB
      rows[#rows + 1] = { name = run.schedule, M = run.M, rank = rank, measured = run.peak_gb[rank + 1], predicted = predicted,
                          error = predicted / run.peak_gb[rank + 1] - 1 }
    end
  end
  return rows
end

-- → median, worst, count of |error|.
function measured_runs.spread(rows)
  local errors = {}
  for i, row in ipairs(rows) do errors[i] = math.abs(row.error) end
  table.sort(errors)
  local middle = (errors[(#errors + 1) // 2] + errors[#errors // 2 + 1]) / 2
  return middle, errors[#errors], #errors
end

-- Of all two runs with the same M whose steps differ by BAND.order or more: how many, and those that come out in the wrong order.
function measured_runs.order(rows)
  local count, wrong = 0, {}
  for i, a in ipairs(rows) do
    for k = i + 1, #rows do
      local b = rows[k]
      if a.M == b.M and math.abs(a.measured / b.measured - 1) >= BAND.order then
        count = count + 1
        if (a.measured < b.measured) ~= (a.predicted < b.predicted) then wrong[#wrong + 1] = { a, b } end
      end
    end
  end
  return count, wrong
end

local DIRECTORY = "tests/data/gpu/"

-- open: runs of the first day, each predicted from the profile in its own file; second: of the second day, from the profile of the first;
-- by_card: the same, from the profile that the second day took of each card, cold and hot.
function measured_runs.load()
  local torch, deepseek = read(DIRECTORY .. "torch_pipelining_4xH200.json"), read(DIRECTORY .. "deepseek_dualpipe_4xH200.json")
  local second = read(DIRECTORY .. "what_if_4xH200.json")
  local open = measured_runs.steps(torch, profile_of(torch))
  for _, row in ipairs(measured_runs.steps(deepseek, profile_of(deepseek))) do open[#open + 1] = row end
  local peaks = measured_runs.peaks(torch)
  for _, row in ipairs(measured_runs.peaks(second)) do peaks[#peaks + 1] = row end
  local profile = profile_of(torch)
  return { open = open, second = measured_runs.steps(second, profile), peaks = peaks, profile = profile,
           package_peaks = measured_runs.package_peaks(deepseek),
           by_card = measured_runs.steps(second, profile_by_card(second, profile.message)) }
end

-- ------------------------------------------------------------------------------------------------------------------------------ printing

local function percent(x) return string.format("%+.1f %%", 100 * x) end

local function print_steps(title, rows)
  print(string.format("%-32s %4s %9s %9s %8s", title, "M", "measured", "predicted", "error"))
  for _, row in ipairs(rows) do
    print(string.format("%-32s %4d %9.1f %9.1f %8s", row.name, row.M, row.measured, row.predicted, percent(row.error)))
  end
  local median, worst, count = measured_runs.spread(rows)
  print(string.format("median %.1f %%, worst %.1f %% of %d steps", 100 * median, 100 * worst, count))
  local pairs_apart, wrong = measured_runs.order(rows)
  print(string.format("%d of %d pairs at least %g %% apart are in the wrong order", #wrong, pairs_apart, 100 * BAND.order))
  for _, pair in ipairs(wrong) do
    local a, b = table.unpack(pair)
    print(string.format("  M %d: %s %.0f (%.0f) and %s %.0f (%.0f)", a.M, a.name, a.measured, a.predicted, b.name, b.measured, b.predicted))
  end
  print()
end

local function print_peaks(whose, rows)
  if #rows == 0 then return end
  local median, worst, count = measured_runs.spread(rows)
  print(string.format("peak memory by %s: median %.2f %%, worst %.2f %% of %d ranks", whose, 100 * median, 100 * worst, count))
end

local function main(files)
  local all = measured_runs.load()
  print_steps("step, ms", all.open)
  print_steps("second day, ms", all.second)
  print_steps("second day, profile by card, ms", all.by_card)
  print_peaks("PyTorch", all.peaks)
  print_peaks("DeepSeek's package", all.package_peaks)
  for _, path in ipairs(files) do
    local data = read(path)
    print()
    print_steps(path:match("[^/]+$"), measured_runs.steps(data, data.isolated and data.comm_us and profile_of(data) or all.profile))
    print_peaks("PyTorch", measured_runs.peaks(data))
    print_peaks("DeepSeek's package", measured_runs.package_peaks(data))
  end
end

if arg and arg[0] and arg[0]:find("measured_runs.lua", 1, true) then main { table.unpack(arg) } end

return measured_runs
