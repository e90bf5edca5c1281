-- broken "contain themselves"
local t = { id = "x" }
t.try = t
row(t)
