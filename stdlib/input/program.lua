-- SPDX-License-Identifier: Apache-2.0
-- program.lua: a schedule program from a file: PyTorch's CSV, a line a rank, with its communication or without. What cannot be read is a
-- usage failure; what can, but is no program of a training step, is answered with a finding, as engine.schedule answers what cannot be
-- built.

local engine = require "engine"
local cells = require "pipeplan.input.program_cells"
local failure = require "pipeplan.base.failure"
local messages = require "pipeplan.input.program_messages"
local reading = require "pipeplan.base.reading"

local program = {}

local max_bytes = 1 << 30   -- far more than the most actions that an engine schedule holds

-- Is this the name of a file, and not of a schedule?
function program.is_file(name)
  return name:find("/", 1, true) ~= nil or name:match("%.[cC][sS][vV]$") ~= nil
end

local function shown(path)
  return #path > 200 and path:sub(1, 200) .. "…" or (path:gsub("%c", "?"))
end

local function read(path)
  local handle, problem = reading.open(path)
  local pieces, bytes = {}, 0
  while handle do
    local piece
    piece, problem = handle:read(1 << 20)
    if not piece then break end
    pieces[#pieces + 1], bytes = piece, bytes + #piece
    if bytes > max_bytes then failure.usage("%s: more than %d bytes, too many for a schedule", shown(path), max_bytes) end
  end
  if handle then handle:close() end
  if problem then failure.usage("%s cannot be read: %s", shown(path), problem) end
  return table.concat(pieces)
end

-- A V of two chunks a rank, or DualPipe's two directions? The stages lie on the ranks in the same way.
local function may_be_bidirectional(info)
  local ranks = info.ranks
  if info.chains ~= 1 or info.stages ~= 2 * ranks then return false end
  for stage = 1, 2 * ranks do
    if info.placement[stage] ~= (stage <= ranks and stage - 1 or 2 * ranks - stage) then return false end
  end
  return true
end

-- The lines that say who waits for whom, each with the place of the action that cannot run.
local function cycle(waits)
  local lines = {}
  for i, wait in ipairs(waits) do
    local at = wait.action and string.format("before its action %d, %s,", wait.position, wait.action) or "after its last action"
    lines[i] = string.format("line %d: rank %d waits %s for rank %d to %s %s", wait.rank + 1, wait.rank, at, wait.of,
                             wait.sends and "take" or "run", wait.what)
  end
  return lines
end

-- The finding as it is told of a file: which line it is in, and what may help.
local function told(path, finding, info)
  local line = finding.rank and string.format("line %d: ", finding.rank + 1) or ""
  finding.message, finding.line = shown(path) .. ": " .. line .. finding.message, finding.rank and finding.rank + 1
  finding.details = cycle(finding.waits or {})
  if finding.id == "engine.deadlock" and may_be_bidirectional(info) then
    table.insert(finding.details, "if the upper half of the stages is DualPipe's other direction, say --directions 2")
  end
  return finding
end

-- The verified schedule of a file, its info, and what its communication is where it has any (program_messages.lua); or nil, the finding,
-- and the info where there is one.
function program.load(path, directions)
  local text, rows = cells.read(read(path), shown(path))
  local schedule, problem = engine.schedule.from_csv(text, { directions = directions })
  if not schedule then
    if problem.id:match("^engine%.csv_") then failure.usage("%s: %s", shown(path), problem.message) end
    return nil, told(path, problem)
  end
  local info = schedule:info()
  local verified, finding = schedule:verify()
  if not verified then return nil, told(path, finding, info), info end
  if not rows then return schedule, info end
  local talk, wrong = messages.check(rows, schedule, info)
  if not talk then return nil, told(path, wrong, info), info end
  return schedule, info, talk
end

return program
