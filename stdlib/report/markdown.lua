-- SPDX-License-Identifier: Apache-2.0
-- markdown.lua: a plan as Markdown, for a review or a ticket: everything the page says, nothing cut.

local format = require "pipeplan.base.format"
local page = require "pipeplan.report.page"

local markdown = {}

-- What Markdown would read as its own, or a browser as an entity. Underscores inside words (names of rules) are left alone: no dialect
-- emphasises those.
local function escape(words)
  words = words:gsub("[\\`*|<>%[%]~&]", "\\%0"):gsub("%f[%w_]_", "\\_"):gsub("_%f[^%w_]", "\\_")
  return (words:gsub("^([#+-])", "\\%1"):gsub("^(%d+)([.)])", "%1\\%2"))
end

local function cells(list)
  local parts = {}
  for i, cell in ipairs(list) do parts[i] = escape(cell) end
  return "| " .. table.concat(parts, " | ") .. " |"
end

local function table_lines(section, lines)
  local titles, rules = {}, {}
  for i, column in ipairs(section.columns) do
    titles[i] = column[1]
    rules[i] = column[2] and ":--" or "--:"
  end
  lines[#lines + 1] = "**" .. section.label .. "**"
  lines[#lines + 1] = ""
  lines[#lines + 1] = cells(titles)
  lines[#lines + 1] = "| " .. table.concat(rules, " | ") .. " |"
  for _, row in ipairs(section.rows) do lines[#lines + 1] = cells(row) end
  lines[#lines + 1] = ""
end

local function list_lines(section, lines)
  if section.inline or #section.lines == 1 then
    lines[#lines + 1] = "- **" .. section.label .. "**: " .. escape(table.concat(section.lines, "; "))
    return
  end
  lines[#lines + 1] = "- **" .. section.label .. "**"
  for _, words in ipairs(section.lines) do lines[#lines + 1] = "  - " .. escape(words) end
end

function markdown.render(plan)
  local content = page.of(plan)
  local lines = { "# " .. escape(content.subject .. ": " .. content.title), "" }
  local in_list = false
  local sections = table.move(content.sections, 1, #content.sections, 1, {})
  for _, section in ipairs(content.explanation or {}) do sections[#sections + 1] = section end
  for _, section in ipairs(sections) do
    if section.lines then
      list_lines(section, lines)
      in_list = true
    end
    if section.rows then
      if in_list then lines[#lines + 1] = "" end
      table_lines(section, lines)
      in_list = false
    end
  end
  if in_list then lines[#lines + 1] = "" end
  if content.closing then
    lines[#lines + 1] = "## Rollback"
    lines[#lines + 1] = ""
    lines[#lines + 1] = escape(content.closing)
  end
  while lines[#lines] == "" do lines[#lines] = nil end
  return format.page(lines)
end

return markdown
