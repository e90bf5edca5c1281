-- budget: simulating what is tiny, over and over
local s = engine.schedule { kind = "1f1b", ranks = 2, microbatches = 2 }
while true do s:simulate { F = 1, I = 1, W = 1 } end
