-- SPDX-License-Identifier: Apache-2.0
-- steps.lua: the steps of a run as its log's lines tell them: which of them count, which are left out and why, and what they come to.
--
-- A line of iteration i tells the mean of the steps since the line before it, at most an interval of them (the commonest distance between
-- lines). It is left out when
--   warm_up      a step of it lies in the warm-up; or before the window, or behind it
--   start_up     it is the first of a process: the log says that one began, or iterations begin anew
--   checkpoint, evaluation   a line of the log that says so stands between it and the line before (whether such time is in the next line's
--                depends on the framework and its version; where it is not, one line less is read)
--   stall        it takes over `stall_factor` times the median, and such lines are rare. A schedule's bubble is in every step; what is in
--                one of many is not of the schedule, and would be in the fallback's too.
-- Of an iteration that was logged twice (a resumed run) the later line counts.
--
-- Holds three numbers for each line inside the window, and for the last few before it; all others are only counted.

local numbers = require "pipeplan.input.metrics.numbers"
local trend = require "pipeplan.monitor.trend"
local plan_file = require "pipeplan.input.plan_file"

local steps = {}

local methods = {}

local kept_before = 10000   -- iterations before the first that counts: the longest interval between lines

-- How directly lines tell the time of a step. Where one log has several kinds only the best counts: the others are of the same steps.
local grades = { line = 4, step = 3, difference = 2, bar = 1 }

-- Nothing read yet of lines with iterations.
function methods:forget()
  self.seconds, self.batch, self.flag = {}, {}, {}
  self.lines, self.restarts, self.repeated, self.other_ranks, self.undefined, self.skipped, self.senseless = 0, 0, 0, 0, 0, 0, 0
  self.lowest, self.highest, self.previous, self.first_undefined, self.rank, self.distance = nil, nil, nil, nil, nil, nil
end

-- steps.new(plan, first, last) → collector; first, last: the steps that count, from 1.
function steps.new(plan, first, last)
  local self = setmetatable({ plan = plan, first = first, last = last, unnumbered = {}, unnumbered_lines = 0, grade = 0 },
                            { __index = methods })
  self:forget()
  return self
end

-- A line that says why the next takes longer.
function methods:mark(what)
  if what == "start" or self.pending ~= "start" then self.pending = what end
end

-- Another file begins: marks of one do not reach into the next.
function methods:next_file()
  self.pending = nil
end

function methods:holds(iteration)
  return iteration <= self.last and iteration >= self.first - kept_before
end

-- Is a line of another rank than the one that is read? That one gives way where it is silent while another logs: the run began again.
function methods:of_another(sample)
  if not sample.rank then return false end
  local silent = self.previous and sample.iteration >= self.previous + 3 * (self.distance or math.huge)
  if not self.rank or silent then self.rank = sample.rank end
  return sample.rank ~= self.rank
end

local function seconds_of(sample, plan, batch)
  if sample.seconds then return sample.seconds end
  if sample.sequences_per_second then return numbers.seconds(batch / sample.sequences_per_second) end
  return numbers.seconds(plan.tokens * batch / plan.batch / (sample.tokens_per_second * plan.gpus))
end

-- One line. sample: { iteration, seconds or tokens_per_second (of a GPU) or sequences_per_second (of all), batch, rank, undefined, skipped,
-- grade (`line` where there is none) }.
function methods:add(sample)
  local grade = grades[sample.grade or "line"]
  if grade < self.grade then return end
  if grade > self.grade and self.grade > 0 then self:forget() end
  self.grade = grade
  if self:of_another(sample) then
    self.other_ranks = self.other_ranks + 1
    return
  end
  local i, plan = sample.iteration, self.plan
  self.lines = self.lines + 1
  self.lowest, self.highest = math.min(self.lowest or i, i), math.max(self.highest or i, i)
  local flag = self.pending or ""
  self.pending = nil
  if i == self.previous then flag = flag ~= "" and flag or self.flag[i] or ""   -- another rank's line, most often
  elseif self.previous and i < self.previous then flag = "start" end
  if flag == "start" and self.previous and i ~= self.previous then self.restarts = self.restarts + 1 end
  if self.previous and i > self.previous then self.distance = i - self.previous end
  self.previous = i
  self.undefined, self.skipped = self.undefined + sample.undefined, self.skipped + sample.skipped
  if sample.undefined > 0 then self.first_undefined = self.first_undefined or i end
  if not self:holds(i) then return end
  local batch = sample.batch or plan_file.batch_at(plan, i)
  local seconds = seconds_of(sample, plan, batch)
  if not seconds then
    self.senseless = self.senseless + 1
    return
  end
  if self.seconds[i] then self.repeated = self.repeated + 1 end
  self.seconds[i], self.batch[i], self.flag[i] = seconds, batch, flag
