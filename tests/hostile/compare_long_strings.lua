-- budget: comparing long strings is one instruction
local a = "x"
for _ = 1, 20 do a = a .. a end
local b, n = a .. "y", 0
while true do if a < b then n = n + 1 end end
