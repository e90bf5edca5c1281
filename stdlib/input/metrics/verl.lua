-- SPDX-License-Identifier: Apache-2.0
-- verl.lua: log lines of verl:
--
--   step:12 - train/loss:0.72 - train/lr(1e-3):0.0096 - train/time(s):2.81
--   step:12 - actor/pg_loss:0.25 - … - timing_s/gen:16.2 - timing_s/update_actor:21.5 - timing_s/step:48.7 - …
--
-- (verl-project/verl verl/utils/logger/aggregate_logger.py, concat_dict_to_str; verl/trainer/fsdp_sft_trainer.py, training_step;
-- verl/trainer/ppo/ray_trainer.py, timing_raw.) Of fine-tuning that is a step. Of reinforcement learning a step is sampling, rewards and
-- training: what a plan is of is the actor's update, and that is read.

local numbers = require "pipeplan.input.metrics.numbers"

local verl = { name = "verl", title = "verl log" }

-- What stands behind "name:", as verl or numpy prints it: 21.5, np.float64(21.5).
local function field(line, name)
  local _, at = line:find(name .. ":", 1, true)
  if not at then return nil end
  return line:match("^np%.%a+%d*%(([^%s)]+)%)", at + 1) or line:match("^(%S+)", at + 1)
end

function verl.line(line, sink)
  local _, at = line:find("step:%d+ %- ")
  if not at then return false end
  local iteration = line:match("step:(%d+) %- ")
  local time = field(line, "train/time(s)") or field(line, "timing_s/update_actor")
  if not time then return false end
  local count, seconds = numbers.count(iteration), numbers.seconds(numbers.read(time))
  if not count or not seconds then
    sink.unreadable(iteration, time)
    return true
  end
  local loss = field(line, "train/loss") or field(line, "actor/pg_loss")
  sink.step { iteration = count, seconds = seconds, undefined = loss and numbers.is_undefined(loss) and 1 or 0, skipped = 0 }
  return true
end

return verl
