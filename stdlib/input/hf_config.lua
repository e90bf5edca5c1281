-- hf_config.lua: the shape of a model from its Hugging Face config.json, counted exactly or refused by name.
-- What a key means is read here, what a family's layers hold stands in catalog/families.lua.

local catalog = require "pipeplan.catalog.families"
local engine = require "engine"
local failure = require "pipeplan.failure"
local json = require "pipeplan.input.json"

local hf = {}

-- null, whichever decoder made it, is as good as absent.
local function given(value)
  if value == nil or value == json.null or type(value) == "userdata" then return nil end
  return value
end

-- Text from a file, fit for one line.
local function one_line(text)
  text = text:gsub("%c", " ")
  if #text <= 60 then return text end
  return text:sub(1, 57):gsub("[\xC0-\xFF][\x80-\xBF]*$", "") .. "…"  -- never cut inside a character
end

local function show(value)
  if type(value) == "string" then return string.format("'%s'", one_line(value)) end
  if type(value) == "table" then return json.is_array(value) and "a list" or "an object" end
  return tostring(value)
end

-- A view of one config: reads keys, complains by file and key.
local reader = {}
reader.__index = reader

function reader:complain(key, expected, value)
  failure.usage("%s: '%s%s' must be %s, got %s", self.file, self.prefix, key, expected, value == nil and "nothing" or show(value))
end

function reader:get(key)
  return given(self.config[key])
end

-- An integer ≥ low (1 unless given); `default` when absent.
function reader:size(key, default, low)
  local value = self:get(key)
  if value == nil then return default end
  low = low or 1
  local integer = math.type(value) and math.tointeger(value)
  if not integer or integer < low then self:complain(key, string.format("an integer ≥ %d", low), value) end
  return integer
end

-- The first of several names for the same size that is there; `default` when none is.
function reader:size_of(keys, default, low)
  for _, key in ipairs(keys) do
    local value = self:size(key, nil, low)
    if value then return value, key end
  end
  return default
end

function reader:flag(key, default)
  local value = self:get(key)
  if value == nil then return default end
  if type(value) ~= "boolean" then self:complain(key, "true or false", value) end
  return value
end

-- A list of integers, or nil.
function reader:integers(key)
  local list = self:get(key)
  if list == nil then return nil end
  if type(list) ~= "table" then self:complain(key, "a list of integers", list) end
  local integers = {}
  for i, value in ipairs(list) do
    integers[i] = math.type(value) and math.tointeger(value) or self:complain(key, "a list of integers", value)
  end
  return integers
end

-- This model cannot be counted exactly: says why, and what can be given instead.
function reader:refuse(feature)
  local moe = self:get("num_experts") or self:get("n_routed_experts") or self:get("num_local_experts")
  local layers = self:size_of({ "num_hidden_layers", "n_layer", "num_layers", "n_layers" })
  failure.usage('%s: %s has %s, which pipeplan cannot count exactly; give its published sizes instead of the file: '
                .. '"model": { "architecture": "%s", "total": …, %s"layers": %s }',
                self.file, self.label, feature, moe and "moe" or "dense", moe and '"active": …, ' or "", layers or "…")
end

