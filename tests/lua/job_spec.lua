-- SPDX-License-Identifier: Apache-2.0
-- What of a job decides its price beside the model: packed documents, padding, attention that is not fused; and what is assumed of it.

local planning = require "planning"  -- first: it loads the rest
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local recipe = require "pipeplan.input.recipe"
local spec = require "pipeplan.input.spec"

local function request_of(training, more)
  local object = {
    cluster = { gpus = 64, accelerator = "H100-SXM", network = { per_gpu = "400Gbps" } },
    model = { architecture = "dense", total = "8.03B", layers = 32, hidden = 4096, heads = 32, kv_heads = 8, ffn = 14336, vocab = 128256 },
    training = { tokens = "1B", sequence_length = 8192, global_batch_size = 64 },
  }
  for key, value in pairs(training or {}) do object.training[key] = value end
  for key, value in pairs(more or {}) do object[key] = value end
  return spec.from_table(object)
end

local function complaint(training)
  local good, problem = pcall(request_of, training)
  assert.is_false(good)
  assert.is_true(failure.is(problem), tostring(problem))
  assert.equal(failure.status.usage, problem.status)
  return problem.message
end

local function assumed(request)
  local lines = {}
  for _, one in ipairs(request.assumptions) do lines[#lines + 1] = string.format("%s %s: %s", one.field, tostring(one.value), one.why) end
  return "\n" .. table.concat(lines, "\n") .. "\n"
end

describe("packed documents", function()
  -- Documents of 1,024, 3,072, 512 and 3,584 tokens in 8,192: mean 2,048, quadratic mean √(23,592,960 / 4). FLOPs of Megatron-LM's
  -- num_floating_point_operations (megatron/training/training.py, commit d98e8a6) for Llama 3 8B, which takes both sums.
  local packed = { document_length = 2048, document_length_rms = math.sqrt(23592960 / 4) }

  it("have the FLOPs that Megatron counts for the same lengths", function()
    local request = request_of(packed)
    assert.near(2880, recipe.attended_length(request), 1e-6)
    assert.near(47292874752, engine.model.flops(request.model.shape, recipe.attended_length(request)).per_token, 1)
    assert.near(2880, recipe.training(request).document_length, 1e-6)
    assert.equal(0, recipe.training(request_of()).document_length)
  end)

  it("that are all alike are as long as their mean, and the plan says so", function()
    local request = request_of { document_length = 2048 }
    assert.equal(2048, recipe.attended_length(request))
    assert.matches("\ntraining.document_length_rms 2048%.?0?: all documents alike", assumed(request))
    assert.not_matches("document_length_rms", assumed(request_of(packed)))
  end)

  it("change nothing where attention is not fused, and the plan says so", function()
    assert.matches("\ntraining.document_length not counted: attention that is not fused",
                   assumed(request_of { document_length = 2048, unfused = { "attention" } }))
  end)

  it("that cannot be are told, with the nearest that can", function()
    assert.matches("training.document_length is 9000: documents do not fit into sequences of 8192; nearest: 8192", complaint { document_length = 9000 })
    assert.matches("training.document_length_rms is 100: a quadratic mean of documents whose mean", complaint { document_length_rms = 100 })
    assert.matches("training.document_length_rms is 100: no less than the mean, 200; nearest: 200",
                   complaint { document_length = 200, document_length_rms = 100 })
    -- of at most 8,192 each with a mean of 2,048: √(8192 · 2048) = 4096
    assert.matches("training.document_length_rms is 4097: of a mean of 2048 and at most 8192 each; nearest: 4096",
                   complaint { document_length = 2048, document_length_rms = 4097 })
    assert.equal(8192, recipe.attended_length(request_of { document_length = 2048, document_length_rms = 4096 }))
    assert.matches("training.document_length is 0", complaint { document_length = 0 })
    assert.matches("training.padding is 1", complaint { padding = 1 })
  end)

  it("make a step faster, and padding makes a run longer", function()
    local fixed = { parallelism = { tensor = 1, pipeline = 4, schedule = "1f1b" } }
    local function plan(training)
      training.micro_batch_size, training.recompute, training.zero = 1, "none", 1
      return planning.policy:plan_request(request_of(training, fixed))
    end
    local whole, documents, padded = plan {}, plan { document_length = 2048 }, plan { document_length = 2048, padding = 0.2 }
    assert.is_true(documents.step_seconds < whole.step_seconds)
    assert.equal(documents.step_seconds, padded.step_seconds)
    assert.near(documents.training_days / 0.8, padded.training_days, 1e-9)
    -- as Megatron counts: FLOPs of real tokens alone
    assert.near(documents.mfu_fraction * 0.8, padded.mfu_fraction, 1e-9)
  end)
end)

describe("what a spec does not say of the job is assumed in print:", function()
  it("all parameters train", function()
    assert.matches("\ntraining.lora_rank no adapters: all parameters train\n", assumed(request_of()))
    assert.not_matches("all parameters train", assumed(request_of { lora_rank = 16 }))
  end)

  it("attention is fused, and experts are one grouped product", function()
    local moe = { model = { architecture = "moe", total = "30B", active = "3B", layers = 48 } }
    assert.matches("\ntraining.unfused nothing: attention fused\n", assumed(request_of()))
    assert.matches("\ntraining.unfused nothing: attention fused, experts in one grouped product\n", assumed(request_of({}, moe)))
    assert.not_matches("attention fused", assumed(request_of { unfused = "none" }))
    assert.not_matches("attention fused", assumed(request_of { unfused = { "attention" } }))
  end)

  -- The loss of each is read in its source, which stdlib/catalog/frameworks names.
  it("the loss is computed as the framework does it, or as Megatron-LM does", function()
    local function with(framework, training)
      return request_of(training or {}, framework and { framework = framework } or nil)
    end
    assert.matches("\ntraining.loss vocab_parallel: Megatron%-LM's; no framework named\n", assumed(with()))
    assert.matches("\ntraining.loss vocab_parallel: Megatron%-LM's; DeepSpeed's is the program's own\n", assumed(with "deepspeed"))
    assert.matches("\ntraining.loss vocab_parallel: nanotron's\n", assumed(with "nanotron"))
    assert.matches("\ntraining.loss vocab_parallel_compiled: Megatron%-Bridge's\n", assumed(with "megatron-bridge"))
    assert.matches("\ntraining.loss torch_compiled: torchtitan's\n", assumed(with "torchtitan"))
    assert.matches("\ntraining.loss torch: torchtitan's\n", assumed(with("torchtitan", { unfused = { "norm" } })))
    assert.not_matches("training.loss", assumed(with("torchtitan", { loss = "torch" })))
    assert.equal("in_place", recipe.training(with("megatron-bridge", { loss = "in_place" })).loss)
  end)

  it("a loss that is not fused is PyTorch's, as it was called, with a warning", function()
    local old, new = request_of { unfused = { "loss", "norm" } }, request_of { loss = "torch", unfused = { "norm" } }
    assert.same(recipe.training(new), recipe.training(old))
    assert.equal("training.unfused says loss, which is training.loss torch now", old.warnings[#old.warnings].message)
    assert.equal(#old.warnings - 1, #new.warnings)
    assert.matches("training.loss is in_place beside an unfused loss, as torch was called$", complaint { unfused = { "loss" }, loss = "in_place" })
  end)

  -- Jordan, https://kellerjordan.github.io/posts/muon: embeddings, the output and vectors are AdamW's; five steps of Newton-Schulz, three products
  -- each. Adam's 8 bytes of fp32 moments a parameter are 4 here.
  it("Muon keeps one moment, and what of it is not counted is said", function()
    local request = request_of { optimizer = "muon" }
    assert.equal(4, recipe.training(request).moment_bytes)
    assert.equal(8, recipe.training(request_of()).moment_bytes)
    assert.matches("\ntraining.optimizer muon: one moment a parameter: .* is not counted, nor are the products", assumed(request))
    assert.not_matches("Newton|orthogonal", assumed(request_of()))
  end)

  it("attention is fused on a card that FlashAttention 2 does not know", function()
    local volta = { cluster = { gpus = 64, accelerator = "V100", network = { per_gpu = "100Gbps" } } }
    assert.matches("attention fused; FlashAttention 2 does not run on Volta\n", assumed(request_of({ precision = "fp16" }, volta)))
  end)

  it("before all else that is", function()
    assert.equal("training.lora_rank", request_of().assumptions[1].field)
    assert.equal("training.unfused", request_of().assumptions[2].field)
  end)
end)
