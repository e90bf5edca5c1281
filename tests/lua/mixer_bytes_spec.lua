-- SPDX-License-Identifier: Apache-2.0
-- What a mixer with a state keeps for its backward, against what PyTorch's autograd keeps where its kernels keep what flash-linear-attention's
-- and mamba_ssm's do: tests/oracles/mixer_bytes.json, written by tests/oracles/mixer_bytes.py.

require "pipeplan"
local costs = require "lua.costs"
local engine = require "engine"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local name = (os.getenv "PIPEPLAN_SOURCE" or ".") .. "/tests/oracles/mixer_bytes.json"
local oracle = json.decode(io.open(name):read "a", name)

-- Bytes that a layer of a kind stores for each token.
local function stored(kind, tensor, beside, streams)
  local shape = { layers = 2, hidden = oracle.hidden, vocab = 256, heads = 8, head_dim = 32, ffn = 256, kinds = { kind, beside }, streams = streams }
  local training = lists.with(costs.bf16(), { sequence_length = 128, micro_batch = 1 })
  return engine.memory.blocks { model = shape, layout = { tensor = tensor or 1 }, training = training }.kind_1.stored / 128
end

describe("a mixer keeps what autograd keeps of it, " .. oracle.source .. ":", function()
  for i, case in ipairs(oracle.cases) do
    local kind = lists.with({ mixer_norm = true }, lists.with(case.sizes, { layers = { 1 }, ffn = 0, attention = case.mixer,
                                                                           conv_kernel = case.mixer == "lightning" and 0 or 4 }))
    if case.mixer == "streams" then
      it(string.format("several streams, %d bytes a token around attention and MLP (case %d)", case.bytes, i), function()
        local layer = { layers = { 1 } }
        assert.near(case.bytes, stored(layer, 1, nil, case.sizes.streams) - stored(layer), 1e-9)
      end)
      goto next
    end
    if case.mixer == "parallel" then
      it(string.format("attention and Mamba-2 beside each other, %d bytes a token (case %d)", case.bytes, i), function()
        local mixer = lists.with(kind, { attention = "mamba2", norms_per_layer = 0 })
        mixer.layers = nil
        local both = stored(lists.with(kind, { attention = "gqa", beside = 2 }), 1, mixer)
        assert.near(case.bytes, both - 2 * oracle.hidden, 4)   -- what the norm reads is the layer's input
      end)
      goto next
    end
    it(string.format("%s, %.0f bytes a token (case %d)", case.mixer, case.bytes, i), function()
      local before = 2 * 2 * oracle.hidden   -- of the norm before it: what it reads, and what the projections read
      assert.near(case.bytes, stored(kind) - before, 4)   -- one inverse norm
    end)
    if case.mixer == "mamba1" then goto next end   -- no layout splits it over TP: its B and C are one head
    if case.mixer == "compressed" then
      it(string.format("compressed, what is of all heads split over two TP ranks (case %d)", i), function()
        local sizes = case.sizes
        local split = 2 * (4 * sizes.heads * sizes.head_dim + sizes.output_groups * sizes.output_rank) + 4 * (2 * sizes.heads + (sizes.index_topk or 0))
        assert.near(case.bytes - split / 2, stored(kind, 2) - 2 * oracle.hidden, 8)   -- inverse norms that both have
      end)
      goto next
    end

    it(string.format("%s, half of it on each of two TP ranks (case %d)", case.mixer, i), function()
      local both = case.mixer == "kimi_delta" and 2 * 2 * case.sizes.key_dim or 0   -- its gates' latents, on either
      assert.near((case.bytes - both) / 2 + both, stored(kind, 2) - 2 * oracle.hidden, 4)
    end)
    ::next::
  end
end)
