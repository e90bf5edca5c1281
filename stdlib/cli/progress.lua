-- SPDX-License-Identifier: Apache-2.0
-- progress.lua: how far a long command is: a line on standard error that is written over, when that is a terminal, standard output is
-- none, and the work has taken more than a second.

local engine = require "engine"

local progress = {}

local methods = {}
methods.__index = methods

-- "42 s", "7 min", "3.5 h"
local function duration(seconds)
  if seconds < 90 then return string.format("%.0f s", seconds) end
  if seconds < 5400 then return string.format("%.0f min", seconds / 60) end
  return string.format("%.1f h", seconds / 3600)
end

-- progress.text{ done = lines, new = of them in these `seconds`, seconds =, share = of the input that is done or nil, new_share = likewise
-- of it in these seconds } → "1200 lines, 85 a second, 31 %, 9 min left"
function progress.text(how)
  local text = string.format("%d lines, %.3g a second", how.done, how.new / how.seconds)
  if not how.share or how.new_share <= 0 then return text end
  local left = (1 - how.share) * how.seconds / how.new_share
  return string.format("%s, %d %%, %s left", text, math.floor(100 * how.share), duration(left))
end

-- Call it as often as you like; `share` as of progress.text.
function methods:show(done, share)
  local now = os.time()
  if not self.seen or now <= self.shown then return end
  self.shown, self.there = now, true
  io.stderr:write("\r\27[K", progress.text {
    done = done, new = done - self.done, seconds = now - self.start, share = share, new_share = share and share - self.share })
end

-- So much was there without work: it says nothing of how long the rest takes.
function methods:skip(done, share)
  self.done, self.share, self.start = done, share or 0, os.time()
  self.shown = self.start + 1
end

-- Before something else is written there.
function methods:clear()
  if self.there then io.stderr:write "\r\27[K" end
  self.there = false
end

function progress.new()
  local results_seen, seen = engine.host.terminal()
  local self = setmetatable({ seen = seen and not results_seen }, methods)
  self:skip(0)
  return self
end

return progress
