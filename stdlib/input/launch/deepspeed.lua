-- SPDX-License-Identifier: Apache-2.0
-- deepspeed.lua: DeepSpeed's configuration, by itself or beside a command line that names it, → its launch. Keys are those of
-- catalog/frameworks/deepspeed.lua. P, TP and the split of layers stand in Python or on the program's command line: literal arguments of
-- PipelineModule, of its topology and of MoE are read in the program that the command starts and in Python that the script writes; nothing
-- is executed.

local also = require "pipeplan.catalog.frameworks.deepspeed_keys"
local failure = require "pipeplan.base.failure"
local files = require "pipeplan.input.files"
local frameworks = require "pipeplan.catalog.frameworks"
local hjson = require "pipeplan.input.launch.hjson"
local launcher = require "pipeplan.input.launch.launcher"
local lists = require "pipeplan.base.lists"
local reading = require "pipeplan.base.reading"
local script = require "pipeplan.input.launch.shell_script"
local text_of = require "pipeplan.base.text"

local deepspeed = {}

local MOST_BYTES = 2 ^ 20   -- of a file that a launch names
local MOST_SLOTS = 4096     -- of a node

local function at(where) return "https://github.com/deepspeedai/DeepSpeed/tree/v0.19.8, deepspeed/" .. where end

local known

local function load()
  known = {}
  for _, key in ipairs(frameworks.find("deepspeed").keys) do known[key.key] = key end
  for _, gone in ipairs(frameworks.find("deepspeed").gone) do known[gone.key] = known[gone.key] or { gone = true } end
end

-- ----------------------------------------------------------------------------------------------------------------- the configuration

local booleans = { ["true"] = true, yes = true, on = true, y = true, t = true, ["1"] = true,
                   ["false"] = false, no = false, off = false, n = false, f = false, ["0"] = false }

-- A flag's value as pydantic takes it; nil: it takes it not.
local function boolean_of(node)
  if node.kind == "boolean" then return node.value end
  if node.kind == "number" then return ({ [0] = false, [1] = true })[node.value] end
  if node.kind == "string" then return booleans[node.value:lower()] end
end

local function shown(node)
  if node.kind == "string" then return '"' .. node.value .. '"' end
  return node.kind == "null" and "null" or node.value ~= nil and tostring(node.value) or "an " .. node.kind
end

-- Keys that pydantic checks: a section's; the others are taken as they are.
local function is_checked(name) return also.checked[name:match "^([^.]*)%." or ""] or false end

-- What pydantic takes for a whole number beside one: a text of digits, true and false.
local function whole_of(node)
  if node.kind == "boolean" then return node.value and 1 or 0 end
  return node.kind == "string" and node.value:find "^[-+]?%d+$" and tonumber(node.value)
end

-- The words of a key's node, and what DeepSpeed says against it; off: a flag that is switched off.
local function words_of(key, name, node)
  local function word(text) return { { text = tostring(text), line = node.line } } end
  if key.gone then return {} end
  if key.type == "flag" then
    local value = boolean_of(node)
    if not is_checked(name) and node.kind ~= "boolean" then value = nil end
    if value == nil then return nil, "true or false" end
    return {}, nil, not value
  elseif key.type == "integer" then
    local number = node.kind == "number" and node.value or is_checked(name) and whole_of(node)
    local whole = number and math.tointeger(number)
    if not whole then return nil, "a whole number" end
    if key.values and not lists.contains(key.values, whole) then return nil, "one of " .. table.concat(key.values, ", ") end
    return word(whole)
  elseif key.type == "number" then
    local number = node.kind == "number" and node.value or node.kind == "string" and not node.value:find "[xX]" and tonumber(node.value)
    if not number then return nil, "a number" end
    return word(number)
  elseif key.type == "choice" then
    if node.kind ~= "string" or not lists.contains(key.values, node.value) then return nil, "one of " .. table.concat(key.values, ", ") end
    return word(node.value)
  end
  return word(node.value)
end

local MOST_NEAREST = 50   -- unknown keys that are told what they may have been meant for

