-- model.lua: the field `model` of a spec: a Hugging Face config.json, or a shape written inline.

local engine = require "engine"
local failure = require "pipeplan.failure"
local fields = require "pipeplan.input.fields"
local hf = require "pipeplan.input.hf_config"
local json = require "pipeplan.input.json"
local units = require "pipeplan.input.units"

local model = {}

-- "specs/a.json" → "specs/", "a.json" → "".
function model.directory_of(file)
  return file:match("^(.*/)[^/]*$") or ""
end

-- The path that was given in a field, relative to where it was given.
function model.resolve(at)
  if at.value:sub(1, 1) == "/" then return at.value end
  return at.base .. at.value
end

-- Does a table look like a config.json of Hugging Face rather than like our own shape?
local function is_config(object)
  return object.model_type ~= nil or object.architectures ~= nil or object.num_hidden_layers ~= nil
end

local function read_file(at)
  local file = model.resolve(at)
  local handle, problem = io.open(file, "rb")
  if not handle then
    failure.usage("%s: %s is %s: %s cannot be read: %s", at.origin, at.shown, fields.show(at.value), file,
                  problem:match(": ([^:]+)$") or problem)
  end
  handle:close()
  local config = json.read(file)
  if type(config) ~= "table" or config == json.null or json.is_array(config) then
    failure.usage("%s: holds %s: expected the config.json of a model", file, fields.show(config))
  end
  return hf.read(config, file), file
end

-- A shape whose numbers may have units: "671B", "128Ki".
local function read_inline(at)
  local object = {}
  for key, value in pairs(at.value) do
    if value == json.null then failure.usage("%s: model.%s is null: leave it out when it has no value", at.origin, key) end
    if type(value) == "string" and value:match("^%s*[-+]?%d") and key ~= "name" then
      local number, problem = units.parse(value, "1")
      if not number then failure.usage("%s: model.%s is %s: %s", at.origin, key, fields.show(value), problem) end
      value = number
    end
    object[key] = value
  end
  if is_config(object) then return hf.read(object, at.origin) end
  return hf.inline(object, at.origin)
end

-- The model of a request. at: where the field was given.
function model.read(at, request)
  local found, file
  if type(at.value) == "string" then found, file = read_file(at) else found = read_inline(at) end
  local totals = engine.model.parameters(found.shape)
  for _, assumption in ipairs(found.assumptions or {}) do table.insert(request.assumptions, assumption) end
  return {
    name = found.name or "inline", architecture = (found.shape.experts or 0) > 0 and "moe" or "dense", shape = found.shape,
    total_parameters = totals.total, active_parameters = totals.active,
    active_parameters_without_embedding = totals.active_without_embedding,
    layers = found.shape.layers, max_positions = found.max_positions, config_file = file,
  }
end

return model
