-- SPDX-License-Identifier: Apache-2.0
-- hf_windows.lua: how far each layer of a config.json attends: windows of the last tokens, chunks. Which layers have one stands in
-- "layer_types" or follows from the family (catalog/windows.lua).

local catalog = require "pipeplan.catalog.windows"

local windows = {}

-- Does a letter or a number say that layer i has a window?
local function by_pattern(self, key, value, i)
  if type(value) == "string" then
    if not value:find "^[LG]+$" then self:complain(key, "letters L and G, or an integer ≥ 1", value) end
    local place = (i - 1) % #value + 1
    return value:sub(place, place) == "L"
  end
  return i % value ~= 0
end

-- Which layers have one, where the file does not list them.
local function usual(self, entry, layers)
  local rule = entry.layers
  if rule == "all" then return function() return true end end
  if type(rule) == "function" then return function(i) return rule(i, self, layers) end end
  if math.type(rule) then return function(i) return i % rule ~= 0 and not (entry.last and i == layers) end end
  local said = self:get(rule)
  local value = type(said) == "string" and said or self:is_null(rule) and 1 or self:size(rule, entry.usual)   -- null: no layer
  return function(i) return by_pattern(self, rule, value, i) end
end

-- Tokens of a window, or nil: none.
local function tokens_of(self, entry, key)
  local said = self:get(key)
  if entry and entry.switch and not self:flag("use_sliding_window", false) then return nil end
  if said == nil and not self:is_null(key) and entry and entry.default then
    self:assume("model." .. key, entry.default, "%s is not in the file; %s means that", key, self.label)
    return entry.default
  end
  if said == nil or self:get "use_sliding_window" == false then return nil end
  local tokens = self:size(key, nil, 0)
  return tokens and tokens > 0 and tokens or nil
end

local of_type = { sliding_attention = "window", chunked_attention = "chunk" }

--[[
→ function(i) → { window = tokens } or { chunk = tokens } of layer i, or nil where it attends to all before it; nil where no layer has one.
name: of the family in the catalogue.
]]
function windows.of(self, name, shape)
  local entry, types = catalog[name], self:get "layer_types"
  if entry and entry.own then return nil end
  local listed, has = type(types) == "table" and #types == shape.layers, {}
  for _, kind in ipairs(listed and types or {}) do has[of_type[kind] or false] = true end
  if listed and not has.window and not has.chunk then return nil end
  local chunk_key = entry and entry.chunk or "attention_chunk_size"
  local window = (has.window or not listed and not (entry and entry.chunk)) and tokens_of(self, entry, "sliding_window") or nil
  local chunk = (has.chunk or not listed and entry and entry.chunk) and tokens_of(self, entry, chunk_key) or nil
  if not window and not chunk then return nil end
  local own = { window = window and { window = window }, chunk = chunk and { chunk = chunk } }
  if listed then return function(i) return own[of_type[types[i]]] or nil end end
  if not entry then
    self:assume("model.sliding_window", "not counted", "which layers of %s have a window is not known: all attend to all", self.label)
    return nil
  end
  local windowed = usual(self, entry, shape.layers)
  return function(i) return windowed(i) and (own.window or own.chunk) or nil end
end

-- What layers have of their own, by `own(i)` or nil, joined with their windows. Where all have the same and nothing else, the shape has it.
function windows.join(shape, own, window)
  if not window then return own end
  if not own then
    local first, alike = window(1), true
    for i = 2, shape.layers do alike = alike and window(i) == first end
    if alike then
      for field, tokens in pairs(first or {}) do shape[field] = tokens end
      return nil
    end
  end
  return function(i)
    local fields, limit = own and own(i), window(i)
    if fields and fields.attention and fields.attention ~= "gqa" then return fields end   -- a mixer, or none
    if not limit then return fields end
    local both = {}
    for key, value in pairs(fields or {}) do both[key] = value end
    for key, value in pairs(limit) do both[key] = value end
    return both
  end
end

return windows
