-- broken "getmetatable is not available"
getmetatable("").__index = function() while true do end end
