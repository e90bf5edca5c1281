-- lines.lua: `pipeplan plan --jsonl`: one spec a line in, one plan a line out, in the same order; with several workers the same bytes.

local engine = require "engine"
local failure = require "pipeplan.failure"
local json = require "pipeplan.report.json"
local output = require "pipeplan.cli.output"
local planner = require "pipeplan.plan.init"
local read_json = require "pipeplan.input.json"
local schema = require "pipeplan.schema.plan"
local spec = require "pipeplan.input.spec"

local lines = {}

-- Exit statuses from worst to best, for several inputs.
local severity = {}
for rank, name in ipairs(failure.severity) do severity[failure.status[name]] = rank end

-- The non-empty lines: { { number, text }, … }.
local function read(input)
  local list, number = {}, 0
  for line in input:lines() do
    number = number + 1
    if line:find("%S") then list[#list + 1] = { number = number, text = line } end
  end
  return list
end

local function caught(problem)
  return failure.is(problem) and problem or debug.traceback(tostring(problem), 2)
end

-- One line → its plan as a line, exit status, message for stderr. A line that cannot be planned gives {"error": …} in its place.
local function plan(line, policy, more)
  local good, outcome = xpcall(function()
    local request = spec.from_table(read_json.decode(line.text, "line " .. line.number))
    return planner.plan { request = request, policy = policy, explain = more.explain, why = more.questions }
  end, caught)
  if good then
    return json.encode(json.shape(outcome, schema)), outcome.status == "planned" and failure.status.ok or failure.status.refused, ""
  end
  local status = failure.is(outcome) and outcome.status or failure.status.bug
  local message = failure.is(outcome) and outcome.message or outcome
  return json.encode { error = { line = line.number, message = message, status = status } }, status,
         string.format("line %d: %s", line.number, message)
end

-- A worker's answers: worker k of n has every n-th line from the k-th on.
local answer_format = "<s8 I1 s8"

local function share(list, worker, workers, policy, more)
  local answers = {}
  for i = worker, #list, workers do answers[#answers + 1] = string.pack(answer_format, plan(list[i], policy, more)) end
  return table.concat(answers)
end

-- lines.plan{ input =, policy =, jobs =, explain =, questions = } → text for stdout, the worst exit status. Messages go to stderr.
function lines.plan(arguments)
  local list = read(arguments.input)
  if #list == 0 then failure.raise("nothing", "no spec on standard input") end
  local workers = math.min(arguments.jobs, #list)
  local function work(worker) return share(list, worker, workers, arguments.policy, arguments) end
  local shares = workers > 1 and engine.host.workers(workers, work) or { work(1) }

  local position, out, worst = {}, {}, failure.status.ok
  for i = 1, #list do
    local worker = (i - 1) % workers + 1
    local text, status, message
    text, status, message, position[worker] = string.unpack(answer_format, shares[worker], position[worker] or 1)
    out[i] = text .. "\n"
    if severity[status] < severity[worst] then worst = status end
    if message ~= "" then output.complain(message) end
  end
  return table.concat(out), worst
end

return lines
