-- SPDX-License-Identifier: Apache-2.0
--[[
inline_shape.lua: the model of an inline shape in a spec, down to
  { architecture = "moe", total = 671e9, active = 37e9, layers = 61 }

Keys: name, architecture, total, active, max_positions, and the keys of a shape (engine.model.fields). What is missing is derived,
and every derivation is listed among the assumptions with its reason:
  vocab       32,000 below 10 billion parameters (of a mixture of experts, active ones), else 128,000
  hidden      12 · layers · hidden² + 2 · vocab · hidden = total (a mixture of experts: active): 4 h² in attention, 8 h² in the MLP;
              rounded to whole heads, eight at a time where it is large
  heads       hidden / head_dim, head_dim 128 (64 below a hidden size of 1024)
  kv_heads    8, or the largest smaller power of two that divides heads
  ffn         what is left of total, in a gated MLP
  experts     a power of two, with a top-k of 1, 2, 4 or 8 where one fits, so that total and active both come out: a routed expert holds
              (total − active) / (experts − top-k), shared experts what is left of active
The counts that the spec gives are kept as they are; the shape reproduces them within 1 %, active with embedding and head.
]]

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local known_keys = { "name", "architecture", "total", "active", "max_positions" }
for _, key in ipairs(engine.model.fields) do known_keys[#known_keys + 1] = key end
local is_known = {}
for _, key in ipairs(known_keys) do is_known[key] = true end

-- The largest power of two that is at most `value`, at least 1.
local function power_of_two(value)
  return 1 << math.max(0, math.floor(math.log(value, 2)))
end

local function round_to(value, step)
  return math.max(step, math.floor(value / step + 0.5) * step)
end

-- What is being read: `given` as the spec has it, `shape` as it becomes, and the assumptions made.
local builder = {}
builder.__index = builder

function builder:complain(key, expected, value)
  local shown = type(value) == "string" and string.format("'%s'", value) or type(value) == "table" and "an object" or tostring(value)
  failure.usage("%s: model '%s' must be %s, got %s", self.file, key, expected, value == nil and "nothing" or shown)
end

-- Takes a derived value into the shape, with its reason, unless it has one.
function builder:derive(key, value, why, ...)
  if self.shape[key] ~= nil then return self.shape[key] end
  self.shape[key] = value
  self.assumptions[#self.assumptions + 1] = { field = "model." .. key, value = value, why = string.format(why, ...) }
  return value
end

-- A copy of the shape with changes.
function builder:with(changes)
  return lists.with(self.shape, changes)
end

-- What the engine counts, or its complaint about the shape.
function builder:parameters(shape)
  local good, totals = failure.try(engine.model.parameters, shape)
  if not good then failure.usage("%s: model: %s", self.file, (tostring(totals):gsub("^.-model shape: ", ""))) end
  return totals
end

-- Checking ---------------------------------------------------------------------------------------------------------------------------

-- A count such as 671e9: a positive number, integral within reason.
local function count(self, key)
  local value = self.given[key]
  if value == nil then return nil end
  if math.type(value) == nil or value ~= value or value < 1 or value > 1e16 then
    self:complain(key, "a number of parameters ≥ 1", value)
  end
  return math.tointeger(value) or math.floor(value + 0.5)
end

local function check_keys(self)
  local keys = {}
  for key in pairs(self.given) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  for _, key in ipairs(keys) do
    if not is_known[key] then
      local elsewhere = require("pipeplan.names").in_spec(key)
      failure.usage("%s: model has no field '%s'%s", self.file, key,
                    elsewhere ~= "" and elsewhere or failure.suggestion(key, known_keys))
    end
  end
end

-- The sizes that are calculated with here; the engine checks the rest. Value: the least that they can be.
local sizes = { { "layers", 1 }, { "hidden", 1 }, { "vocab", 1 }, { "heads", 1 }, { "kv_heads", 1 }, { "head_dim", 1 }, { "ffn", 0 },
                { "experts", 0 }, { "experts_per_token", 1 }, { "expert_ffn", 1 }, { "shared_ffn", 0 }, { "max_positions", 1 } }

local function check_sizes(self)
  for _, size in ipairs(sizes) do
    local key, low, value = size[1], size[2], self.given[size[1]]
    local integer = math.type(value) and math.tointeger(value)
    if value ~= nil and (not integer or integer < low) then self:complain(key, string.format("an integer ≥ %d", low), value) end
    self.given[key] = integer or nil
  end
  local layers, name = self.given.layers, self.given.name
  if not layers or layers > 1024 then self:complain("layers", "an integer from 1 to 1024", layers) end
  if name ~= nil and type(name) ~= "string" then self:complain("name", "a string", name) end
end

-- What only a model with experts has.
local expert_keys = { "experts", "experts_per_token", "expert_ffn", "shared_ffn", "shared_gate", "router_bias", "expert_bias",
                      "router_correction_bias", "first_dense", "dense_layers", "moe_every" }

-- The first of them that says anything.
local function expert_key(self)
  for _, key in ipairs(expert_keys) do
    local value = self.given[key]
    local says_nothing = value == nil or value == 0 or value == false or key == "moe_every" and value == 1
    if not says_nothing and not (type(value) == "table" and #value == 0) then return key, value end
  end
end

local function read_architecture(self)
  local architecture, total, active = self.given.architecture, self.given.total, self.given.active
  local key, value = expert_key(self)
  if architecture ~= nil and architecture ~= "dense" and architecture ~= "moe" then
    self:complain("architecture", "'dense' or 'moe'", architecture)
  end
  if architecture == nil and not key and (active == nil or active == total) then architecture = "dense" end
  if architecture ~= "dense" then
    local experts = self.given.experts
    if experts and experts < 1 then self:complain("experts", "an integer ≥ 1 in a model with experts", experts) end
    return "moe"
  end
  if key then self:complain(key, "absent from a dense model", value) end
  if active ~= nil and active ~= (total or active) then
    self:complain("active", "the same as total, or absent from a dense model: all parameters are at work", active)
  end
  return "dense"
end

-- Deriving ---------------------------------------------------------------------------------------------------------------------------

-- The hidden size h with 12 L h² + 2 V h nearest to `parameters`.
local function hidden_for(parameters, layers, vocab)
  local a, b = 12 * layers, 2 * vocab
  local hidden = (math.sqrt(b * b + 4 * a * parameters) - b) / (2 * a)
  return round_to(hidden, hidden >= 3584 and 1024 or hidden >= 1024 and 512 or 128)
end

local function derive_width(self, basis, basis_name)
  local shape = self.shape
  self:derive("vocab", basis < 10e9 and 32000 or 128000, "usual for this size")
  self:derive("hidden", hidden_for(basis, shape.layers, shape.vocab),
              "from 12 · layers · hidden² + 2 · vocab · hidden = %s, rounded", basis_name)
  if shape.attention == "mla" then return end
  if not shape.head_dim then
    local usual = shape.hidden < 1024 and 64 or 128
    local fits = shape.heads and shape.hidden % shape.heads == 0
    self:derive("head_dim", fits and shape.hidden // shape.heads or usual, fits and "hidden / heads" or "usual")
  end
  self:derive("heads", math.max(1, shape.hidden // shape.head_dim), "hidden / head_dim")
  local groups = 8
  while shape.heads % groups ~= 0 do groups = groups // 2 end
  self:derive("kv_heads", groups, "grouped-query attention, at most 8 groups")
end

local function derive_ffn(self, total)
  if self.shape.ffn then return end
  local one, two = self:parameters(self:with{ ffn = 1 }).total, self:parameters(self:with{ ffn = 2 }).total
  local slope = two - one
  local fixed = one - slope
  local width = (total - fixed) / slope
  if width < 1 then self:complain("total", string.format("more than the %d parameters of attention and embeddings", fixed), total) end
  local step = power_of_two(math.min(128, width / 64))
  self:derive("ffn", round_to(width, step), "what attention and embeddings leave of total, rounded to a multiple of %d", step)
end

-- How unusual a top-k is, in shares of the routed experts' work that must be saved by a better fit before it is preferred. Of the usual
-- ones that fit alike, the largest wins.
local function oddity(top)
  if top == 8 or top == 4 or top == 2 or top == 1 then return (8 - top) / 1000 end
  return top == 6 and 0.3 or 0.5
end

-- { experts, top, width } so that, in elements of width per layer, routed = experts · width + shared and used = top · width + shared, with
-- the least shared width; nil when there is none.
local function split_experts(shape, routed, used)
  local best, least
  for _, experts in ipairs(shape.experts and { shape.experts } or { 8, 16, 32, 64, 128, 256, 512 }) do
    for top = shape.experts_per_token or 1, shape.experts_per_token or math.min(12, experts - 1) do
      local width = shape.expert_ffn or (routed - used) / (experts - top)
      local shared = shape.shared_ffn or used - top * width
      local cost = math.max(0, shared) / (top * width) + oddity(top)
      if width >= 1 and shared >= -0.005 * used and (not least or cost < least - 1e-9) then
        best, least = { experts = experts, top = top, width = width }, cost
      end
    end
  end
  return best
end

local function derive_experts(self, total, active)
  local shape = self.shape
  local narrow = { experts = shape.experts or 1, experts_per_token = 1, expert_ffn = 1, shared_ffn = 0 }
  local one = self:parameters(self:with(narrow)).active
  narrow.expert_ffn = 2
  local slope = self:parameters(self:with(narrow)).active - one  -- of one element of an expert's width in all its layers
  local fixed = one - slope
  local used = (active - fixed) / slope
  if used < 1 then self:complain("active", string.format("more than the %d parameters of attention and embeddings", fixed), active) end
  local routed = (total - fixed) / slope
  local best = split_experts(shape, routed, used)
  if not best and shape.experts and shape.experts_per_token then
    -- Both are fixed: total decides the width, and check_counts whether active is near.
    best = { experts = shape.experts, top = shape.experts_per_token, width = routed / shape.experts }
  elseif not best then
    self:complain("active", string.format("more for a total of %d: no usual number of experts leaves so few at work", total), active)
  end
  local why = "so that total and active come out"
  local step = power_of_two(math.min(64, math.max(best.width >= 256 and 8 or 1, best.width * 0.005)))
  self:derive("experts", best.experts, why)
  self:derive("experts_per_token", best.top, why)
  local width = self:derive("expert_ffn", round_to(best.width, step), why .. ", rounded to a multiple of %d", step)
  local shared = math.floor((used - best.top * width) / step + 0.5) * step
  if shared > 0 then self:derive("shared_ffn", shared, "what is left of active: shared experts") end
end

local function is_complete(shape, architecture)
  local width = shape.hidden and shape.vocab and shape.heads
  if architecture == "dense" then return width and shape.ffn end
  return width and shape.experts and shape.experts_per_token and shape.expert_ffn
end

local function derive_shape(self, architecture, total, active)
  if architecture == "moe" and not (total and active) and self.shape.hidden and self.shape.vocab and self.shape.heads then
    for _, key in ipairs{ "experts", "experts_per_token", "expert_ffn" } do
      if not self.shape[key] then self:complain(key, "an integer ≥ 1 in a model with experts, or total and active given", nil) end
    end
  end
  local needed = "given when the shape is not complete: "
  if not total then self:complain("total", needed .. "a number of parameters", nil) end
  if architecture == "dense" then
    derive_width(self, total, "total")
    derive_ffn(self, total)
  else
    if not active then self:complain("active", needed .. "the parameters that one token uses", nil) end
    if active >= total then self:complain("active", string.format("less than total (%d)", total), active) end
    derive_width(self, active, "active")
    if not is_complete(self.shape, architecture) then derive_experts(self, total, active) end
  end
end

-- What the finished shape counts. Stated numbers that it misses by more than 5 % belong to another model; `active` may be stated with the
-- embedding or without.
local function check_counts(self, total, active)
  local totals = self:parameters(self.shape)
  local function check(key, stated, exact, or_exact)
    local miss = stated and math.min(math.abs(exact - stated), math.abs(or_exact - stated))
    if stated and miss > 0.05 * stated then self:complain(key, string.format("near what the shape adds up to (%d)", exact), stated) end
  end
  check("total", total, totals.total, totals.total)
  check("active", active, totals.active, totals.active_without_embedding)
  return totals
end

local inline_shape = {}

--[[
`given` is the inline table with its numbers parsed; `file` names the spec in messages; tower: training.tower, if it is given.
Returns what hf_config.read returns, with total_parameters and active_parameters as given where they are. Raises a usage failure for
an unknown field, a contradiction, or too little to go by.
]]
function inline_shape.read(given, file, tower)
  local self = setmetatable({ given = {}, shape = {}, assumptions = {}, file = file or "spec" }, builder)
  if type(given) ~= "table" or json.is_array(given) then failure.usage("%s: model must be a file name or an object", self.file) end
  for key, value in pairs(given) do
    if value ~= json.null then self.given[key] = value end
  end
  check_keys(self)
  check_sizes(self)
  for _, key in ipairs(engine.model.fields) do self.shape[key] = self.given[key] end
  if tower == "none" then self.shape.tower, self.shape.tower_frozen = nil, nil
  elseif tower and self.shape.tower then self.shape.tower_frozen = tower == "frozen" or nil end
  local architecture = read_architecture(self)
  local total, active = count(self, "total"), count(self, "active")
  if not is_complete(self.shape, architecture) then derive_shape(self, architecture, total, active) end
  local totals = check_counts(self, total, active)
  return {
    name = self.given.name or "inline " .. architecture, architecture = architecture, shape = self.shape, layers = self.shape.layers,
    max_positions = self.given.max_positions, assumptions = self.assumptions, total_parameters = total or totals.total,
    active_parameters = active or architecture == "dense" and total or totals.active,
    active_parameters_without_embedding = totals.active_without_embedding, mtp_parameters = totals.mtp,
    tower_parameters = self.shape.tower ~= 0 and self.shape.tower or nil,
  }
end

return inline_shape
