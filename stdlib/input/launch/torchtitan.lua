-- SPDX-License-Identifier: Apache-2.0
-- torchtitan.lua: a command line of torchtitan in a shell script → its launch: --module and --config, --section.key, and the class of
-- activation checkpointing behind them. Read as tyro does (torchtitan 0.3.0, tyro 1.0: run): - and _ are the same, a switch is turned off
-- by --section.no-key, a list takes all words up to the next option, and what stands behind a class is its own.

local failure = require "pipeplan.base.failure"
local files = require "pipeplan.input.files"
local frameworks = require "pipeplan.catalog.frameworks"
local launcher = require "pipeplan.input.launch.launcher"
local lists = require "pipeplan.base.lists"
local models = require "pipeplan.catalog.frameworks.torchtitan_models"
local reading = require "pipeplan.base.reading"
local script = require "pipeplan.input.launch.shell_script"
local text_of = require "pipeplan.base.text"

local torchtitan = {}

local MOST_BYTES = 2 ^ 24   -- of a CSV

-- Sections whose keys are all in the table.
local whole = { parallelism = true, training = true, compile = true }

local source = "torchtitan 0.3.0 @ https://github.com/pytorch/torchtitan/tree/v0.3.0, config/manager.py, config/configs.py: run"

local known

local function load()
  known = {}
  for _, key in ipairs(frameworks.find("torchtitan").keys) do known[key.key] = key end
end

local kinds = { integer = "integers", number = "numbers", choice = "choices", flag = "flags", list = "lists" }

-- What argparse's kind of a key is, as analysis/lint/values.lua wants it.
local function flag_of(key)
  if not key then return nil end
  local kind = kinds[key.type] or "strings"
  if key.key == "parallelism.pipeline_parallel_schedule" then kind = "strings" end   -- whatever its case
  return { name = key.key, kind = kind, values = key.values }
end

-- "--training.no-disable_cuda_graphs" → training.disable_cuda_graphs, nil, true; "--a.b=c" → a.b, c.
local function option_of(text)
  local name, value = text:match "^%-%-([%w_.-]+)=(.*)$"
  name = (name or text:match "^%-%-([%w_.-]+)$" or ""):gsub("%-", "_")
  if name == "" then return nil end
  local section, key = name:match "^(.-)%.no_([%w_]+)$"
  local off = section and known[section .. "." .. key]
  if off and off.type == "flag" then return off.key, value, true end
  return name, value, false
end

local function class_of(text)
  local name, class = text:match "^(activation[_-]checkpoint):([%w-]+)$"
  return name and class
end

-- Does a command start torchtitan?
local function starts(words)
  local module, config, section
  for _, word in ipairs(words) do
    if word.text:find "^torchtitan" then return true end
    module, config = module or word.text:find "^%-%-module=?", config or word.text:find "^%-%-config=?"
    section = section or word.text:find "^%-%-parallelism%." or word.text:find "^%-%-training%.%a"
  end
  return (module and config or section) ~= nil
end

