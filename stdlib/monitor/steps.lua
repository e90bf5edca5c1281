-- SPDX-License-Identifier: Apache-2.0
-- steps.lua: the steps of a run as its log's lines tell them: which of them count, which are left out and why, and what they come to.
--
-- A line of iteration i tells the mean of the steps that it stands for (entries.lua). It is left out when
--   warm_up      a step of it lies in the warm-up; or before the window, or behind it
--   start_up     it is the first of a process: the log says that one began, or iterations begin anew
--   checkpoint, evaluation   a line of the log that says so stands between it and the line before (whether such time is in the next line's
--                depends on the framework and its version; where it is not, one line less is read); not where the sample says that
--                it is `without_evaluation`
--   batch        a batch that grows did so between the line before and it, so that it may be the mean of steps of two
--   stall        it takes over `stall_factor` times the median, and such lines are rare. A schedule's bubble is in every step; what is in
--                one of many is not of the schedule, and would be in the fallback's too.
-- Of an iteration that was logged twice (a resumed run) the later line counts, and where a process begins anew at an earlier iteration, no
-- line of older ones from there on.
--
-- Holds four numbers for each line inside the window, and for the last few before it; all others are only counted.

local entries_of_lines = require "pipeplan.monitor.entries"
local numbers = require "pipeplan.input.metrics.numbers"
local trend = require "pipeplan.monitor.trend"
local plan_file = require "pipeplan.input.plan_file"
local weighted = require "pipeplan.monitor.weighted"

local steps = {}

local methods = {}

local kept_before = 10000   -- iterations before the first that counts: the longest interval between lines

-- Nothing read yet of lines of one kind; first, last: the steps that count, from 1. kinds.lua holds those of a log.
function steps.new(plan, first, last)
  local self = setmetatable({ plan = plan, first = first, last = last, unnumbered = {}, unnumbered_lines = 0 }, { __index = methods })
  self.seconds, self.batch, self.flag, self.process, self.undone = {}, {}, {}, {}, {}
  self.processes, self.turns = 0, 0   -- how often iterations went back: at all, and to one that is held
  self.lines, self.restarts, self.repeated, self.other_ranks, self.undefined, self.skipped, self.senseless = 0, 0, 0, 0, 0, 0, 0
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

-- Is a line of another rank than the one that is read? That one gives way where it is silent while another goes on by three lines: the run
-- began again, where it stood or at an earlier iteration. other: { rank, from } of the first that logged since.
function methods:of_another(sample)
  if not sample.rank then return false end
  local rank, i = sample.rank, sample.iteration
  if not self.rank then self.rank = rank end
  if rank == self.rank then
    self.other = nil
    return false
  end
  local other = self.other
  if not other or rank ~= other.rank and i < other.from then
    other = { rank = rank, from = i }
    self.other = other
  end
  local from = rank == other.rank and math.min(other.from, self.previous or i) or self.previous or i
  if i < from + 3 * (self.distance or math.huge) then return true end
  self.rank, self.other = rank, nil
  return false
end

local function seconds_of(sample, plan, batch)
  if sample.seconds then return sample.seconds end
  if sample.sequences_per_second then return numbers.seconds(batch / sample.sequences_per_second) end
  return numbers.seconds(plan.tokens * batch / plan.batch / (sample.tokens_per_second * plan.gpus))
end

-- What there is to say of a rate of which no step follows: where it stands, and what it may be.
local function first_senseless(sample, plan, batch)
  local sequences, place = sample.sequences_per_second, sample.place or {}
  local amount = sequences and batch or plan.tokens * batch / plan.batch / plan.gpus
  return { file = place.file, line = place.line, iteration = sample.iteration, value = sequences or sample.tokens_per_second,
           what = sequences and "samples a second" or "tokens per second and GPU",
           least = amount / numbers.MOST_SECONDS, most = amount / numbers.LEAST_SECONDS }
end

