-- SPDX-License-Identifier: Apache-2.0
-- hf_trainer.lua: what the Trainer of Hugging Face (TRL, Axolotl, LLaMA-Factory and others that use it) shows of its steps: a bar of
-- tqdm, and lines of what it logs:
--
--     3%|▎         | 30/1000 [04:06<2:12:58,  8.20s/it]
--   {'loss': 1.2345, 'grad_norm': 0.51, 'learning_rate': 1.2e-05, 'epoch': 0.03}
--
-- (huggingface/transformers src/transformers/trainer_callback.py, ProgressCallback; tqdm/tqdm tqdm/std.py, format_interval, format_meter.)
-- The lines have no time. The bar's rate is smoothed over the last steps, so that one slow step is in several of them; its clock shows
-- whole seconds. So a sample is the difference of two clocks LEAST_SECONDS apart or more: a twentieth off at most, and their sum is not.
--
-- LLaMA-Factory's trainer_log.jsonl tells the same in each line: current_steps, total_steps, elapsed_time (hiyouga/LLaMA-Factory
-- src/llamafactory/train/callbacks.py, LogCallback).
--
-- The bar begins at 0, also of a process that resumed: its first move goes to the first step that this process took, from wherever it began
-- (ProgressCallback, on_step_end). So a first move by more than a step is no sample.
--
-- Other bars (data, shards, evaluation) have other totals, or begin anew. A line of the loss says which of them is the training's: the one
-- before it. An evaluation stops it for a while: what {'eval_loss': …} or another bar says is told as a mark. Where the bar stands still
-- behind it, or LLaMA-Factory's line tells when it ended, the next sample begins there, without it.

local marks = require "pipeplan.input.metrics.marks"
local numbers = require "pipeplan.input.metrics.numbers"

local hf_trainer = { name = "hf-trainer", title = "Hugging Face Trainer log" }

local LEAST_SECONDS = 20
local MOST_JUMP = 10      -- steps between two states of a bar: more, and the run resumed there, unless they took the time of so many
local MOST_TOTALS = 1000  -- bars that are remembered
local MOST_KEPT = 10000   -- samples of a bar, before it is known to be the training's

-- "1:02:03", "02:03" or "1 day, 2:03:04" → seconds.
local function clock(text)
  local days, rest = text:match "^(%d+) days?, (.*)$"
  local seconds = 0
  for part in (rest or text):gmatch "%d+" do seconds = seconds * 60 + tonumber(part) end
  return seconds + (tonumber(days) or 0) * 86400
end

-- "8.20s/it" or "2.50it/s" → seconds of a step, or nil.
local function pace_of(text)
  local each, per_second = numbers.read(text:match "%f[%d.]([%d.]+)s/it"), numbers.read(text:match "%f[%d.]([%d.]+)it/s")
  return each or per_second and per_second > 0 and 1 / per_second or nil
end

-- A line of tqdm → steps, their total, seconds since the bar began, seconds of a step as it shows them, and what stands behind the bar; nil
-- for another line, and for a bar with another name.
local function bar(line)
  local at = line:find("%|", 1, true)
  if not at or at > 40 then return nil end
  local name = line:sub(1, at - 1):match "^%s*(.-)%s*%d+$"
  if name ~= "" and name ~= "Train:" then return nil end
  local step, total, elapsed, shown, rest = line:match("^[^|]*| *(%d+)/(%d+) %[([%d:]+)<([^%]]*)%]?(.*)$", at + 2)
  step, total = step and numbers.count(step) or step == "0" and 0, total and numbers.count(total)
  if not step or not total or #elapsed > 12 then return nil end
  return step, total, clock(elapsed), pace_of(shown), rest
end

-- The same of a line of trainer_log.jsonl.
local function of_json(inside)
  local step, total = numbers.count(inside:match '"current_steps": (%d+)'), numbers.count(inside:match '"total_steps": (%d+)')
  local elapsed = inside:match '"elapsed_time": "([^"]+)"'
  if step and total and elapsed and #elapsed <= 24 then return step, total, clock(elapsed) end
end

-- Did so many steps pass in so many seconds, or were they done before? pace: as the bar shows it; false: what is shown has passed.
local function passed(steps, seconds, pace)
  return steps <= MOST_JUMP or pace == false or pace and seconds >= 0.5 * steps * pace and seconds <= 2 * steps * pace