local function unknown_key(launch, setting, note)
  local section = setting.key:match "^([%w_]+)%."
  local names = {}
  for _, gone in ipairs(frameworks.find("torchtitan").gone) do
    if gone.key == setting.key then return end   -- told by its rule
  end
  if not whole[section] then return end
  for name in pairs(known) do names[#names + 1] = name end
  table.sort(names)
  local near = failure.nearest(setting.key, names)
  note { id = "unknown_key", severity = "error", line = setting.line, key = setting.key, nearest = near and "--" .. near, source = source,
         file = launch.file, message = "torchtitan does not know --" .. setting.key .. " and does not start with it" }
end

local function add_unresolved(launch, word)
  for _, missing in ipairs(word.unknown or {}) do
    launch.unresolved[#launch.unresolved + 1] = { key = missing, file = launch.file, line = word.line }
  end
end

-- Words behind the program → settings.
local function settings_of(words, from, launch)
  local function note(finding) launch.notes[#launch.notes + 1] = finding end
  local i, last, class = from, nil, nil
  while i <= #words do
    local word = words[i]
    local name, inline, off = option_of(word.text)
    i = i + 1
    if word.open or not name and word.unknown then
      launch.open = launch.open or word
      add_unresolved(launch, word)
    elseif class_of(word.text) then
      class = { key = "activation_checkpoint", file = launch.file, line = word.line,
                values = { { text = class_of(word.text), line = word.line } } }
      class.flag = flag_of(known.activation_checkpoint)
      launch.settings[#launch.settings + 1] = class
    elseif not name then
      note { id = "stray_word", severity = "error", line = word.line, key = last and last.key, value = word.text, source = source,
             message = string.format("torchtitan: '%s' stands behind no option: it is refused", word.text) }
    else
      local key = known[name]
      local setting = { key = name, file = launch.file, line = word.line, rests = word.rests, off = off, values = {}, flag = flag_of(key) }
      if class and not name:find "^activation_checkpoint%." then
        note { id = "misplaced", severity = "error", line = word.line, key = name, source = source,
               message = string.format("torchtitan: --%s stands behind activation_checkpoint:%s and is taken for its own: it is refused",
                                       name, class.values[1].text) }
      end
      local most = inline and 0 or key and (key.type == "flag" and 0 or key.type == "list" and 10000 or 1) or 1
      if inline then setting.values[1] = lists.with(word, { text = inline, open = false }) end
      while words[i] and #setting.values < most do
        local following = words[i]
        if following.text:find "^%-%-" and not following.open then break end
        if key and key.type == "list" and following.open then break end
        if key and key.type == "list" and class_of(following.text) then
          note { id = "class_in_list", severity = "error", line = following.line, key = name, value = following.text, source = source,
                 nearest = "another option before it",
                 message = string.format("torchtitan takes '%s' for one more item of --%s, a list: no class is chosen", following.text,
                                         name) }
        end
        setting.values[#setting.values + 1] = following
        i = i + 1
      end
      for _, value in ipairs(setting.values) do add_unresolved(launch, value) end
      launch.settings[#launch.settings + 1] = setting
      launch.spelled[name], last = true, setting
      if not key then unknown_key(launch, setting, note) end
    end
  end
end

-- The CSV that a script writes itself: cat >"$schedule" <<'CSV' … CSV; by what stands behind the key, as the script has it.
local function written(text, word)
  for target, tag, from in text:gmatch "cat%s*>%s*(%S+)%s*<<%s*'([%w_]+)'\n()" do
    local stop = text:find("\n" .. tag .. "\n", from - 1, true)
    local name = target:gsub('^"(.*)"$', "%1")
    if stop and (name == word.text or word.unknown and text:find('schedule_csv[ =]+"?' .. name:gsub("%W", "%%%0") .. '"?[%s\\]')) then
      return text:sub(from, stop - 1)
    end
  end
end

-- launch.program: { text, line } of the CSV that the key names; nil: it cannot be read.
local function add_program(launch, text)
  for _, setting in ipairs(launch.settings) do
    local word = setting.key == "parallelism.pipeline_parallel_schedule_csv" and setting.values[1]
    if word and word.text ~= "" then
      local own = written(text, word)
      local path = not word.unknown and (word.text:sub(1, 1) == "/" and word.text or files.directory_of(launch.file) .. word.text)
      local handle = not own and path and reading.open(path, "regular")
      if handle then
        own = handle:read(MOST_BYTES + 1)
        handle:close()
      end
      launch.csv = own and #own <= MOST_BYTES and { text = own, line = setting.line } or nil
      if own and word.unknown then   -- a file of the script's own
        setting.values = { { text = "schedule", line = word.line } }
        for i = #launch.unresolved, 1, -1 do
          if launch.unresolved[i].key == word.unknown[1] then table.remove(launch.unresolved, i) end
        end
      end
    end
  end
end

-- Where the arguments of torchtitan begin.
local function first_option(words)
  for i, word in ipairs(words) do
    local name = option_of(word.text)
    if name and (known[name] or name:find "^parallelism%." or name:find "^training%.") then return i end
  end
  return #words + 1
end

-- What the configuration function sets, as far as it is known.
local function add_configuration(launch)
  local said = {}
  for _, setting in ipairs(launch.settings) do
    local word = setting.values[1]
    said[setting.key] = word and not word.unknown and word.text or nil
  end
  local model = models.find(said.module, said.config)
  if model then launch.sets = model.sets else launch.presets = "the configuration function" end
end

local function launch_of(words, file, counts, text)
  local launch = { framework = "torchtitan", file = file, settings = {}, spelled = {}, unresolved = {}, notes = {},
                   program = "torchtitan.train", line = words[1] and words[1].line }
  local from = first_option(words)
  local mine = lists.with(counts)
  for i = 1, from - 1 do mine.launcher = mine.launcher or launcher.kinds[text_of.base_name(words[i].text)] end
  launcher.count(mine, words, 1, from - 1)
  launch.gpus = launcher.gpus(mine, launch)
  settings_of(words, from, launch)
  if #launch.settings == 0 then return nil end
  add_configuration(launch)
  add_program(launch, text)
  return launch
end

-- torchtitan.read(text, file, variables) → launches, none where no command starts torchtitan.
function torchtitan.read(text, file, variables)
  if not known then load() end
  if not (text:find("torchtitan", 1, true) or text:find("--module", 1, true) or text:find("--parallelism.", 1, true)) then return {} end
  local counts, list = launcher.of_slurm(text), {}
  script.run(text, file, variables, function(words, _, outer)
    if outer or #list >= 64 or not starts(words) then return end
    list[#list + 1] = launch_of(words, file, counts, text)
  end)
  return list
end

return torchtitan
