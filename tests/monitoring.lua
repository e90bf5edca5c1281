-- SPDX-License-Identifier: Apache-2.0
-- monitoring.lua: a plan and logs for the tests of `monitor`, with figures that are derived by hand.
--
-- The plan: ZB-H1 on 4 ranks with 8 microbatches, F = I = W = 1 s. Ideal step: 8 × 3 = 24 s. ZB-H1's bubble is (P−1)(F+B−2W) = 3 × (1+2−2)
-- = 3 s with B = I + W (Qi et al. 2023, table 2): 27 s a step, 24/27 = 88.9 %. The fallback 1F1B has (P−1)(F+B) = 9 s (Narayanan et al.
-- 2021): 33 s, 24/33 = 72.7 %, the threshold. 8 GPUs: P 4, DP 2; 64 sequences of 4,096 tokens a step: 262,144.

local json = require "pipeplan.base.json"

local monitoring = { ideal = 24, step = 27, fallback_step = 33, threshold = 24 / 33, tokens = 262144, gpus = 8 }

-- What of a plan `monitor` reads; changes: by path, { ["rollback.window_steps"] = 20 }, json.null takes a value out.
function monitoring.plan(changes)
  local plan = {
    status = "planned", schedule = "zb_h1", microbatches = 8, global_batch_size = 64, tokens_per_step = 262144,
    parallelism = { data = 2, tensor = 1, context = 1, pipeline = 4, expert = 1, expert_tensor = 1, virtual = 1 },
    ideal_step_seconds = 24, step_seconds = 27, training = { sequence_length = 4096, batch_ramp = json.null },
    rollback = { metric = "ideal step / measured step", threshold_fraction = 24 / 33, window_steps = 100, warmup_steps = 10,
                 inside_error_band = false, fallback = { schedule = "1f1b", pipeline = 4 } },
    expected_error = { time_fraction = 0.25, comparison_fraction = 0.05 },
    bubble = { idle_per_rank_seconds = { 3, 3, 3, 3 } }, step = { pipeline_seconds = 27 },
    alternatives = { { schedule = "1f1b", step_seconds = 33, parallelism = { data = 2, tensor = 1, context = 1, pipeline = 4, expert = 1,
                                                                             expert_tensor = 1, virtual = 1 } } },
  }
  for path, value in pairs(changes or {}) do
    local owner, name = plan, path
    for part, rest in path:gmatch "([^.]+)%.(.*)" do owner, name = owner[part], rest end
    owner[name] = value
  end
  return json.encode(plan)
end

-- Changes that make it a ramp: 40 steps of 32 sequences, with 4 microbatches, then 64. At 4 microbatches the ideal step is 4 × 3 = 12 s,
-- and the bubbles, which do not depend on M, are 3 s and 9 s as before: 12/15 = 80 %, threshold 12/21 = 57.1 %. Over the first 100 steps
-- the fallback reaches (40 × 12 + 60 × 24) / (40 × 21 + 60 × 33) = 1920/2820 = 68.1 %.
function monitoring.ramp()
  local function batch(size, ideal)
    return { global_batch_size = size, predicted_utilisation_fraction = ideal / (ideal + 3), threshold_fraction = ideal / (ideal + 9),
             threshold_seconds = ideal + 9, inside_error_band = false }
  end
  return {
    ["training.batch_ramp"] = { { first_token = 0, global_batch_size = 32 },
                                { first_token = 40 * 32 * 4096, global_batch_size = 64 } },
    ["rollback.threshold_fraction"] = 1920 / 2820, ["rollback.batches"] = { batch(32, 12), batch(64, 24) },
  }
end

-- A line as Megatron-LM prints it (megatron/training/training.py, training_log: order of fields, widths, decimals), of our own making.
function monitoring.megatron(iteration, seconds, more)
  more = more or {}
  return string.format(" [2026-11-27 10:15:02.412345] iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): %.1f | "
    .. "throughput per GPU (TFLOP/s/GPU): 412.6 | learning rate: 1.200000E-04 | global batch size: %5d | lm loss: %s | loss scale: 1.0 | "
    .. "grad norm: 0.512 | number of skipped iterations: %3d | number of nan iterations: %3d |\n", iteration, 50000, iteration * 64,
    seconds * 1e3, more.batch or 64, more.loss or "2.345678E+00", more.skipped or 0, more.nan or 0)
end

-- A line as torchtitan prints it (torchtitan/components/metrics.py, MetricsProcessor.log), colours left out.
function monitoring.torchtitan(step, tps, more)
  return string.format("[titan] 2026-11-27 10:15:02,412 - root - INFO - step: %2d  loss: %s  grad_norm:  0.5123  "
                       .. "memory: 61.20GiB(77.25%%)  tps: %s  tflops: 412.60  mfu: 41.72%%\n", step, more and more.loss or " 2.3457", tps)
end

-- Lines of iterations first…last, each of `seconds` (a number, or a function of the iteration), with a jitter of ±0.5 % that repeats.
function monitoring.log(first, last, seconds, step, line)
  local parts = {}
  for i = first, last, step or 1 do
    local value = type(seconds) == "function" and seconds(i) or seconds
    parts[#parts + 1] = (line or monitoring.megatron)(i, value * (1 + 0.005 * ((i * 7) % 5 - 2) / 2))
  end
  return table.concat(parts)
end

return monitoring
