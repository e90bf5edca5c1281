-- SPDX-License-Identifier: Apache-2.0
-- table.lua: every published or measured figure that pipeplan is held against: case, published, ours, error, band. Fails when a row lies
-- outside its band; rows that we do not claim are printed with the reason.
--
-- usage, from the root of the repository:
--   LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/oracles/table.lua [--summary] [SOURCE]...
-- --summary: one line a source or group of it, for README.md.
-- Foreign data are read from the folder $PIPEPLAN_DATA; without it their sources are skipped, and it says so.

-- Each a file tests/oracles/NAME.lua that returns rows (rows.lua).
local sources = { "memory_korthikanti", "memory_megatron", "memory_simumax", "memory_zero_bubble", "memory_bridge", "memory_sharded",
                  "fits_published", "fits_bridge", "fits_cases", "time_korthikanti", "time_narayanan", "time_mtnlg", "time_vtrain",
                  "time_deepseek", "time_bridge", "time_published", "time_cases", "time_runs", "time_megatron_core",
                  "memory_megatron_groups", "time_sharded" }

local oracles = { sources = sources }

-- → { name, rows } of each source.
function oracles.collect(names)
  local list = {}
  for i, name in ipairs(names or sources) do list[i] = { name = name, rows = require("oracles." .. name) } end
  return list
end

local function median(values)
  table.sort(values)
  local n = #values
  return n > 0 and (values[(n + 1) // 2] + values[n // 2 + 1]) / 2 or nil
end

-- { count, median, worst (of |error|), band (the widest), outside, excused } of some rows.
function oracles.summary(list)
  local errors, outside, excused, worst, band = {}, 0, 0, nil, nil
  for _, row in ipairs(list) do
    if row.excused then excused = excused + 1
    elseif not row.ok then outside = outside + 1 end
    if row.error and not row.excused then
      errors[#errors + 1] = math.abs(row.error)
      if not worst or math.abs(row.error) > math.abs(worst) then worst = row.error end
      band = math.max(band or 0, row.band)
    end
  end
  return { count = #list, median = median(errors), worst = worst, band = band, outside = outside, excused = excused }
end

-- → { name, rows } of each group of each source, in order; of a source without groups the whole.
function oracles.groups(collected)
  local list = {}
  for _, source in ipairs(collected) do
    local by_name = {}
    for _, row in ipairs(source.rows) do
      local name = row.group and source.name .. ": " .. row.group or source.name
      if not by_name[name] then
        by_name[name] = { name = name, rows = {} }
        list[#list + 1] = by_name[name]
      end
      table.insert(by_name[name].rows, row)
    end
  end
  return list
end

-- What verdicts say of plans that ran and of those that ran out of memory: { ran_fits, ran_not, out_fits, out_not, excused }.
function oracles.confusion(list)
  local out = { ran_fits = 0, ran_not = 0, out_fits = 0, out_not = 0, excused = 0 }
  for _, row in ipairs(list) do
    if row.ran ~= nil then
      local key = row.excused and "excused" or (row.ran and "ran_" or "out_") .. (row.ok == row.ran and "fits" or "not")
      out[key] = out[key] + 1
    end
  end
  return out
end

-- ------------------------------------------------------------------------------------------------------------------------- printing

local function shown(value)
  return type(value) == "number" and string.format("%.5g", value) or tostring(value)
end

local function percent(value, digits)
  return value and string.format("%+." .. (digits or 2) .. "f %%", 100 * value) or ""
end

-- Text padded to so many columns; UTF-8 counts characters.
local function pad(text, width, left)
  local fill = string.rep(" ", math.max(0, width - utf8.len(text)))
  return left and fill .. text or text .. fill
end

local headings = { "", "case", "quantity", "published", "ours", "error", "band", "" }
local left_aligned = { true, true, true, false, false, false, false, true }

local function cells_of(row)
  return { row.excused and "~" or row.ok and " " or "✗", row.case, row.quantity, shown(row.published), shown(row.ours), percent(row.error),
           row.band and "±" .. shown(100 * row.band) .. " %" or "", row.excused or "" }
end

local function print_source(source)
  local lines, widths = { headings }, {}
  for i, row in ipairs(source.rows) do lines[i + 1] = cells_of(row) end
  print(string.format("\n%s%s", source.name, source.rows.skipped and ": skipped: " .. source.rows.skipped or ""))
  if #source.rows == 0 then return end
  for _, line in ipairs(lines) do
    for i, cell in ipairs(line) do widths[i] = math.max(widths[i] or 0, utf8.len(cell)) end
  end
  for _, line in ipairs(lines) do
    local parts = {}
    for i, cell in ipairs(line) do parts[i] = pad(cell, widths[i], not left_aligned[i]) end
    print((table.concat(parts, "  "):gsub("%s+$", "")))
  end
end

-- A line a source or group, and of those without rows why.
function oracles.summary_lines(collected)
  local lines = { string.format("%-44s %6s %10s %10s %8s %8s %8s", "source", "rows", "median", "worst", "band", "outside", "excused") }
  for _, source in ipairs(collected) do
    if source.rows.skipped then lines[#lines + 1] = string.format("%-44s skipped: %s", source.name, source.rows.skipped) end
  end
  for _, group in ipairs(oracles.groups(collected)) do
    local sum = oracles.summary(group.rows)
    lines[#lines + 1] = pad(group.name, 44) .. string.format(
      " %6d %10s %10s %8s %8d %8d  %s", sum.count, sum.median and percent(sum.median):sub(2) or "", percent(sum.worst),
      sum.band and pad("±" .. shown(100 * sum.band) .. " %", 8, true) or "", sum.outside, sum.excused,
      sum.outside == 0 and "pass" or "FAIL")
    lines[#lines] = lines[#lines]:gsub("%s+$", "")
  end
  local all = {}
  for _, source in ipairs(collected) do table.move(source.rows, 1, #source.rows, #all + 1, all) end
  local verdicts = oracles.confusion(all)
  table.move({ "", string.format("%-44s %10s %14s", "memory verdicts", "fits", "does not fit"),
               string.format("%-44s %10d %14d", "ran", verdicts.ran_fits, verdicts.ran_not),
               string.format("%-44s %10d %14d", "ran out of memory", verdicts.out_fits, verdicts.out_not),
               string.format("%-44s %10d", "excused", verdicts.excused) }, 1, 5, #lines + 1, lines)
  return lines
end

local function main(arguments)
  local names, short = {}, false
  for _, argument in ipairs(arguments) do
    if argument == "--summary" then short = true else names[#names + 1] = argument end
  end
  local collected = oracles.collect(#names > 0 and names or nil)
  if not short then
    for _, source in ipairs(collected) do print_source(source) end
    print()
  end
  print(table.concat(oracles.summary_lines(collected), "\n"))
  local outside = {}
  for _, source in ipairs(collected) do
    for _, row in ipairs(source.rows) do
      if not row.ok and not row.excused then outside[#outside + 1] = row end
    end
  end
  if #outside > 0 then print_source { name = #outside .. " rows outside their band", rows = outside } end
  os.exit(#outside == 0)
end

if arg and arg[0] and arg[0]:find("oracles/table.lua", 1, true) then main(arg) end

return oracles
