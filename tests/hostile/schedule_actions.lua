-- budget: a table for each action
local s = engine.schedule { kind = "1f1b", ranks = 4, microbatches = 2000 }
while true do s:actions(1) end
