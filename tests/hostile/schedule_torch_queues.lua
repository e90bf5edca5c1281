-- budget: the runtime of PyTorch, a queue for each peer
local s = engine.schedule { kind = "interleaved_1f1b", ranks = 16, microbatches = 512 }
while true do s:simulate { F = 1, I = 1, W = 1, runtime = "torch-multi", queues = "per_peer", receives = "before_use" } end
