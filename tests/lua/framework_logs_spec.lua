-- SPDX-License-Identifier: Apache-2.0
-- Logs of training frameworks: what each reader takes of a line. Lines are our own, made as the cited sources print them; so are the expected
-- values, by hand. Those of Megatron-LM and torchtitan: tests/lua/metrics_spec.lua.

require "pipeplan"
local files = require "policy_files"
local metrics = require "pipeplan.input.metrics.init"
local monitoring = require "monitoring"

teardown(files.remove)

-- What a text tells: steps, marks, and the file's own counts.
local function read(text, input)
  local told = { steps = {}, marks = {} }
  local handle = assert(io.tmpfile())
  handle:write(text)
  handle:seek "set"
  told.file = metrics.read_handle(handle, "x", {
    step = function(sample) table.insert(told.steps, sample) end,
    unnumbered_step = function() error "a step without a number" end,
    mark = function(what) table.insert(told.marks, what) end,
    counter = function() error "a counter" end,
  }, input)
  handle:close()
  return told
end

local function iterations(told)
  local out = {}
  for i, step in ipairs(told.steps) do out[i] = { step.iteration, step.seconds } end
  return out
end

local function only_format(told) return #told.file.formats == 1 and told.file.formats[1].title end

-- What monitor makes of a text: a plan of tests/monitoring.lua, of whose window 11 to 100 count.
local function monitored(text)
  local plan = require("pipeplan.input.plan_file").read(files.write("plan.json", monitoring.plan()))
  local collector = require("pipeplan.monitor.kinds").new(plan, 11, 100)
  local handle = assert(io.tmpfile())
  handle:write(text)
  handle:seek "set"
  metrics.read_handle(handle, "x", { step = function(sample) collector:add(sample) end, mark = function(what) collector:mark(what) end })
  handle:close()
  return collector:finish(2)
end

-- NVIDIA/NeMo nemo/lightning/pytorch/callbacks/progress_printer.py, format_string: " | name: value", four digits
describe("NeMo's line", function()
  local line = "Training epoch 0, iteration 12/249 | lr: 5.882e-06 | global_batch_size: 8 | global_step: 12 | reduced_train_loss: 1.278 | "
    .. "train_step_timing in s: 1.505 | consumed_samples: 104\n"

  it("gives step, seconds and batch; its steps count from 0", function()
    local told = read(line)
    assert.same({ { iteration = 13, seconds = 1.505, batch = 8, undefined = 0, skipped = 0 } }, told.steps)
    assert.equal("NeMo log", only_format(told))
  end)

  it("is read without what comes and goes, behind a prefix, and of the first step", function()
    assert.same({ { 1, 7.126 } },
                iterations(read "[default0]:Training epoch 0, iteration 0/249 | lr: 1.9e-06 | global_step: 0 | train_step_timing in s: 7.126\n"))
    assert.same({ { 5, 2.5 } }, iterations(read "Training epoch 0, iteration 5/249 | train_step_timing in s: 2.5\n"))
    assert.equal(1, read((line:gsub("1.278", "nan"))).steps[1].undefined)
    assert.equal(1, read((line:gsub("1.505", "fast"))).file.unreadable)
  end)

  -- nemo/lightning/pytorch/callbacks/megatron_progress_bar.py: tqdm's postfix, drawn again with every refresh
  it("of a bar counts once for each step", function()
    local state = "Epoch 0: :  %d%%|█  | %d/100 [00:%02d<05:18, reduced_train_loss=0.0172, global_step=%d.00, consumed_samples=25600.0, "
      .. "train_step_timing in s=3.130]"
    local text = state:format(1, 1, 4, 0) .. "\r" .. state:format(2, 2, 7, 1) .. "\r" .. state:format(2, 2, 8, 1) .. "\r\n"
    assert.same({ { 1, 3.13 }, { 2, 3.13 } }, iterations(read(text)))
  end)

  it("of an evaluation is none", function()
    assert.same({ "evaluation" }, read "Validation: iteration 3/10\n".marks)
  end)
end)

