-- SPDX-License-Identifier: Apache-2.0
-- policy_bench.lua: what policies cost: decisions, analysis of a table, mutation of the default policy. Rows of bench.sh.
-- A decision is all rows and rules for one candidate. Wanted: 100,000 a second; a table of 200 rows and 8 columns in seconds; mutation of
-- the default policy under a minute on two cores.
-- usage: lua5.4 tests/bench/policy_bench.lua PROGRAM

require "pipeplan"
local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local facts = require "pipeplan.plan.facts"
local load = require("pipeplan.policy.load").load
local spec = require "pipeplan.input.spec"
local tables = require "pipeplan.analysis.table"

local policy = load { date = "2026-11-27" }

local function row(case, figures, note)
  print(string.format("policy\t%s\t%s\t%s", case, figures, note))
end

local function seconds(run)
  local best = math.huge
  for _ = 1, 3 do
    collectgarbage()
    local start = os.clock()
    run()
    best = math.min(best, os.clock() - start)
  end
  return best
end

-- --------------------------------------------------------------------------------------------------------------------- decisions

local request = spec.from_table({
  cluster = { gpus = 16384, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
  model = "examples/models/kimi-k2.json",
  training = { tokens = "10T", sequence_length = 8192, micro_batch_size = 1, global_batch_size = 65536, precision = "bf16" },
}, ".")
local known = facts.of(request, policy)
known.arguments.device_bytes, known.arguments.fixed = nil, {}
known.arguments.schedules = policy.parameters.schedules.value
local c = engine.search(known.arguments)
for name, value in pairs(known.record) do c:set(name, value) end
c:set("alltoall_kernel", "deepep")

local rules = {}
for _, name in ipairs { "rows", "rejects", "refuses", "prefers", "kernels" } do
  for _, rule in ipairs(policy[name]) do rules[#rules + 1] = conditions.engine(rule) end
end
local took = seconds(function()
  for _ = 1, 20 do
    for _, rule in ipairs(rules) do c:match(rule) end
  end
end)
row("decisions, " .. #rules .. " rows and rules", string.format("%.2f million a second", 20 * #c / took / 1e6),
    #c .. " candidates of Kimi-K2")

-- --------------------------------------------------------------------------------------------------------------------- analysis

local state = 1
local function random(n)
  state = state * 6364136223846793005 + 1442695040888963407
  return (state >> 33) % n + 1
end

local function random_row(i)
  local list = {
    { field = "gpus", op = "between", low = 8 * random(40), high = 320 + 8 * random(60) },
    { field = "architecture", op = "equal", value = random(2) == 1 and "dense" or "moe" },
    { field = "layers", op = random(2) == 1 and "under" or "at_least", value = 8 * random(16) },
    { field = "sequence_length", op = "at_least", value = 1024 * random(32) },
    { field = "fabric", op = "one_of", values = { "infiniband", random(2) == 1 and "roce" or "efa" } },
    { field = "tokens", op = "over", value = 1e9 * random(50) },
    { field = "pipeline_parallel", op = random(2) == 1 and "even" or "odd" },
    { field = "tensor_parallel", op = "at_most", value = random(8) },
  }
  return { id = "r" .. i, verb = "row", try = { random(2) == 1 and "1f1b" or "zb_h1" }, conditions = conditions.sort(list) }
end

local many = {}
for i = 1, 200 do many[i] = random_row(i) end
local analysis
took = seconds(function() analysis = tables.analyse(many) end)
row("analysis of 200 rows, 8 columns", string.format("%.2f s", took),
    string.format("%d overlaps, %d never decide, %d could go, %d undecided", #analysis.overlaps, #analysis.shadowed, #analysis.redundant,
                  #analysis.undecided + (analysis.gaps and 0 or 1)))
took = seconds(function() tables.analyse(policy.rows) end)
row("analysis of the shipped table", string.format("%.2f ms", took * 1e3), "")

-- --------------------------------------------------------------------------------------------------------------------- mutation

local function now()
  local handle = assert(io.popen "date +%s.%N")
  local text = handle:read "l"
  handle:close()
  return tonumber(text)
end

local program = arg[1]
if program then
  local start = now()
  local handle = assert(io.popen(program .. " policy mutate tests/policy --jobs 2 --no-witnesses "
                                 .. "--equivalent tests/policy/equivalent.txt 2>&1"))
  local last
  for line in handle:lines() do last = line end
  handle:close()
  row("mutation of the default policy, 2 processes", string.format("%.1f s", now() - start), last or "")
end
