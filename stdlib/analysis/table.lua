-- SPDX-License-Identifier: Apache-2.0
--[[
table.lua: what a decision table can and cannot decide, from its rows' conditions alone. Exact: cells.lua says why a few cells stand for all
values.

  tables.analyse(rules [, never]) → {   never: what cells.space takes it for
    space, rows = { { rule, box, opaque }, … },
    gaps       boxes that no row covers, rows without conditions (catch-alls) left out; catch_all: the row that covers them, or nil
    overlaps   { first, second, box } of rows with different outcomes that can hold together and of which the first wins
    shadowed   { row, by = { rows } }: earlier rows together cover it, it never decides
    redundant  { row, by }: what it decides, the next row that would decide decides alike
    undecided  { row }: too many pieces to tell }

Cost: O(rows² × words) for overlaps; subtraction splits a box into at most one piece per dimension and earlier row, so shadowing could be
exponential; it is given up beyond `LIMIT` pieces and said.
]]

local boxes = require "pipeplan.analysis.boxes"
local cells = require "pipeplan.analysis.cells"

local tables = {}

local LIMIT = 20000
local MOST_OVERLAPS = 500  -- that are told

local function outcome(rule)
  return table.concat(rule.try or { rule.id }, "\0")
end

local function read(rules, never)
  local space, rows = cells.space(rules, never), {}
  for i, rule in ipairs(rules) do
    rows[i] = { rule = rule, box = space:box(rule), opaque = rule.when ~= nil, open = #rule.conditions == 0 and not rule.when }
    rows[i].empty = boxes.is_empty(space.shape, rows[i].box)
  end
  return space, rows
end

-- Boxes of the rows before the i-th that certainly decide where they hold.
local function before(rows, i)
  local list = {}
  for j = 1, i - 1 do
    if not rows[j].opaque and not rows[j].empty then list[#list + 1] = rows[j].box end
  end
  return list
end

local function gaps(space, rows)
  local taken, catch_all = {}, nil
  for _, row in ipairs(rows) do
    if row.open then catch_all = catch_all or row elseif not row.opaque then taken[#taken + 1] = row.box end
  end
  return boxes.without(space.shape, { boxes.all(space.shape) }, taken, LIMIT), catch_all
end

-- Pairs of rows that hold together and do not decide alike; and whether that is not all of them.
local function overlaps(space, rows)
  local list = {}
  for i = 1, #rows do
    for j = i + 1, #rows do
      if #list == MOST_OVERLAPS or not boxes.look(space.shape, 1) then return list, true end
      local common = outcome(rows[i].rule) ~= outcome(rows[j].rule) and boxes.intersect(space.shape, rows[i].box, rows[j].box)
      if common and #space:possible { common } > 0 then list[#list + 1] = { first = rows[i], second = rows[j], box = common } end
    end
  end
  return list
end

-- The earlier rows that take something of a row that is wholly taken.
local function takers(space, rows, i)
  local list, left = {}, { rows[i].box }
  for j = 1, i - 1 do
    if not rows[j].opaque and not rows[j].empty then
      local next_left = {}
      for _, piece in ipairs(left) do boxes.subtract(space.shape, piece, rows[j].box, next_left) end
      local taken = #next_left ~= #left
      for k = 1, #left do taken = taken or left[k] ~= next_left[k] end
      if taken then list[#list + 1] = rows[j] end
      left = next_left
    end
  end
  return list
end

-- What a row decides goes, without it, to the rows after it: is that everywhere the same outcome?
local function redundant(space, rows, i, own)
  local left = own
  for j = i + 1, #rows do
    local row = rows[j]
    local meets = false
    for _, piece in ipairs(left) do meets = meets or boxes.intersect(space.shape, piece, row.box) ~= nil end
    if meets then
      if row.opaque or outcome(row.rule) ~= outcome(rows[i].rule) then return nil end
      left = boxes.without(space.shape, left, { row.box }, LIMIT)
      if not left then return nil end
      if #left == 0 then return row end
    end
  end
  return nil
end

function tables.analyse(rules, never)
  local space, rows = read(rules, never)
  local out = { space = space, rows = rows, shadowed = {}, redundant = {}, undecided = {} }
  out.overlaps, out.more_overlaps = overlaps(space, rows)
  out.gaps, out.catch_all = gaps(space, rows)
  for i, row in ipairs(rows) do
    if not row.empty then
      row.own = boxes.without(space.shape, { row.box }, before(rows, i), LIMIT)
      if not row.own then out.undecided[#out.undecided + 1] = row
      elseif #row.own == 0 then out.shadowed[#out.shadowed + 1] = { row = row, by = takers(space, rows, i) }
      elseif not row.opaque then
        local by = redundant(space, rows, i, row.own)
        if by then out.redundant[#out.redundant + 1] = { row = row, by = by } end
      end
    end
  end
  return out
end

return tables
