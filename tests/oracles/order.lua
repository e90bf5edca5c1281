-- SPDX-License-Identifier: Apache-2.0
-- order.lua: are layouts put in the right order? Groups of one job on one hardware and software (ranking_groups.csv in the folder
-- $PIPEPLAN_DATA/oracles), each row of which is planned as it ran, by `plan` itself. Of a group: regret (how much slower than its best is
-- the row that we price lowest, of those that fit and ran), Kendall's tau of the rows that ran, whether the row that we price lowest of
-- those that we call fitting ran out of memory, and how many rows we call fitting that ran out of memory, or refuse that ran.
--
-- usage, from the root of the repository:
--   LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/oracles/order.lua [--rows | --summary] [PATTERN of names]...
--
-- What was chosen with rows in sight, and on which: how norms, rotary embedding, SwiGLU and loss out of PyTorch's own operations are
-- counted (groups hagemann-13B-s8192), and what a layer takes DeepSpeed's pipeline beside its work
-- (bloom-h14336-L72-48nodes-gbs2048-fp16-02-21-nh64). All other groups test. Left out: nanotron's 80B, of which the source does not tell
-- two models apart, and its runs on 128 GPUs and more, where measured steps take 3 to 50 times as long as on 64 for the same work a GPU:
-- no model of a network that works explains them.

local csv = require "oracles.csv"
local pipeplan = require "pipeplan"

local order = {}

local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-28" })

-- Speeds of the networks: as the sources have them.
local hardware = {
  ["A100-80GB"] = { accelerator = "A100-SXM-80GB", network = { fabric = "infiniband", per_gpu = "200Gbps" } },
  ["H100-80GB (8/node, EFA)"] = { accelerator = "H100-SXM", network = { fabric = "efa", per_gpu = "400Gbps" } },
  ["A100-80GB (8/node, 4x100 Gb/s Omni-Path)"] = { accelerator = "A100-SXM-80GB", network = { fabric = "infiniband", per_gpu = "50Gbps" } },
}

local function even(layers, stages)
  local list = {}
  for s = 1, stages do list[s] = layers // stages end
  return layers % stages == 0 and list or nil
end

-- Embedding, layers, final norm and head as so many equal items, the first stages one more where they do not divide: layers of each stage.
local function counted(layers, stages)
  local items, list, at = layers + 3, {}, 0
  for s = 1, stages do
    local n = items // stages + (s <= items % stages and 1 or 0)
    local first, last = math.max(at, 1), math.min(at + n, layers + 1)
    list[s] = math.max(0, last - first)
    at = at + n
  end
  return stages > 1 and list or nil
end

-- What the software of a family did.
local families = {
  -- Aleph-Alpha's code: FlashAttention 1 and 2, softmax of PyTorch or of Megatron, with and without a kernel for RMSNorm. Gradients in
  -- bf16: with fp32 ones 13B on 64 GPUs without TP and PP, which ran, would be 78 GiB before its first activation. As published later, at
  -- https://github.com/Aleph-Alpha/scaling @01b9d21, src/scaling: gradients are all-reduced in fp32 with a sharded optimizer too (core/
  -- optimizer/optimizer.py: step; allreduce.py: allreduce_tensor_in_float32), and stages are equal numbers of items, of which embedding,
  -- norm and head are one each (transformer/model/model.py: get_transformer_layer_specs; core/nn/parallel_module/pipeline_partitioning.py:
  -- pipe_partition_uniform, the default).
  hagemann = function(row, spec)
    spec.training.unfused, spec.training.loss = { "rope", "activation" }, "torch"
    spec.training.weight_gradients = "dropped"
    if row.kernel ~= "fa2rms" then table.insert(spec.training.unfused, "norm") end
    if row.kernel == "torch" or row.kernel == "fused" then table.insert(spec.training.unfused, "attention") end
    spec.training.gradients, spec.training.reduction, spec.training.reduced_gradients = "bf16", "all", "fp32"
    spec.parallelism.sequence = false
    spec.parallelism.layers_per_stage = counted(spec.model.layers, spec.parallelism.pipeline)
  end,
  nanotron = function(row, spec)
    spec.model.tied_embeddings = row.kernel:find("embeddings tied", 1, true) ~= nil
    spec.parallelism.sequence, spec.training.weight_gradients = row.seq_parallel == "true", "dropped"
    spec.parallelism.layers_per_stage = even(spec.model.layers, spec.parallelism.pipeline)
  end,
  bloom = function(_, spec)
    spec.training.unfused = { "attention" }
    spec.parallelism.sequence = false
    spec.model.gated, spec.framework = false, "deepspeed"
  end,
}

local function family_of(row) return row.group:match "^%a+" end

