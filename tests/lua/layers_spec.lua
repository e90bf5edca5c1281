-- SPDX-License-Identifier: Apache-2.0
-- Layers: default ← each --policy ← --set. What a later layer does to an earlier one, what it must say for it, and what it hides.

local failure = require("pipeplan") and require "pipeplan.base.failure"
local files = require "policy_files"
local load = require("pipeplan.policy.load").load

teardown(files.remove)

-- A policy of its own, without the default's rules: only what the test needs.
local base = [[
parameter { id = "limit", value = 10, unit = "rank", loosens = "up", meaning = "a limit" }
parameter { id = "floor", value = "5%", unit = "fraction", loosens = "down", meaning = "a floor" }
parameter { id = "taste", value = 3, unit = "gpu", loosens = "none", meaning = "a taste" }
parameter { id = "schedules", value = { "1f1b", "zb_h1" }, unit = "schedule", loosens = "none", meaning = "what may be planned" }
parameter { id = "zero_bubble_members", value = { "zb_h1", "zb_v" }, unit = "schedule", loosens = "none", meaning = "a family" }
row { id = "first", gpus = under(100), try = { "1f1b" } }
row { id = "last", try = { "zero_bubble", "1f1b" } }
reject { id = "too_deep", pipeline_parallel = over "limit", message = "P {pipeline_parallel} over {limit}" }
reject { id = "two", schedule = { "dualpipe", "dualpipev" }, microbatches = odd, message = "M" }
refuse { id = "slow", schedule = "dualpipe", expert_link = at_most "25GB/s", recommend = "1f1b", message = "slow" }
prefer { id = "taste_first", gpus = over "taste", within = "any" }
warn { id = "note", gpus = over(1), message = "n" }
]]

local function build(...)
  local directory = files.directory { ["base.lua"] = base }
  local paths = {}
  for i, text in ipairs { ... } do paths[i] = files.write("layer" .. i .. ".lua", text) end
  return load { policies = directory, files = paths, date = "2026-11-27" }
end

local function problem_of(...)
  local good, problem = pcall(build, ...)
  assert.is_false(good)
  assert.is_true(failure.is(problem), tostring(problem))
  return problem.message:gsub("[^\n (]*/", ""), problem.status
end

local function message_of(...)
  return (problem_of(...))
end

local function ids(list)
  local names = {}
  for i, rule in ipairs(list) do names[i] = rule.id end
  return names
end

describe("order", function()
  it("puts a later layer's rows, refusals, preferences and kernels before an earlier layer's", function()
    local policy = build([[
      row { id = "b", gpus = under(5), try = { "1f1b" } }
      row { id = "c", gpus = under(6), try = { "1f1b" } }
      refuse { id = "slower", schedule = "dualpipe", expert_link = at_most "10GB/s", recommend = "1f1b", message = "m" }
      prefer { id = "ours", gpus = over(1), within = "any" }]],
      [[row { id = "a", gpus = under(4), try = { "1f1b" } }]])
    assert.same({ "a", "b", "c", "first", "last" }, ids(policy.rows))
    assert.same({ "slower", "slow" }, ids(policy.refuses))
    assert.same({ "ours", "taste_first" }, ids(policy.prefers))
  end)

  it("takes the layers in the order they are given", function()
    local policy = build("set { taste = 4 }", "set { taste = 5 }")
    assert.equal(5, policy.parameters.taste.value)
    assert.same({ 4, 3 }, { policy.parameters.taste.hides[1].value, policy.parameters.taste.hides[2].value })
  end)

  it("puts --set over every file", function()
    local directory = files.directory { ["base.lua"] = base }
    local policy = load { policies = directory, files = { files.write("a.lua", "set { taste = 4 }") }, set = { taste = "7" } }
    assert.equal(7, policy.parameters.taste.value)
    assert.equal("--set", policy.parameters.taste.layer)
  end)
end)

