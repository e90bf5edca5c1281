-- budget: the runtime of DualPipe
local s = engine.schedule { kind = "dualpipe", ranks = 16, microbatches = 512 }
while true do s:simulate { F = 1, I = 1, W = 1, runtime = "deepseek", p2p = 0.01 } end
