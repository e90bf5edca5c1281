-- budget: thousands of values handed back, level by level
local function many(n) if n == 0 then return 1 end return 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32, many(n - 1) end
while true do many(150) end
