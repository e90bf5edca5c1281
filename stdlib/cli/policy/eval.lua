-- SPDX-License-Identifier: Apache-2.0
-- eval.lua: `pipeplan policy eval RULE SPEC`: one rule against one spec.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local documents = require "pipeplan.base.documents"
local evaluate = require "pipeplan.analysis.evaluate"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local statements = require "pipeplan.policy.statements"

local MOST_VALUES = 12
local WIDEST_VALUE = 50  -- of a text; --format json has all of it

local examples = [[
Exit status: 0 the rule holds for a candidate, or for the plan where it is about that; 1 for none. Of
an expression: 0 it has a value for a candidate; 3 for none; 6 it is no Lua.

Examples:
   pipeplan policy eval odd_microbatches examples/specs/deepseek-v3.json
   pipeplan policy eval -e 'f.peak_bytes / f.device_bytes' examples/specs/llama-3.1-405b.json
       an expression of Lua, as a rule's function could return it; f is the candidate
   pipeplan policy eval -e 'engine.schedule.traits(f.schedule).copies' examples/specs/kimi-k2.json
       what the engine says of each candidate (pipeplan facts primitives)]]

local command = {}

function command.parser()
  local parser = argparse("pipeplan policy eval", "Asks one rule about one spec: each condition, for which candidates it holds, and "
                          .. "the first that the rule decides.")
    :add_help(false):help_max_width(100):help_description_margin(28)
    :usage("Usage: pipeplan policy eval RULE SPEC... [OPTIONS]\n       pipeplan policy eval -e EXPRESSION SPEC... [OPTIONS]")
    :epilog(examples)
  parser:argument("spec", "id of a row or rule, unless there is an expression; then spec files, laid over each other"):argname("RULE SPEC")
    :args("+")
  parser:option("-e --expression", "an expression of Lua over a candidate f, in place of a rule"):argname("EXPRESSION")
  command_line.declare_policy_in_force(parser)
  parser:option("--format", "what to print"):choices({ "text", "json" }):default("text")
  parser:option("-o --output", "write to this file, whole or not at all"):argname("FILE")
  parser:flag("-h --help", "show this help")
  return parser
end

local function text_of(rule, answer)
  local lines = { string.format("%s '%s'  %s  %s", rule.verb, rule.id, rule.layer, format.place(rule)) }
  local whom = answer.total == 1 and "the plan" or string.format("%d candidates", answer.total)
  for _, condition in ipairs(answer.conditions) do
    local held = answer.total > 1 and string.format("holds for %d of %d", condition.holds, answer.total) or
                 condition.holds > 0 and "holds" or "does not hold"
    local values = condition.values ~= "" and ";  it is " .. condition.values or ""
    lines[#lines + 1] = string.format("  %-44s %s%s", condition.text, held, values)
  end
  if #answer.conditions == 0 then lines[#lines + 1] = "  no conditions: it always holds" end
  lines[#lines + 1] = string.format("all of it: %s of %s", answer.holds == 0 and "holds for none" or "holds for " .. answer.holds, whom)
  if answer.first and answer.total > 1 then lines[#lines + 1] = "the first: " .. answer.first.text end
  lines[#lines + 1] = string.format("the outcome is %s; the rule %s for it", answer.plan.status,
                                    answer.plan.holds and "holds" or "does not hold")
  return format.page(lines)
end

local function expression_text(expression, answer)
  local lines = { expression, "", string.format("  %-30s %10s  the first of them", "value", "candidates") }
  for i, one in ipairs(answer.values) do
    lines[#lines + 1] = string.format("  %s %10d  %s", format.pad(format.cut(one.text, WIDEST_VALUE), 30), one.count, one.first)
    if i == MOST_VALUES and #answer.values > i then
      lines[#lines + 1] = string.format("  … %d more values", #answer.values - i)
      break
    end
  end
  if answer.low then lines[#lines + 1] = string.format("from %s to %s", answer.low, answer.high) end
  local plan = answer.plan
  if plan then lines[#lines + 1] = string.format("of the plan (%s): %s", plan.text, format.cut(plan.value, WIDEST_VALUE)) end
  return format.page(lines)
end

-- Why there is no rule of that id to ask.
local function tell_of_none(policy, id)
  for _, entry in ipairs(policy.disabled) do
    if entry.rule.id == id then
      failure.usage("policy eval: '%s' is disabled (%s): --explain of a plan says whether it would hold", id, format.place(entry.by))
    end
  end
  local lapsed = not policy.parameters[id] and policy.lapsed[id]
  if lapsed then failure.usage("policy eval: '%s' has expired (%s)", id, format.place(lapsed)) end
  if lists.contains(statements.built_in, id) or lists.contains(statements.of_engine, id) then
    failure.usage("policy eval: '%s' is what the planner decides itself, no rule: --explain of a plan says why", id)
  end
  failure.usage("policy eval: no row or rule has the id '%s'%s", id, failure.suggestion(id, lists.sorted_keys(policy.rules)))
end

function command.run(arguments)
  local options, help = command_line.parse(command.parser(), arguments, "policy eval")
  if not options then return help, 0 end
  local request = function(specs) return require("pipeplan.input.spec").read { files = specs, options = {} } end
  if options.expression then
    local policy = command_line.policy_in_force(options)
    local answer = evaluate.expression(policy, request(options.spec))
    local text = options.format == "json" and documents.encode("values", answer, { indent = 2 }) .. "\n"
      or expression_text(options.expression, answer)
    return text, 0, options.output
  end
  options.rule = table.remove(options.spec, 1)
  if #options.spec == 0 then failure.usage("policy eval: a rule and a spec are expected, or -e EXPRESSION and a spec") end
  local policy = command_line.policy_in_force(options)
  local rule = policy.rules[options.rule]
  if not rule then tell_of_none(policy, options.rule) end
  local answer = evaluate.of(rule, request(options.spec), policy)
  local text
  if options.format == "json" then
    answer.conditions = json.array(answer.conditions)
    text = documents.encode("evaluation", answer, { indent = 2 }) .. "\n"
  else
    text = text_of(rule, answer)
  end
  return text, answer.holds > 0 and 0 or failure.status.refused, options.output
end

return command
