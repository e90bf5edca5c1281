-- budget: the runtime of PyTorch, with heat
local s = engine.schedule { kind = "1f1b", ranks = 16, microbatches = 500 }
while true do s:simulate { F = 1, I = 1, W = 1, runtime = "torch-multi", p2p = 0.1, contention = 1.5, heat = { onset = 0.5, slope = 0.1, tau = 3 } } end
