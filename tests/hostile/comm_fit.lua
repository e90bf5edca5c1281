-- budget: four thousand points
local p = {}
for i = 1, 4096 do p[i] = { i * 1000, i * 1e-6 } end
while true do engine.comm.fit { test = "all_reduce", ranks = 8, points = p } end
