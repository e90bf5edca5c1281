-- SPDX-License-Identifier: Apache-2.0
-- Policy files: what each statement may say, and how every mistake in one is told: file, line, what was expected, the nearest name.

local failure = require("pipeplan") and require "pipeplan.base.failure"
local conditions = require "pipeplan.policy.conditions"
local files = require "policy_files"
local load = require("pipeplan.policy.load").load
local message = require "pipeplan.policy.message"

teardown(files.remove)

local function build(text, options)
  options = options or {}
  options.files = { files.write("site.lua", text) }
  options.date = "2026-11-27"
  return load(options)
end

local function problem_of(text, options)
  local good, problem = pcall(build, text, options)
  assert.is_false(good, text)
  assert.is_true(failure.is(problem), tostring(problem))
  return problem.message:gsub("[^\n (]*/site", "site"), problem.status
end

local function message_of(...)
  return (problem_of(...))
end

-- The first condition of a rule whose condition on one field is written so.
local function condition_of(written)
  return build("warn { id = 'x', message = 'm', " .. written .. " }").rules.x.conditions[1]
end

describe("a condition", function()
  it("is a value, a list, or an operator with a number, a quantity or a name", function()
    assert.same({ field = "gpus", op = "equal", value = 512 }, condition_of "gpus = 512")
    assert.same({ field = "schedule", op = "equal", value = "dualpipe" }, condition_of "schedule = 'dualpipe'")
    assert.same({ field = "tied_embeddings", op = "equal", value = false }, condition_of "tied_embeddings = false")
    assert.same({ field = "alltoall_kernel", op = "equal", value = false }, condition_of "alltoall_kernel = false")
    assert.same({ field = "schedule", op = "one_of", values = { "1f1b", "zb_h1" } }, condition_of "schedule = { '1f1b', 'zb_h1' }")
    assert.same({ field = "framework", op = "none_of", values = { "torch" } }, condition_of "framework = none_of { 'torch' }")
    assert.same({ field = "gpus", op = "under", value = 100, ref = "small_run_gpus" }, condition_of "gpus = under 'small_run_gpus'")
    assert.same({ field = "peak_bytes", op = "over", ref = "device_bytes" }, condition_of "peak_bytes = over 'device_bytes'")
    assert.same({ field = "microbatches", op = "odd" }, condition_of "microbatches = odd")
    assert.same({ field = "layers", op = "not_multiple_of", ref = "pipeline_parallel" }, condition_of "layers = not_multiple_of 'pipeline_parallel'")
    assert.same({ field = "pipeline_parallel", op = "between", low = 16, low_ref = "frontier_depth_low", high = 64 },
                condition_of "pipeline_parallel = between('frontier_depth_low', 64)")
    assert.same({ field = "gpus", op = "equal", value = 64, ref = "max_pipeline_depth" }, condition_of "gpus = equal 'max_pipeline_depth'")
  end)

  it("takes a quantity in the unit of its field", function()
    assert.equal(25e9, condition_of("expert_link = at_most '200Gbps'").value)       -- 200e9 / 8
    assert.equal(14800000000000, condition_of("tokens = over '14.8T'").value)
    assert.equal(131072, condition_of("sequence_length = at_least '128Ki'").value)
    assert.equal(0.1, condition_of("alltoall_fraction = under '10%'").value)
    assert.equal(85899345920, condition_of("device_bytes = '80GiB'").value)
  end)

  it("is always the value for field = 'x', never a name", function()
    assert.matches("architecture: no architecture 'layers'", message_of("warn { id = 'x', message = 'm', architecture = 'layers' }"))
  end)

  it("names the field, the value and the nearest name when it is wrong", function()
    for written, expected in pairs {
      ["gpu = 5"] = "no field or property 'gpu', did you mean 'gpus'?",
      ["schedule = 'dualpip'"] = "schedule: no schedule 'dualpip', did you mean 'dualpipe'?",
      ["recompute = 'al'"] = "recompute: no recompute 'al', expected one of none, selective, modules, full",
      ["schedule = { '1f1b', 'zbh1' }"] = "schedule: no schedule 'zbh1', did you mean 'zb_h1'?",
      ["schedule = equal 'schedules'"] = "schedule: 'schedule' is a name, 'schedules' a list",
      ["gpus = equal 'schedules'"] = "gpus: 'gpus' is an integer, 'schedules' a list",
      ["gpus = under 'small_run_gpu'"] = "gpus: no parameter or field 'small_run_gpu', did you mean 'small_run_gpus'?",
      ["gpus = under 'slow_link'"] = "gpus: 'gpus' is in gpu, 'slow_link' in byte/s",
      ["gpus = under 'architecture'"] = "gpus: 'gpus' is an integer, 'architecture' a name",
      ["gpus = 2.5"] = "gpus: an integer is expected, got 2.5",
      ["gpus = true"] = "gpus: a number is expected, got a boolean",
      ["gpus = {}"] = "gpus: a list of values is expected",
      ["gpus = { low = 5 }"] = "gpus: a list of values is expected",
      ["gpus = under(0/0)"] = "gpus: a number is expected, got nan",
      ["expert_link = at_most '200GiB'"] = 'expert_link: expected a link speed such as "400Gbps" or "160GB/s", got "200GiB": that is bytes',
      ["schedule = under(5)"] = "schedule: 'schedule' is a name and has no order; write schedule = value, a list, or none_of { … }",
      ["fits_one_gpu = odd"] = "fits_one_gpu: 'fits_one_gpu' is yes or no and has no order; write fits_one_gpu = value, a list, or none_of { … }",
      ["tied_embeddings = 1"] = "tied_embeddings: true or false is expected, got 1",
      ["schedule = false"] = "schedule: a name is expected, got false",
      ["gpus = function() return true end"] = "gpus: only `when` is a function",
      ["whenn = function() return true end"] = "only `when` is a function, not 'whenn'",
      ["when = true"] = "`when` is a function that returns true or false",
    } do
      local text = "\nwarn { id = 'x', message = 'm', gpus_per_node = 8,\n  " .. written .. " }"
      assert.equal("site.lua:2: warn 'x': " .. expected, (problem_of(text)))
    end
  end)

  it("is shown as it is written, with the value behind a name", function()
    assert.equal("gpus under small_run_gpus (100)", conditions.text(condition_of "gpus = under 'small_run_gpus'"))
    assert.equal("peak_bytes over device_bytes", conditions.text(condition_of "peak_bytes = over 'device_bytes'"))
    assert.equal("expert_link at most slow_link (200 Gb/s)", conditions.text(condition_of "expert_link = at_most 'slow_link'"))
    assert.equal("microbatches odd", conditions.text(condition_of "microbatches = odd"))
    assert.equal("pipeline_parallel between frontier_depth_low (16) and 64",
                 conditions.text(condition_of "pipeline_parallel = between('frontier_depth_low', 64)"))
  end)
end)

