-- SPDX-License-Identifier: Apache-2.0
-- measured.lua: what measured layouts came to, as text: each beside its prediction, which is the fastest, what that changes, and what the
-- residuals say of the price.

local calibration = require "pipeplan.input.calibration"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"

local report = {}

local width = 100

-- → function(entry) → its name among those; with its layers where several have that name.
local function labels_of(entries)
  local function name(entry)
    return format.schedule(entry.schedule) .. " at " .. layout.line(entry.parallelism, entry.microbatches, ", ")
  end
  local function layers(entry) return table.concat(entry.layers_per_stage, " ") end
  local first, several = {}, {}
  for _, entry in ipairs(entries) do
    local words = name(entry)
    first[words] = first[words] or layers(entry)
    several[words] = several[words] or layers(entry) ~= first[words]
  end
  return function(entry) return name(entry) .. (several[name(entry)] and ", layers " .. layers(entry) or "") end
end

local function signed(fraction)
  return (fraction < 0 and "−" or "+") .. format.percent(math.abs(fraction))
end

local function run_words(run)
  local marks = {}
  if run.planned then marks[#marks + 1] = "the plan" end
  if run.chosen then marks[#marks + 1] = "taken" elseif run.tie then marks[#marks + 1] = "a tie with the fastest" end
  local error = run.error_fraction and string.format(" ± %.1f %%", 200 * run.error_fraction) or ""
  return string.format("%s a step%s, eight of ten of %s from %s to %s; predicted %s: %s, with the factors below %s%s",
                       format.seconds(run.measured_seconds), error, format.plural(run.steps, "step"), format.seconds(run.low_seconds),
                       format.seconds(run.high_seconds), format.seconds(run.predicted_seconds), signed(run.residual_fraction),
                       signed(run.calibrated_residual_fraction), #marks > 0 and "; " .. table.concat(marks, ", ") or "")
end

-- plan: what measured.of gives; kept: the file of the calibration, if one was written.
function report.text(plan, kept)
  local found, lines, indent = plan.measured, {}, string.rep(" ", 8)
  local label = labels_of { found.before, found.next or found.before, table.unpack(found.runs) }
  local function say(words, first, rest)
    for _, line in ipairs(format.wrap(words, width, first or "", rest or indent)) do lines[#lines + 1] = line end
  end
  say(string.format("%s on %s %s: %s measured", plan.model.name, format.integer(plan.cluster.gpus), plan.cluster.accelerator,
                    format.plural(#found.runs, "layout")))
  for _, run in ipairs(found.runs) do
    lines[#lines + 1] = ""
    say(run.name .. " = " .. run.log .. ": " .. label(run), "", "  ")
    say(run_words(run), "  ", "  ")
  end
  lines[#lines + 1] = ""
  say(label(found.before) .. ", predicted " .. format.seconds(found.before.step_seconds) .. " a step", "before  ")
  if plan.status == "planned" then
    say((found.changed and label(plan) or "the same") .. ": " .. found.why, "after   ")
    lines[#lines + 1] = indent .. found.options .. (kept and " --calibration " .. kept or "")   -- whole, to be copied
  else
    say(found.why .. "; with what the runs say it is " .. plan.status .. ": "
        .. table.concat(lists.column(plan.reasons, "message"), "; "), "after   ")
  end
  say(string.format("%s: %s; off by %s without a factor, by %s with it", calibration.words(found.factors), found.factors_why,
                    format.percent(found.off_before_fraction), format.percent(found.off_fraction)), "price   ")
  if kept then lines[#lines + 1] = indent .. "kept in " .. kept end
  if found.next then
    say(string.format("%s was not measured: with these factors it is predicted to take %s, %s less", label(found.next),
                      format.seconds(found.next.step_seconds), format.percent(found.next.gain_fraction)), "next    ")
  end
  return format.page(lines)
end

return report
