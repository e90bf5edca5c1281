-- SPDX-License-Identifier: Apache-2.0
-- compare.lua: `pipeplan plan A.json B.json … --compare`: each spec planned by itself, and what differs.

local failure = require "pipeplan.base.failure"

local compare = {}

local most = 16   -- beside each other

-- What cannot stand beside it.
function compare.check(parsed)
  for _, name in ipairs { "explain", "jobs", "jsonl", "keep", "pairs", "recommended", "record", "record_for", "resume", "shard",
                         "shortlist", "verify" } do
    if parsed[name] then failure.usage("plan: --compare and --%s are two questions: ask one", (name:gsub("_", "-"))) end
  end
  if #parsed.why > 0 then failure.usage "plan: --compare and --why are two questions: ask one" end
  if parsed.format and parsed.format ~= "text" and parsed.format ~= "json" then
    failure.usage("plan: --compare is for --format text and json, not %s", parsed.format)
  end
  if #parsed.spec < 2 then failure.usage("plan: --compare takes two specs or more, got %d", #parsed.spec) end
  if #parsed.spec > most then failure.usage("plan: --compare takes at most %d specs, got %d", most, #parsed.spec) end
end

-- request_of(path) → its request → the text, the worst status.
function compare.run(parsed, policy, request_of)
  local entries, worst = {}, failure.status.ok
  for i, path in ipairs(parsed.spec) do
    local plan, _, request = require("pipeplan.plan.init").plan { request = request_of(path), policy = policy }
    entries[i] = { name = path == "-" and "standard input" or path, request = request, plan = plan }
    if entries[i].plan.status ~= "planned" then worst = failure.status.refused end
  end
  local comparison = require("pipeplan.plan.side_by_side").of(entries)
  local report = require "pipeplan.report.side_by_side"
  return (parsed.format == "json" and report.json or report.text)(comparison), worst
end

return compare
