-- SPDX-License-Identifier: Apache-2.0
-- A config.json with a renamed key is refused or is the model that it was: files come under names that no table of keys holds. Random renames of
-- random keys, those of objects in them too, of the files of tests/oracles/transformers_*.json. PIPEPLAN_MUTATIONS says how many (default 200;
-- 2000 take two seconds).
require "pipeplan"
local config_keys = require "pipeplan.catalog.config_keys"
local failure = require "pipeplan.base.failure"
local hf = require "pipeplan.input.hf_config"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local source = os.getenv("PIPEPLAN_SOURCE") or "."
local count = tonumber(os.getenv("PIPEPLAN_MUTATIONS")) or 200

local cases = {}
for release = 4, 5 do
  local name = string.format("%s/tests/oracles/transformers_%d.json", source, release)
  for _, case in ipairs(json.decode(io.open(name):read("a"), name).cases) do cases[#cases + 1] = case.config end
end

local seed = 20260501
local function random(n)   -- from 1 to n, the same on every machine
  seed = (seed * 1103515245 + 12345) % 2 ^ 31
  return math.tointeger(seed // 1 >> 8) % n + 1
end

-- Names that other files have for a size, and ways in which names change from release to release.
local synonyms = { "n_layers", "d_model", "dim", "num_heads", "kv_heads", "ffn_dim", "moe_num_experts", "num_expert", "experts_top_k", "moe_inter_dim",
                   "expert_intermediate_size", "shared_expert_size", "vocabulary_size", "tied", "use_bias_in_attention", "width", "layer_kinds" }
local ways = {
  function(key) return key .. "_v2" end, function(key) return "text_" .. key end, function(key) return key .. "s" end,
  function(key) return (key:gsub("num_", "n_", 1)) end, function(key) return (key:gsub("_(%l)", string.upper)) end,
  function(key) return key:sub(1, -2) end, function(key) return (key:gsub("size", "dim")) end, function() return synonyms[random(#synonyms)] end,
}

local names_it = { architectures = true, model_type = true, transformers_version = true }

local function read(config)
  local good, result = failure.try(hf.read, config, "config.json")
  return good and result or nil, result
end

-- What a reader would plan with.
local function counts(model)
  local windows = {}
  for i, layer in ipairs { model.shape, table.unpack(model.shape.kinds or {}) } do
    windows[i] = string.format("%s/%s", tostring(layer.window), tostring(layer.chunk))
  end
  return string.format("%d %d %d %s %s", model.total_parameters, model.active_parameters, model.mtp_parameters, model.architecture,
                       table.concat(windows, " "))
end

-- The config and the objects in it, each with the keys that lead there.
local function objects_of(config)
  local list = {}
  local function walk(object, trail)
    list[#list + 1] = { object = object, trail = trail }
    for _, key in ipairs(lists.sorted_keys(object)) do
      local value = object[key]
      if type(value) == "table" and value ~= json.null and not json.is_array(value) and next(value) ~= nil then
        walk(value, { key, table.unpack(trail) })   -- innermost first
      end
    end
  end
  walk(config, {})
  return list
end

-- The config with another object at the end of a trail.
local function with_object(config, trail, object)
  local path = {}
  for i = #trail, 1, -1 do path[#path + 1] = trail[i] end
  local function laid(at, depth)
    if depth > #path then return object end
    return lists.with(at, { [path[depth]] = laid(at[path[depth]], depth + 1) })
  end
  return laid(config, 1)
end

describe("a config.json with a renamed key", function()
  it(string.format("is refused, or has the parameters that it had: %d renames", count), function()
    local silent, refused = {}, 0
    for _ = 1, count do
      local config = cases[random(#cases)]
      local objects = objects_of(config)
      local place = objects[random(3) == 1 and random(#objects) or 1]
      local object = place.object
      local keys = lists.sorted_keys(object)
      local key = keys[random(#keys)]
      local name = ways[random(#ways)](key)
      if not names_it[key] and object[name] == nil and not config_keys.reason(name) then   -- a known name says something else
        local renamed = lists.with(object, { [name] = object[key] })
        renamed[key] = nil
        local model = read(with_object(config, place.trail, renamed))
        if not model then refused = refused + 1
        elseif counts(model) ~= counts(assert(read(config))) then
          silent[#silent + 1] = string.format("%s: '%s' as '%s'", config.model_type, table.concat({ key, table.unpack(place.trail) }, " of "), name)
        end
      end
    end
    assert.same({}, silent)
    assert.is_true(refused > count / 10)   -- that some are is what makes the rest tell anything
  end)

  it("or with a size beyond any model is answered in the file's own words, not in the engine's", function()
    for _, config in ipairs(cases) do
      for _, key in ipairs(lists.sorted_keys(config)) do
        if math.type(config[key]) == "integer" and config[key] > 1 then
          local model, problem = read(lists.with(config, { [key] = 1 << 40 }))
          for name in (not model and problem.message or ""):gmatch "'([%w_]+)' must be from" do
            assert.is_not_nil(config[name], string.format("%s, %s: %s", config.model_type, key, problem.message))
          end
        end
      end
    end
  end)

  -- what files and slips of the hand put into keys that say which layers are of what kind, and how far they attend
  it("or with nonsense in a key of its layers is read or refused in words", function()
    local keys = { "sliding_window", "sliding_window_pattern", "layer_types", "use_sliding_window", "max_window_layers", "no_rope_layers",
                   "no_rope_layer_interval", "attention_chunk_size", "global_attn_every_n_layers", "sliding_window_size", "mlp_layer_types",
                   "hybrid_layer_pattern", "moe_layer_freq", "quantization_config", "expert_dtype" }
    local values = { 0, -1, 1.5, "x", "", true, false, json.null, json.array {}, {}, json.array { 1, 2 }, json.array { "a" }, 1 << 40, 1e300, "LLG" }
    for i, config in ipairs(cases) do
      local key, value = keys[i % #keys + 1], values[random(#values)]
      for _, one in ipairs { value, values[random(#values)], values[random(#values)] } do
        local good, problem = pcall(hf.read, lists.with(config, { [key] = one }), "config.json")
        assert.is_true(good or failure.is(problem), string.format("%s, %s: %s", config.model_type, key, tostring(problem)))
      end
    end
    -- an object in place of each layer's kind is named as one, not by where it lies in memory
    for _, config in ipairs(cases) do
      local list = json.array {}
      for i = 1, config.num_hidden_layers or 0 do list[i] = { [i] = true } end
      for _, key in ipairs { "layer_types", "mlp_layer_types", "layers_block_type" } do
        local model, problem = read(lists.with(config, { [key] = list }))
        if not model then assert.is_nil(problem.message:find("0x", 1, true), problem.message) end
      end
    end
    local nemotron = lists.with(cases[1], {})
    for _, config in ipairs(cases) do nemotron = config.model_type == "nemotron_h" and config or nemotron end
    local _, problem = pcall(hf.read, lists.with(nemotron, { mlp_layer_types = json.array { 1 } }), "config.json")
    assert.is_true(failure.is(problem), tostring(problem))
  end)

  it("with a key added that changes nothing is still the same model", function()
    local harmless = lists.sorted_keys(config_keys.harmless())
    for _, config in ipairs(cases) do
      local key = harmless[random(#harmless)]
      if config[key] == nil and config.text_config == nil then
        local model = assert(read(lists.with(config, { [key] = 3 })), config.model_type .. " with " .. key)
        assert.equal(counts(assert(read(config))), counts(model), config.model_type .. " with " .. key)
      end
    end
  end)
end)
