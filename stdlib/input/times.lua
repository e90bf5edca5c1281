-- SPDX-License-Identifier: Apache-2.0
-- times.lua: what the actions of a schedule take: --times, as F,I,W[,FB] or as a JSON file, in seconds and bytes. Read in two steps, for
-- how long a list must be depends on the schedule: times.read knows numbers and units; times.check stages, chunks and ranks.

local documents = require "pipeplan.base.documents"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local units = require "pipeplan.base.units"

local times = {}

-- What numbers of a unit may be. Wide, but no sum or quotient of such numbers overflows, or vanishes: what takes time at all takes at
-- least a femtosecond, and what has a size at least a byte.
local ranges = { second = { 0, 1e9 }, byte = { 0, 1e18 }, ["byte/s"] = { 1, 1e18 }, fraction = { 0.001, 1000 } }
local least = { second = 1e-15, byte = 1 }
local max_pairs = 1 << 27   -- of stages, for which schedule:simulate has a table

-- Fields of a times file. shape: one number ("number"); a number for all, or a list with one per stage ("stages") or rank ("ranks");
-- "pairs": as stages, or for each stage a list with one per chunk of its rank; or an object with fields of its own, instead of which
-- number = true allows one number.
local extra = {
  { name = "F", shape = "number", unit = "second", meaning = "forward" },
  { name = "I", shape = "number", unit = "second", meaning = "backward for the input" },
  { name = "W", shape = "number", unit = "second", meaning = "backward for the weights" },
  { name = "B", shape = "number", unit = "second", meaning = "the whole backward in one action; default I + W" },
}
times.fields = {
  { name = "F", shape = "stages", unit = "second", required = true, meaning = "forward of one microbatch" },
  { name = "I", shape = "stages", unit = "second", required = true, meaning = "its backward for the input" },
  { name = "W", shape = "stages", unit = "second", required = true, meaning = "its backward for the weights" },
  { name = "B", shape = "stages", unit = "second", meaning = "its whole backward in one action; default I + W" },
  { name = "FB", shape = "pairs", unit = "second",
    meaning = "a forward overlapped with a whole backward, by the stage that runs forward; as a list of lists also by the chunk of its " ..
              "rank, in the order of stages, that runs backward; default F + B" },
  { name = "first_stage", shape = extra, unit = "second", meaning = "what the first stage takes beside F, I and W (embedding)" },
  { name = "last_stage", shape = extra, unit = "second", meaning = "what the last stage takes beside F, I and W (head and loss)" },
  { name = "rank_speed", shape = "ranks", unit = "fraction", meaning = "of each rank; at 0.5 its work takes twice as long" },
  { name = "launch", shape = "number", unit = "second", meaning = "what each action takes beside its work" },
  { name = "p2p", unit = "second", number = true, meaning = "a hop between ranks: seconds, or latency + bytes / bandwidth", shape = {
    { name = "latency", shape = "number", unit = "second", meaning = "of a message; default 0" },
    { name = "bandwidth", shape = "number", unit = "byte/s", required = true, meaning = "of the link, one direction" },
    { name = "bytes", shape = "number", unit = "byte", required = true, meaning = "of a message" },
  } },
  { name = "activation_bytes", shape = "stages", unit = "byte", meaning = "what a rank keeps of one microbatch from F to B, or to I" },
  { name = "pending_bytes", shape = "stages", unit = "byte", meaning = "what it keeps from I to W; default activation_bytes" },
}

-- ------------------------------------------------------------------------------------------------------------------ numbers and units

-- A number in the field's unit. `at`: where it stands, for the message.
local function quantity(value, field, at)
  local number, problem
  if value == json.null then problem = "expected " .. units.expected(field.unit) .. ", got null"
  else number, problem = units.parse(value, field.unit) end
  local low, high = table.unpack(ranges[field.unit])
  local smallest = least[field.unit] or low
  if not problem and (number < low or number > high or number > 0 and number < smallest) then
    local or_none = low < smallest and ", 0 or" or ""
    problem = string.format("expected %s%s from %g to %g, got %s; nearest: %g", units.expected(field.unit), or_none, smallest, high,
                            tostring(value), math.max(smallest, math.min(number, high)))
  end
  if problem then failure.usage("%s: %s", at, problem) end
  return number
end

local read_object

local function read_field(value, field, at)
  if type(field.shape) == "table" then
    if field.number and (type(value) ~= "table" or value == json.null) then return quantity(value, field, at) end
    return read_object(value, field.shape, at .. ".")
  end
  if field.shape == "number" or not json.is_array(value) then return quantity(value, field, at) end
  if #value == 0 then failure.usage("%s: an empty list", at) end
  local list = {}
  for i, entry in ipairs(value) do
    local where = string.format("%s[%d]", at, i - 1)
    if field.shape == "pairs" and json.is_array(entry) then list[i] = read_field(entry, { shape = "stages", unit = field.unit }, where)
    else list[i] = quantity(entry, field, where) end
    if type(list[i]) ~= type(list[1]) then failure.usage("%s: numbers and lists in one list", where) end
  end
  return list
end