-- huggingface/nanotron src/nanotron/trainer.py, train_step_logs; src/nanotron/logging/base.py, human_format
describe("nanotron's line", function()
  local old = "10/17/2025 16:41:12 [INFO|DP=0|PP=0|TP=0]: iteration: 51 / 378950 | consumed_tokens: 53.5M | elapsed_time_per_iteration_ms: 15.5K | "
    .. "tokens_per_sec: 67.8K | tokens_per_sec_per_gpu: 1.06K | global_batch_size: 128 | lm_loss: 2.38 | lr: 1e-05 | model_tflops_per_gpu: 38.3\n"

  it("gives iteration, seconds and batch", function()
    local told = read(old)
    assert.same({ { iteration = 51, seconds = 15.5, batch = 128, undefined = 0, skipped = 0 } }, told.steps)
    assert.equal("nanotron log", only_format(told))
  end)

  it("of 2025 has no elapsed_, colours, and a batch in tokens", function()
    local new = "\27[2;3m10/17 16:41:12 [INFO|DP=0|PP=0|TP=0|node-1]\27[0m: iteration: 52 / 100 | consumed_tokens: 54.5M | time_per_iteration_ms: 812 | "
      .. "tokens_per_sec: 1.29M | tokens_per_sec_per_gpu: 20.2K | global_batch_size: 1.05M | grad_norm: 0.42 | lm_loss: nan | lr: 1e-05 | eta: 0:01:02\n"
    assert.same({ { iteration = 52, seconds = 0.812, undefined = 1, skipped = 0 } }, read(new).steps)
  end)

  -- three digits, whatever the size: 999 ms, 1.2 s, 65.5 s, 1,020 s
  it("has three digits and a unit", function()
    for text, seconds in pairs { ["999"] = 0.999, ["1.2K"] = 1.2, ["65.5K"] = 65.5, ["1.02M"] = 1020, ["0.5"] = 0.0005 } do
      assert.is_true(math.abs(read((old:gsub("15.5K", text))).steps[1].seconds / seconds - 1) < 1e-12, text)
    end
    for _, text in ipairs { "15.5Q", "1E", "K", "-5", "0", "1e999" } do
      local told = read((old:gsub("15.5K", text)))
      assert.same({ 0, 1 }, { #told.steps, told.file.unreadable }, text)
    end
    -- 1,024 sequences are "1.02K": not read
    assert.is_nil(read((old:gsub("size: 128", "size: 1.02K"))).steps[1].batch)
  end)
end)

-- deepspeed 0.19.8, deepspeed/runtime/pipe/engine.py:382
describe("the line of DeepSpeed's pipeline engine", function()
  it("gives step, seconds and batch: 8.286 × 15.448 = 128.0", function()
    local told = read "steps: 51 loss: 8.4113 iter time (s): 15.448 samples/sec: 8.286\n"
    assert.same({ { iteration = 51, seconds = 15.448, batch = 128, undefined = 0, skipped = 0 } }, told.steps)
    assert.equal("DeepSpeed log", only_format(told))
  end)

  it("may have more losses, a launcher's prefix, half a line before it, and a loss that is none", function()
    assert.same({ { 7, 0.5 } }, iterations(read "worker-0: steps: 7 loss: 2.1000 aux: 0.1000 iter time (s): 0.500 samples/sec: 64.000\n"))
    assert.same({ { 8, 0.5 } }, iterations(read "steps: 7 loss: 2.1steps: 8 loss: 2.1000 iter time (s): 0.500 samples/sec: 64.000\n"))
    assert.equal(1, read "steps: 7 loss: nan iter time (s): 0.500 samples/sec: 64.000\n".steps[1].undefined)
    assert.equal(1, read "steps: 7 loss: 2.1 iter time (s): 0.000 samples/sec: 64.000\n".file.unreadable)
  end)

  -- 3.000 samples/s over 0.002 s: 0.0045 to 0.0075 samples
  it("gives no batch where its digits do not tell it", function()
    assert.is_nil(read "steps: 7 loss: 2.1 iter time (s): 0.002 samples/sec: 4096.000\n".steps[1].batch)
    assert.is_nil(read "steps: 7 loss: 2.1 iter time (s): 2.000 samples/sec: 64.250\n".steps[1].batch)
  end)
end)

-- deepspeed/utils/timer.py:264 of 0.19.8, deepspeed/utils/timer.py:198 of 0.7 ("0/20, Running…")
describe("the line of DeepSpeed's other engine", function()
  it("gives step and sequences a second", function()
    local told = read("[2026-11-07 01:55:23,711] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=4, lr=[4.9e-05], mom=[(0.9, 0.95)]\n"
      .. "[2026-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.025771473496132, "
      .. "CurrSamplesPerSec=25.704280480541442, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n"
      .. "[2022-08-29 06:58:56,176] [INFO] [timer.py:198:stop] 0/20, RunningAvgSamplesPerSec=232.7, CurrSamplesPerSec=227.5, MemAllocated=0.36GB\n")
    assert.same({ { iteration = 10, sequences_per_second = 25.704280480541442, grade = "step", undefined = 0, skipped = 0 },
                  { iteration = 20, sequences_per_second = 227.5, grade = "step", undefined = 0, skipped = 0 } }, told.steps)
    assert.equal("DeepSpeed log", only_format(told))
  end)
end)

-- AI-Hypercomputer/maxtext src/MaxText/metric_logger.py, log_metrics
describe("MaxText's line", function()
  it("gives step and seconds; its steps count from 0", function()
    local told = read("completed step: 5, seconds: 1.234, TFLOP/s/device: 412.600, Tokens/s/device: 6638.574, total_weights: 65536, loss: 9.876\n"
                      .. "I1127 10:15:02.412 1 max_logging.py:23] completed step: 6, seconds: 1.250, total_weights: 65536, loss: nan\n")
    assert.same({ { iteration = 6, seconds = 1.234, undefined = 0, skipped = 0 }, { iteration = 7, seconds = 1.25, undefined = 1, skipped = 0 } },
                told.steps)
    assert.equal("MaxText log", only_format(told))
    assert.same({ "evaluation" }, read "eval metrics after step: 9, loss=2.345, total_weights=65536\n".marks)
    assert.equal(1, read "completed step: 5, seconds: 0.000, total_weights: 1\n".file.unreadable)
  end)
end)

-- verl-project/verl verl/utils/logger/aggregate_logger.py, concat_dict_to_str
describe("verl's line", function()
  it("of fine-tuning gives its step", function()
    local told = read "step:12 - train/loss:0.723 - train/lr(1e-3):0.0096 - train/time(s):2.81\n"
    assert.same({ { iteration = 12, seconds = 2.81, undefined = 0, skipped = 0 } }, told.steps)
    assert.equal("verl log", only_format(told))
  end)

  it("of reinforcement learning gives the actor's update, not the sampling before it", function()
    local text = "(TaskRunner pid=19799) step:3 - actor/pg_loss:nan - timing_s/gen:16.22 - timing_s/update_critic:1.28 - timing_s/update_actor:21.5 - "
      .. "timing_s/step:48.7 - timing_per_token_ms/update_actor:0.134 - perf/time_per_step:48.7\n"
    assert.same({ { iteration = 3, seconds = 21.5, undefined = 1, skipped = 0 } }, read(text).steps)
    assert.same({ { 3, 21.5 } }, iterations(read((text:gsub("21%.5 ", "np.float64(21.5) ")))))
    assert.same({}, read "step:3 - val/score:0.5\n".steps)
  end)
end)

-- modelscope/ms-swift swift/trainers/callback.py, add_train_message: the speed is global_step / elapsed, to six digits
describe("ms-swift's line", function()
  local function line(step, speed, elapsed, quote, unit)
    local text = ("{'loss': 1.66180363, 'grad_norm': 1.06889856, 'learning_rate': 9.965e-05, 'memory(GiB)': 5.15, 'train_speed(%s)': %s, "
      .. "'epoch': 0.11, 'global_step/max_steps': '%d/9060', 'percentage': '3.75%%', 'elapsed_time': '%s', 'remaining_time': '7h 59m 46s'}\n")
      :format(unit or "iter/s", speed, step, elapsed)
    return quote and text:gsub("'", quote) or text
  end

  -- 10 steps in 25 s, then 10 in 20 s: 10/25 = 0.4, 20/45 = 0.444444, 30/65 = 0.461538
  it("tells the mean since the last, by the difference of elapsed times", function()
    for _, quote in ipairs { "'", '"' } do
      local told = read(line(10, 0.4, "25s", quote) .. line(20, 0.444444, "45s", quote) .. line(30, 0.461538, "1m 5s", quote))
      assert.same({ 10, 20, 30 }, { told.steps[1].iteration, told.steps[2].iteration, told.steps[3].iteration })
      for i, seconds in ipairs { 2.5, 2, 2 } do assert.is_true(math.abs(told.steps[i].seconds - seconds) < 1e-3, told.steps[i].seconds) end
      assert.same({ "difference", "ms-swift log" }, { told.steps[1].grade, only_format(told) })
    end
  end)

  it("of Megatron counts iterations, and the speed is that of this process", function()
    -- begun at step 100: 10 steps in 50 s, 20 in 80 s
    local text = line(110, 5.0, "50s", nil, "s/it") .. line(120, 4.0, "1m 20s", nil, "s/it")
    local told = read((text:gsub("global_step/max_steps", "iteration")))
    assert.same({ { 110, 5.0 }, { 120, 3.0 } }, iterations(told))
    -- begun at step 0: the first line tells its steps too
    assert.same({ { 10, 5.0 }, { 20, 3.0 } }, iterations(read(line(10, 5.0, "50s", nil, "s/it") .. line(20, 4.0, "1m 20s", nil, "s/it"))))
  end)

  it("begins anew with a process", function()
    local told = read(line(10, 0.4, "25s") .. line(20, 0.4, "50s") .. line(10, 0.5, "20s") .. line(20, 0.5, "40s"))
    assert.same({ { 10, 2.5 }, { 20, 2.5 }, { 10, 2.0 }, { 20, 2.0 } }, iterations(told))
    assert.same({ "start", "start" }, told.marks)   -- its first line, which is left out: a process that resumed counts steps that it did not take
    assert.equal(1, read(line(10, "fast", "25s")).file.unreadable)
    local measured = "{'eval_loss': 1.2, 'eval_runtime': 200.1, 'epoch': 0.1, 'global_step/max_steps': '10/9060', 'elapsed_time': '4m 2s'}\n"
    assert.same({ "start", "evaluation" }, read(line(10, 0.4, "25s") .. measured).marks)
  end)
end)

-- modelscope/ms-swift at 3602360a5: swift/trainers/patcher.py:17 (add_train_message, called by on_log of each line: of the loss, of an
-- evaluation, and of the end), swift/megatron/callbacks/print.py:54 (on_log), swift/utils/utils.py:85 (format_time, which rounds)
describe("ms-swift's lines of today", function()
  local function clock(seconds)
    local total = math.floor(seconds + 0.5)
    local hours, minutes = total // 3600, total % 3600 // 60
    return (hours > 0 and hours .. "h " or "") .. (total >= 60 and minutes .. "m " or "") .. total % 60 .. "s"
  end

  -- how: { start, steps, each, log = steps a line, evaluate = steps an evaluation, pause = seconds of one, key }
  local function process(how)
    local parts, elapsed = {}, 0
    local function line(step, head)
      local taken = step - how.start
      parts[#parts + 1] = string.format("{%s, 'epoch': 0.11, '%s': '%d/9060', 'elapsed_time': '%s', 'remaining_time': '1h 2m 3s', 'memory(GiB)': 5.15, "
        .. "'train_speed(s/it)': %.6f}\n", head, how.key or "global_step/max_steps", step, clock(elapsed), taken > 0 and elapsed / taken or 0)
    end
    if how.first then
      elapsed = how.pause
      line(how.start, "'eval_loss': 1.2, 'eval_runtime': 120.0")
    end
    for step = how.start + 1, how.start + how.steps do
      elapsed = elapsed + how.each
      if step % how.log == 0 then line(step, "'loss': 1.66180363, 'grad_norm': 1.06889856, 'learning_rate': 9.965e-05") end
      if how.evaluate and step % how.evaluate == 0 then
        elapsed = elapsed + how.pause
        line(step, "'eval_loss': 1.2, 'eval_runtime': 120.0, 'eval_samples_per_second': 3.1")
      end
    end
    elapsed = elapsed + 30   -- the last checkpoint
    line(how.start + how.steps, "'train_runtime': 17400.0, 'train_samples_per_second': 8.1, 'train_loss': 1.2")
    return table.concat(parts)
  end

  local function check(told, seconds, first, last, count)
    assert.same({ first, last, count }, { told.steps[1].iteration, told.steps[#told.steps].iteration, #told.steps })
    for _, step in ipairs(told.steps) do assert.near(seconds, step.seconds, 0.002 * seconds, step.iteration) end
  end

  it("of an evaluation are none of a step: their time is in none", function()
    for _, key in ipairs { "global_step/max_steps", "iteration" } do
      for _, evaluate in ipairs { 10, 15 } do   -- with the line, and between lines
        local told = read(process { start = 0, steps = 300, each = 58, log = 10, evaluate = evaluate, pause = 120, key = key })
        check(told, 58, 10, 300, 30)
        assert.same({ { "start" }, 0 }, { told.marks, told.file.unreadable })
      end
    end
    local found = monitored(process { start = 0, steps = 300, each = 58, log = 10, evaluate = 10, pause = 120 })
    assert.same({ 90, 0, { { "warm_up", 10 } } }, { found.measured.steps, found.marked_kept, { { found.dropped[1].why, found.dropped[1].steps } } })
    assert.near(58, found.measured.mean_seconds, 0.01)
  end)

  -- start_step is the process's own: n_steps is 0 in the line of an evaluation before its first step, and the speed 0.0
  it("before the first step tell of none", function()
    local told = read(process { start = 40, steps = 60, each = 20, log = 10, pause = 120, first = true })
    check(told, 20, 50, 100, 6)
    assert.same({ { "start" }, 0 }, { told.marks, told.file.unreadable })
  end)

  it("of a process that resumed are from one step on, of steps of less than a second too", function()
    for _, each in ipairs { 0.7, 0.31, 1.3 } do
      local told = read(process { start = 500, steps = 200, each = each, log = 1 })
      check(told, each, 501, 700, 200)
      assert.same({ "start" }, told.marks)
      check(read(process { start = 505, steps = 200, each = each, log = 10 }), each, 510, 700, 20)
    end
  end)

  it("of a process that goes on where the other ended begin anew once", function()
    local told = read(process { start = 0, steps = 100, each = 20, log = 10 } .. process { start = 100, steps = 100, each = 30, log = 10 })
    assert.same({ "start", "start" }, told.marks)
    for i, step in ipairs(told.steps) do assert.near(i <= 10 and 20 or 30, step.seconds, 0.001, step.iteration) end
    assert.equal(20, #told.steps)
  end)
end)

-- tqdm/tqdm tqdm/std.py, format_meter and format_interval; huggingface/transformers src/transformers/trainer_callback.py, ProgressCallback
describe("the Trainer of Hugging Face", function()
  local function state(step, total, seconds, name)
    return string.format("%s%3d%%|▎         | %d/%d [%02d:%02d<2:12:58,  8.20s/it]\r", name or "", 100 * step // total, step, total, seconds // 60,
                         seconds % 60)
  end
  local loss = "                    \r{'loss': 1.2345, 'grad_norm': 0.51, 'learning_rate': 1.2e-05, 'epoch': 0.03}\n"

  -- steps of 8.2 s: clocks 8, 16, 24, 32, 41, 49, 57, 65, 73: a sample each three steps, for the third is the first 20 s after 0
  it("shows whole seconds: a sample is a difference of 20 s and more", function()
    local parts = { state(0, 1000, 0) }
    for step = 1, 9 do parts[#parts + 1] = state(step, 1000, math.floor(8.2 * step)) end
    local told = read(table.concat(parts) .. loss)
    assert.same({ { 3, 24 / 3 }, { 6, 25 / 3 }, { 9, 24 / 3 } }, iterations(told))   -- 73 s in all: (24 + 25 + 24) / 9 = 8.11 s
    assert.same({ "bar", "Hugging Face Trainer log" }, { told.steps[1].grade, only_format(told) })
  end)

  it("is not its other bars, of data, shards, or an evaluation", function()
    local shards = "Loading checkpoint shards: "
    local parts = { state(2, 4, 30, shards), state(4, 4, 60, shards), state(0, 1000, 0), state(1, 1000, 25), loss }
    for step = 1, 5 do parts[#parts + 1] = state(step, 50, 30 * step) end   -- an evaluation: nothing says that it is training
    parts[#parts + 1] = "{'eval_loss': 1.1, 'eval_runtime': 150.0, 'epoch': 0.03}\n"
    parts[#parts + 1] = state(2, 1000, 50) .. loss
    assert.same({ { 1, 25 }, { 2, 25 } }, iterations(read(table.concat(parts))))
    assert.same({ "evaluation", "checkpoint" }, read "***** Running Evaluation *****\nSaving model checkpoint to out/checkpoint-500\n".marks)
  end)

  -- steps of 10 s, an evaluation of 200 s behind step 4: its bar has as many steps as the training, another number, or none is shown
  it("is marked behind an evaluation, and is not the evaluation's bar", function()
    local measured = "\r{'eval_loss': 1.1, 'eval_runtime': 200.0, 'eval_samples_per_second': 3.1, 'epoch': 0.03}\n"
    for _, total in ipairs { 1000, 50, 0 } do
      local parts = { state(0, 1000, 0) }
      for step = 1, 4 do parts[#parts + 1] = state(step, 1000, 10 * step) end
      parts[#parts + 1] = loss
      for step = 1, total > 0 and 50 or 0 do parts[#parts + 1] = state(step, total, 4 * step) end
      parts[#parts + 1] = measured
      for step = 5, 8 do parts[#parts + 1] = state(step, 1000, 10 * step + 200) end
      parts[#parts + 1] = loss
      local told = {}
      local text = table.concat(parts)
      local handle = assert(io.tmpfile())
      handle:write(text)
      handle:seek "set"
      metrics.read_handle(handle, "x", { step = function(sample) table.insert(told, { sample.iteration, sample.seconds }) end,
                                         mark = function(what) if told[#told] ~= what then table.insert(told, what) end end })
      handle:close()
      -- of as many steps: a bar that begins anew, so the first clock behind it is where it begins
      assert.same({ { 2, 10 }, { 4, 10 }, "evaluation", total == 1000 and { 7, 10 } or { 6, 110 }, total ~= 1000 and { 8, 10 } or nil }, told, total)
    end
  end)

  it("goes on behind an evaluation from where its bar stood still", function()
    local text = state(0, 1000, 0) .. state(2, 1000, 20) .. loss .. "{'eval_loss': 1.1, 'eval_runtime': 200.0, 'epoch': 0.03}\n"
      .. state(2, 1000, 220) .. state(4, 1000, 240) .. loss
    local told = read(text)
    assert.same({ { 4, 10 } }, iterations(told))   -- 0 to 2 may be more steps than were taken
    assert.same({ "evaluation" }, { told.marks[1] })
  end)

  it("that resumes jumps over the steps that were done", function()
    local text = state(0, 1000, 0) .. state(500, 1000, 1) .. state(501, 1000, 26) .. state(502, 1000, 51) .. loss
    assert.same({ { 501, 25 }, { 502, 25 } }, iterations(read(text)))
  end)

  -- huggingface/transformers src/transformers/trainer_callback.py, ProgressCallback: tqdm(total=max_steps) and current_step = 0 at the start,
  -- update(global_step - current_step) behind each step. tqdm/std.py: the clock is [H:]MM:SS, the rate the quotient of two moving averages.
  it("that resumes shows at its first step all that were done before: no pace, and no number of steps a sample", function()
    local start, each = 250, 120
    local parts, steps, time, n = { "\r  0%|          | 0/1000 [00:00<?, ?it/s]" }, 0, 0, 0
    for step = start + 1, start + 60 do
      steps, time, n = 0.3 * (step - (n == 0 and 0 or step - 1)) + 0.7 * steps, 0.3 * each + 0.7 * time, n + 1   -- (1 - 0.7^n) of both cancels
      local pace, seconds = time / steps, n * each
      parts[#parts + 1] = string.format("\r %2d%%|██▌       | %d/1000 [%s%02d:%02d<9:00:00, %s]", step // 10, step,
                                        seconds >= 3600 and seconds // 3600 .. ":" or "", seconds % 3600 // 60, seconds % 60,
                                        pace > 1 and ("%5.2fs/it"):format(pace) or ("%5.2fit/s"):format(1 / pace))
      if step % 10 == 0 then parts[#parts + 1] = loss end
    end
    local told = read(table.concat(parts))
    assert.equal(59, #told.steps)
    for i, step in ipairs(told.steps) do assert.same({ start + 1 + i, each }, { step.iteration, step.seconds }) end
  end)

  -- on_log writes the line over the bars, and tqdm draws each bar again behind it: the training's, and the evaluation's, which is not closed yet
  it("that evaluates with each line of the loss is read without", function()
    local parts = { state(0, 1000, 0) }
    for step = 1, 100 do
      local clocked = 10 * step + (step - 1) // 10 * 200
      parts[#parts + 1] = state(step, 1000, clocked)
      if step % 10 == 0 then
        parts[#parts + 1] = loss .. state(step, 1000, clocked) .. state(0, 8, 0) .. state(4, 8, 100) .. state(8, 8, 200)
        parts[#parts + 1] = "\r{'eval_loss': 1.1, 'eval_runtime': 200.0, 'epoch': 0.03}\n" .. state(step, 1000, clocked + 200) .. state(8, 8, 200)
      end
    end
    local found = monitored(table.concat(parts))
    assert.same({ 10, 0, 90 }, { found.measured.mean_seconds, found.marked_kept, found.measured.steps })
  end)

  it("tells of a loss that is none with the next sample, also as version 5 writes it", function()
    local told = read(state(0, 9, 0) .. loss:gsub("1.2345", "'nan'") .. state(1, 9, 30) .. loss .. state(2, 9, 60))
    assert.same({ 1, 0 }, { told.steps[1].undefined, told.steps[2].undefined })
  end)

  it("without a line of the loss is not known to be one", function()
    assert.same({}, read(state(0, 9, 0) .. state(1, 9, 30) .. "\n{'train_runtime': 1234.5, 'train_loss': 1.1, 'epoch': 1.0}\n").steps)
  end)
end)

-- torchtitan 0.3.0, torchtitan/components/metrics.py:523 with torchtitan/tools/utils.py:263 (Color), torchtitan/tools/logging.py:23
describe("torchtitan's line of today", function()
  it("has colours, a rank, and no MFU where products are quantised", function()
    local line = "[rank%d]:[titan] 2026-11-27 10:15:02,412 - root - INFO - \27[31mstep: 10  \27[32mloss:  7.12345  \27[38;2;180;60;0mgrad_norm:  0.5123  "
      .. "\27[38;2;54;234;195mmemory: 61.20GiB(77.25%%)  \27[34mtps: 8,412  \27[36mtflops: 1,412.60  \27[35mmfu: N/A\27[39m\n"
    local told = read(line:format(3) .. line:format(0))
    assert.same({ { iteration = 10, tokens_per_second = 8412, rank = "3", undefined = 0, skipped = 0 },
                  { iteration = 10, tokens_per_second = 8412, rank = "0", undefined = 0, skipped = 0 } }, told.steps)
  end)
end)

describe("a log of several ranks", function()
  it("names them by the launcher's prefix, whatever the format", function()
    local told = read("[rank3]: completed step: 5, seconds: 1.234, loss: 9.876\n3: steps: 7 loss: 2.1 iter time (s): 0.5 samples/sec: 64.0\n"
                      .. "completed step: 6, seconds: 1.234, loss: 9.876\n")
    assert.same({ "3", "3" }, { told.steps[1].rank, told.steps[2].rank })
    assert.is_nil(told.steps[3].rank)
  end)
end)

-- A reader that went over a line once for each of its bytes would need minutes here.
describe("a line of 64 KiB", function()
  it("is read in a time that follows its length, by each reader", function()
    local function long(piece) return piece:rep(60000 // #piece) .. "\n" end
    local pieces = { "1", " ", "{", "'", "iteration: 1 / 2 |", "time_per_iteration_ms: 1K ", "steps: 1", "iter time (s): 1 ", "step:1 - ",
                     "completed step: 1, seconds: ", "train_step_timing in s: ", "train_speed(iter/s)': ", "'loss': ", "%|", "1/2 [", "[rank1]",
                     "RunningAvgSamplesPerSec=1", "global_step=1, ", "np.float64(1", "'learning_rate': {'loss': nan " }
    local lines = {}
    for _, piece in ipairs(pieces) do
      for _, head in ipairs { "", "{'", "steps: 1 loss: ", "iteration: 1 / 2 | time_per_iteration_ms: ", "step:1 - train/time(s):", "  1%|",
                              "train_speed(iter/s)': 1, 'iteration': ", "train_step_timing in s: 1 global_step: " } do
        lines[#lines + 1] = head .. long(piece)
      end
    end
    assert.equal(#lines, read(table.concat(lines)).file.lines)
  end)
end)

-- The helpers of monitor's tests make a log of each format from the same seconds; each is the same run.
describe("the same run", function()
  it("is judged alike from each framework's log", function()
    local steps = require "pipeplan.monitor.kinds"
    local plan_file = require "pipeplan.input.plan_file"
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(monitoring.plan())
    file:close()
    local plan = plan_file.read(path)
    os.remove(path)
    local formats = {
      nemo = function(i, s)
        return ("Training epoch 0, iteration %d/999 | global_batch_size: 64 | global_step: %d | train_step_timing in s: %.4g\n"):format(i, i - 1, s)
      end,
      nanotron = function(i, s) return ("iteration: %d / 999 | elapsed_time_per_iteration_ms: %.3gK | global_batch_size: 64 | lm_loss: 2 |\n"):format(i, s) end,
      deepspeed = function(i, s) return ("steps: %d loss: 2.0000 iter time (s): %.3f samples/sec: %.3f\n"):format(i, s, 64 / s) end,
      engine = function(i, s)
        return ("epoch=0/micro_step=1/global_step=%d, RunningAvgSamplesPerSec=1.0, CurrSamplesPerSec=%.9f, MemAllocated=1GB\n"):format(i, 64 / s)
      end,
      maxtext = function(i, s) return ("completed step: %d, seconds: %.3f, total_weights: 1, loss: 2.000\n"):format(i - 1, s) end,
      verl = function(i, s) return ("step:%d - train/loss:2.0 - train/time(s):%.3f\n"):format(i, s) end,
    }
    for name, line in pairs(formats) do
      local collector = steps.new(plan, 11, 100)
      local handle = assert(io.tmpfile())
      handle:write(monitoring.log(1, 100, 27, 1, line))
      handle:seek "set"
      metrics.read_handle(handle, name, { step = function(sample) collector:add(sample) end, mark = function() end })
      handle:close()
      local measured = collector:finish(2).measured
      assert.is_true(math.abs(measured.mean_seconds - 27) < 0.02, name .. ": " .. measured.mean_seconds)
      assert.equal(90, measured.steps, name)
    end
  end)
end)

describe("what a launcher or a collector writes before a line", function()
  local line = "completed step: 5, seconds: 1.234, TFLOP/s/device: 412.600, loss: 9.876\n"

  -- torchrun --tee (torch/distributed/elastic/multiprocessing/tail_log.py), srun --label, mpirun --tag-output, Ray (_private/worker.py,
  -- print_worker_logs), kubectl logs --prefix and --timestamps
  it("tells the rank, or is passed over", function()
    for prefix, rank in pairs { ["[rank3]:"] = "3", ["[default3]:"] = "3", ["3: "] = "3", ["  3: "] = "3", ["[1,3]<stdout>:"] = "3",
                                ["2026-11-27T10:15:02.412345678Z [rank3]:"] = "3", ["[pod/train-0-x7k/jax] [rank3]: "] = "3",
                                ["(TaskRunner pid=123, ip=10.0.0.1) "] = false, ["\27[36m(TaskRunner pid=123)\27[0m "] = false,
                                ["[pod/train-0-x7k/jax] "] = false, ["2026-11-27T10:15:02.4+01:00 "] = false } do
      local told = read(prefix .. line)
      assert.same({ { 6, 1.234 } }, iterations(told), prefix)
      assert.equal(rank or nil, told.steps[1].rank, prefix)
    end
  end)
end)

describe("the Trainer of Hugging Face, as files have it,", function()
  local function bar(step, clock) return string.format("  %d%%|▎         | %d/1000 [%s<2:12:58,  8.20s/it]", step // 10, step, clock) end
  local loss = "{'loss': '1.2345', 'grad_norm': '0.51', 'learning_rate': '1.2e-05', 'epoch': '0.03'}"

  it("writes the loss behind the bar, and a launcher before it", function()
    assert.same({ { 33, 8 } }, iterations(read("[default0]:" .. bar(30, "04:06") .. "\n[default0]:" .. bar(33, "04:30") .. loss .. "\n")))
  end)

  it("shows few states of the bar: steps that took the time of as many were not jumped over", function()
    assert.same({ { 60, 8.2 } }, iterations(read(bar(30, "04:06") .. "\n" .. bar(60, "08:12") .. "\n" .. loss .. "\n")))
    assert.same({}, iterations(read(bar(30, "04:06") .. "\n" .. bar(60, "04:20") .. "\n" .. loss .. "\n")))   -- it resumed
  end)

  -- hiyouga/LLaMA-Factory src/llamafactory/train/callbacks.py, LogCallback: elapsed_time is a timedelta of whole seconds
  it("of LLaMA-Factory keeps a file of its own", function()
    local function entry(step, elapsed)
      return string.format('{"current_steps": %d, "total_steps": 1000, "loss": 1.2, "lr": 1e-05, "epoch": 0.1, "percentage": 1.0, '
                           .. '"elapsed_time": "%s", "remaining_time": "2:14:10"}\n', step, elapsed)
    end
    assert.same({ { 20, 8.2 }, { 30, 8.4 } }, iterations(read(entry(10, "0:01:22") .. entry(20, "0:02:44") .. entry(30, "0:04:08"))))
    assert.same({ { 20, 8.2 } }, iterations(read(entry(10, "1 day, 2:01:22") .. entry(20, "1 day, 2:02:44"))))
    -- an evaluation of 200 s: its line has eval_loss and the clock behind it
    local told = read(entry(10, "0:01:22") .. entry(10, "0:04:42"):gsub('"loss"', '"eval_loss"') .. entry(20, "0:06:04"))
    assert.same({ { { 20, 8.2 } }, { "evaluation" } }, { iterations(told), { told.marks[1] } })
  end)
end)

-- pytorch/torchtune torchtune/training/metric_logging.py, DiskLogger.log_dict: each value with a blank behind it
describe("torchtune's line", function()
  local line = "Step 10 | loss:1.2345 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_alloc:20.1 \n"

  it("gives step and tokens per second and device, and says which tokens those are", function()
    local told = read(line)
    assert.same({ { iteration = 10, tokens_per_second = 1234.5, undefined = 0, skipped = 0 } }, told.steps)
    assert.equal("torchtune log", only_format(told))
    assert.matches("torchtune counts tokens with a label alone", told.file.caution, 1, true)
  end)

  it("is not read of an evaluation, where it is torn, or where it makes no sense", function()
    assert.equal(0, #read("Step 10 | val_loss:1.2 \n").steps)
    assert.equal(0, #read("Step 10 | loss:1.2 tokens_per_second_per_gpu:12\n").steps)
    assert.same({ 11 }, { read("Step 10 | loss:1.2 tokens_perStep 11 | loss:1.2 tokens_per_second_per_gpu:12.5 \n").steps[1].iteration })
    assert.equal(1, read((line:gsub("1234.5", "fast"))).file.unreadable)
    assert.equal(1, read((line:gsub("1.2345", "nan"))).steps[1].undefined)
  end)
end)

-- Lightning-AI/litgpt litgpt/pretrain.py, fit
describe("litgpt's line", function()
  local line = "Epoch 1 | iter 64 step 64 | loss train: 11.201, val: n/a | iter time: 450.12 ms (step) remaining time: 2 days, 1:00:00\n"

  it("gives step and seconds where a step has one microbatch", function()
    local told = read(line)
    assert.same({ { iteration = 64, seconds = 0.45012, undefined = 0, skipped = 0 } }, told.steps)
    assert.equal("litgpt log", only_format(told))
    assert.is_nil(told.file.caution)
    assert.equal(1, read((line:gsub("11.201", "nan"))).steps[1].undefined)
  end)

  it("gives no step where it has several, and says why", function()
    local told = read((line:gsub("step 64", "step 16")))
    assert.same({ 0, 0 }, { #told.steps, told.file.unreadable })
    assert.matches("the time of a step's last microbatch alone", told.file.caution, 1, true)
    assert.equal(1, read((line:gsub("450.12", "fast"))).file.unreadable)
  end)
end)
