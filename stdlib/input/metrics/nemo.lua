-- SPDX-License-Identifier: Apache-2.0
-- nemo.lua: log lines of NeMo 2 (NeMo on Lightning):
--
--   Training epoch 0, iteration 12/249 | lr: 5.882e-06 | global_batch_size: 8 | global_step: 12 | reduced_train_loss: 1.278 |
--   train_step_timing in s: 1.505 | consumed_samples: 104
--
-- in one line, of ProgressPrinter (NVIDIA/NeMo nemo/lightning/pytorch/callbacks/progress_printer.py, format_string: four digits, means
-- over its log interval but for global_step), or of a progress bar (megatron_progress_bar.py), which writes `name=value` between [ and ],
-- and the same more than once. global_step counts from 0.

local numbers = require "pipeplan.input.metrics.numbers"

local nemo = { name = "nemo", title = "NeMo log" }

local TIMING = "train_step_timing in s"

-- What stands behind a name and : or =, or nil.
local function field(line, name)
  local _, at = line:find(name, 1, true)
  return at and line:match("^[:=] *([^%s,|%]]+)", at + 1)
end

function nemo.new(sink)
  local last   -- the step that the bar told last
  return function(line)
    if not line:find(TIMING, 1, true) then return false end
    local seconds, step = field(line, TIMING), field(line, "global_step")
    if not seconds then return false end
    seconds, step = numbers.seconds(numbers.read(seconds)), numbers.read(step)
    local count = step and step >= 0 and math.tointeger(step)
    count = count and count + 1 or numbers.count(line:match "iteration (%d+)/")
    if not seconds or not count then
      sink.unreadable(field(line, "global_step"), field(line, TIMING))
      return true
    end
    if count == last then return true end
    last = count
    local loss = field(line, "reduced_train_loss")
    sink.step { iteration = count, seconds = seconds, batch = numbers.count(field(line, "global_batch_size")),
                undefined = loss and numbers.is_undefined(loss) and 1 or 0, skipped = 0 }
    return true
  end
end

return nemo
