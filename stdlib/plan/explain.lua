-- explain.lua: why each rule did or did not fire for the plan, which formula each figure comes from, and why another choice lost.

local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.failure"
local format = require "pipeplan.report.format"
local vocabulary = require "pipeplan.vocabulary"

local explain = {}

local function shown(value, field)
  if value == nil then return "unknown here" end
  local entry = vocabulary.by_name[field]
  return format.quantity(value, entry and entry.unit)
end

local verbs = { "rows", "rejects", "refuses", "prefers", "kernels", "warns", "invariants" }

-- Every rule in effective order: { id, verb, holds, because }. Rules that read what this outcome does not know say so.
local function rules(policy, record)
  local list = {}
  for _, verb in ipairs(verbs) do
    for _, rule in ipairs(policy[verb]) do
      local holds = conditions.holds(rule, policy, record)
      local because
      if holds then
        because = #rule.conditions == 0 and not rule.when and "it has no conditions" or "all its conditions hold"
      else
        local first = conditions.first_failure(rule, policy, record)
        because = first.field and string.format("not %s: it is %s", first.text, shown(first.actual, first.field))
                  or first.text .. " says no"
      end
      list[#list + 1] = { id = rule.id, verb = rule.verb, holds = holds, because = because, file = rule.file, line = rule.line }
    end
  end
  return list
end

-- Where each figure comes from.
local figures = {
  { "bubble.fraction", "1 − Σ busy / (P × makespan), from an event simulation of the schedule's program" },
  { "bubble.closed_form_fraction", "closed form of the schedule's bubble at mean stage times (pipeplan simulate prints its conditions)" },
  { "step_seconds", "makespan + gradient and parameter synchronisation + optimizer + mirror sum" },
  { "ideal_step_seconds", "M × Σ over stages (F + B − all-to-all) / P" },
  { "predicted_utilisation_fraction", "ideal_step_seconds / step_seconds" },
  { "stages[].forward_seconds", "roofline: FLOPs over achieved peak, bytes over achieved bandwidth, plus exposed collectives" },
  { "stages[].pair_seconds", "clamp(max(compute, all-to-all) + overhead, max(F, B), F + B)" },
  { "memory.ranks[]", "weights, gradients, sharded optimizer + the schedule's peak of stored and pending activations + largest temporary" },
  { "mfu_fraction", "training FLOPs of a step / (step × GPUs × bf16 peak)" },
  { "gpu_hours", "Σ over segments of the batch: tokens / (batch × sequence) × step × GPUs / goodput" },
  { "gpu_hours_saved[].bubble", "baseline − the same schedule with F&B = F + B" },
  { "gpu_hours_saved[].overlap", "the same schedule with F&B = F + B − the plan" },
  { "rollback.threshold_fraction", "ideal step / step of the fallback, over the window" },
}

-- field=value pairs of --why, each answered by the search.
local function answers(questions, why)
  local list = {}
  for i, question in ipairs(questions) do
    local answer = why(question.field, question.value)
    list[i] = { question = question.field .. "=" .. tostring(question.value), verdict = answer.verdict, answer = answer.text }
  end
  return list
end

-- "pipeline=8,schedule=zb_v" → { { field, value }, … }
function explain.questions(text)
  local list = {}
  for part in (text .. ","):gmatch("%s*([^,]*)%s*,") do
    if part ~= "" then
      local field, value = part:match("^([%w_.]+)%s*=%s*(.+)$")
      if not field then failure.usage("--why: '%s' is not field=value, such as pipeline=8", part) end
      local number = tonumber(value)
      if value == "true" then number = true elseif value == "false" then number = false end
      list[#list + 1] = { field = field, value = number == nil and value or math.tointeger(number) or number }
    end
  end
  if #list == 0 then failure.usage("--why: expected field=value, such as pipeline=8") end
  return list
end

-- → { rules, figures, answers }; rules and figures only with `full`.
function explain.of(policy, record, result, full, questions)
  local out = { rules = {}, figures = {}, answers = questions and answers(questions, result.why) or {} }
  if full then
    out.rules = rules(policy, record)
    for i, figure in ipairs(figures) do out.figures[i] = { figure = figure[1], formula = figure[2] } end
  end
  return out
end

return explain
