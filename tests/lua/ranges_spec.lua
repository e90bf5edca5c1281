-- SPDX-License-Identifier: Apache-2.0
-- What numbers can be: fields of the vocabulary, parameters, tables. Whoever reads one refuses what the engine would not take, and says what it
-- would.

local pipeplan = require "pipeplan"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local files = require "policy_files"
local load = require "pipeplan.policy.load"
local planning = require "planning"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

teardown(files.remove)

local DATE = "2026-11-27"

local function problem_of(options)
  options.date = DATE
  local good, problem = pcall(load.load, options)
  assert.is_false(good)
  assert.is_true(failure.is(problem), tostring(problem))
  assert.equal(failure.status.policy_unloadable, problem.status)
  return problem.message
end

local function unloadable(text) return (problem_of({ files = { files.write("site.lua", text) } }):gsub("^[^\n]-/site", "site")) end
local function loaded(text) return load.load { files = { files.write("site.lua", text) }, date = DATE } end

describe("a number of the vocabulary", function()
  it("has a least, and a most unless it is computed", function()
    local computed = { one_gpu_bytes = true, alltoall_fraction = true, peak_bytes = true, step_seconds = true, host_optimizer_bytes = true,
                       least_rank_bytes = true }
    for _, entry in ipairs(vocabulary.fields) do
      local number = entry.type == "integer" or entry.type == "number"
      assert.equal(number and entry.name ~= "pipeline_avoidable_seconds", entry.low ~= nil, entry.name)
      assert.equal(number and not computed[entry.name] and entry.name ~= "pipeline_avoidable_seconds", entry.high ~= nil, entry.name)
    end
  end)

  it("goes no further than the engine counts", function()
    -- engine/core/model.h PP_MAX_LAYERS, engine/core/model_check.c, engine/lua/search.c: what each takes, and one more that it does not
    local shape = { layers = 1024, hidden = 64, heads = 1, ffn = 64, vocab = 64 }
    assert.is_true(engine.model.parameters(shape).total > 0)
    shape.layers = vocabulary.most.layers + 1
    assert.is_false((pcall(engine.model.parameters, shape)))
    local experts = { layers = 1, hidden = 1, heads = 1, vocab = 1, experts = vocabulary.most.experts, experts_per_token = 1, expert_ffn = 1 }
    assert.is_true(engine.model.parameters(experts).total > 0)
    experts.experts = vocabulary.most.experts + 1
    assert.is_false((pcall(engine.model.parameters, experts)))
    assert.is_true(vocabulary.most.gpus <= 1 << 24 and vocabulary.most.counted == math.maxinteger >> 32)
  end)

  it("is the same in a spec, its option, its JSON Schema and the table of `facts`", function()
    local schema = require("pipeplan.input.schema").spec()
    for name, spec in pairs { gpus = "cluster.gpus", gpus_per_node = "cluster.gpus_per_node", tokens = "training.tokens",
                              sequence_length = "training.sequence_length", tensor_parallel = "parallelism.tensor",
                              virtual = "parallelism.virtual", microbatches = "parallelism.microbatches" } do
      local field, entry, property = vocabulary.by_name[name], fields.by_path[spec], schema
      for part in spec:gmatch "[^.]+" do property = property.properties[part] end
      assert.same({ field.low, field.high }, { entry.low, entry.high }, name)
      assert.same({ field.low, field.high }, { property.anyOf[1].minimum, property.anyOf[1].maximum }, name)
    end
    local text = require("pipeplan.cli.facts").run { "fields" }
    assert.matches("\nlayers +request +integer +1 +1 to 1024 ", text)
    assert.matches("\ndevice_bytes +request +number +byte +0 B to 1024 TiB ", text)
    assert.matches("\nstep_seconds +simulated +number +second +at least 0 ", text)
  end)

  it("outside its range makes a condition that always or never holds, which `policy check` finds", function()
    local list = require("pipeplan.analysis.check").policy(loaded [[
      warn { id = "always", layers = at_most(2000), message = "m" }
      warn { id = "never", gpus = over(20000000), message = "m" }]], { witnesses = false })
    local found = {}
    for _, finding in ipairs(list) do found[finding.id or ""] = finding.code end
    assert.same({ "constant", "impossible" }, { found.always, found.never })
  end)
end)

