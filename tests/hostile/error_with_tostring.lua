-- broken "setmetatable is not available": no __tostring that loops
error(setmetatable({}, { __tostring = function() while true do end end }))
