-- SPDX-License-Identifier: Apache-2.0
-- hf_reader.lua: a view of one Hugging Face config.json: reads keys and complains by file and key. Whatever was not read is, at the end,
-- known to change no parameter (catalog/config_keys.lua), or refused by name: it may make another model of the same file.

local config_keys = require "pipeplan.catalog.config_keys"
local failure = require "pipeplan.base.failure"
local families = require "pipeplan.catalog.families"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

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
  if value ~= nil and given(value) == nil then return "null" end
  if type(value) == "string" then return string.format("'%s'", one_line(value)) end
  if type(value) == "table" then return json.is_array(value) and "a list" or "an object" end
  return tostring(value)
end

-- The same of what should be a name, without quotes around one.
local function word(value)
  return type(value) == "string" and one_line(value) or show(value)
end

-- A view of one config: reads keys, complains by file and key.
local reader = {}
reader.__index = reader

function reader:complain(key, expected, value)
  failure.usage("%s: '%s%s' must be %s, got %s", self.file, self.prefix, key, expected, value == nil and "nothing" or show(value))
end

-- The value of a key, nil when it is absent or null; the key counts as read.
function reader:get(key)
  self.seen[key] = true
  return given(self.config[key])
end

function reader:is_null(key)
  return self.config[key] ~= nil and given(self.config[key]) == nil
end

-- An integer ≥ low (1 unless given); `default` when absent. Null is no word for a default.
function reader:size(key, default, low)
  local value = self:get(key)
  if default and self:is_null(key) then self:complain(key, string.format("an integer ≥ %d", low or 1), self.config[key]) end
  if value == nil then return default end
  low = low or 1
  local integer = math.type(value) and math.tointeger(value)
  if not integer or integer < low then self:complain(key, string.format("an integer ≥ %d", low), value) end
  return integer
end

-- What several names for the same size say; `default` when none is there. Two that are there must agree.
function reader:size_of(keys, default, low)
  local found, name
  for _, key in ipairs(keys) do
    local value = self:size(key, nil, low)
    if value and found and value ~= found then
      failure.usage("%s: '%s%s' (%d) and '%s%s' (%d) are names of the same size and disagree", self.file, self.prefix, name, found,
                    self.prefix, key, value)
    end
    if value and not found then found, name = value, key end
  end
  return found or default
end

-- The same where the class has a number of its own for what is absent: null is no word for that number.
function reader:size_or_class(keys, class_default)
  local value = self:size_of(keys)
  for _, key in ipairs(keys) do
    if not value and class_default and self:is_null(key) then self:complain(key, "an integer ≥ 1", self.config[key]) end
  end
  return value or class_default
end

