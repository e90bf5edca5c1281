-- SPDX-License-Identifier: Apache-2.0
-- text.lua: a plan as one page of at most 66 lines of 80 columns that ends with the rollback paragraph, whatever the plan holds.
-- What does not fit is cut where it matters least, and said: "… 7 more, see --format json".

local format = require "pipeplan.base.format"
local page = require "pipeplan.report.page"
local text_of = require "pipeplan.base.text"

local text = {}

text.width, text.height = 80, 66

local label_width = 10
local margin = string.rep(" ", label_width)
local max_lines = 4           -- of one paragraph; the closing one may have more
local max_closing_lines = 10

-- A paragraph as lines beside `label`.
local function paragraph(words, label)
  return format.wrap(words, text.width, format.pad(label, label_width), margin)
end

-- At most `limit` lines of a paragraph.
local function shortened(lines, limit)
  if #lines <= limit then return lines end
  local kept = table.move(lines, 1, limit, 1, {})
  local last = kept[limit]
  kept[limit] = format.cut(format.width(last) < text.width and last .. " …" or last .. "…", text.width)
  return kept
end

-- Width of each column, and of all with the label but without gaps.
local function widths_of(columns, rows)
  local widths, total = {}, label_width
  for i, column in ipairs(columns) do
    widths[i] = format.width(column[1])
    for _, row in ipairs(rows) do widths[i] = math.max(widths[i], format.width(row[i])) end
    total = total + widths[i]
  end
  return widths, total
end

local function longest_word(words)
  local longest = 0
  for word in words:gmatch "%S+" do longest = math.max(longest, format.width(word)) end
  return longest
end

-- A row's last cell behind the others, which are `before`: on the same line, wrapped below itself, or, where a word is too long for that,
-- on lines of its own.
local function with_last(before, cell)
  local room = text.width - format.width(before)
  if format.width(cell) <= room then return { before .. cell } end
  if longest_word(cell) <= room then
    return format.wrap(cell, text.width, before, string.rep(" ", format.width(before)))
  end
  local inner = margin .. "  "
  return { before, table.unpack(format.wrap(cell, text.width, inner, inner)) }
end

-- Titles and cells as lines, a list of them for the titles and for each row: each column as wide as its widest cell, two spaces between
-- them, or one where the page is too narrow for two. A last column of words is never cut.
local function grid(columns, rows)
  local widths, total_width = widths_of(columns, rows)
  local gap = total_width + 2 * (#columns - 1) <= text.width and "  " or " "
  local words = columns[#columns][2]
  local function line(cells)
    local parts = {}
    for i = 1, words and #columns - 1 or #columns do parts[i] = format.pad(cells[i], widths[i], not columns[i][2]) end
    local before = margin .. table.concat(parts, gap)
    return words and with_last(before .. gap, cells[#cells]) or { format.cut(before, text.width) }
  end
  local titles = {}
  for i, column in ipairs(columns) do titles[i] = column[1] end
  local lines = {}
  for i, row in ipairs(rows) do lines[i] = line(row) end
  return line(titles), lines
end

-- A section as pieces that may be cut from its end, and fixed lines that stand before them.
local function measure(section)
  local block = { section = section, pieces = {}, fixed = {} }
  if section.inline then
    for i, line in ipairs(paragraph(table.concat(section.lines, "; "), section.label)) do block.pieces[i] = { line } end
  else
    for i, words in ipairs(section.lines or {}) do block.pieces[i] = paragraph(words, i == 1 and section.label or "") end
    block.paragraphs = #block.pieces
  end
  if section.rows then
    local titles, lines = grid(section.columns, section.rows)
    table.move(titles, 1, #titles, 1, block.fixed)
    block.fixed[1] = format.pad(section.label, label_width) .. titles[1]:sub(label_width + 1)
    table.move(lines, 1, #lines, #block.pieces + 1, block.pieces)
  end
  return block
end

-- The same with paragraphs of at most `limit` lines, all pieces shown.
local function limited(block, limit)
  local pieces = table.move(block.pieces, 1, #block.pieces, 1, {})
  for i = 1, block.paragraphs or 0 do pieces[i] = shortened(pieces[i], limit) end
  return { section = block.section, pieces = pieces, fixed = block.fixed, shown = #pieces }
end

local function height(block)
  local n = #block.fixed
  for i = 1, block.shown do n = n + #block.pieces[i] end
  return n + (block.shown < #block.pieces and 1 or 0)
end

local function total(blocks, others)
  local n, group = others, nil
  for _, block in ipairs(blocks) do
    if block.section.group ~= group and group then n = n + 1 end  -- a blank line between groups
    group = block.section.group
    n = n + height(block)
  end
  return n
end

-- Hides pieces, in the sections of least weight first, until the page fits. Every section keeps what it asks for as long as that fits.
local function shrink(blocks, others)
  local order = {}
  for i, block in ipairs(blocks) do order[i] = block end
  table.sort(order, function(a, b)
    local wa, wb = a.section.weight, b.section.weight
    if wa ~= wb then return wa < wb end
    return a.section.label > b.section.label
  end)
  local lines = total(blocks, others)
  for _, floor in ipairs { "keep", "nothing" } do
    for _, block in ipairs(order) do
      local least = floor == "keep" and math.min(block.section.keep, #block.pieces) or 1
      while block.shown > least and lines > text.height do
        local before = height(block)
        block.shown = block.shown - 1
        lines = lines - before + height(block)
      end
    end
  end
end

local function lay_out(measured, closing, limit)
  local blocks = {}
  for i, block in ipairs(measured) do blocks[i] = limited(block, limit) end
  local others = 2 + (#closing > 0 and #closing + 1 or 0)
  shrink(blocks, others)
  return blocks, total(blocks, others)
end

local function heading(content)
  local subject = format.cut(content.subject, 30)
  local title = format.cut(content.title, text.width - format.width(subject) - 2)
  return title .. format.pad(subject, text.width - format.width(title), true), string.rep("─", text.width)
end

-- The page, ending with a newline.
function text.render(plan)
  local content = page.of(plan)
  local closing = content.closing and shortened(paragraph(content.closing, "rollback"), max_closing_lines) or {}
  local measured = {}
  local blocks, lines_needed
  for i, section in ipairs(content.sections) do measured[i] = measure(section) end
  for limit = max_lines, 1, -1 do
    blocks, lines_needed = lay_out(measured, closing, limit)
    if lines_needed <= text.height then break end
  end
  local lines = { heading(content) }
  local group
  for _, block in ipairs(blocks) do
    if group and block.section.group ~= group then lines[#lines + 1] = "" end
    group = block.section.group
    for _, line in ipairs(block.fixed) do lines[#lines + 1] = line end
    for i = 1, block.shown do
      for _, line in ipairs(block.pieces[i]) do lines[#lines + 1] = line end
    end
    local hidden = #block.pieces - block.shown
    if hidden > 0 then
      lines[#lines + 1] = margin .. "… " .. (block.section.inline and "" or hidden .. " ") .. "more, see --format json"
    end
  end
  if #closing > 0 then
    lines[#lines + 1] = ""
    for _, line in ipairs(closing) do lines[#lines + 1] = line end
  end
  -- Asked for beside the page, and as long as it has to be.
  for _, section in ipairs(content.explanation or {}) do
    lines[#lines + 1] = ""
    for i, words in ipairs(section.lines) do
      for _, line in ipairs(paragraph(words, i == 1 and section.label or "")) do lines[#lines + 1] = line end
    end
  end
  for i, line in ipairs(lines) do
    lines[i] = text_of.without_end(line)
  end
  return format.page(lines)
end

return text
