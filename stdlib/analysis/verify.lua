-- SPDX-License-Identifier: Apache-2.0
--[[
verify.lua: a plan that was handed in, derived again: what of it is not what pipeplan plans here, in the words of its subject: the engine,
the policy, the spec, or the figures that follow from them.

Every field of the plan is compared, but those that say where files lie: the same files may lie elsewhere here.
]]

local dates = require "pipeplan.base.dates"
local documents = require "pipeplan.base.documents"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local schema = require "pipeplan.schema.plan"
local spec = require "pipeplan.input.spec"
local stated = require "pipeplan.input.stated"

local verify = {}

-- Fields that are not compared, and why.
verify.not_checked = {
  { field = "spec.files", why = "where the spec lay" },
  { field = "policy.found", why = "where the policies of a machine lay" },
  { field = "policy.left_out", why = "where those lay that were left out" },
  { field = "spec.fields.origin", why = "where the spec lay" },
  { field = "explanation.spec", why = "spec.fields says the same" },
  { field = "measured", why = "the logs of the runs say it: --measured reads them" },
  { field = "*.file", why = "in which folder a file lies, where a warning or a why begins with it too; its name is compared" },
}

local FILE = "[.]file$"

-- ------------------------------------------------------------------------------------------------------------------------- reading

local function is_object(value)
  return type(value) == "table" and value ~= json.null and not json.is_array(value)
end

-- verify.handed(plan, name) → { plan =, name =, date = of its policy }. Fails for what is no plan: there is nothing to compare then.
function verify.handed(plan, name)
  local problem = json.at(plan, "error.message")
  if type(problem) == "string" then failure.usage("%s: this is no plan, but why there is none: %s", name, problem) end
  documents.check(plan, "plan", name)
  if not is_object(plan) or type(plan.status) ~= "string" or not is_object(plan.policy) then
    failure.usage("%s: this is no plan: expected what `pipeplan plan --format json` prints", name)
  end
  if is_object(plan.measured) then
    failure.usage("%s: measured: planned with factors of runs, which its spec does not carry: keep them (plan --measured … --keep FILE), "
                  .. "plan with cluster.calibration FILE, and hand that plan in", name)
  end
  local _, undated = dates.check(plan.policy.date)
  if undated then failure.usage("%s: policy.date: %s, got %s", name, undated, json.encode(plan.policy.date)) end
  return { plan = plan, name = name, date = plan.policy.date }
end

-- The plan in a file; "-": standard input.
function verify.read(path)
  return verify.handed(json.read(path), path == "-" and "standard input" or path)
end

-- A field of a carried spec as a spec that says nothing else.
local function single(each)
  local object, value = {}, each.value
  local group = object
  local parents, last = each.field:match "^(.*)%.([^.]*)$"
  for name in (parents or ""):gmatch "[^.]+" do
    group[name] = {}
    group = group[name]
  end
  group[last or each.field] = value
  return { object = object, name = each.origin, base = "" }
end

-- The request of the spec that a plan carries.
local function carried(handed)
  local list, objects = json.at(handed.plan, "spec.fields"), {}
  if not json.is_array(list) then
    failure.usage("%s: spec.fields is missing: the plan%s carries no spec; hand it in too: pipeplan plan SPEC --verify %s", handed.name,
                  type(handed.plan.engine_version) == "string" and ", of pipeplan " .. handed.plan.engine_version .. "," or "", handed.name)
  end
  for i, each in ipairs(list) do
    if not is_object(each) or type(each.field) ~= "string" or type(each.origin) ~= "string" or each.value == nil then
      failure.usage("%s: spec.fields[%d]: expected field, value and origin", handed.name, i - 1)
    end
    objects[i] = single(each)
  end
  local read = json.at(handed.plan, "spec.read")
  if read ~= nil then
    require "pipeplan.input.validate"(read, schema.properties.spec.properties.read, handed.name .. ": spec.read")
  end
  local good, request = failure.try(spec.read, { objects = objects, read = read })
  if good then return request end
  if failure.is(request) then failure.usage("%s: the spec that it carries (spec.fields): %s", handed.name, request.message) end
  error(request, 0)
end

-- ----------------------------------------------------------------------------------------------------------------------- comparing

