-- SPDX-License-Identifier: Apache-2.0
--[[
function_mutants.lua: small wrong versions of a rule's function, made in its text: a comparison turned or opened, a number moved by one or
by a tenth. What the function reads as conditions anyway (policy/functions.lua) is mutated as those.

  function_mutants.of(rule, policy) → { { text, text_before, rewrite }, … }
    text_before  the text of the file where the function stands, the policy's or one that it requires
    rewrite()    → that text with the mistake in it
  function_mutants.beside(path, policy) → the same of the functions of a file that are no rule's, which rules call, each with its name, line
]]

local lua_text = require "pipeplan.base.lua_text"
local source = require "pipeplan.analysis.function_source"

local function_mutants = {}

local comparisons = {
  ["<"] = { "<=", ">=" }, ["<="] = { "<", ">" }, [">"] = { ">=", "<=" }, [">="] = { ">", "<" }, ["=="] = { "~=" }, ["~="] = { "==" },
}

local function moved(number)
  if math.type(number) == "integer" and math.abs(number) < 10000 then return { number - 1, number + 1 } end
  if number == 0 then return {} end
  return { number / 1.1, number * 1.1 }
end

-- What a word becomes by a slip of the hand: comparisons, and numbers.
local function slips(kind, word)
  if kind == "symbol" then return comparisons[word] or {} end
  local number = kind == "number" and (math.tointeger(tonumber(word)) or tonumber(word))
  local list = {}
  for i, value in ipairs(number and moved(number) or {}) do list[i] = string.format("%.6g", value) end
  return list
end

-- Is a function's text Lua? What is none does not load: whoever writes it is told, and no test has to.
local function is_lua(text) return (load("return " .. text, "=mutant", "t", {}) or load(text, "=mutant", "t", {})) ~= nil end

-- function(at) → the one of these functions that a byte stands in, or nil; for bytes that ascend.
local function finder(functions)
  table.sort(functions, function(a, b) return a.from < b.from end)
  local i = 1
  return function(at)
    while functions[i] and functions[i].to < at do i = i + 1 end
    return functions[i] and at >= functions[i].from and functions[i] or nil
  end
end

-- Mutants of the words of a file's text. of(at): the function in which the word of that byte is to be changed, or nil. → each with its
-- function, as `own`.
local function of_words(file, of)
  local list = {}
  for kind, start, stop in lua_text.words(file) do
    local own = of(start)
    for _, new in ipairs(own and slips(kind, file:sub(start, stop)) or {}) do
      if is_lua(file:sub(own.from, start - 1) .. new .. file:sub(stop + 1, own.to)) then
        list[#list + 1] = { own = own, at = start, text = file:sub(start, stop) .. " → " .. new, text_before = file,
                            rewrite = function() return file:sub(1, start - 1) .. new .. file:sub(stop + 1) end }
      end
    end
  end
  return list
end

local function own_of(rule, policy)
  local file = rule.when and rule.lines and policy.texts[rule.lines.file]
  return file and source.of(file, rule.lines.first, rule.lines.last) or {}, file
end

function function_mutants.of(rule, policy)
  local functions, file = own_of(rule, policy)
  local list = file and of_words(file, finder(functions)) or {}
  for _, mutant in ipairs(list) do
    mutant.text = string.format("its function, byte %d: %s", mutant.at - functions[1].from, mutant.text)
  end
  return list
end

function function_mutants.beside(path, policy)
  local rules, outermost = {}, {}
  for _, rule in pairs(policy.rules) do
    if rule.lines and rule.lines.file == path then
      for _, one in ipairs((own_of(rule, policy))) do rules[#rules + 1] = one end
    end
  end
  for _, one in ipairs(source.all(policy.texts[path])) do
    if one.when then rules[#rules + 1] = one end
    if one.depth == 0 then outermost[#outermost + 1] = one end
  end
  local of_rule, around = finder(rules), finder(outermost)
  local list = of_words(policy.texts[path], function(at) return not of_rule(at) and around(at) or nil end)
  for _, mutant in ipairs(list) do
    mutant.name, mutant.line = mutant.own.name, mutant.own.line
    mutant.text = string.format("byte %d: %s", mutant.at - mutant.own.from, mutant.text)
  end
  return list
end

return function_mutants
