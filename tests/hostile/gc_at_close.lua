-- broken "setmetatable is not available"
local keep = setmetatable({}, { __gc = function() for _ = 1, 1e12 do end end })
return keep
