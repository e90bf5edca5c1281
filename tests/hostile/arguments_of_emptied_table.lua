-- budget: arguments in a table that was large
local t = {}
for i = 1, 20000 do t["k"..i] = i end
for i = 1, 20000 do t["k"..i] = nil end
t.schedule = "1f1b" t.ranks = 4 t.microbatches = 8 t.F = 1 t.I = 1 t.W = 1
while true do engine.bubble(t) end
