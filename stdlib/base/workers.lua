-- SPDX-License-Identifier: Apache-2.0
--[[
workers.lua: work on many items in several processes, its answers in the order of the items.

  workers.run{
    jobs = 1 to 256,
    work = function(text) → text [, true]: in a worker, a copy of this process as it was when the worker was started; true: a new worker
           is to do the next, for this one is not what it was
    next = function() → item: { text = for `work`, or answer = known already, … } | false: wait for input | nil: no more
    input = function(): standard input can be read
    done = function(item): in order, once for each; item.answer is what `work` returned, or nil and item.lost = { kind, number, words }:
           how its worker ended (kind "signal" or "status"), or why none could be started ("none"); item.said: the end of what the worker
           printed meanwhile, as it came, or nil
    output = true, gone = function(): nobody reads standard output any more (and SIGPIPE, which ends this process then, is ignored)
  }

  workers.each(count, jobs, work = function(number) → text [, progress = function(done, count)]) → { text, … }
    the same where the items are a list known before: `work` of 1 to `count`, with one job in this process. An answer that is raised there
    (failure.lua) is raised here.

A worker that ends costs the item that it had, and is replaced. What is held is bounded: a worker has one item at a time, and while the
answer to an early one is awaited, later answers pile up to a limit only.
]]

local engine = require "engine"
local failure = require "pipeplan.base.failure"

local workers = {}

local AHEAD = 64            -- items a worker that may be begun and not handed on
local HELD = 16 * 2 ^ 20    -- bytes of answers that wait for an earlier one

-- Gives an item to a worker, started if need be: did it take it? If not, item.lost says why. One that had ended while it was idle is
-- started once more.
local function give(crew, running, worker, item)
  for _ = 1, 2 do
    if not running[worker] then
      local why
      running[worker], why = crew:start(worker)
      if not running[worker] then
        item.lost = { kind = "none", words = why }
        return false
      end
    end
    item.lost = nil
    if crew:ask(worker, item.text) then return true end
    local _, kind, number, words, said = crew:answer(worker)
    item.said = said
    running[worker], item.lost = false, { kind = kind, number = number, words = words }
  end
  return false
end

function workers.run(how)
  local crew <close> = engine.process.crew(how.jobs, how.work)
  local running, busy, idle = {}, {}, {}            -- by worker: has it a process; the item that it has. List of the others
  for worker = how.jobs, 1, -1 do idle[#idle + 1] = worker end
  local items, first, last, held = {}, 1, 0, 0      -- items[first … last]: begun, not handed on; bytes of their answers
  local more, unasked = true, nil                   -- unasked: the last item, while no worker could take it

  local function hand_on()
    while first <= last and (items[first].answer or items[first].lost) do
      local item = items[first]
      items[first] = nil
      first, held = first + 1, held - #(item.answer or "")
      how.done(item)
    end
  end

  -- To the next idle worker. If none can be started, those that run have to do, and without any the item is lost.
  local function ask(item)
    local worker = idle[#idle]
    local taken = give(crew, running, worker, item)
    if taken or item.lost.kind == "none" and next(busy) then idle[#idle] = nil end
    if taken then busy[worker], item.text = item, nil
    elseif item.lost.kind == "none" and next(busy) then item.lost, unasked = nil, item end
  end

  -- Begins what can be begun. → is it input that is missing?
  local function begin()
    while #idle > 0 do
      if unasked then
        local item = unasked
        unasked = nil
        ask(item)
      elseif not more or last - first >= AHEAD * how.jobs or held >= HELD then
        return false
      else
        local item = how.next()
        if item == false then return true end
        more = item ~= nil
        if more then
          last = last + 1
          items[last] = item
          if item.answer then held = held + #item.answer else ask(item) end
        end
      end
      hand_on()
    end
    return false
  end

  local function take(worker)
    local item = busy[worker]
    local answer, kind, number, words, said = crew:answer(worker)
    if not answer or kind then running[worker] = false end
    if answer then said = number end
    if not item then return end  -- an idle one ended
    busy[worker], idle[#idle + 1] = nil, worker
    item.said = said
    item.answer, item.lost = answer, not answer and { kind = kind, number = number, words = words } or nil
    held = held + #(answer or "")
    hand_on()
  end

  while true do
    local wanted = begin()
    if not more and first > last then return end
    local event = crew:wait(wanted, how.output)
    if event == "input" then how.input()
    elseif event == "gone" then how.gone()
    else take(event) end
  end
end

-- In a worker: what `work` says of an item, or the answer that it raised.
local function guarded(work)
  return function(text)
    local good, answer = pcall(work, math.tointeger(text))
    if good then return "=" .. answer end
    local told = failure.of(answer)
    if not told then error(answer, 0) end
    return string.pack("<c1 I1 s8", "!", told.status, told.message)
  end
end

local function unguarded(item, number)
  if item.lost and item.lost.kind == "none" then failure.raise("over_budget", "no process: %s", item.lost.words) end
  if item.lost then error(string.format("a worker process failed at item %d: %s", number, item.said or ""), 0) end
  if item.answer:sub(1, 1) == "=" then return item.answer:sub(2) end
  local _, status, message = string.unpack("<c1 I1 s8", item.answer)
  failure.again(status, message)
end

function workers.each(count, jobs, work, progress)
  local list, asked = {}, 0
  local function answered(answer)
    list[#list + 1] = answer
    if progress then progress(#list, count) end
  end
  if jobs == 1 or count < 2 then
    for number = 1, count do answered(work(number)) end
    return list
  end
  workers.run {
    jobs = math.min(jobs, count), work = guarded(work),
    next = function()
      asked = asked + 1
      return asked <= count and { text = tostring(asked) } or nil
    end,
    done = function(item) answered(unguarded(item, #list + 1)) end,
  }
  return list
end

return workers
