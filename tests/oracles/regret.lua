-- SPDX-License-Identifier: Apache-2.0
-- regret.lua: does the search itself choose well? Groups of one job (see order.lua), of each of which only the job is given: the search
-- chooses depth, TP, microbatch, recompute and sharding among the values that occur in the group, with a pipeline and without one, and what
-- takes least of the two is its pick. How much slower than the group's best is the row of that layout? Picks of which the group has no row
-- are counted, and so are those that ran out of memory. The division of layers over stages is what the software of the group makes of each
-- depth, so each depth is asked for apart, and the least of these answers is what a free search gives.
--
-- usage, from the root of the repository:
--   LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/oracles/regret.lua [--summary] [PATTERN of names]...

local order = require "oracles.order"
local pipeplan = require "pipeplan"

local regret = {}

-- Values of a column of rows, each once, sorted.
local function values(list, take)
  local seen, out = {}, {}
  for _, entry in ipairs(list) do
    local value = take(entry)
    if not seen[value] then
      seen[value] = true
      out[#out + 1] = value
    end
  end
  table.sort(out)
  return out
end

local function quoted(list)
  local out = {}
  for i, value in ipairs(list) do out[i] = string.format(type(value) == "string" and "%q" or "%d", value) end
  return "{ " .. table.concat(out, ", ") .. " }"
end

local function sharding_of(spec) return spec.training.zero == 0 and "none" or "optimizer" end

-- A policy that leaves the search the values of these specs.
local function policy_of(specs)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  local function every(take) return quoted(values(specs, take)) end
  file:write('site "as-measured"\n',
             'disable { id = "fits_one_gpu", reason = "the sweep has small models too" }\n',
             "set { idle_gpus = 0, wanted_tolerance = 0, micro_batch_choices = ", every(function(s) return s.training.micro_batch_size end),
             ", recompute_choices = ", every(function(s) return s.training.recompute end),
             ", sharding_choices = ", every(sharding_of), " }\n",
             'reject { id = "not_measured", tensor_parallel = none_of ', every(function(s) return s.parallelism.tensor end),
             ', message = "TP {tensor_parallel} was not measured" }\n')
  file:close()
  local policy = pipeplan.policy(path, { date = "2026-11-28" })
  os.remove(path)
  return policy
end

-- The job, and of the layout nothing but the depth: `from` is the spec of a row of that depth.
local function job_of(from)
  local training, parallelism = {}, { pipeline = from.parallelism.pipeline, context = from.parallelism.context,
                                      layers_per_stage = from.parallelism.layers_per_stage, sequence = from.parallelism.sequence,
                                      schedule = from.parallelism.schedule }
  for key, value in pairs(from.training) do training[key] = value end
  training.micro_batch_size, training.recompute, training.zero = nil, nil, nil
  return { cluster = from.cluster, model = from.model, training = training, parallelism = parallelism, framework = from.framework }
end

local function key_of(depth, tensor, micro_batch, recompute, sharding)
  return string.format("P %d, TP %d, microbatch %d, recompute %s, sharding %s", depth, tensor, micro_batch, recompute, sharding)
end

-- Which of the layouts the planner takes: { key, seconds }, or nil.
local function pick_of(specs, policy)
  local done, best = {}, nil
  for _, spec in ipairs(specs) do
    local depth = spec.parallelism.pipeline
    if not done[depth] then
      done[depth] = true
      local good, plan = pcall(policy.plan_spec, policy, job_of(spec), ".")
      if good and plan.status == "planned" and (not best or plan.step_seconds < best.seconds) then
        local recompute = plan.recompute[1] == "full" and "full" or "none"
        best = { seconds = plan.step_seconds,
                 key = key_of(depth, plan.parallelism.tensor, plan.micro_batch_size, recompute, plan.sharding) }
      end
    end
  end
  return best
end

-- Rows of one group → { name, ran, pick, status = "ran", "oom", "failed" or "no row"; regret where it ran }; nil where fewer than three
-- rows ran.
function regret.judge(group)
  local specs, rows, ran, best = {}, {}, 0, math.huge
  for _, row in ipairs(group) do
    local spec = order.spec(row)
    if spec then
      local layout, training = spec.parallelism, spec.training
      local key = key_of(layout.pipeline, layout.tensor, training.micro_batch_size, training.recompute, sharding_of(spec))
      local seconds = row.status == "ok" and order.measured(row) or nil
      specs[#specs + 1] = spec
      if seconds then ran, best = ran + 1, math.min(best, seconds) end
      if not rows[key] or seconds and seconds < (rows[key].seconds or math.huge) then
        rows[key] = { status = row.status, seconds = seconds }
      end
    end
  end
  if ran < 3 then return nil end
  local pick = pick_of(specs, policy_of(specs))
  local out = { name = group.name, ran = ran, pick = pick and pick.key or "no plan" }
  local row = pick and rows[pick.key]
  out.status = row and (row.seconds and "ran" or row.status) or "no row"
  out.regret = row and row.seconds and row.seconds / best - 1 or nil
  return out
end

-- By family: groups, those whose pick ran, mean and worst regret of these, picks that ran out of memory, failed, have no row.
function regret.families(judged)
  return order.by_family(judged, function()
    return { groups = 0, ran = 0, regret = 0, worst = 0, oom = 0, failed = 0, no_row = 0 }
  end, function(sum, one)
    sum.groups = sum.groups + 1
    if one.regret then
      sum.ran, sum.regret, sum.worst = sum.ran + 1, sum.regret + one.regret, math.max(sum.worst, one.regret)
    elseif one.status == "no row" then sum.no_row = sum.no_row + 1
    else sum[one.status] = sum[one.status] + 1 end
  end)
end

local function percent(value) return string.format("%.1f %%", 100 * value) end

function regret.summary_lines(judged)
  local lines = { string.format("%-10s %6s %9s %13s %7s %14s %7s %7s", "sweep", "groups", "pick ran", "regret, mean", "worst",
                                "out of memory", "failed", "no row") }
  for _, sum in ipairs(regret.families(judged)) do
    lines[#lines + 1] = string.format("%-10s %6d %9d %13s %7s %14d %7d %7d", sum.name, sum.groups, sum.ran,
                                      sum.ran > 0 and percent(sum.regret / sum.ran) or "–", percent(sum.worst), sum.oom, sum.failed,
                                      sum.no_row)
  end
  return lines
end

local function main()
  local patterns, judged, summary = {}, {}, false
  for _, word in ipairs(arg) do
    if word == "--summary" then summary = true else patterns[#patterns + 1] = word end
  end
  local groups, why = order.groups(patterns)
  if not groups then
    print("skipped: " .. why)
    return
  end
  for _, group in ipairs(groups) do
    local one = regret.judge(group)
    judged[#judged + 1] = one
    if one and not summary then
      print(string.format("%-52s %3d ran; %s: %s%s", one.name, one.ran, one.pick, one.status,
                          one.regret and ", " .. percent(one.regret) .. " slower than the best" or ""))
    end
  end
  for _, line in ipairs(regret.summary_lines(judged)) do print(line) end
end

if arg and arg[0] and arg[0]:find "regret%.lua$" then main() end

return regret
