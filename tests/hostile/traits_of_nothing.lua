-- budget: a small table over and over
while true do engine.schedule.traits("1f1b") end
