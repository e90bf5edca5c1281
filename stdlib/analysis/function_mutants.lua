-- SPDX-License-Identifier: Apache-2.0
--[[
function_mutants.lua: small wrong versions of a rule's function, made in its text: a comparison turned or opened, a number moved by one or
by a tenth. What the function reads as conditions anyway (policy/functions.lua) is mutated as those.

  function_mutants.of(rule, policy) → { { text, text_before, rewrite }, … }
    text_before  the text of the file where the function stands, the policy's or one that it requires
    rewrite()    → that text with the mistake in it
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

-- Is a text Lua? What is none does not load: whoever writes it is told, and no test has to.
local function is_lua(text) return load(text, "=mutant", "t", {}) ~= nil end

function function_mutants.of(rule, policy)
  local file = rule.lines and policy.texts[rule.lines.file]
  if not rule.when or not file then return {} end
  local list, functions = {}, source.of(file, rule.lines.first, rule.lines.last)
  local function add(start, stop, new)
    local text = file:sub(1, start - 1) .. new .. file:sub(stop + 1)
    if not is_lua(text) then return end
    list[#list + 1] = {
      text = string.format("its function, byte %d: %s → %s", start - functions[1].from, file:sub(start, stop), new), text_before = file,
      rewrite = function() return file:sub(1, start - 1) .. new .. file:sub(stop + 1) end,
    }
  end
  for kind, start, stop in lua_text.words(file) do
    for _, own in ipairs(functions) do
      if start >= own.from and stop <= own.to then
        for _, new in ipairs(slips(kind, file:sub(start, stop))) do add(start, stop, new) end
      end
    end
  end
  return list
end

return function_mutants
