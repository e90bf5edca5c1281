-- budget: zero bytes in short strings
local z = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
local a, b, n = z .. "a", z .. "b", 0
while true do if a < b then n = n + 1 end end
