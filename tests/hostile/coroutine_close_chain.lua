-- broken "coroutine is not available": closing a long chain crashes Lua 5.4.4
local previous
for _ = 1, 50000 do local inner = previous; previous = coroutine.create(function() local c <close> = inner; coroutine.yield() end) end
