-- SPDX-License-Identifier: Apache-2.0
-- Layers with authority: company → hall → team → command line. What is final stays; what is disabled can be brought back; a site can be
-- pinned to the default policy that it was written for; what has expired falls away.

local planning = require "planning"  -- first: it loads the module
local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local files = require "policy_files"
local load = require("pipeplan.policy.load").load

-- The policy of these texts, one layer each, over the default.
local function stack(...)
  local given, paths = { ... }, {}
  local options = type(given[#given]) == "table" and table.remove(given) or {}
  for i, text in ipairs(given) do paths[i] = files.write("layer" .. i .. ".lua", text) end
  return load { files = paths, date = options.date or "2026-11-27", set = options.set, unpinned = options.unpinned }
end

local function message_of(...)
  local good, problem = pcall(stack, ...)
  assert(not good, "the stack loads")
  assert.equal(6, problem.status)
  return problem.message
end

describe("what is final", function()
  local company = [[
    change { id = "too_deep", final = true, owner = "capacity team" }
    reject { id = "narrow", tensor_parallel = over(8), final = true, message = "m" }
    set { memory_headroom = "10%", final = true }
    set { tie_fraction = "2%", final = true }
    warn { id = "note", gpus = over(1), final = true, message = "m" }]]

  it("cannot be loosened by a later layer, in whatever way", function()
    for statement, expected in pairs {
      ["disable { id = 'too_deep', reason = 'r' }"] = "disable 'too_deep': it is final (layer1, ",
      ["change { id = 'too_deep', gpus = over(8), reason = 'r' }"] = "change 'too_deep': it is final (layer1, ",
      ["change { id = 'narrow', tensor_parallel = over(16), reason = 'r' }"] = "change 'narrow': it is final (layer1, ",
      ["set { max_pipeline_depth = 96, reason = 'r' }"] = "set max_pipeline_depth: reject 'too_deep', which names it, is final (layer1, ",
      ["set { memory_headroom = '4%', reason = 'r' }"] = "set memory_headroom: it is final (layer1, ",
      ["set { tie_fraction = '1%' }"] = "set tie_fraction: it is final (layer1, ",   -- nobody knows what would loosen it
      ["disable { id = 'note' }"] = "disable 'note': it is final (layer1, ",
      ["change { id = 'note', gpus = over(2) }"] = "change 'note': it is final (layer1, ",
    } do
      local message = message_of(company, statement)
      assert.is_not_nil(message:find(expected, 1, true), statement .. ": " .. message)
      assert.matches("no later layer may loosen it", message, 1, true)
      assert.is_not_nil(message_of(company, "set { wanted_tolerance = '4%' }", statement):find(expected, 1, true))
    end
  end)

  it("cannot be loosened on the command line either", function()
    assert.matches("set max_pipeline_depth: reject 'too_deep', which names it, is final",
                   message_of(company, { set = { max_pipeline_depth = "96", reason = "r" } }), 1, true)
  end)

  it("may be tightened, and told in other words", function()
    local policy = stack(company, [[
      set { max_pipeline_depth = 32 } set { memory_headroom = "12%" }
      change { id = "narrow", tensor_parallel = over(4) }
      change { id = "note", message = "other words" }]])
    assert.same({ 32, 0.12 }, { policy.parameters.max_pipeline_depth.value, policy.parameters.memory_headroom.value })
    assert.equal("tensor_parallel over 4", conditions.text(policy.rules.narrow.conditions[1]))
    assert.equal("capacity team", policy.rules.too_deep.owner)
  end)

  it("may be loosened in its own layer", function()
    assert.is_not_nil(stack [[
      reject { id = "narrow", tensor_parallel = over(8), final = true, message = "m" }
      change { id = "narrow", tensor_parallel = over(16), reason = "r" }]])
  end)

  it("is not got around by a kernel, where it is about kernels", function()
    local message = message_of([[change { id = "no_alltoall_kernel", final = true }]], [[kernel { id = "ours", gpus = over(1), why = "w" }]])
    assert.matches("kernel 'ours': refuse 'no_alltoall_kernel', which is about kernels, is final (layer1, ", message, 1, true)
  end)
end)

describe("enable", function()
  local hall = [[disable { id = "too_deep", reason = "r" } disable { id = "many_microbatches" } disable { id = "dense" }]]

  it("brings back what an earlier layer disables, where it stood", function()
    local policy = stack(hall, [[enable { id = "too_deep" } enable { id = "dense" }]])
    local default = stack()
    assert.same({ "many_microbatches" }, { policy.disabled[1].rule.id, policy.disabled[2] })
    assert.same({}, policy.loosened)
    assert.equal("too_deep", policy.rules.too_deep.id)
    for i, row in ipairs(default.rows) do assert.equal(row.id, policy.rows[i].id) end
  end)

  it("is an error for what is not disabled", function()
    assert.matches("enable 'too_deep': it is not disabled", message_of [[enable { id = "too_deep" }]], 1, true)
    assert.matches("enable 'too_dep': nothing has that id and is disabled, did you mean 'too_deep'?",
                   message_of(hall, [[enable { id = "too_dep" }]]), 1, true)
  end)

  it("needs a reason for a kernel, which lets more plans through", function()
    local without = [[disable { id = "deepep" }]]
    assert.matches("enable 'deepep': this lets more plans through", message_of(without, [[enable { id = "deepep" }]]), 1, true)
    assert.equal("enable", stack(without, [[enable { id = "deepep", reason = "driver updated" }]]).loosened[1].kind)
  end)
end)

describe("a pin", function()
  local digest = stack().layers[1].digest

  it("holds a site to the default policy that it was written for", function()
    assert.is_not_nil(stack(string.format("pin { default = %q }", digest)))
    local message = message_of [[pin { default = "0123456789abcdef" }]]
    assert.matches("pinned to the default policy 0123456789abcdef, and this is " .. digest, message, 1, true)
    assert.matches("pipeplan policy pin SITE --saved SAVED", message, 1, true)
  end)

  it("is left out of account by who looks at what an upgrade changes", function()
    assert.is_not_nil(stack([[pin { default = "0123456789abcdef" } set { tie_fraction = "2%" }]], { unpinned = true }))
  end)

  it("is a digest", function()
    assert.matches("pin: default: a digest of 16 digits is expected", message_of [[pin { default = "v2" }]], 1, true)
    assert.matches("pin: it needs default", message_of [[pin { owner = "me" }]], 1, true)
  end)
end)

describe("what has expired", function()
  local later = { date = "2027-07-01" }

  it("falls away where it loosens: a disable, a narrowing, a parameter, a kernel", function()
    local text = [[
      disable { id = "too_deep", reason = "r", expires = "2027-06-30" }
      change { id = "dualpipe_without_ep", gpus = over(64), reason = "r", expires = "2027-06-30" }
      set { memory_headroom = "4%", wanted_tolerance = "3%", reason = "r", expires = "2027-06-30" }
      kernel { id = "ours", gpus = over(1), why = "w", expires = "2027-06-30" }]]
    local before, after = stack(text), stack(text, later)
    assert.equal(4, #before.loosened)
    assert.same({}, after.loosened)
    assert.is_not_nil(after.rules.too_deep)
    assert.is_nil(after.rules.ours)
    assert.equal(2, #after.rules.dualpipe_without_ep.conditions)
    assert.equal(0.08, after.parameters.memory_headroom.value)
    assert.equal(0.03, after.parameters.wanted_tolerance.value)  -- it loosens nothing, and stays
    assert.equal(5, #after.warnings)
    for _, warning in ipairs(after.warnings) do assert.equal("expired", warning.id) end
  end)

  it("stays where it tightens, and is told", function()
    local policy = stack([[set { max_pipeline_depth = 16, expires = "2027-06-30" }]], later)
    assert.equal(16, policy.parameters.max_pipeline_depth.value)
    assert.matches("set max_pipeline_depth expired on 2027-06-30 (the date is 2027-07-01): it lets no more plans through, and stays",
                   policy.warnings[1].message, 1, true)
  end)

  it("is not said to let no more plans through where nobody knows: a parameter without a direction, a row", function()
    local policy = stack([[set { small_run_gpus = 64, expires = "2027-06-30" }
      change { id = "dense", try = { "1f1b" }, expires = "2027-06-30" }]], later)
    assert.equal(64, policy.parameters.small_run_gpus.value)
    assert.same({ "1f1b" }, policy.rules.dense.try)
    assert.equal(2, #policy.warnings)
    for _, warning in ipairs(policy.warnings) do
      assert.matches("expired on 2027-06-30 (the date is 2027-07-01): it stays: only what is known to let more plans through falls away",
                     warning.message, 1, true)
    end
  end)

  it("breaks no layer above that took it back, or a part of it", function()
    local hall = [[
      disable { id = "too_deep", reason = "r", expires = "2027-06-30" }
      change { id = "dualpipe_without_ep", gpus = over(64), reason = "r", expires = "2027-06-30" }
      set { memory_headroom = "4%", reason = "r", expires = "2027-06-30" }]]
    local team = [[
      enable { id = "too_deep" }
      change { id = "dualpipe_without_ep", gpus = over(32) }
      set { memory_headroom = "6%" }]]
    local before, after = stack(hall, team), stack(hall, team, later)
    assert.same({ 0.06, 0.08 }, { before.parameters.memory_headroom.value, after.parameters.memory_headroom.value })
    assert.same({ 3, 2 }, { #before.rules.dualpipe_without_ep.conditions, #after.rules.dualpipe_without_ep.conditions })
    assert.is_truthy(before.rules.too_deep and after.rules.too_deep)
    assert.same({ 2, 0, 5 }, { #before.loosened, #after.loosened, #after.warnings })
    assert.matches("set memory_headroom: what it took back in part has expired (", after.warnings[4].message, 1, true)
    -- with a reason it is a loosening of its own
    assert.equal(0.06, stack(hall, [[set { memory_headroom = "6%", reason = "r" }]], later).parameters.memory_headroom.value)
    assert.matches("this lets more plans through", message_of([[set { memory_headroom = "6%" }]]), 1, true)
  end)

  it("does not keep anybody from planning", function()
    local site = require("pipeplan").policy(files.write("a.lua", [[disable { id = "too_deep", reason = "r", expires = "2027-06-30" }]]),
                                            { date = "2027-07-01" })
    local plan = planning.plan(planning.llama, {}, site)
    assert.decided(plan, "planned")
    assert.is_true(planning.has(plan.warnings, "expired"))
  end)
end)

describe("every statement", function()
  it("may say who answers for it, why, and where to read more", function()
    local words = [[owner = "capacity team", why = "the ring is full", link = "https://wiki.example.org/42"]]
    for _, statement in ipairs { "row { id = 'x', gpus = over(1), try = { '1f1b' }, %s }", "reject { id = 'x', gpus = over(1), message = 'm', %s }",
                                 "refuse { id = 'x', gpus = over(1), recommend = 'data_parallel', message = 'm', %s }",
                                 "warn { id = 'x', gpus = over(1), message = 'm', %s }", "prefer { id = 'x', gpus = over(1), within = 'any', %s }",
                                 "kernel { id = 'x', gpus = over(1), %s }", "invariant { id = 'x', gpus = over(1), %s }",
                                 "change { id = 'too_deep', %s }", "disable { id = 'dense', %s }", "set { tie_fraction = '2%%', %s }",
                                 "disable { id = 'dense' }", "parameter { id = 'x', value = 1, unit = '1', loosens = 'none', meaning = 'm', %s }" } do
      assert.is_not_nil(stack(statement:format(words)), statement)
    end
    local rule = stack("reject { id = 'x', gpus = over(1), message = 'm', " .. words .. " }").rules.x
    assert.same({ "capacity team", "the ring is full", "https://wiki.example.org/42" }, { rule.owner, rule.why, rule.link })
  end)

  it("says something where it says something", function()
    for _, text in ipairs { "", " ", "--" } do
      assert.matches("reason: a text that says something is expected, it is empty",
                     message_of(string.format("disable { id = 'too_deep', reason = %q }", text)), 1, true)
    end
    assert.matches("link: an address such as \"https://…\" is expected", message_of "disable { id = 'dense', link = 'the wiki' }", 1, true)
  end)
end)

describe("the digest", function()
  it("covers the date, the version of pipeplan and what it was built from", function()
    assert.is_not.equal(stack().digest, stack({ date = "2026-11-28" }).digest)
    for _, name in ipairs { "version", "build" } do
      local real, before = engine[name], stack().digest
      engine[name] = "0"
      local after = stack().digest
      engine[name] = real
      assert.is_not.equal(before, after, name)
    end
    assert.matches("^%x+$", engine.build)
    assert.equal(16, #engine.build)
  end)
end)
