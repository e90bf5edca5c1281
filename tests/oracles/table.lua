-- table.lua: every published or measured figure that pipeplan is held against: case, published, ours, error, band. Fails when a row lies
-- outside its band; rows that we do not claim are printed with the reason.
--
-- usage, from the root of the repository:
--   LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/oracles/table.lua [SOURCE FILE]...
-- Foreign data are read from the folder $PIPEPLAN_DATA; without it their sources are skipped, and it says so.

-- Each a file tests/oracles/NAME.lua that returns rows (rows.lua).
local sources = { "memory_korthikanti", "memory_megatron", "memory_simumax", "memory_zero_bubble", "memory_bridge", "fits_published",
                  "fits_bridge", "fits_cases" }

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

-- { count, median, worst (of |error|), outside, excused } of some rows.
function oracles.summary(list)
  local errors, outside, excused, worst = {}, 0, 0, nil
  for _, row in ipairs(list) do
    if row.excused then excused = excused + 1
    elseif not row.ok then outside = outside + 1 end
    if row.error and not row.excused then
      errors[#errors + 1] = math.abs(row.error)
      if not worst or math.abs(row.error) > math.abs(worst) then worst = row.error end
    end
  end
  return { count = #list, median = median(errors), worst = worst, outside = outside, excused = excused }
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

local function print_summaries(collected)
  print(string.format("\n%-28s %6s %10s %10s %8s %8s", "source", "rows", "median", "worst", "outside", "excused"))
  local all, outside = {}, 0
  for _, source in ipairs(collected) do
    local sum = oracles.summary(source.rows)
    outside = outside + sum.outside
    print(string.format("%-28s %6d %10s %10s %8d %8d", source.name, sum.count, sum.median and percent(sum.median):sub(2) or "",
                        percent(sum.worst), sum.outside, sum.excused))
    table.move(source.rows, 1, #source.rows, #all + 1, all)
  end
  local verdicts = oracles.confusion(all)
  print(string.format("\n%-28s %10s %14s", "memory verdicts", "fits", "does not fit"))
  print(string.format("%-28s %10d %14d", "ran", verdicts.ran_fits, verdicts.ran_not))
  print(string.format("%-28s %10d %14d", "ran out of memory", verdicts.out_fits, verdicts.out_not))
  print(string.format("%-28s %10d", "excused", verdicts.excused))
  return outside
end

if arg and arg[0] and arg[0]:find("oracles/table.lua", 1, true) then
  local collected = oracles.collect(#arg > 0 and arg or nil)
  for _, source in ipairs(collected) do print_source(source) end
  local outside = print_summaries(collected)
  if outside > 0 then print(string.format("\n%d rows outside their band", outside)) end
  os.exit(outside == 0)
end

return oracles
