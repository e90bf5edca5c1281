-- SPDX-License-Identifier: Apache-2.0
-- ms_swift.lua: log lines of ms-swift, on the screen and of its logging.jsonl:
--
--   {'loss': 1.66, 'grad_norm': 1.07, 'learning_rate': 9.9e-05, 'memory(GiB)': 5.15, 'train_speed(iter/s)': 0.302867, 'epoch': 0.11,
--    'global_step/max_steps': '340/9060', 'percentage': '3.75%', 'elapsed_time': '18m 42s', 'remaining_time': '7h 59m 46s'}
--
-- in one line (modelscope/ms-swift swift/trainers/patcher.py, add_train_message; of Megatron swift/megatron/callbacks/print.py, on_log,
-- with `iteration` for global_step). The speed is a mean since the process began: iter/s is all steps over the elapsed time, s/it the
-- elapsed time over the steps of this process. So a line tells the elapsed time to more digits, and the steps between two lines take its
-- difference.
--
-- Lines of an evaluation ('eval_loss') and the last one ('train_runtime') have the same fields. They tell of no step, but when the next
-- began.

local marks = require "pipeplan.input.metrics.marks"
local numbers = require "pipeplan.input.metrics.numbers"

local ms_swift = { name = "ms-swift", title = "ms-swift log" }

-- The value of a key in either kind of quotes, without its own; nil without.
local function field(line, key)
  for _, quote in ipairs { "'", '"' } do
    local _, at = line:find(quote .. key .. quote .. ": ", 1, true)
    if at then return line:match("^['\"]?([^'\",}]+)", at + 1) end
  end
end

-- "1d 7h 59m 46s" → seconds.
local function clock(text)
  local units, sum = { d = 86400, h = 3600, m = 60, s = 1 }, 0
  for count, unit in text:sub(1, 40):gmatch "([%d.]+)([dhms])" do sum = sum + (tonumber(count) or 0) * units[unit] end
  return sum
end

local DIGIT = 5e-7   -- what the last of six digits may be off

-- At which steps a process may have begun that was at step `count` after `shown` seconds, rounded or cut to whole ones
-- (swift/utils/utils.py, format_time): the first and the last.
local function starts_of(count, each, shown)
  if each == 0 then return count, count end   -- before the first of its steps
  local last = math.floor(math.max(0, math.min(count - (shown - 0.5) / (each + DIGIT), count - 1)))
  local first = math.ceil(math.max(0, count - (shown + 1) / math.max(each - DIGIT, DIGIT)))
  return math.min(first, last), last
end

-- A line → { count, rate (iter/s) or each (s/it), shown, is_step, evaluation }; nil and the words of the speed where a number is none.
local function entry_of(line, place)
  local words = field(line, "train_speed(iter/s)") or field(line, "train_speed(s/it)")
  local count, speed, elapsed = numbers.count(place:match "^(%d+)/%d+$"), numbers.read(words), field(line, "elapsed_time")
  local entry = { count = count, evaluation = marks.of(line) == "evaluation", shown = clock(elapsed or "") }
  if line:find("train_speed(iter/s)", 1, true) then entry.rate = speed and speed > 0 and speed
  else entry.each = elapsed and speed and speed >= 0 and speed end
  if not count or not entry.rate and not entry.each then return nil, words end
  entry.is_step = not entry.evaluation and not line:find("train_runtime", 1, true)
  return entry
end

-- Seconds from when the process began, at step `start`, to this line.
local function elapsed_at(entry, start)
  if entry.rate then return entry.count / entry.rate end
  return entry.each > 0 and entry.each * (entry.count - start) or entry.shown
end

-- process: { first, last: at which steps it may have begun, base: its line before }. Each line narrows where it began; what is left is a
-- step or two, which is nothing beside the difference of two means.
local function goes_on(process, entry)
  local base = process.base
  if entry.count < base.count or entry.shown < base.shown or (entry.rate == nil) ~= (base.rate == nil) then return false end
  if entry.rate then return true end
  local first, last = starts_of(entry.count, entry.each, entry.shown)
  first, last = math.max(first, process.first), math.min(last, process.last)
  if first > last then return false end
  process.first, process.last = first, last
  return true
end

local function new_process(entry)
  if entry.rate then return { first = 0, last = 0 } end
  local first, last = starts_of(entry.count, entry.each, entry.shown)
  return { first = first, last = last }
end

-- Seconds of a step before this one, as the process's line before it tells; of its first line the mean since it began.
local function seconds_of(process, entry)
  local start, base = process.first == 0 and 0 or (process.first + process.last) // 2, process.base
  local before = base and elapsed_at(base, start) or 0
  local steps = entry.count - (base and base.count or start)
  return steps > 0 and numbers.seconds((elapsed_at(entry, start) - before) / steps) or nil
end

function ms_swift.new(sink)
  local process
  return function(line)
    local at = line:find("train_speed(", 1, true)
    local place = at and (field(line, "global_step/max_steps") or field(line, "iteration"))
    if not place then return false end
    local entry, words = entry_of(line, place)
    if not entry then
      sink.unreadable(place, words)
      return true
    end
    if not process or not goes_on(process, entry) then
      process = new_process(entry)
      sink.mark "start"   -- of a resumed process iter/s counts steps that it did not take
    end
    local seconds, loss = entry.is_step and seconds_of(process, entry), field(line, "loss")
    if seconds then
      sink.step { iteration = entry.count, seconds = seconds, grade = "difference", skipped = 0,
                  undefined = loss and numbers.is_undefined(loss) and 1 or 0,
                  without_evaluation = process.base ~= nil and process.base.evaluation }
    end
    process.base = entry
    return true
  end
end

return ms_swift