describe("change", function()
  it("replaces only the fields it gives, and remembers where each comes from and what it hides", function()
    local policy = build("\nchange { id = 'first', gpus = under(50) }")
    local row = policy.rules.first
    assert.equal(50, row.conditions[1].value)
    assert.same({ "1f1b" }, row.try)
    assert.equal("default", row.layer)
    assert.equal("layer1", row.origin.gpus.layer)
    assert.equal(2, row.origin.gpus.line)
    assert.equal("gpus under 100", row.hides[1].value)
  end)

  it("keeps the place of the rule in its list", function()
    local policy = build("change { id = 'last', try = { '1f1b' } }")
    assert.same({ "first", "last" }, ids(policy.rows))
  end)

  it("takes a condition away with any", function()
    local policy = build("change { id = 'first', gpus = any }")
    assert.same({}, policy.rules.first.conditions)
  end)

  it("must name something that exists", function()
    local message, status = problem_of("\nchange { id = 'frist', gpus = any }")
    assert.equal("layer1.lua:2: change 'frist': no row or rule has that id, did you mean 'first'?", message)
    assert.equal(6, status)
    assert.equal("layer1.lua:1: change 'limit': that is a parameter; write set { limit = … }", problem_of("change { id = 'limit', gpus = any }"))
    assert.equal("layer1.lua:1: change 'does_not_fit': the planner decides that itself", problem_of("change { id = 'does_not_fit', gpus = any }"))
    assert.equal("layer1.lua:1: change 'first': it has no condition on 'tokens' to take away", problem_of("change { id = 'first', tokens = any }"))
    assert.equal("layer1.lua:1: change 'first': it changes nothing", problem_of("change { id = 'first' }"))
  end)

  it("may give only what the rule's verb knows", function()
    assert.equal("layer1.lua:1: change 'first': no field or property 'message'", problem_of("change { id = 'first', message = 'x' }"))
  end)
end)

