-- SPDX-License-Identifier: Apache-2.0
-- diff.lua: `pipeplan policy diff`: which specs two policies plan differently, newly accepted first.

local argparse = require "pipeplan.argparse"
local boundary = require "pipeplan.analysis.boundary"
local command_line = require "pipeplan.cli.arguments"
local corpus = require "pipeplan.cli.corpus"
local difference = require "pipeplan.analysis.difference"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local load = require "pipeplan.policy.load"
local report = require "pipeplan.report.difference"

local examples = [[
OLD and NEW are policy files or directories, laid over the default policies; "default" is the
default alone. A side of several layers is given with --old and --new, in order: company, hall,
team. What a site is pinned to does not matter here: with --old-policies SAVED it is planned over
the default policy that it was written for, and over this one.
Exit status: 0; with --fail-on 1 when there is such a change; 2 a spec cannot be read; 3 a policy raised
an error on a spec, 4 it was over its budget, whichever side; 5 without a spec; 6 a policy cannot be
loaded.

Examples:
   pipeplan policy diff default examples/sites/aws-p5.lua --corpus specs.jsonl
   pipeplan policy diff old.lua site.lua --corpus specs.jsonl --boundary --fail-on loosened
       also on specs at the edges of all rules: half a minute; with --jobs half of that
   pipeplan policy diff --old default --new examples/sites/hall-7.lua --corpus specs.jsonl
       a side of more layers has more of them]]

local command = {}

function command.parser()
  local parser = argparse("pipeplan policy diff", "Plans specs by two policies and shows what changes, newly accepted first.")
    :add_help(false):help_max_width(100):help_description_margin(28)
    :usage("Usage: pipeplan policy diff OLD NEW [SPEC...] [OPTIONS]\n"
           .. "       pipeplan policy diff --old FILE... --new FILE... [SPEC...] [OPTIONS]")
    :epilog(examples)
  parser:argument("spec", "the policy as it is and as it is to be, unless --old and --new say so; then spec files"):argname("OLD NEW SPEC")
    :args("*")
  parser:option("--old", "a layer of the policy as it is (again for each)"):argname("FILE"):count("*")
  parser:option("--new", "a layer of the policy as it is to be (again for each)"):argname("FILE"):count("*")
  parser:option("--old-policies", "the default policy under the old side: this directory (default: as for the new)"):argname("DIR")
  parser:option("--corpus", "file with a spec on each line (- is standard input)"):argname("FILE")
  parser:flag("--boundary", "also specs at the edges of both policies' rules")
  parser:option("--jobs", "processes"):argname("N"):default("1")
  parser:option("--fail-on", "changes that make exit status 1: loosened (newly accepted) or any"):choices({ "loosened", "any" })
  parser:option("--date", "date at which the expiry of loosened rules is judged (default: today in UTC)"):argname("YYYY-MM-DD")
  parser:option("--policies", "read the default policies from this directory"):argname("DIR")
  parser:option("--stdlib", "read pipeplan's own Lua from this directory"):argname("DIR")
  parser:option("--format", "what to print"):choices({ "text", "json" }):default("text")
  parser:option("-o --output", "write to this file, whole or not at all"):argname("FILE")
  parser:flag("-h --help", "show this help")
  return parser
end

local function policy_of(files, policies, options)
  local layers = {}
  for _, path in ipairs(files) do
    if path ~= "default" then layers[#layers + 1] = path end
  end
  return load.load { files = layers, date = options.date, policies = policies, unpinned = true }
end

-- The layers of both sides: of --old and --new, else the first two of what is named.
local function sides(options)
  if #options.old > 0 or #options.new > 0 or options.old_policies then
    return #options.old > 0 and options.old or { "default" }, #options.new > 0 and options.new or { "default" }
  end
  if #options.spec < 2 then failure.usage("policy diff: two policies are expected, OLD and NEW, or --old and --new") end
  return { table.remove(options.spec, 1) }, { table.remove(options.spec, 1) }
end

local function specs_of(options, old, new, jobs)
  local specs = corpus.read(options.spec, options.corpus)
  for _, spec in ipairs(options.boundary and boundary.specs({ old, new }, jobs) or {}) do
    specs[#specs + 1] = { name = json.encode(spec), spec = spec }
  end
  if #specs == 0 then failure.raise("nothing", "policy diff: no spec to compare them on: name some, or give --corpus or --boundary") end
  return specs
end

function command.run(arguments)
  local options, help = command_line.parse(command.parser(), arguments, "policy diff")
  if not options then return help, 0 end
  local old_files, new_files = sides(options)
  local old = policy_of(old_files, options.old_policies or options.policies, options)
  local new = policy_of(new_files, options.policies, options)
  local jobs = command_line.jobs(options.jobs)
  local specs = specs_of(options, old, new, jobs)
  local changes = difference.of(old, new, specs, jobs)
  local text = report[options.format](changes, #specs)
  local bad = options.fail_on == "any" and #changes or options.fail_on == "loosened" and report.count(changes, "accepted") or 0
  local status = bad > 0 and failure.status.refused or failure.status.ok
  for _, change in ipairs(changes) do status = failure.worse(status, change.status) end
  return text, status, options.output
end

return command
