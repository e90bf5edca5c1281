-- SPDX-License-Identifier: Apache-2.0
-- many_microbatches_spec.lua: however many microbatches a step has, a plan stays small; what needs each of them by itself says how many it
-- takes. So does a plan that asks for many others. Address space is limited, so that what would grow with them cannot.

local cjson = require "cjson"
local files = require "policy_files"
local program = require "program"

teardown(files.remove)

local llama = "plan --gpus 256 --accelerator H100-SXM --model examples/models/llama-3-70b.json --tokens 2T --per_gpu 400Gbps "
  .. "--sequence_length 4096 --micro_batch_size 1 --recompute none --sharding optimizer "

-- Under 300 MB of address space, where no other number is given: the program alone takes 30.
local function small(arguments, megabytes)
  if (os.getenv "LD_PRELOAD" or ""):find("san", 1, true) then
    pending "a sanitizer takes all the address space there is"
  end
  return program.run(("--version >/dev/null; ulimit -v %d; '%s' %s"):format(1000 * (megabytes or 300), os.getenv "PIPEPLAN", arguments))
end

local function plan(arguments)
  local result = small(arguments .. " --format json")
  assert.equal(0, result.status, result.stderr)
  return cjson.decode(result.stdout)
end

-- 300,000 actions, of which each would be two tables and three lines: half a gigabyte if it were held at once.
describe("a trace", function()
  it("of a program of many actions is written as it is made", function()
    local result = small "simulate 1f1b --ranks 1 --microbatches 150000 --format trace"
    assert.equal(0, result.status, result.stderr)
    -- opening and end; 5 names of the rank; of each F a slice and a count, and of each B too
    assert.equal(1 + 1 + 5 + 150000 * 4, select(2, result.stdout:gsub("\n", "")))
  end)
end)

