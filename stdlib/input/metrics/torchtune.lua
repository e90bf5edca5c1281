-- SPDX-License-Identifier: Apache-2.0
-- torchtune.lua: log lines of torchtune, in a file or on standard output:
--
--   Step 10 | loss:1.2345 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_alloc:20.1
--
-- with a blank behind each value (pytorch/torchtune torchtune/training/metric_logging.py, DiskLogger and StdoutLogger), of rank 0 and of
-- its own step. The rate is of tokens with a label, over all ranks, those of one data-parallel group taken once
-- (recipes/full_finetune_distributed.py): of a run that masks prompts or pads sequences it is less than what a step computes.

local numbers = require "pipeplan.input.metrics.numbers"

local torchtune = { name = "torchtune", title = "torchtune log" }

local caution = "torchtune counts tokens with a label alone: where prompts are masked or sequences padded, steps are shorter than "
  .. "what is shown here"

function torchtune.line(line, sink)
  local iteration, rest = line:match "^.*Step (%d+) | (.*)$"   -- the last: half a line may stand before it
  local _, at = (rest or ""):find("tokens_per_second_per_gpu:", 1, true)
  local rate = at and rest:match("^(%S+)%s", at + 1)
  if not rate then return false end
  local step = numbers.step_of_rate(iteration, rate, rest:match "loss:(%S+)")
  if not step then sink.unreadable(iteration, rate) return true end
  sink.caution(caution)
  sink.step(step)
  return true
end

return torchtune
