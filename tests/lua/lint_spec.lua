-- SPDX-License-Identifier: Apache-2.0
-- lint_spec.lua: what lint says of Megatron's arguments and logs: the rules of its table on settings of files, with their lines, and what a
-- launch amounts to. Whose word it is that something is refused stands beside each case; Megatron's own is in frameworks_verdicts_spec.lua.

require "pipeplan"
local files = require "policy_files"
local layers = require "pipeplan.catalog.frameworks.megatron_layers"
local linting = require "linting"
local reads = require "pipeplan.analysis.lint.reads"

teardown(files.remove)

local first, found = linting.first, linting.found

local base = "--num-layers 32 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
             .. "--micro-batch-size 1 --bf16 --global-batch-size 128"

local function script(flags, gpus)
  return first("run.sh", string.format("torchrun --nproc_per_node %d pretrain_gpt.py %s \\\n  %s\n", gpus or 8, base, flags))
end

local function errors(flags, gpus) return found(script(flags, gpus), "error") end

describe("arguments of Megatron", function()
  it("are refused by name when they are gone, abbreviated or misspelled (argparse with allow_abbrev off)", function()
    local result = script "--pipeline-model-parallel-siz 4 --DDP-impl local --model-parallel-size 2 --tensor-model-paralel-size 2"
    assert.same({ "unknown_key:2", "gone_key:2", "gone_key:2", "unknown_key:2" }, found(result, "error"))
    assert.same({ "--pipeline-model-parallel-size", nil, "--tensor-model-parallel-size", "--tensor-model-parallel-size" },
                { result.findings[1].nearest, nil, result.findings[3].nearest, result.findings[4].nearest })
  end)

  it("are refused where their values are of another kind", function()
    assert.same({ "bad_value:2" }, errors "--pipeline-model-parallel-size four")
    assert.same({ "bad_value:2" }, errors "--moe-token-dispatcher-type alltoal")
    assert.same({ "bad_value:2" }, errors "--tensor-model-parallel-size 0")
    assert.same({ "no_value:2" }, errors "--context-parallel-size --bf16")
    assert.same({ "stray_word:2" }, errors "--bf16 true")
    assert.same({ "bad_value:2" }, errors "--num-experts 8 --disable-bias-linear --moe-layer-freq often")   -- arguments.py: moe_freq_type
  end)

  -- transformer_config.py:1638 refuses shared experts of no width; the others leave a model without a part, behind
  -- arguments that are taken (run)
  it("are refused where a size of the model is none", function()
    local moe = "--num-experts 8 --disable-bias-linear "
    for _, flags in ipairs { moe .. "--moe-shared-expert-intermediate-size 0", moe .. "--moe-router-topk 0", moe .. "--moe-ffn-hidden-size -1",
                             "--kv-channels 0", "--vocab-size -1", "--ffn-hidden-size 0",
                             "--multi-latent-attention --kv-lora-rank 0", "--multi-latent-attention --v-head-dim 0" } do
      assert.same({ flags, { "bad_value:2" } }, { flags, errors(flags) })
    end
  end)

  it("hold as they are said last", function()
    local result = script "--tensor-model-parallel-size 3 --tensor-model-parallel-size 2"
    assert.same({ {}, { "given_twice:2" } }, { found(result, "error"), found(result, "warning") })
    assert.equal(2, reads.of(result).parallelism.tensor)
  end)

  it("have their nearest legal value beside them", function()
    local function nearest(flags, gpus) return script(flags, gpus).findings[1].nearest end
    assert.equal("16 GPUs", nearest("--pipeline-model-parallel-size 8 --tensor-model-parallel-size 2", 12))
    assert.equal("--num-layers 33", nearest("--pipeline-model-parallel-size 3", 6))
    assert.equal("--global-batch-size 126", nearest("--pipeline-model-parallel-size 2", 12))   -- 126 / 6
    assert.equal("1024 GPUs", nearest("--pipeline-model-parallel-size 16 --tensor-model-parallel-size 2 --expert-model-parallel-size 64 "
                                      .. "--num-experts 256 --expert-tensor-parallel-size 1 --sequence-parallel --disable-bias-linear", 256))
  end)

  it("rest on what a variable holds when nobody sets it", function()
    local text = "NODES=${SLURM_NNODES:-1}\ntorchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py " .. base
                 .. " --pipeline-model-parallel-size 16\n"
    local result = first("run.sh", text)
    assert.same({ "megatron.world:2" }, found(result, "error"))
    assert.equal("${SLURM_NNODES}", result.findings[1].conditional)
    assert.same({}, found(first("run.sh", text, { variables = { SLURM_NNODES = "2" } }), "error"))
  end)

  -- GNU bash 5.2: with \r\n an argument is $'\r', and the line behind it $'--bf16\r': command not found (run)
  it("end where lines end with carriage returns", function()
    local text = "torchrun --nproc_per_node 8 pretrain_gpt.py \\\n " .. base .. " \\\r\n --bf16\r\n"
    assert.same({ "carriage_return:2" }, found(first("run.sh", text), "error"))
    assert.same({}, found(first("run.sh", (text:gsub("\r", ""))), "error"))
  end)

  it("say nothing of what they leave open", function()
    local result = first("run.sh", "python pretrain_gpt.py " .. base .. " --pipeline-model-parallel-size $P\n")
    assert.same({ {}, { { key = "P", file = result.file, line = 1 } } }, { found(result, "error"), { result.unresolved[1] } })
    assert.same({ "not_judged:1" }, found(result, "note"))
    -- handed on to another script: what is absent is not known, and no default
    result = first("run.sh", "MODEL=x bash ./sbatch.sh --moe-router-force-load-balancing --pipeline-model-parallel-size 4\n")
    assert.same({ nil, 4, nil }, { reads.of(result).parallelism.tensor, reads.of(result).parallelism.pipeline, reads.of(result).schedule })
  end)
end)

