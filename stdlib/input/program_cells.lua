-- SPDX-License-Identifier: Apache-2.0
-- program_cells.lua: the cells of a schedule program as files have them, and what of them the engine reads (engine/core/schedule_csv.h).
--
-- PyTorch's _PipelineScheduleRuntime._dump_csv writes by itself what compute and communicate: beside 0F3 also 0SEND_F3, 1RECV_F3, 0UNSHARD,
-- 0RESHARD and 0REDUCE_GRAD (torch/distributed/pipelining/schedules.py, _Action; format "compute_comms"). Those cells are taken out for the
-- engine, and returned. A spreadsheet may have saved the file: a byte order mark, quotes around cells, semicolons or tabs between them,
-- lines that end in CR, lines of separators alone behind the last. Lines and columns stay where they are, so that messages name them.

local failure = require "pipeplan.base.failure"
local text_of = require "pipeplan.base.text"

local cells = {}

local MOST_BYTES = 1 << 24   -- of a text that is taken apart here: two million cells
local types = { SEND_F = true, RECV_F = true, SEND_B = true, RECV_B = true, UNSHARD = true, RESHARD = true, REDUCE_GRAD = true }

-- A cell → its type, stage and microbatch (nil without) when it communicates.
local function communication(cell)
  if #cell > 40 then return nil end
  local stage, kind, microbatch = cell:match "^(%d+)(%u[%u_]+)(%d*)$"
  if not stage or not types[kind] or #stage > 9 or #microbatch > 9 then return nil end
  return kind, math.tointeger(tonumber(stage)), math.tointeger(tonumber(microbatch))
end

-- What stands between cells: a comma, unless the first line that has cells has none and has something else. A pair has a semicolon inside.
local function separator(text)
  local line = text:match "[^\r\n]+" or ""
  if line:find(",", 1, true) then return "," end
  if line:find("\t", 1, true) then return "\t" end
  return line:gsub("%([^()]*%)", ""):find(";", 1, true) and ";" or ","
end

-- Without the blanks around it.
local function trimmed(text)
  return text:find "[^ \t]" and text:match "^[ \t]*(.*[^ \t])" or ""
end

-- Calls visit(cell, number) for each cell of a line; a semicolon inside brackets parts none.
local function each_cell(line, between, visit)
  local number, from, at, inside = 0, 1, 1, false
  local pattern = "[" .. between .. "()]"
  while true do
    local found = line:find(pattern, at)
    local what = found and line:sub(found, found)
    if what == "(" or what == ")" then inside = what == "("
    elseif not found or not inside or between ~= ";" then
      number = number + 1
      visit(trimmed(line:sub(from, (found or #line + 1) - 1)), number)
      if not found then return end
      from = found + 1
    end
    at = found + 1
  end
end

-- "0F0" without its quotes, where it has both.
local function unquoted(cell)
  local inside = cell:byte(1) == 34 and cell:byte(-1) == 34 and #cell > 1 and cell:sub(2, -2)
  return inside and trimmed(inside) or cell
end

-- May a text have what the engine does not read?
local function plain(text)
  local tail = text:sub(-300)
  return text_of.unmarked(text) == text and not text:find '["\t]' and not text:find "\r[^\n]" and not text:find "%u%u%u"
    and separator(text) == "," and not tail:find "\n,[,%s]*$" and not tail:find "^[,%s]+$"
end

-- A line → its cells for the engine, in one line; ops gets all cells that are not empty, in order, as cells.read returns them.
local function read_line(line, between, ops)
  local out = {}
  each_cell(line, between, function(cell, number)
    cell = unquoted(cell)
    local kind, stage, microbatch = communication(cell)
    if kind then ops[#ops + 1] = { type = kind, stage = stage, microbatch = microbatch, column = number }
    elseif cell ~= "" then ops[#ops + 1] = cell end
    out[number] = kind and "" or cell
  end)
  return table.concat(out, ",")
end

-- A text → what the engine reads, and, where it communicates, for each line its cells in order: texts of those that the engine reads,
-- tables { type, stage, microbatch, column } of the others.
function cells.read(text, name)
  if text:find "^\xFF\xFE" or text:find "^\xFE\xFF" then
    failure.usage("%s: UTF-16: expected a CSV of plain text or UTF-8", name)
  end
  if text:find "^%s*Rank 0%s" then
    failure.usage("%s: PyTorch's printed grid (a column a rank): expected its CSV, a line a rank (_dump_csv)", name)
  end
  if plain(text) then return text end
  if #text > MOST_BYTES then
    failure.usage("%s: %d bytes: expected at most %d of a program with communication, quotes or tabs", name, #text, MOST_BYTES)
  end
  text = text_of.unmarked(text)
  local between, lines, rows, talks = separator(text), {}, {}, false
  text = text:gsub("\r\n", "\n"):gsub("\r", "\n")
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch "(.-)\n" do
    local ops = {}
    lines[#lines + 1] = read_line(line, between, ops)
    rows[#lines] = ops
    for _, op in ipairs(ops) do talks = talks or type(op) == "table" end
  end
  while #lines > 1 and lines[#lines]:find "^,+$" and #rows[#lines] == 0 do lines[#lines], rows[#lines] = nil, nil end
  return table.concat(lines, "\n") .. "\n", talks and rows or nil
end

return cells
