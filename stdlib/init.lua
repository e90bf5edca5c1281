-- SPDX-License-Identifier: Apache-2.0
-- init.lua: what `require "pipeplan"` returns: policies to plan with, and an assertion for their tests.
--
--   local site = require("pipeplan").policy "sites/aws-p5.lua"
--   local plan = site:plan { "spec.json", gpus = 64 }
--   assert.decided(plan, "rejected", "too_deep")

local engine = require "engine"
local assertions = require "pipeplan.assertions"
local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local opening = require "pipeplan.policy.options"
local reading = require "pipeplan.base.reading"
local vocabulary = require "pipeplan.vocabulary"

local pipeplan = { version = engine.version }

local methods = {}
local site_of = { __index = methods }   -- the metatable of what pipeplan.policy returns

-- An answer is the caller's business, and names the caller's line where it is shown as a text. Anything else is a bug, and shows its place.
local function caught(problem)
  local answer = failure.of(problem)
  if not answer then return debug.traceback(tostring(problem), 2) end
  answer.place = answer.place or assertions.place()
  return answer
end

local function passed_on(good, ...)
  if good then return ... end
  error((...), 0)
end

-- A function that tests and programs call.
local function interface(run)
  return function(...) return passed_on(xpcall(run, caught, ...)) end
end

-- The same for a method of a policy.
local function method(name, run)
  return interface(function(self, ...)
    if getmetatable(self) ~= site_of then
      failure.usage("%s: expected a call with a colon, site:%s(…), where site is what pipeplan.policy returned", name, name)
    end
    return run(self, ...)
  end)
end

-- The directory of the test that calls, with its slash: files that are not where it was started from lie beside it. "" outside of tests.
local function test_directory()
  for level = 3, 12 do
    local info = debug.getinfo(level, "S")
    if not info then return "" end
    local directory = info.source:match "^@(.*/)[^/]*_spec%.lua$"
    if directory then return directory end
  end
  return ""
end

local function found(path, directory)
  if type(path) ~= "string" or path:sub(1, 1) == "/" or directory == "" then return path end
  return not reading.exists(path) and reading.exists(directory .. path) and directory .. path or path
end

-- site:plan{ "spec.json", …, name = value, … } → plan. Files are laid over each other, named fields over all of them, as on the command
-- line (the last component of a field's path: gpus, tensor, schedule, …). What cannot be read or planned raises an answer: `status`, the
-- exit status of the program, and `message`.
methods.plan = method("plan", function(self, request)
  if type(request) ~= "table" then failure.usage("plan: expected a table of specs and options, got a %s", type(request)) end
  local arguments, directory = { files = {}, options = {} }, test_directory()
  for i, file in ipairs(request) do
    if type(file) ~= "string" then failure.usage("plan: spec %d is a %s: expected a path", i, type(file)) end
    arguments.files[i] = found(file, directory)
  end
  for key, value in pairs(request) do
    if type(key) == "string" then arguments.options[key] = value
    elseif not math.tointeger(key) or key < 1 or key > #arguments.files then
      failure.usage("plan: a key is %s: expected specs as 1, 2, 3 … and options by their names",
                    type(key) == "number" and key or "a " .. type(key))
    end
  end
  return self:plan_request(require("pipeplan.input.spec").read(arguments))
end)

-- The same for a spec that is a Lua table; `base` is the directory of the files it names.
methods.plan_spec = method("plan_spec", function(self, spec, base)
  if base ~= nil and type(base) ~= "string" then
    failure.usage("plan_spec: base is a %s: expected the directory of the files that the spec names", type(base))
  end
  return self:plan_request(require("pipeplan.input.spec").from_table(spec, base))
end)

methods.plan_request = method("plan_request", function(self, request)
  local read = type(request) == "table" and request
  if not read or not (read.cluster and read.source or type(read.any_gpus) == "table" and read.any_gpus.at) then
    failure.usage("plan_request: expected what pipeplan.input.spec reads, got a %s", type(request))
  end
  local plan = require("pipeplan.plan.init").plan { request = request, policy = self.policy, facts = self.facts, frontier = self.frontier }
  assertions.remember(plan, self.policy)
  return plan
end)

-- site:with{ fits_one_gpu = false, … } → the same policy, with facts in place of what would follow from the request: request fields of the
-- vocabulary, as rules read them. What the engine computes with is not touched. Facts of an earlier `with` stay.
methods.with = method("with", function(self, facts)
  if type(facts) ~= "table" then failure.usage("with: expected facts by their names, got a %s", type(facts)) end
  local read = {}
  for name, value in pairs(facts) do
    local entry, old = vocabulary.by_name[name], vocabulary.renamed[name]
    if not entry or entry.scope ~= "request" then
      failure.usage("with: '%s' is no fact of a request%s", tostring(name), entry and ": it differs between candidates"
                    or old and ": it is called " .. old.to .. " now" or failure.suggestion(tostring(name), vocabulary.names))
    end
    local problem
    read[name], problem = conditions.value(entry, value)
    if problem then failure.usage("with: %s: %s", name, problem) end
  end
  return setmetatable({ policy = self.policy, frontier = self.frontier, facts = lists.with(self.facts or {}, read) }, site_of)
end)

local known_options = { "bytes", "date", "frontier", "in_force", "policies", "set", "work" }

-- policy(file or { files } or nil [, { set = { name = value }, date = "YYYY-MM-DD", policies = directory, in_force = true,
-- frontier = true }]) → a policy to plan with. in_force: over the policies of this machine, as the program plans (policy/found.lua);
-- frontier: plans have theirs, as with `--format json`, which takes as long again.
-- A file that is not there is looked for beside the test that calls.
-- No file: the default policy alone. What cannot be loaded raises an answer, as for plan.
pipeplan.policy = interface(function(files, options)
  opening.check({ policy = files }, { "policy" }, "pipeplan.policy")
  if options == nil then options = {} end
  opening.check(options, known_options, "pipeplan.policy")
  local given, directory = {}, test_directory()
  for i, path in ipairs(type(files) == "string" and { files } or files or {}) do given[i] = found(path, directory) end
  local policy = require("pipeplan.policy.load").load {
    files = given, found = options.in_force and require("pipeplan.policy.found").paths() or nil,
    set = options.set, date = options.date, policies = options.policies, work = options.work, bytes = options.bytes,
  }
  return setmetatable({ policy = policy, frontier = options.frontier }, site_of)
end)

-- pipeplan.json(plan) → the plan's JSON on one line, as `plan --jsonl` prints it.
pipeplan.json = interface(function(plan)
  if type(plan) ~= "table" or type(plan.status) ~= "string" then
    failure.usage("pipeplan.json: expected a plan, got a %s", type(plan))
  end
  local json, schema = require "pipeplan.base.json", require "pipeplan.schema.plan"
  local good, text = pcall(json.encode, json.shape(plan, schema))
  if good then return text end
  local problem = type(text) == "string" and text:match "^json%.encode: (.*)$"
  if problem then failure.usage("pipeplan.json: %s: expected a plan as it was returned", problem) end
  error(text, 0)
end)

-- Registers assert.decided with luassert, where that is loaded; done by itself inside busted. Returns whether it is registered.
pipeplan.assertions = assertions.register

assertions.register()

return pipeplan
