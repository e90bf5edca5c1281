-- SPDX-License-Identifier: Apache-2.0
-- verdict.lua: the first lines of the page: whether the plan fits, its bubble, what it saves and takes, which rules decided, what would be
-- faster, what is loosened, and warnings. Each function returns a paragraph or a list of them.

local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"

local verdict = {}

-- "default/refusals.lua:12, https://github.com/deepseek-ai/DeepEP"
local function origin(reason)
  local place = reason.file and (reason.file .. (reason.line and ":" .. reason.line or "")) or reason.layer
  if place and reason.source then return place .. ", " .. reason.source end
  return place or reason.source
end

local function reason_line(reason)
  local from = origin(reason)
  return reason.id .. ": " .. reason.message .. (from and " [" .. from .. "]" or "")
end

-- Why the plan is what it is, or why there is none: one line a rule.
function verdict.reasons(plan)
  local lines = {}
  for i, reason in ipairs(plan.reasons) do lines[i] = reason_line(reason) end
  return lines
end

-- "184: 1F1B at P 4, …: rank 0 takes 81.2 GiB of 73.3 GiB usable, 7.9 GiB too much"
function verdict.minimum(minimum)
  if not minimum then return nil end
  if minimum.gpus == 1 then return "1 GPU is enough" end
  local lines = { format.integer(minimum.gpus) .. " GPUs are the fewest; not on" }
  for i, entry in ipairs(minimum.fewer) do lines[i + 1] = format.integer(entry.gpus) .. ": " .. entry.message end
  return table.concat(lines, " ", 1, 2) .. (lines[3] and "; nor on " .. lines[3] or "")
end

function verdict.fits(memory)
  local rank = lists.largest(memory.ranks, function(rank) return rank.total_bytes end)
  local spare = memory.device_bytes - memory.headroom_bytes - rank.total_bytes
  local answer = memory.fit == "tight" and "yes, tightly" or memory.fit == "fits" and "yes" or "NO"
  return string.format("%s: %s of %s on rank %d, the fullest (activations %s); %s GiB %s the headroom of %s", answer,
                       format.gib(rank.total_bytes), format.bytes(memory.device_bytes), rank.rank, format.gib(rank.activations_bytes),
                       format.gib(math.abs(spare)), spare >= 0 and "free beyond" or "inside", format.gib(memory.headroom_bytes))
end

local bubble_definitions = { mean_idle = "mean idle share of the ranks", max_idle = "idle share of the most idle rank",
                             span = "idle share between a rank's first and last action" }

