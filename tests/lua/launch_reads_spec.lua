-- SPDX-License-Identifier: Apache-2.0
-- launch_reads_spec.lua: the spec that a launch is (analysis/lint/reads.lua): what a flag makes of it, and that what no spec says is refused by
-- name, or stands among the plan's assumptions. Files and lines are those of PyPI megatron-core 0.19.2, unless others are named.

require "planning"  -- first: it loads the module
local files = require "policy_files"
local import = require "pipeplan.analysis.lint.import"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"
local reads = require "pipeplan.analysis.lint.reads"

teardown(files.remove)

-- 78 layers, embedding and loss accounted for, on 4 ranks with two chunks each: chunks of 10, the first and last of 9.
local base = "torchrun --nproc_per_node 8 --nnodes 16 pretrain_gpt.py --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 "
             .. "--num-virtual-stages-per-pipeline-rank 2 --num-layers 78 --hidden-size 8192 --num-attention-heads 64 "
             .. "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split --swiglu --seq-length 4096 "
             .. "--max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 256 --train-samples 1000000 --vocab-size 50257 "
             .. "--bf16 --use-distributed-optimizer --sequence-parallel --normalization RMSNorm --position-embedding-type rope "

local function write(flags) return files.write("launch.sh", base .. flags .. "\n") end

local function spec_of(flags)
  return reads.spec(lint.of(launch.read(write(flags), {})[1]))
end

-- What `plan` says of the launch: nil where it plans it, and what it assumes for it.
local function refusal(flags, given, layout)
  local options = { accelerator = "H100-SXM" }
  for name, value in pairs(given or {}) do options[name] = value end
  local good, problem = pcall(import.split, { write(flags) }, options, layout)
  return not good and problem.message or nil
end

describe("recompute of a launch", function()
  local full = "--recompute-granularity full "

  -- core/recompute.py:157-166: uniform goes over a chunk in steps of so many layers; :167-182: block takes the first so many of a chunk
  it("is full where every layer of every chunk is computed again by itself, and none where no layer is", function()
    for flags, want in pairs { ["--recompute-method uniform --recompute-num-layers 1"] = "full",
                               ["--recompute-method block --recompute-num-layers 10"] = "full",
                               ["--recompute-method block --recompute-num-layers 78"] = "full",
                               ["--recompute-method block --recompute-num-layers 0"] = "none" } do
      assert.same({ flags, want }, { flags, spec_of(full .. flags).training.recompute })
      assert.is_nil(refusal(full .. flags))
    end
  end)

  it("is refused, with the flag, its value and what a spec says, where some layers of a chunk are not, or several are at once", function()
    for flags, words in pairs {
      ["--recompute-method block --recompute-num-layers 1"] = "--recompute-num-layers 1 recomputes the first 1 layer of the 10 of a chunk",
      ["--recompute-method block --recompute-num-layers 9"] = "--recompute-num-layers 9 recomputes the first 9 layers of the 10 of a chunk",
      ["--recompute-method uniform --recompute-num-layers 2"] = "--recompute-num-layers 2 recomputes 2 layers at once",
      -- transformer/multi_token_prediction.py:1424-1428: block skips MTP layers
      ["--recompute-method block --recompute-num-layers 10 --mtp-num-layers 1"] = "and none of MTP",
      ["--recompute-method block --recompute-num-layers $LAYERS"] = "how many is not known",
    } do
      local object, _, unsaid = spec_of(full .. flags)
      assert.is_nil(object.training.recompute, flags)
      assert.matches(words, unsaid[1].message, 1, true)
      local told = refusal(full .. flags)
      assert.matches(words, told, 1, true)
      assert.matches("none, selective, full, or modules", told, 1, true)
      assert.is_nil(refusal(full .. flags, { recompute = "full" }))
      assert.is_nil(refusal(full .. flags, nil, "free"))
    end
  end)

  -- transformer/transformer_config.py, recompute_modules: shared_experts is one, and no module of a spec's
  it("is refused where a module has no word in a spec", function()
    assert.same({ "core_attention", "norm" }, spec_of("--recompute-granularity selective --recompute-modules core_attn layernorm").training.recompute)
    assert.matches("--recompute-modules shared_experts", refusal "--recompute-granularity selective --recompute-modules core_attn shared_experts", 1, true)
  end)
end)
