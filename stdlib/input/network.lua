-- SPDX-License-Identifier: Apache-2.0
-- network.lua: the links of a cluster: what the spec says of them, then what was measured, then what the catalogues have.

local accelerators = require "pipeplan.catalog.accelerators"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local hosts = require "pipeplan.catalog.hosts"
local links = require "pipeplan.catalog.links"

local network = {}

-- Does some rule read the network's speed where it would be a guess? Rules judge the link that expert groups cross (expert_link).
local function network_matters(request, value, scale_up_gpus)
  return request.model.architecture == "moe" and (value "parallelism.expert" or math.huge) > scale_up_gpus
end

local function note(request, field, value, why)
  table.insert(request.assumptions, { field = field, value = value, why = why })
end

local function warn(request, id, ...)
  table.insert(request.warnings, { id = id, severity = "warning", message = string.format(...) })
end

local function place(entry) return entry.file .. (entry.run and ":" .. entry.run.line or entry.line and ":" .. entry.line or "") end

-- What the matrix of nvidia-smi says of the scale-up domain → { gpus, per_gpu, link }, nil without one. per_gpu nil: as catalogued.
local function from_topology(request, found, entry)
  if not found then return nil end
  if found.xgmi then return { gpus = found.joined, link = "xgmi", host = found.joined < found.gpus } end
  if found.joined == 1 then
    local speed = links.find("pcie").per_gpu[entry.family]
    if entry.scale_up_link ~= "pcie" then
      warn(request, "no_nvlink", "%s joins no GPUs by NVLink, which %s has by the catalogue: planned over PCIe", place(found), entry.name)
    end
    return { gpus = found.gpus, per_gpu = speed, link = "pcie" }
  end
  local link = entry.scale_up_link == "pcie" and "nvlink" or entry.scale_up_link
  local lane = (links.find(link).lane or {})[entry.family]
  return { gpus = found.joined, per_gpu = lane and lane * found.links, link = link, host = found.joined < found.gpus }
end

-- The scale-up domain: { gpus, per_gpu, link, host }; host: only some of a node's GPUs are joined, the others are reached over PCIe.
local function scale_up(request, entry, value, assume, topology)
  local seen = from_topology(request, topology, entry)
  local gpus_per_node = request.cluster.gpus_per_node
  -- where the scale-up domain is larger than a node (NVL72) it stays so; otherwise it is the node
  local rack = (entry.scale_up_gpus or 0) > (entry.gpus_per_node or 8)
  local domain = {
    gpus = value "cluster.network.scale_up_gpus" or (rack and entry.scale_up_gpus) or (seen and seen.gpus) or gpus_per_node,
    per_gpu = value "cluster.network.scale_up_per_gpu" or (seen and seen.per_gpu) or entry.scale_up_per_gpu,
    link = seen and seen.link or entry.scale_up_link,
    host = seen and seen.host and not rack and not value "cluster.network.scale_up_gpus",
  }
  if seen and domain.gpus == seen.gpus and domain.per_gpu == seen.per_gpu then
    note(request, "cluster.network.scale_up_per_gpu", format.rate(domain.per_gpu),
         string.format("%s: %d GPUs joined by %s", place(topology), domain.gpus,
                       topology.joined == 1 and "PCIe" or topology.links .. " NVLinks each"))
  end
  domain.gpus = math.min(domain.gpus, request.cluster.gpus)
  -- 989 TFLOP/s and 450 GB/s of an H100 are 2,200 operations per byte; A100 to B200 and MI300X lie between 1,000 and 3,000
  if not domain.per_gpu then
    domain.per_gpu = assume("cluster.network.scale_up_per_gpu", request.device.flops_bf16 / 2200, "2,200 operations per byte, as an H100")
  end
  return domain
end