describe("loosening", function()
  it("needs a reason: disabling a reject or a refusal", function()
    for _, id in ipairs { "too_deep", "slow" } do
      assert.equal(string.format("layer1.lua:1: disable '%s': this lets more plans through, so it needs reason = \"…\"", id),
                   problem_of(string.format("disable { id = '%s' }", id)))
      local policy = build(string.format("disable { id = '%s', reason = 'r', expires = '2027-06-30' }", id))
      assert.same({ { id = id, kind = "disable", layer = "layer1", file = policy.loosened[1].file, line = 1, reason = "r",
                      expires = "2027-06-30" } }, policy.loosened)
      assert.is_nil(policy.rules[id])
      assert.equal(id, policy.disabled[1].rule.id)
    end
  end)

  it("does not need one for a row, a preference or a warning", function()
    local policy = build("disable { id = 'first' } disable { id = 'taste_first' } disable { id = 'note' }")
    assert.same({}, policy.loosened)
  end)

  it("is narrowing a reject or refusal by a change, in whatever way", function()
    for _, change in ipairs {
      "id = 'too_deep', pipeline_parallel = over(20)",                                 -- fewer values
      "id = 'too_deep', pipeline_parallel = at_least(12)",
      "id = 'too_deep', pipeline_parallel = between(11, 64)",
      "id = 'too_deep', gpus = over(8)",                                               -- one more condition
      "id = 'too_deep', pipeline_parallel = over 'gpus_per_node'",                     -- not comparable
      "id = 'too_deep', when = function() return true end",
      "id = 'two', schedule = 'dualpipe'",
      "id = 'two', schedule = none_of { 'dualpipev' }",
      "id = 'two', microbatches = even",
      "id = 'slow', expert_link = under '25GB/s'",
      "id = 'slow', expert_link = at_most '20GB/s'",
    } do
      assert.matches("this lets more plans through", message_of("change { " .. change .. " }"), nil, change)
      assert.equal(1, #build("change { " .. change .. ", reason = 'r' }").loosened)
    end
  end)

  it("is not widening one", function()
    for _, change in ipairs {
      "id = 'too_deep', pipeline_parallel = over(9)",
      "id = 'too_deep', pipeline_parallel = at_least(11)",   -- of integers the same as over 10
      "id = 'too_deep', pipeline_parallel = over 'limit'",
      "id = 'too_deep', pipeline_parallel = any",
      "id = 'two', schedule = { 'dualpipe', 'dualpipev', 'zb_v' }",
      "id = 'two', schedule = none_of { '1f1b' }",
      "id = 'two', microbatches = any",
      "id = 'two', message = 'other words'",
      "id = 'slow', expert_link = at_most '30GB/s'",
      "id = 'slow', recommend = 'zb_h1'",
    } do
      assert.same({}, build("change { " .. change .. " }").loosened, change)
    end
  end)

  it("is moving a parameter in its loosening direction", function()
    assert.matches("set limit: this lets more plans through", message_of("set { limit = 11 }"))
    assert.matches("set floor: this lets more plans through", message_of("set { floor = '4%' }"))
    assert.same({}, build("set { limit = 9, floor = '6%', taste = 100 }").loosened)
    local policy = build("set { limit = 11, reason = 'deeper network' }")
    assert.equal("limit", policy.loosened[1].id)
    assert.equal("set", policy.loosened[1].kind)
    assert.equal("deeper network", policy.loosened[1].reason)
  end)

  it("on the command line takes its reason there", function()
    local directory = files.directory { ["base.lua"] = base }
    local good, problem = pcall(load, { policies = directory, set = { limit = "11" } })
    assert.is_false(good)
    assert.equal("--set: set limit: this lets more plans through, so it needs --set reason=…", problem.message)
    assert.equal("r", load({ policies = directory, set = { limit = "11", reason = "r" } }).loosened[1].reason)
  end)
end)

describe("expiry", function()
  local function at(date)
    return pcall(load, { policies = files.directory { ["base.lua"] = base }, date = date,
                         files = { files.write("a.lua", "disable { id = 'too_deep', reason = 'r', expires = '2027-06-30' }") } })
  end

  it("lets what loosens fall away once its day has passed, and says so", function()
    assert.is_nil(select(2, at "2027-06-30").rules.too_deep)
    local good, policy = at "2027-07-01"
    assert.is_true(good)
    assert.is_not_nil(policy.rules.too_deep)
    assert.same({}, policy.loosened)
    assert.equal("expired", policy.warnings[1].id)
    assert.matches("a%.lua:1: disable 'too_deep' expired on 2027%-06%-30 %(the date is 2027%-07%-01%): it no longer holds$",
                   policy.warnings[1].message)
  end)

  it("is judged at a day that there is", function()
    for _, date in ipairs { "2026-02-30", "2026-13-01", "tomorrow", "2026-1-1" } do
      local good, problem = at(date)
      assert.same({ false, 2 }, { good, problem.status })
      assert.matches("^%-%-date: .*got '" .. date:gsub("%p", "%%%0") .. "'$", problem.message)
    end
  end)

  it("is warned of in its last thirty days", function()
    assert.same({}, select(2, at "2027-05-30").warnings)
    local warnings = select(2, at "2027-05-31").warnings
    assert.equal("expires_soon", warnings[1].id)
    assert.matches("disable 'too_deep' expires on 2027%-06%-30$", warnings[1].message)
  end)

  it("must be a day that exists", function()
    assert.matches("expires: there is no day 2027%-02%-30", message_of("disable { id = 'too_deep', reason = 'r', expires = '2027-02-30' }"))
    assert.matches('expires: a date such as "2027%-06%-30" is expected', message_of("disable { id = 'too_deep', reason = 'r', expires = 'soon' }"))
  end)
end)

describe("names", function()
  it("are one space for rules, parameters and fields", function()
    assert.matches("parameter 'too_deep': that id stands already %(base.lua:8%)",
                   message_of("parameter { id = 'too_deep', value = 1, unit = '1', loosens = 'none', meaning = 'm' }"))
    assert.matches("parameter 'gpus': a field has that name",
                   message_of("parameter { id = 'gpus', value = 1, unit = '1', loosens = 'none', meaning = 'm' }"))
    assert.matches("warn 'limit': a parameter has that name %(base.lua:1%)", message_of("warn { id = 'limit', gpus = 1, message = 'm' }"))
    assert.matches("warn 'tokens': a field has that name", message_of("warn { id = 'tokens', gpus = 1, message = 'm' }"))
    assert.matches("row 'first': that id stands already", message_of("row { id = 'first', try = { '1f1b' } }"))
    assert.matches("that word is one that statements use themselves", message_of("warn { id = 'reason', gpus = 1, message = 'm' }"))
    for _, id in ipairs { "dominated", "no_candidates", "no_overlap" } do
      assert.matches("that is the id of something the planner decides itself",
                     message_of("warn { id = '" .. id .. "', gpus = 1, message = 'm' }"))
    end
    assert.matches("that rule is disabled", message_of("disable { id = 'note' } warn { id = 'note', gpus = 1, message = 'm' }"))
  end)

  it("of a rule may be the yes-or-no field that it judges, for nothing can mean either", function()
    local policy = build("warn { id = 'fits_one_gpu', fits_one_gpu = true, message = 'm' }")
    assert.equal("warn", policy.rules.fits_one_gpu.verb)
    assert.matches("a field has that name", message_of("warn { id = 'fits_one_gpu', gpus = 1, message = 'm' }"))
  end)

  it("of layers are their sites or files, and differ", function()
    assert.equal("mine", build("site 'mine' set { taste = 4 }").layers[2].name)
    assert.equal("layer1", build("set { taste = 4 }").layers[2].name)
    assert.matches("two layers are called 'mine'", message_of("site 'mine' set { taste = 4 }", "site 'mine' set { taste = 5 }"))
    assert.matches("layer1.lua:1: site: the layer has a name already", message_of("site 'a' site 'b' set { taste = 4 }"))
  end)
end)

describe("set", function()
  it("keeps the type and unit of the parameter", function()
    assert.equal("layer1.lua:1: set: no parameter 'tast', did you mean 'taste'?", problem_of("set { tast = 4 }"))
    assert.equal("layer1.lua:1: set: no parameter 'gpus': that is a field, which the spec gives", problem_of("set { gpus = 4 }"))
    assert.equal("layer1.lua:1: set: no parameter 'peak_bytes': that is a field, which the planner works out", problem_of("set { peak_bytes = 4 }"))
    assert.matches("set taste: expected a number of GPUs", message_of("set { taste = 'four' }"))
    assert.matches("set schedules: no schedule '1f2b', did you mean '1f1b'%?", message_of("set { schedules = { '1f2b' } }"))
    assert.matches("schedules: 'zero_bubble' is a family; name its members", message_of("set { schedules = { 'zero_bubble' } }"))
    assert.matches("set taste: set in this layer already", message_of("set { taste = 4 } set { taste = 5 }"))
    assert.matches("set: it sets nothing", message_of("set {}"))
  end)

  it("of schedules expands the family to what is left of it", function()
    local policy = build()
    assert.same({ "zb_h1" }, policy.members.zero_bubble)
    assert.same({ "1f1b" }, policy.members["1f1b"])
    assert.same({}, policy.members.dualpipe)
    assert.same({ "zero_bubble", "1f1b" }, policy.rules.last.try)
    local cut = build("set { schedules = { '1f1b' } }")
    assert.same({}, cut.members.zero_bubble)
    assert.same({ "1f1b" }, cut.rules.last.try)
    assert.same({ "zero_bubble", "1f1b" }, cut.rules.last.stated)
  end)

  it("of schedules may leave no row without a schedule", function()
    assert.equal("layer1.lua:1: row 'first' (base.lua:6) is left without a schedule: it tries 1f1b, and schedules allows only zb_h1",
                 problem_of("set { schedules = { 'zb_h1' } }"))
    assert.matches("layer1.lua:1: row 'gone' .* is left without a schedule", message_of("row { id = 'gone', try = { 'gpipe' } }"))
  end)

  it("moves the bound of every rule that refers to the parameter by name", function()
    local policy = build("set { limit = 8 }")
    assert.equal(8, policy.rules.too_deep.conditions[1].value)
    assert.equal("limit", policy.rules.too_deep.conditions[1].ref)
  end)
end)

describe("an override of one rule", function()
  it("touches no other", function()
    local before, after = build(), build("change { id = 'two', microbatches = any } disable { id = 'first' } set { taste = 9 }")
    for id, rule in pairs(before.rules) do
      if id ~= "two" and id ~= "first" and id ~= "taste_first" then
        assert.same(rule.conditions, after.rules[id].conditions, id)
        assert.equal(rule.line, after.rules[id].line)
      end
    end
  end)
end)

describe("nothing", function()
  it("is not a policy: a file that states nothing is an error of its own, exit 5", function()
    for _, text in ipairs { "", "-- row { id = 'x' }", "site 'x'", "local x = 1" } do
      local message, status = problem_of(text)
      assert.equal("layer1.lua: states nothing: no row, no rule, no set", message, text)
      assert.equal(5, status)
    end
  end)

  it("is left when every rule is disabled, exit 5", function()
    local all = { "first", "last", "taste_first", "note" }
    local text = {}
    for i, id in ipairs(all) do text[i] = "disable { id = '" .. id .. "' }" end
    for _, id in ipairs { "too_deep", "two", "slow" } do text[#text + 1] = "disable { id = '" .. id .. "', reason = 'r' }" end
    local message, status = problem_of(table.concat(text, "\n"))
    assert.equal("no rule is left in the policy", message)
    assert.equal(5, status)
  end)

  it("is not read as a directory without policies, nor a file twice", function()
    local empty = files.directory {}
    local good, problem = pcall(load, { files = { empty } })
    assert.is_false(good)
    assert.equal(5, problem.status)
    local path = files.write("a.lua", "set { tie_fraction = '2%' }")
    good, problem = pcall(load, { files = { path, path } })
    assert.is_false(good)
    assert.matches("given twice", problem.message)
  end)
end)

describe("the digest", function()
  it("is the same for the same rules, wherever they lie, and another for others", function()
    assert.equal(build("set { taste = 4 }").digest, build("set { taste = 4 }").digest)
    assert.is_not.equal(build("set { taste = 4 }").digest, build("set { taste = 5 }").digest)
    assert.is_not.equal(build().digest, load({ policies = files.directory { ["base.lua"] = base }, set = { taste = 4 } }).digest)
  end)
end)
