-- SPDX-License-Identifier: Apache-2.0
-- accuracy.lua: docs/accuracy.md: every figure of how right plans are, from the data at hand, in one command.
--
-- usage, from the root of the repository, some half a minute:
--   LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" PIPEPLAN_DATA=FOLDER lua5.4 tests/oracles/accuracy.lua > docs/accuracy.md

local table_of = require "oracles.table"
local order = require "oracles.order"
local pairs_of = require "oracles.pairs"
local regret = require "oracles.regret"
local sets = require "oracles.sets"

local page = {}

local function percent(value, digits)
  return value and string.format("%." .. (digits or 1) .. "f %%", 100 * value) or "–"
end

local function signed(value) return value and string.format("%+.1f %%", 100 * value) or "–" end

-- A Markdown table: headings, then rows of cells; `left` columns are text, the rest numbers.
local function grid(headings, left, list)
  local out, rule = { "| " .. table.concat(headings, " | ") .. " |" }, {}
  for i = 1, #headings do rule[i] = i <= left and ":--" or "--:" end
  out[2] = "| " .. table.concat(rule, " | ") .. " |"
  for _, cells in ipairs(list) do out[#out + 1] = "| " .. table.concat(cells, " | ") .. " |" end
  return table.concat(out, "\n")
end

local function heading(text) return "\n## " .. text .. "\n" end

-- --------------------------------------------------------------------------------------------------------------------------- sections

local function sources(collected)
  local list = {}
  for _, group in ipairs(table_of.groups(collected)) do
    local sum = table_of.summary(group.rows)
    list[#list + 1] = { group.name, sets.role(group.name), sum.count, percent(sum.median, 2), signed(sum.worst),
                        sum.band and "±" .. percent(sum.band, 1) or "–", sum.outside, sum.excused }
  end
  return grid({ "set", "used", "rows", "median", "worst", "band", "outside", "excused" }, 2, list)
end

-- Steps that nothing was calibrated on.
local function blind(collected)
  local errors, kept = {}, 0
  for _, group in ipairs(table_of.groups(collected)) do
    for _, row in ipairs(sets.blind(group.name) and group.rows or {}) do
      if row.error and not row.excused then
        errors[#errors + 1] = math.abs(row.error)
        kept = kept + row.error
      end
    end
  end
  table.sort(errors)
  local n = #errors
  return string.format("%d steps: half of them within %s, nine of ten within %s, the worst %s; in the mean %s.", n,
                       percent(errors[(n + 1) // 2]), percent(errors[math.floor(0.9 * n)]), percent(errors[n]), signed(kept / n))
end

local function excuses(collected)
  local list, counted = {}, {}
  for _, source in ipairs(collected) do
    for _, row in ipairs(source.rows) do
      if row.excused then
        local key = source.name .. "\0" .. row.excused
        if not counted[key] then
          counted[key] = { source.name, row.excused, 0 }
          list[#list + 1] = counted[key]
        end
        counted[key][3] = counted[key][3] + 1
      end
    end
  end
  return grid({ "set", "why we do not claim it", "rows" }, 2, list)
end

local function verdicts(collected)
  local all = {}
  for _, source in ipairs(collected) do table.move(source.rows, 1, #source.rows, #all + 1, all) end
  local found = table_of.confusion(all)
  return grid({ "plan", "fits", "does not fit", "excused" }, 1, {
    { "ran", found.ran_fits, found.ran_not, found.excused }, { "ran out of memory", found.out_fits, found.out_not, "" } })
end

local function rows_of(name, collected, short)
  local list = {}
  for _, source in ipairs(collected) do
    for _, row in ipairs(source.name == name and source.rows or {}) do
      if not (row.excused and short) then
        local note = row.excused or row.group:find "calibrates" and "calibrates" or ""
        list[#list + 1] = { row.case, row.quantity, string.format("%.4g", row.published), string.format("%.4g", row.ours),
                            signed(row.error), note }
      end
    end
  end
  return grid({ "run", "figure", "measured", "ours", "error", "" }, 2, list)
end

local function out_of(count, all) return string.format("%d of %d", count, all) end

local function families(judged)
  local list = {}
  for _, sum in ipairs(order.families(judged)) do
    list[#list + 1] = { sum.name, sum.groups, percent(sum.regret / sum.groups), percent(sum.worst),
                        string.format("%.2f", sum.tau / sum.groups), sum.first_out, out_of(sum.false_fits, sum.out),
                        out_of(sum.false_refusals, sum.ran) }
  end
  return grid({ "sweep", "groups", "regret, mean", "regret, worst", "Kendall's tau", "first picks out of memory", "false fits",
                "false refusals" }, 1, list)
end

local function groups(judged)
  local list = {}
  for _, one in ipairs(judged) do
    if one.ran > 0 then
      list[#list + 1] = { one.name, sets.calibrated_group(one.name) and "calibrates" or "tests", one.ran, percent(one.regret),
                          one.tau and string.format("%.2f", one.tau) or "–", one.first_ran and "" or "out of memory",
                          out_of(one.false_fits, one.out), out_of(one.false_refusals, one.ran), string.format("%.2f", one.ratio) }
    end
  end
  return grid({ "group", "used", "ran", "regret", "tau", "first pick", "false fits", "false refusals", "ours ÷ measured" }, 2, list)
end

local function searches(searched)
  local list = {}
  for _, sum in ipairs(regret.families(searched)) do
    list[#list + 1] = { sum.name, sum.groups, sum.ran, percent(sum.ran > 0 and sum.regret / sum.ran or nil), percent(sum.worst), sum.oom,
                        sum.failed, sum.no_row }
  end
  return grid({ "sweep", "groups", "pick ran", "regret, mean", "regret, worst", "out of memory", "failed", "no row" }, 1, list)
end

local function picks(searched)
  local list = {}
  for _, one in ipairs(searched) do list[#list + 1] = { one.name, one.pick, one.status, percent(one.regret) } end
  return grid({ "group", "what the search takes", "it", "regret" }, 3, list)
end

local function comparisons(judged)
  local list = {}
  local function add(what, source, entries)
    if #entries == 0 then return end
    local sum = pairs_of.summary(entries)
    list[#list + 1] = { what, source, sum.count, percent(sum.median), percent(sum.most), out_of(sum.wrong, sum.apart) }
  end
  add("same layout, other schedule", "our own runs, published ratios", pairs_of.schedules())
  add("all-to-all hidden or not", "Megatron-Bridge", pairs_of.overlaps())
  for _, family in ipairs { "hagemann", "bloom", "nanotron" } do
    local own = {}
    for _, one in ipairs(judged) do if one.name:match "^%a+" == family then own[#own + 1] = one end end
    local all, piped = pairs_of.layouts(own)
    add("other layout", family, all)
    add("… one with a pipeline, one without", family, piped)
  end
  return grid({ "pairs of runs", "from", "pairs", "half within", "nine of ten within", "wrong order, of those 5 % apart" }, 2, list)
end

-- ------------------------------------------------------------------------------------------------------------------------------- whole

-- What is measured: rows of the table and judged groups; nil and why not, where data are missing.
function page.measure()
  local list, why = order.groups {}
  if not list then return nil, why end
  local collected, judged = table_of.collect(), {}
  for _, source in ipairs(collected) do
    if source.rows.skipped then return nil, source.name .. ": " .. source.rows.skipped end
  end
  local searched = {}
  for i, group in ipairs(list) do
    judged[i] = order.judge(group)
    searched[#searched + 1] = regret.judge(group)
  end
  return { collected = collected, judged = judged, searched = searched }
end

function page.text(measured)
  local collected, judged, searched = measured.collected, measured.judged, measured.searched
  return table.concat({
    "# How right plans are", "",
    "Printed by `tests/oracles/accuracy.lua`, which plans every run below as it ran, by the program's own path: do not edit. Errors are",
    "ours ÷ measured − 1.",
    heading "What is compared",
    "Memory in bytes, verdicts about plans that ran or did not, seconds and throughputs. What calibrates does not test.", "",
    sources(collected),
    heading "Steps that nothing was calibrated on",
    blind(collected),
    heading "Does it fit?",
    verdicts(collected),
    heading "Is the order right?",
    "Sweeps that others ran, every row planned as it ran. Regret: how much slower than the best of its group the layout is that we",
    "price lowest, of those that ran and that we do not refuse. False fits: ran out of memory, and we call it fitting. False refusals:",
    "ran, and we call it too large.", "", families(judged), "", groups(judged),
    heading "Does the search choose well?",
    "Of each group only the job is given; depth, TP, microbatch, recompute and sharding are the search's, among the values that occur in",
    "the group, with a pipeline or without (`tests/oracles/regret.lua`). Sweeps are no full grids: of some picks there is no row.", "",
    searches(searched), "", picks(searched),
    heading "Errors of comparisons",
    "Of two runs the ratio of our seconds against the ratio of the measured ones. `stdlib/catalog/accuracy.lua` has what nine of ten",
    "lie within, and plans print it.", "",
    comparisons(judged),
    heading "Megatron-core on H200",
    rows_of("time_megatron_core", collected),
    "",
    rows_of("memory_megatron_groups", collected),
    heading "Sharded data parallelism, rows that are claimed",
    rows_of("time_sharded", collected, true),
    heading "What is not claimed",
    excuses(collected),
    heading "Which sets calibrate and which test",
    sets.text(),
    heading "Constants and where they come from",
    sets.constants(),
  }, "\n") .. "\n"
end

local function main()
  local measured, why = page.measure()
  if not measured then
    io.stderr:write("skipped: ", why, "\n")
    os.exit(1)
  end
  io.write(page.text(measured))
end

if arg and arg[0] and arg[0]:find "oracles/accuracy%.lua$" then main() end

return page
