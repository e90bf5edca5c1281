-- SPDX-License-Identifier: Apache-2.0
--[[
lua_text.lua: the text of a Lua file as the words that Lua reads in it (Lua 5.4 Reference Manual, 3.1). Nothing is parsed: of a text that is
no Lua the words mean nothing, and it still ends, in time that grows with the text's length.

  for kind, start, stop in lua_text.words(text)
    kind  "name" (keywords too), "number", "string", "comment", "symbol"
  lua_text.code_only(text) → a copy, byte for byte, in which comments and what stands in quotes are blank; the quotes stay
]]

local lua_text = {}

local SYMBOLS = { "^%.%.%.", "^%.%.", "^<<", "^>>", "^//", "^[=~<>]=", "^::" }  -- of several bytes, the longest first

-- Where what begins with a quote ends: with the same quote, or with the line where that is missing. An escape may be an end of line, or \z
-- and all the space behind it.
local function quoted(text, start)
  local stop, wanted = start, "[\\\r\n" .. text:sub(start, start) .. "]"
  while true do
    stop = text:find(wanted, stop + 1)
    if not stop then return #text end
    local byte = text:sub(stop, stop)
    if byte == "\r" or byte == "\n" then return stop - 1 end
    if byte ~= "\\" then return stop end
    stop = select(2, text:find("^z%s*", stop + 1)) or select(2, text:find("^\r?\n", stop + 1)) or stop + 1
  end
end

-- Where what stands between long brackets ends; nil where none begin.
local function long(text, start)
  local level = text:match("^%[(=*)%[", start)
  return level and (select(2, text:find("]" .. level .. "]", start + #level + 2, true)) or #text)
end

local function number(text, start)
  local exponent = text:find("^0[xX]", start) and "^[pP][+-]" or "^[eE][+-]"
  local stop = start
  while true do
    local next_stop = select(2, text:find(exponent, stop + 1)) or select(2, text:find("^[%w_.]", stop + 1))
    if not next_stop then return stop end
    stop = next_stop
  end
end

local function symbol(text, start)
  for _, pattern in ipairs(SYMBOLS) do
    local stop = select(2, text:find(pattern, start))
    if stop then return stop end
  end
  return start
end

local function word(text, start)
  local stop = select(2, text:find("^[%a_][%w_]*", start))
  if stop then return "name", stop end
  if text:find("^%.?%d", start) then return "number", number(text, start) end
  if text:find("^[\"']", start) then return "string", quoted(text, start) end
  if text:find("^%-%-", start) then
    return "comment", long(text, start + 2) or (text:find("[\r\n]", start) or #text + 1) - 1
  end
  stop = long(text, start)
  if stop then return "string", stop end
  return "symbol", symbol(text, start)
end

function lua_text.words(text)
  local at = 1
  return function()
    local start = text:find("%S", at)
    if not start then return nil end
    local kind, stop = word(text, start)
    at = stop + 1
    return kind, start, stop
  end
end

local function blank(part) return (part:gsub("[^\n]", " ")) end

function lua_text.code_only(text)
  local out, at = {}, 1
  for kind, start, stop in lua_text.words(text) do
    if kind == "comment" or kind == "string" then
      out[#out + 1] = text:sub(at, start - 1)
      local part = text:sub(start, stop)
      out[#out + 1] = kind == "comment" and blank(part) or part:sub(1, 1) .. blank(part:sub(2, -2)) .. (#part > 1 and part:sub(-1) or "")
      at = stop + 1
    end
  end
  out[#out + 1] = text:sub(at)
  return table.concat(out)
end

return lua_text
