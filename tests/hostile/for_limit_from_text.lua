-- budget: a loop reads its limit from a text, over and over
local z = "11111111"
for _ = 1, 4 do z = z .. z end
while true do for i = 1, z do break end end
