-- budget: sorting keys that are equal for two megabytes
local t, z = {}, "abcdefgh"
for _ = 1, 18 do z = z .. z end
for i = 1, 12 do t[z .. i] = i end
while true do pairs(t) end
