-- SPDX-License-Identifier: Apache-2.0
-- hf_config.lua: the shape of a model from its Hugging Face config.json, counted exactly or refused by name.
-- What a key means is read here, by hf_reader.lua; what a family's layers hold stands in catalog/families.lua.

local blocks = require "pipeplan.base.blocks"
local catalog = require "pipeplan.catalog.families"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local kinds = require "pipeplan.input.hf_kinds"
local lists = require "pipeplan.base.lists"
local reader = require "pipeplan.input.hf_reader"
local windows = require "pipeplan.input.hf_windows"

local names, given, one_line, show = reader.names, reader.given, reader.one_line, reader.show

local hf = {}

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

-- Families by class and by model_type, and their names.
local function index(families)
  local by_class, by_type, names_of = {}, {}, {}
  for name, family in pairs(families) do
    by_type[name], names_of[family] = family, name
    for _, class in ipairs(family.classes) do by_class[class] = family end
    for _, model_type in ipairs(family.types or {}) do by_type[model_type] = family end
  end
  return { by_class = by_class, by_type = by_type, names_of = names_of }
end

-- Of families whose layers are alike, which most files are of, and of all of them.
local alike, all = index(catalog.alike), nil
local function find(by, key)
  if key == nil then return nil end
  if alike[by][key] then return alike[by][key] end
  all = all or index(catalog.all())
  return all[by][key]
end

-- What tells of layers that the family, if it is one that we know, does not read.
local function check_features(self, family)
  for _, telling in ipairs(catalog.telling_keys) do
    local value = self:get(telling[1])
    if value and value ~= 0 and value ~= "" and not (family.reads or {})[telling[1]] then
      self:refuse(string.format("%s ('%s')", telling[2], telling[1]))
    end
  end
  local types = self:get("layer_types")
  for _, layer_type in ipairs(type(types) == "table" and types or {}) do
    if not catalog.plain_layer_types[layer_type] and not (family.layer_types or {})[layer_type] then
      self:refuse(string.format("%s layers ('layer_types')", reader.word(layer_type):gsub("_", " ")))
    end
  end
  for _, kind in ipairs(not (family.reads or {}).attn_type_list and self:integers("attn_type_list") or {}) do
    if kind == 0 then self:refuse("lightning (linear) attention layers ('attn_type_list')") end
  end
end

local function unknown_family(self, name)
  local family_names = lists.sorted_keys(catalog.all())
  failure.usage("%s: pipeplan does not know how %s is built%s; it knows %s; %s", self.file, self.label,
                failure.suggestion(name, family_names), table.concat(family_names, ", "), self:published_sizes())
end

-- By the class that the file names, else by its model_type. A text model inside another is what it says itself, where it does.
local function family_of(self)
  local class, model_type = class_of(self.config), string_at(self.config, "model_type")
  if not class and not model_type then class, model_type = class_of(self.outer), string_at(self.outer, "model_type") end
  self.family = (model_type or class) and one_line(model_type or class)
  self.label = one_line(class or class_of(self.outer) or model_type or "")
  if self.label == "" then
    failure.usage("%s: not a config.json of a language model: neither 'model_type' nor 'architectures' says what it is", self.file)
  end
  local of_class = find("by_class", class)
  if of_class then return of_class end
  check_features(self, find("by_type", model_type) or {})
  if catalog.refused[model_type] then self:refuse(catalog.refused[model_type]) end
  local family = find("by_type", model_type) or unknown_family(self, model_type or class)
  if class and self.prefix == "" then
    if not is_kin(class, family) then unknown_family(self, class) end
    self:assume("model", family.classes[1], "%s is read as the same blocks with a head for language", self.label)
  end
  return family
end
-- Keys of the files of latent attention that its classes keep and do not use.
local unread_in_mla = { "num_key_value_heads", "head_dim" }

-- The name by which the file has a size.
local function key_of(self, keys)
  return select(2, self:first_given(keys)) or keys[1]
end

local function read_head_dim(self, family, shape)
  local keys, class = family.head_dim_keys or names.head_dim, family.head_dim
  if class == "not null" and self:is_null(keys[1]) then self:complain(keys[1], "an integer ≥ 1", self.config[keys[1]]) end
  shape.head_dim = class == "given" and self:required(keys) or self:size_or_class(keys, math.type(class) and class)
  if shape.head_dim and class ~= "hidden" then return end
  if shape.hidden % shape.heads ~= 0 then
    failure.usage("%s: '%s%s' (%d) must divide '%s%s' (%d) when there is no 'head_dim'", self.file, self.prefix,
                  key_of(self, names.heads), shape.heads, self.prefix, key_of(self, names.hidden), shape.hidden)
  end
  local derived = shape.hidden // shape.heads
  if shape.head_dim and shape.head_dim ~= derived then
    self:complain(key_of(self, keys), string.format("'%s' / '%s' (%d) in %s", key_of(self, names.hidden), key_of(self, names.heads),
                                                    derived, self.label), shape.head_dim)
  end
  shape.head_dim = derived
