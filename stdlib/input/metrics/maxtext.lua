-- SPDX-License-Identifier: Apache-2.0
-- maxtext.lua: log lines of MaxText:
--
--   completed step: 5, seconds: 1.234, TFLOP/s/device: 412.600, Tokens/s/device: 6638.574, total_weights: 65536, loss: 9.876
--
-- (AI-Hypercomputer/maxtext src/MaxText/metric_logger.py, log_metrics.) Steps count from 0; each process prints them. While the batch grows
-- there are no rates in the line.

local numbers = require "pipeplan.input.metrics.numbers"

local maxtext = { name = "maxtext", title = "MaxText log" }

function maxtext.line(line, sink)
  local _, at = line:find("completed step: ", 1, true)
  local step, time = line:match("^(%d+), seconds: ([%d.]+),", (at or 0) + 1)
  if not at or not step then return false end
  local count, seconds = #step <= 15 and math.tointeger(tonumber(step)), numbers.seconds(numbers.read(time))
  if not count or not seconds then
    sink.unreadable(step, time)
    return true
  end
  local loss = line:match ", loss: *([-+%a]+)"
  sink.step { iteration = count + 1, seconds = seconds, undefined = loss and numbers.is_undefined(loss) and 1 or 0, skipped = 0 }
  return true
end

return maxtext
