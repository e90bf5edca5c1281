-- order.lua: are layouts put in the right order? Groups of one job on one hardware and software (data/oracles/ranking_groups.csv), each row of
-- which is planned as it ran, by `plan` itself. Per group: regret (how much slower than the group's best is the row that we price lowest, of those
-- that ran), Kendall's tau of the rows that ran, whether the row priced lowest of all that we call fitting ran out of memory, and how many rows
-- fit wrongly: called fitting though they ran out of memory, or refused though they ran.
--
-- usage, from the root: PIPEPLAN_DATA=FOLDER LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/oracles/order.lua [--rows] [PATTERN]
-- --rows: a line for each row that ran.

local pipeplan = require "pipeplan"
local csv = require "oracles.csv"

local order = {}

local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-28" })

local function number(text) return tonumber(text) end

local hardware = {
  ["A100-80GB"] = { accelerator = "A100-SXM-80GB", network = { fabric = "infiniband", per_gpu = "200Gbps" } },
  ["H100-80GB (8/node, EFA)"] = { accelerator = "H100-SXM", network = { fabric = "efa", per_gpu = "400Gbps" } },
  ["A100-80GB (8/node, 4x100 Gb/s Omni-Path)"] = { accelerator = "A100-SXM-80GB", network = { fabric = "infiniband", per_gpu = "50Gbps" } },
}

-- What the software of a family does that a spec can say.
local families = {
  hagemann = function(row, spec)
    -- Its code: softmax of PyTorch or of Megatron, FlashAttention 1 and 2, and these with the RMSNorm kernel; gradients in bf16, for with fp32 ones
    -- 13B on 64 GPUs without TP and PP, which ran, would be 78 GiB before the first activation.
    spec.training.unfused = { "rope", "activation", "loss" }
    if row.kernel ~= "fa2rms" then table.insert(spec.training.unfused, "norm") end
    if row.kernel == "torch" or row.kernel == "fused" then table.insert(spec.training.unfused, "attention") end
    spec.training.gradients = "bf16"
    spec.parallelism.sequence = false  -- its own sweep of sequence parallelism is not among these rows
  end,
  nanotron = function(row, spec)
    spec.model.tied_embeddings = row.kernel:find("tied", 1, true) and not row.kernel:find("untied", 1, true) or nil
    spec.parallelism.sequence = row.seq_parallel == "true"
  end,
  bloom = function(row, spec)
    spec.training.unfused, spec.parallelism.sequence = { "attention" }, false
    spec.model.gated, spec.framework = false, "deepspeed"
  end,
}

-- The spec of a row; nil and why where it cannot be said.
function order.spec(row)
  local family = row.group:match "^(%a+)"
  local where = hardware[row.accelerator]
  if not where then return nil, "no such hardware here" end
  if row.layers == "" or row.heads == "" then return nil, "its layers or heads are not known" end
  local spec = {
    cluster = { gpus = number(row.gpus), accelerator = where.accelerator, network = where.network },
    model = { layers = number(row.layers), hidden = number(row.hidden), heads = number(row.heads), kv_heads = number(row.kv_heads),
              ffn = number(row.ffn), vocab = number(row.vocab) },
    training = { tokens = "1T", sequence_length = number(row.seq), micro_batch_size = number(row.micro_batch),
                 global_batch_size = number(row.global_batch), precision = row.precision:match "^%w+", zero = row.sharding == "zero0" and 0 or 1,
                 recompute = row.recompute == "full" and "full" or "none" },
    parallelism = { tensor = number(row.tp), pipeline = number(row.pp), context = number(row.cp), data = number(row.dp),
                    schedule = number(row.pp) == 1 and "none" or "1f1b" },
  }
  families[family](row, spec)
  local stages = spec.parallelism.pipeline
  if spec.model.layers % stages == 0 and spec.framework ~= "deepspeed" then   -- as even as they ran
    spec.parallelism.layers_per_stage = {}
    for s = 1, stages do spec.parallelism.layers_per_stage[s] = spec.model.layers // stages end
  end
  return spec
end

local function peak_of(plan)
  local most = 0
  for _, rank in ipairs(plan.memory.ranks) do most = math.max(most, rank.total_bytes) end
  return most
end

-- → { seconds, fits } as planned; nil and why not.
function order.price(row)
  local spec, why = order.spec(row)
  if not spec then return nil, why end
  local good, plan = pcall(policy.plan_spec, policy, spec, ".")
  if not good then return nil, type(plan) == "table" and plan.message or tostring(plan) end
  if plan.step_seconds then return { seconds = plan.step_seconds, fits = true, peak = peak_of(plan) } end
  spec.cluster.memory_per_gpu = "100TiB"
  plan = policy:plan_spec(spec, ".")
  if plan.step_seconds then return { seconds = plan.step_seconds, fits = false, peak = peak_of(plan) } end
  return nil, plan.summary or plan.reasons and plan.reasons[1] and plan.reasons[1].message or plan.status
end

-- Seconds of a step as measured.
local function measured(row)
  local value = number(row.value)
  if row.unit == "s/step" then return value end
  if row.unit == "tokens/s/GPU" then return number(row.seq) * number(row.global_batch) / number(row.gpus) / value end
end

