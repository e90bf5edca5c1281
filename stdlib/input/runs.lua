-- SPDX-License-Identifier: Apache-2.0
--[[
runs.lua: which layouts were measured, and in which logs: PLAN.json[:N]=LOG as the command line says it.

PLAN.json is what `pipeplan plan --format json` printed; :N takes the N-th layout of its shortlist, and without it the plan itself. %a in
LOG stands for N, as in Slurm's --output of an array: where there is no :N it is each of the shortlist's numbers, and logs that are not
there are passed over.
]]

local documents = require "pipeplan.base.documents"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local reading = require "pipeplan.base.reading"

local runs = {}

-- { file, number or nil, log } each.
local function parse(text)
  local left, log = text:match "^([^=]+)=(.+)$"
  if not left then failure.usage("--measured: '%s' is not PLAN.json[:N]=LOG", text) end
  local file, number = left:match "^(.*):(%d+)$"
  if file and not reading.exists(left) then return file, math.tointeger(tonumber(number)), log end
  return left, nil, log
end

local function field(object, path, file)
  local value = json.at(object, path)
  if value == nil then failure.usage("%s: %s is missing: expected what `pipeplan plan --format json` prints", file, path) end
  return value
end

local degrees = { "tensor", "context", "expert", "expert_tensor", "data", "pipeline", "virtual" }

-- What a layout says, of a plan or of an entry of its shortlist.
local function layout_of(object, file, at)
  local out = { parallelism = {} }
  for _, name in ipairs(degrees) do
    local value = field(object, "parallelism." .. name, file .. at)
    if math.type(value) ~= "integer" or value < 1 or value > 1e6 then
      failure.usage("%s%s: parallelism.%s is %s: expected a whole number, at least 1", file, at, name, json.encode(value))
    end
    out.parallelism[name] = value
  end
  for _, name in ipairs { "schedule", "sharding" } do
    out[name] = field(object, name, file .. at)
    if type(out[name]) ~= "string" then failure.usage("%s%s: %s is %s: expected a name", file, at, name, json.encode(out[name])) end
  end
  for _, name in ipairs { "microbatches", "micro_batch_size", "gpus_used" } do
    out[name] = field(object, name, file .. at)
    if math.type(out[name]) ~= "integer" or out[name] < 1 then
      failure.usage("%s%s: %s is %s: expected a whole number, at least 1", file, at, name, json.encode(out[name]))
    end
  end
  for _, list in ipairs { { "recompute", "string" }, { "layers_per_stage", "number" } } do
    local name, kind = list[1], list[2]
    out[name] = field(object, name, file .. at)
    if not json.is_array(out[name]) then failure.usage("%s%s: %s is %s: expected a list", file, at, name, json.encode(out[name])) end
    for _, value in ipairs(out[name]) do
      if type(value) ~= kind then failure.usage("%s%s: %s has %s", file, at, name, json.encode(value)) end
    end
  end
  return out
end

local function read_plan(file)
  local plan = json.read(file)
  documents.check(plan, "plan", file)
  if type(plan) ~= "table" or json.is_array(plan) or type(plan.status) ~= "string" then
    failure.usage("%s: this is no plan: expected what `pipeplan plan --format json` prints", file)
  end
  if plan.status ~= "planned" then failure.usage("%s: status is %s: nothing of it was run", file, plan.status) end
  return plan
end

-- What has to be the same of the spec that is planned now: { name, value } of what a plan says of its job.
local function job_of(plan, file)
  local job = {}
  for _, path in ipairs { "model.name", "model.layers", "model.total_parameters", "cluster.gpus", "cluster.accelerator", "tokens_per_step",
                          "training.sequence_length", "training.precision" } do
    job[#job + 1] = { path, field(plan, path, file) }
  end
  return job
end

local most = 64   -- runs of one command

-- texts: of the command line → { { name, plan (its name and number), log, layout, job }, … }, each layout once.
function runs.read(texts)
  local out, plans, seen = {}, {}, {}   -- seen: layouts, as JSON says them → the names of their runs
  local function add(plan, file, number, log)
    local list = plan.shortlist
    if number and (not json.is_array(list) or not list[number]) then
      local count = json.is_array(list) and #list or 0
      failure.usage("%s: there is no layout %d: %s", file, number, count > 0 and string.format("its shortlist has %d", count)
                    or "it has no shortlist (plan --shortlist N --format json)")
    end
    local name = number and file .. ":" .. number or file
    local at = number and string.format(": shortlist[%d]", number - 1) or ""
    local layout = layout_of(number and list[number] or plan, file, at)
    local own = json.encode(layout)
    if seen[own] == name then failure.usage("--measured: %s is given twice: one log to a layout", name) end
    if seen[own] then failure.usage("--measured: %s and %s are the same layout: one log to a layout", seen[own], name) end
    for _, run in ipairs(out) do
      if run.log == log or engine.process.same_file(run.log, log) then
        failure.usage("--measured: %s is given for %s and for %s: a log is of one layout", log, run.name, name)
      end
    end
    seen[own] = name
    out[#out + 1] = { name = name, file = file, log = log, job = job_of(plan, file), layout = layout }
    if #out > most then failure.usage("--measured: more than %d runs", most) end
  end
  for _, text in ipairs(texts) do
    local file, number, log = parse(text)
    plans[file] = plans[file] or read_plan(file)
    if not number and log:find("%a", 1, true) then
      local list, any = plans[file].shortlist, false
      for i = 1, json.is_array(list) and #list or 0 do
        local path = log:gsub("%%a", tostring(i))
        if reading.exists(path) then
          any = true
          add(plans[file], file, i, path)
        end
      end
      if not any then failure.usage("--measured: no log %s for a layout of %s's shortlist", log, file) end
    else
      add(plans[file], file, number, (log:gsub("%%a", tostring(number or 1))))
    end
  end
  return out
end

local function shown(value)
  if type(value) == "table" then return json.encode(value) end
  return math.type(value) == "integer" and format.integer(value) or tostring(value)
end

-- Fails where a run is of another job than `plan`, which is of the spec. A layout that leaves GPUs idle may be planned on the others alone.
function runs.check(run, plan)
  for _, entry in ipairs(run.job) do
    local wanted = json.at(plan, entry[1])
    local fewer = entry[1] == "cluster.gpus" and entry[2] == run.layout.gpus_used and entry[2] < wanted
    if wanted ~= entry[2] and not fewer then
      failure.usage("%s: %s is %s: the spec's is %s, so that was another job", run.file, entry[1], shown(entry[2]), shown(wanted))
    end
  end
end

return runs
