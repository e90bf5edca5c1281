-- SPDX-License-Identifier: Apache-2.0
-- kernels.lua: measured kernels (stdlib/schema/kernels.lua) → what replaces the catalogue's figures in pp_device: the forms of
-- engine/core/kernels.h that are nearest to the measurements (engine.kernels.fit).

local accelerators = require "pipeplan.catalog.accelerators"
local documents = require "pipeplan.base.documents"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"

local kernels = {}

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

-- Fits a form to rows, where there are enough of them; what it finds goes to `out`. → how far off it is; nil: too few rows.
local function fit(form, rows, card, out)
  if #rows < least then return nil end
  local found = engine.kernels.fit { form = form, rows = rows, device = {
    flops = card.flops, flops_bf16 = card.flops_bf16, product_depth = out.product_depth, attention_efficiency = out.attention_efficiency,
    attention_fill = out.attention_fill } }
  local error = found.error
  found.error = nil
  for name, value in pairs(found) do out[name] = value end
  return error
end

local function products(read, card, out, notes)
  for _, one in ipairs { { "products", "products" }, { "grouped", "grouped products" } } do
    local rows = of_precision(read[one[1]], card.precision)
    local error = fit(one[1], rows, card, out)
    if error then notes[#notes + 1] = string.format("%d %s within %.0f %%", #rows, one[2], 100 * error) end
  end
end

local function attention(read, card, out, notes)
  local rows = read.attention or {}
  local ahead = fit("attention", rows, card, out)
  if not ahead then return end
  local back = fit("attention_backward", rows, card, out)
  notes[#notes + 1] = string.format("%d attentions within %.0f %% forward, %.0f %% backward", #rows, 100 * ahead, 100 * back)
end

-- The median of what element-wise kernels reach.
local function moved(read, bandwidth, out)
  local rates = {}
  for i, row in ipairs(read.moved or {}) do rates[i] = row.bytes / row.seconds end
  table.sort(rates)
  local n = #rates
  if n > 0 then out.memory_efficiency = math.min(1, (rates[(n + 1) // 2] + rates[n // 2 + 1]) / 2 / bandwidth) end
end

-- Reads the file for a card: { accelerator: catalogue name or nil, flops, flops_bf16, memory_bandwidth, precision } → { device = what
-- replaces its figures, host = { forward, backward } or nil, file, source, notes }.
function kernels.read(file, card)
  local read, out, notes = json.read(file), {}, {}
  documents.check(read, "kernels", file)
  require "pipeplan.input.validate"(read, require "pipeplan.schema.kernels", file)
  if card.accelerator and not accelerators.is_card(read.device, card.accelerator) then
    failure.usage("%s: device is %s: expected a table of the spec's accelerator, %s", file, json.encode(read.device), card.accelerator)
  end
  products(read, card, out, notes)
  attention(read, card, out, notes)
  moved(read, card.memory_bandwidth, out)
  if #notes == 0 and not out.memory_efficiency and not read.host then
    failure.usage("%s: too little: expected %d %s products, attentions or grouped products at least, element-wise kernels or host times",
                  file, least, card.precision)
  end
  return { device = out, host = read.host, file = file, source = read.source or read.device, notes = notes }
end

return kernels