-- The known key that is nearest to one that is not.
local function nearest_of(name, section)
  local names = {}
  for each in pairs(known) do
    if not each:find "^%u" and not each:find "^planned" then names[#names + 1] = each end
  end
  for each in pairs(section and also.sections[section] or also.top) do
    names[#names + 1] = section and section .. "." .. each or each
  end
  table.sort(names)
  return failure.nearest(name, names)
end

local function tell_unknown(launch, note, name, line, section)
  launch.strangers = (launch.strangers or 0) + 1
  note { id = "unknown_key", severity = section and "error" or "warning", line = line, key = name,
         nearest = launch.strangers <= MOST_NEAREST and nearest_of(name, section) or nil,
         message = section and "DeepSpeed does not know " .. name .. " and does not start with it"
                   or "DeepSpeed reads no " .. name .. ": it is ignored", source = at "runtime/config_utils.py: run" }
end

local function add_leaf(launch, note, name, node, line)
  local key = known[name]
  if node.kind == "string" and node.value == "auto" then
    local by, dies = also.filled[name], not is_checked(name)
    note { id = "auto", severity = "warning", line = line, key = name, source = at "runtime/config_utils.py:64; runtime/config.py: run",
           message = string.format('%s is "auto": Hugging Face\'s Trainer fills that in%s; DeepSpeed itself %s', name,
                                   by and " from " .. by or "", dies and "ends with a TypeError" or "takes it for not said") }
    if not dies then return end
    local word = { text = "auto", line = line, unknown = { name .. " of Hugging Face's Trainer" } }
    launch.settings[#launch.settings + 1] = { key = name, file = launch.file, line = line, values = { word } }
    launch.spelled[name] = true
    return
  end
  local optional = not is_checked(name) or name == "zero_optimization.overlap_comm"
  if node.kind == "null" and optional then return end   -- as if nobody said it
  local words, expected, off = words_of(key, name, node)
  if not words then
    note { id = "bad_value", severity = "error", line = line, key = name, value = shown(node), source = at "runtime/config.py: run",
           message = string.format("DeepSpeed: %s is %s: expected %s", name, shown(node), expected) }
    words = { { text = shown(node), line = line, unknown = { name } } }
  end
  launch.settings[#launch.settings + 1] = { key = name, file = launch.file, line = line, values = words, off = off }
  launch.spelled[name] = true
end

-- What pydantic expects of a key that no plan and no rule asks for, where its value is none; "auto" is as if nobody said it.
local function expected_of(name, node)
  if node.kind == "string" and node.value == "auto" or also.others[name] or node.kind == "null" and also.nullable[name] then return nil end
  local least = also.whole[name]
  if least ~= nil then
    local number = node.kind == "number" and node.value or whole_of(node)
    local whole = number and math.tointeger(number)
    if whole and (not least or whole >= least) then return nil end
    return least and string.format("a whole number of at least %d", least) or "a whole number"
  elseif also.fractions[name] or also.numbers[name] then
    local number = node.kind == "number" and node.value or node.kind == "boolean" and (node.value and 1 or 0)
                   or node.kind == "string" and not node.value:find "[xX]" and tonumber(node.value)
    if also.numbers[name] then return not number and "a number" or nil end
    return not (number and number >= 0 and number <= 1) and "a number from 0 to 1" or nil
  end
  return boolean_of(node) == nil and "true or false" or nil
end

local function tell_other(note, name, node, line)
  local expected = expected_of(name, node)
  if not expected then return end
  note { id = "bad_value", severity = "error", line = line, key = name, value = shown(node), source = at "runtime/config_utils.py: run",
         message = string.format("DeepSpeed: %s is %s: expected %s", name, shown(node), expected) }
end

-- zero_optimization: true is stage 1 (runtime/zero/config.py:53).
local function is_old_zero(name, node) return name == "zero_optimization" and node.kind == "boolean" end

-- Does DeepSpeed take a key that the table has not?
local function is_taken(section, key)
  if section then return also.open[section] or also.sections[section][key] end
  return also.top[key]
end

-- Keys that an object, or one within it, says twice.
local function tell_duplicates(note, node, prefix)
  local seen = {}
  for _, entry in ipairs(node.entries or {}) do
    local inner, name = entry.node or entry, entry.key and prefix .. entry.key
    if name and seen[name] then
      note { id = "duplicate_key", severity = "error", line = entry.line, key = name, source = at "runtime/config_utils.py:205: run",
             message = string.format("%s stands at line %d already: DeepSpeed refuses a file that says a key twice", name, seen[name]) }
    elseif name then seen[name] = entry.line end
    tell_duplicates(note, inner, name and name .. "." or prefix)
  end
end

local function add_object(launch, note, object, prefix)
  local seen = {}
  for _, entry in ipairs(object.entries) do
    local name = prefix .. entry.key
    local section = prefix:match "^(.-)%.$"
    if seen[entry.key] then goto next   -- tell_duplicates
    elseif is_old_zero(name, entry.node) then
      local stage = { kind = "number", value = entry.node.value and 1 or 0, line = entry.line }
      add_leaf(launch, note, "zero_optimization.stage", stage, entry.line)
    elseif known[name] then add_leaf(launch, note, name, entry.node, entry.line)
    elseif entry.node.kind == "object" and (also.sections[name] or also.open[name] or name == "bfloat16") then
      add_object(launch, note, entry.node, (name == "bfloat16" and "bf16" or name) .. ".")
    elseif (also.sections[name] or not section and also.open[name])
           and not (entry.node.kind == "null" and (section or name == "bf16")) then
      note { id = "bad_value", severity = "error", line = entry.line, key = name, value = shown(entry.node),
             source = at "runtime/config.py: run",
             message = string.format("DeepSpeed: %s is %s: expected an object", name, shown(entry.node)) }
    elseif not is_taken(section, entry.key) then tell_unknown(launch, note, name, entry.line, section)
    elseif section and also.checked[section:match "^[^.]*"] then tell_other(note, name, entry.node, entry.line)
    end
    seen[entry.key] = true
    ::next::
  end
end

-- Adds what a configuration says; `first`: lines before it in its file.
local function add_config(launch, text, file, first)
  local function note(finding)
    finding.line, finding.file = finding.line + first, file
    launch.notes[#launch.notes + 1] = finding
  end
  local from = #launch.settings
  local object = hjson.read(text, file)
  if object.kind ~= "object" then failure.usage("%s: DeepSpeed's configuration is an object, this is an %s", file, object.kind) end
  local comma = text:find ",%s*[}%]]"
  if comma then
    local _, lines = text:sub(1, comma):gsub("\n", "")
    note { id = "hjson", severity = "note", line = lines + 1, source = at "runtime/config.py:443",
           message = "a comma before a bracket: DeepSpeed reads HJSON and takes it, readers of JSON do not" }
  end
  tell_duplicates(note, object, "")
  add_object(launch, note, object, "")
  for i = from + 1, #launch.settings do
    local setting = launch.settings[i]
    setting.file, setting.line = file, setting.line + first
  end
end

-- ------------------------------------------------------------------------------------------------------------------------------ Python

local function add(launch, key, text, line, more)
  if launch.spelled[key] then return end
  launch.spelled[key] = true
  local setting = { key = key, file = launch.file, line = line, values = { { text = text, line = line } } }
  launch.settings[#launch.settings + 1] = lists.with(setting, more)
end

-- What literal arguments are called → key.
local arguments = {
  { "num_stages", "PipelineModule.num_stages" }, { "num_pp", "PipelineModule.num_stages" },
  { "num_mp", "PipeModelDataParallelTopology.num_mp" }, { "num_dp", "PipeModelDataParallelTopology.num_dp" },
  { "ep_size", "MoE.ep_size" }, { "sequence_length", "planned.sequence_length" },
}

local function line_at(text, position) return select(2, text:sub(1, position):gsub("\n", "")) + 1 end

-- The number that is given for an argument wherever a text gives it one, and where first; nil: none, or something else elsewhere.
local function literal_of(text, name)
  local found, place
  for position, value in text:gmatch("()%f[%w_]" .. name .. "%s*=%s*([^=%s,)][^\n,)]*)") do
    value = text_of.trimmed(value)
    if not value:find "^%d+$" or found and found ~= value then return nil end
    found, place = value, place or position
  end
  return found, place
end

-- Adds literal arguments of PipelineModule and what stands beside it, of Python that is not executed.
local function add_python(launch, text, file, first)
  text = ("\n" .. text):gsub("(\n[^\n#\"']*)#[^\n]*", "%1"):sub(2)
  local function say(key, value, position, more)
    add(launch, key, value, line_at(text, position) + first, lists.with({ file = file }, more))
  end
  for _, each in ipairs(arguments) do
    local value, position = literal_of(text, each[1])
    if value then say(each[2], value, position) end
  end
  local position, method = text:match "()%f[%w_]partition_method%s*=%s*[\"']([^\"'\n]*)[\"']"
  if method then say("PipelineModule.partition_method", method, position) end
  local at_interval, interval = text:match "()%f[%w_]activation_checkpoint_interval%s*=%s*(%d+)"
  if interval then say("PipelineModule.activation_checkpoint_interval", interval, at_interval) end
  local at_switch, switch = text:match "()%f[%w_]enable_expert_tensor_parallelism%s*=%s*(%a+)"
  if switch == "True" or switch == "False" then
    say("MoE.enable_expert_tensor_parallelism", "", at_switch, { values = {}, off = switch == "False" })
  end
  local at_layers, layers = text:match "()%f[%w_]layers_per_stage%s*=%s*%[([%d,%s]*)%]"
  if layers then
    local words = {}
    for word in layers:gmatch "%d+" do words[#words + 1] = { text = word, line = line_at(text, at_layers) + first } end
    say("planned.layers_per_stage", "", at_layers, { values = words })
  end
end

-- Does a program make an engine of a model in one piece, by all that stands in it?
local function has_no_pipeline(text)
  return text:find "deepspeed%.initialize%s*%(" ~= nil and not text:find "Pipe"
         and not text:find "%f[%w_]mpu%f[^%w_]" and not text:find "topology"
end

-- ------------------------------------------------------------------------------------------------------------------------ the launch

local function new(file, line)
  return { framework = "deepspeed", file = file, line = line, settings = {}, spelled = {}, unresolved = {}, notes = {} }
end

-- The text of a file beside another, or nil.
local function beside(file, name)
  local path = name:sub(1, 1) == "/" and name or files.directory_of(file) .. name
  local handle = reading.open(path, "regular")
  if not handle then return nil end
  local text = handle:read(MOST_BYTES + 1) or ""
  handle:close()
  return #text <= MOST_BYTES and text or nil, path
end

-- Slots of a hostfile's lines by host, in order; nil: it is none (launcher/runner.py:217).
local function slots_of(text)
  local hosts, count = {}, 0
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    line = line:match "^%s*(.-)%s*$"
    if line ~= "" and line:sub(1, 1) ~= "#" then
      local host, slots = line:match "^(%S+)%s+slots=(%d+)"
      slots = slots and math.tointeger(tonumber(slots))
      if not host or hosts[host] or not slots or slots > MOST_SLOTS then return nil end
      count = count + 1
      hosts[host], hosts[count] = slots, host
    end
  end
  return count > 0 and hosts or nil
end

-- GPUs that --include leaves: "worker-0@worker-1:0,2"; or nil, and what of it the hostfile has not.
local function included(text, hosts)
  local sum = 0
  for spec in text:gmatch "[^@]+" do
    local host, slots = spec:match "^([^:]+):([%d,]+)$"
    local all = hosts and hosts[host or spec]
    if hosts and not all then return nil, string.format("no host %s", host or spec) end
    if slots then
      for slot in slots:gmatch "%d+" do
        if all and tonumber(slot) >= all then return nil, string.format("no slot %s on %s, which has %d", slot, host, all) end
        sum = sum + 1
      end
    else
      if not all then return nil end
      sum = sum + all
    end
  end
  return sum > 0 and sum or nil
end

local function option(words, first, last, names)
  for i = first, last do
    local text = words[i].text
    for _, name in ipairs(names) do
      if text == name then return words[i + 1] end
      if text:sub(1, #name + 1) == name .. "=" then return lists.with(words[i], { text = text:sub(#name + 2) }) end
    end
  end
end

-- GPUs of a hostfile, as far as DeepSpeed's launcher takes them.
local function gpus_of(launch, words, last)
  local hostfile = option(words, 1, last, { "--hostfile", "-H" })
  local text = hostfile and not hostfile.unknown and beside(launch.file, hostfile.text)
  local hosts = text and slots_of(text)
  local include = option(words, 1, last, { "--include", "-i" })
  if include and not include.unknown then
    local count, lacks = included(include.text, hosts)
    if lacks then
      launch.notes[#launch.notes + 1] = {
        id = "bad_value", severity = "error", file = launch.file, line = include.line, key = "--include", value = include.text,
        message = string.format("DeepSpeed: --include %s: %s has %s", include.text, hostfile.text, lacks),
        source = at "launcher/runner.py: parse_resource_filter" }
    end
    return count and { value = count, file = launch.file, line = include.line, rests = include.rests } or nil
  end
  if not hosts or option(words, 1, last, { "--exclude", "-e" }) then return nil end
  local nodes, each = option(words, 1, last, { "--num_nodes" }), option(words, 1, last, { "--num_gpus", "--num_accelerators" })
  nodes, each = nodes and math.tointeger(tonumber(nodes.text)), each and math.tointeger(tonumber(each.text))
  local sum = 0
  if not (each and each > 0 and each <= MOST_SLOTS) then each = nil end
  for i = 1, math.min(#hosts, nodes and nodes > 0 and nodes or #hosts) do sum = sum + (each or hosts[hosts[i]]) end
  return { value = sum, file = launch.file, line = hostfile.line, rests = hostfile.rests }
end

-- What programs call P and TP on their own command lines (DeepSpeedExamples, GPT-NeoX, Megatron-DeepSpeed).
local degrees = {
  { "PipelineModule.num_stages", { "--pipeline-parallel-size", "--pipeline_parallel_size", "--pipe-parallel-size", "--pipe_parallel_size",
                                   "--pipeline-model-parallel-size", "--num_stages", "--num-stages", "--pp" } },
  { "PipeModelDataParallelTopology.num_mp", { "--model-parallel-size", "--model_parallel_size", "--tensor-model-parallel-size",
                                              "--tensor-parallel-size", "--tp" } },
}

local function add_words(launch, words, from)
  for _, each in ipairs(degrees) do
    local word = option(words, from, #words, each[2])
    if word and word.text:find "^%d+$" and not word.unknown then
      add(launch, each[1], word.text, word.line, { rests = word.rests })
    end
  end
  local short = option(words, from, #words, { "-p" })
  if short and short.text:find "^%d+$" and not short.unknown then
    add(launch, "PipelineModule.num_stages", short.text, short.line,
        { rests = { ["-p being the pipeline's depth, as in DeepSpeedExamples"] = true } })
  end
end

local MOST_COMMAND = 400   -- letters of the line that begins a file's text

-- What a script writes to files itself: { name, text, first: lines before it }. O(text).
local function written(text)
  local list, open, number = {}, nil, 0
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    if open and line == open.tag then
      list[#list + 1] = { name = open.name, text = table.concat(open.lines, "\n") .. "\n", first = open.first }
      open = nil
    elseif open then open.lines[#open.lines + 1] = line
    elseif #line <= MOST_COMMAND then
      local target, tag = line:match "cat%s*>%s*(%S+)%s*<<%s*'([%w_]+)'$"
      if tag then open = { name = text_of.base_name((target:gsub('"', ""))), tag = tag, lines = {}, first = number } end
    end
  end
  return list
end

local function own(list, name)
  for _, each in ipairs(list) do
    if each.name == name then return each end
  end
end

-- The word that names the configuration, and whether Hugging Face's Trainer reads it.
local function config_of(words)
  local word = option(words, 1, #words, { "--deepspeed_config", "--deepspeed-config" })
  if word then return word, false end
  word = option(words, 1, #words, { "--deepspeed" })
  if word and word.text:find "%.h?json$" then return word, true end
end

-- The program that a launcher starts: the first word that ends in .py, or names one that the environment says.
local function program_of(words)
  for i, word in ipairs(words) do
    if word.text:find "%.py$" then return i, word end
  end
end

local function add_given(launch, given)
  local count = given and math.tointeger(tonumber(given.pipeline or ""))
  if count then add(launch, "PipelineModule.num_stages", tostring(count), 0, { file = "command line" }) end
  count = given and math.tointeger(tonumber(given.tensor or ""))
  if count then add(launch, "PipeModelDataParallelTopology.num_mp", tostring(count), 0, { file = "command line" }) end
end

-- mine: what the script writes.
local function launch_of(words, file, counts, mine, given)
  local launch = new(file, words[1].line)
  local config, of_trainer = config_of(words)
  local blocks = {}
  for _, each in ipairs(mine) do
    if each.name:find "%.py$" then blocks[#blocks + 1] = each end
  end
  local found = own(mine, text_of.base_name(config.text))
  if found then add_config(launch, found.text, file, found.first)
  elseif config.unknown then
    for _, missing in ipairs(config.unknown) do
      launch.unresolved[#launch.unresolved + 1] = { key = missing, file = file, line = config.line }
    end
    launch.partial = "its configuration is " .. config.text
  else
    local there, path = beside(file, config.text)
    if there then add_config(launch, there, path, 0) else launch.partial = config.text .. " is not beside it" end
  end
  local place, program = program_of(words)
  add_given(launch, given)
  add_words(launch, words, (place or 1) + 1)
  for _, block in ipairs(blocks) do add_python(launch, block.text, file, block.first) end
  local source, path = nil, nil
  if program and not program.unknown then source, path = beside(file, program.text) end
  if source then add_python(launch, source, path, 0) end
  if source and has_no_pipeline(source) then
    add(launch, "PipelineModule.num_stages", "1", program.line,
        { rests = { ["the model that " .. text_of.base_name(program.text) .. " imports being no PipelineModule"] = true } })
  end
  if of_trainer then add(launch, "PipelineModule.num_stages", "1", config.line) end   -- Trainer has no pipeline
  local last = (place or #words + 1) - 1
  local count = lists.with(counts)
  for i = 1, last do count.launcher = count.launcher or launcher.kinds[text_of.base_name(words[i].text)] end
  launcher.count(count, words, 1, last)
  launch.gpus = count.launcher == "deepspeed" and gpus_of(launch, words, last) or launcher.gpus(count, launch)
  return launch
end

-- Is it a command of DeepSpeed, and none of a fork of Megatron's, which has a model on its command line?
local function starts(words)
  if not config_of(words) then return false end
  for _, word in ipairs(words) do
    if word.text:find "^%-%-num%-layers" then return false end
  end
  return true
end

-- deepspeed.config(text, file, given) → its launch: what the configuration and a hostfile beside it say.
function deepspeed.config(text, file, given)
  if not known then load() end
  local launch = new(file, 1)
  add_config(launch, text, file, 0)
  add_given(launch, given)
  local hostfile, path = beside(file, "hostfile")
  local hosts = hostfile and slots_of(hostfile)
  if hosts then
    local sum = 0
    for i = 1, #hosts do sum = sum + hosts[hosts[i]] end
    launch.gpus = { value = sum, file = path, line = 1 }
  end
  return launch
end

-- deepspeed.read(text, file, variables, given) → launches, none where no command starts DeepSpeed.
function deepspeed.read(text, file, variables, given)
  if not known then load() end
  if not text:find "%-%-deepspeed" then return {} end
  local counts, mine, list = launcher.of_slurm(text), written(text), {}
  script.run(text, file, variables, function(words, _, outer)
    if outer or #list >= 64 or not starts(words) then return end
    list[#list + 1] = launch_of(words, file, counts, mine, given)
  end)
  return list
end

return deepspeed
