-- broken "setmetatable is not available": finalizers run with hooks off
setmetatable({}, { __gc = function() while true do end end })
