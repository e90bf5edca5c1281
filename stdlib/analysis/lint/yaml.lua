-- SPDX-License-Identifier: Apache-2.0
-- yaml.lua: what is wrong with a key of YAML by itself (input/launch/yaml.lua): it is nearly one that the framework's table has, or its
-- value is of another type than it takes. What YAML's types become, the framework decides: FlagScale makes words of a command line of them,
-- which Megatron's parser judges (values.lua); the others hand them on as they are.

local failure = require "pipeplan.base.failure"
local flags = require "pipeplan.input.launch.flags"
local frameworks = require "pipeplan.catalog.frameworks"
local lists = require "pipeplan.base.lists"
local numbers = require "pipeplan.analysis.lint.numbers"

local yaml = {}

-- A setting as its file spells its key.
function yaml.as_written(setting) return setting.written and lists.with(setting, { key = setting.written }) or setting end

-- What a launch's framework is called: NeMo's files are read with the keys of Megatron-Bridge.
local function title(launch, entry) return launch.version or entry.title end

-- ----------------------------------------------------------------------------------------------------------------------------- names

local SHORTEST = 8   -- of a name whose neighbour is a slip, and no other name

local function last_of(key) return key:match "[^.]*$" end

-- Is `name` the degree `known` with one of its words left out: tensor_parallel_size?
local function lacks_word(name, known)
  for from, to in known:gmatch "()_%w+()" do
    if name == known:sub(1, from - 1) .. known:sub(to) then return true end
  end
  return false
end

-- The key of the table that a name is nearly, or nil. Names: what the file may call one → the table's key.
local function meant(name, names)
  local plain, best = name:lower():gsub("-", "_"), nil
  for each, key in pairs(names) do
    local degree = (key.field or ""):find "^parallelism%." and key.type == "integer"
    local near = plain == each or #last_of(each) >= SHORTEST and failure.is_slip(name, each) or degree and lacks_word(name, each)
    if near and (not best or each < best) then best = each end
  end
  return best
end

local function names_of(launch, known)
  local names = {}
  for name, key in pairs(known) do names[name] = key end
  for name, key in pairs(launch.renamed or {}) do names[name] = known[key] end
  return names
end

local function tell_unknown(setting, entry, launch, known, note)
  local name, strangers = setting.written, entry.strangers
  local last = last_of(name)
  if #last < SHORTEST or flags.of_destination(last) then return end
  local near = meant(name, names_of(launch, known))
  if not near then return end
  note { id = "unknown_key", severity = strangers.severity, setting = yaml.as_written(setting), nearest = near, source = strangers.source,
         message = string.format("%s %s %s, which is nearly %s", title(launch, entry),
                                 strangers.severity == "error" and "does not start with" or "does not read", name, near) }
end

-- ---------------------------------------------------------------------------------------------------------------------------- values

local shapes = { map = "a map", list = "a list", null = "null" }

-- Of how many words may a key be?
local function is_one(key) return key.type == "integer" or key.type == "number" or key.type == "fraction" or key.type == "choice" end

-- Of a list of one, that one; of a text, itself.
local function only_text(setting)
  local texts = setting.texts
  return #texts == 1 and texts[1] or nil
end

local truths = { "true", "false" }

local function expected_of(key)
  return frameworks.is_flag(key) and "true or false" or key.type == "integer" and "a whole number" or "a number"
end

-- What is expected of a number's value, and what is nearest; nil: it is one.
local function wrong_number(setting, key)
  local form, text = setting.form, only_text(setting)
  local whole, expected = key.type == "integer", expected_of(key)
  local good = form == "plain" and (whole and numbers.is_whole(text) or not whole and numbers.is_number(text))
  if good then return nil end
  if form == "quoted" and numbers.is_whole(text) then expected = expected .. ", without quotes" end
  return expected, form == "null" and key.default and tostring(key.default) or text and whole and numbers.nearest_whole(text) or nil
end

local function wrong_flag(setting)
  local text = only_text(setting)
  if setting.form == "plain" and numbers.is_number(text) then return nil end
  if setting.form == "quoted" and lists.contains(truths, text:lower()) then return "true or false, without quotes", text:lower() end
  return "true or false", text and failure.nearest(text:lower(), truths) or nil
end

-- A choice is nearly one that there is, or no text.
local function wrong_choice(setting, key)
  local text = only_text(setting)
  if setting.form == "map" or setting.form == "list" then return "one of " .. table.concat(key.values, ", "), nil end
  if not text or lists.contains(key.values, text) then return nil end
  for _, value in ipairs(key.values) do
    if #value >= 4 and failure.is_slip(text:lower(), value:lower()) then return "one of " .. table.concat(key.values, ", "), value end
  end
end

-- What is expected instead of a value, and what of that is nearest; nil: it is of its key's type.
local function wrong(setting, key, entry)
  local form = setting.form
  if form == "true" or form == "false" then
    if frameworks.is_flag(key) or not is_one(key) or key.type == "choice" then return nil end
    return expected_of(key), nil
  end
  if entry.strangers.words then   -- of a command line
    if form == "map" then return expected_of(key), nil end
    if form == "list" and is_one(key) and #setting.texts > 1 then return "one value", nil end
    if frameworks.is_flag(key) and not setting.flag and #setting.values > 0 then return "true or false", nil end
    return nil
  end
  if frameworks.is_flag(key) then return wrong_flag(setting)
  elseif key.type == "integer" or key.type == "number" or key.type == "fraction" then return wrong_number(setting, key)
  elseif key.type == "choice" and entry.strangers.choices then return wrong_choice(setting, key) end
end

local function tell_value(setting, key, entry, launch, note)
  local expected, nearest = wrong(setting, key, entry)
  if not expected then return end
  local dropped = entry.strangers.words and setting.form == "false"   -- false is no word of a command line
  local sure = not dropped and (entry.strangers.words or key.least or (key.field or ""):find "^parallelism%.")
  local text = shapes[setting.form] or "'" .. table.concat(setting.texts, " ") .. "'"
  note { id = "bad_value", severity = sure and "error" or "warning", setting = yaml.as_written(setting), nearest = nearest,
         source = entry.strangers.source,
         message = string.format("%s: %s is %s: expected %s%s", title(launch, entry), setting.written, text, expected,
                                 dropped and ", for this leaves it out" or "") }
  return not dropped and "bad" or "absent"
end

-- Tells what is wrong with a setting of YAML by note{ … }; → nil; bad: its value is none of its key's; absent: it is as if nobody said it.
function yaml.check(setting, entry, launch, known, note)
  for _, word in ipairs(setting.values) do
    if word.unknown then return nil end
  end
  local key = known[setting.key]
  if key then return tell_value(setting, key, entry, launch, note) end
  tell_unknown(setting, entry, launch, known, note)
end

return yaml