describe("a plan", function()
  it("of a million and of a hundred million microbatches is that of ten thousand, but for their number", function()
    -- 16 replicas; what a step takes beside its microbatches is below a hundredth of a ten thousandth
    local base = plan(llama .. "--global_batch_size 160000 --schedule 1f1b --pipeline 4 --tensor 4")
    for _, microbatches in ipairs { 1e6, 1e8 } do
      local many = plan(llama .. ("--global_batch_size %d --schedule 1f1b --pipeline 4 --tensor 4"):format(16 * microbatches))
      assert.equal(microbatches, many.microbatches)
      assert.same(base.layers_per_stage, many.layers_per_stage)
      assert.near(base.step_seconds / 1e4, many.step_seconds / microbatches, 1e-3 * base.step_seconds / 1e4)
      assert.same(base.memory, many.memory)
      -- (P − 1) of M + P − 1, of a step that the slowest stage makes 3 % longer than equal ones would
      assert.near(3 / (microbatches + 3), many.bubble.closed_form_fraction, 0.05 * 3 / microbatches)
      assert.equal(4, #many.bubble.idle_per_rank_seconds)
    end
  end)

  -- Larger clusters, and what else of the spec could be otherwise: some forty searches, 700 MB in all.
  it("that is refused keeps none of the searches that say what would do instead", function()
    local result = small("plan --gpus 64 --accelerator H100-SXM --per_gpu 400Gbps --model examples/models/deepseek-v3.json --tokens 2T "
      .. "--sequence_length 409600 --global_batch_size 1024 --micro_batch_size 1 --recompute none --sharding optimizer", 400)
    assert.equal(1, result.status, result.stderr)
    assert.matches("does_not_fit.*it fits%s+512%s+GPUs", result.stdout)
  end)

  it("of every kind of schedule is found among them", function()
    local result = plan(llama .. "--global_batch_size 16000000")
    local others = {}
    for _, other in ipairs(result.alternatives) do others[other.schedule] = other end
    for _, name in ipairs { "1f1b", "interleaved_1f1b", "zb_v", "zb_h2", "dualpipev" } do
      assert.is_true(name == result.schedule or others[name].step_seconds ~= cjson.null, name)
    end
    for _, entry in ipairs(result.dropped) do
      if entry.rule == "engine.too_many_actions" then
        assert.equal("microbatches", entry.nearest.field)
        return
      end
    end
    error "no schedule has too many actions"
  end)

  it("of sequences of two tokens is refused for its memory, not by ours", function()
    local model = files.write("two_tokens.json", [[{ "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256,
      "hidden_size": 16384, "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "intermediate_size": 53248,
      "max_position_embeddings": 2, "tie_word_embeddings": false }]])
    local result = small("plan --gpus 64 --accelerator H100-SXM --per_gpu 400Gbps --tokens 2T --model " .. model)
    assert.equal(1, result.status, result.stderr)
    assert.matches("does_not_fit", result.stdout, 1, true)
  end)

  it("of a schedule without periods says how many microbatches can be simulated", function()
    for name, most in pairs { gpipe = 262144, zb_auto = 174762 } do   -- 2^21 actions: F and B, or F, I and W, on 4 ranks
      local result = small(llama .. "--global_batch_size 16000000 --pipeline 4 --tensor 4 --format json --schedule " .. name)
      assert.equal(1, result.status, result.stderr)
      local message = cjson.decode(result.stdout).reasons[1].message
      assert.equal(("M is 1000000; at most %d microbatches of %s on 4 ranks can be simulated"):format(most, name), message)
    end
  end)

  it("under a framework's runtime says so too", function()
    local policy = files.write("large.lua", 'site "large"\ndisable { id = "fits_one_gpu", reason = "to plan a pipeline of four" }\n')
    local result = small("plan examples/specs/measured-4xH200.json --global_batch_size 1000000 --policy " .. policy)
    assert.equal(1, result.status, result.stderr)
    assert.matches("M is 1000000; at most 262144 microbatches of", result.stdout, 1, true)
  end)

  it("has no program of more actions than can be built", function()
    local result = small(llama .. "--global_batch_size 160000000 --schedule 1f1b --pipeline 4 --tensor 4 --format csv")
    assert.equal(2, result.status)
    assert.equal("", result.stdout)
    assert.equal("pipeplan: --format csv: 1f1b of 10000000 microbatches on 4 ranks has more than 16777216 actions; at most 2,097,152 "
                 .. "microbatches can be written\n", result.stderr)
  end)
end)

describe("a simulation", function()
  it("of absurd sizes names what is too large, and the nearest legal value", function()
    for arguments, message in pairs {
      ["1f1b --ranks 4 --microbatches 100000000"] = "engine.too_many_actions: 1f1b of 100000000 microbatches on 4 ranks has more than "
        .. "16777216 actions; nearest legal microbatches: 2097152\n",
      ["1f1b --ranks 1000000 --microbatches 8"] = "engine.too_many_actions: 1f1b on 1000000 ranks has more than 65535 stages; nearest "
        .. "legal ranks: 65535\n",
      ["interleaved_1f1b --ranks 4 --microbatches 8 --virtual 1000000000"] = "engine.too_many_actions: a rank cannot have more than 65535 "
        .. "chunks, got 1000000000; nearest legal virtual: 65535\n",
      ["interleaved_1f1b --ranks 4 --microbatches 8 --virtual 20000"] = "engine.too_many_actions: interleaved_1f1b on 4 ranks has more "
        .. "than 65535 stages; nearest legal ranks: 3\n",
    } do
      local result = small("simulate " .. arguments)
      assert.equal(1, result.status)
      assert.equal("", result.stdout)
      assert.equal("pipeplan: " .. message, result.stderr)
    end
  end)

  it("under a framework's runtime takes fewer actions than without", function()
    local result = small "simulate 1f1b --ranks 4 --microbatches 300000 --runtime torch-multi"
    assert.equal(1, result.status)
    assert.equal("pipeplan: engine.too_many_actions: 1f1b of 300000 microbatches on 4 ranks has more than 2097152 actions; nearest legal "
                 .. "microbatches: 262144\n", result.stderr)
    assert.equal(0, small("simulate 1f1b --ranks 4 --microbatches 300000").status)
  end)

  it("of a rank with thousands of chunks is told in lines that can be read", function()
    local result = small "simulate interleaved_1f1b --ranks 4 --microbatches 4 --virtual 16000"
    assert.equal(0, result.status, result.stderr)
    assert.matches("\n   0  0,4,8,12,", result.stdout, 1, true)
    for line in result.stdout:gmatch "[^\n]+" do assert.is_true(utf8.len(line) <= 180, line) end
  end)

  it("is drawn only where it is small, which is known before it is built", function()
    for format, most in pairs { svg = "20,000", trace = "1,000,000" } do
      local result = small("simulate 1f1b --ranks 4 --microbatches 2000000 --format " .. format)
      assert.equal(2, result.status)
      assert.equal(("pipeplan: --format %s shows at most %s actions, and this schedule has 16,000,000\n"):format(format, most),
                   result.stderr)
    end
  end)
end)
