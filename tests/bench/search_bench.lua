-- SPDX-License-Identifier: Apache-2.0
-- search_bench.lua: processor time of choosing a plan, in milliseconds, best of several. Rows of bench.sh.
-- Wanted: the DeepSeek-V3 headline under 10 ms, a free search on 16,384 GPUs under a second.

require "pipeplan"
local choose = require "pipeplan.plan.choose"
local engine = require "engine"
local facts = require "pipeplan.plan.facts"
local load = require("pipeplan.policy.load").load
local spec = require "pipeplan.input.spec"

local policy = load { date = "2026-11-27" }

local h100 = { gpus = 16384, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } }
local training = { tokens = "10T", sequence_length = 8192, micro_batch_size = 1, precision = "bf16", recompute = "selective" }

local function with(batch)
  local out = { global_batch_size = batch }
  for key, value in pairs(training) do out[key] = value end
  return out
end

local cases = {
  { "DeepSeek-V3, 2,048 GPUs, TP 1, EP 64", file = "examples/specs/deepseek-v3.json" },
  { "Qwen3-235B, 256 GPUs, free", file = "examples/specs/qwen3-235b.json" },
  { "Llama-3.1-405B, 16,384 GPUs, TP 8", file = "examples/specs/llama-3.1-405b.json" },
  { "Llama-3.1-405B, 16,384 GPUs, free",
    table = { cluster = h100, model = "examples/models/llama-3.1-405b.json", training = with(16384) } },
  { "Kimi-K2, 16,384 GPUs, free", table = { cluster = h100, model = "examples/models/kimi-k2.json", training = with(65536) } },
}

local function milliseconds(run)
  local best = math.huge
  for _ = 1, 5 do
    collectgarbage()
    local start = os.clock()
    run()
    best = math.min(best, (os.clock() - start) * 1e3)
  end
  return best
end

local function row(case, what, value, note)
  print(string.format("search\t%s\t%s %.2f ms\t%s", case, what, value, note))
end

for _, case in ipairs(cases) do
  local request = case.file and spec.read { files = { case.file } } or spec.from_table(case.table, ".")
  local known = facts.of(request, policy)
  local result
  local whole = milliseconds(function()
    result = choose.choose { request = request, policy = policy, record = known.record, arguments = known.arguments }
  end)
  local simulated, c = 0, result.candidates
  for candidate = 1, #c do
    if c:get("step_seconds", candidate) then simulated = simulated + 1 end
  end
  local plan = result.evaluation and string.format("%s P %d", result.evaluation.schedule, result.evaluation.pipeline) or result.status
  row(case[1], "choose", whole, string.format("%d candidates, %d simulated: %s", #c, simulated, plan))
end

-- Where the time of a free search goes: of what the plan asks the engine to search.
local request = spec.from_table(cases[5].table, ".")
local known = facts.of(request, policy)
local search, given = engine.search, nil
engine.search = function(arguments)
  given = arguments
  return search(arguments)
end
choose.choose { request = request, policy = policy, record = known.record, arguments = known.arguments }
engine.search = search
local c
local enumerated = milliseconds(function() c = search(given) end)
row(cases[5][1], "enumerate", enumerated, #c .. " candidates")
row(cases[5][1], "bound all", milliseconds(function()
  c = search(given)
  for candidate = 1, #c do c:bound(candidate) end
end), "enumerated anew")
row(cases[5][1], "measure memory of all", milliseconds(function()
  c = search(given)
  c:memory(c:all())
end), "enumerated anew")
