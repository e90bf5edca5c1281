-- SPDX-License-Identifier: Apache-2.0
--[[
cells.lua: what rules can tell apart. The values of each field that some rules read fall into finitely many cells: two values are in the
same cell when every condition says the same of both. So whatever holds for one value of each cell holds for all values, and analysis of
rules is arithmetic on sets of cells (boxes.lua) instead of guessing at inputs.

A dimension is a field, or a comparison of two fields ("tensor_parallel over gpus_per_node"), which has the two cells no and yes.
  space.dims[i]   { name, field (nil: a comparison), cells = { { samples = { value | absent, … }, signature }, … }, … }
  space:box(rule) the cells that a rule's conditions allow, as boxes.lua has them
A rule with a function is opaque: its box is what its conditions allow, and the function may allow less.

Derived: conditions on one field are comparisons with constants and residues modulo constants, so all of them are constant on (an open
interval between two neighbouring constants, or a constant itself) × (a residue modulo their least common multiple); it is enough to try one
value of each, and the engine's own conditions try them.
]]

local boxes = require "pipeplan.analysis.boxes"
local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local impossible = require "pipeplan.analysis.impossible"
local kernels = require "pipeplan.catalog.kernels"
local lists = require "pipeplan.base.lists"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local cells = {}

-- A field that has no value: what a spec leaves open, or what means nothing for a candidate.
local absent = setmetatable({}, { __tostring = function() return "absent" end })
cells.absent = absent

local may_be_absent = { framework = true, network_per_gpu = true, expert_link = true }

-- Residues are told apart as long as there are at most so many: 2, 3, … 16 together are under it.
local MOST_RESIDUES = 5040
local MOST_PIECES = 100000  -- that what a candidate can be may fall into: of more, what is known so far

-- ------------------------------------------------------------------------------------------------------------------------- samples

local function least_common_multiple(a, b)
  local x, y = a, b
  while y ~= 0 do x, y = y, x % y end
  return a // x * b
end

