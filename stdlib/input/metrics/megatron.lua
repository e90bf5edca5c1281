-- SPDX-License-Identifier: Apache-2.0
-- megatron.lua: log lines of Megatron-LM and of what is made of it.
--
--   [2026-11-27 10:15:02.412345] iteration      120/   50000 | consumed samples: … | elapsed time per iteration (ms): 8123.4 | … |
--
-- Printed by the last rank, every log interval: the mean of the steps since the line before (NVIDIA/Megatron-LM
-- megatron/training/training.py, training_log). Older ones print the time without microseconds; launchers put names before the line.
-- Fields between | come and go: only the iteration and its time are needed. AMD-AGI/Primus prints `elapsed … (ms): this/mean so far`: the
-- first is read.
--
-- NVIDIA-NeMo/Megatron-Bridge prints a line more, before it: "Step Time : 8.12s GPU utilization: 412.6MODEL_TFLOP/s/GPU". Its "GPU
-- utilization" is a rate, no percentage, and is never read as one. Its time, of two decimals and without an iteration, counts only where no
-- line with an iteration was read.

local numbers = require "pipeplan.input.metrics.numbers"

local megatron = { name = "megatron", title = "Megatron-LM log" }

-- The first word of a field; the | after it has to be there, for a line may be torn in the middle of a number.
local function field(line, name)
  local _, at = line:find(name, 1, true)
  local value = at and line:match("^([^|]*)|", at + 1)
  return value and value:match "%S+"
end

local function losses_are_undefined(line)
  for value in line:gmatch "loss: *([-+%a]+)" do
    if numbers.is_undefined(value) then return true end
  end
  return false
end

local function iteration_line(line, sink)
  -- the last one: a process that died while it wrote leaves half a line before the next
  local iteration, rest = line:match "^.*iteration +(%d+)/ *%d+ *|(.*)$"
  if not iteration then return false end
  local time = field(rest, "elapsed time per iteration (ms):")
  if not time then return false end
  local count, seconds = numbers.count(iteration), numbers.seconds((numbers.read(time:match "^[^/]+") or 0) / 1e3)
  if not count or not seconds then
    sink.unreadable(iteration, time)
    return true
  end
  sink.step {
    iteration = count, seconds = seconds,
    batch = numbers.count(field(rest, "global batch size:")),
    undefined = numbers.count(field(rest, "number of nan iterations:")) or losses_are_undefined(rest) and 1 or 0,
    skipped = numbers.count(field(rest, "number of skipped iterations:")) or 0,
  }
  return true
end

function megatron.line(line, sink)
  if line:find("elapsed time per iteration (ms):", 1, true) then return iteration_line(line, sink) end
  if line:find("Step Time", 1, true) then
    local seconds = numbers.seconds(numbers.read(line:match "Step Time *: *([%d.]+) *s[ ,]"))
    if seconds then sink.unnumbered_step(seconds) end
    return seconds ~= nil
  end
  return false
end

return megatron