end

local function read_attention(self, family, shape)
  shape.heads = self:required(names.heads, family.heads)
  if family.mla and self:get("kv_lora_rank") then
    if self:flag("attention_bias", false) then self:refuse("biases in latent attention ('attention_bias')") end
    shape.attention = "mla"
    for _, key in ipairs(unread_in_mla) do self.seen[key] = true end
    -- null: queries are not compressed; absent, each class has a rank of its own
    if self.config.q_lora_rank == nil then self:missing{ "q_lora_rank" } end
    shape.q_lora_rank = self:size("q_lora_rank", nil)
    shape.kv_lora_rank = self:size("kv_lora_rank")
    shape.qk_nope_dim = self:required({ "qk_nope_head_dim" })
    shape.qk_rope_dim = self:required({ "qk_rope_head_dim" })
    shape.v_dim = self:required({ "v_head_dim" })
    if self:size("qk_head_dim", shape.qk_nope_dim + shape.qk_rope_dim) ~= shape.qk_nope_dim + shape.qk_rope_dim then
      self:complain("qk_head_dim", string.format("qk_nope_head_dim + qk_rope_head_dim (%d)", shape.qk_nope_dim + shape.qk_rope_dim),
                    self.config.qk_head_dim)
    end
    return
  elseif family.mla then
    self:missing{ "kv_lora_rank" }
  end
  if family.kv_heads == "heads" then shape.kv_heads = shape.heads
  elseif family.kv_heads == "given" then shape.kv_heads = self:required(names.kv_heads)
  else
    shape.kv_heads = self:size_or_class(names.kv_heads, family.kv_heads or nil)
    if not shape.kv_heads then
      shape.kv_heads = shape.heads
      self:assume("model.kv_heads", shape.heads, "'%s' is not in the file: as many as heads, as %s takes it", names.kv_heads[1], self.label)
    end
  end
  read_head_dim(self, family, shape)
  shape.qkv_bias = self:resolve(family.qkv_bias)
  shape.output_bias = self:resolve(family.output_bias)
  local norm = family.qk_norm
  if type(norm) == "table" then norm = self:flag(norm.key, norm.default) and norm.kind or nil end
  shape.qk_norm = norm
end

local MOST_SHARED_EXPERTS = 4096

-- Of sizes ≥ 0 of which the engine has yet to say whether they are plausible; the largest integer where it would be more.
local function product(a, b)
  return a > 0 and b > math.maxinteger // a and math.maxinteger or a * b
end

local function ffn_keys(family)
  return family.ffn or { "intermediate_size" }
end

-- The dense feed-forward's width: of every layer, or of those that are dense.
local function read_ffn(self, family, shape)
  local keys = ffn_keys(family)
  local derived = keys.times and (not keys.times_with or given(self.config[keys.times_with])) and product(keys.times, shape.hidden)
  shape.ffn = self:size_of(keys, derived) or self:missing(keys)
  shape.mlp_bias = self:resolve(family.mlp_bias)
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
-- A family without experts: a file that counts some all the same is of another.
local function check_dense(self)
  for _, key in ipairs(names.experts) do
    local value = self:get(key)
    if value and value ~= 0 and value ~= 1 then
      failure.usage("%s: '%s%s' is %s, and %s has no experts; %s", self.file, self.prefix, key, show(value), self.label,
                    self:published_sizes())
    end
  end
end

