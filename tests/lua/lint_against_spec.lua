-- SPDX-License-Identifier: Apache-2.0
-- lint_against_spec.lua: a written launch in which one key says otherwise, held against its plan (analysis/lint/against.lua and recipe.lua):
-- what is told of it. Files and lines are those of PyPI megatron-core 0.19.2, unless others are named.

local planning = require "planning"  -- first: it loads the module
local against = require "pipeplan.analysis.lint.against"
local files = require "policy_files"
local judge = require "launch_judge"
local json = require "pipeplan.base.json"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"
local launches = require "pipeplan.report.launch.formats"
local planner = require "pipeplan.plan.init"
local policy = require "pipeplan.policy.load".load { date = "2026-11-27" }
local reads = require "pipeplan.analysis.lint.reads"
local spec = require "pipeplan.input.spec"
local writer = require "pipeplan.report.launch.init"

teardown(files.remove)

local dense = { layers = 32, hidden = 4096, heads = 32, kv_heads = 8, ffn = 14336, vocab = 32000, tied_embeddings = false, learned_positions = 0,
                norm_bias = false, qk_norm = "none", mlp_bias = false, qkv_bias = false }
local experts = planning.merge(dense, { experts = 8, expert_ffn = 14336, experts_per_token = 2 })

-- Text of the launch of a spec with changes, and its plan.
local function written(name, changes)
  local request = spec.from_table(planning.merge({
    cluster = { gpus = 64, accelerator = "H200-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    framework = launches.framework[name], model = name == "torchtitan" and dense or experts,
    training = { tokens = "300B", sequence_length = 4096, global_batch_size = 1024, precision = "bf16", recompute = "none", sharding = "optimizer",
                 micro_batch_size = 1 },
    parallelism = { pipeline = 4, tensor = 1, expert = 8, schedule = "1f1b" },
  }, changes or {}), ".")
  local plan = planner.plan { request = request, policy = policy }
  return assert(writer.write(name, plan, request)), plan
end

-- Ids of what a launch differs in, with more behind its keys, and `to` instead of `from`; and its text.
local function told(name, text, plan, more, from, to)
  if from then
    local at, stop = text:find(from, 1, true)
    text = text:sub(1, assert(at, from) - 1) .. to .. text:sub(stop + 1)
  end
  if more then
    local at = assert(text:find('"$@"', 1, true))
    text = text:sub(1, at - 1) .. more .. " " .. text:sub(at)
  end
  local _, differences = judge.judged(name, text, plan)
  for i, each in ipairs(differences) do differences[i] = each:match "^plan%.([%w_]+)" end
  return table.concat(differences, " "), text
end

describe("a launch of Megatron-LM held against its plan", function()
  local text, plan = written "megatron"

  -- bash: "$@" is any number of words, of --recompute-modules (nargs="*") or others; core/transformer/transformer_config.py:1766-1778
  it("has the words of a list that stand before arguments which are not known", function()
    local modules = "--recompute-granularity selective --recompute-modules moe"
    assert.equal("recompute", (told("megatron", text, plan, modules)))
    assert.equal("recompute", (told("megatron", text, plan, modules .. ' "$MORE"')))
    local _, changed = told("megatron", text, plan, modules)
    local _, _, result = judge.judged("megatron", changed, plan)
    assert.same({ "moe" }, judge.imported(result, { cluster = { accelerator = "H200-SXM" }, training = { tokens = "300B" } }).recompute)
  end)

  -- core/transformer/dot_product_attention.py:194-239; core/models/common/language_module/language_module.py:135; core/models/backends.py:129
  it("differs where attention is not fused", function()
    for flags, want in pairs { ["--attention-backend unfused"] = "training_unfused", ["--transformer-impl local"] = "training_unfused",
                               ["--attention-backend flash"] = "", ["--attention-backend auto --transformer-impl transformer_engine"] = "" } do
      assert.same({ flags, want }, { flags, (told("megatron", text, plan, flags)) })
    end
  end)

  -- training/arguments.py:1186-1193; core/transformer/transformer_config.py: fp4, window_size, softmax_type, fp32_residual_connection,
  -- attention_output_gate, cpu_offloading_num_layers
  it("differs in what the plan has no word for", function()
    for flags, want in pairs { ["--fp4-format e2m1"] = "fp4_format", ["--grad-reduce-in-bf16"] = "training_gradients",
                               ["--window-size 128,0"] = "model_window", ["--window-size 128,64"] = "model_window",
                               ["--softmax-type learnable"] = "model_attention_sinks", ["--fp32-residual-connection"] = "fp32_residual_connection",
                               ["--attention-output-gate"] = "model_active_parameters model_output_gate",
                               ["--cpu-offloading-num-layers 2"] = "cpu_offloading_num_layers",
                               ["--window-size 4095,0"] = "", ["--softmax-type vanilla"] = "", ["--cpu-offloading-num-layers 0"] = "" } do
      assert.same({ flags, want }, { flags, (told("megatron", text, plan, flags)) })
    end
  end)

  it("is held against no field of a spec whose value is none", function()
    for _, value in ipairs { { {} }, { 1 }, 5, true } do
      local odd = planning.merge(plan, {})
      odd.assumptions = { { field = "training.unfused", value = value }, { field = "training.gradients", value = value }, 5 }
      local result = lint.of(launch.read(files.write("launch.sh", text), {})[1], {})
      assert.same({}, against.compare(result, reads.of(result), json.decode(json.encode(odd)), "plan.json"))
    end
  end)

  -- arguments.py:1190: bf16 buffers without an optimizer that keeps them so; core/distributed/param_and_grad_buffer.py:917: fp16's own are short
  it("may have short gradients in another way", function()
    local short, halves = written("megatron", { training = { gradients = "bf16" } })
    local aware = "  --use-precision-aware-optimizer \\\n  --main-grads-dtype bf16 \\\n"
    assert.equal("", (told("megatron", short, halves, nil, aware, "  --grad-reduce-in-bf16 \\\n")))
    assert.equal("use_precision_aware_optimizer main_grads_dtype", (told("megatron", short, halves, nil, aware, "")))
    local long, whole = written("megatron", { training = { precision = "fp16" } })
    assert.equal("training_gradients", (told("megatron", long, whole, nil, "--accumulate-allreduce-grads-in-fp32 \\\n", "")))
  end)

  -- core/transformer/transformer_config.py:1835-1846: it adds moe to the modules, which are core_attn when nobody says (:1763)
  it("recomputes experts under the old name of that too", function()
    assert.equal("recompute", (told("megatron", text, plan, "--moe-layer-recompute")))
    local again, same = written("megatron", { training = { recompute = { "core_attention", "moe" } } })
    assert.equal("", (told("megatron", again, same, "--moe-layer-recompute", "--recompute-modules core_attn moe \\\n", "")))
  end)

  -- core/models/gpt/gpt_model.py: rotary embeddings are made of rope, mrope and yarn alone
  it("differs where queries and keys are not rotated", function()
    for kind, want in pairs { none = "position_embedding_type", yarn = "", learned_absolute = "model_learned_positions" } do
      assert.equal(want, (told("megatron", text, plan, nil, "--position-embedding-type rope", "--position-embedding-type " .. kind)), kind)
    end
  end)

  -- training/arguments.py:967-978: messages overlap with interleaving alone
  it("differs where an interleaved schedule's messages do not overlap", function()
    local interleaved, virtual = written("megatron", { parallelism = { schedule = "interleaved_1f1b", virtual = 4 } })
    assert.equal("overlap_of_messages", (told("megatron", interleaved, virtual, "--no-overlap-p2p-communication")))
    assert.equal("", (told("megatron", text, plan, "--no-overlap-p2p-communication")))
  end)
end)

describe("a launch of another framework held against its plan", function()
  -- megatron-bridge 0.6.2, models/gpt_provider.py:139: share_embeddings_and_output_weights is on; core/transformer/transformer_config.py:
  -- activation_func is gelu
  it("differs in what Megatron-Bridge has when nobody says", function()
    local text, plan = written "bridge"
    local tied = "model.share_embeddings_and_output_weights="
    assert.equal("model_tied_embeddings", (told("bridge", text, plan, nil, tied .. "false", tied .. "true")))
    assert.equal("model_tied_embeddings", (told("bridge", text, plan, nil, tied .. "false", "model.bf16=true")))
    local silu = "'model.activation_func={_target_:torch.nn.functional.silu,_call_:false}'"
    assert.equal("model_activation_func", (told("bridge", text, plan, nil, silu, "model.bf16=true")))
    assert.equal("training_unfused", (told("bridge", text, plan, "model.attention_backend=unfused")))
  end)

  -- megatron-bridge 0.6.2, training/comm_overlap.py:450-462: with a section, interleaving overlaps unless it says otherwise
  it("differs where messages of Megatron-Bridge do not overlap", function()
    local text, plan = written("bridge", { parallelism = { schedule = "interleaved_1f1b", virtual = 4 } })
    local on = "model.overlap_p2p_comm="
    assert.equal("overlap_of_messages", (told("bridge", text, plan, nil, on .. "true", on .. "false")))
    assert.equal("overlap_of_messages", (told("bridge", text, plan, "comm_overlap.overlap_p2p_comm=false")))
    assert.equal("", (told("bridge", text, plan, "comm_overlap.tp_comm_overlap=false", on .. "true", on .. "false")))
  end)

  -- FlagScale's examples/deepseek_v3/conf/train/*dualpipev*.yaml have it on: its pairs hide the all-to-all
  it("differs where FlagScale's DualPipeV hides nothing", function()
    local text, plan = written("flagscale", { parallelism = { schedule = "dualpipev" } })
    assert.equal("moe_fb_overlap", (told("flagscale", text, plan, nil, "moe_fb_overlap: true", "moe_fb_overlap: false")))
  end)

  -- torchtitan 0.3.0, components/optimizer.py: implementation; config/configs.py: CompileConfig
  it("differs in the kernels of torchtitan", function()
    local text, plan = written("torchtitan", { model = { layers = 80, hidden = 8192, heads = 64, ffn = 28672 }, parallelism = { expert = 1, tensor = 4 } })
    local fused = "--optimizer.implementation fused"
    assert.equal("training_unfused", (told("torchtitan", text, plan, nil, fused .. " ", "--optimizer.implementation for-loop ")))
    assert.equal("training_moments", (told("torchtitan", text, plan, nil, fused .. " ", fused .. "_opt_states_bf16 ")))
    assert.equal("training_unfused", (told("torchtitan", text, plan, nil, "--compile.enable", "--compile.no-enable")))
  end)
end)
