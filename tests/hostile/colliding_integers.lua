-- budget: integers that share one place in the table
local t, step = {}, 65535
for i = 1, 32768 do t[i * step] = i end
while true do local x = t[65535] end
