-- SPDX-License-Identifier: Apache-2.0
-- side_by_side.lua: plans of several specs as a table, and as JSON. See stdlib/plan/side_by_side.lua for what is compared.

local documents = require "pipeplan.base.documents"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"

local report = {}

local width, label_width, most = 120, 28, 40   -- columns of a page, of what a row is about, of one plan at most

local function shown(value)
  if value == nil then return "–" end
  if type(value) == "table" then
    return json.encode(value)
  end
  if type(value) == "boolean" then return tostring(value) end
  return math.type(value) == "integer" and format.integer(value) or tostring(value)
end

local show = {
  step_seconds = { "step", format.seconds }, seconds_per_million_tokens = { "a million tokens", format.seconds },
  training_days = { "days", format.digits }, gpu_hours = { "GPU-hours", function(hours) return format.count(math.floor(hours + 0.5)) end },
  cost = { "cost", function(cost) return format.count(math.floor(cost + 0.5)) end },
  mfu_fraction = { "MFU", format.percent }, peak_bytes = { "fullest rank", format.bytes },
}

-- "−12 % ± 19 %, a tie": beside the first.
local function compared(row, i)
  local ratio = row.ratios[i]
  if not ratio then return nil end
  local words = math.abs(ratio - 1) < 0.0005 and "the same"
                or (ratio > 1 and "+" or "−") .. format.percent(math.abs(ratio - 1))
  if row.error_fractions[i] == 0 then return words end
  return string.format("%s ± %.0f %%%s", words, 100 * row.error_fractions[i], row.ties[i] and ": a tie" or "")
end

local meaning = {
  schedule = "another schedule at one layout; nine of ten such comparisons are closer than ±",
  layout = "another layout or recipe of one job on the same GPUs; nine of ten such comparisons are closer than ±",
  pipeline = "a pipeline and none; nine of ten such comparisons are closer than ±",
  estimates = "not one job on the same GPUs in the same framework: ± are the errors of both estimates, as if independent",
  same = "the same plan",
}

local function rows_of(comparison)
  local rows = {}
  local function section(title) rows[#rows + 1] = { title = title } end
  local function add(label, cells) rows[#rows + 1] = { label = label, cells = cells } end
  local function cells_of(cell)
    local cells = {}
    for i = 1, comparison.count do cells[i] = cell(i) end
    return cells
  end
  section "the specs"
  for _, row in ipairs(comparison.spec) do
    add(row.field, cells_of(function(i)
      local assumed = row.assumed[i]
      return shown(row.values[i]) .. (assumed ~= nil and " (" .. tostring(assumed) .. ")" or "")
    end))
  end
  if #comparison.spec == 0 then add("say the same", {}) end
  section "the choice"
  for _, row in ipairs(comparison.choice) do
    add(row.field:gsub("_", " "), cells_of(function(i)
      local value = row.values[i]
      return row.field == "schedule" and value and format.schedule(value) or shown(value)
    end))
  end
  if #comparison.choice == 0 then add("is the same", {}) end
  section "what it takes"
  for _, row in ipairs(comparison.takes) do
    local how, any = show[row.figure], false
    add(how[1], cells_of(function(i) return row.values[i] and how[2](row.values[i]) or "–" end))
    local cells = cells_of(function(i)
      local words = compared(row, i)
      any = any or words ~= nil
      return words or ""
    end)
    if any then add("", cells) end
  end
  if #comparison.takes == 0 then add("none is planned", {}) end
  return rows
end

-- The last `count` parts of a path, or all of it.
local function tail(path, count)
  local from = #path + 1
  for _ = 1, count do
    from = path:sub(1, from - 1):match "^.*()/" or 0
    if from == 0 then return path end
  end
  return path:sub(from + 1)
end

-- As many last parts of each plan's path as no other has.
local function headings(comparison)
  local names = {}
  for i, plan in ipairs(comparison.plans) do
    local count, alone = 0, false
    while not alone do
      count, alone = count + 1, true
      names[i] = tail(plan.name, count)
      for other, another in ipairs(comparison.plans) do alone = alone and (other == i or tail(another.name, count) ~= names[i]) end
      if names[i] == plan.name then break end
    end
  end
  return names
end

function report.text(comparison)
  local names, rows, widths, lines = headings(comparison), rows_of(comparison), {}, {}
  local room = math.max(14, math.min(most, (width - label_width) // comparison.count - 2))
  for i, name in ipairs(names) do
    widths[i] = math.min(room, format.width(name))
    for _, row in ipairs(rows) do widths[i] = math.max(widths[i], math.min(room, format.width(row.cells and row.cells[i] or ""))) end
  end
  local function line(label, cells)
    local text = format.pad(format.cut(label, label_width), label_width)
    for i = 1, comparison.count do text = text .. "  " .. format.pad(format.cut(cells[i] or "", widths[i]), widths[i]) end
    lines[#lines + 1] = (text:gsub("%s+$", ""))
  end
  line("", names)
  for _, row in ipairs(rows) do
    if row.title then
      lines[#lines + 1] = ""
      lines[#lines + 1] = row.title
    else line("  " .. row.label, row.cells) end
  end
  lines[#lines + 1] = ""
  local function say(words)
    for _, one in ipairs(format.wrap(words, 100)) do lines[#lines + 1] = one end
  end
  for i, plan in ipairs(comparison.plans) do
    if plan.status ~= "planned" then say(names[i] .. " is " .. plan.status .. ": " .. table.concat(plan.reasons, "; ")) end
    if comparison.basis[i] then
      say(string.format("%s beside %s: %s", names[i], names[1], meaning[comparison.basis[i]]))
    end
  end
  return format.page(lines)
end

-- A list with null where there is nothing.
local function filled(values, count)
  local out = {}
  for i = 1, count do out[i] = values[i] == nil and json.null or values[i] end
  return json.array(out)
end

function report.json(comparison)
  local n = comparison.count
  local function rows(list, convert)
    local out = {}
    for i, row in ipairs(list) do out[i] = convert(row) end
    return json.array(out)
  end
  local plans = {}
  for i, plan in ipairs(comparison.plans) do
    plans[i] = { name = plan.name, status = plan.status, reasons = json.array(plan.reasons), basis = comparison.basis[i] or json.null }
  end
  return documents.encode("comparison", {
    plans = json.array(plans),
    spec = rows(comparison.spec, function(row)
      return { field = row.field, values = filled(row.values, n), assumed = filled(row.assumed, n) }
    end),
    choice = rows(comparison.choice, function(row) return { field = row.field, values = filled(row.values, n) } end),
    takes = rows(comparison.takes, function(row)
      return { figure = row.figure, values = filled(row.values, n), ratios = filled(row.ratios, n),
               error_fractions = filled(row.error_fractions, n), ties = filled(row.ties, n) }
    end),
  }, { indent = 2 }) .. "\n"
end

return report
