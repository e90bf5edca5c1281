-- budget: verifying with blocking sends
local s = engine.schedule { kind = "zb_h1", ranks = 64, microbatches = 2000 }
while true do s:verify { buffers = 2 } end
