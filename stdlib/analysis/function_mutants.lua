-- SPDX-License-Identifier: Apache-2.0
--[[
function_mutants.lua: small wrong versions of a rule's function, made in its text: a comparison turned or opened, a number moved by one or
by a tenth. What the function reads as conditions anyway (policy/functions.lua) is mutated as those.

  function_mutants.of(rule, policy) → { { text, rewrite }, … }
    rewrite(text) → the text of the policy's file with the mistake in it; nil: another file
]]

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

function function_mutants.of(rule, policy)
  local file = rule.lines and policy.texts[rule.lines.file]
  if not rule.when or not file then return {} end
  local from, to = source.span(file, rule.lines.first, rule.lines.last)
  local code, list = source.code_only(file), {}
  from = code:find("function", from, true) or from
  local function add(start, stop, new)
    local old = file:sub(start, stop)
    list[#list + 1] = {
      text = string.format("its function, byte %d: %s → %s", start - from, old, new),
      rewrite = function(text) return text == file and text:sub(1, start - 1) .. new .. text:sub(stop + 1) or nil end,
    }
  end
  local at = from
  while true do
    local start, stop, token = code:find("([<>=~]=?)", at)
    if not start or start > to then break end
    for _, new in ipairs(comparisons[token] or {}) do add(start, stop, new) end
    at = stop + 1
  end
  at = from
  while true do
    local start, stop = code:find("%f[%w_.]%d[%d.]*[eE]?%d*%f[^%w_.]", at)
    if not start or start > to then break end
    local number = math.tointeger(tonumber(file:sub(start, stop))) or tonumber(file:sub(start, stop))
    for _, value in ipairs(number and moved(number) or {}) do add(start, stop, string.format("%.6g", value)) end
    at = stop + 1
  end
  return list
end

return function_mutants
