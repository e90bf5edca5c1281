-- SPDX-License-Identifier: Apache-2.0
--[[
terse.lua: what a gate asks of a plan, a line for each answer: a word, a space, the answer. Words stand in this order; what does not apply
has no line.

  status     planned, refused or rejected
  gpus       of the spec
  accelerator
  schedule   that is planned
  digest     of the policies in force, as --policy-digest demands it
  spec       its digest
  reason     a rule that decided: several lines, or none
  instead    the plan that would be legal
  would_fit  where memory is a reason, a change with which it fits: several lines, or none
  nearest    with --explain, where nothing is planned: the nearest value of a field with which it would be: several lines, or none
]]

local verdict = require "pipeplan.report.verdict"
local visible = require "pipeplan.base.visible"

local terse = {}

function terse.render(plan)
  local lines = {}
  local function add(word, answer)
    if answer then lines[#lines + 1] = word .. " " .. visible.line(tostring(answer)) end
  end
  add("status", plan.status)
  add("gpus", plan.cluster.gpus)
  add("accelerator", plan.cluster.accelerator)
  add("schedule", plan.schedule)
  add("digest", plan.policy.stack)
  add("spec", plan.spec.digest)
  for _, reason in ipairs(verdict.reasons(plan)) do add("reason", reason) end
  if plan.status ~= "planned" then
    local instead = verdict.instead(plan)
    add("instead", instead and table.concat(instead, "; "))
    for _, way in ipairs(verdict.ways(plan) or {}) do add("would_fit", way) end
    local changes = plan.explanation and plan.explanation.changes or {}
    for _, change in ipairs(changes) do add("nearest", change.words .. ": " .. change.effect) end
  end
  return table.concat(lines, "\n") .. "\n"
end

return terse
