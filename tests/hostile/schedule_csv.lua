-- budget: writing a program
local s = engine.schedule { kind = "1f1b", ranks = 4, microbatches = 2000 }
while true do s:csv() end