-- One line. sample: { iteration, seconds or tokens_per_second (of a GPU) or sequences_per_second (of all), batch, rank, undefined, skipped,
-- without_evaluation: does its time begin behind the evaluation that a mark tells of?, place = { file, line } or nil }.
function methods:add(sample)
  if self:of_another(sample) then
    self.other_ranks = self.other_ranks + 1
    return
  end
  local i, plan = sample.iteration, self.plan
  self.lines = self.lines + 1
  self.lowest, self.highest = math.min(self.lowest or i, i), math.max(self.highest or i, i)
  local flag = self.pending or ""
  self.pending = nil
  if flag == "evaluation" and sample.without_evaluation then flag = "" end
  local back = self.previous ~= nil and i < self.previous
  if i == self.previous then flag = flag ~= "" and flag or self.flag[i] or ""   -- another rank's line, most often
  elseif back then
    flag, self.processes = "start", self.processes + 1
    self.undone[math.max(i, self.first - kept_before)] = self.processes
  end
  if flag == "start" and self.previous and i ~= self.previous then self.restarts = self.restarts + 1 end
  if self.previous and i > self.previous then self.distance = i - self.previous end
  self.previous = i
  self.undefined, self.skipped = self.undefined + sample.undefined, self.skipped + sample.skipped
  if sample.undefined > 0 then self.first_undefined = self.first_undefined or i end
  if not self:holds(i) then return end
  if back then self.turns = self.turns + 1 end
  local batch = sample.batch or plan_file.batch_at(plan, i)
  local seconds = seconds_of(sample, plan, batch)
  if not seconds then
    self.senseless = self.senseless + 1
    self.first_senseless = self.first_senseless or first_senseless(sample, plan, batch)
    return
  end
  if self.seconds[i] then self.repeated = self.repeated + 1 end
  self.seconds[i], self.batch[i], self.flag[i], self.process[i] = seconds, batch, flag, self.processes
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

local function time_of(entry) return entry.seconds end

-- Sums over steps of what `value_of` says of one.
local function sum(entries, value_of)
  local total = 0
  for _, entry in ipairs(entries) do total = total + entry.weight * value_of(entry) end
  return total
end

local function ideal_of(entry) return entry.ideal end

local function least_ratio_of(entries)
  local least = math.huge
  for _, entry in ipairs(entries) do least = math.min(least, trend.ratio(entry)) end
  return least
end

-- Leaves out stalls, where they are rare: one line in twenty, one of ten. → kept, stalls, too_many
local function without_stalls(entries, factor)
  if #entries < 10 or factor <= 1 then return entries, {}, 0 end
  local limit, kept, stalls = factor * weighted.median(entries, trend.ratio), {}, {}
  for _, entry in ipairs(entries) do table.insert(trend.ratio(entry) > limit and stalls or kept, entry) end
  if #stalls > math.max(1, #entries // 20) then return entries, {}, #stalls end
  return kept, stalls, 0
end

-- ---------------------------------------------------------------------------------------------------------------- what they come to

local sums = trend.sums

-- Against what the steps are held: { predicted, threshold } as shares of the ideal step. Of one batch the plan's own, of several those of
-- the sums over these steps.
local function held_against(entries)
  local first = entries[1].trigger
  local out, ideal = { predicted = first.predicted, threshold = first.threshold, inside_error_band = false }, nil
  for _, entry in ipairs(entries) do
    out.inside_error_band = out.inside_error_band or entry.trigger.inside_error_band
    if entry.trigger ~= first then ideal = ideal or sum(entries, ideal_of) end
  end
  if ideal then
    for _, name in ipairs { "predicted", "threshold" } do
      out[name] = ideal / sum(entries, function(entry) return entry.ideal / entry.trigger[name] end)
    end
  end
  return out
end

