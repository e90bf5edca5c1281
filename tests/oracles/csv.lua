-- SPDX-License-Identifier: Apache-2.0
-- csv.lua: comma-separated values with a heading and quoted cells, as the oracle data have them.

local csv = {}

local function cells(line)
  local list, i = {}, 1
  while i <= #line + 1 do
    local close = line:sub(i, i) == '"' and assert(line:find('"', i + 1, true))
    local stop = close and close + 1 or line:find(",", i, true) or #line + 1
    list[#list + 1] = close and line:sub(i + 1, close - 1) or line:sub(i, stop - 1)
    i = stop + 1
  end
  return list
end

-- → a list of rows: { [heading] = text, … }. Of headings that stand twice the first is kept.
function csv.read(file)
  local headings, list
  for line in io.lines(file) do
    local values = cells((line:gsub("\r$", ""):gsub("^\xEF\xBB\xBF", "")))
    if not headings then
      headings, list = values, {}
    else
      local row = {}
      for i, heading in ipairs(headings) do row[heading] = row[heading] or values[i] end
      list[#list + 1] = row
    end
  end
  return list
end

return csv
