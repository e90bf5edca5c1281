-- SPDX-License-Identifier: Apache-2.0
-- schema.lua: the JSON Schema (draft 2020-12) of a spec, made from fields.lua. For editors and CI; spec.lua itself says more than a schema
-- can (contradictions, nearest legal values).

local documents = require "pipeplan.base.documents"
local fields = require "pipeplan.input.fields"
local vocabulary = require "pipeplan.vocabulary"
local json = require "pipeplan.base.json"

local schema = {}

-- A quantity as text: digits, then letters of a unit. units.lua knows which.
schema.quantity = { type = "string", pattern = "^\\s*[0-9]+(\\.[0-9]*)?([eE][-+]?[0-9]+)?\\s*[A-Za-zµ%/\\s]*$" }

local function integer(entry)
  return { anyOf = { { type = "integer", minimum = entry.low, maximum = entry.high }, { ["$ref"] = "#/$defs/quantity" },
                     entry.word and { const = entry.word } or nil } }
end

local of_type = {
  integer = integer,
  quantity = function(entry)
    return { anyOf = { { type = "number", minimum = entry.low, maximum = entry.high }, { ["$ref"] = "#/$defs/quantity" } } }
  end,
  string = function() return { type = "string", minLength = 1 } end,
  path = function() return { type = "string", minLength = 1 } end,
  paths = function()
    local path = { type = "string", minLength = 1 }
    return { anyOf = { path, { type = "array", minItems = 1, items = path } } }
  end,
  choice = function(entry) return { enum = entry.domain } end,
  kernel = function() return { anyOf = { { type = "string", minLength = 1 }, { const = false } } } end,
  flag = function() return { type = "boolean" } end,
  integers = function(entry)
    return { type = "array", minItems = 1, maxItems = entry.most, items = { type = "integer", minimum = entry.low, maximum = entry.high } }
  end,
  layout = function()
    local stage = { type = "array", items = { enum = { "embedding", "decoder", "mtp", "loss" } } }
    return { anyOf = { { type = "string", minLength = 1 }, { type = "array", minItems = 1, items = stage } } }
  end,
  recompute = function()
    return { anyOf = { { enum = { "none", "selective", "full" } }, { type = "array", items = { enum = fields.recompute_modules } } } }
  end,
  kernels = function()
    return { anyOf = { { const = "none" }, { type = "array", items = { enum = fields.unfused_kernels } } } }
  end,
  labels = function()
    return { type = "object", additionalProperties = { type = "string", minLength = 1 },
             propertyNames = { pattern = "^[A-Za-z0-9][A-Za-z0-9_]*$" } }
  end,
  batch = function(batch)
    local count = { anyOf = { { type = "integer", minimum = batch.low, maximum = batch.high }, { ["$ref"] = "#/$defs/quantity" } } }
    local first = { anyOf = { { type = "number", minimum = 0 }, { ["$ref"] = "#/$defs/quantity" } } }
    local entry = { type = "array", prefixItems = { first, count }, minItems = 2, maxItems = 2 }
    local ramp = { type = "array", minItems = 1, maxItems = vocabulary.most.segments, items = entry }
    return { anyOf = { count.anyOf[1], count.anyOf[2], ramp } }
  end,
  model = function() return { anyOf = { { type = "string", minLength = 1 }, { type = "object" } } } end,
}

local function group(name)
  local properties, required = {}, {}
  for key, entry in pairs(fields.groups[name]) do
    if type(entry) == "string" then
      properties[key] = group(entry)
    else
      properties[key] = of_type[entry.type](entry)
      properties[key].description = fields.meaning(entry)
    end
  end
  if name == "" then properties["$schema"] = { type = "string" } end
  return { type = "object", additionalProperties = false, properties = properties, required = #required > 0 and required or nil }
end

-- The schema as a table. Nothing is required: a spec may be completed by further files and options.
function schema.spec()
  local result = group ""
  result["$schema"], result["$id"] = "https://json-schema.org/draft/2020-12/schema", documents.id "spec"
  result.title = "pipeplan spec"
  result["$defs"] = { quantity = schema.quantity }
  return result
end

-- As JSON text.
function schema.text()
  return json.encode(schema.spec(), { indent = 2 }) .. "\n"
end

return schema
