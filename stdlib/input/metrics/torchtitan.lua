-- SPDX-License-Identifier: Apache-2.0
-- torchtitan.lua: log lines of torchtitan:
--
--   step: 10  loss: 2.34567  grad_norm: 0.5123  memory: 61.20GiB(77.25%)  tps: 8,412  tflops: 412.60  mfu: 41.72%
--
-- with colours and a launcher's prefix around it; mfu may be N/A. Of step 1 and of every log_freq-th step, over the steps since the line
-- before (pytorch/torchtitan torchtitan/components/metrics.py, MetricsProcessor.log). There tps = tokens of this rank's data-parallel group
-- since then / (seconds × non-data-parallel size): tokens per second and device. So a step of all its tokens takes
-- tokens per step / (tps × devices), whatever of the devices is data parallel.

local numbers = require "pipeplan.input.metrics.numbers"

local torchtitan = { name = "torchtitan", title = "torchtitan log" }

function torchtitan.line(line, sink)
  if not line:find("tps:", 1, true) or line:find("validate step:", 1, true) then return false end
  local iteration, rest = line:match "^.*step: *(%d+)(.*)$"   -- the last: half a line may stand before it
  -- a blank after the number: it is not torn
  local rate = rest and rest:match "tps: *([%d,.]+)%s"
  if not rate then return false end
  local step = numbers.step_of_rate(iteration, rate, rest:match "loss: *([-+%a]+)")
  if not step then sink.unreadable(iteration, rate) return true end
  step.rank = line:match "%[rank(%d+)%]"   -- each rank logs, unless the launcher filters: one of them is enough
  sink.step(step)
  return true
end

return torchtitan