end

-- Is what passed since the last state of a bar no time of these steps?
local function begins_anew(state, step, seconds, pace, paused)
  return seconds < state.clock or state.seen == 0 and step > 1 or paused and step == state.seen
         or not passed(step - state.seen, seconds - state.clock, pace)
end

-- The next state of a bar → a sample, or nil. state: { step, seconds, evaluations } from where the next sample is, evaluations: how many
-- there were before; each: steps of a sample; seen, clock: of the last state.
local function advance(state, step, seconds, pace, evaluations)
  local paused = state.evaluations ~= evaluations
  local anew = begins_anew(state, step, seconds, pace, paused)
  state.seen, state.clock = step, seconds
  if anew then
    state.step, state.seconds, state.evaluations = step, seconds, evaluations
    return nil
  end
  local steps, taken = step - state.step, seconds - state.seconds
  if not state.each and taken >= LEAST_SECONDS and steps > 0 then state.each = steps end
  if not state.each or steps < state.each or taken <= 0 then return nil end
  state.step, state.seconds, state.evaluations = step, seconds, evaluations
  return { iteration = step, seconds = taken / steps, grade = "bar", undefined = 0, skipped = 0, without_evaluation = not paused }
end

local reader = {}
reader.__index = reader

function reader:bar(step, total, seconds, pace)
  local state = self.bars[total]
  local moved = not state or step ~= state.seen   -- or is drawn again, beside a line that was written
  if not state or step < state.seen then
    if not state and self.count >= MOST_TOTALS then return end
    self.count = self.count + (state and 0 or 1)
    state = { step = step, seconds = seconds, seen = step, clock = seconds, kept = {}, evaluations = self.evaluations }
    self.bars[total] = state
  end
  self.current, self.current_total = state, total
  if self.total and total ~= self.total and moved then
    self.evaluations = self.evaluations + 1
    self.sink.mark "evaluation"
  end
  local sample = advance(state, step, seconds, pace, self.evaluations)
  if not sample or not numbers.seconds(sample.seconds) then return end
  if state.training then self:tell(sample) elseif #state.kept < MOST_KEPT then table.insert(state.kept, sample) end
end

function reader:tell(sample)
  sample.undefined, self.undefined = self.undefined, 0
  self.sink.step(sample)
end

-- A line of what an evaluation measured: the bar before it is none of training's, as far as is known.
function reader:evaluation()
  self.evaluations = self.evaluations + 1
  local state = self.current
  if state and not state.training then state.kept = {} end
end

-- A line of the loss: the bar before it is the training's.
function reader:loss(value)
  if numbers.is_undefined(value) then self.undefined = self.undefined + 1 end
  local state = self.current
  if not state or state.training then return end
  state.training, self.total = true, self.current_total
  for _, sample in ipairs(state.kept) do
    if not sample.without_evaluation then self.sink.mark "evaluation" end
    self:tell(sample)
  end
  state.kept = {}
end

function hf_trainer.new(sink)
  local self = setmetatable({ sink = sink, bars = {}, count = 0, undefined = 0, evaluations = 0 }, reader)
  return function(line)
    local step, total, seconds, pace, rest = bar(line)
    if step then self:bar(step, total, seconds, pace) end
    local inside = (rest or line):match "^%s*{(['\"].*)}%s*$"   -- behind the bar too, where both go to one file
    if not inside then return step ~= nil end
    local loss = inside:match "['\"]loss['\"]: ['\"]?([^'\",}%s]+)"
    local known = loss and inside:find("learning_rate", 1, true)
    if not loss and marks.of(inside) == "evaluation" then
      self:evaluation()
      local at, all, clocked = of_json(inside)
      if at then self:bar(at, all, clocked, false) end
      if not step and not at then return false end   -- any Trainer's: marks.lua has it
      self.sink.mark "evaluation"
      return true
    end
    if loss and not step then
      step, total, seconds = of_json(inside)
      if step then self:bar(step, total, seconds, false) end
      known = known or step
    end
    if known then self:loss(loss) end
    return step ~= nil or loss ~= nil or inside:find("train_runtime", 1, true) ~= nil
  end
end

return hf_trainer
