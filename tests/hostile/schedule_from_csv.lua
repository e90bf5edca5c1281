-- budget: reading a program
local s = engine.schedule { kind = "1f1b", ranks = 4, microbatches = 2000 }
local t = s:csv()
while true do engine.schedule.from_csv(t) end
