-- SPDX-License-Identifier: Apache-2.0
-- No silent model: a config.json that pipeplan cannot be sure of is an error on stderr and nothing on stdout, through the program.

local program = require "program"

local shape = [["attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144,
  "max_position_embeddings": 40960, "mlp_only_layers": [], "moe_intermediate_size": 768, "num_attention_heads": 32, "num_experts_per_tok": 8,
  "num_hidden_layers": 48, "num_key_value_heads": 4, "tie_word_embeddings": false, "vocab_size": 151936]]

-- Plans Qwen3-30B-A3B with `more` keys in its config.json.
local function plan(more)
  local name = os.tmpname()
  local file <close> = assert(io.open(name, "wb"))
  file:write('{ "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", ', shape, more, " }")
  file:close()
  local run = program.run(string.format("plan --gpus 64 --accelerator H100-SXM --model %s --tokens 1T --per_gpu 400Gbps --format json", name))
  os.remove(name)
  return run
end

describe("the config.json that transformers 5 writes for Qwen3-30B-A3B", function()
  it("is the mixture of experts that transformers 4 wrote", function()
    for _, key in ipairs{ "num_experts", "num_local_experts" } do
      local run = plan(string.format(', "%s": 128', key))
      assert.equal(0, run.status, run.stderr)
      -- the sum over the tensors of the checkpoint
      assert.matches('"total_parameters": *30532122624', run.stdout)
      assert.matches('"architecture": *"moe"', run.stdout)
    end
  end)

  it("is refused without its number of experts, or with it under a name that nobody knows", function()
    for more, named in pairs{ [""] = "num_experts", [', "num_experts": null'] = "num_experts", [', "experts_count": 128'] = "num_experts",
                              [', "num_experts2": 128'] = "num_experts2", [', "num_experts": 128, "memory_slots": 64'] = "memory_slots" } do
      local run = plan(more)
      assert.equal(2, run.status, more)
      assert.equal("", run.stdout)
      assert.matches("'" .. named .. "'", run.stderr, 1, true)
    end
  end)

  it("may have a word that nobody knows, and the plan warns of it", function()
    local run = plan(', "num_experts": 128, "house_style": "modern"')
    assert.equal(0, run.status, run.stderr)
    assert.matches("house_style", run.stdout, 1, true)
    assert.matches("unknown_model_key", run.stdout, 1, true)
  end)
end)
