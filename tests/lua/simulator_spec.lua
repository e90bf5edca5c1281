-- SPDX-License-Identifier: Apache-2.0
-- schedule:simulate{} against an independent simulator in Python (tests/oracles/simulator.py), which reads the program as text: random
-- schedules of every kind, every stage with times of its own, hops.

require "pipeplan"
local cjson = require "cjson"
local engine = require "engine"

-- Whole numbers 1 … n of a linear congruential generator (Knuth's MMIX constants).
local state = 97
local function draw(n)
  state = state * 6364136223846793005 + 1442695040888963407
  return (state >> 33) % n + 1
end

local function random_schedule(kind)
  while true do
    local schedule = engine.schedule { kind = kind, ranks = draw(8), microbatches = draw(24) }
    if schedule then return schedule end
  end
end

local function random_times(stages)
  local times = { p2p = draw(2) == 1 and 0 or draw(5) }
  for _, name in ipairs { "F", "I", "W", "B", "FB" } do
    times[name] = {}
    for stage = 1, stages do times[name][stage] = draw(20) end
  end
  return times
end

-- As `host` of schedule:simulate, and the kinds that wait.
local function random_hosts(stages)
  local host, waits = { beyond = {}, waits = {} }, {}
  for _, kind in ipairs { "F", "I", "W", "B" } do
    host[kind], host.beyond[kind], host.waits[kind] = {}, {}, draw(3) == 1
    for stage = 1, stages do host[kind][stage], host.beyond[kind][stage] = draw(24) - 1, math.max(0, draw(12) - 6) end
    if host.waits[kind] then waits[#waits + 1] = kind end
  end
  return host, waits
end

local function python(cases)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write(cjson.encode(cases))
  file:close()
  local pipe = assert(io.popen("python3 tests/oracles/simulator.py " .. name))
  local answers = cjson.decode(pipe:read "a")
  assert(pipe:close())
  os.remove(name)
  return answers
end

describe("an independent simulator", function()
  it("finds the same makespan, spans and busy seconds of 20 random programs of every kind, half of them behind hosts", function()
    local cases, found, names = {}, {}, {}
    for _, kind in ipairs(engine.schedule.kinds) do
      for i = 1, 20 do
        local schedule = random_schedule(kind)
        local info = schedule:info()
        local times = random_times(info.stages)
        if i % 2 == 0 then times.host, times.waits = random_hosts(info.stages) end
        times.beyond = times.host and times.host.beyond
        found[#found + 1] = schedule:simulate { F = times.F, I = times.I, W = times.W, B = times.B, FB = times.FB, p2p = times.p2p,
                                                host = times.host }
        names[#names + 1] = string.format("%s P %d M %d", kind, info.ranks, info.microbatches)
        times.text, times.stages = schedule:csv(), info.stages // info.chains
        cases[#cases + 1] = times
      end
    end
    local expected = python(cases)
    assert.equal(#cases, #expected)
    for i, answer in ipairs(expected) do
      assert.equal(answer.makespan, found[i].makespan, names[i])
      for rank = 1, #answer.span do
        assert.equal(answer.span[rank], found[i].span[rank], names[i])
        assert.equal(answer.busy[rank], found[i].busy[rank], names[i])
      end
    end
  end)
end)
