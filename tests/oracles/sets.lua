-- SPDX-License-Identifier: Apache-2.0
-- sets.lua: which sets of measurements calibrate and which test, and the constants of the cost model with their origin. Written before
-- a fit, not after it: a row that moves from one to the other is a change of this file.

local accelerators = require "pipeplan.catalog.accelerators"
local accuracy = require "pipeplan.catalog.accuracy"
local frameworks = require "pipeplan.catalog.frameworks"
local hosts = require "pipeplan.catalog.hosts"
local links = require "pipeplan.catalog.links"
local overheads = require "pipeplan.catalog.overheads"

local sets = {}

-- Names of the table's groups, as patterns, and what they are used for; the first that matches. All others test.
local roles = {
  { "^time_korthikanti", "calibrates Ampere" },
  { "^time_bridge: .*held out$", "tests" },
  { "^time_bridge: .*, calibrated$", "tests, with a factor of the other families" },
  { "^time_bridge", "calibrates Hopper and Blackwell" },
  { "^time_vtrain: each", "tests; one factor and layer_latency from its other rows" },
  { "^time_mtnlg: fitted", "two of three points fit the third" },
  { "^time_megatron_core: .*calibrates$", "calibrates the host's floor of a dense layer" },
  { "^memory_megatron_groups: process", "calibrates what communicators take" },
  { "^memory_megatron_groups: used", "tests tensors, beside those communicators" },
  { "^time_deepseek", "tests; two terms were added with it in sight" },
  { "^time_sharded: llm%-foundry", "tests; MPT's norms and attention are from rows of it that are left out" },
  { "^time_sharded: InternEvo", "tests; two figures of others were looked for with it in sight" },
}

function sets.role(name)
  for _, role in ipairs(roles) do
    if name:find(role[1]) then return role[2] end
  end
  return "tests"
end

-- Groups of the table that hold steps on which no efficiency was calibrated.
local blind = { "^time_narayanan", "^time_mtnlg: from", "^time_vtrain", "^time_deepseek", "^time_published", "^time_bridge: .*held out$" }

function sets.blind(name)
  for _, pattern in ipairs(blind) do
    if name:find(pattern) then return true end
  end
  return false
end

-- Groups of the sweeps that something was chosen on.
function sets.calibrated_group(name)
  return name:find("hagemann-13B-s8192", 1, true) ~= nil or name == "bloom-h14336-L72-48nodes-gbs2048-fp16-02-21-nh64"
end

function sets.text()
  return table.concat({
    "- Efficiencies of Ampere: Korthikanti et al., Table 5; its layer's latency: every second row of vTrain's validation.",
    "- Forms of products, attention and experts' products of Hopper: `tests/data/gpu/kernels_graphed_and_host_1xH200.jsonl`;",
    "  efficiencies of Hopper and Blackwell: the rows of `tests/oracles/megatron_bridge.lua`. Rows of Megatron-Bridge that are not in",
    "  it are held out. The latency of an all-to-all without a kernel of its own, and the last points of Blackwell's efficiencies,",
    "  were chosen with held out rows in sight.",
    "- The host's floor: the dense run of hidden 2,048 of `tests/data/gpu/megatron_core_H200.jsonl`, the hosts' times beside it, and",
    "  one row of Megatron-Bridge (Qwen3-30B on 16 H100). All other runs of that file test.",
    "- How much Megatron's overlap of the all-to-all hides: an A/B of Megatron-Bridge's skill perf-moe-comm-overlap, whose rows stand",
    "  in time_cases too: there they are no test, and neither is the error of that comparison one of a prediction.",
    "- Kernels that are not fused: the groups `hagemann-13B-s8192`; what a layer takes DeepSpeed's pipeline beside its work:",
    "  `bloom-h14336-L72-48nodes-gbs2048-fp16-02-21-nh64`. All other groups of the sweeps test; how gradients are reduced and stages",
    "  divided in `hagemann` is read from that software's source.",
    "- Sharded runs: the speed of MPT's attention is fitted to rows of 32,768 tokens and more, which are not tested, and so is that its",
    "  norms count as not fused. That a ring's steps inside a node of AMD's take 6 us, and that InternEvo sends its tensors one by one,",
    "  were found with its rows in sight; both figures are NCCL's and InternEvo's own.",
    "- A quarter of the groups of the sweeps, every second sharded run and some of our own runs are in no file here.",
    "- Left out of the sweeps: nanotron's 80B, of which the source does not tell two models apart, and its runs on 128 GPUs and more,",
    "  where steps take 3 to 50 times as long as on 64 for the same work a GPU.",
  }, "\n")
end

local function shown(value)
  if type(value) ~= "number" then return tostring(value) end
  if value == 0 or math.abs(value) >= 0.01 then return string.format("%.4g", value) end
  return value < 1e-3 and string.format("%.3g µs", value * 1e6) or string.format("%.3g ms", value * 1e3)
end

local function add_efficiencies(add)
  for _, family in ipairs { "ampere", "hopper", "blackwell", "gb200", "gb300" } do
    local entry
    for _, one in ipairs(accelerators.entries) do
      if one.family == family and not entry then entry = one end
    end
    for _, precision in ipairs { "bf16", "fp8" } do
      local list, names = {}, {}
      local shares = entry.flops[precision] and accelerators.efficiencies(entry, precision) or {}
      for name in pairs(shares) do names[#names + 1] = name end
      table.sort(names)
      for _, name in ipairs(names) do
        if shares[name] ~= 0 then list[#list + 1] = name .. " " .. shown(shares[name]) end
      end
      local origin = "`stdlib/catalog/accelerators.lua`: calibrated as above"
      if #list > 0 then add(family .. ", " .. precision, table.concat(list, ", "), origin) end
    end
  end
end

function sets.constants()
  local list = { "| what | value | origin |", "| :-- | :-- | :-- |" }
  local function add(what, value, origin) list[#list + 1] = "| " .. what .. " | " .. value .. " | " .. origin .. " |" end
  add_efficiencies(add)
  for _, name in ipairs { "megatron", "torch", "deepspeed" } do
    local floor = frameworks.find(name).host_floor
    local parts, names = {}, {}
    for key, value in pairs(floor or {}) do if type(value) == "number" then names[#names + 1] = key end end
    table.sort(names)
    for i, key in ipairs(names) do parts[i] = key .. " " .. (key == "waiting" and tostring(floor[key]) or shown(floor[key])) end
    if floor then add("hosts of " .. name, table.concat(parts, ", "), floor.source) end
  end
  for _, entry in ipairs(links.entries) do
    add("link " .. entry.name, string.format("%.2f of its speed, %.3g µs", entry.efficiency, entry.latency * 1e6), entry.source)
  end
  for _, entry in ipairs(overheads.entries) do
    add("memory: " .. entry.what, string.format("%.2f GiB", entry.bytes / 2 ^ 30), entry.source)
  end
  for _, name in ipairs { "ampere", "hopper", "blackwell" } do
    local host = hosts.find(name)
    local speeds = string.format("%.0f GB/s a link, %.0f GB/s of memory", host.link / 1e9, host.memory_bandwidth / 1e9)
    add("host of " .. name, speeds, host.source)
  end
  add("errors that plans print", string.format("time ±%g %%, memory ±%g %%, a tie ±%g %%", 100 * accuracy.time_fraction,
                                               100 * accuracy.memory_fraction, 100 * accuracy.comparison_fraction), accuracy.source)
  return table.concat(list, "\n")
end

return sets
