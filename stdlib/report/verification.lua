-- SPDX-License-Identifier: Apache-2.0
-- verification.lua: what became of a plan that was derived again, as text and JSON.

local documents = require "pipeplan.base.documents"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"

local verification = {}

local WIDTH, MARGIN = 100, 11
local SHOWN = 12  -- differing figures

local function say(lines, label, text)
  local wrapped = format.wrap(text, WIDTH, format.pad(label, MARGIN), string.rep(" ", MARGIN))
  table.move(wrapped, 1, #wrapped, #lines + 1, lines)
end

-- "planned: DualPipe, P 16 · M 120 · …"; "refused: too_deep"
local function outcome(plan)
  if plan.status == "planned" then
    return string.format("planned: %s, %s", format.schedule(plan.schedule), layout.line(plan.parallelism, plan.microbatches))
  end
  return plan.status .. ": " .. table.concat(lists.column(plan.reasons, "id"), ", ")
end

-- result: of analysis/verify.lua; name: of the plan's file.
function verification.text(result, name)
  local lines, plan, shown, more = {}, result.plan, 0, 0
  if result.equal then
    say(lines, "equal", name .. ": " .. outcome(plan))
  else
    say(lines, "differs", string.format("%s is not what is planned here (%s)", name, outcome(plan)))
  end
  local subject
  for _, each in ipairs(result.differences) do
    local figure = each.subject == "figures"
    shown = shown + (figure and 1 or 0)
    if figure and shown > SHOWN then more = more + 1
    else say(lines, each.subject ~= subject and each.subject or "", each.message) end
    subject = each.subject
  end
  if more > 0 then say(lines, "", string.format("… %d more, see --format json", more)) end
  say(lines, "compared", string.format("%s; pipeplan %s, policy %s, digest %s, judged at %s; spec %s",
                                       format.plural(result.compared, "field"), plan.engine_version,
                                       table.concat(plan.policy.layers, " ← "), plan.policy.digest, plan.policy.date, plan.spec.digest))
  local unchecked = {}
  for i, each in ipairs(result.not_checked) do unchecked[i] = string.format("%s (%s)", each.field, each.why) end
  say(lines, "unchecked", table.concat(unchecked, ", "))
  return format.page(lines)
end

local function object_of(result)
  local differences = {}
  for i, each in ipairs(result.differences) do
    differences[i] = { subject = each.subject, field = each.field, plan = json.or_null(each.theirs), here = json.or_null(each.ours),
                       message = each.message }
  end
  return {
    equal = result.equal, differences = json.array(differences), compared = result.compared,
    not_checked = json.array(result.not_checked), status = result.plan.status, engine_version = result.plan.engine_version,
    policy = { digest = result.plan.policy.digest, stack = result.plan.policy.stack, layers = json.array(result.plan.policy.layers),
               date = result.plan.policy.date },
    spec = { digest = result.plan.spec.digest },
  }
end

function verification.json(result, name)
  return documents.encode("verification", lists.with(object_of(result), { file = name }), { indent = 2 }) .. "\n"
end

-- Of the plan on that line of a stream, on one line.
function verification.line(result, number, run)
  return documents.encode("verification", lists.with(object_of(result), { line = number, run = run }))
end

return verification
