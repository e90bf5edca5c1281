-- budget: a table that was large is walked over though it is empty
local t = {}
for i = 1, 20000 do t["k"..i] = i end
for i = 1, 20000 do t["k"..i] = nil end
while true do pairs(t) end
