-- SPDX-License-Identifier: Apache-2.0
--[[
functions.lua: rules whose condition is a function of Lua: `when = function(f) … end`.

A function declares nothing. What it reads is noted, and it is asked as soon as that is known, like a condition: of the spec, of a
candidate, of a simulated one. A call that reads what is not known yet ends there, and is made again when it is.

  functions.ask(rule, policy, record, late) → true | false, names read in order | nil, names, the field that is not known yet
  functions.value(rule, policy, record, late) → the same of a function that may return anything
  functions.memo() → memo:answer(rule, policy, value_of, is_late): the same, asked only once for equal values of what it reads
  functions.plain(text, parameter_names) → { field → raw condition } of a function that only compares fields, or nil
  functions.nearest(rule, policy, record) → { field, value, beyond } at which the function would say no, as conditions.nearest
]]

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local renamed = require "pipeplan.policy.renamed"
local vocabulary = require "pipeplan.vocabulary"

local functions = {}

local tag = engine.host.tag

-- Fields that are there before anything is simulated: of these an absent one is an answer. Others are late.
local function is_early(name)
  local scope = vocabulary.by_name[name].scope
  return scope == "request" or scope == "candidate"
end

-- The fields that a record lacks because they are not known yet. Of a finished plan none; of what was simulated no cost, which then has no
-- price: there an absent one is an answer.
function functions.late_of(record)
  local late
  for _, field in ipairs(record.status ~= "planned" and vocabulary.fields or {}) do
    local answered = is_early(field.name) or field.name == "cost" and record.step_seconds ~= nil
    if record[field.name] == nil and not answered then
      late = late or {}
      late[field.name] = true
    end
  end
  return late
end

-- Asks a rule's function about a record. The function reads fields and parameters, for they share one namespace. An error in it is an
-- answer of its own (exit 3).
function functions.ask(rule, policy, record, late, call)
  local known = {}
  for id, parameter in pairs(policy.parameters) do known[id] = parameter.value end
  for name, value in pairs(record) do
    if vocabulary.by_name[name] then known[name] = value end
  end
  renamed.known(known)
  if late then renamed.known(late) end
  local name = string.format("rule '%s' (%s:%d)", rule.id, rule.file, rule.line)
  local result, more = policy.host[call or "call"](policy.host, rule.when, known, name, late)
  if result ~= nil or call and not (type(more) == "table" and more.message) then return result, renamed.names(more) end
  if more.late then return nil, renamed.names(more.reads), renamed.name(more.late) end
  local text = more.message
  if more.unknown and known[more.unknown] ~= nil then
    text = text .. string.format(": write f.%s, where f is what the function is given", more.unknown)
  elseif more.unknown then
    text = text .. failure.suggestion(more.unknown, policy.names)
  end
  failure.of_host(more, "policy_error", "%s: %s", name, text)
end

-- What a function returns, whatever it is: the same answers, or nil and the names for nil itself.
function functions.value(rule, policy, record, late) return functions.ask(rule, policy, record, late, "value") end

-- ------------------------------------------------------------------------------------------------------------------------- asked once

local memo = {}
memo.__index = memo

-- request: the request's record, of which the labels are read.
function functions.memo(request)
  local labels = {}
  for name, value in pairs(request or {}) do
    if vocabulary.label(name) then labels[name] = value end
  end
  return setmetatable({ roots = {}, labels = labels }, memo)
end

local ABSENT = {}

-- value_of(field) → its value; is_late(field): it is not known yet. What a function reads next follows from what it has read: so its calls
-- make a tree, whose leaves are answers.
function memo:answer(rule, policy, value_of, is_late)
  local node = self.roots[rule]
  while node and node.field do
    if is_late(node.field) then return nil, node.field end
    local value = value_of(node.field)
    if value == nil or value ~= value then value = ABSENT end
    node = node[value]
  end
  if node then return node.answer end
  local record, late = lists.with(self.labels), {}
  for _, field in ipairs(vocabulary.fields) do
    if is_early(field.name) then record[field.name] = value_of(field.name) else late[field.name] = true end
  end
  local answer, names, unknown = functions.ask(rule, policy, record, late)
  while unknown and not is_late(unknown) do  -- bytes and seconds are computed for who reads them
    record[unknown], late[unknown] = value_of(unknown), nil
    answer, names, unknown = functions.ask(rule, policy, record, late)
  end
  local at, key = self.roots, rule
  for _, name in ipairs(names) do
    if vocabulary.by_name[name] then
      at[key] = at[key] or { field = name }
      at, key = at[key], record[name]
      if key == nil or key ~= key then key = ABSENT end
    end
  end
  at[key] = unknown and { field = unknown } or { answer = answer }
  return answer, unknown