describe("a statement", function()
  it("needs an id and its own properties", function()
    for text, expected in pairs {
      ["row { try = { '1f1b' } }"] = "row: it needs an id: id = \"name\", of letters, digits and underscores",
      ["row { id = 'a-b', try = { '1f1b' } }"] = "row: a-b is no id: id = \"name\", of letters, digits and underscores",
      ["row { id = 'x', gpus = 1 }"] = "row 'x': it needs try",
      ["row { id = 'x', try = { '1f1b', [3] = 'zb_h1' } }"] = "row 'x': try: a list of schedules is expected",
      ["row { id = 'x', try = { '1f1b', nil, 'zb_h1' } }"] = "row 'x': try: a list of schedules is expected",
      ["set { recompute_choices = { 'none', nil, 'full' } }"] =
        "set recompute_choices: a list is expected, of none, selective, modules and full",
      ["set { sharding_choices = { 'none', x = 'optimizer' } }"] =
        "set sharding_choices: a list is expected, of none, optimizer, gradients and parameters",
      ["set { micro_batch_choices = { 1, [3] = 4 } }"] = "set micro_batch_choices: a list of whole numbers is expected",
      ["row { id = 'x', try = {} }"] = "row 'x': try: a list of schedules is expected",
      ["row { id = 'x', try = { '1f1b', '1f1b' } }"] = "row 'x': try: '1f1b' stands twice in the list",
      ["row { id = 'x', try = { 'none' } }"] = "row 'x': try: no schedule 'none'",
      ["row { id = 'x', try = { '1f1b' }, message = 'm' }"] = "row 'x': no field or property 'message'",
      ["row { id = 'x', 5, try = { '1f1b' } }"] = "row 'x': everything in it is written name = value",
      ["reject { id = 'x', gpus = 1 }"] = "reject 'x': it needs message",
      ["reject { id = 'x', gpus = 1, message = 'P {pipeline}' }"] = "reject 'x': message: no parameter or field 'pipeline', did you mean 'pipeline_parallel'?",
      ["reject { id = 'x', gpus = 1, message = 'm', recommend = 'dualpipev' }"] =
        "reject 'x': a reject recommends a layout: data_parallel or data_and_tensor_parallel",
      ["refuse { id = 'x', gpus = 1, message = 'm', recommend = '1f1b' }"] =
        "refuse 'x': it refuses the plan, so it recommends data_parallel or data_and_tensor_parallel",
      ["refuse { id = 'x', schedule = 'zb_v', message = 'm', recommend = 'data_parallel' }"] =
        "refuse 'x': it refuses a schedule, so it recommends a schedule",
      ["refuse { id = 'x', gpus = 1, message = 'm', recommend = 'data_paralel' }"] =
        "refuse 'x': recommend: no schedule or layout 'data_paralel', did you mean 'data_parallel'?",
      ["warn { id = 'x', gpus = 1, message = 'm', severity = 'error' }"] = "warn 'x': severity: \"warning\" or \"note\" is expected",
      ["prefer { id = 'x', gpus = 1 }"] = "prefer 'x': it needs within",
      ["prefer { id = 'x', gpus = 1, within = 'tie_fracton' }"] =
        "prefer 'x': within: \"any\", a fraction or the name of one is expected, got 'tie_fracton', did you mean 'tie_fraction'?",
      ["prefer { id = 'x', gpus = 1, within = 'small_run_gpus' }"] = "prefer 'x': within: 'small_run_gpus' is not a fraction",
      ["kernel { id = 'x', fabric = 'efa' }"] = "kernel 'x': it needs why",
      ["kernel { id = 'x', why = 'w', overlapping = 'no' }"] = "kernel 'x': overlapping: true or false is expected",
      ["invariant { id = 'x', gpus = 1, unless = 'too_dep' }"] =
        "invariant 'x': unless: no rule has the id 'too_dep', did you mean 'too_deep'?",
      ["disable { id = 'too_deep', try = 'x', reason = 'r' }"] =
        "disable 'too_deep': disable takes id, expires, final, link, owner, reason and why, not 'try', did you mean 'why'?",
      ["parameter { id = 'x', value = 1, unit = 'gpus', loosens = 'none', meaning = 'm' }"] =
        "parameter 'x': no unit 'gpus', did you mean 'gpu'?",
      ["parameter { id = 'x', value = 1, unit = 'gpu', meaning = 'm' }"] =
        "parameter 'x': loosens is \"up\", \"down\" or \"none\": the way that lets more plans through",
      ["parameter { id = 'x', value = 1, unit = 'gpu', loosens = 'none' }"] = "parameter 'x': a parameter needs its meaning",
      ["parameter { id = 'x', valu = 1, value = 1, unit = 'gpu', loosens = 'none', meaning = 'm' }"] =
        "parameter 'x': parameter takes id, value, unit, at_least, at_most, loosens, meaning, owner, why, link and final, not 'valu', "
        .. "did you mean 'value'?",
    } do
      assert.equal("site.lua:1: " .. expected, (problem_of(text)), text)
    end
  end)

  it("is told of without addresses, whatever stands in the wrong place", function()
    for _, value in ipairs { "{}", "{ {} }", "under(5)", "odd", "{ odd }", "{ under(5) }", "under(under(5))", "between({}, odd)", "none_of(5)",
                             "none_of { {} }", "function() return true end", "print", "engine" } do
      for _, name in ipairs { "gpus", "schedule", "fits_one_gpu", "message", "severity", "when", "id", "nothing" } do
        local good, problem = pcall(build, string.format("warn { id = 'x', message = 'm', %s = %s }", name, value))
        if not good then
          assert.is_true(failure.is(problem), tostring(problem))
          assert.is_nil(problem.message:find "0x%x%x%x%x%x%x", problem.message)
        end
      end
      for _, text in ipairs { "disable { id = 'dense', [%s] = 1 }", "set { tie_fraction = %s }", "set { schedules = %s }", "set { [1] = %s }",
                              "parameter { id = 'x', value = %s, unit = 'gpu', loosens = 'none', meaning = 'm' }",
                              "parameter { id = 'x', value = 1, unit = %s, loosens = %s, meaning = %s }", "prefer { id = 'x', gpus = 1, within = %s }",
                              "row { id = 'x', try = %s }", "row(%s)", "site(%s)", "change { id = %s, gpus = 1 }", "change { id = 'dense', try = { %s } }" } do
        local good, problem = pcall(build, (text:gsub("%%s", (value:gsub("%%", "%%%%")))))
        if not good then
          assert.is_true(failure.is(problem), tostring(problem))
          assert.is_nil(problem.message:find "0x%x%x%x%x%x%x", problem.message)
        end
      end
    end
  end)

  it("with a name twice is told of where it stands again", function()
    assert.matches("^site%.lua:4: gpus stands twice in one table",
                   (problem_of "warn {\n  id = 'x', gpus = over(8), -- gpus =\n  message = 'm',\n  gpus = under(64) }"))
  end)

  it("says nothing that a terminal would obey", function()
    for _, text in ipairs {
      "site 'a\\27[31m' set { tie_fraction = 0.02 }", "warn { id = 'x', gpus = 1, message = 'a\\nb' }",
      "warn { id = 'x', accelerator = 'a\\27b', message = 'm' }", "disable { id = 'too_deep', reason = 'a\\rb' }",
    } do
      local told = message_of(text)
      assert.matches("^site%.lua:1: ", told)
      assert.is_truthy(told:find "one line" or told:find "control characters", told)
      assert.is_nil(told:find "%c", told)
    end
  end)

  it("that states no condition is no statement about everything", function()
    local expected = "site.lua:1: reject 'x': it states no condition and would hold for every plan; if that is meant, write a field = any"
    assert.equal(expected, (problem_of("reject { id = 'x', message = 'm' }")))
    assert.same({}, build("reject { id = 'x', message = 'm', gpus = any }").rules.x.conditions)
  end)

  it("reads only what is known when it is decided", function()
    assert.matches("row 'x': peak_bytes: 'peak_bytes' is known only after simulation; a row is decided before",
                   message_of("row { id = 'x', peak_bytes = over(1), try = { '1f1b' } }"))
    assert.matches("reject 'x': status: 'status' is known only of a finished plan: warn and invariant may read it",
                   message_of("reject { id = 'x', status = 'planned', message = 'm' }"))
  end)

  it("has the phase of the latest field it reads", function()
    local function phase(written)
      return build("warn { id = 'x', message = 'm', " .. written .. " }").rules.x.phase
    end
    assert.equal("request", phase "gpus = 1")
    assert.equal("candidate", phase "gpus = 1, tensor_parallel = 1")
    assert.equal("simulated", phase "tensor_parallel = 1, step_seconds = over(1)")
    assert.equal("plan", phase "gpus = 1, status = 'planned'")
    assert.equal("simulated", build("reject { id = 'x', message = 'm', when = function() return true end }").rules.x.phase)
    assert.equal("candidate", build("row { id = 'x', try = { '1f1b' }, when = function() return true end }").rules.x.phase)
  end)

  it("is one of several mistakes, all of which are told at once", function()
    local text = "row { id = 'x', gpu = 1, try = { '1f1b' } }\nset { tie = 1 }\nchange { id = 'dens', gpus = any }"
    assert.equal("site.lua:2: set: no parameter 'tie'\nsite.lua:1: row 'x': no field or property 'gpu', did you mean 'gpus'?\n"
                 .. "site.lua:3: change 'dens': no row or rule has that id, did you mean 'dense'?", (problem_of(text)))
  end)
end)

