-- budget: closed forms
while true do engine.bubble { schedule = "1f1b", ranks = 4, microbatches = 8, F = 1, I = 1, W = 1 } end
