-- SPDX-License-Identifier: Apache-2.0
-- The line that says how far a long command is.

require "pipeplan"
local engine = require "engine"
local progress = require "pipeplan.cli.progress"

describe("progress", function()
  it("says lines, their rate, the share of the input and the time left", function()
    -- 60 of 100 s' work done, 20 % of the input: as fast as that, four times 60 s are left
    assert.equal("600 lines, 10 a second, 20 %, 4 min left", progress.text { done = 600, new = 600, seconds = 60, share = 0.2, new_share = 0.2 })
    assert.equal("10 lines, 0.5 a second, 50 %, 20 s left", progress.text { done = 10, new = 10, seconds = 20, share = 0.5, new_share = 0.5 })
    assert.equal("10 lines, 0.01 a second, 10 %, 2.5 h left", progress.text { done = 10, new = 10, seconds = 1000, share = 0.1, new_share = 0.1 })
  end)

  it("does not count as work what was there before", function()
    -- half of it was answered earlier; a quarter took 30 s, so the last quarter takes 30 s more
    assert.equal("75 lines, 0.833 a second, 75 %, 30 s left",
                 progress.text { done = 75, new = 25, seconds = 30, share = 0.75, new_share = 0.25 })
  end)

  it("says no share of what has no known size", function()
    assert.equal("600 lines, 10 a second", progress.text { done = 600, new = 600, seconds = 60 })
  end)

  -- A clock and a terminal of our own: → what is written on standard error when `show` is called each second for so many.
  local function shown(seconds, results_seen, messages_seen)
    local kept_time, kept_error, kept_terminal = os.time, io.stderr, engine.host.terminal
    local now, written = 1000, {}
    os.time = function() return now end  -- luacheck: ignore 122
    io.stderr = { write = function(_, ...) written[#written + 1] = table.concat { ... } end }  -- luacheck: ignore 122
    engine.host.terminal = function() return results_seen, messages_seen end
    local line = progress.new()
    for second = 0, seconds do
      now = 1000 + second
      line:show(10 * second, second / 10)
      line:show(10 * second, second / 10)
    end
    line:clear()
    os.time, io.stderr, engine.host.terminal = kept_time, kept_error, kept_terminal  -- luacheck: ignore 122
    return table.concat(written)
  end

  it("is shown after more than a second, once each second, over the line before it, and taken away", function()
    assert.equal("", shown(1, false, true))
    assert.equal("\r\27[K20 lines, 10 a second, 20 %, 8 s left\r\27[K30 lines, 10 a second, 30 %, 7 s left\r\27[K", shown(3, false, true))
  end)

  it("is for a terminal that shows nothing else", function()
    assert.equal("", shown(5, false, false))
    assert.equal("", shown(5, true, true))
  end)
end)
