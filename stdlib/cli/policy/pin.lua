-- SPDX-License-Identifier: Apache-2.0
-- pin.lua: `pipeplan policy pin SITE`: saves the default policy that a site was written for and pins the site to it; over another default
-- shows what that changes for the site's own specs, before it is taken.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local corpus = require "pipeplan.cli.corpus"
local difference = require "pipeplan.analysis.difference"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local load = require "pipeplan.policy.load"
local lua_text = require "pipeplan.base.lua_text"
local output = require "pipeplan.cli.output"
local report = require "pipeplan.report.difference"

local examples = [[
SITE is a policy file or a folder of them. Its statement pin { default = "digest" } says which
default it was written for: over another the site does not load. The files of that default are
saved beside it.

Exit status: 0 pinned, or nothing changes; 1 the other default changes plans and was not taken;
2 a spec, or the saved default, cannot be read, or there is no place in SITE where the pin would hold:
then nothing is written; 5 without a spec; 6 the policy cannot be loaded.

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

-- The files of the default policy as it was read: name → text.
local function texts_of(policy)
  local texts = {}
  for _, path in ipairs(policy.layers[1].files) do texts[name_of(path)] = policy.texts[path] end
  return texts
end

local function write_all(texts, directory)
  for _, name in ipairs(lists.sorted_keys(texts)) do output.write(texts[name], directory .. "/" .. name) end
end

-- Does a directory hold policy files that are neither in `texts` nor in `before`? They would be read as the default's.
local function check_place(directory, texts, before)
  for _, name in ipairs(engine.host.directory(directory) or {}) do
    if name:find "%.lua$" and not name:find "_spec%.lua$" and not name:find "^%." and not texts[name] and not before[name] then
      failure.usage("policy pin: %s holds policy files that are none of the default's (%s); take them out, or name another directory with "
                    .. "--saved", directory, name)
    end
  end
end

-- Writes the files of the default policy in place of those of `before`, nil: of none; those are put back where that fails.
local function save(policy, directory, before)
  local texts, old = texts_of(policy), before and texts_of(before) or {}
  local made, problem = engine.process.make_directory(directory)
  if not made then failure.usage("cannot make %s: %s", directory, problem) end
  local good, raised = failure.try(function()
    write_all(texts, directory)
    for name in pairs(old) do
      if not texts[name] then os.remove(directory .. "/" .. name) end
    end
    if digest_in(directory, policy.date) ~= policy.layers[1].digest then
      failure.usage("policy pin: what is in %s is another default policy than was written there", directory)
    end
  end)
  if good then return end
  failure.try(write_all, old, directory)
  error(raised, 0)
end

-- ---------------------------------------------------------------------------------------------------------------------------- the pin

-- The pins that a site's own files state.
local function own_pins(policy)
  local list, files = {}, policy.layers[#policy.layers].files
  for _, one in ipairs(policy.pins) do
    if lists.contains(files, one.file) then list[#list + 1] = one end
  end
  return list
end

local function statement(digest) return string.format("pin { default = %q }", digest) end

-- Where the word of a call's argument ends that begins after `at`; nil where it is no string, nor one in parentheses.
local function argument_end(text, at)
  local depth = 0
  for kind, start, stop in lua_text.words(text:sub(at)) do
    local word = text:sub(at + start - 1, at + stop - 1)
    if kind == "symbol" and word == "(" then depth = depth + 1
    elseif kind == "symbol" and word == ")" and depth > 0 then depth = depth - 1
    elseif kind ~= "string" and kind ~= "comment" then return nil end
    if depth == 0 and kind ~= "comment" then return at + stop - 1 end
  end
end

-- Texts with the pin stated in one place each, the likeliest first: under what names the site, at the end, at the beginning.
local function stated_texts(text, digest)
  local pin, ending, list = statement(digest), text:find("\r\n", 1, true) and "\r\n" or "\n", {}
  for kind, start, stop in lua_text.words(text) do
    local to = kind == "name" and text:sub(start, stop) == "site" and argument_end(text, stop + 1)
    if to then
      local line = text:match("^[ \t;]*%-%-[^%[\r\n][^\r\n]*()", to + 1) or text:match("^[ \t;]*()%f[\r\n\0]", to + 1) or to + 1
      list[#list + 1] = text:sub(1, line - 1) .. ending .. pin .. text:sub(line)
    end
  end
  list[#list + 1] = text .. (text:find "\n$" and "" or ending) .. pin .. ending
  list[#list + 1] = pin .. ending .. text
  return list
end

-- Texts with the old digest replaced in one string each; and in all.
local function replaced_texts(text, old, digest)
  local list, all, at = {}, {}, 1
  for kind, start, stop in lua_text.words(text) do
    local from, to = text:sub(start, stop):lower():find(old, 1, true)
    if kind == "string" and from then
      from, to = start + from - 1, start + to - 1
      list[#list + 1] = text:sub(1, from - 1) .. digest .. text:sub(to + 1)
      all[#all + 1] = text:sub(at, from - 1) .. digest
      at = to + 1
    end
  end
  if #list > 1 then list[#list + 1] = table.concat(all) .. text:sub(at) end
  return list
end

-- The first of some texts of a file with which the site loads and is pinned to that default, whatever else its words look like.
local function pinning(texts, path, policy, options)
  local digest = policy.layers[1].digest
  for _, text in ipairs(texts) do
    load.replaced = { text = policy.texts[path], other = text }
    local good, other = failure.try(load.load, options)
    load.replaced = nil
    local pins = good and own_pins(other) or {}
    local right = #pins == math.max(1, #own_pins(policy))
    for _, one in ipairs(pins) do right = right and one.default == digest end
    if right then return text end
  end
  failure.usage("policy pin: no place was found in %s where the pin holds, so nothing was written; write it by hand: %s", path,
                statement(digest))
end

-- Writes the pin and what it is about: both or neither. The pin first: whoever is stopped between them runs the same once more.
local function write(path, text, policy, saved, before)
  check_place(saved, texts_of(policy), before and texts_of(before) or {})
  output.write(text, path)
  local good, problem = failure.try(save, policy, saved, before)
  if good then return end
  output.write(policy.texts[path], path)
  error(problem, 0)
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
  local how = { files = files, date = options.date, policies = options.policies, unpinned = true }
  local policy = load.load(how)
  local digest, pins = policy.layers[1].digest, own_pins(policy)
  local pin = pins[1]
  for _, one in ipairs(pins) do
    if one.default ~= digest then pin = one end
  end
  if not pin then
    local path = policy.layers[#policy.layers].files[1]
    write(path, pinning(stated_texts(policy.texts[path], digest), path, policy, how), policy, saved)
    return string.format("%s: pinned to the default policy %s\n%s: its files\n", path, digest, saved), 0
  end
  if pin.default == digest then
    check_place(saved, texts_of(policy), {})
    save(policy, saved)
    return string.format("%s:%d: pinned to the default policy %s, which this is\n%s: its files\n", pin.file, pin.line, digest, saved), 0
  end
  local changes, specs, old = changes_of(options, files, saved, pin.default, policy)
  local text = report.text(changes, specs)
  if not options.take then
    text = text .. string.format("\n%s:%d: still pinned to %s; --take takes %s\n", pin.file, pin.line, pin.default, digest)
    return text, #changes > 0 and failure.status.refused or 0
  end
  local was = policy.texts[pin.file]
  write(pin.file, pinning(was and replaced_texts(was, pin.default, digest) or {}, pin.file, policy, how), policy, saved, old)
  return text .. string.format("\n%s:%d: pinned to %s, where it was %s\n%s: its files\n", pin.file, pin.line, digest, pin.default, saved), 0
end

return command
