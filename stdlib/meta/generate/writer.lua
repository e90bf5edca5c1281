-- SPDX-License-Identifier: Apache-2.0
-- writer.lua: what the definition files share: lines, classes, and fields that read as LuaLS wants them.

local writer = {}

writer.__index = writer

-- A new file that says what it was made from.
function writer.new(subject)
  local self = setmetatable({ lines = {} }, writer)
  self:add("---@meta _")
  self:add("")
  self:add("-- %s", subject)
  self:add("-- Made by scripts/generate-meta for LuaLS; a test compares. Edit what it is made from, not this file.")
  return self
end

function writer:add(format, ...)
  self.lines[#self.lines + 1] = select("#", ...) > 0 and string.format(format, ...) or format
end

function writer:text()
  return table.concat(self.lines, "\n") .. "\n"
end

-- A comment of one or more sentences.
function writer:comment(text)
  for line in text:gmatch("[^\n]+") do self:add("--- %s", line) end
end

-- `name` of a class, and the classes it takes fields from.
function writer:class(name, parents, meaning)
  self:add("")
  if meaning then self:comment(meaning) end
  self:add("---@class %s%s", name, parents and #parents > 0 and ": " .. table.concat(parents, ", ") or "")
end

function writer:field(name, type, optional, meaning)
  self:add("---@field %s%s %s%s", name, optional and "?" or "", type, meaning and meaning ~= "" and " " .. meaning or "")
end

-- A choice of names. options: `meanings` by name; `open` lets any other string through.
function writer:alias(name, values, meaning, options)
  local meanings = options and options.meanings or {}
  self:add("")
  self:comment(meaning)
  self:add("---@alias %s", name)
  for _, value in ipairs(values) do self:add("---| %q%s", value, meanings[value] and " # " .. meanings[value] or "") end
  if options and options.open then self:add("---| string") end
end

-- "≥ 1", "0 … 1", or nil.
function writer.range(low, high)
  if low and high then return string.format("%.14g … %.14g", low, high) end
  if low then return string.format("≥ %.14g", low) end
  if high then return string.format("≤ %.14g", high) end
  return nil
end

return writer