function reader:flag(key, default)
  local value = self:get(key)
  if value == nil and default and self:is_null(key) then self:complain(key, "true or false", self.config[key]) end
  if value == nil then
    if default then self.taken_for_true[#self.taken_for_true + 1] = key end
    return default
  end
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

-- Names of the same size in different families and in different releases of transformers (the attribute_map of their classes).
local names = {
  layers = { "num_hidden_layers", "n_layer", "num_layers", "n_layers" },
  hidden = { "hidden_size", "n_embd", "d_model" },
  heads = { "num_attention_heads", "n_head", "n_heads" },
  kv_heads = { "num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups" },
  head_dim = { "head_dim" },
  vocab = { "vocab_size", "padded_vocab_size" },
  experts = { "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts" },
  top = { "num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts", "moe_top_k" },
  mtp = { "num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers" },
  positions = { "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "n_ctx", "model_max_length" },
}
local nested_keys = { "text_config", "llm_config", "language_config" }

local is_size = {}
for _, keys in pairs(names) do
  for _, key in ipairs(keys) do is_size[key] = true end
end

-- The value of the first of `keys` that is there, and which it is.
function reader:first_given(keys)
  for _, key in ipairs(keys) do
    if given(self.config[key]) ~= nil then return given(self.config[key]), key end
  end
end

-- How to give a model without its config.json, with what the file says of its sizes.
function reader:published_sizes()
  if self.otherwise then return self.otherwise end
  local moe, known, said = self:first_given(names.experts), {}, families.published[given(self.outer.model_type)] or {}
  for i, field in ipairs{ "layers", "hidden", "vocab" } do
    local value = self:first_given(names[field])
    local integer = math.type(value) and math.tointeger(value)
    known[i] = (integer or field == "layers") and string.format('"%s": %s', field, integer or "…") or nil
  end
  local list = {}
  for i = 1, 3 do list[#list + 1] = known[i] end
  local function count(name) return string.format('"%s": %s, ', name, said[name] and '"' .. said[name] .. '"' or "…") end
  return string.format('give its published sizes instead of the file: "model": { "architecture": "%s", %s%s%s }', moe and "moe" or "dense",
                       count "total", moe and count "active" or "", table.concat(list, ", "))
end

-- This model cannot be counted exactly: says why, and what can be given instead.
function reader:refuse(feature)
  failure.usage('%s: %s has %s, which pipeplan cannot count exactly; %s', self.file, self.label, (feature:gsub("%c", " ")),
                self:published_sizes())
end

-- Refuses unless a key, where it is there, says `value` (a list: for each layer). Null is no word for true.
function reader:expect(key, value, feature)
  local said = self:get(key)
  if value and value ~= 0 and self:is_null(key) then said = self.config[key] end
  for _, one in ipairs(type(said) == "table" and said ~= json.null and said or { said }) do
    if one ~= value then self:refuse(string.format("%s ('%s%s' is %s, not %s)", feature, self.prefix, key, show(one), tostring(value))) end
  end
end

-- Keys of the config that are not read so far and may be what a missing one is meant to be.
local function unread_keys(self)
  local unread = {}
  for key in pairs(self.config) do
    if type(key) == "string" and not self.seen[key] and not config_keys.reason(key) then unread[#unread + 1] = key end
  end
  table.sort(unread)
  return unread
end

-- Ends for a size that the file does not say (keys: its names), naming the key that comes nearest to it.
function reader:missing(keys)
  for _, key in ipairs(keys) do
    if self:is_null(key) then self:complain(key, "an integer ≥ 1", self.config[key]) end
  end
  local others, unread = {}, {}
  for _, key in ipairs(keys) do others[#others + 1] = key ~= keys[1] and string.format("'%s'", key) or nil end
  for _, key in ipairs(unread_keys(self)) do unread[#unread + 1] = not is_size[key] and key or nil end
  for _, key in ipairs(keys) do
    local near = failure.nearest(key, unread)
    if near then
      failure.usage("%s: '%s%s' is missing (an integer ≥ 1 expected); the nearest key that is there is '%s%s'", self.file, self.prefix,
                    keys[1], self.prefix, one_line(near))
    end
  end
  failure.usage("%s: not a config.json of a language model: '%s%s'%s is missing (an integer ≥ 1 expected)", self.file, self.prefix, keys[1],
                #others > 0 and string.format(" (or %s)", table.concat(others, ", ")) or "")
end

-- The same for a size that has to be there.
function reader:required(keys, default)
  return self:size_or_class(keys, default) or self:missing(keys)
end

function reader:assume(field, value, why, ...)
  self.assumptions[#self.assumptions + 1] = { field = field, value = value, why = string.format(why, ...) }
end

-- Leaves out the MTP modules that the file has, and says why.
function reader:leave_out_mtp(shape, why)
  if not shape.mtp_layers then return end
  self:assume("model.mtp_layers", 0, why)
  shape.mtp_layers = nil
end

-- A fact of a family: true, false or key(name, default).
function reader:resolve(fact)
  if type(fact) ~= "table" then return fact or nil end
  if fact.strict and self:is_null(fact.key) then self:complain(fact.key, "true or false", self.config[fact.key]) end
  return self:flag(fact.key, fact.default) or nil
end

-- A number that some families give as a list with one entry a layer.
function reader:uniform_size(keys, low)
  for _, key in ipairs(keys) do
    local list = type(given(self.config[key])) == "table" and self:integers(key)
    for _, one in ipairs(list or {}) do
      if one ~= list[1] then self:refuse(string.format("a number of its own in each layer ('%s')", key)) end
    end
    if list then return list[1] or self:complain(key, "a list of integers", self.config[key]) end
  end
  return self:size_of(keys, nil, low)
end

local function refuse_unread(self, key)
  local known = lists.sorted_keys(self.seen)
  failure.usage("%s: pipeplan does not know what '%s%s' (%s) is to %s%s; it may change the model's size. Take it out of the file if it "
                .. "does not, or %s", self.file, self.prefix, one_line(key), show(self.config[key]), self.label,
                failure.suggestion(key, known), self:published_sizes())
end

-- What is in the file and was not read: known to change no parameter, or too little to change one, or refused. ignored: keys of the family
-- that its classes keep and do not use.
function reader:check_unread(ignored)
  for _, key in ipairs(ignored) do self.seen[key] = true end
  for _, key in ipairs(names.positions) do self.seen[key] = true end
  for _, key in ipairs(unread_keys(self)) do
    local value = given(self.config[key])
    local empty = value == nil or value == "" or type(value) == "table" and next(value) == nil
    if value == false and config_keys.is_switch(key) or empty then
      self.seen[key] = true
    elseif value == false and #self.taken_for_true > 0 then   -- it may be another name of one of these
      refuse_unread(self, key)
    elseif value == false or type(value) == "string" then
      local message = string.format("%s: pipeplan does not know what '%s%s' (%s) is to %s; it is taken to change no size", self.file,
                                    self.prefix, one_line(key), show(value), self.label)
      self.warnings[#self.warnings + 1] = { id = "unknown_model_key", severity = "warning", message = message }
    else
      refuse_unread(self, key)
    end
  end
end

-- Is it the name of an object that a file has beside its text model?
local function is_part(key) return lists.contains(nested_keys, key) or config_keys.reason(key) ~= nil end

local function names_of_parts()
  local list = table.move(nested_keys, 1, #nested_keys, 1, {})
  for _, tower in ipairs(families.towers) do list[#list + 1] = tower[1] end
  return list
end

-- What stands beside the text model of a multimodal file is not counted but for its tower; what there is of a text model must be what the
-- text model says, and an object is a part that is known.
function reader:check_outer()
  local keys = {}
  for key in pairs(self.prefix ~= "" and self.outer or {}) do keys[#keys + 1] = type(key) == "string" and key or nil end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local value, inside = given(self.outer[key]), given(self.config[key])
    local of_text = is_size[key] or key:find "expert" or key:find "moe" or key:find "mixture" or key:find "mtp" or key:find "nextn"
    if of_text and value and value ~= 0 and value ~= inside and not config_keys.reason(key) then
      failure.usage("%s: '%s' (%s) stands beside '%s', which has %s for it: it may change the model's size. Take it out of the file if it "
                    .. "does not, or %s", self.file, one_line(key), show(value), self.prefix:sub(1, -2),
                    inside and show(inside) or "nothing", self:published_sizes())
    end
    if type(value) == "table" and not json.is_array(value) and next(value) ~= nil and not is_part(key) then
      failure.usage("%s: pipeplan does not know what '%s' is beside '%s'%s; it may be a part of the model with parameters of its own. Take "
                    .. "it out of the file if it is not, or %s", self.file, one_line(key), self.prefix:sub(1, -2),
                    failure.suggestion(key, names_of_parts()), self:published_sizes())
    end
  end
end

-- For what stands beside a text model and is counted: each key is read, as in the text model, or refused.
function reader:check_beside(text)
  local known = {}
  for _, key in ipairs(nested_keys) do known[#known + 1] = key end
  for key, value in pairs(self.config) do
    local inside = given(text.config[key])
    if inside ~= nil and inside == given(value) or type(key) == "string" and key:find "_config$" then known[#known + 1] = key end
  end
  self:check_unread(known)
end

-- Those of the catalogue's towers (families.lua) that the file tells of beside the text model.
function reader:towers()
  local list = {}
  for _, tower in ipairs(families.towers) do
    local value = given(self.outer[tower[1]])
    if type(value) == "table" and not json.is_array(value) and next(value) ~= nil then list[#list + 1] = tower end
  end
  return list
end

-- A view of an object beside the text model (nil: of the whole file), with what to advise instead where it cannot be read.
function reader:part(key, otherwise)
  return setmetatable({ config = key and self.outer[key] or self.outer, outer = self.outer, file = self.file, label = self.label,
                        prefix = key and key .. "." or "", seen = {}, taken_for_true = {},
                        assumptions = self.assumptions, warnings = self.warnings,
                        otherwise = otherwise }, reader)
end

-- The text model of a multimodal config, else the config itself.
function reader.open(config, file)
  if type(config) ~= "table" or json.is_array(config) then
    failure.usage("%s: not a config.json of a language model: an object expected, got %s", file, show(config))
  end
  local self = setmetatable({ config = config, outer = config, file = file, prefix = "", seen = {}, taken_for_true = {}, assumptions = {},
                              warnings = {} }, reader)
  for _, key in ipairs(nested_keys) do
    local nested = given(config[key])
    if type(nested) == "table" and not json.is_array(nested) then
      self.config, self.prefix = nested, key .. "."
      break
    end
  end
  return self
end

reader.names, reader.given, reader.one_line, reader.show, reader.word = names, given, one_line, show, word

return reader
