-- SPDX-License-Identifier: Apache-2.0
-- deepspeed.lua: log lines of DeepSpeed. Of its pipeline engine, the mean of the steps since the line before:
--
--   steps: 51 loss: 8.4113 iter time (s): 15.448 samples/sec: 8.286
--
-- (deepspeed 0.19.8, deepspeed/runtime/pipe/engine.py:382; samples/sec is the train batch over that time.) Of its other engine:
--
--   [2026-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.02,
--   CurrSamplesPerSec=25.70, MemAllocated=4.32GB, …
--
-- in one line (deepspeed/utils/timer.py:264; older ones begin "0/10, Running…"): the train batch over the time of one step, from its first
-- forward pass to the update. It counts only where no line of what calls DeepSpeed tells a step's time (`grade`).

local numbers = require "pipeplan.input.metrics.numbers"

local deepspeed = { name = "deepspeed", title = "DeepSpeed log" }

-- Sequences of a step from its rate, where the digits tell a whole number of them.
local function batch_of(seconds, rate)
  local batch = seconds * rate
  local doubt = batch * (0.0005 / seconds + 0.0005 / rate)
  local whole = math.floor(batch + 0.5)
  return doubt < 0.25 and math.abs(batch - whole) <= doubt + 1e-6 and whole >= 1 and math.tointeger(whole) or nil
end

local function pipeline_line(line, sink)
  local iteration, rest = line:match "^.*%f[%a]steps?: *(%d+)(.*)$"   -- the last: half a line may stand before it
  local time, rate = (rest or ""):match "iter time %(s%): ([%d.]+) samples/sec: ([%d.]+)"
  if not time then return false end
  local count, seconds, per_second = numbers.count(iteration), numbers.seconds(numbers.read(time)), numbers.read(rate)
  if not count or not seconds then
    sink.unreadable(iteration, time)
    return true
  end
  local loss = rest:match "loss: *([-+%a]+)"
  sink.step { iteration = count, seconds = seconds, batch = per_second and per_second > 0 and batch_of(seconds, per_second) or nil,
              undefined = loss and numbers.is_undefined(loss) and 1 or 0, skipped = 0 }
  return true
end

local function timer_line(line, at, sink)
  local before = line:sub(math.max(1, at - 40), at - 1)
  local iteration = before:match "[=/](%d+), $" or before:match "^(%d+), $"
  local rate = line:match("^[%w=.+-]+, CurrSamplesPerSec=([%d.eE+-]+),", at)
  if not iteration or not rate then return false end
  local count, per_second = numbers.count(iteration), numbers.read(rate)
  if not count or not per_second or per_second <= 0 then
    sink.unreadable(iteration, rate)
    return true
  end
  sink.step { iteration = count, sequences_per_second = per_second, grade = "step", undefined = 0, skipped = 0 }
  return true
end

function deepspeed.line(line, sink)
  if line:find("iter time (s):", 1, true) then return pipeline_line(line, sink) end
  local at = line:find("RunningAvgSamplesPerSec=", 1, true)
  if at then return timer_line(line, at, sink) end
  return line:find("[Rank 0] step=", 1, true) ~= nil   -- the learning rate and the skipped steps so far
end

return deepspeed
