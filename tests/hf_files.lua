-- SPDX-License-Identifier: Apache-2.0
-- hf_files.lua: a config.json of Hugging Face with changes, and what reading one that is refused says.

local assert = require "luassert"
local failure = require "pipeplan.base.failure"
local hf = require "pipeplan.input.hf_config"

local files = {}

files.absent = {}   -- as a change: the key is left out

function files.with(config, changes)
  for key, value in pairs(changes or {}) do
    if value == files.absent then config[key] = nil else config[key] = value end
  end
  return config
end

-- Llama 3.1 8B, 8,030,261,248 parameters.
function files.llama(changes)
  return files.with({
    architectures = { "LlamaForCausalLM" }, model_type = "llama", vocab_size = 128256, hidden_size = 4096, num_hidden_layers = 32,
    num_attention_heads = 32, num_key_value_heads = 8, intermediate_size = 14336, max_position_embeddings = 131072,
    tie_word_embeddings = false,
  }, changes)
end

-- The one line that is said of it.
function files.refusal(config, file, tower)
  local good, problem = pcall(hf.read, config, file or "config.json", tower)
  assert.is_false(good)
  assert.is_true(failure.is(problem), tostring(problem))
  assert.equal(failure.status.usage, problem.status)
  assert.is_nil(problem.message:find("\n"))
  return problem.message
end

return files
