-- budget: an iterator that is asked again and again after all keys were removed
local t = {}
for i = 1, 1000 do t[i] = i end
local following = pairs(t)
for i = 1, 1000 do t[i] = nil end
while true do following() end
