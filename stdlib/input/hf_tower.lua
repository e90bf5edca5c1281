-- SPDX-License-Identifier: Apache-2.0
-- hf_tower.lua: the tower of images in a multimodal config.json: its parameters, counted exactly, or refused by name. What each family's
-- holds stands in catalog/towers.lua.

local catalog = require "pipeplan.catalog.towers"
local families = require "pipeplan.catalog.families"
local json = require "pipeplan.base.json"
local reader = require "pipeplan.input.hf_reader"

local given = reader.given

-- The view of one object of the file that catalog/towers.lua counts from.
local view = {}
view.__index = view

local function as_list(names) return type(names) == "table" and names or { names } end

function view:size(names, otherwise)
  names = as_list(names)
  for _, name in ipairs(names) do
    if self.reader:is_null(name) then self.reader:complain(name, "an integer ≥ 1", self.reader.config[name]) end
  end
  local value = self.reader:size_of(names)
  if not value and not self.taken[names[1]] then
    self.taken[names[1]] = otherwise
    self.taken[#self.taken + 1] = string.format("%s %d", names[1], otherwise)
  end
  return value or otherwise
end

function view:flag(name, otherwise)
  if self.reader:is_null(name) then self.reader:complain(name, "true or false", self.reader.config[name]) end
  return self.reader:flag(name, otherwise)
end

function view:number(name, otherwise)
  local value = self.reader:get(name)
  if value == nil and self.reader:is_null(name) then self.reader:complain(name, "a number > 0", self.reader.config[name]) end
  value = value == nil and otherwise or value
  if math.type(value) == nil or value <= 0 or value > 1000 then self.reader:complain(name, "a number > 0, at most 1000", value) end
  return value
end

function view:is_list(name)
  local value = given(self.reader.config[name])
  return type(value) == "table" and json.is_array(value)
end

function view:length(name, otherwise)
  if self.reader:is_null(name) then self.reader:complain(name, "a list of integers", self.reader.config[name]) end
  local list = self.reader:integers(name)
  return list and #list or otherwise
end

function view:pair(name, otherwise)
  local list = self:length(name, 2) == 2 and (self.reader:integers(name) or { otherwise, otherwise }) or {}
  if #list ~= 2 or math.min(table.unpack(list)) < 1 or math.max(table.unpack(list)) > 64 then
    self.reader:complain(name, "two integers from 1 to 64", self.reader.config[name])
  end
  return list[1] * list[2]
end

function view:get(name) return self.reader:get(name) end
function view:expect(name, value, feature)
  if self.reader:get(name) ~= nil then self.reader:expect(name, value, feature) end
end
function view:refuse(feature) self.reader:refuse(feature) end
function view:quiet(names)
  for name in names:gmatch "%S+" do self.reader.seen[name] = true end
end

local tower = {}

-- What a spec says of it to plan the text model alone.
tower.otherwise = 'leave the tower out: "training": { "tower": "none" }'

-- Larger than any that there is; sizes of the file are multiplied before the engine looks at them.
local MOST = 1e12

-- Which of the catalogue's: by the file's model_type, else by that of vision_config.
local function family_of(self)
  local outer, inner = given(self.outer.model_type), given(self.outer.vision_config.model_type)
  for _, name in ipairs { outer or false, type(inner) == "string" and inner:gsub("_vision$", "") or false } do
    if type(name) == "string" and type(catalog[name]) == "function" then return name end
  end
end

--[[
Parameters of the tower of images with its projector, of a file that tells of one. self: the reader of the text model; hidden: its width.
Raises a usage failure for a tower that cannot be counted and for keys that may change it.
]]
function tower.count(self, hidden)
  local images = families.towers[1]
  local function refuse(what, key) self:part(nil, tower.otherwise):refuse(string.format("%s ('%s')", what, key)) end
  for _, told in ipairs(self:towers()) do
    if told ~= images then refuse(told[2], told[1]) end
  end
  local name = family_of(self)
  if not name then refuse(images[2] .. " of a form that is not known", images[1]) end
  local taken = {}
  local beside = setmetatable({ reader = self:part(nil, tower.otherwise), taken = taken }, view)
  local inside = setmetatable({ reader = self:part("vision_config", tower.otherwise), taken = taken, beside = beside }, view)
  local parameters = catalog[name](inside, hidden)
  inside.reader:check_unread { "model_type" }
  beside.reader.seen.tie_word_embeddings = true   -- of the text model
  if self.prefix ~= "" then beside.reader:check_beside(self) end
  for seen in pairs(beside.reader.seen) do self.seen[seen] = true end   -- of a file that keeps both in one object
  if math.type(parameters) ~= "integer" or parameters < 1 or parameters > MOST then
    inside.reader:refuse(string.format("a tower of %.3g parameters", parameters))
  end
  if #taken > 0 then
    self:assume("model.vision_config", table.concat(taken, ", "), "not in the file; the class of %s means that", self.label)
  end
  return parameters
end

return tower
