-- SPDX-License-Identifier: Apache-2.0
-- compare.lua: `pipeplan plan A.json B.json … --compare`: each spec planned by itself, and what differs; `--phases`: each laid over the
-- first, as a phase of one training, and what changing over moves.

local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"

local compare = {}

local most = 16   -- beside each other

-- What cannot stand beside --compare or --phases (`how`).
function compare.check(parsed, how)
  if parsed.compare and parsed.phases then failure.usage "plan: --compare and --phases are two questions: ask one" end
  for _, name in ipairs { "explain", "jobs", "jsonl", "keep", "pairs", "recommended", "record", "record_for", "resume", "shard",
                         "shortlist", "verify" } do
    if parsed[name] then failure.usage("plan: --%s and --%s are two questions: ask one", how, (name:gsub("_", "-"))) end
  end
  if #parsed.why > 0 then failure.usage("plan: --%s and --why are two questions: ask one", how) end
  if parsed.format and parsed.format ~= "text" and parsed.format ~= "json" then
    failure.usage("plan: --%s is for --format text and json, not %s", how, parsed.format)
  end
  if #parsed.spec < 2 then failure.usage("plan: --%s takes two specs or more, got %d", how, #parsed.spec) end
  if #parsed.spec > most then failure.usage("plan: --%s takes at most %d specs, got %d", how, most, #parsed.spec) end
end

-- A phase that says no volume of its own would count the first one's again.
local function check_phase(path)
  local object = path:find "%.json$" and json.read(path)
  if object and not json.at(object, "training.tokens") then
    failure.usage("%s: training.tokens is missing: expected the tokens of this phase, for each has its own", path)
  end
end

-- request_of(paths) → the request of specs laid over each other → the text, the worst status.
function compare.run(parsed, policy, request_of)
  local entries, worst = {}, failure.status.ok
  for i, path in ipairs(parsed.spec) do
    if parsed.phases and i > 1 then check_phase(path) end
    local paths = parsed.phases and i > 1 and { parsed.spec[1], path } or { path }
    local plan, _, request = require("pipeplan.plan.init").plan { request = request_of(paths), policy = policy }
    entries[i] = { name = path == "-" and "standard input" or path, request = request, plan = plan }
    if entries[i].plan.status ~= "planned" then worst = failure.status.refused end
  end
  local what = parsed.phases and "phases" or "side_by_side"
  local comparison = require("pipeplan.plan." .. what).of(entries)
  local report = require("pipeplan.report." .. what)
  if parsed.format ~= "json" then return report.text(comparison), worst end
  return report.json(comparison, function(plan) return json.shape(plan, (require "pipeplan.schema.plan")) end), worst
end

return compare
