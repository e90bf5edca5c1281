-- broken "coroutine is not available": every thread would have its own instruction count
for _ = 1, 15000 do coroutine.wrap(function() for _ = 1, 900 do end end)() end
