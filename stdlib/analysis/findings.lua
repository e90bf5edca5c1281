-- SPDX-License-Identifier: Apache-2.0
-- findings.lua: what `pipeplan policy check` can find: code, severity, meaning, and what to do. A finding is
--   { code, file, line, layer, id, message, related = { { file, line, message }, … }, witness = { spec, fields } | nil }
-- severity  error    a mistake in all likelihood       warning  probably not meant       note  worth knowing in a review

local findings = {}

findings.codes = {
  { code = "load", severity = "error", meaning = "the policy cannot be loaded",
    advice = "what the message says; a policy that does not load plans nothing" },
  { code = "invariant", severity = "error", meaning = "a plan for which an invariant does not hold (--search)",
    advice = "the rule that the invariant guards lets it through: correct that rule" },
  { code = "fixed_point", severity = "error", meaning = "a plan that is not planned again when its layout is given as a spec (--search)",
    advice = "a rule reads a field that a spec cannot give; if there is none, report it" },
  { code = "monotone", severity = "error", meaning = "a loosening after which a planned spec is not planned any more (--search)",
    advice = "a row or preference leads to a plan that another rule drops: see the witness" },
  { code = "gap", severity = "error", meaning = "a candidate for which no row of the decision table holds",
    advice = "add a row without conditions at the end, or widen one" },
  { code = "catch_all", severity = "note", meaning = "what only the row without conditions covers",
    advice = "nothing, if that row is what you want there" },
  { code = "shadowed", severity = "error", meaning = "a row that never decides: earlier rows take all of it",
    advice = "move it up, narrow the earlier rows, or delete it" },
  { code = "impossible", severity = "error", meaning = "a rule that can never hold", advice = "correct its conditions or delete it" },
  { code = "constant", severity = "warning", meaning = "a condition that always holds", advice = "delete the condition" },
  { code = "overlap", severity = "note", meaning = "two rows with different outcomes that can hold together; the earlier decides",
    advice = "nothing, if the order says what you mean" },
  { code = "redundant", severity = "note", meaning = "a row without which the same would be tried",
    advice = "delete it, or keep it because it says what you mean" },
  { code = "never_fires", severity = "warning", meaning = "a rule that changes nothing: rejects drop all its candidates",
    advice = "delete it, or narrow the rejects" },
  { code = "unwanted", severity = "warning", meaning = "a refusal of schedules that no row tries: it has no effect",
    advice = "delete it, or let a row try the schedule" },
  { code = "left_out", severity = "note", meaning = "a name in a row's list that the parameter `schedules` does not allow",
    advice = "nothing, if the cluster does not run it" },
  { code = "unused_parameter", severity = "warning", meaning = "a parameter that no rule and no part of the planner reads",
    advice = "delete it, or let a rule name it" },
  { code = "unknown_name", severity = "warning", meaning = "an accelerator or a kernel that the catalogue does not have",
    advice = "correct the name; one of your own that no catalogue has needs no correction, only a look" },
  { code = "opaque", severity = "note", meaning = "a rule with a function: what it allows is not analysed",
    advice = "write it as conditions where that is possible" },
  { code = "loosened", severity = "note", meaning = "an override that lets more plans through",
    advice = "its reason is for the review to judge" },
  { code = "not_read", severity = "note", meaning = "what lies in a policy's folder and is no part of the policy",
    advice = "nothing, if it is none: of a folder only its own *.lua are read, without tests (*_spec.lua) and hidden files" },
  { code = "expires_soon", severity = "note", meaning = "an override that expires within 30 days", advice = "renew it or let it go" },
  { code = "expired", severity = "warning", meaning = "an override whose day is over: what loosened has fallen away",
    advice = "delete it, or renew it with a new day and reason" },
  { code = "expires_late", severity = "warning", meaning = "an override that expires in more than five years",
    advice = "correct the year, or leave `expires` out where it is for good" },
  { code = "no_change", severity = "warning", meaning = "an override that says what stands already",
    advice = "delete it; where it is meant to hold against later defaults, pin the default, or write final = true" },
  { code = "function_fails", severity = "error",
    meaning = "a rule's function that raises an error, or spends its budget, for an ordinary candidate or a spec of --search",
    advice = "a field may be absent, a quantity is a number in its unit's base, and the answer is true or false" },
  { code = "function_constant", severity = "warning", meaning = "a function that says yes to all ordinary candidates",
    advice = "look at its comparisons: units, < for >, or where and stand for each other" },
  { code = "holds_for_all", severity = "warning", meaning = "a rule whose conditions hold for nearly all ordinary candidates, or plans",
    advice = "look at its comparisons: which side is which, and < for >; an invariant says what no plan may be, not what all are" },
  { code = "engine_drops", severity = "warning", meaning = "a rule about what no schedule can be: the planner drops it anyway",
    advice = "delete it, or name the schedule that was meant" },
  { code = "recommends_nothing", severity = "warning",
    meaning = "a refusal that recommends what may not be planned: not in `schedules`, or refused by itself",
    advice = "recommend what may be planned, or allow it; a refusal of pipelines has pipeline_parallel = over(1)" },
  { code = "message_limit", severity = "warning", meaning = "a message that names another limit than its rule has, or its other side",
    advice = "write {name} of the field or parameter, or the same number; a rule holds for what it drops, not for what it allows" },
  { code = "message_field", severity = "warning", meaning = "a message that shows another quantity than it names",
    advice = "write the field that its symbol stands for" },
  { code = "policy_not_read", severity = "warning", meaning = "statements of a policy in a file that is not read",
    advice = "of a folder only its own *.lua are read, without *_spec.lua: move it there, or rename it" },
  { code = "implausible", severity = "warning", meaning = "a number far from what its field or parameter is about: a unit forgotten",
    advice = "write it with its unit: \"400Gbps\", \"80GiB\", \"15B\"" },
  { code = "exact", severity = "warning", meaning = "a condition that holds for one exact value of what is measured or large",
    advice = "write a limit, or between; where exactly that is meant, say so: -- check: ignore exact: why" },
  { code = "direction", severity = "warning", meaning = "a parameter that loosens a rule in another direction than it says",
    advice = "correct `loosens`, or nobody is asked for a reason when it is loosened" },
  { code = "suppression", severity = "warning", meaning = "a comment `check: ignore` without a reason, or that takes nothing back",
    advice = "write -- check: ignore CODE: reason at the line of the finding, or delete it" },
  { code = "undecided", severity = "warning", meaning = "rules of which it could not be decided what they take of each other",
    advice = "there are too many rules that overlap; split the policy, or order its table by one field" },
}

local by_code = {}
for _, entry in ipairs(findings.codes) do by_code[entry.code] = entry end

local rank = { error = 3, warning = 2, note = 1 }
findings.severities = { "note", "warning", "error" }

-- The entry of a code.
function findings.entry(code)
  return by_code[code] or error("no finding has the code " .. tostring(code))
end

function findings.severity(finding)
  return findings.entry(finding.code).severity
end

-- How many are at least that severe?
function findings.count(list, severity)
  local count = 0
  for _, finding in ipairs(list) do
    if rank[findings.severity(finding)] >= rank[severity] then count = count + 1 end
  end
  return count
end

-- Most severe first, then by place, then by code.
function findings.sort(list)
  local position = {}
  for i, finding in ipairs(list) do position[finding] = i end
  table.sort(list, function(a, b)
    local ra, rb = rank[findings.severity(a)], rank[findings.severity(b)]
    if ra ~= rb then return ra > rb end
    if a.file ~= b.file then return a.file < b.file end
    if a.line ~= b.line then return a.line < b.line end
    if a.code ~= b.code then return a.code < b.code end
    return position[a] < position[b]
  end)
  return list
end

return findings
