-- budget: a tail call uses no stack
local function f() return f() end
f()
