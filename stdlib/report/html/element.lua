-- SPDX-License-Identifier: Apache-2.0
-- element.lua: HTML by construction: what is text is escaped, what is markup was made here.
--
-- element("p", { class = "sub" }, "a < b", other): attributes stand in the order of their names; true is an attribute without a value,
-- false and nil are none. Children are texts, markup, numbers, or lists of these; nil and false are left out.

local xml = require "pipeplan.report.xml"

local element = {}

local markup = {}
markup.__index = markup

-- A text that is markup already: of this module, never of a plan.
function element.raw(text)
  return setmetatable({ text = text }, markup)
end

local void = { br = true, meta = true, wbr = true }

local function add(parts, child)
  local kind = type(child)
  if getmetatable(child) == markup then parts[#parts + 1] = child.text
  elseif kind == "table" then
    local most = 0
    for at in pairs(child) do most = math.max(most, at) end   -- a list may have holes
    for at = 1, most do add(parts, child[at]) end
  elseif kind == "string" or kind == "number" then
    parts[#parts + 1] = xml.escape(child)
  end
end

-- Several as one, without an element around them.
function element.list(...)
  local parts = {}
  for i = 1, select("#", ...) do add(parts, (select(i, ...))) end
  return element.raw(table.concat(parts))
end

local function make(_, name, attributes, ...)
  local parts, names = { "<" .. name }, {}
  for key in pairs(attributes or {}) do names[#names + 1] = key end
  table.sort(names)
  for _, key in ipairs(names) do
    local value = attributes[key]
    if value == true then parts[#parts + 1] = " " .. key
    elseif value then parts[#parts + 1] = string.format(' %s="%s"', key, xml.escape(value)) end
  end
  parts[#parts + 1] = ">"
  if void[name] then return element.raw(table.concat(parts)) end
  for i = 1, select("#", ...) do add(parts, (select(i, ...))) end
  parts[#parts + 1] = "</" .. name .. ">"
  return element.raw(table.concat(parts))
end

-- A number of a drawing: hundredths are enough.
function element.number(value)
  return (string.format("%.2f", value):gsub("0+$", ""):gsub("%.$", ""))
end

-- A name of rules or fields, which may break where its words do.
function element.name(text)
  local parts = {}
  for part in tostring(text):gmatch "[^_./]*[_./]?" do
    if part ~= "" then
      if #parts > 0 then parts[#parts + 1] = element.raw "<wbr>" end
      parts[#parts + 1] = part
    end
  end
  return make(nil, "code", nil, parts)
end

return setmetatable(element, { __call = make })
