-- SPDX-License-Identifier: Apache-2.0
-- text.lua: what patterns do in time that grows with the square of a text's length, done in time that grows with its length: what is read
-- may hold a megabyte of anything. "^%s*(.-)%s*$" looks at each run of spaces from each of its places, "[^/]*$" at each word.

local text = {}

-- Without the spaces at its end.
function text.without_end(given)
  local last = #given
  while last > 0 and given:find("^%s", last) do last = last - 1 end
  return given:sub(1, last)
end

-- Without the spaces around it.
function text.trimmed(given)
  return text.without_end(given:sub((given:match "^%s*()")))
end

-- The parts between commas, without the spaces around each: at least one.
function text.parts(given)
  local parts = {}
  for part in (given .. ","):gmatch "([^,]*)," do parts[#parts + 1] = text.trimmed(part) end
  return parts
end

-- Without the byte order mark that some editors and spreadsheets put before UTF-8.
function text.unmarked(given)
  return given:sub(1, 3) == "\xEF\xBB\xBF" and given:sub(4) or given
end

-- What stands behind the last slash.
function text.base_name(path)
  return path:match "^.*/(.*)$" or path
end

return text