-- Cards that a PCIe switch joins with a GPU; storage and management cards hang elsewhere.
local function cards(request, value, topology)
  local given = value "cluster.network.nics_per_node"
  if given or not topology or topology.cards == 0 then return given end
  local count = topology.cards_beside > 0 and topology.cards_beside or topology.cards
  note(request, "cluster.network.nics_per_node", count,
       place(topology) .. (topology.cards_beside > 0 and ": cards beside a GPU (PIX or PXB)" or ": all of its cards, none is beside a GPU"))
  if #topology.without_card > 0 and topology.cards_beside > 0 then
    warn(request, "distant_nic", "%s: %s %s no network card beside %s (PIX or PXB): its traffic crosses the CPU", place(topology),
         table.concat(topology.without_card, ", "), #topology.without_card == 1 and "has" or "have",
         #topology.without_card == 1 and "it" or "them")
  end
  return count
end

local transfers = { "message", "ring", "alltoall" }
local names = { message = "messages", ring = "rings", alltoall = "all-to-all without a kernel" }

-- Says which figure came from which file, and how well the line fits.
local function note_fit(request, tier, found)
  local where = { inside = "scale-up", host = "PCIe", network = "network" }
  note(request, where[tier] .. " " .. names[found.transfer], format.rate(found.bandwidth) .. " and " .. format.seconds(found.latency),
       string.format("%s: %s over %d GPUs of %s%s, α + β·bytes through %d sizes, median error %s, worst %s%s%s", place(found.run),
                     found.run.test, found.run.ranks, format.plural(found.run.host_count, "node"),
                     found.run.listed and " (" .. found.run.listed .. " of them listed)" or "", #found.run.points,
                     format.percent(found.median_error), format.percent(found.worst_error),
                     found.bound_inside and "; links inside a node were the slower, the network reaches this at least" or "",
                     found.other and string.format("; %s says %s: the slower is taken", place(found.other.run),
                                                   format.rate(found.other.bandwidth)) or ""))
  if tier == "network" and found.run.test == "all_reduce" and found.run.host_count == 2 and found.run.ranks > 2 then
    warn(request, "tree_allreduce", "%s: an all-reduce over two nodes runs as a tree, whose bus bandwidth overstates the network up to " ..
         "twofold: measure all_gather, or more nodes, or with NCCL_ALGO=RING", place(found.run))
  end
end

-- Where something was measured, what was not may reach no more of the nominal speed: what NCCL cannot fill no kernel fills.
local function limit(efficiency, fits, nominal)
  local best = 0
  for _, found in pairs(fits) do best = math.max(best, found.bandwidth) end
  return best > 0 and math.min(efficiency, best / nominal) or efficiency
end

local function as_links(fits)
  local out
  for transfer, found in pairs(fits) do
    out = out or {}
    out[transfer] = { bandwidth = found.bandwidth, latency = found.latency }
  end
  return out
end

local function fastest(fits)
  local best
  for _, transfer in ipairs(transfers) do
    local found = fits[transfer]
    if found and (not best or found.bandwidth > best.bandwidth) then best = found end
  end
  return best
end

-- Bytes per second between domains, per GPU.
local function speed_between(request, entry, name, value, assume, domain, fits)
  local per_gpu = value "cluster.network.per_gpu"
  if per_gpu then return per_gpu end
  local best = fastest(fits)
  if best then
    note(request, "cluster.network.per_gpu", format.rate(best.bandwidth), place(best.run) .. ": what " .. best.run.test .. " reaches")
    return best.bandwidth
  end
  if network_matters(request, value, domain.gpus) or not entry.network_per_gpu then
    failure.usage("%s: cluster.network.per_gpu is missing: expected the network's speed per GPU, one direction, such as \"400Gbps\" " ..
                  "(or option --per_gpu): %s", name, entry.network_per_gpu and
                  "expert groups that leave the scale-up domain are judged by it" or "no catalogue knows this GPU's usual one")
  end
  return assume("cluster.network.per_gpu", entry.network_per_gpu, "usual with " .. entry.name)
end

-- Runs on other cards than the spec's say nothing of its links.
local function doubt_cards(request, runs, entry)
  local told = {}
  for _, run in ipairs(runs) do
    local doubted = run.card and not told[run.file .. "\0" .. run.card]
    if doubted and entry ~= accelerators.generic and not accelerators.is_card(run.card, entry.name) then
      told[run.file .. "\0" .. run.card] = true
      warn(request, "measured_card", "%s:%d: measured on %s: expected a run on the spec's accelerator, %s", run.file, run.line,
           (run.card:sub(1, 60):gsub("%c", "?")), entry.name)
    end
  end
end

-- What was measured of each tier, noted.
local function fits_of(request, found, domain)
  if not found or #found.runs == 0 then return { inside = {}, host = {}, network = {} } end
  for _, other in ipairs(found.passed) do
    warn(request, "measured_other", "%s:%d: %s_perf says nothing of the links that plans use: passed over", other.file, other.line,
         other.test)
  end
  local fits = require("pipeplan.input.measured").links(found.runs, domain, request.cluster.gpus_per_node)
  for _, tier in ipairs { "inside", "host", "network" } do
    for _, transfer in ipairs(transfers) do
      if fits[tier][transfer] then note_fit(request, tier, fits[tier][transfer]) end
    end
  end
  for _, entry in ipairs(fits.unusable) do
    entry.file = entry.run.file
    warn(request, "measured_latency", "%s: %s", place(entry), entry.why)
  end
  return fits
end

-- found: what measured.read found, or nil. Needs request.cluster.gpus_per_node and request.device.
function network.read(request, entry, name, value, assume, found)
  local gpus_per_node = request.cluster.gpus_per_node
  local topology = found and found.topology
  local domain = scale_up(request, entry, value, assume, topology)
  local crosses = math.max(domain.gpus, domain.host and gpus_per_node or 0) < value "cluster.gpus"
  local fabric = value "cluster.network.fabric"
  if not fabric then
    if crosses then fabric = assume("cluster.network.fabric", entry.fabric or "infiniband", "usual with " .. entry.name)
    else fabric = "none" end
  end
  local fits = fits_of(request, found, domain)
  doubt_cards(request, found and found.runs or {}, entry)
  local per_gpu = value "cluster.network.per_gpu"
  if crosses then per_gpu = speed_between(request, entry, name, value, assume, domain, fits.network) end
  local inside, outside, pcie = links.find(domain.link), links.find(fabric), links.find "pcie"
  local function step(link) return math.max(link.ring_latency or link.latency, hosts.find(entry.family).ring_step) end
  return {
    fabric = fabric, per_gpu = per_gpu, nics_per_node = cards(request, value, topology),
    scale_up_gpus = domain.gpus, scale_up_per_gpu = domain.per_gpu, scale_up_link = domain.link,
    oversubscription = value "cluster.network.oversubscription" or 1,
    scale_up_efficiency = limit(inside.efficiency, fits.inside, domain.per_gpu), scale_up_latency = inside.latency,
    scale_up_ring_latency = step(inside), ring_latency = step(outside),
    efficiency = per_gpu and limit(outside.efficiency, fits.network, per_gpu) or outside.efficiency, latency = outside.latency,
    scale_up_measured = as_links(fits.inside), measured = as_links(fits.network),
    host = domain.host and { gpus = gpus_per_node, per_gpu = pcie.per_gpu[entry.family] or domain.per_gpu, efficiency = pcie.efficiency,
                             latency = pcie.latency, ring_latency = step(pcie), measured = as_links(fits.host) } or nil,
  }
end

return network
