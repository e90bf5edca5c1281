-- budget: strings that are equal for two megabytes
local z = "abcdefgh"
for _ = 1, 18 do z = z .. z end
local a, b, n = z .. "a", z .. "b", 0
while true do if a < b then n = n + 1 end end