-- megatron.training.arguments: validate_args, and TransformerConfig, of megatron-core 0.19.2: each of these was seen to end there, or not, in
-- random sets of arguments (tests/torch/megatron_flags.py: others_of); the optimizer's in optimizer_config.py
describe("arguments about neither layout nor schedule", function()
  local moe, mamba = "--num-experts 8 --disable-bias-linear ", "--tensor-model-parallel-size 8 --hybrid-layer-pattern M*M* "
  local cases = {
    { "--save /x", "save_interval" }, { "--save /x --save-interval 10" },
    { "--train-iters 10 --train-samples 10", "iterations" }, { "--train-iters 10 --lr-decay-samples 10", "iterations" },
    { "--train-samples 10 --lr-warmup-iters 2", "samples" }, { "--train-samples 10 --lr-warmup-samples 2" },
    { "--train-iters 10 --lr-warmup-fraction 0.1 --lr-warmup-iters 2", "warm_up" }, { "--train-iters 10 --lr-warmup-fraction 0.1" },
    { "--lr 1e-4 --min-lr 1e-3", "least_rate" }, { "--lr 1e-4 --min-lr 1e-4" },
    { "--mock-data --data-path /x", "two_data" }, { "--data-path /x" },
    { "--eval-global-batch-size 12", "eval_batch" }, { "--eval-global-batch-size 16" },
    { "--tp-comm-overlap", "tensor_overlap" }, { "--tp-comm-overlap --tensor-model-parallel-size 2 --sequence-parallel" },
    { "--no-position-embedding", "no_positions" }, { "--no-position-embedding --position-embedding-type rope" },
    { "--distribute-saved-activations", "saved_activations" },
    { "--ckpt-format fsdp_dtensor", "format_fsdp" }, { "--use-megatron-fsdp", "fsdp_format" },
    { "--use-megatron-fsdp --ckpt-format fsdp_dtensor" }, { "--use-megatron-fsdp --ckpt-format fsdp_dtensor --optimizer lion", "fsdp_optimizer" },
    { "--use-torch-fsdp2 --untie-embeddings-and-output-weights --no-gradient-accumulation-fusion" },
    { "--use-torch-fsdp2 --untie-embeddings-and-output-weights", "torch_fsdp" },
    { "--multi-latent-attention --group-query-attention", "mla_groups" }, { "--moe-ffn-hidden-size 512", "expert_width" },
    { "--moe-ffn-hidden-size 512 --moe-layer-freq '([1]*32)'", "expert_width" },
    { "--moe-ffn-hidden-size 512 --moe-layer-freq '([0]*4+[1]*28)'" }, { "--moe-ffn-hidden-size 512 --moe-layer-freq 2" },
    { moe .. "--moe-shared-expert-overlap" },   -- transformer_config.py:1637-1650: asked only where there are shared experts
    { moe .. "--moe-shared-expert-overlap --moe-shared-expert-intermediate-size 512", "shared_dispatcher" },
    { moe .. "--moe-shared-expert-overlap --moe-shared-expert-intermediate-size 512 --moe-token-dispatcher-type alltoall" },
    { moe .. "--moe-token-dispatcher-type flex", "flex" },   -- token_dispatcher.py:1836-1855
    { moe .. "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep" },
    { "--pipeline-model-parallel-size 2 --hybrid-layer-pattern M*M* --decoder-first-pipeline-num-layers 3" },   -- arguments.py:799-838
    { "--pipeline-model-parallel-size 2 --hybrid-layer-pattern 'M*|M*' --decoder-first-pipeline-num-layers 3", "hybrid_layout" },
    { "--pipeline-model-parallel-size 2 --hybrid-layer-pattern M*M* --account-for-loss-in-pipeline-split", "hybrid_layout" },
    { "--recompute-granularity selective --recompute-modules nope", "recompute_module" }, { "--recompute-modules nope" },   -- transformer_config.py
    { "--recompute-granularity full --recompute-method uniform --recompute-num-layers 0", "recompute_endless" },   -- core/recompute.py
    { "--recompute-granularity full --recompute-method block --recompute-num-layers 0" },
    { moe .. "--moe-layer-recompute --recompute-granularity full --recompute-method block --recompute-num-layers 1", "recompute_moe_layer" },
    { moe .. "--moe-layer-recompute" },   -- transformer_config.py:1835-1846
    { moe .. "--moe-layer-freq '([1]*10)'", "layer_pattern" }, { moe .. "--moe-layer-freq 0", "layer_pattern" },   -- gpt_layer_specs.py
    { moe .. "--moe-layer-freq '([2]*32)'", "layer_pattern" }, { moe .. "--moe-layer-freq '([0]*4+[1]*28)'" },
    { moe .. "--moe-layer-freq '[1 for _ in range(3)]'" },   -- an expression that is not read
    { moe .. "--moe-router-topk 9", "router_most" }, { moe .. "--moe-router-topk 8" },
    { "--context-parallel-size 4 --hierarchical-context-parallel-sizes 2 3 --cp-comm-type a2a+p2p", "context_levels" },   -- arguments.py
    { "--context-parallel-size 4 --hierarchical-context-parallel-sizes 2 2 --cp-comm-type a2a+p2p" },
    { "--context-parallel-size 4 --cp-comm-type a2a+p2p", "context_levels" }, { "--encoder-num-layers 2", "two_layers" },
    { "--num-distributed-optimizer-instances 3", "optimizer_instances" }, { "--num-distributed-optimizer-instances 2 --use-distributed-optimizer" },
    { "--main-params-dtype fp16", "state_alone" },   -- optimizer_config.py
    { "--ffn-hidden-size 4098 --tensor-model-parallel-size 4", "ffn" }, { "--ffn-hidden-size 4100 --tensor-model-parallel-size 4" },
    { "--seq-length 2046 --tensor-model-parallel-size 4 --sequence-parallel", "sequence_cut" }, { "--seq-length 2046 --tensor-model-parallel-size 4" },
    { mamba .. "--mamba-num-heads 32" },   -- ssm/mamba_mixer.py:260-272
    { mamba .. "--mamba-num-heads 12", "mixer_heads" }, { mamba .. "--mamba-num-heads 24 --mamba-num-groups 12", "mixer_groups" },
    { mamba .. "--mamba-num-heads 24 --mamba-num-groups 16", "mixer_heads_groups" }, { mamba .. "--mamba-head-dim 128" },
    { "--tensor-model-parallel-size 8 --mamba-num-heads 12" },   -- and no Mamba layer
    { moe .. "--moe-router-topk 1", "router_topk" }, { moe .. "--moe-router-topk 1 --moe-router-pre-softmax" },
    { moe .. "--moe-router-topk 1 --moe-router-load-balancing-type sinkhorn" },
    { moe .. "--moe-router-enable-expert-bias", "router_bias" },
    { moe .. "--moe-router-enable-expert-bias --moe-router-score-function sigmoid" },
    -- torch 2.13: "dropout probability has to be between 0 and 1, but got -1.0" (run)
    { "--hidden-dropout -1", "hidden_dropout" }, { "--attention-dropout 1.5", "attention_dropout" }, { "--hidden-dropout 1 --attention-dropout 0" },
    -- core/transformer/attention.py:1832: (heads // groups + 2) columns of each group are viewed in the product's, which has heads + 2 · groups
    { "--group-query-attention --num-query-groups 0", "query_group_size" }, { "--group-query-attention --num-query-groups 12", "query_group_size" },
    { "--group-query-attention --num-query-groups 8" },
    { moe .. "--moe-router-group-topk 2", "router_groups" }, { moe .. "--moe-router-group-topk -1", "router_groups" },   -- :2338: is it 0?
    { moe .. "--moe-router-group-topk 2 --moe-router-num-groups 3", "router_groups" },
    { moe .. "--moe-router-group-topk 2 --moe-router-num-groups 4" }, { moe .. "--moe-enable-deepep", "deepep" },
    { "--exp-avg-dtype bf16 --use-distributed-optimizer", "state_alone" },
    { "--exp-avg-dtype bf16 --use-distributed-optimizer --use-precision-aware-optimizer" },
    { "--exp-avg-dtype bf16 --use-precision-aware-optimizer", "precision_aware" },
    { "--exp-avg-dtype bf16 --use-distributed-optimizer --use-precision-aware-optimizer --optimizer muon", "precision_aware" },
    { "--cpu-offloading-num-layers 1 --pipeline-model-parallel-size 2", "offload_pipeline" }, { "--cpu-offloading-num-layers 1" },
    { "--cpu-offloading-num-layers 1 --recompute-activations", "offload_recompute" },
    { "--overlap-param-gather --overlap-grad-reduce", "gather_optimizer" },   -- distributed Muon gathers by itself (arguments.py:1024)
    { "--overlap-param-gather --overlap-grad-reduce --optimizer dist_muon" },
    { "--overlap-param-gather --overlap-grad-reduce --optimizer muon", "gather_optimizer" },
    { "--overlap-param-gather --overlap-grad-reduce --optimizer muon --use-distributed-optimizer" },
    { "--fp8-param-gather --fp8-format hybrid --train-iters 10 --optimizer muon", "fp8_gather" },
    { "--use-precision-aware-optimizer --train-iters 10", "precision_aware_alone" },   -- optimizer/__init__.py:1057
    { "--use-precision-aware-optimizer --train-iters 10 --use-distributed-optimizer" },
    { "--use-megatron-fsdp --ckpt-format fsdp_dtensor --data-parallel-sharding-strategy optim --optimizer muon", "fsdp_optimizer" },
    { "--fp8-param-gather --fp8-format hybrid --train-iters 10", "fp8_gather" }, { "--fp8-param-gather --fp8-format hybrid" },
    { "--fp8-format hybrid --fp4-format e2m1", "fp4" },
  }

  it("are refused as Megatron refuses them, and no others", function()
    for _, case in ipairs(cases) do
      assert.same({ case[1], case[2] and "megatron." .. case[2] .. ":2" }, { case[1], errors(case[1])[1] })
    end
  end)

  it("are not asked of a tool, nor of what is still to be filled in", function()
    -- as examples/megatron_fsdp/sbatch_checkpoint_convert.sh of Megatron-LM; and one name of a program's own, beside a slip
    local convert = first("run.sh", "torchrun --nproc_per_node 8 tools/checkpoint/checkpoint_inspector.py convert in out --swiglu out2 --prompt-type x\n")
    assert.same({ {}, {} }, { found(convert, "error"), found(convert, "warning") })
    assert.same({ "unknown_key:1" }, found(first("run.sh", "python my_train.py " .. base .. " --tensor-model-paralel-size 2\n"), "warning"))
    -- as alibaba/Pai-Megatron-Patch: a trainer with arguments of its own, on a Megatron of its time
    local patched = first("run.sh", "torchrun --nproc_per_node 8 pretrain_bloom.py " .. base .. " --position-embedding-type alibi --DDP-impl local "
                                    .. "--flash --extra-vocab-size 1\n")
    assert.same({ {}, { "bad_value:1", "gone_key:1" } }, { found(patched, "error"), found(patched, "warning") })
    local twice = first("x.yaml", "MODEL_ARGS:\n  --num-layers: 4\n  --seed: 1\n  --seed: 2\n")
    assert.same({ "duplicate_key:4" }, found(twice, "warning"))
    local tool = first("run.sh", "python tools/preprocess_data.py --input x --tokenizer-type GPT2BPETokenizer --vocab-file v --workers 4\n")
    assert.same({}, found(tool, "error"))
    local template = first("run.sh", 'OUT="<some dir>/out"\ntorchrun --nproc_per_node 8 pretrain_gpt.py ' .. base .. " --load $OUT/x\n")
    assert.same({}, found(template, "error"))
  end)
end)

-- num_microbatches_calculator.py:402-590 of Megatron-LM @d98e8a64
describe("a batch that grows in steps", function()
  local flags = base:gsub(" %-%-global%-batch%-size 128", "")
  local function grows(schedule, gpus, more)
    return first("run.sh", string.format("torchrun --nproc_per_node %d pretrain_gpt.py %s %s --step-batch-size-schedule '%s'\n", gpus or 8, flags,
                                         more or "", schedule))
  end

  it("starts with its first, and lasts as long as it says", function()
    local result = grows "2.4B:320 0:16,4.8B:624"
    assert.same({ {}, {}, 16, 2 }, { found(result, "error"), found(result, "warning"), reads.of(result).training.global_batch_size,
                                     reads.of(result).microbatches })
    assert.same({ { 0, 16 }, { 2400000000, 320 }, { 4800000000, 624 } }, reads.spec(result).training.global_batch_size)
  end)

  it("is refused where no number is one, nothing is at the first token, or a sequence has two", function()
    for _, schedule in ipairs { "16", "0:many", "0:0", "1B:16", "0:16 2000:32", "" } do
      assert.same({ schedule, "megatron.ramp:1" }, { schedule, found(grows(schedule), "error")[1] })
    end
    assert.same({ "megatron.batch:1" }, found(grows "0:12 1B:16", "error"))
    assert.same({ "megatron.ramp_batches:1" }, found(grows "0:16 1B:36", "warning"))
  end)

  it("is what counts in a log, which has one microbatch a rank as its batch", function()
    local log = "---- arguments ----\n" .. [[
  bf16 ............................................ True
  global_batch_size ............................... 8
  hidden_size ..................................... 1024
  micro_batch_size ................................ 1
  num_attention_heads ............................. 16
  num_layers ...................................... 32
  seq_length ...................................... 2048
  step_batch_size_schedule ........................ 0:16 2.4B:320
  world_size ...................................... 8
]]
    local result = first("run.log", log)
    assert.same({ {}, 16, 2 }, { found(result, "error"), reads.of(result).training.global_batch_size, reads.of(result).microbatches })
    -- a distributed optimizer of Muon is none by name there (arguments.py:1726-1737)
    local muon = "  optimizer ....................................... muon\n  overlap_grad_reduce ............................. True\n"
                 .. "  overlap_param_gather ............................ True\n  use_distributed_optimizer ....................... False\n"
    assert.same({}, found(first("run.log", log .. muon), "error"))
  end)
end)

-- pipeline_parallel_layer_layout.py: parse_str_to_list, and its comments' examples
describe("a layout string", function()
  local function stages(text)
    local list = {}
    for i, stage in ipairs(assert(layers.parse(text))) do list[i] = stage.text end
    return table.concat(list, " ")
  end

  it("is written out as Megatron does", function()
    assert.equal("Ettt tt tt tt m L", stages "Ettt|(tt|)*3,m|L")
    assert.equal("Ett t tt t tt", stages "Et(t|t|t)*2t")   -- as xy(ab|cd|ef)*2,pq is xyab|cd|efab|cd|efpq
    assert.equal("ttt tt tt", stages "(t)*3|(tt|)*1,t*2")
    assert.equal(61, #assert(layers.parse "Et|(t|)*59L"))
  end)

  it("is none with other letters, or without end", function()
    assert.same({ nil, "has 'x', which is none of E, t, m, L, |" }, { layers.parse "Ex|L" })
    assert.is_nil(layers.parse "(t*9999)*9999")
  end)

  -- seen of megatron-core 0.19.2 on a CPU: tests/data/frameworks/megatron_verdicts.txt
  it("gives the layers that Megatron builds", function()
    local result = script("--num-layers 61 --pipeline-model-parallel-size 16 --pipeline-model-parallel-layout 'Et*3|(tt|)*29,m|L' "
                          .. "--mtp-num-layers 1 --position-embedding-type rope", 16)
    assert.same({}, found(result, "error"))
    local list = reads.of(result).layers_per_stage
    assert.same({ 32, 3, 2, 0, 0, 2 }, { #list, list[1], list[30], list[31], list[32], reads.of(result).parallelism.virtual })
  end)
end)

describe("what a launch amounts to", function()
  -- 16 layers and one accounted for the loss on 4 ranks would be 17: refused; 30 and two are 8 a rank (transformer_block.py:156-201)
  it("has the layers of each stage, by chunks", function()
    local result = script("--num-layers 30 --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 "
                          .. "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split", 8)
    assert.same({ 3, 4, 4, 4, 4, 4, 4, 3 }, reads.of(result).layers_per_stage)
    result = script("--num-layers 30 --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 7 "
                    .. "--decoder-last-pipeline-num-layers 7", 8)
    assert.same({ 7, 8, 8, 7 }, reads.of(result).layers_per_stage)
  end)

  -- transformer_config.py:175 and MLATransformerConfig.kv_lora_rank: what argparse has when nobody says is 1 and 32
  it("has Megatron's own defaults, which are not a model's", function()
    local function shape(flags) return (reads.model(script("--vocab-size 32000 " .. flags))) end
    assert.same({ 16, 1, 4 }, { shape("").kv_heads, shape("--group-query-attention").kv_heads,
                                shape("--group-query-attention --num-query-groups 4").kv_heads })
    assert.equal(32, shape("--multi-latent-attention").kv_lora_rank)
    local plain, llama = shape(""), shape("--normalization RMSNorm --disable-bias-linear --position-embedding-type rope --swiglu")
    assert.same({ true, true, true, 2048, false }, { plain.norm_bias, plain.mlp_bias, plain.qkv_bias, plain.learned_positions, plain.gated })
    assert.same({ false, false, false, nil, true }, { llama.norm_bias, llama.mlp_bias, llama.qkv_bias, llama.learned_positions, llama.gated })
    -- 12 h² and 13 h a layer, 2 h of the last norm, and both tables (GPT-2's count: Radford et al. 2019)
    assert.equal(32 * (12 * 1024 ^ 2 + 13 * 1024) + 2 * 1024 + 32000 * 1024 + 2048 * 1024,
                 require("engine").model.parameters(plain).total)
  end)

  it("has DP, M and the bubble (P − 1) / (M + P − 1) of 1F1B", function()
    local read = reads.of(script("--pipeline-model-parallel-size 4 --tensor-model-parallel-size 2", 16))
    assert.same({ 2, 64, "1f1b" }, { read.parallelism.data, read.microbatches, read.schedule })
    assert.near(3 / 67, read.bubble.fraction, 1e-12)
    read = reads.of(script("--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2", 4))
    assert.near(3 / (2 * 128 + 3), read.bubble.fraction, 1e-12)   -- Narayanan et al. 2021, 2.2.2: (P − 1) / V over M
  end)
end)

describe("Megatron's log", function()
  -- as _print_args of megatron-core 0.19.2 prints values that nobody set, and dtypes
  it("has no finding for what Megatron itself fills in", function()
    local result = first("run.log", [[
------------------------ arguments ------------------------
  accumulate_allreduce_grads_in_fp32 .............. True
  bf16 ............................................ True
  ckpt_format ..................................... torch_dist
  data_path ....................................... ['a', 'b']
  mock_data ....................................... False
  exp_avg_dtype ................................... torch.float32
  exp_avg_sq_dtype ................................ torch.float32
  main_grads_dtype ................................ torch.float32
  global_batch_size ............................... 128
  eval_global_batch_size .......................... 128
  eval_micro_batch_size ........................... 1
  hidden_size ..................................... 1024
  lr .............................................. 0.0001
  min_lr .......................................... 1e-05
  lr_decay_iters .................................. None
  lr_decay_samples ................................ None
  lr_warmup_fraction .............................. None
  lr_warmup_iters ................................. 0
  lr_warmup_samples ............................... 0
  max_position_embeddings ......................... 2048
  micro_batch_size ................................ 1
  moe_ffn_hidden_size ............................. None
  moe_router_topk ................................. 2
  moe_router_load_balancing_type .................. aux_loss
  add_position_embedding .......................... True
  gradient_accumulation_fusion .................... True
  use_torch_fsdp2 ................................. False
  use_megatron_fsdp ............................... False
  num_attention_heads ............................. 16
  num_layers ...................................... 32
  optimizer ....................................... adam
  overlap_p2p_comm ................................ True
  pipeline_model_parallel_size .................... 4
  position_embedding_type ......................... rope
  save ............................................ /x
  save_interval ................................... 100
  seq_length ...................................... 2048
  tensor_model_parallel_size ...................... 1
  train_iters ..................................... 1000
  train_samples ................................... None
  use_precision_aware_optimizer ................... False
  world_size ...................................... 8
-------------------- end of arguments ---------------------
]])
    assert.same({ {}, {} }, { found(result, "error"), found(result, "warning") })
    assert.equal(64, reads.of(result).microbatches)
  end)

  it("is read whatever stands around its block", function()
    local result = first("run.log", [[
0: [rank0] INFO
0: ------------------------ arguments ------------------------
0:   bf16 ............................................ True
0:   global_batch_size ............................... 100
0:   hidden_size ..................................... 1024
0:   micro_batch_size ................................ 1
0:   num_attention_heads ............................. 16
0:   num_layers ...................................... 31
0:   overlap_p2p_comm ................................ True
0:   pipeline_model_parallel_size .................... 4
0:   seq_length ...................................... 2048
0:   tensor_model_parallel_size ...................... 1
0:   untie_embeddings_and_output_weights ............. True
0:   virtual_pipeline_model_parallel_size ............ None
0:   world_size ...................................... 8
0: -------------------- end of arguments ---------------------
]])
    assert.same({ "megatron.layers:8" }, found(result, "error"))
    assert.same({ false, 50, 8 }, { result.record.tied_embeddings, reads.of(result).microbatches, reads.of(result).gpus })
  end)
end)
