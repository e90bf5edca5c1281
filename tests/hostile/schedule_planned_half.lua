-- budget: planning from times, two chunks a rank
while true do engine.schedule { kind = "v_half", ranks = 64, microbatches = 2000 } end
