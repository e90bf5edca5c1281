-- SPDX-License-Identifier: Apache-2.0
--[[
messages.lua: a message that says something else than its rule: another limit, the other side of it, another quantity. One of the two is a
slip of the hand, and tests see neither.

  messages.check(rule, add): add(code, at, message, …) takes each finding
]]

local conditions = require "pipeplan.policy.conditions"
local lists = require "pipeplan.base.lists"

local messages = {}

local function condition_texts(rule)
  local texts = {}
  for i, condition in ipairs(rule.conditions) do texts[i] = conditions.text(condition) end
  return table.concat(texts, ", ")
end

-- ---------------------------------------------------------------------------------------------------------------------------- limits

local before_limits = { "at most", "at least", "more than", "less than", "fewer than", "up to", "maximum of", "limit of", "limit is",
                        "over", "under", "above", "below" }

-- What a limit may be called: in its unit, in percent, in giga and tera of it, in bits, in hours, or as the next whole number.
local scales = { 1, 100, 1 / (1 << 30), 1 / (1 << 20), 1 / (1 << 10), 1e-3, 1e-6, 1e-9, 1e-12, 8e-9, 1 / 60, 1 / 3600, 24 }

-- What a prefix says where it stands alone: 15 T tokens.
local prefixes = { k = { 1e3, 1 << 10 }, m = { 1e6, 1 << 20 }, b = { 1e9 }, g = { 1e9, 1 << 30 }, t = { 1e12 } }

local function is_near(a, b) return math.abs(a - b) <= 1e-3 * math.abs(b) end

local function is_called(limit, number, prefix)
  for _, factor in ipairs(prefixes[prefix] or {}) do
    if is_near(limit, number * factor) then return true end
  end
  if prefixes[prefix] then return false end
  for _, scale in ipairs(scales) do
    if is_near(limit * scale, number) then return true end
  end
  return math.abs(limit - number) == 1
end

-- What may stand: "at most 8" of a rule that drops what is over 8, or that says of which it speaks. "at most 8" of one that drops what is
-- under 8, or 8 itself, is the other side.
local other_side = {
  under = { ["at most"] = true, ["up to"] = true, ["maximum of"] = true }, over = { ["at least"] = true },
  at_most = { ["at least"] = true }, at_least = { ["up to"] = true, ["maximum of"] = true, ["at most"] = true },
}

local function check_limit(rule, words, said, prefix, add)
  local number, known, limits = tonumber(said), false, 0
  for _, condition in ipairs(rule.conditions) do
    for _, limit in ipairs(conditions.numbers(condition)) do
      limits = limits + 1
      if is_called(limit, number, prefix) then
        known = true
        if (other_side[condition.op] or {})[words] and math.abs(limit - number) ~= 1 then
          add("message_limit", rule, "%s '%s': its message says \"%s %s\", and it holds for %s: which side is which?", rule.verb,
              rule.id, words, said, conditions.text(condition))
        end
      end
    end
  end
  if limits > 0 and not known then
    add("message_limit", rule, "%s '%s': its message says \"%s %s\", and it has %s", rule.verb, rule.id, words,
        said .. (prefixes[prefix] and " " .. prefix:upper() or ""), condition_texts(rule))
  end
end

-- ---------------------------------------------------------------------------------------------------------------------- other slips

local symbols = { p = "pipeline_parallel", tp = "tensor_parallel", cp = "context_parallel", ep = "expert_parallel",
                  etp = "expert_tensor_parallel", dp = "data_parallel", m = "microbatches", v = "virtual" }

local stand_for = {}
for _, name in pairs(symbols) do stand_for[#stand_for + 1] = name end

-- "TP {pipeline_parallel}"
local function check_symbols(rule, add)
  for symbol, name in rule.message:gmatch "%f[%w](%u+) {([%w_]+)}" do
    local meant = symbols[symbol:lower()]
    if meant and meant ~= name and lists.contains(stand_for, name) then
      add("message_field", rule, "%s '%s': its message says \"%s {%s}\": %s is {%s}", rule.verb, rule.id, symbol, name, symbol, meant)
    end
  end
end

-- "only infiniband" of a rule that drops infiniband: what is allowed was written where what is dropped is meant.
local function check_only(rule, text, add)
  for _, condition in ipairs(rule.conditions) do
    local list = condition.op == "one_of" and condition.values or (condition.op == "equal" or condition.op == "multiple_of")
                 and { condition.value } or {}
    for _, value in ipairs(list) do
      local word = tostring(value):gsub("%p", "%%%0")
      if text:find(" only " .. word .. "%f[^%w_]") or text:find("%f[%w_]" .. word .. " only%f[^%w_]") then
        add("message_limit", rule, "%s '%s': its message says that only %s is allowed, and it drops %s: none_of, or not_multiple_of?",
            rule.verb, rule.id, tostring(value), conditions.text(condition))
        return
      end
    end
  end
end

function messages.check(rule, add)
  if rule.verb == "prefer" and (rule.why or ""):lower():find "%f[%w]avoid" then
    add("message_limit", rule, "prefer '%s': its why speaks of what to avoid, and it prefers %s", rule.id, condition_texts(rule))
  end
  if not rule.message then return end
  check_symbols(rule, add)
  if rule.when then return end
  local text = " " .. rule.message:lower():gsub("{[^{}]*}", "x"):gsub("(%d),(%d%d%d)", "%1%2")
  for _, words in ipairs(before_limits) do
    for said, prefix in text:gmatch(" " .. words .. " (%d+%.?%d*) ?(%a*)") do check_limit(rule, words, said, prefix, add) end
  end
  if rule.verb == "reject" or rule.verb == "refuse" then check_only(rule, text, add) end
end

return messages
