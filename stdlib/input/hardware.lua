-- SPDX-License-Identifier: Apache-2.0
-- hardware.lua: the field `cluster` of a spec, completed from the catalogues: memory, peaks and links of a GPU that is known by name.

local accelerators = require "pipeplan.catalog.accelerators"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local kernels = require "pipeplan.catalog.kernels"
local lists = require "pipeplan.base.lists"
local network = require "pipeplan.input.network"
local units = require "pipeplan.base.units"

local hardware = {}

-- The catalogue's entry, or its generic one for a GPU that is given by memory and peak.
function hardware.find(given, name, complain)
  local at = given["cluster.accelerator"]
  if at then
    local entry, near = accelerators.find(at.value)
    if entry then return entry end
    complain(at, "%s: expected a name of the catalogue (pipeplan facts accelerators), or memory_per_gpu and flops instead%s",
             fields.show(at.value), near and near[1] and "; nearest: " .. near[1] or "")
  end
  for _, path in ipairs { "cluster.memory_per_gpu", "cluster.flops" } do
    if not given[path] then
      failure.usage("%s: cluster.accelerator is missing: expected a name of the catalogue such as H100-SXM (or option --accelerator); " ..
                    "without it %s is needed too", name, path)
    end
  end
  return accelerators.generic
end

-- A GPU's name and its memory contradict each other: which of them is meant decides what fits.
local function cross_check(request, entry, memory)
  if not memory or not entry.memory_bytes or math.abs(memory / entry.memory_bytes - 1) <= 0.1 then return end
  table.insert(request.warnings, {
    id = "accelerator_memory", severity = "warning",
    message = string.format("%s has %s by the catalogue, the spec says %s: is it the right GPU?", entry.name,
                            units.format(entry.memory_bytes, "byte"), units.format(memory, "byte")),
  })
end

-- GPUs that fill no whole number of nodes: a count of one or the other may be a slip.
local function check_nodes(request, gpus, host)
  if gpus <= host or gpus % host == 0 then return end
  table.insert(request.warnings, {
    id = "partial_node", severity = "warning",
    message = string.format("%d GPUs are %d nodes of %d and %d GPU%s of another: is that meant?", gpus, gpus // host, host, gpus % host,
                            gpus % host == 1 and "" or "s"),
  })
end

local function device(request, entry, value, assume)
  local precision = request.training.precision
  local peak = value "cluster.flops" or entry.flops[precision]
  local bf16 = value "cluster.flops" and (precision == "fp8" and peak / 2 or peak) or entry.flops.bf16 or entry.flops.fp16
  -- fp32 runs as TF32 on tensor cores, at half the bf16 rate (NVIDIA's and AMD's data sheets)
  if not peak then peak = assume("cluster.flops", bf16 / 2, "fp32 products as TF32, half of the bf16 peak") end
  local bandwidth = value "cluster.memory_bandwidth" or entry.memory_bandwidth
  -- 989 TFLOP/s and 3.35 TB/s of an H100 are 295 operations per byte; other accelerators are within a factor of 1.5
  if not bandwidth then bandwidth = assume("cluster.memory_bandwidth", bf16 / 300, "300 operations per byte, as an H100") end
  local result = accelerators.efficiencies(entry, precision)
  result.flops, result.flops_bf16, result.memory_bandwidth = peak, bf16, bandwidth
  return result
end

-- Lays what was measured over the catalogue's figures.
local function measured_kernels(request, file, accelerator, assume)
  local card = lists.with(request.device, { accelerator = accelerator, precision = request.training.precision })
  local read = require("pipeplan.input.kernels").read(file, card)
  for name, value in pairs(read.device) do request.device[name] = value end
  for _, name in ipairs { "gemm_efficiency", "grouped_gemm_efficiency", "attention_efficiency" } do
    if read.device[name] then request.device[name] = accelerators.sustained * read.device[name] end
  end
  request.kernels = read
  assume("cluster.kernels", read.source, table.concat(read.notes, ", "))
end

-- The kernel in use by its catalogue name; false for one that does not run beside compute, which is none for our purpose.
local function kernel(request, given, complain)
  local at = given["cluster.alltoall_kernel"]
  if not at or not at.value then return at and false end
  local entry, near = kernels.find(at.value)
  if not entry then
    complain(at, "%s: expected %s, or false%s", fields.show(at.value), table.concat(kernels.names, ", "),
             near and near[1] and "; nearest: " .. near[1] or "")
  end
  if entry.overlapping and entry.trains then return entry.name end
  table.insert(request.warnings, {
    id = "alltoall_kernel", severity = "warning",
    message = string.format("%s %s: planned as if there were no kernel", entry.title,
                            entry.trains and "does not run beside compute" or "is for serving, not for training"),
  })
  return false
end

-- Seconds of one dispatch or combine beside its transfers. Which kernel it will be is the policy's choice where the spec says none: 100 us
-- lies amid the catalogue's 36 to 200.
local function kernel_latency(name)
  if name == nil then return 100e-6 end
  return kernels.find(name or "nccl_alltoall").latency
end

-- The precision given, or the accelerator's usual one; one that it has no units for is an error.
function hardware.precision(given, entry, assume, complain)
  local at = given["training.precision"]
  local usual = entry.flops.bf16 and "bf16" or entry.flops.fp16 and "fp16" or "bf16"
  if not at then return assume("training.precision", usual, "usual") end
  if at.value ~= "fp32" and not entry.flops[at.value] and not given["cluster.flops"] then
    complain(at, "%s: %s has no %s matrix products; nearest: %s", fields.show(at.value), entry.name, at.value, usual)
  end
  return at.value
end

-- GPUs of one node: as given, as the matrix of nvidia-smi shows them, or as usual with the accelerator.
local function host_gpus(given, entry, found, complain)
  local at, topology = given["cluster.gpus_per_node"], found and found.topology
  if at and topology and at.value ~= topology.gpus then
    complain(at, "%d: the matrix in %s has %d GPUs; nearest: %d", at.value, topology.file, topology.gpus, topology.gpus)
  end
  return at and at.value or topology and topology.gpus or entry.gpus_per_node or 8
end

-- Fills request.cluster and request.device from the catalogue's entry; request.model and request.training are there already.
function hardware.read(request, given, entry, name, assume, complain)
  local function value(path)
    return given[path] and given[path].value
  end
  cross_check(request, entry, value "cluster.memory_per_gpu")
  local at = given["cluster.network.measured"]
  local found = at and require("pipeplan.input.measured").read(at.value)
  local gpus, host = value "cluster.gpus", host_gpus(given, entry, found, complain)
  check_nodes(request, gpus, host)
  request.cluster = {
    gpus = gpus,
    gpus_per_node = math.min(gpus, host), host_gpus = host,
    accelerator = value "cluster.accelerator" and entry.name or "given by hand",
    accelerator_family = entry.family,
    device_bytes = value "cluster.memory_per_gpu" or entry.memory_bytes,
    price_per_gpu_hour = value "cluster.price_per_gpu_hour", storage = value "cluster.storage",
    overhead_bytes = value "cluster.overhead", host_memory = value "cluster.host_memory",
    alltoall_kernel = kernel(request, given, complain),
  }
  request.device = device(request, entry, value, assume)
  request.cluster.network = network.read(request, entry, name, value, assume, found)
  local file = value "cluster.kernels"
  if file then measured_kernels(request, file, value "cluster.accelerator" and entry.name, assume) end
  request.device.alltoall_latency = kernel_latency(request.cluster.alltoall_kernel)
end

return hardware
