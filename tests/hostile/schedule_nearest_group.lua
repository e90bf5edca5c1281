-- budget: looking for the nearest legal group
while true do engine.schedule.check { kind = "interleaved_1f1b", ranks = 30000, microbatches = 59999, group = 45000 } end
