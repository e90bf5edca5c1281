-- broken "pcall is not available"
local function nest(n) return pcall(nest, n + 1) end
nest(1)
