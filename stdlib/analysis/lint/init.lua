-- SPDX-License-Identifier: Apache-2.0
-- init.lua: what is wrong with a launch configuration, by the rules of its framework's table, and what it amounts to. Nothing is run.
--
-- lint.of(launch, { gpus = number or nil }) → { framework, version, file, findings, unresolved, missing, undecided, record, trace }. A
-- finding is { id, severity, message, file, line, key, value, nearest, source, conditional }; conditional: what it rests on, nil if on
-- nothing.

local facts = require "pipeplan.analysis.lint.facts"
local frameworks = require "pipeplan.catalog.frameworks"
local lists = require "pipeplan.base.lists"
local rules = require "pipeplan.analysis.lint.rules"
local values = require "pipeplan.analysis.lint.values"

local lint = {}

local ranks = { error = 3, warning = 2, note = 1 }

-- "NNODES as by default, and the condition at line 12 taken": what somebody may say otherwise.
local function conditional(rests)
  local list = lists.sorted_keys(rests or {})
  if #list == 0 then return nil end
  for i, name in ipairs(list) do
    if name:find " line " then list[i] = name .. ", the first way of which was taken"
    elseif name == "no arguments" then list[i] = "the script being run without arguments"
    elseif name:find "^[%a_][%w_]*$" then list[i] = "${" .. name .. "}" end
  end
  return table.concat(list, "; ")
end

local function finding_of(given, launch)
  local setting, value = given.setting, given.value
  if setting and value == nil then
    if setting.values then value = values.text_of(setting) elseif setting.value ~= nil then value = tostring(setting.value) end
  end
  return {
    id = given.id, severity = given.severity, message = given.message, file = setting and setting.file or given.file or launch.file,
    line = setting and setting.line or given.line or launch.line or 1, key = setting and setting.key or given.key,
    value = value, nearest = given.nearest, source = given.source, conditional = conditional(given.rests),
  }
end

-- Most severe first, then by place; the same twice is said once.
local function sorted(list)
  local out, seen, position = {}, {}, {}
  for i, finding in ipairs(list) do
    local mark = table.concat({ finding.id, finding.file, finding.line, finding.message }, "\0")
    if not seen[mark] then
      seen[mark] = true
      out[#out + 1] = finding
      position[finding] = i
    end
  end
  table.sort(out, function(a, b)
    if ranks[a.severity] ~= ranks[b.severity] then return ranks[a.severity] > ranks[b.severity] end
    if a.file ~= b.file then return a.file < b.file end
    if a.line ~= b.line then return a.line < b.line end
    return position[a] < position[b]
  end)
  return out
end
lint.sorted = sorted

-- What most rules wait for, and what it is called.
local weighty = { { "gpus", "GPUs" }, { "pipeline_parallel", "P" }, { "tensor_parallel", "TP" }, { "layers", "layers" },
                  { "global_batch_size", "batch" }, { "micro_batch_size", "microbatch size" }, { "experts", "experts" } }

local function missing_text(record, trace)
  local list = {}
  for _, each in ipairs(weighty) do
    local _, known = trace.run(function() return record[each[1]] end)
    if not known then list[#list + 1] = each[2] end
  end
  return table.concat(list, ", ")
end

-- Keys without which the framework does not start.
local function check_required(launch, entry, get, note)
  if launch.partial or launch.open or launch.resolved or not launch.program then return end
  local elsewhere = launch.spelled["--use-checkpoint-args"] or launch.spelled["--yaml-cfg"]
  if elsewhere or get("--hybrid-layer-pattern").given then return end
  local some = launch.program:find "^pretrain"   -- a tool takes a few of the trainers' arguments, and no model
  for key in pairs(entry.required or {}) do some = some or get(key).given end
  if not some then return end
  for _, key in ipairs(lists.sorted_keys(entry.required or {})) do
    local found, other = get(key), entry.required[key]
    if found.key and not found.given and not launch.spelled[other] then
      note { id = "lacks_key", severity = "error", key = found.key.key, source = entry.argparse,
             message = string.format("%s does not start without %s", entry.title, found.key.key) }
    end
  end
end

function lint.of(launch, options)
  local entry = frameworks.find(launch.framework)
  local list = {}
  local function note(given) list[#list + 1] = finding_of(given, launch) end
  if options and options.gpus then launch.gpus = { key = "--gpus", value = options.gpus, file = "command line", line = 0 } end
  for _, given in ipairs(launch.notes or {}) do note(given) end
  local result = {
    framework = launch.framework, version = launch.version or entry.versions[1].name, file = launch.file, entry = entry, launch = launch,
    unresolved = launch.unresolved,
  }
  if launch.judged == false then
    result.findings, result.undecided, result.missing = sorted(list), {}, {}
    return result
  end
  local get = values.of(launch, entry, note)
  check_required(launch, entry, get, note)
  local record, trace = facts.of(launch, entry, get)
  local undecided, missing = rules.apply(entry, record, trace, launch, note)
  result.get, result.record, result.trace = get, record, trace
  result.undecided, result.missing = undecided, lists.sorted_keys(missing)
  local awaited = missing_text(record, trace)
  local why = launch.partial or launch.spelled["--use-checkpoint-args"] and "the checkpoint says it: --use-checkpoint-args"
  if #undecided > 0 and awaited ~= "" then
    note { id = "not_judged", severity = "note", line = launch.line,
           message = string.format("%d of %d rules cannot be judged, for this is not known: %s%s", #undecided, #entry.rules,
                                   awaited, why and " (" .. why .. ")" or "") }
  end
  result.findings = sorted(list)
  return result
end

-- How many findings are above a note?
function lint.count(findings)
  local count = 0
  for _, finding in ipairs(findings) do count = count + (finding.severity ~= "note" and 1 or 0) end
  return count
end

return lint
