-- SPDX-License-Identifier: Apache-2.0
-- A plan that is handed in is derived again: the same where nothing was touched, and each kind of change is named by its subject. What is
-- changed here is JSON, so what is expected comes from what was changed.

require "pipeplan"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local load = require "pipeplan.policy.load"
local planner = require "pipeplan.plan.init"
local schema = require "pipeplan.schema.plan"
local spec = require "pipeplan.input.spec"
local verify = require "pipeplan.analysis.verify"

teardown(files.remove)

local DATE = "2026-12-01"
local policy = load.load { date = DATE }

local function text_of(request, how)
  how = how or {}
  return json.encode(json.shape(planner.plan { request = request, policy = how.policy or policy, explain = how.explain, why = how.why }, schema))
end

local function request(file, options)
  return spec.read { files = { file }, options = options or {} }
end

local function handed(text)
  local plan = json.decode(text, "plan.json")
  return { plan = plan, name = "plan.json", date = plan.policy.date }
end

local function of(text, more)
  return verify.of(lists.with({ handed = handed(text), policy = policy }, more))
end

local function subjects(result)
  local list = {}
  for _, each in ipairs(result.differences) do
    if list[#list] ~= each.subject then list[#list + 1] = each.subject end
  end
  return table.concat(list, " ")
end

-- The difference at that path.
local function at(result, field)
  for _, each in ipairs(result.differences) do
    if each.field == field then return each end
  end
end

local specs = {}
for name in io.popen("ls examples/specs/*.json examples/specs/rules/*.json"):lines() do specs[#specs + 1] = name end

describe("a plan that nobody touched", function()
  assert(#specs >= 20)
  for _, file in ipairs(specs) do
    it("is what is planned again: " .. file, function()
      local result = of(text_of(request(file)))
      assert.same({}, result.differences)
      assert.is_true(result.compared > 100)
    end)
  end

  it("is so with an explanation and with answers to questions", function()
    local why = require("pipeplan.plan.explain").questions "pipeline=8,schedule=zb_v"
    local text = text_of(request "examples/specs/mixtral-8x7b.json", { explain = true, why = why })
    assert.same({}, of(text).differences)
    assert.is_truthy(text:find('"question":"pipeline=8"', 1, true))
  end)

  it("is so where options were laid over files, one of them with a model of its own", function()
    local config = json.read "examples/models/mixtral-8x7b.json"
    local object = { model = config, training = { tokens = "1T" }, cluster = { gpus = 64, accelerator = "H100-SXM",
                     network = { per_gpu = "400Gbps" } } }
    local laid = spec.read { objects = { { object = object, name = "my/mixtral.json", base = "my/" } }, options = { tensor = 2 } }
    local text = text_of(laid)
    assert.is_truthy(text:find('"origin":"command line"', 1, true))
    assert.same({}, of(text).differences)
  end)

  it("is so for the fewest GPUs", function()
    local text = text_of(request("examples/specs/mixtral-8x7b.json", { gpus = "minimum" }))
    assert.is_truthy(text:find('"minimum":{', 1, true))
    assert.same({}, of(text).differences)
  end)

  it("is so where its GPUs come from an inventory, and not where that says something else by now", function()
    local hosts = ("n1 slots=8\nn2 slots=8\n"):gsub("n", "host")
    local object = { cluster = { inventory = { (files.write("hosts.txt", hosts)) }, accelerator = "H100-SXM",
                                 network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                     model = { architecture = "dense", total = "7B", layers = 32 }, training = { tokens = "1T", global_batch_size = 256 } }
    local text = text_of(spec.from_table(object, "."))
    local result = of(text)
    assert.same({ {}, true, 16 }, { result.differences, result.equal, result.plan.cluster.gpus })
    local file <close> = assert(io.open(object.cluster.inventory[1], "wb"))
    file:write(hosts .. "host3 slots=8\nhost4 slots=8\n")
    file:flush()
    result = of(text)
    assert.equal("spec figures", subjects(result))
    assert.equal(32, result.plan.cluster.gpus)
  end)

  it("is so of a launch, with what reading it assumed and warned of, and of that launch elsewhere beside it", function()
    local import = require "pipeplan.analysis.lint.import"
    local function read(path)
      local options = { accelerator = "H100-SXM", gpus = 512, per_gpu = "400Gbps", tokens = "1T" }
      local objects, _, found = import.split({ path }, options, "free")
      return spec.read { objects = objects, options = options, read = found }
    end
    local text = text_of(read "examples/launch/llama3_70b.sh")
    local plan = json.decode(text, "plan")
    assert.is_true(#plan.spec.read.assumptions > 0)
    local result = of(text)
    assert.same({ {}, true }, { result.differences, result.equal })
    assert.equal("spec.read", result.not_checked[#result.not_checked].field)
    local elsewhere = files.write("llama3_70b.sh", require "read_file" "examples/launch/llama3_70b.sh")
    result = of(text, { request = read(elsewhere) })
    assert.same({ {}, true }, { result.differences, result.equal })
    assert.not_equal("spec.read", result.not_checked[#result.not_checked].field)
    plan.spec.read.assumptions[1].why = plan.spec.read.assumptions[1].why .. " or not"
    assert.equal("spec", subjects(of(json.encode(plan), { request = read(elsewhere) })))
    plan.spec.read.assumptions[1] = 5
    local good, problem = failure.try(of, json.encode(plan))
    assert.is_false(good)
    assert.matches("plan.json: spec.read: assumptions[0] is 5: expected an object", problem.message, 1, true)
  end)

  it("is so when its spec is written otherwise beside it", function()
    local text = text_of(request "examples/specs/deepseek-v3.json")
    assert.same({}, of(text, { request = request("examples/specs/deepseek-v3.json", { tokens = "14800G", model = "examples/models/deepseek-v3.json" }) })
                      .differences)
  end)
end)

describe("of a plan that was changed", function()
  local whole = text_of(request "examples/specs/mixtral-8x7b.json")

  local function changed(edit, more)
    local plan = json.decode(whole, "plan.json")
    edit(plan)
    return of(json.encode(plan), more)
  end

  it("a figure is named, with both values", function()
    local result = changed(function(plan) plan.step_seconds = plan.step_seconds / 2 end)
    assert.equal("figures", subjects(result))
    assert.is_truthy(at(result, "step_seconds").message:find "in the plan, .* here %(100 %% more%)")
    assert.equal(at(result, "step_seconds").theirs * 2, at(result, "step_seconds").ours)
  end)

  it("the engine is named", function()
    local result = changed(function(plan) plan.engine_version = "0.0.9" end)
    assert.equal("engine", subjects(result))
    assert.is_truthy(result.differences[1].message:find("planned by pipeplan 0.0.9, and this is", 1, true))
  end)

  it("the policy is named: its layers, what they say, its date, its digest", function()
    assert.is_truthy(at(changed(function(plan) plan.policy.layers = { "default", "hall-7" } end), "policy.layers").message
                     :find("layers: default ← hall-7 in the plan, default here", 1, true))
    assert.is_truthy(at(changed(function(plan) plan.policy.stack = "0123456789abcdef" end), "policy.stack").message
                     :find("the same layers say something else", 1, true))
    assert.is_truthy(at(changed(function(plan) plan.policy.digest = "0123456789abcdef" end), "policy.digest").message
                     :find("though layers, date and version agree", 1, true))
    for field in pairs { layers = true, stack = true, digest = true } do
      assert.equal("policy", subjects(changed(function(plan) plan.policy[field] = json.null end)))
    end
    local other = changed(function(plan) plan.policy.date = "2026-11-30" end)
    assert.equal("policy", subjects(other))
  end)

  it("the spec is named, and what follows from it after it", function()
    local result = changed(function(plan)
      for _, each in ipairs(plan.spec.fields) do
        if each.field == "training.tokens" then each.value = "17T" end
      end
    end)
    assert.equal("spec figures", subjects(result))
    assert.equal("spec.digest", result.differences[1].field)
  end)

  it("the fields of a spec beside it are named", function()
    local result = of(whole, { request = request("examples/specs/mixtral-8x7b.json", { tokens = "17T" }) })
    assert.equal("spec figures", subjects(result))
    assert.equal("17T", at(result, "spec.training.tokens").ours)
    assert.is_nil(at(result, "spec.cluster.gpus"))
  end)

  it("a spec that was changed is named though the spec beside it was not", function()
    local result = changed(function(plan) plan.spec.fields[1].value = plan.spec.fields[1].value * 2 end,
                           { request = request "examples/specs/mixtral-8x7b.json" })
    assert.equal("spec", subjects(result))
  end)

  it("a spec that cannot be planned here is not compared, and that is said, where another stands beside it", function()
    local result = changed(function(plan)
      for _, each in ipairs(plan.spec.fields) do
        if each.field == "model" then each.value = "elsewhere/config.json" end
      end
    end, { request = request "examples/specs/mixtral-8x7b.json" })
    assert.same({}, result.differences)
    assert.equal("spec.fields", result.not_checked[1].field)
    assert.is_truthy(result.not_checked[1].why:find("elsewhere/config.json", 1, true))
  end)

  it("a field that was added, taken away, or shortened is named", function()
    assert.is_truthy(at(changed(function(plan) plan.approved = true end), "approved"))
    assert.is_truthy(at(changed(function(plan) plan.rollback = nil end), "rollback").message:find("nothing in the plan, an object here", 1, true))
    assert.is_truthy(at(changed(function(plan) table.remove(plan.memory.ranks) end), "memory.ranks"))
  end)

  it("another policy here is named, with the figures that follow", function()
    local site = load.load { date = DATE, files = { "examples/sites/aws-p5.lua" } }
    local result = of(whole, { policy = site })
    assert.equal("policy.layers", result.differences[1].field)
    assert.is_truthy(subjects(result):find "^policy")
  end)
end)

-- ------------------------------------------------------------------------------------------------------------------------ at random

-- Every value of a tree as { parent, key, path }, objects and lists too.
local function places(value, path, list)
  list = list or {}
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local inner = type(key) == "number" and string.format("%s[%d]", path, key - 1) or (path == "" and key or path .. "." .. key)
    list[#list + 1] = { parent = value, key = key, path = inner }
    if type(value[key]) == "table" and value[key] ~= json.null then places(value[key], inner, list) end
  end
  return list
end

local function other_value(value, random)
  if value == json.null then return ({ 1, "x", false, json.array {} })[random(4)] end
  if type(value) == "table" then return json.null end
  if type(value) == "boolean" then return not value end
  if type(value) == "string" then return random(2) == 1 and value .. "x" or json.null end
  local changes = { value + 1, -value - 1, value * 2 + 1, json.null }
  return changes[random(#changes)]
end

local function is_unchecked(path, result)
  local bare = path:gsub("%[%d+%]", "")
  for _, each in ipairs(result.not_checked) do
    if bare == each.field or bare:sub(1, #each.field + 1) == each.field .. "." then return true end
  end
  return false
end

describe("a single field changed at random", function()
  for number, file in ipairs { "examples/specs/mixtral-8x7b.json", "examples/specs/rules/too_deep.json", "examples/specs/measured-4xH200.json" } do
    it("is found, or named as not compared: " .. file, function()
      local site = load.load { date = DATE, files = { "examples/sites/aws-p5.lua" } }
      local text = text_of(request(file), { explain = number == 2, policy = site })
      local untouched = of(text, { policy = site })
      assert.same({}, untouched.differences)
      local seed, kinds = 20 + number, { found = 0, unreadable = 0, unchecked = 0 }
      local function random(most)
        seed = (seed * 1103515245 + 12345) % 2 ^ 31
        return seed // 65536 % most + 1
      end
      for _ = 1, 25 do
        local hand = handed(text)
        local list = places(hand.plan, "")
        local place = list[random(#list)]
        place.parent[place.key] = other_value(place.parent[place.key], random)
        local good, result = failure.try(verify.of, { handed = hand, policy = site })
        if not good then
          assert.is_true(failure.is(result), tostring(result) .. " at " .. place.path)
          assert.equal(2, result.status)
          assert.is_truthy(place.path:find "^spec", place.path)
          kinds.unreadable = kinds.unreadable + 1
        elseif is_unchecked(place.path, result) then kinds.unchecked = kinds.unchecked + 1
        else
          assert.is_true(not result.equal, place.path .. " was changed, and nobody noticed")
          kinds.found = kinds.found + 1
        end
      end
      assert.is_true(kinds.found >= 12, json.encode(kinds))
    end)
  end
end)
