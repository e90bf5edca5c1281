-- SPDX-License-Identifier: Apache-2.0
-- shapes.lua: the model of a launch held against the one that its plan was made for (model.shape of a plan), field by field.

local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local reads = require "pipeplan.analysis.lint.reads"
local vocabulary = require "pipeplan.vocabulary"

local shapes = {}

local function no() return false end
local function none() return "none" end
local function zero() return 0 end

local function of_heads(shape) return shape.attention ~= "mla" and shape.heads or nil end
local function of_hidden(shape)
  return shape.attention ~= "mla" and (shape.heads or 0) > 0 and shape.hidden and shape.hidden // shape.heads or nil
end

-- Field of a shape, Megatron's key that says it, what holds where a shape says nothing, and another key that says it. Of `stated` the plan
-- must say something: an inline model that is silent about its norms, say, has none that a launch could differ from.
local compared = {
  { "hidden", "--hidden-size" }, { "heads", "--num-attention-heads" }, { "kv_heads", "--num-query-groups", of_heads },
  { "head_dim", "--kv-channels", of_hidden }, { "attention", "--multi-latent-attention", function() return "gqa" end },
  { "q_lora_rank", "--q-lora-rank", zero }, { "kv_lora_rank", "--kv-lora-rank" }, { "qk_nope_dim", "--qk-head-dim" },
  { "qk_rope_dim", "--qk-pos-emb-head-dim" }, { "v_dim", "--v-head-dim" }, { "ffn", "--ffn-hidden-size" },
  { "gated", "--swiglu", function() return true end }, { "vocab", "--vocab-size" },
  { "tied_embeddings", "--untie-embeddings-and-output-weights", no, "model.share_embeddings_and_output_weights", stated = true },
  { "experts", "--num-experts", zero }, { "expert_ffn", "--moe-ffn-hidden-size" }, { "experts_per_token", "--moe-router-topk" },
  { "shared_ffn", "--moe-shared-expert-intermediate-size", zero }, { "dense", "--moe-layer-freq", function() return "" end },
  { "mtp_layers", "--mtp-num-layers", zero }, { "norm_bias", "--normalization", no, stated = true },
  { "qk_norm", "--qk-layernorm", none, stated = true }, { "mlp_bias", "--disable-bias-linear", no, stated = true },
  { "qkv_bias", "--add-qkv-bias", no, stated = true }, { "learned_positions", "--position-embedding-type", zero, stated = true },
  { "router_correction_bias", "--moe-router-enable-expert-bias", no, stated = true },
  { "window", "--window-size", zero }, { "attention_sinks", "--softmax-type", zero }, { "output_gate", "--attention-output-gate", zero },
  { "shared_gate", "--moe-shared-expert-gate", no },
}

-- What is no count of a shape.
local others = { attention = "string", qk_norm = "string", dense_layers = "table", gated = "boolean", tied_embeddings = "boolean",
                 norm_bias = "boolean", mlp_bias = "boolean", qkv_bias = "boolean", router_correction_bias = "boolean",
                 shared_gate = "boolean" }

local function round_up(number, step) return (number + step - 1) // step * step end

-- A shape as it is compared: a vocabulary as it is padded over TP, the numbers of dense layers in one text, and no window that is as long
-- as a sequence.
local function comparable(shape, tensor, length)
  local copy, dense = {}, {}
  for _, each in ipairs(compared) do copy[each[1]] = shape[each[1]] end
  copy.vocab = copy.vocab and round_up(copy.vocab, 128 * tensor)
  if (shape.experts or 0) > 0 then
    for i = 1, math.min(shape.layers or 0, vocabulary.most.layers) do
      local listed = json.is_array(shape.dense_layers) and lists.contains(shape.dense_layers, i)
      if i <= (shape.first_dense or 0) or i % (shape.moe_every or 1) ~= 0 or listed then dense[#dense + 1] = i end
    end
    copy.dense = table.concat(dense, " ")
  end
  if copy.window and length and copy.window >= length then copy.window = nil end
  if copy.learned_positions then copy.learned_positions = math.min(1, copy.learned_positions) end   -- how many, no plan depends on
  return copy
end

-- Has a model any layer whose MLP is dense?
local function has_dense(shape) return (shape.experts or 0) == 0 or shape.dense ~= nil and shape.dense ~= "" end

-- The shape of a plan's file, or nil where it is none.
local function shape_of(plan)
  local given = json.at(plan, "model.shape")
  if type(given) ~= "table" then return nil end
  local shape = {}
  for name, value in pairs(given) do
    local counted = math.type(value) == "integer" and value >= 0 and value <= vocabulary.most.counted
    local good = others[name] and type(value) == others[name] or not others[name] and counted
    if good and value ~= json.null then shape[name] = value end
  end
  if shape.moe_every == 0 then shape.moe_every = nil end
  return shape
end

-- note(field, wanted, found, key) takes each difference.
function shapes.compare(result, plan, note)
  local shape, own, odd = shape_of(plan), nil, nil
  if result.record then own, odd = reads.model(result) end
  if not shape then return end
  if odd == reads.odd_window then note("model.window", shape.window or 0, nil, "--window-size") end
  if not own then
    for _, each in ipairs { { "hidden", "--hidden-size" }, { "heads", "--num-attention-heads" } } do
      local said, wanted = result.get(each[2]), shape[each[1]]
      if said.key and wanted and (said.unknown or said.value == nil) then note("model." .. each[1], wanted, nil, each[2]) end
    end
    return
  end
  local tensor = math.max(1, math.tointeger(plan.parallelism.tensor) or 1)
  local in_kinds = type(json.at(plan, "model.shape.kinds")) == "table"   -- each has its own window
  local length = math.tointeger(json.at(plan, "training.sequence_length"))
  local wanted, found = comparable(shape, tensor, length), comparable(own, tensor, length)
  if wanted.attention == "mla" then   -- its norms are those of the latents
    wanted.qk_norm, found.qk_norm = "latents", result.get("--qk-layernorm").value == true and "latents" or "none"
  end
  for _, each in ipairs(compared) do
    local name, key, default = each[1], each[2], each[3] or function() end
    if each[4] and not result.get(key).key then key = each[4] end
    local a, b = wanted[name], found[name]
    if a == nil and not each.stated then a = default(wanted) end
    if b == nil then b = default(found) end
    local said = result.get(key).key ~= nil and a ~= nil and b ~= nil
    local idle = name == "ffn" and not (has_dense(wanted) and has_dense(found)) or name == "window" and in_kinds
    if said and not idle and a ~= b then note("model." .. name, a, b, key) end
  end
end

return shapes
