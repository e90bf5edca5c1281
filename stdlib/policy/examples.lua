-- SPDX-License-Identifier: Apache-2.0
--[[
examples.lua: an example of each statement and of each primitive of the engine, from which documents, editor definitions and
`pipeplan facts statements` and `primitives` are made. tests/lua/reference_spec.lua runs every one of them.

  statements  { verb, what it says, a policy's text, what it comes to: { a part of the outcome, … } }: laid over `below` where there is one
  primitives  { name, an expression of Lua as a rule's function may return it, its value as `policy eval -e` shows it, why it is that }
  prelude     what expressions with a shape, a recipe, a device or a network have before them
  beyond      of what only programs have, as primitives; they have `search` before them too
]]

local examples = {}

-- A layer under those that override one.
examples.below = [[
site "company"
parameter { id = "widest_tensor", value = 4, unit = "rank", loosens = "up", at_least = 1, meaning = "widest TP here" }
reject { id = "wide", tensor_parallel = over "widest_tensor", message = "TP {tensor_parallel} of at most {widest_tensor}" }
disable { id = "short_run", reason = "course projects are short" }]]

examples.statements = {
  { "site", "names the layer", [[site "hall-7" set { tie_fraction = "2%" }]], { layer = "hall-7" } },
  { "row", "the decision table: the first that holds decides what is tried, and in which order",
    [[row { id = "narrow", tensor_parallel = at_most(2), try = { "zb_h1", "1f1b" }, why = "what our trainer runs" }]],
    { decision = "narrow", schedule_wanted = "zb_h1" } },
  { "reject", "such a candidate cannot be",
    [[reject { id = "deep", pipeline_parallel = over(2), message = "P {pipeline_parallel}: at most 2 here" }]], { depth = 2 } },
  { "refuse", "such a candidate should not be, and what to do instead", [[
refuse { id = "slow_links", network_per_gpu = at_most "400Gbps", recommend = "data_parallel",
         message = "{network_per_gpu} a GPU" }]],
    { status = "refused", reason = "slow_links" } },
  { "prefer", "among survivors: those that close to the fastest, or any",
    [[prefer { id = "shallow", pipeline_parallel = at_most(2), within = "any" }]], { depth = 2 } },
  { "warn", "a line of the plan", [[warn { id = "idle", bubble_fraction = over "0.1%", message = "{bubble_fraction} of a step is idle" }]],
    { warning = "idle" } },
  { "kernel", "an all-to-all kernel that overlaps with compute: the first that matches",
    [[kernel { id = "own_kernel", fabric = "efa", expert_parallel = at_most(16), why = "measured here" }]], { loosened = "own_kernel" } },
  { "invariant", "what no plan may satisfy", [[invariant { id = "never_idle", bubble_fraction = over "0.1%" }]],
    { status = "rejected", reason = "never_idle" } },
  { "parameter", "a named value that rules refer to, and the way in which it loosens them", [[
parameter { id = "depth_here", value = 2, unit = "rank", loosens = "up", at_least = 1, meaning = "deepest pipeline here" }
reject { id = "deep", pipeline_parallel = over "depth_here", message = "at most {depth_here}" }]], { depth = 2 } },
  { "set", "moves parameters; what loosens needs a reason", [[set { widest_tensor = 8, reason = "nodes of 8 since May" }]],
    { loosened = "widest_tensor" } },
  { "change", "other fields of a rule or row; any takes a condition away",
    [[change { id = "wide", gpus = at_most(64), reason = "small runs only" }]],
    { loosened = "wide" } },
  { "disable", "takes a rule out, until a day", [[disable { id = "wide", reason = "a model with few layers", expires = "2999-12-31" }]],
    { loosened = "wide" } },
  { "enable", "brings back what an earlier layer disables", [[enable { id = "short_run" }]], { enabled = "short_run" } },
  { "pin", "the default policy that a site was written for", [[pin { default = "DIGEST" } set { tie_fraction = "2%" }]],
    { layer = "policy" } },
}

-- A dense model of 8 layers, bf16 with fp32 master weights and moments, an accelerator of 1 PFLOP/s, nodes of 8 on 50 GB/s links.
examples.prelude = [[
local model = { layers = 8, hidden = 1024, vocab = 32000, heads = 16, kv_heads = 8, head_dim = 64, ffn = 4096 }
local training = { precision = "bf16", sequence_length = 4096, parameter_bytes = 2, gradient_bytes = 4, master_bytes = 4, moment_bytes = 8 }
local device = { flops = 1e15, memory_bandwidth = 3e12, gemm_efficiency = 0.5, grouped_gemm_efficiency = 0.5, attention_efficiency = 0.5,
                 memory_efficiency = 0.8 }
local network = { tiers = { { reach = 8, bandwidth = 400e9 }, { reach = 1024, bandwidth = 50e9 } } }
local layout = { tensor = 2, data = 4, pipeline = 4 }
local built = engine.schedule { kind = "1f1b", ranks = 4, microbatches = 8 }]]

local layer_parameters = "h² · (2 + 2 · kv/q heads) + 3 · h · ffn + 2 norms of h"

examples.primitives = {
  { "bubble", 'engine.bubble { schedule = "1f1b", ranks = 4, microbatches = 8, F = 1, I = 1, W = 1 }.seconds', "9", "(P − 1)(F + B)" },
  { "comm.allgather", "engine.comm.allgather { network = network, size = 8, bytes = 8e9 }", "0.0175", "7/8 of 8 GB at 400 GB/s" },
  { "comm.allreduce", "engine.comm.allreduce { network = network, size = 8, bytes = 8e9 }", "0.035", "2 · 7/8 of 8 GB at 400 GB/s" },
  { "comm.alltoall",
    "engine.comm.alltoall { network = network, group = 8, tokens = 4096, experts_per_token = 1, bytes_per_token = 1000 }",
    "8.96e-06", "7/8 of 4,096 tokens of 1,000 bytes at 400 GB/s" },
  { "comm.fit", 'engine.comm.fit { test = "sendrecv", ranks = 2, points = { { 1, 1e-5 }, { 1e9, 1.001e-2 } } }.bandwidth', "99999999900",
    "999,999,999 bytes more take 10 ms more" },
  { "comm.p2p", "engine.comm.p2p { network = network, stride = 8, bytes = 1e9 }", "0.02", "1 GB at 50 GB/s" },
  { "cost.blocks",
    "engine.cost.blocks { model = model, layout = layout, training = training, device = device, network = network }.dense.tensor",
    "8.38861e-05", "F and B each gather twice and scatter twice over TP 2: 8 · 1/2 · 4096 · 1024 · 2 bytes at 400 GB/s" },
  { "cost.terms",
    "engine.cost.terms { model = model, layout = layout, training = training, device = device, network = network }.dense.forward.products",
    "0.000128849", "31,457,280 FLOPs a token (model.flops) · 4,096 tokens / TP 2 at 50 % of 1 PFLOP/s" },
  { "cost.hop", "engine.cost.hop { model = model, layout = layout, training = training, network = network }", "0.000167772",
    "4096 · 1024 · 2 bytes to the next stage, at 50 GB/s" },
  { "cost.pair", "engine.cost.pair { device = device, forward = { forward = 1 }, backward = { forward = 1, input = 1, weight = 1 } }", "3",
    "F + B, where nothing is hidden" },
  { "cost.stage", [[engine.cost.stage { model = model, layout = layout, training = training, device = device, network = network,
  stage = { dense = 2 } }.tensor]],
    "0.000167772", "twice that of a layer (cost.blocks)" },
  { "cost.step",
    "engine.cost.step { layout = layout, training = training, device = device, network = network, dense_parameters = 1e6 }.gradient_sync",
    "1.5e-05", "DP 4 beside TP 2 lies in a node: 2 · 3/4 of 4 MB at 400 GB/s" },
  { "memory.blocks", "engine.memory.blocks { model = model, layout = { tensor = 1 }, training = training }.dense.parameters", "31461376",
    "2 bytes of " .. layer_parameters },
  { "memory.stages", "#engine.memory.stages { model = model, layout = layout, training = training, schedule = built }", "4", "one a rank" },
  { "model.flops", "engine.model.flops(model, 4096).blocks.dense.linear", "31457280", "2 a parameter of its products" },
  { "model.parameters", "engine.model.parameters(model).blocks.dense.tensor", "15728640", layer_parameters .. ", without the norms" },
  { "model.stages", "engine.model.stages(model, 4)[1].dense", "2", "8 layers on 4 stages" },
  { "schedule",
    'engine.schedule { kind = "zb_h1", ranks = 4, microbatches = 8 }:info().actions', "96", "F, I, W of 8 microbatches on 4 ranks" },
  { "schedule.check",
    'select(2, engine.schedule.check { kind = "dualpipe", ranks = 3, microbatches = 8 }).id', "engine.odd_depth",
    "DualPipe takes an even P" },
  { "schedule.from_csv", 'engine.schedule.from_csv("0F0,0B0\\n"):info().microbatches', "1", "one forward and one backward" },
  { "schedule.traits", 'engine.schedule.traits("dualpipe").copies', "2", "of the parameters" },
  { "schedule:actions", "built:actions(0)[1].kind", "F", "the first rank begins with a forward" },
  { "schedule:csv", "built:csv(3)", "3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7\n", "one forward, one backward" },
  { "schedule:info", "built:info().chunks_per_rank", "1", "one stage a rank" },
  { "schedule:peaks", "built:peaks().freed_at_w[1]", "4", "P microbatches are held by the first rank" },
  { "schedule:lowered", 'built:lowered { runtime = "torch-single" } ~= nil', "true", "what PyTorch would issue" },
  { "schedule:receive_buffers", "built:receive_buffers()", "1", "of each stage" },
  { "schedule:simulate", "built:simulate { F = 1, I = 1, W = 1 }.makespan", "33", "(M + P − 1)(F + B)" },
  { "schedule:verify", "built:verify()", "true", "complete, in order, no rank waits for ever" },
  { "model.fields", "#engine.model.fields > 10", "true", "the sizes of a shape" },
  { "cost.losses", "engine.cost.losses[1]", "vocab_parallel", "Megatron-LM's" },
  { "schedule.kinds", "#engine.schedule.kinds > 5", "true", "all schedules" },
}

-- What only programs have, and no policy: a rule is asked about each candidate of a search. As the primitives, behind `search` too.
examples.search = [[
local candidates = engine.search { model = model, training = training, device = device, network = network, gpus = 32, global_batch = 64,
  scale_up_gpus = 8, usable_bytes = 64e9, schedules = { "gpipe", "1f1b", "dualpipe" }, fixed = { tensor = 2, data = 4 } }
local all = candidates:all()]]

examples.beyond = {
  { "search", "#candidates", "4", "three schedules at P 4, and the same without a pipeline" },
  { "candidates:all", "#all", "4", "each row" },
  { "candidates:best", "candidates:row((candidates:best(all))).schedule", "none", "without a pipeline nothing is idle" },
  { "candidates:bound", "candidates:bound(3) <= candidates:simulate(3)", "true", "no step is shorter" },
  { "candidates:check", "candidates:check(4)", "true", "DualPipe at an even P" },
  { "candidates:choice", "candidates:choice(4)", "1", "there is one recipe" },
  { "candidates:engine_rules", "#candidates:engine_rules(all)", "0", "all can be built" },
  { "candidates:evaluate", "#candidates:evaluate(3).memory", "4", "one a rank" },
  { "candidates:fields", "candidates:fields()[1]", "tensor_parallel", "the first column" },
  { "candidates:fullest", "(function() candidates:memory(all) return candidates:fullest(1) end)()", "0",
    "without a pipeline there is one rank" },
  { "candidates:get", 'candidates:get("microbatches", 3)', "16", "64 sequences at DP 4" },
  { "candidates:match", '#candidates:match { { field = "schedule", op = "equal", value = "1f1b" } }', "1", "the third row" },
  { "candidates:match_late",
    '(function() candidates:memory(all) return #candidates:match_late({ { field = "cost", op = "over", value = 1e9 } }, all) end)()', "0",
    "nothing takes so long" },
  { "candidates:memory",
    '(function() candidates:memory(all) return candidates:get("peak_bytes", 2) > candidates:get("peak_bytes", 3) end)()', "true",
    "GPipe holds all 16 microbatches, 1F1B 4" },
  { "candidates:none", "#candidates:none()", "0", "to add rows to" },
  { "candidates:only", "candidates:only({ 3, 2 }):first()", "2", "of these two" },
  { "candidates:row", "candidates:row(1).pipeline_parallel", "1", "the first row has no pipeline" },
  { "candidates:set", '(function() candidates:set("team", "speech") return candidates:get("team", 2) end)()', "speech",
    "for conditions that read it" },
  { "candidates:simulate", 'candidates:simulate(3) == candidates:get("step_seconds", 3)', "true", "the seconds are a column of its row" },
  { "mask:first", "(all - candidates:only(1)):first()", "2", "without the first row" },
  { "mask:has", "candidates:only(3):has(2)", "false", "it has the third row alone" },
  { "mask:rows", "#(candidates:only(2) | candidates:only(3)):rows()", "2", "those of either" },
}

-- Whole lines of a policy whose function returns the expression.
function examples.of_expression(expression) return examples.prelude .. "\nlocal function value() return " .. expression .. " end" end

-- A chunk of a program that returns it.
function examples.of_program(expression) return table.concat({ examples.prelude, examples.search, "return " .. expression }, "\n") end

return examples
