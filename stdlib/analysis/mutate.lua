-- SPDX-License-Identifier: Apache-2.0
--[[
mutate.lua: would the tests of a policy notice if it were wrong? Runs them for each of its mutants and says which survive.

  mutate.run{ policy = options of load (files, date, policies; tests load by the last two where they say nothing), tests = { path, … },
              jobs, equivalent = { id → reason },
              filter = function(name)?: only mutants for whose names it says yes, progress? }
      → { { mutant, outcome = "killed" | "survived" | "equivalent", by = name of the test, reason, witness }, … }

Raises an answer when the tests fail without any mutant, when `equivalent` names one that there is not, or when there is nothing to try.
Cost: the tests once per mutant, stopped at the first failure, those named after the mutant's file first; in `jobs` processes.
]]

local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local load = require "pipeplan.policy.load"
local mutants = require "pipeplan.analysis.mutants"
local runner = require "pipeplan.analysis.runner"
local witness = require "pipeplan.analysis.witness"
local workers = require "pipeplan.base.workers"

local mutate = {}

local NO_TEST = "no test was found"

-- The name of the first test that fails, or of the file of what fails outside of tests, and why; nil: none does. Tests of which none runs
-- fail too, as `policy test` says with its exit status. apply: what makes the mutant of a loaded policy; replaced: a file's text and what
-- it becomes.
local function first_failure(tests, apply, replaced)
  load.observer, load.replaced = apply, replaced
  local good, results = failure.try(runner.run, { files = tests, stop = true })
  load.observer, load.replaced = nil, nil
  if not good and failure.is(results) and results.status == failure.status.usage then error(results, 0) end
  if not good then return failure.is(results) and results.message or tostring(results) end
  local ran = false
  for _, result in ipairs(results) do
    ran = ran or result.status ~= "skipped"
    if result.status == "failed" or result.status == "error" then
      return result.name ~= "" and result.name or result.file, result.message
    end
  end
  if not ran then return #results == 0 and NO_TEST or "every test is pending" end
  return nil
end

-- The spec files, first those that are named after that policy file: they are the likeliest to fail.
local function own_first(files, policy_file)
  local own, list = policy_file:match "([^/]*)%.lua$", {}
  for pass = 1, 2 do
    for _, file in ipairs(files) do
      if (own ~= nil and file:match "([^/]*)_spec%.lua$" == own) == (pass == 1) then list[#list + 1] = file end
    end
  end
  return list
end

-- The test that notices each mutant, by its place in the list; "": none does.
local function killers(list, tests, jobs, progress)
  local files = runner.files(tests)
  return workers.each(#list, jobs, function(number)
    local mutant, applied = list[number], false
    local apply = mutant.apply and function(policy) applied = mutant.apply(policy) or applied end
    local replaced = mutant.rewrite and { text = mutant.text_before, other = mutant.rewrite() }
    local name = first_failure(own_first(files, mutant.file), apply, replaced)
    return (applied or replaced) and name or ""
  end, progress)
end

local function check_equivalent(list, equivalent)
  local ids = lists.column(list, "id")
  for id in pairs(equivalent) do
    local known = false
    for _, other in ipairs(ids) do known = known or other == id end
    if not known then failure.usage("policy mutate: no mutant '%s'%s", id, failure.suggestion(id, ids)) end
  end
end

-- A file's name without its folders: a test may name a policy by another path than the command line does.
local function name_of(path) return path:match "([^/]+)/*$" end

-- The tests pass as they are, and load what they are to test: else there is no sense in mutants.
local function check_tests(policy, tests)
  local loaded = {}
  local name, message = first_failure(tests, function(other)
    for _, layer in ipairs(other.layers) do loaded[layer.path and name_of(layer.path) or ""] = true end
  end)
  if name == NO_TEST then failure.raise("nothing", "policy mutate: no test was found in %s", table.concat(tests, ", ")) end
  if name then
    failure.raise("refused", "policy mutate: the tests fail without any mutant: %s%s", name, message and ": " .. message or "")
  end
  for _, layer in ipairs(policy.layers) do
    if layer.path and layer.name ~= "default" and not loaded[name_of(layer.path)] then
      failure.raise("refused", "policy mutate: no test loads %s: a test in %s begins with pipeplan.policy \"%s\"", layer.path,
                    table.concat(tests, ", "), layer.path)
    end
  end
end

function mutate.run(options)
  local policy = load.load(options.policy)
  local list, equivalent = mutants.of(policy), options.equivalent or {}
  check_equivalent(list, equivalent)
  local function wanted(mutant) return not options.filter or options.filter(mutant.id) end
  local tried = {}
  for _, mutant in ipairs(list) do
    if wanted(mutant) and not equivalent[mutant.id] then tried[#tried + 1] = mutant end
  end
  if #tried == 0 then
    failure.raise("nothing", "policy mutate: no mutant to try: %d there are, and the filter or the list of equivalents leaves none", #list)
  end
  load.unsaid = { date = options.policy.date, policies = options.policy.policies }
  check_tests(policy, options.tests)
  local by, out = killers(tried, options.tests, options.jobs or 1, options.progress), {}
  load.unsaid = {}
  for i, mutant in ipairs(tried) do
    local name = by[i] ~= "" and by[i] or nil
    out[#out + 1] = { mutant = mutant, outcome = name and "killed" or "survived", by = name,
                      witness = not name and mutant.apply and options.witnesses and witness.of(options.policy, policy, mutant) or nil }
  end
  for _, mutant in ipairs(list) do
    local reason = wanted(mutant) and equivalent[mutant.id]
    if reason then out[#out + 1] = { mutant = mutant, outcome = "equivalent", reason = reason } end
  end
  return out
end

return mutate
