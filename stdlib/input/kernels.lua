-- kernels.lua: measured kernels (stdlib/schema/kernels.lua) → what replaces the catalogue's figures in pp_device: the forms of
-- engine/core/kernels.h that are nearest to the measurements, by the mean of |log(form / measured)|. A form has one or two numbers besides
-- its rate; these are tried on a grid, and the rate is the median that the measurements imply, so that one wild time does no harm.

local documents = require "pipeplan.base.documents"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"

local kernels = {}

local depths = { 0, 16, 32, 64, 128, 256 }
local floors = { 0, 1e-6, 2e-6, 3e-6, 4e-6, 6e-6, 8e-6, 12e-6, 16e-6, 20e-6, 24e-6, 32e-6 }
local halves = { 0, 250, 500, 750, 1000, 1500, 2000, 3000, 4000 }
local fills = { 0, 50, 100, 150, 200, 300, 400 }

local function median(values)
  table.sort(values)
  local n = #values
  return (values[(n + 1) // 2] + values[n // 2 + 1]) / 2
end

-- The best of all pairs of a grid. work(row, a, b) → what a rate of 1 would take, and what comes on top whatever the rate; seconds(row).
local function fit(rows, first, second, work, seconds)
  local best
  for _, a in ipairs(first) do
    for _, b in ipairs(second) do
      local rates, error = {}, 0
      for i, row in ipairs(rows) do
        local amount, beside = work(row, a, b)
        rates[i] = amount / math.max(seconds(row) - beside, 0.05 * seconds(row))
      end
      local rate = median(rates)
      for _, row in ipairs(rows) do
        local amount, beside = work(row, a, b)
        error = error + math.abs(math.log((amount / rate + beside) / seconds(row))) / #rows
      end
      if not best or error < best.error - 1e-12 then best = { rate = rate, a = a, b = b, error = error } end
    end
  end
  return best
end

-- Too few shapes tell nothing of a form.
local least = 6

-- Tensor cores run both at one rate: where one was hardly measured, the other is taken.
local other = { bf16 = "fp16", fp16 = "bf16" }

local function of_precision(rows, precision)
  local list = {}
  for _, row in ipairs(rows or {}) do
    if row.precision == precision then list[#list + 1] = row end
  end
  if #list >= least or not other[precision] then return list end
  for _, row in ipairs(rows or {}) do
    if row.precision == other[precision] then list[#list + 1] = row end
  end
  return list
end

local function whole_seconds(row) return row.seconds end

local function dense(read, precision, peak, out, notes)
  local rows = of_precision(read.products, precision)
  if #rows < least then return end
  local found = fit(rows, depths, floors, function(r, depth, floor) return 2 * r.m * r.n * (r.k + depth), floor end, whole_seconds)
  out.gemm_efficiency, out.product_depth, out.product_floor = math.min(1, found.rate / peak), found.a, found.b
  notes[#notes + 1] = string.format("%d products within %.0f %%", #rows, 100 * found.error)
end

local function experts(read, precision, peak, out, notes)
  local rows = of_precision(read.grouped, precision)
  if #rows < least then return end
  local tile = 128
  local found = fit(rows, { out.product_depth or 0 }, floors, function(r, depth, floor)
    return 2 * (r.rows + r.experts * tile / 2) * r.n * (r.k + depth), floor
  end, whole_seconds)
  out.grouped_gemm_efficiency, out.grouped_rows, out.grouped_floor = math.min(1, found.rate / peak), tile, found.b
  notes[#notes + 1] = string.format("%d grouped products within %.0f %%", #rows, 100 * found.error)
end

local function attention(read, peak, out, notes)
  local rows = read.attention or {}
  if #rows < least then return end
  local function work(factor)
    return function(r, half, fill)
      local sequences = r.sequences or 1
      local pieces = r.heads * sequences * r.length / 128
      return factor * 2 * sequences * r.length * r.length * r.heads * r.head_dim * (1 + half / r.length) * (1 + fill / pieces), 0
    end
  end
  local ahead = fit(rows, halves, fills, work(1), function(r) return r.forward end)
  local back = fit(rows, halves, { ahead.b }, work(2.5), function(r) return r.backward end)
  out.attention_efficiency, out.attention_half, out.attention_fill = math.min(1, ahead.rate / peak), ahead.a, ahead.b
  out.attention_backward, out.attention_half_backward = back.rate / ahead.rate, back.a
  notes[#notes + 1] = string.format("%d attentions within %.0f %% forward, %.0f %% backward", #rows, 100 * ahead.error, 100 * back.error)
end

local function moved(read, bandwidth, out)
  local rates = {}
  for i, row in ipairs(read.moved or {}) do rates[i] = row.bytes / row.seconds end
  if #rates > 0 then out.memory_efficiency = math.min(1, median(rates) / bandwidth) end
end

-- Does the driver's name of a card have the catalogue's in it, as a word? "NVIDIA H100 80GB HBM3" has that of H100-SXM, "NVIDIA GB200" not
-- that of B200.
local function same_card(device, name)
  return device:upper():find("%f[%w]" .. name:match "^%w+":upper() .. "%f[%W]") ~= nil
end

-- Reads the file for a card: { accelerator: catalogue name or nil, flops, flops_bf16, memory_bandwidth, precision } → { device = what
-- replaces its figures, host = { forward, backward } or nil, file, source, notes }.
function kernels.read(file, card)
  local read, out, notes = json.read(file), {}, {}
  documents.check(read, "kernels", file)
  require "pipeplan.input.validate"(read, require "pipeplan.schema.kernels", file)
  if card.accelerator and not same_card(read.device, card.accelerator) then
    failure.usage("%s: device is %s: expected a table of the spec's accelerator, %s", file, json.encode(read.device), card.accelerator)
  end
  local precision = card.precision
  dense(read, precision, card.flops, out, notes)
  experts(read, precision, card.flops, out, notes)
  attention(read, card.flops_bf16, out, notes)
  moved(read, card.memory_bandwidth, out)
  if #notes == 0 and not out.memory_efficiency and not read.host then
    failure.usage("%s: too little: expected %d %s products, attentions or grouped products at least, element-wise kernels or host times",
                  file, least, precision)
  end
  return { device = out, host = read.host, file = file, source = read.source or read.device, notes = notes }
end

return kernels
