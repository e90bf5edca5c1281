-- SPDX-License-Identifier: Apache-2.0
-- litgpt.lua: log lines of litgpt:
--
--   Epoch 1 | iter 64 step 64 | loss train: 11.201, val: n/a | iter time: 450.12 ms (step) remaining time: 2 days, 1:00:00
--
-- (Lightning-AI/litgpt litgpt/pretrain.py, fit; litgpt/finetune/*.py), of rank 0. The time is of the last microbatch alone: of a step only
-- where each step has one, so that "iter" and "step" count alike.

local numbers = require "pipeplan.input.metrics.numbers"

local litgpt = { name = "litgpt", title = "litgpt log" }

local caution = "litgpt tells the time of a step's last microbatch alone: with gradient accumulation no time of a step follows from it"

function litgpt.line(line, sink)
  local iteration, step, rest = line:match "^.*iter (%d+) step (%d+) | (.*)$"   -- the last: half a line may stand before it
  local time = rest and rest:match "iter time: (%S+) ms%s"
  if not time then return false end
  local count, seconds = numbers.count(step), numbers.seconds((numbers.read(time) or 0) / 1e3)
  if not count or not seconds then
    sink.unreadable(step, time)
  elseif iteration ~= step then
    sink.caution(caution)
  else
    local loss = rest:match "loss train: ([-+%a]+)"
    sink.step { iteration = count, seconds = seconds, undefined = loss and numbers.is_undefined(loss) and 1 or 0, skipped = 0 }
  end
  return true
end

return litgpt
