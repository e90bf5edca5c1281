-- SPDX-License-Identifier: Apache-2.0
-- memory.lua: the memory of each rank, stacked against what its GPU has.

local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local lists = require "pipeplan.base.lists"
local tables = require "pipeplan.report.html.table"
local ticks = require "pipeplan.report.ticks"

local memory = {}

local parts = {
  { "parameters_bytes", "m1", "weights", "weights" }, { "gradients_bytes", "m2", "gradients", "grads" },
  { "optimizer_bytes", "m3", "optimizer", "opt." }, { "activations_bytes", "m4", "activations", "act." },
  { "buffers_bytes", "m5", "buffers", "buffers" },
}

local row_height, top, foot = 13, 34, 18   -- pixels: of a rank, above them, below them
local most_alone = 16                      -- more ranks than these, and those with the same numbers share a row
local most_rows = 32

local function numbers_of(rank)
  local cells = {}
  for i, part in ipairs(parts) do cells[i] = format.gib(rank[part[1]]) end
  cells[#cells + 1] = format.gib(rank.total_bytes)
  return cells
end

-- Ranks with the same numbers, wherever they stand: { ranks, cells, rank }.
local function alike(ranks)
  local groups, known = {}, {}
  for _, rank in ipairs(ranks) do
    local cells = numbers_of(rank)
    local key = table.concat(cells, " ")
    if not known[key] then
      known[key] = { ranks = {}, cells = cells, rank = rank }
      groups[#groups + 1] = known[key]
    end
    table.insert(known[key].ranks, rank.rank)
  end
  return groups
end

local function ranges(numbers)
  local out, i = {}, 1
  while i <= #numbers do
    local j = i
    while numbers[j + 1] == numbers[j] + 1 do j = j + 1 end
    out[#out + 1] = i == j and tostring(numbers[i]) or numbers[i] .. (j == i + 1 and ", " or "–") .. numbers[j]
    i = j + 1
  end
  return table.concat(out, ", ")
end

-- The rows of the chart: { label, rank }, and how many ranks are not among them.
local function rows_of(ranks)
  local list = {}
  if #ranks <= most_alone then
    for i, rank in ipairs(ranks) do list[i] = { tostring(rank.rank), rank } end
    return list, 0
  end
  local left = 0
  for _, rank in ipairs(ranks) do
    local last = list[#list]
    local cells = table.concat(numbers_of(rank), " ")
    if last and last.cells == cells then last.to = rank.rank
    elseif #list < most_rows then list[#list + 1] = { nil, rank, cells = cells, from = rank.rank, to = rank.rank }
    else left = left + 1 end
  end
  for _, row in ipairs(list) do row[1] = row.from == row.to and tostring(row.from) or row.from .. "–" .. row.to end
  return list, left
end

local function percent(value) return string.format("%.2f%%", value) end

local function line(class, x, from, to)
  return element("line", { class = class, x1 = percent(x), x2 = percent(x), y1 = element.number(from), y2 = element.number(to) })
end

local function chart(plan, rows, fullest)
  local gib, shapes = 2 ^ 30, {}
  local device, usable = plan.memory.device_bytes, plan.memory.device_bytes - plan.memory.headroom_bytes
  local error = plan.expected_error and plan.expected_error.memory_fraction or 0
  local whole = math.max(device * 1.02, fullest.total_bytes * (1 + error) * 1.02)
  local function x(bytes) return bytes / whole * 100 end
  local height = top + row_height * #rows + foot
  local function add(shape) shapes[#shapes + 1] = shape end
  for i, row in ipairs(rows) do
    local at, y = 0, top + (i - 1) * row_height
    for _, part in ipairs(parts) do
      local bytes = row[2][part[1]]
      if bytes > 0 then
        add(element("rect", { class = part[2], x = percent(x(at)), y = y, width = percent(x(bytes)), height = row_height - 3 }))
      end
      at = at + bytes
    end
    if row[2] == fullest and error > 0 then
      local low, high, middle = x(fullest.total_bytes * (1 - error)), x(fullest.total_bytes * (1 + error)), y + (row_height - 3) / 2
      add(element("g", { class = "err" },
        element("line", { x1 = percent(low), x2 = percent(high), y1 = element.number(middle), y2 = element.number(middle) }),
        line(nil, low, middle - 4, middle + 4), line(nil, high, middle - 4, middle + 4)))
    end
  end
  add(line("lim", x(usable), 18, height - foot))
  add(line("cap", x(device), 4, height - foot))
  add(element("text", { class = "end", x = percent(x(device)), dx = -5, y = 13 }, "the GPU has " .. format.gib(device)))
  add(element("text", { class = "end acc", x = percent(x(usable)), dx = -5, y = 28 }, "limit with headroom " .. format.gib(usable)))
  local step = ticks.step(whole / gib / 5)
  for i = 0, math.floor(whole / gib / step) do
    local at = x(i * step * gib)
    add(element("text", { class = i > 0 and (at > 95 and "end" or "mid") or nil, x = percent(at), y = height - 4 },
                string.format("%.6g", i * step)))
  end
  return element("svg", { width = "100%", height = height, role = "img",
    ["aria-label"] = "Memory of each rank in GiB, stacked; the table below has the numbers" }, shapes)
end

local function legend()
  local entries = {}
  for i, part in ipairs(parts) do
    entries[i] = element("li", nil, element("span", { class = "sw " .. part[2] }), part[3])
  end
  return element("ul", { class = "legend" }, entries)
end

local function numbers(ranks)
  local columns, rows = { { "ranks" } }, {}
  for _, part in ipairs(parts) do columns[#columns + 1] = { part[4] } end
  columns[#columns + 1] = { "total" }
  for i, group in ipairs(alike(ranks)) do
    rows[i] = { ranges(group.ranks), table.unpack(group.cells) }
    rows[i][#rows[i]] = element("b", nil, rows[i][#rows[i]])
  end
  return tables.make(columns, rows, { class = "n", caption = "GiB, ranks with the same numbers together" })
end

function memory.fullest(plan)
  return lists.largest(plan.memory.ranks, function(rank) return rank.total_bytes end)
end

-- "Fullest: 66.5 of 79.6 GiB, 6.8 under the limit; …"
local function said(plan, fullest, left)
  local spare = plan.memory.device_bytes - plan.memory.headroom_bytes - fullest.total_bytes
  local words = string.format("Fullest: rank %d, %s of %s GiB, %s %s the limit", fullest.rank, format.gib(fullest.total_bytes),
                              format.gib(plan.memory.device_bytes), format.gib(math.abs(spare)), spare >= 0 and "under" or "OVER")
  if plan.expected_error then words = words .. string.format("; whisker: error of ±%s",
                                                             format.percent(plan.expected_error.memory_fraction)) end
  if left > 0 then words = words .. string.format("; %d ranks more in the table", left) end
  return words .. "."
end

function memory.section(plan)
  local ranks, fullest = plan.memory.ranks, memory.fullest(plan)
  local rows, left = rows_of(ranks)
  local names, totals = {}, {}
  for i, row in ipairs(rows) do
    names[i], totals[i] = element("span", nil, row[1]), element("span", nil, format.gib(row[2].total_bytes))
  end
  local wide = #ranks > most_alone
  return document.section("Memory of each rank", element.list(
    element("p", nil, said(plan, fullest, left)), legend(),
    element("figure", nil, element("div", { class = wide and "tl mem wide" or "tl mem" },
      element("div", { class = "lab", ["aria-hidden"] = "true" }, names), chart(plan, rows, fullest),
      element("div", { class = "lab r", ["aria-hidden"] = "true" }, totals))),
    numbers(ranks)), { id = "memory" })
end

return memory
