-- budget: a network read over and over
local net = { tiers = { { reach = 8, bandwidth = 1e11 }, { reach = 1024, bandwidth = 1e10 } } }
while true do engine.comm.alltoall { network = net, group = 64, tokens = 4096, experts_per_token = 8, bytes_per_token = 7168 } end