describe("a parameter", function()
  it("is a fraction from 0 to 1, and 12 is not 12 %", function()
    assert.equal([[site.lua:1: set memory_headroom: 12 is 1200 %; 12 % is "12%"; expected from 0 % to 100 %; nearest: 100 %]],
                 unloadable "set { memory_headroom = 12 }")
    assert.equal([[--set: set memory_headroom: 12 is 1200 %; 12 % is "12%"; expected from 0 % to 100 %; nearest: 100 %]],
                 problem_of { set = { memory_headroom = "12" } })
    assert.matches('set tight_fraction: 120%%: expected a fraction such as "8%%" or 0%.08, at most 100 %%; nearest: 100 %%',
                   unloadable "set { tight_fraction = '120%' }")
    assert.matches('within: 1200 is 120000 %%; expected from 0 %% to 1000 %%', unloadable "prefer { id = 'x', gpus = 8, within = 1200 }")
  end)

  it("is whole where it counts things, and not less than it says", function()
    assert.equal("--set: set context_rank_tokens: 0: expected a whole number, at least 1; nearest: 1",
                 problem_of { set = { context_rank_tokens = "0" } })
    assert.equal("site.lua:1: set max_pipeline_depth: 2.5: expected a whole number; nearest: 2",
                 unloadable "set { max_pipeline_depth = 2.5, reason = 'r' }")
    assert.matches("set rollback_window_steps: 1000001: expected a whole number, at most 1,000,000; nearest: 1,000,000",
                   unloadable "set { rollback_window_steps = 1000001 }")
    assert.matches("set slow_link: 1e%+30: expected a link speed", unloadable "set { slow_link = 1e30 }")
  end)

  it("leaves something of the window after its warm-up", function()
    assert.equal("--set: rollback_warmup_steps is 50: expected less than rollback_window_steps, 10",
                 problem_of { set = { rollback_window_steps = "10" } })
    assert.matches("site.lua:1: rollback_warmup_steps is 1,000: expected less than rollback_window_steps, 1,000",
                   unloadable "set { rollback_warmup_steps = 1000 }")
  end)

  it("of a site's own has the range that it states", function()
    local declared = [[parameter { id = "hall_gpus", value = 64, unit = "gpu", %s loosens = "none", meaning = "m" }
      warn { id = "w", gpus = over "hall_gpus", message = "m" } ]]
    local policy = loaded(declared:format "at_least = 8, at_most = '1k',")
    assert.same({ 8, 1000 }, { policy.parameters.hall_gpus.low, policy.parameters.hall_gpus.high })
    local path = files.write("hall.lua", declared:format "at_least = 8, at_most = '1k',")
    assert.equal("--set: set hall_gpus: 4: expected a whole number, at least 8; nearest: 8",
                 problem_of { files = { path }, set = { hall_gpus = "4" } })
    assert.matches("parameter 'hall_gpus': value: 64: expected a whole number, at least 100; nearest: 100",
                   unloadable(declared:format "at_least = 100,"))
    assert.matches("parameter 'hall_gpus': at_least is more than at_most", unloadable(declared:format "at_least = 65, at_most = 63,"))
    assert.matches("parameter 'hall_gpus': at_least: expected a number of GPUs", unloadable(declared:format "at_least = '8GiB',"))
    assert.matches("at_least and at_most are for numbers",
                   unloadable "parameter { id = 'x', value = true, at_most = 1, loosens = 'none', meaning = 'm' }")
  end)

  it("of an old file, whose value lies beyond what its unit says, still loads", function()
    local policy = loaded [[parameter { id = "growth", value = "150%", unit = "fraction", loosens = "none", meaning = "m" }]]
    assert.same({ 1.5, 0, 1.5 }, { policy.parameters.growth.value, policy.parameters.growth.low, policy.parameters.growth.high })
  end)

  it("shows its range where policies are shown, and to editors", function()
    local path = files.write("site.lua", "set { small_run_gpus = 64 }")
    local policy = pipeplan.policy(path, { date = DATE }).policy
    local show = require "pipeplan.policy.show"
    assert.matches("\n  rollback_window_steps +1,000  %(steps over which utilisation is averaged; 1 to 1,000,000%)\n", show.text(policy))
    assert.matches("\n  max_pipeline_depth +64  %(deeper pipelines are rejected; at least 1; loosens up%)\n", show.text(policy))
    for _, parameter in ipairs(show.data(policy, function(list) return list end).parameters) do
      if parameter.id == "memory_headroom" then assert.same({ 0, 1 }, { parameter.at_least, parameter.at_most }) end
    end
    local file = assert(io.open "stdlib/meta/policy.lua")
    local definitions = file:read "a"
    file:close()
    assert.matches("context_rank_tokens%? [^\n]*; 1 … 1e%+18\n", definitions)
  end)

  it("never leaves its range in a mutant", function()
    local policy = loaded "set { tight_fraction = '100%', context_rank_tokens = 1 }"
    local seen = 0
    for _, mutant in ipairs(require("pipeplan.analysis.mutants").of(policy, true)) do
      local parameter = policy.parameters[mutant.parameter or ""]
      if parameter then
        seen = seen + 1
        assert.is_true(mutant.value >= parameter.low and mutant.value <= parameter.high, mutant.id)
      end
    end
    assert.is_true(seen > 20)
  end)
end)

