-- SPDX-License-Identifier: Apache-2.0
-- monitor.lua: what `pipeplan monitor` says of a run, as a page of text and as JSON. It is given { plan, found, steps, counters, files,
-- verdict, reasons, first, last }: the plan as input/plan_file.lua reads it, what monitor/kinds.lua finished, and its collector;
-- found.measured is nil where only counters were given.

local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local verdict = require "pipeplan.monitor.verdict"

local report = {}

local WIDTH, LABEL = 80, 10
local max_listed = 6   -- gaps, ranks, files that a page names
local far = 2          -- times the predicted step: no estimate that was held against a published run is off by as much

local plural = format.plural

local function range(first, last)
  return first == last and format.integer(first) or format.integer(first) .. "–" .. format.integer(last)
end

local function named(plan, schedule, pipeline)
  if schedule == "none" then return "no pipeline" end
  return string.format("%s at P %d", format.schedule(schedule), pipeline or plan.pipeline)
end

-- ---------------------------------------------------------------------------------------------------------------------- the run

local function measured_line(run)
  local measured = run.found.measured
  local noise = measured.error_fraction and " ± " .. format.seconds(2 * measured.error_fraction * measured.mean_seconds) or ""
  local text = string.format("utilisation %s: ideal step %s ÷ measured %s%s (mean; median %s), over %s of iterations %s; the window is %s",
    format.percent(measured.utilisation), format.seconds(measured.ideal_seconds), format.seconds(measured.mean_seconds), noise,
    format.seconds(measured.median_seconds), plural(measured.steps, "step"), range(measured.first, measured.last),
    range(run.first, run.last))
  if measured.last < run.last then text = text .. ", which is not full yet" end
  return text
end

-- What the plan says of the steps that were measured: { predicted, threshold, inside_error_band }; where none were, of its last batch.
function report.held_against(run) return run.found.measured or run.plan.batches[run.plan.batch] end

