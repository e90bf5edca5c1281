-- budget: planning from times
while true do engine.schedule { kind = "zb_auto", ranks = 64, microbatches = 2000 } end
