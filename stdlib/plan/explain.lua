-- SPDX-License-Identifier: Apache-2.0
-- explain.lua: how the plan was decided, why each rule did or did not fire for it, what overrides hide and what that would have said, the
-- nearest change of the spec with another outcome, which formula each figure comes from, and why another choice lost.

local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local figures = require "pipeplan.plan.figures"
local format = require "pipeplan.base.format"
local layers = require "pipeplan.policy.layers"
local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"
local vocabulary = require "pipeplan.vocabulary"
local why = require "pipeplan.plan.why"

local explain = {}

local function shown(value, field)
  if value == nil then return "unknown here" end
  local entry = vocabulary.by_name[field]
  return format.quantity(value, entry and entry.unit)
end

local verbs = { "rows", "rejects", "refuses", "prefers", "kernels", "warns", "invariants" }

-- "architecture = moe, expert_parallel over 1 (it is 64)": a condition that compares says what with, others are their own value.
local function held(rule, record)
  local words = {}
  for i, condition in ipairs(rule.conditions) do
    words[i] = conditions.text(condition)
    if condition.op ~= "equal" or condition.ref then
      words[i] = words[i] .. " (it is " .. shown(record[condition.field], condition.field) .. ")"
    end
  end
  if rule.when then words[#words + 1] = "its function `when` says yes" end
  return #words > 0 and table.concat(words, ", ") or "it has no conditions"
end

-- What follows for the plan from a rule that holds: of rows the first decides, and of kernels the first that works there is used.
local function consequence(rule, first, kernel)
  if rule.verb == "row" then return first and "; " .. first .. " stands before it" or ": decides" end
  if rule.verb ~= "kernel" then return "" end
  if not kernel then return "; nothing to send at EP 1" end
  return kernel.given and "; the spec states one" or kernel.id == rule.id and ": used" or "; not used"
end

-- Of a rule that does not hold the first condition that fails, with the actual value.
local function failed(rule, policy, record)
  local first = conditions.first_failure(rule, policy, record)
  return first.field and string.format("not %s: it is %s", first.text, shown(first.actual, first.field)) or first.text .. " says no"
end

-- Every rule in effective order: { id, verb, holds, because }, for the plan or the candidate that was judged.
local function rules(policy, record, kernel)
  local list = {}
  for _, verb in ipairs(verbs) do
    local first
    for _, rule in ipairs(policy[verb]) do
      local holds = conditions.holds(rule, policy, record)
      local because
      if holds then
        because = held(rule, record) .. (record.status == "planned" and consequence(rule, first, kernel) or "")
        first = first or rule.id
      else
        because = failed(rule, policy, record)
      end
      list[#list + 1] = { id = rule.id, verb = rule.verb, holds = holds, because = because, layer = rule.layer, file = rule.file,
                          line = rule.line, source = rule.source }
    end
  end
  return list
end

local function hidden_text(value)
  if type(value) == "table" then return table.concat(value, ", ") end
  return value == nil and "nothing" or tostring(value)
end

-- What overrides hide: { id, kind, what, holds, layer, file, line, reason, expires }. A disabled rule is evaluated all the same, so that
-- nobody has to guess what it would have said.
local function overridden(policy, record)
  local list = {}
  local function add(id, kind, what, by, holds)
    list[#list + 1] = { id = id, kind = kind, what = what, holds = holds, layer = by.layer, file = by.file, line = by.line,
                        reason = by.reason, expires = by.expires }
  end
  for _, entry in ipairs(policy.disabled) do
    local holds = conditions.holds(entry.rule, policy, record)
    add(entry.rule.id, "disabled", holds and "would hold: " .. held(entry.rule, record)
        or "would not hold either: " .. failed(entry.rule, policy, record), entry.by, holds)
  end
  for _, verb in ipairs(verbs) do
    for _, rule in ipairs(policy[verb]) do
      for _, hidden in ipairs(rule.hides) do
        local now = rule[hidden.name] ~= nil and hidden_text(rule[hidden.name]) or nil
        for _, condition in ipairs(rule.conditions) do
          if condition.field == hidden.name then now = conditions.text(condition) end
        end
        add(rule.id, "changed", string.format("%s: %s, was %s (%s)", hidden.name, now or "any", hidden_text(hidden.value), hidden.layer),
            rule.origin[hidden.name])
      end
    end
  end
  for _, id in ipairs(lists.sorted_keys(policy.parameters)) do
    local parameter = policy.parameters[id]
    for _, hidden in ipairs(parameter.hides) do
      add(id, "set", string.format("%s, was %s (%s)", layers.show_value(parameter, parameter.value),
                                   layers.show_value(parameter, hidden.value), hidden.layer), parameter)
    end
  end
  return list
end

-- The candidate that an answer is about, as `alternatives` show theirs.
local function candidate(answer, known)
  local fields = answer.fields
  if not fields then return nil end
  local list = lists.column(answer.reasons, "id")
  if answer.lost then table.insert(list, 1, answer.lost.id or answer.lost.by) end
  return measure.other(fields, known, list, #answer.reasons > 0)
end

-- field=value pairs of --why, each answered by the search.
local function answers(questions, ask, known)
  local list = {}
  for i, question in ipairs(questions) do
    local answer = ask(question.field, question.value, true)
    list[i] = { question = question.field .. "=" .. tostring(question.value), verdict = answer.verdict, answer = answer.text,
                candidate = candidate(answer, known) }
  end
  return list
end

-- "pipeline=8,schedule=zb_v" → { { field, value }, … }: what cannot be asked is said here, before anything is planned.
function explain.questions(text)
  local list = {}
  for part in (text .. ","):gmatch("%s*([^,]*)%s*,") do
    if part ~= "" then
      local field, value = part:match("^([%w_.-]+)%s*=%s*(.+)$")
      if not field then failure.usage("--why: '%s' is not field=value, such as pipeline=8", part) end
      list[#list + 1] = { field = field, value = why.value(field, value) }
    end
  end
  if #list == 0 then failure.usage("--why: expected field=value, such as pipeline=8") end
  return list
end

-- How the layers came to be split as they are.
local function split(plan)
  local even = plan.even_split
  if not even then return nil end
  return string.format("layers: stages balanced by time, %s; as many on each stage, %s, would take %s a step instead of %s (%s)%s",
                       table.concat(plan.layers_per_stage, "/"), table.concat(even.layers_per_stage, "/"),
                       format.seconds(even.step_seconds), format.seconds(plan.step_seconds), format.percent(even.slower_fraction),
                       even.fit == "does_not_fit" and " and would not fit" or "")
end

-- → { decided, rules, overridden, changes, figures, answers }; all but the last only with `full`. `asked` is the request before
-- the plan chose what the spec leaves out, `record` what rules read, `hints` flip.of's.
function explain.of(plan, request, asked, policy, record, known, result, full, questions, hints)
  local out = { decided = {}, rules = {}, overridden = {}, changes = {}, figures = {},
                answers = questions and answers(questions, result.why, known) or {} }
  if full then
    out.decided = result.steps
    out.decided[#out.decided + 1] = split(plan)
    out.rules = rules(policy, record, result.kernel)
    out.overridden = overridden(policy, record)
    out.changes = require("pipeplan.plan.flip").of(asked, policy, hints)
    if plan.status == "planned" then out.sensitivity = require("pipeplan.plan.sensitivity").of(plan, asked, policy, known) end
    out.figures = figures.of(plan, request)
  end
  return out
end

return explain
