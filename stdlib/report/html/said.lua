-- SPDX-License-Identifier: Apache-2.0
-- said.lua: what the page in text says (report/page.lua) and nothing else of this page shows: what bears on the decision in view, the
-- rest folded. A section that page.lua gets stands here by itself, so that neither page leaves out what the other says.

local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local report = require "pipeplan.report.page"

local said = {}

-- Sections of the text that a picture, a table or a list of this page shows whole.
local elsewhere = {}
for _, label in ipairs { "faster", "loosened", "site", "warning", "note", "ramp", "stages", "memory", "others", "assumed", "policy",
                         "because", "instead", "to fit", "decided", "fired", "did not", "hidden", "nearest", "figures" } do
  elsewhere[label] = true
end

local in_view = { fewest = true, wanted = true, saves = true, costs = true, next = true, why = true }

local function row(section)
  if section.inline then return { element("dt", nil, section.label), element("dd", nil, table.concat(section.lines, "; ")) } end
  local cells = { element("dt", nil, section.label) }
  for i, line in ipairs(section.lines) do cells[i + 1] = element("dd", nil, line) end
  return cells
end

local function list(rows) return #rows > 0 and element("dl", { class = "plan" }, rows) or nil end

-- shown: more labels of sections that the page shows whole.
function said.section(plan, shown)
  local content, seen, rest = report.of(plan), {}, {}
  for _, sections in ipairs { content.sections, content.explanation or {} } do
    for _, section in ipairs(sections) do
      local label = section.label
      if not elsewhere[label] and not shown[label] then table.insert(in_view[label] and seen or rest, row(section)) end
    end
  end
  if #seen + #rest == 0 then return nil end
  return document.section("In words", element.list(list(seen), #rest > 0 and document.folded("What the page in text says beside that",
                                                                                             list(rest))), { id = "said" })
end

return said
