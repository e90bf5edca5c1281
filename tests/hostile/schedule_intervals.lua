-- budget: two numbers for each action
local s = engine.schedule { kind = "1f1b", ranks = 8, microbatches = 500 }
while true do s:simulate { F = 1, I = 1, W = 1, intervals = true } end