-- `prefix` stands before the names of fields in messages: "times.json: ", "times.json: p2p."
function read_object(value, fields, prefix)
  local owner = prefix:gsub("[.: ]+$", "")
  if type(value) ~= "table" or value == json.null or json.is_array(value) then failure.usage("%s: expected an object of times", owner) end
  local known, names, read = { ["$schema"] = true }, {}, {}
  for i, field in ipairs(fields) do known[field.name], names[i] = true, field.name end
  for name in pairs(value) do
    if not known[name] then failure.usage("%s: no field '%s'%s", owner, name, failure.suggestion(name, names)) end
  end
  for _, field in ipairs(fields) do
    if value[field.name] ~= nil then
      read[field.name] = read_field(value[field.name], field, prefix .. field.name)
    elseif field.required then
      failure.usage("%s%s is missing: %s, %s", prefix, field.name, field.meaning, units.expected(field.unit))
    end
  end
  return read
end

-- One quantity in seconds, of an option.
function times.seconds(option, text)
  return quantity(text, { unit = "second" }, "--" .. option)
end

local function read_list(text)
  local parts, values = {}, {}
  for part in (text .. ","):gmatch("([^,]*),") do parts[#parts + 1] = part end
  if #parts < 3 or #parts > 4 then failure.usage("--times: expected F,I,W or F,I,W,FB or a JSON file, got '%s'", text) end
  for i, part in ipairs(parts) do values[i] = times.seconds("times", part) end
  return { F = values[1], I = values[2], W = values[3], FB = values[4] }
end

-- What --times says: fields by name, and the name of the file. What has a comma or is a number is no file unless it ends in .json.
function times.read(text)
  if not text:find("%.json$") and (text:find(",", 1, true) or tonumber(text) or text == "") then return read_list(text) end
  local raw = json.read(text)
  documents.check(raw, "times", text)
  local read = read_object(raw, times.fields, text .. ": ")
  local hop = read.p2p
  if type(hop) == "table" then read.p2p = (hop.latency or 0) + hop.bytes / hop.bandwidth end
  if read.pending_bytes and not read.activation_bytes then failure.usage("%s: pending_bytes without activation_bytes", text) end
  return read, text
end

-- ------------------------------------------------------------------------------------------------------------- what the schedule asks for

local function check_length(file, name, list, what, wanted, also)
  if #list == wanted or #list == also then return end
  failure.usage("%s: %s has %d entries: expected %d, one per %s%s", file, name, #list, wanted, what,
                also and also ~= wanted and string.format(" (or %d, both directions)", also) or "")
end

-- How many stages the rank of a stage holds, of a schedule that is built (then placement is known) or is to be.
local function stages_beside(shape)
  local count = {}
  for _, rank in ipairs(shape.placement or {}) do count[rank] = (count[rank] or 0) + 1 end
  return function(stage) return shape.placement and count[shape.placement[stage]] or shape.chunks_per_rank end
end

-- Fails when a list that was read has not the length that a schedule asks for; shape: its ranks, chains, stages, chunks_per_rank and, once
-- it is built, placement.
function times.check(read, file, shape)
  local stages, beside = shape.stages // shape.chains, stages_beside(shape)
  for _, field in ipairs(times.fields) do
    local value = read[field.name]
    if type(value) == "table" and (field.shape == "stages" or field.shape == "pairs") then
      check_length(file, field.name, value, "stage", stages, shape.stages)
      if type(value[1]) == "table" and shape.stages * shape.chunks_per_rank > max_pairs then
        failure.usage("%s: %s by both stages of %d with up to %d a rank is too large: say it by the stage that runs forward", file,
                      field.name, shape.stages, shape.chunks_per_rank)
      end
      for i, entry in ipairs(value) do
        if type(entry) == "table" then
          check_length(file, string.format("%s[%d]", field.name, i - 1), entry, "chunk of its rank", beside(i))
        end
      end
    elseif type(value) == "table" and field.shape == "ranks" then
      check_length(file, field.name, value, "rank", shape.ranks)
    end
  end
end

-- The arguments of schedule:simulate.
function times.arguments(read)
  local arguments = lists.with(read)
  arguments.activation_bytes, arguments.pending_bytes = nil, nil
  if not read.I then arguments.I, arguments.W = 0, read.B end   -- a profile without them, of a schedule that runs neither
  if read.activation_bytes then arguments.bytes = { stored = read.activation_bytes, pending = read.pending_bytes } end
  return arguments
end

-- ------------------------------------------------------------------------------------------------------------------------- JSON Schema

local object_schema

local function schema_of(field)
  local low, high = table.unpack(ranges[field.unit])
  local one = { anyOf = { { type = "number", minimum = low, maximum = high }, { ["$ref"] = "#/$defs/quantity" } } }
  local function list(items) return { type = "array", minItems = 1, items = items } end
  if type(field.shape) == "table" then
    local object = object_schema(field.shape)
    return field.number and { anyOf = { one, object } } or object
  end
  if field.shape == "number" then return one end
  if field.shape == "pairs" then return { anyOf = { one, list(one), list(list(one)) } } end
  return { anyOf = { one, list(one) } }
end

function object_schema(fields)
  local properties, required = {}, {}
  for _, field in ipairs(fields) do
    properties[field.name] = schema_of(field)
    properties[field.name].description = field.meaning
    if field.required then required[#required + 1] = field.name end
  end
  return { type = "object", additionalProperties = false, properties = properties, required = #required > 0 and required or nil }
end

-- The schema of a times file (draft 2020-12), for editors. How long its lists must be only a schedule can say.
function times.schema()
  local schema = object_schema(times.fields)
  schema.properties["$schema"] = { type = "string" }
  schema["$schema"], schema["$id"] = "https://json-schema.org/draft/2020-12/schema", documents.id "times"
  schema.title = "pipeplan times"
  schema["$defs"] = { quantity = require("pipeplan.input.schema").quantity }
  return schema
end

return times
