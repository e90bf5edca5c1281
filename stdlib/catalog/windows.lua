-- SPDX-License-Identifier: Apache-2.0
-- windows.lua: which layers of a family attend to a window of the last tokens, or to a chunk, where its file has no "layer_types". Facts of the
-- configuration and model classes of Hugging Face transformers 5.24.0 (src/transformers/models/*/).
--
-- by family (families.lua, hybrids.lua):
--   layers   "all"; a number n: all but every n-th; a key's name: all but every so many-th, `usual` where it is absent ("LLLG": a letter a layer,
--            again and again, G attends to all); function(i, config, layers) → has layer i (from 1) a window?
--   default  what the class takes for an absent "sliding_window"
--   switch   only where "use_sliding_window" is true
--   last     the last layer has none
--   own      the family tells itself (hybrids.lua)
--   chunk    key of a chunk's tokens, in place of a window

local function from_max_window_layers(i, config)
  return i > config:size("max_window_layers", 28, 0)
end

local function every_other_below(i, config)
  return i % 2 == 1 and i <= config:size("max_window_layers", 28, 0)
end

local function all_but_the_first_of_four(i)
  return (i - 1) % 4 ~= 0
end

-- A layer without rotary positions, by a list of flags, else every so many-th.
local function has_rope(i, config)
  local listed = config:integers("no_rope_layers")
  if listed and #listed > 0 then return listed[i] ~= 0 end
  return i % config:size("no_rope_layer_interval", 4) ~= 0
end

return {
  mistral = { layers = "all", default = 4096 }, ministral3 = { layers = "all" }, mixtral = { layers = "all" }, phi3 = { layers = "all" },
  phimoe = { layers = "all" }, starcoder2 = { layers = "all" }, minimax = { layers = "all" },
  qwen2 = { layers = from_max_window_layers, default = 4096, switch = true }, qwen3 = { layers = from_max_window_layers, default = 4096, switch = true },
  mimo = { layers = from_max_window_layers, default = 4096, switch = true },
  qwen2_moe = { layers = every_other_below, default = 4096, switch = true }, qwen3_moe = { layers = "all", default = 4096, switch = true },
  gemma2 = { layers = 2, default = 4096 }, vaultgemma = { layers = 2, default = 4096 }, gpt_oss = { layers = 2, default = 128 },
  gemma3 = { layers = "sliding_window_pattern", usual = 6, default = 4096 }, cohere2 = { layers = "sliding_window_pattern", usual = 4, default = 4096 },
  gemma4 = { layers = 6, default = 512, last = true },
  exaone4 = { layers = "sliding_window_pattern", usual = 4, default = 4096 },
  exaone_moe = { layers = "sliding_window_pattern", usual = 4, default = 4096 },
  olmo3 = { layers = 4, default = 4096 },
  afmoe = { layers = "global_attn_every_n_layers", usual = 4, default = 1024 },
  smollm3 = { layers = function(i, config) return not has_rope(i, config) end, switch = true },
  cwm = { layers = all_but_the_first_of_four, default = 8192 }, granite_swa = { layers = all_but_the_first_of_four, default = 128 },
  granitemoe_swa = { layers = all_but_the_first_of_four, default = 128 }, mellum = { layers = function() return false end },
  step3p5 = { layers = "all" }, mimo_v2_flash = { own = true }, deepseek_v4 = { own = true },
  llama4 = { layers = has_rope, chunk = "attention_chunk_size", default = 8192 },
}
