-- SPDX-License-Identifier: Apache-2.0
-- xml.lua: text in XML 1.0, between tags or in an attribute, for SVG and JUnit. What a reader would not see is a character reference; what
-- XML 1.0 cannot hold at all (most control characters, bytes that are no UTF-8) is shown escaped, as in text.

local visible = require "pipeplan.base.visible"

local xml = {}

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&apos;" }

-- XML 1.0, production [2] Char.
local function can_hold(code)
  return code == 0x9 or code == 0xA or code == 0xD or (code >= 0x20 and code ~= 0xFFFE and code ~= 0xFFFF)
end

local function reference(character)
  local code = utf8.codepoint(character)
  return can_hold(code) and string.format("&#x%X;", code) or visible.line(character)
end

function xml.escape(text)
  text = tostring(text)
  if not utf8.len(text) then text = visible.line(text) end
  return visible.replace(text:gsub('[&<>"\']', entities), reference)
end

return xml
