-- SPDX-License-Identifier: Apache-2.0
-- mistakes.lua: tries every mistake of tests/policy/mistakes.lua, and of held_back.lua: which of load, check, test and mutate catches it,
-- and does it say what the corpus expects?
-- From the source tree: LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/mistakes.lua

local pipeplan = require "pipeplan"  -- first: it loads the rest
local check = require "pipeplan.analysis.check"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local findings = require "pipeplan.analysis.findings"
local load = require("pipeplan.policy.load").load
local mutate = require "pipeplan.analysis.mutate"
local runner = require "pipeplan.analysis.runner"

local mistakes = { list = dofile "tests/policy/mistakes.lua", held_back = dofile "tests/policy/held_back.lua" }

local DATE = "2026-12-01"

local prelude = [[
local site = require("pipeplan").policy(%q, { date = "2026-12-01" })
local function plan(parallelism)
  return site:plan_spec { cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { architecture = "dense", total = "70B", layers = 80 }, training = { tokens = "1T", recompute = "full" },
    parallelism = parallelism }
end
]]

-- What is said of a mistake by what is to catch it: a list of texts.
local said = {}

-- As load.load takes it: a mistake may be one beside a lower layer, or of --set.
local function options_of(path, mistake)
  local list = mistake.below and { files.write("below.lua", "site 'below' " .. mistake.below), path } or { path }
  return { files = list, date = DATE, set = mistake.set }
end

function said.load(options)
  local good, problem = failure.try(load, options)
  return good and {} or { problem.message }
end

function said.check(options)
  local texts = {}
  for _, finding in ipairs(check.policy(load(options), { witnesses = false })) do
    if findings.severity(finding) ~= "note" then texts[#texts + 1] = finding.message end
  end
  return texts
end

function said.test(_, spec)
  local texts = {}
  for _, result in ipairs(runner.run { files = { spec } }) do
    if result.status ~= "passed" then texts[#texts + 1] = result.message end
  end
  return texts
end

-- Of a mutant that is named only itself is tried.
function said.mutate(options, spec, words)
  local texts, named = {}, words:find("→", 1, true) or words:find("deleted", 1, true)
  local good, results = failure.try(mutate.run, { policy = options, tests = { spec }, jobs = 1,
                                                  filter = named and function(id) return id:find(words, 1, true) end or nil })
  if not good then return { tostring(results) } end
  for _, result in ipairs(results) do
    if result.outcome == "survived" then texts[#texts + 1] = result.mutant.id end
  end
  return texts
end

-- A mistake of either corpus as { name, by, words, options of load, path of its tests }.
local function of_own(mistake)
  local name, by, words, text, tests = table.unpack(mistake)
  local folder = files.directory { ["site.lua"] = "site 'x' " .. text, ["helper.lua"] = mistake.helper or "return {}" }
  local path = folder .. "/site.lua"
  return { name = name, by = by, words = words, options = options_of(path, mistake),
           spec = tests and files.write("site_spec.lua", prelude:format(path) .. tests) }
end

local function of_held_back(mistake)
  local folder, stack = files.directory {}, {}
  for name, text in pairs(mistake.files) do
    local below = name:match "^(.*)/"
    if below then assert(os.execute(string.format("mkdir -p '%s/%s'", folder, below))) end
    files.write(name, text, folder)
  end
  for i, name in ipairs(mistake.stack) do stack[i] = folder .. "/" .. name end
  return { name = mistake.id, by = mistake.by, words = mistake.words, options = { files = stack, date = DATE },
           spec = folder .. "/site_spec.lua" }
end

-- Is that mistake caught by what the corpus says, in those words? → true | false, what was said.
function mistakes.caught(case)
  local good, texts = pcall(said[case.by], case.options, case.spec, case.words)
  if not good then return false, tostring(texts) end
  for _, one in ipairs(texts) do
    if one:find(case.words, 1, true) then return true end
  end
  return false, table.concat(texts, "\n")
end

mistakes.version = pipeplan.version

if arg and arg[0] and arg[0]:match "mistakes%.lua$" then
  local function try(title, list, read)
    local caught, all, count = 0, 0, {}
    for _, mistake in ipairs(list) do
      local case = read(mistake)
      if case.by then  -- else it is none
        local good, what = mistakes.caught(case)
        all = all + 1
        caught = caught + (good and 1 or 0)
        count[case.by] = (count[case.by] or 0) + (good and 1 or 0)
        if not good then print(string.format("silent: %s, by %s: %s", case.name, case.by, what)) end
      end
    end
    files.remove()
    print(string.format("%s%d of %d caught (load %d, check %d, test %d, mutate %d)", title, caught, all, count.load or 0, count.check or 0,
                        count.test or 0, count.mutate or 0))
  end
  try("", mistakes.list, of_own)
  try("held back: ", mistakes.held_back, of_held_back)
end

return mistakes
