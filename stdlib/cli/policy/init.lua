-- SPDX-License-Identifier: Apache-2.0
-- init.lua: `pipeplan policy init SITE`: writes a site's policy with one override, and its test, for the team to go on from.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local failure = require "pipeplan.base.failure"
local output = require "pipeplan.cli.output"
local reading = require "pipeplan.base.reading"

local examples = [[
Examples:
   pipeplan policy init my-cluster
       writes my-cluster.lua and my-cluster_spec.lua
   pipeplan policy init other --directory sites
   pipeplan policy test my-cluster_spec.lua]]

local command = {}

function command.parser()
  local parser = argparse("pipeplan policy init", "Writes a site's policy with one override, and its test.")
    :add_help(false):help_max_width(100):help_description_margin(28):usage("Usage: pipeplan policy init SITE [OPTIONS]"):epilog(examples)
  parser:argument("site", "name of the site: letters, digits, - and _"):argname("SITE")
  parser:option("--directory", "where to write (default: here)"):argname("DIR"):default(".")
  parser:option("--stdlib", "read pipeplan's own Lua from this directory"):argname("DIR")
  parser:flag("-h --help", "show this help")
  return parser
end

local policy_text = [[
-- %s.lua: what is different on this cluster. Laid over the default policy: pipeplan plan SPEC --policy %s
-- Names that rules may use: pipeplan facts fields. What holds now, and where it stands: pipeplan policy show --policy %s
-- A policy that grows may be a folder of files; require "name" runs name.lua beside this file.

site "%s"

-- Runs under this many GPUs take 1F1B here; the default is 100.
set { small_run_gpus = 64 }
]]

local spec_text = [[
-- Tests of %s.lua: pipeplan policy test %s, or busted --lua=lua5.4 %s

local site = require("pipeplan").policy "%s"

-- What is planned for: a dense model of 70 B parameters that is trained for 1 T tokens.
local function spec(gpus)
  return {
    cluster = { gpus = gpus, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { architecture = "dense", total = "70B", layers = 80 },
    training = { tokens = "1T" },
  }
end

describe("%s", function()
  it("counts 64 GPUs as a large run already, and 63 as a small one", function()
    assert.equal("zero_bubble", site:plan_spec(spec(64)).schedule_wanted)
    -- no layout has 63 GPUs; what the rules are told of a run can be put in place of what follows from its spec
    assert.equal("small_run", site:with({ gpus = 63 }):plan_spec(spec(64)).decision)
  end)

  it("keeps the default's limit on depth", function()
    local deep = spec(1024)
    deep.parallelism = { pipeline = 128 }
    assert.decided(site:plan_spec(deep), "rejected", "too_deep")
  end)
end)
]]

local function must_not_exist(path)
  if reading.exists(path) then failure.usage("policy init: %s exists already", path) end
end

function command.run(arguments)
  local options, help = command_line.parse(command.parser(), arguments, "policy init")
  if not options then return help, 0 end
  local site = options.site
  if not site:match "^[%w][%w_-]*$" or site == "default" then
    failure.usage("policy init: '%s' is no name for a site: letters, digits, - and _, and not default", site)
  end
  local directory = options.directory == "." and "" or (options.directory:gsub("/+$", "")) .. "/"
  local policy, spec = directory .. site .. ".lua", directory .. site .. "_spec.lua"
  must_not_exist(policy)
  must_not_exist(spec)
  output.write(policy_text:format(site, policy, policy, site), policy)
  local good, problem = failure.try(output.write, spec_text:format(site, spec, spec, policy, site), spec)
  if not good then
    os.remove(policy)  -- or the next attempt would find it there
    error(problem, 0)
  end
  return string.format("%s\n%s\n\nnext: pipeplan policy test %s\n", policy, spec, spec), 0
end

return command
