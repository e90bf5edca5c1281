-- SPDX-License-Identifier: Apache-2.0
-- lines.lua: `pipeplan plan --jsonl`: one spec a line in, one plan a line out, in the same order: a stream. Each answer is written as soon
-- as those before it are, whatever else is still to come; what is held does not grow with the number of lines.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local input_lines = require "pipeplan.cli.input_lines"
local json = require "pipeplan.base.json"
local output = require "pipeplan.cli.output"
local planner = require "pipeplan.plan.init"
local progress = require "pipeplan.cli.progress"
local reading = require "pipeplan.base.reading"
local resume = require "pipeplan.cli.resume"
local schema = require "pipeplan.schema.plan"
local spec = require "pipeplan.input.spec"
local visible = require "pipeplan.base.visible"
local workers = require "pipeplan.base.workers"

local lines = {}

local LINE_BYTES = 2 ^ 20          -- of a spec
local GARBAGE_KIB = 16 * 1024      -- that a worker keeps from line to line
local SIGKILL, SIGXCPU = 9, 24

-- ------------------------------------------------------------------------------------------------------------- in a worker: one line

-- An answer on its way: exit status, a line of output, a message, a line of the record or "". After END nothing is written any more: the
-- message is the failure of the whole command.
local END = 255

local function pack(status, text, message, decided) return string.pack("<I1 s8 s8 s8", status, text, message, decided) end

local function line_of(how, decision)
  if not how.record then return "" end
  decision.policy = decision.policy or how.policy
  return how.record:line(decision)
end

-- The answer for a line without a plan: {"error": …} in its place. `known`: { run = its name, request, policy }, as far as they came.
local function problem(number, status, message, how, known)
  return pack(status, json.encode { error = { line = number, message = message, run = known.run, status = status } }, message,
              line_of(how, { line = number, status = status, problem = message, request = known.request, policy = known.policy }))
end

-- What a line names is opened in the worker, what is written in the stream: neither alone knows that they are one file.
local function spare_outputs(how)
  reading.spare("output", how.output)
  reading.spare("record", how.record and how.record.path)
end

local function status_of(good) return good and failure.status.ok or failure.status.refused end

local function caught(what)
  return failure.of(what) or debug.traceback(tostring(what), 2)
end

-- What is asked of a line → function(number, text, how, known) → exit status, answer, decision.
local decide = {}

function decide.plan(number, text, how, known)
  local object = json.decode(text, "line " .. number)
  known.run = type(object) == "table" and type(object.run) == "string" and object.run or nil
  known.request = spec.from_table(object)
  local planned, _, request = planner.plan { request = known.request, policy = how.policy, explain = how.explain, why = how.questions }
  known.request = request
  return status_of(planned.status == "planned"), json.encode(json.shape(planned, schema)), { plan = planned }
end

-- A plan, derived again at its own day.
function decide.verify(number, text, how, known)
  local verify = require "pipeplan.analysis.verify"
  local handed = verify.handed(json.decode(text, "line " .. number), "plan")
  local run = json.at(handed.plan, "spec.run")
  known.run = type(run) == "string" and run or nil
  known.policy = how.policy_at(handed.date)
  local result = verify.of { handed = handed, policy = known.policy }
  known.request = result.request
  local told = require("pipeplan.report.verification").line(result, number, known.run)
  return status_of(result.equal), told, { plan = result.plan, verified = { file = "standard input", equal = result.equal,
                                                                          differ = verify.subjects(result) } }
end

-- → its answer, and whether all went as it should.
local function answer_of(number, text, how)
  local known = {}
  reading.forget()
  local good, outcome = xpcall(function()
    local status, told, decision = decide[how.verify and "verify" or "plan"](number, text, how, known)
    decision.line, decision.status, decision.request, decision.policy = number, status, known.request, known.policy
    return pack(status, told, "", line_of(how, decision))
  end, caught)
  local spared, overwrites = failure.try(spare_outputs, how)
  if not spared then return pack(END, "", overwrites.message, ""), true end
  if good then return outcome, true end
  local answer = failure.of(outcome)
  if answer then return problem(number, answer.status, answer.message, how, known), answer.status == failure.status.usage end
  return problem(number, failure.status.bug, outcome, how, known), false
end

-- What one plan leaves behind is collected when it is worth it, or the next one's garbage comes on top of it. After a rule that failed, a
-- budget that was spent or a mistake of ours the next line gets a new worker: the same answer, whatever stood before it.
local function worker_of(how)
  return function(asked)
    local number, text = string.unpack("<I8 s8", asked)
    local answer, good = answer_of(number, text, how)
    if collectgarbage "count" > GARBAGE_KIB then collectgarbage() end
    return answer, not good
  end
end

-- What a worker printed, of which only the end was kept, on one line.
local function words_of(said)
  return visible.line((said:gsub("^[\x80-\xBF]+", ""):gsub("%s+$", "")))
end

