-- SPDX-License-Identifier: Apache-2.0
--[[
record.lua: the record of decisions, `plan --record FILE`: a line of JSON for each: when, for whom, from which spec, policy and pipeplan,
and what came out. Lines are appended whole (engine/host/append_file.h), each before its answer is shown: what was answered is in the
record. What could not be decided is there too, with the verdict error. No plan knows the time, only this.
]]

local dates = require "pipeplan.base.dates"
local documents = require "pipeplan.base.documents"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local reading = require "pipeplan.base.reading"
local schema = require "pipeplan.schema.decision"
local stated = require "pipeplan.input.stated"

local record = {}

local methods = {}
methods.__index = methods

local function append(path, text, sync)
  reading.spare("record", path)
  local good, problem = engine.process.append(path, text, sync)
  if not good then failure.usage("--record %s: cannot be written: %s", path == "" and "''" or path, problem) end
end

-- record.open(path, whom) → the record of this process; nil without a path. `whom`: for whom it asks, in its caller's words. Fails where
-- nothing can be appended.
function record.open(path, whom)
  if not path then
    if whom then failure.usage("plan: --record-for is for --record") end
    return nil
  end
  append(path, "", false)
  return setmetatable({ path = path, whom = whom, user = engine.process.user() }, methods)
end

local function reasons_of(plan)
  local list = {}
  for i, reason in ipairs(plan.reasons) do list[i] = { id = reason.id, message = reason.message } end
  return list
end

-- decision: { status = exit status, plan = or problem = what was said instead, request =, policy = as far as they are known, line = of a
-- stream, verified = { file, equal, differ = subjects } }. → its line.
function methods:line(decision)
  local plan, policy, request = decision.plan, decision.policy, decision.request
  local fields = {
    time = dates.now(), user = self.user, ["for"] = self.whom, line = decision.line,
    verdict = plan and plan.status or "error", exit_status = decision.status, problem = decision.problem,
    reasons = plan and reasons_of(plan) or {}, verified = decision.verified,
    schedule = plan and plan.schedule, gpus_used = plan and plan.gpus_used, run = request and request.run,
    spec = request and request.model and { digest = plan and plan.spec.digest or stated.digest(request), files = request.source.files },
    policy = policy and { digest = policy.digest, stack = policy.stack, date = policy.date, layers = lists.column(policy.layers, "name") },
    engine = { version = engine.version, build = engine.build, library = engine.library, catalogue = engine.catalogue },
  }
  return documents.encode("decision", json.shape(fields, schema)) .. "\n"
end

-- Of a stream, whose lines reach the disk together, at its end.
function methods:append(line) append(self.path, line, false) end

function methods:sync() append(self.path, "", true) end

local function caught(problem)
  return failure.of(problem) or debug.traceback(tostring(problem), 2)
end

-- record:of(decide, …) → what decide(decision, …) returns, a text and an exit status, once the decision is on the disk; what it raises is
-- raised again after that. It says in `decision` what it knows: plan, request, policy, verified.
function methods:of(decide, ...)
  local decision = {}
  local good, text, status = xpcall(decide, caught, decision, ...)
  if good then
    decision.status = status
    self:add(decision)
    return text, status
  end
  local answer = failure.is(text) and text
  decision.status, decision.problem, decision.plan = answer and answer.status or failure.status.bug, answer and answer.message or text, nil
  local noted, problem = pcall(self.add, self, decision)
  if not noted then require("pipeplan.cli.output").complain(tostring(problem)) end  -- beside what went wrong first
  error(text, 0)
end

-- One decision, on the disk when this returns.
function methods:add(decision) append(self.path, self:line(decision), true) end

return record
