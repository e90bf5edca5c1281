-- SPDX-License-Identifier: Apache-2.0
-- nanotron.lua: log lines of nanotron:
--
--   10/17/2025 16:41:12 [INFO|DP=0|PP=0|TP=0]: iteration: 51 / 378950 | consumed_tokens: 53.5M | elapsed_time_per_iteration_ms: 15.5K |
--   tokens_per_sec: 67.8K | … | global_batch_size: 128 | lm_loss: 2.38 | …
--
-- in one line (huggingface/nanotron src/nanotron/trainer.py, train_step_logs; src/nanotron/logging/base.py, human_format: three digits and
-- K, M, B or T). Of its own step, never a mean. Since 2025 the time is time_per_iteration_ms, and global_batch_size counts tokens: it is
-- read of the older lines alone, where no K has taken digits off it.

local numbers = require "pipeplan.input.metrics.numbers"

local nanotron = { name = "nanotron", title = "nanotron log" }

local times = { [""] = 1, K = 1e3, M = 1e6, B = 1e9, T = 1e12 }

-- What stands behind "name: ", up to a blank or |; nil without.
local function field(line, name)
  local _, at = line:find(name .. ": ", 1, true)
  return at and line:match("^([^%s|]+)[%s|]", at + 1)
end

local function human(text)
  local digits, unit = (text or ""):match "^([-+%deE.]+)(%u?)$"
  if digits and digits:find "E$" then digits = nil end
  local number = digits and times[unit] and numbers.read(digits)
  return number and number * times[unit]
end

function nanotron.line(line, sink)
  local at = line:find("time_per_iteration_ms: ", 1, true)
  if not at then return false end
  -- the last one: a process that died while it wrote leaves half a line before the next
  local iteration, rest = line:match "^.*iteration: (%d+) / %d+ |(.*)$"
  if not iteration then return false end
  local count, time = numbers.count(iteration), field(rest .. " ", "time_per_iteration_ms")
  if not time then return false end
  local seconds = numbers.seconds((human(time) or 0) / 1e3)
  if not count or not seconds then
    sink.unreadable(iteration, time)
    return true
  end
  local loss = field(rest .. " ", "lm_loss")
  local old = rest:find("elapsed_time_per_iteration_ms", 1, true)
  sink.step { iteration = count, seconds = seconds, batch = old and numbers.count(field(rest .. " ", "global_batch_size")) or nil,
              undefined = loss and numbers.is_undefined(loss) and 1 or 0, skipped = 0 }
  return true
end

return nanotron
