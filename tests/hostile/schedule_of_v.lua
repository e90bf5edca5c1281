-- budget: an order that is written for twice the ranks, of one microbatch
while true do engine.schedule { kind = "zb_v", ranks = 30000, microbatches = 1 } end
