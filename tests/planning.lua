-- SPDX-License-Identifier: Apache-2.0
-- planning.lua: specs that several tests start from, and what they ask of a plan. The figures are those of the reports named beside them.

local pipeplan = require "pipeplan"  -- first: it loads the rest
local files = require "policy_files"
local text = require "pipeplan.report.text"

local planning = {}

planning.policy = pipeplan.policy(nil, { date = "2026-11-27" })

local infiniband = { fabric = "infiniband", per_gpu = "400Gbps" }

-- DeepSeek-V3 report §3.1, §4.2: 2,048 H800 of 8 a host; 15,360 sequences of 4,096; TP 1, EP 64; fp8, bf16 moments, recompute of norms, MLA
-- up-projection and SwiGLU.
planning.deepseek = {
  cluster = {
    gpus = 2048, gpus_per_node = 8, accelerator = "H800-SXM-80GB",
    network = { fabric = "infiniband", per_gpu = "400Gbps", nics_per_node = 8, scale_up_gpus = 8, scale_up_per_gpu = "160GB/s" },
  },
  model = "examples/models/deepseek-v3.json",
  training = { tokens = "14.8T", sequence_length = 4096, micro_batch_size = 1, global_batch_size = 15360, precision = "fp8",
               moments = "bf16", recompute = { "norm", "mla_up_projection", "swiglu" }, sharding = "optimizer" },
  parallelism = { tensor = 1, expert = 64 },
}

-- A dense 70B; how NVIDIA/Megatron-LM runs it: TP 8 in a host.
planning.llama = {
  cluster = { gpus = 256, accelerator = "H100-SXM", network = infiniband },
  model = "examples/models/llama-3-70b.json",
  training = { tokens = "2T", sequence_length = 8192, micro_batch_size = 1, global_batch_size = 1024, recompute = { "norm", "swiglu" },
               sharding = "optimizer" },
}

planning.mixtral = {
  cluster = { gpus = 64, accelerator = "A100-SXM-80GB", network = infiniband },
  model = "examples/models/mixtral-8x7b.json",
  training = { tokens = "300B", sequence_length = 4096, micro_batch_size = 1, global_batch_size = 1024, recompute = "none",
               sharding = "optimizer" },
}

-- `changes` laid over `base`, field by field; a list replaces. `planning.none` takes a field out.
planning.none = {}
local function merge(base, changes)
  local out = {}
  for key, value in pairs(base) do out[key] = value end
  for key, value in pairs(changes or {}) do
    if value == planning.none then out[key] = nil
    elseif type(value) == "table" and value[1] == nil and type(out[key]) == "table" then out[key] = merge(out[key], value)
    else out[key] = value end
  end
  return out
end
planning.merge = merge

-- The plan of a spec, by a policy (default: the shipped one).
function planning.plan(base, changes, policy)
  return (policy or planning.policy):plan_spec(merge(base, changes), ".")
end

-- What a spec that cannot be read is answered with: { status, message }.
function planning.problem(base, changes)
  local good, problem = pcall(planning.plan, base, changes)
  assert(not good, "the spec is planned")
  return problem
end

-- The entry of a list with that id, rule or schedule.
function planning.entry(list, name)
  for _, entry in ipairs(list) do
    if (entry.id or entry.rule or entry.schedule or entry.baseline) == name then return entry end
  end
end

-- The entry of a list with that value of a field.
function planning.entry_of(list, field, value)
  for _, entry in ipairs(list) do
    if entry[field] == value then return entry end
  end
end

function planning.ids(list)
  local out = {}
  for i, entry in ipairs(list) do out[i] = entry.id or entry.rule or entry.schedule end
  return out
end

-- Is there an entry with that id, rule or schedule?
function planning.has(list, name) return planning.entry(list, name) ~= nil end

-- What the plan assumes of a field of the spec, or nil.
function planning.assumption(plan, field)
  for _, one in ipairs(plan.assumptions) do
    if one.field == field then return one end
  end
end

-- A policy of these statements over the default one.
function planning.policy_of(source, work)
  return pipeplan.policy(files.write("site.lua", source), { date = "2026-11-27", work = work })
end

-- The page in one line.
function planning.page_of(plan) return (text.render(plan):gsub("%s+", " ")) end

return planning
