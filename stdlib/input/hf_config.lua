-- hf_config.lua: the shape of a model from its Hugging Face config.json, counted exactly or refused by name.
-- What a key means is read here, what a family's layers hold stands in catalog/families.lua. A key that is neither read nor known to change
-- no parameter (catalog/config_keys.lua) is refused by name: it may make another model of the same file.

local catalog = require "pipeplan.catalog.families"
local config_keys = require "pipeplan.catalog.config_keys"
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
  if value ~= nil and given(value) == nil then return "null" end
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

-- Names of the same size in different families and in different releases of transformers (the attribute_map of their classes).
local layer_keys = { "num_hidden_layers", "n_layer", "num_layers", "n_layers" }
local hidden_keys = { "hidden_size", "n_embd", "d_model" }
local head_keys = { "num_attention_heads", "n_head", "n_heads" }
local kv_keys = { "num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num" }
local head_dim_keys = { "head_dim" }
local vocab_keys = { "vocab_size", "padded_vocab_size" }
local expert_keys = { "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts" }
local top_keys = { "num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k" }
local mtp_keys = { "num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers" }
local position_keys = { "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "n_ctx" }
local nested_keys = { "text_config", "llm_config", "language_config" }

local is_size = {}
for _, keys in ipairs{ layer_keys, hidden_keys, head_keys, kv_keys, head_dim_keys, vocab_keys, expert_keys, top_keys, mtp_keys,
                       position_keys } do
  for _, key in ipairs(keys) do is_size[key] = true end
end

-- The value of the first of `keys` that is there.
local function first_given(config, keys)
  for _, key in ipairs(keys) do
    if given(config[key]) ~= nil then return given(config[key]), key end
  end
end

-- How to give a model without its config.json.
local function published_sizes(self)
  local moe, layers = first_given(self.config, expert_keys), first_given(self.config, layer_keys)
  return string.format('give its published sizes instead of the file: "model": { "architecture": "%s", "total": …, %s"layers": %s }',
                       moe and "moe" or "dense", moe and '"active": …, ' or "", math.type(layers) and math.tointeger(layers) or "…")
end

-- This model cannot be counted exactly: says why, and what can be given instead.
function reader:refuse(feature)
  failure.usage('%s: %s has %s, which pipeplan cannot count exactly; %s', self.file, self.label, feature, published_sizes(self))
end

-- Refuses unless a key, where it is there, says `value` (a list: for each layer).
function reader:expect(key, value, feature)
  local said = self:get(key)
  if value and value ~= 0 and self:is_null(key) then said = self.config[key] end
  for _, one in ipairs(type(said) == "table" and said ~= json.null and said or { said }) do
    if one ~= value then self:refuse(string.format("%s ('%s%s' is %s, not %s)", feature, self.prefix, key, show(one), tostring(value))) end
  end
end

-- The text model of a multimodal config, else the config itself.
local function open(config, file)
  if type(config) ~= "table" or json.is_array(config) then
    failure.usage("%s: not a config.json of a language model: an object expected, got %s", file, show(config))
  end
  local self = setmetatable({ config = config, outer = config, file = file, prefix = "", seen = {}, warnings = {} }, reader)
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

-- A class that is the same blocks with another head: "Qwen3Model", "LlamaForSequenceClassification". A draft's is not
-- ("LlamaForCausalLMEagle3").
local function is_kin(class, family)
  for _, known in ipairs(family.classes) do
    local stem = known:match("^(.-)For%u") or known:match("^(.-)LMHeadModel$")
    local rest = stem and class:sub(1, #stem) == stem and class:sub(#stem + 1)
    if rest and (rest == "Model" or rest:find("^For%a+Classification$") or rest == "ForCausalLM" or rest == "LMHeadModel"
                 or rest == "ForConditionalGeneration") then
      return true
    end
  end
  return false
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

local function unknown_family(self, name)
  failure.usage('%s: pipeplan does not know how %s is built%s; it knows %s. Give its published sizes instead of the file: '
                .. '"model": { "architecture": "dense" or "moe", "total": …, "active": …, "layers": … }', self.file, self.label,
                failure.suggestion(name, family_names), table.concat(family_names, ", "))
end

-- By the class that the file names, else by its model_type. A text model inside another is what it says itself, where it does.
local function family_of(self)
  local class, model_type = class_of(self.config), string_at(self.config, "model_type")
  if not class and not model_type then class, model_type = class_of(self.outer), string_at(self.outer, "model_type") end
  self.label = one_line(class or class_of(self.outer) or model_type or "")
  if self.label == "" then
    failure.usage("%s: not a config.json of a language model: neither 'model_type' nor 'architectures' says what it is", self.file)
  end
  check_features(self)
  if by_class[class] then return by_class[class] end
  if catalog.refused[model_type] then self:refuse(catalog.refused[model_type]) end
  local family = by_type[model_type] or unknown_family(self, model_type or class)
  if class and self.prefix == "" then
    if not is_kin(class, family) then unknown_family(self, class) end
    self:assume("model", family.classes[1], "%s is read as the same blocks with a head for language", self.label)
  end
  return family
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
      failure.usage("%s: '%s%s' is missing (an integer ≥ 1 expected); pipeplan does not read '%s%s' in %s", self.file, self.prefix, keys[1],
                    self.prefix, one_line(near), self.label)
    end
  end
  failure.usage("%s: not a config.json of a language model: '%s%s'%s is missing (an integer ≥ 1 expected)", self.file, self.prefix, keys[1],
                #others > 0 and string.format(" (or %s)", table.concat(others, ", ")) or "")
end

local function required(self, keys, default)
  return self:size_or_class(keys, default) or self:missing(keys)
end

function reader:assume(field, value, why, ...)
  self.assumptions[#self.assumptions + 1] = { field = field, value = value, why = string.format(why, ...) }
end

local function resolve(self, fact)
  if type(fact) ~= "table" then return fact or nil end
  return self:flag(fact.key, fact.default) or nil
end

-- Keys of the files of latent attention that its classes keep and do not use.
local unread_in_mla = { "num_key_value_heads", "head_dim" }

local function read_head_dim(self, family, shape)
  local keys, class = family.head_dim_keys or head_dim_keys, family.head_dim
  if class == "not null" and self:is_null(keys[1]) then self:complain(keys[1], "an integer ≥ 1", self.config[keys[1]]) end
  shape.head_dim = class == "given" and required(self, keys) or self:size_or_class(keys, math.type(class) and class)
  if shape.head_dim and class ~= "hidden" then return end
  if shape.hidden % shape.heads ~= 0 then
    failure.usage("%s: '%s%s' (%d) must divide the hidden size (%d) when there is no 'head_dim'", self.file, self.prefix, head_keys[1],
                  shape.heads, shape.hidden)
  end
  local derived = shape.hidden // shape.heads
  if shape.head_dim and shape.head_dim ~= derived then
    self:complain(keys[1], string.format("hidden / heads (%d) in %s", derived, self.label), shape.head_dim)
  end
  shape.head_dim = derived
end

local function read_attention(self, family, shape)
  shape.heads = required(self, head_keys, family.heads)
  if family.mla and self:get("kv_lora_rank") then
    if self:flag("attention_bias", false) then self:refuse("biases in latent attention ('attention_bias')") end
    shape.attention = "mla"
    for _, key in ipairs(unread_in_mla) do self.seen[key] = true end
    -- null: queries are not compressed; absent, each class has a rank of its own
    if self.config.q_lora_rank == nil then self:missing{ "q_lora_rank" } end
    shape.q_lora_rank = self:size("q_lora_rank", nil)
    shape.kv_lora_rank = self:size("kv_lora_rank")
    shape.qk_nope_dim = required(self, { "qk_nope_head_dim" })
    shape.qk_rope_dim = required(self, { "qk_rope_head_dim" })
    shape.v_dim = required(self, { "v_head_dim" })
    if self:size("qk_head_dim", shape.qk_nope_dim + shape.qk_rope_dim) ~= shape.qk_nope_dim + shape.qk_rope_dim then
      self:complain("qk_head_dim", string.format("qk_nope_head_dim + qk_rope_head_dim (%d)", shape.qk_nope_dim + shape.qk_rope_dim),
                    self.config.qk_head_dim)
    end
    return
  elseif family.mla then
    self:missing{ "kv_lora_rank" }
  end
  if family.kv_heads == "heads" then shape.kv_heads = shape.heads
  elseif family.kv_heads == "given" then shape.kv_heads = required(self, kv_keys)
  else shape.kv_heads = self:size_or_class(kv_keys, family.kv_heads or nil) or shape.heads end
  read_head_dim(self, family, shape)
  shape.qkv_bias = resolve(self, family.qkv_bias)
  shape.output_bias = resolve(self, family.output_bias)
  local norm = family.qk_norm
  if type(norm) == "table" then norm = self:flag(norm.key, norm.default) and norm.kind or nil end
  shape.qk_norm = norm
end

local function ffn_keys(family)
  return family.ffn or { "intermediate_size" }
end

-- The dense feed-forward's width: of every layer, or of those that are dense.
local function read_ffn(self, family, shape)
  local keys = ffn_keys(family)
  local derived = keys.times and (not keys.times_with or given(self.config[keys.times_with])) and keys.times * shape.hidden
  shape.ffn = self:size_of(keys, derived) or self:missing(keys)
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

-- A number that some families give as a list with one entry a layer.
local function uniform_size(self, keys, low)
  for _, key in ipairs(keys) do
    local list = type(given(self.config[key])) == "table" and self:integers(key)
    for _, one in ipairs(list or {}) do
      if one ~= list[1] then self:refuse(string.format("a number of its own in each layer ('%s')", key)) end
    end
    if list then return list[1] or self:complain(key, "a list of integers", self.config[key]) end
  end
  return self:size_of(keys, nil, low)
end

-- A family without experts: a file that counts some all the same is of another.
local function check_dense(self)
  for _, config in ipairs{ self.config, self.outer } do
    for _, key in ipairs(expert_keys) do
      local value = given(config[key])
      if value and value ~= 0 and value ~= 1 then
        failure.usage("%s: '%s%s' is %s, and %s has no experts; %s", self.file, config == self.config and self.prefix or "", key,
                      show(value), self.label, published_sizes(self))
      end
      self.seen[key] = true
    end
  end
end

-- mlp_layer_types says in words which layers are dense; it must agree with the other keys.
local function check_layer_lists(self, shape, is_dense)
  for _, key in ipairs{ "layer_types", "mlp_layer_types" } do
    local list = self:get(key)
    if list ~= nil and (type(list) ~= "table" or #list ~= shape.layers) then
      self:complain(key, string.format("a list of %d, one for each of '%s'", shape.layers, select(2, first_given(self.config, layer_keys))),
                    type(list) == "table" and #list or list)
    end
  end
  for i, kind in ipairs(self:get("mlp_layer_types") or {}) do
    if kind ~= (is_dense(i) and "dense" or "sparse") then
      self:refuse(string.format("an MLP that the other keys do not tell ('mlp_layer_types' has %s for layer %d)", show(kind), i))
    end
  end
end

-- Returns the number of dense layers.
local function read_experts(self, family, shape)
  local moe = family.moe
  if not moe then
    check_dense(self)
    check_layer_lists(self, shape, function() return true end)
    return shape.layers
  end
  for _, keys in ipairs{ moe.ffn, moe.shared or {}, { moe.shared_count }, moe.dense or {} } do
    for _, key in ipairs(keys) do self.seen[key] = true end
  end
  local experts = uniform_size(self, expert_keys) or self:missing(expert_keys)
  shape.experts = experts
  shape.experts_per_token = uniform_size(self, top_keys) or self:missing(top_keys)
  if shape.experts_per_token < 1 or shape.experts_per_token > experts then
    self:complain(moe.top or top_keys[1], string.format("from 1 to the number of experts (%d)", experts), shape.experts_per_token)
  end
  shape.expert_ffn = required(self, moe.ffn)
  local shared = moe.shared and self:size_of(moe.shared, nil, 0)
  if moe.shared and not shared then self:missing(moe.shared) end
  if moe.shared_count then
    shared = (self:size(moe.shared_count, nil, 0) or self:missing{ moe.shared_count }) * shape.expert_ffn
  end
  if shared and shared > 0 then shape.shared_ffn = shared end
  shape.shared_gate = shape.shared_ffn and moe.shared_gate or nil
  shape.router_bias, shape.expert_bias = moe.router_bias, moe.expert_bias
  shape.router_correction_bias = resolve(self, moe.correction_bias)
  local is_dense = moe.dense and moe.dense.of(self, shape.layers) or function() return false end
  check_layer_lists(self, shape, is_dense)
  local dense_layers = set_dense_layers(shape, is_dense)
  if dense_layers == shape.layers then
    failure.usage("%s: no layer of %s has experts, by '%s%s'", self.file, self.label, self.prefix,
                  table.concat(moe.dense, "', '" .. self.prefix))
  end
  return dense_layers
end

local function read_ends(self, family, shape)
  local tied = self:flag("tie_word_embeddings", family.tied and self:is_null("tie_word_embeddings") or nil)
  if tied == nil then tied = given(self.outer.tie_word_embeddings) end
  if tied == nil then
    tied = family.tied
    self:assume("model.tied_embeddings", tied, "tie_word_embeddings is not in the file; %s means %s", self.label, tostring(tied))
  elseif type(tied) ~= "boolean" then
    self:complain("tie_word_embeddings", "true or false", tied)
  end
  shape.tied_embeddings = tied or nil
  shape.head_bias = resolve(self, family.head_bias)
  if family.positions then shape.learned_positions = required(self, position_keys) + family.positions end
  local mtp = self:size_of(mtp_keys, nil, 0)
  if not mtp and self:flag("use_mtp", false) then mtp = self:size("num_mtp_modules", 0, 0) end
  if mtp and mtp > 0 then shape.mtp_layers = mtp end
end

local function read_shape(self, family)
  local shape = { hidden = required(self, hidden_keys), layers = required(self, layer_keys) }
  if shape.layers > 1024 then self:complain(layer_keys[1], "at most 1024", shape.layers) end
  shape.vocab = required(self, vocab_keys, family.vocab)
  read_attention(self, family, shape)
  for _, expected in ipairs(family.expects or {}) do self:expect(table.unpack(expected)) end
  local dense_layers = read_experts(self, family, shape)
  for _, key in ipairs(ffn_keys(family)) do self.seen[key] = true end   -- the files of models without a dense layer have it too
  if dense_layers > 0 then read_ffn(self, family, shape) end
  shape.gated = family.gated ~= false
  shape.norms_per_layer, shape.norm_bias = family.norms or 2, family.norm_bias
  read_ends(self, family, shape)
  if family.adjust then family.adjust(self, shape) end
  if shape.kv_heads and shape.heads % shape.kv_heads ~= 0 then
    failure.usage("%s: '%s%s' (%d) must divide the number of attention heads (%d)", self.file, self.prefix,
                  select(2, first_given(self.config, kv_keys)) or kv_keys[1], shape.kv_heads, shape.heads)
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

-- What is in the file and was not read: known to change no parameter, or too little to change one, or refused.
local function refuse_unread(self, key)
  local known = {}
  for name in pairs(self.seen) do known[#known + 1] = name end
  table.sort(known)
  failure.usage("%s: pipeplan does not know what '%s%s' (%s) is to %s%s; it may change the model's size. Take it out of the file if it "
                .. "does not, or %s", self.file, self.prefix, one_line(key), show(self.config[key]), self.label,
                failure.suggestion(key, known), published_sizes(self))
end

local function check_unread(self, family)
  for _, key in ipairs(family.ignores or {}) do self.seen[key] = true end
  for _, key in ipairs(position_keys) do self.seen[key] = true end
  for _, key in ipairs(unread_keys(self)) do
    local value = given(self.config[key])
    local empty = value == nil or value == "" or type(value) == "table" and next(value) == nil
    if value == false and config_keys.is_switch[key] or empty then
      self.seen[key] = true
    elseif value == false or type(value) == "string" then
      local message = string.format("%s: pipeplan does not know what '%s%s' (%s) is to %s; it is taken to change no size", self.file,
                                    self.prefix, one_line(key), show(value), self.label)
      self.warnings[#self.warnings + 1] = { id = "unknown_model_key", severity = "warning", message = message }
    else
      refuse_unread(self, key)
    end
  end
end

-- Node-limited routing: the experts of a token lie in at most topk_group of n_group groups, one group per node (DeepSeek-V3 report, 2.1.2).
-- It changes no parameter, only how many nodes a token is sent to.
local function max_domains(self)
  local groups, kept = self:get("n_group"), self:get("topk_group")
  if math.type(groups) == "integer" and math.type(kept) == "integer" and kept > 0 and kept < groups then return kept end
end

-- The exact totals, and what the engine may still find wrong with the shape.
local function count(self, shape)
  local good, totals = pcall(engine.model.parameters, shape)
  if not good then failure.usage("%s: %s", self.file, tostring(totals):gsub("^.-model shape: ", "")) end
  return totals
end

--[[
The model of a decoded config.json. `file` is its name, for messages and for the model's name.
Returns { name, architecture, shape, layers, max_positions, max_domains, assumptions, warnings, total_parameters, active_parameters,
active_parameters_without_embedding, mtp_parameters }; the shape is what engine.model takes, totals are exact.
Raises a usage failure for what is no config of a language model, for implausible sizes, for a family that cannot be counted exactly, and
for a key that may change the model and is not known.
]]
function hf.read(config, file)
  local self = open(config, file)
  self.assumptions = {}
  local family = family_of(self)
  local shape = read_shape(self, family)
  if self.prefix ~= "" then
    self:assume("model", "text model only", "%s is multimodal; only what '%s' holds is counted", self.label, self.prefix:sub(1, -2))
  end
  local positions = first_given(self.config, position_keys) and self:size(select(2, first_given(self.config, position_keys)))
  check_unread(self, family)
  local totals = count(self, shape)
  return {
    name = name_of(self), architecture = shape.experts and "moe" or "dense", shape = shape, layers = shape.layers,
    max_positions = positions or family.max_positions, max_domains = max_domains(self), assumptions = self.assumptions,
    warnings = self.warnings, total_parameters = totals.total, active_parameters = totals.active,
    active_parameters_without_embedding = totals.active_without_embedding, mtp_parameters = totals.mtp,
  }
end

-- The model of an inline shape in a spec: see inline_shape.lua.
function hf.inline(given_shape, file)
  return require("pipeplan.input.inline_shape").read(given_shape, file)
end

return hf