describe("a file", function()
  it("with a syntax error says where, exit 6", function()
    local text, status = problem_of("row { id = 'x'\nset {")
    assert.matches("^site%.lua:2: '}' expected %(to close '{' at line 1%) near 'set'$", text)
    assert.equal(6, status)
  end)

  it("with a byte order mark says so, exit 6", function()
    local text, status = problem_of("\xEF\xBB\xBFset { small_run_gpus = 64 }")
    assert.same({ "site.lua:1: starts with a byte order mark; save it as plain UTF-8", 6 }, { text, status })
  end)

  it("with a name that does not exist suggests the nearest", function()
    assert.equal("site.lua:1: no name 'reject_', did you mean 'reject'?", (problem_of("reject_ { id = 'x' }")))
    assert.equal("site.lua:2: no name 'at_mots', did you mean 'at_most'?", (problem_of("\nreject { gpus = at_mots(5) }")))
  end)

  it("that goes over its budget is exit 4", function()
    local text, status = problem_of("while true do end", { work = 10000000 })
    assert.equal("site.lua:1: over budget: more than 10000000 units of work", text)
    assert.equal(4, status)
  end)

  it("that cannot be read is named, exit 6", function()
    local good, problem = pcall(load, { files = { "/nowhere/site.lua" } })
    assert.is_false(good)
    assert.equal("/nowhere/site.lua: cannot be read: No such file or directory", problem.message)
    assert.equal(6, problem.status)
  end)

  it("with a long path is named in full", function()
    local directory = files.directory {}
    local deep = directory .. "/" .. string.rep("d", 80)
    assert(os.execute("mkdir " .. deep))
    local path = files.write("site.lua", "\nrejct {}", deep)
    local good, problem = pcall(load, { files = { path } })
    assert.is_false(good)
    assert.equal(path .. ":2: no name 'rejct', did you mean 'reject'?", problem.message)
  end)

  it("may be a directory of files, read in the order of their names, tests left out", function()
    local directory = files.directory {
      ["b.lua"] = "row { id = 'second', try = { '1f1b' } }", ["a.lua"] = "row { id = 'first', try = { '1f1b' } }",
      ["a_spec.lua"] = "error 'not a policy'", ["notes.txt"] = "no",
    }
    local policy = load { files = { directory .. "/" } }
    assert.equal("first", policy.rows[1].id)
    assert.equal("second", policy.rows[2].id)
  end)
end)

