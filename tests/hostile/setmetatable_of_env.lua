-- broken "setmetatable is not available"
setmetatable(_ENV, {})
