-- SPDX-License-Identifier: Apache-2.0
-- values.lua: the settings of a launch (input/launch) by the keys of its framework's table: what each key is set to, or what holds when
-- nobody says; and what is wrong with a key by itself: not known, gone, without a value, of another type, said twice.
--
-- values.of(launch, entry, note) → get(base key) → { value, given, setting, rests, unknown }: value nil where nobody says and nothing holds
-- then; unknown: the names of what is not known, instead of a value. A key's base is what the framework that it is derived from calls it.

local failure = require "pipeplan.base.failure"
local flags = require "pipeplan.input.launch.flags"
local frameworks = require "pipeplan.catalog.frameworks"
local lists = require "pipeplan.base.lists"
local numbers = require "pipeplan.analysis.lint.numbers"
local vocabulary = require "pipeplan.vocabulary"
local yaml = require "pipeplan.analysis.lint.yaml"

local values = {}

local function text_of(setting)
  local texts = {}
  for i, word in ipairs(setting.values) do texts[i] = word.text end
  return table.concat(texts, " ")
end
values.text_of = text_of

local function names_of(setting)
  local names = {}
  for _, word in ipairs(setting.values) do
    for _, name in ipairs(word.unknown or {}) do names[#names + 1] = name end
  end
  return #names > 0 and names or nil
end

local function rests_of(setting)
  local rests = setting.rests
  for _, word in ipairs(setting.values) do
    if word.rests then rests = lists.with(rests or {}, word.rests) end
  end
  return rests
end

-- ------------------------------------------------------------------------------------------------------------------ a key by itself

-- Who says what a key may be.
local function said_by(entry) return entry.argparse or entry.source end

local function set_of(list)
  local set = {}
  for _, name in ipairs(list) do set[name] = true end
  return set
end

-- Programs of Megatron-LM that train, of @d98e8a64 and before: they add no arguments beside those of flags.lua, and those that it has from
-- elsewhere. What others are called, such as pretrain_qwen.py, may add any.
local trainers = set_of {
  "pretrain_gpt.py", "pretrain_hybrid.py", "pretrain_mamba.py", "pretrain_vlm.py", "train_rl.py", "pretrain_bert.py", "pretrain_t5.py",
  "pretrain_ict.py", "pretrain_retro.py", "pretrain_vision_classify.py", "pretrain_vision_dino.py", "pretrain_vision_inpaint.py",
}

local function is_trainer(program) return program == "torchtitan.train" or program ~= nil and trainers[program] == true end

-- What is an error in a trainer's arguments may be right in those of another program, which has its own parser, or one of another version.
local function severity_in(launch) return (launch.program == nil or is_trainer(launch.program)) and "error" or "warning" end

local function gone_of(entry, key)
  for _, gone in ipairs(entry.gone) do
    if gone.key == key or entry.base and gone.key == "--" .. key:gsub("_", "-") then return gone end
  end
end

local function tell_gone(setting, entry, gone, severity, note)
  local how = { refused = "refuses %s: it is gone", unrecognized = "does not know %s any more",
                ignored = "takes %s, warns about it on one rank and ignores it", renamed = "still takes %s, with a warning" }
  local ids = { ignored = "ignored_key", renamed = "renamed_key" }
  note { id = ids[gone.how] or "gone_key", severity = gone.how == "renamed" and "note" or severity, setting = setting, source = gone.source,
         nearest = gone.now, message = string.format("%s %s%s", entry.title, string.format(how[gone.how], setting.key),
                                                     gone.now and ": now " .. gone.now or "") }
end

local function tell_unknown(setting, entry, launch, known, note)
  local names = lists.with(flags.names())
  for key in pairs(known) do names[#names + 1] = key:match "^%-%-(.*)$" end
  local near = failure.nearest(setting.key:match "^%-%-(.*)$" or setting.key, names)
  local sure = is_trainer(launch.program)
  if sure and near and near:sub(1, #setting.key - 2) == setting.key:sub(3) and near ~= setting.key:sub(3) then
    note { id = "unknown_key", severity = "error", setting = setting, nearest = "--" .. near, source = said_by(entry),
           message = string.format("%s takes no abbreviation: %s is refused", entry.title, setting.key) }
    return
  end
  if not sure and near and not failure.is_slip(near, setting.key:sub(3)) then near = nil end   -- a key of the program's own
  note { id = "unknown_key", severity = sure and "error" or near and "warning" or "note", setting = setting,
         nearest = near and "--" .. near, source = said_by(entry),
         message = sure and string.format("%s does not know %s and does not start with it", entry.title, setting.key)
                   or string.format("%s is no argument of %s: it starts only where the program adds it", setting.key, entry.title) }
end

-- What argparse says of a flag's words. A pattern without a bracket is one number (arguments.py: moe_freq_type).
local function tell_words(setting, key, entry, severity, note)
  local flag, words = setting.flag, setting.values
  if not flag or names_of(setting) then return end
  local function bad(expected, nearest, how)
    note { id = "bad_value", severity = how or "error", setting = setting, nearest = nearest, source = said_by(entry),
           message = string.format("%s: %s is '%s': expected %s", entry.title, setting.key, text_of(setting), expected) }
  end
  if flag.kind == "flags" and #words > 0 and not setting.resolved then
    bad "nothing behind it"
  elseif (flag.kind == "integers" or flag.kind == "numbers" or flag.kind == "strings" or flag.kind == "choices") and #words == 0 then
    note { id = "no_value", severity = "error", setting = setting, source = said_by(entry),
           message = string.format("%s: %s wants a value", entry.title, setting.key) }
  elseif flag.kind == "integers" and not numbers.is_whole(words[1].text) then
    bad("a whole number", numbers.nearest_whole(words[1].text))
  elseif flag.kind == "numbers" and not numbers.is_number(words[1].text) then bad "a number"
  elseif flag.kind == "choices" and not lists.contains(flag.values, words[1].text) then
    bad("one of " .. table.concat(flag.values, ", "), failure.nearest(words[1].text, flag.values), severity)
  elseif key and key.type == "pattern" and words[1] and not text_of(setting):find("[", 1, true) and not numbers.is_whole(words[1].text) then
    bad "a whole number, or a list of 0 and 1 such as ([0]*3+[1]*58)"
  end
end

-- The same of an override of Megatron-Bridge's, which no parser has seen before the recipe does (run).
local function tell_override(setting, key, entry, note)
  if names_of(setting) or key.type ~= "integer" then return end
  for _, word in ipairs(setting.values) do
    if not numbers.is_whole(word.text) then
      note { id = "bad_value", severity = "error", setting = setting, source = said_by(entry),
             nearest = numbers.nearest_whole(word.text) or word.text == "null" and key.default and tostring(key.default) or nil,
             message = string.format("%s: %s is '%s': expected a whole number", entry.title, setting.key, word.text) }
      return
    end
  end
end

-- Degrees and sizes of which there is at least one.
local function tell_range(setting, key, entry, note)
  local least = key.least or key.positive and 1 or key.type == "integer" and (key.field or ""):find "^parallelism%.[^l]" and 1
  local counted = least and not names_of(setting) and setting.values[1]
  local value = counted and numbers.any_whole(setting.values[1].text)
  if not value or key.unset and key.unset(value) then return end
  local limits = vocabulary.most
  local most = (key.field or ""):find "^parallelism" and limits.gpus or key.field == "model.layers" and limits.layers or limits.counted
  if value < least or value > most then
    note { id = "bad_value", severity = "error", setting = setting, nearest = tostring(value < least and least or most),
           source = said_by(entry),
           message = string.format("%s: %s is %s: expected %s", entry.title, setting.key, setting.values[1].text,
                                   value < least and "at least " .. least or "fewer: nothing is so large") }
  end
end

-- Tells what is wrong with a setting; → as yaml.check.
local function check_one(setting, entry, launch, known, note)
  local key = known[setting.key]
  local gone = gone_of(entry, setting.key)
  if key and gone and (gone.how ~= "renamed" or setting.off) then gone = nil end
  local severity = severity_in(launch)
  if gone then tell_gone(setting, entry, gone, severity, note)
  elseif entry.argparse and not setting.flag and not key and not setting.resolved then
    tell_unknown(setting, entry, launch, known, note)
  elseif entry.argparse and setting.flag and setting.flag.kind == "elsewhere" then
    note { id = "unknown_key", severity = "note", setting = setting, source = said_by(entry),
           message = setting.key .. " is an argument of other programs of " .. entry.title .. ", not of its trainers" }
  end
  local wrong = setting.form and yaml.check(setting, entry, launch, known, note)
  if not wrong and not setting.resolved and (entry.argparse or key) then tell_words(setting, key, entry, severity, note) end
  if key and launch.program == "run_recipe.py" then tell_override(setting, key, entry, note) end
  if key and not wrong then tell_range(yaml.as_written(setting), key, entry, note) end
  local placeholder = setting.stray and setting.stray.text:find "[<>]"   -- "<some dir>/x", which somebody will replace
  -- a program of one's own may take words; one that is given a model is Megatron's parser
  local parses = is_trainer(launch.program) or launch.spelled["--num-layers"] and launch.spelled["--micro-batch-size"]
  local stray = setting.stray and not placeholder and not names_of { values = { setting.stray } }
  if stray and parses and entry.argparse and not launch.partial then
    note { id = "stray_word", severity = "error", setting = { key = setting.key, file = setting.file, line = setting.stray.line,
                                                              values = { setting.stray } }, source = said_by(entry),
           message = string.format("%s: '%s' stands behind no argument: it is refused (are quotes missing where a variable is used?)",
                                   entry.title, setting.stray.text) }
  end
  return wrong
end

-- --------------------------------------------------------------------------------------------------------------------------- values

-- What a log and a run_config.yaml call dtypes that arguments name (arguments.py: map_dtype).
local dtypes = { ["torch.float32"] = "fp32", ["torch.bfloat16"] = "bf16", ["torch.float16"] = "fp16", ["torch.uint8"] = "fp8" }

-- The value of a key from its words; nil: they are none of its type.
local function typed(key, setting)
  local words = setting.values
  if frameworks.is_flag(key) then
    if not setting.off then return key.present end
    if type(key.present) == "boolean" then return not key.present end
    return key.default
  elseif key.type == "integer" then return words[1] and numbers.whole(words[1].text)
  elseif key.type == "fraction" or key.type == "number" then return words[1] and tonumber(words[1].text)
  elseif key.type == "list" then
    local out = {}
    for _, word in ipairs(words) do
      for part in word.text:gmatch "[^%s,%[%]'\"]+" do out[#out + 1] = part end
    end
    return out
  end
  return words[1] and (dtypes[words[1].text] or words[1].text)
end

-- note{ id, severity, message, setting, nearest, source } takes each finding.
function values.of(launch, entry, note)
  local known, by_base, said = {}, {}, {}
  for _, key in ipairs(entry.keys) do
    known[key.key] = key
    by_base[key.base or key.key] = key
  end
  local last, told, bad = {}, {}, {}
  for _, given in ipairs(launch.notes or {}) do
    if given.id == "duplicate_key" then told[given.line] = true end
  end
  for _, setting in ipairs(launch.settings) do
    local wrong = check_one(setting, entry, launch, known, note)
    local before = last[setting.key]
    if before and not setting.resolved and not told[setting.line] then
      local same = text_of(before) == text_of(setting)
      note { id = "given_twice", severity = (same or names_of(before) or names_of(setting)) and "note" or "warning", setting = setting,
             source = said_by(entry),
             message = string.format("%s was said at line %d already%s: the last one holds", setting.key, before.line,
                                     same and "" or " as " .. text_of(before)) }
    end
    last[setting.key] = setting
    local key = known[setting.key]
    if key and wrong ~= "absent" then said[key.base or key.key] = setting end
    if wrong == "bad" then bad[setting] = true end
  end

  local from_checkpoint = launch.spelled["--use-checkpoint-args"]
  -- What it rests on that nobody says a key: arguments that are not known.
  local open = launch.open
  local open_rests = open and set_of(launch.open_names or { open.unknown and open.unknown[1] or open.text }) or nil

  local function get(base)
    local key, setting = by_base[base], said[base]
    if not key then return { given = false } end
    if setting then
      local names = names_of(setting)
      if names and key.type ~= "flag" then return { given = true, setting = setting, key = key, unknown = names } end
      local value = typed(key, setting)
      if bad[setting] or value == nil and key.type ~= "flag" then
        return { given = true, setting = setting, key = key, unknown = { setting.key } }
      end
      return { value = value, given = true, setting = setting, key = key, rests = rests_of(setting) }
    end
    local preset = launch.sets and launch.sets[key.key]   -- by what names the model
    if preset ~= nil then return { value = preset, given = false, key = key, rests = open_rests } end
    local layout = (key.field or ""):find "^parallelism%." or key.key:find "^parallelism%."
    if launch.partial or launch.presets and not layout then
      return { given = false, key = key, unknown = { key.key } }
    end
    if from_checkpoint and (key.field or ""):find "^model%." then return { given = false, key = key, unknown = { "the checkpoint" } } end
    if launch.presets then return { value = key.default, given = false, key = key, rests = { [launch.presets] = true } } end
    return { value = key.default, given = false, key = key, rests = open_rests }
  end
  return get, known
end

return values
