-- SPDX-License-Identifier: Apache-2.0
-- blocks.lua: what the engine counts of a stage: { embedding, dense, moe, head, mtp, kind_1, … } → how many of each block.

local blocks = {}

local is_end = { embedding = true, head = true, mtp = true }

-- Decoder layers, of all kinds.
function blocks.layers(stage)
  local sum = 0
  for name, count in pairs(stage) do sum = sum + (is_end[name] and 0 or count) end
  return sum
end

-- The decoder layer that a stage has most of: of a shape without further kinds the MoE layer where there is one.
function blocks.most(shape, stage)
  local best = (shape.experts or 0) > 0 and "moe" or "dense"
  for i = 1, #(shape.kinds or {}) do
    local name = "kind_" .. i
    if (stage[name] or 0) > stage[best] then best = name end
  end
  return best
end

-- What the engine calls a mixer with a state, and what a sentence does.
blocks.mixers = { gated_delta = "gated delta net", kimi_delta = "Kimi delta attention", mamba1 = "Mamba-1", mamba2 = "Mamba-2",
                  lightning = "lightning attention", conv = "short convolution", compressed = "compressed attention" }

-- "a dense", "an MoE", "a Mamba-2": a layer of that name, in a sentence.
function blocks.title(shape, name)
  local kind = shape.kinds and tonumber(name:match("^kind_(%d+)$"))
  if not kind then return name == "moe" and "an MoE" or "a dense" end
  local attention = shape.kinds[kind].attention
  if attention == "none" then return "a feed-forward" end
  return "a " .. (blocks.mixers[attention] or "softmax attention")
end

return blocks
