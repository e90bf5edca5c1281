-- SPDX-License-Identifier: Apache-2.0
-- compare.lua: `pipeplan plan A.json B.json … --compare`: each spec planned by itself, and what differs; `--phases`: each laid over the
-- first, as a phase of one training, and what changing over moves.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local reading = require "pipeplan.base.reading"

local compare = {}

local most = 16   -- beside each other

-- What cannot stand beside --compare or --phases (`how`). given: fields that options say.
function compare.check(parsed, given, how)
  if parsed.compare and parsed.phases then failure.usage "plan: --compare and --phases are two questions: ask one" end
  for _, name in ipairs { "explain", "jobs", "jsonl", "keep", "pairs", "recommended", "record", "record_for", "resume", "shard",
                         "shortlist", "verify" } do
    if parsed[name] then failure.usage("plan: --%s and --%s are two questions: ask one", how, (name:gsub("_", "-"))) end
  end
  if #parsed.why > 0 then failure.usage("plan: --%s and --why are two questions: ask one", how) end
  if parsed.format and parsed.format ~= "text" and parsed.format ~= "json" then
    failure.usage("plan: --%s is for --format text and json, not %s", how, parsed.format)
  end
  if how == "phases" and given.tokens then
    failure.usage "plan: --tokens beside --phases would hold for each phase: expected training.tokens of its own in each spec"
  end
  if #parsed.spec < 2 then failure.usage("plan: --%s takes two specs or more, got %d", how, #parsed.spec) end
  if #parsed.spec > most then failure.usage("plan: --%s takes at most %d specs, got %d", how, most, #parsed.spec) end
end

local function name_of(path) return path == "-" and "standard input" or path end

-- A phase that says no volume of its own would count the first one's again.
local function check_phase(request, path, first)
  if path == first then failure.usage("plan: %s is the first phase: expected another spec, with tokens of its own", name_of(path)) end
  local at = request.stated["training.tokens"]
  if at.origin ~= name_of(path) and at.origin == name_of(first) then
    failure.usage("%s: training.tokens is missing: expected the tokens of this phase, for each has its own", name_of(path))
  end
end

-- Texts of specs that can be read only once, as standard input can and <(…) of a shell: a first phase is read for each.
local function held_of(paths)
  local held = {}
  for _, path in ipairs(paths) do
    if path == "-" or reading.exists(path) and not engine.host.readable(path, true) then
      if held[path] then failure.usage("plan: %s is given twice: it can be read once", name_of(path)) end
      held[path] = json.text(path)
    end
  end
  return held
end

-- request_of(paths, held: texts of some) → the request of specs laid over each other → the text, the worst status.
function compare.run(parsed, policy, request_of)
  local entries, worst, held = {}, failure.status.ok, held_of(parsed.spec)
  for i, path in ipairs(parsed.spec) do
    local paths = parsed.phases and i > 1 and { parsed.spec[1], path } or { path }
    local asked = request_of(paths, held)
    if parsed.phases and i > 1 then check_phase(asked, path, parsed.spec[1]) end
    local plan, _, request = require("pipeplan.plan.init").plan { request = asked, policy = policy }
    entries[i] = { name = name_of(path), request = request, plan = plan }
    if entries[i].plan.status ~= "planned" then worst = failure.status.refused end
  end
  local what = parsed.phases and "phases" or "side_by_side"
  local comparison = require("pipeplan.plan." .. what).of(entries)
  local report = require("pipeplan.report." .. what)
  if parsed.format ~= "json" then return report.text(comparison), worst end
  return report.json(comparison, function(plan) return json.shape(plan, (require "pipeplan.schema.plan")) end), worst
end

return compare