-- The spec of a row; nil and why where it cannot be said.
function order.spec(row)
  local where = hardware[row.accelerator]
  if not where then return nil, "no such hardware here" end
  if row.layers == "" or row.heads == "" then return nil, "its layers or heads are not known" end
  local spec = {
    cluster = { gpus = tonumber(row.gpus), accelerator = where.accelerator, network = where.network },
    model = { layers = tonumber(row.layers), hidden = tonumber(row.hidden), heads = tonumber(row.heads), kv_heads = tonumber(row.kv_heads),
              ffn = tonumber(row.ffn), vocab = tonumber(row.vocab) },
    training = { tokens = "1T", sequence_length = tonumber(row.seq), micro_batch_size = tonumber(row.micro_batch),
                 global_batch_size = tonumber(row.global_batch), precision = row.precision:match "^%w+",
                 zero = row.sharding == "zero0" and 0 or 1, recompute = row.recompute == "full" and "full" or "none" },
    parallelism = { tensor = tonumber(row.tp), pipeline = tonumber(row.pp), context = tonumber(row.cp), data = tonumber(row.dp),
                    schedule = tonumber(row.pp) == 1 and "none" or "1f1b" },
  }
  families[family_of(row)](row, spec)
  return spec
end

local function peak_of(plan)
  local most = 0
  for _, rank in ipairs(plan.memory.ranks) do most = math.max(most, rank.total_bytes) end
  return most
end

-- → { seconds, fits, peak } as planned, with memory enough where that is what it lacks; nil and why not.
function order.price(row)
  local spec, why = order.spec(row)
  if not spec then return nil, why end
  local good, plan = pcall(policy.plan_spec, policy, spec, ".")
  if not good then return nil, type(plan) == "table" and plan.message or tostring(plan) end
  local fits = plan.step_seconds ~= nil
  if not fits then
    spec.cluster.memory_per_gpu = "100TiB"
    plan = policy:plan_spec(spec, ".")
  end
  if not plan.step_seconds then return nil, plan.reasons and plan.reasons[1] and plan.reasons[1].message or plan.status end
  return { seconds = plan.step_seconds, fits = fits, peak = peak_of(plan) }
end

-- Seconds of a step as measured.
function order.measured(row)
  local value = tonumber(row.value)
  if row.unit == "s/step" then return value end
  return tonumber(row.seq) * tonumber(row.global_batch) / tonumber(row.gpus) / value   -- tokens/s/GPU
end

-- Kendall's tau of { measured, seconds }: pairs in the same order less pairs in the other, over those that differ.
function order.tau(list)
  local sum, count = 0, 0
  for i = 1, #list do
    for j = i + 1, #list do
      local product = (list[i].measured - list[j].measured) * (list[i].seconds - list[j].seconds)
      if list[i].measured ~= list[j].measured then
        count = count + 1
        sum = sum + (product > 0 and 1 or product < 0 and -1 or 0)
      end
    end
  end
  return count > 0 and sum / count or nil
end

local function least(list, key)
  local best
  for _, entry in ipairs(list) do
    if not best or entry[key] < best[key] then best = entry end
  end
  return best
end

