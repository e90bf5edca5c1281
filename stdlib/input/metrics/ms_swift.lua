-- SPDX-License-Identifier: Apache-2.0
-- ms_swift.lua: log lines of ms-swift, on the screen and of its logging.jsonl:
--
--   {'loss': 1.66, 'grad_norm': 1.07, 'learning_rate': 9.9e-05, 'memory(GiB)': 5.15, 'train_speed(iter/s)': 0.302867, 'epoch': 0.11,
--    'global_step/max_steps': '340/9060', 'percentage': '3.75%', 'elapsed_time': '18m 42s', 'remaining_time': '7h 59m 46s'}
--
-- in one line (modelscope/ms-swift swift/trainers/callback.py and patcher.py, add_train_message; of Megatron: `iteration` for global_step).
-- The speed is a mean since the process began: iter/s is all steps over the elapsed time, s/it the elapsed time over the steps of this
-- process. So a line tells the elapsed time to more digits, and the steps between two lines take its difference.

local numbers = require "pipeplan.input.metrics.numbers"

local ms_swift = { name = "ms-swift", title = "ms-swift log" }

-- The value of a key in either kind of quotes, without its own; nil without.
local function field(line, key)
  for _, quote in ipairs { "'", '"' } do
    local _, at = line:find(quote .. key .. quote .. ": ", 1, true)
    if at then return line:match("^['\"]?([^'\",}]+)", at + 1) end
  end
end

-- "1d 7h 59m 46s" → seconds, to the second.
local function clock(text)
  local units, sum = { d = 86400, h = 3600, m = 60, s = 1 }, 0
  for count, unit in (text or ""):sub(1, 40):gmatch "(%d+)([dhms])" do sum = sum + tonumber(count) * units[unit] end
  return sum
end

-- Seconds since the process began, at its step `count`; and whether it began at step 0.
local function elapsed_at(line, count)
  local rate = numbers.read(field(line, "train_speed(iter/s)"))
  local shown = clock(field(line, "elapsed_time"))
  if rate and rate > 0 then return count / rate, true end
  local each = numbers.read(field(line, "train_speed(s/it)"))
  if not each or each <= 0 then return nil end
  if math.abs(each * count - shown) <= 1.5 then return each * count, true end
  local first = math.floor(count - (shown + 0.5) / each + 0.5)   -- a process that resumed
  return each * (count - first), false
end

function ms_swift.new(sink)
  local last, last_elapsed
  return function(line)
    local at = line:find("train_speed(", 1, true)
    local place = at and (field(line, "global_step/max_steps") or field(line, "iteration"))
    local count = place and numbers.count(place:match "^(%d+)/%d+$")
    if not place then return false end
    local elapsed, whole = elapsed_at(line, count or 1)
    if not count or not elapsed then
      sink.unreadable(place, field(line, "train_speed(iter/s)") or field(line, "train_speed(s/it)"))
      return true
    end
    if last and (count <= last or elapsed <= last_elapsed) then last = nil end   -- it began anew
    if not last then sink.mark "start" end   -- of a resumed process iter/s counts steps that it did not take
    if not last and whole then last, last_elapsed = 0, 0 end
    local seconds = last and numbers.seconds((elapsed - last_elapsed) / (count - last))
    local loss = field(line, "loss")
    if seconds then
      sink.step { iteration = count, seconds = seconds, grade = "difference", undefined = loss and numbers.is_undefined(loss) and 1 or 0,
                  skipped = 0 }
    end
    last, last_elapsed = count, elapsed
    return true
  end
end

return ms_swift
