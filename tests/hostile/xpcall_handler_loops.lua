-- broken "xpcall is not available": a handler would run with hooks off
xpcall(error, function() while true do end end)
