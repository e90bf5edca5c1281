-- budget: building
while true do engine.schedule { kind = "1f1b", ranks = 64, microbatches = 2000 } end
