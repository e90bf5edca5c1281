-- budget: numbers written as text
local n = 0.1
while true do n = n * 1.0001 local s = tostring(n) end
