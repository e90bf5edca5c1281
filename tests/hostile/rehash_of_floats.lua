-- budget: keys come and go beside a large array
local t = {}
for i = 1, 200000 do t[i] = i end
local n = 0
while true do n = n + 0.5 t[n + 0.25] = 1 t[n-1+0.25] = nil end