local layer_keys = { "num_hidden_layers", "n_layer", "num_layers", "n_layers" }
local hidden_keys = { "hidden_size", "n_embd", "d_model" }
local head_keys = { "num_attention_heads", "n_head", "n_heads" }
local kv_keys = { "num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num" }
local vocab_keys = { "vocab_size", "padded_vocab_size" }
local position_keys = { "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "n_ctx" }
local nested_keys = { "text_config", "llm_config", "language_config" }

-- The text model of a multimodal config, else the config itself.
local function open(config, file)
  if type(config) ~= "table" or json.is_array(config) then
    failure.usage("%s: not a config.json of a language model: an object expected, got %s", file, show(config))
  end
  local self = setmetatable({ config = config, outer = config, file = file, prefix = "" }, reader)
  for _, key in ipairs(nested_keys) do
    local nested = given(config[key])
    if type(nested) == "table" and not json.is_array(nested) then
      self.config, self.prefix = nested, key .. "."
      break
    end
  end
  return self
end

local function string_at(config, key)
  local value = given(config[key])
  return type(value) == "string" and value or nil
end

local function class_of(config)
  local list = given(config.architectures)
  local class = type(list) == "table" and given(list[1])
  return type(class) == "string" and class or nil
end

-- Families by class and by model_type.
local by_class, by_type, family_names = {}, {}, {}
for name, family in pairs(catalog.families) do
  family_names[#family_names + 1] = name
  by_type[name] = family
  for _, class in ipairs(family.classes) do by_class[class] = family end
  for _, model_type in ipairs(family.types or {}) do by_type[model_type] = family end
end
table.sort(family_names)

local function check_features(self)
  for _, telling in ipairs(catalog.telling_keys) do
    local value = self:get(telling[1])
    if value and value ~= 0 and value ~= "" then self:refuse(string.format("%s ('%s')", telling[2], telling[1])) end
  end
  local types = self:get("layer_types")
  for _, layer_type in ipairs(type(types) == "table" and types or {}) do
    if not catalog.plain_layer_types[layer_type] then
      self:refuse(string.format("%s layers ('layer_types')", one_line(tostring(layer_type)):gsub("_", " ")))
    end
  end
  for _, kind in ipairs(self:integers("attn_type_list") or {}) do
    if kind == 0 then self:refuse("lightning (linear) attention layers ('attn_type_list')") end
  end
end

local function family_of(self)
  local class = class_of(self.config) or class_of(self.outer)
  local model_type = string_at(self.config, "model_type") or string_at(self.outer, "model_type")
  self.label = one_line(class or model_type or "")
  if self.label == "" then
    failure.usage("%s: not a config.json of a language model: neither 'model_type' nor 'architectures' says what it is", self.file)
  end
  check_features(self)
  if by_class[class] then return by_class[class] end
  if catalog.refused[model_type] then self:refuse(catalog.refused[model_type]) end
  if by_type[model_type] then return by_type[model_type] end
  failure.usage('%s: pipeplan does not know how %s is built%s; it knows %s. Give its published sizes instead of the file: '
                .. '"model": { "architecture": "dense" or "moe", "total": …, "active": …, "layers": … }', self.file, self.label,
                failure.suggestion(model_type or class, family_names), table.concat(family_names, ", "))
end

local function required(self, keys, default)
  local value = self:size_of(keys, default)
  if not value then
    failure.usage("%s: not a config.json of a language model: '%s%s' is missing (an integer ≥ 1 expected)", self.file, self.prefix,
                  keys[1])
  end
  return value
end

local function assume(self, field, value, why, ...)
  self.assumptions[#self.assumptions + 1] = { field = field, value = value, why = string.format(why, ...) }
end

local function resolve(self, fact)
  if type(fact) ~= "table" then return fact or nil end
  return self:flag(fact.key, fact.default) or nil
end

local function read_attention(self, family, shape)
  shape.heads = required(self, head_keys, family.heads)
  if family.mla and self:get("kv_lora_rank") then
    if self:flag("attention_bias", false) then self:refuse("biases in latent attention ('attention_bias')") end
    shape.attention = "mla"
    shape.q_lora_rank = self:size("q_lora_rank", nil)
    shape.kv_lora_rank = self:size("kv_lora_rank")
    shape.qk_nope_dim = required(self, { "qk_nope_head_dim" })
    shape.qk_rope_dim = required(self, { "qk_rope_head_dim" })
    shape.v_dim = required(self, { "v_head_dim" })
    return
  elseif family.mla then
    self:complain("kv_lora_rank", "an integer ≥ 1", nil)
  end
  shape.kv_heads = self:size_of(kv_keys, family.kv_heads or shape.heads)
  shape.head_dim = self:size_of({ "head_dim", "kv_channels" }, family.head_dim)
  if not shape.head_dim then
    if shape.hidden % shape.heads ~= 0 then
      failure.usage("%s: '%s%s' (%d) must divide the hidden size (%d) when there is no 'head_dim'", self.file, self.prefix, head_keys[1],
                    shape.heads, shape.hidden)
    end
    shape.head_dim = shape.hidden // shape.heads
  end
  shape.qkv_bias = resolve(self, family.qkv_bias)
  shape.output_bias = resolve(self, family.output_bias)
  local norm = family.qk_norm
  if type(norm) == "table" then norm = self:flag(norm.key, norm.default) and norm.kind or nil end
  shape.qk_norm = norm
end

-- The dense feed-forward's width: of every layer, or of those that are dense.
local function read_ffn(self, family, shape)
  local keys = family.ffn or { "intermediate_size" }
  shape.ffn = self:size_of(keys, keys.times and keys.times * shape.hidden)
  if not shape.ffn then required(self, keys) end
  shape.mlp_bias = resolve(self, family.mlp_bias)
end

-- dense_layers, or first_dense where the dense layers are the first ones. Returns how many are dense.
local function set_dense_layers(shape, is_dense)
  local dense = {}
  for i = 1, shape.layers do
    if is_dense(i) then dense[#dense + 1] = i end
  end
  if #dense > 0 and dense[#dense] == #dense then shape.first_dense = #dense
  elseif #dense > 0 then shape.dense_layers = dense end
  return #dense
end

-- How many experts, as a number: some families allow a list with one entry a layer.
local function uniform_size(self, keys)
  for _, key in ipairs(keys) do
    local value = self:get(key)
    if type(value) == "table" then
      local list = self:integers(key)
      for _, one in ipairs(list) do
        if one ~= list[1] then self:refuse(string.format("a number of its own in each layer ('%s')", key)) end
      end
      return list[1]
    elseif value ~= nil then
      return self:size(key, nil, 0)
    end
  end
end

-- Returns the number of dense layers.
local function read_experts(self, family, shape)
  local moe = family.moe
  local experts = moe and uniform_size(self, moe.experts)
  if not experts or experts == 0 then return shape.layers end
  shape.experts = experts
  shape.experts_per_token = uniform_size(self, moe.top) or required(self, moe.top)
  if shape.experts_per_token < 1 or shape.experts_per_token > experts then
    self:complain(moe.top[1], string.format("from 1 to the number of experts (%d)", experts), shape.experts_per_token)
  end
  shape.expert_ffn = required(self, moe.ffn)
  local shared = moe.shared and self:size_of(moe.shared, 0, 0) or 0
  if moe.shared_count then shared = self:size(moe.shared_count, 0, 0) * shape.expert_ffn end
  if shared > 0 then shape.shared_ffn = shared end
  shape.shared_gate = shared > 0 and moe.shared_gate or nil
  shape.router_bias, shape.expert_bias = moe.router_bias, moe.expert_bias
  shape.router_correction_bias = resolve(self, moe.correction_bias)
  return set_dense_layers(shape, moe.dense and moe.dense(self, shape.layers) or function() return false end)
end

local function read_ends(self, family, shape)
  local tied = self:flag("tie_word_embeddings", nil)
  if tied == nil then tied = given(self.outer.tie_word_embeddings) end
  if tied == nil then
    tied = family.tied
    assume(self, "model.tied_embeddings", tied, "tie_word_embeddings is not in the file; %s means %s", self.label, tostring(tied))
  elseif type(tied) ~= "boolean" then
    self:complain("tie_word_embeddings", "true or false", tied)
  end
  shape.tied_embeddings = tied or nil
  shape.head_bias = resolve(self, family.head_bias)
  if family.positions then shape.learned_positions = required(self, position_keys) + family.positions end
  local mtp = self:size("num_nextn_predict_layers", nil, 0) or self:size("mtp_num_hidden_layers", nil, 0)
  if not mtp and self:flag("use_mtp", false) then mtp = self:size("num_mtp_modules", 0, 0) end
  if mtp and mtp > 0 then shape.mtp_layers = mtp end
end

local function read_shape(self, family)
  local shape = { hidden = required(self, hidden_keys), layers = required(self, layer_keys) }
  if shape.layers > 1024 then self:complain(layer_keys[1], "at most 1024", shape.layers) end
  shape.vocab = required(self, vocab_keys, family.vocab)
  read_attention(self, family, shape)
  if read_experts(self, family, shape) > 0 then read_ffn(self, family, shape) end
  shape.gated = family.gated ~= false
  shape.norms_per_layer, shape.norm_bias = family.norms or 2, family.norm_bias
  read_ends(self, family, shape)
  if family.adjust then family.adjust(self, shape) end
  if shape.kv_heads and shape.heads % shape.kv_heads ~= 0 then
    failure.usage("%s: '%snum_key_value_heads' (%d) must divide the number of attention heads (%d)", self.file, self.prefix, shape.kv_heads,
                  shape.heads)
  end
  return shape
end

-- "models/qwen3-8b.json" → "qwen3-8b"; "Qwen3-8B/config.json" → "Qwen3-8B".
local function name_of(self)
  local directory, base = self.file:match("^(.-)([^/]+)$")
  base = (base or self.file):gsub("%.json$", "")
  if base ~= "config" then return base end
  local parent = directory:match("([^/]+)/$")
  if parent and parent ~= "." and parent ~= ".." then return parent end
  local path = string_at(self.outer, "_name_or_path")
  return path and one_line(path):match("([^/]+)/*$") or self.label
end

-- The exact totals, and what the engine may still find wrong with the shape.
local function count(self, shape)
  local good, totals = pcall(engine.model.parameters, shape)
  if not good then failure.usage("%s: %s", self.file, tostring(totals):gsub("^.-model shape: ", "")) end
  return totals
end

--[[
The model of a decoded config.json. `file` is its name, for messages and for the model's name.
Returns { name, architecture, shape, layers, max_positions, assumptions, total_parameters, active_parameters,
active_parameters_without_embedding, mtp_parameters }; the shape is what engine.model takes, totals are exact.
Raises a usage failure for what is no config of a language model, for implausible sizes, and for a family that cannot be counted exactly.
]]
function hf.read(config, file)
  local self = open(config, file)
  self.assumptions = {}
  local family = family_of(self)
  local shape = read_shape(self, family)
  if self.prefix ~= "" then
    assume(self, "model", "text model only", "%s is multimodal; only what '%s' holds is counted", self.label, self.prefix:sub(1, -2))
  end
  local totals = count(self, shape)
  return {
    name = name_of(self), architecture = shape.experts and "moe" or "dense", shape = shape, layers = shape.layers,
    max_positions = self:size_of(position_keys, family.max_positions), assumptions = self.assumptions, total_parameters = totals.total,
    active_parameters = totals.active, active_parameters_without_embedding = totals.active_without_embedding, mtp_parameters = totals.mtp,
  }
end

-- The model of an inline shape in a spec: see inline_shape.lua.
function hf.inline(given_shape, file)
  return require("pipeplan.input.inline_shape").read(given_shape, file)
end

return hf
