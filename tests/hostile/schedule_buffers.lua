-- budget: verifying over and over to find the number of buffers
local s = engine.schedule { kind = "zb_h1", ranks = 64, microbatches = 2000 }
while true do s:receive_buffers() end
