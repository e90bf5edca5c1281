-- SPDX-License-Identifier: Apache-2.0
-- measured.lua: the files of cluster.network.measured, nccl-tests output and nvidia-smi topo -m in any order, and what they say of each
-- tier: the node's GPUs and links from the matrix, latency and bandwidth from the tables (engine/core/comm.c, pp_comm_fit).

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local nccl = require "pipeplan.input.nccl"
local rocm_topology = require "pipeplan.input.rocm_topology"
local text_of = require "pipeplan.base.text"
local topology = require "pipeplan.input.topology"

local measured = {}

local function read_runs(found, text, path)
  local runs, passed = nccl.read(text, path)
  for _, run in ipairs(runs) do
    run.file = path
    table.insert(found.runs, run)
  end
  for _, other in ipairs(passed) do
    other.file = path
    table.insert(found.passed, other)
  end
end

-- paths: of files that can be read → { topology = …, runs = { … }, passed = { … } }, each with its `file`; passed: tests that say nothing
-- of what plans use.
function measured.read(paths)
  local found = { runs = {}, passed = {} }
  for _, path in ipairs(paths) do
    local text = text_of.unmarked(json.text(path))
    if nccl.is(text) then read_runs(found, text, path)
    elseif rocm_topology.is(text) or topology.is(text) then
      if found.topology then failure.usage("%s: a second matrix of a node's links, after %s", path, found.topology.file) end
      found.topology = (rocm_topology.is(text) and rocm_topology or topology).read(text, path)
      found.topology.file = path
    else
      failure.usage("%s: none of nccl-tests output (# size count type …), nvidia-smi topo -m (GPU0 GPU1 …), rocm-smi --showtopo", path)
    end
  end
  return found
end

-- Several runs measure rings; what gathers and scatters reach is what data parallelism and sequence parallelism pay, so an all-reduce
-- counts only without them. Of equals the slower.
local function better(new, old)
  local rank = { all_gather = 1, reduce_scatter = 1 }
  local a, b = rank[new.run.test] or 2, rank[old.run.test] or 2
  if a ~= b then return a < b end
  return new.bandwidth < old.bandwidth
end

-- Share of the largest size's time that has to grow with the size: below it a table says little of the bandwidth, and a line through its
-- noise may say anything.
local least_share = 0.5

-- The line through a run's sizes; nil and why not where they say nothing of the bandwidth. The time of small messages is latency.
local function fit(run, members, inner)
  local points, largest = {}, 0
  for i, point in ipairs(run.points) do
    points[i] = { point.bytes, point.seconds }
    largest = math.max(largest, point.bytes)
  end
  local asked = { test = run.test, ranks = run.ranks, members = members, points = points, inner = inner }
  local good, result = failure.try(engine.comm.fit, asked)
  if not good and not tostring(result):find("do not grow with the size", 1, true) then
    failure.usage("%s:%d: no line fits this table: %s", run.file, run.line, (tostring(result):gsub("^engine%.comm%.fit: ", "")))
  end
  local share = good and result.beta * largest / (result.alpha + result.beta * largest) or 0
  if share < least_share then
    return nil, string.format("of the time of %s, its largest size, %s grows with the size: nothing is taken from it; measure " ..
                              "larger ones (nccl-tests -b 1M -e 8G -f 2)", format.bytes(largest), format.percent(share))
  end
  result.run = run
  return result
end

-- GPUs of one scale-up domain that take part: where the domain is more than a node (NVL72), as many as fit; else those of a node.
local function members_of(run, scale_up_gpus, gpus_per_node)
  local members = scale_up_gpus > gpus_per_node and scale_up_gpus or math.min(run.ranks_per_host, scale_up_gpus)
  return math.min(members, run.ranks)
end

-- What the runs say of the links inside a scale-up domain, of the node's others where the domain is only a part of it, and between nodes
-- → { inside = { transfer = fit }, host = …, network = …, unusable = { { run, why }, … } }, transfer: message, ring or alltoall. domain:
-- { gpus, per_gpu, host = is it a part of a node? }
function measured.links(runs, domain, gpus_per_node)
  local tiers = { inside = {}, host = {}, network = {}, unusable = {} }
  local function keep(tier, found)
    local old = tiers[tier][found.transfer]
    if not old then tiers[tier][found.transfer] = found return end
    local taken, other = better(found, old) and found or old, better(found, old) and old or found
    taken.other = other.run.test == taken.run.test and other or taken.other
    tiers[tier][found.transfer] = taken
  end
  for _, tier in ipairs { "inside", "host", "network" } do
    local ring = tiers.inside.ring
    local inner = ring and { bandwidth = ring.bandwidth, latency = ring.latency } or nil
    for _, run in ipairs(runs) do
      local members = members_of(run, domain.gpus, gpus_per_node)
      local crosses = members == run.ranks and "inside" or domain.host and run.host_count == 1 and "host" or "network"
      if crosses == tier then
        local found, why = fit(run, members, inner)
        if found then keep(tier, found) else table.insert(tiers.unusable, { run = run, why = why }) end
      end
    end
    -- switches that add for the GPUs (NVLS) let an all-reduce exceed the link; gathers they do not help
    local new = not ring and tiers.inside.ring
    if new then new.bandwidth = math.min(new.bandwidth, domain.per_gpu) end
  end
  return tiers
end

return measured
