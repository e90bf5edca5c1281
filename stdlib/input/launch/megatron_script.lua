-- SPDX-License-Identifier: Apache-2.0
-- megatron_script.lua: a shell script that starts Megatron-LM → the flags that its program would get, with the line of each, and on how
-- many GPUs. A script that only passes flags on to another script, or only keeps them in variables, is read too: what it does not say is
-- then not known, instead of what Megatron takes when nobody says.

local failure = require "pipeplan.base.failure"
local flags = require "pipeplan.input.launch.flags"
local launcher = require "pipeplan.input.launch.launcher"
local lists = require "pipeplan.base.lists"
local script = require "pipeplan.input.launch.shell_script"
local text_of = require "pipeplan.base.text"

local megatron_script = {}

local function flag_of(word)
  local name, value = word.text:match "^(%-%-[%w_][%w_%-]*)=(.*)$"
  if name then return name, lists.with(word, { text = value, open = false }) end
  return word.text:match "^(%-%-[%w_][%w_%-]*)$", nil
end

-- Is a word a flag of Megatron, and not only one that every program has?
local function is_megatron(word)
  local name = not word.open and flag_of(word)
  local found = name and flags.find(name)
  return found and found.kind ~= "elsewhere" and #found.name > 4
end

-- Words behind the program → settings. Words that belong to no flag, and flags without their value, are told as `wrong`.
local function settings_of(words, from, launch)
  local i = from
  while i <= #words do
    local word = words[i]
    local name, inline = flag_of(word)
    if word.open or not name and word.unknown then  -- any arguments
      launch.open = launch.open or word
      launch.open_names = launch.open_names or {}
      if #launch.open_names < 4 then launch.open_names[#launch.open_names + 1] = word.unknown[1] end
      launch.unresolved[#launch.unresolved + 1] = { key = word.unknown[1], file = launch.file, line = word.line }
      i = i + 1
    elseif not name then
      if word.text ~= "" and #launch.settings > 0 then
        launch.settings[#launch.settings].stray = launch.settings[#launch.settings].stray or word
      end
      i = i + 1
    else
      local known = flags.find(name)
      local setting = { key = name, file = launch.file, line = word.line, rests = word.rests, flag = known, values = {} }
      i = i + 1
      if inline then setting.values[1] = inline
      else
        local most = not known and 32 or known.kind == "flags" and 0 or (known.kind == "lists" or known.kind == "elsewhere") and 1024 or 1
        while words[i] and #setting.values < most do
          local next_one = words[i]
          if not next_one.open and next_one.text:find "^%-" and not next_one.text:find "^%-[%d.]" and next_one.text ~= "-" then break end
          if next_one.open and #setting.values > 0 then   -- the first word of a list is its own; one more may be anything
            setting.rests = lists.with(setting.rests or {}, { [next_one.unknown[1]] = true })
            break
          end
          setting.values[#setting.values + 1] = next_one
          i = i + 1
        end
      end
      launch.settings[#launch.settings + 1] = setting
      launch.spelled[name] = true
      for _, value in ipairs(setting.values) do
        for _, missing in ipairs(value.unknown or {}) do
          launch.unresolved[#launch.unresolved + 1] = { key = missing, file = launch.file, line = value.line }
        end
      end
    end
  end
end

-- Where among the words the program stands: the last .py before Megatron's flags; or that of -m MODULE.
local function program_at(words)
  for i, word in ipairs(words) do
    if word.text:find "%.py$" and not word.text:find "^%-%-" then return i end
  end
  for i, word in ipairs(words) do
    if word.text == "-m" and words[i + 1] and not words[i + 1].text:find "^torch" then return i + 1 end
  end
end

-- Primus' own commands take its keys, with underscores, beside an experiment in YAML.
local function refuse_primus(words, file)
  for _, word in ipairs(words) do
    if text_of.base_name(word.text):find "^primus%-cli" or word.text:find "primus/cli/main%.py$" then
      failure.usage("%s:%d: a command of Primus: lint the experiment of its --config, and write its overrides there", file, word.line)
    end
  end
end

local function launch_of(words, file, counts)
  local launch = { framework = "megatron", file = file, settings = {}, spelled = {}, unresolved = {}, rests = nil }
  local program, flagged = program_at(words), 0
  for i = (program or 0) + 1, #words do
    if is_megatron(words[i]) then flagged = flagged + 1 end
  end
  if flagged == 0 then return nil end
  refuse_primus(words, file)
  if program then
    launch.program = text_of.base_name(words[program].text)
    launch.line = words[program].line
    local mine = lists.with(counts)
    for i = 1, program - 1 do mine.launcher = mine.launcher or launcher.kinds[text_of.base_name(words[i].text)] end
    launcher.count(mine, words, 1, program - 1)
    launch.gpus = launcher.gpus(mine, launch)
    settings_of(words, program + 1, launch)
  else
    launch.partial = "the flags go to another script"
    for i, word in ipairs(words) do
      if word.text:find "^%-%-" then
        launch.line = word.line
        settings_of(words, i, launch)
        break
      end
    end
    local mine = lists.with(counts)
    launcher.count(mine, words, 1, #words)
    launch.gpus = launcher.gpus(mine, launch)
  end
  return launch
end

-- All flags that variables of the script hold, where no command has any.
local function of_variables(variables, file)
  local best
  local launch = { framework = "megatron", file = file, settings = {}, spelled = {}, unresolved = {},
                   partial = "no command of this file has the flags: they stand in variables" }
  for _, name in ipairs(lists.sorted_keys(variables)) do
    local words, flagged = script.words(variables[name]), 0
    for _, word in ipairs(words) do flagged = flagged + (is_megatron(word) and 1 or 0) end
    if flagged > 0 then
      for i, word in ipairs(words) do
        if word.text:find "^%-%-" or word.open then
          settings_of(words, i, launch)
          break
        end
      end
      best = true
    end
  end
  table.sort(launch.settings, function(a, b) return a.line < b.line end)
  return best and launch or nil
end

-- megatron_script.read(text, file, { name = text of a variable }) → launches, or an empty list where the script has no flag of Megatron.
function megatron_script.read(text, file, variables)
  local counts, launches, tasks = launcher.of_slurm(text), {}, nil
  local held = script.run(text, file, variables, function(words, _, outer)
    if outer then  -- srun … bash -c "…": what it counts holds for what it runs
      tasks = lists.with(counts)
      launcher.count(tasks, words, 1, #words)
      return
    end
    local launch = launch_of(words, file, tasks or counts)
    if launch and #launches < 64 then launches[#launches + 1] = launch end
  end)
  if #launches == 0 then launches[1] = of_variables(held, file) end
  local whole = {}
  for _, launch in ipairs(launches) do
    if not launch.partial then whole[#whole + 1] = launch end
  end
  -- of calls of another script the one that says most
  if #whole == 0 and #launches > 0 then whole[1] = lists.largest(launches, function(launch) return #launch.settings end) end
  return whole, held
end

return megatron_script
