-- SPDX-License-Identifier: Apache-2.0
-- pin.lua: `pipeplan policy pin SITE`: saves the default policy that a site was written for and pins the site to it; over another default
-- shows what that changes for the site's own specs, before it is taken.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local corpus = require "pipeplan.cli.corpus"
local difference = require "pipeplan.analysis.difference"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local load = require "pipeplan.policy.load"
local output = require "pipeplan.cli.output"
local report = require "pipeplan.report.difference"

local examples = [[
SITE is a policy file or a folder of them. Its statement pin { default = "digest" } says which
default it was written for: over another the site does not load. The files of that default are
saved beside it.

Exit status: 0 pinned, or nothing changes; 1 the other default changes plans and was not taken;
2 a spec, or the saved default, cannot be read; 5 without a spec; 6 the policy cannot be loaded.

Examples:
   pipeplan policy pin site.lua
       saves the default in site.default/ and writes the pin into site.lua
   pipeplan policy pin site.lua --corpus specs.jsonl
       with a newer pipeplan: what its default changes for these specs
   pipeplan policy pin site.lua --corpus specs.jsonl --take
       the same, then saves that default and pins the site to it]]

local command = {}

function command.parser()
  local parser = argparse("pipeplan policy pin", "Pins a site to the default policy that it was written for, or takes a newer one.")
    :add_help(false):help_max_width(100):help_description_margin(28):usage("Usage: pipeplan policy pin SITE [SPEC...] [OPTIONS]")
    :epilog(examples)
  parser:argument("site", "the site's policy: a file or a directory"):argname("SITE")
  parser:argument("spec", "spec files to see the change on"):argname("SPEC"):args("*")
  parser:option("--corpus", "file with a spec on each line (- is standard input)"):argname("FILE")
  parser:option("--saved", "directory of the saved default (default: SITE.default, of a file without its .lua)"):argname("DIR")
  parser:flag("--take", "take the other default, after showing what it changes")
  parser:option("--policy", "a layer under the site: company, hall (again for each, in order)"):argname("FILE"):count("*")
  parser:option("--date", "date at which the expiry of loosened rules is judged (default: today in UTC)"):argname("YYYY-MM-DD")
  parser:option("--policies", "read the default policies from this directory"):argname("DIR")
  parser:option("--stdlib", "read pipeplan's own Lua from this directory"):argname("DIR")
  parser:flag("-h --help", "show this help")
  return parser
end

-- ---------------------------------------------------------------------------------------------------------------------------- files

local function name_of(path) return path:match "[^/]*$" end

-- The digest of the default policy in a directory, or nil.
local function digest_in(directory, date)
  local good, found = failure.try(load.load, { date = date, policies = directory })
  return good and found.layers[1].digest or nil
end

-- Writes the files of the default policy, as it was read, in place of those of `before`.
local function save(policy, directory, before)
  local made, problem = engine.process.make_directory(directory)
  if not made then failure.usage("cannot make %s: %s", directory, problem) end
  for _, path in ipairs(policy.layers[1].files) do
    output.write(policy.texts[path], directory .. "/" .. name_of(path))
  end
  local kept = {}
  for _, path in ipairs(policy.layers[1].files) do kept[name_of(path)] = true end
  for _, path in ipairs(before and before.layers[1].files or {}) do
    if not kept[name_of(path)] then os.remove(directory .. "/" .. name_of(path)) end
  end
  if digest_in(directory, policy.date) ~= policy.layers[1].digest then
    failure.usage("policy pin: %s holds policy files that are none of the default's; take them out, or name another directory with --saved",
                  directory)
  end
end

-- Writes what `edit(line, number)` makes of each line of a file.
local function rewrite(path, text, edit)
  local lines, number = {}, 0
  for line, ending in text:gmatch "([^\n]*)(\n?)" do
    if line ~= "" or ending ~= "" then
      number = number + 1
      lines[number] = edit(line, number) .. ending
    end
  end
  output.write(table.concat(lines), path)
end

-- States the pin: under the line that names the site, or at the end of the first file.
local function state(policy, layer, digest)
  local path = layer.files[1]
  local text = policy.texts[path]
  local pin = string.format("pin { default = %q }", digest)
  local named
  for line in text:gmatch "[^\n]+" do named = named or line:match "^site%s*[\"'(]" and line end
  if not named then
    output.write(text .. (text:match "\n$" and "" or "\n") .. pin .. "\n", path)
    return path
  end
  local done = false
  rewrite(path, text, function(line)
    if done or line ~= named then return line end
    done = true
    return line .. "\n" .. pin
  end)
  return path
end

-- ---------------------------------------------------------------------------------------------------------------------------- upgrade

-- What this default changes under the site, beside the one that it is pinned to.
local function changes_of(options, files, saved, pinned, new)
  local good, old = failure.try(load.load, { files = files, date = options.date, policies = saved, unpinned = true })
  if not good then
    failure.usage("policy pin: the default %s that the site is pinned to is not in %s (--saved names its directory)", pinned, saved)
  end
  if old.layers[1].digest ~= pinned then
    failure.usage("policy pin: %s holds the default %s, and the site is pinned to %s", saved, old.layers[1].digest, pinned)
  end
  local specs = corpus.read(options.spec, options.corpus)
  if #specs == 0 then
    failure.raise("nothing", "policy pin: the site is pinned to the default %s, and this is %s: no spec to see on what changes: "
                  .. "name some, or give --corpus", pinned, new.layers[1].digest)
  end
  return difference.of(old, new, specs), #specs, old
end

function command.run(arguments)
  local options, help = command_line.parse(command.parser(), arguments, "policy pin")
  if not options then return help, 0 end
  local saved = options.saved or options.site:gsub("(.)/+$", "%1"):gsub("%.lua$", "") .. ".default"
  local files = { table.unpack(options.policy) }
  files[#files + 1] = options.site
  local policy = load.load { files = files, date = options.date, policies = options.policies, unpinned = true }
  local digest, own = policy.layers[1].digest, policy.layers[#policy.layers]
  local pin
  for _, one in ipairs(policy.pins) do
    if policy.texts[one.file] and table.concat(own.files, "\n"):find(one.file, 1, true) then pin = one end
  end
  if not pin then
    save(policy, saved)
    return string.format("%s: pinned to the default policy %s\n%s: its files\n", state(policy, own, digest), digest, saved), 0
  end
  if pin.default == digest then
    save(policy, saved)
    return string.format("%s:%d: pinned to the default policy %s, which this is\n%s: its files\n", pin.file, pin.line, digest, saved), 0
  end
  local changes, specs, old = changes_of(options, files, saved, pin.default, policy)
  local text = report.text(changes, specs)
  if not options.take then
    text = text .. string.format("\n%s:%d: still pinned to %s; --take takes %s\n", pin.file, pin.line, pin.default, digest)
    return text, #changes > 0 and failure.status.refused or 0
  end
  save(policy, saved, old)
  rewrite(pin.file, policy.texts[pin.file], function(line) return (line:gsub(pin.default, digest)) end)
  return text .. string.format("\n%s:%d: pinned to %s, where it was %s\n%s: its files\n", pin.file, pin.line, digest, pin.default, saved), 0
end

return command