describe("conditions of a rule", function()
  local policy = build([[
    reject { id = "deep", pipeline_parallel = over "max_pipeline_depth", message = "P {pipeline_parallel} over {max_pipeline_depth}" }
    reject { id = "asked", gpus = over(8), message = "m", when = function(f) return f.tokens < f.short_run_tokens or false end }
    reject { id = "broken", gpus = over(8), message = "m", when = function(f) return f.token > 1 end }
    reject { id = "endless", gpus = over(8), message = "m", when = function() while true do end end }
    refuse { id = "link", schedule = "dualpipe", expert_link = at_most "slow_link", recommend = "1f1b", message = "{expert_link}" }
    warn { id = "range", microbatches_per_rank = between(8, 16), message = "m" }
    warn { id = "odd_depth", pipeline_parallel = odd, message = "m" }
  ]], { work = 50000000 })

  it("hold or not for a record, as the engine says", function()
    assert.is_true(conditions.holds(policy.rules.deep, policy, { pipeline_parallel = 65 }))
    assert.is_false(conditions.holds(policy.rules.deep, policy, { pipeline_parallel = 64 }))
    assert.is_false(conditions.holds(policy.rules.deep, policy, {}))
  end)

  it("ask the function only where the others hold, and show it fields and parameters", function()
    assert.is_true(conditions.holds(policy.rules.asked, policy, { gpus = 16, tokens = 5e8 }))
    assert.is_false(conditions.holds(policy.rules.asked, policy, { gpus = 16, tokens = 5e9 }))
    assert.is_false(conditions.holds(policy.rules.broken, policy, { gpus = 8 }))
  end)

  it("that fail to evaluate are exit 3, with the rule, its place and the nearest field", function()
    local good, problem = pcall(conditions.holds, policy.rules.broken, policy, { gpus = 16, tokens = 1 })
    assert.is_false(good)
    assert.equal(3, problem.status)
    assert.matches("^rule 'broken' %(.*site%.lua:3%): .*site%.lua:3: no field 'token', did you mean 'tokens'%?$", problem.message)
  end)

  it("say which of them failed first, and the value it had", function()
    local failed = conditions.first_failure(policy.rules.link, policy, { schedule = "dualpipe", expert_link = 50e9 })
    assert.equal("expert_link at most slow_link (200 Gb/s)", failed.text)
    assert.equal(50e9, failed.actual)
    assert.is_nil(conditions.first_failure(policy.rules.link, policy, { schedule = "dualpipe", expert_link = 25e9 }))
    assert.equal("its function `when`", conditions.first_failure(policy.rules.asked, policy, { gpus = 16, tokens = 5e9 }).text)
  end)

  it("say the nearest value at which they stop holding", function()
    assert.same({ field = "pipeline_parallel", value = 64 }, conditions.nearest(policy.rules.deep, policy, { pipeline_parallel = 80 }))
    assert.same({ field = "expert_link", value = 25e9, beyond = true },
                conditions.nearest(policy.rules.link, policy, { schedule = "dualpipe", expert_link = 10e9 }))
    assert.same({ field = "microbatches_per_rank", value = 8, beyond = true },
                conditions.nearest(policy.rules.range, policy, { microbatches_per_rank = 9 }))
    assert.same({ field = "pipeline_parallel", value = 6 }, conditions.nearest(policy.rules.odd_depth, policy, { pipeline_parallel = 5 }))
    assert.same({ field = "gpus", value = 8 }, conditions.nearest(policy.rules.asked, policy, { gpus = 16, tokens = 5e8 }))
  end)

  it("say it of values and of sets of them too, but for what a request states and for real numbers", function()
    local site = build([[
      reject { id = "one", message = "m", tensor_parallel = 4 }
      reject { id = "first", message = "m", tensor_parallel = 1 }
      reject { id = "some", message = "m", tensor_parallel = { 2, 3, 4, 5 } }
      reject { id = "others", message = "m", tensor_parallel = none_of { 1, 2, 8 } }
      reject { id = "asked", message = "m", gpus = { 8, 16 } }
      reject { id = "real", message = "m", bubble_fraction = 0.5 }
      reject { id = "same", message = "m", tensor_parallel = equal "pipeline_parallel" }
    ]])
    local function value(id, record) return (conditions.nearest(site.rules[id], site, record) or {}).value end
    assert.same({ 3, 2, 1, 6, 2, 8 }, { value("one", { tensor_parallel = 4 }), value("first", { tensor_parallel = 1 }),
                                        value("some", { tensor_parallel = 3 }), value("some", { tensor_parallel = 5 }),
                                        value("others", { tensor_parallel = 4 }), value("others", { tensor_parallel = 6 }) })
    assert.equal(3, value("same", { tensor_parallel = 4, pipeline_parallel = 4 }))
    assert.same({}, { value("asked", { gpus = 8 }), value("real", { bubble_fraction = 0.5 }) })
  end)

  -- By hand: every depth is a multiple of 1. Over 1.5 hold 2, 3, …, so 1 is the nearest that does not; 1.5 is no depth. Between 1 and 4 hold
  -- 1 to 4: 0 is no depth, so 5. Below 1.5 and 2.5 the last that holds is 1 and 2. Of no token a spec has fewer than 1.
  it("say no value that the field cannot have or that leaves the rule as it is", function()
    local site = build([[
      parameter { id = "half", value = 1.5, unit = "1", loosens = "none", meaning = "m" }
      parameter { id = "more", value = 2.5, unit = "1", loosens = "none", meaning = "m" }
      reject { id = "all", message = "m", pipeline_parallel = multiple_of(1) }
      reject { id = "over", message = "m", pipeline_parallel = over "half" }
      reject { id = "under", message = "m", pipeline_parallel = under "half" }
      reject { id = "at_most", message = "m", pipeline_parallel = at_most "more" }
      reject { id = "at_least", message = "m", pipeline_parallel = at_least "half" }
      reject { id = "edge", message = "m", pipeline_parallel = between(1, 4) }
      reject { id = "twos", message = "m", pipeline_parallel = multiple_of(2) }
      reject { id = "thirds", message = "m", pipeline_parallel = not_multiple_of(3) }
      reject { id = "any_length", message = "m", tokens = at_least(1) }
    ]])
    local function near(id, value)
      local found = conditions.nearest(site.rules[id], site, { pipeline_parallel = value, tokens = 5e9 })
      assert.is_true(found == nil or math.type(found.value) == "integer" and found.field == "pipeline_parallel", id)
      return found and found.value or "none"
    end
    assert.same({ "none", 1, 2, 3, 1, 5, 5, 5, 9, "none" },
                { near("all", 2), near("over", 2), near("under", 1), near("at_most", 2), near("at_least", 2), near("edge", 2),
                  near("edge", 1), near("twos", 4), near("thirds", 7), near("any_length", 2) })
  end)

  it("fill the message in display units; what has no value is unknown", function()
    assert.equal("P 80 over 64", message.fill(policy.rules.deep.message, { pipeline_parallel = 80 }, policy))
    assert.equal("200 Gb/s", message.fill("{expert_link}", { expert_link = 25e9 }, policy))
    assert.equal("P 80 is over 64 (bubble unknown)", message.fill(policy.rules.too_deep.message, { pipeline_parallel = 80 }, policy))
    assert.equal("79.6 GiB, 14.8 T, DualPipe", message.fill("{device_bytes}, {tokens}, {schedule}",
                 { device_bytes = 85520809984, tokens = 14.8e12, schedule = "dualpipe" }, policy))
  end)

  it("that do not end are exit 4, and from then on the policy answers nothing else", function()
    local good, problem = pcall(conditions.holds, policy.rules.endless, policy, { gpus = 16 })
    assert.is_false(good)
    assert.equal(4, problem.status)
    assert.matches("^rule 'endless' .*over budget", problem.message)
    good, problem = pcall(conditions.holds, policy.rules.asked, policy, { gpus = 16, tokens = 5e8 })
    assert.is_false(good)
    assert.equal(4, problem.status)
  end)
end)
