-- budget: sixty integers that share one place in the table
local t, step = {}, 63
for i = 1, 60 do t[i * step + 1000000 * 63] = i end
local k = 1*63 + 1000000*63
while true do local x = t[k] x = t[k] x = t[k] x = t[k] x = t[k] x = t[k] x = t[k] x = t[k] end