-- Constants that numeric conditions compare with, sorted; and the modulus of their residues, nil when it is too large.
local function constants(list)
  local seen, sorted, modulus = {}, {}, 1
  local function add(value)
    if type(value) == "number" and not seen[value] then
      seen[value] = true
      sorted[#sorted + 1] = value
    end
  end
  for _, condition in ipairs(list) do
    local op = condition.op
    if op == "odd" or op == "even" then
      modulus = modulus and least_common_multiple(modulus, 2)
    elseif op == "multiple_of" or op == "not_multiple_of" then
      local step = math.tointeger(condition.value)
      modulus = modulus and step and step > 0 and least_common_multiple(modulus, step) or nil
    else
      add(condition.value) add(condition.low) add(condition.high)
      for _, value in ipairs(condition.values or {}) do add(value) end
    end
    if modulus and modulus > MOST_RESIDUES then modulus = nil end
  end
  table.sort(sorted)
  return sorted, modulus
end

-- The atoms of a numeric field: constants and the open intervals between them, each with values to try. { low, high, point, samples }.
local function numeric_atoms(field, list)
  local points, modulus = constants(list)
  local least, most = field.low, field.high or math.huge
  local integer = field.type == "integer"
  local atoms = {}

  local function interval(low, high)
    local samples = {}
    local function try(value)
      if not value or value <= low or value >= high or value > most or (least and value < least) then return end
      samples[#samples + 1] = value
    end
    if integer then
      local first = low == -math.huge and (least or 0) or math.floor(low) + 1
      for k = 0, math.max(1, modulus or 1) - 1 do try(first + k) end
      if high < math.huge then
        for k = 1, math.max(1, modulus or 1) do try(math.ceil(high) - k) end
      end
      for power = 3, 14 do try(1 << power) end
    else
      if low == -math.huge then
        try(least or high - 1)
        try(high / 2)
      elseif high == math.huge then
        try(low * 1.05)
        try(low * 2)
        try(low + 1)
      else
        try((low + high) / 2)
      end
    end
    if #samples > 0 then atoms[#atoms + 1] = { low = low, high = high, samples = samples } end
  end

  local low = least and math.min(least, points[1] or least) - 1 or -math.huge
  if not integer and least then low = -math.huge end
  for _, point in ipairs(points) do
    interval(low, point)
    local whole = not integer or math.type(point) == "integer" or math.tointeger(point)
    local reachable = (not least or point >= least) and point <= most and whole
    if reachable then
      atoms[#atoms + 1] = { low = point, high = point, point = true, samples = { integer and math.tointeger(point) or point } }
    end
    low = point
  end
  interval(low, math.huge)
  return atoms, modulus == nil
end

-- The values of a string field: its domain, or those that conditions name and one that none names.
local function named_atoms(field, list)
  local names, seen = {}, {}
  local function add(name)
    if not seen[name] then
      seen[name] = true
      names[#names + 1] = name
    end
  end
  for _, name in ipairs(field.domain or {}) do add(name) end
  if field.name == "alltoall_kernel" then
    add(false)
    for _, name in ipairs(kernels.names) do add(name) end
  end
  for _, condition in ipairs(list) do
    if condition.value ~= nil then add(condition.value) end
    for _, name in ipairs(condition.values or {}) do add(name) end
  end
  if not field.domain and field.name ~= "alltoall_kernel" then add("another " .. field.name) end
  local atoms = {}
  for i, name in ipairs(names) do atoms[i] = { samples = { name } } end
  return atoms
end

local function atoms_of(field, list)
  local atoms, coarse
  if field.type == "boolean" then
    atoms = { { samples = { false } }, { samples = { true } } }
  elseif field.type == "string" then
    atoms = named_atoms(field, list)
  else
    atoms, coarse = numeric_atoms(field, list)
  end
  if may_be_absent[field.name] then atoms[#atoms + 1] = { samples = { absent } } end
  return atoms, coarse
end

-- ----------------------------------------------------------------------------------------------------------------------- dimensions

local function compares_fields(condition)
  return (condition.ref and condition.value == nil) or (condition.low_ref and condition.low == nil)
    or (condition.high_ref and condition.high == nil) or false
end

-- What stands for "the same condition" in two rules.
local function key_of(condition)
  return conditions.text(condition)
end

-- "1010": what each condition says of a value.
local function signature(compiled, name, value)
  local record, bits = {}, {}
  if value ~= absent then record[name] = value end
  for i, condition in ipairs(compiled) do bits[i] = engine.conditions.match(record, { condition }) and "1" or "0" end
  return table.concat(bits)
end
cells.signature = signature

local function field_dimension(field, list)
  local atoms, coarse = atoms_of(field, list)
  local dim = { name = field.name, field = field, conditions = list, compiled = conditions.engine { conditions = list }, atoms = atoms,
                cells = {}, by_signature = {}, coarse = coarse }
  for _, atom in ipairs(atoms) do
    atom.cells = {}
    for _, value in ipairs(atom.samples) do
      local bits = signature(dim.compiled, field.name, value)
      local index = dim.by_signature[bits]
      if not index then
        index = #dim.cells + 1
        dim.cells[index] = { samples = {}, signature = bits }
        dim.by_signature[bits] = index
      end
      atom.cells[index] = true
      table.insert(dim.cells[index].samples, value)
    end
  end
  return dim
end

-- Two fields compared: whether it holds is all that is known of it.
local function comparison_dimension(condition)
  return { name = key_of(condition), conditions = { condition },
           cells = { { samples = {}, signature = "0" }, { samples = {}, signature = "1" } },
           by_signature = { ["0"] = 1, ["1"] = 2 } }
end

-- ---------------------------------------------------------------------------------------------------------------------------- space

local methods = {}
methods.__index = methods

-- The different conditions of some rules: field → list, and those that compare two fields. `also`: rules that count only where all their
-- fields occur in the others.
local function conditions_of(rules, also)
  local by_field, comparisons, seen = {}, {}, {}
  local function add(rule)
    for _, condition in ipairs(rule.conditions) do
      local key = key_of(condition)
      if not seen[key] then
        seen[key] = true
        if compares_fields(condition) then
          comparisons[#comparisons + 1] = condition
        else
          by_field[condition.field] = by_field[condition.field] or {}
          table.insert(by_field[condition.field], condition)
        end
      end
    end
  end
  for _, rule in ipairs(rules) do add(rule) end
  local relevant = {}
  for _, rule in ipairs(also) do
    local all = true
    for _, condition in ipairs(rule.conditions) do all = all and by_field[condition.field] ~= nil end
    if all then relevant[#relevant + 1] = rule end
  end
  for _, rule in ipairs(relevant) do add(rule) end
  return by_field, comparisons, relevant
end

-- cells.space(rules [, never]) → the space in which those rules can be told apart; dimensions in the order of the vocabulary.
-- `never`: rules for what no candidate can be (default: impossible.lua); space.impossible is a list of { rule, box } of those that
-- matter here.
function cells.space(rules, never)
  local by_field, comparisons, relevant = conditions_of(rules, never or impossible)
  local space = setmetatable({ dims = {}, position = {} }, methods)
  local function add(dim)
    dim.of_condition = {}
    for i, condition in ipairs(dim.conditions) do dim.of_condition[key_of(condition)] = i end
    space.dims[#space.dims + 1] = dim
    space.position[dim.name] = #space.dims
  end
  for _, field in ipairs(vocabulary.fields) do
    if by_field[field.name] then add(field_dimension(field, by_field[field.name])) end
  end
  for _, name in ipairs(lists.sorted_keys(by_field)) do
    local label = vocabulary.label(name)
    if label then add(field_dimension(label, by_field[name])) end
  end
  for _, condition in ipairs(comparisons) do add(comparison_dimension(condition)) end
  space.shape = boxes.shape(space.dims)
  space.impossible = {}
  for i, rule in ipairs(relevant) do space.impossible[i] = { rule = rule, box = space:box(rule) } end
  return space
end

-- The cells that a rule's conditions allow; of each dimension all those whose signature says yes to the rule's condition on it.
function methods:box(rule)
  local box = boxes.all(self.shape)
  for _, condition in ipairs(rule.conditions) do
    local key = key_of(condition)
    local at = self.position[compares_fields(condition) and key or condition.field]
    local dim = self.dims[at]
    local bit = dim.of_condition[key]
    boxes.keep(self.shape, box, at, function(index) return dim.cells[index].signature:sub(bit, bit) == "1" end)
  end
  return box
end

-- Of some boxes what a candidate can be; and when that is nothing, why.
function methods:possible(list)
  local left, why = list, {}
  for _, one in ipairs(self.impossible) do
    local before = left
    left = boxes.without(self.shape, left, { one.box })
    if #left > MOST_PIECES then return before, nil end
    if #before ~= #left or before[1] ~= left[1] then why[#why + 1] = one.rule.why end
  end
  return left, #left == 0 and #list > 0 and table.concat(why, ", and ") or nil
end

-- ----------------------------------------------------------------------------------------------------------------------------- text

local function shown(value, field)
  if value == absent then return "absent" end
  return type(value) == "number" and units.format(value, field.unit) or tostring(value)
end

-- A run of neighbouring atoms: "500 or more", "under 100", "over 1 and under 64", "50 to 150". Limits that a field has anyway are left out;
-- nil: there are no others.
local function run_text(first, last, field)
  local least = field.low or -math.huge
  if first == last and first.point then return shown(first.low, field) end
  local low = (first.low > least or not first.point and first.low >= least) and shown(first.low, field)
  local high = last.high < math.huge and shown(last.high, field)
  if low and high then
    if first.point then return low .. (last.point and " to " or " to under ") .. high end
    return "over " .. low .. (last.point and " and at most " or " and under ") .. high
  end
  if low then return first.point and low .. " or more" or "over " .. low end
  return high and (last.point and "at most " or "under ") .. high or nil
end

local function numeric_text(dim, allowed)
  local runs, first, partial = {}, nil, false
  local last
  for _, atom in ipairs(dim.atoms) do
    local all, some = true, false
    for index in pairs(atom.cells) do
      if allowed(index) then some = true else all = false end
    end
    partial = partial or (some and not all)
    if atom.samples[1] == absent then
      if some then runs[#runs + 1] = "absent" end
    elseif some then
      first, last = first or atom, atom
    elseif first then
      runs[#runs + 1], first = run_text(first, last, dim.field), nil
    end
  end
  if first then runs[#runs + 1] = run_text(first, last, dim.field) end
  local text = table.concat(runs, " or ")
  if not partial then return text end
  for index, cell in ipairs(dim.cells) do
    if allowed(index) then return (text ~= "" and text .. ", " or "") .. "such as " .. shown(cell.samples[1], dim.field) end
  end
  return text
end

local function named_text(dim, allowed)
  local names, left = {}, {}
  for index, cell in ipairs(dim.cells) do
    for _, value in ipairs(cell.samples) do
      table.insert(allowed(index) and names or left, shown(value, dim.field))
    end
  end
  if #left > 0 and #left < #names then return "not " .. table.concat(left, ", ") end
  return table.concat(names, " or ")
end

-- A box in words: "gpus 500 or more, expert_parallel 1"; dimensions of which everything is allowed are left out.
function methods:text(box)
  local parts = {}
  for i, dim in ipairs(self.dims) do
    if not boxes.is_full(self.shape, box, i) then
      local function allowed(index) return boxes.has(self.shape, box, i, index) end
      if not dim.field then
        parts[#parts + 1] = (allowed(2) and "" or "not ") .. dim.name
      elseif dim.field.type == "string" or dim.field.type == "boolean" then
        parts[#parts + 1] = dim.name .. " " .. named_text(dim, allowed)
      else
        parts[#parts + 1] = dim.name .. " " .. numeric_text(dim, allowed)
      end
    end
  end
  return #parts > 0 and table.concat(parts, ", ") or "anything"
end

-- The values to try for a field in a box, first those that a person would write; nil when the box does not constrain it.
function methods:samples(box, name)
  local at = self.position[name]
  if not at or boxes.is_full(self.shape, box, at) then return nil end
  local list = {}
  for index, cell in ipairs(self.dims[at].cells) do
    if boxes.has(self.shape, box, at, index) then
      for _, value in ipairs(cell.samples) do list[#list + 1] = value end
    end
  end
  return list
end

-- Is that value of the field inside the box?
function methods:contains(box, name, value)
  local at = self.position[name]
  if not at then return true end
  local index = self.dims[at].by_signature[signature(self.dims[at].compiled, name, value)]
  return index ~= nil and boxes.has(self.shape, box, at, index)
end

return cells