local function tau(list)
  local agree, pairs_ = 0, 0
  for i = 1, #list do
    for j = i + 1, #list do
      local a, b = list[i].measured - list[j].measured, list[i].seconds - list[j].seconds
      if a ~= 0 then
        pairs_ = pairs_ + 1
        agree = agree + (a * b > 0 and 1 or a * b < 0 and -1 or 0)
      end
    end
  end
  return pairs_ > 0 and agree / pairs_ or nil
end

-- rows of one group → { rows, ran, regret, tau, first_ran, false_fits, out, false_refusals, ratio, skipped }
function order.judge(rows)
  local ran, out = {}, { rows = #rows, false_fits = 0, out = 0, false_refusals = 0, skipped = {}, list = {} }
  local first
  for _, row in ipairs(rows) do
    local price, why = order.price(row)
    if not price then
      out.skipped[#out.skipped + 1] = { row = row, why = why }
    else
      local entry = { row = row, seconds = price.seconds, fits = price.fits, measured = row.status == "ok" and measured(row), peak = price.peak }
      out.list[#out.list + 1] = entry
      if row.status == "ok" then
        ran[#ran + 1] = entry
        if not entry.fits then out.false_refusals = out.false_refusals + 1 end
      elseif row.status == "oom" then
        out.out = out.out + 1
        if entry.fits then out.false_fits = out.false_fits + 1 end
      end
      if entry.fits and row.status ~= "failed" and (not first or entry.seconds < first.seconds) then first = entry end
    end
  end
  out.ran = #ran
  local best, pick, logarithms = nil, nil, 0
  for _, entry in ipairs(ran) do
    if not best or entry.measured < best.measured then best = entry end
    if not pick or entry.seconds < pick.seconds then pick = entry end
    logarithms = logarithms + math.log(entry.seconds / entry.measured)
  end
  if #ran >= 2 then
    out.regret, out.tau = pick.measured / best.measured - 1, tau(ran)
    out.pick, out.best = pick, best
  end
  if #ran > 0 then out.ratio = math.exp(logarithms / #ran) end
  out.first_ran = not first or first.row.status == "ok"
  return out
end

function order.groups(pattern)
  local list, by_name = {}, {}
  for _, row in ipairs(csv.read(os.getenv "PIPEPLAN_DATA" .. "/oracles/ranking_groups.csv")) do
    if row.group:find(pattern) and families[row.group:match "^(%a+)"] and not row.group:find "80B" then
      if not by_name[row.group] then
        by_name[row.group] = { name = row.group }
        list[#list + 1] = by_name[row.group]
      end
      table.insert(by_name[row.group], row)
    end
  end
  return list
end

local function layout(entry)
  local row = entry.row
  return string.format("TP %s PP %s DP %s mb %s %s%s", row.tp, row.pp, row.dp, row.micro_batch, row.recompute, row.sharding == "zero0" and " z0" or "")
end

if arg and arg[0] and arg[0]:find "order%.lua$" then
  local rows = arg[1] == "--rows"
  local pattern = arg[rows and 2 or 1] or "^"
  local total = {}
  for _, group in ipairs(order.groups(pattern)) do
    local got = order.judge(group)
    if got.ran >= 1 then
      print(string.format("%-42s %3d rows %3d ran  regret %6s tau %5s ratio %.2f %s out-fits %d/%d ran-not %d%s", group.name, got.rows, got.ran,
        got.regret and string.format("%.1f%%", 100 * got.regret) or "-", got.tau and string.format("%.2f", got.tau) or "-", got.ratio or 0,
        got.first_ran and "  " or "OOM", got.false_fits, got.out, got.false_refusals, #got.skipped > 0 and " skipped " .. #got.skipped .. ": " .. tostring(got.skipped[1].why) or ""))
      if got.pick and got.regret > 0.03 then print("      pick " .. layout(got.pick) .. string.format(" %.2f s, measured %.2f", got.pick.seconds, got.pick.measured) ..
        "; best " .. layout(got.best) .. string.format(" %.2f s, measured %.2f", got.best.seconds, got.best.measured)) end
      if rows then
        for _, e in ipairs(got.list) do print(string.format("   %-34s %s %s ours %8.2f measured %s ratio %s GiB %.1f %s", layout(e), e.row.status, e.fits and "fits" or "NOT", e.seconds, e.measured and string.format("%8.2f", e.measured) or "-", e.measured and string.format("%.2f", e.seconds / e.measured) or "-", e.peak / 2^30, e.row.peak_mem_gb)) end
      end
      local family = group.name:match "^(%a+)"
      total[family] = total[family] or { n = 0, regret = 0, worst = 0, tau = 0, oom = 0, ff = 0, out = 0, fr = 0, ran = 0 }
      local t = total[family]
      if got.regret and got.ran >= 3 then t.n, t.regret, t.worst, t.tau = t.n + 1, t.regret + got.regret, math.max(t.worst, got.regret), t.tau + (got.tau or 0) end
      t.oom = t.oom + (got.first_ran and 0 or 1); t.ff = t.ff + got.false_fits; t.out = t.out + got.out; t.fr = t.fr + got.false_refusals; t.ran = t.ran + got.ran
    end
  end
  for family, t in pairs(total) do
    print(string.format("%s: %d groups, regret mean %.1f %% max %.1f %%, tau %.2f, first pick out of memory %d, false fits %d of %d, false refusals %d of %d",
      family, t.n, 100 * t.regret / t.n, 100 * t.worst, t.tau / t.n, t.oom, t.ff, t.out, t.fr, t.ran))
  end
end

return order
