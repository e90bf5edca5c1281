-- SPDX-License-Identifier: Apache-2.0
-- load.lua: from files to a policy. Reads them in a fresh sandbox, puts the layers together, and raises everything that is wrong at once.

local dates = require "pipeplan.base.dates"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local layers = require "pipeplan.policy.layers"
local reading = require "pipeplan.base.reading"
local sorted_keys = require("pipeplan.base.lists").sorted_keys
local renamed = require "pipeplan.policy.renamed"
local repeated = require "pipeplan.policy.repeated"
local statements = require "pipeplan.policy.statements"

local load = { unsaid = {} }

local DEFAULT = "policies/default/"
local REPORTED = 20  -- problems shown at most

-- ---------------------------------------------------------------------------------------------------------------------------- files

-- The policy files of a folder, sorted, and what else is in it: tests, hidden files, other names, folders; nil when it is none.
local function files_of_folder(folder)
  local names, problem = engine.host.directory(folder)
  if problem then failure.unloadable("%s: cannot be read: %s", folder, problem) end
  if not names then return nil end
  local files, others = {}, {}
  table.sort(names)
  for _, name in ipairs(names) do
    if name:match("%.lua$") and not name:match("_spec%.lua$") and not name:match("^%.") then
      files[#files + 1] = name
    else
      others[#others + 1] = engine.host.directory(folder .. "/" .. name) and name .. "/" or name
    end
  end
  return files, others
end

-- The text of a file that the user names: any kind that can be read, so that <(…) of a shell works.
local function read_given(path)
  local file, problem = reading.open(path)
  if not file then failure.unloadable("%s: cannot be read: %s", path, problem) end
  local text, read_problem = file:read(1024 * 1024)
  file:close()
  if not text and read_problem then failure.unloadable("%s: cannot be read: %s", path, read_problem) end
  return text or ""
end

-- The text of a file that lies in a folder that the user names: a regular file, or a link to one in there.
local function read_in_folder(folder, name)
  reading.note(folder .. "/" .. name)
  local text, reason = engine.host.policy_text(folder, name)
  if not text then failure.unloadable("%s/%s: cannot be read: %s", folder, name, reason) end
  return text
end

-- A policy given by the user: a file or a folder → { name, path, files = { { path, text } }, not_read = { name, … } }.
local function layer_of(path)
  local trimmed = path:gsub("(.)/+$", "%1")
  local layer = { path = path, files = {}, name = ((trimmed:match("([^/]+)$") or path):gsub("%.lua$", "")) }
  local names, others = files_of_folder(trimmed)
  if not names then
    layer.files[1] = { path = path, text = read_given(path) }
    return layer
  end
  if #names == 0 then failure.raise("nothing", "%s: no policy file (*.lua) in this directory", path) end
  for i, name in ipairs(names) do layer.files[i] = { path = trimmed .. "/" .. name, text = read_in_folder(trimmed, name) } end
  layer.not_read = others
  return layer
end

-- The default layer: embedded, or from a directory (its own files, or those of default/ in it).
local function default_layer(directory)
  if directory then
    local inner = files_of_folder(directory .. "/default")
    local layer = layer_of(inner and #inner > 0 and directory .. "/default" or directory)
    layer.name = "default"
    return layer
  end
  local layer = { name = "default", files = {} }
  for i, name in ipairs(engine.embedded_names(DEFAULT)) do
    layer.files[i] = { path = name, text = engine.embedded(name), embedded = true }
  end
  return layer
end

-- An expression as a rule that returns it; the parentheses keep it a function.
local function expression_layer(text)
  local source = string.format("warn { id = 'expression', message = 'value', when = function(f) return (%s) end }", text)
  return { name = "-e", path = "-e", files = { { path = "-e", text = source } } }
end

-- What --set gives, as the statement that a file would make of it.
local function set_layer(set)
  return { name = "--set", files = {}, statements = { { verb = "set", file = "--set", line = 0, argument = set } } }
end

-- ------------------------------------------------------------------------------------------------------------------------ statements

-- Lua shortens a long file name in its messages ("...sites/x.lua:3:"); what is shown names the file in full.
local function in_full(message, path)
  local short = "..." .. path:sub(-56)
  if #path >= 59 and message:sub(1, #short) == short then return path .. message:sub(#short + 1) end
  return message
end

local function run(host, file)
  if load.replaced and file.text == load.replaced.text then file.text = load.replaced.other end
  local stated, problem = host:run(file.path, file.text, file.embedded or false)
  if stated then return stated end
  local message = in_full(problem.message, file.path)
  local absent = message:match "cannot require '([^']+)%.lua': No such file"
  absent = absent and absent:match "[^/]*$"
  local folder = file.path:match "^(.*)/[^/]*$" or "."
  if absent and not file.embedded then
    local names = {}
    for _, name in ipairs(engine.host.directory(folder) or {}) do names[#names + 1] = name:match "^(.*)%.lua$" end
    message = message .. failure.suggestion(absent, names)
  elseif message:find("index a boolean value", 1, true) and file.text:find "require" then
    message = message .. ": of a file that returns nothing, require returns true"
  end
  if problem.unknown then message = message .. failure.suggestion(problem.unknown, sorted_keys(engine.host.allowed)) end
  if not message:find(file.path, 1, true) and not message:match("^[^:]+%.lua:%d+:") then message = file.path .. ": " .. message end
  failure.of_host(problem, "policy_unloadable", "%s", message)
end

-- The lines of a file in which the function of a statement stands; nil where it is another file's.
local function function_text(file, raw)
  local stated = type(raw.argument) == "table" and raw.argument.when
  if type(stated) ~= "table" or stated[2] ~= file.path then return nil end
  local lines, number = {}, 0
  for line in (file.text .. "\n"):gmatch "([^\n]*)\n" do
    number = number + 1
    if number >= stated[3] and number <= stated[4] then lines[#lines + 1] = line end
  end
  return table.concat(lines, "\n")
end

-- Statements of a layer in order; `site` gives the layer its name.
local function run_layer(host, layer, report)
  layer.statements = {}
  local named
  for _, file in ipairs(layer.files) do
    if file.text:find "^\xEF\xBB\xBF" then failure.unloadable("%s:1: starts with a byte order mark; save it as plain UTF-8", file.path) end
    for _, twice in ipairs(file.embedded and {} or repeated.of(file.text)) do
      report(file.path, twice.line, string.format("%s stands twice in one table, and Lua keeps the last: of a field with two limits write "
                                                  .. "between, or two rules", twice.name))
    end
    for _, raw in ipairs(run(host, file)) do
      raw.function_text = function_text(file, raw)
      if raw.verb == "site" then
        if named then report(raw.file, raw.line, string.format("site: the layer has a name already (%s:%d)", named.file, named.line)) end
        named = raw
        layer.name = statements.read(raw, layer.name, nil, report).id
      else
        if not file.embedded then renamed.statement(raw) end   -- what ships has none
        layer.statements[#layer.statements + 1] = raw
      end
    end
  end
  local sealed, problem = host:seal()
  if not sealed then failure.of_host(problem, "policy_unloadable", "%s", problem.message) end
  layer.required = host:required() or {}
  for _, file in ipairs(layer.required) do reading.note(file.path) end
  if #layer.statements == 0 then
    failure.raise("nothing", "%s: states nothing: no row, no rule, no set", layer.path or layer.name)
  end
end

local function check_names(list)
  local seen = {}
  for _, layer in ipairs(list) do
    if seen[layer.name] then
      failure.unloadable("%s: two layers are called '%s'; `site \"name\"` renames one", layer.path or layer.name, layer.name)
    end
    seen[layer.name] = true
  end
end

-- Leaves in each layer's `required` the files that nothing but `require` has read, each once, in the first layer that did.
local function sort_out_required(list)
  local known = {}
  for _, layer in ipairs(list) do
    for _, file in ipairs(layer.files) do known[file.path] = true end
  end
  for _, layer in ipairs(list) do
    local own = {}
    for _, file in ipairs(layer.required or {}) do
      local path, digest = table.unpack(file)
      if not known[path] then own[#own + 1] = { path = path, digest = digest } end
      known[path] = true
    end
    layer.required = own
  end
end

-- The text of a file that was required; nil where it has changed since.
local function required_text(file)
  local folder, name = file.path:match "^(.*)/([^/]*)$"
  local text = engine.embedded(file.path) or engine.host.policy_text(folder or ".", name or file.path)
  return text and engine.host.digest(text) == string.format("%016x", file.digest) and text or nil
end

-- Of what a layer's files say: name and text of each, wherever they lie.
local function text_of(layer)
  local parts = {}
  for _, file in ipairs(layer.files) do parts[#parts + 1] = file.path:match("[^/]*$") .. "\n" .. file.text .. "\n" end
  for _, file in ipairs(layer.required) do
    parts[#parts + 1] = string.format("required %s %016x\n", file.path:match("[^/]*$"), file.digest)
  end
  return table.concat(parts)
end

-- Of all that a plan follows from beside its spec: every file that was read, --set, the date, pipeplan's version and its sources.
local function digest_of(list, set, date)
  local parts = { string.format("pipeplan %s %s\ndate %s\n", engine.version, engine.build, date) }
  for _, layer in ipairs(list) do parts[#parts + 1] = "layer " .. layer.name .. "\n" .. text_of(layer) end
  for _, name in ipairs(sorted_keys(set or {})) do
    local value = set[name]
    parts[#parts + 1] = name .. "=" .. (type(value) == "table" and table.concat(value, ",") or tostring(value)) .. "\n"
  end
  return engine.host.digest(table.concat(parts))
end

-- Of the layers alone, default included, and --set: what a gate can demand, on any day and of any version that says the same.
local function stack_of(list, set)
  local parts = {}
  for _, layer in ipairs(list) do parts[#parts + 1] = layer.digest .. "\n" end
  for _, name in ipairs(sorted_keys(set or {})) do
    parts[#parts + 1] = name .. "=" .. tostring(type(set[name]) == "table" and table.concat(set[name], ",") or set[name]) .. "\n"
  end
  return engine.host.digest(table.concat(parts))
end

local function count_rules(policy)
  local count = 0
  for _ in pairs(policy.rules) do count = count + 1 end
  return count
end

-- load.under: layers between the default and whatever is loaded: tests of a team's policy under its company's.
-- load.unsaid: { date, policies }: what holds where the options say nothing: for tests, what their command was told.
-- load.replaced: { text, other }: a file of that text, given or required, says the other: mutation of what functions say.
-- load.load{ files = { path, … }, set = { name = value }, date = "YYYY-MM-DD", policies = directory, work =, bytes =,
--   found = { path, … }: policies of the machine, under `files`; left_out: those that are left out,
--   expression = text?: what a rule `expression` of the last layer returns, for whoever wants to know what it is of a candidate,
--   unpinned = bool?: whatever the default policy is that a site is pinned to } → policy.
-- `set` may hold `reason` and `expires`, as a `set` statement may.
-- Raises an answer: exit 6 for what cannot be loaded, 4 over budget, 5 nothing there.
function load.load(options)
  local date = options.date or load.unsaid.date or dates.today()
  local _, undated = dates.check(date)
  if undated then failure.usage("--date: %s, got '%s'", undated, tostring(date)) end
  local problems, more = {}, 0
  local function report(file, line, text)
    if #problems == REPORTED then more = more + 1 return end
    problems[#problems + 1] = (line > 0 and string.format("%s:%d: ", file, line) or file .. ": ") .. text
  end
  local host, problem = engine.host.open { fields = renamed.fields, work = options.work, bytes = options.bytes,
                                            debug = options.debug or false }
  if not host then failure.of_host(problem, "policy_unloadable", "%s", problem.message) end
  if load.replaced then host:replace(load.replaced.text, load.replaced.other) end
  local list, given = { default_layer(options.policies or load.unsaid.policies) }, {}
  for _, path in ipairs(load.under or {}) do
    given[path] = "under"
    list[#list + 1] = layer_of(path)
  end
  for _, path in ipairs(options.found or {}) do
    if not given[path] then
      given[path] = "found"
      list[#list + 1] = layer_of(path)
      list[#list].found = path
    end
  end
  for _, path in ipairs(options.files or {}) do
    if given[path] == true then failure.usage("%s: given twice", path) end
    if not given[path] then list[#list + 1] = layer_of(path) end  -- a test may load the whole stack itself
    given[path] = true
  end
  if options.expression then list[#list + 1] = expression_layer(options.expression) end
  for _, layer in ipairs(list) do run_layer(host, layer, report) end
  if options.set and next(options.set) then list[#list + 1] = set_layer(options.set) end
  check_names(list)
  sort_out_required(list)
  for _, layer in ipairs(list) do layer.digest = engine.host.digest(text_of(layer)) end
  local policy = layers.build(list, date, report, options.unpinned)
  for _, layer in ipairs(list) do
    for _, file in ipairs(layer.files) do table.move(renamed.warnings(file), 1, REPORTED, #policy.warnings + 1, policy.warnings) end
  end
  if more > 0 then problems[#problems + 1] = string.format("… and %d more", more) end
  if #problems > 0 then failure.raise_lines("policy_unloadable", problems) end
  if count_rules(policy) == 0 then failure.raise("nothing", "no rule is left in the policy") end
  policy.layers, policy.texts = {}, {}
  for i, layer in ipairs(list) do
    local files, digests = {}, {}
    for _, file in ipairs(layer.files) do
      files[#files + 1], digests[#digests + 1] = file.path, engine.host.digest(file.text)
    end
    for _, file in ipairs(layer.required) do
      files[#files + 1], digests[#digests + 1] = file.path, string.format("%016x", file.digest)
    end
    for _, file in ipairs(layer.files) do policy.texts[file.path] = file.text end
    for _, file in ipairs(layer.required) do policy.texts[file.path] = required_text(file) end
    policy.layers[i] = { name = layer.name, path = layer.path, files = files, digests = digests, digest = layer.digest, found = layer.found,
                         not_read = layer.not_read or {} }
  end
  policy.host, policy.date, policy.digest = host, date, digest_of(list, options.set, date)
  policy.stack, policy.left_out = stack_of(list, options.set), options.left_out or {}
  host:refill()  -- loading and planning have a budget each
  if load.observer then load.observer(policy) end  -- mutation makes of it what it tries
  return policy
end

return load
