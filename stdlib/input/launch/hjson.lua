-- SPDX-License-Identifier: Apache-2.0
-- hjson.lua: HJSON, as the Python package hjson 3.1 reads it (https://hjson.github.io/rfc.html): JSON with comments (#, //, /* */), commas
-- that may be left out or stand behind the last item, keys and strings without quotes, and an outermost object without braces.
--
-- hjson.read(text, file) → a node: { kind: object, array, string, number, boolean, null; value; line; entries: of an object, { key, line,
-- node }, each as often as it stands there, of an array its nodes }. What is no HJSON ends as an error of usage. JSON is HJSON.

local failure = require "pipeplan.base.failure"
local text_of = require "pipeplan.base.text"

local hjson = {}

local MOST_DEPTH = 64
local MOST_WORD = 400   -- letters of a number and the blanks behind it, where it ends before its line does

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["'"] = "'", ["\\"] = "\\", ["/"] = "/" }

local function new_reader(text, file)
  local reader = { text = text, at = 1, file = file, line = 1, counted = 1 }

  -- The line of the place that is read; places are asked for in order.
  function reader.line_now()
    for _ in text:sub(reader.counted, reader.at - 1):gmatch "\n" do reader.line = reader.line + 1 end
    reader.counted = math.max(reader.counted, reader.at)
    return reader.line
  end

  function reader.refuse(what) failure.usage("%s:%d: no HJSON, which DeepSpeed reads: %s", file, reader.line_now(), what) end

  function reader.skip()
    while true do
      local next_at = text:match("^%s+()", reader.at) or text:match("^#[^\n]*()", reader.at) or text:match("^//[^\n]*()", reader.at)
      if not next_at and text:sub(reader.at, reader.at + 1) == "/*" then
        local _, stop = text:find("*/", reader.at + 2, true)
        if not stop then reader.refuse "a comment that does not end" end
        next_at = stop + 1
      end
      if not next_at then return text:sub(reader.at, reader.at) end
      reader.at = next_at
    end
  end

  return reader
end

local function quoted(reader)
  local text, quote = reader.text, reader.text:sub(reader.at, reader.at)
  local parts = {}
  reader.at = reader.at + 1
  while true do
    local plain, stop = text:match('^([^"\'\\\n]*)()', reader.at)
    parts[#parts + 1] = plain
    local char = text:sub(stop, stop)
    reader.at = stop + 1
    if char == quote then return table.concat(parts) end
    if char == "" or char == "\n" then
      reader.at = stop
      reader.refuse "a string that does not end on its line"
    end
    if char == "\\" then
      local letter, code = text:sub(stop + 1, stop + 1), text:match("^u(%x%x%x%x)", stop + 1)
      if not code and not escapes[letter] then reader.refuse("'\\" .. letter .. "' in a string") end
      local number, low = code and tonumber(code, 16), text:match("^\\u([dD][c-fC-F]%x%x)", stop + 6)
      reader.at = stop + (code and 6 or 2)
      if number and number >= 0xD800 and number < 0xDC00 and low then   -- two halves of one letter
        number, reader.at = 0x10000 + (number - 0xD800) * 1024 + tonumber(low, 16) - 0xDC00, reader.at + 6
      elseif number and number >= 0xD800 and number < 0xE000 then number = 0xFFFD end
      parts[#parts + 1] = number and utf8.char(number) or escapes[letter]
    else parts[#parts + 1] = char end
  end
end

-- '''…''': over several lines.
local function multiline(reader)
  local start = reader.at + 3
  local from, stop = reader.text:find("'''", start, true)
  if not from then reader.refuse "a string that does not end" end
  reader.at = stop + 1
  return (reader.text:sub(start, from - 1):gsub("^[ \t\r]*\n", ""):gsub("\n$", ""))
end

local words = { ["true"] = { "boolean", true }, ["false"] = { "boolean", false }, null = { "null", nil } }

local function number_of(text)
  if not text:find "^%-?%d+%.?%d*[eE]?[-+]?%d*$" or text:find "^%-?0%d" then return nil end
  return tonumber(text)
end

-- A word, a number, or a string without quotes: which one is known where a comma, a bracket, a comment or the line ends it.
local function bare(reader)
  local text, from = reader.text, reader.at
  if not reader.line_end or reader.line_end < from then reader.line_end = text:find("\n", from, true) or #text + 1 end
  local line_end = reader.line_end
  local at = from
  while at <= line_end do
    local stop = text:find("[,}%]#/\n]", at) or #text + 1
    local char, two = text:sub(stop, stop), text:sub(stop, stop + 1)
    local ends = stop >= line_end or char ~= "/" or two == "//" or two == "/*"
    if ends then
      local word = (stop >= line_end or stop - from < MOST_WORD) and text_of.trimmed(text:sub(from, stop - 1))
      local known, number = words[word], word and number_of(word)
      if known or number then
        reader.at = stop
        return known and known[1] or "number", number or known and known[2]
      end
      if stop >= line_end then
        reader.at = line_end
        return "string", word
      end
    end
    at = stop + 1
  end
end

local node_of   -- forward: nodes hold nodes

local function key_of(reader)
  local char = reader.text:sub(reader.at, reader.at)
  if char == '"' or char == "'" then return quoted(reader) end
  local name, stop = reader.text:match("^([^%s{}%[%],:]+)()", reader.at)
  if not name then reader.refuse(string.format("'%s' where a key is expected", char == "" and "the end" or char)) end
  reader.at = stop
  return name
end

local function object_of(reader, depth, ending)
  local node = { kind = "object", line = reader.line_now(), entries = {} }
  while true do
    local char = reader.skip()
    if char == ending then
      reader.at = reader.at + #ending
      return node
    end
    if char == "" then reader.refuse "an object that does not end" end
    local entry = { line = reader.line_now() }
    entry.key = key_of(reader)
    if reader.skip() ~= ":" then reader.refuse("no ':' behind the key " .. entry.key) end
    reader.at = reader.at + 1
    entry.node = node_of(reader, depth + 1)
    node.entries[#node.entries + 1] = entry
    if reader.skip() == "," then reader.at = reader.at + 1 end
  end
end

local function array_of(reader, depth)
  local node = { kind = "array", line = reader.line_now(), entries = {} }
  while true do
    local char = reader.skip()
    if char == "]" then
      reader.at = reader.at + 1
      return node
    end
    if char == "" then reader.refuse "an array that does not end" end
    node.entries[#node.entries + 1] = node_of(reader, depth + 1)
    if reader.skip() == "," then reader.at = reader.at + 1 end
  end
end

function node_of(reader, depth)
  if depth > MOST_DEPTH then reader.refuse("nested more than " .. MOST_DEPTH .. " deep") end
  local char, line = reader.skip(), reader.line_now()
  if char == "{" or char == "[" then
    reader.at = reader.at + 1
    if char == "{" then return object_of(reader, depth, "}") end
    return array_of(reader, depth)
  end
  if reader.text:sub(reader.at, reader.at + 2) == "'''" then return { kind = "string", value = multiline(reader), line = line } end
  if char == '"' or char == "'" then return { kind = "string", value = quoted(reader), line = line } end
  if char == "" or ("}],:"):find(char, 1, true) then reader.refuse(string.format("'%s' where a value is expected", char)) end
  local kind, value = bare(reader)
  return { kind = kind, value = value, line = line }
end

function hjson.read(text, file)
  local reader = new_reader(text, file)
  local node
  if reader.skip() == "{" then node = node_of(reader, 1) else node = object_of(reader, 1, "") end
  if reader.skip() ~= "" then reader.refuse "more behind the object" end
  return node
end

return hjson
