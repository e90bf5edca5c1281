-- SPDX-License-Identifier: Apache-2.0
-- model.lua: the field `model` of a spec: a Hugging Face config.json, or a shape written inline.

local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local files = require "pipeplan.input.files"
local json = require "pipeplan.base.json"
local units = require "pipeplan.base.units"

local model = {}

-- Does a table look like a config.json of Hugging Face rather than like our own shape?
local function is_config(object)
  return object.model_type ~= nil or object.architectures ~= nil or object.num_hidden_layers ~= nil
end

-- Python writes what JSON has no number for: Infinity, NaN, 1e308. No size is one, so that each is as good as null.
local function without_infinities(text)
  local parts, from = {}, 1
  while true do
    local quote = text:find('"', from, true)
    local outside = text:sub(from, (quote or 0) - 1)
    outside = outside:gsub("%-?Infinity", "null    "):gsub("NaN", "null"):gsub("%-?%d[%d.]*[eE]%+?3%d%d", "null ")
    parts[#parts + 1] = outside
    if not quote then return table.concat(parts) end
    local stop = quote
    repeat
      stop = text:find('["\\]', stop + 1)
      if stop and text:byte(stop) == 92 then stop = stop + 1 elseif stop then break end
    until not stop
    parts[#parts + 1] = text:sub(quote, stop or #text)
    if not stop then return table.concat(parts) end
    from = stop + 1
  end
end

local function read_file(at, tower)
  local file = files.readable(at)
  local text = json.text(file)
  if not text:find("%S") then failure.usage("%s: empty file, expected JSON", file) end
  local config = json.decode(without_infinities(text), file == "-" and "standard input" or file)
  if type(config) ~= "table" or config == json.null or json.is_array(config) then
    failure.usage("%s: holds %s: expected the config.json of a model", file, fields.show(config))
  end
  return require("pipeplan.input.hf_config").read(config, file, tower), file
end

-- A shape whose numbers may have units: "671B", "128Ki". What no key or value of a shape can look like never reaches whoever reads shapes.
local function read_inline(at, tower)
  local object, keys = {}, {}
  for key in pairs(at.value) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local value = at.value[key]
    local function complain(format, ...)
      failure.usage("%s: model.%s is %s: " .. format, at.origin, key, fields.show(value), ...)
    end
    if #key > 60 or key:find("%c") then
      failure.usage("%s: model has the key %s: expected the name of a size", at.origin, fields.show(key))
    end
    if value == json.null then complain("leave it out when it has no value") end
    if type(value) == "string" and (#value > 200 or value:find("%c")) then complain("expected a name or a number") end
    if type(value) == "string" and value:match("^%s*[-+]?%d") and key ~= "name" then
      local number, problem = units.parse(value, "1")
      if not number then complain("%s", (problem:gsub(", got .*$", ""))) end
      value = number
    end
    object[key] = value
  end
  if is_config(object) then return require("pipeplan.input.hf_config").read(object, at.origin, tower) end
  return require("pipeplan.input.inline_shape").read(object, at.origin, tower)
end

-- The model of a request. at: where the field was given. tower: training.tower, if it is given. What was assumed for it joins
-- request.assumptions, its warnings request.warnings.
function model.read(at, request, tower)
  local found, file
  if type(at.value) == "string" then found, file = read_file(at, tower) else found = read_inline(at, tower) end
  for _, assumption in ipairs(found.assumptions or {}) do table.insert(request.assumptions, assumption) end
  for _, warning in ipairs(found.warnings or {}) do table.insert(request.warnings, warning) end
  return {
    name = found.name or "inline", family = found.family, architecture = found.architecture, shape = found.shape,
    total_parameters = found.total_parameters, active_parameters = found.active_parameters,
    active_parameters_without_embedding = found.active_parameters_without_embedding, mtp_parameters = found.mtp_parameters,
    tower_parameters = found.tower_parameters,
    layers = found.layers, max_positions = found.max_positions, max_domains = found.max_domains, config_file = file,
  }
end

return model
