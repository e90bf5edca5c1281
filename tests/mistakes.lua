-- SPDX-License-Identifier: Apache-2.0
-- mistakes.lua: tries every mistake of tests/policy/mistakes.lua: which of load, check, test and mutate catches it, and does it say what
-- the corpus expects? From the source tree: LUA_CPATH="build/release/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/mistakes.lua

local pipeplan = require "pipeplan"  -- first: it loads the rest
local check = require "pipeplan.analysis.check"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local findings = require "pipeplan.analysis.findings"
local load = require("pipeplan.policy.load").load
local mutate = require "pipeplan.analysis.mutate"
local runner = require "pipeplan.analysis.runner"

local mistakes = { list = dofile "tests/policy/mistakes.lua" }

local DATE = "2026-11-27"

local prelude = [[
local site = require("pipeplan").policy(%q, { date = "2026-11-27" })
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

function said.load(path, mistake)
  local good, problem = failure.try(load, options_of(path, mistake))
  return good and {} or { problem.message }
end

function said.check(path, mistake)
  local texts = {}
  for _, finding in ipairs(check.policy(load(options_of(path, mistake)), { witnesses = false })) do
    if findings.severity(finding) ~= "note" then texts[#texts + 1] = finding.message end
  end
  return texts
end

local function spec_of(path, tests) return files.write("site_spec.lua", prelude:format(path) .. tests) end

function said.test(path, mistake)
  local tests = mistake[5]
  local texts = {}
  for _, result in ipairs(runner.run { files = { spec_of(path, tests) } }) do
    if result.status ~= "passed" then texts[#texts + 1] = result.message end
  end
  return texts
end

function said.mutate(path, mistake)
  local tests = mistake[5]
  local texts = {}
  for _, result in ipairs(mutate.run { policy = { files = { path }, date = DATE }, tests = { spec_of(path, tests) }, jobs = 1 }) do
    if result.outcome == "survived" then texts[#texts + 1] = result.mutant.id end
  end
  return texts
end

-- Is that mistake caught by what the corpus says, in those words? → true | false, what was said.
function mistakes.caught(mistake)
  local _, by, words, text = table.unpack(mistake)
  local folder = files.directory { ["site.lua"] = "site 'x' " .. text, ["helper.lua"] = mistake.helper or "return {}" }
  local good, texts = pcall(said[by], folder .. "/site.lua", mistake)
  if not good then return false, tostring(texts) end
  for _, one in ipairs(texts) do
    if one:find(words, 1, true) then return true end
  end
  return false, table.concat(texts, "\n")
end

mistakes.version = pipeplan.version

if arg and arg[0] and arg[0]:match "mistakes%.lua$" then
  local caught, count = 0, {}
  for _, mistake in ipairs(mistakes.list) do
    local good, what = mistakes.caught(mistake)
    if good then
      caught = caught + 1
      count[mistake[2]] = (count[mistake[2]] or 0) + 1
    else
      print(string.format("silent: %s, by %s: %s", mistake[1], mistake[2], what))
    end
  end
  files.remove()
  print(string.format("%d of %d caught (load %d, check %d, test %d, mutate %d)", caught, #mistakes.list, count.load or 0, count.check or 0,
                      count.test or 0, count.mutate or 0))
end

return mistakes
