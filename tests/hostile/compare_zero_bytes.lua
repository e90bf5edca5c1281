-- budget: each zero byte makes the comparison of strings stop and start again
local z = "\0\0\0\0\0\0\0\0"
for _ = 1, 18 do z = z .. z end
local a, b, n = z .. "a", z .. "b", 0
while true do if a < b then n = n + 1 end end
