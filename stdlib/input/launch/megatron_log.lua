-- SPDX-License-Identifier: Apache-2.0
-- megatron_log.lua: the block of arguments that Megatron-LM prints when it starts ("---- arguments ----", a resolved value a line):
-- whatever launched it, that is what ran. Lines of other ranks and of loggers may stand around it and before its names.

local flags = require "pipeplan.input.launch.flags"
local frameworks = require "pipeplan.catalog.frameworks"
local text_of = require "pipeplan.base.text"

local log = {}

local MOST_LINES = 20000
local MOST_BYTES = 8192   -- of a line: no value that is read is longer

function log.has(text)
  return text:find("--- arguments ---", 1, true) ~= nil or text:find "tensor_model_parallel_size %.%.%.+ " ~= nil
end

-- Is a flag of argparse's store_false: --no-x, --disable-x whose value is called x?
local function turns_off(flag)
  return flag.kind == "flags" and flag.destination ~= nil and (flag.name:find "^no%-" or flag.name:find "^disable%-")
         and flag.destination ~= (flag.name:gsub("%-", "_"))
end

-- "['a', 'b']", "[1, 2]" → words; else one.
local function words_of(text, line)
  local inner = text:match "^%[(.*)%]$"
  if not inner then return { { text = text, line = line } } end
  local out = {}
  for part in inner:gmatch "[^,%s'\"]+" do out[#out + 1] = { text = part, line = line } end
  return out
end

function log.read(text, file)
  local launch = { framework = "megatron", file = file, settings = {}, spelled = {}, unresolved = {}, resolved = true }
  local known, seen = {}, {}
  for _, key in ipairs(frameworks.find("megatron").keys) do known[key.key] = key end
  local number, inside = 0, false
  for line in text:gmatch "([^\n]*)\n?" do
    number = number + 1
    if line:find("--- end of arguments ---", 1, true) then break end
    if line:find("--- arguments ---", 1, true) then inside, launch.line = true, number end
    local name, value
    if #line <= MOST_BYTES then name, value = line:match "%f[%w_]([%a_][%w_]*) %.%.+ (.*)$" end
    value = value and text_of.without_end(value)
    if name and not seen[name] and #launch.settings < MOST_LINES then
      seen[name] = true
      launch.line = launch.line or number
      local flag = flags.of_destination(name)
      if name == "world_size" then
        local count = math.tointeger(tonumber(value))
        if count and count > 0 then launch.gpus = { key = "world_size", value = count, file = file, line = number } end
      elseif name == "virtual_pipeline_model_parallel_size" then
        local count = math.tointeger(tonumber(value))
        if count then launch.virtual = { key = name, value = count, file = file, line = number } end
      elseif flag and known["--" .. flag.name] and value ~= "None" then
        local on = value == "True" or value == "1"
        if turns_off(flag) then on = not on end
        local setting = { key = "--" .. flag.name, file = file, line = number, flag = flag, resolved = true,
                          values = words_of(value, number) }
        if flag.kind == "flags" then
          setting.off, setting.values = not on, {}
          if not on and known[setting.key].present == nil then setting = nil end
        end
        launch.settings[#launch.settings + 1] = setting
      end
    elseif inside and number > MOST_LINES then break end
  end
  return launch
end

return log