end

-- ------------------------------------------------------------------------------------------------------------------- plain comparisons

local operators = { ["<"] = "under", ["<="] = "at_most", [">"] = "over", [">="] = "at_least" }
local turned = { ["<"] = ">", ["<="] = ">=", [">"] = "<", [">="] = "<=", ["=="] = "==", ["~="] = "~=" }

local LITERALS = { ["true"] = true, ["false"] = false }

-- "0.5", "\"moe\"", "true", "f.gpus" → the value, or { name } of a field or parameter; nothing else.
local function operand(text, argument)
  local name = text:match("^" .. argument .. "%s*%.%s*([%a_][%w_]*)$")
  if name then return { renamed.name(name) } end
  if LITERALS[text] ~= nil then return LITERALS[text] end
  local quoted = text:match "^\"([^\"\\]*)\"$" or text:match "^'([^'\\]*)'$"
  if quoted then return quoted end
  return text:match "^[%d.]" and tonumber(text) or nil
end

-- What `left operator right` says of a field, as a policy file would write it: field, raw condition.
local function comparison(left, operator, right)
  if type(left) ~= "table" or not vocabulary.by_name[left[1]] then
    left, operator, right = right, turned[operator], left
  end
  local field = type(left) == "table" and vocabulary.by_name[left[1]]
  if not field or right == nil then return nil end
  local other = type(right) == "table"
  local value = other and right[1] or right
  -- Lua calls a number and a text different, where a condition reads the text as a quantity. A figure that is not known is no answer to a
  -- function, and one that differs to a condition.
  if type(value) == "string" and not other and (field.type == "integer" or field.type == "number") then return nil end
  if operator == "~=" and not is_early(field.name) then return nil end
  if operator == "==" then return field.name, other and { [tag] = "equal", value } or value end
  if operator == "~=" then return field.name, not other and { [tag] = "none_of", { value } } or nil end
  if type(value) ~= "number" and not other then return nil end
  return field.name, { [tag] = operators[operator], value }
end

-- One term of a conjunction.
local function term(text, argument)
  local left, operator, right = text:match "^(.-)%s*([<>=~]=?)%s*(.-)$"
  if left and turned[operator] then return comparison(operand(left, argument), operator, operand(right, argument)) end
  local negated, name = text:match("^(n?o?t?)%s*" .. argument .. "%s*%.%s*([%a_][%w_]*)$")
  local field = name and vocabulary.by_name[name]
  if not field or field.type ~= "boolean" or (negated ~= "" and negated ~= "not") then return nil end
  return name, negated == ""
end

-- `f.x ~= nil` or `f.x`, which another comparison of the same field implies: the field's name.
local function presence(text, argument)
  local name = text:match("^" .. argument .. "%s*%.%s*([%a_][%w_]*)$")
  if name and vocabulary.by_name[name] and vocabulary.by_name[name].type ~= "boolean" then return name end
  return text:match("^" .. argument .. "%s*%.%s*([%a_][%w_]*)%s*~=%s*nil$")
end

local MOST_BYTES = 4096   -- of such a function: patterns take time that grows with the square of it

-- The body of a function that returns one expression, and its argument's name. Several functions in the lines, or a comment: not read.
local function expression(text)
  if #text > MOST_BYTES then return nil end
  if select(2, text:gsub("%f[%w_]function%f[^%w_]", "")) ~= 1 or text:find("--", 1, true) or text:find("[[", 1, true) then return nil end
  local argument, body = text:match "function%s*%(%s*([%a_][%w_]*)%s*%)%s*return%s(.-)[%s;]%s*end%f[^%w_]"
  return argument, body and body:match "^%s*(.-)%s*$"
