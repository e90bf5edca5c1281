-- budget: the text of what ranks issue
local s = engine.schedule { kind = "interleaved_1f1b", ranks = 4, microbatches = 512 }
while true do s:lowered { runtime = "torch-multi" } end
