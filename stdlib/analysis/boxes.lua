-- SPDX-License-Identifier: Apache-2.0
-- boxes.lua: sets of cells of several dimensions. A box allows some cells of each dimension; what is not a box is a list of disjoint boxes.
-- A box is a list of 64-bit words: dimension after dimension, a bit per cell. Everything costs O(words) but subtraction, which is
-- O(words × dimensions).

local boxes = {}

-- Looks at boxes that are spent on a shape before what may be given up is: seconds, where rules fall into pieces without end.
local MOST_LOOKS = 400000

-- boxes.shape{ { cells = … }, … }: where each dimension's words are, and the mask of the last. `left`: looks that are not spent.
function boxes.shape(dims)
  local shape, words = {}, 0
  for i, dim in ipairs(dims) do
    local count = math.max(1, (#dim.cells + 63) // 64)
    local rest = #dim.cells - 64 * (count - 1)
    shape[i] = { first = words + 1, last = words + count, mask = rest == 64 and ~0 or (1 << rest) - 1, cells = #dim.cells }
    words = words + count
  end
  shape.words, shape.left = words, MOST_LOOKS
  return shape
end

-- Everything.
function boxes.all(shape)
  local box = {}
  for _, dim in ipairs(shape) do
    for w = dim.first, dim.last - 1 do box[w] = ~0 end
    box[dim.last] = dim.mask
  end
  return box
end

function boxes.has(shape, box, dim, index)
  return box[shape[dim].first + (index - 1) // 64] >> ((index - 1) % 64) & 1 == 1
end

-- Leaves in a dimension only the cells for which `wanted(index)` says yes.
function boxes.keep(shape, box, dim, wanted)
  for index = 1, shape[dim].cells do
    if boxes.has(shape, box, dim, index) and not wanted(index) then
      local w = shape[dim].first + (index - 1) // 64
      box[w] = box[w] & ~(1 << (index - 1) % 64)
    end
  end
end

local function is_empty_in(dim, box)
  for w = dim.first, dim.last do
    if box[w] ~= 0 then return false end
  end
  return true
end

function boxes.is_empty(shape, box)
  for _, dim in ipairs(shape) do
    if is_empty_in(dim, box) then return true end
  end
  return false
end

function boxes.is_full(shape, box, dim)
  local at = shape[dim]
  for w = at.first, at.last - 1 do
    if box[w] ~= ~0 then return false end
  end
  return box[at.last] == at.mask
end

-- What both allow; nil when that is nothing.
function boxes.intersect(shape, a, b)
  local out = {}
  for _, dim in ipairs(shape) do
    local any = false
    for w = dim.first, dim.last do
      local word = a[w] & b[w]
      out[w] = word
      any = any or word ~= 0
    end
    if not any then return nil end
  end
  return out
end

function boxes.equal(shape, a, b)
  for w = 1, shape.words do
    if a[w] ~= b[w] then return false end
  end
  return true
end

-- Appends to `out` what of `a` is left without `b`, as disjoint boxes: at most one per dimension.
function boxes.subtract(shape, a, b, out)
  local common = boxes.intersect(shape, a, b)
  if not common then
    out[#out + 1] = a
    return
  end
  for i, dim in ipairs(shape) do
    local piece, any = {}, false
    for w = dim.first, dim.last do
      local word = a[w] & ~b[w]
      piece[w] = word
      any = any or word ~= 0
    end
    if any then
      for j = 1, i - 1 do
        for w = shape[j].first, shape[j].last do piece[w] = common[w] end
      end
      for j = i + 1, #shape do
        for w = shape[j].first, shape[j].last do piece[w] = a[w] end
      end
      out[#out + 1] = piece
    end
  end
end

-- Spends looks; false when there are none left.
function boxes.look(shape, count)
  shape.left = shape.left - count
  return shape.left >= 0
end

-- Of a list of boxes what is left without those of another list; nil when it falls into more than `limit` pieces, or looks have run out.
function boxes.without(shape, list, taken, limit)
  for _, box in ipairs(taken) do
    if limit and not boxes.look(shape, #list) then return nil end
    local left = {}
    for _, piece in ipairs(list) do boxes.subtract(shape, piece, box, left) end
    list = left
    if #list == 0 then return list end
    if #list > (limit or math.huge) then return nil end
  end
  return list
end

return boxes