describe("a table", function()
  it("of statements has 2000 a file", function()
    local many = "for i = 1, %d do reject { id = 'r' .. i, pipeline_parallel = over(1000000 + i), message = 'm' } end"
    assert.equal("site.lua:1: a policy file has at most 2000 statements; what it states beyond belongs in another", unloadable(many:format(2001)))
    assert.equal(2000, #loaded(many:format(2000)).rejects - #planning.policy.policy.rejects)
  end)

  it("of one statement has 20000 values", function()
    assert.equal("site.lua:1: set: more than 20000 values",
                 unloadable "local t = {} for i = 1, 20001 do t[i] = i end set { schedules = t }")
    assert.matches("a statement has more than 20000 values",
                   unloadable "local t = {} for i = 1, 9997 do t[i] = i end set { schedules = t }")
  end)

  it("of kernels has 255 names", function()
    local many = "for i = 1, %d do kernel { id = 'k' .. i, fabric = 'infiniband', why = 'w' } end"
    assert.matches("site.lua:1: kernel 'k%d+': at most 255 kernels can be named", unloadable(many:format(300)))
    local own = #planning.policy.policy.kernels
    local site = pipeplan.policy(files.write("site.lua", many:format(255 - own)), { date = DATE })
    assert.equal("planned", site:plan_spec(planning.mixtral, ".").status)
  end)

  it("of stages has as many as a model has layers", function()
    local problem = planning.problem(planning.llama, { parallelism = { layers_per_stage = (function()
      local list = { 80 }
      for i = 2, 1025 do list[i] = 0 end
      return list
    end)() } })
    assert.equal(2, problem.status)
    assert.matches("parallelism.layers_per_stage is .*: expected at most 1024 numbers, got 1025", problem.message)
  end)

  it("of a batch ramp has 1000 segments, each of at most 2^31 - 1 sequences", function()
    local ramp = {}
    for i = 1, 1001 do ramp[i] = { (i - 1) * 1000, i } end
    assert.matches("expected a ramp of at most 1000 segments$", planning.problem(planning.llama, { training = { global_batch_size = ramp } }).message)
    assert.matches("expected a ramp to at most 2147483647 sequences; nearest: 2147483647$",
                   planning.problem(planning.llama, { training = { global_batch_size = { { 0, 1 }, { 1, 1 << 31 } } } }).message)
  end)
end)

it("a unit says what a quantity of it can be", function()
  for _, unit in ipairs(units.names) do
    local low, high = units.range(unit)
    assert.equal(0, low)
    assert.is_true(high >= 1 and high <= 1e24)
    assert.equal(unit == "fraction" and 1 or high, high)
  end
end)

it("a warning says nothing of a target that nothing reaches", function()
  -- M/P of 1e18 is 10^18 microbatches: no batch, no layout and no cluster has them; the search for one doubled a number past 2^63
  local site = planning.policy_of "warn { id = 'far', microbatches_per_rank = under(1e300), message = 'M/P is {microbatches_per_rank}' }"
  local plan = site:plan_spec(planning.llama, ".")
  assert.matches("^M/P is [%d.]+$", planning.entry(plan.warnings, "far").message)
end)
