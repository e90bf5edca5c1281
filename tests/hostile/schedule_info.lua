-- budget: a number for each stage
local s = engine.schedule { kind = "1f1b", ranks = 30000, microbatches = 1 }
while true do s:info() end