-- Rows of one group → { name, rows, ran, regret, tau, pick, best, first_ran, false_fits, out, false_refusals, ratio, skipped, list }.
function order.judge(group)
  local out = { name = group.name, rows = #group, list = {}, skipped = {}, false_fits = 0, out = 0, false_refusals = 0 }
  local ran, kept, fitting, logarithms = {}, {}, {}, 0
  for _, row in ipairs(group) do
    local price, why = order.price(row)
    if not price then
      out.skipped[#out.skipped + 1] = why
    else
      local entry = { row = row, seconds = price.seconds, fits = price.fits, peak = price.peak,
                      measured = row.status == "ok" and order.measured(row) }
      out.list[#out.list + 1] = entry
      if entry.measured then
        ran[#ran + 1] = entry
        logarithms = logarithms + math.log(entry.seconds / entry.measured)
        if entry.fits then kept[#kept + 1] = entry end   -- what is refused is not picked
      elseif row.status == "oom" then
        out.out, out.false_fits = out.out + 1, out.false_fits + (entry.fits and 1 or 0)
      end
      if entry.fits and row.status ~= "failed" then fitting[#fitting + 1] = entry end   -- failed: nobody knows of what
    end
  end
  local first = least(fitting, "seconds")
  out.false_refusals = #ran - #kept
  out.ran, out.first_ran = #ran, not first or first.measured ~= false
  out.ratio = #ran > 0 and math.exp(logarithms / #ran) or nil
  if #ran < 2 or #kept == 0 then return out end
  out.pick, out.best, out.tau = least(kept, "seconds"), least(ran, "measured"), order.tau(ran)
  out.regret = out.pick.measured / out.best.measured - 1
  return out
end

-- Groups whose names match one of the patterns (default: all that can be trusted), in the order of the file; nil and why without the data.
function order.groups(patterns)
  local folder = os.getenv "PIPEPLAN_DATA"
  local file = folder and io.open(folder .. "/oracles/ranking_groups.csv", "rb")
  if not file then return nil, "PIPEPLAN_DATA names no folder with oracles/ranking_groups.csv" end
  file:close()
  local list, by_name = {}, {}
  local function wanted(row)
    local gpus = tonumber(row.gpus)
    if not families[family_of(row)] or row.group:find "80B" or (family_of(row) == "nanotron" and gpus > 64) then return false end
    if #patterns == 0 then return true end
    for _, pattern in ipairs(patterns) do
      if row.group:find(pattern) then return true end
    end
    return false
  end
  for _, row in ipairs(csv.read(folder .. "/oracles/ranking_groups.csv")) do
    if wanted(row) then
      if not by_name[row.group] then
        by_name[row.group] = { name = row.group }
        list[#list + 1] = by_name[row.group]
      end
      table.insert(by_name[row.group], row)
    end
  end
  return list
end

-- Sums of judged groups by family, in the order of the groups: add(sum, one) for each group; a sum begins as fresh(), with its name.
function order.by_family(judged, fresh, add)
  local list, by_name = {}, {}
  for _, one in ipairs(judged) do
    local name = one.name:match "^%a+"
    if not by_name[name] then
      by_name[name] = fresh()
      by_name[name].name = name
      list[#list + 1] = by_name[name]
    end
    add(by_name[name], one)
  end
  return list
end

-- Of three rows that ran or more for regret and tau.
function order.families(judged)
  return order.by_family(judged, function()
    return { groups = 0, regret = 0, worst = 0, tau = 0, first_out = 0, false_fits = 0, out = 0, false_refusals = 0, ran = 0 }
  end, function(sum, one)
    if one.ran >= 3 then
      sum.groups, sum.regret, sum.tau = sum.groups + 1, sum.regret + one.regret, sum.tau + (one.tau or 0)
      sum.worst = math.max(sum.worst, one.regret)
    end
    sum.first_out = sum.first_out + (one.first_ran and 0 or 1)
    for _, key in ipairs { "false_fits", "out", "false_refusals", "ran" } do sum[key] = sum[key] + one[key] end
  end)
end

-- ------------------------------------------------------------------------------------------------------------------------- printing

local function layout(entry)
  local row = entry.row
  return string.format("TP %s PP %s DP %s × %s%s%s", row.tp, row.pp, row.dp, row.micro_batch,
                       row.recompute == "full" and " recompute" or "",
                       row.sharding == "zero0" and " unsharded" or "")
end

local function percent(value) return value and string.format("%.1f %%", 100 * value) or "–" end

local function print_group(one, with_rows)
  if one.ran == 0 then return end
  print(string.format("%-52s %3d ran, regret %7s, tau %5s, ours %.2f%s; %d of %d out of memory fit, %d that ran refused",
                      one.name, one.ran, percent(one.regret), one.tau and string.format("%.2f", one.tau) or "–", one.ratio,
                      one.first_ran and "" or ", first pick out of memory", one.false_fits, one.out, one.false_refusals))
  if one.regret and one.regret > 0.02 then
    print(string.format("    %s: %.2f s, measured %.2f; best %s: %.2f s, measured %.2f", layout(one.pick), one.pick.seconds,
                        one.pick.measured, layout(one.best), one.best.seconds, one.best.measured))
  end
  if #one.skipped > 0 then print(string.format("    %d not planned: %s", #one.skipped, one.skipped[1])) end
  for _, entry in ipairs(with_rows and one.list or {}) do
    print(string.format("    %-40s %-6s %-8s %9.2f s %9s %6.1f GiB %s", layout(entry), entry.row.status,
                        entry.fits and "fits" or "refused", entry.seconds, entry.measured and string.format("%.2f s", entry.measured) or "",
                        entry.peak / 2 ^ 30, entry.row.peak_mem_gb))
  end
end

-- Lines of the families' table.
function order.summary_lines(judged)
  local lines = { string.format("%-10s %6s %12s %11s %6s %15s %22s %20s", "sweep", "groups", "regret, mean", "worst", "tau",
                                "first pick out", "fits, ran out of it", "refused, ran") }
  for _, sum in ipairs(order.families(judged)) do
    lines[#lines + 1] = string.format("%-10s %6d %12s %11s %6.2f %15d %15d of %4d %12d of %4d", sum.name, sum.groups,
                                      percent(sum.regret / sum.groups), percent(sum.worst), sum.tau / sum.groups, sum.first_out,
                                      sum.false_fits, sum.out, sum.false_refusals, sum.ran)
  end
  return lines
end

local function main()
  local patterns, mode = {}, nil
  for _, word in ipairs(arg) do
    if word:match "^%-%-" then mode = word else patterns[#patterns + 1] = word end
  end
  local groups, why = order.groups(patterns)
  if not groups then
    print("skipped: " .. why)
    return
  end
  local judged = {}
  for i, group in ipairs(groups) do
    judged[i] = order.judge(group)
    if mode ~= "--summary" then print_group(judged[i], mode == "--rows") end
  end
  for _, line in ipairs(order.summary_lines(judged)) do print(line) end
end

if arg and arg[0] and arg[0]:find "order%.lua$" then main() end

return order
