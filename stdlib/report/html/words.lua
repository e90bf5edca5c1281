-- SPDX-License-Identifier: Apache-2.0
-- words.lua: the verdict on a plan in one sentence, how sure it is, and what its reader is warned of.

local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local run = require "pipeplan.report.run"
local verdict = require "pipeplan.report.verdict"

local words = {}

local function bold(text) return element("b", nil, text) end
local function together(text) return element("span", { class = "nb" }, text) end

local function hours(number) return format.count(math.floor(math.abs(number) + 0.5)) end
local function days(number) return format.digits(number, number < 10 and 2 or math.max(2, #string.format("%.0f", number))) end

-- What the plan saves against the simplest baseline there is, and between which bounds: 1 − ratio × (1 ± error).
local function saving_of(plan)
  local saving = (plan.gpu_hours_saved or {})[1]
  if not saving then return nil end
  local without = plan.gpu_hours + saving.total
  if without <= 0 then return nil end
  local ratio, error = plan.gpu_hours / without, saving.error_fraction
  return saving, 1 - ratio, 1 - ratio * (1 + error), 1 - ratio * (1 - error), error
end

local function whole_percent(fraction) return string.format("%.0f", 100 * fraction) end

-- ", 484 k fewer than 1F1B needs: a saving of 16 % (12 to 21)"
local function saved(plan)
  local saving, share, low, high, error = saving_of(plan)
  if not saving then return { "" } end
  local baseline = format.schedule(saving.baseline)
  if low <= 0 and high >= 0 then
    return { string.format(": as many as %s needs, as far as can be told (%+.1f %%, and the comparison is good to ±%s)", baseline,
                           -100 * share, format.percent(error)) }
  end
  local money = saving.cost and string.format(" (%s in rent)", hours(saving.cost)) or ""
  if share < 0 then
    return { string.format(", %s%s more than %s needs: ", hours(saving.total), money, baseline), bold(whole_percent(-share) .. " % more"),
             string.format(" (%s to %s)", whole_percent(-high), whole_percent(-low)) }
  end
  return { string.format(", %s%s fewer than %s needs%s: a saving of ", hours(saving.total), money, baseline,
                         saving.baseline_fits == false and ", which does not fit" or ""), bold(whole_percent(share) .. " %"),
           string.format(" (%s to %s)", whole_percent(low), whole_percent(high)) }
end

local function machines(cluster) return format.integer(cluster.gpus) .. " " .. cluster.accelerator end

-- "120", or of a batch that grows "24 to 120".
function words.microbatches(plan)
  local most, least = plan.microbatches, plan.microbatches
  for _, segment in ipairs(plan.training.batch_ramp or {}) do least = math.min(least, segment.microbatches or least) end
  return (least < most and format.integer(least) .. " to " or "") .. format.integer(most)
end

-- The plan in one sentence.
function words.verdict(plan)
  local error = plan.expected_error and plan.expected_error.time_fraction or 0
  local how
  if plan.schedule == "none" then
    how = { bold "without a pipeline", " (" .. layout.line(plan.parallelism, nil, ", ") .. ")" }
  else
    how = { "with ", bold(format.schedule(plan.schedule)), " on ", bold(format.integer(plan.parallelism.pipeline)),
            " pipeline ranks (P) and ", bold(words.microbatches(plan)), " microbatches (M)" }
  end
  return element.list("Train ", plan.model.name, " ", how, ": about ", bold(days(plan.training_days) .. " days"), " on ",
    together(machines(plan.cluster)),
    error > 0 and string.format(", give or take %s (%s to %s)", format.percent(error), days(plan.training_days * (1 - error)),
                                days(plan.training_days * (1 + error))) or "",
    ", and ", bold(hours(plan.gpu_hours) .. " GPU-hours"), plan.cost and " (" .. hours(plan.cost) .. " in rent)" or "", saved(plan), ".")
end

function words.sure(plan)
  local training, error = plan.training, plan.expected_error
  local parts = {}
  if error then
    local between = error.comparisons
    parts[1] = string.format("How sure: time ±%s, memory ±%s, the ratio of two schedules ±%s, of two layouts ±%s, of a pipeline and none "
                             .. "±%s (%s). ", format.percent(error.time_fraction), format.percent(error.memory_fraction),
                             format.percent(between.schedule), format.percent(between.layout), format.percent(between.pipeline),
                             error.source)
  end
  parts[#parts + 1] = layout.line(plan.parallelism, plan.microbatches, ", ")
  parts[#parts + 1] = string.format("; %s tokens, sequences of %s, %s; MFU %s.", format.count(training.tokens),
                                    format.integer(training.sequence_length), training.precision, format.percent(plan.mfu_fraction))
  return table.concat(parts)
end

-- ---------------------------------------------------------------------------------------------------------------------- warnings

local function warning(kind, text, id)
  return element("li", { class = kind == "No price" and "paperless" or nil }, element("b", { class = "sev" }, kind .. "."), " ", text, id
                 and { " ", element.name(id) } or nil)
end

-- The schedules that could be planned and are as fast, as far as can be told, beside those that are named as faster.
local function ties(plan, add)
  local names, named = {}, {}
  for _, other in ipairs(plan.dominated_by or {}) do named[other.schedule] = true end
  for _, other in ipairs(plan.alternatives or {}) do
    if other.tie and other.allowed and not named[other.schedule] then
      names[#names + 1] = string.format("%s (%+.1f %% ± %.0f %% time%s)", format.schedule(other.schedule), 100 * other.slower_fraction,
                                        100 * other.error_fraction,
                                        other.peak_bytes and ", " .. format.gib(other.peak_bytes) .. " GiB" or "")
    end
  end
  if #names == 0 then return end
  local fullest = 0
  for _, rank in ipairs(plan.memory.ranks) do fullest = math.max(fullest, rank.total_bytes) end
  add("Tie", string.format("%s: too near to tell from the plan. Choose by memory (the plan takes %s GiB) and by what your framework runs.",
                           table.concat(names, ", "), format.gib(fullest)))
end

local function memory(plan, add)
  local most, usable = 0, plan.memory.device_bytes - plan.memory.headroom_bytes
  for _, rank in ipairs(plan.memory.ranks) do most = math.max(most, rank.total_bytes) end
  local error = plan.expected_error.memory_fraction
  local far = most * (1 + error)
  if far < 0.95 * usable then return end
  add("Memory", string.format("With the error of ±%s the fullest rank reaches %s of the %s GiB that are allowed%s: measure the first step.",
                              format.percent(error), format.gib(far), format.gib(usable),
                              far > plan.memory.device_bytes and ", and more than the GPU has" or ""))
end

local function needs(plan, add)
  local where, kernel = run.available(plan), plan.alltoall_kernel
  local parts = {}
  if where and plan.schedule ~= "none" then parts[1] = "A framework that runs it: " .. where .. "." end
  if kernel and kernel.name then
    parts[#parts + 1] = "All-to-all by " .. kernel.name .. (#kernel.needs > 0 and ": " .. table.concat(kernel.needs, "; ") or "") .. "."
  end
  if #parts > 0 then add("Needs", table.concat(parts, " ")) end
end

function words.warnings(plan)
  local list = {}
  local function add(kind, text, id) list[#list + 1] = warning(kind, text, id) end
  for _, line in ipairs(verdict.site(plan)) do add("Site", line .. ".") end
  for _, line in ipairs(verdict.loosened(plan)) do add("Loosened", line) end
  for _, severity in ipairs { "warning", "note" } do
    for _, entry in ipairs(plan.warnings) do
      if (entry.severity == "note") == (severity == "note") and entry.id ~= "dominated" then
        add(severity == "note" and "Note" or "Warning", entry.message, entry.id)
      end
    end
  end
  if plan.status == "planned" then
    for _, line in ipairs(verdict.dominated(plan)) do add("Faster", line .. ".") end
    ties(plan, add)
    memory(plan, add)
    needs(plan, add)
    if not plan.cost then
      add("No price", element.list("The spec states none (", element("code", nil, "cluster.price_per_gpu_hour"),
                                   "), so the cost is in GPU-hours."))
    end
  end
  return #list > 0 and element("ul", { class = "warn" }, list) or nil
end

return words
