-- budget: peaks
local s = engine.schedule { kind = "1f1b", ranks = 64, microbatches = 2000 }
while true do s:peaks() end
