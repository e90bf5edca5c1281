-- SPDX-License-Identifier: Apache-2.0
-- Public cases about memory by stage, each with its source. The rest of them stands in cases_spec.lua and in the oracle table (tests/oracles:
-- fits_cases.lua, memory_*.lua). Not here, for no shape of ours has their layers: Kimi-K3's headroom (ROCm/Megatron-LM#161, #162: delta
-- attention) and Nemotron-3-Nano's recompute (Megatron-Bridge's recompute skill: Mamba).

local planning = require "planning"  -- first: it loads the module
local engine = require "engine"
local models = require "oracles.models"

local plan = planning.plan

-- Totals by rank of a dense GPT on P ranks.
local function totals(kind, depth, recompute)
  local ranks = engine.memory.stages {
    model = { layers = 28, hidden = 4096, heads = 32, kv_heads = 32, head_dim = 128, ffn = 16384, gated = false, vocab = 128256 },
    layout = { pipeline = depth }, schedule = engine.schedule { kind = kind, ranks = depth, microbatches = 16 },
    training = { precision = "bf16", sequence_length = 4096, parameter_bytes = 2, gradient_bytes = 4, master_bytes = 4, moment_bytes = 8,
                 sequence_parallel = true, fused_attention = true, recompute = recompute },
  }
  local list = {}
  for i, rank in ipairs(ranks) do list[i] = rank.activations + rank.transient end
  return list
end

describe("memory by stage", function()
  -- sail-sg/zero-bubble#74: ZB-H1, P 4: memory falls from stage to stage; with full recompute it rises to the last
  it("falls from the first rank to the last of ZB-H1, until recompute leaves the logits", function()
    local stored = totals("1f1b", 4, {})
    for rank = 2, 3 do assert.is_true(stored[rank] < stored[rank - 1]) end
    local recomputed = totals("zb_h1", 4, { full = true })
    assert.is_true(recomputed[4] > recomputed[3])
    assert.is_true(recomputed[4] > recomputed[1])
  end)

  -- NVIDIA-NeMo/Megatron-Bridge#5077: 8 layers on 1/2/2/3: the mean stage is a third too small; the heaviest decides
  it("is that of the heaviest stage, not of the mean", function()
    local shape = { layers = 8, hidden = 8192, heads = 64, kv_heads = 8, head_dim = 128, ffn = 28672, vocab = 1024 }
    local result = plan {
      cluster = { gpus = 4, accelerator = "H100-SXM" }, model = shape,
      training = { tokens = "1T", sequence_length = 1024, global_batch_size = 64, recompute = "full", zero = 0 },
      parallelism = { pipeline = 4, tensor = 1, context = 1, schedule = "1f1b", layers_per_stage = { 1, 2, 2, 3 } },
    }
    local most, sum = 0, 0
    for _, rank in ipairs(result.memory.ranks) do
      most, sum = math.max(most, rank.parameters_bytes), sum + rank.parameters_bytes
    end
    assert.near(3 / 2, most / (sum / 4), 0.03)
    assert.equal("planned", result.status)
    assert.matches("on rank 3, the fullest", planning.page_of(result), 1, true)
  end)

  -- bigscience-workshop/bigscience tr11-176B-ml: 70 blocks and two embeddings of 3.6 B parameters on 12 stages: 5, ten times 6, 5
  it("of BLOOM leaves the ends a layer less, for the vocabulary weighs as much as a block and a half", function()
    local result = plan {
      cluster = { gpus = 384, accelerator = "A100-SXM-80GB", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = models["bloom-176b"], training = { tokens = "366B", sequence_length = 2048, global_batch_size = 2048, micro_batch_size = 2,
                                                 recompute = "full" },
      parallelism = { tensor = 4, context = 1, pipeline = 12, schedule = "1f1b" },
    }
    local layers = result.layers_per_stage
    assert.equal(12, #layers)
    assert.is_true(layers[12] < layers[6])
    assert.is_true(result.memory.ranks[1].parameters_bytes > 0)
  end)
end)

describe("recompute", function()
  -- Megatron-Bridge's recompute skill, Moonlight-16B on 8 H100: the attention core saves 0.004 of 36.6 GB; MLA up-projections 0.72, MoE activations
  -- 0.68
  it("of a fused attention's core saves nothing, of what MLA and experts expand it does", function()
    local shape = { layers = 27, hidden = 2048, vocab = 163840, attention = "mla", heads = 16, kv_lora_rank = 512, qk_nope_dim = 128,
                    qk_rope_dim = 64, v_dim = 128, ffn = 11264, experts = 64, experts_per_token = 6, expert_ffn = 1408, shared_ffn = 2816,
                    first_dense = 1 }
    local function peak(recompute)
      return engine.memory.stages {
        model = shape, layout = { tensor = 2, expert = 8, data = 4 },
        training = { precision = "bf16", sequence_length = 4096, parameter_bytes = 2, gradient_bytes = 2, master_bytes = 4, moment_bytes = 4,
                     shard_optimizer = true, sequence_parallel = true, fused_attention = true, loss = "in_place", recompute = recompute },
      }[1].total
    end
    local none = peak {}
    assert.equal(none, peak { core_attention = true })
    assert.is_true(none - peak { mla_up_projection = true } > 0.5e9)
    assert.is_true(none - peak { activation = true } > 0.5e9)
    assert.is_true(peak { moe = true } < peak { activation = true })
  end)
end)

describe("an MTP module", function()
  -- Megatron-LM layouts of DeepSeek-V3: "Et|(tt|)*30mL": MTP and loss on a stage without layers (NVIDIA-NeMo/Megatron-Bridge perf_recipes)
  it("may have the last stage to itself and the head, with a copy of the embedding", function()
    local layers = { 1 }
    for s = 2, 31 do layers[s] = 2 end
    layers[32] = 0
    local result = plan {
      cluster = { gpus = 1024, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = "examples/models/deepseek-v3.json",
      training = { tokens = "1T", sequence_length = 4096, global_batch_size = 8192, precision = "fp8", gradients = "bf16",
                   recompute = { "mla_up_projection" } },
      parallelism = { tensor = 2, context = 1, pipeline = 8, virtual = 4, expert = 64, layers_per_stage = layers, schedule = "interleaved_1f1b" },
    }
    assert.equal("planned", result.status)
    assert.equal("Et|(t*2|)*30mL", result.megatron_layout)
    local parameters = engine.model.parameters(models["deepseek-v3"])
    local head, mtp, layer = parameters.blocks.head, parameters.blocks.mtp, parameters.blocks.moe
    local function held(block) return block.tensor / 2 + block.replicated + block.expert / 64 end
    -- the last rank: three chunks of two layers, then MTP, head, and the embedding that MTP reads
    local expected = 2 * (6 * held(layer) + held(mtp) + held(head) + 129280 * 7168 / 2)
    assert.near(expected, result.memory.ranks[8].parameters_bytes, 1e-6 * expected)
  end)
end)
