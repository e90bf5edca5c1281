-- SPDX-License-Identifier: Apache-2.0
--[[
function_comparisons.lua: what a rule's function compares, as far as its text says it: a field, or a local that stands for one, with a
number, a name, a parameter, or a local that stands for one of these. Each is a condition, whether the function is read as conditions or
not; what it computes before it compares is not seen.

  function_comparisons.of(rule, policy) → { condition, … }, number of comparisons that are not seen, those that no condition can be
      { { field, message }, … }
]]

local conditions = require "pipeplan.policy.conditions"
local lua_text = require "pipeplan.base.lua_text"
local source = require "pipeplan.analysis.function_source"
local text_of = require "pipeplan.base.text"
local vocabulary = require "pipeplan.vocabulary"

local function_comparisons = {}

local tag = require("engine").host.tag

local operators = { ["<"] = "under", ["<="] = "at_most", [">"] = "over", [">="] = "at_least", ["=="] = "equal", ["~="] = "none_of" }
local turned = { ["<"] = ">", ["<="] = ">=", [">"] = "<", [">="] = "<=", ["=="] = "==", ["~="] = "~=" }

-- A word of code, or what stands in quotes at that place of the file → { field = name } | { value = … } | nil.
local function operand(word, known, argument, policy)
  local quoted = word:match "^[\"'](.*)[\"']$"
  if quoted then return { value = quoted } end
  local name = word:match("^" .. argument .. "%.([%a_][%w_]*)$")
  if name and vocabulary.by_name[name] then return { field = name } end
  local parameter = name and policy.parameters[name]
  if parameter and type(parameter.value) ~= "table" then return { value = parameter.value } end
  if word == "true" or word == "false" then return { value = word == "true" } end
  return known[word] or tonumber(word) and { value = tonumber(word) } or nil
end

local WORD = "[%w_.]+"

-- Bytes on either side of an operator that are looked at, for its words, and of a function that is read at all: what is longer is longer
-- than any that compares fields.
local NEAR, MOST_BYTES = 256, 16384

-- The words on both sides of an operator; nil where more than a word stands there.
local function sides(all_code, all_file, start, stop)
  local code, file = all_code:sub(math.max(1, start - NEAR), start - 1), all_file:sub(math.max(1, start - NEAR), start - 1)
  local left_from, left_to = code:find("(" .. WORD .. ")%s*$")
  local quote_from = file:find "[\"'][^\"'\n]*[\"']%s*$"
  local left, before
  if left_from then left, before = code:sub(left_from, left_to):match "^%S+", code:sub(1, left_from - 1)
  elseif quote_from then left, before = text_of.without_end(file:sub(quote_from)), code:sub(1, quote_from - 1) end
  local rest = all_file:sub(stop + 1, stop + NEAR)
  local right = rest:match "^%s*([\"'][^\"'\n]*[\"'])" or all_code:sub(stop + 1, stop + NEAR):match("^%s*(" .. WORD .. ")")
  if not left or not right then return nil end
  local after = rest:sub(#rest:match "^%s*" + #right + 1):match "^%s*(.?)"
  if before:find "[%+%-%*/%%%^#:%.]%s*$" or after:find "[%+%-%*/%%%^%(%[:%.{]" then return nil end
  return left, right
end

-- Locals that are set once, to a field or a value.
local function locals_of(code, file, from, to, argument, policy)
  local known, twice = {}, {}
  local at = from
  while true do
    local start, stop, name = code:find("local%s+([%a_][%w_]*)%s*=%s*", at)
    if not start or start > to then break end
    local word = file:sub(stop + 1):match "^[\"'][^\"'\n]*[\"']" or code:sub(stop + 1):match("^" .. WORD)
    local after = word and code:sub(stop + 1 + #word):match "^[ \t]*(.?)"
    local whole = word and not after:find "[%+%-%*/%%%^%(%[:%.{<>=~]"
      and not code:sub(stop + 1 + #word):find "^%s*and%f[%W]" and not code:sub(stop + 1 + #word):find "^%s*or%f[%W]"
    twice[name] = known[name] ~= nil or twice[name]
    known[name] = whole and operand(word, known, argument, policy) or nil
    if select(2, code:sub(from, to):gsub("%f[%w_]" .. name .. "%s*=%f[^=]", "")) > 1 then twice[name] = true end
    at = stop + 1
  end
  for name in pairs(twice) do
    if twice[name] then known[name] = nil end
  end
  return known
end

local function condition_of(left, token, right)
  if not left.field then left, token, right = right, turned[token], left end
  if not left.field or right.field then return nil end
  local raw = operators[token] == "none_of" and { [tag] = "none_of", { right.value } } or { [tag] = operators[token], right.value }
  if token == "==" then raw = right.value end
  local ordered = token ~= "==" and token ~= "~="
  if ordered and type(right.value) ~= "number" then
    local text = type(right.value) == "string" and vocabulary.by_name[left.field].type == "string"
    return nil, left.field, text and 'a text in the order of letters, where "0.10" comes before "0.9"'
      or "what it never is: a number is compared with " .. type(right.value)
  end
  local condition, problem = conditions.read(left.field, raw, { by_name = {}, list = {} })
  return condition, left.field, problem and "what it never is: " .. problem
end

function function_comparisons.of(rule, policy)
  local file = rule.lines and policy.texts[rule.lines.file]
  if not rule.when or not file then return {}, 0, {} end
  local own = source.of(file, rule.lines.first, rule.lines.last)
  if #own ~= 1 then return {}, #own, {} end
  local code, from, to = lua_text.code_only(file), own[1].from, own[1].to
  if to - from > MOST_BYTES then return {}, 1, {} end
  local argument = code:match("^function%s*%(%s*([%a_][%w_]*)", from)
  if not argument then return {}, 0, {} end
  local known = locals_of(code, file, from, to, argument, policy)
  local list, unseen, seen, problems = {}, 0, {}, {}
  local at = from
  while true do
    local start, stop, token = code:find("([<>=~]=?)", at)
    if not start or start > to then break end
    at = stop + 1
    local left, right
    if operators[token] then left, right = sides(code, file, start, stop) end
    if right ~= "nil" and left ~= "nil" and operators[token] then
      local one, other = left and operand(left, known, argument, policy), right and operand(right, known, argument, policy)
      local condition, field, problem
      if one and other then condition, field, problem = condition_of(one, token, other) end
      if problem then problems[#problems + 1] = { field = field, message = problem } end
      local key = condition and conditions.text(condition)
      if not condition then unseen = unseen + 1
      elseif not seen[key] then list[#list + 1], seen[key] = condition, true end
    end
  end
  local body = code:sub(from, to)
  local branches = body:find "%f[%w_]or%f[^%w_]" or body:find "%f[%w_]not%f[^%w_]" or body:find "%f[%w_]if%f[^%w_]"
  return list, unseen, problems, not branches and select(2, body:gsub("%f[%w_]return%f[^%w_]", "")) == 1
end

return function_comparisons
