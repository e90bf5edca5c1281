-- budget: messages of a million microbatches
local s = engine.schedule { kind = "1f1b", ranks = 64, microbatches = 15000 }
s:simulate { F = 1, I = 1, W = 1, runtime = "torch-multi" }
