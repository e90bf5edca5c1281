-- SPDX-License-Identifier: Apache-2.0
--[[
resume.lua: what an earlier run of `plan --jsonl` answered already, read from its output, which may have been cut anywhere.

The k-th whole line of the file is the answer to the k-th spec. That it is, is checked: every answer must come from this version of
pipeplan, this policy and this date, every error must name the number of its line, and every error and answers 1, 2, 4, 8, … and the last
one must be what these lines are planned as now, byte for byte. Only what was lost for want of time or memory, or by a mistake of ours, is
taken as it is: it may come out otherwise on another day. What stands after the last line end is torn, and not an answer.
]]

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"

local resume = {}

-- Of errors: does the same line make the same again?
local repeats = {}
for _, status in pairs(failure.status) do repeats[status] = status ~= failure.status.over_budget and status ~= failure.status.bug end
repeats[failure.status.ok], repeats[failure.status.refused] = nil, nil

local methods = {}
methods.__index = methods

local BLOCK = 64 * 1024
local ENOENT = 2

-- Bytes up to and with the last line end.
local function whole_lines(file, size)
  local to = size
  while to > 0 do
    local from = math.max(0, to - BLOCK)
    file:seek("set", from)
    local block = file:read(to - from)
    local after = block:match "^.*\n()"
    if after then return from + after - 1 end
    to = from
  end
  return 0
end

local function unreadable(path, problem)
  failure.usage("--resume %s: cannot be read: %s", path, problem:match ": ([^:]+)$" or problem)
end

-- resume.open(path, policy, may_be_missing) → earlier answers. `kept`: bytes of whole lines; `torn`: does something follow them?
function resume.open(path, policy, may_be_missing)
  local self = setmetatable({ path = path, policy = policy, count = 0, position = 0, kept = 0, torn = false }, methods)
  local file, problem, number = io.open(path, "rb")
  if not file and may_be_missing and number == ENOENT then return self end
  if not file then unreadable(path, problem) end
  local some, why = file:read(1)  -- a directory can be opened
  if not some and why then unreadable(path, why) end
  local size = file:seek "end"
  if not size then unreadable(path, "no regular file") end
  self.kept = whole_lines(file, size)
  self.file, self.torn = file, self.kept < size
  file:seek "set"
  return self
end

local function wrong(self, format, ...)
  failure.usage("--resume %s:%d: " .. format, self.path, self.count, ...)
end

-- Whose answer it is, as far as it says itself. → its exit status, is it a plan or an error that can be planned again?
local function read_answer(self, text, line)
  local good, answer = pcall(json.decode, text, self.path)
  local problem = good and type(answer) == "table" and answer.error
  if type(problem) == "table" and math.type(problem.line) == "integer" and repeats[problem.status] ~= nil then
    if problem.line ~= line then wrong(self, "answers line %d; here the spec stands on line %d of standard input", problem.line, line) end
    return problem.status, repeats[problem.status], true
  end
  local policy = good and type(answer) == "table" and answer.policy
  if type(policy) ~= "table" or not answer.status or type(answer.engine_version) ~= "string" or type(policy.date) ~= "string"
     or type(policy.digest) ~= "string" then wrong(self, "no answer of plan --jsonl") end
  if answer.engine_version ~= engine.version then
    wrong(self, "planned by pipeplan %s, and this is %s", answer.engine_version, engine.version)
  elseif policy.date ~= self.policy.date then
    wrong(self, "planned at %s, and not at %s: say --date %s", policy.date, self.policy.date, policy.date)
  elseif policy.digest ~= self.policy.digest then
    wrong(self, "planned under another policy: its digest is %s, and here it is %s", policy.digest, self.policy.digest)
  end
  return answer.status == "planned" and failure.status.ok or failure.status.refused, true
end

-- The answer to the next spec, which stands on that line of the input: { text, status = exit status, place, compare = is it to be planned
-- again and compared? }; nil: there are no more.
function methods:next(line)
  if self.position >= self.kept then return nil end
  local text = self.file:read "l"
  self.position, self.count = self.position + #text + 1, self.count + 1
  local status, repeated, is_error = read_answer(self, text, line)
  return { text = text, status = status, place = self.path .. ":" .. self.count,
           compare = repeated and (is_error or self.count & (self.count - 1) == 0 or self.position == self.kept) }
end

-- All specs have been read.
function methods:finish(specs)
  if self.position < self.kept then
    failure.usage("--resume %s: has more answers than standard input has specs, which are %d", self.path, specs)
  end
end

return resume