end

-- A line with a time and no iteration: counted, in case no other line has one.
function methods:add_unnumbered(seconds)
  self.unnumbered_lines = self.unnumbered_lines + 1
  local i = self.unnumbered_lines
  if self:holds(i) then self.unnumbered[i] = { seconds = seconds, flag = self.pending or "" } end
  if self.lines == 0 then self.pending = nil end
end

-- ------------------------------------------------------------------------------------------------------------- which of them count

-- The commonest distance between lines; among equals the smaller.
local function interval_of(sorted)
  local counts, best = {}, nil
  for k = 2, #sorted do
    local distance = sorted[k] - sorted[k - 1]
    counts[distance] = (counts[distance] or 0) + 1
  end
  for distance, count in pairs(counts) do
    if not best or count > counts[best] or (count == counts[best] and distance < best) then best = distance end
  end
  return best or 1
end

-- Iterations of which no line tells, between those that were read, as { first, last }.
local function gaps_of(sorted, interval, first, last)
  local gaps, before = {}, first - 1
  for _, i in ipairs(sorted) do
    local from, to = math.max(before + 1, first), i - interval
    if i >= first and to >= from then gaps[#gaps + 1] = { first = from, last = math.min(to, last) } end
    before = math.max(before, i)
  end
  return gaps
end

local function median_of(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  local n = #sorted
  return n % 2 == 1 and sorted[(n + 1) // 2] or (sorted[n // 2] + sorted[n // 2 + 1]) / 2
end

-- The tenth and the ninetieth of a hundred.
local function tenths_of(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  return sorted[(#sorted + 9) // 10], sorted[#sorted - (#sorted - 1) // 10]
end

local function least_of(values)
  local least = math.huge
  for _, value in ipairs(values) do least = math.min(least, value) end
  return least
end

-- Leaves out stalls, where they are rare: one line in twenty, one of ten. → kept, stalls, too_many
local function without_stalls(entries, factor)
  if #entries < 10 or factor <= 1 then return entries, {}, 0 end
  local ratios = {}
  for k, entry in ipairs(entries) do ratios[k] = entry.seconds / entry.ideal end
  local limit, kept, stalls = factor * median_of(ratios), {}, {}
  for k, entry in ipairs(entries) do table.insert(ratios[k] > limit and stalls or kept, entry) end
  if #stalls > math.max(1, #entries // 20) then return entries, {}, #stalls end
  return kept, stalls, 0
end

-- ---------------------------------------------------------------------------------------------------------------- what they come to

local sums = trend.sums

local function summary(entries)
  local seconds, ideal, weight = sums(entries)
  local times, ratios = {}, {}
  for k, entry in ipairs(entries) do times[k], ratios[k] = entry.seconds, entry.seconds / entry.ideal end
  local tenth, ninth = tenths_of(times)
  local out = {
    low_seconds = tenth, high_seconds = ninth,
    steps = weight, lines = #entries, mean_seconds = seconds / weight, median_seconds = median_of(times), ideal_seconds = ideal / weight,
    utilisation = ideal / seconds, median_utilisation = 1 / median_of(ratios), error_fraction = trend.error(entries),
    fastest_over_ideal = least_of(ratios),
    first = entries[1].iteration - entries[1].weight + 1, last = entries[#entries].iteration,
  }
  local change = trend.of(entries)
  if change then
    out.early_seconds, out.late_seconds = change.early * out.ideal_seconds, change.late * out.ideal_seconds
    out.rise = change.rises and { fraction = change.late / change.early - 1, after = change.after } or nil
  end
  return out
end

-- Lines without iterations, numbered in order.
function methods:number_unnumbered()
  if self.lines > 0 or self.unnumbered_lines == 0 then return false end
  for i, line in pairs(self.unnumbered) do self.seconds[i], self.batch[i], self.flag[i] = line.seconds, self.plan.batch, line.flag end
  self.lines, self.lowest, self.highest = self.unnumbered_lines, 1, self.unnumbered_lines
  return true
end

-- All lines up to the last step of the window, in order.
local function entries_of(self, sorted, interval)
  local entries, before = {}, sorted[1] and math.max(0, sorted[1] - interval)
  for k, i in ipairs(sorted) do
    entries[k] = { iteration = i, seconds = self.seconds[i], weight = math.min(i - before, interval), flag = self.flag[i],
                   batch = self.batch[i], ideal = self.plan.ideal * self.batch[i] / self.plan.batch }
    before = i
  end
  return entries
end

-- What was left out, by reason.
local function new_dropped()
  local dropped = { warm_up = {}, start_up = {}, checkpoint = {}, evaluation = {}, stall = {} }
  return dropped, function(why, entry) table.insert(dropped[why], entry) end
end

local function dropped_list(dropped)
  local list = {}
  for _, why in ipairs { "warm_up", "start_up", "checkpoint", "evaluation", "stall" } do
    local entries = dropped[why]
    local seconds, _, weight = sums(entries)
    if #entries > 0 then
      list[#list + 1] = { why = why, lines = #entries, steps = weight, seconds = seconds, first = entries[1].iteration }
    end
  end
  return list
end

-- Lines with another batch than any of the plan's: { size, lines }, or nil.
local function wrong_batch_of(entries, plan)
  local wrong
  for _, entry in ipairs(entries) do
    if not plan.batches[entry.batch] then
      wrong = wrong or { size = entry.batch, lines = 0 }
      wrong.lines = wrong.lines + 1
    end
  end
  return wrong
end

-- Lines inside the window, without those after a checkpoint or an evaluation; where these are most of them, with them, for then there is
-- nothing else to read. → entries, how many of them were kept in spite of it
local function counted_of(self, entries, drop)
  local counted, all, marked = {}, {}, 0
  for _, entry in ipairs(entries) do
    if entry.iteration - entry.weight < self.first - 1 then drop("warm_up", entry)
    elseif entry.flag == "start" then drop("start_up", entry)
    else
      all[#all + 1] = entry
      if entry.flag == "" then counted[#counted + 1] = entry else marked = marked + 1 end
    end
  end
  if marked > #counted then return all, marked end
  for _, entry in ipairs(all) do
    if entry.flag ~= "" then drop(entry.flag, entry) end
  end
  return counted, 0
end

-- collector:finish(stall_factor) → what is in the window:
-- { measured (nil where nothing counts) = { steps, lines, mean_seconds, median_seconds, utilisation, … }, utilisation_with_dropped (with
--   checkpoints, evaluations and stalls), dropped = { { why, lines, steps, seconds, first } }, gaps, interval, too_many_stalls,
--   marked_kept, counted_in_order, wrong_batch = { size, lines } }
function methods:finish(stall_factor)
  local out, sorted = { counted_in_order = self:number_unnumbered() }, {}
  for i in pairs(self.seconds) do sorted[#sorted + 1] = i end
  table.sort(sorted)
  out.interval = interval_of(sorted)
  out.gaps = gaps_of(sorted, out.interval, self.first, self.last)

  local dropped, drop = new_dropped()
  local counted, kept, stalls
  counted, out.marked_kept = counted_of(self, entries_of(self, sorted, out.interval), drop)
  out.wrong_batch = wrong_batch_of(counted, self.plan)
  kept, stalls, out.too_many_stalls = without_stalls(counted, stall_factor)
  for _, entry in ipairs(stalls) do drop("stall", entry) end
  out.dropped = dropped_list(dropped)
  if #kept == 0 then return out end

  out.measured = summary(kept)
  local seconds, ideal = sums(kept)
  for _, why in ipairs { "checkpoint", "evaluation", "stall" } do
    local more, more_ideal = sums(dropped[why])
    seconds, ideal = seconds + more, ideal + more_ideal
  end
  out.utilisation_with_dropped = ideal / seconds
  return out
end

return steps