function verdict.bubble(bubble)
  local parts = { format.percent(bubble.fraction) .. " " .. bubble_definitions[bubble.definition] }
  if bubble.baseline_1f1b_fraction then parts[1] = parts[1] .. " (1F1B here: " .. format.percent(bubble.baseline_1f1b_fraction) .. ")" end
  parts[#parts + 1] = "most idle rank " .. format.percent(bubble.max_idle_fraction)
  if bubble.closed_form_fraction then
    local name = bubble.closed_form_exact and "closed form " or "closed form at equal stages "
    parts[#parts + 1] = name .. format.percent(bubble.closed_form_fraction)
  end
  return table.concat(parts, "; ")
end

local function hours(number)
  return format.count(math.floor(number + 0.5))
end

-- ": bubble −7,709, overlap 580 k": what of a saving is due to which; what rounds to nothing is left out.
local function by_cause(saving)
  local parts = {}
  for _, cause in ipairs { { "bubble ", saving.bubble }, { "overlap ", saving.overlap } } do
    if math.abs(cause[2]) >= 0.5 then parts[#parts + 1] = cause[1] .. (cause[2] < 0 and "−" or "") .. hours(math.abs(cause[2])) end
  end
  return #parts > 0 and ": " .. table.concat(parts, ", ") or ""
end

function verdict.saved(plan)
  local lines = {}
  for _, saving in ipairs(plan.gpu_hours_saved or {}) do
    local without, baseline = plan.gpu_hours + saving.total, format.schedule(saving.baseline)
    local share = format.percent(without > 0 and math.abs(saving.total) / without or 0)
    if saving.error_fraction then share = share:gsub(" %%$", string.format(" ± %.0f %%%%", 100 * saving.error_fraction)) end
    local line = string.format(saving.total >= 0 and "%s GPU-hours against %s (%s)%s" or "nothing: %s GPU-hours more than %s (%s)%s",
                               hours(math.abs(saving.total)), baseline, share, by_cause(saving))
    if saving.baseline_fits == false then line = line .. "; " .. baseline .. " does not fit" end
    lines[#lines + 1] = line
  end
  if #lines == 0 and plan.parallelism.pipeline > 1 then return { "nothing: the plan is the baseline, 1F1B" } end
  return lines
end

function verdict.takes(plan)
  local line = string.format("%s days, %s GPU-hours, MFU %s", format.digits(plan.training_days), hours(plan.gpu_hours),
                             format.percent(plan.mfu_fraction) .. " of the bf16 peak")
  if plan.cost then line = line .. ", " .. format.count(math.floor(plan.cost + 0.5)) .. " in GPU rent" end
  if plan.expected_error then
    line = line .. string.format(" (time ±%s, memory ±%s: %s)", format.percent(plan.expected_error.time_fraction),
                                 format.percent(plan.expected_error.memory_fraction), plan.expected_error.source)
  end
  return line
end

-- The fastest of another layout or schedule: "DualPipeV at P 8, …: 19.7 s a step, 4.2 % slower: a tie, for …".
function verdict.runner_up(plan)
  local other = plan.runner_up
  if not other then return nil end
  local margin = other.margin_fraction
  local words = math.abs(margin) < 0.0005 and "as fast"
                or format.percent(math.abs(margin)) .. (margin > 0 and " slower" or " faster")
  return string.format("%s at %s: %s a step, %s%s", format.schedule(other.schedule),
                       layout.line(other.parallelism, other.microbatches, ", "), format.seconds(other.step_seconds), words,
                       other.tie and ": a tie, for a comparison can be wrong by " .. format.percent(other.error_fraction) or "")
end

-- What the policy's wishes cost, where that is more than a rounding.
function verdict.cost(plan)
  local cost = plan.policy_cost
  if not cost or cost.fraction < 0.0005 then return nil end
  local parts = {}
  for _, entry in ipairs(cost.statements) do
    parts[#parts + 1] = string.format("%s [%s:%d] %s", entry.id, entry.file, entry.line, format.percent(entry.fraction))
  end
  return format.percent(cost.fraction) .. " of the fastest candidate's step"
         .. (#parts > 0 and ", for " .. table.concat(parts, ", ") or ", as ties go to what stands first")
end

-- Faster schedules in two sentences: those that are clearly so, and ties.
function verdict.dominated(plan)
  local lines = {}
  for _, tie in ipairs { false, true } do
    local names, change = {}, nil
    for _, other in ipairs(plan.dominated_by or {}) do
      if other.tie == tie then
        names[#names + 1] = format.schedule(other.schedule) .. " by " .. format.percent(other.gain_fraction)
        change = change or other.change
      end
    end
    if #names > 0 then
      lines[#lines + 1] = "in simulation " .. table.concat(names, ", ")
        .. (tie and (#names > 1 and ": ties" or ": a tie") .. ", within what a model can tell" or "") .. (change and "; " .. change or "")
    end
  end
  return lines
end

local loosening = { disable = "disabled", change = "changed", set = "set" }

function verdict.loosened(plan)
  local lines = {}
  for _, entry in ipairs(plan.loosened) do
    local place = entry.file and entry.file .. (entry.line and ":" .. entry.line or "") or entry.layer
    lines[#lines + 1] = string.format("%s %s by %s: %s%s [%s]", entry.id, loosening[entry.kind] or entry.kind, entry.layer, entry.reason,
                                      entry.expires and ", until " .. entry.expires or "", place)
  end
  return lines
end

-- The policies of the machine, which nobody named.
function verdict.site(plan)
  local lines, policy = {}, plan.policy
  if #(policy.found or {}) > 0 then lines[1] = "found on this machine: " .. table.concat(policy.found, ", ") end
  if #(policy.left_out or {}) > 0 then lines[#lines + 1] = "--no-site leaves out " .. table.concat(policy.left_out, ", ") end
  return lines
end

-- "dominated" has lines of its own, with all that dominate.
function verdict.warnings(plan, severity)
  local lines = {}
  for _, warning in ipairs(plan.warnings) do
    if warning.id ~= "dominated" and (warning.severity == "note") == (severity == "note") then
      lines[#lines + 1] = warning.id .. ": " .. warning.message
    end
  end
  return lines
end

function verdict.wanted(plan)
  if not plan.schedule_wanted then return nil end
  local wanted = format.schedule(plan.schedule_wanted) .. (plan.decision and " (row " .. plan.decision .. ")" or "")
  if plan.schedule_wanted == plan.schedule or plan.schedule_wanted == plan.schedule_family then return wanted .. ", and planned" end
  return wanted .. ", replaced by " .. format.schedule(plan.schedule)
end

local function fit_words(recommend, plan)
  if not recommend.peak_bytes then return nil end
  return string.format("%s of %s a GPU%s", format.gib(recommend.peak_bytes), format.bytes(plan.cluster.device_bytes),
                       recommend.step_seconds and ", step " .. format.seconds(recommend.step_seconds) or "")
end

-- What to do where there is no plan.
function verdict.instead(plan)
  local recommend = plan.recommend
  if not recommend then return nil end
  local sharded = recommend.sharding == "parameters" and ", parameters sharded" or ""
  local lines = { format.schedule(recommend.schedule) .. ": " .. layout.line(recommend.parallelism, recommend.microbatches) .. sharded }
  if recommend.framework_flags then lines[2] = "also " .. table.concat(recommend.framework_flags, ", ") end
  lines[#lines + 1] = fit_words(recommend, plan)
  lines[#lines + 1] = recommend.why
  return lines
end

-- How it would fit, cheapest first, one line a way.
function verdict.ways(plan)
  if not plan.ways_to_fit then return nil end
  local lines = {}
  for i, way in ipairs(plan.ways_to_fit) do
    lines[i] = string.format("%s: step %s, %s GiB (%s, %s)", way.change, format.seconds(way.step_seconds), format.gib(way.peak_bytes),
                             format.schedule(way.schedule), layout.line(way.parallelism, nil, " "))
  end
  return #lines > 0 and lines or { "nothing that was tried: recompute, another layout, offload, narrower state" }
end

function verdict.one_gpu(plan)
  local one = plan.one_gpu
  if not one or not one.bytes then return nil end
  local line = string.format("the whole model takes %s of each GPU with data parallelism alone (%s usable)", format.bytes(one.bytes),
                             format.bytes(one.usable_bytes))
  if one.sharded_bytes then
    line = line .. "; " .. format.bytes(one.sharded_bytes) .. " with weights and gradients sharded too (ZeRO-3)"
  end
  return line
end

-- Where the choice turns, and where it does not.
function verdict.turns(plan)
  local lines, stays = {}, {}
  for _, case in ipairs(plan.explanation and plan.explanation.sensitivity or {}) do
    if case.same then
      stays[#stays + 1] = case.words
    elseif case.status == "planned" then
      lines[#lines + 1] = string.format("with %s: %s at %s, %s a step", case.words, format.schedule(case.schedule),
                                        layout.line(case.parallelism, nil, ", "), format.seconds(case.step_seconds))
    else
      lines[#lines + 1] = "with " .. case.words .. ": nothing is planned"
    end
  end
  if #stays > 0 then lines[#lines + 1] = "the same schedule and layout with " .. table.concat(stays, "; ") end
  return lines
end

-- What else there is to do, and the options that do it: they give that outcome.
function verdict.advice(plan)
  local lines = {}
  for i, entry in ipairs(plan.advice or {}) do
    lines[i] = entry.id .. ": " .. entry.message .. " [" .. entry.options .. "]"
  end
  return lines
end

-- What a faster step takes of memory.
function verdict.frontier(plan)
  local lines = {}
  for i, point in ipairs(plan.frontier or {}) do
    lines[i] = string.format("%s a step, %s: %s at %s, microbatch %d, recompute %s%s%s", format.seconds(point.step_seconds),
                             format.bytes(point.peak_bytes), format.schedule(point.schedule),
                             layout.line(point.parallelism, point.microbatches, ", "), point.micro_batch_size, point.recompute,
                             point.cost and ", " .. format.count(math.floor(point.cost + 0.5)) .. " in GPU rent" or "",
                             point.plan and " (the plan)" or "")
  end
  return lines
end

return verdict