end

function functions.plain(text)
  local argument, body = expression(text)
  if not body or body:find "%f[%w_]or%f[^%w_]" or body:find "[%(%)%[%]{}]" or body:find "[%+%*/%%^#]" then return nil end
  local found, present = {}, {}
  for part in (body:gsub("%f[%w_]and%f[^%w_]", "\0") .. "\0"):gmatch "(.-)%z" do
    part = part:match "^%s*(.-)%s*$"
    local name = presence(part, argument)
    if name then
      present[#present + 1] = name
    else
      local field, raw = term(part, argument)
      if not field or found[field] ~= nil then return nil end
      found[field] = raw
    end
  end
  for _, name in ipairs(present) do
    if found[name] == nil or type(found[name]) == "table" and found[name][tag] == "none_of" then return nil end
  end
  return next(found) ~= nil and found or nil
end

-- ----------------------------------------------------------------------------------------------------------------------------- nearest

local STEPS, DOUBLINGS, HALVINGS = 16, 24, 40

-- The whole number next to `yes` on the way to `no`, as far as the function changes its mind there once.
local function halved(says_no, yes, no)
  while math.abs(yes - no) > 1 do
    local middle = (yes + no) // 2
    if says_no(middle) then no = middle else yes = middle end
  end
  return no
end

-- The nearest value of a field at which the function says no, by trying: of whole numbers each, then doubled and halved; of real ones to as
-- many digits as are told.
local function flip(rule, policy, record, field)
  local value = record[field.name]
  local function says_no(other)
    if other < (field.low or -math.huge) or other > (field.high or math.huge) then return false end
    local changed = {}
    for name, own in pairs(record) do changed[name] = own end
    changed[field.name] = other
    return functions.ask(rule, policy, changed, functions.late_of(changed)) == false
  end
  if field.type == "integer" then
    for i = 1, STEPS do
      for _, other in ipairs { value - i, value + i } do
        if says_no(other) then return other end
      end
    end
    for i = 1, DOUBLINGS do
      if says_no(value >> i) then return halved(says_no, value >> i - 1, value >> i) end
      if value << i > 0 and says_no(value << i) then return halved(says_no, value << i - 1, value << i) end
    end
    return nil
  end
  for _, far in ipairs { field.low or 0.0, value * 2, value * 16, value * 1024, field.high } do
    if far ~= value and says_no(far) then
      local yes, no = value, far
      for _ = 1, HALVINGS do
        local middle = (yes + no) / 2
        if says_no(middle) then no = middle else yes = middle end
      end
      local told = tonumber(string.format("%.6g", no))
      return told, not says_no(told) or nil
    end
  end
  return nil
end

-- Fields of the candidate before fields of the request, in the order in which conditions are asked. What was found when the budget is spent
-- stays.
local function search(rule, policy, record)
  local answer, names = functions.ask(rule, policy, record, functions.late_of(record))
  local found
  for _, field in ipairs(answer and vocabulary.fields or {}) do
    local name = field.name
    local wanted = not found or found.scope == "request" and field.scope ~= "request"
    if wanted and type(record[name]) == "number" and lists.contains(names, name) then
      local good, value, beyond = failure.try(flip, rule, policy, record, field)
      if good and value then found = { field = name, value = value, beyond = beyond, scope = field.scope } end
      if not good and failure.is(value) and value.status == failure.status.over_budget then break end
    end
  end
  if found then found.scope = nil end
  return found
end

-- For a function that says yes. A search takes nothing of the budget that a plan decides with: all of a plan have one more, of which
-- policy.searched is what they took.
function functions.nearest(rule, policy, record)
  if (policy.searched or 0) >= 1 then return nil end
  policy.host:refill()
  local good, found = failure.try(search, rule, policy, record)
  local usage = policy.host:usage()
  policy.searched = (policy.searched or 0) + usage.work / usage.work_limit
  policy.host:refill()
  if not good and not failure.is(found) then error(found, 0) end
  return good and found or nil
end

return functions