local function microbatches_at(plan, batch) return format.integer(plan.microbatches * batch // plan.batch) end

-- "M 24 at the batch of 3,072".
local function microbatches_of(run)
  local plan, measured = run.plan, run.found.measured
  if not plan.ramp then return "M " .. format.integer(plan.microbatches) end
  local batches = measured and measured.batches or { plan }
  local first, last = batches[1].batch, batches[#batches].batch
  if first == last then return string.format("M %s at the batch of %s", microbatches_at(plan, first), format.integer(first)) end
  return string.format("M %s to %s, the mean of these steps at batches of %s to %s", microbatches_at(plan, first),
                       microbatches_at(plan, last), format.integer(first), format.integer(last))
end

local function planned_line(run)
  local plan, held = run.plan, report.held_against(run)
  local ideal = run.found.measured and run.found.measured.ideal_seconds or plan.ideal
  local step = plan.ramp and ideal / held.predicted or plan.step
  local threshold = string.format("roll back below %s (steps over %s)", format.percent(held.threshold),
                                  format.seconds(ideal / held.threshold))
  return string.format("%s, %s: predicted %s, %s a step; %s%s", named(plan, plan.schedule), microbatches_of(run),
                       format.percent(held.predicted), format.seconds(step), threshold,
                       plan.fallback and ", what " .. named(plan, plan.fallback.schedule, plan.fallback.pipeline)
                       .. " is predicted to reach" or "")
end

-- How to get the fallback.
local function switch_lines(plan)
  local fallback = plan.fallback
  if not fallback then
    return { "nothing simpler fits: the estimate is wrong. Measure stages and links, give the plan the profile, and plan again" }
  end
  local other = fallback.alternative
  local lines = { "switch to " .. named(plan, fallback.schedule, fallback.pipeline)
                  .. (other and other.step_seconds and ", predicted " .. format.seconds(other.step_seconds) .. " a step"
                      .. (plan.ramp and " at the batch of " .. format.integer(plan.batch) or "") or "")
                  .. (other and other.same_layout and ", at the same TP, EP and DP" or "") }
  local options = fallback.options or fallback.schedule == "none" and "--pipeline 1"
                  or string.format("--schedule %s --pipeline %d", fallback.schedule, fallback.pipeline)
                     .. (other and other.virtual and " --virtual " .. other.virtual or "")
  lines[2] = "its plan: pipeplan plan SPEC " .. options
  return lines
end

local function trend_line(run)
  local measured = run.found.measured
  if not measured.early_seconds then return nil end
  local change = measured.late_seconds / measured.early_seconds - 1
  local text = string.format("first quarter %s a step, last quarter %s%s", format.seconds(measured.early_seconds),
                             format.seconds(measured.late_seconds),
                             run.plan.ramp and #measured.batches > 1 and ", both as at the mean batch" or "")
  if math.abs(change) <= run.plan.comparison_error then return text end
  return text .. string.format(" (%s %s): %s", format.percent(math.abs(change)), change > 0 and "slower" or "faster",
                               measured.with_batch and "since the batch grew"
                               or "the run changed, the schedule did not")
end

-- Where steps of several batches of a ramp were measured, each beside what the plan says of it.
local function batches_line(run)
  local batches, parts = run.found.measured.batches, {}
  if not run.plan.ramp or #batches == 1 then return nil end
  for i, part in ipairs(batches) do
    if i > max_listed then break end
    parts[i] = string.format("%s of %s: %s (predicted %s, threshold %s)", plural(part.steps, "step"), format.integer(part.batch),
                             format.percent(part.utilisation), format.percent(part.predicted), format.percent(part.threshold))
  end
  if #batches > max_listed then parts[#parts + 1] = format.integer(#batches - max_listed) .. " more: --format json" end
  return "by batch, " .. table.concat(parts, ", ")
end

-- Of a run that became slower: what to look for, since when.
local function fault_lines(run)
  local measured = run.found.measured
  return {
    string.format("find what became slower after iteration %s: at first %s a step, above the threshold, at last %s, below it",
                  format.integer(measured.rise.after), format.seconds(measured.early_seconds), format.seconds(measured.late_seconds)),
    "a schedule is as slow from the first step on: look for a card that throttles, a link that fell back, a node that swaps, another job's "
      .. "traffic; the fallback would be as slow",
    "keep " .. named(run.plan, run.plan.schedule) .. " until it is found, then judge the steps after it (--steps)",
  }
end

local function act_lines(run)
  if run.verdict == "keep" then return { "keep " .. named(run.plan, run.plan.schedule) } end
  if run.verdict == "undecided" then return run.reasons end
  if run.verdict == "fault" then return fault_lines(run) end
  local lines = switch_lines(run.plan)
  local look = "first look for one slow card, link or node: it slows every step of every schedule, and the fallback's too"
  if verdict.beyond_estimates(run.plan, run.found.measured) then
    look = "first look at the counters of each rank: neither the plan nor its fallback was predicted to be this slow, so something else is "
      .. "wrong (a slow card, link or node, other traffic on the network), and the fallback would be slow too"
  end
  table.insert(lines, 1, look)
  return lines
end

-- ------------------------------------------------------------------------------------------------------------------ what was left out

local reason_words = {
  warm_up = "before step %s", start_up = "start of a process", batch = "of a line in which the batch grew",
  checkpoint = "after a checkpoint", evaluation = "after an evaluation",
  stall = "stalls (rare, over the limit; first in iteration %s)",
}

local function dropped_lines(run)
  local parts = {}
  for _, group in ipairs(run.found.dropped) do
    local at = group.why == "stall" and group.first or run.first
    parts[#parts + 1] = plural(group.steps, "step") .. " " .. reason_words[group.why]:format(format.integer(at))
  end
  if #parts == 0 then return nil end
  local text, with = table.concat(parts, ", "), run.found.utilisation_with_dropped
  if with and math.abs(with / run.found.measured.utilisation - 1) > 0.001 then
    text = text .. "; with checkpoints, evaluations and stalls utilisation is " .. format.percent(with)
  end
  return { text }
end

local function gap_lines(run)
  local gaps, parts, steps = run.found.gaps, {}, 0
  for i, gap in ipairs(gaps) do
    steps = steps + gap.last - gap.first + 1
    if i <= max_listed then parts[i] = range(gap.first, gap.last) end
  end
  if #gaps == 0 then return nil end
  if #gaps > max_listed then parts[#parts + 1] = format.integer(#gaps - max_listed) .. " more" end
  return { plural(steps, "iteration") .. " of the window missing: " .. table.concat(parts, ", ") }
end

-- The fastest step that counts over the predicted one, of the same batch; nil without steps.
local function fastest_over_predicted(run)
  return run.found.measured and run.found.measured.fastest_over_scale * run.plan.predicted
end

local function printable(text) return (text:sub(1, 60):gsub("[^ -~]", "?")) end

-- Of a file's values that are none: the first, and what it should be.
function report.unreadable(file)
  local first = file.first_unreadable
  local what, expected = "'" .. printable(first.text) .. "'", "a share of the time, in the format's own unit"
  if first.step then
    what = string.format("'%s' of step '%s'", printable(first.value or ""), printable(first.step))
    expected = "a step from 1 on, and a time or rate over 0, of at most a week a step"
  end
  return string.format("%s of %s cannot be read, the first in %s:%d: %s: expected %s", plural(file.unreadable, "value"), first.title,
                       file.name, first.line, what, expected)
end

-- Of rates that no step has: the first, and what it should be.
function report.senseless(steps)
  local first = steps.first_senseless
  local place = first.file and string.format(" (%s:%d)", first.file, first.line) or ""
  return string.format("%s with %s that no step takes, the first in iteration %s%s: %.6g: expected %.4g to %.4g for a step of this plan",
                       plural(steps.senseless, "line"), first.what, format.integer(first.iteration), place, first.value, first.least,
                       first.most)
end

-- What a reader should know beside the verdict.
function report.warnings(run)
  local steps, found, list = run.steps, run.found, {}
  local function add(condition, ...) if condition then list[#list + 1] = string.format(...) end end
  add(steps.undefined > 0, "NaN or infinite loss or gradient in %s, first at iteration %s: no schedule is worth keeping for that",
      plural(steps.undefined, "iteration"), steps.first_undefined and format.integer(steps.first_undefined))
  add(steps.skipped > 0, "%s skipped (loss scale)", plural(steps.skipped, "iteration"))
  local ranks = steps.repeated > 0 and steps:ranks_without_number()
  add(ranks, "%s of %s are of iterations that were logged before%s: several ranks write into one file without their number. Give the log "
      .. "of one rank, or let the launcher write numbers (torchrun --tee 3, srun --label)", format.integer(steps.repeated),
      plural(steps.lines, "line"), steps.processes > 0 and ", going back " .. plural(steps.processes, "time") or "")
  add(steps.turns > 0 and steps.repeated == 0 and not steps.again,
      "iterations go back %s, and none stands twice: the lines are not in their order", plural(steps.turns, "time"))
  add(steps.again and steps.processes > 0, "%s: iterations begin anew; %s from where the newer process began",
      plural(steps.processes, "restart"), steps.repeated == 0 and "no older line counts"
      or string.format("of those logged twice (%s) the later line counts, and no older one", format.integer(steps.repeated)))
  add(not ranks and steps.processes == 0 and steps.repeated > 0, "%s logged twice: the later line counts",
      plural(steps.repeated, "iteration"))
  add(steps.senseless > 0, "%s", steps.senseless > 0 and report.senseless(steps) .. ": not this plan's run?")
  local slowed = found.measured and verdict.slowed(found.measured)
  add(slowed, "%s", slowed)
  add(steps.other_ranks > 0, "%s of ranks other than the first: passed over", plural(steps.other_ranks, "line"))
  add(found.counted_in_order, "lines without iteration numbers: counted in order, from 1")
  add(found.too_many_stalls > 0, "%s over the limit for stalls, too many to be rare: they count", plural(found.too_many_stalls, "line"))
  add(found.marked_kept > 0, "%s with a checkpoint or an evaluation before them: most of the window, so they count",
      plural(found.marked_kept, "line"))
  add(found.wrong_batch, "%s with another global batch than the plan's: the ideal step is scaled by it%s",
      found.wrong_batch and plural(found.wrong_batch.lines, "line"),
      run.plan.ramp and ", from the batch that the plan has at that step" or "")
  add(run.plan.one_trigger,
      "the plan is of an older pipeplan and says one threshold for all batches of its ramp, which holds for none: plan again")
  add(found.measured and found.measured.utilisation > 1, "steps are faster than the plan's ideal step: estimates are %s too slow at least",
      found.measured and format.percent(found.measured.utilisation - 1))
  local slower = fastest_over_predicted(run)
  add(slower and slower >= far, "even the fastest step takes %.1f times the predicted one: the plan's model of this machine does not hold. "
      .. "Profile again, and plan with the profile", slower)
  for _, file in ipairs(run.files) do
    add(file.caution, "%s: %s", file.name, file.caution)
    add(#file.formats == 0, "%s: no line of a known format in %s", file.name, plural(file.lines, "line"))
    add(file.torn, "%s: its last line has no end, and was not read", file.name)
    add(file.unreadable > 0, "%s", file.unreadable > 0 and report.unreadable(file))
    add(file.missing > 0, "%s: %s that the tool itself had none for", file.name, plural(file.missing, "value"))
    add(file.long > 0, "%s: %s too long to be a log's", file.name, plural(file.long, "line"))
  end
  add(run.too_many_gpus > 0, "%s of more GPUs than any cluster has", plural(run.too_many_gpus, "value"))
  return list
end

-- -------------------------------------------------------------------------------------------------------------------------- counters

local sight = {
  ranks = "sees a bubble, rank against rank, never against 100 %",
  weakly = "falls in a bubble, and rises with other communication",
  nothing = "cannot see a bubble: a rank that waits runs a receive kernel",
}

local function counter_line(kind)
  local text = string.format("%s: mean %s of %s, %s", kind.title, format.percent(kind.mean), plural(kind.gpus, "GPU"), sight[kind.sees])
  if kind.sees == "nothing" or kind.gpus < 2 then return text end
  return text .. string.format("; from %s (%s) to %s (%s)", format.percent(kind.lowest.mean), kind.lowest.name,
                               format.percent(kind.highest.mean), kind.highest.name)
end

local function largest(list) return math.max(table.unpack(list)) end

-- Ranks by their counter, each as a share of the highest, beside the planned share of busy time: { rank, mean, share, planned }.
function report.ranks_of(kind, plan)
  local rows, planned = {}, plan.busy and #plan.busy == #kind.ranks and plan.busy
  for i, mean in ipairs(kind.ranks) do
    rows[i] = { rank = i - 1, mean = mean, share = mean / largest(kind.ranks), planned = planned and planned[i] / largest(planned) or nil }
  end
  return rows
end

-- The ranks that are furthest below what the plan expects of them.
local function rank_lines(kind, plan)
  if not kind.ranks or #kind.ranks < 2 or #kind.ranks > 4096 or largest(kind.ranks) <= 0 then return nil end
  local rows = report.ranks_of(kind, plan)
  local function below(row) return (row.planned or 1) - row.share end
  table.sort(rows, function(a, b)
    if below(a) ~= below(b) then return below(a) > below(b) end
    return a.rank < b.rank
  end)
  local lines = { kind.title .. " of a rank over the highest's, beside the planned busy time's; furthest below it first (who waits is low, "
                  .. "whom others wait for is high):" }
  local parts = {}
  for i = 1, math.min(max_listed, #rows) do
    local row = rows[i]
    parts[i] = string.format("rank %d: %s", row.rank, format.percent(row.share))
      .. (row.planned and " (planned " .. format.percent(row.planned) .. ")" or "")
  end
  lines[2] = table.concat(parts, ", ") .. (#rows > max_listed and ", …" or "")
  return lines
end

local function read_lines(run)
  local parts = {}
  for i, file in ipairs(run.files) do
    local formats = {}
    for k, entry in ipairs(file.formats) do formats[k] = entry.title .. " " .. plural(entry.lines, "line") end
    if i <= max_listed then parts[i] = file.name .. ": " .. (#formats > 0 and table.concat(formats, ", ") or "nothing known") end
  end
  if #run.files > max_listed then parts[#parts + 1] = plural(#run.files - max_listed, "more file") end
  return parts
end

-- ------------------------------------------------------------------------------------------------------------------------------ text

local titles = { keep = "KEEP", roll_back = "ROLL BACK", fault = "FIND THE FAULT", undecided = "UNDECIDED" }

-- The first of them, and how many more there are.
local function shortened(list)
  if #list <= max_listed then return list end
  local out = table.move(list, 1, max_listed, 1, {})
  out[#out + 1] = format.integer(#list - max_listed) .. " more" .. ": --format json"
  return out
end

-- The words of the verdict, and what the run is called.
function report.headline(run)
  local measured = run.found.measured
  return titles[run.verdict] .. (measured and string.format(" · utilisation %s, threshold %s", format.percent(measured.utilisation),
                                                            format.percent(measured.threshold)) or ""), named(run.plan, run.plan.schedule)
end

-- Everything that is said, in order: { { label, { text, … }, group }, … }. Groups stand apart.
function report.paragraphs(run)
  local measured, list = run.found.measured, {}
  local function put(group, label, texts)
    if texts and #texts > 0 then list[#list + 1] = { label, texts, group } end
  end
  put("verdict", run.verdict == "undecided" and "because" or "do", act_lines(run))
  if run.verdict == "undecided" and measured and measured.utilisation < measured.threshold then
    put("verdict", "if below", switch_lines(run.plan))
  end
  if measured then
    local texts = { measured_line(run) }
    texts[#texts + 1] = batches_line(run)
    texts[#texts + 1] = trend_line(run)
    put("run", "measured", texts)
  end
  put("run", "planned", { planned_line(run) })
  put("run", "left out", dropped_lines(run))
  put("run", "gaps", gap_lines(run))
  put("run", "warning", shortened(report.warnings(run)))
  local seen = { measured and "step time of the log: sees every bubble; it decides" or nil }
  for _, kind in ipairs(run.counters) do seen[#seen + 1] = counter_line(kind) end
  put("run", "sees", seen)
  for _, kind in ipairs(run.counters) do
    put("run", "ranks", rank_lines(kind, run.plan))
    if kind.ranks then break end   -- of the one to be trusted most
  end
  put("run", "read", read_lines(run))
  return list
end

function report.text(run)
  local head, subject = report.headline(run)
  local lines = { head .. format.pad(subject, WIDTH - format.width(head), true), string.rep("─", WIDTH) }
  local group = "verdict"
  for _, paragraph in ipairs(report.paragraphs(run)) do
    if paragraph[3] ~= group then lines[#lines + 1] = "" end
    group = paragraph[3]
    for i, text in ipairs(paragraph[2]) do
      for _, line in ipairs(format.wrap(text, WIDTH, format.pad(i == 1 and paragraph[1] or "", LABEL), string.rep(" ", LABEL))) do
        lines[#lines + 1] = line
      end
    end
  end
  return format.page(lines)
end

-- ------------------------------------------------------------------------------------------------------------------------------ JSON

local function measured_object(run)
  local found, measured = run.found, run.found.measured
  if not measured then return json.null end
  return {
    utilisation_fraction = measured.utilisation, median_utilisation_fraction = measured.median_utilisation,
    utilisation_with_dropped_fraction = found.utilisation_with_dropped, standard_error_fraction = json.or_null(measured.error_fraction),
    ideal_step_seconds = measured.ideal_seconds, mean_step_seconds = measured.mean_seconds, median_step_seconds = measured.median_seconds,
    fastest_step_over_predicted = fastest_over_predicted(run), slower_than_error_allows = verdict.beyond_estimates(run.plan, measured),
    first_quarter_step_seconds = json.or_null(measured.early_seconds), last_quarter_step_seconds = json.or_null(measured.late_seconds),
    rise_fraction = json.or_null(measured.rise and measured.rise.fraction),
    rise_after_iteration = json.or_null(measured.rise and measured.rise.after),
    steps = measured.steps, lines = measured.lines, first_iteration = measured.first, last_iteration = measured.last,
  }
end

local function counter_object(kind, plan)
  local ranks = json.array {}
  for i, row in ipairs(kind.ranks and largest(kind.ranks) > 0 and report.ranks_of(kind, plan) or {}) do
    ranks[i] = { rank = row.rank, mean_fraction = row.mean, of_highest_fraction = row.share, planned_fraction = json.or_null(row.planned) }
  end
  local function end_of(entry) return { name = entry.name, mean_fraction = entry.mean } end
  return { name = kind.name, sees_bubble = kind.sees, gpus = kind.gpus, samples = kind.samples, mean_fraction = kind.mean,
           lowest = end_of(kind.lowest), highest = end_of(kind.highest), ranks = ranks }
end

-- Of a batch that grows: what was measured at each, beside what the plan says of it.
local function batches_object(measured)
  local list = json.array {}
  for i, part in ipairs(measured.batches) do
    list[i] = { global_batch_size = part.batch, steps = part.steps, first_iteration = part.first, last_iteration = part.last,
                utilisation_fraction = part.utilisation, predicted_utilisation_fraction = part.predicted,
                threshold_fraction = part.threshold }
  end
  return list
end

function report.object(run)
  local plan, found = run.plan, run.found
  local other, held = plan.fallback and plan.fallback.alternative, report.held_against(run)
  local value = {
    verdict = run.verdict, reasons = json.array(run.reasons), measured = measured_object(run),
    threshold_fraction = held.threshold, predicted_utilisation_fraction = held.predicted, inside_error_band = held.inside_error_band,
    schedule = plan.schedule, pipeline = plan.pipeline,
    fallback = plan.fallback and { schedule = plan.fallback.schedule, pipeline = plan.fallback.pipeline,
                                   step_seconds = json.or_null(other and other.step_seconds) } or json.null,
    window = { first_step = run.first, last_step = run.last, log_interval = found.interval },
    batches = plan.ramp and found.measured and batches_object(found.measured) or json.null,
    dropped = json.array {}, gaps = json.array {}, counters = json.array {}, files = json.array {},
    restarts = run.steps.restarts, undefined_iterations = run.steps.undefined, skipped_iterations = run.steps.skipped,
    warnings = json.array(report.warnings(run)),
  }
  for i, group in ipairs(found.dropped) do
    value.dropped[i] = { why = group.why, steps = group.steps, lines = group.lines, seconds = group.seconds, first_iteration = group.first }
  end
  for i, gap in ipairs(found.gaps) do value.gaps[i] = { first_iteration = gap.first, last_iteration = gap.last } end
  for i, kind in ipairs(run.counters) do value.counters[i] = counter_object(kind, plan) end
  for i, file in ipairs(run.files) do
    local formats = json.array {}
    for k, entry in ipairs(file.formats) do formats[k] = { name = entry.title, lines = entry.lines } end
    value.files[i] = { name = file.name, formats = formats, lines = file.lines, unreadable_values = file.unreadable,
                       missing_values = file.missing, too_long_lines = file.long, torn = file.torn }
  end
  return value
end

return report
