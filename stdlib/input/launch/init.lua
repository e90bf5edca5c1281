-- SPDX-License-Identifier: Apache-2.0
-- init.lua: a file that starts a training run → the launches in it, whatever language it is in. A launch is
--   { framework, version, file, line, program, settings = { setting, … }, gpus = setting or nil, unresolved = { { key, file, line }, … },
--     partial: why absent keys are not known, or nil; open: a word that may be any arguments; resolved: it is what a run printed;
--     notes = { finding, … }, judged = false: a run of a kind that is not judged; csv = { text, line }: its schedule's program;
--     sets: key → value, of what a name that is said sets itself; renamed: names of its file → keys of the table }
-- A setting is { key: as the framework's table has it, values = { word, … }, file, line, rests, flag }; a word is that of shell_script.lua.
-- One of YAML also has written: its key in the file, form: map, list, null, true, false, quoted or plain, and texts: its scalars.

local failure = require "pipeplan.base.failure"
local reading = require "pipeplan.base.reading"
local text_of = require "pipeplan.base.text"

local launch = {}

local MOST_BYTES = 2 ^ 20   -- of a script; of a log its beginning is read

local function read_text(path)
  local handle, name = reading.given(path)
  local text, problem = handle:read(MOST_BYTES + 1)
  reading.close(handle)
  if problem then failure.usage("%s: cannot be read: %s", name, problem) end
  return text or "", name
end

local what = "pipeplan lint reads shell scripts with Megatron's, torchtitan's or Megatron-Bridge's arguments, or that start DeepSpeed, "
             .. "DeepSpeed's configuration, the argument block of Megatron's log, and YAML of FlagScale, Megatron-Bridge, NeMo, Primus and "
             .. "Megatron's MODEL_ARGS"

local function refuse(name, problem) failure.usage("%s: %s; %s", name, problem, what) end

-- Is a text, of a file that might be anything's, DeepSpeed's configuration?
local function is_deepspeed(text)
  return text:find "[\"']?train_batch_size[\"']?%s*:" ~= nil or text:find "[\"']?train_micro_batch_size_per_gpu[\"']?%s*:" ~= nil
         or text:find "[\"']zero_optimization[\"']%s*:" ~= nil
end

-- Is a file in JSON a launch configuration, by what its beginning has, where a spec might be meant?
function launch.is_configuration(path)
  if not path:find "%.h?json$" then return false end
  local handle = reading.open(path, "regular")
  if not handle then return false end
  local text = handle:read(2 ^ 16) or ""
  handle:close()
  return is_deepspeed(text)
end

-- A shell's lines end with a newline alone (POSIX.1-2024, Shell Command Language, 2.3).
local function tell_carriage_return(launches, text)
  local at = text:find("\r\n", 1, true)
  if not at then return end
  local _, before = text:sub(1, at):gsub("\n", "")
  local notes = launches[1].notes or {}
  notes[#notes + 1] = {
    id = "carriage_return", severity = "error", line = before + 1,
    source = "POSIX.1-2024, Shell Command Language, 2.3: Token Recognition",
    message = "the line ends with a carriage return, which a shell takes for a letter of its last word: expected lines that end with a "
              .. "newline alone (sed -i 's/\\r$//')",
  }
  launches[1].notes = notes
end

-- launch.read(path, { variables = { name = text }, given: fields of a spec that the command line says }) → launches, at least one.
function launch.read(path, options)
  local text, name = read_text(path)
  text = text_of.unmarked(text)
  local log = require "pipeplan.input.launch.megatron_log"
  if log.has(text) then return { log.read(text, name) } end
  if #text > MOST_BYTES then refuse(name, "larger than 1 MiB") end
  if text:find "\0" then refuse(name, "holds bytes of no text") end
  if text:find "^%s*$" then refuse(name, "is empty") end
  local kind = path:match "%.([%w]+)$"
  if kind == "py" then
    failure.usage("%s: a recipe is a program, and none is run: print it with cfg.print_yaml() and lint that, or the run_config.yaml of a "
                  .. "checkpoint", name)
  end
  if kind == "yaml" or kind == "yml" then return require("pipeplan.input.launch.yaml").read(text, name, options or {}) end
  local deepspeed, given, variables = require "pipeplan.input.launch.deepspeed", options and options.given, options and options.variables
  local is_json = kind == "json" or kind == "hjson"
  if is_json and is_deepspeed(text) then return { deepspeed.config(text, name, given) } end
  if is_json or kind == "toml" then return require("pipeplan.input.launch.others").read(text, name, kind, what) end
  local launches = require("pipeplan.input.launch.torchtitan").read(text, name, variables)
  if #launches == 0 then launches = require("pipeplan.input.launch.bridge").read(text, name, variables) end
  if #launches == 0 then launches = deepspeed.read(text, name, variables, given) end
  if #launches == 0 then launches = require("pipeplan.input.launch.megatron_script").read(text, name, variables) end
  if #launches == 0 then refuse(name, "has no argument of a framework") end
  tell_carriage_return(launches, text)
  return launches
end

return launch
