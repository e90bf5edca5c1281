-- broken "coroutine is not available"
coroutine.wrap(function() while true do end end)()