-- The steps at each batch, in order of the first: { { batch, steps, first, last, utilisation, predicted, threshold }, … }.
local function by_batch(entries)
  local list, found = {}, {}
  for _, entry in ipairs(entries) do
    local part = found[entry.batch]
    if not part then
      part = {}
      found[entry.batch], list[#list + 1] = part, part
    end
    part[#part + 1] = entry
  end
  for k, part in ipairs(list) do
    local seconds, _, weight = sums(part)
    local held = held_against(part)
    list[k] = { batch = part[1].batch, steps = weight, first = part[1].iteration - part[1].weight + 1, last = part[#part].iteration,
                utilisation = sum(part, ideal_of) / seconds, predicted = held.predicted, threshold = held.threshold }
  end
  return list
end

local NEAR = 2   -- lines: a change that is sought in noise is found as near as that

-- Did the batch change about there?
local function batch_changed_at(entries, iteration)
  for k, entry in ipairs(entries) do
    if entry.iteration == iteration then
      for j = math.max(2, k + 1 - NEAR), math.min(#entries, k + 1 + NEAR) do
        if entries[j].batch ~= entries[j - 1].batch then return true end
      end
    end
  end
  return false
end

local function summary(entries)
  local seconds, scale, weight = sums(entries)
  local ideal, held = sum(entries, ideal_of), held_against(entries)
  local tenth, ninth = weighted.tenths(entries, time_of)
  local out = {
    predicted = held.predicted, threshold = held.threshold, inside_error_band = held.inside_error_band, batches = by_batch(entries),
    low_seconds = tenth, high_seconds = ninth,
    steps = weight, lines = #entries, mean_seconds = seconds / weight, median_seconds = weighted.median(entries, time_of),
    ideal_seconds = ideal / weight,
    utilisation = ideal / seconds, median_utilisation = ideal / scale / weighted.median(entries, trend.ratio),
    error_fraction = trend.error(entries), fastest_over_scale = least_ratio_of(entries),
    first = entries[1].iteration - entries[1].weight + 1, last = entries[#entries].iteration,
  }
  local change = trend.of(entries)
  if change then
    out.early_seconds, out.late_seconds = change.early * (scale / weight), change.late * (scale / weight)
    out.with_batch = batch_changed_at(entries, change.after or change.recovered_after)
    out.rise = change.rises and { fraction = change.late / change.early - 1, after = change.after } or nil
    out.recovered_after = not out.with_batch and change.recovered_after or nil
  end
  return out
end

-- Lines without iterations, numbered in order.
function methods:number_unnumbered()
  if self.lines > 0 or self.unnumbered_lines == 0 then return false end
  for i, line in pairs(self.unnumbered) do
    self.seconds[i], self.batch[i], self.flag[i], self.process[i] = line.seconds, plan_file.batch_at(self.plan, i), line.flag, 0
  end
  self.lines, self.lowest, self.highest = self.unnumbered_lines, 1, self.unnumbered_lines
  return true
end

-- Several ranks may write into one file and say no number: iterations go back more often than processes start anew, or each comes several
-- times.
local GO_BACK_OFTEN = 20   -- lines between two such, at most

local function goes_back_often(self) return self.processes > 2 and self.processes * GO_BACK_OFTEN > self.lines end

function methods:ranks_without_number()
  if self.other_ranks > 0 then return false end
  if self.processes > 0 then return goes_back_often(self) end
  return 2 * self.repeated >= self.lines
end

-- Did newer processes do steps of older ones again? Then iterations stand twice, or, of lines at other places, theirs stand among the older
-- ones: what only stands in another order, each part whole, changes from one to another twice for each time that it goes back.
local function were_done_again(self, sorted)
  if self.repeated > 0 then return not self:ranks_without_number() end
  if self.turns == 0 or goes_back_often(self) then return false end
  local changes = 0
  for k = 2, #sorted do changes = changes + (self.process[sorted[k]] ~= self.process[sorted[k - 1]] and 1 or 0) end
  return changes > 2 * self.turns
end

-- All lines up to the last step of the window that stand, in order.
local function entries_of(self, sorted, interval)
  local again = self.again
  local process = again and self.process or setmetatable({}, { __index = function() return 0 end })
  local list = entries_of_lines.of(sorted, process, again and self.undone or {}, interval)
  local plan, before = self.plan, nil
  for _, entry in ipairs(list) do
    local i = entry.iteration
    entry.seconds, entry.flag, entry.batch = self.seconds[i], self.flag[i], self.batch[i]
    entry.ideal, entry.trigger = plan.ideal * entry.batch / plan.batch, plan_file.trigger_at(plan, entry.batch, i)
    entry.scale = entry.ideal * (plan.predicted / entry.trigger.predicted)
    if plan.ramp and before and before ~= entry.batch and entry.weight > 1 and entry.flag == "" then entry.flag = "batch" end
    before = entry.batch
  end
  return list
end

-- What was left out, by reason.
local function new_dropped()
  local dropped = { warm_up = {}, start_up = {}, batch = {}, checkpoint = {}, evaluation = {}, stall = {} }
  return dropped, function(why, entry) table.insert(dropped[why], entry) end
end

local function dropped_list(dropped)
  local list = {}
  for _, why in ipairs { "warm_up", "start_up", "batch", "checkpoint", "evaluation", "stall" } do
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
    elseif entry.flag == "batch" then drop("batch", entry)
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
  self.again = were_done_again(self, sorted)
  local standing = entries_of(self, sorted, out.interval)
  out.gaps = entries_of_lines.gaps(standing, self.first, self.last)

  local dropped, drop = new_dropped()
  local counted, kept, stalls
  counted, out.marked_kept = counted_of(self, standing, drop)
  out.wrong_batch = wrong_batch_of(counted, self.plan)
  kept, stalls, out.too_many_stalls = without_stalls(counted, stall_factor)
  for _, entry in ipairs(stalls) do drop("stall", entry) end
  out.dropped = dropped_list(dropped)
  if #kept == 0 then return out end

  out.measured = summary(kept)
  local seconds, ideal = sums(kept), sum(kept, ideal_of)
  for _, why in ipairs { "checkpoint", "evaluation", "stall" } do
    seconds, ideal = seconds + sums(dropped[why]), ideal + sum(dropped[why], ideal_of)
  end
  out.utilisation_with_dropped = ideal / seconds
  return out
end

return steps
