-- SPDX-License-Identifier: Apache-2.0
-- table.lua: tables of the page. A column: { title, class = of its cells }; a cell is text, markup, or { content, value = to sort by }.

local element = require "pipeplan.report.html.element"

local tables = {}

local function head(columns, sortable, sorted)
  local cells = {}
  for i, column in ipairs(columns) do
    local title = column[1]
    if sortable then title = element("button", { type = "button" }, title) end
    cells[i] = element("th", { scope = "col", class = column.class, ["aria-sort"] = sorted == i and "ascending" }, title)
  end
  return element("thead", nil, element("tr", nil, cells))
end

-- columns, rows = { { class =, cell, … }, … }; options: class, id, caption, sortable, sorted (the column by which they are).
function tables.make(columns, rows, options)
  local body = {}
  for i, row in ipairs(rows) do
    local cells = {}
    for k, column in ipairs(columns) do
      local cell = row[k]
      local value, content = nil, cell
      if type(cell) == "table" and cell.value ~= nil then value, content = cell.value, cell[1] end
      cells[k] = element(k == (options.heading or 1) and "th" or "td",
                         { scope = k == (options.heading or 1) and "row", class = column.class,
                                                ["data-v"] = type(value) == "number" and string.format("%.6g", value) or value }, content)
    end
    body[i] = element("tr", { class = row.class }, cells)
  end
  return element("table", { class = options.class, id = options.id },
                 options.caption and element("caption", nil, options.caption), head(columns, options.sortable, options.sorted),
                 element("tbody", nil, body))
end

return tables