-- mlp_layer_types says in words which layers are dense; it must agree with the other keys.
local function check_layer_lists(self, family, shape, is_dense)
  for _, key in ipairs{ "layer_types", "mlp_layer_types" } do
    local list = self:get(key)
    if list ~= nil and (type(list) ~= "table" or #list ~= shape.layers) then
      self:complain(key, string.format("a list of %d, one for each of '%s'", shape.layers, key_of(self, names.layers)),
                    type(list) == "table" and #list or list)
    end
  end
  for i, kind in ipairs(self:get("mlp_layer_types") or {}) do
    local known = kind == (is_dense(i) and "dense" or "sparse") or not is_dense(i) and (family.mlp_types or {})[kind]
    if not known then
      self:refuse(string.format("an MLP that the other keys do not tell ('mlp_layer_types' has %s for layer %d)", show(kind), i))
    end
  end
end

-- Returns the number of dense layers.
local function read_experts(self, family, shape)
  local moe = family.moe
  if type(moe) == "function" then moe = moe(self, shape) end
  if not moe then
    if not family.moe then check_dense(self) end   -- else the family has looked
    check_layer_lists(self, family, shape, function() return true end)
    return shape.layers
  end
  for _, keys in ipairs{ moe.ffn, moe.shared or {}, { moe.shared_count }, moe.dense or {} } do
    for _, key in ipairs(keys) do self.seen[key] = true end
  end
  local experts = self:uniform_size(names.experts) or self:missing(names.experts)
  shape.experts = experts
  shape.experts_per_token = self:uniform_size(names.top) or self:missing(names.top)
  if shape.experts_per_token < 1 or shape.experts_per_token > experts then
    self:complain(key_of(self, names.top), string.format("from 1 to the number of experts (%d)", experts), shape.experts_per_token)
  end
  shape.expert_ffn = self:required(moe.ffn)
  local shared = moe.shared and self:size_of(moe.shared, nil, 0)
  if moe.shared and not shared then self:missing(moe.shared) end
  if moe.shared_count then
    local number = self:size(moe.shared_count, nil, 0) or self:missing{ moe.shared_count }
    if number > MOST_SHARED_EXPERTS then self:complain(moe.shared_count, "at most " .. MOST_SHARED_EXPERTS, number) end
    shared = product(number, shape.expert_ffn)
  end
  if shared and shared > 0 then shape.shared_ffn = shared end
  shape.shared_gate = shape.shared_ffn and moe.shared_gate or nil
  shape.router_bias, shape.expert_bias = moe.router_bias, moe.expert_bias
  shape.router_correction_bias = self:resolve(moe.correction_bias)
  local is_dense = moe.dense and moe.dense.of(self, shape.layers) or function() return false end
  check_layer_lists(self, family, shape, is_dense)
  self.is_dense = is_dense
  local dense_layers = set_dense_layers(shape, is_dense)
  if dense_layers == shape.layers then
    failure.usage("%s: no layer of %s has experts, by '%s%s'", self.file, self.label, self.prefix,
                  table.concat(moe.dense, "', '" .. self.prefix))
  end
  return dense_layers
end

-- Where a multimodal file and its text model disagree: classes of transformers 4 go by the text model, those of 5 by the file, but some of
-- these take a true in either.
local function tied_of_two(self, family, inside)
  local outside = given(self.outer.tie_word_embeddings)
  if self.prefix == "" or type(outside) ~= "boolean" or outside == inside then return inside end
  local release = tonumber((string_at(self.outer, "transformers_version") or ""):match "^(%d+)%.") or 4
  local tied = inside
  if family.tied_by_either then tied = true elseif release >= 5 then tied = outside end
  self:assume("model.tied_embeddings", tied, "'tie_word_embeddings' is %s in the file and %s in '%s': as transformers %d takes it",
              tostring(outside), tostring(inside), self.prefix:sub(1, -2), release)
  return tied
end

local function read_ends(self, family, shape)
  local tied = self:flag("tie_word_embeddings", family.tied and self:is_null("tie_word_embeddings") or nil)
  if tied == nil then tied = given(self.outer.tie_word_embeddings) else tied = tied_of_two(self, family, tied) end
  if tied == nil then
    tied = family.tied
    if tied then self.taken_for_true[#self.taken_for_true + 1] = "tie_word_embeddings" end
    self:assume("model.tied_embeddings", tied, "tie_word_embeddings is not in the file; %s means %s", self.label, tostring(tied))
  elseif type(tied) ~= "boolean" then
    self:complain("tie_word_embeddings", "true or false", tied)
  end
  shape.tied_embeddings = tied or nil
  shape.head_bias = self:resolve(family.head_bias)
  if family.positions then
    local positions = self:required(names.positions)
    shape.learned_positions = math.max(positions, positions + family.positions)  -- the engine refuses what would overflow
  end
  local mtp = self:size_of(names.mtp, nil, 0)
  if not mtp and self:flag("use_mtp", false) then mtp = self:size("num_mtp_modules", 0, 0) end
  if mtp and mtp > 0 then shape.mtp_layers = mtp end
end

local function read_shape(self, family)
  local shape = { hidden = self:required(names.hidden), layers = family.layers and family.layers(self) or self:required(names.layers) }
  if shape.layers > 1024 then self:complain(key_of(self, names.layers), "at most 1024", shape.layers) end
  shape.vocab = self:required(names.vocab, family.vocab)
  read_attention(self, family, shape)
  for _, expected in ipairs(family.expects or {}) do self:expect(table.unpack(expected)) end
  local dense_layers = read_experts(self, family, shape)
  for _, key in ipairs(ffn_keys(family)) do self.seen[key] = true end   -- the files of models without a dense layer have it too
  if dense_layers > 0 then read_ffn(self, family, shape) end
  shape.gated = family.gated ~= false
  shape.norms_per_layer, shape.norm_bias = family.norms or 2, family.norm_bias
  read_ends(self, family, shape)
  if family.adjust then family.adjust(self, shape) end
  local own = windows.join(shape, family.own and family.own(self, shape), windows.of(self, find("names_of", family), shape))
  if own then kinds.fill(self, shape, own, self.is_dense or function() return true end) end
  if shape.kv_heads and shape.heads % shape.kv_heads ~= 0 then
    failure.usage("%s: '%s%s' (%d) must divide '%s%s' (%d)", self.file, self.prefix, key_of(self, names.kv_heads), shape.kv_heads,
                  self.prefix, key_of(self, names.heads), shape.heads)
  end
  return shape
end

-- What of the layers' time nothing has measured.
local function say_unmeasured(self, shape)
  local mixers = { [blocks.mixers[shape.attention] or false] = true }
  for _, kind in ipairs(shape.kinds or {}) do mixers[blocks.mixers[kind.attention] or false] = true end
  mixers[false] = nil
  mixers[blocks.mixers.compressed] = nil
  if shape.attention == "compressed" then
    self:assume("model", "compressed attention at the speed of attention",
                "its FLOPs are known, of its kernels nothing is measured; they are taken to keep what they read and give; the loss that "
                .. "trains its indexer and what is passed on under context parallelism are not counted")
  end
  for _, name in ipairs(lists.sorted_keys(mixers)) do
    self:assume("model", name .. " at the speed of attention",
                "its FLOPs are known, of its kernels nothing is measured; they are taken to keep what those of flash-linear-attention and "
                .. "mamba_ssm keep for backward; what it passes on under context parallelism is not counted")
  end
  local indexed = shape.index_topk
  for _, kind in ipairs(shape.kinds or {}) do indexed = indexed or kind.index_topk end
  if indexed and shape.attention ~= "compressed" then
    self:assume("model", "sparse attention at the speed of attention", "of its kernels nothing is measured; the loss that trains its "
                .. "indexer is not counted")
  end
end

-- How the file's weights are stored, where that is not how training keeps them: by a quantizer's own words.
local function stored_as(self)
  local said = given(self.config.quantization_config) or given(self.outer.quantization_config) or given(self.config.compression_config)
  if type(said) ~= "table" or json.is_array(said) then return string_at(self.config, "expert_dtype") end
  local words = {}
  for _, key in ipairs { "quant_method", "quant_algo", "fmt", "format" } do
    local word = string_at(said, key)
    if word and word ~= words[1] then words[#words + 1] = one_line(word) end
  end
  return words[1] and table.concat(words, " ") or "quantized"
end

local function say_stored(self)
  local how = stored_as(self)
  if how then
    self:assume("model.quantization_config", "not counted", "the file's weights are %s; training keeps them as training.precision and "
                .. "training.weights say", how)
  end
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
-- Node-limited routing: the experts of a token lie in at most topk_group of n_group groups, one group per node (DeepSeek-V3 report, 2.1.2).
-- It changes no parameter, only how many nodes a token is sent to.
local function max_domains(self)
  local groups, kept = self:get("n_group"), self:get("topk_group")
  if math.type(groups) == "integer" and math.type(kept) == "integer" and kept > 0 and kept < groups then return kept end
end

-- Sizes of mixers and indexers → the keys that families have for them; where a file has none of them, the size is that of a head.
local keys_of_mixers = {
  key_heads = { "linear_num_key_heads", "n_groups", "mamba_n_groups", "linear_num_heads", "num_attention_heads" },
  key_dim = { "linear_key_head_dim", "ssm_state_size", "mamba_d_state", "state_size", "linear_head_dim", "head_dim" },
  value_heads = { "linear_num_value_heads", "mamba_num_heads", "mamba_n_heads", "mamba_expand", "expand", "linear_num_heads",
                  "num_attention_heads" },
  step_rank = { "mamba_dt_rank", "time_step_rank" },
  value_dim = { "linear_value_head_dim", "mamba_head_dim", "mamba_d_head", "linear_head_dim", "head_dim" },
  conv_kernel = { "linear_conv_kernel_dim", "conv_kernel", "mamba_d_conv", "conv_L_cache" },
  output_groups = { "o_groups" }, output_rank = { "o_lora_rank" }, streams = { "hc_mult" }, q_lora_rank = { "q_lora_rank" },
  compression = { "compress_ratios", "compress_rates" },
  index_heads = { "index_n_heads" }, index_dim = { "index_head_dim" }, index_topk = { "index_topk", "index_topk_blocks" },
  expert_hidden = { "moe_latent_size" }, zero_experts = { "zero_expert_num" },
  window = { "sliding_window", "sliding_window_size" }, chunk = { "attention_chunk_size" },
}

-- Fields of a shape → names of the keys that they are read from.
local function keys_of_fields(family)
  local moe = type(family.moe) == "table" and family.moe or {}
  return lists.with(keys_of_mixers, {
    hidden = names.hidden, layers = names.layers, vocab = names.vocab, heads = names.heads, kv_heads = names.kv_heads,
    head_dim = family.head_dim_keys or names.head_dim, attention_sinks = names.heads, qk_nope_dim = { "qk_nope_head_dim" },
    qk_rope_dim = { "qk_rope_head_dim" }, v_dim = { "v_head_dim" }, ffn = ffn_keys(family), experts = names.experts,
    experts_per_token = names.top, expert_ffn = moe.ffn or { "moe_intermediate_size", "intermediate_size" },
    shared_ffn = moe.shared_count and { moe.shared_count } or moe.shared
      or { "moe_shared_expert_intermediate_size", "shared_intermediate_size", "intermediate_size" },
    output_gate = names.head_dim, scales = names.experts,
    learned_positions = names.positions, mtp_layers = { names.mtp[1], names.mtp[2], names.mtp[3], "num_mtp_modules" },
  })
end

-- The exact totals, and what the engine may still find wrong with the shape, said of the file's own keys.
local function count(self, family, shape)
  local good, totals = failure.try(engine.model.parameters, shape)
  if good then return totals end
  local keys = keys_of_fields(family)
  local function key(field)
    local own = keys[field] and keys[field][1] and key_of(self, keys[field])
    return own and string.format("'%s%s'", self.prefix, own)
  end
  failure.usage("%s: %s", self.file, (tostring(totals):gsub("^.-model shape: ", ""):gsub("'([%w_]+)'", key)))
end

-- The tower of images beside the text model, as `training.tower` says it is held.
local function read_tower(self, shape, how)
  local told = self:towers()[1]
  if how == "none" or not told then
    local class = class_of(self.outer)
    local builds_one = class and class:find "ForConditionalGeneration$" and class
    if told or builds_one or self.prefix ~= "" then
      local why = told and string.format("%s ('%s') is left out, as training.tower says", told[2], told[1])
                  or builds_one and string.format("it says nothing of its tower: the one that %s then builds is not counted", builds_one)
                  or string.format("only what '%s' holds is counted", self.prefix:sub(1, -2))
      self:assume("model", "text model only", "%s is multimodal; %s", self.label, why)
    end
    return
  end
  shape.tower = require("pipeplan.input.hf_tower").count(self, shape.hidden)
  shape.tower_frozen = how == "frozen" or nil
end

--[[
The model of a decoded config.json. `file` is its name, for messages and for the model's name. tower: "trained" (nil too), "frozen", "none".
Returns { name, architecture, shape, layers, max_positions, max_domains, assumptions, warnings, total_parameters, active_parameters,
active_parameters_without_embedding, mtp_parameters, tower_parameters }; the shape is what engine.model takes, totals are exact.
Raises a usage failure for what is no config of a language model, for implausible sizes, for a family that cannot be counted exactly, and
for a key that may change the model and is not known.
]]
function hf.read(config, file, tower)
  local self = reader.open(config, file)
  local family = family_of(self)
  check_features(self, family)
  local shape = read_shape(self, family)
  read_tower(self, shape, tower)
  local positions = self:first_given(names.positions) and self:size(select(2, self:first_given(names.positions)))
  say_stored(self)
  say_unmeasured(self, shape)
  self:check_unread(family.ignores or {})
  self:check_outer()
  local totals = count(self, family, shape)
  return {
    name = name_of(self), family = self.family, architecture = shape.experts and "moe" or "dense", shape = shape, layers = shape.layers,
    max_positions = positions or family.max_positions, max_domains = max_domains(self), assumptions = self.assumptions,
    warnings = self.warnings, total_parameters = totals.total, active_parameters = totals.active,
    active_parameters_without_embedding = totals.active_without_embedding, mtp_parameters = totals.mtp,
    tower_parameters = shape.tower,
  }
end

return hf
