-- budget: simulating
local s = engine.schedule { kind = "1f1b", ranks = 64, microbatches = 2000 }
while true do s:simulate { F = 1, I = 1, W = 1 } end