-- What a value is called in a message.
local function shown(value)
  if value == nil then return "nothing" end
  if value == json.null then return "null" end
  if type(value) ~= "table" then return json.encode(value) end
  return json.is_array(value) and string.format("a list of %d", #value) or "an object"
end

local function is_leaf(value)
  return type(value) ~= "table" or value == json.null
end

-- What is said of a file, without the folder that it lies in.
local function without_folder(words) return (words:gsub("^[^:]*/([^/:]*:)", "%1")) end

local function same_leaf(path, theirs, ours)
  if theirs == ours then return true end
  if type(theirs) ~= "string" or type(ours) ~= "string" then return false end
  if path:find "warnings%[%d+%]%.message$" or path:find "assumptions%[%d+%]%.why$" then
    return without_folder(theirs) == without_folder(ours)
  end
  return path:find(FILE) ~= nil and theirs:match "[^/]*$" == ours:match "[^/]*$"
end

local unchecked = {}
for _, each in ipairs(verify.not_checked) do unchecked[each.field] = true end

-- Calls differ(path, theirs, ours) for each field that differs: the topmost, where one side has nothing like it. → fields compared.
local function compare(path, theirs, ours, differ)
  if unchecked[path:gsub("%[%d+%]", "")] then return 0 end
  if is_leaf(theirs) or is_leaf(ours) or json.is_array(theirs) ~= json.is_array(ours) then
    if not (is_leaf(theirs) and is_leaf(ours) and same_leaf(path, theirs, ours)) then differ(path, theirs, ours) end
    return 1
  end
  local count = 0
  if json.is_array(theirs) then
    if #theirs ~= #ours then
      differ(path, theirs, ours)
      return 1
    end
    for i = 1, #ours do count = count + compare(string.format("%s[%d]", path, i - 1), theirs[i], ours[i], differ) end
    return math.max(count, 1)
  end
  local prefix = path == "" and "" or path .. "."
  for _, name in ipairs(lists.sorted_keys(lists.with(theirs, ours))) do
    count = count + compare(prefix .. name, theirs[name], ours[name], differ)
  end
  return math.max(count, 1)
end

-- "18.5 in the plan, 19.1 here (3.2 % more)"
local function both(theirs, ours)
  local text = string.format("%s in the plan, %s here", shown(theirs), shown(ours))
  if type(theirs) == "number" and type(ours) == "number" and theirs ~= 0 and ours ~= 0 then
    local more = ours / theirs - 1
    if math.abs(more) >= 5e-5 and math.abs(more) < 10 then
      text = string.format("%s (%.4g %% %s)", text, 100 * math.abs(more), more > 0 and "more" or "less")
    end
  end
  return text
end

local function layer_names(list)
  local names = {}
  for i, name in ipairs(json.is_array(list) and list or {}) do names[i] = type(name) == "string" and name or shown(name) end
  return table.concat(names, " ← ")
end

local function subject_of(path)
  return path == "engine_version" and "engine" or path:match "^policy%f[.\0]" or path:match "^spec%f[.\0]" or "figures"
end

local say = {}   -- subject → what is said of a field of it; `found`: paths that differ

function say.engine(_, theirs, ours)
  return string.format("planned by pipeplan %s, and this is %s", type(theirs) == "string" and theirs or shown(theirs), ours)
end

function say.policy(path, theirs, ours, found)
  local field = path:match "^policy%.([^.[]+)"
  if field == "layers" then
    return string.format("layers: %s in the plan, %s here; --policy gives one that is missing here",
                         json.is_array(theirs) and layer_names(theirs) or shown(theirs), layer_names(found.ours.policy.layers))
  elseif field == "stack" and not found.layers then
    return string.format("stack: %s; the same layers say something else (pipeplan policy show --files names the files of each)",
                         both(theirs, ours))
  elseif field == "digest" and not (found.layers or found.stack or found.date or found.engine) then
    return string.format("digest: %s, though layers, date and version agree: another build, or the plan's date or digest was "
                         .. "changed", both(theirs, ours))
  end
  return (field or "policy") .. ": " .. both(theirs, ours)
end

function say.spec(path, theirs, ours, found)
  if path == "spec.digest" and not found.stated then
    return string.format("digest: %s; what the plan carries (spec.fields) was changed, or its digest, or a file that it names",
                         both(theirs, ours))
  end
  return (path:match "^spec%.(.+)$" or "spec") .. ": " .. both(theirs, ours)
end

function say.figures(path, theirs, ours)
  return path .. ": " .. both(theirs, ours)
end

-- ------------------------------------------------------------------------------------------------------------------------- the spec

-- Fields that the plan's spec and the one handed in say differently, as { path, theirs, ours }; nil: the plan's cannot be read here, why.
local function spec_fields(handed, request)
  local good, other = failure.try(carried, handed)
  if not good then
    if not failure.is(other) then error(other, 0) end
    return nil, other.message
  end
  if other.any_gpus then  -- "minimum": what the plan found
    local gpus = json.at(handed.plan, "cluster.gpus")
    other = math.type(gpus) == "integer" and gpus >= 1 and other.any_gpus.at(gpus)
    if not other then return nil, "it asks for the fewest GPUs, and the plan has none that its spec allows" end
  end
  local theirs, ours, list = {}, {}, {}
  for _, each in ipairs(stated.carried(other)) do theirs[each.field] = each.value end
  for _, each in ipairs(stated.carried(request)) do ours[each.field] = each.value end
  for _, field in ipairs(lists.sorted_keys(lists.with(theirs, ours))) do
    local one, two = theirs[field], ours[field]
    if one == nil or two == nil or json.encode(one) ~= json.encode(two) then list[#list + 1] = { field, one, two } end
  end
  return list, nil, stated.digest(other)
end

-- ---------------------------------------------------------------------------------------------------------------------- the verdict

local rank = { engine = 1, policy = 2, spec = 3, figures = 4 }
local first = { ["policy.layers"] = 1, ["policy.date"] = 2, ["policy.stack"] = 3, ["policy.digest"] = 4, ["spec.digest"] = 1e6 }

-- What others follow from, then the plan's own fields before those of its parts.
local function place_of(path)
  return first[path] or select(2, path:gsub("[.[]", "")) + 5
end

local function before(one, other)
  if one.subject ~= other.subject then return rank[one.subject] < rank[other.subject] end
  local a, b = place_of(one.field), place_of(other.field)
  if a ~= b then return a < b end
  return one.order < other.order
end

-- What was asked for beside the plan, where it has that: { explain =, why =, shortlist =, frontier = }.
local function asked(plan)
  local explanation, frontier = plan.explanation, json.is_array(plan.frontier)
  local shortlist = json.is_array(plan.shortlist) and math.max(2, math.min(16, #plan.shortlist)) or nil
  if not is_object(explanation) then return { shortlist = shortlist, frontier = frontier } end
  local questions = {}
  for i, answer in ipairs(json.is_array(explanation.answers) and explanation.answers or {}) do
    questions[i] = is_object(answer) and type(answer.question) == "string" and answer.question or ""
  end
  local good, why
  if #questions > 0 then
    good, why = failure.try(require("pipeplan.plan.explain").questions, table.concat(questions, ","))
    if not good and not failure.is(why) then error(why, 0) end
  end
  return { explain = json.is_array(explanation.rules) and #explanation.rules > 0, why = good and why or nil, shortlist = shortlist,
           frontier = frontier }
end

-- verify.of{ handed = what verify.read returned, policy =, request = of the spec beside it, or nil: what the plan carries } →
-- { equal =, differences = { { subject, field, theirs, ours, message } }, compared = fields, not_checked = { { field, why } },
--   plan = derived, request = of what }.
function verify.of(arguments)
  local handed, request = arguments.handed, arguments.request or carried(arguments.handed)
  local how = asked(handed.plan)
  local derived, _
  derived, _, request = require("pipeplan.plan.init").plan { request = request, policy = arguments.policy, explain = how.explain,
                                                             why = how.why, shortlist = how.shortlist, frontier = how.frontier }
  local ours = json.decode(json.encode(json.shape(derived, schema)), "derived")
  local theirs = handed.plan
  local result = { differences = {}, not_checked = { table.unpack(verify.not_checked) }, plan = derived, request = request }
  local found, all = { ours = ours }, {}

  if arguments.request then  -- its notation may differ; what it says may not
    local fields, problem, digest = spec_fields(handed, request)
    if not fields then
      table.insert(result.not_checked, 1, { field = "spec.fields", why = problem })
    elseif digest ~= json.at(theirs, "spec.digest") then
      all[1] = { "spec.digest", json.at(theirs, "spec.digest"), digest }
    elseif digest ~= ours.spec.digest then
      found.stated = true
      for _, each in ipairs(fields) do all[#all + 1] = { "spec." .. each[1], each[2], each[3] } end
    end
    if is_object(theirs.spec) then theirs = lists.with(theirs, { spec = lists.with(theirs.spec, { fields = ours.spec.fields }) }) end
  end
  if not arguments.request and ours.spec.read ~= json.null then
    table.insert(result.not_checked, { field = "spec.read", why = "what reading the launch gave: hand that in too" })
  end
  result.compared = compare("", theirs, ours, function(path, one, two) all[#all + 1] = { path, one, two } end)
  for _, each in ipairs(all) do
    found[each[1] == "engine_version" and "engine" or each[1]:match "^policy%.(%a+)" or ""] = true
  end
  for i, each in ipairs(all) do
    local path, one, two = table.unpack(each, 1, 3)
    local subject = subject_of(path)
    result.differences[i] = { subject = subject, field = path, theirs = one, ours = two, order = i,
                              message = say[subject](path, one, two, found) }
  end
  table.sort(result.differences, before)
  result.equal = #result.differences == 0
  return result
end

-- The subjects of the differences, each once.
function verify.subjects(result)
  local list = {}
  for _, each in ipairs(result.differences) do
    if each.subject ~= list[#list] then list[#list + 1] = each.subject end
  end
  return list
end

return verify
