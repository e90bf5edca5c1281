-- SPDX-License-Identifier: Apache-2.0
-- stages_spec.lua: layers of the stages in Megatron's words, in a spec: what megatron-core itself makes of a layout, of ends with layers of their
-- own and of ends that count as layers; and what is said where it refuses.

local planning = require "planning"  -- first: it loads the module
local failure = require "pipeplan.base.failure"
local layers = require "pipeplan.catalog.frameworks.megatron_layers"
local spec = require "pipeplan.input.spec"

local function of(parallelism, model)
  local object = {
    cluster = { gpus = 960, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = planning.merge({ layers = 32, hidden = 4096, heads = 32, ffn = 11008, vocab = 32000 }, model),
    training = { tokens = "1T", global_batch_size = 1920, sequence_length = 4096 }, parallelism = parallelism,
  }
  local good, found = failure.try(spec.from_table, object, ".")
  if not good and not failure.is(found) then error(found, 0) end
  return good and found.parallelism or nil, not good and found.message:gsub("^spec: parallelism%.", "") or nil
end

-- tests/data/frameworks/megatron_layouts.txt, which says what made it
local function vectors()
  local list = {}
  for line in io.lines "tests/data/frameworks/megatron_layouts.txt" do
    local text, pipeline, count, mtp, verdict = line:match "^([^#\t]*)\t(%d+)\t(%d+)\t(%d+)\t(.*)$"
    if text then
      list[#list + 1] = { layout = text, pipeline_parallel = tonumber(pipeline), layers = tonumber(count), mtp_layers = tonumber(mtp),
                          verdict = verdict }
    end
  end
  return list
end

describe("a layout string", function()
  it("is what megatron-core makes of it, or is refused as there", function()
    local accepted = 0
    for _, f in ipairs(vectors()) do
      local problem = layers.layout_problem(f)
      if layers.misplaced(f.layout) and f.layers > 0 then assert.is_true(problem ~= nil or f.layout:find "%*0" ~= nil, f.layout) end
      local found = problem and "refused" or table.concat(layers.built(f), " ")
      assert.same({ f.layout, f.verdict }, { f.layout, found })
      accepted = accepted + (problem and 0 or 1)
    end
    assert.equal(122, accepted)
  end)

  it("is none, soon, where it would be without end", function()
    for _, text in ipairs { ("(t|)*9999"):rep(10000), "((t*99999)*99999)*99999", ("("):rep(90000), ("x"):rep(90000), ("t*99999"):rep(9000),
                            ("Et|"):rep(1e6), "(" .. ("t|"):rep(40000) .. ")*99999" } do
      assert.is_nil((layers.parse(text)))
      layers.misplaced(text:sub(1, 100000))
      local _, problem = of { pipeline = 2, pipeline_model_parallel_layout = text }
      assert.truthy(problem and #problem < 2000, problem)
    end
  end)

  it("gives a spec the layers that megatron-core builds, and V", function()
    local tried = 0
    for _, f in ipairs(vectors()) do
      if f.verdict ~= "refused" and f.pipeline_parallel > 1 and f.layers > 0 then
        local found, problem = of({ pipeline = f.pipeline_parallel, pipeline_model_parallel_layout = f.layout },
                                  { layers = f.layers, mtp_layers = f.mtp_layers })
        assert(found, problem)
        local list = table.concat(found.layers_per_stage, " ")
        assert.same({ f.layout, f.verdict }, { f.layout, list })
        assert.equal(#found.layers_per_stage, f.pipeline_parallel * (found.virtual or 1))
        tried = tried + 1
      end
    end
    assert.is_true(tried > 80, tried)
  end)

  it("may be the list of lists that Megatron's configuration takes", function()
    local found = of { pipeline = 2, pipeline_model_parallel_layout = { { "embedding", "decoder" }, { "Decoder", "loss " } } }
    assert.is_nil(found)   -- 2 of 32 layers
    found = of({ pipeline = 2, pipeline_model_parallel_layout = { { "embedding", "decoder" }, { "Decoder", "loss " } } }, { layers = 2 })
    assert.same({ 1, 1 }, found.layers_per_stage)
    assert.truthy(select(2, of { pipeline_model_parallel_layout = { { "embedding", "atention" }, { "loss" } } })
                  :find "embedding, decoder, mtp or loss as item 2 of stage 1")
  end)

  it("is refused with its place and what would be right", function()
    local function problem(text, more) return select(2, of(planning.merge({ pipeline = 2, pipeline_model_parallel_layout = text }, more))) end
    assert.equal("pipeline_model_parallel_layout is \"Et*16|T*16L\": expected E, t, m, L, |, (…)*n or x*n at position 7, not \"T\"; "
                 .. "nearest: Et*16|t*16L", problem "Et*16|T*16L")
    assert.equal("pipeline_model_parallel_layout is Et*16|t*15L: the layout has 31 t, the model 32 layers; nearest: Et*16|t*16L",
                 problem "Et*16|t*15L")
    assert.equal("pipeline_model_parallel_layout is Et*16|t*8|t*8L: has 3 stages, no multiple of pipeline 2; nearest: pipeline 1",
                 problem "Et*16|t*8|t*8L")
    assert.truthy(problem("Et*16|t*16L", { layers_per_stage = { 16, 16 } }):find "given beside")
    assert.truthy(problem("Et*8|t*8|t*8|t*8L", { schedule = "dualpipev" }):find "places chunks in a V")
  end)
end)

describe("ends", function()
  -- transformer_block.py:156-201, transformer_config.py:2294-2368
  it("have layers of their own, and the ranks between as many each", function()
    assert.same({ 7, 9, 9, 7 }, of({ pipeline = 4, num_layers_in_first_pipeline_stage = 7, num_layers_in_last_pipeline_stage = 7 }).layers_per_stage)
    assert.same({ 4, 5, 4, 5 }, of({ pipeline = 2, virtual = 2, num_layers_in_first_pipeline_stage = 8 }, { layers = 18 }).layers_per_stage)
    local _, problem = of { pipeline = 4, num_layers_in_first_pipeline_stage = 7, num_layers_in_last_pipeline_stage = 8 }
    assert.equal("num_layers_in_first_pipeline_stage is 7: 17 layers do not divide over the 2 ranks between the ends; nearest: 6", problem)
    _, problem = of { num_layers_in_first_pipeline_stage = 7 }
    assert.truthy(problem:find "expected pipeline too")
  end)

  it("count as a layer each", function()
    assert.same({ 7, 8, 8, 7 }, of({ pipeline = 4, account_for_embedding_in_pipeline_split = true, account_for_loss_in_pipeline_split = true },
                                   { layers = 30 }).layers_per_stage)
    assert.same({ 8, 8, 8, 7 }, of({ pipeline = 4, account_for_loss_in_pipeline_split = true }, { layers = 31 }).layers_per_stage)
    assert.is_nil(of({ pipeline = 4, account_for_loss_in_pipeline_split = false }).layers_per_stage)
  end)
end)
