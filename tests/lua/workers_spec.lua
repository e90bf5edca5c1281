-- SPDX-License-Identifier: Apache-2.0
-- pipeplan.base.workers: work in several processes, and its answers in order.

require "pipeplan"
local crew = require("engine").process.crew
local workers = require "pipeplan.base.workers"

-- Runs `work` on each text of a list. → for each its answer, or how its worker ended.
local function run(jobs, texts, work)
  local asked, out = 0, {}
  workers.run {
    jobs = jobs, work = work,
    next = function()
      asked = asked + 1
      return texts[asked] and { text = texts[asked] } or nil
    end,
    done = function(item) out[#out + 1] = item.answer or item.lost end,
  }
  return out
end

local function numbers(count)
  local list = {}
  for i = 1, count do list[i] = tostring(i) end
  return list
end

-- Takes the longer the earlier it stands, so that with several workers the first is done last.
local function unequal(text)
  local n = 0
  for i = 1, (40 - tonumber(text)) * 5000 do n = n + i end
  return text .. ":" .. n % 7 .. (" "):rep(1000 * tonumber(text))
end

describe("workers", function()
  it("give their answers in order, however long, and the same for any number of them", function()
    local one = run(1, numbers(40), unequal)
    for i, answer in ipairs(one) do assert.equal(unequal(tostring(i)), answer) end
    for _, jobs in ipairs { 2, 3, 16, 256 } do assert.same(one, run(jobs, numbers(40), unequal)) end
    assert.same({}, run(3, {}, unequal))
  end)

  it("do a list known before, in this process or in several, and raise here what is raised there", function()
    local failure, seen = require "pipeplan.base.failure", {}
    for _, jobs in ipairs { 1, 2, 7 } do
      seen[jobs] = {}
      local list = workers.each(30, jobs, function(number) return unequal(tostring(number)) end,
                                function(done, all) seen[jobs][#seen[jobs] + 1] = done .. "/" .. all end)
      assert.same(run(1, numbers(30), unequal), list)
      assert.same({ "1/30", "30/30", 30 }, { seen[jobs][1], seen[jobs][30], #seen[jobs] })
      assert.same({}, workers.each(0, jobs, error))
      local good, raised = pcall(workers.each, 4, jobs, function(number)
        if number > 2 then failure.unloadable("the %dth", number) end
        return ""
      end)
      assert.is_false(good)
      assert.is_true(failure.is(raised))
      assert.same({ 6, "the 3th" }, { raised.status, raised.message })
      local _, bug = pcall(workers.each, 2, jobs, function() return nil .. "" end)
      assert.matches("attempt to concatenate", bug)
    end
  end)

  it("give texts back as they are", function()
    local texts = { "", "\0\r\n\255", ("x"):rep(3000000), "" }
    assert.same(texts, run(2, texts, function(text) return text end))
  end)

  it("change nothing of the state that started them, nor of one another", function()
    local count = 0
    local out = run(1, { "a", "b", "c" }, function() count = count + 1 return tostring(count), true end)
    assert.same({ "1", "1", "1" }, out)
    assert.equal(0, count)
  end)

  -- What runs in a worker may print what it likes: a C library that ends it, or Lua.
  it("have what they printed told, its end where it is long", function()
    local said = {}
    local long = ("x"):rep(200000) .. "\27[31mthe end"
    workers.run {
      jobs = 1,
      work = function(text)
        if text == "quiet" then return text end
        io.stderr:write(text == "long" and long or text .. " \255\0 words")
        io.stderr:flush()
        if text == "dies" then os.execute "kill -9 $PPID" end
        return text, text == "last"
      end,
      next = coroutine.wrap(function()
        for _, text in ipairs { "quiet", "lives", "quiet", "dies", "last", "quiet", "long", "quiet" } do coroutine.yield { text = text } end
      end),
      done = function(item) said[#said + 1] = item.said or false end,
    }
    assert.same({ false, "lives \255\0 words", false, "dies \255\0 words", "last \255\0 words", false }, { table.unpack(said, 1, 6) })
    assert.equal(1000, #said[7])  -- a pipe holds less than it printed (Linux: 64 KiB), and nothing waits for it
    assert.matches("^x+$", said[7])
    assert.is_false(said[8])
  end)

  it("that end cost what they were at", function()
    local out = run(2, numbers(6), function(text)
      if text == "2" then os.exit(3) end
      if text == "4" then os.execute "kill -9 $PPID" end
      return text
    end)
    assert.same({ "1", { kind = "status", number = 3, words = "" }, "3", { kind = "signal", number = 9, words = "Killed" }, "5", "6" }, out)
  end)

  it("take no more on while an early answer is missing than a limit of it", function()
    local given, first_done, most = 0, false, 0
    local ended = os.tmpname()
    workers.run {
      jobs = 2,
      next = function()
        given = given + 1
        if not first_done then most = given end
        return given <= 1000 and { text = tostring(given) } or nil
      end,
      -- the first is done when the 100th is
      work = function(text)
        if text == "1" then os.execute("while [ ! -s " .. ended .. " ]; do sleep 0.01; done") end
        if text == "100" then assert(io.open(ended, "wb")):write("x"):close() end
        return text
      end,
      done = function() first_done = true end,
    }
    os.remove(ended)
    assert.equal(1001, given)
    assert.is_true(most >= 100 and most < 200, most)
  end)

  it("end with the call, also when that is by an error", function()
    assert.error_matches(function()
      workers.run { jobs = 3, work = function() return "" end, next = function() return { text = "" } end, done = function() error "enough" end }
    end, "enough")
    -- no child is left, running or ended and not waited for, but the shell that looks for them
    local list = assert(io.popen "cat /proc/[0-9]*/stat 2>/dev/null | grep -c \"^[0-9]* (.*) . $PPID \"")
    assert.equal("1\n", list:read "a")
    list:close()
  end)

  it("are from 1 to 256", function()
    for _, count in ipairs { 0, -1, 257 } do
      assert.error_matches(function() crew(count, function() return "" end) end, "from 1 to 256")
    end
    assert.has_error(function() crew(1, "text") end)
  end)
end)