-- A worker that ended without an answer. What limits its processor time ends it with the status for that, or by SIGXCPU; what is short of
-- memory, by SIGKILL, which none sends itself: no bug. That none can be started is for want of files, processes or memory, as much as
-- running out of them is.
local function lost(item, how)
  local kind, number, words = item.lost.kind, item.lost.number, item.lost.words
  local killed = kind == "signal" and number == SIGKILL
  local over_budget = kind == "none" or kind == "status" and number == failure.status.over_budget or kind == "signal" and number == SIGXCPU
  local status = (over_budget or killed) and failure.status.over_budget or failure.status.bug
  local message
  if kind == "none" then message = "no process to plan it: " .. words
  elseif over_budget then message = "over budget: the process that planned it ran out of processor time"
  elseif kind == "status" then message = "the process that planned it ended with exit status " .. number
  else
    message = string.format("the process that planned it was ended by signal %d (%s)%s", number, words,
                            killed and ": by hand, or for want of memory" or "")
  end
  if item.said then message = message .. "; its last words: " .. words_of(item.said) end
  return problem(item.number, status, message, how, {})
end

-- ------------------------------------------------------------------------------------------------------------------- the stream

-- What goes on with an earlier run's output, and where new answers go; `shown`: what that output holds is written too.
local function open_output(how)
  reading.note()
  reading.spare("output", how.output)
  if not how.resume then return nil, output.open(how.output), false end
  local in_place = how.output and (how.output == how.resume or engine.process.same_file(how.output, how.resume))
  local earlier = resume.open(how.resume, how.policy, in_place)
  if not how.output and earlier.torn and engine.process.same_file(how.resume, "/dev/stdout") then
    failure.usage("--resume %s: its last line is torn, and standard output goes on behind it: say -o %s instead", how.resume, how.resume)
  end
  return earlier, output.open(how.output, in_place and earlier.kept or nil), how.output and not in_place
end

-- lines.plan{ policy =, jobs =, explain =, questions =, output = path, resume = path, record =, shard = { which, of }, verify = are the
-- lines plans?, policy_at = function(day) } → nil, the worst exit status. Answers go to `output`, or to standard output, messages to
-- standard error. Of `of` shards each takes every so manyth spec, so that a line of each in turn is what one process would write.
function lines.plan(how)
  local earlier, opened, shown = open_output(how)
  local to <close> = opened
  local input, size, seen = input_lines.new(LINE_BYTES), engine.process.input_size(), progress.new()
  local specs, answered, worst = 0, 0, failure.status.ok
  local shard = how.shard or { 1, 1 }
  local all = 0  -- specs of every shard
  local what = how.verify and "plan" or "spec"

  local function next_item()
    local number, text
    repeat
      number, text = input:next()
      if not number then return number end
      local is_spec = not text or text:find "%S" ~= nil
      if is_spec then all = all + 1 end
    until is_spec and (all - shard[1]) % shard[2] == 0
    specs = specs + 1
    local item = { number = number, bytes = input.bytes, earlier = earlier and earlier:next(number) }
    if item.earlier and not item.earlier.compare then item.answer = pack(item.earlier.status, item.earlier.text, "", "")
    elseif not text then
      local message = string.format("longer than %d MiB: this is no %s", LINE_BYTES // 2 ^ 20, what)
      item.answer = problem(number, failure.status.usage, message, how, {})
    else item.text = string.pack("<I8 s8", number, text) end
    return item
  end

  local function done(item)
    local status, text, message, decided = string.unpack("<I1 s8 s8 s8", item.answer or lost(item, how))
    if status == END then failure.usage("line %d: %s", item.number, message) end
    local before = item.earlier
    if before and item.answer and text ~= before.text then
      failure.usage("--resume %s: is not what line %d of standard input is planned as", before.place, item.number)
    end
    if before then status, text, message = before.status, before.text, "" end
    worst = failure.worse(worst, status)
    if item.answer and item.said then
      seen:clear()
      output.complain(string.format("line %d: the process that planned it printed: %s", item.number, words_of(item.said)))
    end
    if message ~= "" then
      seen:clear()
      output.complain(string.format("line %d: %s", item.number, message))
    end
    if not before and decided ~= "" then how.record:append(decided) end
    if not before or shown then
      to:write(text .. "\n")
      to:flush()
    end
    answered = answered + 1
    seen[before and "skip" or "show"](seen, answered, size and item.bytes / size)
  end

  workers.run {
    jobs = how.jobs, work = worker_of(how), next = next_item, input = function() input:read() end, done = done, output = not how.output,
    gone = function() failure.usage("cannot write to standard output: nobody reads it") end,
  }
  seen:clear()
  if input.problem then failure.usage("standard input cannot be read: %s", input.problem) end
  if earlier then earlier:finish(specs) end
  if how.record then how.record:sync() end
  if all == 0 then failure.raise("nothing", "no %s on standard input", what) end
  to:finish()
  return nil, worst
end

return lines
