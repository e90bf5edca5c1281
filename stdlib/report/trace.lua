-- SPDX-License-Identifier: Apache-2.0
-- trace.lua: a simulated schedule as a Chrome trace (the JSON object format of chrome://tracing, which Perfetto reads too):
--   a process per rank, thread 0 its actions, thread 1 the backward of its pairs, for slices of a thread may nest but not overlap
--   X  an action                         M  the names of processes and threads
--   s, f  a send from one rank to another, from the slice that makes what is sent to the slice that waits for it
--   C  how many chunks' activations the rank holds, from F to B, or to W
-- Times are microseconds with three decimals, for the viewers count in nanoseconds.

local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local rows = require "pipeplan.report.rows"
local simulation = require "pipeplan.report.simulation"

local trace = {}

local longest = 2 ^ 53 * 1e-9   -- seconds: beyond, a double does not count nanoseconds

local function nanoseconds(seconds)
  return math.floor(seconds * 1e9 + 0.5)
end

local function microseconds(ns)
  return string.format("%d.%03d", ns // 1000, ns % 1000)
end

-- How processes and threads are called, by `event`, which writes one.
local function names(rank, stages, threads, event)
  local function metadata(name, value)
    event(json.encode { ph = "M", pid = rank, tid = value.tid or 0, name = name, args = value.args })
  end
  metadata("process_name", { args = { name = "rank " .. rank } })
  metadata("process_labels", { args = { labels = "stage " .. stages } })
  metadata("process_sort_index", { args = { sort_index = rank } })
  for tid = 0, threads - 1 do
    metadata("thread_name", { tid = tid, args = { name = tid == 0 and "compute" or "backward of pairs" } })
    metadata("thread_sort_index", { tid = tid, args = { sort_index = tid } })
  end
end

-- Writes the slices of one rank's actions and what hangs on them.
local function actions(run, rank, event)
  local info = run.info
  local chain_length, placement = info.stages // info.chains, info.placement
  local held = 0

  local function add(...) event(string.format(...)) end

  local function hold(change, at)
    held = held + change
    add('{"ph":"C","pid":%d,"name":"live activations","ts":%s,"args":{"chunks":%d}}', rank, microseconds(at), held)
  end

  -- The other end of a hop, or nil when the stage is its chain's last (first) or both ends are on this rank.
  local function peer(stage, step)
    local other = stage + step
    if other // chain_length ~= stage // chain_length or placement[other + 1] == rank then return nil end
    return other
  end

  local function flow(phase, tid, stage, microbatch, backward, at)
    local id = 2 * (stage * info.microbatches + microbatch) + (backward and 1 or 0)
    add('{"ph":"%s","pid":%d,"tid":%d,"cat":"send","name":"%s","id":%d,"ts":%s%s}', phase, rank, tid,
        backward and "gradient" or "activation", id, microseconds(at), phase == "f" and ',"bp":"e"' or "")
  end

  -- A slice, with the sends that it waits for and makes. A flow belongs to the slice around its time, so one that leaves starts just
  -- before the slice's end. Its number is that of the stage that sends.
  local function slice(kind, tid, stage, microbatch, start, finish)
    add('{"ph":"X","pid":%d,"tid":%d,"cat":"%s","name":"%s%d","ts":%s,"dur":%s,"args":{"stage":%d,"microbatch":%d}}', rank, tid, kind, kind,
        microbatch, microseconds(start), microseconds(finish - start), stage, microbatch)
    if kind == "W" then return end
    local backward = kind ~= "F"
    local step = backward and -1 or 1
    local from, to = peer(stage, -step), peer(stage, step)
    if from then flow("f", tid, from, microbatch, backward, start) end
    if to then flow("s", tid, stage, microbatch, backward, math.max(start, finish - 1)) end
  end

  for action in rows.each(run, rank) do
    local kind, start, finish = action.kind, nanoseconds(action.start), nanoseconds(action.finish)
    if kind == "F" or kind == "FB" then hold(1, start) end
    if kind == "FB" then
      slice("F", 0, action.stage, action.microbatch, start, finish)
      slice("B", 1, action.stage_b, action.microbatch_b, start, finish)
    else
      slice(kind, 0, action.stage, action.microbatch, start, finish)
    end
    if kind ~= "F" and kind ~= "I" then hold(-1, finish) end
  end
end

-- The trace of a run (see simulation.lua) whose result has intervals_of: an iterator over its text, piece by piece. O(actions) time.
function trace.write(run)
  if run.result.makespan > longest then
    failure.usage("--format trace counts nanoseconds, which ends at %.0f days; this schedule takes %g s", longest / 86400,
                  run.result.makespan)
  end
  local stages, threads = simulation.stages_of_ranks(run.info), rows.has_pairs(run) and 2 or 1
  return rows.text(function(write)
    local before = '{"displayTimeUnit":"ms","otherData":' .. json.encode { schedule = simulation.headline(run) } .. ',"traceEvents":[\n'
    local function event(text)
      write(before)
      write(text)
      before = ",\n"
    end
    for rank = 0, run.info.ranks - 1 do
      names(rank, stages[rank + 1], threads, event)
      actions(run, rank, event)
    end
    write "\n]}\n"
  end)
end

return trace
